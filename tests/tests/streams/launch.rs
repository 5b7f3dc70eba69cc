//! Launches: what they compute, and what is refused before anything is submitted.

use std::time::Duration;

use hip::{Error, Grid, LaunchProblem, Module, Runtime, Stream, StreamRequest};
use hsaco::ArgumentError;
use kfd::MemoryRequest;
use kfd_model::{Model, Preset, Target};
use kfd_tests::{each_device, each_target, every_target};

use super::{Adder, N, code, kinds};

#[test]
fn launches_run_in_order_on_every_target() {
    every_target(|device| {
        let adder = Adder::new(device);
        for kind in kinds(&adder.device) {
            let mut stream = adder.stream(kind);
            adder.set(0, |i| i as f32);
            adder.set(1, |_| 1.0);
            // c = a + b; a = c + b; c = a + b: a + 3 b, if in order.
            for (to, a, b) in [(2, 0, 1), (0, 2, 1), (2, 0, 1)] {
                adder.add(&mut stream, to, a, b);
            }
            stream.synchronize().unwrap();
            let sums = adder.get(2);
            let right = sums.iter().zip(0..N).all(|(sum, i)| *sum == i as f32 + 3.0);
            assert!(right, "{kind:?}: {sums:?}");
        }
    });
}

#[test]
fn more_launches_than_ring_and_arguments_hold_all_run() {
    each_device(|device| {
        let adder = Adder::new(device);
        for kind in kinds(&adder.device) {
            let mut stream = adder.stream(kind.packets(64).kernarg_bytes(4096));
            adder.set(0, |i| i as f32);
            adder.set(1, |_| 1.0);
            for _ in 0..500 {
                adder.add(&mut stream, 0, 0, 1);
            }
            stream.synchronize().unwrap();
            assert!((500..502).contains(&stream.submitted()));
            assert_eq!(adder.get(0)[7], 507.0, "{kind:?}");
        }
    });
}

#[test]
fn a_ring_is_used_from_every_offset() {
    each_device(|device| {
        let adder = Adder::new(device);
        for kind in kinds(&adder.device) {
            adder.set(1, |_| 1.0);
            let mut stream = adder.stream(kind.packets(64).kernarg_bytes(4096));
            let mut sum = 0.0;
            adder.set(0, |_| 0.0);
            // Bursts of changing lengths: each offset is the first of one.
            for burst in 0..64 {
                let launches = 3 + burst % 5;
                for _ in 0..launches {
                    adder.add(&mut stream, 0, 0, 1);
                    sum += 1.0;
                }
                stream.synchronize().unwrap();
                assert_eq!(adder.get(0)[N as usize - 1], sum, "{kind:?} burst {burst}");
            }
        }
    });
}

#[test]
fn what_a_kernel_cannot_be_launched_with_is_refused_and_leaves_nothing() {
    each_device(|device| {
        let adder = Adder::new(device);
        let mut stream = adder.stream(StreamRequest::aql());
        let [a, b, c] = &adder.vectors;
        let good = Grid::items([N, 1, 1], [64, 1, 1]);
        let mut refused = |grid: Grid| match stream.launch(&adder.vadd, &grid, (a, b, c, N)) {
            Err(Error::Launch { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
        assert!(matches!(refused(Grid::items([0, 1, 1], [64, 1, 1])), LaunchProblem::Empty { .. }));
        assert!(matches!(
            refused(Grid::blocks([1, 1, 1], [64, 0, 1])),
            LaunchProblem::Empty { .. }
        ));
        let over = refused(Grid::items([1, 1, 1], [1025, 1, 1]));
        assert!(matches!(over, LaunchProblem::Group { items: 1025, .. }), "{over:?}");
        let over = refused(Grid::blocks([1 << 27, 1, 1], [64, 1, 1]));
        assert!(matches!(over, LaunchProblem::Grid { .. }), "{over:?}");
        let over = refused(good.dynamic_lds(65537));
        assert!(matches!(over, LaunchProblem::Lds { bytes: 65537, max: 65536, .. }), "{over:?}");
        let short = stream.launch(&adder.vadd, &good, (a, b, c)).unwrap_err();
        assert!(short.to_string().contains("vadd"), "{short}");
        let expected = ArgumentError::Count { given: 3, expected: 4 };
        let Error::Launch { problem: LaunchProblem::Arguments(found), .. } = short else {
            panic!("{short}")
        };
        assert_eq!(found, expected);
        let wide = stream.launch(&adder.vadd, &good, (a, b, c, u64::from(N)));
        let expected = ArgumentError::Size { index: 3, given: 8, expected: 4 };
        assert!(
            matches!(wide, Err(Error::Launch { problem: LaunchProblem::Arguments(e), .. }) if e == expected)
        );
        assert_eq!(stream.submitted(), 0);
        stream.synchronize().unwrap();
        assert_eq!(stream.submitted(), 0);
    });
}

#[test]
fn kernels_get_dimensions_dynamic_lds_and_scratch() {
    each_target(|device| {
        let runtime = Runtime::new(device.kfd.clone()).unwrap();
        let gpu = &runtime.devices()[0];
        let target = gpu.gpu().gfx_version().to_string();
        for program in ["dims", "dynlds", "stack", "globals", "abi_args"] {
            let module = Module::load(gpu, &code(&target, program)).unwrap();
            assert!(module.functions().count() > 0);
            for name in module.functions() {
                module.function(name).unwrap();
            }
        }
        let error = Module::load(gpu, b"nonsense").unwrap_err();
        assert!(matches!(error, Error::Object(_)), "{error}");
    });
}

#[test]
fn a_function_of_another_device_is_refused() {
    let model = Model::builder().gpu(Preset::gfx90a()).gpu(Preset::gfx1100()).build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    let adder = Adder::on(runtime.clone(), 0);
    let mut stream = Stream::new(&runtime.devices()[1], StreamRequest::aql()).unwrap();
    let [a, b, c] = &adder.vectors;
    let grid = Grid::items([N, 1, 1], [64, 1, 1]);
    let error = stream.launch(&adder.vadd, &grid, (a, b, c, N)).unwrap_err();
    assert!(matches!(error, Error::OtherDevice { what: "the function", .. }), "{error}");
}

#[test]
fn streams_of_sizes_that_cannot_be_are_refused_by_name() {
    each_device(|device| {
        let runtime = Runtime::new(device.kfd.clone()).unwrap();
        let gpu = &runtime.devices()[0];
        for request in [
            StreamRequest::aql().packets(63),
            StreamRequest::aql().packets(0),
            StreamRequest::aql().kernarg_bytes(5000),
            StreamRequest::aql().kernarg_bytes(0),
            StreamRequest::aql().priority(16),
        ] {
            assert!(Stream::new(gpu, request).is_err(), "{request:?}");
        }
    });
}

#[test]
fn memory_dropped_while_a_kernel_uses_it_outlives_the_kernel() {
    each_device(|device| {
        let adder = Adder::new(device);
        let mut stream = adder.stream(StreamRequest::aql());
        adder.set(0, |_| 1.0);
        for _ in 0..20 {
            let request = MemoryRequest::gtt(u64::from(N) * 4);
            let scratch = adder.device.allocate(&request).unwrap();
            let [a, _, c] = &adder.vectors;
            let grid = Grid::items([N, 1, 1], [64, 1, 1]);
            stream.launch(&adder.vadd, &grid, (a, a, &scratch, N)).unwrap();
            stream.launch(&adder.vadd, &grid, (a, &scratch, c, N)).unwrap();
        }
        stream.finish(Duration::from_secs(30)).unwrap();
        assert_eq!(adder.get(2)[0], 3.0);
    });
}

#[test]
fn a_pm4_stream_on_a_gpu_of_several_xccs_is_refused_with_the_reason() {
    let model = Model::builder().gpu(Preset::of(Target::Gfx942)).build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    let error = Stream::new(&runtime.devices()[0], StreamRequest::pm4()).unwrap_err();
    assert!(error.to_string().contains("XCC") && error.to_string().contains("AQL"), "{error}");
}
