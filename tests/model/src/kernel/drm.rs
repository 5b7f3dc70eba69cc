//! ioctls of a render node: what libdrm asks before it takes a device for an amdgpu.
//!
//! Source: Linux 6.12.117, drivers/gpu/drm/drm_ioctl.c and amd/amdgpu/amdgpu_kms.c
//! (docs/ABI.md §DRM).

use kfd::sys::Errno;
use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout};

use super::{Model, user};
use crate::gpu::GpuInfo;
use crate::profile::Profile;

/// `DRM_IOCTL_BASE`.
const DRM_TYPE: u32 = 0x64;

/// ioctl numbers.
mod number {
    pub(super) const VERSION: u32 = 0x00;
    pub(super) const GET_CAP: u32 = 0x0c;
    /// `DRM_COMMAND_BASE` and what follows are the driver's own.
    pub(super) const INFO: u32 = 0x40 + 0x05;
    /// Known to DRM, but not for render nodes.
    pub(super) const NOT_FOR_RENDER_NODES: [u32; 8] =
        [0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x0a, 0x0b];
}

/// Queries of `AMDGPU_INFO`.
mod query {
    pub(super) const ACCEL_WORKING: u32 = 0x00;
    pub(super) const TIMESTAMP: u32 = 0x05;
    pub(super) const FW_VERSION: u32 = 0x0e;
    pub(super) const VRAM_USAGE: u32 = 0x10;
    pub(super) const GTT_USAGE: u32 = 0x11;
    pub(super) const VRAM_GTT: u32 = 0x14;
    pub(super) const READ_MMR_REG: u32 = 0x15;
    pub(super) const DEV_INFO: u32 = 0x16;
    pub(super) const VIS_VRAM_USAGE: u32 = 0x17;
    pub(super) const MEMORY: u32 = 0x19;
    pub(super) const FW_GFX_MEC: u32 = 0x08;
    pub(super) const FW_SDMA: u32 = 0x0b;
}

/// `mmGB_ADDR_CONFIG`: the one register that libdrm reads of every GPU.
const GB_ADDR_CONFIG: u32 = 0x263e;

/// `struct drm_version`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Version {
    major: i32,
    minor: i32,
    patch: i32,
    pad: u32,
    name_bytes: u64,
    name: u64,
    date_bytes: u64,
    date: u64,
    description_bytes: u64,
    description: u64,
}

/// `struct drm_get_cap`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct GetCap {
    capability: u64,
    value: u64,
}

/// `struct drm_amdgpu_info`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Info {
    return_pointer: u64,
    return_bytes: u32,
    query: u32,
    parameters: [u32; 4],
}

/// `struct drm_amdgpu_info_device` up to `tcc_disabled_mask`; what newer kernels append stays as the
/// caller had it, as with a kernel that does not know it.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct DeviceInfo {
    device_id: u32,
    chip_rev: u32,
    external_rev: u32,
    pci_rev: u32,
    family: u32,
    num_shader_engines: u32,
    num_shader_arrays_per_engine: u32,
    gpu_counter_khz: u32,
    max_engine_clock_khz: u64,
    max_memory_clock_khz: u64,
    cu_active_number: u32,
    cu_ao_mask: u32,
    cu_bitmap: [[u32; 4]; 4],
    enabled_rb_pipes_mask: u32,
    num_rb_pipes: u32,
    num_hw_gfx_contexts: u32,
    pad: u32,
    ids_flags: u64,
    virtual_address_offset: u64,
    virtual_address_max: u64,
    virtual_address_alignment: u32,
    pte_fragment_size: u32,
    gart_page_size: u32,
    ce_ram_size: u32,
    vram_type: u32,
    vram_bit_width: u32,
    vce_harvest_config: u32,
    gc_double_offchip_lds_buf: u32,
    ngg_addresses: [u64; 4],
    ngg_sizes: [u32; 4],
    wave_front_size: u32,
    num_shader_visible_vgprs: u32,
    num_cu_per_sh: u32,
    num_tcc_blocks: u32,
    gs_vgt_table_depth: u32,
    gs_prim_buffer_depth: u32,
    max_gs_waves_per_vgt: u32,
    pad1: u32,
    cu_ao_bitmap: [[u32; 4]; 4],
    high_va_offset: u64,
    high_va_max: u64,
    pa_sc_tile_steering_override: u32,
    pad2: u32,
    tcc_disabled_mask: u64,
}

const _: () = assert!(size_of::<Version>() == 64 && size_of::<Info>() == 32);
const _: () = assert!(size_of::<DeviceInfo>() == 368);

fn low(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// `adev->family`.
const fn family(version: u64) -> u32 {
    match version {
        11_00_03 => 148,            // AMDGPU_FAMILY_GC_11_0_1
        11_05_00..=11_05_99 => 150, // AMDGPU_FAMILY_GC_11_5_0
        11_00_00..=11_99_99 => 145, // AMDGPU_FAMILY_GC_11_0_0
        _ => 141,                   // AMDGPU_FAMILY_AI
    }
}

/// The golden value that the driver sets on gfx9. gfx11 takes what the hardware has: assumed.
const fn gb_addr_config(version: u64) -> u32 {
    match version {
        9_00_06..=9_00_10 => 0x2201_4042,
        9_00_00..=9_99_99 => 0x2a11_4042,
        _ => 0x545,
    }
}

/// The CUs of one shader array of the first XCC. Arrays take their CUs evenly, the first ones one
/// more: which are fused off differs from board to board.
fn cus_of_array(info: &GpuInfo, array: u64) -> u64 {
    let arrays = info.engines * info.arrays_per_engine();
    let even = info.cus_per_xcc.checked_div(arrays).unwrap_or(0);
    even + u64::from(array < info.cus_per_xcc.checked_rem(arrays).unwrap_or(0))
}

fn device_info(info: &GpuInfo) -> DeviceInfo {
    let mut device = DeviceInfo::new_zeroed();
    let property = |name| info.properties.get(name).unwrap_or(0);
    device.device_id = low(info.device_id);
    device.chip_rev = low(info.capability() >> 22 & 0xf);
    device.external_rev = device.chip_rev + 1;
    device.family = family(info.gfx_version);
    device.num_shader_engines = low(info.engines);
    device.num_shader_arrays_per_engine = low(info.arrays_per_engine());
    device.gpu_counter_khz = low(info.counter_khz);
    device.max_engine_clock_khz = property("max_engine_clk_fcompute") * 1000;
    device.max_memory_clock_khz = info.memory_mhz * 1000;
    device.cu_active_number = low(info.cus_per_xcc * info.xccs);
    for engine in 0..info.engines {
        for array in 0..info.arrays_per_engine() {
            // Engines after the fourth come in the unused arrays of the first ones.
            let row = usize::try_from(engine % 4).unwrap_or(0);
            let column = usize::try_from(array + engine / 4 * 2).unwrap_or(usize::MAX);
            let cus = cus_of_array(info, engine * info.arrays_per_engine() + array);
            let place = device.cu_bitmap.get_mut(row).and_then(|row| row.get_mut(column));
            if let Some(place) = place {
                *place = low((1_u64 << cus.min(32)) - 1);
            }
        }
    }
    device.cu_ao_bitmap = device.cu_bitmap;
    device.num_hw_gfx_contexts = 8;
    device.ids_flags = u64::from(info.unified); // AMDGPU_IDS_FLAGS_FUSION
    // The first 2 MiB and the kernel's part of the lower half are not for user space.
    device.virtual_address_offset = 2 << 20;
    device.virtual_address_max = 0x8000_0000_0000;
    device.virtual_address_alignment = 4096;
    device.pte_fragment_size = 512 * 4096;
    device.gart_page_size = 4096;
    device.vram_type = 6; // AMDGPU_VRAM_TYPE_HBM
    device.vram_bit_width = low(info.memory_bits);
    device.wave_front_size = low(property("wave_front_size"));
    device.num_shader_visible_vgprs = 256;
    device.num_cu_per_sh = low(property("cu_per_simd_array"));
    device.high_va_offset = 0xffff_8000_0000_0000;
    device.high_va_max = 0xffff_ffff_ffe0_0000;
    device
}

/// `drm_copy_field`: the whole length is returned, as much as fits is copied.
fn copy_field(bytes: &mut u64, address: u64, text: &str) -> Result<(), Errno> {
    let room = std::mem::replace(bytes, text.len() as u64);
    let count = usize::try_from(room).unwrap_or(usize::MAX).min(text.len());
    if address == 0 || count == 0 {
        return Ok(());
    }
    user::write_bytes(address, text.as_bytes().get(..count).unwrap_or_default())
}

fn version(profile: Profile, args: &mut Version) -> Result<(), Errno> {
    args.major = 3;
    args.minor = if profile == Profile::V6_1 { 49 } else { 59 };
    args.patch = 0;
    copy_field(&mut args.name_bytes, args.name, "amdgpu")?;
    copy_field(&mut args.date_bytes, args.date, "20150101")?;
    copy_field(&mut args.description_bytes, args.description, "AMD GPU")
}

fn get_cap(args: &mut GetCap) -> Result<(), Errno> {
    args.value = match args.capability {
        0x5 => 3,               // DRM_CAP_PRIME: import and export
        0x6 | 0x13 | 0x14 => 1, // TIMESTAMP_MONOTONIC, SYNCOBJ, SYNCOBJ_TIMELINE
        _ => return Err(Errno::INVAL),
    };
    Ok(())
}

impl Model {
    /// `drm_ioctl`, then `amdgpu_info_ioctl`. What the driver has beyond that is not modelled.
    pub(super) fn drm_ioctl(&self, gpu: usize, request: u32, arg: &mut [u8]) -> Result<u32, Errno> {
        if request >> 8 & 0xff != DRM_TYPE {
            return Err(Errno::NOTTY);
        }
        let info = self.gpus.get(gpu).ok_or(Errno::NODEV)?;
        let result = match request & 0xff {
            number::VERSION => edit(arg, |args| version(self.profile(), args)),
            number::GET_CAP => edit(arg, get_cap),
            number::INFO => edit(arg, |args| self.amdgpu_info(info, args)),
            refused if number::NOT_FOR_RENDER_NODES.contains(&refused) => Err(Errno::ACCESS),
            other => {
                let text = format!("DRM ioctl {other:#x} is not modelled");
                self.diagnostics.add_unmodelled(info.id, None, text);
                Err(Errno::INVAL)
            }
        };
        result.map(|()| 0)
    }

    fn amdgpu_info(&self, info: &GpuInfo, args: &mut Info) -> Result<(), Errno> {
        if args.return_bytes == 0 || args.return_pointer == 0 {
            return Err(Errno::INVAL);
        }
        let give = |bytes: &[u8]| {
            let count = bytes.len().min(usize::try_from(args.return_bytes).unwrap_or(0));
            user::write_bytes(args.return_pointer, bytes.get(..count).unwrap_or_default())
        };
        let (used_vram, used_system) = self.used(info.id);
        let vram = info.own_bytes();
        let visible = if info.large_bar { vram } else { 256 << 20 };
        let gtt = self.config.system_bytes / 2;
        match args.query {
            query::ACCEL_WORKING => give(&1_u32.to_le_bytes()),
            query::DEV_INFO => give(device_info(info).as_bytes()),
            query::VRAM_USAGE | query::VIS_VRAM_USAGE => give(&used_vram.to_le_bytes()),
            query::GTT_USAGE => give(&used_system.to_le_bytes()),
            query::VRAM_GTT => give([vram, visible, gtt].as_bytes()),
            query::MEMORY => {
                // Total, usable, used, largest allocation; of video, visible and system memory.
                let heap = |total: u64, used: u64| [total, total, used, total / 4 * 3];
                let heaps =
                    [heap(vram, used_vram), heap(visible, used_vram), heap(gtt, used_system)];
                give(heaps.as_bytes())
            }
            query::TIMESTAMP => give(&self.gpu_clock(info.id).to_le_bytes()),
            query::FW_VERSION => {
                let [kind, ..] = args.parameters;
                let name = match kind {
                    query::FW_GFX_MEC => "fw_version",
                    query::FW_SDMA => "sdma_fw_version",
                    _ => return Err(Errno::INVAL),
                };
                let version = low(info.properties.get(name).unwrap_or(0));
                give([version, 0].as_bytes())
            }
            query::READ_MMR_REG => {
                let [register, count, ..] = args.parameters;
                if count > 128 {
                    return Err(Errno::INVAL);
                }
                if (register, count) != (GB_ADDR_CONFIG, 1) {
                    return Err(Errno::FAULT); // a register that user space may not read
                }
                give(&gb_addr_config(info.gfx_version).to_le_bytes())
            }
            other => {
                let text = format!("AMDGPU_INFO query {other:#x} is not modelled");
                self.diagnostics.add_unmodelled(info.id, None, text);
                Err(Errno::INVAL)
            }
        }
    }

    /// Bytes of video and of system memory that this process uses.
    fn used(&self, gpu_id: u32) -> (u64, u64) {
        let state = self.lock();
        let Some(process) = state.processes.get(&std::process::id()) else { return (0, 0) };
        let mut devices = process.devices.iter();
        let device = devices.find(|device| device.device.info.id == gpu_id);
        (device.map_or(0, |device| device.vram_bytes), process.system_bytes())
    }

    fn gpu_clock(&self, gpu_id: u32) -> u64 {
        let mut state = self.lock();
        let process = state.processes.get_mut(&std::process::id());
        let device = process.and_then(|process| process.device(gpu_id).ok());
        device.map_or(0, |device| device.device.clock())
    }
}

/// Runs `handler` on a copy of the argument, which DRM continues with zeros, and copies it back
/// whether it failed or not.
fn edit<T: FromBytes + IntoBytes + Immutable>(
    arg: &mut [u8],
    handler: impl FnOnce(&mut T) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut value = T::new_zeroed();
    for (to, from) in value.as_mut_bytes().iter_mut().zip(arg.iter()) {
        *to = *from;
    }
    let result = handler(&mut value);
    for (to, from) in arg.iter_mut().zip(value.as_bytes()) {
        *to = *from;
    }
    result
}
