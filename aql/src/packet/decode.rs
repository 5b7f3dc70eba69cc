//! What 64 bytes mean.

use core::fmt;

use pm4::GpuAddr;

use super::{AgentDispatch, BarrierAnd, BarrierOr, BarrierValue, KernelDispatch, Packet, Pm4Ib};
use crate::{Header, PacketType, Problem, VendorFormat};

/// A packet, told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decoded {
    /// A free slot: the packet processor waits here.
    Invalid,
    /// Launches a kernel.
    KernelDispatch(KernelDispatch),
    /// Waits until all signals are zero.
    BarrierAnd(BarrierAnd),
    /// Waits until one signal is zero.
    BarrierOr(BarrierOr),
    /// Calls a function of another agent.
    AgentDispatch(AgentDispatch),
    /// Runs a buffer of PM4 packets.
    Pm4Ib(Pm4Ib),
    /// Waits for a value of a signal.
    BarrierValue(BarrierValue),
    /// Nothing that a command processor accepts.
    Malformed {
        /// The packet, untouched.
        packet: Packet,
        /// The first thing wrong with it.
        problem: Problem,
    },
}

impl Decoded {
    /// The header, whatever the packet.
    pub const fn header(&self) -> Header {
        match self {
            Self::Invalid => Header::INVALID,
            Self::KernelDispatch(packet) => packet.header(),
            Self::BarrierAnd(packet) => packet.header(),
            Self::BarrierOr(packet) => packet.header(),
            Self::AgentDispatch(packet) => packet.header(),
            Self::Pm4Ib(packet) => packet.header(),
            Self::BarrierValue(packet) => packet.header(),
            Self::Malformed { packet, .. } => packet.header(),
        }
    }
}

impl From<Packet> for Decoded {
    fn from(packet: Packet) -> Self {
        let decoded = match packet.header().packet_type() {
            // What else a free slot holds is left over from earlier use.
            PacketType::INVALID => return Self::Invalid,
            PacketType::KERNEL_DISPATCH => KernelDispatch::decode(packet).map(Self::KernelDispatch),
            PacketType::BARRIER_AND => BarrierAnd::decode(packet).map(Self::BarrierAnd),
            PacketType::BARRIER_OR => BarrierOr::decode(packet).map(Self::BarrierOr),
            PacketType::AGENT_DISPATCH => AgentDispatch::decode(packet).map(Self::AgentDispatch),
            PacketType::VENDOR_SPECIFIC => vendor(packet),
            PacketType(unknown) => Err(Problem::UnknownType(unknown)),
        };
        decoded.unwrap_or_else(|problem| Self::Malformed { packet, problem })
    }
}

fn vendor(packet: Packet) -> Result<Decoded, Problem> {
    let [format, reserved] = packet.setup().to_le_bytes();
    match VendorFormat(format) {
        VendorFormat::PM4_IB | VendorFormat::BARRIER_VALUE if reserved != 0 => {
            Err(Problem::Reserved { dword: 0, bits: u32::from(reserved) << 24 })
        }
        VendorFormat::PM4_IB => Pm4Ib::decode(packet).map(Decoded::Pm4Ib),
        VendorFormat::BARRIER_VALUE => BarrierValue::decode(packet).map(Decoded::BarrierValue),
        VendorFormat(unknown) => Err(Problem::UnknownFormat(unknown)),
    }
}

/// The end of every packet's text.
pub(super) fn completion(f: &mut fmt::Formatter<'_>, signal: GpuAddr) -> fmt::Result {
    if signal == GpuAddr::NULL { Ok(()) } else { write!(f, " completion={signal}") }
}

impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid => f.write_str("invalid"),
            Self::KernelDispatch(packet) => packet.fmt(f),
            Self::BarrierAnd(packet) => packet.fmt(f),
            Self::BarrierOr(packet) => packet.fmt(f),
            Self::AgentDispatch(packet) => packet.fmt(f),
            Self::Pm4Ib(packet) => packet.fmt(f),
            Self::BarrierValue(packet) => packet.fmt(f),
            Self::Malformed { packet, problem } => {
                write!(f, "malformed: {problem}")?;
                if let Problem::Pm4(cause) = problem {
                    write!(f, " ({cause})")?;
                }
                f.write_str(":")?;
                packet.0.iter().try_for_each(|word| write!(f, " {word:08x}"))
            }
        }
    }
}
