//! Where inexact results can get, from the code alone.

use std::collections::HashSet;

use super::{Effects, Memory, Op, Span};
use crate::Target;
use crate::exec::fidelity;
use crate::exec::observe::Reach;

/// An instruction of some code: its address, its operation and what it touches.
pub type Instruction = (u64, Op, Effects);

/// An instruction whose result is inexact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inexact {
    /// Its address.
    pub address: u64,
    /// Its operation.
    pub op: Op,
    /// Where its result can get.
    pub reaches: Vec<Reach>,
}

/// Instructions that are followed; those after them are taken to get everywhere.
const FOLLOWED: usize = 256;

/// Every inexact instruction of some code and where its result can get.
///
/// Conservative: the order of instructions is not looked at, registers are not told apart by lane, and
/// whatever is stored may be loaded again anywhere.
pub fn inexact(target: Target, code: &[Instruction]) -> Vec<Inexact> {
    let is_inexact = |op: Op| fidelity(target, op).class() != "exact";
    let sources = code.iter().filter(|(_, op, _)| is_inexact(*op));
    sources
        .enumerate()
        .map(|(k, (address, op, effects))| Inexact {
            address: *address,
            op: *op,
            reaches: if k < FOLLOWED {
                follow(code, effects)
            } else {
                vec![Reach::Memory, Reach::Address, Reach::ControlFlow]
            },
        })
        .collect()
}

#[derive(Default)]
struct Held {
    registers: HashSet<(bool, u16)>,
    scc: bool,
    memory: bool,
}

impl Held {
    fn any(&self, spans: &[Span]) -> bool {
        let mut registers =
            spans.iter().flat_map(|span| span.registers().map(|r| (span.vector, r)));
        registers.any(|register| self.registers.contains(&register))
    }

    /// Adds what an instruction makes of what is held. True when something is new.
    fn make(&mut self, effects: &Effects) -> bool {
        let mut new = effects.writes_scc && !self.scc;
        self.scc |= effects.writes_scc;
        for span in effects.writes() {
            for register in span.registers() {
                new |= self.registers.insert((span.vector, register));
            }
        }
        if matches!(effects.memory, Memory::Store | Memory::Atomic) {
            new |= !self.memory;
            self.memory = true;
        }
        new
    }
}

fn follow(code: &[Instruction], source: &Effects) -> Vec<Reach> {
    let mut held = Held::default();
    held.make(source);
    loop {
        let mut new = false;
        for (_, _, effects) in code {
            let loads = matches!(effects.memory, Memory::Load | Memory::Atomic) && held.memory;
            if loads || held.any(effects.reads()) || effects.reads_scc && held.scc {
                new |= held.make(effects);
            }
        }
        if !new {
            break;
        }
    }
    let mut reaches = HashSet::new();
    for (_, _, effects) in code {
        let (addresses, data) =
            effects.reads().split_at(effects.reads().len().min(effects.addresses.into()));
        if held.any(addresses) {
            reaches.insert(Reach::Address);
        }
        if matches!(effects.memory, Memory::Store | Memory::Atomic) && held.any(data) {
            reaches.insert(Reach::Memory);
        }
        if effects.branches && (held.any(effects.reads()) || effects.reads_scc && held.scc) {
            reaches.insert(Reach::ControlFlow);
        }
    }
    if held.memory {
        reaches.insert(Reach::Memory);
    }
    if [126, 127].iter().any(|&exec| held.registers.contains(&(false, exec))) {
        reaches.insert(Reach::ControlFlow);
    }
    let mut reaches: Vec<Reach> = reaches.into_iter().collect();
    reaches.sort();
    reaches
}

#[cfg(test)]
mod tests {
    use super::super::{Pools, decode};
    use super::*;

    /// v_rcp_f32 v1, v0; then `rest`, on gfx90a.
    fn reach(rest: &[u32]) -> Vec<Reach> {
        let mut words = [&[0x7e02_4500][..], rest].concat();
        let mut code = Vec::new();
        while !words.is_empty() {
            let decoded = decode(Target::Gfx90a, 64, &words, &mut Pools::default()).unwrap();
            code.push((0, decoded.inst.op, decoded.effects(64)));
            words.drain(..usize::from(decoded.inst.words));
        }
        let found = inexact(Target::Gfx90a, &code);
        assert_eq!(found.len(), 1);
        found[0].reaches.clone()
    }

    #[test]
    fn a_result_reaches_what_is_made_of_it() {
        // v_mov_b32 v2, v1; global_store_dword v3, v2, s[0:1]
        assert_eq!(reach(&[0x7e04_0301, 0xdc70_8000, 0x0000_0203]), [Reach::Memory]);
        // global_load_dword v2, v1, s[0:1]
        assert_eq!(reach(&[0xdc50_8000, 0x0200_0001]), [Reach::Address]);
        // v_cmp_lt_f32 vcc, v1, v2; s_cbranch_vccz +0
        assert_eq!(reach(&[0x7c82_0501, 0xbf86_0000]), [Reach::ControlFlow]);
        // v_mov_b32 v2, v3: nothing of it.
        assert_eq!(reach(&[0x7e04_0303]), []);
    }
}
