//! Events.

pub(crate) mod current;
mod slots;

pub(crate) use current::SlotId;
pub(crate) use slots::{Slot, Slots};

#[derive(Debug, Default)]
pub(crate) struct Clock;
