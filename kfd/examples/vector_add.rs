//! A complete program on `kfd`, `aql` and `hsaco`: adds two vectors on the first GPU.
//!
//! `cargo run --example vector_add -- vadd.co` takes a code object for the GPU's target.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use aql::KernelDispatch;
use hsaco::{CodeObject, DeviceTarget, Geometry, HiddenValues};
use kfd::{Kfd, MemoryRequest, QueueRequest, Until};

const N: u32 = 1 << 16;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Adds two vectors with the kernel `vadd` of a code object and returns the sum.
pub fn run(kfd: Kfd, code_object: &[u8]) -> Result<Vec<f32>, Box<dyn Error>> {
    let gpu = kfd.first_gpu()?;
    let version = gpu.gfx_version().target_version();
    let target = DeviceTarget::new(version, gpu.has_sram_ecc(), kfd.xnack_enabled()?)?;

    // Code: relocated for the address it is loaded at.
    let object = CodeObject::parse(code_object)?;
    object.target().fits(&target)?;
    let code = gpu.allocate(&MemoryRequest::gtt(object.load_bytes()).executable().label("code"))?;
    let image = object.image(code.addr().get())?;
    code.write(0, image.bytes())?;
    let kernel = object.kernel("vadd").ok_or("the code object has no kernel named vadd")?;
    let facts = kernel.launch_facts();

    // Data: three vectors in one buffer, with one address for CPU and GPU.
    let bytes = u64::from(N) * 4;
    let data = gpu.allocate(&MemoryRequest::gtt(3 * bytes).coherent().label("vectors"))?;
    let input: Vec<u8> = (0..2 * N).flat_map(|i| (i as f32).to_le_bytes()).collect();
    data.write(0, &input)?;

    // Arguments, the hidden ones included.
    let geometry = Geometry::new([N, 1, 1], [256, 1, 1], 1)?;
    let mut arguments = kernel.arguments().builder()?;
    for vector in 0..3 {
        arguments.push(&(data.addr().get() + vector * bytes).to_le_bytes())?;
    }
    arguments.push(&N.to_le_bytes())?;
    let packed = arguments.finish(&HiddenValues::new(geometry))?;
    let kernarg = gpu.allocate(&MemoryRequest::gtt(packed.len() as u64).coherent().uncached())?;
    kernarg.write(0, &packed)?;

    // Launch, wait, read.
    let queue = gpu.create_queue(&QueueRequest::aql(64).scratch(facts.private_bytes))?;
    let done = gpu.create_signal(1)?;
    let descriptor = image.address_of(kernel.descriptor_vaddr());
    let packet = KernelDispatch::new(descriptor.into(), [N, 1, 1], [256, 1, 1])?
        .kernarg(kernarg.addr())
        .private_segment(facts.private_bytes)
        .group_segment(facts.static_lds_bytes)
        .completion(done.addr());
    queue.submit(&packet.encode(), kfd.register_kernel("vadd"))?;
    queue.wait(&done, Until::Below(1), TIMEOUT)?;
    let mut sum = vec![0; usize::try_from(bytes)?];
    data.read(2 * bytes, &mut sum)?;
    Ok(sum.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect())
}

#[allow(dead_code)] // a test includes this file for `run`
fn main() -> ExitCode {
    match program() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vector_add: {error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(dead_code)] // as above
fn program() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: vector_add CODE_OBJECT")?;
    let sum = run(Kfd::open()?, &std::fs::read(path)?)?;
    let right = sum.iter().zip(0..N).all(|(sum, i)| *sum == i as f32 + (N + i) as f32);
    println!("{} sums, {}", sum.len(), if right { "all right" } else { "wrong" });
    Ok(())
}
