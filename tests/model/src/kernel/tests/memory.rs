//! Memory: allocation, mapping to the GPU and the CPU, sharing.

use std::sync::atomic::Ordering::{Acquire, Release};

use kfd::abi::{
    AllocFlags, ExportDmabufArgs, GetAvailableMemoryArgs, GetDmabufInfoArgs, ImportDmabufArgs,
    MapMemoryToGpuArgs, MmapType,
};
use kfd::sys::{Backing, Errno, FileId, Kernel};
use kfd::{GpuId, MemHandle};

use super::Client;
use super::client::GTT;
use crate::kernel::Model;
use crate::{Preset, Profile, Target};

const VA: u64 = 0x7000_0000_0000;

fn client() -> Client {
    Client::stepped(Preset::gfx1100(), Profile::V6_12)
}

#[test]
fn refused_allocations_have_the_errno_of_linux() {
    let client = client();
    let alloc = |flags, va, size| client.alloc(0, flags, va, size).map(|_| ()).unwrap_err();
    assert_eq!(alloc(GTT, VA, 0), Errno::INVAL);
    assert_eq!(alloc(AllocFlags::WRITABLE, VA, 4096), Errno::INVAL);
    assert_eq!(alloc(AllocFlags::DOORBELL, VA, 4096), Errno::INVAL);
    assert_eq!(alloc(AllocFlags::MMIO_REMAP, VA, 8192), Errno::INVAL);
    assert_eq!(alloc(AllocFlags::USERPTR, VA, 4096), Errno::INVAL);
    assert_eq!(alloc(AllocFlags::VRAM, VA, 1 << 40), Errno::NOMEM);
    assert_eq!(alloc(GTT, VA, 1 << 40), Errno::NOMEM);
    assert_eq!(alloc(GTT | AllocFlags::AQL_QUEUE_MEM, VA, 1), Errno::INVAL);
    let mut user = kfd::abi::AllocMemoryOfGpuArgs {
        size: 4096,
        mmap_offset: 0x1000,
        gpu_id: client.gpu(),
        flags: AllocFlags::USERPTR,
        ..Default::default()
    };
    assert_eq!(client.call(0x16, &mut user), Err(Errno::FAULT));

    let small = Client::stepped(Preset::gfx1100().small_bar(), Profile::V6_12);
    let public = AllocFlags::VRAM | AllocFlags::PUBLIC;
    assert_eq!(small.alloc(0, public, VA, 4096).unwrap_err(), Errno::INVAL);
    let bare = Client::without_vm(&Model::builder().build());
    assert_eq!(bare.alloc(0, GTT, VA, 4096).unwrap_err(), Errno::NODEV);
}

#[test]
fn handles_count_from_zero_per_gpu_and_name_their_gpu() {
    let client = client();
    let gpu = u64::from(client.gpus[0]) << 32;
    assert_eq!(client.alloc(0, GTT, VA, 1).unwrap().handle.0, gpu);
    assert_eq!(client.alloc(0, GTT, VA, 1).unwrap().handle.0, gpu | 1);
    client.free(gpu).unwrap();
    assert_eq!(client.alloc(0, GTT, VA, 1).unwrap().handle.0, gpu);
    assert_eq!(client.free(gpu | 9), Err(Errno::INVAL));
    assert_eq!(client.free(1 << 32), Err(Errno::INVAL));
}

#[test]
fn conflicts_of_addresses_are_found_at_map_not_at_alloc() {
    let client = client();
    let gpus = [client.gpus[0]];
    let first = client.alloc(0, GTT, VA, 8192).unwrap().handle.0;
    let overlap = client.alloc(0, GTT, VA + 4096, 4096).unwrap().handle.0;
    let odd = client.alloc(0, GTT, VA + 100, 4096).unwrap().handle.0;
    let null = client.alloc(0, AllocFlags::VRAM, 0, 4096).unwrap().handle.0;
    let high = client.alloc(0, GTT, (1 << 48) - 4096, 8192).unwrap().handle.0;
    assert_eq!(client.map_to(first, &gpus), Ok(0));
    assert_eq!(client.map_to(first, &gpus), Ok(0)); // again is fine
    for handle in [overlap, odd, null, high] {
        assert_eq!(client.map_to(handle, &gpus), Err(Errno::INVAL));
    }
    assert_eq!(client.free(first), Err(Errno::BUSY));
    assert_eq!(client.unmap_from(first, &gpus), Ok(0));
    assert_eq!(client.unmap_from(first, &gpus), Err(Errno::INVAL));
    assert_eq!(client.map_to(overlap, &gpus), Ok(0));
    assert_eq!(client.free(first), Ok(0));
}

#[test]
fn map_checks_in_the_order_of_linux() {
    let client = client();
    let gpus = [client.gpus[0], 1];
    let handle = client.alloc(0, GTT, VA, 4096).unwrap().handle;
    let args = MapMemoryToGpuArgs {
        handle,
        device_ids_array_ptr: gpus.as_ptr().addr() as u64,
        n_devices: 2,
        n_success: 0,
    };
    assert_eq!(
        client.call(0x18, &mut MapMemoryToGpuArgs { n_devices: 0, ..args }),
        Err(Errno::INVAL)
    );
    assert_eq!(
        client.call(0x18, &mut MapMemoryToGpuArgs { n_success: 3, ..args }),
        Err(Errno::INVAL)
    );
    let null = MapMemoryToGpuArgs { device_ids_array_ptr: 0, ..args };
    assert_eq!(client.call(0x18, &mut { null }), Err(Errno::FAULT));
    let unknown = MapMemoryToGpuArgs { handle: MemHandle(handle.0 + 5), ..args };
    assert_eq!(client.call(0x18, &mut { unknown }), Err(Errno::NOMEM));
    let foreign = MapMemoryToGpuArgs { handle: MemHandle(5), ..args };
    assert_eq!(client.call(0x18, &mut { foreign }), Err(Errno::INVAL));
    // What succeeded before the failure is told.
    let mut partial = args;
    assert_eq!(client.call(0x18, &mut partial), Err(Errno::INVAL));
    assert_eq!(partial.n_success, 1);
}

#[test]
fn another_gpu_reaches_host_memory_but_not_video_memory() {
    let model = Model::builder().gpu(Preset::gfx1100()).gpu(Preset::gfx90a()).build();
    let client = Client::new(&model);
    let both = [client.gpus[0], client.gpus[1]];
    let gtt = client.alloc(0, GTT, VA, 4096).unwrap().handle.0;
    assert_eq!(client.map_to(gtt, &both), Ok(0));
    let vram = client.alloc(0, AllocFlags::VRAM, VA + 4096, 4096).unwrap().handle.0;
    assert_eq!(client.map_to(vram, &both), Err(Errno::INVAL));
}

#[test]
fn cpu_and_gpu_see_one_memory_and_a_new_one_is_zero() {
    let client = client();
    let page = client.page(AllocFlags::VRAM | AllocFlags::PUBLIC | AllocFlags::WRITABLE, 8192);
    page.u64(4096).store(42, Release);
    let process = client.model.lock();
    let space = &process.processes[&std::process::id()].devices[0].device.space;
    assert_eq!(space.load_u64(page.address() + 4096), Ok(42));
    assert_eq!(space.load_u64(page.address()), Ok(0));
    space.store_u64(page.address(), 7).unwrap();
    assert_eq!(page.u64(0).load(Acquire), 7);
    assert!(space.load_u64(page.address() + 8192).is_err());
}

#[test]
fn a_mapping_of_a_render_node_is_of_its_own_buffers_and_no_longer_than_they_are() {
    let client = client();
    let map = |file, args: kfd::abi::AllocMemoryOfGpuArgs, bytes| {
        client.map(None, bytes, Backing::File { file, offset: args.mmap_offset })
    };
    let vram = client.alloc(0, AllocFlags::VRAM, VA, 4096).unwrap();
    // Without PUBLIC too: AMD's runtime maps the EOP buffer, for debuggers.
    assert!(map(client.render[0], vram, 4096).is_ok());
    let gtt = client.alloc(0, GTT, VA, 4096).unwrap();
    assert_eq!(map(client.render[0], gtt, 8192), Err(Errno::INVAL));
    assert_eq!(map(client.kfd, gtt, 4096), Err(Errno::NODEV));
    assert_eq!(map(FileId(99), gtt, 4096), Err(Errno::BADF));
    let other = client.model.open("/dev/dri/renderD128", kfd::sys::OpenFlags::READ_WRITE).unwrap();
    assert_eq!(map(other, gtt, 4096), Err(Errno::ACCESS));
    assert!(map(client.render[0], gtt, 4096).is_ok());
}

#[test]
fn kfd_offsets_give_doorbells_and_registers_of_exact_size() {
    let client = client();
    let map = |kind: MmapType, gpu, bytes| {
        let offset = kind.offset(GpuId(gpu));
        client.map(None, bytes, Backing::File { file: client.kfd, offset }).map(|_| ())
    };
    let gpu = client.gpus[0];
    assert_eq!(map(MmapType::DOORBELL, gpu, 0x2000), Ok(()));
    assert_eq!(map(MmapType::DOORBELL, gpu, 0x1000), Err(Errno::INVAL));
    assert_eq!(map(MmapType::DOORBELL, 1, 0x2000), Err(Errno::NODEV));
    assert_eq!(map(MmapType::MMIO, gpu, 0x1000), Ok(()));
    assert_eq!(map(MmapType::MMIO, 0, 0x1000), Err(Errno::NODEV));
    assert_eq!(map(MmapType::EVENTS, 0, 0x8000), Err(Errno::INVAL)); // no page yet
    client.event(kfd::abi::EventType::SIGNAL);
    assert_eq!(map(MmapType::EVENTS, 0, 0x8000), Ok(()));
    assert_eq!(map(MmapType::EVENTS, 0, 0x1000), Ok(()));
    assert_eq!(map(MmapType::EVENTS, 0, 0x9000), Err(Errno::INVAL));
}

#[test]
fn available_memory_falls_by_whole_granules() {
    let client = client();
    let available = || {
        let mut args = GetAvailableMemoryArgs { gpu_id: client.gpu(), ..Default::default() };
        client.call(0x23, &mut args).unwrap();
        args.available
    };
    let before = available();
    assert_eq!(before % (2 << 20), 0);
    let handle = client.alloc(0, AllocFlags::VRAM, VA, 1).unwrap().handle.0;
    assert_eq!(before - available(), 2 << 20);
    client.free(handle).unwrap();
    assert_eq!(available(), before);
}

/// Linux since 6.10: what is asked for as video memory is system memory.
#[test]
fn an_apu_serves_video_memory_from_system_memory() {
    let preset = Preset::of(Target::Gfx1151);
    let client = Client::stepped(preset.clone(), Profile::V6_12);
    let available = || {
        let mut args = GetAvailableMemoryArgs { gpu_id: client.gpu(), ..Default::default() };
        client.call(0x23, &mut args).unwrap();
        args.available
    };
    let before = available();
    assert!(before > 15 << 30 && before < 16 << 30, "half of system memory, less page tables");
    // The CPU reaches it, asked for or not.
    let page = client.page(AllocFlags::VRAM | AllocFlags::WRITABLE, 4096);
    page.u64(0).store(7, Release);
    assert_eq!(before - available(), 4096);
    let mut export = ExportDmabufArgs { handle: MemHandle(page.handle), ..Default::default() };
    assert_eq!(client.call(0x24, &mut export), Ok(0));
    let mut info = GetDmabufInfoArgs { dmabuf_fd: export.dmabuf_fd, ..Default::default() };
    assert_eq!(client.call(0x1c, &mut info), Ok(0));
    assert_eq!(info.flags, AllocFlags::GTT);
    let too_much = client.alloc(0, AllocFlags::VRAM, VA, 17 << 30).unwrap_err();
    assert_eq!(too_much, Errno::NOMEM);
}

#[test]
fn before_linux_6_10_an_apu_has_what_its_firmware_set_apart() {
    let client = Client::stepped(Preset::of(Target::Gfx1103), Profile::V6_1);
    assert!(client.alloc(0, AllocFlags::VRAM, VA, 256 << 20).is_ok());
    assert_eq!(client.alloc(0, AllocFlags::VRAM, VA, 1 << 30).unwrap_err(), Errno::NOMEM);
}

#[test]
fn a_dma_buf_shares_memory_under_a_handle_of_its_own() {
    let client = client();
    let page = client.page(GTT, 4096);
    let mut export = ExportDmabufArgs { handle: MemHandle(page.handle), ..Default::default() };
    assert_eq!(client.call(0x24, &mut export), Ok(0));
    let dmabuf_fd = export.dmabuf_fd;
    let mut info = GetDmabufInfoArgs { dmabuf_fd, ..Default::default() };
    assert_eq!(client.call(0x1c, &mut info), Ok(0));
    assert_eq!((info.size, info.flags), (4096, AllocFlags::GTT));
    let mut import =
        ImportDmabufArgs { va_addr: VA, gpu_id: client.gpu(), dmabuf_fd, ..Default::default() };
    assert_eq!(client.call(0x1d, &mut import), Ok(0));
    assert_ne!(import.handle.0, page.handle);
    client.map_to(import.handle.0, &client.gpus).unwrap();
    page.u64(8).store(5, Release);
    let state = client.model.lock();
    let space = &state.processes[&std::process::id()].devices[0].device.space;
    assert_eq!(space.load_u64(VA + 8), Ok(5));
    drop(state);
    let mut wrong = ImportDmabufArgs { dmabuf_fd: 3, ..import };
    assert_eq!(client.call(0x1d, &mut wrong), Err(Errno::INVAL));
    let old = Client::stepped(Preset::gfx1100(), Profile::V6_1);
    assert_eq!(old.call(0x24, &mut export), Err(Errno::NOTTY));
}

#[test]
fn unmapping_user_memory_takes_it_from_the_gpu_and_stops_its_queues() {
    let client = client();
    let at = client.map(None, 4096, Backing::Anonymous).unwrap();
    let va = at.as_ptr().addr() as u64;
    let mut args = kfd::abi::AllocMemoryOfGpuArgs {
        va_addr: va,
        size: 4096,
        mmap_offset: va,
        gpu_id: client.gpu(),
        flags: AllocFlags::USERPTR | AllocFlags::WRITABLE,
        ..Default::default()
    };
    assert_eq!(client.call(0x16, &mut args), Ok(0));
    client.map_to(args.handle.0, &client.gpus).unwrap();
    let space = {
        let state = client.model.lock();
        std::sync::Arc::clone(&state.processes[&std::process::id()].devices[0].device.space)
    };
    assert_eq!(space.load_u64(va), Ok(0));
    assert_eq!(client.unmap(at, 4096), Ok(()));
    assert!(space.load_u64(va).is_err());
    assert!(client.model.diagnostics()[0].text.contains("was unmapped by the process"));
}
