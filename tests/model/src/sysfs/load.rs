//! Reads a topology from a directory shaped like `/sys/class/kfd/kfd/topology`.

use std::io;
use std::path::{Path, PathBuf};

use super::{Cache, Node, Properties, Topology};

/// Why a directory is not a topology.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line is not `name value`.
    #[error("{}: line {line:?} is not a name and a number", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// The node directories are not numbered 0, 1, ...
    #[error("{}: node {missing} is missing", path.display())]
    Gap {
        /// The directory of nodes.
        path: PathBuf,
        /// First number that is not there.
        missing: usize,
    },
}

fn read(path: &Path) -> Result<String, LoadError> {
    std::fs::read_to_string(path)
        .map_err(|source| LoadError::Read { path: path.to_owned(), source })
}

/// Splits `text` into numeric lines and the others.
fn parse(path: &Path, text: &str) -> Result<(Properties, Vec<(String, String)>), LoadError> {
    let mut properties = Properties::new();
    let mut other = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let bad = || LoadError::Line { path: path.to_owned(), line: line.to_owned() };
        let (name, value) = line.split_once(' ').ok_or_else(bad)?;
        match value.trim().parse() {
            Ok(number) => properties.set(name, number),
            Err(_) if name == "sibling_map" => {
                other.push((name.to_owned(), value.trim().to_owned()));
            }
            Err(_) => return Err(bad()),
        }
    }
    Ok((properties, other))
}

fn properties(path: &Path) -> Result<Properties, LoadError> {
    Ok(parse(path, &read(path)?)?.0)
}

fn number(path: &Path) -> Result<u64, LoadError> {
    let text = read(path)?;
    text.trim()
        .parse()
        .map_err(|_| LoadError::Line { path: path.to_owned(), line: text.trim().to_owned() })
}

/// The numbered sub-directories 0, 1, ... of `path`; none if it does not exist.
fn numbered(path: &Path) -> Result<usize, LoadError> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(source) => return Err(LoadError::Read { path: path.to_owned(), source }),
    };
    let total = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| name.parse::<usize>().is_ok())
        })
        .count();
    match (0..total).find(|index| !path.join(index.to_string()).is_dir()) {
        Some(missing) => Err(LoadError::Gap { path: path.to_owned(), missing }),
        None => Ok(total),
    }
}

fn list(path: &Path) -> Result<Vec<Properties>, LoadError> {
    (0..numbered(path)?)
        .map(|index| properties(&path.join(index.to_string()).join("properties")))
        .collect()
}

fn node(path: &Path) -> Result<Node, LoadError> {
    let caches = path.join("caches");
    let caches = (0..numbered(&caches)?)
        .map(|index| {
            let file = caches.join(index.to_string()).join("properties");
            let (properties, other) = parse(&file, &read(&file)?)?;
            let map = other.into_iter().next().map(|(_, value)| value);
            // A map with a single entry looks like a number.
            let map = map.or_else(|| properties.get("sibling_map").map(|value| value.to_string()));
            let mut properties = properties;
            properties.remove("sibling_map");
            Ok(Cache { properties, sibling_map: map.unwrap_or_default() })
        })
        .collect::<Result<_, LoadError>>()?;
    let id = path.join("gpu_id");
    let gpu_id = number(&id)?;
    Ok(Node {
        gpu_id: u32::try_from(gpu_id)
            .map_err(|_| LoadError::Line { path: id, line: gpu_id.to_string() })?,
        name: read(&path.join("name")).map(|name| name.trim().to_owned()).unwrap_or_default(),
        properties: properties(&path.join("properties"))?,
        mem_banks: list(&path.join("mem_banks"))?,
        caches,
        io_links: list(&path.join("io_links"))?,
        p2p_links: list(&path.join("p2p_links"))?,
    })
}

impl Topology {
    /// Reads a topology directory, such as a copy of a real machine's.
    ///
    /// # Errors
    /// [`LoadError`] names the file that is missing or malformed.
    pub fn load(directory: &Path) -> Result<Self, LoadError> {
        let nodes = directory.join("nodes");
        Ok(Self {
            generation: number(&directory.join("generation_id"))?,
            system: properties(&directory.join("system_properties"))?,
            nodes: (0..numbered(&nodes)?)
                .map(|index| node(&nodes.join(index.to_string())))
                .collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::{Entry, KFD_DIRECTORY, Tree, render};
    use crate::{GpuInfo, Preset, Profile, preset};

    /// Writes the topology files of `tree` below `directory`.
    fn dump(tree: &Tree, directory: &Path, at: &str) {
        std::fs::create_dir_all(directory).unwrap();
        for name in tree.names(at).unwrap() {
            let path = format!("{at}/{name}");
            match tree.resolve(&path, true).unwrap().1 {
                Entry::File(content) => {
                    std::fs::write(directory.join(name), content.as_ref().unwrap()).unwrap();
                }
                _ => dump(tree, &directory.join(name), &path),
            }
        }
    }

    fn dumped() -> (Topology, tempfile::TempDir) {
        let presets = [Preset::gfx1100(), Preset::gfx90a()];
        let mut topology = preset::topology(&presets, Profile::V6_12, true);
        let nodes = topology.nodes.iter().enumerate();
        let gpus: Vec<_> = nodes.filter_map(|(i, node)| GpuInfo::new(i, node)).collect();
        let directory = tempfile::tempdir().unwrap();
        let tree = render(&topology, &gpus, 242);
        dump(&tree, directory.path(), &format!("{KFD_DIRECTORY}/topology"));
        // The files have the counts that the presets leave open.
        for node in &mut topology.nodes {
            for (name, items) in [
                ("mem_banks_count", node.mem_banks.len()),
                ("caches_count", node.caches.len()),
                ("io_links_count", node.io_links.len()),
            ] {
                node.properties.set(name, items.try_into().unwrap());
            }
        }
        (topology, directory)
    }

    #[test]
    fn a_topology_written_as_sysfs_shows_it_loads_as_itself() {
        let (topology, directory) = dumped();
        assert_eq!(Topology::load(directory.path()).unwrap(), topology);
    }

    #[test]
    fn errors_name_the_file_that_is_wrong() {
        let (_, directory) = dumped();
        let properties = directory.path().join("nodes/1/properties");
        std::fs::write(&properties, "simd_count many\n").unwrap();
        let error = Topology::load(directory.path()).unwrap_err().to_string();
        assert!(error.contains("nodes/1/properties") && error.contains("simd_count many"));
        std::fs::remove_dir_all(directory.path().join("nodes/1")).unwrap();
        let error = Topology::load(directory.path()).unwrap_err();
        assert!(matches!(error, LoadError::Gap { missing: 1, .. }), "{error}");
        std::fs::remove_file(directory.path().join("generation_id")).unwrap();
        let error = Topology::load(directory.path()).unwrap_err().to_string();
        assert!(error.contains("generation_id"), "{error}");
    }
}
