//! Compares, carries and selects: one bit per lane.

use super::super::step;
use super::super::tests_rng::Rng;
use super::harness::{GFX90A, GFX1100, inst, wave};
use crate::exec::{Code, Wave};
use crate::isa::Op;
use crate::isa::ir::{Src, sgpr};

fn active<const N: usize>(bits: impl Fn(usize) -> bool, exec: u64) -> u64 {
    (0..N)
        .filter(|&lane| exec >> lane & 1 == 1 && bits(lane))
        .fold(0, |mask, lane| mask | 1 << lane)
}

fn run<const N: usize>(w: &mut Wave<N>, op: Op, change: impl FnOnce(&mut crate::isa::ir::Inst)) {
    let mut inst = inst(op);
    change(&mut inst);
    assert!(step::<_, true>(w, &inst, &Code::default(), &GFX1100), "{op:?}");
}

/// The order that makes a predicate true, from its name: `lt`, `nge`, `o`...
fn predicate(name: &str, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    match name {
        "f" => false,
        "t" => true,
        "lt" => order == Some(Less),
        "eq" => order == Some(Equal),
        "le" => matches!(order, Some(Less | Equal)),
        "gt" => order == Some(Greater),
        "lg" => matches!(order, Some(Less | Greater)),
        "ge" => matches!(order, Some(Greater | Equal)),
        "o" => order.is_some(),
        "u" => order.is_none(),
        "ne" => order != Some(Equal),
        "nge" => matches!(order, None | Some(Less)),
        "nlg" => matches!(order, None | Some(Equal)),
        "ngt" => matches!(order, None | Some(Less | Equal)),
        "nle" => matches!(order, None | Some(Greater)),
        "neq" => matches!(order, None | Some(Less | Greater)),
        "nlt" => matches!(order, None | Some(Greater | Equal)),
        other => panic!("unknown predicate {other}"),
    }
}

fn order(ty: &str, a: u64, b: u64) -> Option<std::cmp::Ordering> {
    let half = |x: u64| super::super::lane::half::to_f32(x as u16);
    match ty {
        "f16" => half(a).partial_cmp(&half(b)),
        "f32" => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        "f64" => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        "i16" => Some((a as i16).cmp(&(b as i16))),
        "u16" => Some((a as u16).cmp(&(b as u16))),
        "i32" => Some((a as i32).cmp(&(b as i32))),
        "u32" => Some((a as u32).cmp(&(b as u32))),
        "i64" => Some((a as i64).cmp(&(b as i64))),
        _ => Some(a.cmp(&b)),
    }
}

fn every_compare<const N: usize>() {
    let mut rng = Rng::new(200);
    let mut seen = 0;
    for &op in Op::all() {
        let name = op.name();
        let (Some(rest), exec_too) = (match name.strip_prefix("v_cmpx_") {
            Some(rest) => (Some(rest), true),
            None => (name.strip_prefix("v_cmp_"), false),
        }) else {
            continue;
        };
        let Some((test, ty)) = rest.split_once('_') else { continue };
        if test == "class" {
            continue; // has its own test
        }
        seen += 1;
        for _ in 0..12 {
            let mut w = wave::<N>(&mut rng);
            // Equal operands are otherwise rare.
            for lane in 0..N {
                if rng.below(4) == 0 {
                    (w.v[4][lane], w.v[5][lane]) = (w.v[2][lane], w.v[3][lane]);
                }
            }
            let exec = w.exec();
            let word = |reg: usize, lane: usize| {
                u64::from(w.v[reg][lane]) | u64::from(w.v[reg + 1][lane]) << 32
            };
            let want =
                active::<N>(|lane| predicate(test, order(ty, word(2, lane), word(4, lane))), exec);
            let high = w.s32(41);
            run(&mut w, op, |_| {});
            assert_eq!(w.lane_mask(40), want, "{name}");
            assert_eq!(w.exec(), if exec_too { want } else { exec }, "{name}");
            let lanes = (0..N).filter(|&lane| w.mask[lane] == u32::MAX).count();
            assert_eq!(lanes, w.exec().count_ones() as usize, "{name}");
            assert!(N == 64 || w.s32(41) == high, "a wave32 compare wrote a second register");
        }
    }
    // 16 predicates of three float types, 8 of six integer types, each with v_cmpx.
    assert_eq!(seen, (16 * 3 + 8 * 6) * 2);
}

#[test]
fn compares_write_zero_for_inactive_lanes_in_wave32() {
    every_compare::<32>();
}

#[test]
fn compares_write_zero_for_inactive_lanes_in_wave64() {
    every_compare::<64>();
}

fn carries<const N: usize>() {
    let mut rng = Rng::new(201);
    for round in 0..200 {
        let mut w = wave::<N>(&mut rng);
        for lane in 0..N {
            if rng.below(3) == 0 {
                w.v[4][lane] = w.v[2][lane];
            }
        }
        let (before, vcc, exec) = (w.v.clone(), w.vcc(), w.exec());
        let with_carry = round % 2 == 1;
        let (op, sign, reversed) = match round % 6 {
            0 => (Op::VAddCoU32, 1, false),
            1 => (Op::VAddCoCiU32, 1, false),
            2 => (Op::VSubCoU32, -1, false),
            3 => (Op::VSubCoCiU32, -1, false),
            4 => (Op::VSubrevCoU32, -1, true),
            _ => (Op::VSubrevCoCiU32, -1, true),
        };
        run(&mut w, op, |i| {
            i.src[2] = Src::s(sgpr::VCC_LO);
            i.sdst = sgpr::VCC_LO; // read before it is written
        });
        let exact = |lane: usize| {
            let (a, b) = (i64::from(before[2][lane]), i64::from(before[4][lane]));
            let (a, b) = if reversed { (b, a) } else { (a, b) };
            let carry = if with_carry { i64::from(vcc >> lane & 1 == 1) } else { 0 };
            a + sign * (b + carry)
        };
        for lane in 0..N {
            let on = exec >> lane & 1 == 1;
            assert_eq!(
                w.v[20][lane],
                if on { exact(lane) as u32 } else { before[20][lane] },
                "{op:?}"
            );
        }
        let want = active::<N>(|lane| !(0..1 << 32).contains(&exact(lane)), exec);
        assert_eq!(w.vcc(), want, "{op:?}");
    }
}

#[test]
fn carries_chain_through_vcc() {
    carries::<32>();
    carries::<64>();
}

#[test]
fn mad_u64_u32_carries_out_of_64_bits() {
    let mut rng = Rng::new(202);
    for _ in 0..100 {
        let mut w = wave::<64>(&mut rng);
        let before = w.v.clone();
        let exec = w.exec();
        run(&mut w, Op::VMadU64U32, |_| {});
        let exact = |lane: usize| {
            u128::from(before[2][lane]) * u128::from(before[4][lane])
                + (u128::from(before[6][lane]) | u128::from(before[7][lane]) << 32)
        };
        for lane in (0..64).filter(|&lane| exec >> lane & 1 == 1) {
            let got = u64::from(w.v[20][lane]) | u64::from(w.v[21][lane]) << 32;
            assert_eq!(got, exact(lane) as u64);
        }
        assert_eq!(w.s64(40), active::<64>(|lane| exact(lane) >> 64 != 0, exec));
    }
}

#[test]
fn selects_read_their_mask_from_any_scalar_or_constant() {
    let mut rng = Rng::new(203);
    let mut w = wave::<32>(&mut rng);
    let before = w.v.clone();
    let (exec, mask) = (w.exec(), w.s32(10));
    run(&mut w, Op::VCndmaskB32, |i| i.src[2] = Src::s(10));
    for lane in 0..32 {
        let from = if exec >> lane & 1 == 0 {
            20
        } else if mask >> lane & 1 == 1 {
            4
        } else {
            2
        };
        assert_eq!(w.v[20][lane], before[from][lane]);
    }
}

#[test]
fn lane_counts_include_only_lanes_below() {
    let mut rng = Rng::new(204);
    let mut w = wave::<64>(&mut rng);
    w.set_exec(!0);
    let mask = rng.u64();
    w.set_s64(8, mask);
    w.v[21] = [0; 64];
    run(&mut w, Op::VMbcntLoU32B32, |i| i.src = [Src::s(8), Src::v(21), Src::v(6)]);
    run(&mut w, Op::VMbcntHiU32B32, |i| i.src = [Src::s(9), Src::v(20), Src::v(6)]);
    for lane in 0..64 {
        assert_eq!(w.v[20][lane], (mask & ((1 << lane) - 1)).count_ones(), "lane {lane}");
    }
}

#[test]
fn classes_are_tested_by_a_mask_per_lane() {
    let mut rng = Rng::new(205);
    for _ in 0..100 {
        let mut w = wave::<32>(&mut rng);
        let (before, exec) = (w.v.clone(), w.exec());
        run(&mut w, Op::VCmpClassF32, |_| {});
        use std::num::FpCategory as C;
        let class = |x: f32| match (x.classify(), x.is_sign_negative()) {
            (C::Nan, _) => u32::from(x.to_bits() >> 22 & 1 == 1),
            (C::Infinite, negative) => {
                if negative {
                    2
                } else {
                    9
                }
            }
            (C::Normal, negative) => {
                if negative {
                    3
                } else {
                    8
                }
            }
            (C::Subnormal, negative) => {
                if negative {
                    4
                } else {
                    7
                }
            }
            (C::Zero, negative) => {
                if negative {
                    5
                } else {
                    6
                }
            }
        };
        let want = active::<32>(
            |lane| before[4][lane] >> class(f32::from_bits(before[2][lane])) & 1 == 1,
            exec,
        );
        assert_eq!(w.lane_mask(40), want);
    }
}

#[test]
fn v_cmpx_on_gfx9_writes_vcc_and_exec() {
    let mut w = Wave::<64>::new();
    w.mode = super::harness::MODE;
    w.set_exec(0xff);
    w.v[2] = std::array::from_fn(|lane| lane as u32);
    w.v[4] = [5; 64];
    let mut inst = inst(Op::VCmpxLtU32);
    inst.sdst = sgpr::VCC_LO;
    assert!(step::<_, true>(&mut w, &inst, &Code::default(), &GFX90A));
    assert_eq!((w.vcc(), w.exec()), (0x1f, 0x1f));
}
