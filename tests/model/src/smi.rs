//! SMI events: text lines about a GPU, for clients that asked for them.
//!
//! Source: Linux 6.12.117, drivers/gpu/drm/amd/amdkfd/kfd_smi_events.c (docs/ABI.md §Model).

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use kfd::sys::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Bytes that wait for a client; what does not fit is dropped.
const FIFO_BYTES: usize = 1024;

/// Event numbers that the model raises.
pub(crate) mod event {
    pub(crate) const VM_FAULT: u32 = 1;
    pub(crate) const GPU_PRE_RESET: u32 = 3;
    pub(crate) const GPU_POST_RESET: u32 = 4;
    pub(crate) const QUEUE_EVICTION: u32 = 9;
    pub(crate) const UNMAP_FROM_GPU: u32 = 11;
}

/// `KFD_QUEUE_EVICTION_TRIGGER_SVM`.
pub(crate) const TRIGGER_SVM: u32 = 0;

/// `KFD_QUEUE_EVICTION_TRIGGER_USERPTR`.
pub(crate) const TRIGGER_USERPTR: u32 = 1;

/// `KFD_SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU`.
pub(crate) const UNMAPPED_BY_PROCESS: u32 = 2;

/// One open event file.
#[derive(Debug, Default)]
pub(crate) struct Client {
    mask: AtomicU64,
    fifo: Mutex<VecDeque<u8>>,
    filled: Condvar,
    /// Our end of the socket by which a process with real descriptors reads and writes.
    socket: OnceLock<OwnedFd>,
}

impl Client {
    /// Takes lines out.
    ///
    /// # Errors
    /// `EAGAIN` when there are none.
    pub(crate) fn read(&self, buf: &mut [u8]) -> Result<usize, Errno> {
        let mut fifo = self.fifo.lock().unwrap_or_else(PoisonError::into_inner);
        if fifo.is_empty() {
            return Err(Errno::AGAIN);
        }
        let count = buf.len().min(fifo.len());
        for (to, from) in buf.iter_mut().zip(fifo.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }

    /// Sets the mask of events.
    ///
    /// # Errors
    /// `EFAULT` for less than 8 bytes.
    pub(crate) fn write(&self, buf: &[u8]) -> Result<usize, Errno> {
        let mask = buf.first_chunk().ok_or(Errno::FAULT)?;
        self.mask.store(u64::from_le_bytes(*mask), Ordering::Release);
        Ok(mask.len())
    }

    /// Whether there is something to read, within `timeout`.
    pub(crate) fn poll(&self, timeout: Duration) -> bool {
        let fifo = self.fifo.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.filled.wait_timeout_while(fifo, timeout, |fifo| fifo.is_empty());
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_empty()
    }

    /// Serves the other end of `socket` from here on: masks come in, lines go out.
    pub(crate) fn connect(&self, socket: OwnedFd) {
        let _ = self.socket.set(socket);
    }

    /// Takes the masks that came through the socket.
    fn take_masks(&self, socket: &OwnedFd) {
        let mut mask = [0; 8];
        while let Ok((8, _)) = recv(socket, &mut mask[..], RecvFlags::DONTWAIT) {
            self.mask.store(u64::from_le_bytes(mask), Ordering::Release);
        }
    }

    fn add(&self, event: u32, line: &str) {
        let socket = self.socket.get();
        if let Some(socket) = socket {
            self.take_masks(socket);
        }
        if self.mask.load(Ordering::Acquire) >> (event - 1) & 1 == 0 {
            return;
        }
        if let Some(socket) = socket {
            // What does not fit is dropped, here too.
            let _ = send(socket, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            return;
        }
        let mut fifo = self.fifo.lock().unwrap_or_else(PoisonError::into_inner);
        if FIFO_BYTES - fifo.len() >= line.len() {
            fifo.extend(line.bytes());
            self.filled.notify_all();
        }
    }
}

/// The clients of a GPU.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<Vec<Weak<Client>>>);

impl Clients {
    /// A new client, which hears nothing yet.
    pub(crate) fn open(&self) -> Arc<Client> {
        let client = Arc::new(Client::default());
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(&client));
        client
    }

    /// Tells who asked for `event`.
    pub(crate) fn raise(&self, event: u32, payload: &str) {
        let line = format!("{event:x} {payload}\n");
        let clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for client in clients.iter().filter_map(Weak::upgrade) {
            client.add(event, &line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_the_mask_arrive_and_overflow_is_dropped_by_the_line() {
        let clients = Clients::default();
        let client = clients.open();
        clients.raise(event::VM_FAULT, "1:a");
        assert_eq!(client.read(&mut [0; 64]), Err(Errno::AGAIN));
        assert_eq!(client.write(&[1]), Err(Errno::FAULT));
        assert_eq!(client.write(&1_u64.to_le_bytes()), Ok(8));
        clients.raise(event::QUEUE_EVICTION, "x");
        for _ in 0..300 {
            clients.raise(event::VM_FAULT, "1:a");
        }
        assert!(client.poll(Duration::ZERO));
        let mut text = [0; 2000];
        assert_eq!(client.read(&mut text), Ok(1020)); // 170 lines of 6 bytes
        assert_eq!(&text[..6], b"1 1:a\n");
        assert!(!client.poll(Duration::ZERO));
    }
}
