//! Between lanes and between register files.

use super::super::step;
use super::super::tests_rng::Rng;
use super::harness::{GFX90A, GFX1100, constant, inst, wave, with};
use crate::exec::{Code, Wave};
use crate::isa::Op;
use crate::isa::ir::{Dpp, Mods, Src};

#[test]
fn readfirstlane_takes_the_lowest_active_lane_or_lane_zero() {
    let mut rng = Rng::new(300);
    for exec in [0, 1, 0x10, 1 << 63, 0xffff_0000_0000_0000] {
        let mut w = wave::<64>(&mut rng);
        w.set_exec(exec);
        let mut inst = inst(Op::VReadfirstlaneB32);
        inst.dst = 30;
        assert!(step::<_, true>(&mut w, &inst, &Code::default(), &GFX90A));
        let lane = if exec == 0 { 0 } else { exec.trailing_zeros() as usize };
        assert_eq!(w.s32(30), w.v[2][lane]);
    }
}

#[test]
fn readlane_and_writelane_ignore_exec_and_wrap_the_lane() {
    let mut rng = Rng::new(301);
    let mut w = wave::<32>(&mut rng);
    w.set_exec(0);
    w.set_s32(7, 32 + 9);
    let mut read = inst(Op::VReadlaneB32);
    (read.dst, read.src[1]) = (30, Src::s(7));
    assert!(step::<_, true>(&mut w, &read, &Code::default(), &GFX1100));
    assert_eq!(w.s32(30), w.v[2][9]);
    let mut write = inst(Op::VWritelaneB32);
    write.src = [Src::k(0), Src::s(7), Src::s(0)];
    let before = w.v[20];
    assert!(step::<_, true>(&mut w, &write, &constant(0x1234), &GFX1100));
    for lane in 0..32 {
        assert_eq!(w.v[20][lane], if lane == 9 { 0x1234 } else { before[lane] });
    }
}

#[test]
fn accumulation_registers_follow_the_architected_ones() {
    let mut rng = Rng::new(302);
    let mut w = wave::<64>(&mut rng);
    (w.accum_offset, w.vgprs) = (32, 64);
    let mut write = inst(Op::VAccvgprWriteB32);
    write.dst = 256 + 3;
    let (before, exec) = (w.v[35], w.exec());
    assert!(step::<_, true>(&mut w, &write, &Code::default(), &GFX90A));
    for lane in 0..64 {
        assert_eq!(w.v[35][lane], if exec >> lane & 1 == 1 { w.v[2][lane] } else { before[lane] });
    }
    let mut read = inst(Op::VAccvgprReadB32);
    read.src[0] = Src::v(256 + 3);
    assert!(step::<_, true>(&mut w, &read, &Code::default(), &GFX90A));
    for lane in (0..64).filter(|&lane| exec >> lane & 1 == 1) {
        assert_eq!(w.v[20][lane], w.v[35][lane]);
    }
}

#[test]
fn permlanex16_reads_the_other_row() {
    let mut rng = Rng::new(303);
    for fetch_inactive in [false, true] {
        let mut w = wave::<64>(&mut rng);
        let (before, exec) = (w.v.clone(), w.exec());
        let select = rng.u64();
        w.set_s64(8, select);
        let mods = Mods { opsel: u8::from(fetch_inactive), ..Mods::default() };
        for (op, xor) in [(Op::VPermlane16B32, 0), (Op::VPermlanex16B32, 16)] {
            w.v = before.clone();
            let (mut inst, code) = with(op, mods);
            (inst.src[1], inst.src[2]) = (Src::s(8), Src::s(9));
            assert!(step::<_, true>(&mut w, &inst, &code, &GFX1100));
            for lane in 0..64 {
                let from = (lane & 48 ^ xor) + (select >> (lane % 16 * 4) & 15) as usize;
                let readable = fetch_inactive || exec >> from & 1 == 1;
                let want = if exec >> lane & 1 == 1 && readable {
                    before[2][from]
                } else {
                    before[20][lane]
                };
                assert_eq!(w.v[20][lane], want, "{op:?} lane {lane}");
            }
        }
    }
}

#[test]
fn permlane64_swaps_halves_and_does_nothing_in_wave32() {
    let mut rng = Rng::new(304);
    let mut w = wave::<64>(&mut rng);
    let before = w.v.clone();
    assert!(step::<_, true>(&mut w, &inst(Op::VPermlane64B32), &Code::default(), &GFX1100));
    for lane in 0..64 {
        let on = w.exec() >> lane & 1 == 1;
        assert_eq!(w.v[20][lane], if on { before[2][lane ^ 32] } else { before[20][lane] });
    }
    let mut w = wave::<32>(&mut rng);
    let before = w.v.clone();
    assert!(step::<_, true>(&mut w, &inst(Op::VPermlane64B32), &Code::default(), &GFX1100));
    assert_eq!(w.v, before);
}

#[test]
fn swap_exchanges_active_lanes() {
    let mut rng = Rng::new(305);
    let mut w = wave::<32>(&mut rng);
    let before = w.v.clone();
    assert!(step::<_, true>(&mut w, &inst(Op::VSwapB32), &Code::default(), &GFX1100));
    for lane in 0..32 {
        let (a, b) = if w.exec() >> lane & 1 == 1 { (20, 2) } else { (2, 20) };
        assert_eq!((w.v[2][lane], w.v[20][lane]), (before[a][lane], before[b][lane]));
    }
}

#[test]
fn relative_moves_stay_inside_the_allocation() {
    let mut rng = Rng::new(306);
    let mut w = wave::<32>(&mut rng);
    w.set_exec(!0);
    w.set_s32(crate::isa::ir::sgpr::M0, 5);
    assert!(step::<_, true>(&mut w, &inst(Op::VMovrelsB32), &Code::default(), &GFX1100));
    assert_eq!(w.v[20], w.v[7]);
    w.set_s32(crate::isa::ir::sgpr::M0, 200);
    let before = w.v.clone();
    assert!(step::<_, true>(&mut w, &inst(Op::VMovrelsB32), &Code::default(), &GFX1100));
    assert!(step::<_, true>(&mut w, &inst(Op::VMovreldB32), &Code::default(), &GFX1100));
    assert_eq!(w.v, before);
}

/// The reduction that compilers emit: shifts within rows, then broadcasts between them.
#[test]
fn a_dpp_reduction_sums_the_wave() {
    let mut rng = Rng::new(308);
    let mut w = Wave::<64>::new();
    w.mode = super::harness::MODE;
    w.set_exec(!0);
    w.v[2] = std::array::from_fn(|_| rng.u32());
    let total = w.v[2].iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
    let stages = [
        (0x111, 15, 15),
        (0x112, 15, 15),
        (0x114, 15, 14),
        (0x118, 15, 12),
        (0x142, 10, 15),
        (0x143, 12, 15),
    ];
    for (ctrl, row_mask, bank_mask) in stages {
        let dpp = Dpp::Row { ctrl, row_mask, bank_mask, bound_ctrl: false, fi: false };
        let (mut add, code) = with(Op::VAddNcU32, Mods { dpp: Some(dpp), ..Mods::default() });
        (add.dst, add.src) = (2, [Src::v(2), Src::v(2), Src::s(0)]);
        assert!(step::<_, true>(&mut w, &add, &code, &GFX90A));
    }
    assert_eq!(w.v[2][63], total);
}
