//! GPUs that the model knows without a machine at hand.

mod gfx1100;
mod gfx90a;

use kfd::abi::Capability;

use crate::profile::Profile;
use crate::sysfs::{Cache, Node, Properties, Topology};
use crate::{GpuInfo, Target};

/// Caches of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CacheKind {
    level: u64,
    kib: u64,
    line_bytes: u64,
    /// sysfs bits: 1 data, 2 instruction, 8 HSACU.
    kind: u64,
    /// CUs that share one.
    cus: u64,
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
    arrays: u64,
    arrays_per_engine: u64,
    cus_per_array: u64,
    wave_size: u64,
    device_id: u64,
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
    vram_bytes: u64,
    vram_bits: u64,
    vram_mhz: u64,
    link_mb_per_s: u64,
    caches: &'static [CacheKind],
    assumed: &'static [&'static str],
    large_bar: bool,
}

impl Preset {
    /// A Radeon RX 7900 XTX: 96 CUs, 24 GiB.
    pub const fn gfx1100() -> Self {
        gfx1100::PRESET
    }

    /// One die of an Instinct MI250X: 110 CUs, 64 GiB.
    pub const fn gfx90a() -> Self {
        gfx90a::PRESET
    }

    /// The preset of `target`, if there is one.
    pub const fn of(target: Target) -> Option<Self> {
        match target {
            Target::Gfx1100 => Some(Self::gfx1100()),
            Target::Gfx90a => Some(Self::gfx90a()),
            _ => None,
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

    /// With another amount of video memory.
    #[must_use]
    pub const fn vram_bytes(mut self, bytes: u64) -> Self {
        self.vram_bytes = bytes;
        self
    }

    /// With a PCI window of 256 MiB: the CPU cannot reach all of the video memory.
    #[must_use]
    pub const fn small_bar(mut self) -> Self {
        self.large_bar = false;
        self
    }

    /// The topology node number `index`, the `ordinal`-th GPU.
    fn node(&self, index: u64, ordinal: u64, profile: Profile, svm: bool) -> Node {
        let bit = u64::from(Capability::SVMAPI_SUPPORTED.bits());
        let capability = if svm { self.capability } else { self.capability & !bit };
        let mut properties = Properties::from([
            ("cpu_cores_count", 0),
            ("simd_count", self.cus * self.simd_per_cu),
            ("mem_banks_count", 0),
            ("caches_count", 0),
            ("io_links_count", 0),
            ("p2p_links_count", 0),
            ("cpu_core_id_base", 0),
            ("simd_id_base", 0x8000_1000 + 0x1000 * ordinal),
            ("max_waves_per_simd", self.waves_per_simd),
            ("lds_size_in_kb", 64),
            ("gds_size_in_kb", 0),
            ("num_gws", 64),
            ("wave_front_size", self.wave_size),
            ("array_count", self.arrays),
            ("simd_arrays_per_engine", self.arrays_per_engine),
            ("cu_per_simd_array", self.cus_per_array),
            ("simd_per_cu", self.simd_per_cu),
            ("max_slots_scratch_cu", 32),
            ("gfx_target_version", self.version),
            ("vendor_id", 0x1002),
            ("device_id", self.device_id),
            ("location_id", (3 + 0x20 * ordinal) << 8),
            ("domain", 0),
            ("drm_render_minor", 128 + ordinal),
            ("hive_id", 0),
            ("num_sdma_engines", self.sdma_engines),
            ("num_sdma_xgmi_engines", self.xgmi_engines),
            ("num_sdma_queues_per_engine", self.sdma_queues),
            ("num_cp_queues", self.cp_queues),
            ("cwsr_size", 0),
            ("ctl_stack_size", 0),
            ("max_engine_clk_fcompute", self.engine_mhz),
            ("local_mem_size", 0),
            ("fw_version", self.fw_version),
            ("capability", capability),
            ("debug_prop", self.debug_prop),
            ("sdma_fw_version", self.sdma_fw_version),
            ("unique_id", self.unique_id + ordinal),
            ("num_xcc", 1),
            ("max_engine_clk_ccompute", 5000),
        ]);
        if !profile.publishes_save_sizes() {
            properties.remove("cwsr_size");
            properties.remove("ctl_stack_size");
        }
        if profile == Profile::V6_1 {
            properties.remove("debug_prop");
            properties.remove("num_xcc");
        }
        Node {
            gpu_id: self.gpu_id,
            name: self.name.to_owned(),
            mem_banks: vec![Properties::from([
                ("heap_type", if self.large_bar { 1 } else { 2 }),
                ("size_in_bytes", self.vram_bytes),
                ("flags", 0),
                ("width", self.vram_bits),
                ("mem_clk_max", self.vram_mhz),
            ])],
            caches: self.caches(0x8000_1000 + 0x1000 * ordinal),
            io_links: vec![link(profile, index, 0, self.link_mb_per_s, self.sdma_mask(), 1)],
            p2p_links: Vec::new(),
            properties,
        }
    }

    fn sdma_mask(&self) -> u64 {
        (1 << self.sdma_engines) - 1
    }

    fn caches(&self, first_id: u64) -> Vec<Cache> {
        let mut caches = Vec::new();
        for kind in self.caches {
            let mut cu = 0;
            while cu < self.cus {
                let shared = kind.cus.min(self.cus - cu);
                let map = (0..shared).map(|_| "1").collect::<Vec<_>>().join(",");
                caches.push(Cache {
                    properties: Properties::from([
                        ("processor_id_low", first_id + cu),
                        ("level", kind.level),
                        ("size", kind.kib),
                        ("cache_line_size", kind.line_bytes),
                        ("cache_lines_per_tag", 1),
                        ("association", 16),
                        ("latency", 1),
                        ("type", kind.kind),
                    ]),
                    sibling_map: map,
                });
                cu += kind.cus;
            }
        }
        caches
    }
}

/// A PCIe link, as `io_links/<i>/properties` has it.
fn link(profile: Profile, from: u64, to: u64, max: u64, sdma_mask: u64, flags: u64) -> Properties {
    let mut properties = Properties::from([
        ("type", 2),
        ("version_major", 0),
        ("version_minor", 0),
        ("node_from", from),
        ("node_to", to),
        ("weight", 20),
        ("min_latency", 0),
        ("max_latency", 0),
        ("min_bandwidth", 312),
        ("max_bandwidth", max),
        ("recommended_transfer_size", 0),
        ("recommended_sdma_engine_id_mask", sdma_mask),
        ("flags", flags),
    ]);
    if profile == Profile::V6_1 {
        properties.remove("recommended_sdma_engine_id_mask");
    }
    properties
}

/// The CPU node: all lines that a GPU node has before `max_engine_clk_fcompute`, mostly 0.
fn cpu(profile: Profile, cores: u64, ram_bytes: u64) -> Node {
    let mut properties = Properties::from([("cpu_cores_count", cores)]);
    for name in [
        "simd_count",
        "mem_banks_count",
        "caches_count",
        "io_links_count",
        "p2p_links_count",
        "cpu_core_id_base",
        "simd_id_base",
        "max_waves_per_simd",
        "lds_size_in_kb",
        "gds_size_in_kb",
        "num_gws",
        "wave_front_size",
        "array_count",
        "simd_arrays_per_engine",
        "cu_per_simd_array",
        "simd_per_cu",
        "max_slots_scratch_cu",
        "gfx_target_version",
        "vendor_id",
        "device_id",
        "location_id",
        "domain",
        "drm_render_minor",
        "hive_id",
        "num_sdma_engines",
        "num_sdma_xgmi_engines",
        "num_sdma_queues_per_engine",
        "num_cp_queues",
    ] {
        properties.set(name, 0);
    }
    if profile.publishes_save_sizes() {
        properties.set("cwsr_size", 0);
        properties.set("ctl_stack_size", 0);
    }
    properties.set("max_engine_clk_ccompute", 5000);
    Node {
        properties,
        mem_banks: vec![Properties::from([
            ("heap_type", 0),
            ("size_in_bytes", ram_bytes),
            ("flags", 0),
            ("width", 64),
            ("mem_clk_max", 3200),
        ])],
        ..Node::default()
    }
}

/// One CPU node and the GPUs of `presets`, each linked to it.
pub(crate) fn topology(presets: &[Preset], profile: Profile, svm: bool) -> Topology {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut nodes = vec![cpu(profile, u64::try_from(cores).unwrap_or(1), 32 << 30)];
    for (preset, ordinal) in presets.iter().zip(0_u64..) {
        let index = ordinal + 1;
        let mut node = preset.node(index, ordinal, profile, svm);
        // KFD's ids are a hash, made unique by counting up.
        while nodes.iter().any(|other: &Node| other.gpu_id == node.gpu_id) {
            node.gpu_id += 1;
        }
        if let Some(info) = GpuInfo::new(nodes.len(), &without_sizes(&node))
            && profile.publishes_save_sizes()
        {
            node.properties.set("cwsr_size", info.save_area.cwsr);
            node.properties.set("ctl_stack_size", info.save_area.control_stack);
        }
        if let Some(cpu) = nodes.first_mut().filter(|_| preset.large_bar) {
            let mask = preset.sdma_mask();
            cpu.io_links.push(link(profile, 0, index, preset.link_mb_per_s, mask, 3));
        }
        nodes.push(node);
    }
    let system = [("platform_oem", 0), ("platform_id", 0), ("platform_rev", 0)];
    Topology { generation: 1, system: Properties::from(system), nodes }
}

fn without_sizes(node: &Node) -> Node {
    let mut node = node.clone();
    node.properties.remove("cwsr_size");
    node.properties.remove("ctl_stack_size");
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gfx1100_node_has_the_numbers_of_a_real_dump() {
        let topology = topology(&[Preset::gfx1100()], Profile::V6_12, true);
        let gpu = &topology.nodes[1];
        for (name, value) in [
            ("simd_count", 192),
            ("array_count", 12),
            ("cwsr_size", 46_047_232),
            ("ctl_stack_size", 40960),
            ("simd_id_base", 2_147_487_744),
            ("location_id", 768),
            ("debug_prop", 1495),
        ] {
            assert_eq!(gpu.properties.get(name), Some(value), "{name}");
        }
        assert_eq!(gpu.caches.len(), 206);
        assert_eq!(gpu.properties.get("capability"), Some(0x2803_a280));
    }

    #[test]
    fn the_cpu_node_has_the_lines_that_debian_kernels_show() {
        let lines = |profile| cpu(profile, 1, 1).properties.iter().count();
        assert_eq!(lines(Profile::V6_12), 32);
        assert_eq!(lines(Profile::V6_1), 30);
    }

    #[test]
    fn two_gpus_of_a_kind_have_different_ids_and_places() {
        let topology = topology(&[Preset::gfx90a(), Preset::gfx90a()], Profile::V6_12, false);
        let (one, two) = (&topology.nodes[1], &topology.nodes[2]);
        assert_ne!(one.gpu_id, two.gpu_id);
        for name in ["location_id", "drm_render_minor", "unique_id", "simd_id_base"] {
            assert_ne!(one.properties.get(name), two.properties.get(name), "{name}");
        }
        assert_eq!(one.properties.get("cwsr_size"), Some(67_170_304));
        assert_eq!(one.properties.get("capability"), Some(0x2477_a280));
    }
}
