//! The machine as a report keeps it: everything sysfs says, so that the software GPU can become it.

use std::collections::BTreeMap;
use std::fmt;

use kfd::Kfd;
use kfd::sys::Kernel;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::device::{numbers, read_text};

/// Kernel, firmware and topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// `/proc/version`.
    pub kernel_version: Option<String>,
    /// Version of the amdgpu module, where it has one.
    pub amdgpu_version: Option<String>,
    /// Version of the KFD interface.
    pub kfd_version: String,
    /// Firmware versions, by render node and file: `renderD128`, `mec_fw_version`.
    pub firmware: BTreeMap<String, BTreeMap<String, String>>,
    /// The topology directory.
    pub topology: TopologyDump,
}

/// The topology directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyDump {
    /// `generation_id`.
    pub generation: u64,
    /// `system_properties`.
    pub system: Properties,
    /// The nodes that could be read.
    pub nodes: Vec<NodeDump>,
    /// The nodes that could not.
    pub unreadable: Vec<u32>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDump {
    /// Index.
    pub node: u32,
    /// `gpu_id`.
    pub gpu_id: u32,
    /// `name`.
    pub name: String,
    /// `properties`.
    pub properties: Properties,
    /// `mem_banks/*/properties`.
    pub mem_banks: Vec<Properties>,
    /// `caches/*/properties`.
    pub caches: Vec<CacheDump>,
    /// `io_links/*/properties`.
    pub io_links: Vec<Properties>,
    /// `p2p_links/*/properties`.
    pub p2p_links: Vec<Properties>,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheDump {
    /// Its numbers.
    pub properties: Properties,
    /// `sibling_map`.
    pub sibling_map: String,
}

/// `name value` lines in file order; a map in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(pub Vec<(String, u64)>);

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lines;
        impl<'de> Visitor<'de> for Lines {
            type Value = Properties;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from names to numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
                let mut lines = Vec::new();
                while let Some(line) = map.next_entry()? {
                    lines.push(line);
                }
                Ok(Properties(lines))
            }
        }
        deserializer.deserialize_map(Lines)
    }
}

impl Properties {
    /// Splits a file into its numbers and its other lines.
    fn parse(text: &str) -> (Self, Vec<(String, String)>) {
        let (mut numbers, mut others) = (Vec::new(), Vec::new());
        for (name, value) in text.lines().filter_map(|line| line.trim_end().split_once(' ')) {
            // A map of a single sibling looks like a number.
            match value.trim().parse() {
                Ok(number) if name != "sibling_map" => numbers.push((name.to_owned(), number)),
                _ => others.push((name.to_owned(), value.trim().to_owned())),
            }
        }
        (Self(numbers), others)
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    }

    #[cfg(feature = "model")]
    fn to_model(&self) -> kfd_model::sysfs::Properties {
        let mut properties = kfd_model::sysfs::Properties::new();
        self.0.iter().for_each(|(name, value)| properties.set(name, *value));
        properties
    }
}

impl Machine {
    /// Reads everything again from the kernel of an open device.
    pub fn read(kfd: &Kfd) -> Self {
        let kernel = &**kfd.kernel();
        let line = |path: &str| read_text(kernel, path).ok().map(|text| text.trim().to_owned());
        let minors = kfd.topology().gpus().filter_map(|node| node.properties.drm_render_minor);
        Self {
            kernel_release: line("/proc/sys/kernel/osrelease"),
            kernel_version: line("/proc/version"),
            amdgpu_version: line("/sys/module/amdgpu/version"),
            kfd_version: kfd.version().to_string(),
            firmware: minors
                .map(|minor| (format!("renderD{minor}"), firmware(kernel, minor)))
                .collect(),
            topology: TopologyDump::read(kernel, &kfd.topology().root),
        }
    }
}

#[cfg(feature = "model")]
impl Machine {
    /// Minor version of KFD's interface.
    pub fn kfd_minor(&self) -> Option<u32> {
        self.kfd_version.strip_prefix("1.")?.parse().ok()
    }

    /// Whether the kernel tells how large save areas must be.
    pub fn shows_save_sizes(&self) -> bool {
        let mut nodes = self.topology.nodes.iter();
        nodes.any(|node| node.properties.get("cwsr_size").is_some())
    }
}

/// The firmware versions that amdgpu shows for a render node.
fn firmware(kernel: &dyn Kernel, minor: u32) -> BTreeMap<String, String> {
    let directory = format!("/sys/class/drm/renderD{minor}/device/fw_version");
    let names = kernel.read_dir(&directory).unwrap_or_default();
    let version = |name: String| {
        let text = read_text(kernel, &format!("{directory}/{name}")).ok()?;
        Some((name, text.trim().to_owned()))
    };
    names.into_iter().filter_map(version).collect()
}

impl TopologyDump {
    /// Reads a topology directory. What cannot be read is left out or listed as unreadable.
    pub fn read(kernel: &dyn Kernel, root: &str) -> Self {
        let text = |path: &str| read_text(kernel, &format!("{root}/{path}")).unwrap_or_default();
        let mut dump = Self {
            generation: text("generation_id").trim().parse().unwrap_or(0),
            system: Properties::parse(&text("system_properties")).0,
            nodes: Vec::new(),
            unreadable: Vec::new(),
        };
        for node in numbers(kernel, &format!("{root}/nodes")) {
            match NodeDump::read(kernel, &format!("{root}/nodes/{node}"), node) {
                Some(found) => dump.nodes.push(found),
                None => dump.unreadable.push(node),
            }
        }
        dump
    }

    /// What the software GPU is made of. Nodes that could not be read become empty CPU nodes, so
    /// that links keep their targets.
    #[cfg(feature = "model")]
    pub fn to_model(&self) -> kfd_model::sysfs::Topology {
        use kfd_model::sysfs::{Cache, Node, Topology};

        let list = |items: &[Properties]| items.iter().map(Properties::to_model).collect();
        let mut nodes = Vec::new();
        for found in &self.nodes {
            while (nodes.len() as u64) < u64::from(found.node).min(MAX_NODES) {
                nodes.push(Node::default());
            }
            nodes.push(Node {
                gpu_id: found.gpu_id,
                name: found.name.clone(),
                properties: found.properties.to_model(),
                mem_banks: list(&found.mem_banks),
                caches: found
                    .caches
                    .iter()
                    .map(|cache| Cache {
                        properties: cache.properties.to_model(),
                        sibling_map: cache.sibling_map.clone(),
                    })
                    .collect(),
                io_links: list(&found.io_links),
                p2p_links: list(&found.p2p_links),
            });
        }
        Topology { generation: self.generation, system: self.system.to_model(), nodes }
    }
}

/// A report with more topology nodes is taken as cut off there.
#[cfg(feature = "model")]
const MAX_NODES: u64 = 4096;

impl NodeDump {
    fn read(kernel: &dyn Kernel, path: &str, node: u32) -> Option<Self> {
        let text = |file: &str| read_text(kernel, &format!("{path}/{file}")).ok();
        let records = |kind: &str| -> Vec<(Properties, Vec<(String, String)>)> {
            numbers(kernel, &format!("{path}/{kind}"))
                .into_iter()
                .filter_map(|n| text(&format!("{kind}/{n}/properties")))
                .map(|text| Properties::parse(&text))
                .collect()
        };
        let plain = |kind: &str| records(kind).into_iter().map(|(numbers, _)| numbers).collect();
        let cache = |(properties, others): (Properties, Vec<(String, String)>)| CacheDump {
            properties,
            sibling_map: others.into_iter().map(|(_, map)| map).next().unwrap_or_default(),
        };
        Some(Self {
            node,
            gpu_id: text("gpu_id")?.trim().parse().ok()?,
            name: text("name").unwrap_or_default().trim().to_owned(),
            properties: Properties::parse(&text("properties")?).0,
            mem_banks: plain("mem_banks"),
            caches: records("caches").into_iter().map(cache).collect(),
            io_links: plain("io_links"),
            p2p_links: plain("p2p_links"),
        })
    }
}

#[cfg(all(test, feature = "model"))]
mod tests {
    use std::sync::Arc;

    use kfd_model::{Model, Preset};

    use super::*;

    #[test]
    fn a_machine_goes_through_json_into_a_software_gpu_that_is_the_same_machine() {
        let model = Model::builder().gpu(Preset::gfx90a()).gpu(Preset::gfx1100()).build();
        let kfd = Kfd::open_on(model).unwrap();
        let machine = Machine::read(&kfd);
        assert_eq!(machine.topology.nodes.len(), 3);
        let json = serde_json::to_string(&machine).unwrap();
        let back: Machine = serde_json::from_str(&json).unwrap();
        assert_eq!(back, machine);
        let model = Model::builder().build_topology(&back.topology.to_model());
        let again = Kfd::open_on(Arc::clone(&model) as Arc<dyn Kernel>).unwrap();
        assert_eq!(Machine::read(&again).topology, machine.topology);
        assert_eq!(again.gpus().len(), 2);
    }

    #[test]
    fn a_node_that_could_not_be_read_leaves_a_gap_that_keeps_the_numbers() {
        let model = Model::builder().gpu(Preset::gfx90a()).gpu(Preset::gfx1100()).hide_gpu(0);
        let kfd = Kfd::open_on(model.build()).unwrap();
        let machine = Machine::read(&kfd);
        assert_eq!(machine.topology.unreadable, [1]);
        let model = Model::builder().build_topology(&machine.topology.to_model());
        let again = Kfd::open_on(model).unwrap();
        assert_eq!(again.gpus().len(), 1);
        assert_eq!(again.gpus()[0].node().id, kfd.gpus()[0].node().id);
    }
}
