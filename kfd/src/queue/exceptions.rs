//! What makes a queue's exceptions reach the host: RUNTIME_ENABLE and the second-level trap
//! handler.
//!
//! With KFD 1.13 and RUNTIME_ENABLE the trap handler sends KFD a message, and KFD stores the
//! exception in the queue's payload word and fires an event. Otherwise the handler stores to the
//! queue's `queue_inactive_signal` itself. Source: docs/ABI.md §Exceptions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pm4::GpuAddr;

use crate::abi;
use crate::core::Core;
use crate::error::{Error, Object, Result};
use crate::memory::{Allocation, MemoryRequest};
use crate::sys::Errno;
use crate::topology::Capability;
use crate::trap::{self, SignalTable};

/// Whether KFD delivers exceptions to this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Runtime {
    /// Not asked yet.
    #[default]
    Unknown,
    /// It does, and this `Kfd` asked for it.
    Enabled,
    /// It does: something else in this process asked for it.
    EnabledElsewhere,
    /// It does not.
    Unavailable,
}

impl Runtime {
    /// Whether KFD takes the trap handler's messages.
    pub fn takes_messages(self) -> bool {
        matches!(self, Self::Enabled | Self::EnabledElsewhere)
    }

    /// Asks KFD to deliver exceptions. Must come before the first queue of the process.
    ///
    /// Not asked for where a GPU lacks the firmware for it (capability bit 29): the scheduler
    /// of such a GPU does not know the command that KFD then sends. Only the enable bit is set:
    /// the handler needs no trap temporaries filled in, and waves start slower with them.
    pub fn enable(core: &Core) -> Result<Self> {
        let firmware =
            |gpu: &crate::topology::Node| gpu.capability().contains(Capability::DEBUG_FIRMWARE);
        if !core.at_least(13) || !core.topology.gpus().all(firmware) {
            return Ok(Self::Unavailable);
        }
        let mut args = abi::RuntimeEnableArgs {
            mode_mask: abi::RuntimeEnableMode::ENABLE,
            ..Default::default()
        };
        match core.call(&mut args, Object::Process) {
            Ok(_) => Ok(Self::Enabled),
            Err(Error::Ioctl { errno: Errno::BUSY, .. }) => Ok(Self::EnabledElsewhere),
            // A queue that somebody else made came first.
            Err(Error::Ioctl { errno: Errno::EXIST, .. }) => Ok(Self::Unavailable),
            Err(error) => Err(error),
        }
    }

    /// Undoes [`Runtime::enable`], so that another `Kfd` of the process can ask anew.
    pub fn disable(self, core: &Core) {
        if self == Self::Enabled {
            let mut args = abi::RuntimeEnableArgs::default();
            let _ = core.call(&mut args, Object::Process);
        }
    }
}

/// The trap handler of one GPU.
#[derive(Debug)]
pub(crate) struct TrapHandler {
    _code: Arc<Allocation>,
    /// Where the handler finds a queue's signal, when it may not send messages.
    table: Option<Arc<Allocation>>,
}

impl TrapHandler {
    /// Installs the handler for the GPU at `index`. `None` where there is none for its generation:
    /// then an exception of a wave is not reported, and the wait for its packet runs out of time.
    pub fn install(core: &Arc<Core>, index: usize, runtime: Runtime) -> Result<Option<Self>> {
        let gpu = core.gpu(index)?;
        let version = gpu.node.properties.gfx_target_version.unwrap_or(0);
        let Some(words) = trap::handler(version) else { return Ok(None) };
        let bytes = size_of_val(words) + trap::PREFETCH_BYTES;
        let request = MemoryRequest::gtt(bytes as u64).executable().label("trap handler");
        let code = Allocation::new(core, index, &request)?;
        let text: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        code.mapping()?.write(0, &text)?;
        let table = if runtime.takes_messages() {
            None
        } else {
            let request = MemoryRequest::gtt(SignalTable::BYTES)
                .coherent()
                .uncached()
                .label("trap handler table");
            Some(Allocation::new(core, index, &request)?)
        };
        let mut args = abi::SetTrapHandlerArgs {
            tba_addr: code.addr().get(),
            tma_addr: table.as_ref().map_or(0, |table| table.addr().get()),
            gpu_id: gpu.id(),
            pad: 0,
        };
        core.call(&mut args, Object::Gpu(gpu.id()))?;
        Ok(Some(Self { _code: code, table }))
    }

    /// Tells the handler which signal belongs to the queue with a doorbell; null takes it away.
    pub fn set_signal(&self, doorbell_offset: u64, signal: GpuAddr) -> Result<()> {
        if let Some(table) = &self.table {
            let entry = table.mapping()?.u64(SignalTable::entry_offset(doorbell_offset))?;
            entry.store(signal.get(), Ordering::Release);
        }
        Ok(())
    }
}
