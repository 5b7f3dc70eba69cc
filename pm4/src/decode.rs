//! Dwords to packets.

use core::fmt;

use crate::packet::{gfx9, gfx11, split};
use crate::{Error, Header, IndirectBuffer, Nop, Opcode, ReleaseMem, WriteBlock};

/// One packet of a dword buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packet<'a> {
    /// Skipped.
    Nop(Nop<'a>),
    /// Runs another buffer.
    IndirectBuffer(IndirectBuffer),
    /// Invalidates caches; gfx9's form, 7 dwords.
    AcquireMemGfx9(gfx9::AcquireMem),
    /// Invalidates caches; gfx10's and gfx11's form, 8 dwords.
    AcquireMemGfx11(gfx11::AcquireMem),
    /// Flushes caches, stores, interrupts.
    ReleaseMem(ReleaseMem),
    /// Stores dwords.
    WriteData(WriteBlock<'a>),
    /// An opcode without a type here.
    Unknown {
        /// Its header.
        header: Header,
        /// The dwords after the header.
        body: &'a [u32],
    },
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
            Opcode::INDIRECT_BUFFER => Self::IndirectBuffer(IndirectBuffer::decode(words)?),
            Opcode::ACQUIRE_MEM if header.dwords() == gfx9::AcquireMem::DWORDS => {
                Self::AcquireMemGfx9(gfx9::AcquireMem::decode(words)?)
            }
            Opcode::ACQUIRE_MEM => Self::AcquireMemGfx11(gfx11::AcquireMem::decode(words)?),
            Opcode::RELEASE_MEM => Self::ReleaseMem(ReleaseMem::decode(words)?),
            Opcode::WRITE_DATA => Self::WriteData(WriteBlock::decode(words)?),
            _ => Self::Unknown { header, body },
        })
    }
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nop(packet) => packet.fmt(f),
            Self::IndirectBuffer(packet) => packet.fmt(f),
            Self::AcquireMemGfx9(packet) => packet.fmt(f),
            Self::AcquireMemGfx11(packet) => packet.fmt(f),
            Self::ReleaseMem(packet) => packet.fmt(f),
            Self::WriteData(packet) => packet.fmt(f),
            Self::Unknown { header, body } => {
                write!(f, "{}", header.opcode())?;
                body.iter().try_for_each(|word| write!(f, " {word:08x}"))
            }
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
}

impl<'a> Packets<'a> {
    /// Starts at the first dword of `words`.
    pub const fn new(words: &'a [u32]) -> Self {
        Self { rest: words }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let words = core::mem::take(&mut self.rest);
        let header = Header::from_word(*words.first()?);
        self.rest = header.and_then(|header| words.get(header.dwords()..)).unwrap_or_default();
        Some(Packet::decode(words))
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::{CachePolicy, DataDst};
    use crate::{GpuAddr, WriteData};

    #[test]
    fn packets_walks_a_worked_stream() {
        // Acquire, event write (no type here), release: parts of docs/ABI.md §PM4, worked example E6.
        let words = [
            0xc005_5802,
            0x28c4_0000,
            0xffff_ffff,
            0x00ff_ffff,
            0,
            0,
            0xa,
            0xc000_4600,
            0x407,
            0xffff_1000,
            0xc006_4900,
            0x0002_8514,
            0x4300_0000,
            0x0060_0000,
            0x7f00,
            1,
            0,
            0,
        ];
        let text: Vec<_> = Packets::new(&words).map(|p| p.unwrap().to_string()).collect();
        assert_eq!(
            text,
            [
                "ACQUIRE_MEM cache=TC_WB | TCL1 | TC | SH_KCACHE | SH_ICACHE range=all",
                "EVENT_WRITE 00000407",
                "NOP skips 0 dwords",
                "RELEASE_MEM event=0x14/5 cache=0x28000 dst=0x7f0000600000 data=0x1 confirm",
            ]
        );
    }

    #[test]
    fn packets_ends_at_a_truncated_packet() {
        let words = WriteData::new(GpuAddr::new(0x1000), 7).unwrap().encode();
        for cut in 1..words.len() {
            let all: Vec<_> = Packets::new(&words[..cut]).collect();
            assert_eq!(all, [Err(Error::Truncated { needed: 5, found: cut })]);
        }
    }

    #[test]
    fn packets_goes_on_after_a_malformed_packet() {
        let mut words = Vec::from(WriteData::new(GpuAddr::new(0x1000), 7).unwrap().encode());
        words[1] |= 1 << 31;
        words.push(Nop::one_dword());
        let all: Vec<_> = Packets::new(&words).collect();
        assert!(matches!(all[0], Err(Error::Reserved { dword: 1, .. })));
        assert!(matches!(all[1], Ok(Packet::Nop(_))));
        assert_eq!(all.len(), 2);
    }

    proptest! {
        #[test]
        fn any_dwords_decode_without_panic_and_end(
            words in prop::collection::vec(
                prop_oneof![any::<u32>(), (0u32..6, 0u8..=255).prop_map(|(n, op)| {
                    3 << 30 | n << 16 | u32::from(op) << 8
                })],
                0..64,
            )
        ) {
            let steps = Packets::new(&words).inspect(|p| {
                let _ = p.map(|p| p.to_string());
            }).count();
            prop_assert!(steps <= words.len());
        }

        #[test]
        fn write_block_decodes_to_what_was_encoded(
            kind in 0u8..16, dst in any::<u64>(), data in prop::collection::vec(any::<u32>(), 1..9),
            one_address: bool, confirm: bool, policy in 0u8..4,
        ) {
            let block = WriteBlock {
                kind: DataDst(kind), dst: GpuAddr::new(dst & !3), data: &data,
                one_address, confirm, policy: CachePolicy(policy),
            };
            let mut out = [0; 16];
            let dwords = block.encode_into(&mut out).unwrap();
            prop_assert_eq!(Packet::decode(&out[..dwords]), Ok(Packet::WriteData(block)));
        }

        #[test]
        fn what_decodes_encodes_to_the_same_dwords(
            opcode in prop_oneof![Just(Opcode::INDIRECT_BUFFER), Just(Opcode::RELEASE_MEM)],
            body in prop::array::uniform7(prop_oneof![any::<u32>(), Just(0u32)]),
        ) {
            let dwords = if opcode == Opcode::RELEASE_MEM { 8 } else { 4 };
            let mut words = Vec::from([Header::new(opcode, dwords).word()]);
            words.extend(&body[..dwords - 1]);
            match Packet::decode(&words) {
                Ok(Packet::IndirectBuffer(ib)) => prop_assert_eq!(&ib.encode()[..], &words[..]),
                Ok(Packet::ReleaseMem(release)) => {
                    prop_assert_eq!(&release.encode()[..], &words[..]);
                }
                Ok(other) => prop_assert!(false, "{:?}", other),
                Err(_) => {}
            }
        }
    }
}
