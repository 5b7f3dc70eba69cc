//! [`QueuePools`]: what the waves of one hardware queue call the host through.

use std::sync::{Arc, Mutex};

use hostcall::{PoolId, Transport};

use super::device::DeviceServices;
use crate::error::Result;
use crate::sync::lock;

/// Pools of a hardware queue, one for each transport that its kernels use. Empty, and without memory,
/// until a launch needs one.
#[derive(Debug, Default)]
pub(crate) struct QueuePools(Mutex<Vec<QueuePool>>);

#[derive(Debug)]
struct QueuePool {
    services: Arc<DeviceServices>,
    transport: Transport,
    id: PoolId,
    address: u64,
}

impl QueuePools {
    /// Number and address of the pool, which is made if need be.
    pub fn get(
        &self,
        services: &Arc<DeviceServices>,
        transport: Transport,
    ) -> Result<(PoolId, u64)> {
        let mut pools = lock(&self.0);
        if let Some(pool) = pools.iter().find(|pool| pool.transport == transport) {
            return Ok((pool.id, pool.address));
        }
        let (id, address) = services.new_pool(transport)?;
        pools.push(QueuePool { services: Arc::clone(services), transport, id, address });
        Ok((id, address))
    }
}

impl Drop for QueuePool {
    fn drop(&mut self) {
        // The queue is gone. Refused only where the drain is: after a fork, or when it is stuck.
        let _ = self.services.drain.discard(self.id);
    }
}
