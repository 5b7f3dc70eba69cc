//! [`DeviceServices`]: the services of one GPU, made when a module first needs one.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use hostcall::device::{self, GpuHeap, PoolMemory, SignalBell};
use hostcall::format::Limits;
use hostcall::needs::{ModuleNeeds, ServiceNeeds};
use hostcall::printf::{DrainLimits, FormatTable, MessageLimits};
use hostcall::service::{DeviceHeap, HeapControl, Printf, Sanitizer, Text, TextStats};
use hostcall::sink::{Sink, Stream as TextStream, Writer};
use hostcall::{Bell, Counters, Drain, Pool, PoolId, Registry, ServiceId, Transport, Woken};
use hsaco::kernarg::Hidden;
use hsaco::{CodeObject, Kernel, Needs};
use kfd::{Buffer, Gpu};

use super::config::ServicesConfig;
use super::flight::{FifoStore, Flights};
use crate::error::{LaunchProblem, Result};
use crate::stream::StreamShared;
use crate::sync::lock;

/// Sanitizer reports that are handed on in a second.
const REPORTS_PER_SECOND: u32 = 100;

/// Where a device has its services, once it has.
#[derive(Default)]
pub(crate) struct Slot(Mutex<State>);

#[derive(Default)]
struct State {
    config: Option<ServicesConfig>,
    made: Option<Arc<DeviceServices>>,
    transport: Option<Transport>,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.get().is_some()).finish()
    }
}

impl Slot {
    /// Whether the configuration still counts.
    pub fn configure(&self, config: ServicesConfig) -> bool {
        let mut state = lock(&self.0);
        if state.made.is_some() {
            return false;
        }
        state.transport = config.transport;
        state.config = Some(config);
        true
    }

    pub fn get(&self) -> Option<Arc<DeviceServices>> {
        lock(&self.0).made.clone()
    }

    /// The transport that was chosen for all modules.
    pub fn transport(&self) -> Option<Transport> {
        lock(&self.0).transport
    }

    /// The services, made if need be.
    fn start(&self, gpu: &Gpu) -> Result<Arc<DeviceServices>> {
        let mut state = lock(&self.0);
        if let Some(made) = &state.made {
            return Ok(Arc::clone(made));
        }
        let made = DeviceServices::new(gpu, state.config.take().unwrap_or_default())?;
        state.made = Some(Arc::clone(&made));
        Ok(made)
    }

    /// A stream ends with launches that the device may not have finished: what they have printed is
    /// printed, and nobody else looks after them.
    #[cold]
    pub fn leave(&self, stream: &Arc<StreamShared>) {
        if let Some(made) = self.get() {
            made.flights.leave(stream);
        }
    }
}

/// The doorbell, which has flights land whenever the drain has slept.
struct Waker {
    bell: SignalBell,
    flights: Arc<Flights>,
}

impl Bell for Waker {
    fn count(&self) -> i64 {
        self.bell.count()
    }

    fn wait(&self, seen: i64, limit: std::time::Duration) -> Woken {
        let woken = self.bell.wait(seen, limit);
        self.flights.sweep();
        woken
    }

    fn ring(&self) {
        self.bell.ring();
    }
}

/// The services of a GPU.
pub(crate) struct DeviceServices {
    gpu: Gpu,
    /// Ends before the writer.
    pub drain: Drain<PoolMemory>,
    pub flights: Arc<Flights>,
    bell: Arc<Waker>,
    pub text: TextStats,
    pub heap: Arc<HeapControl>,
    heap_block: Mutex<Option<Buffer>>,
    pub fifos: Arc<FifoStore>,
    pools: AtomicU32,
    _writer: Writer,
}

impl fmt::Debug for DeviceServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceServices").field("gpu", &self.gpu.id()).finish_non_exhaustive()
    }
}

/// A sink behind a pointer.
struct Boxed(Box<dyn Sink>);

impl Sink for Boxed {
    fn write(&mut self, stream: TextStream, text: &[u8]) -> std::io::Result<()> {
        self.0.write(stream, text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl DeviceServices {
    fn new(gpu: &Gpu, config: ServicesConfig) -> Result<Arc<Self>> {
        let counters = Arc::<Counters>::default();
        let writer = Writer::start(Boxed(config.sink), config.output, Arc::clone(&counters))?;
        let output = writer.output();
        let limits = DrainLimits::default();
        let flights = Arc::new(Flights::new(output.clone(), limits));
        let bell = Arc::new(Waker { bell: SignalBell::new(gpu)?, flights: Arc::clone(&flights) });
        let text = Text::new(output.clone(), MessageLimits::default(), Limits::default());
        let stats = text.stats();
        let heap = DeviceHeap::new(GpuHeap::new(gpu.clone()), config.heap);
        let control = heap.control();
        let reports = config.reports.unwrap_or_else(|| {
            Box::new(move |report| {
                // The output counts what it drops.
                let _ = output.push(TextStream::Stderr, format!("{report}\n").into_bytes());
            })
        });
        let registry = Registry::new()
            .with(ServiceId::FUNCTION, config.functions)?
            .with(ServiceId::PRINTF, Printf(text))?
            .with(ServiceId::DEVICE_MEMORY, heap)?
            .with(ServiceId::SANITIZER, Sanitizer::new(reports, REPORTS_PER_SECOND))?;
        let theirs = Arc::<Waker>::clone(&bell);
        let drain = Drain::start(registry.build(), theirs, counters, config.drain)?;
        Ok(Arc::new(Self {
            gpu: gpu.clone(),
            drain,
            flights,
            bell,
            text: stats,
            heap: control,
            heap_block: Mutex::default(),
            fifos: Arc::new(FifoStore::new(gpu.clone(), config.printf_bytes)),
            pools: AtomicU32::new(0),
            _writer: writer,
        }))
    }

    pub fn counters(&self) -> &Counters {
        self.drain.counters()
    }

    /// A pool for a hardware queue. Its number and address; the drain has it.
    pub fn new_pool(&self, transport: Transport) -> Result<(PoolId, u64)> {
        let id = PoolId(self.pools.fetch_add(1, Ordering::Relaxed));
        let pool: Pool<PoolMemory> = device::pool(&self.gpu, id, transport, &self.bell.bell)?;
        let address = pool.address();
        self.drain.attach(pool)?;
        Ok((id, address))
    }

    /// Address of the heap's block, which is made if need be.
    fn heap_address(&self) -> Result<u64> {
        let mut block = lock(&self.heap_block);
        if let Some(block) = &*block {
            return Ok(block.addr().get());
        }
        let made = GpuHeap::new(self.gpu.clone()).block()?;
        let address = made.addr().get();
        *block = Some(made);
        Ok(address)
    }
}

/// Where an address goes in a kernel's arguments.
#[derive(Clone, Copy, Debug)]
struct Place {
    kind: Hidden,
    at: usize,
}

/// What a launch of a kernel with services needs. Immutable.
#[derive(Clone, Debug)]
pub(crate) struct KernelServices {
    pub device: Arc<DeviceServices>,
    pub needs: ServiceNeeds,
    pub transport: Transport,
    heap: u64,
    places: Box<[Place]>,
    pub formats: Option<Arc<FormatTable>>,
}

/// One byte of the launch's flags and no more: docs/hostcall.md, R11.
const _: () = assert!(size_of::<ServiceNeeds>() == 1);
/// What a kernel without services has of this.
const _: () = assert!(size_of::<Option<Box<KernelServices>>>() == 8);

/// What the kernels of a module are given.
#[derive(Debug)]
pub(crate) struct ModuleServices {
    pub needs: Box<ModuleNeeds>,
    pub device: Arc<DeviceServices>,
    /// What the device can give.
    pub given: ServiceNeeds,
    heap: u64,
    formats: Option<Arc<FormatTable>>,
}

impl ModuleServices {
    /// `None` for a module whose kernels need nothing, which takes nothing.
    ///
    /// # Errors
    /// [`Error::Services`](crate::Error::Services) and [`Error::Driver`](crate::Error::Driver) when
    /// there is no thread or no memory.
    pub fn of(
        slot: &Slot,
        gpu: &Gpu,
        object: &CodeObject<'_>,
        bytes: &[u8],
    ) -> Result<Option<Self>> {
        let Some(needs) = ModuleNeeds::of(object, bytes, slot.transport()) else {
            return Ok(None);
        };
        let device = slot.start(gpu)?;
        let mut given = needs.any();
        if given.intersects(ServiceNeeds::HOSTCALL | ServiceNeeds::HEAP)
            && device::check_atomics(gpu, needs.transport()).is_err()
        {
            given.remove(ServiceNeeds::HOSTCALL | ServiceNeeds::HEAP);
        }
        let wants_heap = given.contains(ServiceNeeds::HEAP);
        let heap = if wants_heap { device.heap_address()? } else { 0 };
        let formats = given.contains(ServiceNeeds::PRINTF_BUFFER).then(|| {
            let strings = object.printf_strings().unwrap_or_default();
            Arc::new(FormatTable::new(strings.iter().copied()))
        });
        Ok(Some(Self { needs, device, given, heap, formats }))
    }

    /// What a kernel is given, by its place in the object; `None` for one that needs nothing.
    pub fn kernel(&self, index: usize, kernel: &Kernel<'_>) -> Option<KernelServices> {
        let needs = self.needs.kernel(index) & self.given;
        if needs.is_empty() {
            return None;
        }
        let has = |kind| match kind {
            Hidden::HostcallBuffer => needs.contains(ServiceNeeds::HOSTCALL),
            Hidden::PrintfBuffer => needs.contains(ServiceNeeds::PRINTF_BUFFER),
            Hidden::HeapV1 => needs.contains(ServiceNeeds::HEAP),
            _ => false,
        };
        let hidden = kernel.arguments().hidden().iter();
        let places = hidden.filter(|argument| has(argument.kind)).map(|argument| Place {
            kind: argument.kind,
            at: usize::try_from(argument.offset).unwrap_or(usize::MAX),
        });
        Some(KernelServices {
            device: Arc::clone(&self.device),
            needs,
            transport: self.needs.transport(),
            heap: self.heap,
            places: places.collect(),
            formats: self.formats.clone(),
        })
    }

    /// The same as bits of a module's needs.
    pub fn given_needs(&self) -> Needs {
        let mut needs = Needs::empty();
        needs.set(Needs::HOSTCALL_BUFFER, self.given.contains(ServiceNeeds::HOSTCALL));
        needs.set(Needs::PRINTF_BUFFER, self.given.contains(ServiceNeeds::PRINTF_BUFFER));
        needs.set(Needs::HEAP, self.given.contains(ServiceNeeds::HEAP));
        needs
    }
}

impl KernelServices {
    /// Puts the addresses of a launch into its arguments; a service that is not there is 0.
    ///
    /// # Errors
    /// [`LaunchProblem::Arguments`] for a place outside of `segment`.
    pub fn put(
        &self,
        segment: &mut [u8],
        pool: u64,
        printf_buffer: u64,
    ) -> std::result::Result<(), LaunchProblem> {
        let found = segment.len();
        for place in &self.places {
            let address = match place.kind {
                Hidden::HostcallBuffer => pool,
                Hidden::PrintfBuffer => printf_buffer,
                _ => self.heap,
            };
            let to = segment.get_mut(place.at..).and_then(<[u8]>::first_chunk_mut::<8>);
            let needed = place.at.saturating_add(8);
            let to = to.ok_or(hsaco::ArgumentError::Space { needed, found })?;
            *to = address.to_le_bytes();
        }
        Ok(())
    }
}
