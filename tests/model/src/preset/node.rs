//! The topology of presets: one CPU node, and a node for each GPU.

use super::{Memory, Preset};
use crate::GpuInfo;
use crate::profile::Profile;
use crate::sysfs::{Node, Properties, Topology};

/// `HSA_CAP_SVMAPI_SUPPORTED`.
const CAPABILITY_SVM: u64 = 1 << 27;

/// Debugger bits, which Linux 6.1 does not have: `HSA_CAP_TRAP_DEBUG_*`.
const CAPABILITY_DEBUG: u64 = 0xf << 15 | 3 << 29;

/// Bytes of system memory of the CPU node.
const RAM_BYTES: u64 = 32 << 30;

/// What of system memory GPUs may use (`ttm_tt_pages_limit`): half of it.
const GTT_BYTES: u64 = RAM_BYTES / 2;

/// First processor id of a GPU (`gpu_processor_id_low` in kfd_crat.c).
const FIRST_PROCESSOR: u64 = 0x8000_1000;

/// What the GPUs before one have taken of what is counted up.
#[derive(Clone, Copy, Debug)]
struct Taken {
    ordinal: u64,
    processors: u64,
    minors: u64,
}

impl Preset {
    /// The topology node number `index`.
    fn node(&self, index: u64, taken: Taken, profile: Profile, svm: bool) -> Node {
        let mut capability = self.capability;
        if !svm {
            capability &= !CAPABILITY_SVM;
        }
        if profile == Profile::V6_1 {
            capability &= !CAPABILITY_DEBUG;
        }
        let first_id = FIRST_PROCESSOR + taken.processors;
        let mut properties = Properties::from([
            ("cpu_cores_count", 0),
            ("simd_count", self.cus * self.simd_per_cu),
            ("mem_banks_count", 0),
            ("caches_count", 0),
            ("io_links_count", 0),
            ("p2p_links_count", 0),
            ("cpu_core_id_base", 0),
            ("simd_id_base", first_id),
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
            ("location_id", ((self.bus + 0x20 * taken.ordinal) % 0x100) << 8),
            ("domain", 0),
            ("drm_render_minor", 128 + taken.minors),
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
            ("unique_id", self.unique_id(taken.ordinal)),
            ("num_xcc", self.xccs),
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
                ("size_in_bytes", self.bank_bytes(profile)),
                ("flags", 0),
                ("width", self.memory_bits),
                ("mem_clk_max", self.memory_mhz),
            ])],
            caches: self.caches(first_id),
            io_links: vec![link(profile, index, 0, self.link_mb_per_s, self.sdma_mask(), 1)],
            p2p_links: Vec::new(),
            properties,
        }
    }

    /// Serial numbers differ; APUs have none.
    fn unique_id(&self, ordinal: u64) -> u64 {
        if self.unique_id == 0 { 0 } else { self.unique_id + ordinal }
    }

    /// What KFD takes for local memory (`amdgpu_amdkfd_get_local_mem_info`): since 6.10 an APU's is
    /// what GPUs may use of system memory, before it was what the firmware sets apart.
    fn bank_bytes(&self, profile: Profile) -> u64 {
        match self.memory {
            Memory::Video { bytes } => bytes,
            Memory::System { carve_out } if profile == Profile::V6_1 => carve_out,
            Memory::System { .. } => GTT_BYTES,
        }
    }

    fn sdma_mask(&self) -> u64 {
        (1 << self.sdma_engines) - 1
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

/// One CPU node and those GPUs of `presets` that the kernel knows, each linked to it.
pub(crate) fn topology(presets: &[Preset], profile: Profile, svm: bool) -> Topology {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut nodes = vec![cpu(profile, u64::try_from(cores).unwrap_or(1), RAM_BYTES)];
    let mut taken = Taken { ordinal: 0, processors: 0, minors: 0 };
    for preset in presets.iter().filter(|preset| preset.is_known_to(profile)) {
        let index = taken.ordinal + 1;
        let mut node = preset.node(index, taken, profile, svm);
        taken.ordinal = index;
        taken.processors += preset.arrays / preset.xccs * preset.cus_per_array;
        taken.minors += preset.minors;
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
    use crate::Target;

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
        assert_eq!(gpu.properties.get("capability"), Some(0x2803_a280));
    }

    #[test]
    fn the_gfx908_node_has_the_numbers_of_a_real_dump() {
        let topology = topology(&[Preset::of(Target::Gfx908)], Profile::V6_12, true);
        let gpu = &topology.nodes[1];
        for (name, value) in [
            ("simd_count", 480),
            ("simd_id_base", 2_147_487_744),
            ("max_waves_per_simd", 10),
            ("array_count", 8),
            ("simd_arrays_per_engine", 1),
            ("cu_per_simd_array", 16),
            ("device_id", 29_580),
            ("num_sdma_engines", 2),
            ("num_sdma_xgmi_engines", 6),
            ("num_sdma_queues_per_engine", 8),
            ("num_cp_queues", 24),
            ("max_engine_clk_fcompute", 1502),
            ("fw_version", 65),
            ("capability", 749_970_048),
            ("debug_prop", 1494),
            ("sdma_fw_version", 18),
        ] {
            assert_eq!(gpu.properties.get(name), Some(value), "{name}");
        }
    }

    #[test]
    fn the_gfx942_node_has_the_numbers_of_a_real_dump() {
        let topology = topology(&[Preset::of(Target::Gfx942)], Profile::V6_12, true);
        let gpu = &topology.nodes[1];
        for (name, value) in [
            ("simd_count", 1216),
            ("max_waves_per_simd", 8),
            ("array_count", 32),
            ("cu_per_simd_array", 10),
            ("num_sdma_xgmi_engines", 14),
            ("capability", 746_037_888),
            ("debug_prop", 1511),
            ("num_xcc", 8),
            ("cwsr_size", 23_203_840),
            ("ctl_stack_size", 12_288),
        ] {
            assert_eq!(gpu.properties.get(name), Some(value), "{name}");
        }
    }

    #[test]
    fn counts_of_every_preset_fit_together() {
        for target in Target::ALL {
            let preset = Preset::of(target);
            assert_eq!(preset.target(), target);
            assert!(preset.cus <= preset.arrays * preset.cus_per_array, "{target}");
            assert_eq!(preset.arrays % (preset.arrays_per_engine * preset.xccs), 0, "{target}");
            let topology = topology(&[preset], Profile::V6_12, false);
            let info = GpuInfo::new(1, &topology.nodes[1]).unwrap();
            assert_eq!(info.target, Some(target));
        }
    }

    #[test]
    fn an_apus_memory_is_what_the_kernel_counts_as_local() {
        let bank = |profile| {
            let topology = topology(&[Preset::of(Target::Gfx1103)], profile, false);
            let bank = &topology.nodes[1].mem_banks[0];
            (bank.get("heap_type"), bank.get("size_in_bytes"))
        };
        assert_eq!(bank(Profile::V6_12), (Some(1), Some(16 << 30)));
        assert_eq!(bank(Profile::V6_1), (Some(1), Some(512 << 20)));
    }

    #[test]
    fn linux_6_1_leaves_out_what_it_does_not_know() {
        let presets = Target::ALL.map(Preset::of);
        assert_eq!(topology(&presets, Profile::V6_1, false).nodes.len(), 1 + 8);
        assert_eq!(topology(&presets, Profile::V6_12, false).nodes.len(), 1 + 11);
    }

    #[test]
    fn all_presets_together_have_places_of_their_own() {
        let topology = topology(&Target::ALL.map(Preset::of), Profile::V6_12, false);
        for name in ["location_id", "drm_render_minor", "simd_id_base"] {
            let gpus = topology.nodes.iter().filter(|node| node.gpu_id != 0);
            let mut values: Vec<_> = gpus.map(|node| node.properties.get(name)).collect();
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), 11, "{name}");
        }
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
