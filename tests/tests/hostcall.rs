//! Compiled kernels that call the host: over both transports, with the drain's thread at work.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::hostcall::device::{self, GpuHeap, PoolMemory, SignalBell};
use ::hostcall::format::Limits;
use ::hostcall::layout::SLOT_WORDS;
use ::hostcall::printf::MessageLimits;
use ::hostcall::service::{
    DESCRIPTOR_BEGIN, DESCRIPTOR_END, DeviceHeap, Fragments, Functions, HeapLimits, Printf,
    SLAB_BYTES, Text,
};
use ::hostcall::sink::{Callback, OutputLimits, Stream, Writer};
use ::hostcall::{
    Count, Counters, Drain, DrainConfig, Error, PoolId, Registry, ServiceId, Source, Transport,
};
use hsaco::Services;
use kfd::{Buffer, Gpu, KernelLabel, MemoryRequest, Queue, QueueRequest, Until};
use kfd_tests::process::in_child;
use kfd_tests::program::Program;
use kfd_tests::{Device, each_device};

/// Longest wait for one launch, on a busy machine that interprets it.
const LIMIT: Duration = Duration::from_secs(240);
const POOL: PoolId = PoolId(1);
/// Private memory of a work-item: more than any kernel here is given.
const STACK_BYTES: u32 = 4096;

macro_rules! objects {
    ($target:expr, $name:literal) => {
        match $target {
            "gfx90a" => {
                &include_bytes!(concat!("../fixtures/code-objects/", $name, ".gfx90a.v5.co"))[..]
            }
            "gfx1100" => {
                &include_bytes!(concat!("../fixtures/code-objects/", $name, ".gfx1100.v5.co"))[..]
            }
            other => panic!("there is no kernel for {other}"),
        }
    };
}

/// A queue whose kernels can call the host.
struct Host<'a> {
    device: &'a Device,
    gpu: Gpu,
    queue: Queue,
    drain: Drain<PoolMemory>,
    counters: Arc<Counters>,
    services: Services,
}

impl<'a> Host<'a> {
    fn new(device: &'a Device, transport: Transport, registry: Registry) -> Self {
        let gpu = device.gpu();
        let bell = Arc::new(SignalBell::new(&gpu).unwrap());
        let pool = device::pool(&gpu, POOL, transport, &bell).unwrap();
        assert_eq!(u64::from(pool.area().packets()), gpu.queue_waves().unwrap());
        let services = Services { hostcall_buffer: pool.address(), ..Services::default() };
        let counters = Arc::<Counters>::default();
        let config = DrainConfig::DEFAULT;
        let drain = Drain::start(registry.build(), bell, Arc::clone(&counters), config).unwrap();
        drain.attach(pool).unwrap();
        // The device heap's functions are called, so their kernels have a stack.
        let queue = gpu.create_queue(&QueueRequest::aql(64).scratch(STACK_BYTES)).unwrap();
        Self { device, gpu, queue, drain, counters, services }
    }

    fn output(&self, bytes: u64) -> Buffer {
        self.gpu.allocate(&MemoryRequest::gtt(bytes).coherent().uncached()).unwrap()
    }

    fn run(&self, object: &'static [u8], kernel: &str, shape: (u32, u16), arguments: &[&[u8]]) {
        let program = Program::load(&self.gpu, object);
        let (kfd, gpu) = (&self.device.kfd, &self.gpu);
        let launch = program.launch_with(kfd, gpu, kernel, shape, arguments, &self.services);
        let done = gpu.create_signal(1).unwrap();
        let _guard = self.drain.launch(POOL).unwrap();
        let packet = launch.packet.completion(done.addr()).encode();
        self.queue.submit(&packet, KernelLabel::NONE).unwrap();
        self.queue.wait(&done, Until::Below(1), LIMIT).unwrap();
    }

    /// Ends in the order that leaves nothing behind.
    fn finish(self) {
        self.queue.destroy().unwrap();
        let pools = self.drain.stop().unwrap();
        assert_eq!(pools.len(), 1);
        for (count, value) in self.counters.iter() {
            assert!(matches!(count, Count::Answered | Count::Passes), "{value} {}", count.text());
        }
    }
}

fn u64s(buffer: &Buffer) -> Vec<u64> {
    let mut bytes = vec![0; usize::try_from(buffer.bytes()).unwrap()];
    buffer.read(0, &mut bytes).unwrap();
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// An id that a kernel could take for the address of a function.
const FUNCTION: u64 = 0x5555_5555_4321;

fn functions() -> (Registry, Arc<AtomicU64>) {
    let calls = Arc::<AtomicU64>::default();
    let theirs = Arc::clone(&calls);
    let function = move |arguments: &[u64; 7]| {
        theirs.fetch_add(1, Ordering::Relaxed);
        [arguments[0] + 7, arguments[1] * arguments[0]]
    };
    let functions = Functions::new().with(FUNCTION, function).unwrap();
    (Registry::new().with(ServiceId::FUNCTION, functions).unwrap(), calls)
}

#[test]
fn kernels_call_host_functions_over_the_stack_transport() {
    each_device(|device| {
        let (registry, calls) = functions();
        let host = Host::new(device, Transport::Stack, registry);
        // A wave that is not full, too.
        let items = 200_u16;
        let output = host.output(16 * u64::from(items));
        let arguments = [output.addr().get(), FUNCTION, 1000].map(u64::to_le_bytes);
        let arguments = arguments.each_ref().map(<[u8; 8]>::as_slice);
        let object = objects!(device.target().as_str(), "hostcall");
        host.run(object, "call_host", (items.into(), items), &arguments);
        let expected: Vec<u64> = (0..u64::from(items)).flat_map(|t| [1007, t * 1000]).collect();
        assert_eq!(u64s(&output), expected);
        assert_eq!(calls.load(Ordering::Relaxed), u64::from(items));
        host.finish();
    });
}

#[test]
fn kernels_call_host_functions_over_the_phase_transport() {
    each_device(|device| {
        let (registry, calls) = functions();
        let host = Host::new(device, Transport::Phase, registry);
        let (items, rounds) = (256_u32, 6_u64);
        let output = host.output(16 * u64::from(items));
        let arguments = [output.addr().get(), FUNCTION, 1000, rounds].map(u64::to_le_bytes);
        let arguments = arguments.each_ref().map(<[u8; 8]>::as_slice);
        let object = objects!(device.target().as_str(), "phase");
        host.run(object, "phase_call", (items, 128), &arguments);
        let last = 1000 + rounds - 1;
        let expected: Vec<u64> = (0..u64::from(items)).flat_map(|t| [last + 7, t * last]).collect();
        assert_eq!(u64s(&output), expected);
        assert_eq!(calls.load(Ordering::Relaxed), u64::from(items) * rounds);
        host.finish();
    });
}

#[test]
fn a_function_that_is_not_registered_is_an_error_for_the_kernel_and_nothing_else() {
    each_device(|device| {
        let host = Host::new(device, Transport::Stack, Registry::new());
        let output = host.output(16 * 64);
        let arguments = [output.addr().get(), FUNCTION, 1000].map(u64::to_le_bytes);
        let arguments = arguments.each_ref().map(<[u8; 8]>::as_slice);
        let object = objects!(device.target().as_str(), "hostcall");
        for _ in 0..2 {
            host.run(object, "call_host", (64, 64), &arguments);
            assert_eq!(u64s(&output), [u64::MAX, 0].repeat(64));
        }
        assert!(host.counters.get(Count::UnknownService) >= 2);
        host.queue.destroy().unwrap();
        host.drain.stop().unwrap();
    });
}

/// Messages as words: what printf's lowering sends, put together without looking into it.
#[derive(Default)]
struct Messages {
    open: BTreeMap<u64, Vec<u64>>,
    last: u64,
    done: Arc<Mutex<Vec<Vec<u64>>>>,
}

impl Fragments for Messages {
    fn fragment(&mut self, _: Source, _: usize, words: &[u64; SLOT_WORDS]) -> u64 {
        let [descriptor, data @ ..] = words;
        assert_eq!(descriptor >> 2 & 7, 0, "reserved bits of {descriptor:#x}");
        let message = if descriptor & DESCRIPTOR_BEGIN != 0 {
            self.last += 1;
            self.last
        } else {
            descriptor >> 8
        };
        let length = usize::try_from(descriptor >> 5 & 7).unwrap();
        self.open.entry(message).or_default().extend(&data[..length]);
        if descriptor & DESCRIPTOR_END == 0 {
            return message << 8;
        }
        let whole = self.open.remove(&message).unwrap();
        self.done.lock().unwrap().push(whole);
        5
    }

    fn forget(&mut self, _: PoolId) {
        self.open.clear();
    }
}

/// A string as it travels: with its NUL, padded to words.
fn text(text: &str) -> Vec<u64> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

#[test]
fn every_printf_of_a_compiled_kernel_arrives_word_for_word() {
    each_device(|device| {
        let messages = Messages::default();
        let done = Arc::clone(&messages.done);
        let registry = Registry::new().with(ServiceId::PRINTF, Printf(messages)).unwrap();
        let host = Host::new(device, Transport::Stack, registry);
        let (items, group) = (96_u32, 48_u16);
        let (base, name) = (5_i32.to_le_bytes(), 0x1234_5678_9abc_u64);
        let object = objects!(device.target().as_str(), "printf");
        host.run(object, "hello", (items, group), &[&base, &name.to_le_bytes()]);
        let mut expected = Vec::new();
        for item in 0..items {
            let (t, block) =
                (u64::from(item % u32::from(group)), u64::from(item / u32::from(group)));
            let message = |parts: &[&[u64]]| [&[0], parts.concat().as_slice()].concat();
            let hello = text("hello from %d of block %u\n");
            expected.push(message(&[&hello, &[5 + t, block]]));
            if t % 2 == 1 {
                let odd = text("odd %s %5.2f %lld %c %p %%\n");
                let float = (1.5 * f64::from(u32::try_from(t).unwrap())).to_bits();
                let values = [float, t << 40, u64::from(b'x'), name];
                expected.push(message(&[&odd, &text("literal"), &values]));
            }
            expected.push(message(&[&text("no args\n")]));
        }
        let mut found = std::mem::take(&mut *done.lock().unwrap());
        assert_eq!(found.len(), expected.len());
        found.sort_unstable();
        expected.sort_unstable();
        assert!(found == expected, "{:x?}", found.iter().zip(&expected).find(|(a, b)| a != b));
        host.finish();
    });
}

#[test]
fn every_printf_of_a_compiled_kernel_is_printed_as_the_cpu_prints_it() {
    each_device(|device| {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let theirs = Arc::clone(&lines);
        let sink = Callback(move |stream, text: &[u8]| {
            assert_eq!(stream, Stream::Stdout);
            theirs.lock().unwrap().push(String::from_utf8(text.to_vec()).unwrap());
        });
        let counters = Arc::<Counters>::default();
        let writer = Writer::start(sink, OutputLimits::DEFAULT, counters).unwrap();
        let text = Text::new(writer.output(), MessageLimits::default(), Limits::default());
        let stats = text.stats();
        let registry = Registry::new().with(ServiceId::PRINTF, Printf(text)).unwrap();
        let host = Host::new(device, Transport::Stack, registry);
        let (items, group) = (96_u32, 48_u16);
        let (base, name) = (5_i32.to_le_bytes(), 0x1234_5678_9abc_u64);
        let object = objects!(device.target().as_str(), "printf");
        host.run(object, "hello", (items, group), &[&base, &name.to_le_bytes()]);
        let mut expected = Vec::new();
        for item in 0..items {
            let (t, block) = (item % u32::from(group), item / u32::from(group));
            expected.push(format!("hello from {} of block {block}\n", 5 + t));
            if t % 2 == 1 {
                let float = 1.5 * f64::from(t);
                let long = u64::from(t) << 40;
                expected.push(format!("odd literal {float:5.2} {long} x {name:#x} %\n"));
            }
            expected.push("no args\n".to_owned());
        }
        assert!(writer.finish(LIMIT));
        let mut found = std::mem::take(&mut *lines.lock().unwrap());
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        let stats = stats.get();
        assert_eq!(stats.printed, u64::try_from(expected.len()).unwrap());
        assert_eq!((stats.odd, stats.refused, stats.over_limit), (0, 0, 0));
        host.finish();
    });
}

#[test]
fn kernels_allocate_write_and_free_on_the_device_heap() {
    each_device(|device| {
        let source = GpuHeap::new(device.gpu());
        let block = source.block().unwrap();
        let heap = DeviceHeap::new(source, HeapLimits::DEFAULT);
        let control = heap.control();
        let registry = Registry::new().with(ServiceId::DEVICE_MEMORY, heap).unwrap();
        let mut host = Host::new(device, Transport::Stack, registry);
        host.services.heap_v1 = block.addr().get();
        let output = host.output(4 * 64);
        let argument = output.addr().get().to_le_bytes();
        let object = objects!(device.target().as_str(), "devmalloc");
        for round in 0..2 {
            output.write(0, &[0; 4 * 64]).unwrap();
            host.run(object, "heap", (64, 64), &[&argument]);
            let mut bytes = [0; 4 * 64];
            output.read(0, &mut bytes).unwrap();
            for (t, bytes) in (0..).zip(bytes.as_chunks::<4>().0) {
                assert_eq!(u32::from_le_bytes(*bytes), 3 * t, "work-item {t} of round {round}");
            }
        }
        // The heap keeps its slabs; they go with the service.
        assert!(control.live_blocks() >= 1);
        assert_eq!(control.live_bytes() % SLAB_BYTES, 0);
        host.finish();
        assert_eq!(control.live_blocks(), 0);
        block.free().unwrap();
    });
}

#[test]
fn a_heap_without_room_gives_null_and_the_kernel_ends() {
    each_device(|device| {
        let source = GpuHeap::new(device.gpu());
        let block = source.block().unwrap();
        let heap = DeviceHeap::new(source, HeapLimits { bytes: 0, blocks: 0 });
        let registry = Registry::new().with(ServiceId::DEVICE_MEMORY, heap).unwrap();
        let mut host = Host::new(device, Transport::Stack, registry);
        host.services.heap_v1 = block.addr().get();
        let output = host.output(4 * 32);
        let object = objects!(device.target().as_str(), "devmalloc");
        host.run(object, "heap", (32, 32), &[&output.addr().get().to_le_bytes()]);
        let mut bytes = [0; 4 * 32];
        output.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [0xff; 4 * 32]);
        assert!(host.counters.get(Count::HeapExhausted) > 0);
        host.queue.destroy().unwrap();
        host.drain.stop().unwrap();
        block.free().unwrap();
    });
}

#[test]
fn a_forked_child_leaves_the_drain_to_its_parent() {
    each_device(|device| {
        let (registry, calls) = functions();
        let host = Host::new(device, Transport::Stack, registry);
        let guard = host.drain.launch(POOL).unwrap();
        let mut owned = Some((host, guard));
        in_child(LIMIT, || {
            let (host, guard) = owned.take().unwrap();
            assert!(matches!(host.drain.launch(POOL), Err(Error::Inherited)));
            assert!(matches!(host.drain.reset(POOL), Err(Error::Inherited)));
            drop(guard);
            assert!(matches!(host.drain.stop(), Err(Error::Inherited)));
        })
        .unwrap();
        let (host, guard) = owned.unwrap();
        drop(guard);
        assert_eq!(host.drain.in_flight(), 0);
        let output = host.output(16 * 64);
        let arguments = [output.addr().get(), FUNCTION, 1].map(u64::to_le_bytes);
        let arguments = arguments.each_ref().map(<[u8; 8]>::as_slice);
        let object = objects!(device.target().as_str(), "hostcall");
        host.run(object, "call_host", (64, 64), &arguments);
        assert_eq!(calls.load(Ordering::Relaxed), 64);
        host.finish();
    });
}
