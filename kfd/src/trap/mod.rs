//! The second-level trap handler: what a wave runs when it traps or makes an exception, so that the
//! host learns of it.
//!
//! The kernel's own handler runs first; it saves waves, and hands everything else to the code that
//! SET_TRAP_HANDLER named. Ours finds the cause, tells KFD with a message (KFD 1.13 and later, with
//! RUNTIME_ENABLE) or writes it to the queue's signal (before), and halts the wave in a state that the
//! kernel can still save, so the queue can be destroyed. A debug trap without debugger goes on.
//!
//! The sources are gfx9.s and gfx11.s; `assemble.sh` makes the words from them.
//!
//! # Source
//! docs/ABI.md §Trap.

mod words;

use crate::abi::ExceptionCode;

/// Bytes that the code's memory must have past its last word: the instruction cache fetches ahead.
pub const PREFETCH_BYTES: usize = 256;

/// The handler for a GPU, by `gfx_target_version` of its topology node (90010 is gfx90a); `None` for
/// GPUs that have none here.
///
/// Its memory must be executable by the GPU and 256-byte aligned.
#[must_use]
pub fn handler(gfx_target_version: u32) -> Option<&'static [u32]> {
    match gfx_target_version {
        90_000..=90_012 => Some(words::GFX9),
        90_402 => Some(words::GFX942),
        110_000..=110_003 | 110_500..=110_502 => Some(words::GFX11),
        _ => None,
    }
}

/// Whether the kernel lets waves of this GPU enter a trap handler when no debugger is attached.
///
/// Not on GC 11.0.0 to 11.0.3 (gfx1100 to gfx1103), whose waves then run privileged with traps off.
/// There an abort still reaches the host, because the compiler makes the code for these chips send the
/// message by itself; an illegal instruction or a memory violation does not: the wave just stops. Linux
/// 6.1 does the same, unless the scheduler firmware (MES) is older than version 4.
///
/// # Source
/// drivers/gpu/drm/amd/amdkfd/kfd_debug.h, `kfd_dbg_has_cwsr_workaround`, and
/// kfd_device_queue_manager.c, `add_queue_mes`, Linux 6.12.117.
#[must_use]
pub fn traps_enabled(gfx_target_version: u32) -> bool {
    !matches!(gfx_target_version, 110_000..=110_003)
}

/// The memory that the handler gets as its argument (`tma_addr`) where it cannot send messages: for
/// each doorbell of the process on one GPU, the address of the signal of the queue that owns it, or 0.
///
/// With KFD 1.13 or later `tma_addr` is 0. Each entry is written before its queue runs.
#[derive(Clone, Copy, Debug)]
pub struct SignalTable;

impl SignalTable {
    /// Entries of 8 bytes.
    pub const ENTRIES: u64 = 1024;
    /// Bytes.
    pub const BYTES: u64 = Self::ENTRIES * 8;

    /// Byte offset of a queue's entry, from what CREATE_QUEUE returned as `doorbell_offset`.
    #[must_use]
    pub const fn entry_offset(doorbell_offset: u64) -> u64 {
        doorbell_offset & (Self::BYTES - 8) // a doorbell and an entry are both 8 bytes
    }
}

/// What a queue's `queue_inactive_signal` holds once the handler or the firmware has stored to it.
///
/// The low half has AMD's bits. The high half has the exceptions, bit `code - 1`, when the handler
/// stored it; the firmware leaves it 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InactiveValue(pub u64);

impl InactiveValue {
    /// AMD's bit for memory and aperture violations.
    pub const MEMORY: u64 = 1 << 29;
    /// AMD's bit for illegal instructions.
    pub const ILLEGAL_INSTRUCTION: u64 = 1 << 30;
    /// AMD's bit for aborts, other traps and arithmetic exceptions.
    pub const TRAP: u64 = 1 << 31;

    /// The exceptions that waves made, as a mask of bits `code - 1`. 0 when no wave did.
    #[must_use]
    pub fn exceptions(self) -> u64 {
        let exact = self.0 >> 32;
        if exact != 0 {
            return exact;
        }
        let bit = |amd, code: ExceptionCode| {
            if self.0 & amd == 0 { 0 } else { code.mask().unwrap_or(0) }
        };
        bit(Self::MEMORY, ExceptionCode::QUEUE_WAVE_APERTURE_VIOLATION)
            | bit(Self::ILLEGAL_INSTRUCTION, ExceptionCode::QUEUE_WAVE_ILLEGAL_INSTRUCTION)
            | bit(Self::TRAP, ExceptionCode::QUEUE_WAVE_TRAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&[u32]; 3] = [words::GFX9, words::GFX942, words::GFX11];

    #[test]
    fn every_supported_generation_has_a_handler_and_others_have_none() {
        for version in [90_000, 90_006, 90_008, 90_010] {
            assert_eq!(handler(version), Some(words::GFX9));
        }
        assert_eq!(handler(90_402), Some(words::GFX942));
        for version in [110_000, 110_001, 110_002, 110_003, 110_500, 110_501] {
            assert_eq!(handler(version), Some(words::GFX11));
        }
        for version in [0, 80_003, 100_100, 100_300, 120_000, 120_001] {
            assert_eq!(handler(version), None);
        }
    }

    #[test]
    fn a_handler_fits_a_page_with_room_to_fetch_ahead() {
        for words in ALL {
            assert!(size_of_val(words) + PREFETCH_BYTES <= 4096);
        }
    }

    /// Assembles the sources again where LLVM 19 is installed; CI always has it and runs the script
    /// by itself.
    #[test]
    fn words_are_what_the_assembler_makes_of_the_sources() {
        if std::process::Command::new("llvm-mc-19").arg("--version").output().is_err() {
            eprintln!("skipped: llvm-mc-19 is not installed");
            return;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/trap/assemble.sh");
        let check = std::process::Command::new(script).arg("--check").output().unwrap();
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    }

    #[test]
    fn an_entry_lies_where_its_doorbell_lies_in_the_doorbell_page() {
        assert_eq!(SignalTable::entry_offset(3 << 62 | 4672 << 46 | 0x1ff8), 0x1ff8);
        assert_eq!(SignalTable::entry_offset(3 << 62 | 4672 << 46), 0);
    }

    #[test]
    fn exceptions_come_from_the_high_half_or_else_from_amds_bits() {
        assert_eq!(InactiveValue(1 << 32 | InactiveValue::TRAP).exceptions(), 1);
        assert_eq!(InactiveValue(InactiveValue::TRAP).exceptions(), 2);
        assert_eq!(InactiveValue(InactiveValue::ILLEGAL_INSTRUCTION).exceptions(), 8);
        assert_eq!(InactiveValue(0x401).exceptions(), 0);
    }
}
