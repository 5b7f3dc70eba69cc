//! Whether a kernel can see arithmetic exceptions: only then are they recorded.
//!
//! A kernel sees them when its launch enables their traps, or when its code reads TRAPSTS or enables
//! traps by writing MODE. Code is followed from the entry through branches and through calls whose
//! target is computed from the program counter, as compilers do. What is reached otherwise (tables of
//! functions) and reads TRAPSTS finds the exceptions of before its first launch only if the kernel
//! itself does too.

use std::collections::HashSet;

use super::hwreg;
use crate::Target;
use crate::isa::ir::{Inst, SrcKind};
use crate::isa::{Op, Pools, decode};
use crate::memory::View;

/// Instructions that are looked at, at most.
const LIMIT: usize = 1 << 16;

/// Whether code from `entry` on reads TRAPSTS or enables traps of arithmetic exceptions.
pub(super) fn code_asks(target: Target, wave_size: u32, entry: u64, view: &mut View<'_>) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![entry];
    let mut pools = Pools::default();
    while let Some(mut pc) = todo.pop() {
        let mut pointer = Pointer::default();
        while seen.len() < LIMIT && seen.insert(pc) {
            let mut words = [0; 8];
            let Ok(count) = view.fetch(pc, &mut words) else { break };
            let words = words.get(..count).unwrap_or(&words);
            let Ok(decoded) = decode(target, wave_size, words, &mut pools) else { break };
            let i = decoded.inst;
            if asks(&i) {
                return true;
            }
            let next = pc.wrapping_add(4 * u64::from(i.words));
            pointer.step(&i, next, &pools);
            let branch = next.wrapping_add_signed(i.imm.into());
            match i.op {
                Op::SBranch => {
                    todo.push(branch);
                    break;
                }
                Op::SSetpcB64 | Op::SSwappcB64 => {
                    todo.extend(pointer.of(&i));
                    if i.op == Op::SSetpcB64 {
                        break;
                    }
                }
                Op::SEndpgm | Op::SEndpgmSaved | Op::SRfeB64 | Op::SCodeEnd => break,
                op if op.name().starts_with("s_cbranch") || op == Op::SCallB64 => todo.push(branch),
                _ => {}
            }
            pc = next;
        }
    }
    false
}

fn asks(i: &Inst) -> bool {
    match i.op {
        Op::SGetregB32 => hwreg::names_trapsts(i.imm as u32),
        Op::SSetregB32 | Op::SSetregImm32B32 => hwreg::names_exception_enables(i.imm as u32),
        _ => false,
    }
}

/// A code address on its way into a call: s_getpc, s_add of a distance, s_addc.
#[derive(Clone, Copy, Default)]
struct Pointer {
    register: u16,
    value: Option<u64>,
}

impl Pointer {
    fn step(&mut self, i: &Inst, next: u64, pools: &Pools) {
        let literal = |k: usize| match i.src.get(k)?.kind() {
            SrcKind::K(index) => pools.consts.get(index as usize).map(|&bits| bits as u32),
            _ => None,
        };
        let constant = literal(0).or_else(|| literal(1));
        match (i.op, self.value, constant) {
            (Op::SGetpcB64, ..) => *self = Self { register: i.dst, value: Some(next) },
            (Op::SAddU32, Some(value), Some(low)) if i.dst == self.register => {
                // The carry goes into the next instruction, which adds the high half.
                self.value = Some(value.wrapping_add(low.into()));
            }
            (Op::SAddcU32, Some(value), Some(high)) if i.dst == self.register + 1 => {
                self.value = Some(value.wrapping_add(u64::from(high) << 32));
            }
            _ => {}
        }
    }

    /// Where a jump through a register goes, if that is this pointer.
    fn of(&self, i: &Inst) -> Option<u64> {
        match i.src.first()?.kind() {
            SrcKind::S(register) if u16::from(register) == self.register => self.value,
            _ => None,
        }
    }
}
