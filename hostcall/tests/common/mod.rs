//! Pool memory and waves in software, for the tests.
//!
//! [`StackWave`] and [`PhaseWave`] do what the device library does, from the descriptor on: they
//! know no offset that a kernel does not know. Several threads may be waves of one pool.
#![allow(dead_code)] // each test binary uses a part
#![allow(clippy::indexing_slicing)] // a test that indexes past the end should fail

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hostcall::layout::{Area, LANES, SLOT_WORDS, Transport};
use hostcall::{Counters, Pool, PoolId, PoolSpec, Registry, Service, ServiceId, Table, Words};

/// Device address of the memory: waves find things by addresses.
pub const BASE: u64 = 0x7000_0000_0000;

/// Memory made of atomics. A word outside panics: nobody may ask for one.
#[derive(Debug)]
pub struct Memory {
    words: Vec<AtomicU64>,
    /// The bitmap in device memory, which the host never sees.
    occupied: Vec<AtomicU32>,
}

impl Memory {
    pub fn new(area: &Area) -> Arc<Self> {
        let words = (0..area.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
        let occupied = (0..area.occupied_bytes() / 4).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { words, occupied })
    }

    fn word(&self, offset: usize, bytes: usize) -> &AtomicU64 {
        assert_eq!(offset % bytes, 0, "misaligned access at {offset:#x}");
        self.words.get(offset / 8).unwrap_or_else(|| panic!("access outside at {offset:#x}"))
    }

    pub fn compare_exchange(&self, offset: usize, from: u64, to: u64) -> Result<u64, u64> {
        self.word(offset, 8).compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }
}

impl Words for Memory {
    fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    fn load32(&self, offset: usize, order: Ordering) -> u32 {
        let word = self.word(offset & !7, 8).load(order);
        assert_eq!(offset % 4, 0);
        u32::try_from(word >> (8 * (offset & 4)) & 0xffff_ffff).unwrap()
    }

    fn load64(&self, offset: usize, order: Ordering) -> u64 {
        self.word(offset, 8).load(order)
    }

    fn store32(&self, offset: usize, value: u32, _: Ordering) {
        assert_eq!(offset % 4, 0);
        let shift = 8 * (offset & 4);
        let put = |word: u64| Some(word & !(0xffff_ffff << shift) | u64::from(value) << shift);
        let word = self.word(offset & !7, 8);
        word.fetch_update(Ordering::AcqRel, Ordering::Acquire, put).unwrap();
    }

    fn store64(&self, offset: usize, value: u64, order: Ordering) {
        self.word(offset, 8).store(value, order);
    }

    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64 {
        self.word(offset, 8).swap(value, order)
    }
}

pub fn area(transport: Transport, packets: u32) -> Area {
    Area::new(transport, packets).unwrap()
}

pub fn spec(id: u32, area: Area) -> PoolSpec {
    let (base, doorbell, occupied) = (BASE, 0x1000, 0x2000);
    PoolSpec { id: PoolId(id), area, base, doorbell, occupied, wave_lanes: 64 }
}

/// A pool of `packets` with its memory.
pub fn pool(transport: Transport, packets: u32) -> (Pool<Arc<Memory>>, Arc<Memory>) {
    let area = area(transport, packets);
    let memory = Memory::new(&area);
    (Pool::new(Arc::clone(&memory), &spec(1, area)).unwrap(), memory)
}

/// A packet's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub service: u32,
    pub lanes: u64,
    pub slots: Box<[[u64; SLOT_WORDS]; LANES]>,
}

impl Call {
    /// Every lane of `lanes` sends `words`, its number added to the last.
    pub fn new(service: ServiceId, lanes: u64, words: [u64; SLOT_WORDS]) -> Self {
        let mut slots = Box::new([words; LANES]);
        for (lane, slot) in slots.iter_mut().enumerate() {
            slot[SLOT_WORDS - 1] = slot[SLOT_WORDS - 1].wrapping_add(lane as u64);
        }
        Self { service: service.0, lanes, slots }
    }
}

/// One wave's call that has been sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub packet: u32,
    pub tagged: u64,
    pub lanes: u64,
}

/// A wave, by transport.
#[derive(Clone, Debug)]
pub struct Wave {
    pub transport: Transport,
    pub memory: Arc<Memory>,
}

impl Wave {
    pub fn new(transport: Transport, memory: &Arc<Memory>) -> Self {
        Self { transport, memory: Arc::clone(memory) }
    }

    fn load(&self, offset: usize) -> u64 {
        self.memory.load64(offset, Ordering::Relaxed)
    }

    /// Offset of an address that the descriptor holds.
    fn region(&self, field: usize) -> usize {
        usize::try_from(self.load(field) - BASE).unwrap()
    }

    fn index_mask(&self) -> u64 {
        self.load(40)
    }

    pub fn header(&self, packet: u32) -> usize {
        match self.transport {
            Transport::Stack => self.region(0) + 24 * packet as usize,
            _ => self.region(24) + 16 * packet as usize,
        }
    }

    pub fn slot(&self, packet: u32, lane: usize) -> usize {
        let payloads = self.region(if self.transport == Transport::Stack { 8 } else { 32 });
        payloads + 4096 * packet as usize + 64 * lane
    }

    /// Takes a free packet.
    pub fn open(&self) -> (u32, u64) {
        match self.transport {
            Transport::Stack => {
                let mut top = self.memory.load64(24, Ordering::Acquire);
                loop {
                    let packet = u32::try_from(top & self.index_mask()).unwrap();
                    let next = self.load(self.header(packet));
                    match self.memory.compare_exchange(24, top, next) {
                        Ok(_) => return (packet, top),
                        Err(found) => top = found,
                    }
                }
            }
            _ => {
                let packets = self.memory.load32(48, Ordering::Relaxed);
                for packet in (0..packets).cycle() {
                    let word = &self.memory.occupied[packet as usize / 32];
                    let bit = 1 << (packet % 32);
                    if word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                        std::thread::yield_now();
                        continue;
                    }
                    if self.phase(0, packet) == self.phase(8, packet) {
                        return (packet, packet.into());
                    }
                    word.fetch_and(!bit, Ordering::Relaxed);
                }
                unreachable!("the range has no end");
            }
        }
    }

    fn phase(&self, field: usize, packet: u32) -> u32 {
        self.memory.load32(self.region(field) + 4 * packet as usize, Ordering::Acquire)
    }

    /// Writes the packet's words.
    pub fn fill(&self, packet: u32, call: &Call) {
        let header = self.header(packet);
        let fields = if self.transport == Transport::Stack { header + 8 } else { header };
        self.memory.store64(fields, call.lanes, Ordering::Relaxed);
        self.memory.store32(fields + 8, call.service, Ordering::Relaxed);
        if self.transport == Transport::Stack {
            self.memory.store32(header + 20, 1, Ordering::Relaxed);
        }
        for (lane, words) in call.slots.iter().enumerate() {
            if call.lanes >> lane & 1 == 0 {
                continue;
            }
            for (word, value) in words.iter().enumerate() {
                self.memory.store64(self.slot(packet, lane) + 8 * word, *value, Ordering::Relaxed);
            }
        }
    }

    /// Pushes a tagged index on a stack.
    pub fn push(&self, stack: usize, tagged: u64) {
        let packet = u32::try_from(tagged & self.index_mask()).unwrap();
        let mut top = self.load(stack);
        loop {
            self.memory.store64(self.header(packet), top, Ordering::Relaxed);
            match self.memory.compare_exchange(stack, top, tagged) {
                Ok(_) => return,
                Err(found) => top = found,
            }
        }
    }

    /// Hands the packet to the host.
    pub fn submit(&self, packet: u32, tagged: u64) {
        match self.transport {
            Transport::Stack => self.push(32, tagged),
            _ => {
                let offset = self.region(0) + 4 * packet as usize;
                let phase = self.memory.load32(offset, Ordering::Relaxed);
                self.memory.store32(offset, phase ^ 1, Ordering::Release);
            }
        }
    }

    /// Sends a call.
    pub fn send(&self, call: &Call) -> Sent {
        let (packet, tagged) = self.open();
        self.fill(packet, call);
        self.submit(packet, tagged);
        Sent { packet, tagged, lanes: call.lanes }
    }

    pub fn is_answered(&self, sent: &Sent) -> bool {
        match self.transport {
            Transport::Stack => {
                let control = self.header(sent.packet) + 20;
                self.memory.load32(control, Ordering::Acquire) & 1 == 0
            }
            _ => self.phase(0, sent.packet) == self.phase(8, sent.packet),
        }
    }

    /// Reads the answer and gives the packet back; `None` while there is none.
    pub fn receive(&self, sent: &Sent) -> Option<Vec<(usize, [u64; 2])>> {
        if !self.is_answered(sent) {
            return None;
        }
        let lanes = (0..LANES).filter(|lane| sent.lanes >> lane & 1 != 0);
        let answers = lanes.map(|lane| {
            let slot = self.slot(sent.packet, lane);
            (lane, [self.load(slot), self.load(slot + 8)])
        });
        let answers = answers.collect();
        match self.transport {
            Transport::Stack => {
                let step = self.index_mask() + 1;
                let tagged = sent.tagged.wrapping_add(step);
                self.push(24, if tagged == 0 { step } else { tagged });
            }
            _ => {
                let word = &self.memory.occupied[sent.packet as usize / 32];
                word.fetch_and(!(1 << (sent.packet % 32)), Ordering::Relaxed);
            }
        }
        Some(answers)
    }

    /// Sends a call and waits for its answer.
    pub fn call(&self, call: &Call, mut between: impl FnMut()) -> Vec<(usize, [u64; 2])> {
        let sent = self.send(call);
        loop {
            if let Some(answer) = self.receive(&sent) {
                return answer;
            }
            between();
        }
    }
}

/// A service of the tests: answers with the sum of a lane's words, and how often it was called.
#[derive(Debug, Default)]
pub struct Adder {
    pub calls: Arc<AtomicU64>,
}

/// The number it has.
pub const ADDER: ServiceId = ServiceId(77);

pub fn sum(words: &[u64; SLOT_WORDS]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

impl Service for Adder {
    fn serve(
        &mut self,
        request: &hostcall::Request<'_>,
        replies: &mut hostcall::Replies<'_>,
        _: &Counters,
    ) {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        for (lane, words) in request.lanes() {
            replies.set(lane, [sum(words), calls]);
        }
    }
}

/// A table with [`Adder`], and its count of calls.
pub fn adder() -> (Table, Arc<AtomicU64>) {
    let calls = Arc::default();
    let service = Adder { calls: Arc::clone(&calls) };
    (Registry::new().with(ADDER, service).unwrap().build(), calls)
}

/// What [`Adder`] answers.
pub fn expected(call: &Call) -> Vec<(usize, u64)> {
    let lanes = (0..LANES).filter(|lane| call.lanes >> lane & 1 != 0);
    lanes.map(|lane| (lane, sum(&call.slots[lane]))).collect()
}

pub fn sums(answers: &[(usize, [u64; 2])]) -> Vec<(usize, u64)> {
    answers.iter().map(|(lane, [sum, _])| (*lane, *sum)).collect()
}
