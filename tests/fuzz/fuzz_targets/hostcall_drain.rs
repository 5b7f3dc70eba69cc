//! Whatever a device writes, and between whichever loads, a pass ends within its bounds, writes
//! nothing but answers, and the packets of both transports that it accepts are answered.
#![no_main]

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::time::Duration;

use hostcall::layout::{Area, LANES, Transport};
use hostcall::pool::Turn;
use hostcall::service::{DeviceHeap, Functions, HeapLimits, HeapSource, Sanitizer};
use hostcall::{Count, Counters, Pool, PoolId, PoolSpec, Registry, ServiceId, Words};
use libfuzzer_sys::fuzz_target;

/// Memory whose words the input rewrites between loads.
struct Memory<'a> {
    area: Area,
    words: RefCell<Vec<u64>>,
    script: RefCell<std::slice::Iter<'a, u8>>,
    loads: Cell<usize>,
    made: Cell<bool>,
}

impl Memory<'_> {
    fn byte(&self) -> u64 {
        self.script.borrow_mut().next().copied().unwrap_or(0).into()
    }

    /// One byte says what happens: mostly nothing, else a word here or anywhere.
    fn act(&self, offset: usize) {
        self.loads.set(self.loads.get() + 1);
        let what = self.byte();
        let at = match what >> 6 {
            0 => return,
            1 => offset / 8,
            2 => self.byte() as usize,
            _ => (self.byte() << 8 | self.byte()) as usize,
        };
        let value = match what & 7 {
            0 => 0,
            1 => u64::MAX,
            2 => self.byte() << 32 | self.byte(),
            3 => 1 << 32 | self.byte(),
            4 => self.byte() << 56 | self.byte() << 8 | self.byte(),
            _ => self.byte(),
        };
        let mut words = self.words.borrow_mut();
        let count = words.len();
        words[at % count] = value;
    }

    fn allowed(&self, offset: usize) -> bool {
        let area = &self.area;
        if !self.made.get() {
            return true;
        }
        if offset >= area.payloads() {
            return (offset - area.payloads()) % 64 < 16;
        }
        match area.transport() {
            Transport::Stack => {
                offset == 32 || (0..area.packets()).any(|packet| offset == area.control(packet))
            }
            _ => (0..area.packets()).any(|packet| offset == area.host_phase(packet)),
        }
    }
}

impl Words for Memory<'_> {
    fn bytes(&self) -> usize {
        self.words.borrow().len() * 8
    }
    fn load32(&self, offset: usize, _: Ordering) -> u32 {
        self.act(offset);
        (self.words.borrow()[offset / 8] >> (8 * (offset & 4))) as u32
    }
    fn load64(&self, offset: usize, _: Ordering) -> u64 {
        self.act(offset);
        self.words.borrow()[offset / 8]
    }
    fn store32(&self, offset: usize, value: u32, _: Ordering) {
        assert!(self.allowed(offset), "a store at {offset:#x}");
        let shift = 8 * (offset & 4);
        let word = &mut self.words.borrow_mut()[offset / 8];
        *word = *word & !(0xffff_ffff << shift) | u64::from(value) << shift;
    }
    fn store64(&self, offset: usize, value: u64, _: Ordering) {
        assert!(self.allowed(offset), "a store at {offset:#x}");
        self.words.borrow_mut()[offset / 8] = value;
    }
    fn swap64(&self, offset: usize, value: u64, _: Ordering) -> u64 {
        self.act(offset);
        assert!(self.allowed(offset), "a store at {offset:#x}");
        std::mem::replace(&mut self.words.borrow_mut()[offset / 8], value)
    }
}

struct Numbers(u64);

impl HeapSource for Numbers {
    type Block = ();
    fn allocate(&mut self, bytes: u64, align: u64) -> Option<(u64, ())> {
        self.0 = self.0.checked_add(align)?.checked_next_multiple_of(align)?;
        let address = self.0;
        self.0 = self.0.checked_add(bytes)?;
        Some((address, ()))
    }
}

fuzz_target!(|data: &[u8]| {
    let [kind, packets, budget, passes, script @ ..] = data else { return };
    let transport = if kind & 1 == 0 { Transport::Stack } else { Transport::Phase };
    let packets = u32::from(packets % 15) + 2;
    let budget = u32::from(budget % 16) + 1;
    let area = Area::new(transport, packets).expect("a small pool");
    let words = RefCell::new(vec![0; area.bytes() / 8]);
    let script = RefCell::new(script.iter());
    let memory =
        Memory { area, words, script, loads: Cell::new(0), made: Cell::new(false) };
    let spec = PoolSpec {
        id: PoolId(1),
        area,
        base: 0x1000_0000,
        doorbell: 0x2000,
        occupied: 0x3000,
        wave_lanes: if kind & 2 == 0 { 64 } else { 32 },
    };
    let mut pool = Pool::new(memory, &spec).expect("memory of the right size");
    pool.words().made.set(true);

    let limits = HeapLimits { bytes: 1 << 24, blocks: 100 };
    let heap = DeviceHeap::new(Numbers(1 << 30), limits);
    let control = heap.control();
    let functions = Functions::new().with(1, |words: &[u64; 7]| [words[0], words[6]]);
    let registry = Registry::new()
        .with(ServiceId::FUNCTION, functions.expect("one function"))
        .and_then(|registry| registry.with(ServiceId::DEVICE_MEMORY, heap))
        .and_then(|registry| registry.with(ServiceId::SANITIZER, Sanitizer::new(drop, 100)));
    let mut table = registry.expect("three services").build();
    let counters = Counters::default();

    let most = (budget.max(packets) as usize + 1) * (5 + LANES * 8) + 4 * packets as usize;
    for pass in 0..u64::from(passes % 8) + 1 {
        pool.words().loads.set(0);
        let refuse = pass == 7;
        let turn =
            Turn { budget, now: Duration::from_millis(13 * pass), refuse, stop: &|| false };
        let done = pool.pass(&mut table, &counters, &turn);
        assert!(done.answered <= budget.max(packets) + packets);
        assert!(pool.words().loads.get() <= most);
    }
    assert!(control.live_bytes() <= limits.bytes && control.live_blocks() <= limits.blocks);
    assert_eq!(counters.get(Count::ServicePanics), 0);
});
