//! Radeon RX 7900 XTX (Navi 31), with a large BAR.

use super::{CacheKind, Preset};
use crate::Target;

/// Source: a dump of a real machine, but for the fields listed as assumed (docs/ABI.md §Model).
pub(super) const PRESET: Preset = Preset {
    target: Target::Gfx1100,
    name: "ip discovery",
    gpu_id: 4672,
    version: 11_00_00,
    cus: 96,
    simd_per_cu: 2,
    waves_per_simd: 16,
    arrays: 12,
    arrays_per_engine: 2,
    cus_per_array: 8,
    wave_size: 32,
    device_id: 0x744c,
    sdma_engines: 2,
    xgmi_engines: 0,
    sdma_queues: 6,
    cp_queues: 8,
    engine_mhz: 2482,
    fw_version: 2140,
    sdma_fw_version: 20,
    // As 6.12.117 computes it; other kernels set bit 18 as well.
    capability: 0x2803_a280,
    debug_prop: 0x5d7,
    unique_id: 0x7f12_3456_0000_0001,
    vram_bytes: 25_753_026_560,
    vram_bits: 384,
    vram_mhz: 1249,
    link_mb_per_s: 32_000,
    caches: &[
        CacheKind { level: 1, kib: 32, line_bytes: 128, kind: 9, cus: 1 },
        CacheKind { level: 1, kib: 16, line_bytes: 64, kind: 9, cus: 2 },
        CacheKind { level: 1, kib: 32, line_bytes: 128, kind: 10, cus: 2 },
        CacheKind { level: 2, kib: 256, line_bytes: 128, kind: 9, cus: 8 },
        CacheKind { level: 2, kib: 6144, line_bytes: 128, kind: 9, cus: 96 },
        CacheKind { level: 3, kib: 98_304, line_bytes: 64, kind: 9, cus: 96 },
    ],
    assumed: &["unique_id", "caches", "counter frequency"],
    large_bar: true,
};
