//! Which descriptors of this process are the model's: a table that hooks read without a lock.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use model::FileKind;

/// What a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Kfd,
    Render,
    DmaBuf,
    Smi,
    Directory,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Kfd, Self::Render, Self::DmaBuf, Self::Smi, Self::Directory];

    pub(crate) const fn of(kind: FileKind) -> Option<Self> {
        match kind {
            FileKind::Kfd => Some(Self::Kfd),
            FileKind::Render => Some(Self::Render),
            FileKind::DmaBuf => Some(Self::DmaBuf),
            FileKind::Smi => Some(Self::Smi),
            FileKind::Other => None,
        }
    }
}

/// As many as `fs.nr_open` allows by default. The pages of the table that nobody touches take no
/// memory.
const LIMIT: usize = 1 << 20;

const NUMBER_BITS: u32 = 24;
const GENERATION_BITS: u32 = 5;

/// Kind, generation and number of a file; 0 is none. Beside it the inode of the descriptor, since a
/// raw system call may have closed it and the number may be another file's by now.
struct Entry {
    tag: AtomicU32,
    inode: AtomicU64,
}

static TABLE: [Entry; LIMIT] =
    [const { Entry { tag: AtomicU32::new(0), inode: AtomicU64::new(0) } }; LIMIT];

/// The highest number that was ever entered.
static HIGHEST: AtomicI32 = AtomicI32::new(-1);

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ours {
    pub(crate) kind: Kind,
    /// Which instance of the model it belongs to.
    pub(crate) generation: u32,
    /// The model's number of the file, or a directory's.
    pub(crate) number: u32,
}

fn entry(fd: i32) -> Option<&'static Entry> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// Whether the descriptor may be the model's. All that hooks do for those that are not.
#[inline]
pub(crate) fn may_be_ours(fd: i32) -> bool {
    entry(fd).is_some_and(|entry| entry.tag.load(Ordering::Acquire) != 0)
}

fn inode(fd: i32) -> Option<u64> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `stat` has room for the answer. A raw call, since our own `fstat` asks this table.
    let failed = unsafe { libc::syscall(libc::SYS_fstat, fd, stat.as_mut_ptr()) };
    if failed != 0 {
        return None;
    }
    // SAFETY: all zeros are a valid `stat`, and the kernel has filled it.
    Some(unsafe { stat.assume_init() }.st_ino)
}

/// The entry of a descriptor, if it still is the file that was entered.
pub(crate) fn find(fd: i32) -> Option<Ours> {
    let entry = entry(fd)?;
    let tag = entry.tag.load(Ordering::Acquire);
    if tag == 0 {
        return None;
    }
    if inode(fd) != Some(entry.inode.load(Ordering::Acquire)) {
        return None;
    }
    decode(tag)
}

fn decode(tag: u32) -> Option<Ours> {
    let kind = usize::try_from(tag >> (NUMBER_BITS + GENERATION_BITS)).ok()?.checked_sub(1)?;
    Some(Ours {
        kind: *Kind::ALL.get(kind)?,
        generation: tag >> NUMBER_BITS & ((1 << GENERATION_BITS) - 1),
        number: tag & ((1 << NUMBER_BITS) - 1),
    })
}

/// The entries with numbers in the range, open or not.
pub(crate) fn entered(first: u32, last: u32) -> impl Iterator<Item = (i32, Ours)> {
    let end = HIGHEST.load(Ordering::Acquire);
    let range =
        i32::try_from(first).unwrap_or(i32::MAX)..=i32::try_from(last).unwrap_or(end).min(end);
    range.filter_map(|fd| Some((fd, decode(entry(fd)?.tag.load(Ordering::Acquire))?)))
}

/// Enters a descriptor. False when the table has no room for such a number.
pub(crate) fn enter(fd: i32, ours: Ours) -> bool {
    let Some(entry) = entry(fd).filter(|_| ours.number >> NUMBER_BITS == 0) else { return false };
    let Some(inode) = inode(fd) else { return false };
    let kind = Kind::ALL.iter().zip(1..).find(|(kind, _)| **kind == ours.kind);
    let kind: u32 = kind.map_or(0, |(_, place)| place);
    entry.inode.store(inode, Ordering::Release);
    let tag =
        kind << (NUMBER_BITS + GENERATION_BITS) | ours.generation << NUMBER_BITS | ours.number;
    HIGHEST.fetch_max(fd, Ordering::AcqRel);
    entry.tag.store(tag, Ordering::Release);
    true
}

/// Takes a descriptor out.
pub(crate) fn remove(fd: i32) {
    if let Some(entry) = entry(fd) {
        entry.tag.store(0, Ordering::Release);
    }
}

/// The generation after `generation`.
pub(crate) const fn next_generation(generation: u32) -> u32 {
    (generation + 1) & ((1 << GENERATION_BITS) - 1)
}
