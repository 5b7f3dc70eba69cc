//! [`Memory`]: device memory that is not freed while a stream may use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use kfd::{Buffer, MemoryRequest};
use pm4::GpuAddr;

use crate::device::{Device, DeviceCore};
use crate::error::Result;

/// Memory of a device. `Send` and `Sync`.
///
/// Kernels get plain addresses, so nobody can tell who uses it. Dropping it is ordered behind
/// everything that the streams of its devices have been given so far: it is freed once each of them
/// has passed that, or is gone. A drop does not wait.
#[derive(Debug)]
pub struct Memory {
    buffer: Arc<Buffer>,
    /// Devices that it is mapped on; the first is the one it is of.
    devices: Vec<Arc<DeviceCore>>,
}

impl Memory {
    pub(crate) fn new(device: &Arc<DeviceCore>, request: &MemoryRequest) -> Result<Self> {
        let buffer = match device.gpu.allocate(request) {
            Err(kfd::Error::Ioctl { errno: kfd::sys::Errno::NOMEM, .. }) => {
                // What was dropped and only waits to be looked at may make room.
                device.streams().iter().for_each(|stream| stream.bury(None));
                device.gpu.allocate(request)?
            }
            result => result?,
        };
        // It holds zeros that the host wrote.
        device.shared.host_looked();
        Ok(Self { buffer: Arc::new(buffer), devices: vec![Arc::clone(device)] })
    }

    /// Address, for GPU and CPU.
    pub fn addr(&self) -> GpuAddr {
        self.buffer.addr()
    }

    /// Bytes asked for.
    pub fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }

    /// The driver's buffer. Memory of a pageable kind that the host writes through it directly is seen
    /// by streams only after a synchronisation; [`Memory::write`] has no such condition.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// A hold on it, for who needs it after it was dropped.
    pub(crate) fn share(&self) -> Arc<Buffer> {
        Arc::clone(&self.buffer)
    }

    /// Devices that it is mapped on; the first is the one it is of.
    pub(crate) fn devices(&self) -> &[Arc<DeviceCore>] {
        &self.devices
    }

    /// Maps it on another device.
    ///
    /// # Errors
    /// As [`Buffer::map_on`].
    pub fn map_on(&mut self, device: &Device) -> Result<()> {
        self.buffer.map_on(&[&device.core.gpu])?;
        self.devices.push(Arc::clone(&device.core));
        Ok(())
    }

    /// Copies bytes out, now: synchronise with whatever writes them first.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        Ok(self.buffer.read(offset, to)?)
    }

    /// Copies bytes in, now. Launches that follow see them.
    ///
    /// # Errors
    /// As [`Buffer::write`].
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<()> {
        self.buffer.write(offset, from)?;
        if let Some(device) = self.devices.first() {
            device.shared.host_looked();
        }
        Ok(())
    }

    /// A 32-bit word that the device may change at any time, in coherent memory.
    ///
    /// # Errors
    /// As [`Buffer::u32`].
    pub fn u32(&self, offset: u64) -> Result<&AtomicU32> {
        Ok(self.buffer.u32(offset)?)
    }

    /// A 64-bit word that the device may change at any time, in coherent memory.
    ///
    /// # Errors
    /// As [`Buffer::u64`].
    pub fn u64(&self, offset: u64) -> Result<&AtomicU64> {
        Ok(self.buffer.u64(offset)?)
    }

    /// Waits for the streams of its devices and frees it.
    ///
    /// # Errors
    /// As [`Device::synchronize`]: then it is freed with the stream that failed; as [`Buffer::free`].
    pub fn free(self) -> Result<()> {
        for device in &self.devices {
            Device { core: Arc::clone(device) }.synchronize()?;
        }
        let buffer = Arc::clone(&self.buffer);
        drop(self);
        match Arc::try_unwrap(buffer) {
            Ok(buffer) => Ok(buffer.free()?),
            Err(_) => Ok(()), // another thread has submitted meanwhile: its stream frees it
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for stream in self.devices.iter().flat_map(|device| device.streams()) {
            stream.bury(Some(&self.buffer));
        }
    }
}
