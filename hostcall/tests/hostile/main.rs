//! A device that does everything it should not: whatever it writes, and whenever, a pass ends
//! within its bounds, touches nothing but answers, and the next good call is answered once.

#![cfg(not(loom))]
#![allow(clippy::indexing_slicing)] // a test that indexes past the end should fail

mod adversary;
mod both;
#[path = "../common/mod.rs"]
mod common;
mod phase;
mod properties;
mod stack;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use adversary::Hostile;
use common::{ADDER, Call, Memory, Wave, adder, area, expected, spec, sums};
use hostcall::layout::Transport;
use hostcall::pool::{Pass, Turn};
use hostcall::{Count, Counters, Pool, Table};

const BOTH: [Transport; 2] = [Transport::Stack, Transport::Phase];

fn turn(budget: u32, milliseconds: u64) -> Turn<'static> {
    Turn { budget, now: Duration::from_millis(milliseconds), refuse: false, stop: &|| false }
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
