//! The event table by itself.

use std::time::{Duration, Instant};

use super::*;

const LONG: Duration = Duration::from_secs(20);

const SIGNAL: EventType = EventType::SIGNAL;

fn events() -> (Events, Arc<Arena>) {
    (Events::new(true), Arena::new().unwrap())
}

fn poll(events: &Events, id: u32, age: u64) -> WaitResult {
    events.wait(1, false, |_| Ok((id, age))).unwrap().test()
}

#[test]
fn signal_ids_count_from_one_and_others_from_the_upper_half() {
    let (events, arena) = events();
    let id = |kind| events.create(kind, false, &arena).unwrap().id;
    assert_eq!(id(SIGNAL), 1);
    assert_eq!(id(EventType::DEBUG_EVENT), 2);
    assert_eq!(id(EventType::MEMORY), 0x4000_0000);
    assert_eq!(id(EventType(9)), 0x4000_0001);
}

#[test]
fn the_unmapped_page_has_255_events_and_the_mapped_one_4095() {
    let (events, arena) = events();
    for _ in 0..255 {
        events.create(SIGNAL, false, &arena).unwrap();
    }
    assert_eq!(events.create(SIGNAL, false, &arena), Err(Errno::NOSPC));
    events.map_page(EVENT_PAGE_BYTES).unwrap();
    for _ in 255..4095 {
        events.create(SIGNAL, false, &arena).unwrap();
    }
    assert_eq!(events.create(SIGNAL, false, &arena), Err(Errno::NOSPC));
}

#[test]
fn a_page_mapped_smaller_than_what_is_in_use_leaves_its_own_slots_free() {
    // Measured on Linux 6.1.192 and 6.12.117 (tests/conformance).
    let (events, arena) = events();
    events.create(SIGNAL, false, &arena).unwrap();
    events.map_page(EVENT_PAGE_BYTES).unwrap();
    for _ in 1..600 {
        events.create(SIGNAL, false, &arena).unwrap();
    }
    events.map_page(4096).unwrap();
    events.destroy(300).unwrap();
    assert_eq!(events.create(SIGNAL, false, &arena).unwrap().id, 300);
    assert_eq!(events.create(SIGNAL, false, &arena), Err(Errno::NOSPC));
}

#[test]
fn a_change_wakes_every_thread_that_sleeps() {
    let (events, arena) = events();
    let ids = [0; 4].map(|_| events.create(SIGNAL, true, &arena).unwrap().id);
    std::thread::scope(|scope| {
        let asleep: Vec<_> = ids
            .iter()
            .map(|id| {
                let wait = events.wait(1, false, |_| Ok((*id, 0))).unwrap();
                scope.spawn(move || wait.sleep(Some(Instant::now() + LONG), None))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        for id in ids.iter().rev() {
            events.set(*id, true).unwrap();
        }
        for thread in asleep {
            assert_eq!(thread.join().unwrap(), Ok(WaitResult::COMPLETE));
        }
    });
}

#[test]
fn a_set_auto_reset_event_satisfies_one_wait() {
    let (events, arena) = events();
    let id = events.create(SIGNAL, true, &arena).unwrap().id;
    events.set(id, true).unwrap();
    assert_eq!(poll(&events, id, 0), WaitResult::COMPLETE);
    assert_eq!(poll(&events, id, 0), WaitResult::TIMEOUT);
    // Measured on Linux 6.12.117: an age that is not the present one returns at once.
    assert_eq!(poll(&events, id, 1), WaitResult::COMPLETE);
    assert_eq!(poll(&events, id, 7), WaitResult::COMPLETE);
    assert_eq!(poll(&events, id, 2), WaitResult::TIMEOUT);
}

#[test]
fn an_interrupt_needs_a_written_slot_and_resets_it() {
    let (events, arena) = events();
    let id = events.create(SIGNAL, true, &arena).unwrap().id;
    let page = events.map_page(4096).unwrap();
    events.interrupt(id, 32);
    assert_eq!(poll(&events, id, 0), WaitResult::TIMEOUT);
    page.word(1).unwrap().store(1, Ordering::Release);
    events.interrupt(id, 32);
    assert_eq!(page.word(1).unwrap().load(Ordering::Acquire), u64::MAX);
    assert_eq!(poll(&events, id, 0), WaitResult::COMPLETE);
}

#[test]
fn an_interrupt_with_a_wrong_id_finds_the_written_slots() {
    let (events, arena) = events();
    let id = events.create(SIGNAL, true, &arena).unwrap().id;
    let page = events.map_page(4096).unwrap();
    page.word(1).unwrap().store(1, Ordering::Release);
    events.interrupt(77, 24);
    assert_eq!(poll(&events, id, 0), WaitResult::COMPLETE);
}

#[test]
fn destroying_an_event_ends_waits_on_it() {
    let (events, arena) = events();
    let id = events.create(SIGNAL, true, &arena).unwrap().id;
    let wait = events.wait(1, true, |_| Ok((id, 0))).unwrap();
    events.destroy(id).unwrap();
    assert_eq!(wait.sleep(None, None), Ok(WaitResult::FAIL));
}

#[test]
fn a_memory_exception_reaches_every_memory_event_with_its_data() {
    let (events, arena) = events();
    let ids: Vec<_> =
        (0..2).map(|_| events.create(EventType::MEMORY, false, &arena).unwrap().id).collect();
    let data = HsaMemoryExceptionData { va: 0x7000, ..Default::default() };
    events.memory_exception(data);
    let wait = events.wait(2, true, |index| Ok((ids[index], 0))).unwrap();
    assert_eq!(wait.test(), WaitResult::COMPLETE);
    for (_, payload) in wait.payloads().unwrap() {
        assert!(matches!(payload, Payload::Memory(found) if found == data));
    }
}

#[test]
fn a_failed_wait_leaves_nothing_behind() {
    let (events, arena) = events();
    let id = events.create(SIGNAL, true, &arena).unwrap().id;
    let entry = |index| if index == 0 { Ok((id, 0)) } else { Err(Errno::FAULT) };
    assert_eq!(events.wait(2, false, entry).unwrap_err(), Errno::FAULT);
    assert_eq!(events.wait(1, false, |_| Ok((99, 0))).unwrap_err(), Errno::INVAL);
    let table = events.lock();
    assert!(table.waits.is_empty());
    assert!(table.events[&id].waiters.is_empty());
}
