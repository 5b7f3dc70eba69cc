//! What an operation uses and gives back once the device has passed it.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::event::SlotId;
use crate::module::ModuleCore;

/// Something that an operation uses.
pub(crate) enum Retire {
    /// A hold on a slot.
    Slot(SlotId),
    /// Anything else: dropped.
    #[allow(dead_code)] // what it is for is its drop
    Keep(Arc<dyn Any + Send + Sync>),
}

impl std::fmt::Debug for Retire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Slot(slot) => write!(f, "Slot({})", slot.0),
            Self::Keep(_) => f.write_str("Keep"),
        }
    }
}

/// What is in use, in the order of the operations. Never grows past its capacity.
#[derive(Debug)]
pub(crate) struct RetireQueue {
    entries: VecDeque<(u64, Retire)>,
    capacity: usize,
}

impl RetireQueue {
    pub fn new(capacity: usize) -> Self {
        Self { entries: VecDeque::with_capacity(capacity), capacity }
    }

    /// Whether `count` more fit.
    #[inline]
    pub fn has_room(&self, count: usize) -> bool {
        self.entries.len() + count <= self.capacity
    }

    /// Operation number `operation`, the latest so far, uses `what`.
    #[inline]
    pub fn push(&mut self, operation: u64, what: Retire) {
        self.entries.push_back((operation, what));
    }

    /// The next thing that is not in use any more once `passed` operations are done.
    #[inline]
    pub fn pop(&mut self, passed: u64) -> Option<Retire> {
        match self.entries.front() {
            Some((operation, _)) if *operation <= passed => {
                self.entries.pop_front().map(|(_, what)| what)
            }
            _ => None,
        }
    }
}

/// Modules whose code may be in use.
#[derive(Debug, Default)]
pub(crate) struct ModulesInUse {
    /// The module, and the last operation that runs its code.
    modules: Vec<(Arc<ModuleCore>, u64)>,
    /// Index of the last one used.
    last: usize,
}

impl ModulesInUse {
    /// Operation number `operation` runs code of `module`.
    #[inline]
    pub fn note(&mut self, module: &Arc<ModuleCore>, operation: u64) {
        match self.modules.get_mut(self.last) {
            Some((last, noted)) if Arc::ptr_eq(last, module) => *noted = operation,
            _ => self.note_other(module, operation),
        }
    }

    #[cold]
    fn note_other(&mut self, module: &Arc<ModuleCore>, operation: u64) {
        let known = self.modules.iter_mut().position(|(known, _)| Arc::ptr_eq(known, module));
        match known.and_then(|at| self.modules.get_mut(at).map(|entry| (at, entry))) {
            Some((at, (_, noted))) => {
                *noted = operation;
                self.last = at;
            }
            None => {
                self.last = self.modules.len();
                self.modules.push((Arc::clone(module), operation));
            }
        }
    }

    /// Lets go of modules whose code no operation past `passed` runs.
    pub fn sweep(&mut self, passed: u64) {
        if !self.modules.is_empty() {
            self.modules.retain(|(_, noted)| *noted > passed);
            self.last = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_given_back_in_order_and_not_before_their_operation() {
        let mut queue = RetireQueue::new(3);
        for (operation, slot) in [(1, 10), (1, 11), (4, 12)] {
            assert!(queue.has_room(1));
            queue.push(operation, Retire::Slot(SlotId(slot)));
        }
        assert!(!queue.has_room(1));
        assert!(queue.pop(0).is_none());
        let mut popped = |passed| match queue.pop(passed) {
            Some(Retire::Slot(slot)) => Some(slot.0),
            _ => None,
        };
        assert_eq!([popped(3), popped(3), popped(3)], [Some(10), Some(11), None]);
        assert_eq!([popped(4), popped(9)], [Some(12), None]);
    }
}
