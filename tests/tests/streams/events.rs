//! Events: order across streams and GPUs on the device, and time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hip::{Error, Event, Runtime, Stream, StreamRequest};
use kfd_model::{FaultPlan, Model, Preset};
use kfd_tests::{each_device, each_model};

use super::{Adder, N, kinds};

#[test]
fn a_stream_waits_for_another_on_the_device() {
    each_device(|device| {
        let adder = Adder::new(device);
        adder.set(1, |_| 1.0);
        let kinds = kinds(&adder.device);
        for (one, other) in kinds.iter().flat_map(|one| kinds.iter().map(move |two| (one, two))) {
            let (mut first, mut second) = (adder.stream(*one), adder.stream(*other));
            let (there, back) = (Event::new(&adder.runtime), Event::new(&adder.runtime));
            adder.set(0, |_| 0.0);
            for round in 0..30 {
                adder.add(&mut first, 0, 0, 1);
                first.record(&there).unwrap();
                second.wait(&there).unwrap();
                adder.add(&mut second, 0, 0, 1);
                second.record(&back).unwrap();
                first.wait(&back).unwrap();
                if round % 7 == 0 {
                    second.synchronize().unwrap();
                }
            }
            first.synchronize().unwrap();
            assert_eq!(adder.get(0), vec![60.0; N as usize], "{one:?} {other:?}");
        }
    });
}

#[test]
fn a_gpu_waits_for_another() {
    let model = Model::builder().gpu(Preset::gfx90a()).gpu(Preset::gfx1100()).build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    let (mut one, two) = (Adder::on(runtime.clone(), 0), Adder::on(runtime.clone(), 1));
    one.vectors.iter_mut().for_each(|vector| vector.map_on(&two.device).unwrap());
    one.set(0, |i| i as f32);
    one.set(1, |_| 1.0);
    let (mut first, mut second) =
        (one.stream(StreamRequest::aql()), two.stream(StreamRequest::aql()));
    let (there, back) = (Event::new(&runtime), Event::new(&runtime));
    for _ in 0..20 {
        one.add(&mut first, 0, 0, 1);
        first.record(&there).unwrap();
        second.wait(&there).unwrap();
        let [a, b, _] = &one.vectors;
        let grid = hip::Grid::items([N, 1, 1], [64, 1, 1]);
        second.launch(&two.vadd, &grid, (a, b, a, N)).unwrap();
        second.record(&back).unwrap();
        first.wait(&back).unwrap();
    }
    first.synchronize().unwrap();
    assert!(one.get(0).iter().zip(0..N).all(|(sum, i)| *sum == i as f32 + 40.0));
    assert!(back.nanoseconds_since(&there).unwrap() > -50_000_000);
}

#[test]
fn an_event_is_done_when_its_stream_has_reached_it_and_not_before() {
    let plans = Arc::new(FaultPlan::new());
    each_model(
        || Model::builder().fault_plan(Arc::clone(&plans)),
        |device| {
            let adder = Adder::new(device);
            for kind in kinds(&adder.device) {
                let mut stream = adder.stream(kind);
                let event = Event::new(&adder.runtime);
                assert!(event.query());
                event.synchronize().unwrap();
                assert!(matches!(event.nanoseconds(), Err(Error::NotRecorded)));
                plans.stop_fetching(true);
                stream.record(&event).unwrap();
                assert!(!event.query() && !stream.query().unwrap());
                assert!(matches!(event.nanoseconds(), Err(Error::NotReady)));
                let late = event.synchronize_within(Duration::from_millis(20));
                assert!(matches!(late, Err(Error::Driver(kfd::Error::Timeout(_)))), "{late:?}");
                let late = stream.synchronize_within(Duration::from_millis(20));
                assert!(matches!(late, Err(Error::Timeout { submitted: 1, .. })), "{late:?}");
                plans.stop_fetching(false);
                event.synchronize().unwrap();
                assert!(event.query());
                stream.synchronize().unwrap();
                assert!(stream.query().unwrap());
            }
        },
    );
}

#[test]
fn a_new_recording_does_not_change_what_was_waited_for() {
    let plans = Arc::new(FaultPlan::new());
    each_model(
        || Model::builder().fault_plan(Arc::clone(&plans)),
        |device| {
            let adder = Adder::new(device);
            let mut first = adder.stream(StreamRequest::aql());
            let mut second = adder.stream(StreamRequest::aql());
            let event = Event::new(&adder.runtime);
            plans.stop_fetching(true);
            first.record(&event).unwrap();
            second.wait(&event).unwrap();
            // The second stream now waits for itself, if the wait followed the event.
            second.record(&event).unwrap();
            second.wait(&event).unwrap();
            plans.stop_fetching(false);
            second.synchronize_within(Duration::from_secs(30)).unwrap();
            drop(event);
            first.synchronize().unwrap();
        },
    );
}

#[test]
fn times_of_events_in_order_never_go_back() {
    each_device(|device| {
        let adder = Adder::new(device);
        for kind in kinds(&adder.device) {
            let mut stream = adder.stream(kind);
            let events: Vec<Event> = (0..200).map(|_| Event::new(&adder.runtime)).collect();
            for event in &events {
                stream.record(event).unwrap();
            }
            stream.synchronize().unwrap();
            for pair in events.windows(2) {
                assert!(pair[1].nanoseconds_since(&pair[0]).unwrap() >= 0);
            }
        }
    });
}

#[test]
fn the_time_between_events_is_that_of_the_host() {
    each_device(|device| {
        let adder = Adder::new(device);
        for kind in kinds(&adder.device) {
            let mut stream = adder.stream(kind);
            let (from, to) = (Event::new(&adder.runtime), Event::new(&adder.runtime));
            stream.record(&from).unwrap();
            stream.synchronize().unwrap();
            let start = Instant::now();
            std::thread::sleep(Duration::from_millis(40));
            let least = start.elapsed();
            stream.record(&to).unwrap();
            stream.synchronize().unwrap();
            let most = start.elapsed() + Duration::from_millis(20);
            let found = to.nanoseconds_since(&from).unwrap();
            let bound = |time: Duration| i64::try_from(time.as_nanos()).unwrap();
            assert!((bound(least) * 99 / 100..bound(most)).contains(&found), "{found} ns");
            // The rate is measured anew, a little more exactly.
            let back = from.nanoseconds_since(&to).unwrap();
            assert!((back + found).abs() < found / 1000, "{found} and {back} ns");
        }
    });
}

#[test]
fn many_events_use_the_same_few_slots_again() {
    each_device(|device| {
        let adder = Adder::new(device);
        let mut stream = adder.stream(StreamRequest::aql());
        let event = Event::new(&adder.runtime);
        for _ in 0..200 {
            for _ in 0..10 {
                stream.record(&event).unwrap();
            }
            stream.synchronize().unwrap();
        }
        // A stream with a queue, kernel arguments, code, vectors and one page of signals beside.
        let allocations = device.kfd.allocations();
        let pages = allocations.iter().filter(|one| one.label == "signals").count();
        assert!(pages <= 3, "{allocations:?}");
    });
}

#[test]
fn events_of_another_runtime_are_refused() {
    each_device(|device| {
        let (one, two) =
            (Runtime::new(device.kfd.clone()).unwrap(), Runtime::new(device.kfd.clone()).unwrap());
        let mut stream = Stream::new(&one.devices()[0], StreamRequest::aql()).unwrap();
        let event = Event::new(&two);
        assert!(matches!(stream.record(&event), Err(Error::InvalidArgument { .. })));
        assert!(matches!(stream.wait(&event), Err(Error::InvalidArgument { .. })));
    });
}

#[test]
fn a_stream_that_only_records_goes_on_past_what_it_can_hold() {
    each_device(|device| {
        let adder = Adder::new(device);
        for kind in kinds(&adder.device) {
            let mut stream = adder.stream(kind.packets(64));
            let event = Event::new(&adder.runtime);
            for _ in 0..1000 {
                stream.record(&event).unwrap();
            }
            // The waiter of another thread waits for the last of them, too.
            stream.waiter().synchronize_within(Duration::from_secs(30)).unwrap();
            assert!(event.query(), "{kind:?}");
            stream.record(&event).unwrap();
            stream.synchronize().unwrap();
            assert!(event.query(), "{kind:?}");
            stream.record(&event).unwrap();
            drop(stream);
            assert!(event.query(), "{kind:?}: the drop waits for it");
        }
    });
}
