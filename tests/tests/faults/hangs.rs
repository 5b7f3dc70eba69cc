//! Kernels that do not end.

use super::*;

#[test]
fn an_endless_kernel_ends_the_wait_at_its_bound_and_its_queue_can_be_destroyed() {
    each(|device| {
        let bench = Bench::new(device);
        let _launch = bench.launch("endless", &[]);
        check_hang(&bench.hang(), bench.queue.id(), "endless");
        bench.second_queue_works();
        check_hang(&bench.hang(), bench.queue.id(), "endless");
        let start = Instant::now();
        let Bench { queue, .. } = bench;
        queue.destroy().unwrap();
        assert!(start.elapsed() < SOON);
    });
}

#[test]
fn a_kernel_that_spins_sees_the_hosts_store_and_ends() {
    each_of_many(|device| {
        let bench = Bench::new(device);
        let request = MemoryRequest::gtt(4096).coherent().uncached();
        let memory = bench.gpu.allocate(&request).unwrap();
        let address = memory.addr().get();
        let _launch = bench.launch("spin_until", &[address, address + 64]);
        check_hang(&bench.hang(), bench.queue.id(), "spin_until");
        memory.u32(0).unwrap().store(1, std::sync::atomic::Ordering::Release);
        bench.wait(LONG).unwrap();
        assert_eq!(memory.u32(64).unwrap().load(std::sync::atomic::Ordering::Acquire), 7);
    });
}

#[test]
fn a_suspended_queue_runs_no_wave_until_it_is_resumed() {
    each_device(|device| {
        if !has_kernels(device) {
            return;
        }
        let bench = Bench::new(device);
        let request = MemoryRequest::gtt(4096).coherent().uncached();
        let memory = bench.gpu.allocate(&request).unwrap();
        let (stop, out) = (memory.u32(0).unwrap(), memory.u32(64).unwrap());
        let address = memory.addr().get();
        let _launch = bench.launch("spin_until", &[address, address + 64]);
        // It runs: the wait ends by time only.
        bench.hang();
        bench.queue.suspend().unwrap();
        stop.store(1, std::sync::atomic::Ordering::Release);
        bench.hang();
        assert_eq!(out.load(std::sync::atomic::Ordering::Acquire), 0);
        bench.queue.resume().unwrap();
        bench.wait(LONG).unwrap();
        assert_eq!(out.load(std::sync::atomic::Ordering::Acquire), 7);
    });
}

#[test]
fn a_device_with_an_endless_kernel_can_be_dropped() {
    each_device(|device| {
        if !has_kernels(device) {
            return;
        }
        let bench = Bench::new(device);
        let launch = bench.launch("endless", &[]);
        std::thread::sleep(Duration::from_millis(20));
        let start = Instant::now();
        // The queue goes before the code it runs.
        let Bench { queue, program, done, gpu, .. } = bench;
        drop(queue);
        drop((launch, program, done, gpu));
        assert!(start.elapsed() < SOON);
    });
}
