//! [`CopyRequest`]: how a stream copies and fills.

/// What moves the bytes.
///
/// # What [`CopyEngine::Auto`] chooses
/// - Within the memory of one GPU: a kernel. It moves bytes as fast as the memory does, an SDMA engine at
///   a small part of that.
/// - Across a link, between host and GPU or between GPUs: an SDMA engine. It is as fast as the link, and
///   leaves the compute units to kernels.
/// - Less than [`CopyRequest::small`] bytes: a kernel. To go to another engine and back takes the
///   stream two waits, each longer than the copy.
/// - What an engine's packets cannot do, or only slowly (rows at pitches that are no multiple of 4 bytes,
///   fills with values of 8 or 16 bytes, many short rows): a kernel.
/// - Where no SDMA queue is left: a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CopyEngine {
    /// Whatever is best for each copy.
    #[default]
    Auto,
    /// An SDMA engine for everything that it can do, a kernel for the rest.
    Sdma,
    /// Kernels only; no SDMA queue is made.
    Shader,
}

/// How a stream copies and fills: [`StreamRequest::copies`](crate::StreamRequest::copies).
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct CopyRequest {
    pub(crate) engine: CopyEngine,
    pub(crate) small: u64,
    pub(crate) sdma_ring_bytes: u32,
    pub(crate) chunk_bytes: u64,
    pub(crate) chunks: u32,
}

impl CopyRequest {
    /// The best engine for each copy, copies below 64 KiB by kernels, an SDMA ring of 64 KiB, four
    /// chunks of 1 MiB for pageable memory. Ring and chunks are made when they are first needed.
    pub const fn new() -> Self {
        Self {
            engine: CopyEngine::Auto,
            small: 64 << 10,
            sdma_ring_bytes: 64 << 10,
            chunk_bytes: 1 << 20,
            chunks: 4,
        }
    }

    /// What moves the bytes.
    pub const fn engine(mut self, engine: CopyEngine) -> Self {
        self.engine = engine;
        self
    }

    /// Copies of fewer bytes are not worth another engine. The default, 64 KiB, is what a PCIe 4.0 link
    /// moves in about 3 µs, less than the two waits take; it was not measured on hardware.
    pub const fn small(mut self, bytes: u64) -> Self {
        self.small = bytes;
        self
    }

    /// Bytes of the SDMA ring, a power of two from 4096.
    pub const fn sdma_ring_bytes(mut self, bytes: u32) -> Self {
        self.sdma_ring_bytes = bytes;
        self
    }

    /// Pinned memory that copies from and to pageable memory go through: `chunks`, at least 1, of
    /// `bytes`, at least 64 and rounded up to a multiple of 64.
    pub const fn staging(mut self, chunks: u32, bytes: u64) -> Self {
        self.chunks = if chunks == 0 { 1 } else { chunks };
        self.chunk_bytes = match bytes.checked_next_multiple_of(64) {
            Some(0) | None => 64,
            Some(bytes) => bytes,
        };
        self
    }
}

impl Default for CopyRequest {
    fn default() -> Self {
        Self::new()
    }
}
