//! Lost devices and queues, and devices that lie: every wait ends, with the cause.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hip::{Error, Event, Grid, Module, Runtime, StreamRequest};
use kfd_model::{FaultPlan, Model, Preset};
use kfd_tests::program::faults;
use kfd_tests::{each_device, each_model};

use super::{Adder, kinds};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_fault_ends_every_wait_with_its_cause_and_other_gpus_go_on() {
    for which in 0..3 {
        let model = Model::builder().gpu(Preset::gfx1100()).gpu(Preset::gfx90a()).build();
        let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
        let (bad, good) = (Adder::on(runtime.clone(), 0), Adder::on(runtime.clone(), 1));
        let kind = kinds(&bad.device)[which];
        let module = Module::load(&bad.device, faults("gfx1100")).unwrap();
        let wild = module.function("wild_store").unwrap();
        let mut stream = bad.stream(kind.farewell(Duration::from_millis(50)));
        let mut second = bad.stream(kind.farewell(Duration::from_millis(50)));
        let grid = Grid::items([1, 1, 1], [1, 1, 1]);
        stream.launch(&wild, &grid, (0x7000_0000_0000_u64,)).unwrap();
        let event = Event::new(&runtime);
        stream.record(&event).unwrap();
        second.wait(&event).unwrap();
        let start = Instant::now();
        let waiter = stream.waiter();
        let other = std::thread::spawn(move || waiter.synchronize_within(LONG));
        let error = stream.synchronize_within(LONG).unwrap_err();
        let Error::Driver(kfd::Error::DeviceLost(report)) = &error else { panic!("{error}") };
        assert!(report.to_string().contains("0x7000"), "{report}");
        assert!(other.join().unwrap().is_err());
        assert!(second.synchronize_within(LONG).is_err());
        assert!(event.synchronize_within(LONG).is_err());
        assert!(start.elapsed() < Duration::from_secs(10));
        assert!(stream.launch(&wild, &grid, (0_u64,)).is_err());
        assert!(stream.record(&event).is_err());
        // The other GPU does not notice.
        let mut fine = good.stream(StreamRequest::aql());
        good.set(0, |_| 1.0);
        good.add(&mut fine, 2, 0, 0);
        fine.synchronize_within(LONG).unwrap();
        assert_eq!(good.get(2)[0], 2.0);
        drop((stream, second));
    }
}

#[test]
fn a_kernel_that_never_ends_is_a_time_out_and_its_stream_can_be_dropped() {
    each_device(|device| {
        let adder = Adder::new(device);
        let target = device.target();
        let module = Module::load(&adder.device, faults(&target)).unwrap();
        let endless = module.function("endless").unwrap();
        for kind in kinds(&adder.device) {
            let mut stream = adder.stream(kind.packets(64).farewell(Duration::from_millis(20)));
            stream.launch(&endless, &Grid::items([1, 1, 1], [1, 1, 1]), ()).unwrap();
            adder.add(&mut stream, 2, 0, 1);
            let late = stream.synchronize_within(Duration::from_millis(50)).unwrap_err();
            assert!(matches!(late, Error::Timeout { completed: 0, .. }), "{kind:?}: {late}");
            let waiter = stream.waiter();
            let late = waiter.synchronize_within(Duration::from_millis(20)).unwrap_err();
            assert!(matches!(late, Error::Timeout { .. } | Error::Driver(_)), "{kind:?}: {late}");
            drop(waiter);
            drop(stream);
        }
    });
}

#[test]
fn no_room_within_the_patience_is_a_time_out_and_nothing_is_lost() {
    let plan = Arc::new(FaultPlan::new());
    each_model(
        || Model::builder().fault_plan(Arc::clone(&plan)),
        |device| {
            let adder = Adder::new(device);
            for kind in kinds(&adder.device) {
                let patience = Duration::from_millis(20);
                let mut stream = adder.stream(kind.packets(64).patience(patience));
                adder.set(0, |_| 0.0);
                adder.set(1, |_| 1.0);
                plan.stop_fetching(true);
                let [a, b, _] = &adder.vectors;
                let grid = Grid::items([super::N, 1, 1], [64, 1, 1]);
                let mut taken = 0;
                let full = loop {
                    match stream.launch(&adder.vadd, &grid, (a, b, a, super::N)) {
                        Ok(()) => taken += 1,
                        Err(error) => break error,
                    }
                };
                assert!(taken >= 60, "{kind:?}: {taken}");
                let timeout =
                    matches!(full, Error::Timeout { .. } | Error::Driver(kfd::Error::Timeout(_)));
                assert!(timeout, "{kind:?}: {full}");
                plan.stop_fetching(false);
                stream.synchronize_within(LONG).unwrap();
                adder.add(&mut stream, 0, 0, 1);
                stream.synchronize_within(LONG).unwrap();
                assert_eq!(adder.get(0)[0], taken as f32 + 1.0, "{kind:?}");
            }
        },
    );
}

#[test]
fn a_read_index_that_lies_ends_in_an_error() {
    let plan = Arc::new(FaultPlan::new());
    each_model(
        || Model::builder().fault_plan(Arc::clone(&plan)),
        |device| {
            let adder = Adder::new(device);
            for kind in kinds(&adder.device).into_iter().take(2) {
                let request = kind.packets(64).patience(Duration::from_millis(200));
                let mut stream = adder.stream(request.farewell(Duration::from_millis(20)));
                plan.lie_read_index(1 << 20);
                let [a, b, c] = &adder.vectors;
                let grid = Grid::items([super::N, 1, 1], [64, 1, 1]);
                let mut launches =
                    (0..1000).map(|_| stream.launch(&adder.vadd, &grid, (a, b, c, super::N)));
                let error = launches.find_map(Result::err).unwrap();
                let cause = matches!(
                    error,
                    Error::Driver(kfd::Error::Ring { .. } | kfd::Error::Timeout(_))
                );
                assert!(cause, "{kind:?}: {error}");
                drop(stream);
                plan.lie_read_index(0);
            }
        },
    );
}

#[test]
fn interrupts_that_are_lost_delay_a_wait_only_a_little() {
    let plan = Arc::new(FaultPlan::new());
    each_model(
        || Model::builder().fault_plan(Arc::clone(&plan)),
        |device| {
            let adder = Adder::new(device);
            let mut stream = adder.stream(StreamRequest::aql());
            plan.lose_interrupts(u32::MAX);
            for _ in 0..5 {
                adder.add(&mut stream, 2, 0, 1);
                stream.synchronize_within(LONG).unwrap();
            }
            plan.lose_interrupts(0);
        },
    );
}
