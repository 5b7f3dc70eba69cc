//! What watching showed: the honesty report, findings, coverage.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::fidelity::Reach;
use super::lines::Object;
use super::place::Place;
use crate::Target;
use crate::exec::fidelity::fidelity;
use crate::isa::Op;

/// What watching showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Wave instructions executed; dual-issue pairs count as two.
    pub instructions: u64,
    /// By how close to hardware their results are.
    pub classes: Vec<ClassCount>,
    /// Operations executed whose results are not exact.
    pub inexact: Vec<OperationCount>,
    /// What was found wrong, once per kind and place.
    pub findings: Vec<Finding>,
    /// Findings beyond those kept.
    pub findings_left_out: u64,
    /// Executions by source line of the objects that were named.
    pub coverage: Vec<LineCoverage>,
}

/// Instructions of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassCount {
    /// `exact`, `tolerance`, `approximated` or `missing`.
    pub class: &'static str,
    /// Wave instructions executed.
    pub instructions: u64,
    /// The first whose result got anywhere that matters.
    pub first_reaching: Option<Reached>,
}

/// Where an inexact result got.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reached {
    /// What it decided.
    pub reach: Reach,
    /// The inexact instruction.
    pub from: Place,
    /// The instruction that stores, accesses or branches.
    pub at: Place,
}

/// An operation that was executed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationCount {
    /// Target it ran on.
    pub target: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Class.
    pub class: &'static str,
    /// The tolerance, what is approximated, or why it is missing.
    pub note: Option<&'static str>,
    /// Wave instructions executed.
    pub instructions: u64,
    /// The first one executed.
    pub first: Place,
    /// Where results got.
    pub reaches: Vec<Reach>,
}

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// A register or LDS that was never written decides something.
    Undefined,
    /// A register is used before the load into it was waited for.
    MissingWait,
    /// Two waves access the same memory without order, one of them writes.
    Race,
    /// An access beyond the LDS that the dispatch asked for.
    LdsOverrun,
}

/// Something that was found wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// Where.
    pub at: Place,
    /// The other instruction concerned: the load, the other access.
    pub other: Option<Place>,
    /// Workgroup of the wave.
    pub group: [u32; 3],
    /// Number of the wave in its workgroup.
    pub wave: u32,
    /// One sentence.
    pub text: String,
}

/// Executions of a source line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineCoverage {
    /// Source file as DWARF names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Wave executions of the most executed instruction of the line; 0 when none was executed.
    pub executions: u64,
}

/// Findings that are kept.
const FINDINGS: usize = 1000;

/// What is counted while launches run.
#[derive(Debug, Default)]
pub(super) struct Totals {
    counts: BTreeMap<(Target, Op), (u64, Option<Place>)>,
    reached: Vec<(Target, Op, Reached)>,
    known_reaches: HashSet<(Target, Op, Reach)>,
    findings: Vec<Finding>,
    known_findings: HashSet<(FindingKind, u64)>,
    left_out: u64,
    /// Executions by object and address in it.
    executions: HashMap<(usize, u64), u64>,
}

impl Totals {
    /// Adds executions of an operation; `first` is asked for where the first one was.
    pub(super) fn count(
        &mut self,
        target: Target,
        op: Op,
        count: u64,
        first: impl FnOnce() -> Option<Place>,
    ) {
        let entry = self.counts.entry((target, op)).or_default();
        entry.0 += count;
        if entry.1.is_none() {
            entry.1 = first();
        }
    }

    /// Whether a reach was not seen yet.
    pub(super) fn is_new_reach(&mut self, target: Target, op: Op, reach: Reach) -> bool {
        self.known_reaches.insert((target, op, reach))
    }

    pub(super) fn reached(&mut self, target: Target, op: Op, reached: Reached) {
        self.reached.push((target, op, reached));
    }

    /// Whether there was no such finding at this address.
    pub(super) fn is_new_finding(&mut self, kind: FindingKind, pc: u64) -> bool {
        self.known_findings.insert((kind, pc))
    }

    pub(super) fn found(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS {
            self.findings.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn executed(&mut self, object: usize, address: u64, count: u64) {
        *self.executions.entry((object, address)).or_default() += count;
    }

    pub(super) fn report(&self, objects: &[Object]) -> Report {
        let mut classes: Vec<ClassCount> = ["exact", "tolerance", "approximated", "missing"]
            .map(|class| ClassCount { class, instructions: 0, first_reaching: None })
            .into();
        let mut inexact = Vec::new();
        for (&(target, op), (count, first)) in &self.counts {
            let fidelity = fidelity(target, op);
            if let Some(class) = classes.iter_mut().find(|class| class.class == fidelity.class()) {
                class.instructions += count;
            }
            if let (Some(first), true) = (first, fidelity.class() != "exact") {
                let mine = self.reached.iter().filter(|(t, o, _)| (*t, *o) == (target, op));
                inexact.push(OperationCount {
                    target: target.name(),
                    name: op.name_on(target),
                    class: fidelity.class(),
                    note: fidelity.note(),
                    instructions: *count,
                    first: first.clone(),
                    reaches: mine.map(|(_, _, reached)| reached.reach).collect(),
                });
            }
        }
        for class in &mut classes {
            let first = self
                .reached
                .iter()
                .find(|(target, op, _)| fidelity(*target, *op).class() == class.class);
            class.first_reaching = first.map(|(_, _, reached)| reached.clone());
        }
        Report {
            instructions: classes.iter().map(|class| class.instructions).sum(),
            classes,
            inexact,
            findings: self.findings.clone(),
            findings_left_out: self.left_out,
            coverage: objects
                .iter()
                .enumerate()
                .flat_map(|(k, object)| {
                    object.coverage(|address| self.executions.get(&(k, address)).copied())
                })
                .collect(),
        }
    }
}
