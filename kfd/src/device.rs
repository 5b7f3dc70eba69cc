//! [`Kfd`]: the compute device of this process, and which of its GPUs can be used.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::access::{AccessProblem, KFD_PATH, render_path};
use crate::context::Context;
use crate::core::{Apertures, Core, GpuCore, Leak};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::ids::{KfdVersion, NodeId};
use crate::ioctl;
use crate::memory::AllocationInfo;
use crate::queue::KernelLabel;
use crate::sys::{Errno, FileId, Kernel, Linux, OpenFlags};
use crate::topology::{Node, Topology, retry};

/// Major version of the interface that this driver speaks.
const MAJOR: u32 = 1;

/// What later versions of the interface added. Source: docs/ABI.md §Versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// A file of events for monitoring.
    SmiEvents,
    /// Shared virtual memory, and the XNACK mode.
    Svm,
    /// How much memory is left.
    AvailableMemory,
    /// Export of memory to other processes and devices.
    DmabufExport,
    /// Exceptions delivered to the process itself, and the debugger interface.
    RuntimeEnable,
    /// Waits that cannot miss a wake-up.
    EventAge,
    /// Physically contiguous VRAM.
    ContiguousVram,
    /// SDMA queues on a chosen engine.
    SdmaByEngine,
}

impl Feature {
    /// All of them, oldest first.
    pub const ALL: [Self; 8] = [
        Self::SmiEvents,
        Self::Svm,
        Self::AvailableMemory,
        Self::DmabufExport,
        Self::RuntimeEnable,
        Self::EventAge,
        Self::ContiguousVram,
        Self::SdmaByEngine,
    ];

    /// Name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SmiEvents => "SMI events",
            Self::Svm => "shared virtual memory",
            Self::AvailableMemory => "available memory",
            Self::DmabufExport => "dma-buf export",
            Self::RuntimeEnable => "exception delivery",
            Self::EventAge => "event age",
            Self::ContiguousVram => "contiguous VRAM",
            Self::SdmaByEngine => "SDMA by engine",
        }
    }

    /// First version that has it.
    pub const fn since(self) -> KfdVersion {
        let minor = match self {
            Self::SmiEvents => 3,
            Self::Svm => 5,
            Self::AvailableMemory => 9,
            Self::DmabufExport => 12,
            Self::RuntimeEnable => 13,
            Self::EventAge => 14,
            Self::ContiguousVram => 16,
            Self::SdmaByEngine => 17,
        };
        KfdVersion { major: MAJOR, minor }
    }
}

/// The compute device, open. Cheap to clone; clones are the same device. `Send` and `Sync`.
///
/// A process has one KFD state per GPU whatever it opens: share one `Kfd` rather than opening a
/// second, which the kernel refuses as soon as it wants a GPU. After a fork the child must open
/// its own: it has none of the parent's device memory, and may do nothing with the handles it
/// inherited but drop them.
#[derive(Clone, Debug)]
pub struct Kfd {
    pub(crate) context: Arc<Context>,
    unusable: Arc<[AccessProblem]>,
}

impl Kfd {
    /// Opens the device of this machine.
    ///
    /// # Errors
    /// [`Error::Access`] says what is missing and what to do; [`Error::UnknownMajor`] when the
    /// kernel speaks another interface; [`Error::Ioctl`] or [`Error::Nonsense`] when it answers
    /// what no KFD answers. GPUs that cannot be used are no error: [`Kfd::unusable`] lists them.
    pub fn open() -> Result<Self> {
        Self::open_on(Arc::new(Linux::new()))
    }

    /// Opens the device of another kernel: a software GPU, or a recorder.
    ///
    /// # Errors
    /// As [`Kfd::open`].
    pub fn open_on(kernel: Arc<dyn Kernel>) -> Result<Self> {
        let file = retry(|| kernel.open(KFD_PATH, OpenFlags::READ_WRITE))
            .map_err(|errno| AccessProblem::kfd(&*kernel, errno))?;
        let render = |path: &str, _| retry(|| kernel.open(path, OpenFlags::READ_WRITE));
        Self::build(&kernel, file, render)
    }

    /// Takes over descriptors that a broker opened for a sandbox: `/dev/kfd`, and render nodes with
    /// the number in their name (`/dev/dri/renderD128` is 128). GPUs without one are unusable.
    /// `/dev/kfd` must have been opened by this process (docs/ABI.md §ioctl).
    ///
    /// # Errors
    /// As [`Kfd::open`].
    pub fn from_fds(
        kfd: OwnedFd,
        render_nodes: impl IntoIterator<Item = (u32, OwnedFd)>,
    ) -> Result<Self> {
        Self::from_fds_on(Arc::new(Linux::new()), kfd, render_nodes)
    }

    /// As [`Kfd::from_fds`], on another kernel.
    ///
    /// # Errors
    /// As [`Kfd::open`].
    pub fn from_fds_on(
        kernel: Arc<dyn Kernel>,
        kfd: OwnedFd,
        render_nodes: impl IntoIterator<Item = (u32, OwnedFd)>,
    ) -> Result<Self> {
        let file = kernel.import_fd(kfd).map_err(|errno| Error::System {
            call: "import_fd",
            what: KFD_PATH.to_owned(),
            errno,
        })?;
        let mut given: Vec<(u32, Option<OwnedFd>)> =
            render_nodes.into_iter().map(|(minor, fd)| (minor, Some(fd))).collect();
        Self::build(&kernel, file, |_, minor| {
            let mine = given.iter_mut().find(|(other, _)| *other == minor);
            let fd = mine.and_then(|(_, fd)| fd.take()).ok_or(Errno::NOENT)?;
            kernel.import_fd(fd)
        })
    }

    fn build(
        kernel: &Arc<dyn Kernel>,
        file: FileId,
        open_render: impl FnMut(&str, u32) -> Result<FileId, Errno>,
    ) -> Result<Self> {
        let mut files = Files { kernel, open: vec![file] };
        let version = ioctl::version(&**kernel, file)?;
        let version = KfdVersion { major: version.major_version, minor: version.minor_version };
        if version.major != MAJOR {
            return Err(Error::UnknownMajor { found: version, supported: MAJOR });
        }
        let topology =
            Topology::read(&**kernel).map_err(|errno| AccessProblem::NoTopology { errno })?;
        let mut unusable: Vec<AccessProblem> = AccessProblem::of_skipped(&topology).collect();
        let gpus = usable_gpus(&mut files, version, &topology, &mut unusable, open_render)?;
        files.open.clear(); // `Core` closes them from here on
        let core = Core::new(Arc::clone(kernel), file, version, topology, gpus);
        Ok(Self { context: Arc::new(Context::new(core)), unusable: unusable.into() })
    }

    /// Version of the kernel's interface.
    pub fn version(&self) -> KfdVersion {
        self.context.core.version
    }

    /// Whether the kernel has a feature.
    pub fn supports(&self, feature: Feature) -> bool {
        self.version() >= feature.since()
    }

    /// The machine when it was opened.
    pub fn topology(&self) -> &Topology {
        &self.context.core.topology
    }

    /// The GPUs that can be used, in topology order.
    pub fn gpus(&self) -> Vec<Gpu> {
        (0..self.context.core.gpus.len()).map(|index| Gpu::new(&self.context, index)).collect()
    }

    /// The first usable GPU.
    ///
    /// # Errors
    /// [`Error::NoUsableGpu`] with the reason for each that is there.
    pub fn first_gpu(&self) -> Result<Gpu> {
        let none = || Error::NoUsableGpu(self.unusable.to_vec());
        self.gpus().into_iter().next().ok_or_else(none)
    }

    /// The usable GPU of a topology node.
    pub fn gpu_of(&self, node: NodeId) -> Option<Gpu> {
        self.gpus().into_iter().find(|gpu| gpu.node().id == node)
    }

    /// Why the other GPUs cannot be used.
    pub fn unusable(&self) -> &[AccessProblem] {
        &self.unusable
    }

    /// What was not freed since the device might still use it.
    pub fn leaks(&self) -> Vec<Leak> {
        self.context.core.leaks()
    }

    /// Live allocations, by address, the driver's own included.
    pub fn allocations(&self) -> Vec<AllocationInfo> {
        self.context.core.registry.live()
    }

    /// Gives a kernel's name a number, for [`Queue::submit`](crate::Queue::submit): reports of faults
    /// and hangs then name the kernel. Names are kept for as long as the device is open.
    pub fn register_kernel(&self, name: &str) -> KernelLabel {
        self.context.register_kernel(name)
    }

    /// The kernel it runs on.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.context.core.kernel
    }
}

/// Files that are closed again unless opening succeeds as a whole.
struct Files<'a> {
    kernel: &'a Arc<dyn Kernel>,
    open: Vec<FileId>,
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        for file in &self.open {
            self.kernel.close(*file);
        }
    }
}

fn usable_gpus(
    files: &mut Files<'_>,
    version: KfdVersion,
    topology: &Topology,
    unusable: &mut Vec<AccessProblem>,
    mut open_render: impl FnMut(&str, u32) -> Result<FileId, Errno>,
) -> Result<Vec<GpuCore>> {
    let kernel = files.kernel;
    let Some(&kfd) = files.open.first() else { return Ok(Vec::new()) };
    let apertures = ioctl::apertures(&**kernel, kfd, version.minor)?;
    let mut gpus = Vec::new();
    for node in topology.gpus() {
        let Some(aperture) = apertures.iter().find(|entry| entry.gpu_id == node.gpu_id) else {
            let gpu = node.gpu_id;
            unusable.push(AccessProblem::Unsupported { gpu, reason: "KFD gives it no apertures" });
            continue;
        };
        if aperture.gpuvm_base >= aperture.gpuvm_limit {
            return Err(Error::Nonsense {
                call: "GET_PROCESS_APERTURES_NEW",
                what: "the limit of the aperture",
                value: aperture.gpuvm_limit,
            });
        }
        let opened = render_path(node).and_then(|path| {
            let minor = node.properties.drm_render_minor.unwrap_or(0);
            open_render(&path, minor)
                .map_err(|errno| AccessProblem::render(&**kernel, node.gpu_id, path, errno))
        });
        match opened {
            Ok(file) => {
                files.open.push(file);
                let apertures = Apertures {
                    lds: (aperture.lds_base, aperture.lds_limit),
                    scratch: (aperture.scratch_base, aperture.scratch_limit),
                    gpuvm: (aperture.gpuvm_base, aperture.gpuvm_limit),
                };
                gpus.push(GpuCore::new(Node::clone(node), file, apertures));
            }
            Err(problem) => unusable.push(problem),
        }
    }
    Ok(gpus)
}
