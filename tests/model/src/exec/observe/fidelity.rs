//! Inexact results on their way to memory, addresses and branches.

use crate::Target;
use crate::exec::fidelity::{Fidelity, fidelity};
use crate::exec::wave::Wave;
use crate::isa::{Effects, Memory, Op};

/// Where an inexact result can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// What is stored: scratch and LDS count.
    Memory,
    /// Where something is loaded or stored.
    Address,
    /// Where control goes, and which lanes are active.
    ControlFlow,
}

impl Reach {
    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Address => "address",
            Self::ControlFlow => "control_flow",
        }
    }
}

/// An instruction whose result is inexact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) op: Op,
    pub(super) pc: u64,
}

/// Which registers of a wave hold inexact results, and of which instructions: a bit for each source,
/// the last one for all beyond.
#[derive(Clone, Debug)]
pub(super) struct Inexact {
    vector: Box<[u64; 512]>,
    scalar: Box<[u64; 256]>,
    scc: u64,
    sources: Vec<Source>,
}

impl Default for Inexact {
    fn default() -> Self {
        Self { vector: Box::new([0; 512]), scalar: Box::new([0; 256]), scc: 0, sources: Vec::new() }
    }
}

/// Sources that are told apart in a wave.
const SOURCES: usize = 64;

impl Inexact {
    /// A wave starts.
    pub(super) fn start(&mut self) {
        self.vector.fill(0);
        self.scalar.fill(0);
        self.scc = 0;
        self.sources.clear();
    }

    fn read<const N: usize>(
        &self,
        w: &Wave<N>,
        effects: &Effects,
        spans: std::ops::Range<usize>,
    ) -> u64 {
        let spans = effects.reads().get(spans).unwrap_or_default();
        let registers = spans.iter().flat_map(|span| span.registers().map(|r| (span.vector, r)));
        registers.fold(0, |held, (vector, register)| {
            held | match vector {
                true => self.vector[w.physical(register)],
                false => self.scalar[usize::from(register & 255)],
            }
        })
    }

    #[allow(clippy::too_many_arguments)] // what an instruction was
    /// An instruction was executed: what it made, and where something inexact got.
    pub(super) fn after<const N: usize>(
        &mut self,
        w: &Wave<N>,
        target: Target,
        op: Op,
        pc: u64,
        effects: &Effects,
        full: bool,
        mut reached: impl FnMut(Source, Reach),
    ) {
        let count = effects.reads().len();
        let addresses = usize::from(effects.addresses);
        let mut held = self.read(w, effects, 0..count);
        if effects.reads_scc {
            held |= self.scc;
        }
        let mut tell = |inexact: &Self, held: u64, reach| {
            for (k, source) in inexact.sources.iter().enumerate() {
                if held >> k & 1 != 0 {
                    reached(*source, reach);
                }
            }
        };
        let own = match fidelity(target, op) {
            Fidelity::Exact => 0,
            _ => self.source(Source { op, pc }),
        };
        if effects.branches {
            tell(self, held, Reach::ControlFlow);
        }
        let writes_exec =
            effects.writes().iter().any(|s| !s.vector && (126..128).contains(&s.first));
        if writes_exec {
            tell(self, held | own, Reach::ControlFlow);
        }
        let mut made = held | own;
        if !matches!(effects.memory, Memory::None | Memory::Exchange) {
            let (at, data) =
                (self.read(w, effects, 0..addresses), self.read(w, effects, addresses..count));
            tell(self, at, Reach::Address);
            if effects.memory != Memory::Load {
                tell(self, data, Reach::Memory);
                tell(self, own, Reach::Memory);
            }
            made = own;
        }
        if effects.writes_scc {
            self.scc = made;
        }
        for span in effects.writes() {
            for register in span.registers() {
                if span.vector {
                    let row = w.physical(register);
                    let old = if full || !effects.partial { 0 } else { self.vector[row] };
                    self.vector[row] = made | old;
                } else {
                    self.scalar[usize::from(register & 255)] = made;
                }
            }
        }
    }

    /// The bit of a source.
    fn source(&mut self, source: Source) -> u64 {
        let found = self.sources.iter().position(|known| known.pc == source.pc);
        let at = found.unwrap_or_else(|| {
            if self.sources.len() < SOURCES {
                self.sources.push(source);
            }
            self.sources.len() - 1
        });
        1 << at
    }
}
