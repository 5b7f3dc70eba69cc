//! Creation and destruction of queues.

use kfd::GpuId;
use kfd::abi::{
    AllocQueueGwsArgs, CreateQueueArgs, DestroyQueueArgs, GetQueueWaveStateArgs, MmapType,
    QueueType, SetCuMaskArgs, UpdateQueueArgs,
};
use kfd::sys::Errno;

use super::Client;
use super::client::GTT;
use crate::{Preset, Profile};

fn client(profile: Profile) -> Client {
    Client::stepped(Preset::gfx1100(), profile)
}

fn create(client: &Client, args: &CreateQueueArgs) -> Result<CreateQueueArgs, Errno> {
    let mut args = *args;
    client.call(0x02, &mut args).map(|_| args)
}

#[test]
fn the_first_queue_has_id_and_doorbell_zero_of_its_gpu() {
    let client = client(Profile::V6_12);
    let (args, _) = client.queue_args(4096);
    let made = create(&client, &args).unwrap();
    assert_eq!(made.queue_id.0, 0);
    assert_eq!(made.doorbell_offset, MmapType::DOORBELL.offset(client.gpu()));
}

#[test]
fn arguments_are_checked_in_the_order_of_linux() {
    let client = client(Profile::V6_12);
    let (good, _) = client.queue_args(4096);
    let kernel = 0xffff_8000_0000_0000;
    let errno = |args| create(&client, &args).map(|_| ()).unwrap_err();
    // Each case breaks one thing and everything that is checked after it.
    let last = CreateQueueArgs { gpu_id: GpuId(1), ..good };
    assert_eq!(errno(last), Errno::INVAL);
    let kind = CreateQueueArgs { queue_type: QueueType(7), ..last };
    assert_eq!(errno(kind).raw_os_error(), 524);
    let pointer = CreateQueueArgs { read_pointer_address: kernel, ..kind };
    assert_eq!(errno(pointer), Errno::FAULT);
    let ring = CreateQueueArgs { ring_size: 4095, ..pointer };
    assert_eq!(errno(ring), Errno::INVAL);
    let base = CreateQueueArgs { ring_base_address: kernel, ..ring };
    assert_eq!(errno(base), Errno::FAULT);
    let priority = CreateQueueArgs { queue_priority: 16, ..base };
    assert_eq!(errno(priority), Errno::INVAL);
    let bare = Client::without_vm(&crate::Model::builder().build());
    assert_eq!(
        create(&bare, &CreateQueueArgs { gpu_id: bare.gpu(), ..good }).unwrap_err(),
        Errno::SRCH
    );
}

#[test]
fn buffers_must_be_mapped_alone_and_in_full() {
    let client = client(Profile::V6_12);
    let (good, [_, pointers, ..]) = client.queue_args(4096);
    let large = client.page(GTT, 8192);
    let bad = [
        ("ring twice as large", CreateQueueArgs { ring_size: 8192, ..good }),
        (
            "ring inside a larger buffer",
            CreateQueueArgs { ring_base_address: large.address(), ..good },
        ),
        ("no ring", CreateQueueArgs { ring_base_address: 0, ..good }),
        (
            "pointer in a larger buffer",
            CreateQueueArgs { write_pointer_address: large.address(), ..good },
        ),
        ("pointer not mapped", CreateQueueArgs { read_pointer_address: 0x1000, ..good }),
        ("control stack", CreateQueueArgs { ctl_stack_size: good.ctl_stack_size + 4096, ..good }),
        (
            "save area too small",
            CreateQueueArgs { ctx_save_restore_size: good.ctx_save_restore_size - 1, ..good },
        ),
        (
            "save area elsewhere",
            CreateQueueArgs { ctx_save_restore_address: large.address(), ..good },
        ),
        ("EOP too small", CreateQueueArgs { eop_buffer_size: 2048, ..good }),
    ];
    for (what, args) in bad {
        assert_eq!(create(&client, &args).unwrap_err(), Errno::INVAL, "{what}");
    }
    create(&client, &good).unwrap();
    // Now they are the queue's.
    assert_eq!(client.unmap_from(pointers.handle, &client.gpus), Err(Errno::BUSY));
    client.call(0x03, &mut DestroyQueueArgs::default()).unwrap();
    assert_eq!(client.unmap_from(pointers.handle, &client.gpus), Ok(0));
}

#[test]
fn larger_sizes_are_refused_by_6_12_0_only() {
    for (profile, expected) in [
        (Profile::V6_12_0, Err(Errno::INVAL)),
        (Profile::V6_12, Err(Errno::INVAL)), // the mapping is not as large as announced
        (Profile::V6_1, Ok(())),
    ] {
        let client = client(profile);
        let (good, _) = client.queue_args(4096);
        let size = good.ctx_save_restore_size + 4096;
        let args = CreateQueueArgs { ctx_save_restore_size: size, ..good };
        assert_eq!(create(&client, &args).map(|_| ()), expected, "{profile:?}");
        let eop = client.page(GTT, 8192);
        let args =
            CreateQueueArgs { eop_buffer_address: eop.address(), eop_buffer_size: 8192, ..good };
        let ok = profile != Profile::V6_12_0;
        assert_eq!(create(&client, &args).is_ok(), ok, "{profile:?}");
    }
}

#[test]
fn the_128th_queue_of_a_gpu_is_enospc() {
    let client = client(Profile::V6_12);
    let (args, _) = client.queue_args(4096);
    for id in 0..127 {
        assert_eq!(create(&client, &args).unwrap().queue_id.0, id);
    }
    assert_eq!(create(&client, &args).unwrap_err(), Errno::NOSPC);
    client.call(0x03, &mut DestroyQueueArgs { queue_id: kfd::QueueId(5), pad: 0 }).unwrap();
    assert_eq!(create(&client, &args).unwrap().queue_id.0, 5);
}

#[test]
fn sdma_queues_are_a_fixed_pool_with_fixed_doorbells() {
    let client = client(Profile::V6_12);
    let (args, _) = client.queue_args(4096);
    let args = CreateQueueArgs { queue_type: QueueType::SDMA, ..args };
    for _ in 0..12 {
        let made = create(&client, &args).unwrap();
        assert!(made.doorbell_offset & 0x1fff >= 0x800);
    }
    assert_eq!(create(&client, &args).unwrap_err(), Errno::NOMEM);
    let xgmi = CreateQueueArgs { queue_type: QueueType::SDMA_XGMI, ..args };
    assert_eq!(create(&client, &xgmi).unwrap_err(), Errno::INVAL);
    let engine =
        CreateQueueArgs { queue_type: QueueType::SDMA_BY_ENG_ID, sdma_engine_id: 2, ..args };
    assert_eq!(create(&client, &engine).unwrap_err(), Errno::INVAL);
}

#[test]
fn calls_on_unknown_queues_have_the_errno_of_linux() {
    let client = client(Profile::V6_12);
    let queue_id = kfd::QueueId(3);
    let mask = [3_u32; 1];
    let cu_mask_ptr = mask.as_ptr().addr() as u64;
    let mut destroy = DestroyQueueArgs { queue_id, pad: 0 };
    assert_eq!(client.call(0x03, &mut destroy), Err(Errno::INVAL));
    let mut update = UpdateQueueArgs { queue_id, ..Default::default() };
    assert_eq!(client.call(0x07, &mut update), Err(Errno::FAULT));
    let mut cus = SetCuMaskArgs { queue_id, num_cu_mask: 32, cu_mask_ptr };
    assert_eq!(client.call(0x1a, &mut cus), Err(Errno::FAULT));
    cus.num_cu_mask = 31;
    assert_eq!(client.call(0x1a, &mut cus), Err(Errno::INVAL));
    let mut waves = GetQueueWaveStateArgs { queue_id, ..Default::default() };
    assert_eq!(client.call(0x1b, &mut waves), Err(Errno::FAULT));
    let mut gws = AllocQueueGwsArgs { queue_id, num_gws: 1, ..Default::default() };
    assert_eq!(client.call(0x1e, &mut gws), Err(Errno::INVAL));
}

#[test]
fn cu_masks_go_in_pairs_on_gfx11_only() {
    for (preset, odd) in [(Preset::gfx1100(), Err(Errno::INVAL)), (Preset::gfx90a(), Ok(0))] {
        let client = Client::stepped(preset, Profile::V6_12);
        let (args, _) = client.queue_args(4096);
        create(&client, &args).unwrap();
        for (word, expected) in [(0b11_u32, Ok(0)), (0b01, odd)] {
            let mask = [word];
            let mut args = SetCuMaskArgs {
                num_cu_mask: 32,
                cu_mask_ptr: mask.as_ptr().addr() as u64,
                ..Default::default()
            };
            assert_eq!(client.call(0x1a, &mut args), expected);
        }
    }
}

#[test]
fn wave_state_wants_an_inactive_queue() {
    let client = client(Profile::V6_12);
    let (args, [.., save]) = client.queue_args(4096);
    create(&client, &args).unwrap();
    let mut waves =
        GetQueueWaveStateArgs { ctl_stack_address: save.address(), ..Default::default() };
    assert_eq!(client.call(0x1b, &mut waves), Err(Errno::INVAL));
    client.call(0x07, &mut UpdateQueueArgs::default()).unwrap();
    assert_eq!(client.call(0x1b, &mut waves), Ok(0));
}

#[test]
fn sysfs_shows_the_queues_of_the_process() {
    use kfd::sys::Kernel;
    let client = client(Profile::V6_12);
    let (args, _) = client.queue_args(4096);
    create(&client, &args).unwrap();
    let base = format!("/sys/class/kfd/kfd/proc/{}", std::process::id());
    assert_eq!(client.model.read_dir(&format!("{base}/queues")).unwrap(), ["0"]);
    let path = format!("{base}/queues/0/size");
    let file = client.model.open(&path, kfd::sys::OpenFlags::READ).unwrap();
    let mut text = [0; 16];
    let count = client.model.read(file, &mut text).unwrap();
    assert_eq!(&text[..count], b"4096");
}
