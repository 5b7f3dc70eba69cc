//! What several topics use.

use std::time::Duration;

use aql::{BarrierAnd, Packet};
use kfd::{Gpu, KernelLabel, Kfd, Queue, QueueRequest, Signal, Until};

/// Long enough for anything that happens at all, on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// A packet that does nothing but complete `signal`.
pub fn noop(signal: &Signal) -> Packet {
    BarrierAnd::noop().completion(signal.addr()).encode()
}

/// A packet that waits until `gate` is 0.
pub fn wait_for(gate: &Signal) -> Packet {
    let none = pm4::GpuAddr::NULL;
    BarrierAnd::new([gate.addr(), none, none, none, none]).encode()
}

/// Sends `count` packets through `queue` and waits for them.
pub fn run_noops(gpu: &Gpu, queue: &Queue, count: u32) -> kfd::Result<()> {
    let signal = gpu.create_signal(count.into())?;
    for _ in 0..count {
        queue.submit_within(&noop(&signal), KernelLabel::NONE, LONG)?;
    }
    queue.wait(&signal, Until::Below(1), LONG)?;
    Ok(())
}

/// Everything a small program does but running a kernel: memory, a queue, a packet, a wait.
pub fn use_everything(kfd: &Kfd) -> kfd::Result<()> {
    let gpu = kfd.first_gpu()?;
    let memory = gpu.allocate(&kfd::MemoryRequest::gtt(8192))?;
    memory.write(0, &[1; 8192])?;
    let queue = gpu.create_queue(&QueueRequest::aql(64))?;
    run_noops(&gpu, &queue, 3)?;
    queue.destroy()?;
    memory.free()
}

/// The queue once it has taken every packet: firmware moves the read index some time after it has
/// completed a packet's signal.
pub fn settled(queue: &Queue) -> kfd::report::QueueState {
    let deadline = std::time::Instant::now() + LONG;
    loop {
        let state = queue.state();
        if state.read_index == state.write_index || std::time::Instant::now() > deadline {
            return state;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
