//! The fast path and the path with modifiers are the same instruction set.

use super::super::tests_rng::Rng;
use super::super::visit::Probe;
use super::super::{hot, implements, rare, step, step_slow};
use super::harness::{GFX90A, GFX1100, constant, inst, interesting, wave};
use crate::exec::{Code, Wave};
use crate::isa::Op;
use crate::isa::ir::Src;

fn clone<const N: usize>(wave: &Wave<N>) -> Wave<N> {
    Wave { v: wave.v.clone(), ..*wave }
}

fn same<const N: usize>(a: &Wave<N>, b: &Wave<N>) -> bool {
    a.v == b.v && a.s == b.s && a.mask == b.mask && a.scc == b.scc
}

/// Makes every NaN in the destination the same: which operand's payload a NaN result carries is
/// left open by the instruction set and by the host.
fn forget_nan_payloads<const N: usize>(wave: &mut Wave<N>, op: Op) {
    for lane in 0..N {
        let (low, high) = (wave.v[20][lane], wave.v[21][lane]);
        if op.name().ends_with("f64")
            && f64::from_bits(u64::from(high) << 32 | u64::from(low)).is_nan()
        {
            wave.v[20][lane] = 0;
            wave.v[21][lane] = 0x7ff8_0000;
        } else if op.name().ends_with("f32") && f32::from_bits(low).is_nan() {
            wave.v[20][lane] = 0x7fc0_0000;
        }
    }
}

fn both_paths_agree<const N: usize>() {
    let mut rng = Rng::new(100);
    for &op in Op::all().iter().filter(|&&op| hot(op, Probe)) {
        for round in 0..40 {
            let code = constant(u64::from(interesting(&mut rng)) | rng.u64() << 32);
            let mut inst = inst(op);
            let env = if round % 2 == 0 { &GFX90A } else { &GFX1100 };
            for src in &mut inst.src {
                *src = match rng.below(3) {
                    0 => Src::s(rng.below(30) as u8 & !1),
                    1 => Src::k(0),
                    _ => *src,
                };
            }
            if matches!(op, Op::VReadlaneB32 | Op::VReadfirstlaneB32) {
                inst.dst = 10;
            }
            let mut fast = wave::<N>(&mut rng);
            let mut slow = clone(&fast);
            assert!(step::<_, true>(&mut fast, &inst, &code, env), "{op:?}");
            assert!(step_slow(&mut slow, &inst, &code, env), "{op:?}");
            forget_nan_payloads(&mut fast, op);
            forget_nan_payloads(&mut slow, op);
            assert!(same(&fast, &slow), "{op:?} {:?}", inst.src);
        }
    }
}

#[test]
fn fast_and_slow_path_agree_in_wave32() {
    both_paths_agree::<32>();
}

#[test]
fn fast_and_slow_path_agree_in_wave64() {
    both_paths_agree::<64>();
}

#[test]
fn only_implemented_operations_execute() {
    let mut rng = Rng::new(101);
    let code = Code::default();
    for &op in Op::all() {
        let mut inst = inst(op);
        inst.dst = 20;
        let mut w = wave::<32>(&mut rng);
        let before = clone(&w);
        let done = step::<_, true>(&mut w, &inst, &code, &GFX1100);
        assert_eq!(done, implements(GFX1100.target, op), "{op:?}");
        assert!(done || same(&w, &before), "{op:?} changed the wave though it has no semantics");
    }
}

#[test]
fn no_operation_is_in_two_tables_but_compares() {
    for &op in Op::all() {
        let name = op.name();
        let twice = hot(op, Probe) && rare(op, Probe);
        assert!(!twice || name.starts_with("v_cmp"), "{name}");
    }
}
