//! AMD's own packets: PM4 inside AQL, and waits for any value of a signal.

use core::fmt;

use pm4::{GpuAddr, IndirectBuffer};

use super::{Packet, addr, check_signal, packet_methods};
use crate::{PacketType, Problem};

/// Which of AMD's packets a vendor-specific packet is: its byte 2.
///
/// # Source
/// `hsa_amd_packet_type_t` in ROCr inc/hsa_ext_amd.h; docs/ABI.md §AQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct VendorFormat(pub u8);

impl VendorFormat {
    /// [`Pm4Ib`].
    pub const PM4_IB: Self = Self(1);
    /// [`BarrierValue`].
    pub const BARRIER_VALUE: Self = Self(2);
}

/// Runs a buffer of PM4 packets, on every target.
///
/// # Source
/// `amd_aql_pm4_ib_packet_t`, as ROCr's `AqlQueue::ExecutePM4` fills it; docs/ABI.md §AQL.
#[doc(alias = "amd_aql_pm4_ib_packet_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Pm4Ib(Packet);

packet_methods!(Pm4Ib);

/// Dwords of the packet that the PM4 words do not use, a constant of the format.
const REMAINING_DWORDS: u32 = 10;

impl Pm4Ib {
    /// Runs `buffer`.
    pub const fn new(buffer: IndirectBuffer) -> Self {
        let mut packet = Packet::with(PacketType::VENDOR_SPECIFIC, VendorFormat::PM4_IB.0 as u16);
        let [header, base_lo, base_hi, control] = buffer.encode();
        packet.0[1] = header;
        packet.0[2] = base_lo;
        packet.0[3] = base_hi;
        packet.0[4] = control;
        packet.0[5] = REMAINING_DWORDS;
        Self(packet)
    }

    /// The dwords of the `INDIRECT_BUFFER` packet inside.
    pub const fn pm4(&self) -> [u32; 4] {
        let words = &self.0.0;
        [words[1], words[2], words[3], words[4]]
    }

    /// The buffer it runs.
    ///
    /// # Errors
    /// Never for a packet from [`Self::new`] or [`Packet::decode`], which has read it before.
    pub fn buffer(&self) -> Result<IndirectBuffer, pm4::Error> {
        IndirectBuffer::decode(&self.pm4())
    }

    pub(super) fn decode(packet: Packet) -> Result<Self, Problem> {
        packet.check_frame()?;
        packet.zero(6..14)?;
        let this = Self(packet);
        let _ = this.buffer().map_err(Problem::Pm4)?;
        let [.., remaining, _, _, _, _, _, _, _, _, _, _] = packet.0;
        if remaining != REMAINING_DWORDS {
            return Err(Problem::RemainingDwords(remaining));
        }
        Ok(this)
    }
}

impl fmt::Display for Pm4Ib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pm4-ib {}", self.header())?;
        if let Ok(buffer) = self.buffer() {
            write!(f, " base={} dwords={}", buffer.base(), buffer.buffer_dwords())?;
        }
        super::decode::completion(f, self.completion_signal())
    }
}

/// How [`BarrierValue`] compares; signed.
///
/// # Source
/// `hsa_signal_condition32_t` in ROCr inc/hsa_ext_amd.h; docs/ABI.md §AQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Condition(pub u32);

impl Condition {
    /// Equal.
    pub const EQ: Self = Self(0);
    /// Not equal.
    pub const NE: Self = Self(1);
    /// Less than.
    pub const LT: Self = Self(2);
    /// Greater than or equal.
    pub const GTE: Self = Self(3);

    /// Whether `left` compares so with `right`; `None` for an unknown condition.
    pub const fn holds(self, left: i64, right: i64) -> Option<bool> {
        match self {
            Self::EQ => Some(left == right),
            Self::NE => Some(left != right),
            Self::LT => Some(left < right),
            Self::GTE => Some(left >= right),
            _ => None,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::EQ => f.write_str("=="),
            Self::NE => f.write_str("!="),
            Self::LT => f.write_str("<"),
            Self::GTE => f.write_str(">="),
            Self(other) => write!(f, "condition {other}"),
        }
    }
}

/// Waits until a signal's value, masked, compares with a constant.
///
/// Other runtimes use it on gfx90a and gfx942 only.
///
/// # Source
/// `hsa_amd_barrier_value_packet_t` in ROCr inc/hsa_ext_amd.h; docs/ABI.md §AQL.
#[doc(alias = "hsa_amd_barrier_value_packet_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct BarrierValue(Packet);

packet_methods!(BarrierValue);

impl BarrierValue {
    /// Waits until `signal`'s value compares with `value` by `condition`. A null signal never
    /// waits.
    pub const fn new(signal: GpuAddr, condition: Condition, value: i64) -> Self {
        let mut packet =
            Packet::with(PacketType::VENDOR_SPECIFIC, VendorFormat::BARRIER_VALUE.0 as u16);
        let value = GpuAddr::new(value.cast_unsigned());
        packet.0[2] = signal.lo();
        packet.0[3] = signal.hi();
        packet.0[4] = value.lo();
        packet.0[5] = value.hi();
        packet.0[8] = condition.0;
        Self(packet).mask(-1)
    }

    /// Compares only the bits in `mask`.
    pub const fn mask(mut self, mask: i64) -> Self {
        let mask = GpuAddr::new(mask.cast_unsigned());
        self.0.0[6] = mask.lo();
        self.0.0[7] = mask.hi();
        self
    }

    /// The signal, or null.
    pub const fn signal(&self) -> GpuAddr {
        addr(self.0.0[2], self.0.0[3])
    }

    /// The constant compared with.
    pub const fn value(&self) -> i64 {
        addr(self.0.0[4], self.0.0[5]).get().cast_signed()
    }

    /// The bits of the signal's value compared.
    pub const fn value_mask(&self) -> i64 {
        addr(self.0.0[6], self.0.0[7]).get().cast_signed()
    }

    /// How they compare.
    pub const fn condition(&self) -> Condition {
        Condition(self.0.0[8])
    }

    /// Whether a signal value ends the wait; `None` for an unknown condition.
    pub const fn is_satisfied_by(&self, signal_value: i64) -> Option<bool> {
        self.condition().holds(signal_value & self.value_mask(), self.value())
    }

    pub(super) fn decode(packet: Packet) -> Result<Self, Problem> {
        packet.check_frame()?;
        packet.zero(1..2)?;
        packet.zero(9..14)?;
        let this = Self(packet);
        check_signal(this.signal())?;
        if this.condition().holds(0, 0).is_none() {
            return Err(Problem::Condition(this.condition().0));
        }
        Ok(this)
    }
}

impl fmt::Display for BarrierValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "barrier-value {} signal={}", self.header(), self.signal())?;
        write!(f, " until value&{:#x} {} {}", self.value_mask(), self.condition(), self.value())?;
        super::decode::completion(f, self.completion_signal())
    }
}
