//! The model for a process that uses real descriptors and real `mmap`: what a library that stands
//! in for the kernel's entry points asks of it. For models with
//! [descriptors](crate::Builder::descriptors).

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use kfd::abi::MmapType;
use kfd::sys::{Errno, FileId, Metadata, OpenFlags};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::files::Kind;
use super::paths::Place;
use super::{Model, user};
use crate::sysfs::Entry;

/// What a path of the model's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A device that [`Kernel::open`](kfd::sys::Kernel::open) opens.
    Device,
    /// A directory.
    Directory,
    /// A file of text.
    Text,
    /// A symbolic link.
    Link,
}

/// What an open file of the model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `/dev/kfd`.
    Kfd,
    /// A render node.
    Render,
    /// A dma-buf.
    DmaBuf,
    /// A stream of SMI events.
    Smi,
    /// Something else.
    Other,
}

/// A mapping that the operating system is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Byte offset in the descriptor.
    pub offset: u64,
    /// A child of a fork does not get it.
    pub dont_fork: bool,
}

/// The descriptors that the process knows files by.
pub trait Descriptors {
    /// The file behind a descriptor.
    fn file(&self, fd: i32) -> Option<FileId>;

    /// A new descriptor for a file that an ioctl has made.
    ///
    /// # Errors
    /// The errno of making one.
    fn publish(&self, file: FileId) -> Result<i32, Errno>;
}

/// Where the argument of a KFD ioctl has a descriptor: number, and byte offset.
const GIVEN: [(u32, usize); 3] = [(0x15, 0), (0x1c, 28), (0x1d, 20)];
const MADE: [(u32, usize); 2] = [(0x1f, 4), (0x24, 12)];

fn word(bytes: &mut [u8], at: usize) -> Option<&mut [u8; 4]> {
    bytes.get_mut(at..)?.first_chunk_mut()
}

/// Replaces the descriptors in an argument by the files they stand for.
pub(super) fn take_descriptors(number: u32, data: &mut [u8], all: &dyn Descriptors) {
    for (_, at) in GIVEN.iter().filter(|(with, _)| *with == number) {
        if let Some(word) = word(data, *at) {
            // No file has this number.
            let file = all.file(i32::from_le_bytes(*word)).map_or(-1, |file| file.0);
            *word = file.to_le_bytes();
        }
    }
}

impl Model {
    /// Replaces the files that a successful ioctl has made by descriptors.
    pub(super) fn give_descriptors(
        &self,
        number: u32,
        data: &mut [u8],
        all: &dyn Descriptors,
    ) -> Result<(), Errno> {
        for (_, at) in MADE.iter().filter(|(with, _)| *with == number) {
            let Some(word) = word(data, *at) else { continue };
            let file = FileId(i32::from_le_bytes(*word));
            match all.publish(file) {
                Ok(fd) => *word = fd.to_le_bytes(),
                Err(errno) => {
                    self.lock().files.remove(file);
                    return Err(errno);
                }
            }
        }
        Ok(())
    }

    /// `ioctl` with the argument at `address` of this process.
    ///
    /// # Errors
    /// The errno of the ioctl; `EFAULT` for a bad address.
    pub fn ioctl_at(
        &self,
        file: FileId,
        request: u32,
        address: u64,
        descriptors: &dyn Descriptors,
    ) -> Result<u32, Errno> {
        let kind = match self.lock().files.get(file)? {
            Kind::Kfd { pid } => Err(*pid),
            Kind::Render { gpu, .. } => Ok(*gpu),
            _ => return Err(Errno::NOTTY),
        };
        match kind {
            Err(opener) => self.kfd_ioctl_at(opener, request, address, descriptors),
            Ok(gpu) => {
                let bytes = usize::try_from(request >> 16 & 0x3fff).unwrap_or(0);
                let mut data = vec![0; bytes];
                user::read_bytes(address, &mut data)?;
                let result = self.drm_ioctl(gpu, request, &mut data)?;
                user::write_bytes(address, &data)?;
                Ok(result)
            }
        }
    }

    /// What an open file is.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn kind(&self, file: FileId) -> Result<FileKind, Errno> {
        Ok(match self.lock().files.get(file)? {
            Kind::Kfd { .. } => FileKind::Kfd,
            Kind::Render { .. } => FileKind::Render,
            Kind::DmaBuf(_) => FileKind::DmaBuf,
            Kind::Smi(_) => FileKind::Smi,
            Kind::Text { .. } | Kind::Host(_) => FileKind::Other,
        })
    }

    /// A descriptor for a file: one that can be mapped at the offsets which ioctls return, or a
    /// socket that carries SMI events. It is open for what `flags` say, and close-on-exec.
    ///
    /// # Errors
    /// `EBADF`, or the errno of making it.
    pub fn descriptor(&self, file: FileId, flags: OpenFlags) -> Result<OwnedFd, Errno> {
        let client = match self.lock().files.get(file)? {
            Kind::Kfd { .. } | Kind::Render { .. } | Kind::DmaBuf(_) => None,
            Kind::Smi(client) => Some(std::sync::Arc::clone(client)),
            Kind::Text { .. } | Kind::Host(_) => return Err(Errno::INVAL),
        };
        if let Some(client) = client {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            client.connect(near);
            return Ok(far);
        }
        let arena = self.arena.as_ref().ok_or(Errno::INVAL)?;
        // A file description of its own, since position and flags are per open. Without /proc there
        // is only a duplicate.
        let path = format!("/proc/self/fd/{}", arena.file().as_raw_fd());
        let mut options = OpenOptions::new();
        options.read(flags.contains(OpenFlags::READ)).write(flags.contains(OpenFlags::WRITE));
        let opened = options.open(path).or_else(|_| arena.file().try_clone());
        opened.map(OwnedFd::from).map_err(|error| super::paths::errno(&error))
    }

    /// What `mmap` of a file is to do instead.
    ///
    /// # Errors
    /// What KFD or DRM refuse.
    pub fn plan_map(&self, file: FileId, offset: u64, bytes: u64) -> Result<Plan, Errno> {
        let bytes = bytes.checked_next_multiple_of(4096).ok_or(Errno::NOMEM)?;
        let mut state = self.lock();
        let state = &mut *state;
        let source = self.source(state, file, offset, bytes)?;
        let is_kfd = matches!(state.files.get(file), Ok(Kind::Kfd { .. }));
        Ok(Plan { offset: source.backing().1, dont_fork: is_kfd })
    }

    /// Kind, GPU and size of what lies at a plain offset of `/dev/kfd`.
    pub fn offset_kind(&self, offset: u64) -> Option<MmapType> {
        let state = self.lock();
        let process = state.processes.get(&std::process::id())?;
        let literal = process.literal_offset(offset);
        (literal != offset).then(|| MmapType::of(literal))
    }

    /// What a path names; `None` for a path that is not the model's.
    ///
    /// # Errors
    /// The errno of `stat`.
    pub fn node(&self, path: &str, follow: bool) -> Result<Option<Node>, Errno> {
        Ok(Some(match self.place(path)? {
            Place::Host => return Ok(None),
            Place::Kfd | Place::Render(_) => Node::Device,
            Place::DeviceDirectory => Node::Directory,
            Place::Virtual => self.with_tree(path, |tree| {
                Ok(match tree.resolve(path, follow)?.1 {
                    Entry::Directory => Node::Directory,
                    Entry::File(_) => Node::Text,
                    Entry::Link(_) => Node::Link,
                })
            })?,
        }))
    }

    /// `stat` of a path, or `lstat` of it.
    ///
    /// # Errors
    /// The errno of `stat`.
    pub fn stat(&self, path: &str, follow: bool) -> Result<Metadata, Errno> {
        match self.node(path, follow)? {
            Some(Node::Link) => Ok(Metadata { mode: 0o120_777, uid: 0, gid: 0, rdev: 0 }),
            _ => self.stat_path(path),
        }
    }

    /// `fstat` of a device.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn file_metadata(&self, file: FileId) -> Result<Metadata, Errno> {
        let gpu = match self.lock().files.get(file)? {
            Kind::Kfd { .. } => None,
            Kind::Render { gpu, .. } => Some(*gpu),
            _ => return Err(Errno::BADF),
        };
        match gpu.and_then(|gpu| self.gpus.get(gpu)) {
            Some(gpu) => self.stat_path(&format!("/dev/dri/renderD{}", gpu.render_minor)),
            None => self.stat_path("/dev/kfd"),
        }
    }

    /// The path without links.
    ///
    /// # Errors
    /// The errno of `realpath`.
    pub fn canonical(&self, path: &str) -> Result<String, Errno> {
        match self.place(path)? {
            Place::Virtual => {
                self.with_tree(path, |tree| tree.resolve(path, true).map(|(path, _)| path))
            }
            _ => Ok(path.to_owned()),
        }
    }

    /// The content of a file of text.
    ///
    /// # Errors
    /// The errno of `open` or `read`.
    pub fn text(&self, path: &str) -> Result<Vec<u8>, Errno> {
        match self.place(path)? {
            Place::Virtual => self.with_tree(path, |tree| match tree.resolve(path, true)?.1 {
                Entry::File(content) => content.clone(),
                Entry::Directory => Err(Errno::ISDIR),
                Entry::Link(_) => Err(Errno::LOOP),
            }),
            Place::DeviceDirectory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }
}

/// A descriptor that holds `content`, at its start. Close-on-exec.
///
/// # Errors
/// The errno of making it.
pub fn text_descriptor(content: &[u8]) -> Result<OwnedFd, Errno> {
    let mut file = File::from(memfd_create("kfd-model text", MemfdFlags::CLOEXEC)?);
    let written = file.write_all(content).and_then(|()| file.rewind());
    written.map(|()| OwnedFd::from(file)).map_err(|error| super::paths::errno(&error))
}
