//! Devices, as libdrm has them.

use std::ffi::{CString, c_char, c_int, c_uint, c_ulong, c_void};

use kfd::sys::{Errno, Kernel as _};

use super::drm_ioctl;
use crate::hooks::close_ours;
use crate::instance::Instance;

/// Request words of DRM ioctls: direction, size, type `d`, number.
const fn request(number: u32, bytes: u32) -> u32 {
    3 << 30 | bytes << 16 | 0x64 << 8 | number
}

const VERSION: u32 = request(0x00, 64);
const INFO: u32 = request(0x45, 32);
const DEV_INFO: u32 = 0x16;
const READ_MMR_REG: u32 = 0x15;
const GB_ADDR_CONFIG: u32 = 0x263e;

/// What a device handle points to.
struct Device {
    fd: c_int,
    name: CString,
}

#[repr(C)]
pub(super) struct OpenRender {
    minor: c_int,
    fd: *mut c_int,
}

/// # Safety
/// `args` must point to valid arguments, as for all functions here.
pub(super) unsafe fn open_render(
    instance: &Instance,
    args: *mut OpenRender,
) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    let path = format!("/dev/dri/renderD{}", args.minor);
    let fd = instance.open_device(&path, libc::O_RDWR | libc::O_CLOEXEC)?;
    // SAFETY: the caller gave a place for the descriptor.
    unsafe { args.fd.write(fd) };
    Ok(0)
}

#[repr(C)]
pub(super) struct Close {
    fd: c_int,
}

/// # Safety
/// As for [`open_render`].
pub(super) unsafe fn close(args: *mut Close) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    close_ours(unsafe { &*args }.fd);
    Ok(0)
}

#[repr(C)]
pub(super) struct Initialize {
    fd: c_int,
    major: *mut u32,
    minor: *mut u32,
    device: *mut *mut c_void,
}

/// # Safety
/// As for [`open_render`].
pub(super) unsafe fn initialize(
    instance: &Instance,
    args: *mut Initialize,
) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    let mut version = [0_u32; 16];
    let address = version.as_mut_ptr().expose_provenance() as u64;
    drm_ioctl(instance, args.fd, VERSION, address)?;
    let [major, minor, ..] = version;
    let target = target_of(instance, args.fd);
    let name = CString::new(format!("Software GPU {target}")).map_err(|_| Errno::INVAL)?;
    let device = Box::new(Device { fd: args.fd, name });
    // SAFETY: the caller gave places for all three.
    unsafe { args.major.write(major) };
    // SAFETY: as above.
    unsafe { args.minor.write(minor) };
    // SAFETY: as above.
    unsafe { args.device.write(Box::into_raw(device).cast()) };
    Ok(0)
}

/// The name of the preset behind a render node, from the topology.
fn target_of(instance: &Instance, fd: c_int) -> String {
    let minor = crate::descriptors::find(fd)
        .and_then(|ours| instance.file(ours))
        .and_then(|file| instance.model.file_metadata(file).ok())
        .map_or(0, |metadata| libc::minor(metadata.rdev));
    let nodes = "/sys/devices/virtual/kfd/kfd/topology/nodes";
    for node in instance.model.read_dir(nodes).unwrap_or_default() {
        let text = instance.model.text(&format!("{nodes}/{node}/properties")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let value = |name: &str| {
            let mut values =
                text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            values.next().and_then(|value| value.trim().parse::<u32>().ok())
        };
        if value("drm_render_minor") == Some(minor)
            && let Some(version) = value("gfx_target_version")
        {
            let (major, minor, step) = (version / 10_000, version / 100 % 100, version % 100);
            return format!("gfx{major}{minor:x}{step:x}");
        }
    }
    "of unknown kind".to_owned()
}

#[repr(C)]
pub(super) struct OfDevice {
    device: *mut c_void,
}

/// # Safety
/// As for [`open_render`]; the device is not used any more.
pub(super) unsafe fn deinitialize(args: *mut OfDevice) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let device = unsafe { &*args }.device.cast::<Device>();
    if device.is_null() {
        return Err(Errno::INVAL);
    }
    // SAFETY: made by `initialize`, and given back here once.
    drop(unsafe { Box::from_raw(device) });
    Ok(0)
}

/// # Safety
/// `device` must be null or one of [`initialize`]'s.
unsafe fn device<'a>(device: *mut c_void) -> Result<&'a Device, Errno> {
    // SAFETY: the contract of this function.
    unsafe { device.cast::<Device>().as_ref() }.ok_or(Errno::INVAL)
}

#[repr(C)]
pub(super) struct GetFd {
    device: *mut c_void,
    fd: *mut c_int,
}

/// # Safety
/// As for [`open_render`].
pub(super) unsafe fn get_fd(args: *mut GetFd) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    // SAFETY: as above.
    let fd = unsafe { device(args.device) }?.fd;
    // SAFETY: the caller gave a place for it.
    unsafe { args.fd.write(fd) };
    Ok(0)
}

#[repr(C)]
pub(super) struct MarketingName {
    device: *mut c_void,
    name: *mut *const c_char,
}

/// # Safety
/// As for [`open_render`].
pub(super) unsafe fn marketing_name(args: *mut MarketingName) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    // SAFETY: as above. The name lives as long as the device, as libdrm's does.
    let name = unsafe { device(args.device) }?.name.as_ptr();
    // SAFETY: the caller gave a place for it.
    unsafe { args.name.write(name) };
    Ok(0)
}

#[repr(C)]
pub(super) struct WriteRead {
    fd: c_int,
    number: c_ulong,
    data: *mut c_void,
    bytes: c_uint,
}

/// # Safety
/// As for [`open_render`].
pub(super) unsafe fn write_read(instance: &Instance, args: *mut WriteRead) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    let number = u32::try_from(args.number).ok().filter(|number| *number < 0x60);
    let number = 0x40 + number.ok_or(Errno::INVAL)?; // DRM_COMMAND_BASE
    if args.bytes > 0x3fff {
        return Err(Errno::INVAL);
    }
    drm_ioctl(
        instance,
        args.fd,
        request(number, args.bytes),
        args.data.expose_provenance() as u64,
    )?;
    Ok(0)
}

/// `struct amdgpu_gpu_info` of libdrm.
#[repr(C)]
#[derive(Clone, Copy)]
struct GpuInfo {
    asic_id: u32,
    chip_rev: u32,
    chip_external_rev: u32,
    family_id: u32,
    ids_flags: u64,
    max_engine_clk: u64,
    max_memory_clk: u64,
    num_shader_engines: u32,
    num_shader_arrays_per_engine: u32,
    avail_quad_shader_pipes: u32,
    max_quad_shader_pipes: u32,
    cache_entries_per_quad_pipe: u32,
    num_hw_gfx_contexts: u32,
    rb_pipes: u32,
    enabled_rb_pipes_mask: u32,
    gpu_counter_freq: u32,
    backend_disable: [u32; 4],
    mc_arb_ramcfg: u32,
    gb_addr_cfg: u32,
    gb_tile_mode: [u32; 32],
    gb_macro_tile_mode: [u32; 16],
    pa_sc_raster_cfg: [u32; 4],
    pa_sc_raster_cfg1: [u32; 4],
    cu_active_number: u32,
    cu_ao_mask: u32,
    cu_bitmap: [[u32; 4]; 4],
    vram_type: u32,
    vram_bit_width: u32,
    ce_ram_size: u32,
    vce_harvest_config: u32,
    pci_rev_id: u32,
}

/// One query of `AMDGPU_INFO` into `answer`.
fn info(
    instance: &Instance,
    fd: c_int,
    query: u32,
    register: u32,
    answer: &mut [u32],
) -> Result<(), Errno> {
    let bytes = u64::try_from(size_of_val(answer)).map_err(|_| Errno::INVAL)?;
    let mut args = [
        answer.as_mut_ptr().expose_provenance() as u64,
        bytes | u64::from(query) << 32,
        u64::from(register) | 1 << 32,
        0,
    ];
    drm_ioctl(instance, fd, INFO, args.as_mut_ptr().expose_provenance() as u64)
}

#[repr(C)]
pub(super) struct QueryGpuInfo {
    device: *mut c_void,
    info: *mut c_void,
}

/// # Safety
/// As for [`open_render`].
pub(super) unsafe fn query_gpu_info(
    instance: &Instance,
    args: *mut QueryGpuInfo,
) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    // SAFETY: as above.
    let fd = unsafe { device(args.device) }?.fd;
    let mut device = [0_u32; 92];
    info(instance, fd, DEV_INFO, 0, &mut device)?;
    let mut register = [0_u32];
    info(instance, fd, READ_MMR_REG, GB_ADDR_CONFIG, &mut register)?;
    let word = |index: usize| device.get(index).copied().unwrap_or(0);
    let wide = |index: usize| u64::from(word(index)) | u64::from(word(index + 1)) << 32;
    // SAFETY: all zeros are a valid value: the structure holds numbers only.
    let mut all: GpuInfo = unsafe { std::mem::zeroed() };
    all.asic_id = word(0);
    all.chip_rev = word(1);
    all.chip_external_rev = word(2);
    all.pci_rev_id = word(3);
    all.family_id = word(4);
    all.num_shader_engines = word(5);
    all.num_shader_arrays_per_engine = word(6);
    all.gpu_counter_freq = word(7);
    all.max_engine_clk = wide(8);
    all.max_memory_clk = wide(10);
    all.cu_active_number = word(12);
    all.cu_ao_mask = word(13);
    for (index, place) in all.cu_bitmap.iter_mut().flatten().enumerate() {
        *place = word(14 + index);
    }
    all.enabled_rb_pipes_mask = word(30);
    all.rb_pipes = word(31);
    all.num_hw_gfx_contexts = word(32);
    all.ids_flags = wide(34);
    all.ce_ram_size = word(43);
    all.vram_type = word(44);
    all.vram_bit_width = word(45);
    all.vce_harvest_config = word(46);
    [all.gb_addr_cfg] = register;
    // SAFETY: the caller gave room for libdrm's structure.
    unsafe { args.info.cast::<GpuInfo>().write(all) };
    Ok(0)
}
