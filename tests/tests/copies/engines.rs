//! Which engine does it, order across engines, and what happens when there is none.

use std::time::Duration;

use hip::{CopyEngine, Event, Extent, Layout, Runtime, Stream, StreamRequest};
use kfd::MemoryRequest;
use kfd_model::{Model, Preset};
use kfd_tests::{each_device, each_model};

use super::{Random, at, difference, open, pinned, read, request, stream, vram};
use crate::streams::{Adder, N};

/// Queues of the process.
fn queues(device: &kfd_tests::Device) -> usize {
    device.model().live().queues
}

#[test]
fn kernels_and_copies_by_an_engine_alternate_in_order() {
    each_device(|device| {
        let adder = Adder::new(device);
        let mut stream = adder.stream(StreamRequest::aql().copies(request(CopyEngine::Sdma)));
        adder.set(0, |i| i as f32);
        adder.set(1, |_| 1.0);
        let [a, _, c] = &adder.vectors;
        let bytes = u64::from(N) * 4;
        // c = a + b; a = c, by the engine; and so on.
        for _ in 0..50 {
            adder.add(&mut stream, 2, 0, 1);
            stream.copy(a, c, bytes).unwrap();
        }
        stream.synchronize().unwrap();
        let sums = adder.get(0);
        assert!(sums.iter().zip(0..N).all(|(sum, i)| *sum == i as f32 + 50.0), "{sums:?}");
    });
}

#[test]
fn copies_of_one_engine_that_depend_on_each_other_are_in_order() {
    each_device(|device| {
        let (_runtime, device) = open(device);
        let mut stream = stream(&device, request(CopyEngine::Sdma).sdma_ring_bytes(4096));
        let bytes = Random::new(1).bytes(20_000);
        let source = pinned(&device, &bytes);
        let chain: Vec<_> = (0..4).map(|_| vram(&device, 20_000)).collect();
        for round in 0..100 {
            stream.copy(&chain[0], &source, 20_000).unwrap();
            for n in 1..4 {
                stream.copy(&chain[n], &chain[n - 1], 20_000).unwrap();
            }
            stream.fill(&chain[0], u8::try_from(round).unwrap(), 20_000).unwrap();
        }
        let mut found = vec![0; 20_000];
        stream.copy_to_host(&mut found, &chain[3]).unwrap();
        assert_eq!(difference(&found, &bytes), None);
        stream.copy_to_host(&mut found, &chain[0]).unwrap();
        assert_eq!(difference(&found, &[99; 20_000]), None);
    });
}

#[test]
fn an_engine_that_is_needed_gets_a_queue_and_one_that_is_not_gets_none() {
    each_model(Model::builder, |device| {
        let before = queues(device);
        let (_runtime, gpu) = open(device);
        let (host, own, twin) =
            (pinned(&gpu, &[3; 1 << 18]), vram(&gpu, 1 << 18), vram(&gpu, 1 << 18));
        let mut copies = stream(&gpu, request(CopyEngine::Auto));
        assert_eq!(queues(device), before + 1);
        // Small, or within the GPU's memory: kernels.
        copies.copy(&own, &host, 4096).unwrap();
        copies.copy(&twin, &own, 1 << 18).unwrap();
        copies.synchronize().unwrap();
        assert_eq!(queues(device), before + 1);
        // Over the link: an engine.
        copies.copy(&own, &host, 1 << 18).unwrap();
        copies.synchronize().unwrap();
        assert_eq!(queues(device), before + 2);
        let mut shader = stream(&gpu, request(CopyEngine::Shader));
        shader.copy(&twin, &host, 1 << 18).unwrap();
        shader.synchronize().unwrap();
        assert_eq!(queues(device), before + 3);
    });
}

#[test]
fn streams_without_a_queue_of_an_engine_copy_by_kernels() {
    each_model(Model::builder, |device| {
        let (_runtime, gpu) = open(device);
        // All that there are.
        let mut taken = Vec::new();
        let limit = loop {
            match gpu.gpu().create_sdma_queue(&kfd::SdmaQueueRequest::new(4096)) {
                Ok(queue) => taken.push(queue),
                Err(error) => break error,
            }
        };
        assert!(matches!(limit, kfd::Error::QueueLimit { .. }), "{limit}");
        let before = queues(device);
        let bytes = Random::new(2).bytes(1 << 18);
        let (host, own) = (pinned(&gpu, &bytes), vram(&gpu, 1 << 18));
        let mut stream = stream(&gpu, request(CopyEngine::Sdma));
        stream.copy(&own, &host, 1 << 18).unwrap();
        let mut found = vec![0; 1 << 18];
        stream.copy_to_host(&mut found, &own).unwrap();
        assert_eq!(difference(&found, &bytes), None);
        assert_eq!(queues(device), before + 1);
    });
}

#[test]
fn events_around_copies_are_ordered_and_stamped() {
    each_device(|device| {
        let (runtime, gpu) = open(device);
        for engine in [CopyEngine::Sdma, CopyEngine::Shader] {
            let mut copies = stream(&gpu, request(engine));
            let mut other = stream(&gpu, request(engine));
            let bytes = Random::new(3).bytes(1 << 20);
            let (host, own, back) =
                (pinned(&gpu, &bytes), vram(&gpu, 1 << 20), pinned(&gpu, &vec![0; 1 << 20]));
            let (start, end, seen) =
                (Event::new(&runtime), Event::new(&runtime), Event::new(&runtime));
            for _ in 0..20 {
                copies.record(&start).unwrap();
                copies.fill(&own, 0_u32, 1 << 18).unwrap();
                copies.copy(&own, &host, 1 << 20).unwrap();
                copies.record(&end).unwrap();
                // Another stream reads it only after the event, and the first writes only after that.
                other.wait(&end).unwrap();
                other.copy(&back, &own, 1 << 20).unwrap();
                other.record(&seen).unwrap();
                copies.wait(&seen).unwrap();
            }
            other.synchronize().unwrap();
            assert_eq!(difference(&read(&back), &bytes), None);
            assert!(end.nanoseconds_since(&start).unwrap() >= 0);
        }
    });
}

#[test]
fn memory_that_is_dropped_at_once_lives_until_the_copy_is_done() {
    each_device(|device| {
        let (_runtime, gpu) = open(device);
        for engine in [CopyEngine::Sdma, CopyEngine::Shader] {
            let mut stream = stream(&gpu, request(engine));
            let result = vram(&gpu, 1 << 16);
            let mut last = Vec::new();
            for round in 0..30 {
                last = Random::new(round).bytes(1 << 16);
                let (host, between) = (pinned(&gpu, &last), vram(&gpu, 1 << 16));
                stream.copy(&between, &host, 1 << 16).unwrap();
                stream.copy(&result, &between, 1 << 16).unwrap();
            }
            let mut found = vec![0; 1 << 16];
            stream.copy_to_host(&mut found, &result).unwrap();
            assert_eq!(difference(&found, &last), None);
        }
    });
}

#[test]
fn copies_larger_than_the_rings_packets_are_cut() {
    // 4 MiB a packet, and a ring that holds few of them.
    let model = Model::builder().gpu(Preset::of(kfd_model::Target::Gfx900)).build();
    let device = kfd_tests::Device::of(model, "gfx900");
    let (runtime, gpu) = open(&device);
    let copies = request(CopyEngine::Sdma).sdma_ring_bytes(4096);
    let mut stream = stream(&gpu, copies);
    let bytes = (80 << 20) + 5;
    let source = gpu.allocate(&MemoryRequest::gtt(bytes)).unwrap();
    let result = gpu.allocate(&MemoryRequest::gtt(bytes)).unwrap();
    for mark in (0..80).map(|mib| (mib << 20) + mib) {
        source.write(mark, &[u8::try_from(mark % 251).unwrap()]).unwrap();
    }
    source.write(bytes - 5, b"hello").unwrap();
    stream.copy(&result, &source, bytes).unwrap();
    stream.synchronize().unwrap();
    for mark in (0..80).map(|mib| (mib << 20) + mib) {
        let mut found = [0];
        result.read(mark, &mut found).unwrap();
        assert_eq!(found, [u8::try_from(mark % 251).unwrap()], "{mark:#x}");
    }
    let mut found = [0; 5];
    result.read(bytes - 5, &mut found).unwrap();
    assert_eq!(&found, b"hello");
    drop((stream, source, result, gpu, runtime));
    device.finish();
}

#[test]
fn many_small_copies_from_two_threads_wrap_their_rings() {
    each_device(|device| {
        let (runtime, gpu) = open(device);
        let bytes = Random::new(4).bytes(1 << 14);
        std::thread::scope(|scope| {
            for seed in 0..2 {
                let (gpu, bytes, _runtime) = (&gpu, &bytes, &runtime);
                scope.spawn(move || {
                    let copies = request(CopyEngine::Sdma).sdma_ring_bytes(4096);
                    let mut stream =
                        Stream::new(gpu, StreamRequest::aql().packets(64).copies(copies)).unwrap();
                    let source = pinned(gpu, bytes);
                    let result = gpu.allocate(&MemoryRequest::gtt(1 << 14)).unwrap();
                    let mut wanted = vec![0; 1 << 14];
                    let mut random = Random::new(seed);
                    for _ in 0..2000 {
                        let count = random.below(64);
                        let (to, from) = (random.below(1 << 14), random.below(1 << 14));
                        let count = count.min((1 << 14) - to.max(from));
                        stream.copy(result.at(to), source.at(from), count).unwrap();
                        wanted[at(to)..at(to + count)]
                            .copy_from_slice(&bytes[at(from)..at(from + count)]);
                    }
                    stream.synchronize().unwrap();
                    assert_eq!(difference(&read(&result), &wanted), None);
                });
            }
        });
    });
}

#[test]
fn a_stream_is_dropped_with_copies_in_flight() {
    each_device(|device| {
        let (_runtime, gpu) = open(device);
        let (host, own) = (pinned(&gpu, &vec![1; 1 << 20]), vram(&gpu, 1 << 20));
        for farewell in [Duration::ZERO, Duration::from_secs(10)] {
            let request = StreamRequest::aql().copies(request(CopyEngine::Sdma)).farewell(farewell);
            let mut stream = Stream::new(&gpu, request).unwrap();
            for _ in 0..20 {
                stream.copy(&own, &host, 1 << 20).unwrap();
                stream.copy(&host, &own, 1 << 20).unwrap();
            }
        }
    });
}

#[test]
fn wide_pitches_and_odd_ones_are_copied_without_windows() {
    each_device(|device| {
        let (_runtime, gpu) = open(device);
        let mut stream = stream(&gpu, request(CopyEngine::Sdma));
        let source = Random::new(5).bytes(1 << 16);
        let host = pinned(&gpu, &source);
        for (width, pitch) in [(5000, 5001), (300, 303), (4096, 4100)] {
            let result = pinned(&gpu, &vec![0; 1 << 16]);
            let extent = Extent::plane(width, 10);
            let (to, from) = (Layout::pitched(pitch), Layout::pitched(width));
            stream.copy_rows(&result, to, &host, from, extent).unwrap();
            stream.synchronize().unwrap();
            let found = read(&result);
            for row in 0..10 {
                let (to, from) = (at(row * pitch), at(row * width));
                let width = at(width);
                assert_eq!(found[to..to + width], source[from..from + width], "row {row}");
            }
        }
    });
}

#[test]
fn runtimes_are_shared_by_streams_of_many_threads() {
    each_device(|device| {
        let runtime = Runtime::new(device.kfd.clone()).unwrap();
        let gpu = &runtime.devices()[0];
        std::thread::scope(|scope| {
            for seed in 0..4 {
                scope.spawn(move || {
                    let mut stream = stream(gpu, request(CopyEngine::Auto));
                    let bytes = Random::new(seed).bytes(200_000);
                    let own = vram(gpu, 200_000);
                    let mut found = vec![0; 200_000];
                    for _ in 0..5 {
                        stream.fill(&own, 0xAA_u8, 200_000).unwrap();
                        stream.copy_from_host(&own, &bytes).unwrap();
                        stream.copy_to_host(&mut found, &own).unwrap();
                        assert_eq!(difference(&found, &bytes), None);
                    }
                });
            }
        });
    });
}
