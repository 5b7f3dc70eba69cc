use alloc::string::ToString;
use alloc::vec::Vec;

use pm4::IndirectBuffer;
use proptest::prelude::*;

use super::*;
use crate::FenceScope;

const KERNEL: GpuAddr = GpuAddr::new(0x7f00_0020_0540);
const KERNARG: GpuAddr = GpuAddr::new(0x7f00_0030_0000);
const SIGNAL: GpuAddr = GpuAddr::new(0x7f00_0040_1040);
const DEP_0: GpuAddr = GpuAddr::new(0x7f00_0040_1080);
const DEP_1: GpuAddr = GpuAddr::new(0x7f00_0040_10c0);

/// A packet from the hex dumps of docs/ABI.md §AQL, worked examples.
fn example(hex: &str) -> Packet {
    let bytes: Vec<u8> =
        hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    Packet::from_bytes(&bytes.try_into().unwrap())
}

#[test]
fn kernel_dispatch_matches_worked_example_1() {
    let bytes = example(
        "02 15 01 00 00 01 01 00 01 00 00 00 00 00 10 00
         01 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00
         40 05 20 00 00 7f 00 00 00 00 30 00 00 7f 00 00
         00 00 00 00 00 00 00 00 40 10 40 00 00 7f 00 00",
    );
    let packet = KernelDispatch::new(KERNEL, [1_048_576, 1, 1], [256, 1, 1])
        .unwrap()
        .kernarg(KERNARG)
        .barrier()
        .completion(SIGNAL);
    assert_eq!(packet.encode(), bytes);
    assert_eq!(bytes.decode(), Decoded::KernelDispatch(packet));
    assert_eq!(
        bytes.decode().to_string(),
        "kernel-dispatch barrier acquire=system release=system dimensions=1 grid=1048576x1x1 \
         workgroup=256x1x1 private=0 group=0 kernel=0x7f0000200540 kernarg=0x7f0000300000 \
         completion=0x7f0000401040"
    );
}

#[test]
fn kernel_dispatch_matches_worked_example_2() {
    let bytes = example(
        "02 0a 03 00 10 00 08 00 02 00 00 00 64 00 00 00
         32 00 00 00 03 00 00 00 10 01 00 00 00 10 00 00
         40 05 20 00 00 7f 00 00 00 00 30 00 00 7f 00 00
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
    );
    let packet = KernelDispatch::new(KERNEL, [100, 50, 3], [16, 8, 2])
        .unwrap()
        .kernarg(KERNARG)
        .private_segment(272)
        .group_segment(4096)
        .acquire(FenceScope::AGENT)
        .release(FenceScope::AGENT);
    assert_eq!(packet.encode(), bytes);
    assert_eq!(bytes.decode(), Decoded::KernelDispatch(packet));
    assert_eq!(packet.workgroup_size(), [16, 8, 2]);
    assert_eq!(packet.dimensions(), 3);
}

#[test]
fn barrier_and_matches_worked_example_3() {
    let bytes = example(
        "03 15 00 00 00 00 00 00 80 10 40 00 00 7f 00 00
         c0 10 40 00 00 7f 00 00 00 00 00 00 00 00 00 00
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
         00 00 00 00 00 00 00 00 40 10 40 00 00 7f 00 00",
    );
    let null = GpuAddr::NULL;
    let packet = BarrierAnd::new([DEP_0, DEP_1, null, null, null]).barrier().completion(SIGNAL);
    assert_eq!(packet.encode(), bytes);
    assert_eq!(bytes.decode(), Decoded::BarrierAnd(packet));
    assert_eq!(
        bytes.decode().to_string(),
        "barrier-and barrier acquire=system release=system \
         signals=0x7f0000401080,0x7f00004010c0 completion=0x7f0000401040"
    );
}

#[test]
fn barrier_value_matches_worked_example_4() {
    let bytes = example(
        "00 15 02 00 00 00 00 00 80 10 40 00 00 7f 00 00
         f0 ff ff ff ff ff ff 7f ff ff ff ff ff ff ff 7f
         02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
         00 00 00 00 00 00 00 00 40 10 40 00 00 7f 00 00",
    );
    let packet = BarrierValue::new(DEP_0, Condition::LT, 0x7fff_ffff_ffff_fff0)
        .mask(i64::MAX)
        .barrier()
        .completion(SIGNAL);
    assert_eq!(packet.encode(), bytes);
    assert_eq!(bytes.decode(), Decoded::BarrierValue(packet));
}

#[test]
fn pm4_ib_matches_worked_example_5() {
    let bytes = example(
        "00 15 01 00 00 3f 02 c0 00 00 50 00 00 7f 00 00
         40 00 80 00 0a 00 00 00 00 00 00 00 00 00 00 00
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
         00 00 00 00 00 00 00 00 40 10 40 00 00 7f 00 00",
    );
    let buffer = IndirectBuffer::new(GpuAddr::new(0x7f00_0050_0000), 64).unwrap();
    let packet = Pm4Ib::new(buffer).barrier().completion(SIGNAL);
    assert_eq!(packet.encode(), bytes);
    assert_eq!(bytes.decode(), Decoded::Pm4Ib(packet));
    assert_eq!(packet.buffer(), Ok(buffer));
}

#[test]
fn barrier_value_compares_signed_and_masked() {
    let below = BarrierValue::new(DEP_0, Condition::LT, 0);
    assert_eq!(below.is_satisfied_by(-1), Some(true));
    assert_eq!(below.is_satisfied_by(0), Some(false));
    let masked = BarrierValue::new(DEP_0, Condition::EQ, 4).mask(4);
    assert_eq!(masked.is_satisfied_by(7), Some(true));
    assert_eq!(masked.is_satisfied_by(3), Some(false));
    let at_least = BarrierValue::new(DEP_0, Condition::GTE, 5);
    assert_eq!(at_least.is_satisfied_by(5), Some(true));
    let other = BarrierValue::new(DEP_0, Condition::NE, 5);
    assert_eq!(other.is_satisfied_by(5), Some(false));
}

#[test]
fn kernel_dispatch_refuses_what_the_command_processor_would() {
    let sizes = |grid, workgroup| KernelDispatch::new(KERNEL, grid, workgroup).unwrap_err();
    for axis in 0..3 {
        let (mut grid, mut workgroup) = ([64, 1, 1], [64, 1, 1]);
        grid[axis] = 0;
        assert!(matches!(sizes(grid, workgroup), Problem::GridSize { .. }));
        workgroup[axis] = 0;
        assert!(matches!(sizes([64, 1, 1], workgroup), Problem::GridSize { .. }));
    }
    assert_eq!(sizes([64, 64, 1], [64, 17, 1]), Problem::WorkgroupSize { items: 1088 });
    for address in [0, 32] {
        let address = GpuAddr::new(address);
        let problem = KernelDispatch::new(address, [1; 3], [1; 3]).unwrap_err();
        assert_eq!(problem, Problem::KernelObject(address));
    }
}

/// The problem of `packet` once dword `dword` is `word`.
fn problem(packet: impl Into<Packet>, dword: usize, word: u32) -> Problem {
    let mut packet = packet.into();
    packet.0[dword] = word;
    match packet.decode() {
        Decoded::Malformed { packet: kept, problem } => {
            assert_eq!(kept, packet);
            problem
        }
        other => panic!("{other}"),
    }
}

#[test]
fn decode_names_what_is_wrong() {
    let dispatch = KernelDispatch::new(KERNEL, [64, 1, 1], [64, 1, 1]).unwrap();
    let barrier = BarrierAnd::new([DEP_0; 5]);
    let value = BarrierValue::new(DEP_0, Condition::EQ, 0);
    let ib = Pm4Ib::new(IndirectBuffer::new(KERNARG, 4).unwrap());

    for unknown in 6..=255u8 {
        let found = problem(dispatch, 0, u32::from(unknown));
        assert_eq!(found, Problem::UnknownType(unknown));
    }
    for unknown in (0..=255u8).filter(|format| !(1..=2).contains(format)) {
        let found = problem(ib, 0, u32::from(unknown) << 16);
        assert_eq!(found, Problem::UnknownFormat(unknown));
    }
    assert_eq!(problem(dispatch, 0, 0x0000_1402), Problem::Dimensions(0));
    assert_eq!(problem(dispatch, 0, 0x0004_1402), Problem::Dimensions(4));
    assert_eq!(problem(dispatch, 0, 0x0001_0602), Problem::FenceScope(0x0602));
    assert_eq!(problem(dispatch, 2, 0x1_0001), Problem::Reserved { dword: 2, bits: 0x1_0000 });
    assert!(matches!(problem(dispatch, 4, 2), Problem::GridSize { dimensions: 1, .. }));
    assert_eq!(
        problem(dispatch, 8, 0x20_0541),
        Problem::KernelObject(GpuAddr::new(0x7f00_0020_0541))
    );
    assert_eq!(problem(dispatch, 14, 4), Problem::Signal(GpuAddr::new(4)));
    assert_eq!(problem(barrier, 12, 9), Problem::Reserved { dword: 12, bits: 9 });
    assert_eq!(problem(barrier, 0, 0x0001_1403), Problem::Reserved { dword: 0, bits: 0x1_0000 });
    assert_eq!(problem(barrier, 10, 1), Problem::Signal(GpuAddr::new(0x7f00_0000_0001)));
    assert_eq!(problem(value, 8, 4), Problem::Condition(4));
    assert_eq!(problem(value, 9, 1), Problem::Reserved { dword: 9, bits: 1 });
    assert_eq!(problem(value, 0, 0x0102_1400), Problem::Reserved { dword: 0, bits: 0x0100_0000 });
    assert_eq!(problem(ib, 5, 9), Problem::RemainingDwords(9));
    assert!(matches!(problem(ib, 1, 0xc000_1000), Problem::Pm4(pm4::Error::WrongOpcode { .. })));
}

#[test]
fn a_free_slot_decodes_as_invalid_whatever_else_it_holds() {
    assert_eq!(Packet::INVALID.decode(), Decoded::Invalid);
    let mut stale = KernelDispatch::new(KERNEL, [64, 1, 1], [64, 1, 1]).unwrap().encode();
    stale.0[0] = u32::from(Header::INVALID.0);
    assert_eq!(stale.decode(), Decoded::Invalid);
}

fn signal() -> impl Strategy<Value = GpuAddr> {
    prop_oneof![Just(GpuAddr::NULL), any::<u64>().prop_map(|raw| GpuAddr::new(raw & !63))]
}

fn scope() -> impl Strategy<Value = FenceScope> {
    (0u8..3).prop_map(FenceScope)
}

proptest! {
    #[test]
    fn any_words_decode_to_text_or_back_to_themselves(mut words: [u32; 16], header in 0u32..6, format in 0u32..4) {
        // Half of the cases get a header that says something.
        if words[15] & 1 == 0 {
            words[0] = words[0] & 0x1F00 | header | format << 16;
        }
        let packet = Packet(words);
        let again: Packet = match packet.decode() {
            Decoded::KernelDispatch(p) => p.into(),
            Decoded::BarrierAnd(p) => p.into(),
            Decoded::BarrierOr(p) => p.into(),
            Decoded::AgentDispatch(p) => p.into(),
            Decoded::Pm4Ib(p) => p.into(),
            Decoded::BarrierValue(p) => p.into(),
            Decoded::Malformed { packet, .. } => packet,
            Decoded::Invalid => packet,
        };
        prop_assert_eq!(again, packet);
        prop_assert!(!packet.decode().to_string().is_empty());
        prop_assert_eq!(Packet::from_bytes(&packet.to_bytes()), packet);
    }

    #[test]
    fn kernel_dispatch_keeps_every_field(
        kernel in 1u64..1 << 58, kernarg: u64, grid in prop::array::uniform3(1u32..),
        group in (1u16..=16, 1u16..=8, 1u16..=8), private: u32, lds: u32, correlation: u64,
        done in signal(), acquire in scope(), release in scope(), barrier: bool,
    ) {
        let workgroup = [group.0, group.1, group.2];
        let (kernel, kernarg) = (GpuAddr::new(kernel << 6), GpuAddr::new(kernarg));
        let mut packet = KernelDispatch::new(kernel, grid, workgroup).unwrap()
            .kernarg(kernarg).private_segment(private).group_segment(lds)
            .correlation(correlation).completion(done).acquire(acquire).release(release);
        if barrier {
            packet = packet.barrier();
        }
        let Decoded::KernelDispatch(read) = packet.encode().decode() else {
            return Err(TestCaseError::fail("not a kernel dispatch"));
        };
        prop_assert_eq!(read.kernel_object(), kernel);
        prop_assert_eq!(read.kernarg_address(), kernarg);
        prop_assert_eq!(read.grid_size(), grid);
        prop_assert_eq!(read.workgroup_size(), workgroup);
        prop_assert_eq!(read.private_segment_bytes(), private);
        prop_assert_eq!(read.group_segment_bytes(), lds);
        prop_assert_eq!(read.correlation_id(), correlation);
        prop_assert_eq!(read.completion_signal(), done);
        prop_assert_eq!(read.header().acquire_scope(), acquire);
        prop_assert_eq!(read.header().release_scope(), release);
        prop_assert_eq!(read.header().has_barrier(), barrier);
    }

    #[test]
    fn barriers_keep_every_field(
        signals in prop::array::uniform5(signal()), done in signal(), scope in scope(),
    ) {
        let and = BarrierAnd::new(signals).completion(done).acquire(scope);
        let Decoded::BarrierAnd(read) = and.encode().decode() else {
            return Err(TestCaseError::fail("not a barrier-and"));
        };
        prop_assert_eq!((read.signals(), read.completion_signal()), (signals, done));
        let or = BarrierOr::new(signals).completion(done).release(scope);
        let Decoded::BarrierOr(read) = or.encode().decode() else {
            return Err(TestCaseError::fail("not a barrier-or"));
        };
        prop_assert_eq!((read.signals(), read.completion_signal()), (signals, done));
        prop_assert_eq!(read.header().release_scope(), scope);
    }

    #[test]
    fn vendor_and_agent_packets_keep_every_field(
        on in signal(), done in signal(), value: i64, mask: i64, condition in 0u32..4,
        function: u16, arguments: [u64; 4], result: u64, base in 1u64..1 << 40, dwords in 1u32..1 << 20,
    ) {
        let wait = BarrierValue::new(on, Condition(condition), value).mask(mask).completion(done);
        let Decoded::BarrierValue(read) = wait.encode().decode() else {
            return Err(TestCaseError::fail("not a barrier-value"));
        };
        prop_assert_eq!((read.signal(), read.value(), read.value_mask()), (on, value, mask));
        prop_assert_eq!(read.condition(), Condition(condition));

        let call = AgentDispatch::new(function, arguments).return_address(GpuAddr::new(result));
        let Decoded::AgentDispatch(read) = call.encode().decode() else {
            return Err(TestCaseError::fail("not an agent dispatch"));
        };
        prop_assert_eq!((read.function(), read.arguments()), (function, arguments));
        prop_assert_eq!(read.result().get(), result);

        let buffer = IndirectBuffer::new(GpuAddr::new(base << 2), dwords).unwrap();
        let Decoded::Pm4Ib(read) = Pm4Ib::new(buffer).encode().decode() else {
            return Err(TestCaseError::fail("not a pm4-ib"));
        };
        prop_assert_eq!(read.buffer(), Ok(buffer));
    }
}
