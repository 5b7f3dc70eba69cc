//! `devices`: the nodes of the machine with what matters to a runtime.

use std::io::{self, Write};

use kfd::Kfd;
use kfd::access::AccessProblem;
use kfd::topology::{Link, Node};
use serde::Serialize;

use super::device::{self, Device, DeviceSummary};
use crate::cli::DeviceArgs;
use crate::exit::{Code, Failure};
use crate::render::{Output, Report, table};

#[derive(Serialize)]
struct Devices {
    device: DeviceSummary,
    topology_generation: Option<u64>,
    nodes: Vec<NodeRow>,
    /// Nodes and GPUs that cannot be used, with the reason.
    unusable: Vec<Unusable>,
}

#[derive(Serialize)]
struct NodeRow {
    node: u32,
    kind: &'static str,
    name: Option<String>,
    cpu_cores: Option<u32>,
    system_memory_bytes: u64,
    gpu: Option<GpuRow>,
    links: Vec<LinkRow>,
}

#[derive(Serialize)]
struct GpuRow {
    gpu_id: u32,
    target: Option<String>,
    usable: bool,
    compute_units: Option<u32>,
    simds: Option<u32>,
    wave_size: Option<u32>,
    max_waves_per_simd: Option<u32>,
    lds_kib_per_compute_unit: Option<u32>,
    shader_arrays: Option<u32>,
    xccs: u32,
    max_clock_mhz: Option<u32>,
    vram_bytes: u64,
    cpu_visible_vram_bytes: u64,
    large_bar: bool,
    /// What can still be allocated, where KFD tells (1.9).
    available_memory_bytes: Option<u64>,
    render_node: Option<String>,
    pci_address: Option<String>,
    pci_vendor: Option<u32>,
    pci_device: Option<u32>,
    unique_id: Option<String>,
    sdma_engines: Option<u32>,
    xgmi_sdma_engines: Option<u32>,
    compute_queues: Option<u32>,
    global_wave_sync: Option<u32>,
    firmware_compute: Option<u32>,
    firmware_sdma: Option<u32>,
    save_area_bytes: Option<u32>,
    control_stack_bytes: Option<u32>,
    sram_ecc: bool,
    capabilities: Vec<String>,
    caches: Vec<CacheRow>,
}

/// Caches of one kind.
#[derive(PartialEq, Serialize)]
struct CacheRow {
    level: Option<u32>,
    kib: Option<u32>,
    line_bytes: Option<u32>,
    data: bool,
    instruction: bool,
    count: usize,
}

#[derive(Serialize)]
struct LinkRow {
    to_node: Option<u32>,
    kind: &'static str,
    peer_to_peer: bool,
    weight: Option<u32>,
    max_bandwidth_mb_per_s: Option<u32>,
    enabled: bool,
    coherent: bool,
    atomics_32_bit: bool,
    atomics_64_bit: bool,
}

#[derive(Serialize)]
struct Unusable {
    reason: String,
    remedy: String,
}

/// Link flags. Source: docs/ABI.md §Topology.
const LINK_ENABLED: u32 = 1;
const LINK_NON_COHERENT: u32 = 2;
const LINK_NO_ATOMICS_32: u32 = 4;
const LINK_NO_ATOMICS_64: u32 = 8;

/// Runs `devices`.
pub fn run(args: &DeviceArgs, out: &Output) -> Result<Code, Failure> {
    match device::select(args) {
        Ok(device) => {
            out.report("devices", &collect(device))?;
            Ok(Code::Passed)
        }
        // KFD answers, so its nodes can be shown all the same.
        Err(failure) if failure.code() == Code::NoGpu => {
            let Ok(device) = device::without_gpu(args) else { return Err(failure) };
            out.report("devices", &collect(device))?;
            Err(failure)
        }
        Err(failure) => Err(failure),
    }
}

fn collect(device: Device) -> Devices {
    let Device { kfd, summary, .. } = device;
    let topology = kfd.topology();
    let unusable = |problem: &AccessProblem| Unusable {
        reason: problem.to_string(),
        remedy: problem.remedy(),
    };
    Devices {
        device: summary,
        topology_generation: topology.generation,
        nodes: topology.nodes.iter().map(|node| row(&kfd, node)).collect(),
        unusable: kfd.unusable().iter().map(unusable).collect(),
    }
}

fn row(kfd: &Kfd, node: &Node) -> NodeRow {
    let system = node.mem_banks.iter().filter(|bank| bank.heap_type == Some(0));
    let direct = node.io_links.iter().map(|link| link_row(link, false));
    let peer = node.p2p_links.iter().map(|link| link_row(link, true));
    NodeRow {
        node: node.id.0,
        kind: if node.is_gpu() { "gpu" } else { "cpu" },
        name: node.name.clone(),
        cpu_cores: node.properties.cpu_cores_count.filter(|_| !node.is_gpu()),
        system_memory_bytes: system.filter_map(|bank| bank.size_in_bytes).sum(),
        gpu: node.is_gpu().then(|| gpu_row(kfd, node)),
        links: direct.chain(peer).collect(),
    }
}

fn gpu_row(kfd: &Kfd, node: &Node) -> GpuRow {
    let gpu = kfd.gpu_of(node.id);
    let properties = &node.properties;
    let vram_bytes = node.vram_bytes();
    let capability = node.capability();
    GpuRow {
        gpu_id: node.gpu_id.0,
        target: node.gfx_version().map(|version| version.to_string()),
        usable: gpu.is_some(),
        compute_units: node.compute_units(),
        simds: properties.simd_count,
        wave_size: properties.wave_front_size,
        max_waves_per_simd: properties.max_waves_per_simd,
        lds_kib_per_compute_unit: properties.lds_size_in_kb,
        shader_arrays: properties.array_count,
        xccs: node.num_xcc(),
        max_clock_mhz: properties.max_engine_clk_fcompute,
        vram_bytes,
        cpu_visible_vram_bytes: node.visible_vram_bytes(),
        large_bar: vram_bytes != 0 && node.visible_vram_bytes() == vram_bytes,
        available_memory_bytes: gpu.and_then(|gpu| gpu.available_memory().ok()),
        render_node: properties.drm_render_minor.map(|minor| format!("/dev/dri/renderD{minor}")),
        pci_address: pci_address(node),
        pci_vendor: properties.vendor_id,
        pci_device: properties.device_id,
        unique_id: properties.unique_id.filter(|id| *id != 0).map(|id| format!("{id:#018x}")),
        sdma_engines: properties.num_sdma_engines,
        xgmi_sdma_engines: properties.num_sdma_xgmi_engines,
        compute_queues: properties.num_cp_queues,
        global_wave_sync: properties.num_gws,
        firmware_compute: properties.fw_version,
        firmware_sdma: properties.sdma_fw_version,
        save_area_bytes: properties.cwsr_size.filter(|bytes| *bytes != 0),
        control_stack_bytes: properties.ctl_stack_size.filter(|bytes| *bytes != 0),
        sram_ecc: capability.contains(kfd::topology::Capability::SRAM_EDC),
        capabilities: capability.iter_names().map(|(name, _)| name.to_lowercase()).collect(),
        caches: caches(node),
    }
}

/// `domain:bus:device.function`, from bus << 8 | device << 3 | function.
fn pci_address(node: &Node) -> Option<String> {
    let location = node.properties.location_id?;
    let domain = node.properties.domain.unwrap_or(0);
    let (bus, device, function) = (location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"))
}

fn caches(node: &Node) -> Vec<CacheRow> {
    let mut rows: Vec<CacheRow> = Vec::new();
    for cache in &node.caches {
        let kind = cache.kind.unwrap_or(0);
        let new = CacheRow {
            level: cache.level,
            kib: cache.size,
            line_bytes: cache.cache_line_size,
            data: kind & 1 != 0,
            instruction: kind & 2 != 0,
            count: 1,
        };
        match rows.iter_mut().find(|row| CacheRow { count: row.count, ..new } == **row) {
            Some(row) => row.count += 1,
            None => rows.push(new),
        }
    }
    rows
}

fn link_row(link: &Link, peer_to_peer: bool) -> LinkRow {
    let flags = link.flags.unwrap_or(0);
    LinkRow {
        to_node: link.node_to,
        kind: match link.kind {
            Some(1) => "HyperTransport",
            Some(2) => "PCIe",
            Some(5) => "QPI",
            Some(11) => "xGMI",
            _ => "unknown",
        },
        peer_to_peer,
        weight: link.weight,
        max_bandwidth_mb_per_s: link.max_bandwidth,
        enabled: flags & LINK_ENABLED != 0,
        coherent: flags & LINK_NON_COHERENT == 0,
        atomics_32_bit: flags & LINK_NO_ATOMICS_32 == 0,
        atomics_64_bit: flags & LINK_NO_ATOMICS_64 == 0,
    }
}

/// Bytes in the largest unit that keeps a digit before the point.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut rest = value;
    let mut tenths = 0;
    while rest >= 1024 && unit + 1 < UNITS.len() {
        tenths = rest % 1024 * 10 / 1024;
        rest /= 1024;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if tenths == 0 { format!("{rest} {name}") } else { format!("{rest}.{tenths} {name}") }
}

/// A number, or `?` where it is not known.
fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| value.to_string())
}

impl Report for Devices {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.device.headline())?;
        let mut nodes = table(&["node", "kind", "target", "name", "units", "memory", "PCI", "use"]);
        for node in &self.nodes {
            let row = match &node.gpu {
                None => [
                    node.node.to_string(),
                    "CPU".to_owned(),
                    String::new(),
                    node.name.clone().unwrap_or_default(),
                    format!("{} cores", known(node.cpu_cores)),
                    bytes(node.system_memory_bytes),
                    String::new(),
                    String::new(),
                ],
                Some(gpu) => [
                    node.node.to_string(),
                    "GPU".to_owned(),
                    known(gpu.target.as_ref()),
                    node.name.clone().unwrap_or_default(),
                    format!("{} CUs", known(gpu.compute_units)),
                    bytes(gpu.vram_bytes),
                    gpu.pci_address.clone().unwrap_or_default(),
                    if gpu.usable { "yes" } else { "no, see below" }.to_owned(),
                ],
            };
            nodes.add_row(row);
        }
        writeln!(out, "{nodes}")?;
        for node in &self.nodes {
            if let Some(gpu) = &node.gpu {
                writeln!(out)?;
                gpu_text(out, node.node, gpu)?;
            }
            for link in &node.links {
                link_text(out, node.node, link)?;
            }
        }
        if !self.unusable.is_empty() {
            writeln!(out, "\nHidden or unusable:")?;
        }
        for problem in &self.unusable {
            writeln!(out, "- {}\n  remedy: {}", problem.reason, problem.remedy)?;
        }
        Ok(())
    }
}

fn gpu_text(out: &mut dyn Write, node: u32, gpu: &GpuRow) -> io::Result<()> {
    writeln!(
        out,
        "node {node}: GPU id {}, {}, wave{} x {} waves per SIMD, {} SIMDs, {} XCC, {} KiB LDS, {} MHz",
        gpu.gpu_id,
        known(gpu.target.as_ref()),
        known(gpu.wave_size),
        known(gpu.max_waves_per_simd),
        known(gpu.simds),
        gpu.xccs,
        known(gpu.lds_kib_per_compute_unit),
        known(gpu.max_clock_mhz)
    )?;
    writeln!(
        out,
        "  memory: {} VRAM, {} of it visible to the CPU, {} available",
        bytes(gpu.vram_bytes),
        bytes(gpu.cpu_visible_vram_bytes),
        gpu.available_memory_bytes.map_or_else(|| "?".to_owned(), bytes)
    )?;
    writeln!(
        out,
        "  {}, device {:#06x}, unique id {}, firmware: compute {}, SDMA {}",
        known(gpu.render_node.as_ref()),
        gpu.pci_device.unwrap_or(0),
        known(gpu.unique_id.as_ref()),
        known(gpu.firmware_compute),
        known(gpu.firmware_sdma)
    )?;
    writeln!(
        out,
        "  queues: {} compute, {} SDMA engines (+{} for xGMI)",
        known(gpu.compute_queues),
        known(gpu.sdma_engines),
        known(gpu.xgmi_sdma_engines)
    )?;
    let caches = gpu.caches.iter().map(|cache| {
        let kind = match (cache.data, cache.instruction) {
            (true, false) => " data",
            (false, true) => " instruction",
            _ => "",
        };
        format!("{} x L{}{kind} {} KiB", cache.count, known(cache.level), known(cache.kib))
    });
    writeln!(out, "  caches: {}", caches.collect::<Vec<_>>().join(", "))?;
    writeln!(out, "  capabilities: {}", gpu.capabilities.join(", "))
}

fn link_text(out: &mut dyn Write, node: u32, link: &LinkRow) -> io::Result<()> {
    let mut notes = Vec::new();
    for (set, text) in [
        (!link.enabled, "disabled"),
        (!link.coherent, "not coherent"),
        (!link.atomics_32_bit, "no 32-bit atomics"),
        (!link.atomics_64_bit, "no 64-bit atomics"),
    ] {
        if set {
            notes.push(text);
        }
    }
    let notes = if notes.is_empty() { String::new() } else { format!(", {}", notes.join(", ")) };
    writeln!(
        out,
        "  link {node} -> {}: {}{}, weight {}, {} MB/s{notes}",
        known(link.to_node),
        link.kind,
        if link.peer_to_peer { " peer" } else { "" },
        known(link.weight),
        known(link.max_bandwidth_mb_per_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_one_digit_after_the_point_where_it_is_not_zero() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(24 << 30), "24 GiB");
        assert_eq!(bytes((3 << 20) / 2), "1.5 MiB");
        assert_eq!(bytes(u64::MAX), "16777215.9 TiB");
    }
}
