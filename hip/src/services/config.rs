//! What a program says of services, and sees of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hostcall::printf::BlockingStats;
use hostcall::service::{Functions, HeapControl, HeapLimits, HostFunction, SanitizerReport};
use hostcall::sink::{OutputLimits, Sink, Stdio};
use hostcall::{Counters, DrainConfig, Transport};

use super::device::DeviceServices;
use super::flight::BufferedStats;
use crate::device::Device;
use crate::error::{Error, Result};

/// Bytes of a launch's printf buffer: as many as AMD's runtime gives the largest group.
const PRINTF_BYTES: u32 = 4 << 20;
/// Fewest: a header and one record.
const MIN_PRINTF_BYTES: u32 = 4096;

/// A handler of sanitizer reports.
pub(super) type Reports = Box<dyn FnMut(SanitizerReport) + Send>;

/// What a device's services are. Everything has a default: text goes to the process's standard output
/// and error, kernels can call no function, reports are lines on the standard error.
#[must_use]
pub struct ServicesConfig {
    pub(super) sink: Box<dyn Sink>,
    pub(super) output: OutputLimits,
    pub(super) drain: DrainConfig,
    pub(super) heap: HeapLimits,
    pub(super) printf_bytes: u32,
    pub(super) functions: Functions,
    pub(super) reports: Option<Reports>,
    pub(super) transport: Option<Transport>,
}

impl Default for ServicesConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl ServicesConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            sink: Box::new(Stdio::new()),
            output: OutputLimits::DEFAULT,
            drain: DrainConfig::DEFAULT,
            heap: HeapLimits::DEFAULT,
            printf_bytes: PRINTF_BYTES,
            functions: Functions::new(),
            reports: None,
            transport: None,
        }
    }

    /// Where text of kernels goes.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sink = Box::new(sink);
        self
    }

    /// How much text waits for a slow sink, and what happens beyond.
    pub const fn output(mut self, limits: OutputLimits) -> Self {
        self.output = limits;
        self
    }

    /// How the thread that answers works.
    pub const fn drain(mut self, config: DrainConfig) -> Self {
        self.drain = config;
        self
    }

    /// How much memory kernels may have at once.
    pub const fn heap(mut self, limits: HeapLimits) -> Self {
        self.heap = limits;
        self
    }

    /// Bytes of the buffer that each launch with buffered printf gets, at least 4096; 4 MiB by default.
    /// What does not fit is not printed, and its printf returns -1.
    pub const fn printf_bytes(mut self, bytes: u32) -> Self {
        self.printf_bytes = if bytes < MIN_PRINTF_BYTES { MIN_PRINTF_BYTES } else { bytes };
        self
    }

    /// Lets kernels call `function` by `id`. It runs on the thread that answers: it must return, and
    /// must not wait for a GPU.
    ///
    /// # Errors
    /// [`Error::Services`] when the id is taken.
    pub fn function(mut self, id: u64, function: impl HostFunction + 'static) -> Result<Self> {
        self.functions = self.functions.with(id, function)?;
        Ok(self)
    }

    /// What gets reports of the address sanitizer.
    pub fn reports(mut self, handler: impl FnMut(SanitizerReport) + Send + 'static) -> Self {
        self.reports = Some(Box::new(handler));
        self
    }

    /// The transport of all modules loaded for the device, where their objects are known to be built for
    /// one. By default each object tells ([`hostcall::needs::ModuleNeeds::evidence`] says how).
    pub const fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }
}

impl fmt::Debug for ServicesConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServicesConfig")
            .field("drain", &self.drain)
            .field("heap", &self.heap)
            .field("printf_bytes", &self.printf_bytes)
            .field("functions", &self.functions)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// A device's services, once a module has needed one.
#[derive(Clone, Debug)]
pub struct Services(pub(super) Arc<DeviceServices>);

impl Services {
    /// What was answered, and what was wrong.
    pub fn counters(&self) -> &Counters {
        self.0.counters()
    }

    /// What became of blocking printf's messages.
    pub fn printed(&self) -> BlockingStats {
        self.0.text.get()
    }

    /// What became of buffered printf's messages.
    pub fn buffered(&self) -> BufferedStats {
        self.0.flights.stats()
    }

    /// The heap's use and limits.
    pub fn heap(&self) -> &HeapControl {
        &self.0.heap
    }

    /// Launches in flight that could use a service.
    pub fn in_flight(&self) -> u64 {
        self.0.drain.in_flight()
    }

    /// Waits until text that kernels have printed so far was given to the sink; `false` when `limit`
    /// passed first. A synchronised stream's text is all among it.
    pub fn flush(&self, limit: Duration) -> bool {
        self.0.flights.output.flush(limit)
    }

    /// Sets what kernels may allocate.
    ///
    /// # Errors
    /// [`Error::Services`] while a launch is in flight that may.
    pub fn set_heap_limits(&self, limits: HeapLimits) -> Result<()> {
        Ok(self.0.drain.set_heap_limits(&self.0.heap, limits)?)
    }
}

impl Device {
    /// Says what its services are. Nothing is made before a module is loaded that needs one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] once they were made.
    pub fn configure_services(&self, config: ServicesConfig) -> Result<()> {
        let what = "its services were made when a module was loaded: configure them before";
        let refused = Error::Unsupported { gpu: self.id(), what };
        if self.core.services.configure(config) { Ok(()) } else { Err(refused) }
    }

    /// Its services; `None` while no loaded module has needed one.
    pub fn services(&self) -> Option<Services> {
        self.core.services.get().map(Services)
    }
}
