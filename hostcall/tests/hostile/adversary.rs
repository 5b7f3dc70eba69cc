//! Memory that changes between any two loads of the host.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use hostcall::Words;
use hostcall::layout::{Area, Transport};

use crate::common::{BASE, Memory};

/// What the adversary does before one of the host's loads.
#[derive(Clone, Debug)]
pub struct Act {
    /// Writes a word anywhere.
    pub elsewhere: Option<(usize, u64)>,
    /// Writes the word that is about to be loaded.
    pub here: Option<u64>,
}

/// Memory with an adversary that acts between any two loads of the host, and a record of what the
/// host does.
#[derive(Debug)]
pub struct Hostile {
    memory: Arc<Memory>,
    pub script: Mutex<VecDeque<Act>>,
    loads: Mutex<Vec<usize>>,
    stores: Mutex<Vec<usize>>,
}

impl Hostile {
    pub fn new(memory: &Arc<Memory>) -> Arc<Self> {
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

    pub fn loads(&self) -> Vec<usize> {
        std::mem::take(&mut self.loads.lock().unwrap())
    }

    pub fn stores(&self) -> Vec<usize> {
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

/// Puts back what the host wrote once and never reads: a good wave needs it.
pub fn restore(area: &Area, memory: &Memory) {
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
pub fn is_answer(area: &Area, offset: usize) -> bool {
    let packets = 0..area.packets();
    let payload = offset >= area.payloads() && (offset - area.payloads()) % 64 < 16;
    match area.transport() {
        Transport::Stack => {
            payload || offset == 32 || packets.into_iter().any(|p| offset == area.control(p))
        }
        _ => payload || packets.into_iter().any(|p| offset == area.host_phase(p)),
    }
}
