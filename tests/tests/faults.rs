//! Kernels that go wrong: what the driver's user learns, and what goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kfd::report::FaultCause;
use kfd::{Buffer, Error, Gpu, Kfd, MemoryRequest, Queue, QueueRequest};
use kfd_model::{Model, Preset, Profile};
use kfd_tests::{Launched, Program, finish};

const SECOND: Duration = Duration::from_secs(1);

const FAULTS: [(Preset, &[u8]); 2] = [
    (Preset::gfx1100(), include_bytes!("../fixtures/code-objects/faults.gfx1100.v5.co")),
    (Preset::gfx90a(), include_bytes!("../fixtures/code-objects/faults.gfx90a.v5.co")),
];

/// A GPU with two queues and a buffer.
struct Rig {
    model: Arc<Model>,
    kfd: Kfd,
    gpu: Gpu,
    queues: [Queue; 2],
    out: Buffer,
}

impl Rig {
    fn new(builder: kfd_model::Builder) -> Self {
        let model = builder.build();
        let kfd = Kfd::open_on(Arc::clone(&model) as _).unwrap();
        let gpu = kfd.first_gpu().unwrap();
        let queue = || gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let queues = [queue(), queue()];
        let out = gpu.allocate(&MemoryRequest::gtt(4096).coherent().uncached()).unwrap();
        Self { model, kfd, gpu, queues, out }
    }

    fn launch(&self, queue: usize, program: &Program<'_>, kernel: &str, args: &[u64]) -> Launched {
        let args: Vec<_> = args.iter().map(|arg| arg.to_le_bytes()).collect();
        let args: Vec<&[u8]> = args.iter().map(<[u8; 8]>::as_slice).collect();
        let shape = ([1, 1, 1], [1, 1, 1]);
        let queue = self.queues.get(queue).unwrap();
        program.launch(&self.kfd, &self.gpu, queue, kernel, shape, &args)
    }

    /// The second queue still runs kernels.
    fn assert_second_queue_works(&self, program: &Program<'_>) {
        self.out.u32(64).unwrap().store(1, std::sync::atomic::Ordering::Release);
        let (stop, out) = (self.out.addr().get() + 64, self.out.addr().get() + 128);
        let launched = self.launch(1, program, "spin_until", &[stop, out]);
        let [_, second] = &self.queues;
        finish(second, &launched, 10 * SECOND).unwrap();
        assert_eq!(self.word(128), 7);
    }

    fn word(&self, offset: u64) -> u32 {
        self.out.u32(offset).unwrap().load(std::sync::atomic::Ordering::Acquire)
    }

    /// Everything can be taken down, queues before what they use, and nothing is left.
    fn tear_down<T>(self, used: T) -> Vec<String> {
        let Self { model, kfd, queues, out, .. } = self;
        let start = Instant::now();
        for queue in queues {
            queue.destroy().unwrap();
        }
        drop(used);
        out.free().unwrap();
        assert!(start.elapsed() < 2 * SECOND);
        assert!(kfd.leaks().is_empty(), "{:?}", kfd.leaks());
        model.diagnostics().iter().map(ToString::to_string).collect()
    }
}

/// A page that is mapped nowhere: no allocation lies in the first 64 KiB.
const WILD: u64 = 0x3000;

#[test]
fn a_wild_access_loses_the_device_for_every_waiter_and_leaves_the_other_gpu_alone() {
    for (preset, object) in FAULTS {
        for (kernel, is_store) in [("wild_store", true), ("wild_load", false)] {
            for profile in Profile::ALL {
                let builder = Model::builder().gpu(preset.clone()).gpu(preset.clone());
                let rig = Rig::new(builder.profile(profile));
                let program = Program::load(&rig.gpu, object);
                // A waiter on the innocent queue, too.
                let never = [rig.out.addr().get() + 64, rig.out.addr().get() + 128];
                let innocent = rig.launch(1, &program, "spin_until", &never);
                let out = rig.out.addr().get();
                let args = if is_store { vec![WILD + 8] } else { vec![WILD + 8, out] };
                let guilty = rig.launch(0, &program, kernel, &args);
                std::thread::scope(|scope| {
                    let other = scope.spawn(|| finish(&rig.queues[1], &innocent, 10 * SECOND));
                    for error in [
                        finish(&rig.queues[0], &guilty, 10 * SECOND).unwrap_err(),
                        other.join().unwrap().unwrap_err(),
                    ] {
                        let Error::DeviceLost(report) = &error else { panic!("{error}") };
                        let FaultCause::Memory { page, not_present, read_only, .. } = report.cause
                        else {
                            panic!("{report}")
                        };
                        assert_eq!((page.get(), not_present, read_only), (WILD, true, is_store));
                        assert_eq!(report.gpu, rig.gpu.id());
                    }
                });
                // The other GPU of the process goes on.
                let other = rig.kfd.gpus()[1].clone();
                let queue = other.create_queue(&QueueRequest::aql(64)).unwrap();
                let elsewhere = Program::load(&other, object);
                let out = other.allocate(&MemoryRequest::gtt(4096)).unwrap();
                out.u32(0).unwrap().store(1, std::sync::atomic::Ordering::Release);
                let args = [out.addr().get(), out.addr().get() + 8].map(u64::to_le_bytes);
                let launched = elsewhere.launch(
                    &rig.kfd,
                    &other,
                    &queue,
                    "spin_until",
                    ([1, 1, 1], [1, 1, 1]),
                    &[&args[0], &args[1]],
                );
                finish(&queue, &launched, 10 * SECOND).unwrap();
                drop((launched, queue, elsewhere, out));
                let said = rig.tear_down((innocent, guilty, program));
                assert!(said.iter().any(|text| text.contains("memory fault")), "{said:?}");
            }
        }
    }
}

#[test]
fn an_exception_of_a_wave_loses_its_queue_and_no_other() {
    for (preset, object) in FAULTS {
        for profile in Profile::ALL {
            for kernel in ["illegal", "abort_if", "atomic_at"] {
                let rig = Rig::new(Model::builder().gpu(preset.clone()).profile(profile));
                let program = Program::load(&rig.gpu, object);
                let out = rig.out.addr().get();
                rig.out.u32(256).unwrap().store(1, std::sync::atomic::Ordering::Release);
                let args = match kernel {
                    "illegal" => vec![out],
                    "abort_if" => vec![out + 256, out],
                    _ => vec![out + 2],
                };
                let launched = rig.launch(0, &program, kernel, &args);
                let error = finish(&rig.queues[0], &launched, 10 * SECOND).unwrap_err();
                let Error::QueueLost(fault) = &error else {
                    panic!("{kernel} {profile:?}: {error}")
                };
                assert_eq!(fault.state.packets[0].kernel.as_deref(), Some(kernel));
                rig.assert_second_queue_works(&program);
                rig.tear_down((launched, program));
            }
        }
    }
}

#[test]
fn an_endless_loop_ends_the_wait_at_its_bound_and_the_queue_can_be_destroyed() {
    for (preset, object) in FAULTS {
        let rig = Rig::new(Model::builder().gpu(preset.clone()));
        let program = Program::load(&rig.gpu, object);
        let launched = rig.launch(0, &program, "endless", &[]);
        let start = Instant::now();
        let error = finish(&rig.queues[0], &launched, SECOND / 2).unwrap_err();
        assert!(start.elapsed() >= SECOND / 2 && start.elapsed() < 5 * SECOND);
        let Error::Timeout(report) = &error else { panic!("{error}") };
        let state = report.queue.as_ref().unwrap();
        assert_eq!((state.read_index, state.write_index), (0, 1));
        assert_eq!(state.packets[0].kernel.as_deref(), Some("endless"));
        rig.assert_second_queue_works(&program);
        assert_eq!(rig.tear_down((launched, program)), Vec::<String>::new());
    }
}

#[test]
fn a_bad_packet_loses_its_queue_unconsumed_and_no_other() {
    for (preset, object) in FAULTS {
        for profile in Profile::ALL {
            let rig = Rig::new(Model::builder().gpu(preset.clone()).profile(profile));
            let program = Program::load(&rig.gpu, object);
            let signal = rig.gpu.create_signal(1).unwrap();
            // A vendor packet of a format that nobody has.
            let mut bytes = [0; 64];
            bytes[1] = 0x15;
            bytes[2] = 0x7f;
            bytes[56..].copy_from_slice(&signal.addr().get().to_le_bytes());
            let packet = aql::Packet::from_bytes(&bytes);
            let label = rig.kfd.register_kernel("nonsense");
            rig.queues[0].submit(&packet, label).unwrap();
            let error = rig.queues[0].wait(&signal, kfd::Until::Below(1), 10 * SECOND).unwrap_err();
            let Error::QueueLost(fault) = &error else { panic!("{profile:?}: {error}") };
            assert_eq!((fault.state.read_index, fault.state.write_index), (0, 1));
            assert_eq!((signal.value(), fault.gpu), (1, rig.gpu.id()));
            rig.assert_second_queue_works(&program);
            let said = rig.tear_down((program, signal));
            assert!(said.iter().any(|text| text.contains("vendor packet format")), "{said:?}");
        }
    }
}
