//! Pools, doorbell and heap on a GPU of `kfd`.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kfd::abi::IoLinkFlags;
use kfd::{Buffer, Gpu, MemoryRequest, Signal, Until};

use crate::drain::{Bell, Woken};
use crate::error::{Error, Result};
use crate::layout::{Area, MIN_PACKETS, Transport};
use crate::pool::{Pool, PoolId, PoolSpec};
use crate::service::HeapSource;
use crate::words::Words;

/// Size of the block that `hidden_heap_v1` points at; all zero is an empty heap.
///
/// # Source
/// docs/ABI.md §Device heap.
pub const HEAP_BLOCK_BYTES: u64 = 128 << 10;

fn driver(what: &'static str) -> impl Fn(kfd::Error) -> Error {
    move |source| Error::Driver { what, source }
}

/// A pool's memory: host memory that the GPU reaches uncached, and for the phase transport a bitmap
/// in the GPU's own.
#[derive(Debug)]
pub struct PoolMemory {
    area: Buffer,
    occupied: Option<Buffer>,
}

impl PoolMemory {
    /// The bitmap of packets in use (phase transport): to be zeroed before a pool of waves that
    /// were killed is used again.
    pub const fn occupied(&self) -> Option<&Buffer> {
        self.occupied.as_ref()
    }
}

/// A word outside the buffer reads 0 and is not stored; a pool never asks for one.
impl Words for PoolMemory {
    fn bytes(&self) -> usize {
        usize::try_from(self.area.bytes()).unwrap_or(usize::MAX)
    }

    #[inline]
    fn load32(&self, offset: usize, order: Ordering) -> u32 {
        self.area.u32(offset as u64).map_or(0, |word| word.load(order))
    }

    #[inline]
    fn load64(&self, offset: usize, order: Ordering) -> u64 {
        self.area.u64(offset as u64).map_or(0, |word| word.load(order))
    }

    #[inline]
    fn store32(&self, offset: usize, value: u32, order: Ordering) {
        if let Ok(word) = self.area.u32(offset as u64) {
            word.store(value, order);
        }
    }

    #[inline]
    fn store64(&self, offset: usize, value: u64, order: Ordering) {
        if let Ok(word) = self.area.u64(offset as u64) {
            word.store(value, order);
        }
    }

    #[inline]
    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64 {
        self.area.u64(offset as u64).map_or(0, |word| word.swap(value, order))
    }
}

/// Makes the pool of one hardware queue of `gpu`, with a packet for each wave that the queue can
/// have (about 4 KiB a packet).
///
/// # Errors
/// [`Error::NoHostAtomics`] for the stack transport where the link has none; [`Error::PacketCount`];
/// [`Error::Driver`] when there is no memory.
pub fn pool(
    gpu: &Gpu,
    id: PoolId,
    transport: Transport,
    bell: &SignalBell,
) -> Result<Pool<PoolMemory>> {
    check_atomics(gpu, transport)?;
    let waves = gpu.queue_waves().map_err(driver("a hostcall pool"))?;
    // A number that no pool can have is refused with the number.
    let packets = u32::try_from(waves).unwrap_or(u32::MAX).max(MIN_PACKETS);
    let area = Area::new(transport, packets)?;
    let request =
        MemoryRequest::gtt(area.bytes() as u64).coherent().uncached().label("hostcall pool");
    let memory = gpu.allocate(&request).map_err(driver("a hostcall pool"))?;
    let occupied = match transport {
        Transport::Stack => None,
        Transport::Phase => {
            let bytes = area.occupied_bytes() as u64;
            let request = MemoryRequest::vram(bytes).label("hostcall bitmap");
            Some(gpu.allocate(&request).map_err(driver("a hostcall bitmap"))?)
        }
    };
    let spec = PoolSpec {
        id,
        area,
        base: memory.addr().get(),
        doorbell: bell.0.addr().get(),
        occupied: occupied.as_ref().map_or(0, |bitmap| bitmap.addr().get()),
        wave_lanes: 64,
    };
    Pool::new(PoolMemory { area: memory, occupied }, &spec)
}

/// The stack transport's waves do 64-bit atomics on host memory.
///
/// # Errors
/// [`Error::NoHostAtomics`] where the link has none.
pub fn check_atomics(gpu: &Gpu, transport: Transport) -> Result<()> {
    let links = &gpu.node().io_links;
    let lacks =
        |flags| IoLinkFlags::from_bits_retain(flags).contains(IoLinkFlags::NO_ATOMICS_64_BIT);
    let missing = links.iter().filter_map(|link| link.flags).any(lacks);
    if missing && transport == Transport::Stack {
        return Err(Error::NoHostAtomics { gpu: gpu.id().0 });
    }
    Ok(())
}

/// The doorbell: a signal of `kfd`, whose event the device raises.
#[derive(Debug)]
pub struct SignalBell(Signal);

impl SignalBell {
    /// A doorbell that waves of every GPU in use can ring.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn new(gpu: &Gpu) -> Result<Self> {
        gpu.create_signal(1).map(Self).map_err(driver("a doorbell"))
    }
}

impl Bell for SignalBell {
    fn count(&self) -> i64 {
        self.0.value()
    }

    fn wait(&self, seen: i64, limit: Duration) -> Woken {
        match self.0.wait(Until::NotEqual(seen), limit) {
            Ok(_) => Woken::Rung,
            Err(kfd::Error::Timeout(_)) => Woken::TimedOut,
            Err(_) => Woken::Dead,
        }
    }

    fn ring(&self) {
        self.0.add(1);
        // Refused only when the driver is going down; the wait then ends by its limit.
        let _ = self.0.notify();
    }
}

/// The device heap's memory: VRAM of one GPU.
pub struct GpuHeap(Gpu);

impl GpuHeap {
    /// Memory of `gpu`.
    pub const fn new(gpu: Gpu) -> Self {
        Self(gpu)
    }

    /// What `hidden_heap_v1` points at: an empty heap.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn block(&self) -> Result<Buffer> {
        let request = MemoryRequest::vram(HEAP_BLOCK_BYTES).label("device heap");
        self.0.allocate(&request).map_err(driver("a device heap"))
    }
}

impl fmt::Debug for GpuHeap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GpuHeap").field(&self.0.id()).finish()
    }
}

impl HeapSource for GpuHeap {
    type Block = Buffer;

    fn allocate(&mut self, bytes: u64, align: u64) -> Option<(u64, Buffer)> {
        let request = MemoryRequest::vram(bytes).label("device heap memory");
        let buffer = self.0.allocate(&request).ok()?;
        let address = buffer.addr().get();
        address.is_multiple_of(align).then_some((address, buffer))
    }
}
