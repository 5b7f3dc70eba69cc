//! Names of code, from the ELF headers that loaders leave in GPU memory before it.
//!
//! A loader that keeps the first segment of a code object keeps its ELF header and the dynamic
//! symbols: enough to say in which kernel or function an address lies, without asking the driver.

use crate::memory::View;

const PAGE: u64 = 4096;
/// How far before an address its header is looked for.
const REACH: u64 = 64 << 20;
const MAGIC: [u8; 4] = *b"\x7fELF";
/// Symbols that are read of an object, at most.
const SYMBOLS: u64 = 1 << 16;

/// Program headers and dynamic tags (ELF-64, System V gABI).
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const STT_FUNC: u8 = 2;

/// A named stretch of code.
#[derive(Clone, Debug)]
struct Symbol {
    start: u64,
    bytes: u64,
    name: String,
}

/// A loaded code object.
#[derive(Clone, Debug)]
pub(in crate::exec) struct Loaded {
    /// Where its first byte is.
    pub(super) base: u64,
    symbols: Vec<Symbol>,
}

impl Loaded {
    /// The object around `pc`, if there is one with a header.
    pub(super) fn find(view: &mut View<'_>, pc: u64) -> Option<Self> {
        let mut page = pc & !(PAGE - 1);
        let lowest = pc.saturating_sub(REACH);
        while page >= lowest.max(PAGE) {
            let mut magic = [0; 4];
            view.read(page, &mut magic).ok()?;
            if magic == MAGIC {
                return Some(Self { base: page, symbols: symbols(view, page).unwrap_or_default() });
            }
            page -= PAGE;
        }
        None
    }

    /// The function at `pc`, and how far into it.
    pub(super) fn name(&self, pc: u64) -> Option<(&str, u64)> {
        let inside =
            |symbol: &&Symbol| pc >= symbol.start && pc - symbol.start < symbol.bytes.max(4);
        let found = self.symbols.iter().find(inside)?;
        Some((&found.name, pc - found.start))
    }
}

fn word(view: &mut View<'_>, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    view.read(at, &mut bytes).ok()?;
    Some(u32::from_le_bytes(bytes))
}

fn quad(view: &mut View<'_>, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    view.read(at, &mut bytes).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// Functions of the dynamic symbol table.
fn symbols(view: &mut View<'_>, base: u64) -> Option<Vec<Symbol>> {
    let headers = base.checked_add(quad(view, base + 32)?)?;
    let count = u64::from(word(view, base + 56)? & 0xffff);
    let dynamic = (0..count).find_map(|k| {
        let at = headers.checked_add(56 * k)?;
        (word(view, at)? == PT_DYNAMIC).then_some(())?;
        Some((base.checked_add(quad(view, at + 16)?)?, quad(view, at + 40)?))
    })?;
    let (mut table, mut names, mut names_bytes) = (None, None, 0);
    for k in 0..dynamic.1.min(4096) / 16 {
        let at = dynamic.0.checked_add(16 * k)?;
        let value = quad(view, at + 8)?;
        match quad(view, at)? {
            DT_SYMTAB => table = base.checked_add(value),
            DT_STRTAB => names = base.checked_add(value),
            DT_STRSZ => names_bytes = value,
            0 => break,
            _ => {}
        }
    }
    let (table, names) = (table?, names?);
    let mut found = Vec::new();
    for k in 1..SYMBOLS {
        let at = table.checked_add(24 * k)?;
        let Some(head) = quad(view, at) else { break };
        let [name, rest] = [head & 0xffff_ffff, head >> 32];
        // Nothing says how long the table is: it ends where its entries make no sense.
        if name >= names_bytes {
            break;
        }
        if rest as u8 & 15 != STT_FUNC {
            continue;
        }
        let (Some(value), Some(bytes)) = (quad(view, at + 8), quad(view, at + 16)) else { break };
        let start = base.wrapping_add(value);
        found.push(Symbol { start, bytes, name: text(view, names + name)? });
    }
    Some(found)
}

/// A string of at most 256 bytes.
fn text(view: &mut View<'_>, at: u64) -> Option<String> {
    let mut bytes = Vec::new();
    for k in 0..256 {
        let mut byte = [0];
        view.read(at.checked_add(k)?, &mut byte).ok()?;
        if byte[0] == 0 {
            break;
        }
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).ok()
}
