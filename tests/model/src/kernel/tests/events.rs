//! Events through the ioctls.

use std::time::{Duration, Instant};

use kfd::EventId;
use kfd::abi::{
    AllocFlags, CreateEventArgs, DestroyEventArgs, EventData, EventType, HsaSignalEventData,
    SetEventArgs, WaitEventsArgs, WaitResult,
};
use kfd::sys::Errno;

use super::Client;
use super::client::GTT;
use crate::{Preset, Profile};

fn client(profile: Profile) -> Client {
    Client::stepped(Preset::gfx1100(), profile)
}

fn entry(id: EventId, age: u64) -> EventData {
    let mut data = EventData { event_id: id, ..Default::default() };
    data.set_signal_event_data(HsaSignalEventData { last_event_age: age });
    data
}

fn set(client: &Client, event_id: EventId) -> Result<u32, Errno> {
    client.call(0x0a, &mut SetEventArgs { event_id, pad: 0 })
}

#[test]
fn created_events_have_the_numbers_of_linux() {
    let client = client(Profile::V6_12);
    let signal = client.event(EventType::SIGNAL);
    assert_eq!((signal.event_id.0, signal.event_slot_index, signal.event_trigger_data), (1, 1, 1));
    assert_eq!(signal.event_page_offset, 0x8000_0000_0000_0000);
    let memory = client.event(EventType::MEMORY);
    assert_eq!(
        (memory.event_id.0, memory.event_slot_index, memory.event_page_offset),
        (0x4000_0000, 0, 0)
    );
}

#[test]
fn a_timeout_is_a_success_with_a_result_and_lasts() {
    let client = client(Profile::V6_12);
    let id = client.event(EventType::SIGNAL).event_id;
    assert_eq!(client.wait(&mut [entry(id, 0)], false, 0), Ok(WaitResult::TIMEOUT));
    let start = Instant::now();
    assert_eq!(client.wait(&mut [entry(id, 0)], false, 50), Ok(WaitResult::TIMEOUT));
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(client.wait(&mut [], false, 1000), Ok(WaitResult::COMPLETE));
}

#[test]
fn any_and_all_differ() {
    let client = client(Profile::V6_12);
    let ids = [0; 2].map(|_| client.event(EventType::SIGNAL).event_id);
    set(&client, ids[1]).unwrap();
    let mut both = ids.map(|id| entry(id, 0));
    assert_eq!(client.wait(&mut both, true, 0), Ok(WaitResult::TIMEOUT));
    // The failed wait for all has consumed the auto-reset event, as on Linux.
    assert_eq!(client.wait(&mut both, false, 0), Ok(WaitResult::TIMEOUT));
    set(&client, ids[1]).unwrap();
    assert_eq!(client.wait(&mut both, false, 0), Ok(WaitResult::COMPLETE));
}

#[test]
fn ages_exist_since_1_14() {
    for (profile, result) in
        [(Profile::V6_12, WaitResult::COMPLETE), (Profile::V6_1, WaitResult::TIMEOUT)]
    {
        let client = client(profile);
        let id = client.event(EventType::SIGNAL).event_id;
        set(&client, id).unwrap();
        assert_eq!(client.wait(&mut [entry(id, 0)], false, 0), Ok(WaitResult::COMPLETE));
        let mut events = [entry(id, 1)];
        assert_eq!(client.wait(&mut events, false, 0), Ok(result));
        if result == WaitResult::COMPLETE {
            assert_eq!(events[0].signal_event_data().last_event_age, 2);
        }
    }
}

#[test]
fn bad_waits_have_the_errno_of_linux() {
    let client = client(Profile::V6_12);
    let mut args = WaitEventsArgs { num_events: 1, ..Default::default() };
    assert_eq!(client.call(0x0c, &mut args), Err(Errno::FAULT));
    args.num_events = 0x7fff_ffff;
    assert_eq!(client.call(0x0c, &mut args), Err(Errno::NOMEM));
    assert_eq!(client.wait(&mut [entry(EventId(9), 0)], false, 0), Err(Errno::INVAL));
    for number in [0x09, 0x0a, 0x0b] {
        let mut unknown = DestroyEventArgs { event_id: EventId(9), pad: 0 };
        assert_eq!(client.call(number, &mut unknown), Err(Errno::INVAL));
    }
    // Only signal events can be set by hand.
    let memory = client.event(EventType::MEMORY).event_id;
    assert_eq!(set(&client, memory), Err(Errno::INVAL));
}

#[test]
fn a_destroyed_event_ends_a_wait_with_eio() {
    let model = crate::Model::builder().build();
    let client = Client::new(&model);
    let id = client.event(EventType::SIGNAL).event_id;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.wait(&mut [entry(id, 0)], false, u32::MAX));
        std::thread::sleep(Duration::from_millis(20));
        client.call(0x09, &mut DestroyEventArgs { event_id: id, pad: 0 }).unwrap();
        assert_eq!(waiter.join().unwrap(), Err(Errno::IO));
    });
}

#[test]
fn the_event_page_is_given_once_large_enough_and_never_freed() {
    let client = client(Profile::V6_12);
    let create = |handle| {
        let mut args = CreateEventArgs { event_page_offset: handle, ..Default::default() };
        client.call(0x08, &mut args).map(|_| args.event_id.0)
    };
    let small = client.page(GTT, 4096);
    assert_eq!(create(small.handle), Err(Errno::INVAL));
    assert_eq!(create(12345), Err(Errno::INVAL));
    let page = client.page(AllocFlags::GTT | AllocFlags::WRITABLE, 32768);
    assert_eq!(create(page.handle), Ok(1));
    assert_eq!(page.u64(0).load(std::sync::atomic::Ordering::Acquire), u64::MAX);
    assert_eq!(create(page.handle), Err(Errno::INVAL));
    client.unmap_from(page.handle, &client.gpus).unwrap();
    assert_eq!(client.free(page.handle), Err(Errno::PERM));
}
