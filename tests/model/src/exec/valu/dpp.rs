//! Data-parallel primitives: which lane each lane reads source 0 from. docs/ABI.md §DPP controls.

use crate::isa::ir::Dpp;

/// Where a lane's source 0 comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A lane.
    Lane(usize),
    /// Reads as zero.
    Zero,
    /// The lane is not written.
    Nothing,
}

/// Source of `lane` among `lanes` (32 or 64) under the execution mask `exec`.
pub fn source(dpp: &Dpp, lane: usize, lanes: usize, exec: u64) -> From {
    match *dpp {
        Dpp::Eight { select, fi } => {
            let from = lane & !7 | (select >> (3 * (lane & 7)) & 7) as usize;
            if fi || exec >> from & 1 != 0 { From::Lane(from) } else { From::Zero }
        }
        Dpp::Row { ctrl, row_mask, bank_mask, bound_ctrl, fi } => {
            let (row, bank) = (lane / 16, (lane / 4) & 3);
            if row_mask >> row & 1 == 0 || bank_mask >> bank & 1 == 0 {
                return From::Nothing;
            }
            match row_source(ctrl, lane, lanes) {
                Some(from) if fi || exec >> from & 1 != 0 => From::Lane(from),
                _ if bound_ctrl => From::Zero,
                _ => From::Nothing,
            }
        }
    }
}

/// The lane a DPP16 control selects, if it lies inside the row (or the wave).
fn row_source(ctrl: u16, lane: usize, lanes: usize) -> Option<usize> {
    let (row, place) = (lane & !15, lane & 15);
    let by = usize::from(ctrl & 15);
    match ctrl {
        0x000..=0x0ff => Some(lane & !3 | usize::from(ctrl >> (2 * (lane & 3)) & 3)),
        0x101..=0x10f => (place + by < 16).then_some(lane + by),
        0x111..=0x11f => (place >= by).then(|| lane - by),
        0x121..=0x12f => Some(row | (place + 16 - by) & 15),
        0x130 => (lane + 1 < lanes).then_some(lane + 1),
        0x134 => Some((lane + 1) % lanes),
        0x138 => lane.checked_sub(1),
        0x13c => Some((lane + lanes - 1) % lanes),
        0x140 => Some(row | (15 - place)),
        0x141 => Some(lane & !7 | (7 - (lane & 7))),
        0x142 => row.checked_sub(1),
        0x143 => (lane >= 32).then_some(31),
        // row_newbcast on gfx90a and gfx942, row_share on gfx11: the same thing.
        0x150..=0x15f => Some(row | by),
        0x160..=0x16f => Some(row | (place ^ by)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(ctrl: u16, lanes: usize, exec: u64, bound_ctrl: bool) -> Vec<From> {
        let dpp = Dpp::Row { ctrl, row_mask: 15, bank_mask: 15, bound_ctrl, fi: false };
        (0..lanes).map(|lane| source(&dpp, lane, lanes, exec)).collect()
    }

    #[test]
    fn quad_permutations_stay_in_their_quad() {
        // quad_perm:[3,2,1,0]
        let got = sources(0b00_01_10_11, 32, !0, false);
        for (lane, from) in got.iter().enumerate() {
            assert_eq!(*from, From::Lane(lane ^ 3));
        }
    }

    #[test]
    fn row_shifts_leave_the_end_of_the_row_without_source() {
        let right = sources(0x111 + 3, 64, !0, false);
        let left = sources(0x101 + 3, 64, !0, true);
        for lane in 0..64 {
            assert_eq!(
                right[lane],
                if lane % 16 < 4 { From::Nothing } else { From::Lane(lane - 4) }
            );
            assert_eq!(left[lane], if lane % 16 > 11 { From::Zero } else { From::Lane(lane + 4) });
        }
    }

    #[test]
    fn rotations_mirrors_and_exchanges_permute_each_row() {
        for ctrl in [0x121, 0x127, 0x12f, 0x140, 0x141, 0x161, 0x16f] {
            let mut seen = sources(ctrl, 64, !0, false);
            seen.sort_by_key(|from| if let From::Lane(lane) = from { *lane } else { usize::MAX });
            assert_eq!(seen, (0..64).map(From::Lane).collect::<Vec<_>>(), "{ctrl:x}");
        }
        assert_eq!(sources(0x121, 32, !0, false)[17], From::Lane(16));
        assert_eq!(sources(0x121, 32, !0, false)[16], From::Lane(31));
    }

    #[test]
    fn broadcasts_feed_the_rows_after_theirs() {
        let fifteen = sources(0x142, 64, !0, false);
        let thirty_one = sources(0x143, 64, !0, false);
        for lane in 0..64 {
            let row = lane / 16;
            assert_eq!(
                fifteen[lane],
                if row == 0 { From::Nothing } else { From::Lane(row * 16 - 1) }
            );
            assert_eq!(thirty_one[lane], if row < 2 { From::Nothing } else { From::Lane(31) });
            assert_eq!(sources(0x155, 64, !0, false)[lane], From::Lane(row * 16 + 5));
        }
    }

    #[test]
    fn wave_shifts_cross_rows() {
        assert_eq!(sources(0x138, 64, !0, false)[16], From::Lane(15));
        assert_eq!(sources(0x138, 64, !0, false)[0], From::Nothing);
        assert_eq!(sources(0x13c, 64, !0, false)[0], From::Lane(63));
        assert_eq!(sources(0x130, 64, !0, true)[63], From::Zero);
        assert_eq!(sources(0x134, 64, !0, true)[63], From::Lane(0));
    }

    #[test]
    fn inactive_sources_count_as_out_of_range_unless_fetched() {
        let exec = !(1 << 5);
        assert_eq!(sources(0x111, 32, exec, false)[6], From::Nothing);
        assert_eq!(sources(0x111, 32, exec, true)[6], From::Zero);
        let fetch =
            Dpp::Row { ctrl: 0x111, row_mask: 15, bank_mask: 15, bound_ctrl: false, fi: true };
        assert_eq!(source(&fetch, 6, 32, exec), From::Lane(5));
    }

    #[test]
    fn row_and_bank_masks_disable_lanes() {
        let dpp =
            Dpp::Row { ctrl: 0xe4, row_mask: 0b10, bank_mask: 0b0100, bound_ctrl: true, fi: true };
        for lane in 0..64 {
            let on = lane / 16 == 1 && lane / 4 % 4 == 2;
            assert_eq!(
                source(&dpp, lane, 64, !0),
                if on { From::Lane(lane) } else { From::Nothing }
            );
        }
    }

    #[test]
    fn dpp8_reads_zero_from_inactive_lanes() {
        let reverse = (0..8).fold(0, |select, k| select | (7 - k) << (3 * k));
        let dpp = Dpp::Eight { select: reverse, fi: false };
        assert_eq!(source(&dpp, 9, 32, !0), From::Lane(14));
        assert_eq!(source(&dpp, 9, 32, !(1 << 14)), From::Zero);
        let dpp = Dpp::Eight { select: reverse, fi: true };
        assert_eq!(source(&dpp, 9, 32, 0), From::Lane(14));
    }
}
