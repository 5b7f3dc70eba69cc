//! One packet.

use pm4::{Header, Opcode, Packet as Pm4};

use super::super::turn::{Budget, Reason};
use super::super::{Queue, Runner, State};
use super::{Done, NEXT, Processor, sync};
use crate::memory::AccessError;

impl Queue {
    /// Carries out one packet.
    pub(super) fn execute(
        &self,
        runner: &Runner,
        state: &mut State,
        processor: &mut Processor,
        aql: Option<u64>,
        words: &[u32],
        budget: &Budget,
    ) -> Result<Done, AccessError> {
        let is_nop = words.first().and_then(|word| Header::from_word(*word));
        if is_nop.is_some_and(|header| header.opcode() == Opcode::NOP) {
            return Ok(Done::Nop);
        }
        let packet = match Pm4::decode(words) {
            Ok(packet) => packet,
            Err(error) => return Ok(Done::Stop(Reason::invalid(error))),
        };
        let is_gfx9 = processor.registers.target().is_gfx9();
        match packet {
            Pm4::SetReg(set) => Ok(match processor.registers.set_all(set.first(), set.values()) {
                Ok(()) => NEXT,
                Err(reason) => Done::Stop(reason),
            }),
            Pm4::IndirectBuffer(buffer) => Ok(Done::Enter(buffer)),
            Pm4::AcquireMemGfx9(acquire) if is_gfx9 => Ok(sync::acquire_gfx9(runner, acquire)),
            Pm4::AcquireMemGfx11(acquire) if !is_gfx9 => Ok(sync::acquire_gfx11(runner, acquire)),
            Pm4::ReleaseMem(release) => self.release_mem(runner, state, processor, aql, release),
            Pm4::EventWrite(event) => Ok(sync::event_write(state, processor, event)),
            Pm4::WaitRegMem(wait) => self.wait_reg_mem(processor, wait),
            Pm4::WaitRegMem64(wait) if !is_gfx9 => self.wait_reg_mem64(wait),
            Pm4::WriteData(write) => self.write_data(runner, processor, write),
            Pm4::CopyData(copy) => self.copy_data(runner, processor, copy),
            Pm4::AtomicMem(atomic) => self.atomic_mem(runner, processor, atomic),
            Pm4::DmaData(dma) => self.dma_data(runner, processor, dma, budget),
            Pm4::DispatchDirect(dispatch) => self.dispatch_pm4(
                runner,
                state,
                processor,
                aql,
                dispatch.dims(),
                dispatch.initiator(),
            ),
            Pm4::DispatchIndirect(dispatch) => {
                let at = dispatch.dims().get();
                let space = &self.setup.device.space;
                let word = |offset| space.load_u32(at.wrapping_add(offset));
                let dims = [word(0)?, word(4)?, word(8)?];
                self.dispatch_pm4(runner, state, processor, aql, dims, dispatch.initiator())
            }
            Pm4::CondExec(exec) => {
                let condition = self.setup.device.space.load_u32(exec.condition().get())?;
                Ok(if condition == 0 { Done::Skip(exec.skips().into()) } else { NEXT })
            }
            Pm4::PredExec(exec) => Ok(self.pred_exec(runner, state, processor, exec)),
            other => Ok(Done::Stop(Reason::unsupported(format!("{other} is unknown here")))),
        }
    }

    /// PRED_EXEC: only inside a buffer; in a ring the hardware passes it over.
    fn pred_exec(
        &self,
        runner: &Runner,
        state: &State,
        processor: &Processor,
        exec: pm4::packet::PredExec,
    ) -> Done {
        if processor.frames.is_empty() {
            let place = processor.place(state.next);
            runner.say(self, format!("{place}: {exec} in a ring has no effect"));
            return NEXT;
        }
        let bit = exec.xcc_mask().checked_shr(processor.xcc).unwrap_or(0) & 1;
        if bit == 0 { Done::Skip(exec.skips().into()) } else { NEXT }
    }
}
