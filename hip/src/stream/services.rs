//! Launches of kernels with services: the same steps as any launch, and what services add.

use aql::FenceScope;
use pm4::GpuAddr;

use super::core::{Core, Engine};
use super::launch::queue_address;
use super::retire::Retire;
use crate::error::Result;
use crate::launch::{Arguments, Cold, Grid};
use crate::services::{Flight, KernelServices, Landing, QueuePools};
use hostcall::needs::ServiceNeeds;

impl Core {
    /// Launches a kernel with services. What is refused leaves nothing behind.
    #[cold]
    pub fn launch_with_services<A: Arguments>(
        &mut self,
        cold: &Cold,
        services: &KernelServices,
        grid: &Grid,
        arguments: &A,
    ) -> Result<()> {
        let size = *grid.check(&cold.limits).map_err(|problem| cold.refuse(problem))?;
        self.ready()?;
        let device = &services.device;
        let calls = services.needs.intersects(ServiceNeeds::HOSTCALL | ServiceNeeds::HEAP);
        let pools = self.queue_pools();
        let pool = if calls { Some(pools.get(device, services.transport)?) } else { None };
        // Before the first wave can call, and before anything that a forked child may not touch.
        let guard = match pool {
            Some((id, _)) => device.drain.launch(id)?,
            None => device.drain.watch()?,
        };
        let printf = match &services.formats {
            Some(formats) if services.needs.contains(ServiceNeeds::PRINTF_BUFFER) => {
                if device.fifos.is_busy() {
                    self.shared.wait_for(self.count, self.shared.patience)?;
                    self.look()?;
                }
                Some((device.fifos.take()?, std::sync::Arc::clone(formats)))
            }
            _ => None,
        };
        let layout = &cold.layout;
        if layout.staging_bytes() > self.staging.len() {
            self.more_staging(cold)?;
        }
        let queue = queue_address(&self.engine);
        let lds = grid.dynamic_lds_bytes();
        let filled = layout.fill(&mut self.staging, arguments, &size, lds, || queue);
        filled.map_err(|problem| cold.refuse(problem))?;
        let bytes = layout.ring_bytes();
        let found = self.staging.len();
        let needed = bytes as usize;
        let space = hsaco::ArgumentError::Space { needed, found };
        let segment = self.staging.get_mut(..needed);
        let segment = segment.ok_or_else(|| cold.refuse(space.into()))?;
        let printf_address = printf.as_ref().map_or(0, |(fifo, _)| fifo.address());
        let put = services.put(segment, pool.map_or(0, |(_, address)| address), printf_address);
        put.map_err(|problem| cold.refuse(problem))?;
        let place = match self.kernarg.place(bytes, layout.align()) {
            Some(place) => place,
            None => self.place_later(cold)?,
        };
        let packed = self.staging.get(..needed).unwrap_or_default();
        self.kernarg.write(place.offset, packed)?;
        let scope = self.acquire_scope()?;
        let kernarg = self.kernarg.addr(place.offset);
        let head = self.kernarg.head();
        self.kernarg.take(place.end);
        let number = match self.submit_service(cold, grid, &size, kernarg, scope) {
            Ok(number) => number,
            Err(error) => {
                self.kernarg.take(head);
                return Err(error);
            }
        };
        self.modules.note(&cold.module, number);
        let flight = Flight::new(&self.shared, number, guard, printf);
        self.retire(Retire::Keep(std::sync::Arc::new(Landing::new(device, flight))));
        Ok(())
    }

    fn submit_service(
        &mut self,
        cold: &Cold,
        grid: &Grid,
        size: &crate::launch::Size,
        kernarg: GpuAddr,
        scope: FenceScope,
    ) -> Result<u64> {
        if let Engine::Pm4(_) = self.engine {
            return self.pm4_launch(cold, grid, size, kernarg, scope);
        }
        // The host reads what it wrote as soon as it is passed.
        let packet = cold
            .dispatch
            .sized(size.dimensions, size.grid, size.group)
            .group_segment(cold.lds_bytes(grid))
            .kernarg(kernarg)
            .acquire(scope)
            .release(FenceScope::SYSTEM)
            .completion(self.progress())
            .encode();
        self.submit(&packet, cold.label)
    }

    fn queue_pools(&self) -> &QueuePools {
        match &self.engine {
            Engine::Own(ring) | Engine::Shared(ring) => &ring.pools,
            Engine::Pm4(line) => &line.pools,
        }
    }
}
