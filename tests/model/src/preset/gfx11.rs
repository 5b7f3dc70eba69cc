//! Radeon RX 7000 GPUs and the APUs of their generation.
//!
//! Sources: docs/ABI.md §Presets.

use super::{CacheKind, Memory, Preset, cache};
use crate::Target;

/// The caches of a chip whose array has `cus` CUs; an L3 of 0 KiB is none. Shares as
/// kfd_crat.c (`kfd_fill_gpu_cache_info_from_gfx_config`) makes them of the discovery table, which
/// leaves line sizes out.
const fn rdna3(cus: u64, l2_kib: u64, l3_kib: u64) -> [CacheKind; 6] {
    [
        cache(1, 32, 128, CacheKind::DATA, 1),
        cache(1, 32, 128, CacheKind::INSTRUCTION, 2),
        cache(1, 16, 64, CacheKind::DATA, 2),
        cache(1, 256, 128, CacheKind::DATA, cus),
        cache(2, l2_kib, 128, CacheKind::DATA, cus),
        cache(3, l3_kib, 64, CacheKind::DATA, cus),
    ]
}

/// Radeon RX 7900 XTX (Navi 31), with a large BAR.
pub(super) const GFX1100: Preset = Preset {
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
    xccs: 1,
    wave_size: 32,
    device_id: 0x744c,
    bus: 3,
    minors: 1,
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
    memory: Memory::Video { bytes: 25_753_026_560 },
    memory_bits: 384,
    memory_mhz: 1249,
    link_mb_per_s: 32_000,
    caches: &rdna3(8, 6144, 98_304),
    assumed: &["unique_id"],
    large_bar: true,
};

/// Radeon RX 7800 XT (Navi 32), with a large BAR.
pub(super) const GFX1101: Preset = Preset {
    target: Target::Gfx1101,
    gpu_id: 43_288,
    version: 11_00_01,
    cus: 60,
    arrays: 6,
    cus_per_array: 10,
    device_id: 0x747e,
    engine_mhz: 2254,
    unique_id: 0x7f11_3456_0000_0001,
    memory: Memory::Video { bytes: 17_163_091_968 },
    memory_bits: 256,
    memory_mhz: 1218,
    caches: &rdna3(10, 4096, 65_536),
    assumed: &["fw_version", "sdma_fw_version", "unique_id", "mem_clk_max", "io_links"],
    ..GFX1100
};

/// Radeon RX 7600 (Navi 33), with a large BAR.
pub(super) const GFX1102: Preset = Preset {
    target: Target::Gfx1102,
    gpu_id: 4670,
    version: 11_00_02,
    cus: 32,
    arrays: 4,
    device_id: 0x7480,
    engine_mhz: 2356,
    fw_version: 2600,
    unique_id: 0x7f33_3456_0000_0001,
    memory: Memory::Video { bytes: 8_573_157_376 },
    memory_bits: 128,
    memory_mhz: 1124,
    link_mb_per_s: 8_000,
    caches: &rdna3(8, 2048, 0),
    assumed: &["gpu_id", "sdma_fw_version", "unique_id", "L3 cache", "io_links"],
    ..GFX1100
};

/// Radeon 780M, the GPU of a Ryzen 7 7840 (Phoenix).
pub(super) const GFX1103: Preset = Preset {
    target: Target::Gfx1103,
    gpu_id: 44_190,
    version: 11_00_03,
    cus: 12,
    arrays: 2,
    cus_per_array: 6,
    device_id: 0x15bf,
    bus: 0xc4,
    sdma_engines: 1,
    engine_mhz: 2700,
    fw_version: 40,
    sdma_fw_version: 20,
    // Revision 9.
    capability: 0x2a43_a280,
    unique_id: 0,
    memory: Memory::System { carve_out: 512 << 20 },
    memory_bits: 128,
    memory_mhz: 937,
    caches: &rdna3(6, 2048, 0),
    assumed: &["gpu_id", "num_sdma_engines", "sdma_fw_version", "io_links"],
    ..GFX1100
};

/// Radeon 890M, the GPU of a Ryzen AI 9 HX 370 (Strix Point).
pub(super) const GFX1150: Preset = Preset {
    target: Target::Gfx1150,
    gpu_id: 37_002,
    version: 11_05_00,
    cus: 16,
    cus_per_array: 8,
    device_id: 0x150e,
    engine_mhz: 2900,
    fw_version: 24,
    sdma_fw_version: 11,
    // Revision 4.
    capability: 0x2903_a280,
    caches: &rdna3(8, 2048, 0),
    ..GFX1103
};

/// Radeon 8060S, the GPU of a Ryzen AI Max+ 395 (Strix Halo).
pub(super) const GFX1151: Preset = Preset {
    target: Target::Gfx1151,
    gpu_id: 29_672,
    version: 11_05_01,
    cus: 40,
    arrays: 4,
    cus_per_array: 10,
    device_id: 0x1586,
    fw_version: 29,
    capability: 0x2803_a280,
    memory_bits: 256,
    memory_mhz: 1000,
    caches: &rdna3(10, 2048, 32_768),
    assumed: &[
        "gpu_id",
        "num_sdma_engines",
        "fw_version",
        "sdma_fw_version",
        "mem_clk_max",
        "io_links",
    ],
    ..GFX1150
};
