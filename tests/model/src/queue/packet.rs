//! AQL packets as the packet processor reads them (docs/ABI.md §AQL).

/// A 64-byte packet, copied out of the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet(pub(super) [u8; 64]);

/// Packet types.
pub(super) mod kind {
    pub(in crate::queue) const VENDOR: u32 = 0;
    pub(in crate::queue) const INVALID: u32 = 1;
    pub(in crate::queue) const DISPATCH: u32 = 2;
    pub(in crate::queue) const BARRIER_AND: u32 = 3;
    pub(in crate::queue) const BARRIER_OR: u32 = 5;
}

/// Formats of vendor packets.
pub(super) mod vendor {
    pub(in crate::queue) const PM4_IB: u32 = 1;
    pub(in crate::queue) const BARRIER_VALUE: u32 = 2;
}

/// The first dword: the header and what shares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(pub(super) u32);

impl Head {
    pub(super) const fn kind(self) -> u32 {
        self.0 & 0xff
    }

    /// Not to start before all earlier packets have completed.
    pub(super) const fn barrier(self) -> bool {
        self.0 >> 8 & 1 != 0
    }

    /// Acquire fence: 0 none, 1 agent, 2 system.
    pub(super) const fn acquire(self) -> u32 {
        self.0 >> 9 & 3
    }

    /// The upper half: the dispatch's setup.
    pub(super) const fn setup(self) -> u32 {
        self.0 >> 16
    }

    /// A vendor packet's format.
    pub(super) const fn vendor_format(self) -> u32 {
        self.0 >> 16 & 0xff
    }
}

impl Packet {
    pub(super) fn u16(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u16::from_le_bytes).into()
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    pub(super) fn i64(&self, at: usize) -> i64 {
        self.u64(at).cast_signed()
    }

    /// Handle of the completion signal, 0 for none.
    pub(super) fn completion_signal(&self) -> u64 {
        self.u64(56)
    }
}
