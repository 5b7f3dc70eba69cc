//! The 64-byte packets.
//!
//! A builder holds the packet's words already encoded: `encode` costs nothing, and a launch can
//! keep a packet as a template and change a field or two. Every packet starts with acquire and
//! release fences at system scope and no barrier.

mod barrier;
mod decode;
mod dispatch;
mod vendor;

pub use barrier::{BarrierAnd, BarrierOr};
pub use decode::Decoded;
pub use dispatch::{AgentDispatch, KernelDispatch};
pub use vendor::{BarrierValue, Condition, Pm4Ib, VendorFormat};

use pm4::GpuAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Header, PacketType, Problem};

/// One packet, as sixteen little-endian dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct Packet(pub [u32; 16]);

impl Packet {
    /// Length of every packet.
    pub const BYTES: usize = 64;

    /// What a free slot holds.
    pub const INVALID: Self = {
        let mut words = [0; 16];
        words[0] = Header::INVALID.0 as u32;
        Self(words)
    };

    /// Reads a packet from memory.
    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        let mut words = [0; 16];
        let (dwords, _) = bytes.as_chunks();
        words.iter_mut().zip(dwords).for_each(|(word, dword)| *word = u32::from_le_bytes(*dword));
        Self(words)
    }

    /// The packet as it lies in memory.
    pub fn to_bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        let (dwords, _) = bytes.as_chunks_mut();
        dwords.iter_mut().zip(&self.0).for_each(|(dword, word)| *dword = word.to_le_bytes());
        bytes
    }

    /// The header.
    #[allow(clippy::cast_possible_truncation)] // the low half is the header
    pub const fn header(&self) -> Header {
        Header(self.0[0] as u16)
    }

    /// The 16 bits beside the header: dimensions, agent function or vendor format.
    pub(crate) const fn setup(&self) -> u16 {
        (self.0[0] >> 16) as u16
    }

    /// A packet that holds only its first dword.
    pub(crate) const fn with(packet_type: PacketType, setup: u16) -> Self {
        let mut words = [0; 16];
        words[0] = Header::new(packet_type).0 as u32 | (setup as u32) << 16;
        Self(words)
    }

    pub(crate) const fn set_header(&mut self, header: Header) {
        self.0[0] = self.0[0] & 0xFFFF_0000 | header.0 as u32;
    }

    /// What every packet ends with: the signal that its completion decrements, or null.
    ///
    /// Meaningful for every type but INVALID.
    pub const fn completion(&self) -> GpuAddr {
        addr(self.0[14], self.0[15])
    }

    pub(crate) const fn set_completion(&mut self, signal: GpuAddr) {
        self.0[14] = signal.lo();
        self.0[15] = signal.hi();
    }

    /// Refuses a packet in which a dword of `dwords` is not zero.
    pub(crate) fn zero(&self, dwords: core::ops::Range<u8>) -> Result<(), Problem> {
        for dword in dwords {
            match self.0.get(usize::from(dword)) {
                Some(0) | None => {}
                Some(bits) => return Err(Problem::Reserved { dword, bits: *bits }),
            }
        }
        Ok(())
    }

    /// What the decoders of all packets check: header fields and completion signal.
    pub(crate) fn check_frame(&self) -> Result<(), Problem> {
        self.header().check()?;
        check_signal(self.completion())
    }

    /// What the packet means, strictly: whatever a command processor may refuse is
    /// [`Decoded::Malformed`].
    pub fn decode(&self) -> Decoded {
        Decoded::from(*self)
    }
}

pub(crate) const fn addr(lo: u32, hi: u32) -> GpuAddr {
    GpuAddr::new((hi as u64) << 32 | lo as u64)
}

pub(crate) const fn check_signal(signal: GpuAddr) -> Result<(), Problem> {
    if signal.is_aligned(8) { Ok(()) } else { Err(Problem::Signal(signal)) }
}

/// The methods that every packet type has: fences, barrier, completion signal, conversions.
macro_rules! packet_methods {
    ($name:ident) => {
        impl $name {
            /// Waits for all earlier packets of the queue before starting.
            pub const fn barrier(mut self) -> Self {
                self.0.set_header(self.0.header().barrier());
                self
            }

            /// Makes writes of others at `scope` visible to the packet.
            pub const fn acquire(mut self, scope: $crate::FenceScope) -> Self {
                self.0.set_header(self.0.header().acquire(scope));
                self
            }

            /// Makes the packet's writes visible to others at `scope`.
            pub const fn release(mut self, scope: $crate::FenceScope) -> Self {
                self.0.set_header(self.0.header().release(scope));
                self
            }

            /// Decrements the `amd_signal_t` at `signal` (64-byte aligned) when done.
            pub const fn completion(mut self, signal: pm4::GpuAddr) -> Self {
                self.0.set_completion(signal);
                self
            }

            /// The header.
            pub const fn header(&self) -> $crate::Header {
                self.0.header()
            }

            /// The signal decremented when done, or null.
            pub const fn completion_signal(&self) -> pm4::GpuAddr {
                self.0.completion()
            }

            /// The packet.
            pub const fn encode(self) -> $crate::Packet {
                self.0
            }
        }

        impl From<$name> for $crate::Packet {
            fn from(packet: $name) -> Self {
                packet.0
            }
        }
    };
}
pub(crate) use packet_methods;

#[cfg(test)]
mod tests;
