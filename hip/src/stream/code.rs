//! Instruction caches: what they hold of code that was replaced.

use std::sync::{Mutex, OnceLock};

use aql::{BarrierAnd, FenceScope, Packet, Pm4Ib};
use kfd::{Buffer, MemoryRequest};
use pm4::packet::{gfx9, gfx11};
use pm4::{IbBuilder, IndirectBuffer, Target};

use crate::device::DeviceCore;
use crate::error::Result;
use crate::sync::lock;

/// Dwords of the buffer: one packet, padded.
const DWORDS: usize = 8;

/// The packet that invalidates instruction, scalar and vector caches and what the L2 cache has of host
/// memory. A fence in a packet's header is not said to invalidate instruction caches, so it runs a
/// buffer of PM4 that does, as ROCr's `InvalidateCodeCaches` does. Made once for a device.
#[derive(Debug, Default)]
pub(crate) struct Invalidation {
    made: OnceLock<(Packet, Option<Buffer>)>,
    making: Mutex<()>,
}

impl Invalidation {
    /// The packet.
    pub fn packet(&self, device: &DeviceCore) -> Result<Packet> {
        if let Some((packet, _)) = self.made.get() {
            return Ok(*packet);
        }
        let _guard = lock(&self.making);
        let made = match device.pm4 {
            Some(target) => make(device, target)?,
            // All there is where the packets of the GPU are not known.
            None => {
                let fence = BarrierAnd::noop().barrier().acquire(FenceScope::SYSTEM);
                (fence.encode(), None)
            }
        };
        Ok(self.made.get_or_init(|| made).0)
    }
}

fn make(device: &DeviceCore, target: Target) -> Result<(Packet, Option<Buffer>)> {
    let mut words = [0; DWORDS];
    let mut ib = IbBuilder::new(&mut words[..]);
    if target.is_gfx9() {
        ib.push(&gfx9::AcquireMem::new(gfx9::AcquireCache::ALL));
    } else {
        ib.push(&gfx11::AcquireMem::new(gfx11::Gcr::ALL));
    }
    let failed = |cause| kfd::Error::Pm4 { queue: kfd::QueueId(0), cause };
    let dwords = ib.finish().map_err(failed)?;
    let request = MemoryRequest::gtt(4096).executable().coherent().uncached().label("PM4 buffer");
    let buffer = device.gpu.allocate(&request)?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    buffer.write(0, &bytes)?;
    let dwords = u32::try_from(dwords).unwrap_or(u32::MAX);
    let indirect = IndirectBuffer::new(buffer.addr(), dwords).map_err(failed)?;
    let packet = Pm4Ib::new(indirect).barrier().acquire(FenceScope::SYSTEM).encode();
    Ok((packet, Some(buffer)))
}
