//! `topology`: what KFD shows of the software GPU in sysfs, as a directory.
//!
//! AMD's runtime reads such a directory instead of sysfs when it runs on a model
//! (`HSA_MODEL_TOPOLOGY`).

use std::fs;
use std::path::Path;

use kfd::sys::{Errno, Kernel};

use super::device::{self, read_text};
use crate::cli::TopologyArgs;
use crate::exit::{Code, Failure};

/// Where KFD has it.
const TOPOLOGY: &str = "/sys/devices/virtual/kfd/kfd/topology";

/// Capability bits that the runtime's model interface 0.4 does not serve: debugger firmware.
const CAPABILITY_DEBUG_FIRMWARE: u64 = 1 << 29;

/// Writes the directory.
///
/// # Errors
/// [`Failure::Read`] names the file that cannot be written.
pub fn run(args: &TopologyArgs) -> Result<Code, Failure> {
    let (kernel, _) = device::kernel(&args.device)?;
    copy(&*kernel, TOPOLOGY, &args.directory, args.interface_0_4)?;
    Ok(Code::Passed)
}

fn copy(kernel: &dyn Kernel, from: &str, to: &Path, old: bool) -> Result<(), Failure> {
    let failed = |source| Failure::Read { path: to.display().to_string(), source };
    let entries = match kernel.read_dir(from) {
        Ok(entries) => entries,
        Err(Errno::NOTDIR) => {
            let text = read_text(kernel, from).map_err(|errno| failed(errno.into()))?;
            let text = if old { for_old_interface(from, &text) } else { text };
            return fs::write(to, text).map_err(failed);
        }
        Err(errno) => return Err(failed(errno.into())),
    };
    fs::create_dir_all(to).map_err(failed)?;
    for name in entries {
        copy(kernel, &format!("{from}/{name}"), &to.join(&name), old)?;
    }
    Ok(())
}

/// Interface 0.4 takes node number plus one for the id of a GPU, and no debugger.
fn for_old_interface(path: &str, text: &str) -> String {
    let mut parts = path.rsplit('/');
    let (file, node) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    match (file, node.parse::<u32>()) {
        ("gpu_id", Ok(node)) if text.trim() != "0" => format!("{}\n", node + 1),
        ("properties", Ok(_)) => {
            let lines = text.lines().map(|line| match line.split_once(' ') {
                Some(("capability", value)) => {
                    let value = value.trim().parse().unwrap_or(0) & !CAPABILITY_DEBUG_FIRMWARE;
                    format!("capability {value}\n")
                }
                _ => format!("{line}\n"),
            });
            lines.collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_interface_gets_the_ids_it_wants() {
        let base = "/t/nodes/3";
        assert_eq!(for_old_interface(&format!("{base}/gpu_id"), "4672\n"), "4\n");
        assert_eq!(for_old_interface(&format!("{base}/gpu_id"), "0\n"), "0\n");
        let properties = "simd_count 4\ncapability 671326848\n";
        let changed = for_old_interface(&format!("{base}/properties"), properties);
        assert_eq!(changed, "simd_count 4\ncapability 134455936\n");
        let caches = format!("{base}/caches/1/properties");
        assert_eq!(for_old_interface(&caches, "level 1\n"), "level 1\n");
    }
}
