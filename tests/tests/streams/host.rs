//! Host functions: they hold back their stream, and nobody else's.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use hip::{Error, Event, StreamRequest};
use kfd_tests::each_device;

use super::{Adder, kinds};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_host_function_runs_between_what_comes_before_and_after() {
    each_device(|device| {
        let adder = Adder::new(device);
        assert!(!adder.runtime.has_thread());
        for kind in kinds(&adder.device) {
            adder.set(0, |_| 0.0);
            adder.set(1, |_| 1.0);
            let mut stream = adder.stream(kind);
            let calls = Arc::new(AtomicU32::new(0));
            let vector = Arc::new(adder.device.allocate(&kfd::MemoryRequest::gtt(4000)).unwrap());
            for round in 0..5 {
                let [_, one, _] = &adder.vectors;
                let grid = hip::Grid::items([1000, 1, 1], [64, 1, 1]);
                stream.launch(&adder.vadd, &grid, (&*vector, one, &*vector, 1000_u32)).unwrap();
                let (calls, seen) = (Arc::clone(&calls), Arc::clone(&vector));
                stream
                    .host_call(move || {
                        std::thread::sleep(Duration::from_millis(5));
                        let mut bytes = [0; 4];
                        seen.read(0, &mut bytes).unwrap();
                        let value = f32::from_le_bytes(bytes);
                        assert_eq!(value, 3.0 * round as f32 + 1.0);
                        seen.write(0, &(value + 2.0).to_le_bytes()).unwrap();
                        calls.fetch_add(1, Ordering::Relaxed);
                    })
                    .unwrap();
            }
            stream.synchronize_within(LONG).unwrap();
            assert_eq!(calls.load(Ordering::Relaxed), 5, "{kind:?}");
            let mut bytes = [0; 4];
            vector.read(0, &mut bytes).unwrap();
            assert_eq!(f32::from_le_bytes(bytes), 15.0, "{kind:?}");
        }
        assert!(adder.runtime.has_thread());
    });
}

#[test]
fn other_streams_of_the_same_queue_go_on_while_a_host_function_runs() {
    each_device(|device| {
        let adder = Adder::new(device);
        adder.device.limit_own_queues(0);
        let mut streams: Vec<_> = (0..8).map(|_| adder.stream(StreamRequest::aql())).collect();
        if let Some(model) = device.try_model() {
            assert_eq!(model.live().queues, 4);
        }
        adder.set(0, |_| 0.0);
        adder.set(1, |_| 1.0);
        let (open, gate) = mpsc::channel::<()>();
        let called = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&called);
        let (first, others) = streams.split_first_mut().unwrap();
        first
            .host_call(move || {
                gate.recv().unwrap();
                flag.store(true, Ordering::Release);
            })
            .unwrap();
        adder.add(first, 2, 0, 1);
        let event = Event::new(&adder.runtime);
        first.record(&event).unwrap();
        // One of the others waits for it, and is held back, too.
        let (waiting, free) = others.split_first_mut().unwrap();
        waiting.wait(&event).unwrap();
        adder.add(waiting, 2, 2, 1);
        for stream in free.iter_mut() {
            adder.add(stream, 0, 0, 1);
            stream.synchronize_within(LONG).unwrap();
        }
        assert_eq!(adder.get(0)[5], 6.0);
        assert!(!event.query() && !waiting.query().unwrap());
        assert!(!called.load(Ordering::Acquire));
        open.send(()).unwrap();
        waiting.synchronize_within(LONG).unwrap();
        assert!(called.load(Ordering::Acquire));
        first.synchronize_within(LONG).unwrap();
        // The launch behind the function ran after the others had added six.
        assert_eq!(adder.get(2)[5], 8.0);
    });
}

#[test]
fn more_than_can_be_held_back_waits_for_room() {
    each_device(|device| {
        let adder = Adder::new(device);
        let mut stream = adder.stream(StreamRequest::aql().share());
        adder.set(0, |_| 0.0);
        adder.set(1, |_| 1.0);
        stream.host_call(|| std::thread::sleep(Duration::from_millis(50))).unwrap();
        for _ in 0..1500 {
            adder.add(&mut stream, 0, 0, 1);
        }
        stream.synchronize_within(LONG).unwrap();
        assert_eq!(adder.get(0)[0], 1500.0);
        let request = StreamRequest::aql().share().patience(Duration::from_millis(50));
        let mut stream = adder.stream(request);
        let (open, gate) = mpsc::channel::<()>();
        stream.host_call(move || gate.recv().unwrap()).unwrap();
        let event = Event::new(&adder.runtime);
        let full = (0..2000).find_map(|_| stream.record(&event).err()).unwrap();
        assert!(matches!(full, Error::Timeout { .. }), "{full}");
        open.send(()).unwrap();
        stream.synchronize_within(LONG).unwrap();
    });
}

#[test]
fn a_panic_is_said_once_and_waiting_inside_is_refused() {
    each_device(|device| {
        let adder = Adder::new(device);
        for kind in kinds(&adder.device) {
            let mut stream = adder.stream(kind);
            stream.host_call(|| panic!("on purpose")).unwrap();
            let error = stream.synchronize_within(LONG).unwrap_err();
            assert!(matches!(error, Error::HostFunction), "{error}");
            stream.synchronize_within(LONG).unwrap();
            let (send, receive) = mpsc::channel();
            let waiter = stream.waiter();
            stream.host_call(move || send.send(waiter.synchronize_within(LONG)).unwrap()).unwrap();
            let inside = receive.recv_timeout(LONG).unwrap();
            assert!(matches!(inside, Err(Error::InHostFunction)), "{inside:?}");
            stream.synchronize_within(LONG).unwrap();
        }
    });
}

#[test]
fn a_stream_dropped_with_a_host_function_that_never_ends_goes() {
    each_device(|device| {
        let adder = Adder::new(device);
        for kind in kinds(&adder.device) {
            let (open, gate) = mpsc::channel::<()>();
            let mut stream = adder.stream(kind.farewell(Duration::from_millis(20)));
            stream.host_call(move || assert!(gate.recv().is_err())).unwrap();
            adder.add(&mut stream, 2, 0, 1);
            drop(stream);
            drop(open);
        }
        // The thread is free again.
        let mut stream = adder.stream(StreamRequest::aql());
        let (send, receive) = mpsc::channel();
        stream.host_call(move || send.send(()).unwrap()).unwrap();
        receive.recv_timeout(LONG).unwrap();
    });
}
