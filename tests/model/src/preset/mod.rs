//! GPUs that the model knows without a machine at hand.
//!
//! What the kernel computes is computed here the same way; docs/ABI.md §Presets says where the rest
//! comes from.

mod caches;
mod gfx11;
mod gfx9;
mod node;

pub(crate) use node::topology;

use crate::Target;
use crate::profile::Profile;

/// Caches of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CacheKind {
    level: u64,
    kib: u64,
    line_bytes: u64,
    /// [`DATA`](Self::DATA) or [`INSTRUCTION`](Self::INSTRUCTION).
    kind: u64,
    /// CUs of an array that share one.
    cus: u64,
}

impl CacheKind {
    /// `HSA_CACHE_TYPE_DATA`.
    const DATA: u64 = 1;
    /// `HSA_CACHE_TYPE_INSTRUCTION`.
    const INSTRUCTION: u64 = 2;
    /// `HSA_CACHE_TYPE_HSACU`.
    const GPU: u64 = 8;
}

const fn cache(level: u64, kib: u64, line_bytes: u64, kind: u64, cus: u64) -> CacheKind {
    CacheKind { level, kib, line_bytes, kind, cus }
}

/// What a GPU's own memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// Video memory.
    Video { bytes: u64 },
    /// An APU's: system memory, of which the firmware sets some bytes apart.
    System { carve_out: u64 },
}

/// A GPU as sysfs describes it. Each preset says which of its fields no real machine confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    target: Target,
    name: &'static str,
    gpu_id: u32,
    version: u64,
    cus: u64,
    simd_per_cu: u64,
    waves_per_simd: u64,
    /// Shader arrays of all XCCs.
    arrays: u64,
    arrays_per_engine: u64,
    /// CUs of an array, those that are fused off included.
    cus_per_array: u64,
    xccs: u64,
    wave_size: u64,
    device_id: u64,
    /// PCI bus of the first GPU.
    bus: u64,
    /// Render nodes that the driver takes: one for each partition the GPU could have.
    minors: u64,
    sdma_engines: u64,
    xgmi_engines: u64,
    sdma_queues: u64,
    cp_queues: u64,
    engine_mhz: u64,
    fw_version: u64,
    sdma_fw_version: u64,
    capability: u64,
    debug_prop: u64,
    unique_id: u64,
    memory: Memory,
    memory_bits: u64,
    memory_mhz: u64,
    link_mb_per_s: u64,
    caches: &'static [CacheKind],
    assumed: &'static [&'static str],
    large_bar: bool,
}

impl Preset {
    /// A Radeon RX 7900 XTX: 96 CUs, 24 GiB.
    pub const fn gfx1100() -> Self {
        gfx11::GFX1100
    }

    /// One die of an Instinct MI250X: 110 CUs, 64 GiB.
    pub const fn gfx90a() -> Self {
        gfx9::GFX90A
    }

    /// The preset of `target`: a Vega 64, MI50, MI100, MI250X die or MI300X; an RX 7900 XTX, 7800 XT
    /// or 7600; a Radeon 780M, 890M or 8060S.
    pub const fn of(target: Target) -> Self {
        match target {
            Target::Gfx900 => gfx9::GFX900,
            Target::Gfx906 => gfx9::GFX906,
            Target::Gfx908 => gfx9::GFX908,
            Target::Gfx90a => gfx9::GFX90A,
            Target::Gfx942 => gfx9::GFX942,
            Target::Gfx1100 => gfx11::GFX1100,
            Target::Gfx1101 => gfx11::GFX1101,
            Target::Gfx1102 => gfx11::GFX1102,
            Target::Gfx1103 => gfx11::GFX1103,
            Target::Gfx1150 => gfx11::GFX1150,
            Target::Gfx1151 => gfx11::GFX1151,
        }
    }

    /// The GPU's target.
    pub const fn target(&self) -> Target {
        self.target
    }

    /// Fields that no dump of a real machine confirmed.
    pub const fn assumed(&self) -> &'static [&'static str] {
        self.assumed
    }

    /// Whether that kernel's KFD knows the GPU: Linux 6.1 does not know gfx942, gfx1150 and gfx1151,
    /// and leaves them out of its topology.
    pub const fn is_known_to(&self, profile: Profile) -> bool {
        let newer = matches!(self.target, Target::Gfx942 | Target::Gfx1150 | Target::Gfx1151);
        !(newer && matches!(profile, Profile::V6_1))
    }

    /// With another amount of memory of its own: of video memory, or of what an APU's firmware sets
    /// apart.
    #[must_use]
    pub const fn vram_bytes(mut self, bytes: u64) -> Self {
        self.memory = match self.memory {
            Memory::Video { .. } => Memory::Video { bytes },
            Memory::System { .. } => Memory::System { carve_out: bytes },
        };
        self
    }

    /// With a PCI window of 256 MiB: the CPU cannot reach all of the video memory. Without meaning
    /// for an APU.
    #[must_use]
    pub const fn small_bar(mut self) -> Self {
        self.large_bar = matches!(self.memory, Memory::System { .. });
        self
    }
}
