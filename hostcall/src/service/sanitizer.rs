//! Reports of the address sanitizer (service 4).

use std::fmt;
use std::time::{Duration, Instant};

use super::Service;
use crate::counters::{Count, Counters};
use crate::pool::{Replies, Request, Source};

/// One wave's report. Every number is the device's word.
///
/// # Source
/// `__ockl_sanitizer_report` in device-libs ockl/src/services.cl; docs/ABI.md §Hostcall services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanitizerReport {
    /// Where the packet came from.
    pub source: Source,
    /// Program counter of the access.
    pub pc: u64,
    /// Workgroup in x, y, z.
    pub workgroup: [u64; 3],
    /// Size of the access, bytes.
    pub access_bytes: u64,
    /// Whether it was a store.
    pub is_write: bool,
    /// Whether the kernel goes on. What the host does is the host's choice.
    pub continues: bool,
    /// Lane, address, and local id of each work-item that made the access.
    pub accesses: Vec<(usize, u64, u64)>,
}

impl fmt::Display for SanitizerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_write { "store" } else { "load" };
        let [x, y, z] = self.workgroup;
        write!(
            f,
            "bad {kind} of {} bytes at pc {:#x} in workgroup {x},{y},{z}:",
            self.access_bytes, self.pc
        )?;
        for (lane, address, id) in &self.accesses {
            write!(f, " lane {lane} (work-item {id}) at {address:#x}")?;
        }
        Ok(())
    }
}

/// Hands reports on, at most so many in a second.
pub struct Sanitizer<F> {
    handler: F,
    per_second: u32,
    window: Option<Instant>,
    left: u32,
}

impl<F: FnMut(SanitizerReport) + Send> Sanitizer<F> {
    /// Hands at most `per_second` reports a second to `handler`; the others are counted.
    pub const fn new(handler: F, per_second: u32) -> Self {
        Self { handler, per_second, window: None, left: per_second }
    }

    fn may_report(&mut self) -> bool {
        let now = Instant::now();
        let fresh = |start: Instant| now.duration_since(start) < Duration::from_secs(1);
        if !self.window.is_some_and(fresh) {
            self.window = Some(now);
            self.left = self.per_second;
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

impl<F> fmt::Debug for Sanitizer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sanitizer").field("per_second", &self.per_second).finish_non_exhaustive()
    }
}

impl<F: FnMut(SanitizerReport) + Send> Service for Sanitizer<F> {
    fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, counters: &Counters) {
        for (lane, _) in request.lanes() {
            replies.set(lane, [0, 0]);
        }
        // What is common to the wave comes from its first lane.
        let Some((_, &[_, pc, x, y, z, _, flags, access_bytes])) = request.lanes().next() else {
            return;
        };
        if !self.may_report() {
            counters.note(Count::SanitizerSuppressed);
            return;
        }
        counters.note(Count::SanitizerReports);
        (self.handler)(SanitizerReport {
            source: request.source(),
            pc,
            workgroup: [x, y, z],
            access_bytes,
            is_write: flags & 1 != 0,
            continues: flags >> 32 == u64::from(u32::MAX),
            accesses: request
                .lanes()
                .map(|(lane, &[address, _, _, _, _, id, ..])| (lane, address, id))
                .collect(),
        });
    }
}
