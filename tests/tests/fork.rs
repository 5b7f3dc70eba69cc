//! Forked children: of a process that has not used the device, and of one that has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kfd::sys::Errno;
use kfd::{Error, KernelLabel, Kfd, MemoryRequest, QueueRequest, Until};
use kfd_model::Model;
use kfd_tests::each_device;
use kfd_tests::process::in_child;

use crate::support::{LONG, noop, run_noops, use_everything, wait_for};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_child_of_a_process_that_has_not_used_the_device_uses_it() {
    in_child(LIMIT, || {
        let kfd = Kfd::open_on(Model::builder().build()).unwrap();
        use_everything(&kfd).unwrap();
    })
    .unwrap();
}

#[test]
fn a_child_cannot_use_the_parents_device_and_can_open_its_own() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        run_noops(&gpu, &queue, 3).unwrap();
        in_child(LIMIT, || {
            let error = device.gpu().allocate(&MemoryRequest::gtt(4096)).unwrap_err();
            let Error::Ioctl { errno, .. } = &error else { panic!("{error:?}") };
            assert_eq!(*errno, Errno::BADF);
            assert!(error.to_string().contains("a forked child"), "{error}");
            let error = device.gpu().create_queue(&QueueRequest::aql(64)).unwrap_err();
            assert!(error.to_string().contains("a forked child"), "{error}");
            let own = Kfd::open_on(Arc::clone(device.kfd.kernel())).unwrap();
            use_everything(&own).unwrap();
        })
        .unwrap();
        run_noops(&gpu, &queue, 3).unwrap();
    });
}

#[test]
fn what_a_child_drops_stays_the_parents() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let buffer = gpu.allocate(&MemoryRequest::gtt(4096)).unwrap();
        buffer.write(0, &[7; 4096]).unwrap();
        let (gate, done) = (gpu.create_signal(1).unwrap(), gpu.create_signal(1).unwrap());
        queue.submit(&wait_for(&gate), KernelLabel::NONE).unwrap();
        queue.submit(&noop(&done), KernelLabel::NONE).unwrap();
        let live = device.try_model().map(|model| model.live());
        let mut owned = Some((queue, buffer, done));
        in_child(LIMIT, || drop(owned.take())).unwrap();
        assert_eq!(device.try_model().map(|model| model.live()), live);
        let (queue, buffer, done) = owned.unwrap();
        let mut back = [0; 4096];
        buffer.read(0, &mut back).unwrap();
        assert_eq!(back, [7; 4096]);
        gate.set(0);
        queue.wait(&done, Until::Below(1), LONG).unwrap();
        buffer.free().unwrap();
    });
}

/// Host memory that a GPU uses must not become copy-on-write in the parent: KFD would stop every
/// queue of the process to find the new pages.
#[test]
fn host_memory_of_the_gpu_is_not_inherited() {
    each_device(|device| {
        let buffer = device.gpu().allocate(&MemoryRequest::userptr(4096)).unwrap();
        let start = format!("{:x}-", buffer.addr().get());
        let inherited = move || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().any(|line| line.trim_start_matches('0').starts_with(&start))
        };
        assert!(inherited(), "the parent has it");
        in_child(LIMIT, || assert!(!inherited())).unwrap();
    });
}

/// Whatever another thread of the parent is in the middle of, the child opens a device of its own.
#[test]
fn a_fork_at_any_moment_leaves_a_usable_child_and_an_unharmed_parent() {
    let busy = Kfd::open_on(Model::builder().build()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                use_everything(&busy).unwrap();
            }
        });
        for round in 0..50 {
            let child = in_child(Duration::from_secs(20), || {
                let kfd = Kfd::open_on(Model::builder().stepped(true).build()).unwrap();
                use_everything(&kfd).unwrap();
            });
            if let Err(message) = child {
                stop.store(true, Ordering::Relaxed);
                panic!("fork {round}: {message}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    use_everything(&busy).unwrap();
}
