//! Launches: the hot path.

use pm4::GpuAddr;

use super::core::{Core, Engine};
use crate::device::same_device;
use crate::error::{LaunchProblem, Result};
use crate::launch::{Arguments, Cold, Function, Grid, Size};
use crate::stream::kernarg::Place;

/// What ordinary launches must not outgrow: services to come go elsewhere.
const _: () = assert!(size_of::<super::core::Record>() <= 64);

impl Core {
    /// Launches a kernel. All checks come first: what is refused leaves nothing behind.
    #[inline]
    pub fn launch<A: Arguments>(
        &mut self,
        function: &Function,
        grid: &Grid,
        arguments: &A,
    ) -> Result<()> {
        let cold = &*function.cold;
        if !std::sync::Arc::ptr_eq(&cold.device, &self.shared.device) {
            return same_device(&self.shared.device, &cold.device, "the function");
        }
        let size = match grid.check(&cold.gate) {
            Ok(size) => size,
            Err(problem) => return self.launch_otherwise(cold, grid, arguments, problem),
        };
        self.ready()?;
        let place = self.pack(cold, grid, size, arguments)?;
        let scope = self.acquire_scope()?;
        let kernarg = match place {
            Some(place) => self.kernarg.addr(place.offset),
            None => GpuAddr::NULL,
        };
        let head = self.kernarg.head();
        if let Some(place) = place {
            self.kernarg.take(place.end);
        }
        let submitted = if let Engine::Pm4(_) = self.engine {
            self.pm4_launch(cold, grid, size, kernarg, scope)
        } else {
            let lds = cold.lds_bytes(grid);
            let packet = cold.packet(size, lds, kernarg, scope, self.progress());
            self.submit(&packet, cold.label)
        };
        match submitted {
            Ok(number) => {
                self.modules.note(&cold.module, number);
                Ok(())
            }
            Err(error) => {
                self.kernarg.take(head);
                Err(error)
            }
        }
    }

    /// A launch that the short way does not take: of a kernel with services, or refused.
    #[cold]
    fn launch_otherwise<A: Arguments>(
        &mut self,
        cold: &Cold,
        grid: &Grid,
        arguments: &A,
        problem: LaunchProblem,
    ) -> Result<()> {
        #[cfg(feature = "services")]
        if let Some(services) = &cold.services {
            return self.launch_with_services(cold, services, grid, arguments);
        }
        let _ = (grid, arguments);
        Err(cold.refuse(problem))
    }

    /// Puts the kernel arguments of a launch in the ring, without taking their place yet.
    #[inline]
    fn pack<A: Arguments>(
        &mut self,
        cold: &Cold,
        grid: &Grid,
        size: &Size,
        arguments: &A,
    ) -> Result<Option<Place>> {
        let layout = &cold.layout;
        if layout.staging_bytes() > self.staging.len() {
            self.more_staging(cold)?;
        }
        let engine = &self.engine;
        let lds = grid.dynamic_lds_bytes();
        let queue = || queue_address(engine);
        let filled = layout.fill(&mut self.staging, arguments, size, lds, queue);
        if let Err(problem) = filled {
            return Err(cold.refuse(problem));
        }
        let bytes = layout.ring_bytes();
        if bytes == 0 {
            return Ok(None);
        }
        let place = match self.kernarg.place(bytes, layout.align()) {
            Some(place) => place,
            None => self.place_later(cold)?,
        };
        let packed = self.staging.get(..bytes as usize).unwrap_or_default();
        self.kernarg.write(place.offset, packed)?;
        Ok(Some(place))
    }

    #[cold]
    pub(super) fn more_staging(&mut self, cold: &Cold) -> Result<()> {
        let bytes = cold.layout.staging_bytes();
        let space = hsaco::ArgumentError::Space { needed: bytes, found: self.staging.len() };
        self.grow_staging(bytes).map_err(|_| cold.refuse(LaunchProblem::Arguments(space)))
    }

    /// Waits for room in the ring of kernel arguments.
    #[cold]
    pub(super) fn place_later(&mut self, cold: &Cold) -> Result<Place> {
        let (bytes, align) = (cold.layout.ring_bytes(), cold.layout.align());
        let ring = self.kernarg.bytes();
        let too_large = LaunchProblem::Kernarg { bytes, ring };
        if u64::from(bytes) + u64::from(align) > ring / 2 {
            return Err(cold.refuse(too_large));
        }
        self.make_room(|core| core.kernarg.place(bytes, align).is_some())?;
        self.kernarg.place(bytes, align).ok_or_else(|| cold.refuse(too_large))
    }
}

/// Address of the queue's descriptor, for kernels that look at it.
pub(super) fn queue_address(engine: &Engine) -> u64 {
    match engine {
        Engine::Own(ring) | Engine::Shared(ring) => ring.descriptor(),
        Engine::Pm4(line) => line.descriptor(),
    }
}
