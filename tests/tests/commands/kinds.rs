//! Kinds of command buffers, and kernels that want more than arguments.

use hip::{CommandKind, CommandRecorder, CommandRequest, Grid, Module, Reason, Stream};
use kfd::MemoryRequest;
use kfd_tests::{each_target, every_target};

use super::{LONG, N, counter, pairs, values, vector};
use crate::streams::{Adder, code, kinds};

#[test]
fn a_gpu_with_several_xccs_gets_packets_and_others_an_indirect_buffer() {
    every_target(|device| {
        let adder = Adder::new(device);
        let xccs = adder.device.gpu().node().num_xcc();
        let (sum, one) = (vector(&adder, |_| 0.0), vector(&adder, |_| 1.0));
        let (command, _) = counter(&adder, CommandRequest::new(), 2, &sum, &one);
        let expected = match xccs {
            1 => (CommandKind::IndirectBuffer, &Reason::Fastest),
            _ => (CommandKind::Packets, &Reason::Xccs(xccs)),
        };
        assert_eq!((command.kind(), command.reason()), expected);
        let asked = CommandRequest::new().kind(CommandKind::IndirectBuffer);
        assert_eq!(CommandRecorder::new(&adder.device, asked).is_ok(), xccs == 1);
    });
}

/// Submits `record`'s commands to every kind of stream, as every kind that it takes, and checks.
fn everywhere(
    adder: &Adder,
    record: impl Fn(&mut CommandRecorder),
    mut check: impl FnMut(&mut Stream, &str),
) {
    for (stream, request) in pairs(adder) {
        let mut recorder = CommandRecorder::new(&adder.device, request).unwrap();
        record(&mut recorder);
        let mut command = recorder.finish().unwrap();
        let reason = command.reason();
        assert!(!matches!(reason, Reason::Kernel(..)), "{reason}");
        let what = format!("{} to {stream:?}", command.kind());
        let mut stream = adder.stream(stream);
        for round in 0..3 {
            stream.submit(&mut command).unwrap();
            stream.synchronize_within(LONG).unwrap();
            check(&mut stream, &format!("{what}, round {round}"));
        }
    }
}

#[test]
fn kernels_with_scratch_run_and_the_queue_may_get_more_of_it_meanwhile() {
    each_target(|device| {
        let adder = Adder::new(device);
        let target = adder.device.gpu().gfx_version().to_string();
        let module = Module::load(&adder.device, &code(&target, "stack")).unwrap();
        let [array, recursive] = ["priv_array", "recursive"].map(|n| module.function(n).unwrap());
        let memory = || adder.device.allocate(&MemoryRequest::gtt(u64::from(N) * 4)).unwrap();
        let (out, index, other) = (memory(), memory(), memory());
        let bytes: Vec<u8> = (0..N).flat_map(|i| (i * 7).to_le_bytes()).collect();
        index.write(0, &bytes).unwrap();
        let grid = Grid::items([N, 1, 1], [N, 1, 1]);
        let words = |memory: &hip::Memory| {
            let mut bytes = vec![0; 4 * N as usize];
            memory.read(0, &mut bytes).unwrap();
            bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>()
        };
        everywhere(
            &adder,
            |recorder| {
                recorder.kernel(&array, &grid, (&out, &index)).unwrap();
            },
            |stream, what| {
                let expected: Vec<u32> = (0..N).map(|i| (i * 7 % 32) * i).collect();
                assert_eq!(words(&out), expected, "{what}");
                out.write(0, &[0; 4 * N as usize]).unwrap();
                // Needs more scratch than the buffer: the queue's moves.
                stream.launch(&recursive, &grid, (&other,)).unwrap();
                stream.synchronize_within(LONG).unwrap();
                assert_eq!(words(&other)[..4], [1, 3, 3, 5], "{what}");
            },
        );
    });
}

#[test]
fn kernels_see_sizes_dispatch_packets_and_preloaded_arguments() {
    each_target(|device| {
        let adder = Adder::new(device);
        let target = adder.device.gpu().gfx_version().to_string();
        // Version 4 asks the dispatch packet for the size of a group.
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/code-objects");
        let variant = |name: String| std::fs::read(format!("{folder}/{name}.co")).ok();
        let other_wave = variant(format!("vadd.{target}.wave64.v5"));
        for file in variant(format!("vadd.{target}.v4")).into_iter().chain(other_wave) {
            let module = Module::load(&adder.device, &file).unwrap();
            let vadd = module.function("vadd").unwrap();
            let (a, sum) = (vector(&adder, |i| i as f32), vector(&adder, |_| 0.0));
            let grid = Grid::items([N, 1, 1], [16, 1, 1]);
            everywhere(
                &adder,
                |recorder| {
                    recorder.kernel(&vadd, &grid, (&a, &a, &sum, N)).unwrap();
                },
                |_, what| {
                    let expected: Vec<f32> = (0..N).map(|i| 2.0 * i as f32).collect();
                    assert_eq!(values(&sum), expected, "{what}");
                    sum.write(0, &[0; 4 * N as usize]).unwrap();
                },
            );
        }
        let file = variant(format!("abi_args.{target}.preload.v5"));
        let file = file.unwrap_or_else(|| code(&target, "abi_args"));
        let module = Module::load(&adder.device, &file).unwrap();
        let preload = module.function("preload").unwrap();
        let out = adder.device.allocate(&MemoryRequest::gtt(8 * 64)).unwrap();
        let mut command = None;
        for kind in kinds(&adder.device) {
            let mut recorder = CommandRecorder::new(&adder.device, CommandRequest::new()).unwrap();
            let grid = Grid::items([64, 1, 1], [64, 1, 1]);
            let arguments = (3_u64, 5_u64, 7_u64, &out);
            let id = recorder.kernel(&preload, &grid, arguments).unwrap();
            let command = command.insert(recorder.finish().unwrap());
            let mut stream = adder.stream(kind);
            for (a, expected) in [(3_u64, 22), (10, 57), (1 << 40, 5 << 40 | 7)] {
                // More often than an instance can catch up with, the second time.
                for _ in 0..if a == 10 { 200 } else { 1 } {
                    command.set_argument(id, 0, a).unwrap();
                }
                stream.submit(command).unwrap();
                stream.synchronize_within(LONG).unwrap();
                let mut word = [0; 8];
                out.read(8 * 63, &mut word).unwrap();
                assert_eq!(u64::from_le_bytes(word), expected);
            }
        }
    });
}
