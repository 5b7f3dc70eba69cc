//! What is different between an earlier report and this run.

use std::collections::BTreeMap;

use super::report::{GpuRow, SavedReport, Selftest};
use crate::cmd::machine::{Machine, NodeDump, Properties};

/// Properties that are different on every machine or every boot and say nothing.
const UNIMPORTANT: [&str; 4] = ["unique_id", "location_id", "cpu_core_id_base", "drm_render_minor"];

/// Each difference, one line. Times are not compared.
pub fn differences(earlier: &SavedReport, now: &Selftest) -> Vec<String> {
    let mut lines = Lines(Vec::new());
    lines.differ("device", &earlier.device.kind, now.device.kind);
    lines.differ("device description", &earlier.device.description, &now.device.description);
    machine(&mut lines, &earlier.machine, &now.machine);
    for gpu in &now.gpus {
        let old = earlier.gpus.iter().find(|old| old.target == gpu.target);
        match old {
            Some(old) => results(&mut lines, old, gpu),
            None => lines.0.push(format!("{}: not in the earlier report", gpu.target)),
        }
    }
    for old in &earlier.gpus {
        if !now.gpus.iter().any(|gpu| gpu.target == old.target) {
            lines.0.push(format!("{}: only in the earlier report", old.target));
        }
    }
    lines.0
}

struct Lines(Vec<String>);

impl Lines {
    fn differ(&mut self, what: &str, earlier: &str, now: &str) {
        if earlier != now {
            self.0.push(format!("{what}: was {earlier:?}, is {now:?}"));
        }
    }

    fn differ_numbers(&mut self, what: &str, earlier: Option<u64>, now: Option<u64>) {
        let text = |value: Option<u64>| value.map_or("absent".to_owned(), |v| v.to_string());
        if earlier != now {
            self.0.push(format!("{what}: was {}, is {}", text(earlier), text(now)));
        }
    }
}

fn machine(lines: &mut Lines, earlier: &Machine, now: &Machine) {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    lines.differ("kernel", &text(&earlier.kernel_release), &text(&now.kernel_release));
    lines.differ("amdgpu module", &text(&earlier.amdgpu_version), &text(&now.amdgpu_version));
    lines.differ("KFD version", &earlier.kfd_version, &now.kfd_version);
    let flat = |machine: &Machine| -> BTreeMap<String, String> {
        let cards = machine.firmware.values().enumerate();
        cards
            .flat_map(|(n, files)| {
                files.iter().map(move |(name, value)| (format!("GPU {n} {name}"), value.clone()))
            })
            .collect()
    };
    let (old, new) = (flat(earlier), flat(now));
    for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
        let get = |map: &BTreeMap<String, String>| {
            map.get(name).cloned().unwrap_or_else(|| "absent".to_owned())
        };
        lines.differ(&format!("firmware of {name}"), &get(&old), &get(&new));
    }
    let gpus = |machine: &Machine| -> Vec<NodeDump> {
        machine.topology.nodes.iter().filter(|node| node.gpu_id != 0).cloned().collect()
    };
    let (old, new) = (gpus(earlier), gpus(now));
    if old.len() != new.len() {
        lines.0.push(format!("GPUs in the topology: were {}, are {}", old.len(), new.len()));
    }
    for (n, (old, new)) in old.iter().zip(&new).enumerate() {
        node(lines, n, old, new);
    }
}

fn node(lines: &mut Lines, n: usize, old: &NodeDump, new: &NodeDump) {
    lines.differ(&format!("GPU {n} name"), &old.name, &new.name);
    properties(lines, &format!("GPU {n}"), &old.properties, &new.properties);
    let lists = [
        ("memory bank", &old.mem_banks, &new.mem_banks),
        ("link", &old.io_links, &new.io_links),
        ("peer link", &old.p2p_links, &new.p2p_links),
    ];
    for (what, old, new) in lists {
        lines.differ_numbers(
            &format!("GPU {n} {what}s"),
            Some(old.len() as u64),
            Some(new.len() as u64),
        );
        for (i, (old, new)) in old.iter().zip(new).enumerate() {
            properties(lines, &format!("GPU {n} {what} {i}"), old, new);
        }
    }
    // 200 caches of a few kinds: their number and the first difference say enough.
    lines.differ_numbers(
        &format!("GPU {n} caches"),
        Some(old.caches.len() as u64),
        Some(new.caches.len() as u64),
    );
    let pairs = old.caches.iter().zip(&new.caches).enumerate();
    if let Some((i, _)) = pairs.into_iter().find(|(_, (old, new))| old != new) {
        lines.0.push(format!("GPU {n} cache {i} is the first that is different"));
    }
}

fn properties(lines: &mut Lines, what: &str, old: &Properties, new: &Properties) {
    let later = new.0.iter().filter(|(name, _)| old.get(name).is_none());
    for (name, _) in old.0.iter().chain(later) {
        if !UNIMPORTANT.contains(&name.as_str()) {
            lines.differ_numbers(&format!("{what} {name}"), old.get(name), new.get(name));
        }
    }
}

fn results(lines: &mut Lines, old: &GpuRow, new: &GpuRow) {
    lines.differ(&format!("{} target id", new.target), &old.target_id, &new.target_id);
    for case in &new.cases {
        let what = format!("{} {}", new.target, case.name);
        match old.cases.iter().find(|old| old.name == case.name) {
            Some(old) => lines.differ(&what, &old.result, &case.result),
            None => lines.0.push(format!("{what}: not in the earlier report")),
        }
    }
    for case in &old.cases {
        if !new.cases.iter().any(|new| new.name == case.name) {
            lines.0.push(format!("{} {}: only in the earlier report", old.target, case.name));
        }
    }
    if let (Some(old_seen), Some(new_seen)) = (&old.observations, &new.observations) {
        for (answer, before) in new_seen.answers().iter().zip(old_seen.answers()) {
            lines.differ(&format!("{} {}", new.target, answer.0), &before.1, &answer.1);
        }
    }
}
