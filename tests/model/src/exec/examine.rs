//! The watchdog among the workgroups of a launch.

use super::context::Context;
use super::group::{Group, Left, Standing};
use super::job::{Job, Resident};
use super::observe::{Probe, Watcher};
use super::watchdog::Sight;
use super::worker::{Report, Sized2, diagnose};

/// Workgroups whose waves the watchdog has run on for a while, at most.
const LOOKED_AT: usize = 32;
/// Slices that it gives each.
const LOOKS: usize = 16;

/// The watchdog at a launch.
pub(super) struct Examination<'a> {
    pub(super) job: &'a Job,
    pub(super) sight: Sight,
    pub(super) kept: Vec<Resident>,
    pub(super) done: u64,
    pub(super) executed: u64,
    pub(super) looked_at: usize,
}

impl Examination<'_> {
    /// Looks at a workgroup and keeps it, unless it ends.
    pub(super) fn look<const N: usize>(
        &mut self,
        mut group: Group<N>,
        mut stuck: bool,
        cx: &mut Context<'_>,
        report: &mut Report,
        watcher: &mut Option<Watcher<'_>>,
    ) where
        Group<N>: Sized2,
    {
        let mut probe = Probe::new(watcher.as_mut());
        let mut halted = Vec::new();
        if self.looked_at < LOOKED_AT && !stuck {
            self.looked_at += 1;
            let before = group.instructions;
            let mut awake = 0;
            for _ in 0..LOOKS {
                let left = group.run_probed(cx, &mut halted, &mut probe);
                match left {
                    Left::Runnable | Left::Asleep => {
                        // Sleepers execute little in a slice, the others much.
                        awake += u32::from(left == Left::Runnable);
                        let standing = group.standing(|wave| probe.doing(wave));
                        if awake >= 2 || standing.iter().all(Standing::is_settled) {
                            break;
                        }
                    }
                    Left::Done => {
                        self.done += 1;
                        self.executed += group.instructions - before;
                        self.job.give_slots(group.xcc, group.slots());
                        return;
                    }
                    Left::Stuck => {
                        stuck = true;
                        break;
                    }
                    Left::Fault(fault) => {
                        if self.job.fault() {
                            report.fault = Some(fault);
                        }
                        stuck = true;
                        break;
                    }
                }
            }
            self.executed += group.instructions - before;
            for halted in halted.drain(..) {
                report.diagnoses.extend(diagnose(self.job, group.place, halted, &mut cx.view));
            }
        } else if !stuck {
            self.sight.unseen += group.waves().count();
            self.kept.push(Resident { group: group.wrap(), stuck });
            return;
        }
        self.sight.standing.extend(group.standing(|wave| probe.doing(wave)));
        self.kept.push(Resident { group: group.wrap(), stuck });
    }
}
