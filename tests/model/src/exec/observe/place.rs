//! Where an instruction is, for people.

use serde::Serialize;

use super::symbols::Loaded;
use crate::Target;
use crate::isa;
use crate::memory::View;

/// Where an instruction is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The function or kernel around it, where the code has symbols.
    pub symbol: Option<String>,
    /// Bytes from that symbol's start; without one, from the entry of the kernel.
    pub offset: i64,
    /// Its address in GPU memory.
    pub address: u64,
    /// The instruction.
    pub text: String,
}

impl Place {
    /// Looks at memory.
    pub(in crate::exec) fn new(
        view: &mut View<'_>,
        loaded: &mut Vec<Loaded>,
        (target, wave_size): (Target, u32),
        entry: u64,
        pc: u64,
    ) -> Self {
        let mut words = vec![0; 8];
        let count = view.fetch(pc, &mut words).unwrap_or(0);
        words.truncate(count);
        let text = if words.is_empty() {
            "(nothing that can be executed)".to_owned()
        } else {
            isa::print(target, wave_size, &words, pc)
        };
        let found = loaded.iter().find_map(|object| object.name(pc));
        let found = found.map(|(name, offset)| (name.to_owned(), offset)).or_else(|| {
            let object = Loaded::find(view, pc)?;
            let found = object.name(pc).map(|(name, offset)| (name.to_owned(), offset));
            if loaded.iter().all(|known| known.base != object.base) {
                loaded.push(object);
            }
            found
        });
        let (symbol, offset) = match found {
            Some((name, offset)) => (Some(name), offset.cast_signed()),
            None => (None, pc.wrapping_sub(entry).cast_signed()),
        };
        Self { symbol, offset, address: pc, text }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.symbol {
            Some(symbol) => write!(f, "{symbol}{:+#x}", self.offset)?,
            None => write!(f, "{:#x} (entry {:+#x})", self.address, self.offset)?,
        }
        write!(f, ": {}", self.text)
    }
}
