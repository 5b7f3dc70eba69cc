//! Runs a [`Case`] on a GPU: loads its object, launches its kernel, reads everything back.
//!
//! The same steps on hardware and on the software GPU. Nothing is kept from one case to the next
//! but the queue, and that only while it works.

use std::time::{Duration, Instant};

use aql::KernelDispatch;
use hsaco::{CodeObject, DeviceTarget, Geometry, HiddenValues, Image, LaunchFacts};
use kfd::{Buffer, Gpu, Kfd, MemoryRequest, Queue, QueueRequest, Signal, Until};
use pm4::GpuAddr;

use crate::programs::{Arg, Case, Results, Wrong};

/// Packets of the self-test's queues.
pub const QUEUE_PACKETS: u32 = 256;

/// Stack of a work-item for calls whose depth the compiler could not tell (recursion, calls through
/// pointers), in bytes, on top of what the kernel declares. HIP's default stack limit.
pub const DYNAMIC_STACK_BYTES: u32 = 1024;

/// How long after a packet's completion its slot may stay taken: firmware advances the read index
/// some time after it has decremented the completion signal.
pub const READ_INDEX_GRACE: Duration = Duration::from_millis(100);

/// Why a case gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The code object was refused.
    #[error("code object")]
    Object(#[from] hsaco::Error),
    /// The code object is for another GPU.
    #[error(transparent)]
    Target(#[from] hsaco::target::Mismatch),
    /// The GPU is none that this version knows.
    #[error(transparent)]
    Device(#[from] hsaco::target::UnknownDevice),
    /// The object has no such kernel.
    #[error("the code object has no kernel {name}")]
    NoKernel {
        /// The name.
        name: String,
    },
    /// The arguments do not fit the kernel.
    #[error("kernel arguments")]
    Arguments(#[from] hsaco::ArgumentError),
    /// The launch does not fit the kernel.
    #[error("a workgroup of {items} work-items, the kernel takes {most}")]
    Workgroup {
        /// Work-items of the launch.
        items: u64,
        /// Most the kernel takes.
        most: u32,
    },
    /// The packet cannot be right.
    #[error("dispatch packet")]
    Packet(#[from] aql::Problem),
    /// A number does not fit the machine.
    #[error("{what} does not fit: {value}")]
    Size {
        /// What.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// The driver refused, or the launch failed.
    #[error(transparent)]
    Driver(#[from] kfd::Error),
}

/// How a case ended.
#[derive(Debug)]
pub enum Verdict {
    /// All results are the CPU's.
    Passed,
    /// A result differs.
    Wrong(Wrong),
    /// There is no result.
    Failed(RunError),
}

impl Verdict {
    /// Whether all results are the CPU's.
    pub const fn is_passed(&self) -> bool {
        matches!(self, Self::Passed)
    }
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices {
    /// Packets the device has taken.
    pub read: u64,
    /// Packets submitted.
    pub write: u64,
}

/// What came of a case.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// From the doorbell until the wait returned; zero when nothing was launched.
    pub elapsed: Duration,
    /// GPU ticks from the packet's start to its end, where the GPU stamped it.
    pub gpu_ticks: Option<u64>,
    /// Packets submitted.
    pub packets: u64,
    /// The queue before the first packet.
    pub before: Option<Indices>,
    /// The queue after the results were there.
    pub after: Option<Indices>,
}

/// A GPU with a queue.
#[derive(Debug)]
pub struct Session {
    kfd: Kfd,
    gpu: Gpu,
    target: DeviceTarget,
    queue: Option<Queue>,
}

impl Session {
    /// Prepares a GPU. Its queue is made with the first case, and made anew after a failure.
    ///
    /// # Errors
    /// [`RunError::Device`] for a GPU that code objects cannot name; [`RunError::Driver`] when KFD
    /// does not tell the XNACK mode.
    pub fn new(kfd: &Kfd, gpu: &Gpu) -> Result<Self, RunError> {
        let version = gpu.gfx_version().target_version();
        let target = DeviceTarget::new(version, gpu.has_sram_ecc(), kfd.xnack_enabled()?)?;
        Ok(Self { kfd: kfd.clone(), gpu: gpu.clone(), target, queue: None })
    }

    /// The GPU.
    pub const fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// What code objects must be for.
    pub const fn target(&self) -> DeviceTarget {
        self.target
    }

    /// The queue; a new one if the last is gone.
    ///
    /// # Errors
    /// As [`Gpu::create_queue`].
    pub fn queue(&mut self) -> Result<&Queue, kfd::Error> {
        match self.queue.take() {
            Some(queue) => Ok(self.queue.insert(queue)),
            None => {
                let request = QueueRequest::aql(QUEUE_PACKETS).profiling();
                Ok(self.queue.insert(self.gpu.create_queue(&request)?))
            }
        }
    }

    /// Destroys the queue, whatever it is doing.
    ///
    /// # Errors
    /// As [`Queue::destroy`].
    pub fn drop_queue(&mut self) -> Result<(), kfd::Error> {
        self.queue.take().map_or(Ok(()), Queue::destroy)
    }
}

/// Runs one case. Every wait ends within `timeout`.
///
/// After a failed launch the queue is destroyed before any memory is freed, so that nothing that
/// still runs can reach freed memory; the next case gets a new queue.
pub fn run_case(session: &mut Session, case: &Case, timeout: Duration) -> Outcome {
    let mut outcome = Outcome {
        verdict: Verdict::Passed,
        elapsed: Duration::ZERO,
        gpu_ticks: None,
        packets: 0,
        before: None,
        after: None,
    };
    outcome.verdict = match attempt(session, case, timeout, &mut outcome) {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(wrong)) => Verdict::Wrong(wrong),
        Err(error) => Verdict::Failed(error),
    };
    outcome
}

/// A code object in GPU memory.
struct Loaded {
    code: Buffer,
    image: Image,
    /// Managed variables: name, and the memory that the object's pointer leads to.
    managed: Vec<(String, Buffer)>,
}

/// Suffix of the symbol that holds a managed variable's initial value; the variable itself is a
/// pointer that the loader fills.
const MANAGED: &str = ".managed";

fn attempt(
    session: &mut Session,
    case: &Case,
    timeout: Duration,
    outcome: &mut Outcome,
) -> Result<Result<(), Wrong>, RunError> {
    let object = CodeObject::parse(case.object)?;
    object.target().fits(&session.target)?;
    let kernel = object
        .kernel(case.kernel)
        .ok_or_else(|| RunError::NoKernel { name: case.kernel.to_owned() })?;
    let facts = kernel.launch_facts();
    check_group(case, &facts)?;

    let gpu = session.gpu.clone();
    let loaded = load(&gpu, &object)?;
    let buffers = buffers(&gpu, case)?;
    let packet = KernelDispatch::new(
        GpuAddr::new(loaded.image.address_of(kernel.descriptor_vaddr())),
        case.grid,
        narrow(case.group)?,
    )?;
    let segment = arguments(case, kernel, &buffers, packet.dimensions())?;
    let request = MemoryRequest::gtt(length(segment.len().max(64))).coherent().uncached();
    let kernarg = gpu.allocate(&request.label("kernel arguments"))?;
    kernarg.write(0, &segment)?;

    let private = private_bytes(&facts);
    let group =
        facts.static_lds_bytes.checked_add(case.dynamic_lds_bytes).ok_or(RunError::Size {
            what: "the LDS of a workgroup",
            value: case.dynamic_lds_bytes.into(),
        })?;
    let done = gpu.create_signal(1)?;
    let packet = packet
        .kernarg(kernarg.addr())
        .private_segment(private)
        .group_segment(group)
        .barrier()
        .completion(done.addr());
    let label = session.kfd.register_kernel(case.kernel);
    let queue = session.queue()?;
    queue.grow_scratch(private, timeout)?;

    outcome.before = Some(indices(queue));
    let start = Instant::now();
    let waited = queue
        .submit_within(&packet.encode(), label, timeout)
        .inspect(|_| outcome.packets = 1)
        .and_then(|_| queue.wait(&done, Until::Below(1), timeout));
    outcome.elapsed = start.elapsed();
    if let Err(error) = waited {
        outcome.after = Some(indices(queue));
        // Before the buffers go. Where that fails the queue's memory is leaked, and the driver's
        // list of leaks says so.
        let _ = session.drop_queue();
        return Err(error.into());
    }
    outcome.gpu_ticks = ticks(&done);
    outcome.after = Some(settled(queue));

    let mut results = Vec::new();
    for buffer in buffers.iter().flatten() {
        results.push(read_all(buffer)?);
    }
    let variable = |name: &str| read_variable(&object, &loaded, name);
    Ok((case.check)(&Results { buffers: results, variable: &variable }))
}

fn check_group(case: &Case, facts: &LaunchFacts) -> Result<(), RunError> {
    let items = case.group.iter().map(|size| u64::from(*size)).product();
    let most = facts.max_flat_group_size;
    if items > u64::from(most) {
        return Err(RunError::Workgroup { items, most });
    }
    Ok(())
}

fn narrow(group: [u32; 3]) -> Result<[u16; 3], RunError> {
    let narrow = |size: u32| {
        let error = RunError::Size { what: "a workgroup's size", value: size.into() };
        u16::try_from(size).map_err(|_| error)
    };
    let [x, y, z] = group;
    Ok([narrow(x)?, narrow(y)?, narrow(z)?])
}

/// Private memory of a work-item, bytes.
pub const fn private_bytes(facts: &LaunchFacts) -> u32 {
    if facts.uses_dynamic_stack {
        facts.private_bytes.saturating_add(DYNAMIC_STACK_BYTES)
    } else {
        facts.private_bytes
    }
}

fn length(bytes: usize) -> u64 {
    bytes as u64
}

/// Ordinary memory for code and data: the host's, cached by the GPU. Every GPU has it, and atomics
/// on it need nothing of the PCIe path.
fn data(bytes: usize) -> MemoryRequest {
    MemoryRequest::gtt(length(bytes.max(1)))
}

fn load(gpu: &Gpu, object: &CodeObject<'_>) -> Result<Loaded, RunError> {
    let too_large = || RunError::Size { what: "the code object", value: object.load_bytes() };
    let bytes = usize::try_from(object.load_bytes()).map_err(|_| too_large())?;
    let code = gpu.allocate(&data(bytes).executable().label("code object"))?;
    let image = object.image(code.addr().get())?;
    let mut memory = vec![0; bytes];
    image.write_to(&mut memory)?;
    let mut managed = Vec::new();
    for variable in object.variables() {
        let Some(name) = variable.name.strip_suffix(MANAGED) else { continue };
        let Some(pointer) = object.variable(name) else { continue };
        let bytes = usize::try_from(variable.bytes).map_err(|_| too_large())?;
        let buffer = gpu.allocate(&data(bytes).label("managed variable"))?;
        let initial = slice(&memory, &image, variable.vaddr, bytes).ok_or_else(too_large)?;
        buffer.write(0, initial)?;
        let address = buffer.addr().get().to_le_bytes();
        let start = offset(&image, pointer.vaddr).ok_or_else(too_large)?;
        let place = memory.get_mut(start..).and_then(|rest| rest.first_chunk_mut());
        *place.ok_or_else(too_large)? = address;
        managed.push((name.to_owned(), buffer));
    }
    code.write(0, &memory)?;
    Ok(Loaded { code, image, managed })
}

/// Where an address of the object is in the image.
fn offset(image: &Image, vaddr: u64) -> Option<usize> {
    usize::try_from(image.address_of(vaddr).checked_sub(image.base())?).ok()
}

fn slice<'a>(memory: &'a [u8], image: &Image, vaddr: u64, bytes: usize) -> Option<&'a [u8]> {
    memory.get(offset(image, vaddr)?..)?.get(..bytes)
}

/// One buffer per argument that is one, filled.
fn buffers(gpu: &Gpu, case: &Case) -> Result<Vec<Option<Buffer>>, RunError> {
    let mut buffers = Vec::new();
    for arg in &case.args {
        buffers.push(match arg {
            Arg::Buffer(content) => {
                let buffer = gpu.allocate(&data(content.len()).label("kernel buffer"))?;
                buffer.write(0, content)?;
                Some(buffer)
            }
            Arg::Value(_) | Arg::Null => None,
        });
    }
    Ok(buffers)
}

/// The kernarg segment.
fn arguments(
    case: &Case,
    kernel: &hsaco::Kernel<'_>,
    buffers: &[Option<Buffer>],
    dimensions: u16,
) -> Result<Vec<u8>, RunError> {
    let mut builder = kernel.arguments().builder()?;
    for (arg, buffer) in case.args.iter().zip(buffers) {
        match (arg, buffer) {
            (Arg::Value(bytes), _) => builder.push(bytes)?,
            (_, Some(buffer)) => builder.push(&buffer.addr().get().to_le_bytes())?,
            (_, None) => builder.push(&[0; 8])?,
        };
    }
    let geometry =
        Geometry::new(case.grid, case.group, dimensions)?.dynamic_lds_bytes(case.dynamic_lds_bytes);
    Ok(builder.finish(&HiddenValues::new(geometry))?)
}

/// Where a queue stands now.
pub fn indices(queue: &Queue) -> Indices {
    let state = queue.state();
    Indices { read: state.read_index, write: state.write_index }
}

/// Where a queue stands once the device has taken back every slot, or after a while.
fn settled(queue: &Queue) -> Indices {
    let start = Instant::now();
    loop {
        let now = indices(queue);
        if now.read == now.write || start.elapsed() > READ_INDEX_GRACE {
            return now;
        }
        std::thread::yield_now();
    }
}

/// GPU ticks between start and end, where the GPU stamped the signal.
fn ticks(signal: &Signal) -> Option<u64> {
    let (start, end) = signal.timestamps();
    if start == 0 && end == 0 { None } else { end.checked_sub(start) }
}

fn read_all(buffer: &Buffer) -> Result<Vec<u8>, RunError> {
    let too_large = |_| RunError::Size { what: "a buffer", value: buffer.bytes() };
    let mut bytes = vec![0; usize::try_from(buffer.bytes()).map_err(too_large)?];
    buffer.read(0, &mut bytes)?;
    Ok(bytes)
}

/// A variable's bytes after the launch; of a managed one what its pointer leads to.
fn read_variable(object: &CodeObject<'_>, loaded: &Loaded, name: &str) -> Option<Vec<u8>> {
    if let Some((_, buffer)) = loaded.managed.iter().find(|(managed, _)| managed == name) {
        return read_all(buffer).ok();
    }
    let variable = object.variable(name)?;
    let mut bytes = vec![0; usize::try_from(variable.bytes).ok()?];
    let start = length(offset(&loaded.image, variable.vaddr)?);
    loaded.code.read(start, &mut bytes).ok()?;
    Some(bytes)
}
