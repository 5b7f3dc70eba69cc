//! Pageable memory.

use hip::{CopyEngine, Extent, Layout};
use kfd_tests::each_device;

use super::{Random, at, difference, open, request, stream, vram};

#[test]
fn pageable_memory_of_any_size_goes_through_few_chunks() {
    each_device(|device| {
        let (_runtime, gpu) = open(device);
        for engine in [CopyEngine::Sdma, CopyEngine::Shader] {
            for (chunks, bytes) in [(1, 64), (2, 1000), (4, 1 << 16)] {
                let mut stream = stream(&gpu, request(engine).staging(chunks, bytes));
                for length in [1, 63, 64, 65, 1024, 1025, 9999] {
                    let memory = vram(&gpu, length + 3);
                    let source = Random::new(length).bytes(at(length));
                    stream.copy_from_host(memory.at(3), &source).unwrap();
                    let mut found = vec![0; at(length)];
                    stream.copy_to_host(&mut found, memory.at(3)).unwrap();
                    assert_eq!(difference(&found, &source), None, "{length} of {chunks}x{bytes}");
                }
            }
        }
    });
}

#[test]
fn rows_of_pageable_memory_are_packed_and_what_is_between_stays() {
    each_device(|device| {
        let (_runtime, gpu) = open(device);
        for (chunk, engine) in [(64, CopyEngine::Sdma), (5000, CopyEngine::Shader)] {
            let mut stream = stream(&gpu, request(engine).staging(3, chunk));
            let extent = Extent::volume(100, 7, 3);
            let host = Layout { pitch_bytes: 128, slice_bytes: 1000 };
            let own = Layout { pitch_bytes: 108, slice_bytes: 800 };
            let source = Random::new(9).bytes(3000);
            let memory = vram(&gpu, 2400);
            stream.fill(&memory, 0x11_u8, 2400).unwrap();
            stream.copy_rows_from_host(&memory, own, &source, host, extent).unwrap();
            let mut found = vec![0; 2400];
            stream.copy_to_host(&mut found, &memory).unwrap();
            let mut wanted = vec![0x11; 2400];
            let mut back = vec![0x22; 3000];
            let mut wanted_back = back.clone();
            for (z, y) in (0..3).flat_map(|z| (0..7).map(move |y| (z, y))) {
                let (to, from) = (z * 800 + y * 108, z * 1000 + y * 128);
                wanted[to..to + 100].copy_from_slice(&source[from..from + 100]);
                wanted_back[from..from + 100].copy_from_slice(&source[from..from + 100]);
            }
            assert_eq!(difference(&found, &wanted), None);
            stream.copy_rows_to_host(&mut back, host, &memory, own, extent).unwrap();
            assert_eq!(difference(&back, &wanted_back), None);
        }
    });
}
