//! The heap, host functions, reports; and what is made when.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::hip::{Error, Grid, Module, Runtime, ServicesConfig, StreamRequest};
use ::hostcall::needs::Evidence;
use ::hostcall::service::{HeapLimits, SLAB_BYTES};
use ::hostcall::{Count, Transport};
use hsaco::Needs;
use kfd::MemoryRequest;
use kfd_model::{Model, Preset};
use kfd_tests::each_device;

use super::{Host, LIMIT, each_fixture};
use crate::streams::{code, kinds};

/// An id that a kernel could take for the address of a function.
const FUNCTION: u64 = 0x5555_5555_4321;

fn words(memory: &::hip::Memory) -> Vec<u64> {
    let mut bytes = vec![0; usize::try_from(memory.bytes()).unwrap()];
    memory.read(0, &mut bytes).unwrap();
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

#[test]
fn kernels_of_streams_allocate_write_and_free() {
    each_fixture(|device| {
        let host = Host::new(device);
        let function = host.function("devmalloc", "heap");
        let output = host.device.allocate(&MemoryRequest::gtt(4 * 64)).unwrap();
        for kind in kinds(&host.device) {
            let mut stream = host.stream(kind);
            output.write(0, &[0; 4 * 64]).unwrap();
            let grid = Grid::items([64, 1, 1], [64, 1, 1]);
            stream.launch(&function, &grid, (&output,)).unwrap();
            stream.synchronize_within(LIMIT).unwrap();
            let mut bytes = [0; 4 * 64];
            output.read(0, &mut bytes).unwrap();
            for (t, bytes) in (0..).zip(bytes.as_chunks::<4>().0) {
                assert_eq!(u32::from_le_bytes(*bytes), 3 * t, "work-item {t}, {kind:?}");
            }
        }
        let services = host.device.services().unwrap();
        assert!(services.heap().live_blocks() >= 1);
        assert_eq!(services.heap().live_bytes() % SLAB_BYTES, 0);
    });
}

#[test]
fn a_heap_limit_is_set_between_launches_and_not_while_one_is_in_flight() {
    each_device(|device| {
        let host =
            Host::with(device, ServicesConfig::new().heap(HeapLimits { bytes: 0, blocks: 0 }));
        let function = host.function("devmalloc", "heap");
        let output = host.device.allocate(&MemoryRequest::gtt(4 * 32)).unwrap();
        let services = host.device.services().unwrap();
        let run = || {
            let mut stream = host.stream(StreamRequest::aql());
            let grid = Grid::items([32, 1, 1], [32, 1, 1]);
            stream.launch(&function, &grid, (&output,)).unwrap();
            stream.synchronize_within(LIMIT).unwrap();
            let mut bytes = [0; 4 * 32];
            output.read(0, &mut bytes).unwrap();
            bytes
        };
        assert_eq!(run(), [0xff; 4 * 32]);
        assert!(services.counters().get(Count::HeapExhausted) > 0);
        services.set_heap_limits(HeapLimits::DEFAULT).unwrap();
        assert_ne!(run(), [0xff; 4 * 32]);
    });
}

#[test]
fn kernels_of_streams_call_registered_functions_over_both_transports() {
    for transport in [Transport::Stack, Transport::Phase] {
        each_device(|device| {
            let calls = Arc::<AtomicU64>::default();
            let theirs = Arc::clone(&calls);
            let function = move |arguments: &[u64; 7]| {
                theirs.fetch_add(1, Ordering::Relaxed);
                [arguments[0] + 7, arguments[1] * arguments[0]]
            };
            let config = ServicesConfig::new().function(FUNCTION, function).unwrap();
            let host = Host::with(device, config.transport(transport));
            let (program, kernel) = match transport {
                Transport::Stack => ("hostcall", "call_host"),
                _ => ("phase", "phase_call"),
            };
            let module = host.load(program);
            let needs = module.services().unwrap();
            assert_eq!((needs.transport(), needs.evidence()), (transport, Evidence::Chosen));
            let kernel = module.function(kernel).unwrap();
            let items = 200_u32;
            let output = host.device.allocate(&MemoryRequest::gtt(16 * 200)).unwrap();
            let expected: Vec<u64> = (0..u64::from(items)).flat_map(|t| [1007, t * 1000]).collect();
            for kind in kinds(&host.device) {
                let mut stream = host.stream(kind);
                let grid = Grid::items([items, 1, 1], [items, 1, 1]);
                match transport {
                    Transport::Stack => {
                        stream.launch(&kernel, &grid, (&output, FUNCTION, 1000_u64)).unwrap();
                    }
                    _ => {
                        let arguments = (&output, FUNCTION, 1000_u64, 1_u64);
                        stream.launch(&kernel, &grid, arguments).unwrap();
                    }
                }
                stream.synchronize_within(LIMIT).unwrap();
                assert_eq!(words(&output), expected, "{kind:?}");
            }
            assert_eq!(calls.load(Ordering::Relaxed), 200 * kinds(&host.device).len() as u64);
        });
    }
}

#[test]
fn an_unregistered_function_is_an_error_word_and_the_next_launch_works() {
    each_device(|device| {
        let host = Host::new(device);
        let function = host.function("hostcall", "call_host");
        let output = host.device.allocate(&MemoryRequest::gtt(16 * 64)).unwrap();
        let mut stream = host.stream(StreamRequest::aql());
        let grid = Grid::items([64, 1, 1], [64, 1, 1]);
        for _ in 0..2 {
            stream.launch(&function, &grid, (&output, FUNCTION, 1000_u64)).unwrap();
            stream.synchronize_within(LIMIT).unwrap();
            assert_eq!(words(&output), [u64::MAX, 0].repeat(64));
        }
        let counters = host.device.services().unwrap();
        assert_eq!(counters.counters().get(Count::UnknownFunction), 128);
    });
}

#[test]
fn nothing_exists_before_the_first_module_that_needs_a_service() {
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let model = Model::builder().gpu(preset).build();
        let runtime =
            Runtime::new(kfd::Kfd::open_on(Arc::<Model>::clone(&model)).unwrap()).unwrap();
        let device = &runtime.devices()[0];
        let target = device.gpu().gfx_version().to_string();
        let plain = Module::load(device, &code(&target, "vadd")).unwrap();
        assert!(plain.services().is_none() && device.services().is_none());
        assert_eq!(plain.lacking(), Needs::empty());
        let before = model.live();
        let module = Module::load(device, &code(&target, "printf")).unwrap();
        assert!(module.services().is_some() && device.services().is_some());
        assert_eq!(module.lacking(), Needs::empty());
        // The code, and the doorbell's event; pools come with launches.
        assert!(model.live().buffers > before.buffers);
        let late = device.configure_services(ServicesConfig::new()).unwrap_err();
        assert!(matches!(late, Error::Unsupported { .. }), "{late}");
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_nothing_is_in_flight() {
    each_device(|device| {
        let host = Host::new(device);
        let mut stream = host.stream(StreamRequest::aql());
        for program in ["printf", "printf_buffered"] {
            let function = host.function(program, "hello");
            let grid = Grid::items([1, 1, 1], [1, 1, 1]);
            let short = stream.launch(&function, &grid, (5_u32,)).unwrap_err();
            assert!(matches!(short, Error::Launch { .. }), "{short}");
            let large = Grid::items([1, 1, 1], [1025, 1, 1]);
            let refused = stream.launch(&function, &large, (5_u32, 0_u64)).unwrap_err();
            assert!(matches!(refused, Error::Launch { .. }), "{refused}");
        }
        assert_eq!(host.device.services().unwrap().in_flight(), 0);
        assert_eq!(stream.submitted(), 0);
    });
}
