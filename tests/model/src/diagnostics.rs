//! The model's own channel: what it knows beyond what KFD tells the driver.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Something the model's user should read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// KFD's id of the GPU, 0 when none is concerned.
    pub gpu_id: u32,
    /// KFD's id of the queue.
    pub queue_id: Option<u32>,
    /// What happened, one sentence or more lines.
    pub text: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.queue_id {
            Some(queue) => write!(f, "gpu {} queue {queue}: {}", self.gpu_id, self.text),
            None => write!(f, "gpu {}: {}", self.gpu_id, self.text),
        }
    }
}

/// As many diagnostics are kept; later ones are counted only.
const KEPT: usize = 1000;

/// Collects diagnostics.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    list: Mutex<Vec<Diagnostic>>,
    /// Refusals of what a real kernel would have done.
    unmodelled: AtomicU64,
}

impl Diagnostics {
    pub(crate) fn add(&self, gpu_id: u32, queue_id: Option<u32>, text: String) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < KEPT {
            list.push(Diagnostic { gpu_id, queue_id, text });
        }
    }

    pub(crate) fn all(&self) -> Vec<Diagnostic> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As [`add`](Self::add), for something that a real kernel would have done and the model does not.
    pub(crate) fn add_unmodelled(&self, gpu_id: u32, queue_id: Option<u32>, text: String) {
        self.unmodelled.fetch_add(1, Ordering::Relaxed);
        self.add(gpu_id, queue_id, text);
    }

    pub(crate) fn unmodelled(&self) -> u64 {
        self.unmodelled.load(Ordering::Relaxed)
    }
}
