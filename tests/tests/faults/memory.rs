//! Memory faults.

use super::*;

#[test]
fn a_store_past_the_end_of_a_buffer_is_reported_with_page_flags_and_neighbour() {
    each_of_many(|device| {
        let bench = Bench::new(device);
        let victim = bench.memory();
        let end = victim.addr().get() + 4096;
        let _launch = bench.launch("wild_store", &[end + 0x124]);
        let report = bench.lost();
        // A refused write sets the bit for a missing page and the one for a missing permission.
        assert_eq!(memory_cause(&report), (end, true, true));
        assert_eq!(report.gpu, bench.gpu.id());
        let neighbours = report.neighbours;
        assert_eq!((neighbours.inside, neighbours.freed), (None, None));
        assert_eq!(neighbours.before.unwrap().addr, victim.addr());
        let text = report.to_string();
        assert!(text.contains("victim") && text.contains("the page is at +4096"), "{text}");
        assert!(text.contains("wild_store") && text.contains("not present"), "{text}");
        let state = &report.queues[0];
        assert_eq!((state.queue, state.read_index, state.write_index), (bench.queue.id(), 0, 1));
        assert_eq!(state.packets[0].kernel.as_deref(), Some("wild_store"));
    });
}

#[test]
fn a_load_from_nowhere_is_reported_as_a_load() {
    each(|device| {
        let bench = Bench::new(device);
        let out = bench.memory();
        let nowhere = out.addr().get() + 4096;
        let _launch = bench.launch("wild_load", &[nowhere, out.addr().get()]);
        assert_eq!(memory_cause(&bench.lost()), (nowhere, true, false));
    });
}

#[test]
fn a_null_pointer_is_a_fault_at_page_zero() {
    each(|device| {
        let bench = Bench::new(device);
        let _launch = bench.launch("wild_store", &[0]);
        assert_eq!(memory_cause(&bench.lost()), (0, true, true));
    });
}

#[test]
fn a_freed_pointer_is_named_as_freed() {
    each(|device| {
        let bench = Bench::new(device);
        let _around = (bench.memory(), bench.memory());
        let freed = bench.gpu.allocate(&MemoryRequest::gtt(4096).label("gone")).unwrap();
        let addr = freed.addr();
        let arguments = [addr.get(), bench.memory().addr().get()];
        let launch = bench.program.launch(&device.kfd, &bench.gpu, "wild_load", (1, 1), &arguments);
        freed.free().unwrap();
        let packet = launch.packet.completion(bench.done.addr()).encode();
        bench.queue.submit(&packet, launch.label).unwrap();
        let report = bench.lost();
        assert_eq!(report.neighbours.freed.map(|info| info.addr), Some(addr), "{report}");
        assert!(report.to_string().contains("freed gone"), "{report}");
    });
}

#[test]
fn a_store_to_read_only_memory_is_told_from_a_missing_page() {
    each(|device| {
        let bench = Bench::new(device);
        let constant =
            bench.gpu.allocate(&MemoryRequest::gtt(4096).read_only().label("constant")).unwrap();
        let _launch = bench.launch("wild_store", &[constant.addr().get() + 8]);
        let report = bench.lost();
        assert_eq!(memory_cause(&report), (constant.addr().get(), false, true));
        assert_eq!(report.neighbours.inside.unwrap().addr, constant.addr());
    });
}

#[test]
fn a_fault_ends_every_wait_on_that_gpu_with_the_first_cause() {
    each(|device| {
        let bench = Bench::new(device);
        let other = bench.gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let (never, gate) =
            (bench.gpu.create_signal(1).unwrap(), bench.gpu.create_signal(1).unwrap());
        other.submit(&crate::support::wait_for(&gate), KernelLabel::NONE).unwrap();
        other.submit(&noop(&never), KernelLabel::NONE).unwrap();
        let page = bench.memory().addr().get() + 0x10_0000_0000;
        std::thread::scope(|scope| {
            let waits = [
                scope.spawn(|| bench.wait(LONG).map(drop)),
                scope.spawn(|| other.wait(&never, Until::Below(1), LONG).map(drop)),
                scope.spawn(|| never.wait(Until::Below(1), LONG).map(drop)),
                scope.spawn(|| {
                    let signals = [(&never, Until::Below(1)), (&bench.done, Until::Below(1))];
                    device.kfd.wait_any(&signals, &[&other], LONG).map(drop)
                }),
            ];
            std::thread::sleep(Duration::from_millis(20));
            let start = Instant::now();
            let _launch = bench.launch("wild_store", &[page]);
            let reports: Vec<_> = waits
                .into_iter()
                .map(|wait| match wait.join().unwrap().unwrap_err() {
                    Error::DeviceLost(report) => report,
                    other => panic!("{other}"),
                })
                .collect();
            assert!(start.elapsed() < SOON);
            assert_eq!(memory_cause(&reports[0]).0, page);
            assert!(reports.iter().all(|report| *report == reports[0]), "the first cause");
            assert_eq!(reports[0].queues.len(), 2);
        });
        // And everything later on that GPU.
        gate.set(0);
        let refused = [
            bench.queue.submit(&noop(&bench.done), KernelLabel::NONE).map(drop),
            other.submit(&noop(&never), KernelLabel::NONE).map(drop),
            other.check(),
            bench.gpu.check(),
            bench.gpu.allocate(&MemoryRequest::gtt(4096)).map(drop),
            bench.gpu.create_queue(&QueueRequest::aql(64)).map(drop),
            never.wait(Until::Below(1), LONG).map(drop),
        ];
        for result in refused {
            let Err(Error::DeviceLost(report)) = result else { panic!("{result:?}") };
            assert_eq!(memory_cause(&report).0, page);
        }
        assert_eq!(never.value(), 1, "evicted queues do not go on");
        bench.queue.destroy().unwrap();
        other.destroy().unwrap();
    });
}

#[test]
fn another_gpu_of_the_process_goes_on() {
    if on_hardware() {
        return skip("it needs two GPUs of known targets");
    }
    each_model(
        || Model::builder().gpu(Preset::gfx90a()),
        |device| {
            let gpus = device.kfd.gpus();
            let (bad, good) =
                (Bench::on(device, gpus[0].clone()), Bench::on(device, gpus[1].clone()));
            let _launch = bad.launch("wild_store", &[0x7000]);
            bad.lost();
            good.second_queue_works();
            run_noops(&good.gpu, &good.queue, 10).unwrap();
            good.gpu.check().unwrap();
            assert!(bad.gpu.check().is_err());
            let _shared = good.memory();
        },
    );
}

#[test]
fn later_faults_do_not_replace_the_first() {
    each(|device| {
        let bench = Bench::new(device);
        let second = bench.gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let base = bench.memory().addr().get() + 0x20_0000_0000;
        let launch = |page| {
            bench.program.launch(&device.kfd, &bench.gpu, "wild_store", (1, 1), &[base + page])
        };
        let launches = [launch(0), launch(0x5000)];
        bench.queue.submit(&launches[0].packet.encode(), launches[0].label).unwrap();
        // It may be known to be lost by now.
        let _ = second.submit(&launches[1].packet.encode(), launches[1].label);
        let report = bench.lost();
        assert!([base, base + 0x5000].contains(&memory_cause(&report).0));
        std::thread::sleep(Duration::from_millis(50));
        device.kfd.poll_faults().unwrap();
        let Err(Error::DeviceLost(again)) = second.check() else { panic!("it is lost") };
        assert_eq!(*again, *report);
    });
}

/// Only what KFD told, and what the driver knew: no instruction, no exact address.
#[test]
fn a_report_holds_nothing_that_kfd_did_not_tell() {
    each(|device| {
        let bench = Bench::new(device);
        let address = bench.memory().addr().get() + 0x30_0000_0000 + 0xabc;
        let _launch = bench.launch("wild_store", &[address]);
        let report = bench.lost();
        assert_eq!(memory_cause(&report).0, address & !0xfff);
        assert!(!format!("{report:?} {report}").contains("abc"), "{report:?}");
    });
}

#[test]
fn a_wild_kernel_object_is_a_fault_of_the_packet_processor() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let done = gpu.create_signal(1).unwrap();
        let object = 0x7ead_0000_1000_u64;
        let packet = aql::KernelDispatch::new(object.into(), [1; 3], [1; 3]).unwrap();
        let label = device.kfd.register_kernel("nowhere");
        queue.submit(&packet.completion(done.addr()).encode(), label).unwrap();
        let error = queue.wait(&done, Until::Below(1), SOON).unwrap_err();
        let Error::DeviceLost(report) = &error else { panic!("{error}") };
        assert_eq!(memory_cause(report), (object, true, false));
        assert!(error.to_string().contains("nowhere"), "{error}");
    });
}

#[test]
fn a_process_with_a_lost_gpu_closes_in_short_time() {
    each(|device| {
        let bench = Bench::new(device);
        let _launch = bench.launch("wild_store", &[0x5000]);
        bench.lost();
        let start = Instant::now();
        drop(bench);
        assert!(start.elapsed() < Duration::from_secs(10));
    });
}

#[test]
fn a_queue_destroyed_while_its_fault_is_on_its_way_is_gone() {
    for round in 0..20 {
        let device = Device::of(Model::builder().build(), "gfx1100");
        let Bench { queue, program, done, gpu, .. } = Bench::new(&device);
        let launch = program.launch(&device.kfd, &gpu, "wild_store", (1, 1), &[0x6000]);
        let packet = launch.packet.completion(done.addr()).encode();
        queue.submit(&packet, launch.label).unwrap();
        std::thread::sleep(Duration::from_micros(round * 50));
        queue.destroy().unwrap();
        let _ = device.kfd.poll_faults();
    }
}

#[test]
fn a_reset_gpu_is_lost_with_its_cause() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        run_noops(&gpu, &queue, 3).unwrap();
        let signal = gpu.create_signal(1).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait(&signal, Until::Below(1), LONG));
            std::thread::sleep(Duration::from_millis(20));
            device.model().reset_gpu(0);
            let error = waiter.join().unwrap().unwrap_err();
            let Error::DeviceLost(report) = &error else { panic!("{error}") };
            let FaultCause::Hardware { reset_type: 0, reset_cause: 0, memory_lost: true } =
                report.cause
            else {
                panic!("{:?}", report.cause);
            };
            assert!(error.to_string().contains("reset after a hang"), "{error}");
        });
        assert!(gpu.check().is_err());
    });
}

#[test]
fn after_a_fault_a_new_process_state_starts_clean() {
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let device = Device::of(Model::builder().gpu(preset.clone()).build(), "a");
        let bench = Bench::new(&device);
        let _launch = bench.launch("wild_store", &[0x5000]);
        bench.lost();
        let other = Device::of(Model::builder().gpu(preset).build(), "b");
        use_everything(&other.kfd).unwrap();
    }
}
