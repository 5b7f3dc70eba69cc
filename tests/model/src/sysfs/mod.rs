//! The topology and its view in `/sys`.
//!
//! A [`Topology`] comes from presets or from a directory; `tree` renders it as the
//! files that the kernel shows.

mod load;
mod render;
mod tree;

pub use load::LoadError;
pub(crate) use render::{KFD as KFD_DIRECTORY, PCI_ROOT, render};
pub(crate) use tree::{Entry, Tree};

/// `name value` lines, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(Vec<(String, u64)>);

impl Properties {
    /// No lines.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// Sets `name`, at the end if it is new.
    pub fn set(&mut self, name: &str, value: u64) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Removes `name`.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// The lines.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl<const N: usize> From<[(&str, u64); N]> for Properties {
    fn from(lines: [(&str, u64); N]) -> Self {
        Self(lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// One cache of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Numeric lines.
    pub properties: Properties,
    /// The `sibling_map` line: comma-separated zeros and ones.
    pub sibling_map: String,
}

/// One topology node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// KFD's id of the GPU, 0 for a CPU node.
    pub gpu_id: u32,
    /// ASIC name, empty for a CPU node.
    pub name: String,
    /// `properties`. The counts of sub-directories are filled in when rendering.
    pub properties: Properties,
    /// `mem_banks/<i>/properties`.
    pub mem_banks: Vec<Properties>,
    /// `caches/<i>/properties`.
    pub caches: Vec<Cache>,
    /// `io_links/<i>/properties`.
    pub io_links: Vec<Properties>,
    /// `p2p_links/<i>/properties`.
    pub p2p_links: Vec<Properties>,
}

/// What KFD says of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Grows with each change.
    pub generation: u64,
    /// `system_properties`.
    pub system: Properties,
    /// Nodes, in order of their numbers, from 0.
    pub nodes: Vec<Node>,
}
