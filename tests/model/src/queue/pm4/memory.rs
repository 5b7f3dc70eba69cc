//! Packets that write, copy and change memory.

use pm4::WriteBlock;
use pm4::packet::{
    AtomicCommand, AtomicMem, CopyData, CopySource, CopyTarget, DataDst, DmaData, DmaSource,
};
use pm4::reg::Reg;

use super::super::atomic::{self, Tried};
use super::super::turn::{Budget, Reason};
use super::super::{Queue, Runner};
use super::{Done, NEXT, Processor};
use crate::memory::AccessError;

impl Queue {
    pub(super) fn write_data(
        &self,
        runner: &Runner,
        processor: &mut Processor,
        write: WriteBlock<'_>,
    ) -> Result<Done, AccessError> {
        let (mut at, step) = (write.dst.get(), u64::from(!write.one_address) * 4);
        match write.kind {
            DataDst::TC_L2 | DataDst::MEMORY => {
                for word in write.data {
                    self.setup.device.space.store_u32(at, *word)?;
                    at = at.wrapping_add(step);
                }
                runner.engine().wake();
            }
            DataDst::REGISTER => {
                let mut reg = write.dst.lo();
                for word in write.data {
                    if let Err(reason) = processor.registers.set(Reg(reg), *word) {
                        return Ok(Done::Stop(reason));
                    }
                    reg = reg.wrapping_add(u32::from(!write.one_address));
                }
            }
            other => {
                let text = format!("WRITE_DATA to destination {}", other.0);
                return Ok(Done::Stop(Reason::unsupported(text)));
            }
        }
        Ok(Done::Next { bytes: 4 * write.data.len() as u64 })
    }

    pub(super) fn copy_data(
        &self,
        runner: &Runner,
        processor: &mut Processor,
        copy: CopyData,
    ) -> Result<Done, AccessError> {
        let space = &self.setup.device.space;
        let low = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap_or(0);
        let unknown = || Ok(Done::Stop(Reason::unsupported(format!("{copy} is unknown here"))));
        let value = match copy.from() {
            CopySource::Memory(at) | CopySource::TcL2(at) if copy.is_64() => {
                space.load_u64(at.get())?
            }
            CopySource::Memory(at) | CopySource::TcL2(at) => space.load_u32(at.get())?.into(),
            CopySource::Register(reg) => {
                let registers = &processor.registers;
                let high = if copy.is_64() { registers.get(reg.plus(1)) } else { Ok(0) };
                match (registers.get(reg), high) {
                    (Ok(low), Ok(high)) => u64::from(high) << 32 | u64::from(low),
                    (Err(reason), _) | (_, Err(reason)) => return Ok(Done::Stop(reason)),
                }
            }
            CopySource::Immediate(value) => value,
            CopySource::AtomicReturn => processor.returned,
            CopySource::GpuClock => self.setup.device.clock(),
            _ => return unknown(),
        };
        match copy.to() {
            CopyTarget::Memory(at) | CopyTarget::TcL2(at) => {
                if copy.is_64() {
                    space.store_u64(at.get(), value)?;
                } else {
                    space.store_u32(at.get(), low(value))?;
                }
                runner.engine().wake();
            }
            CopyTarget::Register(reg) | CopyTarget::PersistentRegister(reg) => {
                let (values, count) = ([low(value), low(value >> 32)], usize::from(copy.is_64()));
                let values = values.get(..=count).unwrap_or_default();
                if let Err(reason) = processor.registers.set_all(reg, values) {
                    return Ok(Done::Stop(reason));
                }
            }
            _ => return unknown(),
        }
        Ok(NEXT)
    }

    pub(super) fn atomic_mem(
        &self,
        runner: &Runner,
        processor: &mut Processor,
        packet: AtomicMem,
    ) -> Result<Done, AccessError> {
        let repeat = packet.mode() == AtomicCommand::LOOP_UNTIL_COMPARE_SATISFIED;
        let waits = [AtomicCommand::WAIT_FOR_WRITE_CONFIRMATION, AtomicCommand::SEND_AND_CONTINUE];
        let newer = waits.contains(&packet.mode()) && !processor.registers.target().is_gfx9();
        let tried = if repeat || newer || packet.mode() == AtomicCommand::SINGLE_PASS {
            let space = &self.setup.device.space;
            atomic::perform(space, packet.op(), packet.addr().get(), packet.data(), repeat)?
        } else {
            Tried::Unknown
        };
        Ok(match tried {
            Tried::Done(old) => {
                if packet.op().returns() {
                    processor.returned = old;
                }
                runner.engine().wake();
                NEXT
            }
            Tried::Again => Done::Wait,
            Tried::Unknown => Done::Stop(Reason::unsupported(format!("{packet} is unknown here"))),
        })
    }

    /// DMA_DATA: as much of it as the turn allows.
    pub(super) fn dma_data(
        &self,
        runner: &Runner,
        processor: &mut Processor,
        dma: DmaData,
        budget: &Budget,
    ) -> Result<Done, AccessError> {
        /// SAIC and DAIC: an address that stays.
        const FIXED: u32 = 3 << 28;
        let [.., command] = dma.encode();
        if command & FIXED != 0 {
            return Ok(Done::Stop(Reason::unsupported(format!("{dma}: an address that stays"))));
        }
        let space = &self.setup.device.space;
        let done = processor.progress;
        // Parts of a fill are whole dwords, as the whole is.
        let room = budget.bytes & !3;
        let part = u64::from(dma.bytes()).saturating_sub(done).min(room);
        let to = dma.to().get().wrapping_add(done);
        match dma.from() {
            DmaSource::Memory(from) | DmaSource::TcL2(from) => {
                space.copy(from.get().wrapping_add(done), to, part)?;
            }
            DmaSource::Data(data) => space.fill(to, part, data)?,
        }
        processor.progress = done + part;
        if processor.progress < dma.bytes().into() {
            return Ok(Done::More);
        }
        runner.engine().wake();
        Ok(Done::Next { bytes: part })
    }
}
