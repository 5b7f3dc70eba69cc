//! Both kinds of printf: text compared byte for byte with what the CPU prints.

use std::time::Duration;

use ::hip::{Grid, ServicesConfig, StreamRequest};
use kfd_tests::each_device;

use super::{Host, LIMIT, each_fixture, hello};
use crate::streams::kinds;

const NAME: u64 = 0x1234_5678_9abc;

/// Launches the fixture's `hello` on every kind of stream and compares what it prints.
fn prints_hello(host: &Host, fixture: &str) {
    let function = host.function(fixture, "hello");
    for kind in kinds(&host.device) {
        let mut stream = host.stream(kind);
        let grid = Grid::items([96, 1, 1], [48, 1, 1]);
        stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
        stream.synchronize_within(LIMIT).unwrap();
        let mut found = host.text();
        found.sort_unstable();
        assert_eq!(found, hello(5, NAME, 96, 48), "{kind:?}");
    }
}

#[test]
fn blocking_printf_prints_what_the_cpu_prints_on_every_kind_of_stream() {
    each_fixture(|device| {
        let host = Host::new(device);
        prints_hello(&host, "printf");
        let services = host.device.services().unwrap();
        assert_eq!((services.printed().odd, services.printed().refused), (0, 0));
        assert_eq!(services.in_flight(), 0);
    });
}

#[test]
fn buffered_printf_prints_what_the_cpu_prints_on_every_kind_of_stream() {
    each_fixture(|device| {
        let host = Host::new(device);
        prints_hello(&host, "printf_buffered");
        let stats = host.device.services().unwrap().buffered();
        assert_eq!((stats.odd, stats.broken, stats.lost_bytes), (0, 0, 0));
        assert_eq!(stats.launches, kinds(&host.device).len() as u64);
    });
}

#[test]
fn buffered_text_comes_in_the_order_of_the_launches_each_from_its_own_buffer() {
    each_device(|device| {
        let host = Host::new(device);
        let function = host.function("printf_buffered", "hello");
        for kind in kinds(&host.device) {
            let mut stream = host.stream(kind);
            let grid = Grid::items([1, 1, 1], [1, 1, 1]);
            for launch in 0..100_u32 {
                stream.launch(&function, &grid, (launch, NAME)).unwrap();
            }
            stream.synchronize_within(LIMIT).unwrap();
            let hellos = (0..100).map(|launch| format!("hello from {launch} of block 0\n"));
            let expected: Vec<String> =
                hellos.flat_map(|hello| [hello, "no args\n".to_owned()]).collect();
            assert_eq!(host.text(), expected, "{kind:?}");
        }
    });
}

#[test]
fn buffered_text_of_a_launch_that_nobody_waits_for_is_printed_and_the_drain_then_sleeps() {
    each_device(|device| {
        let host = Host::new(device);
        let function = host.function("printf_buffered", "hello");
        for kind in kinds(&host.device) {
            let mut stream = host.stream(kind);
            let grid = Grid::items([1, 1, 1], [1, 1, 1]);
            stream.launch(&function, &grid, (7_u32, NAME)).unwrap();
            host.wait_until_quiet();
            assert_eq!(host.text(), ["hello from 7 of block 0\n", "no args\n"], "{kind:?}");
            let services = host.device.services().unwrap();
            let passes =
                |services: &::hip::Services| services.counters().get(::hostcall::Count::Passes);
            // The pass that it is in may end.
            std::thread::sleep(Duration::from_millis(20));
            let before = passes(&services);
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(passes(&services), before);
        }
    });
}

#[test]
fn a_buffer_that_is_full_keeps_what_fits_and_the_next_launch_prints_all() {
    each_device(|device| {
        let host = Host::with(device, ServicesConfig::new().printf_bytes(4096));
        let function = host.function("printf_buffered", "hello");
        let mut stream = host.stream(StreamRequest::aql());
        let grid = Grid::items([512, 1, 1], [256, 1, 1]);
        stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
        stream.synchronize_within(LIMIT).unwrap();
        let (found, all) = (host.text(), hello(5, NAME, 512, 256));
        assert!(found.len() > 64 && found.len() < all.len(), "{} of {}", found.len(), all.len());
        assert!(found.iter().all(|line| all.contains(line)));
        stream.launch(&function, &Grid::items([4, 1, 1], [4, 1, 1]), (5_u32, NAME)).unwrap();
        stream.synchronize_within(LIMIT).unwrap();
        let mut found = host.text();
        found.sort_unstable();
        assert_eq!(found, hello(5, NAME, 4, 4));
    });
}

#[test]
fn two_streams_print_at_once_and_no_line_is_lost_or_cut() {
    each_device(|device| {
        let host = Host::new(device);
        for program in ["printf", "printf_buffered"] {
            let function = host.function(program, "hello");
            let grid = Grid::items([128, 1, 1], [64, 1, 1]);
            std::thread::scope(|scope| {
                for (thread, kind) in kinds(&host.device).into_iter().enumerate() {
                    let base = 1000 * u32::try_from(thread).unwrap();
                    let (host, function, grid) = (&host, &function, &grid);
                    scope.spawn(move || {
                        let mut stream = host.stream(kind);
                        for _ in 0..3 {
                            stream.launch(function, grid, (base, NAME)).unwrap();
                        }
                        stream.synchronize_within(LIMIT).unwrap();
                    });
                }
            });
            let mut found = host.text();
            found.sort_unstable();
            let bases = (0..kinds(&host.device).len()).map(|t| 1000 * u32::try_from(t).unwrap());
            let launches = bases.flat_map(|base| [base; 3]);
            let mut expected: Vec<String> =
                launches.flat_map(|base| hello(base, NAME, 128, 64)).collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "{program}");
        }
    });
}

#[test]
fn thousands_of_work_items_print_and_each_line_arrives_once() {
    each_device(|device| {
        let host = Host::new(device);
        for (program, items) in [("printf", 4096_u32), ("printf_buffered", 16384)] {
            let function = host.function(program, "hello");
            let mut stream = host.stream(StreamRequest::aql());
            let grid = Grid::items([items, 1, 1], [256, 1, 1]);
            stream.launch(&function, &grid, (5_u32, NAME)).unwrap();
            stream.synchronize_within(LIMIT).unwrap();
            let mut found = host.text();
            found.sort_unstable();
            assert!(found == hello(5, NAME, items, 256), "{program}: {} lines", found.len());
        }
    });
}
