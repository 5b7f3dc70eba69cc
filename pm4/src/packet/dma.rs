//! `DMA_DATA`: copies or fills memory by the command processor's DMA.

use core::fmt;

use super::memory::addr;
use super::{CachePolicy, strict};
use crate::bits::layout;
use crate::emit::fixed;
use crate::{Error, GpuAddr, Header, Opcode};

layout! {
    dma_data {
        SRC_CACHE_POLICY = 1 [14:13]; DST_SEL = 1 [21:20]; DST_CACHE_POLICY = 1 [26:25];
        SRC_SEL = 1 [30:29]; CP_SYNC = 1 [31:31];
        SRC_ADDR_LO_OR_DATA = 2 [31:0]; SRC_ADDR_HI = 3 [31:0];
        DST_ADDR_LO = 4 [31:0]; DST_ADDR_HI = 5 [31:0];
        BYTE_COUNT = 6 [25:0]; SAIC = 6 [28:28]; DAIC = 6 [29:29]; RAW_WAIT = 6 [30:30];
        DIS_WC = 6 [31:31];
    }
}

/// What a [`DmaData`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaSource {
    /// Memory, past the L2.
    Memory(GpuAddr),
    /// Memory, through the L2.
    TcL2(GpuAddr),
    /// A dword, again and again.
    Data(u32),
}

const SEL_DIRECT: u32 = 0;
const SEL_DATA: u32 = 2;
const SEL_L2: u32 = 3;

/// PM4 `DMA_DATA`: copies or fills memory.
#[doc(alias = "PACKET3_DMA_DATA")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct DmaData {
    from: DmaSource,
    to: GpuAddr,
    to_l2: bool,
    bytes: u32,
    from_policy: CachePolicy,
    to_policy: CachePolicy,
    sync: bool,
    raw_wait: bool,
    no_confirm: bool,
    from_fixed: bool,
    to_fixed: bool,
}

impl DmaData {
    /// Length of the packet.
    pub const DWORDS: usize = 7;
    /// Most bytes one packet moves.
    pub const MAX_BYTES: u32 = dma_data::BYTE_COUNT.max();

    /// Writes `bytes` bytes to `to` through the L2, and waits until they are there.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than [`Self::MAX_BYTES`] bytes; [`Error::Misaligned`] for a fill
    /// whose address or length is not a multiple of 4.
    pub const fn new(from: DmaSource, to: GpuAddr, bytes: u32) -> Result<Self, Error> {
        if bytes > Self::MAX_BYTES {
            let (found, max) = (bytes as usize, Self::MAX_BYTES as usize);
            return Err(Error::TooLong { opcode: Opcode::DMA_DATA, found, max });
        }
        if let DmaSource::Data(_) = from
            && !GpuAddr::new(to.get() | bytes as u64).is_aligned(4)
        {
            return Err(Error::Misaligned { opcode: Opcode::DMA_DATA, addr: to, align: 4 });
        }
        Ok(Self {
            from,
            to,
            to_l2: true,
            bytes,
            from_policy: CachePolicy::LRU,
            to_policy: CachePolicy::LRU,
            sync: true,
            raw_wait: false,
            no_confirm: false,
            from_fixed: false,
            to_fixed: false,
        })
    }

    /// Goes on without waiting for the bytes; a later packet must wait.
    pub const fn without_sync(mut self) -> Self {
        self.sync = false;
        self.no_confirm = true;
        self
    }

    /// Waits for earlier `DMA_DATA` writes before it reads.
    pub const fn raw_wait(mut self) -> Self {
        self.raw_wait = true;
        self
    }

    /// Writes past the L2.
    pub const fn past_l2(mut self) -> Self {
        self.to_l2 = false;
        self
    }

    /// How the L2 treats the reads and the writes.
    pub const fn policies(mut self, from: CachePolicy, to: CachePolicy) -> Self {
        self.from_policy = CachePolicy(from.0 & 3);
        self.to_policy = CachePolicy(to.0 & 3);
        self
    }

    /// What is read.
    pub const fn from(self) -> DmaSource {
        self.from
    }

    /// Where it goes.
    pub const fn to(self) -> GpuAddr {
        self.to
    }

    /// Bytes written.
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// Whether it waits for its writes.
    pub const fn is_sync(self) -> bool {
        self.sync
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        use dma_data as d;
        let (from, word) = match self.from {
            DmaSource::Memory(addr) => (SEL_DIRECT, addr),
            DmaSource::TcL2(addr) => (SEL_L2, addr),
            DmaSource::Data(data) => (SEL_DATA, GpuAddr::new(data as u64)),
        };
        let control = d::SRC_CACHE_POLICY.put(self.from_policy.0 as u32)
            | d::DST_SEL.put(if self.to_l2 { SEL_L2 } else { SEL_DIRECT })
            | d::DST_CACHE_POLICY.put(self.to_policy.0 as u32)
            | d::SRC_SEL.put(from)
            | d::CP_SYNC.flag(self.sync);
        let command = d::BYTE_COUNT.put(self.bytes)
            | d::SAIC.flag(self.from_fixed)
            | d::DAIC.flag(self.to_fixed)
            | d::RAW_WAIT.flag(self.raw_wait)
            | d::DIS_WC.flag(self.no_confirm);
        let header = Header::new(Opcode::DMA_DATA, Self::DWORDS).word();
        [header, control, word.lo(), word.hi(), self.to.lo(), self.to.hi(), command]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. GDS, "nowhere" and register spaces count as reserved.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        use dma_data as d;
        let op = Opcode::DMA_DATA;
        let [control, lo, hi, to_lo, to_hi, command] = strict(words, op, d::FIELDS)?;
        let reserved = |bits| Error::Reserved { opcode: op, dword: 1, word: control, bits };
        let from = match d::SRC_SEL.get(control) {
            SEL_DIRECT => DmaSource::Memory(addr(lo, hi)),
            SEL_L2 => DmaSource::TcL2(addr(lo, hi)),
            SEL_DATA => super::only(op, 3, hi, 0).map(|()| DmaSource::Data(lo))?,
            _ => return Err(reserved(d::SRC_SEL.mask() & control)),
        };
        let to_l2 = match d::DST_SEL.get(control) {
            SEL_L2 => true,
            SEL_DIRECT => false,
            _ => return Err(reserved(d::DST_SEL.mask() & control)),
        };
        Ok(Self {
            to_l2,
            from_policy: CachePolicy(d::SRC_CACHE_POLICY.byte(control)),
            to_policy: CachePolicy(d::DST_CACHE_POLICY.byte(control)),
            sync: d::CP_SYNC.is_set(control),
            raw_wait: d::RAW_WAIT.is_set(command),
            no_confirm: d::DIS_WC.is_set(command),
            from_fixed: d::SAIC.is_set(command),
            to_fixed: d::DAIC.is_set(command),
            ..Self::new(from, addr(to_lo, to_hi), d::BYTE_COUNT.get(command))?
        })
    }
}

impl fmt::Display for DmaData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            DmaSource::Memory(addr) => write!(f, "DMA_DATA from=memory:{addr}"),
            DmaSource::TcL2(addr) => write!(f, "DMA_DATA from=l2:{addr}"),
            DmaSource::Data(data) => write!(f, "DMA_DATA from={data:#x}"),
        }?;
        let to = if self.to_l2 { "l2" } else { "memory" };
        write!(f, " to={to}:{} bytes={:#x}", self.to, self.bytes)?;
        for (set, text) in [
            (self.sync, " sync"),
            (self.raw_wait, " raw-wait"),
            (self.no_confirm, " no-confirm"),
            (self.from_fixed, " same-source"),
            (self.to_fixed, " same-destination"),
        ] {
            f.write_str(if set { text } else { "" })?;
        }
        Ok(())
    }
}

fixed!(Pm4Packet: DmaData);

#[cfg(test)]
mod tests {
    use super::*;

    const TO: GpuAddr = GpuAddr::new(0x7f00_0060_0000);

    #[test]
    fn dma_data_puts_every_field_in_place() {
        let copy = DmaData::new(DmaSource::TcL2(GpuAddr::new(0x7f00_0050_0000)), TO, 4096).unwrap();
        let words = [0xc005_5000, 0xe030_0000, 0x0050_0000, 0x7f00, 0x0060_0000, 0x7f00, 4096];
        assert_eq!(copy.encode(), words);
        assert_eq!(DmaData::decode(&words), Ok(copy));
        let fill = DmaData::new(DmaSource::Data(7), TO, 8).unwrap().without_sync().raw_wait();
        assert_eq!(fill.encode()[1..], [0x4030_0000, 7, 0, 0x0060_0000, 0x7f00, 0xc000_0008]);
    }

    #[test]
    fn dma_data_refuses_too_many_bytes_and_fills_of_odd_bytes() {
        let from = DmaSource::Memory(TO);
        assert!(DmaData::new(from, TO, DmaData::MAX_BYTES).is_ok());
        assert!(matches!(
            DmaData::new(from, TO, DmaData::MAX_BYTES + 1),
            Err(Error::TooLong { found: 0x400_0000, max: 0x3FF_FFFF, .. })
        ));
        assert!(DmaData::new(from, GpuAddr::new(3), 5).is_ok());
        assert!(DmaData::new(DmaSource::Data(0), TO, 5).is_err());
    }
}
