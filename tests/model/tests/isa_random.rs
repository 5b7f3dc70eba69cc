//! Whatever the words are, decoding, printing and scanning end without a panic and agree with each other.

use kfd_model::Target;
use kfd_model::isa::{self, DecodeError, Pools};
use proptest::prelude::*;

fn any_target() -> impl Strategy<Value = Target> {
    prop::sample::select(Target::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_words_never_panic(
        target in any_target(),
        wave_size in prop::sample::select(vec![32, 64]),
        words in prop::collection::vec(any::<u32>(), 0..5),
        pc in any::<u64>(),
    ) {
        let mut pools = Pools::default();
        let text = isa::print(target, wave_size, &words, pc);
        match isa::decode(target, wave_size, &words, &mut pools) {
            Ok(decoded) => {
                let length = usize::from(decoded.inst.words);
                prop_assert!((1..=3).contains(&length) && length <= words.len());
                prop_assert!(decoded.inst.vgprs <= 256);
                prop_assert!(!text.starts_with(".long"));
            }
            Err(error) => {
                prop_assert!(error.words() >= 1);
                prop_assert!(words.is_empty() || text.starts_with(".long"));
            }
        }
    }

    /// A prefix of an instruction is truncated, never another instruction.
    #[test]
    fn a_prefix_is_truncated(target in any_target(), words in prop::collection::vec(any::<u32>(), 3)) {
        let decode = |words: &[u32]| isa::decode(target, 64, words, &mut Pools::default());
        if let Ok(decoded) = decode(&words) {
            for length in 0..usize::from(decoded.inst.words) {
                let prefix = words.get(..length).unwrap_or_default();
                let truncated = matches!(decode(prefix), Err(DecodeError::Truncated { .. }));
                prop_assert!(truncated, "{length} words of {:08x?}", words);
            }
        }
    }

    #[test]
    fn scanning_random_bytes_ends(
        target in any_target(),
        code in prop::collection::vec(any::<u8>(), 0..200),
        entries in prop::collection::vec(0usize..250, 0..4),
    ) {
        let found = isa::scan(target, 64, &code, &entries);
        prop_assert!(found.instructions <= code.len() / 4 + 1);
        prop_assert!(found.missing.iter().all(|op| found.used.contains_key(op)));
    }
}
