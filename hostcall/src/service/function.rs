//! Calls of host functions (service 1), by ids that the host chose.

use std::collections::BTreeMap;
use std::fmt;

use super::Service;
use crate::counters::{Count, Counters};
use crate::error::{Error, Result};
use crate::layout::REPLY_WORDS;
use crate::pool::{Replies, Request};

/// A function that kernels may call: takes seven words, returns two.
///
/// It runs on the drain's thread while the wave waits, so it must return, and must not wait for
/// work of a GPU. Its arguments are whatever the device wrote.
pub trait HostFunction: FnMut(&[u64; 7]) -> [u64; REPLY_WORDS] + Send {}

impl<F: FnMut(&[u64; 7]) -> [u64; REPLY_WORDS] + Send> HostFunction for F {}

/// Host functions by id.
///
/// The ABI has the address of a host function in the first word. Here it is an id and is looked up:
/// no address that a device wrote is ever called. Ids are any words the host likes and gives to its
/// kernels, host addresses included.
#[derive(Default)]
pub struct Functions {
    functions: BTreeMap<u64, Box<dyn HostFunction>>,
}

impl Functions {
    /// No function.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function.
    ///
    /// # Errors
    /// [`Error::DuplicateFunction`].
    pub fn with(mut self, id: u64, function: impl HostFunction + 'static) -> Result<Self> {
        if self.functions.contains_key(&id) {
            return Err(Error::DuplicateFunction { function: id });
        }
        self.functions.insert(id, Box::new(function));
        Ok(self)
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.functions.keys()).finish()
    }
}

impl Service for Functions {
    fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, counters: &Counters) {
        for (lane, [id, arguments @ ..]) in request.lanes() {
            match self.functions.get_mut(id) {
                Some(function) => replies.set(lane, function(arguments)),
                None => counters.note(Count::UnknownFunction),
            }
        }
    }
}
