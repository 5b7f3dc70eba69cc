//! What is kept beside a workgroup that is watched.

use super::fidelity::Inexact;
use super::late::Late;
use super::race::{Order, Races};
use super::undefined::Undefined;
use crate::exec::wave::Wave;

/// Beside a wave.
#[derive(Debug, Default)]
pub(super) struct WaveWatch {
    pub(super) late: Late,
    pub(super) undefined: Undefined,
    pub(super) inexact: Inexact,
    pub(super) order: Order,
    /// It left the interpreter at a barrier.
    pub(super) at_barrier: bool,
    /// Barriers passed.
    pub(super) barriers: usize,
    /// Turns taken: each has a random number of its own.
    pub(super) turns: u64,
}

/// Beside a workgroup.
#[derive(Debug, Default)]
pub(in crate::exec) struct GroupWatch {
    /// Number of the workgroup in its launch.
    pub(super) number: u64,
    pub(super) place: [u32; 3],
    pub(super) waves: Vec<Option<Box<WaveWatch>>>,
    /// When each barrier was passed.
    pub(super) barriers: Vec<u64>,
    pub(super) lds_races: Races,
    /// Bytes of LDS that were never written.
    pub(super) lds_undefined: Vec<bool>,
}

impl GroupWatch {
    /// A workgroup starts.
    pub(super) fn start<'a, const N: usize>(
        &mut self,
        number: u64,
        place: [u32; 3],
        lds_bytes: u32,
        waves: impl Iterator<Item = &'a Wave<N>>,
    ) {
        self.number = number;
        self.place = place;
        self.barriers.clear();
        self.lds_races.clear();
        self.lds_undefined.clear();
        self.lds_undefined.resize(lds_bytes as usize, true);
        for (k, wave) in waves.enumerate() {
            if self.waves.len() <= k {
                self.waves.push(None);
            }
            let watch = self.waves[k].get_or_insert_default();
            watch.late.clear();
            watch.undefined.start(wave);
            watch.inexact.start();
            watch.order.start();
            (watch.at_barrier, watch.barriers, watch.turns) = (false, 0, 0);
        }
    }
}
