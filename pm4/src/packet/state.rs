//! Packets that only change the state of the command processor: NOPs and registers.

use core::fmt;

use super::{range_check, split};
use crate::bits::layout;
use crate::emit::{Encode, Pm4Packet};
use crate::reg::{self, Reg};
use crate::{Error, Header, Opcode};

/// PM4 `NOP`: its payload is skipped.
#[doc(alias = "PACKET3_NOP")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Nop<'a> {
    payload: &'a [u32],
}

impl<'a> Nop<'a> {
    pub(crate) const fn from_payload(payload: &'a [u32]) -> Self {
        Self { payload }
    }

    /// A NOP of one dword, for padding.
    pub const fn one_dword() -> u32 {
        Header::ONE_DWORD_NOP.word()
    }

    /// Header of a NOP that skips itself and what follows, `dwords` in all.
    ///
    /// `None` for zero or more than [`Header::MAX_DWORDS`].
    pub const fn header(dwords: usize) -> Option<u32> {
        match dwords {
            0 => None,
            1 => Some(Self::one_dword()),
            2..=Header::MAX_DWORDS => Some(Header::new(Opcode::NOP, dwords).word()),
            _ => None,
        }
    }

    /// A NOP that carries `payload`, which no command processor looks at.
    ///
    /// # Errors
    /// [`Error::TooLong`] if `payload` does not fit a packet.
    pub const fn new(payload: &'a [u32]) -> Result<Self, Error> {
        const MAX: usize = Header::MAX_DWORDS - 1;
        if payload.len() > MAX {
            return Err(Error::TooLong { opcode: Opcode::NOP, found: payload.len(), max: MAX });
        }
        Ok(Self { payload })
    }

    /// The dwords it skips.
    pub const fn payload(self) -> &'a [u32] {
        self.payload
    }
}

impl Encode for Nop<'_> {
    fn dwords(&self) -> usize {
        1 + self.payload.len()
    }

    fn emit(&self, mut put: impl FnMut(&[u32])) {
        put(&[Self::header(self.dwords()).unwrap_or_default()]);
        put(self.payload);
    }
}

impl Pm4Packet for Nop<'_> {}

impl fmt::Display for Nop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NOP skips {} dwords", self.payload.len())
    }
}

layout! {
    set_sh_reg { REG_OFFSET = 1 [15:0]; INDEX = 1 [31:28]; }
    set_uconfig_reg { REG_OFFSET = 1 [15:0]; }
}

/// How `SET_SH_REG_INDEX` treats the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ShRegIndex(pub u8);

impl ShRegIndex {
    /// As they are.
    pub const DEFAULT: Self = Self(0);
    /// Masked with the CUs that the kernel allows the queue.
    pub const APPLY_KMD_CU_AND_MASK: Self = Self(3);
}

/// Which packet carries the registers of a [`SetReg`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Sh,
    ShIndex(ShRegIndex),
    Uconfig,
}

impl Space {
    const fn opcode(self) -> Opcode {
        match self {
            Self::Sh => Opcode::SET_SH_REG,
            Self::ShIndex(_) => Opcode::SET_SH_REG_INDEX,
            Self::Uconfig => Opcode::SET_UCONFIG_REG,
        }
    }

    const fn range(self) -> reg::Space {
        match self {
            Self::Sh | Self::ShIndex(_) => reg::Space::SH,
            Self::Uconfig => reg::Space::UCONFIG,
        }
    }
}

/// PM4 `SET_SH_REG`, `SET_SH_REG_INDEX` or `SET_UCONFIG_REG`: writes consecutive registers.
#[doc(alias = "PACKET3_SET_SH_REG")]
#[doc(alias = "PACKET3_SET_SH_REG_INDEX")]
#[doc(alias = "PACKET3_SET_UCONFIG_REG")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct SetReg<'a> {
    space: Space,
    offset: u32,
    values: &'a [u32],
}

impl<'a> SetReg<'a> {
    /// Writes `values` to the shader registers from `first` on.
    ///
    /// # Errors
    /// [`Error::Length`] without values; [`Error::RegisterOutOfRange`] unless all of them are
    /// shader registers.
    pub fn sh(first: Reg, values: &'a [u32]) -> Result<Self, Error> {
        Self::new(Space::Sh, first, values)
    }

    /// Writes `values` to the shader registers from `first` on, in the manner of `index`.
    ///
    /// # Errors
    /// As [`Self::sh`].
    pub fn sh_index(first: Reg, values: &'a [u32], index: ShRegIndex) -> Result<Self, Error> {
        Self::new(Space::ShIndex(ShRegIndex(index.0 & 0xF)), first, values)
    }

    /// Writes `values` to the user configuration registers from `first` on.
    ///
    /// # Errors
    /// [`Error::Length`] without values; [`Error::RegisterOutOfRange`] unless all of them are user
    /// configuration registers.
    pub fn uconfig(first: Reg, values: &'a [u32]) -> Result<Self, Error> {
        Self::new(Space::Uconfig, first, values)
    }

    fn new(space: Space, first: Reg, values: &'a [u32]) -> Result<Self, Error> {
        let opcode = space.opcode();
        if values.is_empty() {
            return Err(Error::Length { opcode, expected: 3, found: 2 });
        }
        let offset = range_check(opcode, space.range(), first, values.len())?;
        Ok(Self { space, offset, values })
    }

    /// The first register written.
    pub const fn first(self) -> Reg {
        Reg(self.space.range().first + self.offset)
    }

    /// What is written to it and those that follow.
    pub const fn values(self) -> &'a [u32] {
        self.values
    }

    /// Which packet it is.
    pub const fn opcode(self) -> Opcode {
        self.space.opcode()
    }

    /// How `SET_SH_REG_INDEX` treats the values; `DEFAULT` for the other two.
    pub const fn index(self) -> ShRegIndex {
        match self.space {
            Space::ShIndex(index) => index,
            Space::Sh | Space::Uconfig => ShRegIndex::DEFAULT,
        }
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. The VMID that a privileged queue can insert counts as reserved.
    pub fn decode(words: &'a [u32]) -> Result<Self, Error> {
        let (header, body) = split(words)?;
        let opcode = header.opcode();
        let (control, values) = body.split_first().unwrap_or((&0, &[]));
        let index = set_sh_reg::INDEX;
        let space = match opcode {
            Opcode::SET_SH_REG => Space::Sh,
            Opcode::SET_SH_REG_INDEX => Space::ShIndex(ShRegIndex(index.byte(*control))),
            Opcode::SET_UCONFIG_REG => Space::Uconfig,
            found => return Err(Error::WrongOpcode { expected: Opcode::SET_SH_REG, found }),
        };
        let defined = set_sh_reg::REG_OFFSET.mask()
            | if matches!(space, Space::ShIndex(_)) { index.mask() } else { 0 };
        super::only(opcode, 1, *control, defined)?;
        Self::new(space, Reg(space.range().first + set_sh_reg::REG_OFFSET.get(*control)), values)
    }
}

impl Encode for SetReg<'_> {
    fn dwords(&self) -> usize {
        2 + self.values.len()
    }

    fn emit(&self, mut put: impl FnMut(&[u32])) {
        let header = Header::new(self.opcode(), self.dwords()).word();
        put(&[header, self.offset | set_sh_reg::INDEX.put(u32::from(self.index().0))]);
        put(self.values);
    }
}

impl Pm4Packet for SetReg<'_> {}

impl fmt::Display for SetReg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.opcode().fmt(f)?;
        if self.index() != ShRegIndex::DEFAULT {
            write!(f, " index={}", self.index().0)?;
        }
        let registers = (self.first().0..).zip(self.values);
        registers.into_iter().try_for_each(|(reg, value)| write!(f, " {}={value:#x}", Reg(reg)))
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    fn words(packet: &impl Encode) -> Vec<u32> {
        let mut all = Vec::new();
        packet.emit(|part| all.extend_from_slice(part));
        assert_eq!(all.len(), packet.dwords());
        all
    }

    #[test]
    fn set_sh_reg_matches_the_worked_example() {
        // docs/ABI.md §PM4 worked examples, E6.
        let packet = SetReg::sh(Reg(0x2E12), &[0x00ac_0083, 0x84]).unwrap();
        let expected = [0xc002_7600, 0x212, 0x00ac_0083, 0x84];
        assert_eq!(words(&packet), expected);
        assert_eq!(SetReg::decode(&expected), Ok(packet));
    }

    #[test]
    fn set_reg_reaches_exactly_its_space() {
        let opcode = Opcode::SET_SH_REG;
        assert!(SetReg::sh(Reg(0x2FFF), &[1]).is_ok());
        let error = Error::RegisterOutOfRange { opcode, reg: 0x3000, first: 0x2C00, last: 0x2FFF };
        assert_eq!(SetReg::sh(Reg(0x2FFF), &[1, 2]), Err(error));
        assert!(matches!(
            SetReg::sh(Reg(0x2BFF), &[1]),
            Err(Error::RegisterOutOfRange { reg: 0x2BFF, .. })
        ));
        assert!(matches!(
            SetReg::uconfig(Reg(0x2E00), &[1]),
            Err(Error::RegisterOutOfRange { .. })
        ));
        assert!(SetReg::uconfig(Reg(0xC000), &[1]).is_ok());
        assert_eq!(
            SetReg::sh(Reg(0x2E00), &[]),
            Err(Error::Length { opcode, expected: 3, found: 2 })
        );
    }

    #[test]
    fn only_the_index_packet_has_an_index() {
        let cu = SetReg::sh_index(Reg(0x2E16), &[!0], ShRegIndex::APPLY_KMD_CU_AND_MASK).unwrap();
        let expected = [0xc001_9b00, 0x3000_0216, !0];
        assert_eq!(words(&cu), expected);
        assert_eq!(SetReg::decode(&expected), Ok(cu));
        assert_eq!(cu.to_string(), "SET_SH_REG_INDEX index=3 0x2e16=0xffffffff");
        for opcode in [0xc001_7600, 0xc001_7900] {
            let error = SetReg::decode(&[opcode, 0x3000_0216, 0]).unwrap_err();
            assert!(matches!(error, Error::Reserved { dword: 1, bits: 0x3000_0000, .. }));
        }
        // A VMID may be inserted by the kernel only.
        let error = SetReg::decode(&[0xc001_7600, 0x0080_0216, 0]).unwrap_err();
        assert!(matches!(error, Error::Reserved { dword: 1, bits: 0x0080_0000, .. }));
    }

    #[test]
    fn nop_carries_its_payload() {
        let packet = Nop::new(&[1, 2]).unwrap();
        assert_eq!(words(&packet), [0xc001_1000, 1, 2]);
        assert_eq!(words(&Nop::new(&[]).unwrap()), [0xffff_1000]);
        assert!(Nop::new(&[0; Header::MAX_DWORDS]).is_err());
    }
}
