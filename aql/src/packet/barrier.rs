//! Packets that wait for signals to reach zero.

use core::fmt;

use pm4::GpuAddr;

use super::{Packet, addr, check_signal, packet_methods};
use crate::{FenceScope, PacketType, Problem};

macro_rules! barrier {
    ($(#[$doc:meta])* $name:ident, $packet_type:ident, $text:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[must_use]
        pub struct $name(Packet);

        packet_methods!($name);

        impl $name {
            /// Most signals in one packet.
            pub const MAX_SIGNALS: usize = 5;

            /// Waits for `signals`; null ones are skipped.
            pub const fn new(signals: [GpuAddr; 5]) -> Self {
                let mut packet = Packet::with(PacketType::$packet_type, 0);
                let [a, b, c, d, e] = signals;
                let words = &mut packet.0;
                words[2] = a.lo();
                words[3] = a.hi();
                words[4] = b.lo();
                words[5] = b.hi();
                words[6] = c.lo();
                words[7] = c.hi();
                words[8] = d.lo();
                words[9] = d.hi();
                words[10] = e.lo();
                words[11] = e.hi();
                Self(packet)
            }

            /// The signals waited for; null ones are skipped.
            pub const fn signals(&self) -> [GpuAddr; 5] {
                let words = &self.0.0;
                [
                    addr(words[2], words[3]),
                    addr(words[4], words[5]),
                    addr(words[6], words[7]),
                    addr(words[8], words[9]),
                    addr(words[10], words[11]),
                ]
            }

            pub(super) fn decode(packet: Packet) -> Result<Self, Problem> {
                packet.check_frame()?;
                if packet.setup() != 0 {
                    let bits = u32::from(packet.setup()) << 16;
                    return Err(Problem::Reserved { dword: 0, bits });
                }
                packet.zero(1..2)?;
                packet.zero(12..14)?;
                let this = Self(packet);
                this.signals().into_iter().try_for_each(check_signal)?;
                Ok(this)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($text, " {} signals="), self.header())?;
                let mut separator = "";
                for signal in self.signals().into_iter().filter(|s| *s != GpuAddr::NULL) {
                    write!(f, "{separator}{signal}")?;
                    separator = ",";
                }
                if separator.is_empty() {
                    f.write_str("none")?;
                }
                super::decode::completion(f, self.completion_signal())
            }
        }
    };
}

barrier!(
    /// Waits until all its signals are zero at the same time.
    ///
    /// # Source
    /// `hsa_barrier_and_packet_t` in ROCr inc/hsa.h; docs/ABI.md §AQL.
    #[doc(alias = "hsa_barrier_and_packet_t")]
    BarrierAnd,
    BARRIER_AND,
    "barrier-and"
);

barrier!(
    /// Waits until one of its signals is zero.
    ///
    /// # Source
    /// `hsa_barrier_or_packet_t` in ROCr inc/hsa.h; docs/ABI.md §AQL.
    #[doc(alias = "hsa_barrier_or_packet_t")]
    BarrierOr,
    BARRIER_OR,
    "barrier-or"
);

impl BarrierAnd {
    /// The packet that does nothing: it waits for no signal, without fences.
    pub const fn noop() -> Self {
        Self::new([GpuAddr::NULL; 5]).acquire(FenceScope::NONE).release(FenceScope::NONE)
    }
}
