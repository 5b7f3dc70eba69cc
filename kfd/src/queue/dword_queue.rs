//! What PM4 and SDMA queues have in common: one producer, and a ring of dwords.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aql::AmdQueueV2;
use pm4::Target;
use pm4::packet::{Compare, WaitOn};
use pm4::sdma::Version;

use super::create::{self, Parts, Recipe};
use super::doorbell::DwordMemory;
use super::dwords::{Cursor, DwordRing, Refusal, Unit};
use super::live::{Live, QueueCore, WaitsFor, lie};
use super::scratch::Scratch;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::report::PacketInFlight;

/// Dwords that a report decodes.
const REPORT_DWORDS: usize = 1024;

/// Where the write and the read pointer are in the queue's page, bytes: as in the page of an AQL
/// queue. What follows the read pointer is 0 for SDMA queues, whose activity counter the kernel
/// looks for there. Source: docs/ABI.md §PM4 and SDMA queues.
const POINTERS: (u64, u64) =
    (AmdQueueV2::WRITE_DISPATCH_ID as u64, AmdQueueV2::READ_DISPATCH_ID as u64);

/// How packets read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// PM4.
    Pm4(Target),
    /// SDMA.
    Sdma(Version),
}

impl Language {
    /// Text of the packets in `dwords`, up to `most`, each with the dword it starts at. What cannot
    /// be read says why.
    pub fn decode(self, dwords: &[u32], most: usize) -> Vec<(usize, String)> {
        let raw = |at: usize, error: &dyn fmt::Display| {
            let word = dwords.get(at).copied().unwrap_or_default();
            format!("{word:#010x}: {error}")
        };
        match self {
            Self::Pm4(target) => {
                let mut packets = pm4::Packets::new(dwords);
                let step = || {
                    let at = packets.offset();
                    Some(match packets.next()? {
                        Ok(packet) => (at, packet.on(target).to_string()),
                        Err(error) => (at, raw(at, &error)),
                    })
                };
                std::iter::from_fn(step).take(most).collect()
            }
            Self::Sdma(version) => {
                let mut packets = pm4::sdma::Packets::new(dwords, version);
                let step = || {
                    let at = packets.offset();
                    Some(match packets.next()? {
                        Ok(packet) => (at, packet.to_string()),
                        Err(error) => (at, raw(at, &error)),
                    })
                };
                std::iter::from_fn(step).take(most).collect()
            }
        }
    }
}

impl Language {
    /// What the packet at the start of `dwords` waits for. NOPs in front of it are skipped.
    pub fn waits_for(self, dwords: &[u32]) -> Option<WaitsFor> {
        let wants = |function: Compare, reference: u64, mask: u64| {
            format!("{} {reference:#x}, mask {mask:#x}", function.symbol())
        };
        match self {
            Self::Pm4(_) => {
                use pm4::Packet;
                let mut packets = pm4::Packets::new(dwords);
                let first = packets.find(|packet| !matches!(packet, Ok(Packet::Nop(_))))?;
                match first.ok()? {
                    Packet::WaitRegMem(wait) => {
                        let (WaitOn::Memory(addr) | WaitOn::MemoryPreemptible(addr)) = wait.on()
                        else {
                            return None;
                        };
                        let (function, reference, mask) = wait.condition();
                        let wants = wants(function, reference.into(), mask.into());
                        Some(WaitsFor { address: addr.get(), bits: 32, wants })
                    }
                    Packet::WaitRegMem64(wait) => {
                        let (function, reference, mask) = wait.condition();
                        let wants = wants(function, reference, mask);
                        Some(WaitsFor { address: wait.addr().get(), bits: 64, wants })
                    }
                    _ => None,
                }
            }
            Self::Sdma(version) => {
                use pm4::sdma::Packet;
                let mut packets = pm4::sdma::Packets::new(dwords, version);
                let first = packets.find(|packet| !matches!(packet, Ok(Packet::Nop(_))))?;
                let Packet::PollMem(wait) = first.ok()? else { return None };
                let (function, reference, mask) = wait.condition();
                let wants = wants(function, reference.into(), mask.into());
                Some(WaitsFor { address: wait.addr().get(), bits: 32, wants })
            }
        }
    }
}

/// A queue of dwords while it lives.
#[derive(Debug)]
pub(crate) struct DwordLive {
    pub(super) core: QueueCore,
    pub(super) memory: DwordMemory,
    language: Language,
}

impl DwordLive {
    /// Makes the queue and puts it into the list of live ones.
    pub(super) fn create(
        gpu: &Gpu,
        recipe: &Recipe,
        language: Language,
    ) -> Result<(Arc<Self>, Option<Scratch>)> {
        let unit = match language {
            Language::Pm4(_) => Unit::Dwords,
            Language::Sdma(_) => Unit::Bytes,
        };
        let view = |parts: &Parts| {
            let (ring, page) = (Arc::clone(&parts.ring), Arc::clone(&parts.page));
            let memory = DwordMemory::new(ring, page, POINTERS, unit)?;
            if recipe.kind.is_compute() {
                let misaligned = |_| Error::Misaligned { offset: 0, align: 64 };
                memory.words()?.init(&parts.descriptor).map_err(misaligned)?;
            }
            Ok(memory)
        };
        let (core, memory, scratch) = create::create(&gpu.context, gpu.index, recipe, view)?;
        let live = Arc::new(Self { core, memory, language });
        gpu.context.add_queue(Arc::<Self>::clone(&live));
        Ok((live, scratch))
    }

    #[inline]
    pub(super) fn ring(&self) -> &DwordRing<'_> {
        self.memory.ring()
    }

    #[cold]
    pub(super) fn refused(&self, refusal: Refusal) -> Error {
        let queue = self.core.id;
        match refusal {
            Refusal::Ring(cause) => Error::Ring { queue, cause },
            Refusal::Pm4(cause) => Error::Pm4 { queue, cause },
            Refusal::Sdma(cause) => Error::Sdma { queue, cause },
        }
    }

    /// Publishes everything before `at` and rings.
    #[inline]
    pub(super) fn ring_doorbell(&self, at: &Cursor) {
        self.ring().publish(at);
        self.core.doorbell().ring(at.write);
    }
}

impl Live for DwordLive {
    fn core(&self) -> &QueueCore {
        &self.core
    }

    fn look_closely(&self) -> (Range<u64>, Option<u64>) {
        let lie = lie(self.ring().refresh());
        (self.ring().pending(), lie)
    }

    fn ring_again(&self) {
        let published = self.ring().pending().end;
        if published != 0 && !self.core.is_stopped() {
            self.core.doorbell().ring(published);
        }
    }

    fn packets(
        &self,
        _context: &Context,
        pending: Range<u64>,
        limit: usize,
    ) -> Vec<PacketInFlight> {
        let dwords = self.ring().dwords_of(pending.clone(), REPORT_DWORDS);
        let per_dword = self.ring().unit().per_dword();
        let packet = |(at, text): (usize, String)| PacketInFlight {
            index: pending.start.wrapping_add(at as u64 * per_dword),
            kernel: None,
            text,
        };
        self.language.decode(&dwords, limit).into_iter().map(packet).collect()
    }

    fn dwords(&self, pending: Range<u64>, limit: usize) -> Vec<u32> {
        self.ring().dwords_of(pending, limit)
    }

    fn waits_for(&self, pending: Range<u64>) -> Vec<WaitsFor> {
        let dwords = self.ring().dwords_of(pending, REPORT_DWORDS);
        self.language.waits_for(&dwords).into_iter().collect()
    }
}

/// What the producer of a queue of dwords owns.
#[derive(Debug)]
pub(crate) struct Producer {
    pub at: Cursor,
    /// What the doorbell was last told.
    pub rung: u64,
}

impl Producer {
    pub fn new() -> Self {
        Self { at: Cursor::default(), rung: 0 }
    }
}

/// The methods of a queue of dwords, for a type with `context`, `live` and `producer`. `$builder` is
/// what packets go into, `$push` the private method that pushes.
macro_rules! dword_queue_methods {
    ($queue:ident, $builder:ty, $unit:literal) => {
        impl $queue {
            /// Submits up to `dwords` dwords of packets: writes them, tells the device, and returns
            /// the new write pointer, which never wraps. Unit:
            #[doc = $unit]
            ///
            /// Plain stores into mapped memory: no system call, no lock, no allocation. What earlier
            /// [`Self::push`]es left goes along. Where `fill` appends more than `dwords` dwords, or
            /// panics, nothing of it is submitted.
            ///
            /// # Errors
            /// [`Error::Ring`] when the ring is full ([`Self::submit_within`] waits) or the device
            /// broke its rules; [`Error::Pm4`] or [`Error::Sdma`] when the packets do not fit;
            /// [`Error::DeviceLost`] and [`Error::QueueLost`] once known.
            #[inline]
            pub fn submit(
                &mut self,
                dwords: usize,
                fill: impl FnOnce(&mut $builder),
            ) -> $crate::Result<u64> {
                let end = self.push(dwords, fill)?;
                self.ring();
                Ok(end)
            }

            /// Tells the device of everything pushed so far.
            #[inline]
            pub fn ring(&mut self) {
                self.live.ring_doorbell(&self.producer.at);
                self.producer.rung = self.producer.at.write;
            }

            /// As [`Self::submit`], but waits up to `timeout` for room in the ring.
            ///
            /// # Errors
            /// As [`Self::submit`]; [`Error::Timeout`].
            pub fn submit_within(
                &mut self,
                dwords: usize,
                fill: impl FnOnce(&mut $builder),
                timeout: std::time::Duration,
            ) -> $crate::Result<u64> {
                self.make_room(dwords, timeout)?;
                self.submit(dwords, fill)
            }

            /// Waits up to `timeout` until the ring has room for a submission of `dwords` dwords.
            /// Rings first: what was only pushed would never make room.
            ///
            /// # Errors
            /// As [`Self::submit_within`].
            pub fn make_room(
                &mut self,
                dwords: usize,
                timeout: std::time::Duration,
            ) -> $crate::Result<()> {
                if self.has_room(dwords)? {
                    return Ok(());
                }
                if self.producer.rung != self.producer.at.write {
                    self.ring();
                }
                let live = std::sync::Arc::clone(&self.live);
                let context = std::sync::Arc::clone(&self.context);
                let live: &dyn $crate::queue::Live = &*live;
                live.wait_for_room(&context, timeout, || self.look_for_room(dwords))
            }

            fn look_for_room(&mut self, dwords: usize) -> $crate::Result<()> {
                let version = self.padded_for();
                let queue = &*self.live;
                if queue.core.is_stopped() {
                    return Err(queue.core.why_stopped());
                }
                let at = &mut self.producer.at;
                queue.ring().room(at, version, dwords).map_err(|why| queue.refused(why))
            }

            /// Whether there is room for a submission of `dwords` dwords now.
            ///
            /// # Errors
            /// As [`Self::submit`], but for a full ring.
            pub fn has_room(&mut self, dwords: usize) -> $crate::Result<bool> {
                match self.look_for_room(dwords) {
                    Ok(()) => Ok(true),
                    Err(error) if error.is_full() => Ok(false),
                    Err(error) => Err(error),
                }
            }

            /// How far the device has got: everything before this position was taken, though not
            /// necessarily finished. Unit:
            #[doc = $unit]
            ///
            /// # Errors
            /// [`Error::Ring`] when the device broke its rules.
            pub fn read_position(&self) -> $crate::Result<u64> {
                let queue = &*self.live;
                queue.ring().refresh().map_err(|cause| queue.core.ring_error(cause))
            }

            /// Where the next packet goes. Unit:
            #[doc = $unit]
            pub fn write_position(&self) -> u64 {
                self.producer.at.write
            }

            /// Most dwords of one submission.
            pub fn capacity(&self) -> usize {
                self.live.ring().max_submission()
            }

            /// Bytes of the ring.
            pub fn ring_bytes(&self) -> u64 {
                self.live.ring().dwords() * 4
            }
        }
    };
}
pub(super) use dword_queue_methods;
