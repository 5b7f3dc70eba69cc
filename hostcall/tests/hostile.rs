//! A device that does everything it should not: whatever it writes, and whenever, a pass ends
//! within its bounds, touches nothing but answers, and the next good call is answered once.

#![cfg(not(loom))]

mod common;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{ADDER, BASE, Call, Memory, Wave, adder, area, expected, pool, spec, sums};
use hostcall::layout::{Area, LANES, Transport};
use hostcall::pool::{Pass, Turn};
use hostcall::{
    Count, Counters, Pool, Registry, Replies, Request, Service, ServiceId, Table, Words,
};
use proptest::prelude::*;

const BOTH: [Transport; 2] = [Transport::Stack, Transport::Phase];

fn turn(budget: u32, milliseconds: u64) -> Turn<'static> {
    Turn { budget, now: Duration::from_millis(milliseconds), refuse: false, stop: &|| false }
}

/// What the adversary does before one of the host's loads.
#[derive(Clone, Debug)]
struct Act {
    /// Writes a word anywhere.
    elsewhere: Option<(usize, u64)>,
    /// Writes the word that is about to be loaded.
    here: Option<u64>,
}

/// Memory with an adversary that acts between any two loads of the host, and a record of what the
/// host does.
#[derive(Debug)]
struct Hostile {
    memory: Arc<Memory>,
    script: Mutex<VecDeque<Act>>,
    loads: Mutex<Vec<usize>>,
    stores: Mutex<Vec<usize>>,
}

impl Hostile {
    fn new(memory: &Arc<Memory>) -> Arc<Self> {
        Arc::new(Self {
            memory: Arc::clone(memory),
            script: Mutex::default(),
            loads: Mutex::default(),
            stores: Mutex::default(),
        })
    }

    fn act(&self, offset: usize) {
        self.loads.lock().unwrap().push(offset);
        let Some(act) = self.script.lock().unwrap().pop_front() else { return };
        if let Some((at, value)) = act.elsewhere {
            let at = at % (self.memory.bytes() / 8) * 8;
            self.memory.store64(at, value, Ordering::Relaxed);
        }
        if let Some(value) = act.here {
            self.memory.store64(offset & !7, value, Ordering::Relaxed);
        }
    }

    fn loads(&self) -> Vec<usize> {
        std::mem::take(&mut self.loads.lock().unwrap())
    }

    fn stores(&self) -> Vec<usize> {
        std::mem::take(&mut self.stores.lock().unwrap())
    }
}

impl Words for Hostile {
    fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    fn load32(&self, offset: usize, order: Ordering) -> u32 {
        self.act(offset);
        self.memory.load32(offset, order)
    }

    fn load64(&self, offset: usize, order: Ordering) -> u64 {
        self.act(offset);
        self.memory.load64(offset, order)
    }

    fn store32(&self, offset: usize, value: u32, order: Ordering) {
        self.stores.lock().unwrap().push(offset);
        self.memory.store32(offset, value, order);
    }

    fn store64(&self, offset: usize, value: u64, order: Ordering) {
        self.stores.lock().unwrap().push(offset);
        self.memory.store64(offset, value, order);
    }

    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64 {
        self.act(offset);
        self.stores.lock().unwrap().push(offset);
        self.memory.swap64(offset, value, order)
    }
}

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

/// Puts back what the host wrote once and never reads: a good wave needs it.
fn restore(area: &Area, memory: &Memory) {
    let descriptor: Vec<u64> = match area.transport() {
        Transport::Stack => {
            let whole = area.stack_descriptor(BASE, 0x1000);
            let ready = memory.load64(32, Ordering::Relaxed);
            vec![whole.headers, whole.payloads, whole.doorbell, 0, ready, whole.index_mask]
        }
        _ => {
            let whole = area.phase_descriptor(BASE, 0x2000, 0x1000);
            vec![
                whole.device_phase,
                whole.host_phase,
                whole.occupied,
                whole.headers,
                whole.payloads,
                whole.doorbell,
                whole.num_packets.into(),
            ]
        }
    };
    for (at, word) in descriptor.into_iter().enumerate() {
        memory.store64(8 * at, word, Ordering::Relaxed);
    }
}

/// Where the host may write once the pool is made.
fn is_answer(area: &Area, offset: usize) -> bool {
    let packets = 0..area.packets();
    let payload = offset >= area.payloads() && (offset - area.payloads()) % 64 < 16;
    match area.transport() {
        Transport::Stack => {
            payload || offset == 32 || packets.into_iter().any(|p| offset == area.control(p))
        }
        _ => payload || packets.into_iter().any(|p| offset == area.host_phase(p)),
    }
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

/// A pool with its wave, table and counters.
struct Bench {
    pool: Pool<Arc<Hostile>>,
    hostile: Arc<Hostile>,
    memory: Arc<Memory>,
    wave: Wave,
    table: Table,
    served: Arc<AtomicU64>,
    counters: Counters,
}

impl Bench {
    fn new(transport: Transport, packets: u32) -> Self {
        let area = area(transport, packets);
        let memory = Memory::new(&area);
        let hostile = Hostile::new(&memory);
        let pool = Pool::new(Arc::clone(&hostile), &spec(1, area)).unwrap();
        hostile.stores();
        let wave = Wave::new(transport, &memory);
        let (table, served) = adder();
        Self { pool, hostile, memory, wave, table, served, counters: Counters::default() }
    }

    fn pass_at(&mut self, milliseconds: u64) -> Pass {
        self.pool.pass(&mut self.table, &self.counters, &turn(100, milliseconds))
    }

    fn pass(&mut self) -> Pass {
        self.pass_at(0)
    }

    fn get(&self, count: Count) -> u64 {
        self.counters.get(count)
    }

    /// A good call is answered, and right.
    fn check_next(&mut self) {
        let call = Call::new(ADDER, 0b101, [11; 8]);
        let sent = self.wave.send(&call);
        self.pass();
        let answer = self.wave.receive(&sent).expect("the next good call is answered");
        assert_eq!(sums(&answer), expected(&call));
    }
}

fn call() -> Call {
    Call::new(ADDER, 1, [7; 8])
}

#[test]
fn the_device_cannot_widen_the_index_mask_or_the_number_of_packets() {
    for transport in BOTH {
        let mut bench = Bench::new(transport, 3);
        let field = if transport == Transport::Stack { 40 } else { 48 };
        bench.memory.store64(field, u64::MAX, Ordering::Relaxed);
        if transport == Transport::Stack {
            // 3 packets, mask 3: index 3 has no packet; without the private mask neither has 4000.
            for index in [3, 4003, 1 << 40 | 3] {
                bench.memory.store64(32, index, Ordering::Relaxed);
                bench.pass();
            }
            assert_eq!(bench.get(Count::BadIndex), 3);
        }
        bench.pass();
        assert!(!bench.hostile.loads().contains(&field), "the host reads its own copy");
        restore(bench.pool.area(), &bench.memory);
        if transport == Transport::Stack {
            bench.memory.store64(24, 2, Ordering::Relaxed);
        }
        bench.check_next();
    }
}

#[test]
fn addresses_in_the_descriptor_are_never_read_back() {
    for transport in BOTH {
        let mut bench = Bench::new(transport, 4);
        let sent = bench.wave.send(&call());
        let words = if transport == Transport::Stack { 0..3 } else { 0..7 };
        for at in words.clone() {
            bench.memory.store64(8 * at, 0xdead_beef_0000, Ordering::Relaxed);
        }
        assert_eq!(bench.pass().answered, 1);
        let loads = bench.hostile.loads();
        assert!(words.clone().all(|at| !loads.contains(&(8 * at))));
        restore(bench.pool.area(), &bench.memory);
        assert!(bench.wave.is_answered(&sent));
    }
}

#[test]
fn each_word_of_a_packet_is_loaded_once() {
    for transport in BOTH {
        let mut bench = Bench::new(transport, 4);
        bench.wave.send(&Call::new(ADDER, u64::MAX, [3; 8]));
        bench.hostile.loads();
        bench.pass();
        let mut loads = bench.hostile.loads();
        // The stack's top is looked at once more to see that it is empty.
        loads.retain(|&offset| offset != 32 || transport == Transport::Phase);
        let total = loads.len();
        loads.sort_unstable();
        loads.dedup();
        assert_eq!(loads.len(), total);
        assert!(total >= 4 + LANES * 8);
    }
}

#[test]
fn a_payload_that_changes_after_it_was_read_changes_nothing() {
    let mut bench = Bench::new(Transport::Stack, 4);
    let call = Call::new(ADDER, 1, [5; 8]);
    let sent = bench.wave.send(&call);
    let slot = bench.wave.slot(sent.packet, 0);
    // Loads of one packet: top, link, control, service, mask, then the slot's words. After word 7
    // there is none left to change anything with, so change words 0 to 6 before word 7 is loaded.
    let idle = Act { elsewhere: None, here: None };
    let mut script = vec![idle; 12];
    for (word, act) in script[6..12].iter_mut().enumerate() {
        act.elsewhere = Some((slot / 8 + word, 1 << 40));
    }
    *bench.hostile.script.lock().unwrap() = script.into();
    bench.pass();
    let answer = bench.wave.receive(&sent).unwrap();
    assert_eq!(sums(&answer), expected(&call));
}

#[test]
fn a_packet_pushed_twice_is_answered_once() {
    let mut bench = Bench::new(Transport::Stack, 4);
    let sent = bench.wave.send(&call());
    bench.wave.push(32, sent.tagged); // its link now names itself
    bench.pass();
    assert_eq!((bench.get(Count::Answered), bench.get(Count::Cycles)), (1, 1));
    assert_eq!(bench.served.load(Ordering::Relaxed), 1);
    // Pushed again after its answer: nobody waits on it.
    bench.wave.push(32, sent.tagged);
    bench.pass();
    assert_eq!((bench.get(Count::Answered), bench.get(Count::NotReady)), (1, 1));
    bench.wave.receive(&sent).unwrap();
    bench.check_next();
}

#[test]
fn what_a_cycle_cuts_off_is_answered_with_errors_later() {
    let mut bench = Bench::new(Transport::Stack, 8);
    let lost = [bench.wave.send(&call()), bench.wave.send(&call())];
    let top = bench.wave.send(&call());
    bench.memory.store64(bench.wave.header(top.packet), top.tagged, Ordering::Relaxed);
    assert_eq!(bench.pass_at(0).answered, 1);
    assert!(bench.wave.receive(&top).is_some());
    for (time, answered) in [(1, 0), (24, 0), (25, 0), (26, 0), (49, 0), (50, 2), (100, 0)] {
        assert_eq!(bench.pass_at(time).answered, answered, "at {time} ms");
    }
    assert_eq!(bench.get(Count::Rescued), 2);
    assert_eq!(bench.served.load(Ordering::Relaxed), 1, "the lost ones were not executed");
    for sent in lost {
        assert_eq!(bench.wave.receive(&sent), Some(vec![(0, [u64::MAX, 0])]));
    }
    bench.check_next();
}

#[test]
fn a_packet_that_is_being_filled_is_not_taken_for_lost() {
    let mut bench = Bench::new(Transport::Stack, 8);
    bench.memory.store64(32, 8 + 7, Ordering::Relaxed); // packet 7 is not READY
    bench.memory.store64(bench.wave.header(7), 8 + 7, Ordering::Relaxed); // and closes a cycle
    bench.pass_at(0);
    assert_eq!(bench.get(Count::Cycles), 1);
    restore(bench.pool.area(), &bench.memory);
    bench.memory.store64(24, 6, Ordering::Relaxed);
    // READY at the first look, pushed before the second: it was on its way.
    let (packet, tagged) = bench.wave.open();
    bench.wave.fill(packet, &call());
    bench.pass_at(30);
    bench.wave.submit(packet, tagged);
    bench.pass_at(31);
    bench.pass_at(90);
    assert_eq!((bench.get(Count::Rescued), bench.served.load(Ordering::Relaxed)), (0, 1));
}

#[test]
fn a_chain_into_free_packets_answers_none_of_them() {
    let mut bench = Bench::new(Transport::Stack, 8);
    let sent = bench.wave.send(&call());
    // Below the packet lies the free stack: six packets that nobody waits on.
    bench.memory.store64(bench.wave.header(sent.packet), 6, Ordering::Relaxed);
    let pass = bench.pass();
    assert_eq!((pass.answered, bench.get(Count::NotReady)), (1, 7));
    bench.wave.receive(&sent).unwrap();
    bench.check_next();
}

#[test]
fn the_longest_chain_takes_as_many_steps_as_there_are_packets() {
    let mut bench = Bench::new(Transport::Stack, 64);
    for packet in 0..64_u64 {
        let header = bench.wave.header(u32::try_from(packet).unwrap());
        bench.memory.store64(header, (packet + 1) % 64 + 64, Ordering::Relaxed);
    }
    bench.memory.store64(32, 64, Ordering::Relaxed);
    bench.pass();
    assert_eq!((bench.get(Count::NotReady), bench.get(Count::Cycles)), (64, 1));
}

/// A stack that is never empty: packet 1 is always on it, always READY.
#[derive(Debug)]
struct Flood(Arc<Memory>, AtomicU64);

impl Words for Flood {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
    fn load32(&self, offset: usize, order: Ordering) -> u32 {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.load32(offset, order) | 1
    }
    fn load64(&self, offset: usize, order: Ordering) -> u64 {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.load64(offset, order)
    }
    fn store32(&self, offset: usize, value: u32, order: Ordering) {
        self.0.store32(offset, value, order);
    }
    fn store64(&self, offset: usize, value: u64, order: Ordering) {
        self.0.store64(offset, value, order);
    }
    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64 {
        self.0.swap64(offset, value, order);
        1
    }
}

#[test]
fn endless_pushing_costs_a_pass_no_more_than_its_budget() {
    let area = area(Transport::Stack, 4);
    let flood = Arc::new(Flood(Memory::new(&area), AtomicU64::new(0)));
    let mut pool = Pool::new(Arc::clone(&flood), &spec(1, area)).unwrap();
    let (mut table, _) = adder();
    let counters = Counters::default();
    for _ in 0..10 {
        flood.1.store(0, Ordering::Relaxed);
        let pass = pool.pass(&mut table, &counters, &turn(50, 0));
        assert!(pass.more && pass.answered <= 50);
        assert!(flood.1.load(Ordering::Relaxed) <= 50 * (5 + 512));
    }
}

#[test]
fn the_stop_request_ends_a_pass_before_the_next_packet() {
    for transport in BOTH {
        let mut bench = Bench::new(transport, 8);
        let sent: Vec<_> = (0..4).map(|_| bench.wave.send(&call())).collect();
        let served = Arc::clone(&bench.served);
        let stop = move || served.load(Ordering::Relaxed) >= 2;
        let turn = Turn { stop: &stop, ..turn(100, 0) };
        let pass = bench.pool.pass(&mut bench.table, &bench.counters, &turn);
        assert_eq!(pass, Pass { answered: 2, more: true });
        assert_eq!(bench.pass().answered, 2, "nothing was lost");
        assert!(sent.iter().all(|sent| bench.wave.receive(sent).is_some()));
    }
}

#[test]
fn the_last_look_is_at_every_packet_wherever_a_stop_cut_the_scan_short() {
    let mut bench = Bench::new(Transport::Phase, 8);
    let first = bench.wave.send(&call()); // packet 0
    let second = bench.wave.send(&call());
    let served = Arc::clone(&bench.served);
    let stop = move || served.load(Ordering::Relaxed) >= 1;
    bench.pool.pass(&mut bench.table, &bench.counters, &Turn { stop: &stop, ..turn(100, 0) });
    assert!(bench.wave.receive(&first).is_some());
    let again = bench.wave.send(&call()); // packet 0, behind the scan
    assert_eq!(again.packet, first.packet);
    let last = Turn { refuse: true, ..turn(100, 0) };
    assert_eq!(bench.pool.pass(&mut bench.table, &bench.counters, &last).answered, 2);
    for sent in [again, second] {
        assert_eq!(bench.wave.receive(&sent), Some(vec![(0, [u64::MAX, 0])]));
    }
}

#[test]
fn lanes_beyond_the_wave_are_ignored_and_a_packet_without_lanes_is_answered() {
    for transport in BOTH {
        let area = area(transport, 4);
        let memory = Memory::new(&area);
        let narrow = hostcall::PoolSpec { wave_lanes: 32, ..spec(1, area) };
        let mut pool = Pool::new(Arc::clone(&memory), &narrow).unwrap();
        let wave = Wave::new(transport, &memory);
        let (mut table, served) = adder();
        let counters = Counters::default();
        let wide = wave.send(&Call::new(ADDER, 1 << 40 | 1 << 31, [9; 8]));
        let none = wave.send(&Call::new(ADDER, 0, [9; 8]));
        pool.pass(&mut table, &counters, &turn(10, 0));
        let answers = wave.receive(&wide).unwrap();
        assert_eq!(answers[0].1[0], 9 * 8 + 31);
        assert_eq!(answers[1].1, [9, 9], "lane 40 was left alone");
        assert_eq!(wave.receive(&none), Some(vec![]));
        assert_eq!((counters.get(Count::StrayLanes), counters.get(Count::EmptyMask)), (1, 1));
        assert_eq!(served.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn unknown_services_get_an_error_and_poison_nothing() {
    for transport in BOTH {
        let mut bench = Bench::new(transport, 4);
        for (service, words, answer) in [
            (0, 5, u64::MAX),
            (999, 5, u64::MAX),
            (u32::MAX, 5, u64::MAX),
            (1, 0x1234, u64::MAX),
            (2, 0b11, u64::MAX), // printf: a message that ends gets -1
            (2, 0b01, 0),        // one that goes on gets message 0
            (3, 0, 0),           // memory: null
            (4, 7, u64::MAX),
        ] {
            let sent = bench.wave.send(&Call::new(ServiceId(service), 2, [words; 8]));
            bench.pass();
            let answers = bench.wave.receive(&sent).expect("every packet is answered");
            assert_eq!(answers, [(1, [answer, 0])], "service {service}");
            bench.check_next();
        }
        assert_eq!(bench.get(Count::UnknownService), 8);
    }
}

struct Bomb;

impl Service for Bomb {
    fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, _: &Counters) {
        replies.set(0, [123, 456]);
        let (_, words) = request.lanes().nth(1).unwrap();
        panic!("asked for {}", words[0]);
    }
}

#[test]
fn a_service_that_panics_answers_with_errors_and_goes_on() {
    for transport in BOTH {
        let mut bench = Bench::new(transport, 4);
        let registry = Registry::new().with(ServiceId(5), Bomb).unwrap();
        bench.table = registry.with(ADDER, common::Adder::default()).unwrap().build();
        for _ in 0..3 {
            let sent = bench.wave.send(&Call::new(ServiceId(5), 0b11, [1; 8]));
            bench.pass();
            let error = [u64::MAX, 0];
            assert_eq!(bench.wave.receive(&sent), Some(vec![(0, error), (1, error)]));
            bench.check_next();
        }
        assert_eq!(bench.get(Count::ServicePanics), 3);
    }
}

#[test]
fn a_control_word_cleared_early_is_not_served_and_keeps_no_bit_of_the_device() {
    let mut bench = Bench::new(Transport::Stack, 4);
    let early = bench.wave.send(&call());
    let control = bench.wave.header(early.packet) + 20;
    bench.memory.store32(control, 0xffff_fffe, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 0);
    bench.wave.receive(&early).unwrap();
    let loud = bench.wave.send(&call());
    let control = bench.wave.header(loud.packet) + 20;
    bench.memory.store32(control, u32::MAX, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 1);
    assert_eq!(bench.memory.load32(control, Ordering::Relaxed), 0);
}

#[test]
fn a_phase_flipped_back_or_out_of_range_is_no_call_and_counted_once() {
    let mut bench = Bench::new(Transport::Phase, 4);
    let sent = bench.wave.send(&call());
    let phase = bench.pool.area().device_phase(sent.packet);
    bench.memory.store32(phase, 0, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 0, "taken back");
    for _ in 0..5 {
        bench.memory.store32(phase, 7, Ordering::Relaxed);
        assert_eq!(bench.pass().answered, 0);
    }
    assert_eq!(bench.get(Count::BadPhase), 1);
    bench.memory.store32(phase, 1, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 1);
    assert!(bench.wave.receive(&sent).is_some());
    bench.check_next();
}

#[test]
fn a_host_phase_that_the_device_overwrites_is_not_believed() {
    let mut bench = Bench::new(Transport::Phase, 4);
    let sent = bench.wave.send(&call());
    let host = bench.pool.area().host_phase(sent.packet);
    bench.memory.store32(host, 1, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 1, "by the host's own copy it waits");
    assert_eq!(bench.memory.load32(host, Ordering::Relaxed), 1);
    assert!(!bench.hostile.loads().contains(&host));
}

#[test]
fn a_packet_far_beyond_the_busy_ones_is_answered() {
    let mut bench = Bench::new(Transport::Phase, 2000);
    let far = 1999;
    bench.wave.fill(far, &call());
    bench.wave.submit(far, far.into());
    let sent = common::Sent { packet: far, tagged: far.into(), lanes: 1 };
    let mut passes = 0;
    while !bench.wave.is_answered(&sent) {
        bench.wave.call(&call(), || {
            bench.pool.pass(&mut bench.table, &bench.counters, &turn(100, 0));
            passes += 1;
        });
        assert!(passes < 40, "starved");
    }
}

#[test]
fn a_reset_pool_has_every_packet_free_again() {
    for transport in BOTH {
        let mut bench = Bench::new(transport, 4);
        for _ in 0..4 {
            bench.wave.send(&call()); // waves that are killed now
        }
        bench.pool.reset();
        let memory = Memory::new(bench.pool.area()); // for a bitmap of zeros
        for at in 0..memory.bytes() / 8 {
            let word = bench.memory.load64(8 * at, Ordering::Relaxed);
            memory.store64(8 * at, word, Ordering::Relaxed);
        }
        let wave = Wave::new(transport, &memory);
        let mut packets: Vec<_> = (0..4).map(|_| wave.open().0).collect();
        packets.sort_unstable();
        assert_eq!(packets, [0, 1, 2, 3]);
        assert_eq!(bench.pass(), Pass::default(), "nothing waits");
    }
}

#[test]
fn aba_tags_come_back_through_every_wrap() {
    let mut bench = Bench::new(Transport::Stack, 2);
    // The next tag wraps to 0, which is the empty stack, and has to be skipped.
    bench.memory.store64(24, 0_u64.wrapping_sub(2), Ordering::Relaxed);
    bench.memory.store64(bench.wave.header(0), 0, Ordering::Relaxed);
    for _ in 0..3 {
        bench.check_next();
        let free = bench.memory.load64(24, Ordering::Relaxed);
        assert_ne!(free, 0);
        assert_eq!(free & 1, 0, "packet 0");
    }
}

#[test]
fn memory_that_is_too_small_makes_no_pool() {
    for transport in BOTH {
        let (small, large) = (area(transport, 4), area(transport, 5));
        let error = Pool::new(Memory::new(&small), &spec(1, large)).unwrap_err();
        let (needed, found) = (large.bytes(), small.bytes());
        let text = format!("a pool needs {needed} bytes of memory, not {found}");
        assert_eq!(error.to_string(), text);
    }
}
