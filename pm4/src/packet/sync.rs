//! `RELEASE_MEM`: orders what follows after earlier work and its caches.

use core::fmt;

use super::memory::addr;
use super::{CachePolicy, EventType, body, gfx9, gfx11, only};
use crate::bits::layout;
use crate::emit::fixed;
use crate::{Error, GpuAddr, Header, Opcode, Target};

/// Where the data of a [`ReleaseMem`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct DstSel(pub u8);

impl DstSel {
    /// To memory, past the L2.
    pub const MEMORY: Self = Self(0);
    /// Through the L2.
    pub const TC_L2: Self = Self(1);
}

/// When a [`ReleaseMem`] interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct IntSel(pub u8);

impl IntSel {
    /// Never.
    pub const NONE: Self = Self(0);
    /// At once, without data.
    pub const INTERRUPT: Self = Self(1);
    /// After memory has acknowledged the data.
    pub const AFTER_CONFIRM: Self = Self(2);
    /// Never; but the data's acknowledgement is awaited.
    pub const CONFIRM_ONLY: Self = Self(3);
}

/// What a [`ReleaseMem`] stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct DataSel(pub u8);

impl DataSel {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The low 32 bits of the data.
    pub const LOW_32: Self = Self(1);
    /// All 64 bits of the data.
    pub const ALL_64: Self = Self(2);
    /// The 64-bit GPU clock.
    pub const GPU_CLOCK: Self = Self(3);
}

/// PM4 `RELEASE_MEM`: when earlier work has finished, flushes caches, stores, and interrupts.
///
/// The cache bits differ between generations and lie in the same place, so words alone do not tell
/// which they are: [`Self::gfx9_cache`] and [`Self::gfx11_cache`] read them either way.
#[doc(alias = "PACKET3_RELEASE_MEM")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReleaseMem {
    event: EventType,
    event_index: u8,
    cache: u32,
    policy: CachePolicy,
    dst_sel: DstSel,
    int_sel: IntSel,
    data_sel: DataSel,
    dst: GpuAddr,
    data: u64,
    context_id: u32,
    execute: bool,
}

const EVENT_INDEX_EOP: u8 = 5;
layout! {
    release_mem {
        EVENT_TYPE = 1 [5:0]; EVENT_INDEX = 1 [11:8]; GCR_CNTL = 1 [23:12];
        CACHE_POLICY = 1 [26:25]; PQ_EXE_STATUS = 1 [28:28];
        DST_SEL = 2 [17:16]; INT_SEL = 2 [26:24]; DATA_SEL = 2 [31:29];
        ADDRESS_LO_32B = 3 [31:2]; ADDRESS_LO_64B = 3 [31:3]; ADDRESS_HI = 4 [31:0];
        DATA_LO = 5 [31:0]; DATA_HI = 6 [31:0]; INT_CTXID = 7 [31:0];
    }
}

const CACHE_MASK: u32 = release_mem::GCR_CNTL.mask();
const POLICY_SHIFT: u32 = release_mem::CACHE_POLICY.low();
const EXECUTE: u32 = release_mem::PQ_EXE_STATUS.mask();
const DST_SEL_SHIFT: u32 = release_mem::DST_SEL.low();
const INT_SEL_SHIFT: u32 = release_mem::INT_SEL.low();
const DATA_SEL_SHIFT: u32 = release_mem::DATA_SEL.low();

impl ReleaseMem {
    /// Length of the packet on a compute queue.
    pub const DWORDS: usize = 8;

    const fn new(cache: u32) -> Self {
        Self {
            event: EventType::CACHE_FLUSH_AND_INV_TS,
            event_index: EVENT_INDEX_EOP,
            cache,
            policy: CachePolicy::LRU,
            dst_sel: DstSel::MEMORY,
            int_sel: IntSel::NONE,
            data_sel: DataSel::NONE,
            dst: GpuAddr::NULL,
            data: 0,
            context_id: 0,
            execute: false,
        }
    }

    /// Waits for earlier work, with gfx9's cache actions. Stores nothing until told what.
    pub const fn gfx9(cache: gfx9::ReleaseCache) -> Self {
        Self::new(cache.bits())
    }

    /// Waits for earlier work, with gfx11's cache actions. Stores nothing until told what.
    pub const fn gfx11(cache: gfx11::ReleaseCache) -> Self {
        Self::new(cache.bits())
    }

    /// Stores a 32-bit `value` at `dst`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `dst` is 4-byte aligned.
    pub const fn write_32(self, dst: GpuAddr, value: u32) -> Result<Self, Error> {
        self.store(dst, value as u64, DataSel::LOW_32, 4)
    }

    /// Stores a 64-bit `value` at `dst`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `dst` is 8-byte aligned.
    pub const fn write_64(self, dst: GpuAddr, value: u64) -> Result<Self, Error> {
        self.store(dst, value, DataSel::ALL_64, 8)
    }

    /// Stores the 64-bit GPU clock at `dst`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `dst` is 8-byte aligned.
    pub const fn write_clock(self, dst: GpuAddr) -> Result<Self, Error> {
        self.store(dst, 0, DataSel::GPU_CLOCK, 8)
    }

    const fn store(
        mut self,
        dst: GpuAddr,
        data: u64,
        data_sel: DataSel,
        align: u64,
    ) -> Result<Self, Error> {
        if !dst.is_aligned(align) {
            return Err(Error::Misaligned { opcode: Opcode::RELEASE_MEM, addr: dst, align });
        }
        self.dst = dst;
        self.data = data;
        self.data_sel = data_sel;
        Ok(self)
    }

    /// Waits until memory has acknowledged the store, without an interrupt.
    pub const fn confirm(mut self) -> Self {
        self.int_sel = IntSel::CONFIRM_ONLY;
        self
    }

    /// Interrupts with `context_id` once the store is acknowledged. KFD takes the context id for
    /// an event id.
    pub const fn interrupt(mut self, context_id: u32) -> Self {
        self.int_sel = IntSel::AFTER_CONFIRM;
        self.context_id = context_id;
        self
    }

    /// Stores through the L2 instead of past it.
    pub const fn through_l2(mut self) -> Self {
        self.dst_sel = DstSel::TC_L2;
        self
    }

    /// Marks the packet as a trailing fence (gfx9 `EOP_EXEC`, gfx11 `EXECUTE`).
    pub const fn execute(mut self) -> Self {
        self.execute = true;
        self
    }

    /// The event waited for, and its index.
    pub const fn event(self) -> (EventType, u8) {
        (self.event, self.event_index)
    }

    /// The cache actions, read as gfx9's.
    pub const fn gfx9_cache(self) -> gfx9::ReleaseCache {
        gfx9::ReleaseCache::from_bits_retain(self.cache)
    }

    /// The cache actions, read as gfx11's.
    pub const fn gfx11_cache(self) -> gfx11::ReleaseCache {
        gfx11::ReleaseCache::from_bits_retain(self.cache)
    }

    /// Where the store goes.
    pub const fn dst(self) -> (DstSel, GpuAddr) {
        (self.dst_sel, self.dst)
    }

    /// What is stored; the value counts only for [`DataSel::LOW_32`] and [`DataSel::ALL_64`].
    pub const fn data(self) -> (DataSel, u64) {
        (self.data_sel, self.data)
    }

    /// Whether and when it interrupts, and the context id of the interrupt.
    pub const fn interrupts(self) -> (IntSel, u32) {
        (self.int_sel, self.context_id)
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let event = self.event.0 as u32 & 0x3F
            | (self.event_index as u32 & 0xF) << 8
            | self.cache & CACHE_MASK
            | (self.policy.0 as u32 & 3) << POLICY_SHIFT
            | if self.execute { EXECUTE } else { 0 };
        let select = (self.dst_sel.0 as u32 & 3) << DST_SEL_SHIFT
            | (self.int_sel.0 as u32 & 7) << INT_SEL_SHIFT
            | (self.data_sel.0 as u32 & 7) << DATA_SEL_SHIFT;
        let data = GpuAddr::new(self.data);
        [
            Header::new(Opcode::RELEASE_MEM, Self::DWORDS).word(),
            event,
            select,
            self.dst.lo(),
            self.dst.hi(),
            data.lo(),
            data.hi(),
            self.context_id,
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let op = Opcode::RELEASE_MEM;
        let [event, select, lo, hi, data_lo, data_hi, context_id] = body::<7>(words, op)?;
        only(op, 1, event, 0x3F | 0xF << 8 | CACHE_MASK | 3 << POLICY_SHIFT | EXECUTE)?;
        only(op, 2, select, 3 << DST_SEL_SHIFT | 7 << INT_SEL_SHIFT | 7 << DATA_SEL_SHIFT)?;
        let [event_type, event_index, _, policy] = event.to_le_bytes();
        let [_, _, dst_sel, sel] = select.to_le_bytes();
        let (dst, data_sel) = (addr(lo, hi), DataSel(sel >> 5));
        let align = match data_sel {
            DataSel::NONE => 1,
            DataSel::LOW_32 => 4,
            _ => 8,
        };
        if !dst.is_aligned(align) {
            return Err(Error::Misaligned { opcode: op, addr: dst, align });
        }
        Ok(Self {
            event: EventType(event_type & 0x3F),
            event_index: event_index & 0xF,
            cache: event & CACHE_MASK,
            policy: CachePolicy(policy >> 1 & 3),
            dst_sel: DstSel(dst_sel & 3),
            int_sel: IntSel(sel & 7),
            data_sel,
            dst,
            data: addr(data_lo, data_hi).get(),
            context_id,
            execute: event & EXECUTE != 0,
        })
    }
}

/// Cache bits as text: those of one generation, or raw.
enum Cache {
    Raw(u32),
    Gfx9(gfx9::ReleaseCache),
    Gfx11(gfx11::ReleaseCache),
}

struct Shown {
    packet: ReleaseMem,
    cache: Cache,
}

impl ReleaseMem {
    /// As text, with the cache bits of `target`.
    pub(crate) const fn on(self, target: Target) -> impl fmt::Display {
        let cache = if target.is_gfx9() {
            Cache::Gfx9(self.gfx9_cache())
        } else {
            Cache::Gfx11(self.gfx11_cache())
        };
        Shown { packet: self, cache }
    }
}

impl fmt::Display for ReleaseMem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown { packet: *self, cache: Cache::Raw(self.cache) }.fmt(f)
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packet = &self.packet;
        write!(f, "RELEASE_MEM event={}/{} cache=", packet.event, packet.event_index)?;
        match self.cache {
            Cache::Raw(bits) => write!(f, "{bits:#x}"),
            Cache::Gfx9(cache) => bitflags::parser::to_writer(&cache, &mut *f),
            Cache::Gfx11(cache) => bitflags::parser::to_writer(&cache, &mut *f),
        }?;
        match packet.data_sel {
            DataSel::NONE => {}
            DataSel::LOW_32 | DataSel::ALL_64 => {
                write!(f, " dst={} data={:#x}", packet.dst, packet.data)?;
            }
            DataSel::GPU_CLOCK => write!(f, " dst={} data=clock", packet.dst)?,
            other => write!(f, " dst={} data_sel={}", packet.dst, other.0)?,
        }
        match packet.int_sel {
            IntSel::NONE => Ok(()),
            IntSel::CONFIRM_ONLY => f.write_str(" confirm"),
            _ => write!(f, " interrupt={}", packet.context_id),
        }
    }
}

fixed!(Pm4Packet: ReleaseMem);

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: GpuAddr = GpuAddr::new(0x7f00_0060_0000);

    /// Encodes as the worked example says, and decodes back.
    fn check(packet: ReleaseMem, words: [u32; 8]) {
        assert_eq!(packet.encode(), words);
        assert_eq!(ReleaseMem::decode(&words), Ok(packet));
    }

    #[test]
    fn release_mem_matches_the_worked_gfx9_example() {
        // docs/ABI.md §PM4, worked example E6.
        let cache = gfx9::ReleaseCache::TC_WB | gfx9::ReleaseCache::TC;
        check(
            ReleaseMem::gfx9(cache).write_64(FENCE, 1).unwrap().confirm(),
            [0xc006_4900, 0x0002_8514, 0x4300_0000, 0x0060_0000, 0x0000_7f00, 1, 0, 0],
        );
    }

    #[test]
    fn release_mem_matches_the_worked_gfx11_example() {
        // docs/ABI.md §PM4, worked example E7.
        use gfx11::ReleaseCache as C;
        let cache = C::GLM_WB
            | C::GLM_INV
            | C::GLV_INV
            | C::GL1_INV
            | C::GL2_INV
            | C::GL2_WB
            | C::SEQ_FORWARD;
        check(
            ReleaseMem::gfx11(cache).write_64(FENCE, 1).unwrap().confirm(),
            [0xc006_4900, 0x0070_f514, 0x4300_0000, 0x0060_0000, 0x0000_7f00, 1, 0, 0],
        );
    }

    #[test]
    fn release_mem_matches_the_worked_clock_example() {
        // docs/ABI.md §PM4, worked example E8.
        check(
            ReleaseMem::gfx9(gfx9::ReleaseCache::empty()).write_clock(FENCE).unwrap(),
            [0xc006_4900, 0x0000_0514, 0x6000_0000, 0x0060_0000, 0x0000_7f00, 0, 0, 0],
        );
    }

    #[test]
    fn release_mem_keeps_the_execute_bit() {
        let packet = ReleaseMem::gfx11(gfx11::ReleaseCache::empty()).execute();
        assert_eq!(packet.encode()[1], 0x1000_0514);
        assert_eq!(ReleaseMem::decode(&packet.encode()), Ok(packet));
    }

    #[test]
    fn release_mem_refuses_a_misaligned_64_bit_store() {
        let addr = GpuAddr::new(0x1004);
        let packet = ReleaseMem::gfx9(gfx9::ReleaseCache::empty());
        assert!(packet.write_32(addr, 1).is_ok());
        let error = Error::Misaligned { opcode: Opcode::RELEASE_MEM, addr, align: 8 };
        assert_eq!(packet.write_64(addr, 1), Err(error));
        let mut words = packet.write_64(FENCE, 1).unwrap().encode();
        words[3] |= 4;
        assert!(matches!(ReleaseMem::decode(&words), Err(Error::Misaligned { .. })));
    }
}
