//! Static scan: which operations a piece of code uses, and which of them the executor lacks.

use std::collections::{BTreeMap, BTreeSet};

use super::decode::{DecodeError, Decoded, Pools, decode};
use super::sig::flag as shape;
use super::{Op, ir::flag, print};
use crate::{Target, exec};

/// What a scan found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Target scanned for.
    pub target: Target,
    /// Instructions seen, padding excluded.
    pub instructions: usize,
    /// Uses of each operation.
    pub used: BTreeMap<Op, usize>,
    /// Operations used that the executor lacks.
    pub missing: BTreeSet<Op>,
    /// Words that do not decode, by byte offset: data, or an instruction we do not know.
    pub undecoded: BTreeMap<usize, DecodeError>,
    /// For each missing operation, the byte offset of its first use and its text.
    pub examples: BTreeMap<Op, (usize, String)>,
}

/// Scans `code`.
///
/// With `entries` (byte offsets of functions), only what control can reach from them is scanned, so
/// data between functions does no harm; calls through registers reach nothing, hence every function
/// should be listed. Without, all of it, from the start to the end.
pub fn scan(target: Target, wave_size: u32, code: &[u8], entries: &[usize]) -> Coverage {
    let words: Vec<u32> =
        code.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
    let mut scan = Scan {
        coverage: Coverage {
            target,
            instructions: 0,
            used: BTreeMap::new(),
            missing: BTreeSet::new(),
            undecoded: BTreeMap::new(),
            examples: BTreeMap::new(),
        },
        target,
        wave_size,
        words,
        seen: BTreeSet::new(),
        pools: Pools::default(),
    };
    if entries.is_empty() {
        scan.sweep();
    } else {
        let mut todo: Vec<usize> = entries.iter().map(|offset| offset / 4).collect();
        while let Some(start) = todo.pop() {
            scan.follow(start, &mut todo);
        }
    }
    scan.coverage
}

struct Scan {
    coverage: Coverage,
    target: Target,
    wave_size: u32,
    words: Vec<u32>,
    seen: BTreeSet<usize>,
    pools: Pools,
}

impl Scan {
    /// Decodes and counts the instruction at word `at`.
    fn visit(&mut self, at: usize) -> Result<Decoded, DecodeError> {
        let rest = self.words.get(at..).unwrap_or_default();
        self.pools = Pools::default(); // the scan keeps no constants, so no pool fills up
        let decoded = decode(self.target, self.wave_size, rest, &mut self.pools);
        match &decoded {
            Ok(decoded) if decoded.inst.op != Op::SCodeEnd => {
                self.coverage.instructions += 1;
                self.count(at, decoded.inst.op);
                if let Some(pair) = decoded.pair {
                    self.count(at, pair.op);
                }
            }
            Ok(_) => {}
            Err(error) => {
                self.coverage.undecoded.insert(at * 4, *error);
            }
        }
        decoded
    }

    fn count(&mut self, at: usize, op: Op) {
        *self.coverage.used.entry(op).or_default() += 1;
        if exec::implements(self.target, op) {
            return;
        }
        if self.coverage.missing.insert(op) {
            let rest = self.words.get(at..).unwrap_or_default();
            let pc = u64::try_from(at * 4).unwrap_or(0);
            let text = print(self.target, self.wave_size, rest, pc);
            self.coverage.examples.insert(op, (at * 4, text));
        }
    }

    fn sweep(&mut self) {
        let mut at = 0;
        while at < self.words.len() {
            at += match self.visit(at) {
                Ok(decoded) => usize::from(decoded.inst.words),
                Err(error) => error.words().max(1),
            };
        }
    }

    /// Scans from word `at` until control cannot go on; adds branch targets to `todo`.
    fn follow(&mut self, mut at: usize, todo: &mut Vec<usize>) {
        while at < self.words.len() && self.seen.insert(at) {
            let Ok(decoded) = self.visit(at) else { return };
            let inst = decoded.inst;
            at += usize::from(inst.words);
            if decoded.shape.sig.has(shape::BRANCH)
                && let Ok(distance) = isize::try_from(inst.imm / 4)
                && let Some(target) = at.checked_add_signed(distance)
            {
                todo.push(target);
            }
            let goes_on = !matches!(
                inst.op,
                Op::SEndpgm
                    | Op::SEndpgmSaved
                    | Op::SEndpgmOrderedPsDone
                    | Op::SBranch
                    | Op::SSetpcB64
                    | Op::SRfeB64
                    | Op::SRfeRestoreB64
                    | Op::SCodeEnd
            );
            if inst.flags & flag::BLOCK_END != 0 && !goes_on {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// v_mov_b32 v0, s0; s_cbranch_scc0 +1; s_endpgm; (data); s_barrier; s_endpgm
    const CODE: [u32; 6] =
        [0x7e00_0200, 0xbf84_0002, 0xbf81_0000, 0xffff_ffff, 0xbf8a_0000, 0xbf81_0000];

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_scan_from_entries_follows_branches_and_skips_data() {
        let found = scan(Target::Gfx90a, 64, &bytes(&CODE), &[0]);
        assert_eq!(found.instructions, 5);
        assert_eq!(found.used.get(&Op::SEndpgm), Some(&2));
        assert_eq!(found.used.get(&Op::SBarrier), Some(&1));
        assert!(found.undecoded.is_empty());
    }

    #[test]
    fn a_linear_scan_reports_where_words_do_not_decode() {
        let found = scan(Target::Gfx90a, 64, &bytes(&CODE), &[]);
        assert_eq!(found.undecoded.keys().copied().collect::<Vec<_>>(), [12]);
        assert_eq!(found.instructions, 5);
    }

    #[test]
    fn padding_is_not_counted() {
        let found =
            scan(Target::Gfx1100, 32, &bytes(&[0xbfb0_0000, 0xbf9f_0000, 0xbf9f_0000]), &[]);
        assert_eq!(found.instructions, 1);
    }

    #[test]
    fn a_missing_operation_is_shown_with_its_text() {
        // buffer_load_format_x and an image store would do; find any operation the executor lacks.
        let Some(op) = Op::all().iter().find(|&&op| !exec::implements(Target::Gfx90a, op)) else {
            return;
        };
        let mut scan = Scan {
            coverage: scan(Target::Gfx90a, 64, &[], &[]),
            target: Target::Gfx90a,
            wave_size: 64,
            words: vec![0xbf81_0000],
            seen: BTreeSet::new(),
            pools: Pools::default(),
        };
        scan.count(0, *op);
        assert!(scan.coverage.missing.contains(op));
        assert_eq!(scan.coverage.examples.get(op).map(|(at, _)| *at), Some(0));
    }
}
