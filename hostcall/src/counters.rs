//! [`Counters`]: what was answered, and what was wrong, by kind.

use std::sync::atomic::{AtomicU64, Ordering};

/// Defines the kinds with the text that reports use.
macro_rules! counts {
    ($($(#[$doc:meta])* $variant:ident = $text:literal;)*) => {
        /// A kind of event that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Count { $($(#[$doc])* $variant,)* }

        impl Count {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// What reports say.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

counts! {
    /// Packets answered, errors included.
    Answered = "packets answered";
    /// Passes over the pools.
    Passes = "passes";
    /// A service number that nothing serves: answered with an error.
    UnknownService = "packets for an unknown service";
    /// A service panicked: its packet was answered with an error.
    ServicePanics = "panics in services";
    /// A packet without a lane.
    EmptyMask = "packets without a lane";
    /// Bits of lanes that no wave of the pool has.
    StrayLanes = "packets with lanes beyond the wave";
    /// A tagged index names no packet: the rest of its chain is lost.
    BadIndex = "chains with an index outside the pool";
    /// A chain came back to a packet: cut there.
    Cycles = "chains with a cycle";
    /// A packet was on the ready stack though no wave waits on it.
    NotReady = "packets on the ready stack that nobody waits for";
    /// A packet that a broken chain lost, found later and answered with an error.
    Rescued = "packets of broken chains answered with an error";
    /// A device phase that is neither 0 nor 1.
    BadPhase = "phase words that are neither 0 nor 1";
    /// Packets answered with an error because the drain stopped.
    RefusedAtStop = "packets refused at stop";
    /// A call of a function that was not registered.
    UnknownFunction = "calls of functions that are not registered";
    /// A heap request of 0 bytes at no address.
    EmptyHeapRequest = "heap requests of 0 bytes";
    /// A heap request over a limit, or that memory could not serve: answered with null.
    HeapExhausted = "heap requests answered with null";
    /// A heap address that is not, or no longer, the heap's.
    UnknownHeapAddress = "frees of addresses the heap did not give";
    /// Sanitizer reports handed on.
    SanitizerReports = "sanitizer reports";
    /// Sanitizer reports dropped because there were too many.
    SanitizerSuppressed = "sanitizer reports dropped";
    /// Messages written to the sink.
    Written = "messages written";
    /// Messages dropped because the sink is too slow.
    Dropped = "messages dropped";
    /// Bytes of dropped messages.
    DroppedBytes = "bytes of messages dropped";
    /// The sink panicked or failed.
    SinkFailures = "failures of the sink";
}

/// Counts by kind. Counting never fails and never waits; numbers read while others count are from
/// about now.
#[derive(Debug)]
pub struct Counters {
    values: [AtomicU64; Count::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self { values: [const { AtomicU64::new(0) }; Count::ALL.len()] }
    }
}

impl Counters {
    /// Adds to a count.
    pub fn add(&self, count: Count, more: u64) {
        if let Some(value) = self.values.get(count as usize) {
            value.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Adds 1 to a count.
    pub fn note(&self, count: Count) {
        self.add(count, 1);
    }

    /// The count.
    pub fn get(&self, count: Count) -> u64 {
        self.values.get(count as usize).map_or(0, |value| value.load(Ordering::Relaxed))
    }

    /// All counts above 0 with what they count, for reports.
    pub fn iter(&self) -> impl Iterator<Item = (Count, u64)> {
        Count::ALL.iter().map(|&count| (count, self.get(count))).filter(|&(_, value)| value > 0)
    }
}
