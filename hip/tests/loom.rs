//! Every interleaving of a stream's owner, those who wait, and a device, within loom's model of memory.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p kfd-hip --test loom --release`
//!
//! What retirement frees is a relaxed atomic here: an owner that uses it again while the device may still
//! read it, or a device that reads it without the ordering that makes it visible, fails the test.
#![cfg(loom)]
#![allow(missing_docs)]

use hip::protocol::{Current, Holders, Progress, SlotId};
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use loom::thread;

fn explore(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// A ring of arguments with one place, what is submitted, and the device's count.
struct Stream {
    progress: Progress,
    /// Doorbell: operations that the device may run.
    rung: AtomicU64,
    /// The device's word.
    word: AtomicU64,
    place: AtomicU64,
    result: AtomicU64,
}

impl Stream {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            progress: Progress::new(),
            rung: AtomicU64::new(0),
            word: AtomicU64::new(0),
            place: AtomicU64::new(0),
            result: AtomicU64::new(0),
        })
    }

    fn learn(&self) -> u64 {
        self.progress.learn(|| self.word.load(Ordering::Acquire)).unwrap()
    }

    /// Submits operation `number` with its number as argument.
    fn submit(&self, number: u64) {
        self.place.store(number, Ordering::Relaxed);
        self.progress.announce(number);
        self.rung.store(number, Ordering::Release);
    }

    /// The device runs what it was told of, one operation after another.
    fn run(&self, done: &mut u64) {
        let rung = self.rung.load(Ordering::Acquire);
        while *done < rung {
            *done += 1;
            let argument = self.place.load(Ordering::Relaxed);
            assert_eq!(argument, *done);
            self.result.store(argument, Ordering::Relaxed);
            self.word.store(*done, Ordering::Release);
        }
    }
}

#[test]
fn arguments_are_used_again_only_after_the_device_has_passed_them() {
    explore(4, || {
        let stream = Stream::new();
        let device = {
            let stream = stream.clone();
            thread::spawn(move || {
                let mut done = 0;
                while done < 2 {
                    stream.run(&mut done);
                    thread::yield_now();
                }
            })
        };
        stream.submit(1);
        while stream.learn() < 1 {
            thread::yield_now();
        }
        // Retired: its place may be written.
        stream.submit(2);
        while stream.learn() < 2 {
            thread::yield_now();
        }
        assert_eq!(stream.result.load(Ordering::Relaxed), 2);
        device.join().unwrap();
    });
}

#[test]
fn waiters_and_owner_agree_on_progress_and_never_find_it_out_of_range() {
    explore(3, || {
        let stream = Stream::new();
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let stream = stream.clone();
                thread::spawn(move || {
                    let first = stream.learn();
                    let second = stream.learn();
                    assert!(first <= second && second <= 1);
                })
            })
            .collect();
        stream.submit(1);
        stream.run(&mut 0);
        assert_eq!(stream.learn(), 1);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// A slot with its signal; `uses` counts how often it was used again.
struct Slot {
    signal: AtomicI64,
    holders: Holders,
    freed: AtomicU64,
}

impl Slot {
    fn new() -> Self {
        Self { signal: AtomicI64::new(0), holders: Holders::new(), freed: AtomicU64::new(0) }
    }

    fn free_if(&self, nobodys: bool) {
        if nobodys {
            assert_eq!(self.freed.fetch_add(1, Ordering::Relaxed), 0, "freed twice");
        }
    }
}

#[test]
fn a_slot_is_freed_once_and_not_while_somebody_waits_for_it() {
    explore(4, || {
        let slots = Arc::new([Slot::new(), Slot::new()]);
        let current = Arc::new(Current::new());
        // Recorded: the event and the device hold it.
        slots[0].signal.store(1, Ordering::Relaxed);
        slots[0].holders.start(true, 1);
        assert_eq!(current.replace(Some(SlotId(0))), None);
        let waiter = {
            let (slots, current) = (slots.clone(), current.clone());
            thread::spawn(move || {
                let SlotId(id) = current.pin().unwrap();
                let slot = &slots[usize::try_from(id).unwrap()];
                // While it is pinned it is not free: nobody has started to use it again.
                assert_eq!(slot.freed.load(Ordering::Acquire), 0);
                let _ = slot.signal.load(Ordering::Acquire);
                assert_eq!(slot.freed.load(Ordering::Acquire), 0);
                slot.free_if(slot.holders.release());
            })
        };
        let device = {
            let slots = slots.clone();
            thread::spawn(move || {
                slots[0].signal.store(0, Ordering::Release);
                slots[0].free_if(slots[0].holders.release());
            })
        };
        // Recorded anew.
        slots[1].holders.start(true, 1);
        let (old, pins) = current.replace(Some(SlotId(1))).unwrap();
        assert_eq!(old, SlotId(0));
        slots[0].free_if(slots[0].holders.replaced(pins));
        waiter.join().unwrap();
        device.join().unwrap();
        assert_eq!(slots[0].freed.load(Ordering::Relaxed), 1);
        // The event goes, then the device passes.
        let (last, pins) = current.replace(None).unwrap();
        assert_eq!(last, SlotId(1));
        assert!(!slots[1].holders.replaced(pins));
        assert!(slots[1].holders.release());
    });
}

#[test]
fn two_recordings_of_one_event_at_once_lose_no_slot() {
    explore(4, || {
        let slots = Arc::new([Slot::new(), Slot::new()]);
        let current = Arc::new(Current::new());
        let record = |id: u32| {
            let (slots, current) = (slots.clone(), current.clone());
            move || {
                let slot = &slots[usize::try_from(id).unwrap()];
                slot.holders.start(true, 1);
                if let Some((SlotId(old), pins)) = current.replace(Some(SlotId(id))) {
                    let old = &slots[usize::try_from(old).unwrap()];
                    old.free_if(old.holders.replaced(pins));
                }
                slot.free_if(slot.holders.release());
            }
        };
        let other = thread::spawn(record(0));
        record(1)();
        other.join().unwrap();
        let (SlotId(last), pins) = current.replace(None).unwrap();
        let last = &slots[usize::try_from(last).unwrap()];
        last.free_if(last.holders.replaced(pins));
        assert!(slots.iter().all(|slot| slot.freed.load(Ordering::Relaxed) == 1));
    });
}
