//! Global symbols: `.dynsym` first, `.symtab` as a supplement.

use std::collections::BTreeMap;

use object::LittleEndian as LE;
use object::elf;

use super::{Dynamic, File, RawSymbol, SectionHeader, structures};
use crate::error::{Error, Result};

/// A defined global symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub vaddr: u64,
    pub bytes: u64,
    pub kind: u8,
    /// SHN_ABS: the value is a number, not an address.
    pub absolute: bool,
}

/// A symbol table with its strings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolTable<'data> {
    pub name: &'static str,
    pub symbols: &'data [RawSymbol],
    pub strings: &'data [u8],
}

pub(crate) const STT_OBJECT: u8 = elf::STT_OBJECT.0;

/// `.dynsym`, through PT_DYNAMIC.
pub(crate) fn dynamic_symbols<'data>(dynamic: &Dynamic<'data>) -> SymbolTable<'data> {
    SymbolTable { name: ".dynsym", symbols: dynamic.symbols, strings: dynamic.strings }
}

/// `.symtab`, through the section headers; `None` in a stripped object.
pub(crate) fn section_symbols<'data>(
    file: File<'data>,
    sections: &[SectionHeader],
) -> Result<Option<SymbolTable<'data>>> {
    let Some(table) = sections.iter().find(|section| section.sh_type.get(LE) == elf::SHT_SYMTAB)
    else {
        return Ok(None);
    };
    let link = table.sh_link.get(LE);
    let strings = usize::try_from(link).ok().and_then(|index| sections.get(index));
    let strings = strings.ok_or(Error::Header { field: "sh_link", value: link.into() })?;
    let range = |what, section: &SectionHeader| {
        file.range(what, section.sh_offset.get(LE), section.sh_size.get(LE))
    };
    Ok(Some(SymbolTable {
        name: ".symtab",
        symbols: structures(range(".symtab", table)?),
        strings: range(".strtab", strings)?,
    }))
}

impl<'data> SymbolTable<'data> {
    /// Name of a symbol of this table.
    pub fn name_of(&self, index: usize, symbol: &RawSymbol) -> Result<&'data str> {
        let offset = symbol.st_name.get(LE);
        let name = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.strings.get(offset..))
            .and_then(|rest| rest.split_at_checked(rest.iter().position(|&byte| byte == 0)?));
        name.and_then(|(name, _)| core::str::from_utf8(name).ok()).ok_or(Error::SymbolName {
            table: self.name,
            index: index as u64,
            offset,
        })
    }

    /// Adds the defined global symbols of this table to `names`; those already there from an
    /// earlier table stay.
    pub fn collect_into(&self, names: &mut BTreeMap<&'data str, Symbol>) -> Result<()> {
        let mut added = BTreeMap::new();
        for (index, symbol) in self.symbols.iter().enumerate() {
            let local = symbol.st_bind() == elf::STB_LOCAL;
            if local || symbol.st_shndx.get(LE) == elf::SHN_UNDEF {
                continue;
            }
            let name = self.name_of(index, symbol)?;
            let entry = Symbol {
                vaddr: symbol.st_value.get(LE),
                bytes: symbol.st_size.get(LE),
                kind: symbol.st_type().0,
                absolute: symbol.st_shndx.get(LE) == elf::SHN_ABS,
            };
            if added.insert(name, entry).is_some() {
                return Err(Error::DuplicateSymbol { name: name.to_owned() });
            }
        }
        for (name, symbol) in added {
            names.entry(name).or_insert(symbol);
        }
        Ok(())
    }
}
