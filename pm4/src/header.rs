//! The first dword of every PM4 packet.

use core::fmt;

/// Operation of a type-3 packet.
///
/// # Source
/// `PACKET3_*` in Linux drivers/gpu/drm/amd/amdgpu/soc15d.h (gfx9) and nvd.h (gfx10 and newer);
/// docs/ABI.md §PM4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Opcode(pub u8);

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl Opcode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// AMD's name, or `None` for an opcode this crate does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    /// Skipped.
    NOP = 0x10;
    /// Launches a grid whose size is in the packet.
    DISPATCH_DIRECT = 0x15;
    /// Launches a grid whose size is in memory.
    DISPATCH_INDIRECT = 0x16;
    /// Atomic operation on memory.
    ATOMIC_MEM = 0x1E;
    /// Skips dwords when a word in memory is zero.
    COND_EXEC = 0x22;
    /// Runs dwords on the chosen XCCs only.
    PRED_EXEC = 0x23;
    /// Stores dwords to memory or a register.
    WRITE_DATA = 0x37;
    /// Waits for a 32-bit comparison.
    WAIT_REG_MEM = 0x3C;
    /// Runs another buffer of packets.
    INDIRECT_BUFFER = 0x3F;
    /// Copies a word between memory, registers and counters.
    COPY_DATA = 0x40;
    /// Makes the prefetch parser wait for the micro engine; graphics rings only.
    PFP_SYNC_ME = 0x42;
    /// Stores a dword if a comparison holds.
    COND_WRITE = 0x45;
    /// Raises a pipeline event.
    EVENT_WRITE = 0x46;
    /// Flushes caches at the end of earlier work, then writes or interrupts.
    RELEASE_MEM = 0x49;
    /// Copies memory by the command processor's DMA.
    DMA_DATA = 0x50;
    /// Invalidates caches before later work.
    ACQUIRE_MEM = 0x58;
    /// Waits until a bit of the packet itself is set.
    REWIND = 0x59;
    /// Writes shader registers.
    SET_SH_REG = 0x76;
    /// Writes user configuration registers.
    SET_UCONFIG_REG = 0x79;
    /// Waits for a 64-bit comparison.
    WAIT_REG_MEM64 = 0x93;
    /// Flushes the host data path.
    HDP_FLUSH = 0x95;
    /// Invalidates translations; kernel queues only.
    INVALIDATE_TLBS = 0x98;
    /// Fills memory with a pattern.
    DMA_DATA_FILL_MULTI = 0x9A;
    /// Writes shader registers, combined with what the kernel keeps.
    SET_SH_REG_INDEX = 0x9B;
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "opcode {:#04x}", self.0),
        }
    }
}

/// Header of a type-3 packet.
///
/// Bits 31:30 are 3, 29:16 the dwords that follow minus one, 15:8 the opcode, 1 the shader type
/// (1 = compute; command processors of compute queues accept both), 0 the predicate.
#[doc(alias = "PACKET3")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Header(u32);

const TYPE_3: u32 = 3 << 30;
const COUNT_SHIFT: u32 = 16;
const COUNT_MASK: u32 = 0x3FFF;
const OPCODE_SHIFT: u32 = 8;
const SHADER_TYPE_COMPUTE: u32 = 1 << 1;
const PREDICATE: u32 = 1 << 0;

impl Header {
    /// Most dwords a packet can have, header included.
    pub const MAX_DWORDS: usize = 0x3FFE + 2;

    /// Header of a packet of `dwords` dwords, itself included.
    ///
    /// `dwords` is 2 to [`Self::MAX_DWORDS`]; a one-dword packet is only ever
    /// [`Self::ONE_DWORD_NOP`].
    #[allow(clippy::cast_possible_truncation)] // masked to the field's 14 bits
    pub(crate) const fn new(opcode: Opcode, dwords: usize) -> Self {
        let count = dwords.wrapping_sub(2) as u32 & COUNT_MASK;
        Self(TYPE_3 | count << COUNT_SHIFT | (opcode.0 as u32) << OPCODE_SHIFT)
    }

    /// The NOP that is only a header: its count field holds 0x3FFF, which would be -1.
    pub const ONE_DWORD_NOP: Self = Self(0xFFFF_1000);

    /// Reads a header; `None` unless `word` is of type 3.
    pub const fn from_word(word: u32) -> Option<Self> {
        if word & TYPE_3 == TYPE_3 { Some(Self(word)) } else { None }
    }

    /// The raw dword.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// The same header with the shader type "compute".
    pub const fn compute(self) -> Self {
        Self(self.0 | SHADER_TYPE_COMPUTE)
    }

    /// What the packet does.
    pub const fn opcode(self) -> Opcode {
        Opcode(self.0.to_le_bytes()[1])
    }

    /// Length of the whole packet in dwords, header included: 1 to 0x4000.
    pub const fn dwords(self) -> usize {
        let count = (self.0 >> COUNT_SHIFT & COUNT_MASK) as usize;
        if count == COUNT_MASK as usize && self.opcode().0 == Opcode::NOP.0 { 1 } else { count + 2 }
    }

    /// Whether the shader type is "compute".
    pub const fn is_compute(self) -> bool {
        self.0 & SHADER_TYPE_COMPUTE != 0
    }

    /// Whether the packet runs only if the current predicate is true.
    pub const fn is_predicated(self) -> bool {
        self.0 & PREDICATE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_matches_the_worked_encodings() {
        // docs/ABI.md §PM4, worked examples: headers as other drivers emit them.
        assert_eq!(Header::new(Opcode::ACQUIRE_MEM, 7).compute().word(), 0xc005_5802);
        assert_eq!(Header::new(Opcode::ACQUIRE_MEM, 8).word(), 0xc006_5800);
        assert_eq!(Header::new(Opcode::RELEASE_MEM, 8).word(), 0xc006_4900);
        assert_eq!(Header::new(Opcode::WRITE_DATA, 5).word(), 0xc003_3700);
        assert_eq!(Header::new(Opcode::INDIRECT_BUFFER, 4).word(), 0xc002_3f00);
        assert_eq!(Header::new(Opcode::SET_SH_REG, 3).word(), 0xc001_7600);
    }

    #[test]
    fn a_count_of_all_ones_is_a_one_dword_nop() {
        assert_eq!(Header::ONE_DWORD_NOP.dwords(), 1);
        assert_eq!(Header::ONE_DWORD_NOP.opcode(), Opcode::NOP);
    }

    #[test]
    fn every_other_packet_type_is_refused() {
        for kind in 0..3u32 {
            assert_eq!(Header::from_word(kind << 30 | 0x1000), None);
        }
    }

    #[test]
    fn the_longest_packet_keeps_its_length() {
        assert_eq!(Header::new(Opcode::NOP, Header::MAX_DWORDS).dwords(), Header::MAX_DWORDS);
    }
}
