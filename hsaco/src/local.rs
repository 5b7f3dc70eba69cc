//! Local symbols: not found by name by programs, but evidence of what was linked in.

use object::LittleEndian as LE;
use object::elf;

use crate::elf::{self as object_file, File, STT_OBJECT};

/// Whether the ELF object has a local variable of this name and size. `false` also for an object
/// that was stripped or cannot be read: its absence proves nothing.
///
/// Local names are not unique and mean nothing to a loader; this is for telling which version of a
/// library was linked in.
pub fn has_local_variable(bytes: &[u8], name: &str, size: u64) -> bool {
    let file = File { bytes };
    let table = object_file::identify(file)
        .and_then(|identity| object_file::section_symbols(file, identity.section_headers));
    let Ok(Some(table)) = table else { return false };
    table.symbols.iter().enumerate().any(|(index, symbol)| {
        symbol.st_bind() == elf::STB_LOCAL
            && symbol.st_type().0 == STT_OBJECT
            && symbol.st_size.get(LE) == size
            && table.name_of(index, symbol).is_ok_and(|found| found == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_variable_is_found_by_name_and_size_only() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/fixtures/code-objects/reloc.gfx90a.v5.co"
        );
        let bytes = std::fs::read(path).unwrap();
        assert!(has_local_variable(&bytes, "fns", 8));
        assert!(!has_local_variable(&bytes, "fns", 4), "the size differs");
        assert!(!has_local_variable(&bytes, "last_signal_time", 8), "there is none");
        let object = crate::CodeObject::parse(&bytes).unwrap();
        let global = object.variables().first().unwrap();
        assert!(!has_local_variable(&bytes, global.name, global.bytes), "it is global");
        for cut in 0..bytes.len().min(4096) {
            assert!(!has_local_variable(&bytes[..cut], "fns", 8), "{cut} bytes");
        }
    }
}
