//! What handles other than memory share on top of [`Core`], and how a fault becomes known to all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use pm4::GpuAddr;

use crate::abi::{self, MmapType};
use crate::core::{Core, lock};
use crate::error::{Error, Result};
use crate::event::{EventPage, Events, Fired};
use crate::memory::{Allocation, Mapping, MemoryRequest};
use crate::queue::{KernelLabel, Live, Runtime, TrapHandler};
use crate::report::{FaultCause, FaultReport};
use crate::signal::SignalPool;
use crate::sys::Backing;

/// How long a queue's memory violation waits for KFD's report of the fault behind it, ms.
const FAULT_GRACE_MS: u32 = 50;

/// What a GPU needs before its first queue, made once.
#[derive(Debug, Default)]
struct PerGpu {
    /// Whether memory that every GPU must reach is mapped there.
    ready: AtomicBool,
    /// `Some(None)`: there is no handler for this GPU.
    trap: Mutex<Option<Option<Arc<TrapHandler>>>>,
    doorbells: Mutex<Option<(u64, Arc<Mapping>)>>,
    /// The page of registers that flush the host data path.
    flush: OnceLock<Arc<Allocation>>,
}

/// The events, and the page they need: it stays when making the events failed.
#[derive(Debug, Default)]
struct EventState {
    page: Option<Arc<EventPage>>,
    events: Option<Arc<Events>>,
}

/// A `Kfd`'s state.
#[derive(Debug)]
pub(crate) struct Context {
    pub core: Arc<Core>,
    gpus: Vec<PerGpu>,
    /// Memory to be mapped on every GPU that comes into use.
    shared: Mutex<Vec<Arc<Allocation>>>,
    events: Mutex<EventState>,
    pub signals: Mutex<SignalPool>,
    queues: Mutex<Vec<Arc<dyn Live>>>,
    runtime: Mutex<Runtime>,
    kernels: RwLock<Vec<Arc<str>>>,
}

impl Context {
    pub fn new(core: Core) -> Self {
        let gpus = core.gpus.iter().map(|_| PerGpu::default()).collect();
        Self {
            core: Arc::new(core),
            gpus,
            shared: Mutex::default(),
            events: Mutex::default(),
            signals: Mutex::default(),
            queues: Mutex::default(),
            runtime: Mutex::default(),
            kernels: RwLock::default(),
        }
    }

    fn per_gpu(&self, index: usize) -> Result<&PerGpu> {
        let value = index as u64;
        self.gpus.get(index).ok_or(Error::InvalidArgument { call: "gpu", what: "the index", value })
    }

    /// Makes a GPU ready for memory and queues, once.
    pub fn acquire(&self, index: usize) -> Result<()> {
        let gpu = self.core.gpu(index)?;
        gpu.check()?;
        let ready = &self.per_gpu(index)?.ready;
        if ready.load(Ordering::Acquire) {
            return Ok(());
        }
        let shared = lock(&self.shared);
        self.core.acquire_vm(index)?;
        for memory in shared.iter() {
            memory.map(&[gpu.id()])?;
        }
        ready.store(true, Ordering::Release);
        Ok(())
    }

    /// Maps memory on every GPU in use, now and later.
    pub fn share(&self, memory: &Arc<Allocation>) -> Result<()> {
        let mut shared = lock(&self.shared);
        memory.map(&self.core.acquired())?;
        shared.push(Arc::clone(memory));
        Ok(())
    }

    /// The 64-bit word at `address`, which is a multiple of 8, when it is in memory of signals.
    pub fn shared_word(&self, address: u64) -> Option<u64> {
        let shared = lock(&self.shared);
        let holds = |memory: &&Arc<Allocation>| {
            let start = memory.addr().get();
            address >= start && address - start < memory.info().bytes
        };
        let memory = shared.iter().find(holds)?;
        let word = memory.mapping().ok()?.u64(address - memory.addr().get()).ok()?;
        Some(word.load(Ordering::Acquire))
    }

    /// Events in use.
    pub fn event_count(&self) -> u32 {
        lock(&self.events).events.as_ref().map_or(0, |events| events.count())
    }

    /// The events, made on the first call, with the event page on the GPU at `index`.
    pub fn events(&self, index: usize) -> Result<Arc<Events>> {
        let mut state = lock(&self.events);
        if let Some(events) = &state.events {
            return Ok(Arc::clone(events));
        }
        self.acquire(index)?;
        let page = match &state.page {
            Some(page) => Arc::clone(page),
            None => {
                let page = Arc::new(EventPage::new(&self.core, index)?);
                self.share(page.memory())?;
                Arc::clone(state.page.insert(page))
            }
        };
        let events = Arc::new(Events::new(&self.core, page)?);
        Ok(Arc::clone(state.events.insert(events)))
    }

    /// The events of a `Kfd` that has a signal or a queue.
    pub fn any_events(&self) -> Result<Arc<Events>> {
        let none = Error::InvalidArgument { call: "wait", what: "the number of signals", value: 0 };
        lock(&self.events).events.clone().ok_or(none)
    }

    /// Whether KFD delivers exceptions; asks for them on the first call.
    pub fn runtime(&self) -> Result<Runtime> {
        let mut runtime = lock(&self.runtime);
        if *runtime == Runtime::Unknown {
            *runtime = Runtime::enable(&self.core)?;
        }
        Ok(*runtime)
    }

    /// Keeps other threads from enabling the runtime: with a debugger attached the kernel would let
    /// them wait for it (docs/ABI.md §Exception delivery).
    pub fn hold_runtime(&self) -> MutexGuard<'_, Runtime> {
        lock(&self.runtime)
    }

    /// The trap handler of a GPU, installed on the first call.
    pub fn trap_handler(&self, index: usize) -> Result<Option<Arc<TrapHandler>>> {
        let runtime = self.runtime()?;
        let mut slot = lock(&self.per_gpu(index)?.trap);
        if let Some(handler) = &*slot {
            return Ok(handler.clone());
        }
        let handler = TrapHandler::install(&self.core, index, runtime)?.map(Arc::new);
        Ok(slot.insert(handler).clone())
    }

    /// The doorbell page of a GPU, mapped on the first call, from what CREATE_QUEUE answered.
    pub fn doorbells(&self, index: usize, doorbell_offset: u64) -> Result<Arc<Mapping>> {
        if MmapType::of(doorbell_offset) != MmapType::DOORBELL {
            let what = "the doorbell offset";
            return Err(Error::Nonsense { call: "CREATE_QUEUE", what, value: doorbell_offset });
        }
        let offset = doorbell_offset & !(abi::DOORBELL_PAGE_BYTES - 1);
        let mut slot = lock(&self.per_gpu(index)?.doorbells);
        if let Some((known, page)) = &*slot
            && *known == offset
        {
            return Ok(Arc::clone(page));
        }
        let backing = Backing::File { file: self.core.file, offset };
        let bytes = usize::try_from(abi::DOORBELL_PAGE_BYTES).unwrap_or(0);
        let page = Mapping::anywhere(&self.core.kernel, bytes, backing).map_err(|errno| {
            let what = format!("the doorbells at offset {offset:#x}");
            Error::System { call: "mmap", what, errno }
        })?;
        Ok(Arc::clone(&slot.insert((offset, Arc::new(page))).1))
    }

    /// Flushes the host data path of a GPU. Source: docs/ABI.md §mmap.
    pub fn flush_hdp(&self, index: usize) -> Result<()> {
        let flush = &self.per_gpu(index)?.flush;
        let page = match flush.get() {
            Some(page) => page,
            None => {
                if self.core.gpu(index)?.node.is_linked_to_cpu_by_xgmi(&self.core.topology) {
                    return Ok(());
                }
                self.acquire(index)?;
                let request = MemoryRequest::mmio_remap().label("host data path registers");
                let page = Allocation::new(&self.core, index, &request)?;
                flush.get_or_init(|| page)
            }
        };
        let offset = u64::from(abi::MmioRemap::HDP_MEM_FLUSH_CNTL.0);
        let register = page.mapping()?.u32(offset)?;
        aql::store_fence(); // VRAM is mapped write-combined
        register.store(1, Ordering::Release);
        // The read comes back only after the flush.
        register.load(Ordering::Acquire);
        Ok(())
    }

    /// Gives a kernel's name a number for [`Queue::submit`](crate::Queue::submit).
    pub fn register_kernel(&self, name: &str) -> KernelLabel {
        let mut kernels = self.kernels.write().unwrap_or_else(PoisonError::into_inner);
        kernels.push(Arc::from(name));
        u32::try_from(kernels.len()).map_or(KernelLabel::NONE, KernelLabel)
    }

    /// The name behind a number.
    pub fn kernel_name(&self, label: KernelLabel) -> Option<String> {
        let index = usize::try_from(label.0.checked_sub(1)?).ok()?;
        let kernels = self.kernels.read().unwrap_or_else(PoisonError::into_inner);
        kernels.get(index).map(|name| name.as_ref().to_owned())
    }

    pub fn add_queue(&self, queue: Arc<dyn Live>) {
        lock(&self.queues).push(queue);
    }

    pub fn remove_queue(&self, queue: &Arc<dyn Live>) {
        let mut queues = lock(&self.queues);
        queues.retain(|other| !std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(queue)));
        if queues.is_empty() {
            lock(&self.signals).release_pending();
        }
    }

    /// Live queues.
    pub fn queues(&self) -> Vec<Arc<dyn Live>> {
        lock(&self.queues).clone()
    }

    /// Records what a wait in the kernel found.
    pub fn record(&self, fired: &Fired) -> Result<()> {
        if let Some(data) = &fired.memory {
            let cause = FaultCause::Memory {
                page: GpuAddr::new(data.va & !0xfff),
                not_present: data.failure.not_present != 0,
                read_only: data.failure.read_only != 0,
                no_execute: data.failure.no_execute != 0,
                imprecise: data.failure.imprecise != 0,
                error_type: data.error_type.0,
            };
            self.lose(data.gpu_id, cause)?;
        }
        if let Some(data) = &fired.hardware {
            let cause = FaultCause::Hardware {
                reset_type: data.reset_type.0,
                reset_cause: data.reset_cause.0,
                memory_lost: data.memory_lost != 0,
            };
            self.lose(data.gpu_id, cause)?;
        }
        Ok(())
    }

    /// A GPU is lost: stops its queues and wakes every waiter. Only the first cause counts. A GPU
    /// that is not ours is none of our business.
    fn lose(&self, gpu_id: crate::GpuId, cause: FaultCause) -> Result<()> {
        let Some(index) = self.core.index_of(gpu_id) else { return Ok(()) };
        if self.core.gpu(index)?.is_lost() {
            return Ok(());
        }
        let queues: Vec<Arc<dyn Live>> =
            self.queues().into_iter().filter(|queue| queue.core().gpu() == index).collect();
        self.core.gpu(index)?.lose(|| FaultReport {
            gpu: gpu_id,
            cause,
            neighbours: match cause {
                FaultCause::Memory { page, .. } => self.core.registry.neighbours(page),
                FaultCause::Hardware { .. } => Default::default(),
            },
            queues: queues.iter().map(|queue| queue.state(self)).collect(),
        });
        for queue in queues {
            queue.core().stop();
        }
        let events = self.any_events()?;
        events.set(&events.alert)
    }

    /// Looks at what every queue reported. Wakes every waiter when there is something new.
    pub fn scan_queues(&self) -> Result<()> {
        let mut news = false;
        for queue in self.queues() {
            let Some(reported) = queue.core().reported() else { continue };
            let gpu = self.core.gpu(queue.core().gpu())?;
            if reported.may_be_a_memory_fault() && !gpu.is_lost() {
                // The page fault behind it is the cause, and KFD reports it on its own.
                let fired = self.any_events()?.wait(&[], FAULT_GRACE_MS)?;
                self.record(&fired)?;
            }
            news |= queue.lose(self, &reported);
        }
        if news {
            let events = self.any_events()?;
            events.set(&events.alert)?;
        }
        Ok(())
    }

    /// Looks for faults and exceptions without waiting.
    pub fn poll(&self) -> Result<()> {
        let events = self.any_events()?;
        let fired = events.wait(&[(&events.alert, events.alert.age())], 0)?;
        self.record(&fired)?;
        self.scan_queues()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // No queue is left: each holds the context.
        let runtime = *lock(&self.runtime);
        runtime.disable(&self.core);
    }
}
