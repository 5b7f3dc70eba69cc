//! [`Current`]: which slot an event stands for, read and replaced by any thread without a lock, and how
//! a slot is known to be nobody's.
//!
//! # The protocol
//! An event's word holds the slot of its last recording and the number of *pins* taken through the
//! word. Whoever wants to use the slot pins it with one `fetch_add`, which also tells which slot it is.
//! Whoever is done with it gives the pin back to the slot's own count. A slot in an event counts
//! [`BIAS`] besides, more than there can be pins: its count cannot reach zero then. Recording anew
//! swaps the word; the old slot's count gets the pins taken through it, and loses the bias. From there
//! on it counts what is out, and whoever brings it to zero may use the slot again.
//!
//! The recording itself holds one more: it goes back when the device has passed it.

use crate::sync::{AtomicI64, AtomicU64, Ordering};

/// Bits of the word that count pins.
const PIN_BITS: u32 = 40;
const PIN_MASK: u64 = (1 << PIN_BITS) - 1;
/// What being an event's current slot counts.
const BIAS: i64 = 1 << (PIN_BITS + 1);

/// A slot's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId(pub u32);

impl SlotId {
    /// Most slots: the word has 24 bits for them, and all ones is none.
    pub const MAX: u32 = (1 << 24) - 2;
}

/// Of an event that was never recorded.
const NONE: u64 = (1 << 24) - 1;

/// An event's word.
#[derive(Debug)]
pub struct Current(AtomicU64);

/// How many hold a slot.
#[derive(Debug)]
pub struct Holders(AtomicI64);

impl Current {
    /// Never recorded.
    pub fn new() -> Self {
        Self(AtomicU64::new(NONE << PIN_BITS))
    }

    /// Pins the current slot: it is not used for anything else until [`Holders::release`].
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // 24 bits
    pub fn pin(&self) -> Option<SlotId> {
        // Acquire: what the recorder prepared is visible.
        let word = self.0.fetch_add(1, Ordering::Acquire);
        match word >> PIN_BITS {
            NONE => None,
            slot => Some(SlotId(slot as u32)),
        }
    }

    /// Makes `slot` the current one, and returns the one before with the pins that were taken on it.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // 24 bits
    pub fn replace(&self, slot: Option<SlotId>) -> Option<(SlotId, u64)> {
        let new = slot.map_or(NONE, |slot| u64::from(slot.0)) << PIN_BITS;
        // Release: what was prepared in the new slot comes first.
        let word = self.0.swap(new, Ordering::AcqRel);
        match word >> PIN_BITS {
            NONE => None,
            slot => Some((SlotId(slot as u32), word & PIN_MASK)),
        }
    }
}

impl Default for Current {
    fn default() -> Self {
        Self::new()
    }
}

impl Holders {
    /// Of a slot that is nobody's.
    pub fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    /// The slot is nobody's, and becomes an event's current one and `others` besides.
    #[inline]
    pub fn start(&self, is_current: bool, others: i64) {
        self.0.store(others + if is_current { BIAS } else { 0 }, Ordering::Relaxed);
    }

    /// The slot is current no more; `pins` were taken on it. Whether it is nobody's now.
    #[inline]
    #[must_use = "somebody has to use the slot again"]
    pub fn replaced(&self, pins: u64) -> bool {
        let change = pins.cast_signed() - BIAS;
        self.0.fetch_add(change, Ordering::AcqRel) + change == 0
    }

    /// One holder, or pin, less. Whether it is nobody's now.
    #[inline]
    #[must_use = "somebody has to use the slot again"]
    pub fn release(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Default for Holders {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_nobodys_when_event_recorder_and_pins_are_gone_in_any_order() {
        // 0: the event is recorded anew; 1: the device passes the recording; 2, 3: pins go back.
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 2, 3, 0], [2, 3, 0, 1]] {
            let (current, holders) = (Current::new(), Holders::new());
            holders.start(true, 1);
            assert_eq!(current.replace(Some(SlotId(7))), None);
            assert_eq!((current.pin(), current.pin()), (Some(SlotId(7)), Some(SlotId(7))));
            let freed = order.map(|step| match step {
                0 => {
                    let (slot, pins) = current.replace(None).unwrap();
                    assert_eq!((slot, pins), (SlotId(7), 2));
                    holders.replaced(pins)
                }
                _ => holders.release(),
            });
            assert_eq!(freed, [false, false, false, true], "{order:?}");
        }
    }

    #[test]
    fn an_event_that_was_never_recorded_has_no_slot() {
        let current = Current::new();
        assert_eq!(current.pin(), None);
        assert_eq!(current.replace(Some(SlotId(SlotId::MAX))), None);
        assert_eq!(current.pin(), Some(SlotId(SlotId::MAX)));
    }
}
