//! Vega and Instinct GPUs.
//!
//! Sources: docs/ABI.md §Presets.

use super::{CacheKind, Memory, Preset, cache};
use crate::Target;

/// L1, instruction and scalar caches of Vega10 to Arcturus; a third of an array's CUs share the
/// last two. Source: kfd_crat.c (`vega10_cache_info`, `vega20_cache_info`).
const fn vega(l2_kib: u64) -> [CacheKind; 4] {
    [
        cache(1, 16, 64, CacheKind::DATA, 1),
        cache(1, 32, 64, CacheKind::INSTRUCTION, 3),
        cache(1, 16, 64, CacheKind::DATA, 3),
        cache(2, l2_kib, 64, CacheKind::DATA, 16),
    ]
}

/// Radeon RX Vega 64 (Vega 10), with a large BAR.
pub(super) const GFX900: Preset = Preset {
    target: Target::Gfx900,
    name: "vega10",
    gpu_id: 22_124,
    version: 9_00_00,
    cus: 64,
    simd_per_cu: 4,
    waves_per_simd: 10,
    arrays: 4,
    arrays_per_engine: 1,
    cus_per_array: 16,
    xccs: 1,
    wave_size: 64,
    device_id: 0x687f,
    bus: 3,
    minors: 1,
    sdma_engines: 2,
    xgmi_engines: 0,
    sdma_queues: 2,
    cp_queues: 24,
    engine_mhz: 1630,
    fw_version: 33_247,
    sdma_fw_version: 430,
    // No RAS; revision 1.
    capability: 0x2843_a280,
    debug_prop: 0x5d6,
    unique_id: 0x9012_3456_0000_0001,
    memory: Memory::Video { bytes: 8_573_157_376 },
    memory_bits: 2048,
    memory_mhz: 945,
    link_mb_per_s: 16_000,
    caches: &vega(4096),
    assumed: &[
        "gpu_id",
        "max_engine_clk_fcompute",
        "fw_version",
        "sdma_fw_version",
        "capability[25:22]",
        "unique_id",
        "mem_clk_max",
        "io_links",
        "counter frequency",
    ],
    large_bar: true,
};

/// Radeon Instinct MI50 (Vega 20), with a large BAR and no hive.
pub(super) const GFX906: Preset = Preset {
    target: Target::Gfx906,
    name: "vega20",
    gpu_id: 51_887,
    version: 9_00_06,
    cus: 60,
    device_id: 0x66a1,
    engine_mhz: 1700,
    fw_version: 471,
    sdma_fw_version: 145,
    // ECC on; revision 1.
    capability: 0x2c73_a280,
    sdma_queues: 8,
    unique_id: 0x9062_3456_0000_0001,
    memory: Memory::Video { bytes: 17_163_091_968 },
    memory_bits: 4096,
    memory_mhz: 1000,
    link_mb_per_s: 32_000,
    caches: &vega(8192),
    assumed: &["active CUs", "capability[21:20,26]", "unique_id", "io_links", "counter frequency"],
    ..GFX900
};

/// Instinct MI100 (Arcturus), with a large BAR and no hive.
pub(super) const GFX908: Preset = Preset {
    target: Target::Gfx908,
    name: "arcturus",
    gpu_id: 42_700,
    version: 9_00_08,
    cus: 120,
    arrays: 8,
    device_id: 0x738c,
    xgmi_engines: 6,
    engine_mhz: 1502,
    fw_version: 65,
    sdma_fw_version: 18,
    capability: 0x2cb3_a280,
    unique_id: 0x9082_3456_0000_0001,
    memory: Memory::Video { bytes: 34_342_961_152 },
    memory_mhz: 1200,
    assumed: &["active CUs", "unique_id", "mem_banks", "io_links", "counter frequency"],
    ..GFX906
};

/// One die of an Instinct MI250X (Aldebaran), with a large BAR and no hive.
pub(super) const GFX90A: Preset = Preset {
    target: Target::Gfx90a,
    name: "aldebaran",
    gpu_id: 51_110,
    version: 9_00_10,
    cus: 110,
    waves_per_simd: 8,
    cus_per_array: 14,
    device_id: 0x7408,
    xgmi_engines: 3,
    engine_mhz: 1700,
    fw_version: 96,
    sdma_fw_version: 9,
    // Revision 1, ECC on.
    capability: 0x2c77_a280,
    debug_prop: 0x1d6,
    unique_id: 0x9a12_3456_0000_0001,
    memory: Memory::Video { bytes: 68_702_699_520 },
    memory_mhz: 1600,
    caches: &[
        cache(1, 16, 64, CacheKind::DATA, 1),
        cache(1, 32, 64, CacheKind::INSTRUCTION, 2),
        cache(1, 16, 64, CacheKind::DATA, 2),
        cache(2, 8192, 128, CacheKind::DATA, 14),
    ],
    assumed: &[
        "gpu_id",
        "cu_per_simd_array",
        "active CUs",
        "device_id",
        "unique_id",
        "mem_clk_max",
        "io_links",
        "counter frequency",
    ],
    ..GFX908
};

/// Instinct MI300X, all eight XCCs one device (SPX), with a large BAR and no hive.
pub(super) const GFX942: Preset = Preset {
    target: Target::Gfx942,
    name: "ip discovery",
    gpu_id: 61_042,
    version: 9_04_02,
    cus: 304,
    arrays: 32,
    cus_per_array: 10,
    xccs: 8,
    device_id: 0x74a1,
    minors: 8,
    xgmi_engines: 14,
    engine_mhz: 2100,
    fw_version: 166,
    sdma_fw_version: 22,
    capability: 0x2c77_a280,
    debug_prop: 0x5e7,
    unique_id: 0x9422_3456_0000_0001,
    memory: Memory::Video { bytes: 205_822_885_888 },
    memory_bits: 8192,
    memory_mhz: 1300,
    link_mb_per_s: 64_000,
    caches: &[
        cache(1, 32, 128, CacheKind::DATA, 1),
        cache(1, 64, 64, CacheKind::INSTRUCTION, 2),
        cache(1, 16, 64, CacheKind::DATA, 2),
        cache(2, 4096, 128, CacheKind::DATA, 10),
        cache(3, 262_144, 64, CacheKind::DATA, 10),
    ],
    assumed: &["gpu_id", "active CUs", "unique_id", "mem_clk_max", "cache sizes of the SQC"],
    ..GFX90A
};
