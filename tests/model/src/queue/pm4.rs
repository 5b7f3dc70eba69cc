//! PM4 packets inside an AQL vendor packet (docs/ABI.md §PM4).

use std::sync::atomic::{Ordering, fence};

use pm4::packet::{DataDst, DataSel, DstSel, IntSel};
use pm4::{IndirectBuffer, Packet as Pm4, Packets, ReleaseMem, WriteBlock};

use super::aql::{Outcomes, Step};
use super::error::PacketError;
use super::packet::Packet;
use super::{Halt, Queue, Runner, State};
use crate::memory::AccessError;

/// Buffers that one packet may chain or nest before the model gives up.
const MAX_BUFFERS: u32 = 64;

/// What became of a PM4 packet.
enum Done {
    Next,
    /// Go on in this buffer, and with `chain` do not come back.
    Enter {
        buffer: IndirectBuffer,
    },
    /// The model cannot.
    Unknown(String),
}

impl Queue {
    /// Carries out the indirect buffer of a PM4-IB packet.
    pub(super) fn indirect_buffer(
        &self,
        runner: &Runner,
        state: &mut State,
        packet: &Packet,
    ) -> Outcomes {
        let words = [4, 8, 12, 16].map(|at| packet.u32(at));
        let Ok(buffer) = IndirectBuffer::decode(&words) else {
            return Ok(Step::Refuse(PacketError::VENDOR));
        };
        let mut left = MAX_BUFFERS;
        match self.run_buffer(runner, buffer, &mut left)? {
            None => Ok(Step::Next),
            Some(reason) => {
                let index = state.next;
                runner.say(self, format!("packet {index}: PM4 in its indirect buffer: {reason}"));
                state.halt = Halt::Dead;
                Ok(Step::Wait)
            }
        }
    }

    /// Runs a buffer. The text says what the model cannot carry out.
    fn run_buffer(
        &self,
        runner: &Runner,
        mut buffer: IndirectBuffer,
        left: &mut u32,
    ) -> Result<Option<String>, AccessError> {
        'chain: loop {
            let Some(fewer) = left.checked_sub(1) else {
                return Ok(Some(format!("more than {MAX_BUFFERS} buffers")));
            };
            *left = fewer;
            let dwords = usize::try_from(buffer.buffer_dwords()).unwrap_or(0);
            let mut bytes = vec![0; dwords * 4];
            self.setup.device.space.read(buffer.base().get(), &mut bytes)?;
            let words = bytes.chunks_exact(4).filter_map(|word| word.try_into().ok());
            let words: Vec<u32> = words.map(u32::from_le_bytes).collect();
            for packet in Packets::new(&words) {
                let packet = match packet {
                    Ok(packet) => packet,
                    Err(error) => return Ok(Some(error.to_string())),
                };
                match self.run_packet(runner, packet)? {
                    Done::Next => {}
                    Done::Enter { buffer: next } if next.is_chained() => {
                        buffer = next;
                        continue 'chain;
                    }
                    Done::Enter { buffer: next } => {
                        if let Some(reason) = self.run_buffer(runner, next, left)? {
                            return Ok(Some(reason));
                        }
                    }
                    Done::Unknown(reason) => return Ok(Some(reason)),
                }
            }
            return Ok(None);
        }
    }

    fn run_packet(&self, runner: &Runner, packet: Pm4<'_>) -> Result<Done, AccessError> {
        let is_gfx9 = self.setup.device.info.target.is_some_and(crate::Target::is_gfx9);
        match packet {
            Pm4::Nop(_) => Ok(Done::Next),
            Pm4::IndirectBuffer(buffer) => Ok(Done::Enter { buffer }),
            Pm4::AcquireMemGfx9(_) if is_gfx9 => Ok(acquire(runner)),
            Pm4::AcquireMemGfx11(_) if !is_gfx9 => Ok(acquire(runner)),
            Pm4::ReleaseMem(release) => self.release_mem(runner, release),
            Pm4::WriteData(write) => self.write_data(runner, write),
            other => Ok(Done::Unknown(format!("{other} is not carried out by this model"))),
        }
    }

    fn release_mem(&self, runner: &Runner, release: ReleaseMem) -> Result<Done, AccessError> {
        let space = &self.setup.device.space;
        fence(Ordering::SeqCst);
        let (selector, dst) = release.dst();
        if ![DstSel::MEMORY, DstSel::TC_L2].contains(&selector) {
            return Ok(Done::Unknown(format!("{release}: destination")));
        }
        let (data, value) = release.data();
        match data {
            DataSel::NONE => {}
            DataSel::LOW_32 => {
                space.store_u32(dst.get(), u32::try_from(value & 0xffff_ffff).unwrap_or(0))?;
            }
            DataSel::ALL_64 => space.store_u64(dst.get(), value)?,
            DataSel::GPU_CLOCK => space.store_u64(dst.get(), self.setup.device.clock())?,
            _ => return Ok(Done::Unknown(format!("{release}: data"))),
        }
        let (interrupt, context_id) = release.interrupts();
        match interrupt {
            IntSel::NONE | IntSel::CONFIRM_ONLY => {}
            IntSel::INTERRUPT | IntSel::AFTER_CONFIRM => {
                if context_id != 0 || self.setup.device.info.has_mes() {
                    runner.interrupt(context_id, 32);
                }
            }
            _ => return Ok(Done::Unknown(format!("{release}: interrupt"))),
        }
        runner.engine().wake();
        Ok(Done::Next)
    }

    fn write_data(&self, runner: &Runner, write: WriteBlock<'_>) -> Result<Done, AccessError> {
        if ![DataDst::TC_L2, DataDst::MEMORY].contains(&write.kind) {
            return Ok(Done::Unknown(format!("WRITE_DATA to {:?}", write.kind)));
        }
        let mut at = write.dst.get();
        for word in write.data {
            self.setup.device.space.store_u32(at, *word)?;
            if !write.one_address {
                at = at.wrapping_add(4);
            }
        }
        runner.engine().wake();
        Ok(Done::Next)
    }
}

fn acquire(runner: &Runner) -> Done {
    fence(Ordering::SeqCst);
    runner.engine().invalidate_code();
    Done::Next
}
