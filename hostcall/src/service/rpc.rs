//! The shape of LLVM's remote procedure calls, for a transport that does not exist yet.

use crate::layout::{LANES, SLOT_WORDS};

/// Serves calls in the manner of LLVM's libc for GPUs: an opcode, and a buffer for each lane that
/// goes back and forth any number of times.
///
/// An interface only: no device library sends such calls through `hidden_hostcall_buffer`, so
/// nothing here calls it. A transport that does would hand the table's packets to it.
///
/// # Source
/// `Buffer` and `Header` in LLVM's libc/shared/rpc.h (8 words a lane, a mask and an opcode);
/// docs/ABI.md §Hostcall services.
pub trait Rpc: Send {
    /// Works on one exchange of a call and says whether the opcode is known. `lanes` has a bit for
    /// each lane that takes part; what is left in their buffers goes back.
    fn exchange(
        &mut self,
        opcode: u32,
        lanes: u64,
        buffers: &mut [[u64; SLOT_WORDS]; LANES],
    ) -> bool;
}
