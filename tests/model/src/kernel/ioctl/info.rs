//! Version, clocks, apertures, address space, per-process settings.

use kfd::GpuId;
use kfd::abi::{
    AcquireVmArgs, CachePolicy, CriuArgs, GetClockCountersArgs, GetProcessAperturesArgs,
    GetProcessAperturesNewArgs, GetTileConfigArgs, GetVersionArgs, ProcessDeviceApertures,
    SetMemoryPolicyArgs, SetScratchBackingVaArgs, SetTrapHandlerArgs, SmiEventsArgs,
};
use kfd::sys::{Errno, FileId};
use rustix::time::ClockId;
use zerocopy::IntoBytes;

use super::super::files::Kind;
use super::super::imp::clock;
use super::super::process::ProcessDevice;
use super::super::user;
use super::Context;
use crate::exec::TrapSetup;
use crate::queue::APERTURES;

/// Last address of the GPUVM aperture: user addresses have 47 bits.
pub(super) const GPUVM_LIMIT: u64 = (1 << 47) - 1;

impl Context<'_> {
    pub(super) fn get_version(&mut self, args: &mut GetVersionArgs) -> Result<(), Errno> {
        args.major_version = 1;
        args.minor_version = self.model.config.profile.minor();
        Ok(())
    }

    pub(super) fn set_memory_policy(
        &mut self,
        args: &mut SetMemoryPolicyArgs,
    ) -> Result<(), Errno> {
        let known = |policy| [CachePolicy::COHERENT, CachePolicy::NONCOHERENT].contains(&policy);
        if !known(args.default_policy) || !known(args.alternate_policy) {
            return Err(Errno::INVAL);
        }
        // The apertures mean something on gfx7 and gfx8 only.
        self.process()?.device(args.gpu_id.0)?.bound().map_err(|_| Errno::SRCH)
    }

    pub(super) fn get_clock_counters(
        &mut self,
        args: &mut GetClockCountersArgs,
    ) -> Result<(), Errno> {
        let device = self.process()?.device(args.gpu_id.0);
        args.gpu_clock_counter = device.map_or(0, |device| device.device.clock());
        let nanoseconds = |id| u64::try_from(clock(id).as_nanos()).unwrap_or(u64::MAX);
        args.cpu_clock_counter = nanoseconds(ClockId::MonotonicRaw);
        args.system_clock_counter = nanoseconds(ClockId::Boottime);
        args.system_clock_freq = 1_000_000_000;
        Ok(())
    }

    fn apertures(&self, device: &ProcessDevice) -> ProcessDeviceApertures {
        ProcessDeviceApertures {
            lds_base: APERTURES.lds_base,
            lds_limit: APERTURES.lds_limit,
            scratch_base: APERTURES.scratch_base,
            scratch_limit: APERTURES.scratch_limit,
            gpuvm_base: self.model.config.profile.gpuvm_base(),
            gpuvm_limit: GPUVM_LIMIT,
            gpu_id: GpuId(device.device.info.id),
            pad: 0,
        }
    }

    fn all_apertures(&mut self) -> Result<Vec<ProcessDeviceApertures>, Errno> {
        self.process()?;
        let process = self.state.processes.get(&std::process::id()).ok_or(Errno::BADF)?;
        Ok(process.devices.iter().map(|device| self.apertures(device)).collect())
    }

    pub(super) fn get_process_apertures(
        &mut self,
        args: &mut GetProcessAperturesArgs,
    ) -> Result<(), Errno> {
        args.num_of_nodes = 0;
        let all = self.all_apertures()?;
        for (to, from) in args.process_apertures.iter_mut().zip(all) {
            *to = from;
            args.num_of_nodes += 1;
        }
        Ok(())
    }

    pub(super) fn get_process_apertures_new(
        &mut self,
        args: &mut GetProcessAperturesNewArgs,
    ) -> Result<(), Errno> {
        let all = self.all_apertures()?;
        let total = u32::try_from(all.len()).unwrap_or(u32::MAX);
        if args.num_of_nodes == 0 {
            args.num_of_nodes = total;
            return Ok(());
        }
        // The kernel counts every topology node here, CPUs included.
        if args.num_of_nodes > self.model.config.topology_nodes {
            return Err(Errno::INVAL);
        }
        args.num_of_nodes = args.num_of_nodes.min(total);
        let count = usize::try_from(args.num_of_nodes).unwrap_or(0);
        let some = all.get(..count).unwrap_or_default();
        user::write_bytes(args.kfd_process_device_apertures_ptr, some.as_bytes())
    }

    pub(super) fn set_scratch_backing_va(
        &mut self,
        args: &mut SetScratchBackingVaArgs,
    ) -> Result<(), Errno> {
        // Only schedulers without firmware use the address.
        self.process()?.device(args.gpu_id.0)?.bound()
    }

    pub(super) fn get_tile_config(&mut self, args: &mut GetTileConfigArgs) -> Result<(), Errno> {
        self.process()?.device(args.gpu_id.0)?;
        // GB_ADDR_CONFIG and the tables of gfx9 and later are not modelled: no entries.
        args.gb_addr_config = 0;
        args.num_banks = 0;
        args.num_ranks = 0;
        args.num_tile_configs = 0;
        args.num_macro_tile_configs = 0;
        Ok(())
    }

    pub(super) fn set_trap_handler(&mut self, args: &mut SetTrapHandlerArgs) -> Result<(), Errno> {
        let device = self.process()?.device(args.gpu_id.0)?;
        device.bound().map_err(|_| Errno::SRCH)?;
        let setup = TrapSetup { tba: args.tba_addr, tma: args.tma_addr };
        device.device.set_trap_handler((args.tba_addr != 0).then_some(setup));
        Ok(())
    }

    pub(super) fn acquire_vm(&mut self, args: &mut AcquireVmArgs) -> Result<(), Errno> {
        let file = FileId(i32::try_from(args.drm_fd).map_err(|_| Errno::INVAL)?);
        let kind = self.state.files.get(file).map_err(|_| Errno::INVAL)?;
        let render = match kind {
            Kind::Render { gpu, acquired } => Some((*gpu, *acquired)),
            _ => None,
        };
        let device = self.process()?.device(args.gpu_id.0)?;
        match device.drm_file {
            Some(known) if known == file => return Ok(()),
            Some(_) => return Err(Errno::BUSY),
            None => {}
        }
        // The file must be of this GPU, and its address space not yet a compute one.
        let (gpu, acquired) = render.ok_or(Errno::INVAL)?;
        if gpu != device.gpu || acquired {
            return Err(Errno::INVAL);
        }
        device.drm_file = Some(file);
        if let Ok(Kind::Render { acquired, .. }) = self.state.files.get(file) {
            *acquired = true;
        }
        Ok(())
    }

    pub(super) fn smi_events(&mut self, args: &mut SmiEventsArgs) -> Result<(), Errno> {
        let client = self.process()?.device(args.gpuid.0)?.device.smi.open();
        let file = self.state.files.insert(Kind::Smi(client));
        args.anon_fd = u32::try_from(file.0).map_err(|_| Errno::MFILE)?;
        Ok(())
    }

    /// Checkpointing is not modelled: what a process without devices would get.
    pub(super) fn criu_op(&mut self, args: &mut CriuArgs) -> Result<(), Errno> {
        const OPERATIONS: u32 = 5;
        if args.op.0 >= OPERATIONS { Err(Errno::INVAL) } else { Err(Errno::NODEV) }
    }
}
