//! Launch state of a PM4 queue: what the firmware makes of an AQL packet, made by the driver.
//!
//! From a kernel descriptor's words ([`Kernel`]) comes a checked [`Program`], once; from it and a
//! [`Launch`] the registers and user SGPRs of one dispatch, a [`LaunchState`] that can be pushed
//! into an [`IbBuilder`](crate::IbBuilder). Nothing here knows code objects.
//!
//! On gfx942 with several XCCs a PM4 queue of KFD's runs on one of them only; AQL is for those.
//! Numbers: docs/ABI.md §Launch on a PM4 queue.

mod error;
mod state;
mod template;

#[cfg(test)]
mod tests;

use bitflags::bitflags;

pub use error::{Axis, Error};
pub use state::LaunchState;
pub use template::{Template, Words};

// The fields used here are the same on gfx11.
use crate::reg::gfx9::{ComputePgmRsrc1, ComputePgmRsrc2};
use crate::{GpuAddr, Target};

/// What a kernel descriptor says, in plain words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// First instruction: the descriptor's address plus its entry offset.
    pub entry: GpuAddr,
    /// `COMPUTE_PGM_RSRC1`.
    pub rsrc1: u32,
    /// `COMPUTE_PGM_RSRC2`.
    pub rsrc2: u32,
    /// `COMPUTE_PGM_RSRC3`.
    pub rsrc3: u32,
    /// `kernel_code_properties`.
    pub properties: Properties,
    /// Preloaded kernel arguments: the first dword, and how many.
    pub preload: (u16, u16),
}

bitflags! {
    /// `kernel_code_properties`: the first seven are user SGPRs that the kernel wants, in this
    /// order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Properties: u16 {
        /// Scratch buffer descriptor, 4 SGPRs. Not where scratch is architected.
        const PRIVATE_SEGMENT_BUFFER = 1 << 0;
        /// Address of the dispatch packet, 2 SGPRs.
        const DISPATCH_PTR = 1 << 1;
        /// Address of the `amd_queue_t`, 2 SGPRs.
        const QUEUE_PTR = 1 << 2;
        /// Address of the kernel arguments, 2 SGPRs.
        const KERNARG_SEGMENT_PTR = 1 << 3;
        /// Number of the dispatch, 2 SGPRs.
        const DISPATCH_ID = 1 << 4;
        /// Scratch address, 2 SGPRs. Not where scratch is architected.
        const FLAT_SCRATCH_INIT = 1 << 5;
        /// Scratch bytes of a work-item, 1 SGPR.
        const PRIVATE_SEGMENT_SIZE = 1 << 6;
        /// Waves of 32 lanes.
        const WAVEFRONT_SIZE32 = 1 << 10;
        const _ = !0;
    }
}

/// What the driver decides about a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A trap handler is installed: sets `TRAP_PRESENT`, which the firmware does for AQL.
    pub trap_handler: bool,
    /// Waves run privileged (`PRIV`), around a fault of some gfx11 parts on preemption.
    pub privileged: bool,
    /// Starts kernels at their first entry, where they load their arguments themselves.
    pub no_preload: bool,
}

/// User SGPRs that a launch can fill.
const MAX_USER_SGPRS: u32 = 16;
/// Bytes between the two entries of a kernel with preloaded arguments.
const PRELOAD_ENTRY_BYTES: u64 = 256;
/// Alignment of code, bytes.
const CODE_ALIGN: u64 = 256;

/// A kernel that has been checked against a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    target: Target,
    /// Where waves start.
    code: GpuAddr,
    rsrc1: u32,
    /// Without the LDS size, which the launch gives.
    rsrc2: u32,
    rsrc3: u32,
    properties: Properties,
    preload: (u16, u16),
    user_sgprs: u32,
}

impl Program {
    /// Checks `kernel` for `target`.
    ///
    /// # Errors
    /// What the hardware cannot run: a misaligned entry, waves of 32 on gfx9, too many vector
    /// registers, more user SGPRs than fit or than the kernel counts.
    pub fn new(target: Target, kernel: &Kernel, options: Options) -> Result<Self, Error> {
        let mut properties = kernel.properties;
        if !kernel.entry.is_aligned(CODE_ALIGN) || kernel.entry.hi() > 0xFFFF {
            return Err(Error::Entry { entry: kernel.entry });
        }
        if properties.contains(Properties::WAVEFRONT_SIZE32) && target.is_gfx9() {
            return Err(Error::Wave32 { target });
        }
        if target.has_architected_scratch() {
            properties.remove(Properties::PRIVATE_SEGMENT_BUFFER | Properties::FLAT_SCRATCH_INIT);
        }
        let preloads = target.has_kernarg_preload() && kernel.preload.1 > 0 && !options.no_preload;
        let preload = if preloads { kernel.preload } else { (0, 0) };
        let rsrc2 = ComputePgmRsrc2(kernel.rsrc2);
        let counted = rsrc2.user_sgpr();
        let needed = user_sgprs(properties) + u32::from(preload.1);
        if counted > MAX_USER_SGPRS || needed > counted {
            return Err(Error::UserSgprs { needed, counted, max: MAX_USER_SGPRS });
        }
        let rsrc1 = ComputePgmRsrc1(kernel.rsrc1);
        // The driver's part of the words: priority 0, no debugging, no throttling.
        let rsrc1 = rsrc1.set_priority(0).unwrap_or(rsrc1).set_bulky(false);
        let rsrc1 = ComputePgmRsrc1(rsrc1.0 & !DEBUG_BITS).set_privileged(options.privileged);
        let vgprs = (rsrc1.vgprs() + 1) * vgpr_granule(target, properties);
        let file = if target.has_accumulation_vgprs_in_file() { 512 } else { 256 };
        if vgprs > file {
            return Err(Error::Vgprs { vgprs, max: file });
        }
        let rsrc2 = rsrc2.set_lds_size(0).unwrap_or(rsrc2).set_trap_present(options.trap_handler);
        let entry = kernel.entry.get() + if preloads { PRELOAD_ENTRY_BYTES } else { 0 };
        Ok(Self {
            target,
            code: GpuAddr::new(entry),
            rsrc1: rsrc1.0,
            rsrc2: rsrc2.0,
            rsrc3: if target.has_rsrc3() { kernel.rsrc3 } else { 0 },
            properties,
            preload,
            user_sgprs: counted,
        })
    }

    /// Where waves start: 256 bytes past the entry if arguments are preloaded.
    pub const fn code(&self) -> GpuAddr {
        self.code
    }

    /// Lanes of a wave.
    pub const fn wave_size(&self) -> u32 {
        if self.properties.contains(Properties::WAVEFRONT_SIZE32) { 32 } else { 64 }
    }

    /// What the kernel wants in its user SGPRs; on targets with architected scratch, without what
    /// the hardware gives there.
    pub const fn properties(&self) -> Properties {
        self.properties
    }

    /// First dword and number of the kernel arguments that the driver copies to user SGPRs.
    pub const fn preload(&self) -> (u16, u16) {
        self.preload
    }

    /// The first user SGPR that a preloaded argument goes to.
    pub fn preload_sgpr(&self) -> u32 {
        user_sgprs(self.properties)
    }

    /// Registers and user SGPRs of one dispatch.
    ///
    /// # Errors
    /// What is wrong with `launch`: an empty grid or group, more than 1024 work-items in a group,
    /// more LDS than there is, scratch that does not suffice, an address the kernel wants and
    /// `launch` lacks, arguments too short for the preload.
    pub fn launch(&self, launch: &Launch) -> Result<LaunchState, Error> {
        state::compute(self, launch)
    }
}

/// `DEBUG_MODE` and `CDBG_USER` of `COMPUTE_PGM_RSRC1`, where they exist; for debuggers.
const DEBUG_BITS: u32 = 1 << 22 | 1 << 25;

/// User SGPRs that `properties` ask for.
fn user_sgprs(properties: Properties) -> u32 {
    use Properties as P;
    [
        (P::PRIVATE_SEGMENT_BUFFER, 4),
        (P::DISPATCH_PTR, 2),
        (P::QUEUE_PTR, 2),
        (P::KERNARG_SEGMENT_PTR, 2),
        (P::DISPATCH_ID, 2),
        (P::FLAT_SCRATCH_INIT, 2),
        (P::PRIVATE_SEGMENT_SIZE, 1),
    ]
    .iter()
    .map(|(property, sgprs)| if properties.contains(*property) { *sgprs } else { 0 })
    .sum()
}

/// Vector registers of one granule. docs/ABI.md §Kernel descriptor.
fn vgpr_granule(target: Target, properties: Properties) -> u32 {
    let wave32 = properties.contains(Properties::WAVEFRONT_SIZE32);
    if target.has_accumulation_vgprs_in_file() || wave32 { 8 } else { 4 }
}

/// One dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch<'a> {
    /// Work-items of the grid. It need not be a multiple of the group.
    pub grid: [u32; 3],
    /// Work-items of a group.
    pub group: [u32; 3],
    /// LDS of a group, bytes, static and dynamic.
    pub lds_bytes: u32,
    /// Scratch of a work-item, bytes.
    pub private_bytes: u32,
    /// The kernel arguments.
    pub kernarg: GpuAddr,
    /// The arguments' dwords from the first preloaded one on; empty unless [`Program::preload`]
    /// asks for some.
    pub preload: &'a [u32],
    /// A dispatch packet that stays there while the kernel runs, for kernels that look at it.
    pub packet: Option<GpuAddr>,
    /// An `amd_queue_t`, for kernels that look at it.
    pub queue: Option<GpuAddr>,
    /// Number of the dispatch, for kernels that want it.
    pub id: u64,
    /// The queue's scratch memory.
    pub scratch: Scratch,
}

/// Scratch memory of a queue. docs/ABI.md §Scratch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    /// Where it is, a multiple of 256 bytes.
    pub base: GpuAddr,
    /// `COMPUTE_TMPRING_SIZE`; 0 for no scratch.
    pub tmpring_size: u32,
    /// The buffer descriptor, for targets without architected scratch.
    pub resource: [u32; 4],
}
