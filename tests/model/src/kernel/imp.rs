//! [`Kernel`] for [`Model`].
#![allow(unsafe_code)] // the trait has unsafe methods

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kfd::sys::{Advice, Errno, FileId, Kernel, MapRequest, Metadata, OpenFlags};
use rustix::time::{ClockId, clock_gettime};

use super::files::{self, Kind};
use super::{Model, Runner};
use crate::fault::Call;

impl Model {
    fn runner(&self) -> Option<Arc<Runner>> {
        let state = self.lock();
        state.processes.get(&std::process::id()).map(|process| Arc::clone(&process.runner))
    }

    /// In stepped mode the GPUs advance inside each call.
    fn advance(&self) {
        if self.config.stepped
            && let Some(runner) = self.runner()
        {
            runner.step();
        }
    }
}

/// Reads one of the kernel's clocks.
pub(super) fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl Kernel for Model {
    fn open(&self, path: &str, flags: OpenFlags) -> Result<FileId, Errno> {
        self.advance();
        self.open_path(path, flags)
    }

    fn close(&self, file: FileId) {
        self.advance();
        self.lock().files.remove(file);
    }

    unsafe fn ioctl(&self, file: FileId, request: u32, arg: &mut [u8]) -> Result<u32, Errno> {
        self.advance();
        self.call(file, request, arg)
    }

    unsafe fn mmap(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno> {
        self.advance();
        // SAFETY: the caller keeps the contract of `Kernel::mmap`.
        unsafe { self.map(request) }
    }

    unsafe fn munmap(&self, at: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
        self.advance();
        // SAFETY: the caller keeps the contract of `Kernel::munmap`.
        unsafe { self.unmap(at, bytes) }
    }

    unsafe fn advise(&self, at: NonNull<u8>, bytes: usize, advice: Advice) -> Result<(), Errno> {
        let advice = match advice {
            Advice::DontFork => rustix::mm::Advice::LinuxDontFork,
            _ => return Err(Errno::INVAL),
        };
        // SAFETY: the caller owns the range, and this advice does not change its content.
        unsafe { rustix::mm::madvise(at.as_ptr().cast(), bytes, advice) }
    }

    fn read(&self, file: FileId, buf: &mut [u8]) -> Result<usize, Errno> {
        self.advance();
        self.config.faults.check(&Call::Read)?;
        files::read(self.lock().files.get(file)?, buf)
    }

    fn write(&self, file: FileId, buf: &[u8]) -> Result<usize, Errno> {
        self.advance();
        files::write(self.lock().files.get(file)?, buf)
    }

    fn poll(&self, file: FileId, timeout: Duration) -> Result<bool, Errno> {
        self.advance();
        self.config.faults.check(&Call::Poll)?;
        let client = match self.lock().files.get(file)? {
            Kind::Smi(client) => Arc::clone(client),
            _ => return Ok(true),
        };
        if !self.config.stepped {
            return Ok(client.poll(timeout));
        }
        let start = Instant::now();
        loop {
            self.advance();
            let left = timeout.saturating_sub(start.elapsed());
            if client.poll(left.min(Duration::from_micros(100))) || left.is_zero() {
                return Ok(client.poll(Duration::ZERO));
            }
        }
    }

    fn metadata(&self, path: &str) -> Result<Metadata, Errno> {
        self.stat_path(path)
    }

    fn read_link(&self, path: &str) -> Result<String, Errno> {
        self.link_target(path)
    }

    fn read_dir(&self, path: &str) -> Result<Vec<String>, Errno> {
        self.list_directory(path)
    }

    fn export_fd(&self, file: FileId) -> Result<OwnedFd, Errno> {
        self.lock().files.export(file)
    }

    fn import_fd(&self, fd: OwnedFd) -> Result<FileId, Errno> {
        self.lock().files.import(&fd)
    }

    fn now(&self) -> Duration {
        clock(ClockId::Monotonic)
    }

    fn relax(&self, rounds: u32) {
        if self.config.stepped {
            self.advance();
            return;
        }
        // The first round follows a submission or an expected completion: see to it now.
        if rounds == 0
            && let Some(runner) = self.runner()
        {
            runner.help();
        }
        if rounds < 16 { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}
