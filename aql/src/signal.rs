//! `amd_signal_t`: what a packet's completion decrements.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use pm4::GpuAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Error, SharedWords, layout};

/// What a signal is.
///
/// # Source
/// `amd_signal_kind_t` in ROCr inc/amd_hsa_signal.h; docs/ABI.md §AQL.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(transparent)]
pub struct SignalKind(pub i64);

impl SignalKind {
    /// Not a signal.
    pub const INVALID: Self = Self(0);
    /// A value that packets wait for and decrement.
    pub const USER: Self = Self(1);
    /// A queue's doorbell; the value is its host address.
    pub const DOORBELL: Self = Self(-1);
    /// A 32-bit doorbell of older hardware.
    pub const LEGACY_DOORBELL: Self = Self(-2);
}

/// `amd_signal_t`: 64 bytes, 64-byte aligned, in memory that host and device both access.
///
/// # Source
/// ROCr inc/amd_hsa_signal.h; docs/ABI.md §AQL.
#[doc(alias = "amd_signal_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct AmdSignal {
    /// What it is.
    pub kind: SignalKind,
    /// The value; for doorbells the host address of the doorbell.
    pub value: i64,
    /// Where the device stores [`event_id`](Self::event_id) after the value; null to raise no
    /// event.
    pub event_mailbox_ptr: u64,
    /// KFD's id of the event raised.
    pub event_id: u32,
    /// Zero.
    pub reserved1: u32,
    /// When the packet started, GPU clock ticks.
    pub start_ts: u64,
    /// When it ended, GPU clock ticks.
    pub end_ts: u64,
    /// The queue's `amd_queue_t`, for doorbells.
    pub queue_ptr: u64,
    /// Zero.
    pub reserved3: [u32; 2],
}

layout!(AmdSignal, size = 64, {
    kind @ 0, value @ 8, event_mailbox_ptr @ 16, event_id @ 24, reserved1 @ 28, start_ts @ 32,
    end_ts @ 40, queue_ptr @ 48, reserved3 @ 56,
});

impl AmdSignal {
    /// A signal that packets wait for, waited for by looking at `value`.
    pub const fn user(value: i64) -> Self {
        Self {
            kind: SignalKind::USER,
            value,
            event_mailbox_ptr: 0,
            event_id: 0,
            reserved1: 0,
            start_ts: 0,
            end_ts: 0,
            queue_ptr: 0,
            reserved3: [0; 2],
        }
    }

    /// Also raises KFD event `event_id`, whose slot in the event page is at `mailbox`.
    pub const fn with_event(mut self, mailbox: GpuAddr, event_id: u32) -> Self {
        self.event_mailbox_ptr = mailbox.get();
        self.event_id = event_id;
        self
    }
}

/// An `amd_signal_t` in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct SignalWords<'m> {
    words: SharedWords<'m>,
    value: &'m AtomicI64,
}

impl<'m> SignalWords<'m> {
    /// The signal in the first 64 bytes of `words`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] below 64 bytes; [`Error::Misaligned`] unless 64-byte aligned.
    pub fn new(words: SharedWords<'m>) -> Result<Self, Error> {
        let words = words.slice(0, size_of::<AmdSignal>())?;
        if !words.address().is_multiple_of(align_of::<AmdSignal>()) {
            let align = align_of::<AmdSignal>();
            return Err(Error::Misaligned { address: words.address(), align });
        }
        Ok(Self { words, value: words.i64(8)? })
    }

    /// Makes it `signal`. No packet may be using it.
    ///
    /// # Errors
    /// Never: the bounds were checked by [`Self::new`].
    pub fn init(&self, signal: &AmdSignal) -> Result<(), Error> {
        self.words.write(0, signal.as_bytes())
    }

    /// The value. Load with Acquire to see what the packet that decremented it wrote.
    #[inline]
    pub const fn value(&self) -> &'m AtomicI64 {
        self.value
    }

    /// Ticks at which the packet started and ended, each loaded once; valid after an Acquire load
    /// has seen the value that its completion left.
    ///
    /// # Errors
    /// Never: the bounds were checked by [`Self::new`].
    pub fn timestamps(&self) -> Result<(u64, u64), Error> {
        Ok((self.load(32)?, self.load(40)?))
    }

    /// Every field, each loaded once, the value first.
    ///
    /// # Errors
    /// [`Error::SignalKind`] if the kind is none that AMD defines.
    pub fn take(&self) -> Result<AmdSignal, Error> {
        let value = self.value.load(Ordering::Acquire);
        let kind = SignalKind(self.load(0)?.cast_signed());
        if !(SignalKind::LEGACY_DOORBELL.0..=SignalKind::USER.0).contains(&kind.0) {
            return Err(Error::SignalKind { kind: kind.0 });
        }
        let event = GpuAddr::new(self.load(24)?);
        let reserved3 = GpuAddr::new(self.load(56)?);
        Ok(AmdSignal {
            kind,
            value,
            event_mailbox_ptr: self.load(16)?,
            event_id: event.lo(),
            reserved1: event.hi(),
            start_ts: self.load(32)?,
            end_ts: self.load(40)?,
            queue_ptr: self.load(48)?,
            reserved3: [reserved3.lo(), reserved3.hi()],
        })
    }

    fn load(&self, offset: usize) -> Result<u64, Error> {
        let word: &AtomicU64 = self.words.u64(offset)?;
        Ok(word.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shared::tests::memory;

    #[test]
    fn take_reads_back_what_init_wrote() {
        let signal = SignalWords::new(memory(64)).unwrap();
        let written = AmdSignal {
            start_ts: 7,
            end_ts: 9,
            queue_ptr: 0x1234_5678_9abc,
            ..AmdSignal::user(-5).with_event(GpuAddr::new(0x7f00_1234_5678), 77)
        };
        signal.init(&written).unwrap();
        assert_eq!(signal.take().unwrap(), written);
        assert_eq!(signal.timestamps().unwrap(), (7, 9));
        signal.value().fetch_sub(1, Ordering::AcqRel);
        assert_eq!(signal.take().unwrap().value, -6);
    }

    #[test]
    fn take_refuses_an_unknown_kind() {
        let words = memory(64);
        let signal = SignalWords::new(words).unwrap();
        for kind in [2i64, -3, i64::MIN, i64::MAX] {
            words.i64(0).unwrap().store(kind, Ordering::Relaxed);
            assert_eq!(signal.take(), Err(Error::SignalKind { kind }));
        }
    }

    #[test]
    fn a_signal_needs_64_aligned_bytes() {
        assert!(SignalWords::new(memory(128).slice(0, 56).unwrap()).is_err());
        let shifted = memory(128).slice(8, 64).unwrap();
        assert!(matches!(SignalWords::new(shifted), Err(Error::Misaligned { align: 64, .. })));
    }
}
