//! RUNTIME_ENABLE and DBG_TRAP of a process on itself.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use kfd::GpuId;
use kfd::abi::{
    AllocQueueGwsArgs, DbgDeviceInfoEntry, DbgTrapArgs, DbgTrapDeviceSnapshotArgs,
    DbgTrapEnableArgs, DbgTrapFlags, DbgTrapMask, DbgTrapOp, DbgTrapOverrideMode,
    DbgTrapQueryDebugEventArgs, DbgTrapQueryExceptionInfoArgs, DbgTrapQueueSnapshotArgs,
    DbgTrapResumeQueuesArgs, DbgTrapSendRuntimeEventArgs, DbgTrapSetExceptionsEnabledArgs,
    DbgTrapSetFlagsArgs, DbgTrapSetNodeAddressWatchArgs, DbgTrapSetWaveLaunchModeArgs,
    DbgTrapSetWaveLaunchOverrideArgs, DbgTrapSuspendQueuesArgs, DbgTrapWaveLaunchMode,
    DestroyQueueArgs, EventType, ExceptionCode, QueueSnapshotEntry, QueueType, RuntimeEnableArgs,
    RuntimeEnableMode, RuntimeInfo, RuntimeState, SetCuMaskArgs, WaitResult,
};
use kfd::sys::{Errno, Kernel, OpenFlags};
use zerocopy::FromZeros;

use super::Client;
use super::aql::{BARRIER_AND, Rig};
use crate::kernel::Model;
use crate::{Preset, Profile};

const NEW: u64 = 1 << 30;
const INVALID: u32 = 1 << 31;

fn debug(op: DbgTrapOp) -> DbgTrapArgs {
    DbgTrapArgs { pid: std::process::id(), op, ..Default::default() }
}

impl Client {
    fn trap(&self, args: &mut DbgTrapArgs) -> Result<u32, Errno> {
        self.call(0x26, args)
    }

    fn plain(&self, op: DbgTrapOp) -> Result<u32, Errno> {
        self.trap(&mut debug(op))
    }

    /// ENABLE with /dev/null; gives what it says of the runtime.
    fn attach(&self, exception_mask: u64) -> Result<RuntimeInfo, Errno> {
        let sink = self.model.open("/dev/null", OpenFlags::WRITE).unwrap();
        self.attach_to(exception_mask, sink.0.unsigned_abs())
    }

    fn attach_to(&self, exception_mask: u64, dbg_fd: u32) -> Result<RuntimeInfo, Errno> {
        let mut info = RuntimeInfo::default();
        let mut args = debug(DbgTrapOp::ENABLE);
        let rinfo_ptr = (&raw mut info).addr() as u64;
        args.set_enable(DbgTrapEnableArgs { exception_mask, rinfo_ptr, rinfo_size: 16, dbg_fd });
        self.trap(&mut args)?;
        assert_eq!(args.enable().rinfo_size, 16);
        Ok(info)
    }

    fn runtime(&self, enable: bool) -> Result<u32, Errno> {
        let mode_mask = RuntimeEnableMode::from_bits_retain(enable.into());
        self.call(0x25, &mut RuntimeEnableArgs { mode_mask, r_debug: 5, ..Default::default() })
    }

    fn want(&self, exception_mask: u64) -> Result<u32, Errno> {
        let mut args = debug(DbgTrapOp::SET_EXCEPTIONS_ENABLED);
        args.set_set_exceptions_enabled(DbgTrapSetExceptionsEnabledArgs { exception_mask });
        self.trap(&mut args)
    }

    /// The next event: exceptions, GPU, queue. Clears `clear`.
    fn event_of_debugger(&self, clear: u64) -> Result<(u64, u32, u32), Errno> {
        let mut args = debug(DbgTrapOp::QUERY_DEBUG_EVENT);
        let query = DbgTrapQueryDebugEventArgs { exception_mask: clear, ..Default::default() };
        args.set_query_debug_event(query);
        self.trap(&mut args)?;
        let event = args.query_debug_event();
        Ok((event.exception_mask, event.gpu_id.0, event.queue_id.0))
    }

    fn suspend(&self, ids: &mut [u32], clear: u64) -> Result<u32, Errno> {
        let mut args = debug(DbgTrapOp::SUSPEND_QUEUES);
        args.set_suspend_queues(DbgTrapSuspendQueuesArgs {
            exception_mask: clear,
            queue_array_ptr: ids.as_mut_ptr().addr() as u64,
            num_queues: u32::try_from(ids.len()).unwrap(),
            grace_period: 0,
        });
        self.trap(&mut args)
    }

    fn resume(&self, ids: &mut [u32]) -> Result<u32, Errno> {
        let mut args = debug(DbgTrapOp::RESUME_QUEUES);
        args.set_resume_queues(DbgTrapResumeQueuesArgs {
            queue_array_ptr: if ids.is_empty() { 0 } else { ids.as_mut_ptr().addr() as u64 },
            num_queues: u32::try_from(ids.len()).unwrap(),
            pad: 0,
        });
        self.trap(&mut args)
    }

    fn snapshots(&self, entries: &mut [QueueSnapshotEntry], clear: u64) -> Result<u32, Errno> {
        let mut args = debug(DbgTrapOp::GET_QUEUE_SNAPSHOT);
        args.set_queue_snapshot(DbgTrapQueueSnapshotArgs {
            exception_mask: clear,
            snapshot_buf_ptr: entries.as_mut_ptr().addr() as u64,
            num_queues: u32::try_from(entries.len()).unwrap(),
            entry_size: 64,
        });
        self.trap(&mut args)?;
        Ok(args.queue_snapshot().num_queues)
    }

    fn exception_info(&self, code: ExceptionCode, source: u32) -> Result<RuntimeInfo, Errno> {
        let mut info = RuntimeInfo::default();
        let mut args = debug(DbgTrapOp::QUERY_EXCEPTION_INFO);
        args.set_query_exception_info(DbgTrapQueryExceptionInfoArgs {
            info_ptr: (&raw mut info).addr() as u64,
            info_size: 16,
            source_id: source,
            exception_code: code,
            clear_exception: 1,
        });
        self.trap(&mut args).map(|_| info)
    }

    fn send(&self, exception_mask: u64, gpu_id: u32, queue: u32) -> Result<u32, Errno> {
        let mut args = debug(DbgTrapOp::SEND_RUNTIME_EVENT);
        args.set_send_runtime_event(DbgTrapSendRuntimeEventArgs {
            exception_mask,
            gpu_id: GpuId(gpu_id),
            queue_id: kfd::QueueId(queue),
        });
        self.trap(&mut args)
    }
}

#[test]
fn attaching_comes_first_and_once() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    for op in 1..=15 {
        assert_eq!(client.plain(DbgTrapOp(op)), Err(Errno::INVAL), "{op}");
    }
    for pid in [0, u32::MAX] {
        assert_eq!(client.trap(&mut DbgTrapArgs { pid, ..Default::default() }), Err(Errno::SRCH));
    }
    assert_eq!(client.model.unmodelled(), 0);
    // Another process that exists: a tracer could, if it were a process of this model.
    let mut parent = DbgTrapArgs { pid: 1, ..Default::default() };
    assert_eq!(client.trap(&mut parent), Err(Errno::SRCH));
    assert_eq!(client.model.unmodelled(), 1);
    assert_eq!(client.attach_to(0, 9999).map(drop), Err(Errno::BADF));
    assert_eq!(client.attach_to(0, u32::MAX).map(drop), Err(Errno::BADF));
    let info = client.attach(0).unwrap();
    assert_eq!((info.runtime_state, info.r_debug), (RuntimeState::DISABLED, 0));
    assert_eq!(client.attach(0).map(drop), Err(Errno::ALREADY));
    assert_eq!(client.plain(DbgTrapOp(15)), Err(Errno::INVAL));
    for op in [4, 5, 6, 7, 8, 9, 10] {
        assert_eq!(client.plain(DbgTrapOp(op)), Err(Errno::PERM), "{op} needs the runtime");
    }
    assert_eq!(client.plain(DbgTrapOp::DISABLE), Ok(0));
    assert_eq!(client.plain(DbgTrapOp::DISABLE), Err(Errno::INVAL));
    // A pointer that cannot be written leaves nothing attached.
    let sink = client.model.open("/dev/null", OpenFlags::WRITE).unwrap().0.unsigned_abs();
    let mut args = debug(DbgTrapOp::ENABLE);
    args.set_enable(DbgTrapEnableArgs { rinfo_size: 16, dbg_fd: sink, ..Default::default() });
    assert_eq!(client.trap(&mut args), Err(Errno::FAULT));
    assert_eq!(client.runtime(true), Ok(0));
    let info = client.attach(0).unwrap();
    assert_eq!((info.runtime_state, info.r_debug), (RuntimeState::ENABLED, 5));
}

#[test]
fn kernels_before_1_13_have_no_debugger() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_1);
    assert_eq!(client.plain(DbgTrapOp::ENABLE), Err(Errno::NOTTY));
}

#[test]
fn snapshots_show_queues_in_the_order_of_their_making() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    let (first, _) = client.queue_args(4096);
    let (second, _) = client.queue_args(8192);
    for args in [&first, &second] {
        client.call(0x02, &mut { *args }).unwrap();
    }
    // Its number is taken again, at the end of the list.
    client.call(0x03, &mut DestroyQueueArgs::default()).unwrap();
    client.call(0x02, &mut { first }).unwrap();
    client.attach(0).unwrap();
    let mut entries = [QueueSnapshotEntry::default(); 3];
    assert_eq!(client.snapshots(&mut entries[..1], 0), Ok(2), "all are counted");
    assert_eq!(client.snapshots(&mut entries, NEW), Ok(2));
    assert_eq!([0, 1].map(|i| entries[i].queue_id.0), [1, 0]);
    let entry = entries[0];
    assert_eq!((entry.exception_status, entry.gpu_id), (NEW, client.gpu()));
    assert_eq!((entry.ring_base_address, entry.ring_size), (second.ring_base_address, 8192));
    assert_eq!(entry.write_pointer_address, second.write_pointer_address);
    assert_eq!(entry.read_pointer_address, second.read_pointer_address);
    assert_eq!(entry.ctx_save_restore_address, second.ctx_save_restore_address);
    assert_eq!(entry.ctx_save_restore_area_size, second.ctx_save_restore_size);
    assert_eq!(entry.queue_type, QueueType::COMPUTE_AQL);
    client.snapshots(&mut entries, 0).unwrap();
    assert_eq!(entries[0].exception_status, 0, "cleared by the one before");
    let mut none = debug(DbgTrapOp::GET_QUEUE_SNAPSHOT);
    assert_eq!(client.trap(&mut none), Err(Errno::INVAL), "entries of no size");
    let mut bad = debug(DbgTrapOp::GET_QUEUE_SNAPSHOT);
    bad.set_queue_snapshot(DbgTrapQueueSnapshotArgs {
        num_queues: 1,
        entry_size: 64,
        ..Default::default()
    });
    assert_eq!(client.trap(&mut bad), Err(Errno::FAULT));

    let mut devices = [DbgDeviceInfoEntry::new_zeroed(); 2];
    let mut args = debug(DbgTrapOp::GET_DEVICE_SNAPSHOT);
    assert_eq!(client.trap(&mut args), Err(Errno::INVAL), "nowhere to write");
    args.set_device_snapshot(DbgTrapDeviceSnapshotArgs {
        exception_mask: 0,
        snapshot_buf_ptr: devices.as_mut_ptr().addr() as u64,
        num_devices: 2,
        entry_size: 200,
    });
    assert_eq!(client.trap(&mut args), Ok(0));
    let answer = args.device_snapshot();
    assert_eq!((answer.num_devices, answer.entry_size), (1, 120));
    let device = devices[0];
    assert_eq!((device.gpu_id, device.gfx_target_version), (client.gpu(), 9_00_10));
    assert_eq!((device.simd_count, device.num_xcc), (440, 1));
    assert_eq!((device.lds_base, device.gpuvm_base), (1 << 48, 0x1_0000));
}

#[test]
fn events_come_queues_first_and_end_with_eagain() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    let (args, _) = client.queue_args(4096);
    client.call(0x02, &mut { args }).unwrap();
    let path = std::env::temp_dir().join(format!("kfd-model-debug-{}", std::process::id()));
    std::fs::write(&path, "").unwrap();
    let told = || {
        let told = !std::fs::read(&path).unwrap().is_empty();
        std::fs::write(&path, "").unwrap();
        told
    };
    let file = client.model.open(path.to_str().unwrap(), OpenFlags::WRITE).unwrap();
    client.attach_to(0, file.0.unsigned_abs()).unwrap();
    assert_eq!(client.event_of_debugger(0), Err(Errno::AGAIN), "nothing is wanted");
    assert!(!told());
    let delete = 1 << 31;
    client.want(NEW | delete).unwrap();
    assert!(told(), "what is raised already is told when it is wanted");
    client.call(0x02, &mut { args }).unwrap();
    assert!(told());
    client.call(0x03, &mut DestroyQueueArgs::default()).unwrap();
    assert!(told());
    let gpu = client.gpus[0];
    assert_eq!(client.event_of_debugger(0), Ok((NEW, gpu, 1)));
    assert_eq!(client.event_of_debugger(NEW), Ok((NEW, gpu, 1)), "still there, now taken");
    assert_eq!(client.event_of_debugger(delete), Ok((delete, gpu, 0)));
    assert_eq!(client.event_of_debugger(!0), Err(Errno::AGAIN));
    // Detaching forgets what is raised.
    client.call(0x02, &mut { args }).unwrap();
    client.plain(DbgTrapOp::DISABLE).unwrap();
    client.attach(!0).unwrap();
    assert_eq!(client.event_of_debugger(!0), Err(Errno::AGAIN));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn details_are_of_what_was_raised_where() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    let (args, _) = client.queue_args(4096);
    client.call(0x02, &mut { args }).unwrap();
    client.attach(0).unwrap();
    let info = |code, source| client.exception_info(code, source).map(drop);
    assert_eq!(info(ExceptionCode::QUEUE_NEW, 3), Err(Errno::INVAL));
    assert_eq!(info(ExceptionCode::QUEUE_WAVE_TRAP, 0), Err(Errno::NODATA));
    assert_eq!(info(ExceptionCode::QUEUE_NEW, 0), Ok(()));
    assert_eq!(info(ExceptionCode::QUEUE_NEW, 0), Err(Errno::NODATA), "cleared");
    assert_eq!(info(ExceptionCode::DEVICE_MEMORY_VIOLATION, 1), Err(Errno::INVAL));
    let gpu = client.gpus[0];
    assert_eq!(info(ExceptionCode::DEVICE_MEMORY_VIOLATION, gpu), Err(Errno::NODATA));
    assert_eq!(info(ExceptionCode::PROCESS_RUNTIME, 0), Err(Errno::NODATA));
    for code in [0, 7, 40, 64, 65] {
        assert_eq!(info(ExceptionCode(code), 0), Err(Errno::INVAL), "{code}");
    }
}

#[test]
fn a_suspended_queue_takes_no_packets_and_dies_only_when_resumed() {
    for preset in [Preset::gfx90a(), Preset::gfx1100()] {
        let client = Client::new(&Model::builder().gpu(preset).build());
        client.runtime(true).unwrap();
        let mut rig = Rig::on(client);
        rig.client.attach(0).unwrap();
        let mut ids = [0, 9];
        assert_eq!(rig.client.suspend(&mut ids, 0), Ok(0));
        assert_eq!(ids, [INVALID, 9 | INVALID], "a new queue is left alone");
        rig.client.snapshots(&mut [QueueSnapshotEntry::default()], NEW).unwrap();
        let mut ids = [0, 9];
        assert_eq!(rig.client.suspend(&mut ids, 0), Ok(1));
        assert_eq!(ids, [0, 9 | INVALID]);
        let done = rig.signal(0, 1);
        rig.submit(BARRIER_AND, &[(56, done)]);
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(rig.value(0), 1, "nothing moves");
        assert_eq!(rig.client.resume(&mut [0]), Ok(1));
        for _ in 0..1000 {
            rig.settle();
            if rig.value(0) == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(rig.value(0), 0);
        assert_eq!(rig.client.resume(&mut []), Ok(1), "all, suspended or not");
        assert_eq!(rig.client.suspend(&mut [0], 0), Ok(1));
        assert_eq!(rig.client.suspend(&mut [0], 0), Ok(1), "again");
        let client = &rig.client;
        std::thread::scope(|scope| {
            let destroy = || client.call(0x03, &mut DestroyQueueArgs::default());
            let first = scope.spawn(destroy);
            let second = loop {
                match client.model.lock().processes.values().next().unwrap().queues.get(&0) {
                    Some(record) if record.dying => break Some(()),
                    _ => {}
                }
            };
            assert_eq!(second, Some(()));
            assert_eq!(destroy(), Err(Errno::BUSY));
            assert!(!first.is_finished());
            assert_eq!(client.resume(&mut []), Ok(1));
            assert_eq!(first.join().unwrap(), Ok(0));
        });
        let suspend = |pointer, count| {
            let mut args = debug(DbgTrapOp::SUSPEND_QUEUES);
            args.set_suspend_queues(DbgTrapSuspendQueuesArgs {
                queue_array_ptr: pointer,
                num_queues: count,
                ..Default::default()
            });
            client.trap(&mut args)
        };
        assert_eq!(suspend(0, 1), Err(Errno::INVAL));
        assert_eq!(suspend(8, 1025), Err(Errno::INVAL));
        assert_eq!(suspend(8, 1), Err(Errno::FAULT));
        assert_eq!(suspend(0, 0), Ok(0));
    }
}

#[test]
fn detaching_resumes_every_queue() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    client.runtime(true).unwrap();
    let (args, _) = client.queue_args(4096);
    client.call(0x02, &mut { args }).unwrap();
    client.attach(0).unwrap();
    client.snapshots(&mut [QueueSnapshotEntry::default()], NEW).unwrap();
    assert_eq!(client.suspend(&mut [0], 0), Ok(1));
    client.plain(DbgTrapOp::DISABLE).unwrap();
    assert_eq!(client.call(0x03, &mut DestroyQueueArgs::default()), Ok(0));
}

#[test]
fn enabling_the_runtime_waits_until_the_debugger_lets_it_go_on() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    let runtime = 1 << 47;
    client.attach(runtime).unwrap();
    for enable in [true, false] {
        std::thread::scope(|scope| {
            let call = scope.spawn(|| client.runtime(enable));
            let event = loop {
                match client.event_of_debugger(0) {
                    Err(Errno::AGAIN) => std::thread::yield_now(),
                    event => break event,
                }
            };
            assert_eq!(event, Ok((runtime, 0, 0)));
            assert!(!call.is_finished());
            let info = client.exception_info(ExceptionCode::PROCESS_RUNTIME, 0).unwrap();
            assert_eq!(info.runtime_state.0, u32::from(enable));
            assert_eq!(client.send(runtime, 0, 0), Ok(0));
            assert_eq!(call.join().unwrap(), Ok(0));
        });
    }
}

#[test]
fn exceptions_go_to_the_debugger_that_wants_them_and_else_to_the_runtime() {
    let packet = 1 << 19; // EC_QUEUE_PACKET_UNSUPPORTED
    for wanted in [packet, 0] {
        let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
        client.runtime(true).unwrap();
        let mut rig = Rig::on(client);
        let event = rig.client.event(EventType::SIGNAL).event_id;
        let payload = rig.signals.address() + 2048;
        rig.save.u64(24).store(payload, Release);
        rig.save.u32(32).store(event.0, Release);
        rig.client.attach(wanted).unwrap();
        rig.submit(0x0004, &[]);
        rig.settle();
        let told = rig.signals.u64(2048).load(Acquire);
        if wanted == 0 {
            assert_eq!(told, packet);
            continue;
        }
        assert_eq!(told, 0);
        let (raised, ..) = rig.client.event_of_debugger(0).unwrap();
        assert_eq!(raised, packet | NEW);
        // The debugger hands it on.
        assert_eq!(rig.client.send(packet, rig.client.gpus[0], 0), Ok(0));
        assert_eq!(rig.signals.u64(2048).load(Acquire), packet);
        let mut events = [kfd::abi::EventData { event_id: event, ..Default::default() }];
        assert_eq!(rig.client.wait(&mut events, false, 0), Ok(WaitResult::COMPLETE));
    }
}

#[test]
fn a_memory_violation_that_the_debugger_takes_evicts_nothing_until_it_is_sent_on() {
    let violation = 1 << 32;
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    let mut rig = Rig::on(client);
    let event = rig.client.event(EventType::MEMORY).event_id;
    rig.client.attach(violation).unwrap();
    rig.submit(
        0x0002 | 3 << 16,
        &[(4, 1 << 16 | 1), (8, 1), (12, 1), (16, 1 << 32 | 1), (32, 0x5000_1240)],
    );
    rig.settle();
    let poll = || {
        let mut events = [kfd::abi::EventData { event_id: event, ..Default::default() }];
        (rig.client.wait(&mut events, false, 0).unwrap(), events[0].memory_exception_data().va)
    };
    assert_eq!(poll().0, WaitResult::TIMEOUT);
    let gpu = rig.client.gpus[0];
    assert_eq!(rig.client.event_of_debugger(0), Ok((violation, gpu, 0)));
    assert_eq!(rig.client.send(violation, 1, 0), Err(Errno::NODEV));
    assert_eq!(rig.client.send(violation, gpu, 0), Ok(0));
    assert_eq!(poll(), (WaitResult::COMPLETE, 0x5000_1000));
}

#[test]
fn what_the_workaround_of_gfx11_needs_excludes_masks_and_global_wave_sync() {
    let mask = [0x3_u32];
    let cu_mask = SetCuMaskArgs {
        num_cu_mask: 32,
        cu_mask_ptr: mask.as_ptr().addr() as u64,
        ..Default::default()
    };
    for (preset, affected) in [(Preset::gfx1100(), true), (Preset::gfx90a(), false)] {
        let client = Client::stepped(preset, Profile::V6_12);
        client.runtime(true).unwrap();
        let (args, _) = client.queue_args(4096);
        client.call(0x02, &mut { args }).unwrap();
        let gws = AllocQueueGwsArgs { num_gws: 1, ..Default::default() };
        client.call(0x1e, &mut { gws }).unwrap();
        let busy = if affected { Err(Errno::BUSY) } else { Ok(()) };
        assert_eq!(client.attach(0).map(drop), busy);
        if affected {
            let release = AllocQueueGwsArgs::default();
            client.call(0x1e, &mut { release }).unwrap();
            client.attach(0).unwrap();
            assert_eq!(client.call(0x1e, &mut { gws }), Err(Errno::BUSY));
        }
        assert_eq!(client.call(0x1a, &mut { cu_mask }).map(drop), busy);
        client.plain(DbgTrapOp::DISABLE).unwrap();
        assert_eq!(client.call(0x1a, &mut { cu_mask }), Ok(0));
        let info = client.attach(0).unwrap();
        let state = if affected { RuntimeState::ENABLED_BUSY } else { RuntimeState::ENABLED };
        assert_eq!(info.runtime_state, state);
        let flags = client.plain(DbgTrapOp::SET_FLAGS).map(drop);
        assert_eq!(flags, if affected { Err(Errno::PERM) } else { Ok(()) });
        client.plain(DbgTrapOp::DISABLE).unwrap();
        // Detached, the runtime is as enabled as before.
        assert_eq!(client.runtime(true), Err(Errno::BUSY));
    }
}

#[test]
fn what_the_model_cannot_do_is_refused_counted_and_told() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    client.runtime(true).unwrap();
    client.attach(0).unwrap();
    let launch = |override_mode, asked| {
        let mut args = debug(DbgTrapOp::SET_WAVE_LAUNCH_OVERRIDE);
        args.set_launch_override(DbgTrapSetWaveLaunchOverrideArgs {
            override_mode,
            support_request_mask: asked,
            ..Default::default()
        });
        client.trap(&mut args)
    };
    let none = DbgTrapMask::default();
    assert_eq!(launch(DbgTrapOverrideMode(2), none), Err(Errno::PERM));
    assert_eq!(launch(DbgTrapOverrideMode::OR, none), Ok(0));
    let mode = |launch_mode| {
        let mut args = debug(DbgTrapOp::SET_WAVE_LAUNCH_MODE);
        args.set_launch_mode(DbgTrapSetWaveLaunchModeArgs { launch_mode, pad: 0 });
        client.trap(&mut args)
    };
    assert_eq!(mode(DbgTrapWaveLaunchMode(2)), Err(Errno::INVAL));
    assert_eq!(mode(DbgTrapWaveLaunchMode::NORMAL), Ok(0));
    let watch = |gpu| {
        let mut args = debug(DbgTrapOp::SET_NODE_ADDRESS_WATCH);
        let watch = DbgTrapSetNodeAddressWatchArgs { gpu_id: GpuId(gpu), ..Default::default() };
        args.set_set_node_address_watch(watch);
        client.trap(&mut args)
    };
    assert_eq!(watch(1), Err(Errno::NODEV));
    assert_eq!(client.model.unmodelled(), 0, "so far the kernel answers the same");
    assert_eq!(launch(DbgTrapOverrideMode::OR, DbgTrapMask::FP_OVERFLOW), Err(Errno::ACCESS));
    assert_eq!(mode(DbgTrapWaveLaunchMode::HALT), Err(Errno::INVAL));
    assert_eq!(watch(client.gpus[0]), Err(Errno::NOMEM));
    assert_eq!(client.model.unmodelled(), 3);
    assert_eq!(client.model.diagnostics().len(), 3);
    let flags = |flags| {
        let mut args = debug(DbgTrapOp::SET_FLAGS);
        args.set_set_flags(DbgTrapSetFlagsArgs { flags, pad: 0 });
        client.trap(&mut args).map(|_| args.set_flags().flags)
    };
    let (memory, alu) = (DbgTrapFlags::SINGLE_MEM_OP, DbgTrapFlags::SINGLE_ALU_OP);
    assert_eq!(flags(memory), Ok(DbgTrapFlags::default()), "gives those before");
    assert_eq!(flags(alu), Err(Errno::ACCESS), "gfx12 only");
    assert_eq!(flags(DbgTrapFlags::default()), Ok(memory));
}
