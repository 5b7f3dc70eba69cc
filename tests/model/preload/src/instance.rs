//! The model of this process, made when a program first asks for something of the model's.
//!
//! A forked child must not touch its parent's model: another thread may have held a lock of it. It
//! gets one of its own when it opens something; what it inherited answers `EBADF` until closed, as
//! KFD does.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kfd::sys::{Errno, FileId, Kernel as _, OpenFlags};
use model::{Descriptors, Model};

use crate::config::{self, Log};
use crate::descriptors::{self, Kind, Ours};
use crate::report::Counts;

/// The model of one process.
pub(crate) struct Instance {
    pid: u32,
    pub(crate) generation: u32,
    pub(crate) model: Arc<Model>,
    pub(crate) counts: Counts,
    pub(crate) logs: Log,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    /// How many descriptors stand for a file of the model's.
    uses: BTreeMap<u32, u32>,
    /// Paths of open directories, by number, and how many descriptors stand for each.
    directories: BTreeMap<u32, (String, u32)>,
    last_directory: u32,
}

static CURRENT: AtomicPtr<Instance> = AtomicPtr::new(ptr::null_mut());
/// Process that is making its instance; 0 for none.
static MAKING: AtomicU32 = AtomicU32::new(0);
/// Process whose environment was found wrong, with which the model is absent.
static REFUSED: AtomicU64 = AtomicU64::new(0);

fn process() -> u32 {
    std::process::id()
}

impl Instance {
    /// This process's instance, if it has one.
    pub(crate) fn existing() -> Option<&'static Self> {
        let current = CURRENT.load(Ordering::Acquire);
        // SAFETY: null or a leaked instance, which is never freed nor changed but through its locks.
        let instance = unsafe { current.as_ref() }?;
        (instance.pid == process()).then_some(instance)
    }

    /// Whether the KFD that this process or one before it has opened knows an ioctl.
    pub(crate) fn knows_ioctl(request: u32) -> bool {
        let current = CURRENT.load(Ordering::Acquire);
        // SAFETY: null or a leaked instance. What is asked of it never changes, so that it can be
        // asked in a child too.
        unsafe { current.as_ref() }.is_none_or(|it| it.model.knows_ioctl(request))
    }

    /// This process's instance, made if need be. `None` with a wrong environment, of which a line
    /// was printed.
    pub(crate) fn get() -> Option<&'static Self> {
        loop {
            if let Some(instance) = Self::existing() {
                return Some(instance);
            }
            let pid = process();
            if REFUSED.load(Ordering::Acquire) == u64::from(pid) {
                return None;
            }
            let making = MAKING.load(Ordering::Acquire);
            if making == pid {
                // Another thread is at it; it takes milliseconds.
                std::thread::yield_now();
                continue;
            }
            // A parent's thread that was at it does not exist here.
            let claimed = MAKING.compare_exchange(making, pid, Ordering::AcqRel, Ordering::Acquire);
            if claimed.is_ok() {
                Self::make(pid);
                MAKING.store(0, Ordering::Release);
            }
        }
    }

    fn make(pid: u32) {
        if Self::existing().is_some() {
            return; // another thread has finished in between
        }
        let before = CURRENT.load(Ordering::Acquire);
        // SAFETY: null or a leaked instance; its number never changes.
        let before = unsafe { before.as_ref() }.map(|instance| instance.generation);
        match config::model() {
            Ok(model) => {
                let instance = Box::new(Self {
                    pid,
                    generation: before.map_or(0, descriptors::next_generation),
                    model,
                    counts: Counts::default(),
                    logs: config::log(),
                    files: Mutex::default(),
                });
                CURRENT.store(Box::into_raw(instance), Ordering::Release);
                crate::report::at_exit();
            }
            Err(reason) => {
                eprintln!("libkfd_model.so: {reason}");
                REFUSED.store(u64::from(pid), Ordering::Release);
            }
        }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model's file behind a descriptor of this process's instance.
    pub(crate) fn file(&self, ours: Ours) -> Option<FileId> {
        let mine = ours.generation == self.generation && ours.kind != Kind::Directory;
        mine.then(|| i32::try_from(ours.number).ok()).flatten().map(FileId)
    }

    /// The path of an open directory.
    pub(crate) fn directory(&self, ours: Ours) -> Option<String> {
        let mine = ours.generation == self.generation && ours.kind == Kind::Directory;
        let files = self.files();
        let entry = mine.then(|| files.directories.get(&ours.number)).flatten();
        entry.map(|(path, _)| path.clone())
    }

    /// Opens a device of the model's.
    pub(crate) fn open_device(&self, path: &str, flags: i32) -> Result<i32, Errno> {
        let access = match flags & libc::O_ACCMODE {
            libc::O_RDONLY => OpenFlags::READ,
            libc::O_WRONLY => OpenFlags::WRITE,
            _ => OpenFlags::READ_WRITE,
        };
        let file = self.model.open(path, access)?;
        let fd = self.model.descriptor(file, access).and_then(|fd| {
            set_inheritance(&fd, flags)?;
            self.enter(fd, file)
        });
        fd.inspect_err(|_| self.model.close(file))
    }

    /// Enters the first descriptor of a file.
    fn enter(&self, fd: OwnedFd, file: FileId) -> Result<i32, Errno> {
        let kind = Kind::of(self.model.kind(file)?).ok_or(Errno::BADF)?;
        let number = u32::try_from(file.0).map_err(|_| Errno::MFILE)?;
        let ours = Ours { kind, generation: self.generation, number };
        self.files().uses.insert(number, 1);
        if descriptors::enter(fd.as_raw_fd(), ours) {
            return Ok(fd.into_raw_fd());
        }
        self.files().uses.remove(&number);
        Err(Errno::MFILE)
    }

    /// Opens a directory of the model's.
    pub(crate) fn open_directory(&self, path: &str, flags: i32) -> Result<i32, Errno> {
        if flags & libc::O_ACCMODE != libc::O_RDONLY {
            return Err(Errno::ISDIR);
        }
        let fd = model::text_descriptor(b"")?;
        set_inheritance(&fd, flags)?;
        let mut files = self.files();
        files.last_directory = files.last_directory.wrapping_add(1) & 0xff_ffff;
        let number = files.last_directory;
        let ours = Ours { kind: Kind::Directory, generation: self.generation, number };
        if !descriptors::enter(fd.as_raw_fd(), ours) {
            return Err(Errno::MFILE);
        }
        files.directories.insert(number, (path.to_owned(), 1));
        Ok(fd.into_raw_fd())
    }

    /// Notes that `fd` is another descriptor of what `ours` says.
    pub(crate) fn duplicated(&self, fd: i32, ours: Ours) -> bool {
        let mut files = self.files();
        let uses = match ours.kind {
            Kind::Directory => files.directories.get_mut(&ours.number).map(|(_, uses)| uses),
            _ => files.uses.get_mut(&ours.number),
        };
        let known = uses.is_some_and(|uses| {
            *uses += 1;
            true
        });
        known && descriptors::enter(fd, ours)
    }

    /// Notes that a descriptor of what `ours` says is closed.
    pub(crate) fn released(&self, ours: Ours) {
        if ours.generation != self.generation {
            return;
        }
        let mut files = self.files();
        if ours.kind == Kind::Directory {
            if let Some((_, uses)) = files.directories.get_mut(&ours.number) {
                *uses -= 1;
                if *uses == 0 {
                    files.directories.remove(&ours.number);
                }
            }
            return;
        }
        let last = files.uses.get_mut(&ours.number).is_some_and(|uses| {
            *uses = uses.saturating_sub(1);
            *uses == 0
        });
        if last {
            files.uses.remove(&ours.number);
            drop(files);
            if let Ok(number) = i32::try_from(ours.number) {
                self.model.close(FileId(number));
            }
        }
    }

    /// Says something on the error stream, where so much was asked for.
    pub(crate) fn log(&self, level: Log, text: impl FnOnce() -> String) {
        if self.logs >= level {
            eprintln!("libkfd_model.so: {}", text());
        }
    }
}

impl Descriptors for Instance {
    fn file(&self, fd: i32) -> Option<FileId> {
        Self::file(self, descriptors::find(fd)?)
    }

    fn publish(&self, file: FileId) -> Result<i32, Errno> {
        let fd = self.model.descriptor(file, OpenFlags::READ_WRITE)?;
        self.enter(fd, file)
    }
}

/// Descriptors of the model's are made close-on-exec; the caller may have wanted otherwise.
pub(crate) fn set_inheritance(fd: &OwnedFd, flags: i32) -> Result<(), Errno> {
    if flags & libc::O_CLOEXEC != 0 {
        return Ok(());
    }
    // SAFETY: changes a flag of a descriptor that is ours.
    let failed = unsafe { libc::syscall(libc::SYS_fcntl, fd.as_raw_fd(), libc::F_SETFD, 0) };
    if failed == 0 { Ok(()) } else { Err(Errno::BADF) }
}
