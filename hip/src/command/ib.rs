//! The PM4 packets of a command buffer: how long they are, and what they are in one instance.
//!
//! A buffer starts by invalidating the caches that may hold what the host or another queue has
//! changed, and ends when all of its kernels have, so that what completes the submission on the ring
//! never comes before them. Kernels load their arguments from memory; those that a kernel wants
//! preloaded are in the packets, too, and are changed in both places. docs/ABI.md §Command buffers.

use std::ops::Range;

use pm4::dispatch::{Launch, LaunchState, Program, Properties, Scratch};
use pm4::packet::{DispatchDirect, EventWrite, gfx9, gfx11};
use pm4::{Encode, GpuAddr, IbBuilder, IndirectBuffer, ReleaseMem, Sink, Target};

use super::CommandError;
use super::recorded::{Kernel, Places, Preload, STAMP_TICKS, Step};
use crate::error::{Error, LaunchProblem, Result};

/// One of the buffers that a command buffer consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub steps: Range<usize>,
    /// Offset in the instance's memory, bytes.
    pub at: u32,
    /// Length with padding and jump.
    pub dwords: u32,
}

/// What of a queue is in the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Binding {
    /// Null where nothing looks at it.
    pub queue: GpuAddr,
    /// All zero where no kernel has scratch.
    pub scratch: Scratch,
    /// Submitted as AQL packets.
    pub as_packets: bool,
}

/// Addresses and arguments that launches are made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'a> {
    /// Start of the instance's memory.
    pub base: GpuAddr,
    pub places: Places,
    pub binding: Binding,
    /// All arguments; what is missing is 0.
    pub arguments: &'a [u8],
}

impl Addresses<'_> {
    /// For measuring: any, with as much scratch as there can be.
    const ANY: Self = Self {
        arguments: &[],
        base: GpuAddr::new(0x1_0000),
        places: Places { arguments: 0, packets: 0, stamps: 0, bytes: 0 },
        binding: Binding {
            queue: GpuAddr::new(0x1_0000),
            scratch: Scratch {
                base: GpuAddr::new(0x1_0000),
                tmpring_size: u32::MAX,
                resource: [0; 4],
            },
            as_packets: false,
        },
    };

    fn at(&self, offset: u32) -> GpuAddr {
        GpuAddr::new(self.base.get() + u64::from(offset))
    }
}

/// User SGPRs, and so preloaded words, at most.
const MAX_PRELOAD: usize = 16;

/// The arguments of a kernel that are preloaded.
fn preloaded(kernel: &Kernel, program: &Program, arguments: &[u8]) -> [u32; MAX_PRELOAD] {
    let (first, count) = program.preload();
    let start = kernel.kernarg as usize + 4 * usize::from(first);
    let bytes = arguments.get(start..).unwrap_or_default();
    let mut words = [0; MAX_PRELOAD];
    let places = words.iter_mut().take(count.into());
    for (word, bytes) in places.zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// The launch of a recorded kernel.
fn launch(kernel: &Kernel, number: u32, addresses: &Addresses<'_>) -> Result<LaunchState> {
    let cold = &kernel.cold;
    let refused = |problem: LaunchProblem| cold.refuse(problem);
    let program = cold.program.as_ref().map_err(|problem| refused(*problem))?;
    let places = &addresses.places;
    let launch = Launch {
        grid: kernel.size.grid,
        group: kernel.size.group.map(u32::from),
        lds_bytes: kernel.lds_bytes,
        private_bytes: cold.private_bytes,
        kernarg: addresses.at(places.arguments + kernel.kernarg),
        preload: &preloaded(kernel, program, addresses.arguments),
        packet: kernel.packet.map(|packet| addresses.at(places.packet(packet))),
        queue: Some(addresses.binding.queue),
        id: u64::from(number),
        scratch: addresses.binding.scratch,
    };
    let state = program.launch(&launch).map_err(|problem| refused(problem.into()))?;
    // The queue's memory is of no account, and may be another's when it comes to it.
    Ok(if cold.private_bytes == 0 { state.keeping_scratch() } else { state })
}

/// Whether a kernel looks at its dispatch packet.
pub(crate) fn wants_packet(kernel: &Kernel) -> bool {
    let properties = kernel.cold.program.as_ref().map(|program| program.properties());
    properties.is_ok_and(|properties| properties.contains(Properties::DISPATCH_PTR))
}

/// Whether a kernel's registers hold the address of the queue.
pub(crate) fn wants_queue(kernel: &Kernel) -> bool {
    let properties = kernel.cold.program.as_ref().map(|program| program.properties());
    properties.is_ok_and(|properties| properties.contains(Properties::QUEUE_PTR))
}

/// Checks that a kernel can be launched by PM4 packets.
///
/// # Errors
/// [`Error::Launch`].
pub(crate) fn check(kernel: &Kernel) -> Result<()> {
    launch(kernel, 0, &Addresses::ANY).map(drop)
}

/// Makes later kernels see what earlier ones, and the host, have written.
fn acquire<S: Sink>(target: Target, ib: &mut IbBuilder<S>) {
    if target.is_gfx9() {
        let caches = gfx9::AcquireCache::SH_KCACHE | gfx9::AcquireCache::TCL1;
        ib.push(&gfx9::AcquireMem::new(caches));
    } else {
        let caches = gfx11::Gcr::GLK_INV | gfx11::Gcr::GLV_INV | gfx11::Gcr::GL1_INV;
        ib.push(&gfx11::AcquireMem::new(caches));
    }
}

/// Dwords of [`acquire`].
const fn acquire_dwords(target: Target) -> usize {
    if target.is_gfx9() { gfx9::AcquireMem::DWORDS } else { gfx11::AcquireMem::DWORDS }
}

fn emit<S: Sink>(
    target: Target,
    kernels: &[Kernel],
    step: Step,
    addresses: &Addresses<'_>,
    ib: &mut IbBuilder<S>,
) -> Result<()> {
    match step {
        Step::Kernel(number) => {
            if let Some(kernel) = kernels.get(number as usize) {
                ib.push(&launch(kernel, number, addresses)?);
            }
        }
        Step::Barrier => {
            ib.push(&EventWrite::CS_PARTIAL_FLUSH);
            acquire(target, ib);
        }
        Step::Stamp(number) => {
            let release = if target.is_gfx9() {
                ReleaseMem::gfx9(gfx9::ReleaseCache::empty())
            } else {
                ReleaseMem::gfx11(gfx11::ReleaseCache::empty())
            };
            let to = addresses.at(addresses.places.stamp(number) + STAMP_TICKS);
            // A multiple of 8, as everything in the instance's memory.
            if let Ok(release) = release.write_clock(to) {
                ib.push(&release);
            }
        }
    }
    Ok(())
}

/// How long a step is; and where in it a kernel's preloaded arguments are.
fn measure(target: Target, kernels: &[Kernel], step: Step) -> Result<(usize, Option<Preload>)> {
    Ok(match step {
        Step::Kernel(number) => match kernels.get(number as usize) {
            Some(kernel) => {
                let state = launch(kernel, number, &Addresses::ANY)?;
                (state.dwords(), preload(kernel, &state))
            }
            None => (0, None),
        },
        Step::Barrier => (EventWrite::DWORDS + acquire_dwords(target), None),
        Step::Stamp(_) => (ReleaseMem::DWORDS, None),
    })
}

/// User SGPRs are written last, in front of the dispatch.
fn preload(kernel: &Kernel, state: &LaunchState) -> Option<Preload> {
    let program = kernel.cold.program.as_ref().ok()?;
    let (first, count) = program.preload();
    if count == 0 {
        return None;
    }
    let sgprs = state.dwords().checked_sub(DispatchDirect::DWORDS + state.user_data().len())?;
    let at = u32::try_from(4 * sgprs).ok()? + 4 * program.preload_sgpr();
    Some(Preload { at, first: 4 * u32::from(first), bytes: 4 * u32::from(count) })
}

/// Padding at most, and the jump to the next buffer or the wait at the end.
const END_DWORDS: usize = IbBuilder::<&mut [u32]>::ALIGN_DWORDS + IndirectBuffer::DWORDS;

/// Fewest dwords of a buffer that any step fits into.
pub(crate) const MIN_BUFFER_DWORDS: u32 = 256;

/// Divides the steps into buffers of at most `most` dwords, and notes where preloaded arguments are.
///
/// # Errors
/// [`Error::Launch`] for a kernel that PM4 packets cannot launch; [`CommandError::TooLarge`].
pub(crate) fn segments(
    target: Target,
    kernels: &mut [Kernel],
    steps: &[Step],
    most: u32,
) -> Result<Box<[Segment]>> {
    let align = IbBuilder::<&mut [u32]>::ALIGN_DWORDS;
    let room = (most as usize / align * align).saturating_sub(END_DWORDS);
    let mut segments = Vec::new();
    let (mut first, mut at, mut used) = (0, 0_u32, acquire_dwords(target));
    let mut end = |steps: Range<usize>, at: u32, used: usize| -> Result<u32> {
        let dwords = (used + END_DWORDS).next_multiple_of(align);
        let (what, max) = ("bytes of indirect buffers", u32::MAX.into());
        let found = u64::from(at) + 4 * dwords as u64;
        let too_large = CommandError::TooLarge { what, found, max };
        let next = u32::try_from(found).map_err(|_| too_large)?;
        segments.push(Segment { steps, at, dwords: (next - at) / 4 });
        Ok(next)
    };
    for (index, step) in steps.iter().enumerate() {
        let (needed, preload) = measure(target, kernels, *step)?;
        if used + needed > room {
            at = end(first..index, at, used)?;
            (first, used) = (index, 0);
        }
        if let (Some(preload), Step::Kernel(number)) = (preload, step)
            && let Some(kernel) = kernels.get_mut(*number as usize)
        {
            // Checked with the end of the buffer.
            let start = at.saturating_add(u32::try_from(4 * used).unwrap_or(u32::MAX));
            kernel.preload = Some(Preload { at: preload.at.saturating_add(start), ..preload });
        }
        used += needed;
    }
    end(first..steps.len(), at, used)?;
    Ok(segments.into_boxed_slice())
}

/// Writes one buffer into `words`, which it fills: padded, with a jump to `next` or the wait for all
/// kernels at its end.
///
/// # Errors
/// As [`segments`].
pub(crate) fn write(
    target: Target,
    kernels: &[Kernel],
    steps: &[Step],
    is_first: bool,
    next: Option<IndirectBuffer>,
    addresses: &Addresses<'_>,
    words: &mut [u32],
) -> Result<()> {
    let length = words.len();
    let mut ib = IbBuilder::new(words);
    if is_first {
        acquire(target, &mut ib);
    }
    for step in steps {
        emit(target, kernels, *step, addresses, &mut ib)?;
    }
    let end = if next.is_some() { IndirectBuffer::DWORDS } else { EventWrite::DWORDS };
    ib.pad_to(length.saturating_sub(end));
    match next {
        Some(next) => ib.push(&next.chain()),
        None => ib.push(&EventWrite::CS_PARTIAL_FLUSH),
    };
    let found = ib.end().unwrap_or(usize::MAX);
    if found != length {
        // What was measured is what is written.
        let (what, max) = ("dwords of an indirect buffer", length as u64);
        let error = CommandError::TooLarge { what, found: found as u64, max };
        return Err(Error::Command(error));
    }
    Ok(())
}
