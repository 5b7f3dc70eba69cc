//! Copies between devices that cannot reach each other's memory: through pinned memory of the host that
//! both reach, chunk by chunk. A stream of the other device does its half, and the two wait for each
//! other on the devices; the host only submits.

use std::collections::VecDeque;
use std::sync::Arc;

use kfd::{Buffer, MemoryRequest};
use pm4::GpuAddr;

use super::error::{CopyError, Side};
use super::exec::Way;
use super::place::Place;
use super::region::{Extent, Layout, Region, Shape};
use crate::device::{Device, DeviceCore};
use crate::error::Result;
use crate::event::SlotId;
use crate::stream::{Core, Stream, StreamRequest};

/// Most chunks in flight.
const MOST_CHUNKS: u32 = 4;

/// What goes to and from one other device. Fields go in this order.
#[derive(Debug)]
pub(crate) struct Relay {
    /// A stream of the other device.
    pub other: Stream,
    buffer: Buffer,
    chunk_bytes: u64,
    chunks: u64,
}

impl Relay {
    fn new(core: &Core, device: &Arc<DeviceCore>) -> Result<Self> {
        let copies = core.copies.request;
        let chunks = copies.chunks.clamp(1, MOST_CHUNKS);
        let bytes = copies.chunk_bytes.saturating_mul(u64::from(chunks));
        let request = MemoryRequest::gtt(bytes).coherent().uncached().label("staging for a peer");
        let buffer = core.device().gpu.allocate(&request)?;
        buffer.map_on(&[&device.gpu])?;
        let request = StreamRequest::aql()
            .packets(256)
            .kernarg_bytes(64 << 10)
            .farewell(core.farewell)
            .patience(core.shared.patience)
            .copies(copies);
        let other = Stream::new(&Device { core: Arc::clone(device) }, request)?;
        Ok(Self { other, buffer, chunk_bytes: copies.chunk_bytes, chunks: chunks.into() })
    }

    fn is_for(&self, device: &Arc<DeviceCore>) -> bool {
        Arc::ptr_eq(&self.other.device().core, device)
    }
}

/// A slot that a stream is to wait for.
#[derive(Clone, Copy, Debug)]
struct Set {
    slot: (SlotId, GpuAddr),
    /// A host function may have to end before it is set.
    host_bound: bool,
}

/// The slot that is set once everything given to `core` so far is done.
fn end_of(core: &mut Core) -> Result<Set> {
    core.ready()?;
    let host_bound = core.is_host_bound();
    Ok(Set { slot: core.set_slot()?, host_bound })
}

fn wait(core: &mut Core, set: Set) -> Result<()> {
    core.ready()?;
    let (id, addr) = set.slot;
    if set.host_bound {
        return core.wait_for_host_bound(id, addr);
    }
    core.wait_for_slot(id, addr)
}

/// `to` goes on once everything given to `from` so far is done.
fn follow(from: &mut Core, to: &mut Core) -> Result<()> {
    let end = end_of(from)?;
    wait(to, end)
}

/// Which half the stream itself does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Reads,
    Writes,
}

impl Core {
    /// Copies through the host, where one side is mapped here and the other is not.
    fn relay(
        &mut self,
        relay: &mut Relay,
        half: Half,
        dst: Region,
        src: Region,
        bytes: u64,
    ) -> Result<()> {
        let Relay { other, buffer, chunk_bytes, chunks } = relay;
        let (chunk_bytes, chunks) = (*chunk_bytes, *chunks);
        let other = other.core();
        follow(self, other)?;
        let total = bytes.div_ceil(chunk_bytes);
        let mut written: VecDeque<Set> = VecDeque::new();
        for n in 0..total {
            let (reader, writer) = match half {
                Half::Reads => (&mut *self, &mut *other),
                Half::Writes => (&mut *other, &mut *self),
            };
            let at = n * chunk_bytes;
            let extent = Extent::linear(chunk_bytes.min(bytes - at));
            let linear = |base: u64| Region::linear(GpuAddr::new(base));
            let chunk = linear(buffer.addr().get() + n % chunks * chunk_bytes);
            let [to, from] = [dst, src].map(|region| linear(region.base.get() + at));
            if n >= chunks
                && let Some(set) = written.pop_front()
            {
                wait(reader, set)?;
            }
            reader.copy_shape(&Shape::new([chunk, from], extent), Way::Link)?;
            follow(reader, writer)?;
            writer.copy_shape(&Shape::new([to, chunk], extent), Way::Link)?;
            let is_last = n + 1 == total;
            if n + chunks < total || is_last && half == Half::Reads {
                written.push_back(end_of(writer)?);
            }
        }
        match written.pop_front() {
            // What the stream is given next comes after the other device's last write.
            Some(set) => wait(self, set),
            None => Ok(()),
        }
    }

    fn copy_through_host(
        &mut self,
        device: &Arc<DeviceCore>,
        half: Half,
        [dst, src]: [Region; 2],
        bytes: u64,
    ) -> Result<()> {
        let known = self.copies.relays.iter().position(|relay| relay.is_for(device));
        let mut relay = match known {
            Some(index) => self.copies.relays.swap_remove(index),
            None => Relay::new(self, device)?,
        };
        let result = self.relay(&mut relay, half, dst, src, bytes);
        self.copies.relays.push(relay);
        // Half a copy is in flight, and nothing waits for its end.
        result.map_err(|error| self.shared.lose(error))
    }
}

impl Stream {
    /// Copies between the memory of two devices, one of them the stream's. HIP's `hipMemcpyPeerAsync`.
    ///
    /// Where both are mapped on the stream's device it is [`Stream::copy`]. Otherwise the bytes go
    /// through pinned memory of the host, in chunks ([`CopyRequest::staging`]), and the other device's
    /// half is done by a stream of its own, made with the first such copy.
    ///
    /// [`CopyRequest::staging`]: crate::CopyRequest::staging
    ///
    /// # Errors
    /// As [`Stream::copy`]; [`CopyError::NotMapped`] only when neither is mapped here.
    pub fn copy_peer<'d, 's>(
        &mut self,
        dst: impl Into<Place<'d>>,
        src: impl Into<Place<'s>>,
        bytes: u64,
    ) -> Result<()> {
        let (dst, src) = (dst.into(), src.into());
        let device = self.core().device();
        let (to_here, from_here) = (dst.is_mapped_on(device), src.is_mapped_on(device));
        let (half, far) = match (to_here, from_here) {
            (true, true) => return self.copy(dst, src, bytes),
            (false, true) => (Half::Reads, dst),
            (true, false) => (Half::Writes, src),
            (false, false) => return Ok(dst.check_mapped(Side::Destination, device)?),
        };
        let (layout, extent) = (Layout::default(), Extent::linear(bytes));
        let to = dst.region(Side::Destination, layout, extent)?;
        let from = src.region(Side::Source, layout, extent)?;
        let far_side = if to_here { Side::Source } else { Side::Destination };
        let gpu = device.gpu.id();
        let nowhere = CopyError::NotMapped { side: far_side, addr: far.addr(), gpu };
        let owner = far.memory.devices().first().ok_or(nowhere)?;
        if bytes == 0 {
            return Ok(());
        }
        self.core().copy_through_host(owner, half, [to, from], bytes)
    }
}
