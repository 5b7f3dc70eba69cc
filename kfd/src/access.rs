//! Why a GPU cannot be used, told apart by layer, each with its remedy.

use std::fmt;

use crate::ids::{GpuId, NodeId};
use crate::sys::{Errno, Kernel, OpenFlags};
use crate::topology::{Node, SkipReason, Topology, read_text, retry};

/// The compute device.
pub(crate) const KFD_PATH: &str = "/dev/kfd";
/// Group of files whose real group has no number in this user namespace.
const OVERFLOW_GID: u32 = 65534;

/// Owner, mode and the caller's ids of a file that may not be opened. Groups are compared by
/// number: in a container the same name often has another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Permission {
    /// The file.
    pub path: String,
    /// What `open` answered.
    pub errno: Errno,
    /// Owning group; `None` when `stat` failed too.
    pub owner_gid: Option<u32>,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Effective user of the caller; `None` without /proc.
    pub uid: Option<u32>,
    /// Groups of the caller, supplementary ones included.
    pub gids: Vec<u32>,
}

impl Permission {
    fn of(kernel: &dyn Kernel, path: &str, errno: Errno) -> Self {
        let metadata = kernel.metadata(path).ok();
        let status = read_text(kernel, "/proc/self/status").unwrap_or_default();
        let ids = |name: &str| -> Vec<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().filter_map(|id| id.parse().ok()).collect()
        };
        let mut gids = ids("Groups:");
        // Real, effective, saved and file system id: the effective one counts.
        gids.extend(ids("Gid:").get(1));
        gids.sort_unstable();
        gids.dedup();
        Self {
            path: path.to_owned(),
            errno,
            owner_gid: metadata.map(|file| file.gid),
            mode: metadata.map(|file| file.mode & 0o7777),
            uid: ids("Uid:").get(1).copied(),
            gids,
        }
    }

    fn remedy(&self) -> String {
        if self.errno == Errno::PERM {
            return format!(
                "allow the device in the container's device list (for docker: --device={})",
                self.path
            );
        }
        match self.owner_gid {
            Some(OVERFLOW_GID) => "the owning group has no number in this user namespace: pass \
                 the host's group into the container (for docker: --group-add with the host's \
                 numeric gid)"
                .to_owned(),
            Some(gid) if self.gids.contains(&gid) => format!(
                "the caller is in group {gid} but the group may not read and write: \
                 chmod g+rw {}",
                self.path
            ),
            Some(gid) => format!(
                "add the user to the group with number {gid} and log in again (in a container: \
                 --group-add {gid}; names do not count, numbers do)"
            ),
            None => "give the user read and write access".to_owned(),
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} may not be opened ({})", self.path, self.errno)?;
        if let (Some(gid), Some(mode)) = (self.owner_gid, self.mode) {
            write!(f, ": owned by group {gid}, mode {mode:04o}")?;
        }
        if let Some(uid) = self.uid {
            write!(f, "; caller is user {uid} in groups {:?}", self.gids)?;
        }
        Ok(())
    }
}

/// One reason why a GPU, or all of them, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessProblem {
    /// There is no `/dev/kfd`.
    #[error("/dev/kfd is absent ({errno}): no driver has taken a GPU")]
    KfdAbsent {
        /// What `open` answered.
        errno: Errno,
    },
    /// `/dev/kfd` is there, but not for this caller.
    #[error("{0}")]
    KfdNotPermitted(Permission),
    /// `/dev/kfd` is locked or taken.
    #[error("/dev/kfd is busy ({errno}): a GPU reset or a suspend may be going on")]
    KfdBusy {
        /// What `open` answered.
        errno: Errno,
    },
    /// `/dev/kfd` fails in another way.
    #[error("/dev/kfd cannot be opened ({errno})")]
    KfdFailing {
        /// What `open` answered.
        errno: Errno,
    },
    /// The topology cannot be read.
    #[error("KFD's topology in /sys cannot be read ({errno})")]
    NoTopology {
        /// What reading it answered.
        errno: Errno,
    },
    /// A node of the topology is hidden or unreadable.
    #[error("topology node {node} is hidden: {file} gives {errno}")]
    HiddenNode {
        /// The node.
        node: NodeId,
        /// The file.
        file: &'static str,
        /// What reading it answered.
        errno: Errno,
    },
    /// A node of the topology holds nonsense.
    #[error("topology node {node} is unusable: {reason}")]
    BadNode {
        /// The node.
        node: NodeId,
        /// What is wrong.
        reason: String,
    },
    /// The GPU has no render node here.
    #[error("GPU {gpu} has no render node: {path} gives {errno}")]
    RenderNodeAbsent {
        /// The GPU.
        gpu: GpuId,
        /// The file.
        path: String,
        /// What `open` answered.
        errno: Errno,
    },
    /// The render node is there, but not for this caller.
    #[error("GPU {gpu}: {permission}")]
    RenderNodeNotPermitted {
        /// The GPU.
        gpu: GpuId,
        /// Why.
        permission: Permission,
    },
    /// This driver cannot drive the GPU.
    #[error("GPU {gpu} is not supported: {reason}")]
    Unsupported {
        /// The GPU.
        gpu: GpuId,
        /// Why.
        reason: &'static str,
    },
}

impl AccessProblem {
    /// What to do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::KfdAbsent { .. } => "load the amdgpu driver and look for its messages in the \
                kernel log (unsupported chip, missing PCIe atomics); in a container pass \
                --device=/dev/kfd"
                .to_owned(),
            Self::KfdNotPermitted(permission) | Self::RenderNodeNotPermitted { permission, .. } => {
                permission.remedy()
            }
            Self::KfdBusy { .. } => {
                "try again; if it lasts, look in the kernel log for a GPU reset".to_owned()
            }
            Self::KfdFailing { .. } => "look in the kernel log for amdgpu and kfd".to_owned(),
            Self::NoTopology { .. } => {
                "make /sys/devices/virtual/kfd visible in the container".to_owned()
            }
            Self::HiddenNode { .. } => "nothing if this GPU was not granted; otherwise allow its \
                render node in the container's device list"
                .to_owned(),
            Self::BadNode { .. } => "report it with the kernel version".to_owned(),
            Self::RenderNodeAbsent { path, .. } => {
                format!("pass {path} into the container, or all of /dev/dri")
            }
            Self::Unsupported { .. } => "this driver needs gfx9 or newer".to_owned(),
        }
    }

    /// Explains why `/dev/kfd` could not be opened.
    pub(crate) fn kfd(kernel: &dyn Kernel, errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => Self::KfdAbsent { errno },
            Errno::ACCESS | Errno::PERM => {
                Self::KfdNotPermitted(Permission::of(kernel, KFD_PATH, errno))
            }
            // INVAL: current kernels while locked; AGAIN: older ones.
            Errno::BUSY | Errno::AGAIN | Errno::INVAL => Self::KfdBusy { errno },
            _ => Self::KfdFailing { errno },
        }
    }

    /// Explains why a render node could not be opened.
    pub(crate) fn render(kernel: &dyn Kernel, gpu: GpuId, path: String, errno: Errno) -> Self {
        match errno {
            Errno::ACCESS | Errno::PERM => Self::RenderNodeNotPermitted {
                gpu,
                permission: Permission::of(kernel, &path, errno),
            },
            _ => Self::RenderNodeAbsent { gpu, path, errno },
        }
    }

    /// The problems of the nodes that the topology skipped.
    pub(crate) fn of_skipped(topology: &Topology) -> impl Iterator<Item = Self> {
        topology.skipped.iter().map(|skipped| match &skipped.reason {
            SkipReason::Unreadable { file, errno } => {
                Self::HiddenNode { node: skipped.id, file, errno: *errno }
            }
            SkipReason::Malformed(error) => {
                Self::BadNode { node: skipped.id, reason: error.to_string() }
            }
        })
    }
}

/// Path of a node's render node, if this driver can drive the GPU at all.
pub(crate) fn render_path(node: &Node) -> Result<String, AccessProblem> {
    let unsupported = |reason| AccessProblem::Unsupported { gpu: node.gpu_id, reason };
    let gfx = node.gfx_version().ok_or_else(|| unsupported("its target is unknown"))?;
    if gfx.major() < 9 {
        return Err(unsupported("it is older than gfx9"));
    }
    if node.doorbell_type().is_some_and(|kind| kind != crate::topology::DOORBELL_64) {
        return Err(unsupported("it has no 64-bit doorbells"));
    }
    match node.properties.drm_render_minor {
        Some(minor) if minor >= 128 => Ok(format!("/dev/dri/renderD{minor}")),
        _ => Err(unsupported("the topology names no render node")),
    }
}

/// One step of [`diagnose`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// What was found, or the problem.
    pub outcome: Result<String, AccessProblem>,
}

/// Checks, layer by layer, what a process needs to use its GPUs. Creates nothing and changes
/// nothing but that `/dev/kfd` and render nodes are opened and closed.
pub fn diagnose(kernel: &dyn Kernel) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut push = |name: String, outcome| checks.push(Check { name, outcome });
    let kfd = retry(|| kernel.open(KFD_PATH, OpenFlags::READ_WRITE));
    push(
        KFD_PATH.to_owned(),
        match kfd {
            Ok(file) => {
                kernel.close(file);
                Ok("can be opened".to_owned())
            }
            Err(errno) => Err(AccessProblem::kfd(kernel, errno)),
        },
    );
    let topology = match Topology::read(kernel) {
        Ok(topology) => topology,
        Err(errno) => {
            push("topology".to_owned(), Err(AccessProblem::NoTopology { errno }));
            return checks;
        }
    };
    let count = topology.gpus().count();
    push("topology".to_owned(), Ok(format!("{count} GPUs in {}", topology.root)));
    for problem in AccessProblem::of_skipped(&topology) {
        push("topology node".to_owned(), Err(problem));
    }
    for node in topology.gpus() {
        let outcome = render_path(node).and_then(|path| {
            match retry(|| kernel.open(&path, OpenFlags::READ_WRITE)) {
                Ok(file) => {
                    kernel.close(file);
                    Ok(format!("{path} can be opened"))
                }
                Err(errno) => Err(AccessProblem::render(kernel, node.gpu_id, path, errno)),
            }
        });
        push(format!("GPU {}", node.gpu_id), outcome);
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Linux;

    #[test]
    fn each_errno_of_open_is_explained_by_its_own_problem() {
        let kernel = Linux::new();
        let problem = |errno| AccessProblem::kfd(&kernel, errno);
        assert!(matches!(problem(Errno::NOENT), AccessProblem::KfdAbsent { .. }));
        assert!(matches!(problem(Errno::ACCESS), AccessProblem::KfdNotPermitted(_)));
        assert!(matches!(problem(Errno::BUSY), AccessProblem::KfdBusy { .. }));
        assert!(matches!(problem(Errno::NOMEM), AccessProblem::KfdFailing { .. }));
    }

    #[test]
    fn a_permission_names_the_owning_and_the_callers_groups_by_number() {
        let permission = Permission::of(&Linux::new(), "/dev/null", Errno::ACCESS);
        assert_eq!(permission.owner_gid, Some(0));
        assert_eq!(permission.mode, Some(0o666));
        assert!(permission.uid.is_some());
        let text = permission.to_string();
        assert!(text.contains("group 0") && text.contains("groups ["), "{text}");
    }

    #[test]
    fn a_group_without_a_number_points_at_the_container() {
        let permission = Permission {
            path: KFD_PATH.to_owned(),
            errno: Errno::ACCESS,
            owner_gid: Some(OVERFLOW_GID),
            mode: Some(0o660),
            uid: Some(1000),
            gids: vec![1000],
        };
        assert!(permission.remedy().contains("user namespace"));
        let other = Permission { owner_gid: Some(109), ..permission.clone() };
        assert!(other.remedy().contains("--group-add 109"));
        let cgroup = Permission { errno: Errno::PERM, ..permission };
        assert!(cgroup.remedy().contains("device list"));
    }
}
