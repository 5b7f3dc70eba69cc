//! Any script of an adversary, any traffic of good waves.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use hostcall::layout::{LANES, Transport};
use hostcall::{Count, Counters, Pool, Registry, Replies, Request, Service, Words};
use proptest::prelude::*;

use crate::adversary::{Act, Hostile, is_answer, restore};
use crate::common::{self, ADDER, Call, Memory, Wave, adder, area, expected, pool, spec, sums};
use crate::turn;

/// Counts how often it was called for each first word.
#[derive(Default)]
struct Recorder(Arc<Mutex<HashMap<u64, u32>>>);

impl Service for Recorder {
    fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, _: &Counters) {
        for (lane, words) in request.lanes() {
            *self.0.lock().unwrap().entry(words[0]).or_default() += 1;
            replies.set(lane, [words[0] ^ u64::MAX, 1]);
        }
    }
}

/// A word with which no garbage collides.
const MARK: u64 = 0x6d61_726b_6d61_726b;

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..8_u64,
        3 => 0..512_u64,
        2 => any::<u64>(),
        1 => Just(u64::MAX),
        // A service number with READY in the word beside it.
        2 => (0..80_u64).prop_map(|service| 1 << 32 | service),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let elsewhere = proptest::option::weighted(0.3, (any::<usize>(), word()));
    let low = proptest::option::weighted(0.3, (0..64_usize, word()));
    let here = proptest::option::weighted(0.5, word());
    (elsewhere, low, here)
        .prop_map(|(elsewhere, low, here)| Act { elsewhere: elsewhere.or(low), here })
}

fn survives(
    transport: Transport,
    packets: u32,
    budget: u32,
    passes: u64,
    script: Vec<Act>,
    good: u32,
) -> Result<(), TestCaseError> {
    let area = area(transport, packets);
    let memory = Memory::new(&area);
    let hostile = Hostile::new(&memory);
    let mut pool = Pool::new(Arc::clone(&hostile), &spec(1, area)).unwrap();
    hostile.stores();
    let calls = Arc::<Mutex<HashMap<u64, u32>>>::default();
    let recorder = Recorder(Arc::clone(&calls));
    let mut table = Registry::new().with(ADDER, recorder).unwrap().build();
    let counters = Counters::default();
    *hostile.script.lock().unwrap() = script.into();

    // Per packet: link, control or phase, service, mask, 64 slots; per pass: the stack's top and a
    // look at each packet, twice for a search of lost ones.
    let most = |budget: u32| (budget as usize + 1) * (5 + LANES * 8) + 4 * packets as usize;
    let mut pass = |pool: &mut Pool<Arc<Hostile>>, time| {
        let pass = pool.pass(&mut table, &counters, &turn(budget, time));
        prop_assert!(hostile.loads().len() <= most(budget.max(packets)));
        for offset in hostile.stores() {
            prop_assert!(is_answer(&area, offset), "the host wrote at {offset:#x}");
        }
        Ok(pass)
    };
    for n in 0..passes {
        pass(&mut pool, 7 * n)?;
    }

    // The adversary leaves. What it left behind is worked off in a bounded number of passes.
    hostile.script.lock().unwrap().clear();
    restore(&area, &memory);
    let enough = u64::from(2 * packets / budget) + 4;
    let packet = good % packets;
    if transport == Transport::Phase {
        // A wave takes a packet whose phases agree.
        memory.store32(area.device_phase(packet), 0, Ordering::Relaxed);
        for n in 0..=enough {
            pass(&mut pool, 1000 + 7 * n)?;
        }
        memory.store32(area.host_phase(packet), 0, Ordering::Relaxed);
    }
    let wave = Wave::new(transport, &memory);
    let call = Call::new(ADDER, 1 << 5, [MARK; 8]);
    wave.fill(packet, &call);
    wave.submit(packet, packet.into());
    let sent = common::Sent { packet, tagged: packet.into(), lanes: call.lanes };
    if transport == Transport::Stack && packet == 0 {
        // Tagged index 0 is the empty stack: packet 0 always has a tag.
        let tagged = area.index_mask() + 1;
        memory.store64(32, tagged, Ordering::Relaxed);
    }
    for n in 0..=enough {
        if wave.is_answered(&sent) {
            break;
        }
        pass(&mut pool, 2000 + 7 * n)?;
    }
    prop_assert!(wave.is_answered(&sent), "the good call was not answered");
    let slot = wave.slot(packet, 5);
    prop_assert_eq!(memory.load64(slot, Ordering::Relaxed), MARK ^ u64::MAX);
    for n in 0..=enough {
        pass(&mut pool, 3000 + 7 * n)?;
    }
    let answered = calls.lock().unwrap().get(&MARK).copied();
    prop_assert_eq!(answered, Some(1), "answered exactly once");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_stack_transport_survives_any_words_at_any_time(
        packets in 2..70_u32,
        budget in 1..40_u32,
        passes in 0..12_u64,
        script in proptest::collection::vec(act(), 0..400),
        good in any::<u32>(),
    ) {
        survives(Transport::Stack, packets, budget, passes, script, good)?;
    }

    #[test]
    fn the_phase_transport_survives_any_words_at_any_time(
        packets in 2..200_u32,
        budget in 1..40_u32,
        passes in 0..12_u64,
        script in proptest::collection::vec(act(), 0..400),
        good in any::<u32>(),
    ) {
        survives(Transport::Phase, packets, budget, passes, script, good)?;
    }

    #[test]
    fn any_calls_of_good_waves_are_answered_once_each(
        transport in prop_oneof![Just(Transport::Stack), Just(Transport::Phase)],
        packets in 2..40_u32,
        budget in 1..20_u32,
        // Per wave: lanes, words, and how many passes come before the next is sent.
        calls in proptest::collection::vec((1..=u64::MAX, any::<[u64; 8]>(), 0..3_u32), 1..40),
    ) {
        let (mut pool, memory) = pool(transport, packets);
        let (mut table, served) = adder();
        let counters = Counters::default();
        let wave = Wave::new(transport, &memory);
        let mut open = Vec::new();
        for (lanes, words, passes) in &calls {
            let call = Call::new(ADDER, *lanes, *words);
            if open.len() == packets as usize {
                // The wave with the oldest packet has to be answered before there is one more.
                pool.pass(&mut table, &counters, &turn(packets * 3, 0));
                for (sent, call) in open.drain(..) {
                    let answer = wave.receive(&sent);
                    prop_assert_eq!(answer.as_deref().map(sums), Some(expected(&call)));
                }
            }
            open.push((wave.send(&call), call));
            for _ in 0..*passes {
                pool.pass(&mut table, &counters, &turn(budget, 0));
            }
        }
        while pool.pass(&mut table, &counters, &turn(budget, 0)).more {}
        for (sent, call) in open {
            let answer = wave.receive(&sent);
            prop_assert_eq!(answer.as_deref().map(sums), Some(expected(&call)));
        }
        prop_assert_eq!(served.load(Ordering::Relaxed), calls.len() as u64);
        prop_assert_eq!(counters.get(Count::Answered), calls.len() as u64);
        let clean = [Count::Answered, Count::StrayLanes];
        prop_assert!(counters.iter().all(|(count, _)| clean.contains(&count)));
    }
}
