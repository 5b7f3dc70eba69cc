//! Configures a [`Model`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kfd::sys::Metadata;

use crate::exec::Watchdog;
use crate::exec::observe::{Observer, Watch, WatchError};
use crate::fault::FaultPlan;
use crate::kernel::Model;
use crate::preset::{self, Preset};
use crate::profile::Profile;
use crate::sysfs::{LoadError, Topology};

/// What a model is made of.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) profile: Profile,
    pub(crate) stepped: bool,
    /// Files have real descriptors, and these offsets for `mmap`.
    pub(crate) descriptors: Option<Offsets>,
    pub(crate) workers: Option<usize>,
    pub(crate) faults: Arc<FaultPlan>,
    /// Who watches the waves.
    pub(crate) observer: Option<Arc<Observer>>,
    /// When the model says where waves are that do not end.
    pub(crate) watchdog: Watchdog,
    /// GPUs that the device cgroup hides, by index.
    pub(crate) hidden: Vec<usize>,
    /// Topology nodes, CPUs included.
    pub(crate) topology_nodes: u32,
    /// Bytes of system memory that GPUs may use.
    pub(crate) system_bytes: u64,
    /// Device nodes that are not as usual, or (`None`) not there.
    pub(crate) nodes: BTreeMap<String, Option<Metadata>>,
}

/// Offsets for `mmap` that ioctls return. Both kinds are understood, whichever is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// KFD's own: a type and a GPU (docs/ABI.md §mmap).
    Kfd,
    /// Plain offsets into the descriptor: `mmap` needs no help.
    Plain,
}

/// Builds a [`Model`]. Without a call of [`gpu`](Self::gpu) it has one gfx1100.
#[derive(Debug, Default)]
#[must_use]
pub struct Builder {
    config: Config,
    presets: Vec<Preset>,
    svm: bool,
}

impl Builder {
    /// Adds a GPU.
    pub fn gpu(mut self, preset: Preset) -> Self {
        self.presets.push(preset);
        self
    }

    /// Selects the kernel to imitate.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.config.profile = profile;
        self
    }

    /// Runs without threads: queues advance inside each call of the kernel, `relax` included.
    pub fn stepped(mut self, stepped: bool) -> Self {
        self.config.stepped = stepped;
        self
    }

    /// Lets files have [descriptors](Model::descriptor) that the operating system maps, by the
    /// offsets that ioctls return or that [`Model::plan_map`] makes of them.
    pub fn descriptors(mut self, offsets: Offsets) -> Self {
        self.config.descriptors = Some(offsets);
        self
    }

    /// Threads that execute waves; by default one less than the machine has, at least one.
    pub fn workers(mut self, workers: usize) -> Self {
        self.config.workers = Some(workers);
        self
    }

    /// Orders faults. The plan may be changed later through a clone of the `Arc`.
    pub fn fault_plan(mut self, faults: impl Into<Arc<FaultPlan>>) -> Self {
        self.config.faults = faults.into();
        self
    }

    /// Watches waves while they execute: for bugs, for how close to hardware they are, for coverage.
    /// What is found comes with the diagnostics, and all of it with [`Model::report`].
    ///
    /// # Errors
    /// [`WatchError`] when a file that `watch` names cannot be used.
    pub fn watch(mut self, watch: Watch) -> Result<Self, WatchError> {
        self.config.observer = match watch.is_nothing() {
            true => None,
            false => Some(Arc::new(Observer::new(watch)?)),
        };
        Ok(self)
    }

    /// Has launches that do not end reported with the diagnostics: where each wave is, and whether
    /// they wait for each other, go round in circles or get somewhere. The device goes on hanging, as
    /// hardware does.
    pub fn watchdog(mut self, watchdog: Watchdog) -> Self {
        self.config.watchdog = watchdog;
        self
    }

    /// Hides the GPU with this index, as a device cgroup does.
    pub fn hide_gpu(mut self, index: usize) -> Self {
        self.config.hidden.push(index);
        self
    }

    /// Changes owner and mode of a device node, or removes it. `/dev/kfd` and `/dev/dri/renderD*`
    /// are otherwise open to everyone.
    pub fn device_node(mut self, path: &str, metadata: Option<Metadata>) -> Self {
        self.config.nodes.insert(path.to_owned(), metadata);
        self
    }

    /// Builds the kernel with `CONFIG_HSA_AMD_SVM`, which Debian's are built without: the presets
    /// show the capability bit, and SVM and SET_XNACK_MODE are served. A topology of its own
    /// decides by that bit alone.
    pub fn svm(mut self, svm: bool) -> Self {
        self.svm = svm;
        self
    }

    /// The model of the presets.
    pub fn build(mut self) -> Arc<Model> {
        if self.presets.is_empty() {
            self.presets.push(Preset::gfx1100());
        }
        self.build_presets()
    }

    /// As [`build`](Self::build), but without a preset the machine has no GPU: KFD shows its CPU
    /// node alone, as a kernel does that has loaded amdgpu and found no device.
    pub fn build_presets(self) -> Arc<Model> {
        let topology = preset::topology(&self.presets, self.config.profile, self.svm);
        Model::new(self.config, &topology)
    }

    /// The model of a topology.
    pub fn build_topology(self, topology: &Topology) -> Arc<Model> {
        Model::new(self.config, topology)
    }

    /// The model of a directory shaped like `/sys/class/kfd/kfd/topology`, such as a copy of a
    /// real machine's.
    ///
    /// # Errors
    /// [`LoadError`] names the file that is missing or malformed.
    pub fn build_directory(self, directory: &Path) -> Result<Arc<Model>, LoadError> {
        Ok(self.build_topology(&Topology::load(directory)?))
    }

    /// The topology that [`build`](Self::build) uses, for changes before
    /// [`build_topology`](Self::build_topology).
    pub fn topology(&self) -> Topology {
        preset::topology(&self.presets, self.config.profile, self.svm)
    }
}
