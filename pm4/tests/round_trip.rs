//! What the builders build decodes to itself, whatever it is; no dwords make the decoder panic.

use std::sync::atomic::{AtomicU32, Ordering};

use pm4::packet::{
    AtomicCommand, AtomicMem, AtomicOp, CachePolicy, Compare, CondExec, CopyData, CopySource,
    CopyTarget, DispatchDirect, DispatchIndirect, DmaData, DmaSource, EventType, EventWrite,
    PredExec, SetReg, ShRegIndex, WaitOn, WaitRegMem, WaitRegMem64, gfx9, gfx11,
};
use pm4::reg::{DispatchInitiator, Reg};
use pm4::{
    Encode, Error, GpuAddr, Header, IbBuilder, IndirectBuffer, Nop, Packet, Packets, ReleaseMem,
    Target, WriteBlock,
};
use proptest::prelude::*;

fn addr(align: u64) -> impl Strategy<Value = GpuAddr> {
    any::<u64>().prop_map(move |raw| GpuAddr::new(raw & !(align - 1)))
}

fn policy() -> impl Strategy<Value = CachePolicy> {
    (0u8..4).prop_map(CachePolicy)
}

fn register() -> impl Strategy<Value = Reg> {
    (0u32..1 << 18).prop_map(Reg)
}

fn words(packet: &impl Encode) -> Vec<u32> {
    let mut all = Vec::new();
    packet.emit(|part| all.extend_from_slice(part));
    assert_eq!(all.len(), packet.dwords());
    all
}

fn initiator() -> impl Strategy<Value = DispatchInitiator> {
    any::<u32>().prop_map(DispatchInitiator::from_bits_truncate)
}

fn wait() -> impl Strategy<Value = WaitOn> {
    prop_oneof![
        addr(4).prop_map(WaitOn::Memory),
        addr(4).prop_map(WaitOn::MemoryPreemptible),
        register().prop_map(WaitOn::Register),
        (register(), register())
            .prop_map(|(write, wait)| WaitOn::WriteThenRegister { write, wait }),
    ]
}

fn source() -> impl Strategy<Value = CopySource> {
    prop_oneof![
        register().prop_map(CopySource::Register),
        addr(8).prop_map(CopySource::Memory),
        addr(8).prop_map(CopySource::TcL2),
        register().prop_map(CopySource::PerfCounter),
        any::<u32>().prop_map(|value| CopySource::Immediate(value.into())),
        Just(CopySource::AtomicReturn),
        Just(CopySource::GpuClock),
    ]
}

fn target() -> impl Strategy<Value = CopyTarget> {
    prop_oneof![
        register().prop_map(CopyTarget::Register),
        addr(8).prop_map(CopyTarget::TcL2),
        register().prop_map(CopyTarget::PerfCounter),
        addr(8).prop_map(CopyTarget::Memory),
        register().prop_map(CopyTarget::PersistentRegister),
    ]
}

fn dma() -> impl Strategy<Value = DmaSource> {
    prop_oneof![
        addr(1).prop_map(DmaSource::Memory),
        addr(1).prop_map(DmaSource::TcL2),
        any::<u32>().prop_map(DmaSource::Data),
    ]
}

proptest! {
    #[test]
    fn what_is_built_decodes_to_itself(
        data in prop::collection::vec(any::<u32>(), 1..9),
        (a1, a4, a8) in (addr(1), addr(4), addr(8)),
        dims in any::<[u32; 3]>(),
        initiator in initiator(),
        (word, mask, wide, wide_mask) in any::<(u32, u32, u64, u64)>(),
        (interval, count) in (any::<u16>(), 0u16..0x4000),
        (op, command, index, function) in (0u8..0x80, 0u8..16, 0u8..16, 0u8..7),
        (on, from, to, dma) in (wait(), source(), target(), dma()),
        (p1, p2) in (policy(), policy()),
        bytes in 0u32..=DmaData::MAX_BYTES,
        buffer in 1u32..=IndirectBuffer::MAX_BUFFER_DWORDS,
        (gfx9_cache, gcr, release) in any::<(u32, u32, u32)>(),
        offset in 0u32..0x3F8,
        flag: bool,
    ) {
        let range = |bytes: u32| u64::from(bytes).max(1);
        let acquire9 = gfx9::AcquireMem::new(gfx9::AcquireCache::from_bits_truncate(gfx9_cache))
            .range(GpuAddr::new(a1.get() >> 1), range(bytes)).poll_interval(interval);
        let acquire11 = gfx11::AcquireMem::new(gfx11::Gcr::from_bits_truncate(gcr))
            .range(GpuAddr::new(a1.get() >> 1), range(bytes)).poll_interval(interval);
        let release = ReleaseMem::gfx11(gfx11::ReleaseCache::from_bits_truncate(release));
        let ib = IndirectBuffer::new(GpuAddr::new(a4.get() >> 16 & !3), buffer).unwrap().policy(p1);
        let mut write = WriteBlock::new(a4, &data).unwrap();
        write.policy = p2;
        write.one_address = flag;
        let bytes_4 = GpuAddr::new(a1.get() & !3);
        let fill = DmaData::new(DmaSource::Data(word), bytes_4, bytes & !3).unwrap();
        let copy = DmaData::new(dma, bytes_4, bytes & !3).unwrap().policies(p1, p2);
        let all = vec![
            Packet::Nop(Nop::new(&data).unwrap()),
            Packet::SetReg(SetReg::sh(Reg(0x2C00 + offset), &data).unwrap()),
            Packet::SetReg(
                SetReg::sh_index(Reg(0x2C00 + offset), &data, ShRegIndex(index)).unwrap(),
            ),
            Packet::SetReg(SetReg::uconfig(Reg(0xC000 + offset), &data).unwrap()),
            Packet::DispatchDirect(DispatchDirect::new(dims, initiator)),
            Packet::DispatchIndirect(DispatchIndirect::new(a4, initiator).unwrap()),
            Packet::EventWrite(EventWrite::new(EventType(op), index)),
            Packet::CondExec(CondExec::new(a4, count).unwrap().policy(p1)),
            Packet::PredExec(PredExec::new(op, count)),
            Packet::IndirectBuffer(if flag { ib.chain() } else { ib }),
            Packet::AcquireMemGfx9(acquire9),
            Packet::AcquireMemGfx11(acquire11),
            Packet::ReleaseMem(release.write_64(a8, wide).unwrap().interrupt(word).through_l2()),
            Packet::ReleaseMem(release.write_32(a4, word).unwrap().confirm().execute()),
            Packet::ReleaseMem(release.write_clock(a8).unwrap()),
            Packet::WaitRegMem(WaitRegMem::new(on, Compare(function), word).unwrap()
                .mask(mask).policy(p1).poll_interval(interval)),
            Packet::WaitRegMem(WaitRegMem::new(on, Compare(function), word).unwrap().offload()),
            Packet::WaitRegMem64(WaitRegMem64::new(a8, Compare(function), wide).unwrap()
                .mask(wide_mask).poll_interval(interval).preemptible()),
            Packet::WriteData(if flag { write.confirm() } else { write }),
            Packet::CopyData(CopyData::new_64(from, to).unwrap().policies(p1, p2)),
            Packet::CopyData(CopyData::new_32(from, to).unwrap().confirm()),
            Packet::DmaData(copy.raw_wait()),
            Packet::DmaData(fill.past_l2().without_sync()),
            Packet::AtomicMem(AtomicMem::new(AtomicOp(op), a8, wide).unwrap()
                .comparand(wide_mask).command(AtomicCommand(command)).policy(p2)
                .loop_interval(interval)),
        ];
        // Into memory that another agent may read, twice: measured, then exactly as long.
        let mut measure = IbBuilder::new(&mut [][..]);
        all.iter().for_each(|packet| {
            measure.push(packet);
        });
        let Err(Error::BufferTooSmall { needed, capacity: 0 }) = measure.end() else {
            panic!("an empty buffer took the packets");
        };
        let shared: Vec<AtomicU32> = (0..needed).map(|_| AtomicU32::new(!0)).collect();
        let mut ib = IbBuilder::new(&shared[..]);
        all.iter().for_each(|packet| {
            ib.push(packet);
        });
        prop_assert_eq!(ib.end(), Ok(needed));
        let written: Vec<u32> = shared.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let decoded: Result<Vec<_>, _> = Packets::new(&written).collect();
        prop_assert_eq!(decoded, Ok(all));
    }

    #[test]
    fn any_dwords_decode_without_panic_and_encode_to_the_same_packet(
        stream in prop::collection::vec(
            prop_oneof![
                any::<u32>(), Just(0), 0u32..0x100,
                (0u32..10, prop::sample::select(&[
                    0x10, 0x15, 0x16, 0x1E, 0x22, 0x23, 0x37, 0x3C, 0x3F, 0x40, 0x46, 0x49, 0x50,
                    0x58, 0x76, 0x79, 0x93, 0x9B,
                ][..])).prop_map(|(count, op): (u32, u32)| 3 << 30 | count << 16 | op << 8),
            ],
            0..64,
        )
    ) {
        let mut steps = 0;
        for packet in Packets::new(&stream) {
            steps += 1;
            let Ok(packet) = packet else { continue };
            for target in Target::ALL {
                prop_assert!(!packet.on(target).to_string().is_empty());
            }
            let again = words(&packet);
            prop_assert_eq!(Packet::decode(&again), Ok(packet));
        }
        prop_assert!(steps <= stream.len());
    }

    #[test]
    fn a_body_of_the_right_length_decodes_to_what_encodes_to_it(
        (opcode, dwords) in prop::sample::select(&[
            (0x15, 5), (0x16, 4), (0x1E, 9), (0x22, 5), (0x23, 2), (0x37, 6), (0x3C, 7),
            (0x3F, 4), (0x40, 6), (0x46, 2), (0x49, 8), (0x50, 7), (0x76, 4), (0x79, 4),
            (0x93, 9), (0x9B, 4),
        ][..]),
        body in prop::array::uniform8(prop_oneof![any::<u32>(), Just(0u32), 0u32..0x1000]),
    ) {
        let count: u32 = dwords - 2;
        let mut stream = vec![3 << 30 | count << 16 | opcode << 8];
        stream.extend(&body[..dwords as usize - 1]);
        if let Ok(packet) = Packet::decode(&stream) {
            let mut again = words(&packet);
            again[0] &= !2; // the shader type
            prop_assert_eq!(again, stream);
        }
    }
}

#[test]
fn a_buffer_is_padded_and_its_need_reported_exactly() {
    let packet = EventWrite::CS_PARTIAL_FLUSH;
    for count in 0..20_usize {
        let build = |words: &mut [u32]| {
            let mut ib = IbBuilder::new(words);
            for _ in 0..count {
                ib.push(&packet);
            }
            ib.finish()
        };
        let need = (2 * count).next_multiple_of(8);
        let mut words = vec![0xFFFF_FFFF; need];
        assert_eq!(build(&mut words), Ok(need));
        let padding = Packets::new(&words).filter(|p| matches!(p, Ok(Packet::Nop(_)))).count();
        assert_eq!(padding, usize::from(count % 4 != 0));
        assert!(Packets::new(&words).all(|packet| packet.is_ok()));
        if need > 0 {
            let error = build(&mut words[1..]);
            assert_eq!(error, Err(Error::BufferTooSmall { needed: need, capacity: need - 1 }));
        }
    }
}

#[test]
fn a_chain_ends_its_buffer_on_a_multiple_of_eight() {
    let next = IndirectBuffer::new(GpuAddr::new(0x1000), 8).unwrap();
    for count in 0..8 {
        let mut words = [0; 32];
        let mut ib = IbBuilder::new(&mut words[..]);
        for _ in 0..count {
            ib.push(&EventWrite::CS_PARTIAL_FLUSH);
        }
        let dwords = ib.finish_chained(next).unwrap();
        assert_eq!(dwords % 8, 0);
        let last = Packets::new(&words[..dwords]).last().unwrap();
        assert_eq!(last, Ok(Packet::IndirectBuffer(next.chain())));
    }
}

#[test]
fn a_predicate_covers_exactly_what_is_inside() {
    let mut words = [0; 16];
    let mut ib = IbBuilder::new(&mut words[..]);
    ib.pred_exec(1, |ib| {
        ib.push(&EventWrite::CS_PARTIAL_FLUSH).push(&EventWrite::CS_PARTIAL_FLUSH);
    });
    ib.cond_exec(GpuAddr::new(0x1000), |ib| {
        ib.push(&EventWrite::CS_PARTIAL_FLUSH);
    });
    let dwords = ib.end().unwrap();
    let all: Vec<_> = Packets::new(&words[..dwords]).map(Result::unwrap).collect();
    assert_eq!(all[0], Packet::PredExec(PredExec::new(1, 4)));
    let condition = CondExec::new(GpuAddr::new(0x1000), 2).unwrap();
    assert_eq!(all[3], Packet::CondExec(condition));
}

#[test]
fn what_a_predicate_cannot_cover_and_a_misaligned_condition_are_refused() {
    let mut words = vec![0; 0x9000];
    let mut ib = IbBuilder::new(&mut words[..]);
    ib.pred_exec(1, |ib| {
        for _ in 0..=usize::from(PredExec::MAX_COUNT) / 2 {
            ib.push(&EventWrite::CS_PARTIAL_FLUSH);
        }
    });
    assert!(matches!(ib.end(), Err(Error::TooLong { found: 0x4000, max: 0x3FFF, .. })));
    let mut ib = IbBuilder::new(&mut words[..]);
    ib.cond_exec(GpuAddr::new(2), |_| ());
    assert!(matches!(ib.end(), Err(Error::Misaligned { align: 4, .. })));
}

#[test]
fn an_unknown_opcode_is_named_by_its_number_and_an_untyped_one_by_amds_name() {
    let text = |words: &[u32]| Packets::new(words).map(|p| p.unwrap().to_string()).next();
    assert_eq!(text(&[0xc000_ee00, 7]).unwrap(), "opcode 0xee 00000007");
    assert_eq!(text(&[0xc000_4200, 0]).unwrap(), "PFP_SYNC_ME 00000000");
    assert!(Header::from_word(0x8000_0000).is_none());
}
