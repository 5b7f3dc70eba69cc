//! [`Stream`]: ordered work on a GPU.

mod code;
mod command;
mod core;
mod deferred;
mod host;
mod kernarg;
mod launch;
mod order;
mod pm4;
mod request;
mod retire;
mod ring;
#[cfg(feature = "services")]
mod services;
mod shared;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use code::Invalidation;
pub use request::StreamRequest;
pub(crate) use retire::Retire;
pub(crate) use ring::Rings;
pub(crate) use shared::StreamShared;

pub(crate) use self::core::Core;
use crate::command::{CommandBuffer, Submission};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::launch::{Arguments, Function, Grid};

/// Work on a GPU, done in the order it is given.
///
/// It has one owner (`&mut self` submits; `Send`, and a mutex makes it shareable): a launch takes no
/// lock, enters no kernel and allocates nothing. Any thread can wait for it through a
/// [`StreamWaiter`]. Streams know nothing of each other, but through [events](crate::Event).
///
/// # Back-pressure
/// So many operations can be in flight, and so many bytes of kernel arguments, as
/// [`StreamRequest`] says; a call that needs more waits until the device has caught up.
///
/// # Drop
/// Dropping it waits for what is in flight, at most [`StreamRequest::farewell`]; then its queue is
/// destroyed, and what was not finished never will be. Nothing that the device may still use is
/// freed.
#[derive(Debug)]
pub struct Stream {
    core: Core,
}

impl Stream {
    /// Makes a stream.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::Driver`] for sizes that cannot be, by name;
    /// [`Error::Driver`] as [`kfd::Gpu::create_queue`].
    pub fn new(device: &Device, request: StreamRequest) -> Result<Self> {
        Ok(Self { core: Core::new(&device.core, &request)? })
    }

    /// The owner's side, for operations of other kinds.
    pub(crate) fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    /// The device it is on.
    pub fn device(&self) -> Device {
        Device { core: Arc::clone(self.core.device()) }
    }

    /// Launches `function` over `grid` with `arguments`, after everything given to the stream before.
    ///
    /// ```no_run
    /// # fn add(stream: &mut hip::Stream, function: &hip::Function, a: &hip::Memory, b: &hip::Memory)
    /// # -> hip::Result<()> {
    /// let grid = hip::Grid::blocks([256, 1, 1], [256, 1, 1]);
    /// stream.launch(function, &grid, (a, b, 65536_u32))
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Launch`] with the reason and its numbers, [`Error::OtherDevice`]: nothing was
    /// submitted. [`Error::Timeout`] when there is no room within the stream's patience.
    /// [`Error::Driver`] when the device or the queue is lost, or has no memory for scratch.
    #[inline]
    pub fn launch<A: Arguments>(
        &mut self,
        function: &Function,
        grid: &Grid,
        arguments: A,
    ) -> Result<()> {
        self.core.launch(function, grid, &arguments)
    }

    /// Waits until everything given to it so far is done and the host can see what it wrote.
    ///
    /// Spins for about 20 µs, then sleeps.
    ///
    /// # Errors
    /// [`Error::Driver`] with the first cause when the device or the queue is lost;
    /// [`Error::Progress`] when the device broke the rules.
    #[inline]
    pub fn synchronize(&mut self) -> Result<()> {
        self.synchronize_within(Duration::MAX)
    }

    /// As [`Stream::synchronize`], for at most `timeout`.
    ///
    /// # Errors
    /// As [`Stream::synchronize`]; [`Error::Timeout`].
    #[inline]
    pub fn synchronize_within(&mut self, timeout: Duration) -> Result<()> {
        // Idle for all that is known already: the device need not be asked.
        if !self.core.is_released() || self.core.retired() != self.core.count {
            self.wait_for_all(timeout)?;
        }
        self.core.shared.device.shared.host_looked();
        self.core.shared.check_host()
    }

    fn wait_for_all(&mut self, timeout: Duration) -> Result<()> {
        self.core.release()?;
        if self.core.look()? != self.core.count {
            self.core.shared.wait_for(self.core.count, timeout)?;
            self.core.look()?;
        }
        Ok(())
    }

    /// Whether everything given to it so far is done and the host can see what it wrote.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn query(&mut self) -> Result<bool> {
        if !self.core.is_released() {
            self.core.release()?;
        }
        if self.core.look()? < self.core.count {
            self.core.shared.check()?;
            return Ok(false);
        }
        self.core.shared.device.shared.host_looked();
        Ok(true)
    }

    /// Puts `event` here: it is done when everything given to the stream before is, and everybody can
    /// see what that wrote.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device or the queue is lost; [`Error::Timeout`] when there is no room
    /// within the stream's patience. The event then stands for what it stood for before.
    #[inline]
    pub fn record(&mut self, event: &Event) -> Result<()> {
        self.core.record(event)
    }

    /// Holds back what is given to the stream after this until the device has reached `event`, on this
    /// stream's device or any other's. The host does not wait.
    ///
    /// # Errors
    /// As [`Stream::record`].
    #[inline]
    pub fn wait(&mut self, event: &Event) -> Result<()> {
        self.core.wait(event)
    }

    /// Submits recorded commands, after everything given to the stream before, as one operation.
    ///
    /// Takes the same time whatever the length of an indirect buffer. Where as many submissions of
    /// `command` are in flight as it may have instances, waits for the first of them.
    ///
    /// # Errors
    /// [`Error::OtherDevice`]; [`CommandError::Stream`](crate::CommandError::Stream) when the stream
    /// cannot take its kind; [`Error::Timeout`] when there is no instance or no room within the
    /// stream's patience; [`Error::Driver`] when the device or the queue is lost, or has no memory for
    /// an instance or for scratch. Nothing was submitted then, unless the ring stayed full in the
    /// middle of packets: then the stream is lost.
    #[inline]
    pub fn submit(&mut self, command: &mut CommandBuffer) -> Result<Submission> {
        self.core.submit_command(command)
    }

    /// Calls `function` on the runtime's thread when everything given to the stream before is done;
    /// what is given to the stream after this waits until it has returned. A panic in it is said by the
    /// next synchronisation.
    ///
    /// The thread is started by the first such call. It calls one function after another, for all
    /// streams; one that waits for the device gets [`Error::InHostFunction`].
    ///
    /// # Errors
    /// As [`Stream::record`]; [`Error::Thread`]. The function is not called then.
    pub fn host_call(&mut self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        self.core.host_call(Box::new(function))
    }

    /// Operations given to it so far; the device counts them when they are done.
    pub fn submitted(&self) -> u64 {
        self.core.count
    }

    /// A handle through which any thread can wait for it.
    pub fn waiter(&self) -> StreamWaiter {
        StreamWaiter { shared: Arc::clone(&self.core.shared) }
    }

    /// Waits for everything and ends it.
    ///
    /// # Errors
    /// As [`Stream::synchronize_within`]: it is then dropped without waiting again.
    pub fn finish(mut self, timeout: Duration) -> Result<()> {
        let result = self.synchronize_within(timeout);
        self.core.farewell = Duration::ZERO;
        result
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.core.end();
    }
}

/// Waits for a stream from any thread. Cheap to clone; `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct StreamWaiter {
    shared: Arc<StreamShared>,
}

impl StreamWaiter {
    /// Waits until everything given to the stream so far is done and the host can see what it wrote.
    ///
    /// # Errors
    /// As [`Stream::synchronize_within`].
    pub fn synchronize_within(&self, timeout: Duration) -> Result<()> {
        self.shared.wait_idle(timeout)
    }

    /// Operations given to the stream, and how many of them are done.
    ///
    /// # Errors
    /// [`Error::Progress`] when the device broke the rules.
    pub fn progress(&self) -> Result<(u64, u64)> {
        let done = self.shared.learn()?;
        Ok((self.shared.progress.submitted(), done))
    }
}

const _: fn() = || {
    fn sendable<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    sendable::<Stream>();
    shared::<StreamWaiter>();
    shared::<Error>();
};
