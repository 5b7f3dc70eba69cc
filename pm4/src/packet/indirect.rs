//! `INDIRECT_BUFFER`: runs another buffer of packets.

use core::fmt;

use super::memory::{CachePolicy, addr};
use super::{body, only};
use crate::bits::layout;
use crate::emit::fixed;
use crate::{Error, GpuAddr, Header, Opcode};

/// PM4 `INDIRECT_BUFFER`: runs another buffer of packets, then goes on.
#[doc(alias = "PACKET3_INDIRECT_BUFFER")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct IndirectBuffer {
    base: GpuAddr,
    dwords: u32,
    policy: CachePolicy,
    chain: bool,
}

layout! {
    indirect_buffer {
        IB_BASE_LO = 1 [31:2]; IB_BASE_HI = 2 [31:0]; IB_SIZE = 3 [19:0]; CHAIN = 3 [20:20];
        VALID = 3 [23:23]; CACHE_POLICY = 3 [29:28];
    }
}

const IB_SIZE_MASK: u32 = indirect_buffer::IB_SIZE.mask();
const IB_CHAIN: u32 = indirect_buffer::CHAIN.mask();
const IB_VALID: u32 = indirect_buffer::VALID.mask();
const IB_POLICY_SHIFT: u32 = indirect_buffer::CACHE_POLICY.low();

impl IndirectBuffer {
    /// Length of the packet.
    pub const DWORDS: usize = 4;
    /// Most dwords a buffer can have (20 bits).
    pub const MAX_BUFFER_DWORDS: u32 = IB_SIZE_MASK;

    /// Runs `dwords` dwords at `base`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `base` is 4-byte aligned and below 2^48;
    /// [`Error::TooLong`] for an empty buffer or one over [`Self::MAX_BUFFER_DWORDS`].
    pub const fn new(base: GpuAddr, dwords: u32) -> Result<Self, Error> {
        if !base.is_aligned(4) || base.hi() > 0xFFFF {
            return Err(Error::Misaligned {
                opcode: Opcode::INDIRECT_BUFFER,
                addr: base,
                align: 4,
            });
        }
        if dwords == 0 || dwords > Self::MAX_BUFFER_DWORDS {
            return Err(Error::TooLong {
                opcode: Opcode::INDIRECT_BUFFER,
                found: dwords as usize,
                max: Self::MAX_BUFFER_DWORDS as usize,
            });
        }
        Ok(Self { base, dwords, policy: CachePolicy::LRU, chain: false })
    }

    /// Fetches the buffer with `policy`.
    pub const fn policy(mut self, policy: CachePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Jumps to the buffer instead of calling it.
    pub const fn chain(mut self) -> Self {
        self.chain = true;
        self
    }

    /// Where the buffer is.
    pub const fn base(self) -> GpuAddr {
        self.base
    }

    /// Length of the buffer in dwords.
    pub const fn buffer_dwords(self) -> u32 {
        self.dwords
    }

    /// Whether it jumps instead of calling.
    pub const fn is_chained(self) -> bool {
        self.chain
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let control = self.dwords
            | if self.chain { IB_CHAIN } else { 0 }
            | IB_VALID
            | (self.policy.0 as u32 & 3) << IB_POLICY_SHIFT;
        [
            Header::new(Opcode::INDIRECT_BUFFER, Self::DWORDS).word(),
            self.base.lo(),
            self.base.hi(),
            control,
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. The VALID bit must be set; VMID, privilege and offload bits, which a
    /// user queue may not set, count as reserved.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let [lo, hi, control] = body(words, Opcode::INDIRECT_BUFFER)?;
        only(Opcode::INDIRECT_BUFFER, 1, lo, !3)?;
        only(Opcode::INDIRECT_BUFFER, 2, hi, 0xFFFF)?;
        let defined = IB_SIZE_MASK | IB_CHAIN | IB_VALID | 3 << IB_POLICY_SHIFT;
        only(Opcode::INDIRECT_BUFFER, 3, control, defined)?;
        if control & IB_VALID == 0 {
            return Err(Error::Reserved {
                opcode: Opcode::INDIRECT_BUFFER,
                dword: 3,
                word: control,
                bits: IB_VALID,
            });
        }
        let ib = Self::new(addr(lo, hi), control & IB_SIZE_MASK)?;
        let policy = CachePolicy((control.to_le_bytes()[3] >> 4) & 3);
        let ib = ib.policy(policy);
        Ok(if control & IB_CHAIN != 0 { ib.chain() } else { ib })
    }
}

impl fmt::Display for IndirectBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INDIRECT_BUFFER base={} dwords={}", self.base, self.dwords)?;
        if self.policy != CachePolicy::LRU {
            write!(f, " policy={}", self.policy.0)?;
        }
        if self.chain { f.write_str(" chain") } else { Ok(()) }
    }
}

fixed!(Pm4Packet: IndirectBuffer);

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: GpuAddr = GpuAddr::new(0x7f00_0060_0000);

    #[test]
    fn indirect_buffer_matches_the_words_inside_the_worked_aql_packet() {
        // docs/ABI.md §PM4, worked example E5.
        let ib = IndirectBuffer::new(GpuAddr::new(0x7f00_0050_0000), 64).unwrap();
        let words = [0xc002_3f00, 0x0050_0000, 0x0000_7f00, 0x0080_0040];
        assert_eq!(ib.encode(), words);
        assert_eq!(IndirectBuffer::decode(&words), Ok(ib));
    }

    #[test]
    fn indirect_buffer_refuses_a_privileged_or_invalid_control_word() {
        let mut words = IndirectBuffer::new(FENCE, 1).unwrap().encode();
        for bits in [1 << 31, 1 << 24, 1 << 23] {
            words[3] ^= bits;
            let error = IndirectBuffer::decode(&words).unwrap_err();
            assert!(matches!(error, Error::Reserved { dword: 3, bits: b, .. } if b == bits));
            words[3] ^= bits;
        }
    }

    #[test]
    fn indirect_buffer_refuses_an_empty_or_oversized_buffer() {
        for dwords in [0, IndirectBuffer::MAX_BUFFER_DWORDS + 1] {
            let error = IndirectBuffer::new(FENCE, dwords).unwrap_err();
            assert!(matches!(error, Error::TooLong { .. }), "{error}");
        }
        assert!(IndirectBuffer::new(GpuAddr::new(2), 1).is_err());
    }
}
