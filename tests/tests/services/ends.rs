//! Ends: dropped streams, faults, forks, sinks that panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::hip::{Error, Grid, Module, Runtime, ServicesConfig, StreamRequest};
use ::hostcall::Count;
use ::hostcall::sink::Callback;
use kfd_tests::process::in_child;
use kfd_tests::program::faults;
use kfd_tests::{each_device, each_model};

use super::{Host, LIMIT, hello};
use crate::streams::kinds;

const NAME: u64 = 0x1234;

#[test]
fn text_printed_before_a_fault_arrives_and_the_fault_is_reported() {
    for program in ["printf", "printf_buffered"] {
        for which in 0..3 {
            each_model(kfd_model::Model::builder, |device| {
                let host = Host::new(device);
                let Some(kind) = kinds(&host.device).get(which).copied() else { return };
                let module = Module::load(&host.device, faults(&device.target())).unwrap();
                let wild = module.function("wild_store").unwrap();
                let function = host.function(program, "hello");
                let mut stream = host.stream(kind.farewell(Duration::from_millis(50)));
                let grid = Grid::items([64, 1, 1], [64, 1, 1]);
                stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
                let one = Grid::items([1, 1, 1], [1, 1, 1]);
                stream.launch(&wild, &one, (0x7000_0000_0000_u64,)).unwrap();
                let error = stream.synchronize_within(LIMIT).unwrap_err();
                let lost = matches!(error, Error::Driver(kfd::Error::DeviceLost(_)));
                assert!(lost, "{kind:?}: {error}");
                drop(stream);
                let mut found = host.text();
                found.sort_unstable();
                assert_eq!(found, hello(5, NAME, 64, 64), "{program}, {kind:?}");
                host.wait_until_quiet();
            });
        }
    }
}

#[test]
fn a_stream_dropped_while_its_kernels_print_leaves_nothing_behind() {
    each_device(|device| {
        let host = Host::new(device);
        for program in ["printf", "printf_buffered"] {
            let function = host.function(program, "hello");
            for kind in kinds(&host.device) {
                let mut stream = host.stream(kind.farewell(LIMIT));
                let grid = Grid::items([64, 1, 1], [64, 1, 1]);
                for _ in 0..3 {
                    stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
                }
                drop(stream);
                assert_eq!(host.text().len(), 3 * hello(5, NAME, 64, 64).len(), "{kind:?}");
                // At once, and not with the kernel.
                let mut stream = host.stream(kind.farewell(Duration::ZERO));
                stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
                drop(stream);
                host.wait_until_quiet();
                host.text();
            }
        }
    });
}

#[test]
fn the_runtime_can_go_before_its_streams_and_its_modules() {
    each_device(|device| {
        let host = Host::new(device);
        let function = host.function("printf", "hello");
        let mut stream = host.stream(StreamRequest::aql());
        let lines = Arc::clone(&host.lines);
        drop(host);
        let grid = Grid::items([64, 1, 1], [64, 1, 1]);
        stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
        stream.synchronize_within(LIMIT).unwrap();
        drop(function);
        drop(stream);
        // The last of them has ended the writer, which wrote all.
        let mut found = std::mem::take(&mut *lines.lock().unwrap());
        found.sort_unstable();
        assert_eq!(found, hello(5, NAME, 64, 64));
    });
}

#[test]
fn a_panic_in_a_sink_is_counted_and_the_kernel_and_the_next_ones_go_on() {
    each_device(|device| {
        let runtime = Runtime::new(device.kfd.clone()).unwrap();
        let gpu = runtime.devices()[0].clone();
        let taken = Arc::<AtomicU64>::default();
        let theirs = Arc::clone(&taken);
        let sink = Callback(move |_, _: &[u8]| {
            // Every second message is too much for it. Not through the hook: its lock, taken while
            // another test forks, would hold up the child.
            if theirs.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                std::panic::resume_unwind(Box::new("a sink"));
            }
        });
        gpu.configure_services(ServicesConfig::new().sink(sink)).unwrap();
        let mut total = 0;
        for program in ["printf", "printf_buffered"] {
            let code = crate::streams::code(&device.target(), program);
            let function = Module::load(&gpu, &code).unwrap().function("hello").unwrap();
            let mut stream = ::hip::Stream::new(&gpu, StreamRequest::aql().scratch(4096)).unwrap();
            let grid = Grid::items([32, 1, 1], [32, 1, 1]);
            for _ in 0..2 {
                stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
                stream.synchronize_within(LIMIT).unwrap();
                total += hello(5, NAME, 32, 32).len() as u64;
            }
        }
        let services = gpu.services().unwrap();
        assert!(services.flush(LIMIT));
        assert_eq!(taken.load(Ordering::Relaxed), total);
        assert_eq!(services.counters().get(Count::SinkFailures), total / 2);
    });
}

#[test]
fn a_forked_child_can_drop_everything_and_the_parent_goes_on_printing() {
    each_device(|device| {
        let host = Host::new(device);
        let function = host.function("printf", "hello");
        let mut stream = host.stream(StreamRequest::aql());
        let grid = Grid::items([32, 1, 1], [32, 1, 1]);
        stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
        stream.synchronize_within(LIMIT).unwrap();
        let mut owned = Some((host, function, stream));
        in_child(LIMIT, || {
            let (host, function, mut stream) = owned.take().unwrap();
            assert!(stream.launch(&function, &grid, (5_u32, NAME)).is_err());
            drop((stream, function, host));
        })
        .unwrap();
        let (host, function, mut stream) = owned.take().unwrap();
        stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
        stream.synchronize_within(LIMIT).unwrap();
        assert_eq!(host.text().len(), 2 * hello(5, NAME, 32, 32).len());
    });
}
