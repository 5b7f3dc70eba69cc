//! What a device can do on either transport.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hostcall::layout::{LANES, Transport};
use hostcall::pool::{Pass, Turn};
use hostcall::{Count, Counters, Pool, Registry, Replies, Request, Service, ServiceId, Words};

use crate::adversary::restore;
use crate::common::{self, ADDER, Call, Memory, Wave, adder, area, spec};
use crate::{BOTH, Bench, call, turn};

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
fn memory_that_is_too_small_makes_no_pool() {
    for transport in BOTH {
        let (small, large) = (area(transport, 4), area(transport, 5));
        let error = Pool::new(Memory::new(&small), &spec(1, large)).unwrap_err();
        let (needed, found) = (large.bytes(), small.bytes());
        let text = format!("a pool needs {needed} bytes of memory, not {found}");
        assert_eq!(error.to_string(), text);
    }
}
