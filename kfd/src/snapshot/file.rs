//! Snapshots in files: a line that says what it is, then JSON.
//!
//! ```text
//! kfd-snapshot <version> <bytes of what follows>\n
//! { ... }
//! ```
//! The first line is of every version for ever; what follows it is of one. A reader refuses other
//! versions by their number, and never reads more than [`MAX_BYTES`].

use std::io::{self, Read, Write};
use std::path::Path;

use super::Snapshot;

/// The version of the format that this crate writes, and the only one it reads. It changes whenever
/// an older reader would misunderstand.
pub const VERSION: u32 = 1;

const MAGIC: &str = "kfd-snapshot";
/// Longest first line.
const MAX_LINE: usize = 64;
/// Longest payload: 1024 queues with all they may have are less than half of it.
const MAX_BYTES: u64 = 128 << 20;

/// Why a file is no snapshot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFileError {
    /// It cannot be read or written.
    #[error("the snapshot cannot be read or written")]
    Io(#[from] io::Error),
    /// It does not start as a snapshot does.
    #[error(
        "this is no snapshot: it does not start with a line \"kfd-snapshot <version> <bytes>\""
    )]
    Foreign,
    /// It is of another version.
    #[error("the snapshot has version {found}, this program reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// It says it is larger than any snapshot.
    #[error("the snapshot says it has {bytes} bytes, more than the {MAX_BYTES} that one can have")]
    TooLarge {
        /// Bytes it says.
        bytes: u64,
    },
    /// It ends early, or goes on after its end.
    #[error("the snapshot says it has {expected} bytes, and has {found}")]
    Length {
        /// Bytes it says.
        expected: u64,
        /// Bytes there are; one more than it says stands for any number of them.
        found: u64,
    },
    /// What follows the first line is not what belongs there.
    #[error("the snapshot's content is damaged")]
    Content(#[from] serde_json::Error),
}

impl Snapshot {
    /// Writes it in the format of [`Snapshot::read_from`].
    ///
    /// # Errors
    /// [`SnapshotFileError::Io`].
    pub fn write_to(&self, mut to: impl Write) -> Result<(), SnapshotFileError> {
        let content = serde_json::to_vec(self)?;
        writeln!(to, "{MAGIC} {VERSION} {}", content.len())?;
        to.write_all(&content)?;
        to.flush()?;
        Ok(())
    }

    /// Writes it to a file, which is replaced as a whole: a reader sees the old content or the new.
    ///
    /// # Errors
    /// [`SnapshotFileError::Io`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SnapshotFileError> {
        let path = path.as_ref();
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = path.with_file_name(name);
        let written = std::fs::File::create(&new)
            .map_err(SnapshotFileError::from)
            .and_then(|file| self.write_to(io::BufWriter::new(file)))
            .and_then(|()| std::fs::rename(&new, path).map_err(SnapshotFileError::from));
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written
    }

    /// Reads what [`Snapshot::write_to`] wrote, to its end. Made for input that nobody vouches for:
    /// it reads a bounded number of bytes, and allocates no more than a constant times that.
    ///
    /// # Errors
    /// [`SnapshotFileError`] says what is wrong with it.
    pub fn read_from(mut from: impl Read) -> Result<Self, SnapshotFileError> {
        let (version, bytes) = first_line(&mut from)?;
        if version != VERSION {
            return Err(SnapshotFileError::Version { found: version });
        }
        let bytes = bytes.ok_or(SnapshotFileError::Foreign)?;
        if bytes > MAX_BYTES {
            return Err(SnapshotFileError::TooLarge { bytes });
        }
        let mut content = Vec::new();
        // One more, to notice that it goes on.
        let found = from.take(bytes + 1).read_to_end(&mut content)? as u64;
        if found != bytes {
            return Err(SnapshotFileError::Length { expected: bytes, found });
        }
        Ok(serde_json::from_slice(&content)?)
    }

    /// Whether `bytes` start as a snapshot of any version does.
    pub fn is_at(bytes: &[u8]) -> bool {
        bytes.strip_prefix(MAGIC.as_bytes()).is_some_and(|rest| rest.starts_with(b" "))
    }
}

/// Version and length; what follows the version may be different in other versions.
fn first_line(from: &mut impl Read) -> Result<(u32, Option<u64>), SnapshotFileError> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        match from.read(&mut byte) {
            Ok(0) => return Err(SnapshotFileError::Foreign),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        let [byte] = byte;
        if byte == b'\n' {
            break;
        }
        line.push(byte);
        if line.len() > MAX_LINE {
            return Err(SnapshotFileError::Foreign);
        }
    }
    let line = std::str::from_utf8(&line).map_err(|_| SnapshotFileError::Foreign)?;
    let mut words = line.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(SnapshotFileError::Foreign);
    }
    let version = words.next().and_then(|word| word.parse().ok());
    let bytes = words.next().and_then(|word| word.parse().ok());
    let bytes = bytes.filter(|_| words.next().is_none());
    Ok((version.ok_or(SnapshotFileError::Foreign)?, bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::{GpuId, QueueId};
    use crate::queue::{QueueKind, SdmaEngine};
    use crate::snapshot::{NamedBy, PacketRecord, QueueRecord, WaitRecord};

    fn example() -> Snapshot {
        let wait = WaitRecord {
            address: 0x1048,
            wants: "== 0x0".to_owned(),
            value: Some(1),
            named_by: vec![NamedBy { queue: QueueId(2), index: 7 }],
        };
        let queue = QueueRecord {
            queue: QueueId(1),
            gpu: GpuId(77),
            target: "gfx90a".to_owned(),
            kind: QueueKind::Sdma(SdmaEngine::Index(3)),
            read_index: 8,
            write_index: 16,
            packets: vec![PacketRecord { index: 8, kernel: None, text: "TRAP".to_owned() }],
            dwords: vec![6, 0],
            waits: vec![wait],
            ..Default::default()
        };
        Snapshot { pid: 9, queues: vec![queue], ..Default::default() }
    }

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        example().write_to(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = written();
        assert!(Snapshot::is_at(&bytes));
        assert_eq!(Snapshot::read_from(&*bytes).unwrap(), example());
    }

    #[test]
    fn other_versions_are_refused_by_number_whatever_they_look_like() {
        for line in ["kfd-snapshot 2 10\n", "kfd-snapshot 2\n", "kfd-snapshot 2 zstd 7 x\n"] {
            let error = Snapshot::read_from(line.as_bytes()).unwrap_err();
            assert!(matches!(error, SnapshotFileError::Version { found: 2 }), "{error}");
            assert!(error.to_string().contains("version 2"), "{error}");
        }
    }

    #[test]
    fn a_file_cut_short_or_longer_says_so_with_both_lengths() {
        let bytes = written();
        let line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for end in 0..bytes.len() {
            let error = Snapshot::read_from(&bytes[..end]).unwrap_err();
            match error {
                SnapshotFileError::Foreign => assert!(end < line, "{end}"),
                SnapshotFileError::Length { found, .. } => assert_eq!(found, (end - line) as u64),
                other => panic!("{other}"),
            }
        }
        let mut longer = bytes.clone();
        longer.extend(b"xyz");
        let error = Snapshot::read_from(&*longer).unwrap_err();
        assert!(
            matches!(error, SnapshotFileError::Length { expected, found } if found == expected + 1)
        );
    }

    #[test]
    fn a_length_that_no_snapshot_has_is_refused_before_anything_is_read() {
        let line = format!("kfd-snapshot 1 {}\n", u64::MAX);
        let error = Snapshot::read_from(line.as_bytes()).unwrap_err();
        assert!(matches!(error, SnapshotFileError::TooLarge { bytes: u64::MAX }), "{error}");
    }

    #[test]
    fn foreign_files_are_refused_after_a_line() {
        for bytes in [&b"\x7fELF"[..], b"", b"kfd-snapshots 1 2\n", &[b'k'; 4096], b"\xff\xff\n"] {
            let error = Snapshot::read_from(bytes).unwrap_err();
            assert!(matches!(error, SnapshotFileError::Foreign), "{error}");
        }
    }

    #[test]
    fn content_that_nests_without_end_is_an_error() {
        let content = "[".repeat(1 << 20);
        let file = format!("kfd-snapshot 1 {}\n{content}", content.len());
        let error = Snapshot::read_from(file.as_bytes()).unwrap_err();
        assert!(matches!(error, SnapshotFileError::Content(_)), "{error}");
    }

    #[test]
    fn a_saved_file_replaces_the_old_one_and_leaves_nothing_beside_it() {
        let directory = std::env::temp_dir().join(format!("kfd-snapshot-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("rings");
        std::fs::write(&path, "old").unwrap();
        example().save(&path).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        assert_eq!(Snapshot::read_from(file).unwrap(), example());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        assert!(example().save(directory.join("none").join("rings")).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let _ = Snapshot::read_from(&*bytes);
        }

        /// Damage anywhere in a real file is an error, or gives a snapshot that can be shown.
        #[test]
        fn no_damage_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = written();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(snapshot) = Snapshot::read_from(&*bytes) {
                let _ = snapshot.to_string();
            }
        }
    }
}
