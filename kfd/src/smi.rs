//! System management events: lines of text about faults, resets, evictions and page migrations.

use std::sync::Arc;
use std::time::Duration;

use crate::abi;
use crate::core::Core;
use crate::error::{Error, Object, Result};
use crate::gpu::Gpu;
use crate::sys::{Errno, FileId};
use crate::topology::retry;

/// A stream of events of one GPU.
#[derive(Debug)]
pub struct SmiEvents {
    core: Arc<Core>,
    file: FileId,
}

/// One event: `number payload`, both hexadecimal as docs/ABI.md §Events has them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SmiEvent {
    /// What happened: 1 VM fault, 2 throttling, 3 and 4 reset, 5 and 6 migration, 7 and 8 page
    /// fault, 9 and 10 queue eviction and restore, 11 unmapping.
    pub number: u32,
    /// The rest of the line.
    pub payload: String,
}

/// Reads what KFD has written: whole lines.
fn parse(text: &str) -> Vec<SmiEvent> {
    let event = |line: &str| {
        let (number, payload) = line.split_once(' ').unwrap_or((line, ""));
        let number = u32::from_str_radix(number, 16).ok()?;
        Some(SmiEvent { number, payload: payload.to_owned() })
    };
    text.lines().filter_map(event).collect()
}

impl Gpu {
    /// Opens a stream of the events whose bits are in `mask`: bit n - 1 for event n. Bit 63 asks for
    /// those of all processes, which takes CAP_SYS_ADMIN. Needs KFD 1.3.
    ///
    /// # Errors
    /// [`Error::KfdTooOld`]; [`Error::Ioctl`] of SMI_EVENTS; [`Error::System`].
    pub fn smi_events(&self, mask: u64) -> Result<SmiEvents> {
        let core = &self.context.core;
        core.require("SMI events", 3)?;
        let mut args = abi::SmiEventsArgs { gpuid: self.id(), ..Default::default() };
        core.call(&mut args, Object::Gpu(self.id()))?;
        let file = i32::try_from(args.anon_fd).map_err(|_| Error::Nonsense {
            call: "SMI_EVENTS",
            what: "the descriptor",
            value: u64::from(args.anon_fd),
        })?;
        let events = SmiEvents { core: Arc::clone(core), file: FileId(file) };
        let written = retry(|| core.kernel.write(events.file, &mask.to_ne_bytes()));
        written.map_err(|errno| events.failed("write", errno))?;
        Ok(events)
    }
}

impl SmiEvents {
    fn failed(&self, call: &'static str, errno: Errno) -> Error {
        Error::System { call, what: "the stream of SMI events".to_owned(), errno }
    }

    /// The events that have come, waiting up to `timeout` for the first. KFD drops events when more
    /// than a KiB of them is not read.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn read(&self, timeout: Duration) -> Result<Vec<SmiEvent>> {
        let kernel = &*self.core.kernel;
        let start = kernel.now();
        let left = || timeout.saturating_sub(kernel.now().saturating_sub(start));
        let ready = retry(|| kernel.poll(self.file, left()));
        if !ready.map_err(|errno| self.failed("poll", errno))? {
            return Ok(Vec::new());
        }
        let mut bytes = [0; 1024];
        match retry(|| kernel.read(self.file, &mut bytes)) {
            Ok(length) => {
                Ok(parse(&String::from_utf8_lossy(bytes.get(..length).unwrap_or(&bytes))))
            }
            Err(Errno::AGAIN) => Ok(Vec::new()),
            Err(errno) => Err(self.failed("read", errno)),
        }
    }
}

impl Drop for SmiEvents {
    fn drop(&mut self) {
        self.core.kernel.close(self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_and_nonsense_is_left_out() {
        let events = parse("1 4d2:vadd\nb 100 -4d2 @7f00(2) 1000 1\nhello\n");
        assert_eq!(events.len(), 2);
        assert_eq!((events[0].number, events[0].payload.as_str()), (1, "4d2:vadd"));
        assert_eq!(events[1].number, 11);
    }
}
