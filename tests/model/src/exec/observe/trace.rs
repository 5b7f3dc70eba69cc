//! The registers that an instruction changes, as text.

use std::fmt::Write as _;

use crate::exec::wave::Wave;
use crate::isa::ir::sgpr;
use crate::isa::{Effects, Span};

/// Registers before an instruction.
pub(super) struct Before<const N: usize> {
    scalar: [u32; 256],
    scc: bool,
    vector: Vec<(u16, [u32; N])>,
}

impl<const N: usize> Before<N> {
    /// What the instruction may change.
    pub(super) fn new(w: &Wave<N>, effects: &[&Effects]) -> Self {
        let spans = effects.iter().flat_map(|effects| effects.writes());
        let vector = spans.filter(|span| span.vector);
        let registers = vector.flat_map(|span: &Span| span.registers());
        Self {
            scalar: w.s,
            scc: w.scc,
            vector: registers.map(|r| (r, w.v[w.physical(r)])).collect(),
        }
    }

    /// What it did change.
    pub(super) fn changes(&self, w: &Wave<N>) -> String {
        let mut text = String::new();
        if self.scc != w.scc {
            let _ = write!(text, " scc={}", u8::from(w.scc));
        }
        for register in 0..=sgpr::EXEC_HI {
            let [old, new] = [self.scalar[usize::from(register)], w.s32(register)];
            if old != new {
                let _ = write!(text, " {}={new:#x}", name(register));
            }
        }
        for (register, old) in &self.vector {
            let new = &w.v[w.physical(*register)];
            let changed: Vec<usize> = (0..N).filter(|&lane| old[lane] != new[lane]).collect();
            let Some(&first) = changed.first() else { continue };
            let file = if *register >= 256 { 'a' } else { 'v' };
            let _ = write!(text, " {file}{}=", register % 256);
            if changed.len() > 1 && changed.iter().all(|&lane| new[lane] == new[first]) {
                let _ = write!(text, "{:#x} in {} lanes", new[first], changed.len());
                continue;
            }
            let words = changed.iter().map(|&lane| format!("{lane}:{:#x}", new[lane]));
            let _ = write!(text, "[{}]", words.collect::<Vec<_>>().join(" "));
        }
        text
    }
}

/// A scalar register as in assembly.
pub(super) fn name(register: u8) -> String {
    match register {
        sgpr::VCC_LO => "vcc_lo".to_owned(),
        sgpr::VCC_HI => "vcc_hi".to_owned(),
        sgpr::M0 => "m0".to_owned(),
        sgpr::EXEC_LO => "exec_lo".to_owned(),
        sgpr::EXEC_HI => "exec_hi".to_owned(),
        n if (sgpr::TTMP0..sgpr::M0).contains(&n) => format!("ttmp{}", n - sgpr::TTMP0),
        n => format!("s{n}"),
    }
}
