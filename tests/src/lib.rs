//! Harness of the integration tests: loads a code object and launches its kernels through the
//! driver alone.
#![deny(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a harness of tests: failing loudly is its use

use std::time::Duration;

use aql::{FenceScope, Packet, packet::KernelDispatch};
use hsaco::{CodeObject, Geometry, HiddenValues, Image};
use kfd::{Buffer, Error, Gpu, KernelLabel, Kfd, MemoryRequest, Queue, Signal, Until};

/// A code object in a GPU's memory.
pub struct Program<'object> {
    object: CodeObject<'object>,
    image: Image,
    _code: Buffer,
}

/// A launch: what must stay until it has ended.
pub struct Launched {
    /// Falls to 0 when the kernel has ended.
    pub signal: Signal,
    _kernarg: Buffer,
}

/// `bytes` up to whole pages.
pub fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

impl<'object> Program<'object> {
    /// Loads `object`.
    pub fn load(gpu: &Gpu, object: &'object [u8]) -> Self {
        let object = CodeObject::parse(object).expect("a fixture parses");
        let bytes = pages(object.load_bytes());
        let code = gpu.allocate(&MemoryRequest::gtt(bytes).executable()).expect("memory for code");
        let image = object.image(code.addr().get()).expect("a fixture loads");
        code.write(0, image.bytes()).expect("the image fits");
        Self { object, image, _code: code }
    }

    /// The dispatch packet of `kernel` and its arguments, each given by its bytes.
    pub fn packet(
        &self,
        gpu: &Gpu,
        kernel: &str,
        grid: [u32; 3],
        group: [u16; 3],
        arguments: &[&[u8]],
    ) -> (Packet, Launched) {
        let kernel = self.object.kernel(kernel).expect("the fixture has the kernel");
        let dimensions = match (grid, group) {
            ([_, 1, 1], [_, 1, 1]) => 1,
            ([_, _, 1], [_, _, 1]) => 2,
            _ => 3,
        };
        let geometry = Geometry::new(grid, group.map(u32::from), dimensions).expect("a geometry");
        let mut builder = kernel.arguments().builder().expect("the kernel takes arguments");
        for argument in arguments {
            builder.push(argument).expect("the argument fits");
        }
        let bytes = builder.finish(&HiddenValues::new(geometry)).expect("all arguments are given");
        let kernarg = gpu.allocate(&MemoryRequest::gtt(pages(bytes.len() as u64).max(4096)));
        let kernarg = kernarg.expect("memory for arguments");
        kernarg.write(0, &bytes).expect("the arguments fit");
        let signal = gpu.create_signal(1).expect("a signal");
        let facts = kernel.launch_facts();
        let descriptor = self.image.address_of(kernel.descriptor_vaddr()).into();
        let packet = KernelDispatch::new(descriptor, grid, group)
            .expect("a dispatch")
            .kernarg(kernarg.addr())
            .private_segment(facts.private_bytes)
            .group_segment(facts.static_lds_bytes)
            .barrier()
            .acquire(FenceScope::SYSTEM)
            .release(FenceScope::SYSTEM)
            .completion(signal.addr());
        (packet.encode(), Launched { signal, _kernarg: kernarg })
    }

    /// Launches `kernel` under its name.
    pub fn launch(
        &self,
        kfd: &Kfd,
        gpu: &Gpu,
        queue: &Queue,
        kernel: &str,
        shape: ([u32; 3], [u16; 3]),
        arguments: &[&[u8]],
    ) -> Launched {
        let (packet, launched) = self.packet(gpu, kernel, shape.0, shape.1, arguments);
        queue.submit(&packet, kfd.register_kernel(kernel)).expect("room in the ring");
        launched
    }
}

/// Waits for a launch.
///
/// # Errors
/// What the driver says.
pub fn finish(queue: &Queue, launched: &Launched, timeout: Duration) -> Result<(), Error> {
    queue.wait(&launched.signal, Until::Below(1), timeout).map(drop)
}

/// The label of packets without a name.
pub const UNNAMED: KernelLabel = KernelLabel::NONE;
