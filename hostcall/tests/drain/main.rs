//! The drain's thread: how it sleeps, wakes and ends.

#![cfg(not(loom))]
#![allow(clippy::indexing_slicing)] // a test that indexes past the end should fail

#[path = "../common/mod.rs"]
mod common;
mod end;
mod sleep;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{ADDER, Call, Memory, Wave, pool};
use hostcall::layout::Transport;
use hostcall::{Counters, Drain, DrainConfig, HostBell, PoolId, Table};

const BOTH: [Transport; 2] = [Transport::Stack, Transport::Phase];
const POOL: PoolId = PoolId(1);
/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(20);

type TestDrain = Drain<Arc<Memory>>;

struct Bench {
    drain: TestDrain,
    bell: Arc<HostBell>,
    counters: Arc<Counters>,
}

impl Bench {
    fn with(table: Table, config: DrainConfig) -> Self {
        let (bell, counters) = (Arc::new(HostBell::new()), Arc::new(Counters::default()));
        let drain = Drain::start(table, bell.clone(), Arc::clone(&counters), config).unwrap();
        Self { drain, bell, counters }
    }

    fn new(table: Table) -> Self {
        Self::with(table, DrainConfig { patience: LONG, ..DrainConfig::DEFAULT })
    }

    fn attach(&self, transport: Transport, packets: u32) -> Wave {
        let (pool, memory) = pool(transport, packets);
        self.drain.attach(pool).unwrap();
        Wave::new(transport, &memory)
    }
}

fn call() -> Call {
    Call::new(ADDER, 1, [7; 8])
}

/// Waits for something that must happen.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "never: {what}");
        thread::yield_now();
    }
}
