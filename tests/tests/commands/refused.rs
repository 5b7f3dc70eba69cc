//! What is refused, by name, before anything is submitted.

use hip::{
    CommandError, CommandKind, CommandRecorder, CommandRequest, CopyError, Error, Grid,
    LaunchProblem, Module, Runtime, StreamRequest,
};
use hsaco::ArgumentError;
use kfd_model::{Model, Preset};
use kfd_tests::{each_device, on_hardware, skip};

use super::{N, counter, grid, vector};
use crate::streams::Adder;

#[test]
fn what_a_kernel_cannot_be_launched_with_is_refused_when_it_is_recorded() {
    each_device(|device| {
        let adder = Adder::new(device);
        let [a, b, c] = &adder.vectors;
        let mut recorder = CommandRecorder::new(&adder.device, CommandRequest::new()).unwrap();
        let empty = recorder.kernel(&adder.vadd, &Grid::items([0, 1, 1], [1; 3]), (a, b, c, N));
        let problem = |result: hip::Result<hip::KernelId>| match result {
            Err(Error::Launch { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
        assert!(matches!(problem(empty), LaunchProblem::Empty { .. }));
        let short = recorder.kernel(&adder.vadd, &grid(), (a, b, c));
        let expected = ArgumentError::Count { given: 3, expected: 4 };
        assert_eq!(problem(short), LaunchProblem::Arguments(expected));
        let wide = recorder.kernel(&adder.vadd, &grid(), (a, b, c, 1_u64));
        let expected = ArgumentError::Size { index: 3, given: 8, expected: 4 };
        assert_eq!(problem(wide), LaunchProblem::Arguments(expected));
        // Nothing was recorded, and nothing is what runs.
        let mut command = recorder.finish().unwrap();
        assert_eq!(command.kernels(), 0);
        let mut stream = adder.stream(StreamRequest::aql());
        stream.submit(&mut command).unwrap();
        stream.synchronize().unwrap();
    });
}

#[test]
fn arguments_of_another_size_or_number_or_buffer_are_refused() {
    each_device(|device| {
        let adder = Adder::new(device);
        let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
        let (mut command, ids) = counter(&adder, CommandRequest::new(), 2, &sum, &one);
        let (mut other, others) = counter(&adder, CommandRequest::new(), 2, &sum, &one);
        let error = command.set_argument(ids[0], 3, 1_u64).unwrap_err();
        let expected = ArgumentError::Size { index: 3, given: 8, expected: 4 };
        let Error::Launch { problem, .. } = error else { panic!("{error}") };
        assert_eq!(problem, LaunchProblem::Arguments(expected));
        let command_error = |result: hip::Result<()>| match result {
            Err(Error::Command(error)) => error,
            result => panic!("{result:?}"),
        };
        let none = command_error(command.set_argument(ids[1], 4, 1_u32));
        let expected = CommandError::NoArgument { kernel: "vadd".into(), index: 4, count: 4 };
        assert_eq!(none, expected);
        let foreign = command_error(command.set_argument(others[1], 3, 1_u32));
        assert_eq!(foreign, CommandError::OtherBuffer { what: "kernel", number: 1 });
        assert!(command.set_arguments(ids[0], (&sum, &one)).is_err());
        let mut stream = adder.stream(StreamRequest::aql());
        let submission = stream.submit(&mut other).unwrap();
        assert!(command.is_done(submission).is_err());
        assert!(other.is_done(submission).is_ok());
        stream.synchronize().unwrap();
    });
}

#[test]
fn requests_that_cannot_be_are_refused_by_name() {
    each_device(|device| {
        let adder = Adder::new(device);
        let good = CommandRequest::new();
        for bad in [
            good.instances(0),
            good.instances(1025),
            good.buffer_dwords(255),
            good.buffer_dwords(1 << 20),
        ] {
            let error = CommandRecorder::new(&adder.device, bad).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        }
    });
}

#[test]
fn packets_are_refused_by_a_pm4_stream() {
    each_device(|device| {
        let adder = Adder::new(device);
        let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
        let request = CommandRequest::new().kind(CommandKind::Packets);
        let (mut command, _) = counter(&adder, request, 2, &sum, &one);
        let mut stream = adder.stream(StreamRequest::pm4());
        let error = stream.submit(&mut command).unwrap_err();
        assert!(matches!(error, Error::Command(CommandError::Stream { .. })), "{error}");
        assert_eq!((stream.submitted(), command.instances()), (0, 0));
    });
}

#[test]
fn functions_and_buffers_of_another_device_are_refused() {
    if on_hardware() {
        return skip("it needs two GPUs");
    }
    let model = Model::builder().gpu(Preset::gfx90a()).gpu(Preset::gfx1100()).build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    let (first, second) = (Adder::on(runtime.clone(), 0), Adder::on(runtime, 1));
    let mut recorder = CommandRecorder::new(&second.device, CommandRequest::new()).unwrap();
    let [a, b, c] = &first.vectors;
    let error = recorder.kernel(&first.vadd, &grid(), (a, b, c, N)).unwrap_err();
    assert!(matches!(error, Error::OtherDevice { what: "the function", .. }), "{error}");
    let mut command = recorder.finish().unwrap();
    let mut stream = first.stream(StreamRequest::aql());
    let error = stream.submit(&mut command).unwrap_err();
    assert!(matches!(error, Error::OtherDevice { what: "the command buffer", .. }), "{error}");
    assert_eq!(stream.submitted(), 0);
}

#[test]
fn buffered_printf_is_refused_by_name() {
    if on_hardware() {
        return skip("its code object is for gfx90a");
    }
    let model = Model::builder().gpu(Preset::gfx90a()).build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    let device = &runtime.devices()[0];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/code-objects");
    let file = std::fs::read(format!("{folder}/printf_buffered.gfx90a.v5.co")).unwrap();
    let module = Module::load(device, &file).unwrap();
    let name = module.functions().next().unwrap().to_owned();
    let function = module.function(&name).unwrap();
    let mut recorder = CommandRecorder::new(device, CommandRequest::new()).unwrap();
    let bytes: usize =
        function.arguments().last().map_or(0, |slot| (slot.offset + slot.size) as usize);
    let error = recorder.kernel(&function, &grid(), hip::Packed(&vec![0; bytes])).unwrap_err();
    let Error::Command(CommandError::Service { kernel, service }) = error else {
        panic!("{error}")
    };
    assert_eq!(*kernel, *name);
    assert!(service.contains("hidden_printf_buffer"), "{service}");
}

#[test]
fn copies_and_fills_that_cannot_be_are_refused_and_record_nothing() {
    each_device(|device| {
        let adder = Adder::new(device);
        let (a, b) = (vector(&adder, |_| 1.0), vector(&adder, |_| 2.0));
        let mut recorder = CommandRecorder::new(&adder.device, CommandRequest::new()).unwrap();
        let bytes = u64::from(N) * 4;
        let copy_error = |result: hip::Result<()>| match result {
            Err(Error::Copy(error)) => error,
            result => panic!("{result:?}"),
        };
        let outside = copy_error(recorder.copy(&a, b.at(4), bytes));
        assert!(matches!(outside, CopyError::Outside { offset: 4, .. }), "{outside}");
        let overlap = copy_error(recorder.copy(&a, a.at(4), bytes - 4));
        assert!(matches!(overlap, CopyError::Overlap { .. }), "{overlap}");
        let odd = copy_error(recorder.fill(a.at(2), 1_u32, 3));
        assert!(matches!(odd, CopyError::Alignment { .. }), "{odd}");
        recorder.copy(&a, &b, 0).unwrap();
        assert_eq!(recorder.finish().unwrap().kernels(), 0);
    });
}

#[test]
fn memory_of_recorded_copies_outlives_its_owner() {
    each_device(|device| {
        let adder = Adder::new(device);
        let (from, to) = (vector(&adder, |i| i as f32), vector(&adder, |_| 0.0));
        let mut recorder = CommandRecorder::new(&adder.device, CommandRequest::new()).unwrap();
        recorder.copy(&to, &from, u64::from(N) * 4).unwrap();
        let mut command = recorder.finish().unwrap();
        drop(from);
        let mut stream = adder.stream(StreamRequest::aql());
        stream.submit(&mut command).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(super::values(&to)[17], 17.0);
    });
}
