//! Open files of the model.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use kfd::abi::AllocFlags;
use kfd::sys::{Errno, FileId};
use rustix::fs::{MemfdFlags, fstat, memfd_create};

use super::arena::Region;
use crate::smi;

/// A buffer that left as a dma-buf.
#[derive(Clone, Debug)]
pub(crate) struct DmaBuf {
    pub(crate) region: Arc<Region>,
    pub(crate) bytes: u64,
    pub(crate) flags: AllocFlags,
    pub(crate) gpu_id: u32,
}

/// What a file is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// `/dev/kfd`, opened by this process.
    Kfd { pid: u32 },
    /// The render node of the GPU with this index.
    Render { gpu: usize, acquired: bool },
    /// A file below `/sys`.
    Text { content: Result<Vec<u8>, Errno>, position: usize },
    /// A dma-buf.
    DmaBuf(DmaBuf),
    /// An SMI event stream.
    Smi(Arc<smi::Client>),
    /// A file of the machine the model runs on.
    Host(std::fs::File),
}

/// An open file: shared by duplicates that left the process and came back.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) kind: Kind,
    /// Inode of the descriptor that stands for it outside.
    ticket: Option<(u64, u64)>,
}

/// The table of open files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    open: BTreeMap<i32, OpenFile>,
    /// Ids of files that came back, and the file they stand for.
    aliases: BTreeMap<i32, i32>,
    last: i32,
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

impl Files {
    /// Adds a file.
    pub(crate) fn insert(&mut self, kind: Kind) -> FileId {
        // Ids are not reused, so that a use after close is seen.
        self.last += 1;
        let id = self.last + 2;
        self.open.insert(id, OpenFile { kind, ticket: None });
        FileId(id)
    }

    /// The id under which the file is kept.
    fn real(&self, file: FileId) -> i32 {
        self.aliases.get(&file.0).copied().unwrap_or(file.0)
    }

    /// Removes a file.
    pub(crate) fn remove(&mut self, file: FileId) {
        if self.aliases.remove(&file.0).is_none() {
            self.open.remove(&file.0);
        }
    }

    /// The file.
    ///
    /// # Errors
    /// `EBADF`.
    pub(crate) fn get(&mut self, file: FileId) -> Result<&mut Kind, Errno> {
        let id = self.real(file);
        Ok(&mut self.open.get_mut(&id).ok_or(Errno::BADF)?.kind)
    }

    /// A descriptor that stands for the file outside.
    ///
    /// # Errors
    /// `EBADF`, or the errno of making a descriptor.
    pub(crate) fn export(&mut self, file: FileId) -> Result<OwnedFd, Errno> {
        let id = self.real(file);
        let open = self.open.get_mut(&id).ok_or(Errno::BADF)?;
        if let Kind::Host(file) = &open.kind {
            return file.try_clone().map(OwnedFd::from).map_err(|error| errno(&error));
        }
        let fd = memfd_create("kfd-model file", MemfdFlags::CLOEXEC)?;
        let stat = fstat(&fd)?;
        open.ticket = Some((stat.st_dev, stat.st_ino));
        Ok(fd)
    }

    /// The file that `fd` stands for.
    ///
    /// # Errors
    /// `EBADF` when it did not come from [`export`](Self::export).
    pub(crate) fn import(&mut self, fd: &OwnedFd) -> Result<FileId, Errno> {
        let stat = fstat(fd)?;
        let ticket = Some((stat.st_dev, stat.st_ino));
        let found = self.open.iter().find(|(_, open)| open.ticket == ticket);
        let real = *found.ok_or(Errno::BADF)?.0;
        self.last += 1;
        let id = self.last + 2;
        self.aliases.insert(id, real);
        Ok(FileId(id))
    }
}

/// `read`.
///
/// # Errors
/// The file's errno; `EINVAL` for files that cannot be read.
pub(crate) fn read(kind: &mut Kind, buf: &mut [u8]) -> Result<usize, Errno> {
    match kind {
        Kind::Text { content, position } => {
            let content = content.as_ref().map_err(|errno| *errno)?;
            let rest = content.get(*position..).unwrap_or_default();
            let count = rest.len().min(buf.len());
            for (to, from) in buf.iter_mut().zip(rest) {
                *to = *from;
            }
            *position += count;
            Ok(count)
        }
        Kind::Host(file) => file.read(buf).map_err(|error| errno(&error)),
        Kind::Smi(client) => client.read(buf),
        Kind::Kfd { .. } | Kind::Render { .. } | Kind::DmaBuf(_) => Err(Errno::INVAL),
    }
}

/// `write`.
///
/// # Errors
/// The file's errno; `EINVAL` for files that cannot be written.
pub(crate) fn write(kind: &mut Kind, buf: &[u8]) -> Result<usize, Errno> {
    match kind {
        Kind::Host(file) => file.write(buf).map_err(|error| errno(&error)),
        Kind::Smi(client) => client.write(buf),
        Kind::Text { .. } => Err(Errno::IO),
        Kind::Kfd { .. } | Kind::Render { .. } | Kind::DmaBuf(_) => Err(Errno::INVAL),
    }
}

/// Opens a file of the machine the model runs on.
///
/// # Errors
/// The errno of `open`.
pub(crate) fn open_host(path: &str, write: bool) -> Result<Kind, Errno> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.read(true).write(write).open(path).map_err(|error| errno(&error))?;
    let _ = file.rewind();
    Ok(Kind::Host(file))
}
