//! The machine as KFD describes it in sysfs.
//!
//! Whatever cannot be read is skipped and listed with the reason: in a container some nodes are
//! hidden, and old kernels lack files. Source: docs/ABI.md §Topology.

mod properties;

use std::fmt;

use properties::single_number;
pub use properties::{Cache, Link, MemBank, NodeProperties, SystemProperties, TopologyError};

use crate::ids::{GpuId, NodeId};
use crate::ioctl::MAX_INTERRUPTIONS;
use crate::sys::{Errno, Kernel, OpenFlags};

/// Where the topology is, best first: the second is a link to the first.
const ROOTS: [&str; 2] = ["/sys/devices/virtual/kfd/kfd/topology", "/sys/class/kfd/kfd/topology"];
/// No topology file comes near this size; anything longer is not one.
const FILE_LIMIT: usize = 1 << 16;
/// How often a topology that changes under the reader is read anew.
const READS: u32 = 16;

/// Version of a GPU's instruction set, as in `gfx_target_version`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GfxVersion(u32);

impl GfxVersion {
    /// Stands for a version that was not read.
    pub(crate) const UNKNOWN: Self = Self(0);
    pub(crate) const GFX1151: Self = Self(110_501);

    /// From major * 10000 + minor * 100 + stepping. `None` for 0, which stands for "no GPU".
    pub const fn from_target_version(version: u32) -> Option<Self> {
        if version == 0 { None } else { Some(Self(version)) }
    }

    /// major * 10000 + minor * 100 + stepping.
    pub const fn target_version(self) -> u32 {
        self.0
    }

    /// The generation: 9, 10, 11, 12.
    pub const fn major(self) -> u32 {
        self.0 / 10_000
    }

    /// Within the generation.
    pub const fn minor(self) -> u32 {
        self.0 / 100 % 100
    }

    /// Within the minor version.
    pub const fn stepping(self) -> u32 {
        self.0 % 100
    }
}

impl fmt::Display for GfxVersion {
    /// The compiler's name: minor and stepping in hexadecimal (`gfx90a`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}{:x}{:x}", self.major(), self.minor(), self.stepping())
    }
}

impl fmt::Debug for GfxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

bitflags::bitflags! {
    /// Bits of the `capability` property. Source: docs/ABI.md §Topology.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Capability: u32 {
        /// Also drives displays.
        const SHARED_WITH_GRAPHICS = 1 << 2;
        /// Debugger watch points.
        const WATCH_POINTS = 1 << 7;
        /// Trap debugging.
        const TRAP_DEBUG = 1 << 15;
        /// Error-correcting memory.
        const MEM_EDC = 1 << 20;
        /// Notifies of memory errors.
        const RAS_NOTIFY = 1 << 21;
        /// Error-correcting on-chip memory.
        const SRAM_EDC = 1 << 26;
        /// Shared virtual memory.
        const SVM = 1 << 27;
        /// Coherent access to host memory.
        const COHERENT_HOST_ACCESS = 1 << 28;
        /// Firmware that a debugger, and therefore exception delivery, needs.
        const DEBUG_FIRMWARE = 1 << 29;
    }
}

/// Doorbell type of the `capability` property that this driver can ring: 64-bit, gfx9 and newer.
pub(crate) const DOORBELL_64: u32 = 2;

/// A node: the CPUs of a NUMA node, or a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Index.
    pub id: NodeId,
    /// KFD's id of the GPU; 0 on a CPU node.
    pub gpu_id: GpuId,
    /// ASIC name, when there is one.
    pub name: Option<String>,
    /// The `properties` file.
    pub properties: NodeProperties,
    /// Memory banks.
    pub mem_banks: Vec<MemBank>,
    /// Caches.
    pub caches: Vec<Cache>,
    /// Direct links to visible nodes.
    pub io_links: Vec<Link>,
    /// Peer-to-peer links to visible nodes.
    pub p2p_links: Vec<Link>,
}

impl Node {
    /// Whether this is a GPU.
    pub fn is_gpu(&self) -> bool {
        self.gpu_id != GpuId(0)
    }

    /// Whether CPUs reach this GPU over xGMI rather than PCIe: on boards that carry both.
    pub fn is_linked_to_cpu_by_xgmi(&self, topology: &Topology) -> bool {
        const XGMI: u32 = 11; // docs/ABI.md §Topology
        let to_cpu = |link: &&Link| {
            let to = link.node_to.and_then(|to| topology.nodes.iter().find(|n| n.id.0 == to));
            to.is_some_and(|node| !node.is_gpu())
        };
        self.io_links.iter().filter(to_cpu).any(|link| link.kind == Some(XGMI))
    }

    /// The instruction set, on a GPU.
    pub fn gfx_version(&self) -> Option<GfxVersion> {
        self.properties.gfx_target_version.and_then(GfxVersion::from_target_version)
    }

    /// Known bits of the `capability` property.
    pub fn capability(&self) -> Capability {
        Capability::from_bits_truncate(self.properties.capability.unwrap_or(0))
    }

    /// Doorbell type; `None` when the property is absent.
    pub fn doorbell_type(&self) -> Option<u32> {
        self.properties.capability.map(|bits| bits >> 12 & 3)
    }

    /// XCCs: at least 1.
    pub fn num_xcc(&self) -> u32 {
        self.properties.num_xcc.unwrap_or(1).max(1)
    }

    /// Compute units of all XCCs.
    pub fn compute_units(&self) -> Option<u32> {
        let simds = self.properties.simd_count?;
        simds.checked_div(self.properties.simd_per_cu?)
    }

    /// Bytes of VRAM, seen by the CPU or not.
    pub fn vram_bytes(&self) -> u64 {
        self.heap_bytes(|heap| heap == 1 || heap == 2)
    }

    /// Bytes of VRAM the CPU can map: all of it or none, KFD has no part of it.
    pub fn visible_vram_bytes(&self) -> u64 {
        self.heap_bytes(|heap| heap == 1)
    }

    fn heap_bytes(&self, wanted: impl Fn(u32) -> bool) -> u64 {
        let banks = self.mem_banks.iter().filter(|bank| bank.heap_type.is_some_and(&wanted));
        banks.filter_map(|bank| bank.size_in_bytes).fold(0, u64::saturating_add)
    }
}

/// Why a node is not in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// A file could not be read. `EPERM`: the device cgroup hides the GPU.
    Unreadable {
        /// File below the node's directory.
        file: &'static str,
        /// Why.
        errno: Errno,
    },
    /// A file holds nonsense.
    Malformed(TopologyError),
}

/// A node that was not readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedNode {
    /// Index.
    pub id: NodeId,
    /// Why.
    pub reason: SkipReason,
}

/// All nodes at one generation of the topology.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Topology {
    /// Directory it was read from.
    pub root: String,
    /// Counts changes of the topology; `None` when the file cannot be read.
    pub generation: Option<u64>,
    /// The platform.
    pub system: SystemProperties,
    /// Nodes in the order of their index, which may have gaps.
    pub nodes: Vec<Node>,
    /// Nodes that are there but could not be read.
    pub skipped: Vec<SkippedNode>,
}

impl Topology {
    /// Reads the topology, again while it changes.
    ///
    /// # Errors
    /// The errno of reading the directory of nodes; `AGAIN` when the topology never holds still.
    pub fn read(kernel: &dyn Kernel) -> Result<Self, Errno> {
        let mut last = Errno::NOENT;
        for root in ROOTS {
            match Self::read_from(kernel, root) {
                Err(errno) if errno == Errno::NOENT => last = errno,
                result => return result,
            }
        }
        Err(last)
    }

    /// As [`Topology::read`], below another directory.
    ///
    /// # Errors
    /// As [`Topology::read`].
    pub fn read_from(kernel: &dyn Kernel, root: &str) -> Result<Self, Errno> {
        let generation = || {
            let text = read_text(kernel, &format!("{root}/generation_id")).ok()?;
            single_number::<u64>("generation_id", &text).ok()
        };
        for _ in 0..READS {
            let before = generation();
            let topology = Self::read_once(kernel, root, before)?;
            if generation() == before {
                return Ok(topology);
            }
        }
        Err(Errno::AGAIN)
    }

    fn read_once(kernel: &dyn Kernel, root: &str, generation: Option<u64>) -> Result<Self, Errno> {
        let system = read_text(kernel, &format!("{root}/system_properties"))
            .ok()
            .and_then(|text| SystemProperties::parse(&text).ok())
            .unwrap_or_default();
        let mut topology = Self {
            root: root.to_owned(),
            generation,
            system,
            nodes: Vec::new(),
            skipped: Vec::new(),
        };
        for id in numbered(kernel, &format!("{root}/nodes"))? {
            match read_node(kernel, &format!("{root}/nodes/{id}"), NodeId(id)) {
                Ok(node) => topology.nodes.push(node),
                Err(reason) => topology.skipped.push(SkippedNode { id: NodeId(id), reason }),
            }
        }
        topology.drop_links_to_hidden_nodes();
        Ok(topology)
    }

    fn drop_links_to_hidden_nodes(&mut self) {
        let visible: Vec<u32> = self.nodes.iter().map(|node| node.id.0).collect();
        let leads_somewhere =
            |link: &Link| link.node_to.is_some_and(|to| visible.binary_search(&to).is_ok());
        for node in &mut self.nodes {
            node.io_links.retain(leads_somewhere);
            node.p2p_links.retain(leads_somewhere);
        }
    }

    /// The GPUs, in node order.
    pub fn gpus(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_gpu())
    }
}

/// The numbers that name entries of a directory, in order. Other names are ignored.
fn numbered(kernel: &dyn Kernel, path: &str) -> Result<Vec<u32>, Errno> {
    let mut numbers: Vec<u32> =
        kernel.read_dir(path)?.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn read_node(kernel: &dyn Kernel, path: &str, id: NodeId) -> Result<Node, SkipReason> {
    let file = |file: &'static str| {
        read_text(kernel, &format!("{path}/{file}"))
            .map_err(|errno| SkipReason::Unreadable { file, errno })
    };
    let gpu_id = single_number("gpu_id", &file("gpu_id")?).map_err(SkipReason::Malformed)?;
    let properties = NodeProperties::parse(&file("properties")?).map_err(SkipReason::Malformed)?;
    // The kernel ends some names without a newline; a CPU has an empty one.
    let name = file("name").ok().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    Ok(Node {
        id,
        gpu_id: GpuId(gpu_id),
        name,
        properties,
        mem_banks: records(kernel, path, "mem_banks", MemBank::parse),
        caches: records(kernel, path, "caches", Cache::parse),
        io_links: records(kernel, path, "io_links", Link::parse),
        p2p_links: records(kernel, path, "p2p_links", Link::parse),
    })
}

/// Reads `<path>/<kind>/<n>/properties` for every readable `n`.
fn records<T>(
    kernel: &dyn Kernel,
    path: &str,
    kind: &str,
    parse: fn(&str) -> Result<T, TopologyError>,
) -> Vec<T> {
    let entries = numbered(kernel, &format!("{path}/{kind}")).unwrap_or_default();
    let record = |n| parse(&read_text(kernel, &format!("{path}/{kind}/{n}/properties")).ok()?).ok();
    entries.into_iter().filter_map(record).collect()
}

/// Reads a small text file whole.
///
/// # Errors
/// The errno of `open` or `read`; `FBIG` past 64 KiB; `ILSEQ` when it is not UTF-8.
pub(crate) fn read_text(kernel: &dyn Kernel, path: &str) -> Result<String, Errno> {
    let file = retry(|| kernel.open(path, OpenFlags::READ))?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    let result = loop {
        match retry(|| kernel.read(file, &mut chunk)) {
            Ok(0) => break Ok(()),
            Ok(n) if bytes.len() + n > FILE_LIMIT => break Err(Errno::FBIG),
            Ok(n) => bytes.extend(chunk.iter().take(n)),
            Err(errno) => break Err(errno),
        }
    };
    kernel.close(file);
    result?;
    String::from_utf8(bytes).map_err(|_| Errno::ILSEQ)
}

/// Repeats a call that a signal interrupted, as often as an ioctl is.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..MAX_INTERRUPTIONS {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
    Err(Errno::INTR)
}

#[cfg(test)]
mod tests;
