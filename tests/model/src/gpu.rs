//! What the modelled kernel knows of a GPU, derived from its topology node.

use crate::Target;
use crate::sysfs::{Node, Properties};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// Sizes that CREATE_QUEUE compares with (docs/ABI.md §Model, save area).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SaveArea {
    /// Bytes of the control stack of one XCC.
    pub(crate) control_stack: u64,
    /// Bytes of control stack and wave data of one XCC.
    pub(crate) cwsr: u64,
    /// Bytes of the debugger's part of one XCC.
    pub(crate) debug: u64,
}

/// A GPU of the model.
#[derive(Clone, Debug)]
pub(crate) struct GpuInfo {
    /// Index of its topology node.
    pub(crate) node: usize,
    /// KFD's id, never 0.
    pub(crate) id: u32,
    /// What executes its code; `None` when no such executor exists.
    pub(crate) target: Option<Target>,
    /// `gfx_target_version`.
    pub(crate) gfx_version: u64,
    /// Accelerator complex dies, at least 1.
    pub(crate) xccs: u64,
    /// Compute units of an XCC.
    pub(crate) cus_per_xcc: u64,
    /// Save area sizes.
    pub(crate) save_area: SaveArea,
    /// Bytes of local memory, as KFD has it: video memory, or an APU's share of system memory.
    pub(crate) vram_bytes: u64,
    /// An APU of a kernel that serves requests of video memory from system memory.
    pub(crate) unified: bool,
    /// Whether the CPU can address all of it.
    pub(crate) large_bar: bool,
    /// Minor number of the render node.
    pub(crate) render_minor: u64,
    /// PCI vendor.
    pub(crate) vendor_id: u64,
    /// PCI device.
    pub(crate) device_id: u64,
    /// PCI bus, device and function.
    pub(crate) location: u64,
    /// PCI domain.
    pub(crate) domain: u64,
    /// xGMI hive, 0 when there is none.
    pub(crate) hive: u64,
    /// Shader engines of an XCC.
    pub(crate) engines: u64,
    /// Bits and MHz of its memory, as the topology says.
    pub(crate) memory_bits: u64,
    pub(crate) memory_mhz: u64,
    /// SDMA engines for PCIe.
    pub(crate) sdma_engines: u64,
    /// SDMA engines for xGMI.
    pub(crate) xgmi_engines: u64,
    /// Queues of an SDMA engine.
    pub(crate) sdma_queues: u64,
    /// Global wave sync resources: 0 or 64.
    pub(crate) gws: u64,
    /// LDS bytes of a workgroup, at most.
    pub(crate) lds_bytes: u64,
    /// Frequency of the clock counter.
    pub(crate) counter_khz: u64,
    /// Everything that its topology node says.
    pub(crate) properties: Properties,
    /// The device cgroup keeps it from this process.
    pub(crate) hidden: bool,
}

/// What an APU's firmware sets apart of system memory, which no topology tells; assumed.
const CARVE_OUT: u64 = 512 << 20;

const fn align(value: u64, to: u64) -> u64 {
    value.div_ceil(to).saturating_mul(to)
}

/// The kernel's formula (kfd_queue_ctx_save_restore_size of 6.12.117, docs/ABI.md §Model).
fn save_area(node: &Node, version: u64, xccs: u64) -> SaveArea {
    let property = |name| node.properties.get(name).unwrap_or(0);
    let cus = property("simd_count").checked_div(property("simd_per_cu")).unwrap_or(0) / xccs;
    let gfx9 = version < 10_01_00;
    // sysfs multiplies array_count by the number of XCCs, the formula's input is per XCC.
    let engines = (property("array_count") / xccs)
        .checked_div(property("simd_arrays_per_engine"))
        .unwrap_or(0);
    let waves = if gfx9 { (cus * 40).min(engines * 512) } else { cus * 32 };
    let vgpr_bytes = match version {
        9_00_08 | 9_00_10 | 9_04_00..=9_04_99 => 0x8_0000,
        11_00_00 | 11_00_01 | 11_05_01 | 12_00_00 | 12_00_01 => 0x6_0000,
        _ => 0x4_0000,
    };
    let (sgpr_bytes, lds_bytes, hwreg_bytes) = (0x4000, 0x1_0000, 0x1000);
    let wave_data = align(cus * (vgpr_bytes + sgpr_bytes + lds_bytes + hwreg_bytes), PAGE);
    let header_bytes = 40;
    let stack = align(header_bytes + waves * if gfx9 { 8 } else { 12 } + 8, PAGE);
    let stack = if version / 1_00_00 == 10 { stack.min(0x7000) } else { stack };
    SaveArea { control_stack: stack, cwsr: stack + wave_data, debug: align(waves * 32, 64) }
}

/// The LLVM name of a `gfx_target_version`: minor and step are hexadecimal digits of the name.
fn target(version: u64) -> Option<Target> {
    let (major, minor, step) = (version / 1_00_00, version / 100 % 100, version % 100);
    format!("gfx{major}{minor:x}{step:x}").parse().ok()
}

impl GpuInfo {
    /// Reads the facts of node number `index`; `None` for a CPU node.
    pub(crate) fn new(index: usize, node: &Node) -> Option<Self> {
        if node.gpu_id == 0 {
            return None;
        }
        let property = |name| node.properties.get(name).unwrap_or(0);
        let version = property("gfx_target_version");
        let xccs = property("num_xcc").max(1);
        let bank = |heap| {
            let banks = node.mem_banks.iter().filter(move |b| b.get("heap_type") == Some(heap));
            banks.filter_map(|bank| bank.get("size_in_bytes")).sum::<u64>()
        };
        let mut save_area = save_area(node, version, xccs);
        // A loaded topology may come from a kernel with another formula: its word counts.
        if let Some(bytes) = node.properties.get("cwsr_size") {
            save_area.cwsr = bytes;
        }
        if let Some(bytes) = node.properties.get("ctl_stack_size") {
            save_area.control_stack = bytes;
        }
        let target = target(version);
        Some(Self {
            node: index,
            id: node.gpu_id,
            target,
            gfx_version: version,
            xccs,
            cus_per_xcc: property("simd_count").checked_div(property("simd_per_cu")).unwrap_or(0)
                / xccs,
            save_area,
            vram_bytes: bank(1) + bank(2),
            unified: matches!(target, Some(Target::Gfx1103 | Target::Gfx1150 | Target::Gfx1151)),
            large_bar: bank(2) == 0 && bank(1) > 0,
            render_minor: property("drm_render_minor"),
            vendor_id: property("vendor_id"),
            device_id: property("device_id"),
            location: property("location_id"),
            domain: property("domain"),
            hive: property("hive_id"),
            engines: (property("array_count") / xccs)
                .checked_div(property("simd_arrays_per_engine"))
                .unwrap_or(1),
            memory_bits: node.mem_banks.first().and_then(|b| b.get("width")).unwrap_or(0),
            memory_mhz: node.mem_banks.first().and_then(|b| b.get("mem_clk_max")).unwrap_or(0),
            sdma_engines: property("num_sdma_engines"),
            xgmi_engines: property("num_sdma_xgmi_engines"),
            sdma_queues: property("num_sdma_queues_per_engine"),
            gws: property("num_gws"),
            lds_bytes: property("lds_size_in_kb") * 1024,
            counter_khz: match version {
                9_00_00 => 27_000,
                9_00_06 | 9_00_08 | 9_00_10 => 25_000,
                // Linux takes an APU's 100 MHz for 99.81 (soc21_get_xclk).
                11_00_03 | 11_05_00..=11_05_03 => 99_810,
                _ => 100_000,
            },
            properties: node.properties.clone(),
            hidden: false,
        })
    }

    /// `domain:bus:device.function` of the PCI device.
    pub(crate) fn pci_address(&self) -> String {
        let (bus, slot) = (self.location >> 8 & 0xff, self.location >> 3 & 0x1f);
        format!("{:04x}:{bus:02x}:{slot:02x}.{}", self.domain, self.location & 7)
    }

    /// Shader arrays of a shader engine.
    pub(crate) fn arrays_per_engine(&self) -> u64 {
        self.properties.get("simd_arrays_per_engine").unwrap_or(1)
    }

    /// As kernels before December 2025 have it: they take a smaller vector register file for gfx1151
    /// (docs/ABI.md §Save area).
    pub(crate) fn with_older_save_area(mut self) -> Self {
        if self.gfx_version == 11_05_01 {
            let larger = self.cus_per_xcc * 0x2_0000;
            self.save_area.cwsr = self.save_area.cwsr.saturating_sub(larger);
        }
        self
    }

    /// Bytes of memory that is the GPU's alone.
    pub(crate) const fn own_bytes(&self) -> u64 {
        if self.unified { CARVE_OUT } else { self.vram_bytes }
    }

    /// The topology's capability bits.
    pub(crate) fn capability(&self) -> u64 {
        self.properties.get("capability").unwrap_or(0)
    }

    /// `KFD_IS_SVM_API_SUPPORTED`: what the kernel shows in the topology, and so what it does.
    pub(crate) fn has_svm(&self) -> bool {
        self.capability() & u64::from(kfd::abi::Capability::SVMAPI_SUPPORTED.bits()) != 0
    }

    /// `KFD_SUPPORT_XNACK_PER_PROCESS`.
    pub(crate) const fn selects_xnack(&self) -> bool {
        matches!(self.gfx_version, 9_00_10 | 9_04_00..=9_04_03)
    }

    /// `kfd_dbg_has_cwsr_workaround`: GC 11.0.0 to 11.0.3.
    pub(crate) const fn has_debug_workaround(&self) -> bool {
        !self.traps_enabled()
    }

    /// `kfd_dbg_has_gws_support`, with firmware of gfx9 that is new enough.
    pub(crate) const fn debugs_with_gws(&self) -> bool {
        !matches!(self.gfx_version, 11_00_00..=11_99_99)
    }

    /// Whether this chip is scheduled by MES: gfx11 and newer.
    pub(crate) const fn has_mes(&self) -> bool {
        self.gfx_version >= 11_00_00
    }

    /// Queues that one process may have on this GPU.
    pub(crate) const fn max_queues(&self) -> usize {
        match self.gfx_version {
            9_04_02 | 9_04_03 => 255,
            _ => 127,
        }
    }

    /// STATUS.TRAP_EN of waves when no debugger is attached. Off where KFD works around a bug of
    /// GC 11.0.0 to 11.0.3 (docs/ABI.md §Trap): waves run privileged there and enter no handler.
    pub(crate) const fn traps_enabled(&self) -> bool {
        !matches!(self.gfx_version, 11_00_00..=11_00_03)
    }

    /// First reserved doorbell of the process's page; the window ends where its mirror begins.
    pub(crate) const fn first_reserved_doorbell(&self) -> u32 {
        if self.gfx_version == 9_00_00 { 0xf0 } else { 0x100 }
    }

    /// Bytes of the save area's allocation for `cwsr` bytes per XCC.
    pub(crate) fn save_area_bytes(&self, cwsr: u64) -> u64 {
        align((cwsr + self.save_area.debug) * self.xccs, PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::Properties;

    /// CUs, SIMDs per CU, arrays, arrays per engine, XCCs.
    fn sizes(
        version: u64,
        cus: u64,
        simds: u64,
        arrays: u64,
        per_engine: u64,
        xccs: u64,
    ) -> SaveArea {
        let node = Node {
            properties: Properties::from([
                ("simd_count", cus * simds * xccs),
                ("simd_per_cu", simds),
                ("array_count", arrays * xccs),
                ("simd_arrays_per_engine", per_engine),
            ]),
            ..Node::default()
        };
        save_area(&node, version, xccs)
    }

    #[test]
    fn save_area_sizes_equal_those_of_real_machines() {
        // sysfs of a real RX 7900 XTX and MI300X, and a public report of a gfx1012.
        let (stack, cwsr, debug) = (0xa000, 46_047_232, 0x1_8000);
        let expected = SaveArea { control_stack: stack, cwsr, debug };
        assert_eq!(sizes(11_00_00, 96, 2, 12, 2, 1), expected);
        let mi300x = sizes(9_04_02, 38, 4, 4, 1, 8);
        assert_eq!((mi300x.control_stack, mi300x.cwsr), (12288, 23_203_840));
        assert_eq!(sizes(10_01_02, 20, 2, 2, 2, 1).cwsr, 0x6a_6000);
    }

    #[test]
    fn a_target_version_becomes_the_name_with_hexadecimal_digits() {
        assert_eq!(target(9_00_10), Some(Target::Gfx90a));
        assert_eq!(target(11_05_01), Some(Target::Gfx1151));
        assert_eq!(target(10_03_00), None);
    }
}
