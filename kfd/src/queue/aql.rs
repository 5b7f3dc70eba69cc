//! [`Queue`]: a queue of AQL packets.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aql::{AmdQueueV2, BarrierAnd, Decoded, Packet, PacketType, Ring};
use pm4::dispatch::Scratch as DispatchScratch;

use super::control::{compute_queue_methods, queue_methods};
use super::create::{self, Recipe};
use super::doorbell::QueueMemory;
use super::live::{Live, QueueCore, WaitsFor, lie};
use super::scratch::{describe, dispatch_scratch};
use super::{QueueKind, QueueRequest};
use crate::abi;
use crate::context::Context;
use crate::core::lock;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::report::PacketInFlight;
use crate::signal::Signal;
use crate::topology::GfxVersion;
use crate::wait::Until;

/// A number for a kernel's name, for reports: [`Kfd::register_kernel`](crate::Kfd::register_kernel).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KernelLabel(pub(crate) u32);

impl KernelLabel {
    /// No name.
    pub const NONE: Self = Self(0);
}

/// An AQL queue while it lives.
#[derive(Debug)]
pub(crate) struct AqlLive {
    core: QueueCore,
    memory: QueueMemory,
    /// Label of each slot's packet.
    labels: Box<[AtomicU32]>,
    /// The scratch that dispatches of the queue use.
    scratch: Mutex<DispatchScratch>,
}

impl AqlLive {
    #[inline]
    fn ring(&self) -> &Ring<'_> {
        self.memory.ring()
    }

    /// Refuses a kernel dispatch that needs more private memory than there is. The firmware would
    /// stop the queue for it.
    #[inline]
    fn check_scratch(&self, packet: &Packet) -> Result<()> {
        let [_, _, _, _, _, _, needed, ..] = packet.0;
        let available = self.core.scratch_lane_bytes.load(Ordering::Relaxed);
        if needed > available {
            return Err(Error::ScratchTooSmall { queue: self.core.id, needed, available });
        }
        Ok(())
    }

    /// Notes whose packet has an index, before the packet is visible.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked to the number of slots
    fn label(&self, index: u64, label: KernelLabel) {
        let slot = index as usize & self.labels.len().wrapping_sub(1);
        if let Some(place) = self.labels.get(slot) {
            place.store(label.0, Ordering::Relaxed);
        }
    }

    #[allow(clippy::cast_possible_truncation)] // masked to the number of slots
    fn label_of(&self, index: u64) -> KernelLabel {
        let slot = index as usize & self.labels.len().wrapping_sub(1);
        self.labels
            .get(slot)
            .map_or(KernelLabel::NONE, |label| KernelLabel(label.load(Ordering::Relaxed)))
    }
}

impl Live for AqlLive {
    fn core(&self) -> &QueueCore {
        &self.core
    }

    fn look_closely(&self) -> (Range<u64>, Option<u64>) {
        let lie = lie(self.ring().refresh());
        (self.ring().pending(), lie)
    }

    fn ring_again(&self) {
        // A doorbell that comes late does no harm: the device keeps the larger value.
        if let Some(last) = self.ring().doorbell_value()
            && !self.core.is_stopped()
        {
            self.core.doorbell.ring(last);
        }
    }

    fn packets(&self, context: &Context, pending: Range<u64>, limit: usize) -> Vec<PacketInFlight> {
        let oldest = pending.take(limit);
        let packet = |index| PacketInFlight {
            index,
            kernel: context.kernel_name(self.label_of(index)),
            text: self.ring().packet(index).map(|p| p.decode().to_string()).unwrap_or_default(),
        };
        oldest.map(packet).collect()
    }

    fn dwords(&self, pending: Range<u64>, limit: usize) -> Vec<u32> {
        pending.take(limit / 16).flat_map(|index| self.ring().slot(index).0).collect()
    }

    fn waits_for(&self, pending: Range<u64>) -> Vec<WaitsFor> {
        self.ring().packet(pending.start).map_or_else(Vec::new, |packet| waits_for(&packet))
    }
}

/// What a packet waits for.
fn waits_for(packet: &Packet) -> Vec<WaitsFor> {
    // The value is 8 bytes into a signal: docs/ABI.md §AQL signal.
    let zero = |signal: pm4::GpuAddr| WaitsFor {
        address: signal.get().wrapping_add(8),
        bits: 64,
        wants: "0".to_owned(),
    };
    let some = |signals: [pm4::GpuAddr; 5]| {
        signals.into_iter().filter(|signal| *signal != pm4::GpuAddr::NULL).map(zero).collect()
    };
    match packet.decode() {
        Decoded::BarrierAnd(packet) => some(packet.signals()),
        Decoded::BarrierOr(packet) => some(packet.signals()),
        Decoded::BarrierValue(packet) if packet.signal() != pm4::GpuAddr::NULL => {
            let (condition, value) = (packet.condition(), packet.value());
            let wants = format!("{condition} {value}, mask {:#x}", packet.value_mask());
            vec![WaitsFor { address: packet.signal().get().wrapping_add(8), bits: 64, wants }]
        }
        _ => Vec::new(),
    }
}

/// An AQL queue of a GPU. `Send` and `Sync`: any thread may submit.
///
/// Dropping it destroys the queue, whatever it is doing: packets that have not finished never will,
/// and their completion signals keep their values.
#[derive(Debug)]
pub struct Queue {
    context: Arc<Context>,
    live: Arc<AqlLive>,
    destroyed: bool,
}

queue_methods!(Queue);
compute_queue_methods!(Queue);

impl Gpu {
    /// Makes an AQL queue.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for what no queue can be; [`Error::QueueLimit`] when there are as
    /// many queues as can be; [`Error::CreateQueue`] when the kernel refuses, with the sizes;
    /// [`Error::Ioctl`] when memory or events are refused; [`Error::DeviceLost`].
    pub fn create_queue(&self, request: &QueueRequest) -> Result<Queue> {
        request.check()?;
        let recipe = Recipe {
            kind: QueueKind::Aql,
            ring_bytes: u64::from(request.packets) * 64,
            priority: request.priority,
            private_bytes: request.private_bytes,
            profiling: request.profiling,
            percentage_bits: 0,
        };
        let (core, memory, scratch) =
            create::create(&self.context, self.index, &recipe, |parts| {
                let (ring, page) = (Arc::clone(&parts.ring), Arc::clone(&parts.page));
                QueueMemory::new(ring, page, |words| words.init(&parts.descriptor))
            })?;
        let labels = (0..request.packets).map(|_| AtomicU32::new(0)).collect();
        let allocated = lock(&core.scratch).clone();
        let scratch = match (scratch, allocated) {
            (Some(scratch), Some(memory)) => {
                dispatch_scratch(&scratch, self.gfx_version(), &memory)
            }
            _ => DispatchScratch::default(),
        };
        let live = Arc::new(AqlLive { core, memory, labels, scratch: Mutex::new(scratch) });
        self.context.add_queue(Arc::<AqlLive>::clone(&live));
        Ok(Queue { context: Arc::clone(&self.context), live, destroyed: false })
    }
}

impl Queue {
    /// Packets the ring has room for.
    pub fn size(&self) -> u64 {
        self.live.ring().size()
    }

    /// Address of its descriptor (`amd_queue_t`), for kernels that look at it.
    #[inline]
    pub fn descriptor(&self) -> pm4::GpuAddr {
        self.live.core.page.addr()
    }

    /// Scratch memory for dispatches that indirect buffers of PM4 make on this queue. For AQL's own
    /// dispatches the firmware sees to it.
    pub fn dispatch_scratch(&self) -> DispatchScratch {
        *lock(&self.live.scratch)
    }

    /// Submits a packet and returns its index. Plain stores into mapped memory: no system call, no
    /// lock, no allocation.
    ///
    /// # Errors
    /// [`Error::Ring`] when the ring is full ([`Queue::submit_within`] waits) or the device broke
    /// its rules; [`Error::ScratchTooSmall`]; [`Error::DeviceLost`] and [`Error::QueueLost`] once
    /// known.
    #[inline]
    pub fn submit(&self, packet: &Packet, kernel: KernelLabel) -> Result<u64> {
        let queue = &*self.live;
        if queue.core.is_stopped() {
            return Err(queue.core.why_stopped());
        }
        if packet.header().packet_type() == PacketType::KERNEL_DISPATCH {
            queue.check_scratch(packet)?;
        }
        let submitted = queue
            .ring()
            .submit_noting(packet, |index| queue.label(index, kernel))
            .map_err(|cause| queue.core.ring_error(cause))?;
        if let Some(last) = submitted.doorbell {
            queue.core.doorbell().ring(last);
        }
        Ok(submitted.index)
    }

    /// Submits packets as one batch with one doorbell, and returns the index of the last. All are
    /// submitted or none.
    ///
    /// # Errors
    /// As [`Queue::submit`].
    pub fn submit_all(&self, packets: &[(Packet, KernelLabel)]) -> Result<u64> {
        let queue = &*self.live;
        if queue.core.is_stopped() {
            return Err(queue.core.why_stopped());
        }
        let failed = |cause| queue.core.ring_error(cause);
        for (packet, _) in packets {
            match packet.header().packet_type() {
                PacketType::KERNEL_DISPATCH => queue.check_scratch(packet)?,
                PacketType::INVALID => return Err(failed(aql::Error::InvalidPacket)),
                _ => {}
            }
        }
        let count = u32::try_from(packets.len()).unwrap_or(u32::MAX);
        let mut slots = queue.ring().reserve(count).map_err(failed)?;
        for (n, (packet, kernel)) in packets.iter().enumerate() {
            queue.label(slots.first() + n as u64, *kernel);
            slots.push(packet).map_err(failed)?;
        }
        let submitted = slots.commit();
        if let Some(last) = submitted.doorbell {
            queue.core.doorbell().ring(last);
        }
        Ok(submitted.index)
    }

    /// As [`Queue::submit`], but waits up to `timeout` for room in the ring.
    ///
    /// # Errors
    /// As [`Queue::submit`]; [`Error::Timeout`].
    pub fn submit_within(
        &self,
        packet: &Packet,
        kernel: KernelLabel,
        timeout: Duration,
    ) -> Result<u64> {
        match self.submit(packet, kernel) {
            Err(error) if error.is_full() => {
                let live: &dyn Live = &*self.live;
                live.wait_for_room(&self.context, timeout, || self.submit(packet, kernel))
            }
            result => result,
        }
    }

    /// What is in the slot of an index now: a packet of this or of an earlier round, or what the
    /// device left of it. Another thread may be writing it. For tools, never needed to submit.
    pub fn slot(&self, index: u64) -> Packet {
        self.live.ring().slot(index)
    }

    /// Rings the doorbell for one packet more than were submitted. The device finds a free slot
    /// and waits there, as it does for a doorbell that overtakes its packet. For tools.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] and [`Error::QueueLost`] once known.
    pub fn ring_one_past(&self) -> Result<()> {
        let core = &self.live.core;
        core.check()?;
        if !core.is_stopped() {
            core.doorbell().ring(self.live.ring().pending().end);
        }
        Ok(())
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// As [`Queue::wait`] and [`Queue::submit_within`].
    pub fn drain(&self, timeout: Duration) -> Result<()> {
        let kernel = &self.context.core.kernel;
        let start = kernel.now();
        let done = Signal::new(&self.context, self.live.core.gpu, 1, true)?;
        let packet = BarrierAnd::noop().barrier().completion(done.addr()).encode();
        self.submit_within(&packet, KernelLabel::NONE, timeout)?;
        let left = timeout.saturating_sub(kernel.now().saturating_sub(start));
        self.wait(&done, Until::Below(1), left).map(drop)
    }

    /// Gives kernels up to `bytes` of private memory a work-item. Where that is more than before,
    /// waits until the queue is idle: nothing else may submit meanwhile.
    ///
    /// # Errors
    /// [`Error::Ioctl`] with `ENOMEM` when there is not enough memory even for few waves: the queue
    /// keeps what it has; as [`Queue::drain`].
    pub fn grow_scratch(&self, bytes: u32, timeout: Duration) -> Result<()> {
        let queue = &*self.live;
        if bytes <= queue.core.scratch_lane_bytes() {
            return Ok(());
        }
        let mut owned = lock(&queue.core.scratch);
        if bytes <= queue.core.scratch_lane_bytes() {
            return Ok(());
        }
        let (core, gpu) = (&self.context.core, queue.core.gpu);
        let (scratch, memory) = create::allocate_scratch(core, gpu, bytes)?;
        self.drain(timeout)?;
        let gfx = core.gpu(gpu)?.node.gfx_version().unwrap_or(GfxVersion::UNKNOWN);
        let mut descriptor = AmdQueueV2::new();
        describe(&mut descriptor, &scratch, gfx, &memory);
        // The firmware reads these fields when it connects the queue.
        self.suspend()?;
        let set = queue.memory.words().set_scratch(&descriptor);
        let resumed = self.resume();
        set.map_err(|cause| queue.core.ring_error(cause))?;
        *lock(&queue.scratch) = dispatch_scratch(&scratch, gfx, &memory);
        // Whether it runs again or not, it knows the new memory from here on.
        let old = owned.replace(memory);
        queue.core.scratch_lane_bytes.store(scratch.lane_bytes, Ordering::Release);
        resumed?;
        drop(old);
        Ok(())
    }

    /// Claims the GPU's global wave sync for cooperative kernels, or gives it back.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of ALLOC_QUEUE_GWS: `EBUSY` while another queue of the process has it,
    /// `ENODEV` where there is none, `EINVAL` when there is nothing to give back.
    pub fn set_global_wave_sync(&self, claim: bool) -> Result<()> {
        let core = &self.live.core;
        let node = &core.core.gpu(core.gpu)?.node;
        let all = node.properties.num_gws.unwrap_or(0).max(1);
        let mut args = abi::AllocQueueGwsArgs {
            queue_id: core.id,
            num_gws: if claim { all } else { 0 },
            ..Default::default()
        };
        core.core.call(&mut args, core.object()).map(drop)
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Queue>();
};
