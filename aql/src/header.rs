//! The 16 bits in front of every packet.

use core::fmt;

use crate::Problem;

/// What a packet is.
///
/// # Source
/// `hsa_packet_type_t` in ROCr inc/hsa.h; docs/ABI.md §AQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct PacketType(pub u8);

impl PacketType {
    /// AMD's own packets; [`VendorFormat`](crate::VendorFormat) tells them apart.
    pub const VENDOR_SPECIFIC: Self = Self(0);
    /// Nothing yet: the packet processor waits at such a slot.
    pub const INVALID: Self = Self(1);
    /// Launches a kernel.
    pub const KERNEL_DISPATCH: Self = Self(2);
    /// Waits until all signals are zero.
    pub const BARRIER_AND: Self = Self(3);
    /// Calls a function of another agent. GPU queues do not take it.
    pub const AGENT_DISPATCH: Self = Self(4);
    /// Waits until one signal is zero.
    pub const BARRIER_OR: Self = Self(5);
}

/// How far a memory fence reaches.
///
/// # Source
/// `hsa_fence_scope_t` in ROCr inc/hsa.h; docs/ABI.md §AQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct FenceScope(pub u8);

impl FenceScope {
    /// No fence.
    pub const NONE: Self = Self(0);
    /// The GPU.
    pub const AGENT: Self = Self(1);
    /// Host and all GPUs.
    pub const SYSTEM: Self = Self(2);
}

impl fmt::Display for FenceScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NONE => f.write_str("none"),
            Self::AGENT => f.write_str("agent"),
            Self::SYSTEM => f.write_str("system"),
            Self(other) => write!(f, "{other}"),
        }
    }
}

/// Header of a packet: type in bits 7:0, barrier in bit 8, acquire scope in 10:9, release scope in
/// 12:11, the rest zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Header(pub u16);

const BARRIER: u16 = 1 << 8;
const ACQUIRE_SHIFT: u32 = 9;
const RELEASE_SHIFT: u32 = 11;
const SCOPE_MASK: u16 = 3;
const RESERVED: u16 = 0xE000;

impl Header {
    /// Header of a free slot.
    pub const INVALID: Self = Self(PacketType::INVALID.0 as u16);

    /// No barrier; acquires and releases at system scope, the safe choice.
    pub const fn new(packet_type: PacketType) -> Self {
        Self(packet_type.0 as u16).acquire(FenceScope::SYSTEM).release(FenceScope::SYSTEM)
    }

    /// Waits for all earlier packets of the queue before starting.
    pub const fn barrier(self) -> Self {
        Self(self.0 | BARRIER)
    }

    /// Makes writes of others at `scope` visible to the packet.
    pub const fn acquire(self, scope: FenceScope) -> Self {
        let field = (scope.0 as u16 & SCOPE_MASK) << ACQUIRE_SHIFT;
        Self(self.0 & !(SCOPE_MASK << ACQUIRE_SHIFT) | field)
    }

    /// Makes the packet's writes visible to others at `scope`.
    pub const fn release(self, scope: FenceScope) -> Self {
        let field = (scope.0 as u16 & SCOPE_MASK) << RELEASE_SHIFT;
        Self(self.0 & !(SCOPE_MASK << RELEASE_SHIFT) | field)
    }

    /// What the packet is.
    pub const fn packet_type(self) -> PacketType {
        PacketType(self.0.to_le_bytes()[0])
    }

    /// Whether the packet waits for all earlier ones.
    pub const fn has_barrier(self) -> bool {
        self.0 & BARRIER != 0
    }

    /// Scope of the acquire fence.
    pub const fn acquire_scope(self) -> FenceScope {
        FenceScope((self.0 >> ACQUIRE_SHIFT & SCOPE_MASK).to_le_bytes()[0])
    }

    /// Scope of the release fence.
    pub const fn release_scope(self) -> FenceScope {
        FenceScope((self.0 >> RELEASE_SHIFT & SCOPE_MASK).to_le_bytes()[0])
    }

    /// What is wrong with the fields beside the type.
    pub(crate) fn check(self) -> Result<(), Problem> {
        if self.0 & RESERVED != 0 {
            return Err(Problem::Reserved { dword: 0, bits: u32::from(self.0 & RESERVED) });
        }
        if self.acquire_scope() > FenceScope::SYSTEM || self.release_scope() > FenceScope::SYSTEM {
            return Err(Problem::FenceScope(self.0));
        }
        Ok(())
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_barrier() {
            f.write_str("barrier ")?;
        }
        write!(f, "acquire={} release={}", self.acquire_scope(), self.release_scope())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_match_the_values_that_other_runtimes_write() {
        // docs/ABI.md §AQL, common headers.
        let dispatch = Header::new(PacketType::KERNEL_DISPATCH);
        let agent = dispatch.acquire(FenceScope::AGENT).release(FenceScope::AGENT);
        let none = dispatch.acquire(FenceScope::NONE).release(FenceScope::NONE);
        assert_eq!(dispatch.barrier().0, 0x1502);
        assert_eq!(dispatch.0, 0x1402);
        assert_eq!(agent.0, 0x0a02);
        assert_eq!(none.0, 0x0002);
        assert_eq!(Header::new(PacketType::BARRIER_AND).barrier().0, 0x1503);
        assert_eq!(Header::new(PacketType::BARRIER_OR).barrier().0, 0x1505);
        assert_eq!(Header::new(PacketType::VENDOR_SPECIFIC).barrier().0, 0x1500);
        assert_eq!(Header::INVALID.0, 0x0001);
    }

    #[test]
    fn scopes_above_system_and_reserved_bits_are_refused() {
        let header = Header::new(PacketType::KERNEL_DISPATCH);
        assert_eq!(header.check(), Ok(()));
        let bad = header.acquire(FenceScope(3));
        assert_eq!(bad.check(), Err(Problem::FenceScope(bad.0)));
        let bad = header.release(FenceScope(3));
        assert_eq!(bad.check(), Err(Problem::FenceScope(bad.0)));
        for bit in 13..16 {
            let bits = 1u16 << bit;
            let problem = Problem::Reserved { dword: 0, bits: u32::from(bits) };
            assert_eq!(Header(header.0 | bits).check(), Err(problem));
        }
    }
}
