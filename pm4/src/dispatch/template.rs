//! [`Template`]: the launch state of a program with everything in it that does not change from launch
//! to launch.

use super::state::{geometry, lds_granules};
use super::{Error, Launch, Program, Properties, Scratch};
use crate::GpuAddr;
use crate::emit::{Encode, Pm4Packet};
use crate::packet::DispatchDirect;
use crate::reg::DispatchInitiator;
use crate::reg::gfx9::{self, ComputePgmRsrc2};

/// Dwords of a template at most.
const MAX_DWORDS: usize = 64;

/// Places of the dwords that a launch changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places {
    rsrc2: usize,
    tmpring_size: usize,
    /// `COMPUTE_DISPATCH_SCRATCH_BASE_*`, where scratch is architected.
    scratch_base: Option<usize>,
    /// The scratch buffer descriptor, if the kernel wants it.
    resource: Option<usize>,
    /// The scratch address, if the kernel wants it.
    flat_scratch: Option<usize>,
    /// `COMPUTE_NUM_THREAD_X` and the two behind it.
    threads: usize,
    /// The address of the arguments, if the kernel wants it.
    kernarg: Option<usize>,
    /// Groups in x, y and z, and the initiator.
    dispatch: usize,
}

/// The dwords of a [`LaunchState`](super::LaunchState), to be copied and changed in a few places.
///
/// For programs that want no other user SGPRs than scratch and the address of their arguments, which is
/// most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    words: [u32; MAX_DWORDS],
    dwords: usize,
    at: Places,
    rsrc2: u32,
    initiator: DispatchInitiator,
}

impl Template {
    /// The template of `program`; `None` if it wants other user SGPRs.
    pub fn new(program: &Program) -> Option<Self> {
        let wants = program.properties - Properties::WAVEFRONT_SIZE32;
        let (resource, kernarg, flat) = (
            Properties::PRIVATE_SEGMENT_BUFFER,
            Properties::KERNARG_SEGMENT_PTR,
            Properties::FLAT_SCRATCH_INIT,
        );
        let others = Properties::from_bits_truncate(0x7f) - resource - kernarg - flat;
        if !(wants & others).is_empty() || program.preload.1 != 0 {
            return None;
        }
        let state = program.launch(&Launch {
            grid: [1; 3],
            group: [1; 3],
            lds_bytes: 0,
            private_bytes: 0,
            kernarg: GpuAddr::NULL,
            preload: &[],
            packet: None,
            queue: None,
            id: 0,
            scratch: Scratch::default(),
        });
        let state = state.ok()?;
        let mut at = Places::default();
        let mut next = 0;
        state.registers(|first, values| {
            let start = next + 2;
            if first == gfx9::COMPUTE_PGM_RSRC1 {
                at.rsrc2 = start + 1;
            } else if first == gfx9::COMPUTE_TMPRING_SIZE {
                at.tmpring_size = start;
            } else if first == gfx9::COMPUTE_START_X {
                at.threads = start + 3;
            } else if first == gfx9::COMPUTE_PGM_LO && values.len() == 6 {
                at.scratch_base = Some(start + 4);
            } else if first == gfx9::COMPUTE_USER_DATA_0 {
                let mut sgpr = start;
                for (property, sgprs, place) in [
                    (resource, 4, &mut at.resource),
                    (kernarg, 2, &mut at.kernarg),
                    (flat, 2, &mut at.flat_scratch),
                ] {
                    if wants.contains(property) {
                        *place = Some(sgpr);
                        sgpr += sgprs;
                    }
                }
            }
            next = start + values.len();
        });
        at.dispatch = next + 1;
        let mut words = [0; MAX_DWORDS];
        let mut dwords = 0;
        state.emit(|piece| {
            let to = words.get_mut(dwords..).unwrap_or_default();
            to.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
            dwords += piece.len();
        });
        let whole = dwords <= MAX_DWORDS && dwords == next + DispatchDirect::DWORDS;
        let initiator = DispatchInitiator::from_bits_truncate(*words.get(at.dispatch + 3)?);
        whole.then_some(Self { words, dwords, at, rsrc2: program.rsrc2, initiator })
    }

    /// Starts `words` with `before`, the state for launches with `scratch`, and `after`. `None` if that
    /// is too long.
    pub fn start(
        &self,
        words: &mut Words,
        before: &[u32],
        scratch: &Scratch,
        after: &[u32],
    ) -> Option<()> {
        let state = self.words.get(..self.dwords)?;
        words.state_at = before.len();
        words.after_at = words.state_at + state.len();
        words.dwords = words.after_at + after.len();
        let to = words.words.get_mut(..words.dwords)?.iter_mut();
        let from = before.iter().chain(state).chain(after);
        to.zip(from).for_each(|(to, from)| *to = *from);
        let state_at = words.state_at;
        words.set(state_at + self.at.tmpring_size, scratch.tmpring_size);
        let base = GpuAddr::new(scratch.base.get() >> 8);
        for (place, addr) in [(self.at.scratch_base, base), (self.at.flat_scratch, scratch.base)] {
            if let Some(at) = place {
                words.set(state_at + at, addr.lo());
                words.set(state_at + at + 1, addr.hi());
            }
        }
        if let Some(at) = self.at.resource {
            for (at, word) in (state_at + at..).zip(scratch.resource) {
                words.set(at, word);
            }
        }
        Some(())
    }

    /// Sets the sizes of launches in `words`, which [`Self::start`] started.
    ///
    /// # Errors
    /// As [`Program::launch`], for grid, group and LDS. Whether the scratch suffices is not checked.
    pub fn size(
        &self,
        words: &mut Words,
        grid: [u32; 3],
        group: [u32; 3],
        lds_bytes: u32,
    ) -> Result<(), Error> {
        let (threads, groups, partial) = geometry(grid, group)?;
        let rsrc2 = ComputePgmRsrc2(self.rsrc2);
        let lds = rsrc2.set_lds_size(lds_granules(lds_bytes)?).unwrap_or(rsrc2);
        let state = words.state_at;
        words.set(state + self.at.rsrc2, lds.0);
        for (at, value) in (state + self.at.threads..).zip(threads) {
            words.set(at, value);
        }
        let mut initiator = self.initiator;
        initiator.set(DispatchInitiator::PARTIAL_TG_EN, partial);
        for (at, value) in (state + self.at.dispatch..).zip(groups) {
            words.set(at, value);
        }
        words.set(state + self.at.dispatch + 3, initiator.bits());
        Ok(())
    }

    /// Sets the address of the arguments in `words`.
    #[inline]
    pub fn arguments(&self, words: &mut Words, kernarg: GpuAddr) {
        if let Some(at) = self.at.kernarg {
            words.set(words.state_at + at, kernarg.lo());
            words.set(words.state_at + at + 1, kernarg.hi());
        }
    }

    /// Length of every launch, dwords.
    pub const fn dwords(&self) -> usize {
        self.dwords
    }
}

/// Dwords around a state at most.
const MAX_AROUND: usize = 32;

/// The dwords of a launch, with packets before and after it, to be pushed like one packet. Kept from
/// launch to launch: only what differs is set anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Words {
    words: [u32; MAX_DWORDS + MAX_AROUND],
    dwords: usize,
    state_at: usize,
    after_at: usize,
}

impl Words {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { words: [0; MAX_DWORDS + MAX_AROUND], dwords: 0, state_at: 0, after_at: 0 }
    }

    #[inline]
    fn set(&mut self, at: usize, value: u32) {
        if let Some(word) = self.words.get_mut(at) {
            *word = value;
        }
    }

    /// Replaces the first dwords.
    #[inline]
    pub fn set_before(&mut self, before: &[u32]) {
        self.words.iter_mut().take(self.state_at).zip(before).for_each(|(to, from)| *to = *from);
    }

    /// Replaces a dword of those after the state, by its place among them.
    #[inline]
    pub fn set_after(&mut self, at: usize, value: u32) {
        self.set(self.after_at + at, value);
    }
}

impl Default for Words {
    fn default() -> Self {
        Self::new()
    }
}

impl Encode for Words {
    #[inline]
    fn dwords(&self) -> usize {
        self.dwords
    }

    #[inline]
    fn emit(&self, mut put: impl FnMut(&[u32])) {
        put(self.words.get(..self.dwords).unwrap_or_default());
    }
}

impl Pm4Packet for Words {}
