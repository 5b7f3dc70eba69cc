//! The static scan: follows the branches of each kernel, and sweeps all code of the object.

use std::collections::{BTreeMap, BTreeSet};

use hsaco::load::Permissions;
use hsaco::target::Generic;
use hsaco::{CodeObject, Kernel};
use kfd_model::Target;
use kfd_model::exec::{Fidelity, fidelity};
use kfd_model::isa::ir::Inst;
use kfd_model::isa::{
    self, DecodeError, Decoded, Effects, Inexact, Instruction, Op, Pools, decode, print,
};

use super::{CodeRow, InexactRow, KernelRow, Line, Opcode, Undecodable};

/// Undecodable words that are listed.
const LISTED: usize = 100;

/// Longest instruction, dwords: a two-word encoding with a literal.
const MOST_WORDS: usize = 5;

/// The target whose tables decode an object.
pub fn target_of(object: &CodeObject<'_>) -> Option<Target> {
    let processor = object.target().processor();
    // A generic object has only what all members have, so any member will do.
    let name = match processor.generic() {
        Some(Generic::Gfx9) => "gfx900",
        Some(Generic::Gfx9_4) => "gfx942",
        Some(Generic::Gfx11) => "gfx1100",
        _ => processor.name(),
    };
    name.parse().ok()
}

/// Counts operations.
struct Counter {
    target: Target,
    counts: BTreeMap<&'static str, (Op, u64)>,
    row: CodeRow,
    /// What each instruction touches, by address.
    code: BTreeMap<(u64, u8), (Op, Effects)>,
}

impl Counter {
    fn new(target: Target) -> Self {
        Self { target, counts: BTreeMap::new(), row: CodeRow::default(), code: BTreeMap::new() }
    }

    /// Keeps what an instruction touches.
    fn keep(&mut self, address: u64, decoded: &Decoded, wave_size: u32) {
        self.code.insert((address, 0), (decoded.inst.op, decoded.effects(wave_size)));
        if let (Some(pair), Some(effects)) = (decoded.pair, decoded.pair_effects(wave_size)) {
            self.code.insert((address, 1), (pair.op, effects));
        }
    }

    /// Of each class that is not exact, the first instruction whose result can get anywhere that
    /// matters; the first of all where none can.
    fn inexact(&self) -> Vec<InexactRow> {
        let code: Vec<Instruction> = self
            .code
            .iter()
            .map(|(&(address, _), &(op, effects))| (address, op, effects))
            .collect();
        let found = isa::inexact(self.target, &code);
        let classes = ["tolerance", "approximated", "missing"];
        let of = |class| {
            let is = |found: &&Inexact| fidelity(self.target, found.op).class() == class;
            let mut reaching = found.iter().filter(is).filter(|found| !found.reaches.is_empty());
            let first = reaching.next().or_else(|| found.iter().find(is))?;
            Some(InexactRow {
                class,
                name: first.op.name_on(self.target).to_owned(),
                address: format!("{:#x}", first.address),
                reaches: first.reaches.iter().map(|reach| reach.name()).collect(),
            })
        };
        classes.into_iter().filter_map(of).collect()
    }

    fn count(&mut self, inst: &Inst) {
        let name = inst.op.name_on(self.target);
        self.counts.entry(name).or_insert((inst.op, 0)).1 += 1;
    }

    fn instruction(&mut self, inst: &Inst, pair: Option<&Inst>, words: usize) {
        self.row.instructions += 1;
        self.row.code_bytes += words as u64 * 4;
        self.count(inst);
        if let Some(pair) = pair {
            self.count(pair);
        }
    }

    fn undecodable(&mut self, address: u64, word: u32, error: &DecodeError) {
        if self.row.undecodable.len() < LISTED {
            self.row.undecodable.push(Undecodable {
                address: format!("{address:#x}"),
                word: format!("{word:#010x}"),
                problem: error.to_string(),
            });
        }
    }

    fn finish(mut self) -> CodeRow {
        let target = self.target;
        let opcode = |(name, (op, count)): (&str, (Op, u64))| {
            let fidelity = fidelity(target, op);
            Opcode {
                name: name.to_owned(),
                count,
                supported: !matches!(fidelity, Fidelity::Missing(_)),
                fidelity: fidelity.class(),
                note: fidelity.note(),
            }
        };
        self.row.opcodes = self.counts.into_iter().map(opcode).collect();
        self.row
    }
}

/// The instruction words at an address, as many as the longest instruction has.
fn words_at(object: &CodeObject<'_>, address: u64) -> Vec<u32> {
    let bytes = object.bytes_at(address).unwrap_or_default();
    let (words, _) = bytes.as_chunks();
    words.iter().take(MOST_WORDS).map(|word| u32::from_le_bytes(*word)).collect()
}

/// Where control goes after an instruction.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// On.
    Falls,
    /// On, or by the offset.
    Either,
    /// By the offset.
    Jumps,
    /// On, after a call whose target is in a register.
    Calls,
    /// Where a register says.
    Register,
    /// Nowhere.
    Ends,
}

fn next(op: Op) -> Next {
    match op.name() {
        "s_branch" => Next::Jumps,
        "s_call_b64" | "s_subvector_loop_begin" | "s_subvector_loop_end" => Next::Either,
        "s_swappc_b64" => Next::Calls,
        "s_setpc_b64" | "s_rfe_b64" | "s_rfe_restore_b64" => Next::Register,
        name if name.starts_with("s_cbranch_") => Next::Either,
        name if name.starts_with("s_endpgm") => Next::Ends,
        _ => Next::Falls,
    }
}

/// What a kernel can reach by falling through and branching.
pub fn kernel(object: &CodeObject<'_>, kernel: &Kernel<'_>, target: Target) -> KernelRow {
    let wave_size = kernel.launch_facts().wave_size;
    let mut counter = Counter::new(target);
    let mut pools = Pools::default();
    let mut has_indirect_calls = false;
    let mut seen = BTreeSet::new();
    let mut todo = vec![kernel.entry_vaddr()];
    while let Some(start) = todo.pop() {
        let mut address = start;
        // Each address is decoded once, so this ends with the object's bytes.
        while seen.insert(address) {
            let words = words_at(object, address);
            let decoded = match decode(target, wave_size, &words, &mut pools) {
                Ok(decoded) => decoded,
                Err(error) => {
                    let word = words.first().copied().unwrap_or(0);
                    counter.undecodable(address, word, &error);
                    break;
                }
            };
            let inst = decoded.inst;
            let length = usize::from(inst.words);
            counter.instruction(&inst, decoded.pair.as_ref(), length);
            counter.keep(address, &decoded, wave_size);
            let after = address + length as u64 * 4;
            let jump = after.wrapping_add_signed(i64::from(inst.imm));
            match next(inst.op) {
                Next::Falls => {}
                Next::Either => todo.push(jump),
                Next::Jumps => {
                    todo.push(jump);
                    break;
                }
                Next::Calls => has_indirect_calls = true,
                Next::Register => {
                    has_indirect_calls = true;
                    break;
                }
                Next::Ends => break,
            }
            address = after;
        }
    }
    KernelRow {
        name: kernel.name().to_owned(),
        entry: format!("{:#x}", kernel.entry_vaddr()),
        wave_size,
        has_indirect_calls,
        inexact: counter.inexact(),
        code: counter.finish(),
    }
}

/// Lanes of a wave: the first kernel's, since functions do not tell theirs.
fn wave_size_of(object: &CodeObject<'_>) -> u32 {
    object.kernels().first().map_or(64, |kernel| kernel.launch_facts().wave_size)
}

/// Calls `each` with every instruction of the executable segments in order, or with why there is
/// none. Padding that the compiler marks as such is skipped.
fn sweep(
    object: &CodeObject<'_>,
    target: Target,
    mut each: impl FnMut(u64, &[u32], Result<(&Inst, Option<&Inst>), DecodeError>),
) {
    let wave_size = wave_size_of(object);
    let mut pools = Pools::default();
    let executable = |segment: &&hsaco::Segment| segment.permissions.contains(Permissions::EXECUTE);
    for segment in object.segments().filter(executable) {
        let bytes = object.bytes_at(segment.vaddr).unwrap_or_default();
        let (chunks, _) = bytes.as_chunks();
        let words: Vec<u32> = chunks.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut rest = words.as_slice();
        let mut address = segment.vaddr;
        while !rest.is_empty() {
            let decoded = decode(target, wave_size, rest, &mut pools);
            let length = match &decoded {
                Ok(decoded) => usize::from(decoded.inst.words),
                Err(error) => error.words(),
            };
            let length = length.clamp(1, rest.len());
            let (words, tail) = rest.split_at(length);
            match &decoded {
                Ok(decoded) if decoded.inst.op.name() == "s_code_end" => {}
                Ok(decoded) => each(address, words, Ok((&decoded.inst, decoded.pair.as_ref()))),
                Err(error) => each(address, words, Err(*error)),
            }
            rest = tail;
            address += length as u64 * 4;
        }
    }
}

/// All code of the object.
pub fn whole(object: &CodeObject<'_>, target: Target) -> CodeRow {
    let mut counter = Counter::new(target);
    sweep(object, target, |address, words, decoded| match decoded {
        Ok((inst, pair)) => counter.instruction(inst, pair, words.len()),
        Err(error) => counter.undecodable(address, words.first().copied().unwrap_or(0), &error),
    });
    counter.finish()
}

/// All code of the object as text.
pub fn disassemble(object: &CodeObject<'_>, target: Target) -> Vec<Line> {
    let names: BTreeMap<u64, &str> =
        object.kernels().iter().map(|kernel| (kernel.entry_vaddr(), kernel.name())).collect();
    let wave_size = wave_size_of(object);
    let mut lines = Vec::new();
    sweep(object, target, |address, words, decoded| {
        let text = match decoded {
            Ok(_) => print(target, wave_size, words, address),
            Err(error) => format!("; {error}"),
        };
        lines.push(Line {
            address: format!("{address:#x}"),
            words: words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" "),
            text,
            kernel: names.get(&address).map(|name| (*name).to_owned()),
        });
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_flow_is_known_by_name() {
        assert_eq!(next(Op::SBranch), Next::Jumps);
        assert_eq!(next(Op::SCbranchScc0), Next::Either);
        assert_eq!(next(Op::SEndpgm), Next::Ends);
        assert_eq!(next(Op::SSwappcB64), Next::Calls);
        assert_eq!(next(Op::SNop), Next::Falls);
    }
}
