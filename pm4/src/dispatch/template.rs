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

    /// The dwords of one launch.
    ///
    /// # Errors
    /// As [`Program::launch`], for grid, group and LDS. Whether the scratch suffices is not checked.
    #[inline]
    pub fn launch(
        &self,
        grid: [u32; 3],
        group: [u32; 3],
        lds_bytes: u32,
        kernarg: GpuAddr,
        scratch: &Scratch,
    ) -> Result<Words, Error> {
        let (threads, groups, partial) = geometry(grid, group)?;
        let mut words = self.words;
        let mut set = |at: usize, value: u32| {
            if let Some(word) = words.get_mut(at) {
                *word = value;
            }
        };
        let rsrc2 = ComputePgmRsrc2(self.rsrc2);
        let lds = rsrc2.set_lds_size(lds_granules(lds_bytes)?).unwrap_or(rsrc2);
        set(self.at.rsrc2, lds.0);
        set(self.at.tmpring_size, scratch.tmpring_size);
        let [x, y, z] = threads;
        set(self.at.threads, x);
        set(self.at.threads + 1, y);
        set(self.at.threads + 2, z);
        let base = GpuAddr::new(scratch.base.get() >> 8);
        for (place, addr) in [
            (self.at.kernarg, kernarg),
            (self.at.scratch_base, base),
            (self.at.flat_scratch, scratch.base),
        ] {
            if let Some(at) = place {
                set(at, addr.lo());
                set(at + 1, addr.hi());
            }
        }
        if let Some(at) = self.at.resource {
            for (at, word) in (at..).zip(scratch.resource) {
                set(at, word);
            }
        }
        let [x, y, z] = groups;
        set(self.at.dispatch, x);
        set(self.at.dispatch + 1, y);
        set(self.at.dispatch + 2, z);
        let mut initiator = self.initiator;
        initiator.set(DispatchInitiator::PARTIAL_TG_EN, partial);
        set(self.at.dispatch + 3, initiator.bits());
        Ok(Words { words, dwords: self.dwords })
    }

    /// Length of every launch, dwords.
    pub const fn dwords(&self) -> usize {
        self.dwords
    }
}

/// The dwords of one launch, to be pushed like a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Words {
    words: [u32; MAX_DWORDS],
    dwords: usize,
}

impl Encode for Words {
    fn dwords(&self) -> usize {
        self.dwords
    }

    #[inline]
    fn emit(&self, mut put: impl FnMut(&[u32])) {
        put(self.words.get(..self.dwords).unwrap_or_default());
    }
}

impl Pm4Packet for Words {}
