//! [`Blit`]: the blit kernels, loaded for a device.

use std::sync::Arc;

use super::objects::object;
use super::shader::{GROUP, Kernel, Launch};
use crate::device::{Device, DeviceCore};
use crate::error::{Error, Result};
use crate::launch::{Function, Grid, Packed};
use crate::module::Module;
use crate::stream::Core;
use crate::sync::lock;

/// Groups of the blit kernels on a compute unit at once: enough to cover the latency of memory, and few
/// enough that other kernels find room.
const GROUPS_PER_UNIT: u32 = 4;

/// The kernels of a device, and how many groups they are launched with at most.
#[derive(Debug)]
pub(crate) struct Blit {
    functions: [Function; Kernel::ALL.len()],
    pub most_groups: u32,
}

impl Blit {
    /// The kernels of a device: those that other streams use, or new ones.
    pub fn of(device: &Arc<DeviceCore>) -> Result<Arc<Self>> {
        if let Some(blit) = lock(&device.blit).upgrade() {
            return Ok(blit);
        }
        // Not under the lock: loading allocates memory. Two streams may load it at once.
        let blit = Arc::new(Self::load(device)?);
        let mut place = lock(&device.blit);
        Ok(place.upgrade().unwrap_or_else(|| {
            *place = Arc::downgrade(&blit);
            blit
        }))
    }

    fn load(device: &Arc<DeviceCore>) -> Result<Self> {
        let gpu = &device.gpu;
        let what = "there are no blit kernels for it";
        let unknown = Error::Unsupported { gpu: gpu.id(), what };
        let object = object(&gpu.gfx_version().to_string()).ok_or(unknown)?;
        let module = Module::load(&Device { core: Arc::clone(device) }, object)?;
        let [a, b, c, d] = Kernel::ALL.map(|kernel| module.function(kernel.name()));
        let units = gpu.node().compute_units().unwrap_or(1).max(1);
        let most_groups = units.saturating_mul(GROUPS_PER_UNIT);
        Ok(Self { functions: [a?, b?, c?, d?], most_groups })
    }

    pub fn function(&self, kernel: Kernel) -> &Function {
        let [copy, fill, copy_rows, fill_rows] = &self.functions;
        match kernel {
            Kernel::Copy => copy,
            Kernel::Fill => fill,
            Kernel::CopyRows => copy_rows,
            Kernel::FillRows => fill_rows,
        }
    }

    /// Launches `launch` on a stream.
    #[inline]
    pub fn run(&self, core: &mut Core, launch: &Launch) -> Result<()> {
        let grid = Grid::blocks([launch.groups, 1, 1], [GROUP, 1, 1]);
        core.launch(self.function(launch.kernel), &grid, &Packed(launch.arguments()))
    }
}
