//! The entry point, and calls without a topic of their own.

use std::sync::Arc;

use kfd::GpuId;
use kfd::abi::request::{self, Direction, encode};
use kfd::abi::{
    AcquireVmArgs, GetClockCountersArgs, GetProcessAperturesNewArgs, ProcessDeviceApertures,
    RuntimeEnableArgs, RuntimeEnableMode, SetMemoryPolicyArgs, SetScratchBackingVaArgs,
    SetTrapHandlerArgs,
};
use kfd::sys::{Errno, Kernel, OpenFlags};
use zerocopy::FromZeros;

use super::Client;
use crate::kernel::Model;
use crate::{Call, Preset, Profile};

fn client(profile: Profile) -> Client {
    Client::without_vm(&Model::builder().gpu(Preset::gfx1100()).profile(profile).build())
}

#[test]
fn unknown_numbers_are_enotty_and_counted() {
    for (profile, end) in [(Profile::V6_1, 0x24), (Profile::V6_12, 0x27)] {
        let client = client(profile);
        for number in (0..=0xff_u8).filter(|n| *n == 0 || u32::from(*n) >= end) {
            for bytes in [0, 4, 64, 400] {
                for direction in [Direction::Read, Direction::Write, Direction::ReadWrite] {
                    let mut arg = vec![0; bytes];
                    let request = encode(direction, number, bytes);
                    assert_eq!(client.raw(request, &mut arg), Err(Errno::NOTTY), "{number:#x}");
                }
            }
            assert_eq!(client.model.ioctl_count(number), 12);
        }
    }
}

#[test]
fn the_number_alone_selects_whatever_type_direction_and_size_say() {
    let client = client(Profile::V6_12);
    // A tail of a larger argument comes back zeroed, what lies past it is not touched.
    let mut arg = [0xaa; 64];
    assert_eq!(client.raw(encode(Direction::Write, 1, 32), &mut arg), Ok(0));
    assert_eq!(arg[..8], [1, 0, 0, 0, 17, 0, 0, 0]);
    assert!(arg[8..32].iter().all(|byte| *byte == 0));
    assert!(arg[32..].iter().all(|byte| *byte == 0xaa));
    // A shorter one gets only its own bytes; TCGETS is GET_VERSION here.
    let mut short = [0; 4];
    assert_eq!(client.raw(encode(Direction::Read, 1, 4), &mut short), Ok(0));
    assert_eq!(short, [1, 0, 0, 0]);
    assert_eq!(client.raw(0x5401, &mut []), Ok(0));
    // An argument that is not there.
    assert_eq!(client.raw(request::GET_VERSION, &mut []), Err(Errno::FAULT));
}

#[test]
fn pure_writes_are_never_copied_back_and_reads_are_even_on_failure() {
    let client = client(Profile::V6_12);
    // SET_EVENT of an unknown event.
    let mut arg = [0x55; 8];
    assert_eq!(client.raw(request::SET_EVENT, &mut arg), Err(Errno::INVAL));
    assert_eq!(arg, [0x55; 8]);
    // WAIT_EVENTS on an unknown event says so in its result.
    let mut event = kfd::abi::EventData::new_zeroed();
    event.event_id.0 = 77;
    let mut args = kfd::abi::WaitEventsArgs {
        events_ptr: (&raw mut event).addr() as u64,
        num_events: 1,
        ..Default::default()
    };
    assert_eq!(client.call(0x0c, &mut args), Err(Errno::INVAL));
    assert_eq!(args.wait_result, kfd::abi::WaitResult::FAIL);
}

#[test]
fn answers_without_an_address_space_are_those_of_linux() {
    let client = client(Profile::V6_12);
    let gpu_id = client.gpu();
    let policy = SetMemoryPolicyArgs { gpu_id, ..Default::default() };
    assert_eq!(client.call(0x04, &mut { policy }), Err(Errno::SRCH));
    let scratch = SetScratchBackingVaArgs { gpu_id, ..Default::default() };
    assert_eq!(client.call(0x11, &mut { scratch }), Err(Errno::NODEV));
    let trap = SetTrapHandlerArgs { gpu_id, ..Default::default() };
    assert_eq!(client.call(0x13, &mut { trap }), Err(Errno::SRCH));
    // No GPU has id 0 or 1.
    for id in [0, 1] {
        let trap = SetTrapHandlerArgs { gpu_id: GpuId(id), ..Default::default() };
        assert_eq!(client.call(0x13, &mut { trap }), Err(Errno::INVAL));
        // The clocks do not mind.
        let mut clocks = GetClockCountersArgs { gpu_id: GpuId(id), ..Default::default() };
        assert_eq!(client.call(0x05, &mut clocks), Ok(0));
        assert_eq!((clocks.gpu_clock_counter, clocks.system_clock_freq), (0, 1_000_000_000));
    }
    for number in 0x0d..=0x10 {
        let ioctl = request::find(number).unwrap();
        assert_eq!(client.raw(ioctl.request(), &mut vec![0; ioctl.bytes]), Err(Errno::PERM));
    }
    let mut xnack = kfd::abi::SetXnackModeArgs { xnack_enabled: -1 };
    assert_eq!(client.call(0x21, &mut xnack), Err(Errno::PERM));
}

#[test]
fn svm_must_bring_all_attributes_that_it_announces() {
    let client = client(Profile::V6_12);
    let mut arg = [0; 24];
    arg[20] = 1;
    assert_eq!(client.raw(request::SVM, &mut arg), Err(Errno::INVAL));
    let mut arg = [0; 32];
    arg[20] = 1;
    assert_eq!(client.raw(request::svm(1).unwrap(), &mut arg), Err(Errno::PERM));
}

#[test]
fn acquire_vm_takes_the_right_file_once() {
    let presets = Model::builder().gpu(Preset::gfx1100()).gpu(Preset::gfx90a());
    let client = Client::without_vm(&presets.build());
    let call = |fd: i32, gpu: u32| {
        let drm_fd = u32::from_ne_bytes(fd.to_ne_bytes());
        client.call(0x15, &mut AcquireVmArgs { drm_fd, gpu_id: GpuId(gpu) })
    };
    let (one, two) = (client.render[0].0, client.render[1].0);
    assert_eq!(call(-1, client.gpus[0]), Err(Errno::INVAL));
    assert_eq!(call(client.kfd.0, client.gpus[0]), Err(Errno::INVAL));
    assert_eq!(call(two, client.gpus[0]), Err(Errno::INVAL));
    assert_eq!(call(one, 1), Err(Errno::INVAL));
    assert_eq!(call(one, client.gpus[0]), Ok(0));
    assert_eq!(call(one, client.gpus[0]), Ok(0));
    let again = client.model.open("/dev/dri/renderD128", OpenFlags::READ_WRITE).unwrap();
    assert_eq!(call(again.0, client.gpus[0]), Err(Errno::BUSY));
    assert_eq!(call(two, client.gpus[1]), Ok(0));
}

#[test]
fn apertures_are_counted_first_and_limited_by_the_nodes() {
    for (profile, base) in [(Profile::V6_1, 0x4000), (Profile::V6_12, 0x1_0000)] {
        let client = client(profile);
        let mut all = [ProcessDeviceApertures::default(); 3];
        let mut args = GetProcessAperturesNewArgs::default();
        assert_eq!(client.call(0x14, &mut args), Ok(0));
        assert_eq!(args.num_of_nodes, 1);
        args.num_of_nodes = 3; // a CPU and a GPU are two
        assert_eq!(client.call(0x14, &mut args), Err(Errno::INVAL));
        args.num_of_nodes = 2;
        assert_eq!(client.call(0x14, &mut args), Err(Errno::FAULT));
        args.num_of_nodes = 2;
        args.kfd_process_device_apertures_ptr = all.as_mut_ptr().addr() as u64;
        assert_eq!(client.call(0x14, &mut args), Ok(0));
        assert_eq!(args.num_of_nodes, 1);
        assert_eq!((all[0].gpu_id, all[1].gpu_id), (client.gpu(), GpuId(0)));
        assert_eq!((all[0].gpuvm_base, all[0].gpuvm_limit), (base, (1 << 47) - 1));
        assert_eq!(all[0].lds_base, 1 << 48);
    }
}

#[test]
fn runtime_enable_is_once_and_before_queues() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    let call = |enable: bool| {
        let mode_mask = RuntimeEnableMode::from_bits_retain(enable.into());
        client.call(0x25, &mut RuntimeEnableArgs { mode_mask, ..Default::default() })
    };
    assert_eq!(
        [true, true, false, true, false].map(call),
        [Ok(0), Err(Errno::BUSY), Ok(0), Ok(0), Ok(0)]
    );
    let (mut args, _) = client.queue_args(4096);
    assert_eq!(client.call(0x02, &mut args), Ok(0));
    assert_eq!(call(true), Err(Errno::EXIST));
}

#[test]
fn ordered_errors_come_before_any_effect() {
    let client = client(Profile::V6_12);
    client.model.faults().fail(Call::AnyIoctl, 0, 2, Errno::INTR);
    let mut args = kfd::abi::GetVersionArgs::default();
    assert_eq!(client.call(0x01, &mut args), Err(Errno::INTR));
    assert_eq!(client.call(0x01, &mut args), Err(Errno::INTR));
    assert_eq!(client.call(0x01, &mut args), Ok(0));
    client.model.faults().garble(1, |answer| answer.fill(0xff));
    assert_eq!(client.call(0x01, &mut args), Ok(0));
    assert_eq!(args.major_version, u32::MAX);
}

#[test]
fn closing_every_file_keeps_the_process_state() {
    let client = client(Profile::V6_12);
    let id = client.event(kfd::abi::EventType::SIGNAL).event_id;
    client.model.close(client.kfd);
    assert_eq!(client.call(0x01, &mut kfd::abi::GetVersionArgs::default()), Err(Errno::BADF));
    let kfd = client.model.open("/dev/kfd", OpenFlags::READ_WRITE).unwrap();
    let reopened = Client { kfd, render: vec![], gpus: vec![], model: Arc::clone(&client.model) };
    assert_eq!(reopened.event(kfd::abi::EventType::SIGNAL).event_id.0, id.0 + 1);
    // Neither reads nor writes go through the file.
    assert_eq!(reopened.model.read(kfd, &mut [0]), Err(Errno::INVAL));
    assert_eq!(reopened.model.write(kfd, &[0]), Err(Errno::INVAL));
}

#[test]
fn files_leave_the_process_and_come_back_as_themselves() {
    let client = client(Profile::V6_12);
    let fd = client.model.export_fd(client.kfd).unwrap();
    let kfd = client.model.import_fd(fd).unwrap();
    assert_ne!(kfd, client.kfd);
    let back = Client { kfd, render: vec![], gpus: vec![], model: Arc::clone(&client.model) };
    assert_eq!(back.call(0x01, &mut kfd::abi::GetVersionArgs::default()), Ok(0));
    let foreign = std::fs::File::open("/proc/self/status").unwrap();
    assert_eq!(client.model.import_fd(foreign.into()), Err(Errno::BADF));
}
