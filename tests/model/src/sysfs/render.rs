//! The topology as the files below `/sys` (docs/ABI.md §Topology).

use std::fmt::Write as _;

use kfd::sys::Errno;

use super::{Cache, Properties, Topology, Tree};
use crate::gpu::GpuInfo;

/// Where KFD's own directory is; `/sys/class/kfd/kfd` links to it.
pub(crate) const KFD: &str = "/sys/devices/virtual/kfd/kfd";

/// The PCI root that the GPUs are below: no usual machine has one of this number, so that the
/// machine's own devices stay visible beside them.
pub(crate) const PCI_ROOT: &str = "/sys/devices/pci0000:02";

fn lines(properties: &Properties) -> String {
    let mut text = String::new();
    for (name, value) in properties.iter() {
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

fn cache(cache: &Cache) -> String {
    let mut text = lines(&cache.properties);
    let _ = writeln!(text, "sibling_map {}", cache.sibling_map);
    text
}

fn count(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

/// Renders the topology, and for each GPU what `/sys/class/drm` and its PCI device show.
///
/// The nodes of hidden GPUs are listed, but none of their files can be read.
pub(crate) fn render(topology: &Topology, gpus: &[GpuInfo], major: u32) -> Tree {
    let mut tree = Tree::default();
    tree.link("/sys/class/kfd/kfd", "../../devices/virtual/kfd/kfd");
    tree.file(&format!("{KFD}/dev"), format!("{major}:0\n"));
    tree.directory(&format!("{KFD}/proc"));
    let base = format!("{KFD}/topology");
    tree.file(&format!("{base}/generation_id"), format!("{}\n", topology.generation));
    tree.file(&format!("{base}/system_properties"), lines(&topology.system));
    tree.directory(&format!("{base}/nodes"));
    for (index, node) in topology.nodes.iter().enumerate() {
        let hidden = gpus.iter().any(|gpu| gpu.node == index && gpu.hidden);
        let at = format!("{base}/nodes/{index}");
        let mut put = |path: String, text: String| {
            if hidden { tree.unreadable(&path, Errno::PERM) } else { tree.file(&path, text) }
        };
        let mut properties = node.properties.clone();
        for (name, items) in [
            ("mem_banks_count", node.mem_banks.len()),
            ("caches_count", node.caches.len()),
            ("io_links_count", node.io_links.len()),
            ("p2p_links_count", node.p2p_links.len()),
        ] {
            if properties.get(name).is_some() {
                properties.set(name, count(items));
            }
        }
        put(format!("{at}/gpu_id"), format!("{}\n", node.gpu_id));
        put(format!("{at}/name"), format!("{}\n", node.name));
        put(format!("{at}/properties"), lines(&properties));
        for (kind, list) in [
            ("mem_banks", &node.mem_banks),
            ("io_links", &node.io_links),
            ("p2p_links", &node.p2p_links),
        ] {
            for (i, item) in list.iter().enumerate() {
                put(format!("{at}/{kind}/{i}/properties"), lines(item));
            }
        }
        for (i, item) in node.caches.iter().enumerate() {
            put(format!("{at}/caches/{i}/properties"), cache(item));
        }
        for kind in ["mem_banks", "caches", "io_links", "p2p_links", "perf"] {
            tree.directory(&format!("{at}/{kind}"));
        }
    }
    tree.directory("/sys/class/drm");
    for gpu in gpus {
        drm(&mut tree, gpu);
    }
    for (name, content) in
        [("initstate", "live\n"), ("refcnt", "1\n"), ("coresize", "13434880\n"), ("taint", "\n")]
    {
        tree.file(&format!("/sys/module/amdgpu/{name}"), content);
    }
    tree.directory("/sys/module/amdgpu/holders");
    tree.directory("/sys/bus/pci/drivers/amdgpu");
    tree.link(&format!("/sys/dev/char/{major}:0"), "../../devices/virtual/kfd/kfd");
    tree.directory("/sys/module/amdgpu/parameters");
    tree
}

/// `/sys/class/drm/renderD<minor>` and the PCI device behind it.
fn drm(tree: &mut Tree, gpu: &GpuInfo) {
    let minor = gpu.render_minor;
    let address = gpu.pci_address();
    let pci = format!("{PCI_ROOT}/{address}");
    let node = format!("{pci}/drm/renderD{minor}");
    tree.file(&format!("{node}/dev"), format!("226:{minor}\n"));
    tree.link(&format!("{node}/device"), "../..");
    for link in [format!("/sys/class/drm/renderD{minor}"), format!("/sys/dev/char/226:{minor}")] {
        tree.link(&link, &node);
    }
    tree.link(&format!("{node}/subsystem"), "/sys/class/drm");
    tree.file(
        &format!("{node}/uevent"),
        format!("MAJOR=226\nMINOR={minor}\nDEVNAME=dri/renderD{minor}\nDEVTYPE=drm_minor\n"),
    );
    tree.link(&format!("{pci}/subsystem"), "/sys/bus/pci");
    tree.link(&format!("{pci}/driver"), "/sys/bus/pci/drivers/amdgpu");
    let id = format!("{:04X}:{:04X}", gpu.vendor_id, gpu.device_id);
    tree.file(
        &format!("{pci}/uevent"),
        format!("DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID={id}\nPCI_SLOT_NAME={address}\n"),
    );
    for (name, value) in [("revision", "0x00\n"), ("class", "0x038000\n"), ("numa_node", "-1\n")] {
        tree.file(&format!("{pci}/{name}"), value);
    }
    tree.file(&format!("{pci}/subsystem_vendor"), format!("{:#06x}\n", gpu.vendor_id));
    tree.file(&format!("{pci}/subsystem_device"), "0x0000\n");
    tree.file(&format!("{pci}/vendor"), format!("{:#06x}\n", gpu.vendor_id));
    tree.file(&format!("{pci}/device"), format!("{:#06x}\n", gpu.device_id));
    tree.file(&format!("{pci}/mem_info_vram_total"), format!("{}\n", gpu.own_bytes()));
    tree.file(
        &format!("{pci}/mem_info_vis_vram_total"),
        format!("{}\n", if gpu.large_bar { gpu.own_bytes() } else { 256 << 20 }),
    );
}
