//! The thread that calls host functions.

#[derive(Debug)]
pub(crate) struct HostThread;

impl HostThread {
    pub fn new() -> Self {
        Self
    }

    pub fn is_started(&self) -> bool {
        false
    }
}
