//! Which doorbell, and which SDMA engine, a new queue gets.
//!
//! Source: `allocate_doorbell` and `allocate_sdma_queue` in amdkfd/kfd_device_queue_manager.c,
//! amdgpu_doorbell.h, Linux 6.12.117; docs/ABI.md §Model.

use kfd::sys::Errno;

use super::queue::MAX_QUEUES;
use crate::gpu::GpuInfo;

/// The second half of a doorbell page mirrors the reserved window.
const DOORBELL_MIRROR: u32 = 512;

/// Doorbells of one SDMA engine and the next are this far apart (amdgpu_doorbell.h): on Vega10, and
/// later.
const VEGA10_SDMA_STRIDE: u32 = 2;
const SDMA_STRIDE: u32 = 10;

/// The first free doorbell outside the windows of other engines.
pub(super) fn compute(info: &GpuInfo, taken: &[u32]) -> Option<u32> {
    let reserved = info.first_reserved_doorbell();
    let free = (0..MAX_QUEUES).filter(|id| id % DOORBELL_MIRROR < reserved);
    free.into_iter().find(|id| !taken.contains(id))
}

/// SDMA queues are a fixed pool; each has its doorbell and its engine.
pub(super) fn sdma(
    info: &GpuInfo,
    engine: Option<u32>,
    xgmi: bool,
    taken: &[u32],
) -> Result<(u32, u32), Errno> {
    let small = |value: u64| u32::try_from(value).unwrap_or(0);
    let (pcie, others) = (small(info.sdma_engines), small(info.xgmi_engines));
    let engines = match (engine, xgmi) {
        (Some(engine), _) => engine..engine + 1,
        (None, false) => 0..pcie,
        (None, true) => pcie..pcie + others,
    };
    let stride = if info.gfx_version == 9_00_00 { VEGA10_SDMA_STRIDE } else { SDMA_STRIDE };
    let mut pool = (0..small(info.sdma_queues)).flat_map(|queue| {
        engines.clone().map(move |engine| {
            let first = info.first_reserved_doorbell() + engine * stride;
            (first + (queue & 1) * DOORBELL_MIRROR + (queue >> 1), engine)
        })
    });
    pool.find(|(doorbell, _)| !taken.contains(doorbell)).ok_or(Errno::NOMEM)
}
