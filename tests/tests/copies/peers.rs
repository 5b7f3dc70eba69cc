//! Copies between GPUs: within a hive, where they reach each other's memory, and through the host.

use hip::{CopyEngine, CopyError, Device, Error, Event, Runtime, Side, Stream};
use kfd_model::{Model, Preset, Target};
use kfd_tests::{on_hardware, skip};

use super::{Random, difference, request, stream, vram};
use crate::streams::kinds;

/// Runs `test` on two GPUs of each of some presets, in a hive or not.
fn two_gpus(hive: bool, test: impl Fn(&Runtime, &Device, &Device)) {
    if on_hardware() {
        return skip("it needs two GPUs, in a hive or not");
    }
    for target in [Target::Gfx90a, Target::Gfx942, Target::Gfx1100] {
        let preset = || Preset::of(target);
        let builder = Model::builder().gpu(preset()).gpu(preset());
        let mut topology = builder.topology();
        for node in topology.nodes.iter_mut().filter(|node| node.gpu_id != 0) {
            node.properties.set("hive_id", if hive { 0x1234 } else { 0 });
        }
        let device = kfd_tests::Device::of(builder.build_topology(&topology), "two GPUs");
        let runtime = Runtime::new(device.kfd.clone()).unwrap();
        let [first, second] = [0, 1].map(|n| runtime.devices()[n].clone());
        test(&runtime, &first, &second);
        drop((first, second, runtime));
        device.finish();
    }
}

#[test]
fn mapped_memory_of_another_gpu_is_copied_both_ways() {
    two_gpus(true, |_, first, second| {
        for engine in [CopyEngine::Sdma, CopyEngine::Shader, CopyEngine::Auto] {
            let mut stream = stream(first, request(engine));
            let (own, mut other) = (vram(first, 1 << 18), vram(second, 1 << 18));
            other.map_on(first).unwrap();
            let bytes = Random::new(1).bytes(1 << 18);
            stream.copy_from_host(&own, &bytes).unwrap();
            stream.copy(&other, &own, 1 << 18).unwrap();
            stream.fill(&own, 0_u128, 1 << 14).unwrap();
            stream.copy_peer(&own, &other, 1 << 18).unwrap();
            let mut found = vec![0; 1 << 18];
            stream.copy_to_host(&mut found, &own).unwrap();
            assert_eq!(difference(&found, &bytes), None);
        }
    });
}

#[test]
fn memory_that_is_not_mapped_is_refused_by_address_and_copied_through_the_host_if_asked() {
    two_gpus(false, |runtime, first, second| {
        let (near, mut far) = (vram(first, 1 << 18), vram(second, 1 << 18));
        assert!(far.map_on(first).is_err());
        for kind in kinds(first) {
            for engine in [CopyEngine::Sdma, CopyEngine::Shader] {
                // Chunks that do not divide the size, few of them.
                let copies = request(engine).staging(2, 30_000);
                let mut stream = Stream::new(first, kind.copies(copies)).unwrap();
                let mut check = Stream::new(second, kind.copies(copies)).unwrap();
                let (gpu, addr) = (first.id(), far.at(16).addr());
                let before = stream.submitted();
                for (result, side) in [
                    (stream.copy(&near, far.at(16), 64), Side::Source),
                    (stream.copy(far.at(16), &near, 64), Side::Destination),
                    (stream.fill(far.at(16), 0_u8, 64), Side::Destination),
                    (stream.copy_from_host(far.at(16), &[1; 64]), Side::Destination),
                    (stream.copy_to_host(&mut [1; 64], far.at(16)), Side::Source),
                    (stream.copy_peer(far.at(16), far.at(512), 64), Side::Destination),
                ] {
                    let Err(Error::Copy(error)) = result else { panic!("{result:?}") };
                    assert_eq!(error, CopyError::NotMapped { side, addr, gpu });
                }
                assert_eq!(stream.submitted(), before);
                for seed in 0..2 {
                    let bytes = Random::new(seed).bytes((1 << 18) - 7);
                    let count = bytes.len() as u64;
                    stream.copy_from_host(near.at(3), &bytes).unwrap();
                    // There, while the source is overwritten behind it, and back.
                    stream.copy_peer(far.at(5), near.at(3), count).unwrap();
                    stream.fill(&near, 0xEE_u8, 1 << 18).unwrap();
                    stream.copy_peer(near.at(1), far.at(5), count).unwrap();
                    let event = Event::new(runtime);
                    stream.record(&event).unwrap();
                    let mut found = vec![0; bytes.len()];
                    check.wait(&event).unwrap();
                    check.copy_to_host(&mut found, far.at(5)).unwrap();
                    assert_eq!(difference(&found, &bytes), None, "there");
                    stream.copy_to_host(&mut found, near.at(1)).unwrap();
                    assert_eq!(difference(&found, &bytes), None, "back");
                }
            }
        }
    });
}

#[test]
fn memory_of_both_gpus_that_is_dropped_at_once_lives_until_the_copy_is_done() {
    two_gpus(false, |_, first, second| {
        let mut stream = stream(first, request(CopyEngine::Auto).staging(2, 30_000));
        let result = vram(first, 100_000);
        let mut last = Vec::new();
        for round in 0..10 {
            last = Random::new(round).bytes(100_000);
            let (near, far) = (vram(first, 100_000), vram(second, 100_000));
            stream.copy_from_host(&near, &last).unwrap();
            stream.copy_peer(&far, &near, 100_000).unwrap();
            stream.copy_peer(&result, &far, 100_000).unwrap();
        }
        let mut found = vec![0; 100_000];
        stream.copy_to_host(&mut found, &result).unwrap();
        assert_eq!(difference(&found, &last), None);
    });
}

#[test]
fn copies_between_gpus_wait_for_host_functions_before_them() {
    two_gpus(false, |_, first, second| {
        for kind in kinds(first) {
            let copies = request(CopyEngine::Auto).staging(2, 30_000);
            let mut stream = Stream::new(first, kind.copies(copies)).unwrap();
            let (near, far) = (vram(first, 100_000), vram(second, 100_000));
            let host = super::pinned(first, &[0; 100_000]);
            let host = std::sync::Arc::new(host);
            let (seen, bytes) = (std::sync::Arc::clone(&host), Random::new(7).bytes(100_000));
            let wanted = bytes.clone();
            stream
                .host_call(move || {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    seen.write(0, &bytes).unwrap();
                })
                .unwrap();
            stream.copy(&near, &*host, 100_000).unwrap();
            stream.copy_peer(&far, &near, 100_000).unwrap();
            stream.fill(&near, 0_u8, 100_000).unwrap();
            stream.copy_peer(&near, &far, 100_000).unwrap();
            let mut found = vec![0; 100_000];
            stream.copy_to_host(&mut found, &near).unwrap();
            assert_eq!(difference(&found, &wanted), None);
        }
    });
}
