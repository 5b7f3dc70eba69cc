//! Dwords to packets.

use core::fmt;

use crate::emit::{Encode, Pm4Packet};
use crate::packet::{
    AtomicMem, CondExec, CopyData, DispatchDirect, DispatchIndirect, DmaData, EventWrite,
    IndirectBuffer, Nop, PredExec, ReleaseMem, SetReg, ShRegIndex, WaitRegMem, WaitRegMem64,
    WriteBlock, gfx9, gfx11, split,
};
use crate::reg::gfx9::COMPUTE_USER_DATA_0;
use crate::reg::{Reg, Register};
use crate::{Error, Header, Opcode, Target};

macro_rules! packets {
    ($($(#[$doc:meta])* $name:ident($type:ty);)*) => {
        /// One packet of a dword buffer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Packet<'a> {
            $($(#[$doc])* $name($type),)*
            /// An opcode without a type here.
            Unknown {
                /// Its header.
                header: Header,
                /// The dwords after the header.
                body: &'a [u32],
            },
        }

        impl Encode for Packet<'_> {
            fn dwords(&self) -> usize {
                match self {
                    $(Self::$name(packet) => Encode::dwords(packet),)*
                    Self::Unknown { body, .. } => 1 + body.len(),
                }
            }

            fn emit(&self, mut put: impl FnMut(&[u32])) {
                match self {
                    $(Self::$name(packet) => packet.emit(put),)*
                    Self::Unknown { header, body } => {
                        put(&[header.word()]);
                        put(body);
                    }
                }
            }
        }

        impl Pm4Packet for Packet<'_> {}

        impl fmt::Display for Packet<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name(packet) => packet.fmt(f),)*
                    Self::Unknown { header, body } => {
                        write!(f, "{}", header.opcode())?;
                        body.iter().try_for_each(|word| write!(f, " {word:08x}"))
                    }
                }
            }
        }
    };
}

packets! {
    /// Skipped.
    Nop(Nop<'a>);
    /// Writes registers.
    SetReg(SetReg<'a>);
    /// Launches a grid.
    DispatchDirect(DispatchDirect);
    /// Launches a grid whose size is in memory.
    DispatchIndirect(DispatchIndirect);
    /// Raises a pipeline event.
    EventWrite(EventWrite);
    /// Skips dwords while a dword is zero.
    CondExec(CondExec);
    /// Runs dwords on some XCCs only.
    PredExec(PredExec);
    /// Runs another buffer.
    IndirectBuffer(IndirectBuffer);
    /// Invalidates caches; gfx9's form, 7 dwords.
    AcquireMemGfx9(gfx9::AcquireMem);
    /// Invalidates caches; gfx10's and gfx11's form, 8 dwords.
    AcquireMemGfx11(gfx11::AcquireMem);
    /// Flushes caches, stores, interrupts.
    ReleaseMem(ReleaseMem);
    /// Waits for 32 bits.
    WaitRegMem(WaitRegMem);
    /// Waits for 64 bits.
    WaitRegMem64(WaitRegMem64);
    /// Stores dwords.
    WriteData(WriteBlock<'a>);
    /// Copies a word.
    CopyData(CopyData);
    /// Copies or fills memory.
    DmaData(DmaData);
    /// Atomic operation on memory.
    AtomicMem(AtomicMem);
}

impl<'a> Packet<'a> {
    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// [`Error::Truncated`] and [`Error::NotType3`] when no packet can be cut out; any other error
    /// is about the contents of a packet whose header [`Header::from_word`] reads.
    pub fn decode(words: &'a [u32]) -> Result<Self, Error> {
        let (header, body) = split(words)?;
        Ok(match header.opcode() {
            Opcode::NOP => Self::Nop(Nop::from_payload(body)),
            Opcode::SET_SH_REG | Opcode::SET_SH_REG_INDEX | Opcode::SET_UCONFIG_REG => {
                Self::SetReg(SetReg::decode(words)?)
            }
            Opcode::DISPATCH_DIRECT => Self::DispatchDirect(DispatchDirect::decode(words)?),
            Opcode::DISPATCH_INDIRECT => Self::DispatchIndirect(DispatchIndirect::decode(words)?),
            Opcode::EVENT_WRITE => Self::EventWrite(EventWrite::decode(words)?),
            Opcode::COND_EXEC => Self::CondExec(CondExec::decode(words)?),
            Opcode::PRED_EXEC => Self::PredExec(PredExec::decode(words)?),
            Opcode::INDIRECT_BUFFER => Self::IndirectBuffer(IndirectBuffer::decode(words)?),
            Opcode::ACQUIRE_MEM if header.dwords() == gfx9::AcquireMem::DWORDS => {
                Self::AcquireMemGfx9(gfx9::AcquireMem::decode(words)?)
            }
            Opcode::ACQUIRE_MEM => Self::AcquireMemGfx11(gfx11::AcquireMem::decode(words)?),
            Opcode::RELEASE_MEM => Self::ReleaseMem(ReleaseMem::decode(words)?),
            Opcode::WAIT_REG_MEM => Self::WaitRegMem(WaitRegMem::decode(words)?),
            Opcode::WAIT_REG_MEM64 => Self::WaitRegMem64(WaitRegMem64::decode(words)?),
            Opcode::WRITE_DATA => Self::WriteData(WriteBlock::decode(words)?),
            Opcode::COPY_DATA => Self::CopyData(CopyData::decode(words)?),
            Opcode::DMA_DATA => Self::DmaData(DmaData::decode(words)?),
            Opcode::ATOMIC_MEM => Self::AtomicMem(AtomicMem::decode(words)?),
            _ => Self::Unknown { header, body },
        })
    }

    /// As text, with the registers of `target` and their fields by name.
    pub const fn on(self, target: Target) -> impl fmt::Display {
        On { packet: self, target }
    }
}

struct On<'a> {
    packet: Packet<'a>,
    target: Target,
}

impl fmt::Display for On<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.packet {
            Packet::SetReg(packet) => {
                packet.opcode().fmt(f)?;
                if packet.index() != ShRegIndex::DEFAULT {
                    write!(f, " index={}", packet.index().0)?;
                }
                (packet.first().0..).zip(packet.values()).try_for_each(|(reg, value)| {
                    let reg = Reg(reg);
                    let user_data = reg.0.wrapping_sub(COMPUTE_USER_DATA_0.0);
                    match Register::find(self.target, reg) {
                        _ if user_data < 16 => {
                            write!(f, " COMPUTE_USER_DATA_{user_data}={value:#x}")
                        }
                        Some(register) => write!(f, " {}", register.show(*value)),
                        None => write!(f, " {reg}={value:#x}"),
                    }
                })
            }
            Packet::ReleaseMem(packet) => packet.on(self.target).fmt(f),
            packet => packet.fmt(f),
        }
    }
}

/// Walks a buffer packet by packet.
///
/// After a malformed packet it goes on at the next one; after [`Error::Truncated`] or
/// [`Error::NotType3`] there is no next one and it ends. Every step takes at least one dword.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    rest: &'a [u32],
    offset: usize,
}

impl<'a> Packets<'a> {
    /// Starts at the first dword of `words`.
    pub const fn new(words: &'a [u32]) -> Self {
        Self { rest: words, offset: 0 }
    }

    /// Dwords taken so far: where the next packet is.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The dwords not taken yet.
    pub const fn rest(&self) -> &'a [u32] {
        self.rest
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let words = core::mem::take(&mut self.rest);
        let header = Header::from_word(*words.first()?);
        self.rest = header.and_then(|header| words.get(header.dwords()..)).unwrap_or_default();
        self.offset += words.len() - self.rest.len();
        Some(Packet::decode(words))
    }
}

#[cfg(test)]
mod tests;
