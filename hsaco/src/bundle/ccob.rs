//! The compressed bundle (`CCOB`).

use core::fmt;

use super::Fields;
use crate::error::ContainerProblem;

/// First bytes of a compressed bundle. Source: docs/ABI.md §Compressed bundle.
pub(super) const MAGIC: [u8; 4] = *b"CCOB";

/// How the content is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressionMethod {
    /// zlib (RFC 1950).
    Zlib,
    /// One Zstandard frame (RFC 8878).
    Zstd,
}

impl CompressionMethod {
    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    /// Most bytes that `compressed` bytes of this method can hold. DEFLATE copies at most 258 bytes
    /// with two bits; a Zstandard block of 4 bytes repeats one byte 128 KiB times.
    const fn most(self, compressed: u64) -> u64 {
        match self {
            Self::Zlib => compressed.saturating_mul(258 * 4),
            Self::Zstd => (compressed / 4).saturating_mul(128 << 10),
        }
    }
}

impl fmt::Display for CompressionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The header of a compressed bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedHeader {
    /// Version 1, 2 or 3.
    pub version: u16,
    /// How the content is compressed.
    pub method: CompressionMethod,
    /// Size of the header, bytes.
    pub header_bytes: u64,
    /// Size of the bundle with its header, bytes; version 1 does not say.
    pub total_bytes: Option<u64>,
    /// Size of the content, bytes.
    pub content_bytes: u64,
    /// First eight bytes of the content's MD5.
    pub hash: u64,
}

impl CompressedHeader {
    /// Reads the header at the start of `bytes`, which begin with `CCOB`.
    ///
    /// # Errors
    /// [`ContainerProblem::CompressedVersion`], [`ContainerProblem::CompressionMethod`],
    /// [`ContainerProblem::CompressedSize`], or [`ContainerProblem::Truncated`].
    pub fn read(bytes: &[u8]) -> Result<Self, ContainerProblem> {
        const WHAT: &str = "the compressed bundle's header";
        let fields = Fields(bytes);
        // The version decides the layout of all that follows.
        let version = fields.u16(WHAT, 4)?;
        let method = match fields.u16(WHAT, 6)? {
            0 => Ok(CompressionMethod::Zlib),
            1 => Ok(CompressionMethod::Zstd),
            found => Err(ContainerProblem::CompressionMethod { found }),
        };
        let (header_bytes, total_bytes, content_bytes, hash) = match version {
            1 => (20, None, u64::from(fields.u32(WHAT, 8)?), fields.u64(WHAT, 12)?),
            2 => {
                let total = u64::from(fields.u32(WHAT, 8)?);
                (24, Some(total), u64::from(fields.u32(WHAT, 12)?), fields.u64(WHAT, 16)?)
            }
            3 => (32, Some(fields.u64(WHAT, 8)?), fields.u64(WHAT, 16)?, fields.u64(WHAT, 24)?),
            found => return Err(ContainerProblem::CompressedVersion { found }),
        };
        if let Some(bytes) = total_bytes
            && bytes < header_bytes
        {
            return Err(ContainerProblem::CompressedSize { bytes, header: header_bytes });
        }
        Ok(Self { version, method: method?, header_bytes, total_bytes, content_bytes, hash })
    }
}

/// A compressed bundle, not decompressed yet.
pub(crate) struct CompressedBundle<'data> {
    pub header: CompressedHeader,
    /// The compressed stream; in version 1, with all that follows it.
    stream: &'data [u8],
}

impl<'data> CompressedBundle<'data> {
    pub fn read(bytes: &'data [u8]) -> Result<Self, ContainerProblem> {
        let header = CompressedHeader::read(bytes)?;
        let end = header.total_bytes.unwrap_or(bytes.len() as u64);
        let stream_bytes = end - header.header_bytes;
        let what = "the compressed stream";
        let stream = Fields(bytes).range(what, header.header_bytes, stream_bytes)?;
        Ok(Self { header, stream })
    }

    /// The content, checked against size and hash, and the end of the bundle.
    pub fn content(&self, limit: u64) -> Result<(Vec<u8>, usize), ContainerProblem> {
        let CompressedHeader { method, content_bytes, .. } = self.header;
        let compressed = self.stream.len() as u64;
        let limit = limit.min(method.most(compressed));
        if content_bytes > limit {
            let bytes = content_bytes;
            return Err(ContainerProblem::ContentTooLarge { bytes, compressed, limit });
        }
        self.decompress()
    }

    #[cfg(not(feature = "compression"))]
    fn decompress(&self) -> Result<(Vec<u8>, usize), ContainerProblem> {
        Err(ContainerProblem::NoDecompression)
    }

    #[cfg(feature = "compression")]
    fn decompress(&self) -> Result<(Vec<u8>, usize), ContainerProblem> {
        let CompressedHeader { method, content_bytes: expected, hash, .. } = self.header;
        let (content, taken) = match method {
            CompressionMethod::Zlib => super::inflate::zlib(self.stream, expected)?,
            CompressionMethod::Zstd => super::inflate::zstd(self.stream, expected)?,
        };
        let found = content.len() as u64;
        if found != expected {
            return Err(ContainerProblem::ContentSize { expected, found, more: false });
        }
        let after = self.stream.len() - taken;
        if self.header.total_bytes.is_some() && after != 0 {
            return Err(ContainerProblem::AfterStream { bytes: after as u64 });
        }
        let computed = super::inflate::hash(&content);
        if computed != hash {
            return Err(ContainerProblem::Hash { expected: hash, found: computed });
        }
        let header = usize::try_from(self.header.header_bytes).unwrap_or(usize::MAX);
        Ok((content, header + taken))
    }
}
