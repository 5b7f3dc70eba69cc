//! PM4 inside an AQL vendor packet: on a chip of several XCCs, each executes it.

use std::sync::atomic::{Ordering, fence};

use pm4::IndirectBuffer;

use super::super::aql::{Outcomes, Step};
use super::super::error::PacketError;
use super::super::packet::{Head, Packet};
use super::super::turn::{Budget, Turn};
use super::super::{Halt, Queue, Runner, State};
use super::{Frame, Processor};
use crate::memory::AccessError;

impl Queue {
    /// Carries out the indirect buffer of a PM4-IB packet, or some of it.
    pub(in crate::queue) fn indirect_buffer(
        &self,
        runner: &Runner,
        state: &mut State,
        head: Head,
        packet: &Packet,
    ) -> Outcomes {
        if state.buffer.is_none() {
            let words = [4, 8, 12, 16].map(|at| packet.u32(at));
            let Ok(buffer) = IndirectBuffer::decode(&words) else {
                return Ok(Step::Refuse(PacketError::VENDOR));
            };
            if head.acquire() != 0 {
                fence(Ordering::SeqCst);
                runner.engine().invalidate_code();
            }
            if state.processors.is_empty() {
                let xccs = u32::try_from(self.setup.device.info.xccs).unwrap_or(1);
                state.processors =
                    (0..xccs).filter_map(|xcc| Processor::new(self, xcc, true)).collect();
            }
            for processor in &mut state.processors {
                processor.entered = 0;
                processor.progress = 0;
                processor.frames = vec![Frame::new(buffer)];
            }
            state.buffer = Some(self.setup.device.clock());
        }
        let mut processors = std::mem::take(&mut state.processors);
        let turns = self.run_all(runner, state, &mut processors);
        let index = state.next;
        let stop = turns.as_ref().ok().and_then(|turns| {
            turns.iter().zip(&processors).find_map(|(turn, processor)| match turn {
                Turn::Stop(reason) => Some((processor.place(index), reason.clone())),
                _ => None,
            })
        });
        state.processors = processors;
        let turns = turns?;
        if let Some((place, reason)) = stop {
            runner.bad_packet(self, state, &format!("packet {index}: {place}"), &reason);
            state.halt = Halt::Dead;
            return Ok(Step::Wait);
        }
        let any = |wanted: fn(&Turn) -> bool| turns.iter().any(wanted);
        Ok(match () {
            () if any(|turn| matches!(turn, Turn::More)) => Step::More,
            () if any(|turn| matches!(turn, Turn::Wait)) => Step::Wait,
            () if any(|turn| matches!(turn, Turn::Blocked)) => Step::Blocked,
            () => Step::Next,
        })
    }

    /// A turn of each XCC's processor. One that got somewhere and then had to wait has more to do:
    /// another may wait for what it did.
    fn run_all(
        &self,
        runner: &Runner,
        state: &mut State,
        processors: &mut [Processor],
    ) -> Result<Vec<Turn>, AccessError> {
        let index = state.next;
        let turns = processors.iter_mut().map(|processor| {
            let Some(mut budget) = Budget::of(runner, state) else { return Ok(Turn::Wait) };
            let before = budget.packets;
            let turn = self.run(runner, state, processor, Some(index), &mut budget)?;
            Ok(match turn {
                Turn::Wait if budget.packets != before => Turn::More,
                turn => turn,
            })
        });
        turns.collect()
    }
}
