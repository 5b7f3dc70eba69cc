//! How close to hardware an operation's results are.

use std::fmt;

use super::implements;
use crate::Target;
use crate::isa::Op;

/// How close to hardware an operation's results are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fidelity {
    /// The bits that the published definition gives. NaN payloads excepted, which it leaves open.
    Exact,
    /// Hardware's bits are not published; results are within this of what is.
    Tolerance(&'static str),
    /// Part of what hardware does is not modelled, or not published: this part.
    Approximated(&'static str),
    /// An illegal instruction here, for this reason.
    Missing(&'static str),
}

impl Fidelity {
    /// The class as one word.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Tolerance(_) => "tolerance",
            Self::Approximated(_) => "approximated",
            Self::Missing(_) => "missing",
        }
    }

    /// The class as one letter, for tables.
    pub const fn letter(self) -> char {
        match self {
            Self::Exact => 'E',
            Self::Tolerance(_) => 'T',
            Self::Approximated(_) => 'A',
            Self::Missing(_) => '-',
        }
    }

    /// The tolerance or the reason.
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::Tolerance(note) | Self::Approximated(note) | Self::Missing(note) => Some(note),
        }
    }
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.note() {
            Some(note) => write!(f, "{}: {note}", self.class()),
            None => f.write_str(self.class()),
        }
    }
}

/// Whether an operation can occur in a compute kernel: not image, export or interpolation.
pub fn is_compute(op: Op) -> bool {
    !op.name().starts_with("v_interp_")
}

/// How close to hardware `op` is on `target`.
pub fn fidelity(target: Target, op: Op) -> Fidelity {
    if !implements(target, op) {
        return Fidelity::Missing(missing(op));
    }
    if let Some(tolerance) = tolerance(op) {
        return Fidelity::Tolerance(tolerance);
    }
    approximated(op).map_or(Fidelity::Exact, Fidelity::Approximated)
}

/// Why an operation has no semantics.
fn missing(op: Op) -> &'static str {
    use Op::*;
    match op {
        DsOrderedCount => {
            "needs the ordered-append unit of the graphics dispatcher, which KFD queues do not reach"
        }
        DsAddGsRegRtn | DsSubGsRegRtn => {
            "counts in registers of the geometry pipe's global data share; KFD queues have none"
        }
        DsBvhStackRtnB32 => {
            "the published definition leaves the address encoding open and pushes and pops at \
             indices that do not match"
        }
        op if !is_compute(op) => "graphics",
        _ => "not written yet",
    }
}

const ULP_1: &str = "1 ulp of the exact result; here 0.5 ulp";
const SEED_64: &str = "2^-29 relative, a seed that software refines; here 0.5 ulp";
const TURNS: &str = "2^-20 absolute for arguments up to 256 turns; here 0.5 ulp";
const DOT: &str = "order and rounding of the additions; exact where the sums are";
const MATRIX: &str =
    "order and rounding of the additions inside a product; exact where the sums are";
const LOAD_FORMAT: &str = "1 ulp where a normalised number is converted to a float";
const STORE_FORMAT: &str = "1 in the last place of a component that is rounded";

/// What hardware may differ by, where its bits are not published.
fn tolerance(op: Op) -> Option<&'static str> {
    use Op::*;
    let name = op.name();
    Some(match op {
        VRcpF32 | VRcpIflagF32 | VRcpF16 | VRsqF32 | VRsqF16 | VSqrtF32 | VSqrtF16 | VExpF32
        | VExpLegacyF32 | VExpF16 | VLogF32 | VLogLegacyF32 | VLogF16 => ULP_1,
        VRcpF64 | VRsqF64 | VSqrtF64 => SEED_64,
        VSinF32 | VCosF32 | VSinF16 | VCosF16 => TURNS,
        VDot2F32F16 | VDot2accF32F16 | VDot2F32Bf16 | VDot2F16F16 | VDot2Bf16Bf16 => DOT,
        _ if name.contains("load") && name.contains("format") => LOAD_FORMAT,
        _ if name.contains("store") && name.contains("format") => STORE_FORMAT,
        _ if is_matrix(name) && !name.contains("_i32_") => MATRIX,
        _ => return None,
    })
}

fn is_matrix(name: &str) -> bool {
    ["v_mfma_", "v_smfmac_", "v_wmma_"].iter().any(|prefix| name.starts_with(prefix))
}

/// What an implemented operation leaves out.
fn approximated(op: Op) -> Option<&'static str> {
    use Op::*;
    Some(match op {
        VCvtSrFp8F32 | VCvtSrBf8F32 => {
            "published with a rounding that would not be stochastic; here the random bits are added \
             and the rest is cut off"
        }
        SMemtime => "counts the wave's instructions, not clock cycles",
        SGetregB32 | SSetregB32 | SSetregImm32B32 => {
            "hardware registers that the model does not have read as zero"
        }
        SCbranchCdbgsys | SCbranchCdbguser | SCbranchCdbgsysAndUser | SCbranchCdbgsysOrUser => {
            "no debugger sets the condition"
        }
        SSendmsgRtnB32 | SSendmsgRtnB64 => "messages of the graphics pipe are answered with zero",
        DsGwsInit | DsGwsBarrier | DsGwsSemaV | DsGwsSemaBr | DsGwsSemaP | DsGwsSemaReleaseAll => {
            "without resources of the queue: a memory violation of the wave"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_class_and_nothing_is_merely_unwritten() {
        for target in Target::ALL {
            for &op in Op::all() {
                let fidelity = fidelity(target, op);
                let missing = matches!(fidelity, Fidelity::Missing(_));
                assert_eq!(missing, !implements(target, op), "{}", op.name());
                let unwritten = fidelity.note() == Some("not written yet");
                assert!(!unwritten, "{} has no semantics and no reason", op.name());
            }
        }
    }

    #[test]
    fn classes_tell_published_bits_from_unpublished_ones() {
        let of = |op| fidelity(Target::Gfx942, op);
        assert_eq!(of(Op::VAddF32), Fidelity::Exact);
        assert_eq!(of(Op::VRcpF32), Fidelity::Tolerance(ULP_1));
        assert_eq!(of(Op::VMfmaI3216x16x32I8), Fidelity::Exact);
        assert_eq!(of(Op::VMfmaF3216x16x16F16), Fidelity::Tolerance(MATRIX));
        assert_eq!(of(Op::VCvtSrFp8F32).class(), "approximated");
        assert_eq!(of(Op::DsOrderedCount).letter(), '-');
        assert_eq!(of(Op::DsOrderedCount).to_string().split(':').next(), Some("missing"));
    }
}
