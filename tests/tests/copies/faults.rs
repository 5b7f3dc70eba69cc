//! Copies on devices that are slow, lose interrupts, or let polls pass early.

use std::time::Duration;

use hip::{CopyEngine, Event, Stream};
use kfd_model::{Call, Model, Preset, Target};
use kfd_tests::{each_model, on_hardware, skip};

use super::{Random, difference, open, pinned, read, request, stream, vram};
use crate::streams::kinds;

#[test]
fn nothing_passes_a_slow_engine_before_its_last_byte() {
    each_model(Model::builder, |device| {
        device.model().faults().slow_engines(Duration::from_micros(300), 4096);
        let (runtime, gpu) = open(device);
        for kind in kinds(&gpu) {
            let copies = request(CopyEngine::Sdma).staging(2, 20_000);
            let mut slow = Stream::new(&gpu, kind.copies(copies)).unwrap();
            let mut other = stream(&gpu, request(CopyEngine::Shader));
            let (own, seen) = (vram(&gpu, 1 << 16), pinned(&gpu, &vec![0; 1 << 16]));
            for round in 0..10 {
                let bytes = Random::new(round).bytes(1 << 16);
                let (host, back) = (pinned(&gpu, &bytes), pinned(&gpu, &vec![0; 1 << 16]));
                let done = Event::new(&runtime);
                slow.copy(&own, &host, 1 << 16).unwrap();
                slow.copy(&back, &own, 1 << 16).unwrap();
                slow.record(&done).unwrap();
                // Another stream and the host, each after the event.
                other.wait(&done).unwrap();
                other.copy(&seen, &own, 1 << 16).unwrap();
                done.synchronize().unwrap();
                assert_eq!(difference(&read(&back), &bytes), None);
                other.synchronize().unwrap();
                assert_eq!(difference(&read(&seen), &bytes), None);
                let mut found = vec![0; 1 << 16];
                slow.copy_to_host(&mut found, &own).unwrap();
                assert_eq!(difference(&found, &bytes), None);
            }
        }
    });
}

#[test]
fn lost_and_late_interrupts_delay_copies_to_the_host_and_no_more() {
    each_model(Model::builder, |device| {
        let (_runtime, gpu) = open(device);
        let mut stream = stream(&gpu, request(CopyEngine::Auto).staging(2, 50_000));
        let own = vram(&gpu, 1 << 18);
        let faults = device.model().faults();
        for round in 0..5 {
            faults.slow_engines(Duration::from_micros(200), 0);
            faults.lose_interrupts(3).delay_interrupts(Duration::from_millis(2));
            let bytes = Random::new(round).bytes(1 << 18);
            stream.copy_from_host(&own, &bytes).unwrap();
            let mut found = vec![0; 1 << 18];
            stream.copy_to_host(&mut found, &own).unwrap();
            assert_eq!(difference(&found, &bytes), None);
        }
        faults.clear();
    });
}

#[test]
fn polls_that_pass_early_let_no_copy_start_early() {
    if on_hardware() {
        return skip("it orders faults");
    }
    for target in [Target::Gfx900, Target::Gfx906, Target::Gfx908] {
        let model = Model::builder().gpu(Preset::of(target)).build();
        let device = kfd_tests::Device::of(model, target.name());
        let (runtime, gpu) = open(&device);
        let mut stream = stream(&gpu, request(CopyEngine::Sdma));
        let (own, back) = (vram(&gpu, 1 << 16), pinned(&gpu, &vec![0; 1 << 16]));
        for round in 0..50_u8 {
            device.model().faults().pass_polls_early(1000);
            // A kernel, then the engine, which has to wait for it.
            stream
                .fill(
                    &own,
                    u128::from_le_bytes([round, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
                    1 << 12,
                )
                .unwrap();
            stream.copy(&back, &own, 1 << 16).unwrap();
            stream.synchronize().unwrap();
            let found = read(&back);
            assert!(found.chunks(16).all(|chunk| chunk[0] == round && chunk[8] == 1), "{target}");
        }
        device.model().faults().clear();
        drop((stream, own, back, gpu, runtime));
        device.finish();
    }
}

#[test]
fn a_queue_that_the_kernel_refuses_is_an_error_or_a_fallback_and_leaves_nothing() {
    each_model(Model::builder, |device| {
        let (_runtime, gpu) = open(device);
        let bytes = Random::new(1).bytes(1 << 17);
        let (host, own) = (pinned(&gpu, &bytes), vram(&gpu, 1 << 17));
        let mut stream = stream(&gpu, request(CopyEngine::Sdma));
        let before = device.model().live();
        // CREATE_QUEUE is number 2.
        device.model().faults().fail(Call::Ioctl(2), 0, 1, kfd::sys::Errno::IO);
        let error = stream.copy(&own, &host, 1 << 17).unwrap_err();
        assert!(matches!(error, hip::Error::Driver(_)), "{error}");
        assert_eq!((device.model().live().queues, stream.submitted()), (before.queues, 0));
        // The next try finds an engine.
        stream.copy(&own, &host, 1 << 17).unwrap();
        let mut found = vec![0; 1 << 17];
        stream.copy_to_host(&mut found, &own).unwrap();
        assert_eq!(difference(&found, &bytes), None);
        assert_eq!(device.model().live().queues, before.queues + 1);
    });
}
