//! Services: what kernels ask for, and how little of it is believed.

#![cfg(not(loom))]
#![allow(clippy::indexing_slicing)] // a test that indexes past the end should fail

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use hostcall::layout::{LANES, SLOT_WORDS};
use hostcall::service::{
    DeviceHeap, Fragments, Functions, HeapControl, HeapLimits, HeapSource, Printf, SLAB_BYTES,
    Sanitizer, SanitizerReport,
};
use hostcall::{
    Count, Counters, Error, PoolId, Registry, Replies, Request, Service, ServiceId, Source,
};

const SOURCE: Source = Source { pool: PoolId(3), packet: 5 };

/// Serves one packet whose lanes send `words`.
fn serve(
    service: &mut dyn Service,
    counters: &Counters,
    words: &[[u64; SLOT_WORDS]],
) -> Vec<[u64; 2]> {
    let mut slots = [[0xdead; SLOT_WORDS]; LANES];
    slots[..words.len()].copy_from_slice(words);
    let lanes = if words.len() == LANES { u64::MAX } else { (1 << words.len()) - 1 };
    let request = Request::new(SOURCE, ServiceId(0), lanes, &slots);
    let mut answers = [[0xdead; 2]; LANES];
    service.serve(&request, &mut Replies::new(lanes, &mut answers), counters);
    assert!(answers[words.len()..].iter().all(|answer| *answer == [0xdead; 2]));
    answers[..words.len()].to_vec()
}

/// Memory at rising addresses; remembers what is out.
#[derive(Clone, Default)]
struct Addresses {
    next: u64,
    out: Arc<Mutex<BTreeSet<u64>>>,
    lie: u64,
}

struct Block(u64, Arc<Mutex<BTreeSet<u64>>>);

impl Drop for Block {
    fn drop(&mut self) {
        assert!(self.1.lock().unwrap().remove(&self.0), "freed twice");
    }
}

impl HeapSource for Addresses {
    type Block = Block;

    fn allocate(&mut self, bytes: u64, align: u64) -> Option<(u64, Block)> {
        let address = (self.next + 4096).next_multiple_of(align) + self.lie;
        self.next = address + bytes;
        self.out.lock().unwrap().insert(address);
        Some((address, Block(address, Arc::clone(&self.out))))
    }
}

fn heap(
    limits: HeapLimits,
) -> (DeviceHeap<Addresses>, Arc<HeapControl>, Arc<Mutex<BTreeSet<u64>>>) {
    let source = Addresses::default();
    let out = Arc::clone(&source.out);
    let heap = DeviceHeap::new(source, limits);
    let control = heap.control();
    (heap, control, out)
}

fn ask(bytes: u64) -> [u64; SLOT_WORDS] {
    [0, bytes, 0, 0, 0, 0, 0, 0]
}

fn give(address: u64) -> [u64; SLOT_WORDS] {
    [address, 99, 0, 0, 0, 0, 0, 0]
}

#[test]
fn slabs_are_aligned_to_their_size_and_blocks_to_pages() {
    let (mut heap, control, _) = heap(HeapLimits::DEFAULT);
    let counters = Counters::default();
    for bytes in [SLAB_BYTES, 1, 16, 6144, SLAB_BYTES, SLAB_BYTES + 1, 3073, SLAB_BYTES] {
        let [[address, second]] = serve(&mut heap, &counters, &[ask(bytes)])[..] else { panic!() };
        let align = if bytes == SLAB_BYTES { SLAB_BYTES } else { 4096 };
        assert!(address != 0 && address % align == 0, "{bytes} bytes at {address:#x}");
        assert_eq!(second, 0);
    }
    assert_eq!(control.live_blocks(), 8);
    assert_eq!(counters.iter().count(), 0);
}

#[test]
fn a_heap_limit_is_a_limit() {
    // FF-19: 1 MiB, 64 lanes that want 64 KiB each.
    let (mut heap, control, _) = heap(HeapLimits { bytes: 1 << 20, blocks: 1000 });
    let counters = Counters::default();
    assert_eq!(control.limits().bytes, 1 << 20);
    let answers = serve(&mut heap, &counters, &[ask(64 << 10); LANES]);
    let served: BTreeSet<u64> =
        answers.iter().map(|[address, _]| *address).filter(|&address| address != 0).collect();
    assert_eq!((served.len(), control.live_bytes()), (16, 1 << 20));
    assert_eq!(counters.get(Count::HeapExhausted), 48);
    let mut last = 0;
    assert!(served.into_iter().all(|at| std::mem::replace(&mut last, at + (64 << 10)) <= at));
}

#[test]
fn sizes_that_overflow_get_null_and_a_limit_of_zero_gives_nothing() {
    let counters = Counters::default();
    let (mut heap, control, _) = heap(HeapLimits { bytes: u64::MAX, blocks: 10 });
    serve(&mut heap, &counters, &[ask(100)]);
    let answers = serve(&mut heap, &counters, &[ask(u64::MAX), ask(u64::MAX - 99)]);
    assert_eq!(answers, [[0, 0]; 2]);
    assert_eq!(control.live_bytes(), 100);
    let (mut none, _, out) = self::heap(HeapLimits { bytes: 0, blocks: 10 });
    assert_eq!(serve(&mut none, &counters, &[ask(1), ask(SLAB_BYTES), ask(0)]), [[0, 0]; 3]);
    assert!(out.lock().unwrap().is_empty());
    assert_eq!(counters.get(Count::HeapExhausted), 4);
    assert_eq!(counters.get(Count::EmptyHeapRequest), 1);
}

#[test]
fn the_number_of_blocks_has_a_ceiling() {
    let (mut heap, control, _) = heap(HeapLimits { bytes: 1 << 40, blocks: 5 });
    let counters = Counters::default();
    let answers = serve(&mut heap, &counters, &[ask(1); LANES]);
    assert_eq!(answers.iter().filter(|[address, _]| *address != 0).count(), 5);
    assert_eq!(control.live_blocks(), 5);
}

#[test]
fn only_the_heaps_own_addresses_are_freed_and_only_once() {
    let (mut heap, control, out) = heap(HeapLimits::DEFAULT);
    let counters = Counters::default();
    let [[mine, _]] = serve(&mut heap, &counters, &[ask(4096)])[..] else { panic!() };
    for foreign in [1, 0x7fff_0000_0000, mine + 1, mine + 64, u64::MAX] {
        assert_eq!(serve(&mut heap, &counters, &[give(foreign)]), [[0, 0]]);
    }
    assert_eq!(counters.get(Count::UnknownHeapAddress), 5);
    assert_eq!(control.live_blocks(), 1);
    serve(&mut heap, &counters, &[give(mine), give(mine)]);
    assert_eq!(counters.get(Count::UnknownHeapAddress), 6);
    assert_eq!((control.live_blocks(), control.live_bytes()), (0, 0));
    assert!(out.lock().unwrap().is_empty());
}

#[test]
fn use_of_the_heap_stays_flat_over_a_hundred_thousand_pairs() {
    let (mut heap, control, out) = heap(HeapLimits { bytes: 1 << 20, blocks: 3 });
    let counters = Counters::default();
    for n in 0..100_000 {
        let [[address, _]] = serve(&mut heap, &counters, &[ask(1 + n % 5000)])[..] else {
            panic!()
        };
        assert_ne!(address, 0);
        serve(&mut heap, &counters, &[give(address)]);
    }
    assert_eq!((control.live_blocks(), control.live_bytes()), (0, 0));
    assert!(out.lock().unwrap().is_empty());
}

#[test]
fn what_kernels_did_not_free_is_freed_with_the_heap_from_its_own_table() {
    let (mut heap, control, out) = heap(HeapLimits::DEFAULT);
    serve(&mut heap, &Counters::default(), &[ask(SLAB_BYTES); 7]);
    assert_eq!(out.lock().unwrap().len(), 7);
    drop(heap);
    assert!(out.lock().unwrap().is_empty());
    assert_eq!((control.live_blocks(), control.live_bytes()), (0, 0));
}

#[test]
fn memory_at_a_wrong_address_is_not_handed_out() {
    let source = Addresses { lie: 64, ..Addresses::default() };
    let out = Arc::clone(&source.out);
    let mut heap = DeviceHeap::new(source, HeapLimits::DEFAULT);
    let counters = Counters::default();
    assert_eq!(serve(&mut heap, &counters, &[ask(1), ask(SLAB_BYTES)]), [[0, 0]; 2]);
    assert!(out.lock().unwrap().is_empty(), "it went back");
}

#[test]
fn only_registered_functions_are_called_and_never_by_address() {
    fn never(_: &[u64; 7]) -> [u64; 2] {
        panic!("called by its address")
    }
    let address = never as fn(&[u64; 7]) -> [u64; 2] as usize as u64;
    let sum = |arguments: &[u64; 7]| [arguments.iter().sum(), arguments[6]];
    let mut functions = Functions::new().with(42, sum).unwrap();
    let counters = Counters::default();
    let calls = [[42, 1, 2, 3, 4, 5, 6, 7], [address, 0, 0, 0, 0, 0, 0, 0], [0; 8]];
    let answers = serve(&mut functions, &counters, &calls);
    // Lanes that nothing answered keep what the table put there: the refusal.
    assert_eq!(answers, [[28, 7], [0xdead; 2], [0xdead; 2]]);
    assert_eq!(counters.get(Count::UnknownFunction), 2);
    let twice = Functions::new().with(1, sum).unwrap().with(1, sum).unwrap_err();
    assert!(matches!(twice, Error::DuplicateFunction { function: 1 }));
}

fn report(pc: u64, flags: u64) -> [[u64; SLOT_WORDS]; 2] {
    [[0x1000, pc, 1, 2, 3, 64, flags, 4], [0x1008, 9, 9, 9, 9, 65, 9, 9]]
}

#[test]
fn a_wave_reports_once_with_the_words_that_are_common_taken_from_its_first_lane() {
    let reports = Arc::<Mutex<Vec<SanitizerReport>>>::default();
    let theirs = Arc::clone(&reports);
    let mut sanitizer = Sanitizer::new(move |report| theirs.lock().unwrap().push(report), 10);
    let counters = Counters::default();
    let answers = serve(&mut sanitizer, &counters, &report(0x77, 0xffff_ffff_0000_0001));
    assert_eq!(answers, [[0, 0]; 2]);
    let reports = reports.lock().unwrap();
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(report.accesses, [(0, 0x1000, 64), (1, 0x1008, 65)]);
    assert_eq!((report.workgroup, report.access_bytes), ([1, 2, 3], 4));
    assert!(report.is_write && report.continues);
    let text = "bad store of 4 bytes at pc 0x77 in workgroup 1,2,3: lane 0 (work-item 64) at \
        0x1000 lane 1 (work-item 65) at 0x1008";
    assert_eq!(report.to_string(), text);
}

#[test]
fn a_flood_of_reports_is_cut_and_its_abort_flag_aborts_nothing() {
    let count = Arc::new(Mutex::new(0));
    let theirs = Arc::clone(&count);
    let mut sanitizer = Sanitizer::new(move |_| *theirs.lock().unwrap() += 1, 5);
    let counters = Counters::default();
    let start = std::time::Instant::now();
    for n in 0..1000 {
        serve(&mut sanitizer, &counters, &report(n, 0));
    }
    let seconds = start.elapsed().as_secs() + 1;
    let handed = *count.lock().unwrap();
    assert!((5..=5 * seconds).contains(&handed), "{handed}");
    assert_eq!(counters.get(Count::SanitizerReports), handed);
    assert_eq!(counters.get(Count::SanitizerSuppressed), 1000 - handed);
}

#[test]
fn printf_hands_each_lane_on_with_where_it_came_from() {
    #[derive(Default)]
    struct Record(Vec<(Source, usize, u64)>, Vec<PoolId>);
    impl Fragments for Record {
        fn fragment(&mut self, from: Source, lane: usize, words: &[u64; SLOT_WORDS]) -> u64 {
            self.0.push((from, lane, words[0]));
            words[0] << 8
        }
        fn forget(&mut self, pool: PoolId) {
            self.1.push(pool);
        }
    }
    let mut printf = Printf(Record::default());
    let answers = serve(&mut printf, &Counters::default(), &[[1; 8], [3; 8]]);
    assert_eq!(answers, [[0x100, 0], [0x300, 0]]);
    assert_eq!(printf.0.0, [(SOURCE, 0, 1), (SOURCE, 1, 3)]);
    Service::forget(&mut printf, PoolId(3));
    assert_eq!(printf.0.1, [PoolId(3)]);
}

#[test]
fn a_service_is_registered_once_and_number_0_never() {
    let registry = || Registry::new().with(ServiceId(7), Functions::new()).unwrap();
    let twice = registry().with(ServiceId(7), Functions::new()).unwrap_err();
    assert!(matches!(twice, Error::DuplicateService { service: ServiceId(7) }));
    let reserved = registry().with(ServiceId(0), Functions::new()).unwrap_err();
    assert!(matches!(reserved, Error::ReservedService { .. }));
    let table = registry().with(ServiceId(2), Functions::new()).unwrap().build();
    assert_eq!(table.ids().collect::<Vec<_>>(), [ServiceId(2), ServiceId(7)]);
}
