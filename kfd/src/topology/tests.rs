//! The walk over trees of real files, through the real kernel.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::sys::Linux;

/// A directory that disappears with the test.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kfd-topology-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let tree = Self(path);
        tree.file("generation_id", "2\n");
        tree.file("system_properties", "platform_oem 35498446626881\nplatform_id 1\n");
        tree
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn gpu(&self, node: u32, gpu_id: &str, minor: u32) {
        let at = format!("nodes/{node}");
        self.file(&format!("{at}/gpu_id"), gpu_id);
        self.file(&format!("{at}/name"), "ip discovery\n");
        let text = format!("simd_count 192\ngfx_target_version 110000\ndrm_render_minor {minor}\n");
        self.file(&format!("{at}/properties"), &text);
        self.file(&format!("{at}/mem_banks/0/properties"), "heap_type 1\nsize_in_bytes 100\n");
        self.file(&format!("{at}/io_links/0/properties"), "type 2\nnode_to 0\n");
        self.file(&format!("{at}/io_links/1/properties"), "type 2\nnode_to 2\n");
        self.file(&format!("{at}/caches/0/properties"), "level 1\nsize 32\nsibling_map 1,1,\n");
    }

    fn read(&self) -> Topology {
        Topology::read_from(&Linux::new(), self.path()).unwrap()
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The tree of field fault FF-02: node 2 unreadable, node 3 without caches, node 4 without a name.
fn partial(name: &str) -> Tree {
    let tree = Tree::new(name);
    tree.file("nodes/0/gpu_id", "0\n");
    tree.file("nodes/0/properties", "cpu_cores_count 32\n");
    tree.gpu(1, "4672\n", 128);
    // A directory where a file should be cannot be read, whoever the test runs as.
    fs::create_dir_all(tree.0.join("nodes/2/gpu_id")).unwrap();
    tree.gpu(3, "777\n", 130);
    fs::remove_dir_all(tree.0.join("nodes/3/caches")).unwrap();
    tree.gpu(14, "55\n", 133);
    fs::remove_file(tree.0.join("nodes/14/name")).unwrap();
    tree
}

#[test]
fn unreadable_nodes_are_skipped_and_the_rest_is_kept_in_order() {
    let topology = partial("skip").read();
    let gpus: Vec<u32> = topology.gpus().map(|node| node.id.0).collect();
    assert_eq!(gpus, [1, 3, 14]);
    let [skipped] = topology.skipped.as_slice() else { panic!("{:?}", topology.skipped) };
    assert_eq!(skipped.id, NodeId(2));
    assert_eq!(skipped.reason, SkipReason::Unreadable { file: "gpu_id", errno: Errno::ISDIR });
}

#[test]
fn links_to_a_hidden_node_are_dropped() {
    let topology = partial("links").read();
    for gpu in topology.gpus() {
        let targets: Vec<_> = gpu.io_links.iter().map(|link| link.node_to).collect();
        assert_eq!(targets, [Some(0)]);
    }
}

#[test]
fn missing_optional_files_are_unknown_not_fatal() {
    let topology = partial("optional").read();
    let [first, second, third] = topology.gpus().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(first.name.as_deref(), Some("ip discovery"));
    assert_eq!((first.caches.len(), second.caches.len()), (1, 0));
    assert_eq!(third.name, None);
    assert_eq!(third.properties.fw_version, None);
    assert_eq!(third.doorbell_type(), None);
    assert_eq!(third.num_xcc(), 1);
    assert_eq!(third.properties.drm_render_minor, Some(133));
    assert_eq!(third.visible_vram_bytes(), 100);
}

#[test]
fn a_node_with_nonsense_is_skipped_by_name() {
    let tree = partial("nonsense");
    tree.file("nodes/1/properties", "simd_count many\n");
    let topology = tree.read();
    let reasons: Vec<_> = topology.skipped.iter().map(|node| node.reason.clone()).collect();
    assert!(reasons.contains(&SkipReason::Malformed(TopologyError::NotANumber("simd_count"))));
}

#[test]
fn a_file_that_never_ends_is_refused() {
    assert_eq!(read_text(&Linux::new(), "/dev/zero"), Err(Errno::FBIG));
}

#[test]
fn an_absent_topology_is_enoent() {
    let missing = Path::new("/no-such-place");
    let result = Topology::read_from(&Linux::new(), missing.to_str().unwrap());
    assert_eq!(result, Err(Errno::NOENT));
}

#[test]
fn targets_are_named_as_the_compiler_names_them() {
    let name = |version| GfxVersion::from_target_version(version).unwrap().to_string();
    assert_eq!(name(90_010), "gfx90a");
    assert_eq!(name(90_402), "gfx942");
    assert_eq!(name(110_000), "gfx1100");
    assert_eq!(name(110_501), "gfx1151");
    assert_eq!(GfxVersion::from_target_version(0), None);
}
