//! One die of an Instinct MI250X (Aldebaran), with a large BAR and no hive.

use super::{CacheKind, Preset};
use crate::Target;

/// Source: counts and capability bits computed from Linux 6.12.117 for 110 CUs; no dump of a
/// real machine was at hand (docs/ABI.md §Model).
pub(super) const PRESET: Preset = Preset {
    target: Target::Gfx90a,
    name: "aldebaran",
    gpu_id: 51_110,
    version: 9_00_10,
    cus: 110,
    simd_per_cu: 4,
    waves_per_simd: 8,
    arrays: 8,
    arrays_per_engine: 1,
    cus_per_array: 16,
    wave_size: 64,
    device_id: 0x7408,
    sdma_engines: 2,
    xgmi_engines: 3,
    sdma_queues: 8,
    cp_queues: 24,
    engine_mhz: 1700,
    fw_version: 78,
    sdma_fw_version: 8,
    capability: 0x2c77_a280,
    debug_prop: 0x1d6,
    unique_id: 0x9a12_3456_0000_0001,
    vram_bytes: 68_702_699_520,
    vram_bits: 4096,
    vram_mhz: 1600,
    link_mb_per_s: 32_000,
    caches: &[
        CacheKind { level: 1, kib: 16, line_bytes: 64, kind: 9, cus: 1 },
        CacheKind { level: 1, kib: 16, line_bytes: 64, kind: 9, cus: 2 },
        CacheKind { level: 1, kib: 32, line_bytes: 64, kind: 10, cus: 2 },
        CacheKind { level: 2, kib: 8192, line_bytes: 128, kind: 9, cus: 110 },
    ],
    assumed: &[
        "gpu_id",
        "cu_per_simd_array",
        "device_id",
        "max_engine_clk_fcompute",
        "fw_version",
        "sdma_fw_version",
        "unique_id",
        "mem_banks",
        "io_links",
        "caches",
        "counter frequency",
    ],
    large_bar: true,
};
