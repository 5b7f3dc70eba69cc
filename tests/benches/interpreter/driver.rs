//! The same kernels as a user runs them: through the driver, from the doorbell to the signal.

use std::time::{Duration, Instant};

use aql::{KernelDispatch, Packet};
use hsaco::{CodeObject, Geometry, HiddenValues};
use kfd::{Buffer, KernelLabel, Kfd, MemoryRequest, Queue, QueueRequest, Signal, Until};
use kfd_model::{Model, Preset};

type Failure = Box<dyn std::error::Error>;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A launch that can be repeated.
pub struct Launcher {
    queue: Queue,
    packet: KernelDispatch,
    done: Signal,
    label: KernelLabel,
    result: Buffer,
    bytes: usize,
    _used: [Buffer; 4],
    _kfd: Kfd,
}

impl Launcher {
    /// Loads `kernel` on a software gfx1100 with one worker. Its arguments are the result and two
    /// inputs of the same length; groups have 256 work-items.
    pub fn new(
        object: &[u8],
        kernel: &str,
        groups: u32,
        inputs: [&[f32]; 2],
    ) -> Result<Self, Failure> {
        let kfd = Kfd::open_on(Model::builder().gpu(Preset::gfx1100()).workers(1).build())?;
        let gpu = kfd.first_gpu()?;
        let object = CodeObject::parse(object)?;
        let code = gpu.allocate(&MemoryRequest::gtt(object.load_bytes()).executable())?;
        let image = object.image(code.addr().get())?;
        code.write(0, image.bytes())?;
        let kernel = object.kernel(kernel).ok_or("no such kernel")?;
        let bytes = 4 * inputs[0].len();
        let array = || gpu.allocate(&MemoryRequest::gtt(bytes as u64).coherent());
        let [result, a, b] = [array()?, array()?, array()?];
        for (buffer, values) in [(&a, inputs[0]), (&b, inputs[1])] {
            let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            buffer.write(0, &values)?;
        }
        let grid = [256 * groups, 1, 1];
        let mut arguments = kernel.arguments().builder()?;
        for buffer in [&result, &a, &b] {
            arguments.push(&buffer.addr().get().to_le_bytes())?;
        }
        let packed = arguments.finish(&HiddenValues::new(Geometry::new(grid, [256, 1, 1], 1)?))?;
        let kernarg = gpu.allocate(&MemoryRequest::gtt(4096).coherent().uncached())?;
        kernarg.write(0, &packed)?;
        let facts = kernel.launch_facts();
        let queue = gpu.create_queue(&QueueRequest::aql(64).scratch(facts.private_bytes))?;
        let done = gpu.create_signal(1)?;
        let descriptor = image.address_of(kernel.descriptor_vaddr());
        let packet = KernelDispatch::new(descriptor.into(), grid, [256, 1, 1])?
            .kernarg(kernarg.addr())
            .private_segment(facts.private_bytes)
            .group_segment(facts.static_lds_bytes)
            .completion(done.addr());
        let label = kfd.register_kernel(kernel.name());
        let used = [code, a, b, kernarg];
        Ok(Self { queue, packet, done, label, result, bytes, _used: used, _kfd: kfd })
    }

    /// Runs it once.
    pub fn run(&self) -> Result<Duration, Failure> {
        self.done.set(1);
        let packet: Packet = self.packet.encode();
        let start = Instant::now();
        self.queue.submit(&packet, self.label)?;
        self.queue.wait(&self.done, Until::Below(1), TIMEOUT)?;
        Ok(start.elapsed())
    }

    /// What the last run computed.
    pub fn result(&self) -> Result<Vec<f32>, Failure> {
        let mut bytes = vec![0; self.bytes];
        self.result.read(0, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect())
    }
}
