//! The queue of messages and the thread that writes them.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Sink, Stream};
use crate::counters::{Count, Counters};
use crate::error::{Error, Result};
use crate::service::discard;

/// What becomes of a message that does not fit the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It is dropped, at once.
    Drop,
    /// Whoever brings it waits this long for room (the drain's thread: waves wait with it), and
    /// then it is dropped.
    Wait(Duration),
}

/// Bounds of a [`Writer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes of messages that wait to be written, each counted with [`OUTPUT_OVERHEAD`] on top. A
    /// message that is longer is never taken.
    pub bytes: usize,
    /// What happens beyond.
    pub overflow: Overflow,
}

impl OutputLimits {
    /// 64 MiB, then messages are dropped.
    pub const DEFAULT: Self = Self { bytes: 64 << 20, overflow: Overflow::Drop };
}

/// What each message counts beyond its text, so that empty ones are bounded too.
pub const OUTPUT_OVERHEAD: usize = 32;

/// How long dropping a [`Writer`] waits for the sink.
const DROP_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<(Stream, Vec<u8>)>,
    /// Of `messages`, overhead included.
    bytes: usize,
    /// The thread has messages that it has not written.
    writing: bool,
    /// Nothing is taken any more.
    closed: bool,
    /// The thread has ended.
    done: bool,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    limits: OutputLimits,
    counters: Arc<Counters>,
    owner: u32,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>, at_most: Duration) -> MutexGuard<'a, Queue> {
        self.changed.wait_timeout(queue, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until `until` holds; `false` when `limit` passed first.
    fn wait_until(&self, limit: Duration, until: impl Fn(&Queue) -> bool) -> bool {
        let start = Instant::now();
        let mut queue = self.lock();
        while !until(&queue) {
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            queue = self.wait(queue, left);
        }
        true
    }

    /// In a forked child the thread does not exist, and the lock may be held for ever.
    fn is_inherited(&self) -> bool {
        self.owner != std::process::id()
    }
}

/// Takes messages for a [`Writer`]; any number of threads may have one.
#[derive(Clone, Debug)]
pub struct Output(Arc<Shared>);

impl Output {
    /// Hands a message on. `false` when it was dropped: the queue was full, or its writer has
    /// ended. Waits at most as [`Overflow`] says.
    #[must_use]
    pub fn push(&self, stream: Stream, text: Vec<u8>) -> bool {
        let shared = &*self.0;
        if shared.is_inherited() {
            return false;
        }
        let bytes = text.len().saturating_add(OUTPUT_OVERHEAD);
        let fits = |queue: &Queue| queue.bytes.saturating_add(bytes) <= shared.limits.bytes;
        let mut queue = shared.lock();
        if let Overflow::Wait(limit) = shared.limits.overflow
            && bytes <= shared.limits.bytes
        {
            let start = Instant::now();
            while !fits(&queue) && !queue.closed {
                let left = limit.saturating_sub(start.elapsed());
                if left.is_zero() {
                    break;
                }
                queue = shared.wait(queue, left);
            }
        }
        if queue.closed || !fits(&queue) {
            drop(queue);
            shared.counters.note(Count::Dropped);
            shared.counters.add(Count::DroppedBytes, text.len() as u64);
            return false;
        }
        queue.bytes += bytes;
        queue.messages.push_back((stream, text));
        let was_empty = queue.messages.len() == 1;
        drop(queue);
        if was_empty {
            shared.changed.notify_all();
        }
        true
    }

    /// Waits until everything that was pushed before is written; `false` when `limit` passed first.
    pub fn flush(&self, limit: Duration) -> bool {
        let written = |queue: &Queue| queue.done || queue.messages.is_empty() && !queue.writing;
        !self.0.is_inherited() && self.0.wait_until(limit, written)
    }
}

/// The thread that writes messages to a sink.
pub struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn start(
        sink: impl Sink + 'static,
        limits: OutputLimits,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            limits,
            counters,
            owner: std::process::id(),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("hostcall-output".into())
            .spawn(move || write_all(&theirs, sink))
            .map_err(|source| Error::Thread { what: "device output", source })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// A handle to push messages with.
    pub fn output(&self) -> Output {
        Output(Arc::clone(&self.shared))
    }

    /// Takes no more messages, writes what is queued, and ends. `false` when the sink did not take
    /// it within `limit`: the thread is then left to itself.
    pub fn finish(mut self, limit: Duration) -> bool {
        self.close(limit)
    }

    fn close(&mut self, limit: Duration) -> bool {
        let Some(thread) = self.thread.take() else { return true };
        if self.shared.is_inherited() {
            // The thread is the parent's: there is nothing to join, or to detach.
            std::mem::forget(thread);
            return true;
        }
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if !self.shared.wait_until(limit, |queue| queue.done) {
            return false;
        }
        // It is past its last statement that can block.
        thread.join().is_ok()
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close(DROP_LIMIT);
    }
}

fn write_all(shared: &Shared, mut sink: impl Sink) {
    let mut guarded = |step: &mut dyn FnMut(&mut dyn Sink) -> io::Result<()>| {
        let failed = match catch_unwind(AssertUnwindSafe(|| step(&mut sink))) {
            Ok(result) => result.is_err(),
            Err(panic) => {
                discard(panic);
                true
            }
        };
        if failed {
            shared.counters.note(Count::SinkFailures);
        }
    };
    loop {
        let mut queue = shared.lock();
        queue.writing = false;
        shared.changed.notify_all();
        while queue.messages.is_empty() && !queue.closed {
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.messages.is_empty() {
            break;
        }
        // Bytes stay counted until they are written: the bound holds for what the sink works on.
        queue.writing = true;
        let messages = std::mem::take(&mut queue.messages);
        drop(queue);
        for (stream, text) in messages {
            guarded(&mut |sink| sink.write(stream, &text));
            shared.counters.note(Count::Written);
            let mut queue = shared.lock();
            queue.bytes = queue.bytes.saturating_sub(text.len() + OUTPUT_OVERHEAD);
            drop(queue);
            if matches!(shared.limits.overflow, Overflow::Wait(_)) {
                shared.changed.notify_all();
            }
        }
        guarded(&mut |sink| sink.flush());
    }
    // A sink that panics while it is dropped must not keep the others waiting.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(sink)));
    if let Err(panic) = dropped {
        discard(panic);
        shared.counters.note(Count::SinkFailures);
    }
    shared.lock().done = true;
    shared.changed.notify_all();
}
