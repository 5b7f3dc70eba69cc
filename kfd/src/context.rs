//! What handles other than memory share on top of [`Core`].

use std::sync::Arc;

use crate::core::Core;
use crate::error::Result;

/// A `Kfd`'s state.
#[derive(Debug)]
pub(crate) struct Context {
    pub core: Arc<Core>,
}

impl Context {
    pub fn new(core: Core) -> Self {
        Self { core: Arc::new(core) }
    }

    /// Makes a GPU ready for memory and queues, once.
    pub fn acquire(&self, index: usize) -> Result<()> {
        self.core.gpu(index)?.check()?;
        self.core.acquire_vm(index)?;
        Ok(())
    }
}
