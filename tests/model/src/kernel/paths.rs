//! Paths: device nodes, the virtual part of `/sys`, and the machine's own files for the rest.

use kfd::sys::{Errno, FileId, Metadata, OpenFlags};

use super::files::{Kind, open_host};
use super::{DRM_MAJOR, KFD_MAJOR, Model, State};
use crate::fault::Call;
use crate::sysfs::{Entry, KFD_DIRECTORY, PCI_ROOT, Tree};

/// What a path leads to.
pub(super) enum Place {
    Kfd,
    /// The render node of the GPU with this index.
    Render(usize),
    /// A directory of device nodes.
    DeviceDirectory,
    /// The virtual tree.
    Virtual,
    /// The machine's own files.
    Host,
}

const VIRTUAL: [&str; 6] = [
    "/sys/devices/virtual/kfd",
    "/sys/class/kfd",
    "/sys/class/drm",
    "/sys/module/amdgpu",
    PCI_ROOT,
    "/sys/bus/pci/drivers/amdgpu",
];

fn under(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

fn device_number(major: u32, minor: u64) -> u64 {
    rustix::fs::makedev(major, u32::try_from(minor).unwrap_or(u32::MAX))
}

impl Model {
    pub(super) fn place(&self, path: &str) -> Result<Place, Errno> {
        if matches!(self.config.nodes.get(path), Some(None)) {
            return Err(Errno::NOENT);
        }
        if path == "/dev/kfd" {
            return Ok(Place::Kfd);
        }
        if path == "/dev/dri" {
            return Ok(Place::DeviceDirectory);
        }
        if under(path, "/dev/kfd") {
            return Err(Errno::NOTDIR);
        }
        if let Some(name) = path.strip_prefix("/dev/dri/") {
            let name = name.strip_prefix("renderD").ok_or(Errno::NOENT)?;
            let minor: u64 = name.parse().map_err(|_| Errno::NOENT)?;
            let gpu = self.gpus.iter().position(|gpu| gpu.render_minor == minor);
            return gpu.map(Place::Render).ok_or(Errno::NOENT);
        }
        // Character devices by number: DRM's and KFD's.
        let device = path.strip_prefix("/sys/dev/char/");
        let ours = |number: &str| number.starts_with("226:") || number.starts_with("242:");
        if device.is_some_and(ours) || VIRTUAL.iter().any(|directory| under(path, directory)) {
            return Ok(Place::Virtual);
        }
        Ok(Place::Host)
    }

    /// The virtual tree, with what is known of processes now.
    pub(super) fn with_tree<T>(&self, path: &str, look: impl FnOnce(&Tree) -> T) -> T {
        if !path.contains("/proc") {
            return look(&self.tree);
        }
        let mut tree = self.tree.clone();
        for process in self.lock().processes.values() {
            let base = format!("{KFD_DIRECTORY}/proc/{}", process.pid);
            // A process of this model is the only one, and PASIDs count from 0x8000 on KFD.
            tree.file(&format!("{base}/pasid"), "32768\n");
            tree.directory(&format!("{base}/queues"));
            for device in &process.devices {
                let id = device.device.info.id;
                tree.file(&format!("{base}/vram_{id}"), format!("{}\n", device.vram_bytes));
                tree.file(&format!("{base}/sdma_{id}"), "0\n");
                tree.file(&format!("{base}/stats_{id}/evicted_ms"), "0\n");
                if device.device.info.has_svm() {
                    for name in ["faults", "page_in", "page_out"] {
                        tree.file(&format!("{base}/counters_{id}/{name}"), "0\n");
                    }
                }
            }
            for (id, record) in &process.queues {
                let queue = format!("{base}/queues/{id}");
                tree.file(&format!("{queue}/gpuid"), record.queue.gpu_id().to_string());
                tree.file(&format!("{queue}/size"), record.queue.ring_bytes().to_string());
                tree.file(&format!("{queue}/type"), record.sysfs_type.to_string());
            }
        }
        look(&tree)
    }

    pub(super) fn open_path(&self, path: &str, flags: OpenFlags) -> Result<FileId, Errno> {
        self.config.faults.check(&Call::Open(path.to_owned()))?;
        let kind = match self.place(path)? {
            Place::Kfd => {
                self.may_open(path, flags)?;
                let mut state = self.lock();
                let state: &mut State = &mut state;
                let pid = self.create_process(state)?.pid;
                return Ok(state.files.insert(Kind::Kfd { pid }));
            }
            Place::Render(gpu) => {
                self.may_open(path, flags)?;
                if self.gpus.get(gpu).is_some_and(|gpu| gpu.hidden) {
                    return Err(Errno::PERM);
                }
                Kind::Render { gpu, acquired: false }
            }
            Place::DeviceDirectory => return Err(Errno::ISDIR),
            Place::Virtual => {
                if flags.contains(OpenFlags::WRITE) {
                    return Err(Errno::ACCESS);
                }
                let entry = self.with_tree(path, |tree| {
                    tree.resolve(path, true).map(|(_, entry)| entry.clone())
                });
                match entry? {
                    Entry::File(content) => Kind::Text { content, position: 0 },
                    Entry::Directory => return Err(Errno::ISDIR),
                    Entry::Link(_) => return Err(Errno::LOOP),
                }
            }
            Place::Host => open_host(path, flags.contains(OpenFlags::WRITE))?,
        };
        Ok(self.lock().files.insert(kind))
    }

    /// The permission check of `open`, for nodes with a mode of their own. The model does not
    /// know of capabilities: user id 0 may do everything.
    fn may_open(&self, path: &str, flags: OpenFlags) -> Result<(), Errno> {
        let Some(Some(node)) = self.config.nodes.get(path) else { return Ok(()) };
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        let groups = rustix::process::getgroups().unwrap_or_default();
        let in_group = group == node.gid || groups.iter().any(|group| group.as_raw() == node.gid);
        let bits = match () {
            () if user == 0 => 7,
            () if user == node.uid => node.mode >> 6,
            () if in_group => node.mode >> 3,
            () => node.mode,
        };
        let wanted = if flags.contains(OpenFlags::READ) { 4 } else { 0 }
            | if flags.contains(OpenFlags::WRITE) { 2 } else { 0 };
        if bits & wanted == wanted { Ok(()) } else { Err(Errno::ACCESS) }
    }

    pub(super) fn stat_path(&self, path: &str) -> Result<Metadata, Errno> {
        let place = self.place(path)?;
        if let Some(Some(metadata)) = self.config.nodes.get(path) {
            return Ok(*metadata);
        }
        let device = |rdev| Metadata { mode: 0o20_666, uid: 0, gid: 0, rdev };
        let directory = Metadata { mode: 0o40_755, uid: 0, gid: 0, rdev: 0 };
        match place {
            Place::Kfd => Ok(device(device_number(KFD_MAJOR, 0))),
            Place::Render(gpu) => {
                let minor = self.gpus.get(gpu).map_or(0, |gpu| gpu.render_minor);
                Ok(device(device_number(DRM_MAJOR, minor)))
            }
            Place::DeviceDirectory => Ok(directory),
            Place::Virtual => {
                let entry =
                    self.with_tree(path, |tree| tree.resolve(path, true).map(|(_, e)| e.clone()))?;
                Ok(match entry {
                    Entry::Directory => directory,
                    _ => Metadata { mode: 0o100_444, uid: 0, gid: 0, rdev: 0 },
                })
            }
            Place::Host => {
                let stat = rustix::fs::stat(path)?;
                let (mode, rdev) = (stat.st_mode, stat.st_rdev);
                Ok(Metadata { mode, uid: stat.st_uid, gid: stat.st_gid, rdev })
            }
        }
    }

    pub(super) fn link_target(&self, path: &str) -> Result<String, Errno> {
        match self.place(path)? {
            Place::Virtual => self.with_tree(path, |tree| match tree.resolve(path, false)? {
                (_, Entry::Link(target)) => Ok(target.clone()),
                _ => Err(Errno::INVAL),
            }),
            Place::Host => {
                let target = std::fs::read_link(path).map_err(|error| errno(&error))?;
                Ok(target.to_string_lossy().into_owned())
            }
            Place::Kfd | Place::Render(_) | Place::DeviceDirectory => Err(Errno::INVAL),
        }
    }

    pub(super) fn list_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
        match self.place(path)? {
            Place::Virtual => self.with_tree(path, |tree| tree.names(path)),
            Place::DeviceDirectory => {
                let minors = self.gpus.iter().map(|gpu| format!("renderD{}", gpu.render_minor));
                let there = |name: &String| self.place(&format!("{path}/{name}")).is_ok();
                Ok(minors.filter(there).collect())
            }
            Place::Host => std::fs::read_dir(path)
                .map_err(|error| errno(&error))?
                .map(|entry| {
                    let entry = entry.map_err(|error| errno(&error))?;
                    Ok(entry.file_name().to_string_lossy().into_owned())
                })
                .collect(),
            Place::Kfd | Place::Render(_) => Err(Errno::NOTDIR),
        }
    }
}
