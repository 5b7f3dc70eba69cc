//! Packets that launch grids, and packets that make others conditional.

use core::fmt;

use super::memory::addr;
use super::{aligned, body};
use crate::bits::layout;
use crate::emit::fixed;
use crate::reg::DispatchInitiator;
use crate::{Error, GpuAddr, Header, Opcode};

layout! {
    dispatch_direct {
        DIM_X = 1 [31:0]; DIM_Y = 2 [31:0]; DIM_Z = 3 [31:0]; DISPATCH_INITIATOR = 4 [31:0];
    }
    dispatch_indirect { ADDR_LO = 1 [31:0]; ADDR_HI = 2 [31:0]; DISPATCH_INITIATOR = 3 [31:0]; }
    cond_exec {
        ADDR_LO = 1 [31:2]; ADDR_HI = 2 [31:0]; CACHE_POLICY = 3 [26:25]; EXEC_COUNT = 4 [13:0];
    }
    pred_exec { EXEC_COUNT = 1 [13:0]; VIRTUAL_XCC_ID_SELECT = 1 [31:24]; }
}

/// PM4 `DISPATCH_DIRECT`: launches a grid whose size is in the packet.
#[doc(alias = "PACKET3_DISPATCH_DIRECT")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct DispatchDirect {
    dims: [u32; 3],
    initiator: DispatchInitiator,
}

impl DispatchDirect {
    /// Length of the packet.
    pub const DWORDS: usize = 5;

    /// Launches `dims` groups, or work-items if `initiator` says
    /// [`USE_THREAD_DIMENSIONS`](DispatchInitiator::USE_THREAD_DIMENSIONS).
    pub const fn new(dims: [u32; 3], initiator: DispatchInitiator) -> Self {
        Self { dims, initiator }
    }

    /// Size of the grid, in groups or work-items.
    pub const fn dims(self) -> [u32; 3] {
        self.dims
    }

    /// How it is launched.
    pub const fn initiator(self) -> DispatchInitiator {
        self.initiator
    }

    /// The packet. Its shader type is "compute", as other drivers set it.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let header = Header::new(Opcode::DISPATCH_DIRECT, Self::DWORDS).compute().word();
        let [x, y, z] = self.dims;
        [header, x, y, z, self.initiator.bits()]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. Any bit that some target defines in the initiator is let through.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let [dims @ .., initiator] = body::<4>(words, Opcode::DISPATCH_DIRECT)?;
        let initiator = DispatchInitiator::decode(Opcode::DISPATCH_DIRECT, 4, initiator)?;
        Ok(Self { dims, initiator })
    }
}

impl fmt::Display for DispatchDirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.dims;
        write!(f, "DISPATCH_DIRECT dim={x}x{y}x{z} {}", self.initiator)
    }
}

/// PM4 `DISPATCH_INDIRECT`: launches a grid whose size is in memory.
#[doc(alias = "PACKET3_DISPATCH_INDIRECT")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct DispatchIndirect {
    dims: GpuAddr,
    initiator: DispatchInitiator,
}

impl DispatchIndirect {
    /// Length of the packet on a compute queue.
    pub const DWORDS: usize = 4;

    /// Launches as many groups (or work-items) as the three dwords at `dims` say.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `dims` is 4-byte aligned.
    pub const fn new(dims: GpuAddr, initiator: DispatchInitiator) -> Result<Self, Error> {
        match aligned(Opcode::DISPATCH_INDIRECT, dims, 4) {
            Ok(()) => Ok(Self { dims, initiator }),
            Err(error) => Err(error),
        }
    }

    /// Where the size of the grid is: three dwords.
    pub const fn dims(self) -> GpuAddr {
        self.dims
    }

    /// How it is launched.
    pub const fn initiator(self) -> DispatchInitiator {
        self.initiator
    }

    /// The packet. Its shader type is "compute", as other drivers set it.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let header = Header::new(Opcode::DISPATCH_INDIRECT, Self::DWORDS).compute().word();
        [header, self.dims.lo(), self.dims.hi(), self.initiator.bits()]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let [lo, hi, initiator] = body(words, Opcode::DISPATCH_INDIRECT)?;
        Self::new(addr(lo, hi), DispatchInitiator::decode(Opcode::DISPATCH_INDIRECT, 3, initiator)?)
    }
}

impl fmt::Display for DispatchIndirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DISPATCH_INDIRECT dims={} {}", self.dims, self.initiator)
    }
}

/// PM4 `COND_EXEC`: skips dwords while a dword in memory is zero.
#[doc(alias = "PACKET3_COND_EXEC")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CondExec {
    condition: GpuAddr,
    count: u16,
    policy: super::CachePolicy,
}

impl CondExec {
    /// Length of the packet.
    pub const DWORDS: usize = 5;
    /// Most dwords it can skip.
    pub const MAX_COUNT: u16 = 0x3FFF;

    /// Skips the next `count` dwords (the low 14 bits count) if the dword at `condition` is zero.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `condition` is 4-byte aligned.
    pub const fn new(condition: GpuAddr, count: u16) -> Result<Self, Error> {
        let count = count & Self::MAX_COUNT;
        match aligned(Opcode::COND_EXEC, condition, 4) {
            Ok(()) => Ok(Self { condition, count, policy: super::CachePolicy::LRU }),
            Err(error) => Err(error),
        }
    }

    pub(crate) const fn count(mut self, count: u16) -> Self {
        self.count = count & Self::MAX_COUNT;
        self
    }

    /// Reads the condition with `policy`.
    pub const fn policy(mut self, policy: super::CachePolicy) -> Self {
        self.policy = super::CachePolicy(policy.0 & 3);
        self
    }

    /// Where the condition is.
    pub const fn condition(self) -> GpuAddr {
        self.condition
    }

    /// Dwords that run only if the condition is not zero.
    pub const fn skips(self) -> u16 {
        self.count
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        [
            Header::new(Opcode::COND_EXEC, Self::DWORDS).word(),
            self.condition.lo(),
            self.condition.hi(),
            cond_exec::CACHE_POLICY.put(self.policy.0 as u32),
            self.count as u32,
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let [lo, hi, control, count] = super::strict(words, Opcode::COND_EXEC, cond_exec::FIELDS)?;
        let [low, high, ..] = count.to_le_bytes();
        let packet = Self::new(addr(lo, hi), u16::from_le_bytes([low, high]))?;
        Ok(packet.policy(super::CachePolicy(cond_exec::CACHE_POLICY.byte(control))))
    }
}

impl fmt::Display for CondExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "COND_EXEC condition={} dwords={}", self.condition, self.count)
    }
}

/// PM4 `PRED_EXEC`: runs dwords on the chosen XCCs only. It works inside an indirect buffer and is
/// ignored in a ring.
#[doc(alias = "PACKET3_PRED_EXEC")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct PredExec {
    xcc_mask: u8,
    count: u16,
}

impl PredExec {
    /// Length of the packet.
    pub const DWORDS: usize = 2;
    /// Most dwords it can cover.
    pub const MAX_COUNT: u16 = 0x3FFF;

    /// Runs the next `count` dwords (the low 14 bits count) on the XCCs in `xcc_mask`; bit `n` is
    /// the queue's `n`th XCC.
    pub const fn new(xcc_mask: u8, count: u16) -> Self {
        Self { xcc_mask, count: count & Self::MAX_COUNT }
    }

    /// XCCs that run the dwords.
    pub const fn xcc_mask(self) -> u8 {
        self.xcc_mask
    }

    /// Dwords that the others skip.
    pub const fn skips(self) -> u16 {
        self.count
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let control =
            pred_exec::VIRTUAL_XCC_ID_SELECT.put(self.xcc_mask as u32) | self.count as u32;
        [Header::new(Opcode::PRED_EXEC, Self::DWORDS).word(), control]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let [control] = super::strict(words, Opcode::PRED_EXEC, pred_exec::FIELDS)?;
        let [low, high, _, xcc_mask] = control.to_le_bytes();
        Ok(Self::new(xcc_mask, u16::from_le_bytes([low, high])))
    }
}

impl fmt::Display for PredExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PRED_EXEC xcc_mask={:#x} dwords={}", self.xcc_mask, self.count)
    }
}

fixed!(Pm4Packet: DispatchDirect, DispatchIndirect, CondExec, PredExec);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_match_the_worked_examples() {
        // docs/ABI.md §PM4 worked examples, E6 and E7.
        let gfx9 = DispatchInitiator::COMPUTE_SHADER_EN | DispatchInitiator::FORCE_START_AT_000;
        let packet = DispatchDirect::new([4096, 1, 1], gfx9);
        let words = [0xc003_1502, 0x1000, 1, 1, 5];
        assert_eq!(packet.encode(), words);
        assert_eq!(DispatchDirect::decode(&words), Ok(packet));
        let wave32 = DispatchDirect::new([4096, 1, 1], gfx9 | DispatchInitiator::CS_W32_EN);
        assert_eq!(wave32.encode()[4], 0x8005);
    }

    #[test]
    fn pred_exec_matches_the_worked_example() {
        // docs/ABI.md §PM4 worked examples, E8.
        assert_eq!(PredExec::new(1, 8).encode(), [0xc000_2300, 0x0100_0008]);
    }

    #[test]
    fn bits_that_no_target_defines_in_an_initiator_are_refused() {
        for bit in [7, 8, 9, 12, 18, 31] {
            let words = [0xc003_1502, 1, 1, 1, 1 | 1 << bit];
            let error = DispatchDirect::decode(&words).unwrap_err();
            assert!(matches!(error, Error::Reserved { dword: 4, bits, .. } if bits == 1 << bit));
        }
    }

    #[test]
    fn cond_exec_needs_an_aligned_condition() {
        let error = CondExec::new(GpuAddr::new(0x1002), 4).unwrap_err();
        assert!(matches!(error, Error::Misaligned { align: 4, .. }));
        let packet = CondExec::new(GpuAddr::new(0x1000), 4).unwrap();
        let mut words = packet.encode();
        assert_eq!(words, [0xc003_2200, 0x1000, 0, 0, 4]);
        words[1] |= 1;
        assert!(matches!(CondExec::decode(&words), Err(Error::Reserved { dword: 1, bits: 1, .. })));
    }
}
