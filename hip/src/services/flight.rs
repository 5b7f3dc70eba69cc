//! [`Flight`]: a launch that may use services, from its submission until the device has passed it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use hostcall::InFlight;
use hostcall::device::PoolMemory;
use hostcall::printf::{
    DrainLimits, Drained, FIFO_HEADER_BYTES, FormatTable, Records, drain, fifo_header, used,
};
use hostcall::sink::Output;
use kfd::{Buffer, Gpu, MemoryRequest};

use super::device::DeviceServices;
use crate::error::Result;
use crate::stream::StreamShared;
use crate::sync::lock;

/// printf buffers that are kept for the next launches.
const KEPT: usize = 8;
/// printf buffers in use from which on a launch first waits for its stream.
const MANY: usize = 64;

/// printf buffers of a device.
#[derive(Debug)]
pub(crate) struct FifoStore {
    gpu: Gpu,
    bytes: u32,
    free: Mutex<Vec<Buffer>>,
    out: AtomicUsize,
}

impl FifoStore {
    pub const fn new(gpu: Gpu, bytes: u32) -> Self {
        Self { gpu, bytes, free: Mutex::new(Vec::new()), out: AtomicUsize::new(0) }
    }

    /// Whether a launch should let others end first.
    pub fn is_busy(&self) -> bool {
        self.out.load(Ordering::Relaxed) >= MANY
    }

    /// An empty buffer.
    pub fn take(self: &Arc<Self>) -> Result<Fifo> {
        let free = lock(&self.free).pop();
        let buffer = match free {
            Some(buffer) => buffer,
            None => {
                let request = MemoryRequest::gtt(self.bytes.into()).coherent().uncached();
                self.gpu.allocate(&request.label("printf buffer"))?
            }
        };
        let [offset, size] = fifo_header(self.bytes);
        let header = u64::from(size) << 32 | u64::from(offset);
        buffer.write(0, &header.to_le_bytes())?;
        self.out.fetch_add(1, Ordering::Relaxed);
        Ok(Fifo { buffer: Some(buffer), store: Arc::clone(self) })
    }
}

/// A launch's printf buffer.
#[derive(Debug)]
pub(crate) struct Fifo {
    /// `None` only while dropping.
    buffer: Option<Buffer>,
    store: Arc<FifoStore>,
}

impl Fifo {
    pub fn address(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.addr().get())
    }

    /// A copy of its records: the offset is loaded once and bounded by what was allocated.
    fn copy(&self) -> Vec<u8> {
        let Some(buffer) = &self.buffer else { return Vec::new() };
        let Ok(word) = buffer.u32(0) else { return Vec::new() };
        let bytes = usize::try_from(self.store.bytes).unwrap_or(usize::MAX);
        let mut records = vec![0; used(word.load(Ordering::Acquire), bytes).bytes];
        match buffer.read(FIFO_HEADER_BYTES as u64, &mut records) {
            Ok(()) => records,
            Err(_) => Vec::new(),
        }
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        self.store.out.fetch_sub(1, Ordering::Relaxed);
        let Some(buffer) = self.buffer.take() else { return };
        let mut free = lock(&self.store.free);
        if free.len() < KEPT {
            free.push(buffer);
        }
    }
}

/// A launch.
pub(crate) struct Flight {
    stream: Weak<StreamShared>,
    /// The operation.
    number: u64,
    formats: Option<Arc<FormatTable>>,
    /// Taken when it lands.
    cargo: Mutex<Cargo>,
}

/// What a flight holds.
struct Cargo {
    guard: Option<InFlight<PoolMemory>>,
    fifo: Option<Fifo>,
    is_printed: bool,
}

impl Flight {
    pub fn new(
        stream: &Arc<StreamShared>,
        number: u64,
        guard: InFlight<PoolMemory>,
        printf: Option<(Fifo, Arc<FormatTable>)>,
    ) -> Arc<Self> {
        let (fifo, formats) = printf.unzip();
        let cargo = Mutex::new(Cargo { guard: Some(guard), fifo, is_printed: false });
        Arc::new(Self { stream: Arc::downgrade(stream), number, formats, cargo })
    }
}

/// What became of buffered printf's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferedStats {
    /// Launches whose buffer was read.
    pub launches: u64,
    /// Messages printed.
    pub printed: u64,
    /// Of these, messages whose format and arguments did not go together, or without a format.
    pub odd: u64,
    /// Messages not printed because a limit would have cut them.
    pub over_limit: u64,
    /// Bytes of records that were not printed.
    pub lost_bytes: u64,
    /// Buffers with a record that cannot be.
    pub broken: u64,
}

/// The flights of a device, those of each stream in order.
pub(crate) struct Flights {
    list: Mutex<VecDeque<Arc<Flight>>>,
    pub output: Output,
    limits: DrainLimits,
    stats: Mutex<BufferedStats>,
    /// In a forked child the lock may be held for ever.
    owner: u32,
}

impl Flights {
    pub fn new(output: Output, limits: DrainLimits) -> Self {
        let owner = std::process::id();
        Self { list: Mutex::default(), output, limits, stats: Mutex::default(), owner }
    }

    pub fn stats(&self) -> BufferedStats {
        *lock(&self.stats)
    }

    fn add(&self, flight: &Arc<Flight>) {
        lock(&self.list).push_back(Arc::clone(flight));
    }

    /// Lands what the device has passed; of streams that are lost, prints what there is. On any thread.
    pub fn sweep(&self) {
        let mut list = lock(&self.list);
        // Streams whose later flights have to wait for an earlier one.
        let mut waiting: Vec<Weak<StreamShared>> = Vec::new();
        list.retain(|flight| {
            if waiting.iter().any(|stream| Weak::ptr_eq(stream, &flight.stream)) {
                return true;
            }
            // Never the last hold: its owner takes the flights off the list before it goes.
            let Some(stream) = flight.stream.upgrade() else { return false };
            match stream.learn() {
                Ok(passed) if passed >= flight.number => {
                    self.land(flight);
                    return false;
                }
                Ok(_) if stream.check().is_ok() => {}
                _ => self.print(flight, &mut lock(&flight.cargo)),
            }
            waiting.push(Weak::clone(&flight.stream));
            true
        });
    }

    /// Prints what flights of a stream have, and looks after them no more.
    pub fn leave(&self, stream: &Arc<StreamShared>) {
        if self.owner != std::process::id() {
            return;
        }
        lock(&self.list).retain(|flight| {
            let is_its = std::ptr::eq(flight.stream.as_ptr(), Arc::as_ptr(stream));
            if is_its {
                self.print(flight, &mut lock(&flight.cargo));
            }
            !is_its
        });
    }

    /// The device is through with it.
    fn land(&self, flight: &Flight) {
        let mut cargo = lock(&flight.cargo);
        self.print(flight, &mut cargo);
        cargo.guard = None;
        cargo.fifo = None;
    }

    /// Prints its buffer, once.
    fn print(&self, flight: &Flight, cargo: &mut Cargo) {
        if std::mem::replace(&mut cargo.is_printed, true) {
            return;
        }
        let (Some(fifo), Some(formats)) = (&cargo.fifo, &flight.formats) else { return };
        let records = fifo.copy();
        let mut scratch = Vec::new();
        let drained =
            drain(Records::new(&records, formats), &self.limits, &mut scratch, |stream, text| {
                // The output counts what it drops.
                let _ = self.output.push(stream, text.to_vec());
            });
        let Drained { printed, odd, unresolved, over_limit, lost_bytes, error } = drained;
        let mut stats = lock(&self.stats);
        stats.launches += 1;
        stats.printed += printed;
        stats.odd += odd + unresolved;
        stats.over_limit += over_limit;
        stats.lost_bytes += lost_bytes as u64;
        stats.broken += u64::from(error.is_some());
    }
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// Has a flight land when it is dropped: once the device has passed the launch, or its queue is gone.
pub(crate) struct Landing {
    flight: Arc<Flight>,
    /// Keeps what the launch may use.
    services: Arc<DeviceServices>,
}

impl Landing {
    pub fn new(services: &Arc<DeviceServices>, flight: Arc<Flight>) -> Self {
        services.flights.add(&flight);
        Self { flight, services: Arc::clone(services) }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let flights = &self.services.flights;
        if flights.owner != std::process::id() {
            return;
        }
        let mut list = lock(&flights.list);
        flights.land(&self.flight);
        if let Some(at) = list.iter().position(|other| Arc::ptr_eq(other, &self.flight)) {
            list.remove(at);
        }
    }
}
