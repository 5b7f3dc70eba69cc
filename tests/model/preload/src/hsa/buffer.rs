//! Buffer objects that came as dma-bufs.

use std::ffi::{c_int, c_void};

use kfd::sys::Errno;

use super::kfd;
use crate::instance::Instance;

/// `amdgpu_bo_handle_type_dma_buf_fd`.
const DMA_BUF: u32 = 2;

/// GET_DMABUF_INFO.
const GET_DMABUF_INFO: u32 = 0xc020_4b1c;

/// What a buffer handle points to.
struct Buffer {
    /// A descriptor of our own for the dma-buf.
    fd: c_int,
    bytes: u64,
}

#[repr(C)]
pub(super) struct Import {
    fd: c_int,
    kind: u32,
    result: *mut ImportResult,
}

/// `struct amdgpu_bo_import_result`.
#[repr(C)]
pub(super) struct ImportResult {
    buffer: *mut c_void,
    bytes: u64,
}

/// # Safety
/// `args` must point to valid arguments, as for all functions here.
pub(super) unsafe fn import(instance: &Instance, args: *mut Import) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    if args.kind != DMA_BUF {
        return Err(Errno::INVAL);
    }
    // size, metadata pointer, metadata size and GPU, flags and descriptor.
    let fd = u64::from(args.fd.cast_unsigned());
    let mut info = [0_u64, 0, 0, fd << 32];
    let address = info.as_mut_ptr().expose_provenance() as u64;
    instance.model.ioctl_at(kfd(instance)?, GET_DMABUF_INFO, address, instance)?;
    let [bytes, ..] = info;
    let copy = crate::hooks::duplicate_ours(args.fd)?;
    let buffer = Box::into_raw(Box::new(Buffer { fd: copy, bytes })).cast();
    // SAFETY: the caller gave a place for the result.
    unsafe { args.result.write(ImportResult { buffer, bytes }) };
    Ok(0)
}

#[repr(C)]
pub(super) struct OfBuffer {
    buffer: *mut c_void,
}

/// # Safety
/// As for [`import`]; the buffer is not used any more.
pub(super) unsafe fn free(args: *mut OfBuffer) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let buffer = unsafe { &*args }.buffer.cast::<Buffer>();
    if buffer.is_null() {
        return Err(Errno::INVAL);
    }
    // SAFETY: made by `import`, and given back here once.
    let buffer = unsafe { Box::from_raw(buffer) };
    crate::hooks::close_ours(buffer.fd);
    Ok(0)
}

/// # Safety
/// `buffer` must be null or one of [`import`]'s.
unsafe fn buffer<'a>(buffer: *mut c_void) -> Result<&'a Buffer, Errno> {
    // SAFETY: the contract of this function.
    unsafe { buffer.cast::<Buffer>().as_ref() }.ok_or(Errno::INVAL)
}

#[repr(C)]
pub(super) struct Export {
    buffer: *mut c_void,
    kind: u32,
    handle: *mut u32,
}

/// # Safety
/// As for [`import`].
pub(super) unsafe fn export(args: *mut Export) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    if args.kind != DMA_BUF {
        return Err(Errno::INVAL);
    }
    // SAFETY: as above.
    let fd = crate::hooks::duplicate_ours(unsafe { buffer(args.buffer) }?.fd)?;
    // SAFETY: the caller gave a place for it.
    unsafe { args.handle.write(fd.cast_unsigned()) };
    Ok(0)
}

#[repr(C)]
pub(super) struct QueryInfo {
    buffer: *mut c_void,
    info: *mut BufferInfo,
}

/// `struct amdgpu_bo_info` of libdrm.
#[repr(C)]
pub(super) struct BufferInfo {
    bytes: u64,
    alignment: u64,
    preferred_heap: u32,
    flags: u64,
    metadata_flags: u64,
    tiling: u64,
    metadata_bytes: u32,
    metadata: [u32; 64],
}

/// # Safety
/// As for [`import`].
pub(super) unsafe fn query_info(args: *mut QueryInfo) -> Result<c_int, Errno> {
    // SAFETY: the contract of this function.
    let args = unsafe { &*args };
    // SAFETY: as above.
    let bytes = unsafe { buffer(args.buffer) }?.bytes;
    let info = BufferInfo {
        bytes,
        alignment: 4096,
        preferred_heap: 4, // AMDGPU_GEM_DOMAIN_VRAM
        flags: 0,
        metadata_flags: 0,
        tiling: 0,
        metadata_bytes: 0,
        metadata: [0; 64],
    };
    // SAFETY: the caller gave room for libdrm's structure.
    unsafe { args.info.write(info) };
    Ok(0)
}
