//! Names of operations.

use super::Op;
use super::generated::op::{ALL, NAMES, SPELLINGS};
use crate::Target;

impl Op {
    /// How many there are: one more than the highest discriminant.
    pub const COUNT: usize = ALL.len();

    /// Every operation, in the order of the discriminants.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// The operation's discriminant.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The canonical mnemonic: gfx11's where the targets differ, without encoding suffix.
    pub fn name(self) -> &'static str {
        NAMES.get(self.index()).copied().unwrap_or("?")
    }

    /// The mnemonic as LLVM 19 spells it on `target`, without encoding suffix.
    pub fn name_on(self, target: Target) -> &'static str {
        let bit = 1u16 << target as u16;
        let start = SPELLINGS.partition_point(|&(op, ..)| op < self);
        SPELLINGS
            .get(start..)
            .unwrap_or_default()
            .iter()
            .take_while(|&&(op, ..)| op == self)
            .find(|&&(_, targets, _)| targets & bit != 0)
            .map_or_else(|| self.name(), |&(.., name)| name)
    }

    /// Finds an operation by its canonical mnemonic or by a spelling of any target.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.iter()
            .copied()
            .find(|op| op.name() == name)
            .or_else(|| SPELLINGS.iter().find(|&&(.., other)| other == name).map(|&(op, ..)| op))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discriminants_index_the_tables() {
        for (i, op) in Op::all().iter().enumerate() {
            assert_eq!(op.index(), i);
            assert_eq!(Op::from_name(op.name()), Some(*op));
        }
        assert_eq!(NAMES.len(), ALL.len());
    }

    #[test]
    fn spellings_are_sorted_and_found_by_target() {
        assert!(SPELLINGS.is_sorted());
        assert_eq!(Op::VAddNcU32.name_on(Target::Gfx90a), "v_add_u32");
        assert_eq!(Op::VAddNcU32.name_on(Target::Gfx1100), "v_add_nc_u32");
        assert_eq!(Op::VMfmaF3216x16x4F32.name_on(Target::Gfx90a), "v_mfma_f32_16x16x4f32");
        assert_eq!(Op::VMfmaF3216x16x4F32.name_on(Target::Gfx942), "v_mfma_f32_16x16x4_f32");
        assert_eq!(Op::from_name("s_ff1_i32_b64"), Some(Op::SCtzI32B64));
    }
}
