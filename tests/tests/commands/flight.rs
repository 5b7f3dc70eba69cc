//! Many submissions in flight: instances, back-pressure, drops, times.

use std::sync::Arc;
use std::time::Duration;

use hip::{
    CommandError, CommandRecorder, CommandRequest, Error, Event, Runtime, Stream, StreamRequest,
};
use kfd_model::{FaultPlan, Model, Preset};
use kfd_tests::{each_device, on_hardware, skip};

use super::{LONG, N, counter, grid, pairs, values, vector};
use crate::streams::{Adder, kinds};

/// Runs `test` on each kind of stream with each kind of command buffer that it takes.
fn each_pair(adder: &Adder, test: impl Fn(Stream, CommandRequest)) {
    for (stream, commands) in pairs(adder) {
        test(adder.stream(stream.packets(64)), commands);
    }
}

#[test]
fn a_thousand_kernels_run_in_order_each_time() {
    each_device(|device| {
        let adder = Adder::new(device);
        each_pair(&adder, |mut stream, request| {
            let (sum, one) = (vector(&adder, |i| i as f32), vector(&adder, |_| 1.0));
            let (mut command, ids) = counter(&adder, request, 1000, &sum, &one);
            assert_eq!((command.kernels(), ids.len()), (1000, 1000));
            stream.submit(&mut command).unwrap();
            stream.submit(&mut command).unwrap();
            stream.synchronize_within(LONG).unwrap();
            assert_eq!(values(&sum)[5], 2005.0);
        });
    });
}

#[test]
fn each_submission_in_flight_has_its_own_arguments() {
    each_device(|device| {
        let adder = Adder::new(device);
        each_pair(&adder, |mut stream, request| {
            // Each submission adds another number and puts the sum elsewhere.
            let zero = vector(&adder, |_| 0.0);
            let from: Vec<_> = (0..40_u16).map(|n| vector(&adder, move |_| n.into())).collect();
            let to: Vec<_> = (0..40).map(|_| vector(&adder, |_| -1.0)).collect();
            let (mut command, ids) = counter(&adder, request.instances(7), 3, &zero, &zero);
            for (from, to) in from.iter().zip(&to) {
                command.set_argument(ids[1], 0, from).unwrap();
                command.set_arguments(ids[2], (from, from, to, N)).unwrap();
                stream.submit(&mut command).unwrap();
            }
            stream.synchronize_within(LONG).unwrap();
            for (n, to) in (0..40_u16).zip(&to) {
                assert!(values(to).iter().all(|sum| *sum == f32::from(2 * n)), "{n}");
            }
            assert!((1..=7).contains(&command.instances()), "{}", command.instances());
        });
    });
}

#[test]
fn an_argument_changed_more_often_than_is_remembered_is_the_latest() {
    each_device(|device| {
        let adder = Adder::new(device);
        let (zero, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
        let sum = vector(&adder, |_| 0.0);
        let (mut command, ids) = counter(&adder, CommandRequest::new(), 2, &sum, &zero);
        let mut stream = adder.stream(StreamRequest::aql());
        stream.submit(&mut command).unwrap();
        for n in 0..1001 {
            let what = if n % 2 == 0 { &one } else { &zero };
            command.set_argument(ids[1], 1, what).unwrap();
        }
        stream.submit(&mut command).unwrap();
        stream.submit(&mut command).unwrap();
        stream.synchronize_within(LONG).unwrap();
        assert_eq!(values(&sum)[0], 2.0);
    });
}

#[test]
fn one_more_submission_than_instances_waits_for_the_first() {
    if on_hardware() {
        return skip("it stops the software GPU");
    }
    let plan = Arc::new(FaultPlan::new());
    for preset in [Preset::gfx90a(), Preset::gfx1100()] {
        let model = Model::builder().gpu(preset).fault_plan(Arc::clone(&plan)).build();
        let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
        let adder = Adder::on(runtime, 0);
        for kind in kinds(&adder.device) {
            let patience = Duration::from_millis(20);
            let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
            let request = CommandRequest::new().instances(3);
            let (mut command, _) = counter(&adder, request, 2, &sum, &one);
            let mut stream = adder.stream(kind.patience(patience));
            plan.stop_fetching(true);
            let submitted: Vec<_> = (0..3).map(|_| stream.submit(&mut command).unwrap()).collect();
            assert!(submitted.iter().all(|one| !command.is_done(*one).unwrap()));
            let error = stream.submit(&mut command).unwrap_err();
            assert!(matches!(error, Error::Timeout { .. }), "{error}");
            assert_eq!((command.instances(), stream.submitted()), (3, 3));
            plan.stop_fetching(false);
            stream.synchronize_within(LONG).unwrap();
            assert!(submitted.iter().all(|one| command.is_done(*one).unwrap()));
            for _ in 0..4 {
                stream.submit(&mut command).unwrap();
                stream.synchronize_within(LONG).unwrap();
            }
            assert_eq!((command.instances(), values(&sum)[1]), (3, 14.0));
        }
    }
}

#[test]
fn a_buffer_dropped_in_flight_runs_to_its_end() {
    each_device(|device| {
        let adder = Adder::new(device);
        each_pair(&adder, |mut stream, request| {
            let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
            for _ in 0..5 {
                let (mut command, _) = counter(&adder, request, 20, &sum, &one);
                stream.submit(&mut command).unwrap();
                stream.submit(&mut command).unwrap();
            }
            stream.synchronize_within(LONG).unwrap();
            assert_eq!(values(&sum)[63], 200.0);
        });
    });
}

#[test]
fn a_buffer_outlives_its_streams_and_goes_on_with_others() {
    each_device(|device| {
        let adder = Adder::new(device);
        let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
        let (mut command, _) = counter(&adder, CommandRequest::new(), 5, &sum, &one);
        let mut total = 0.0;
        for kind in kinds(&adder.device).into_iter().cycle().take(7) {
            let mut stream = adder.stream(kind);
            for _ in 0..3 {
                stream.submit(&mut command).unwrap();
                total += 5.0;
            }
            drop(stream);
            assert_eq!(values(&sum)[9], total);
        }
    });
}

#[test]
fn a_stream_that_never_ends_keeps_its_instances_and_the_buffer_goes_on_elsewhere() {
    if on_hardware() {
        return skip("it stops the software GPU");
    }
    let plan = Arc::new(FaultPlan::new());
    let model = Model::builder().gpu(Preset::gfx90a()).fault_plan(Arc::clone(&plan)).build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    let adder = Adder::on(runtime, 0);
    let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
    let request = CommandRequest::new().instances(2);
    let (mut command, _) = counter(&adder, request, 2, &sum, &one);
    let mut stream = adder.stream(StreamRequest::aql().farewell(Duration::ZERO));
    plan.stop_fetching(true);
    let lost = stream.submit(&mut command).unwrap();
    stream.submit(&mut command).unwrap();
    drop(stream);
    plan.stop_fetching(false);
    assert!(!command.is_done(lost).unwrap());
    let mut stream = adder.stream(StreamRequest::pm4());
    for _ in 0..4 {
        stream.submit(&mut command).unwrap();
    }
    stream.synchronize_within(LONG).unwrap();
    assert_eq!((values(&sum)[0], command.instances()), (8.0, 2));
}

#[test]
fn submissions_are_ordered_with_launches_and_events_of_other_streams() {
    each_device(|device| {
        let adder = Adder::new(device);
        let kinds = kinds(&adder.device);
        let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
        let (mut command, _) = counter(&adder, CommandRequest::new(), 4, &sum, &one);
        let mut streams: Vec<_> = kinds.into_iter().map(|kind| adder.stream(kind)).collect();
        let (count, event) = (streams.len(), Event::new(&adder.runtime));
        let mut total = 0.0;
        for round in 0..30 {
            let stream = &mut streams[round % count];
            stream.wait(&event).unwrap();
            stream.submit(&mut command).unwrap();
            stream.launch(&adder.vadd, &grid(), (&sum, &sum, &sum, N)).unwrap();
            stream.record(&event).unwrap();
            total = (total + 4.0) * 2.0;
            if round % 5 == 4 {
                event.synchronize_within(LONG).unwrap();
                assert_eq!(values(&sum)[0], total, "round {round}");
                // Keep the sums exact.
                sum.write(0, &[0; 4 * N as usize]).unwrap();
                total = 0.0;
            }
        }
        for stream in &mut streams {
            stream.synchronize_within(LONG).unwrap();
        }
    });
}

#[test]
fn times_are_those_of_the_submission_until_its_instance_is_used_again() {
    each_device(|device| {
        let adder = Adder::new(device);
        each_pair(&adder, |mut stream, request| {
            let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
            let request = request.instances(2);
            let mut recorder = CommandRecorder::new(&adder.device, request).unwrap();
            let before = recorder.time().unwrap();
            for _ in 0..10 {
                recorder.kernel(&adder.vadd, &grid(), (&sum, &one, &sum, N)).unwrap();
            }
            let after = recorder.time().unwrap();
            let mut command = recorder.finish().unwrap();
            let (start, end) = (Event::new(&adder.runtime), Event::new(&adder.runtime));
            stream.record(&start).unwrap();
            let first = stream.submit(&mut command).unwrap();
            let second = stream.submit(&mut command).unwrap();
            stream.record(&end).unwrap();
            stream.synchronize_within(LONG).unwrap();
            let times = [start.nanoseconds().unwrap()]
                .into_iter()
                .chain([first, second].into_iter().flat_map(|submission| {
                    [before, after].map(|time| command.nanoseconds(submission, time).unwrap())
                }))
                .chain([end.nanoseconds().unwrap()]);
            let times: Vec<_> = times.collect();
            assert!(times.is_sorted(), "{times:?}");
            let took = command.nanoseconds_between(first, before, after).unwrap();
            assert!(took > 0 && took < 60_000_000_000, "{took}");
            for _ in 0..2 {
                stream.submit(&mut command).unwrap();
            }
            let error = command.nanoseconds(first, before).unwrap_err();
            let overwritten = Error::Command(CommandError::Overwritten { number: 1 });
            assert_eq!(error.to_string(), overwritten.to_string());
            stream.synchronize_within(LONG).unwrap();
        });
    });
}
