extern crate std;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::packet::{AtomicOp, Compare};
use crate::{Encode, GpuAddr};

const SRC: GpuAddr = GpuAddr::new(0x7f00_0010_0000);
const DST: GpuAddr = GpuAddr::new(0x7f00_0020_0000);
const FENCE: GpuAddr = GpuAddr::new(0x7f00_0060_0000);

fn words(packet: &impl Encode) -> Vec<u32> {
    let mut all = Vec::new();
    packet.emit(|part| all.extend_from_slice(part));
    assert_eq!(all.len(), packet.dwords());
    all
}

/// Encodes to `expected`, and decodes back to itself.
fn check(version: Version, packet: Packet, expected: &[u32]) {
    assert_eq!(words(&packet), expected);
    assert_eq!(Packet::decode(expected, version), Ok(packet));
}

#[test]
fn copy_fence_and_trap_match_the_worked_example() {
    // docs/ABI.md §SDMA worked examples, E9.
    let version = Version::V4_2;
    let copy = CopyLinear::new(version, SRC, DST, 4096).unwrap();
    let expected = [1, 0xfff, 0, 0x0010_0000, 0x7f00, 0x0020_0000, 0x7f00];
    check(version, Packet::CopyLinear(copy), &expected);
    let fence = Fence::new(version, FENCE, 1).unwrap();
    check(version, Packet::Fence(fence), &[5, 0x0060_0000, 0x7f00, 1]);
    check(version, Packet::Trap(Trap::new(7).unwrap()), &[6, 7]);
    let fence = Fence::new(Version::V6, FENCE, 1).unwrap();
    check(Version::V6, Packet::Fence(fence), &[0x0003_0005, 0x0060_0000, 0x7f00, 1]);
    assert_eq!(fence.snooped_system().encode()[0], 0x0053_0005);
}

#[test]
fn a_copy_in_rocrs_order_matches_the_worked_example() {
    // docs/ABI.md §SDMA worked examples, E10.
    let version = Version::V6;
    let poll = PollMem::new(FENCE, Compare::EQUAL, 0).unwrap();
    let expected = [0xb000_0008, 0x0060_0000, 0x7f00, 0, 0xffff_ffff, 0x0fff_0004];
    check(version, Packet::PollMem(poll), &expected);
    let stamp = Timestamp::global(FENCE).unwrap();
    check(version, Packet::Timestamp(stamp), &[0x20d, 0x0060_0000, 0x7f00]);
    check(version, Packet::HdpFlush(HdpFlush), &[8, 0, 0x8000_0000, 0, 0, 0]);
    let before = GcrReq::new(version, GcrReq::BEFORE_COPY).unwrap();
    check(version, Packet::GcrReq(before), &[0x111, 0, 0xc3c0_0000, 0, 0]);
    let copy = CopyLinear::new(version, SRC, DST, 64 << 20).unwrap();
    let expected = [1, 0x03ff_ffff, 0, 0x0010_0000, 0x7f00, 0x0020_0000, 0x7f00];
    check(version, Packet::CopyLinear(copy), &expected);
    let after = GcrReq::new(version, GcrReq::AFTER_COPY).unwrap();
    check(version, Packet::GcrReq(after), &[0x111, 0, 0x8040_0000, 0, 0]);
    let atomic = Atomic::new(AtomicOp::ADD_64, FENCE, u64::MAX).unwrap();
    let expected = [0x5e00_000a, 0x0060_0000, 0x7f00, !0, !0, 0, 0, 0];
    check(version, Packet::Atomic(atomic), &expected);
}

#[test]
fn a_broadcast_puts_every_field_in_place() {
    let copy = CopyBroadcast::new(Version::V4_2, SRC, [DST, FENCE], 4096).unwrap();
    let expected =
        [0x0800_0001, 0xfff, 0, 0x0010_0000, 0x7f00, 0x0020_0000, 0x7f00, 0x0060_0000, 0x7f00];
    check(Version::V4_2, Packet::CopyBroadcast(copy), &expected);
    assert!(CopyBroadcast::new(Version::V4_2, SRC, [DST; 2], (1 << 22) + 1).is_err());
    assert_eq!(Packets::new(&expected, Version::V6).count(), 1);
}

#[test]
fn fill_and_write_match_the_worked_example() {
    // docs/ABI.md §SDMA worked examples, E10.
    let version = Version::V4_2;
    let fill = ConstFill::new(version, FENCE, FillData::Dword(0xdead_beef), 4096).unwrap();
    let expected = [0x8000_000b, 0x0060_0000, 0x7f00, 0xdead_beef, 0xfff];
    check(version, Packet::ConstFill(fill), &expected);
    let write = WriteUntiled::new(FENCE, &[0xcafe_f00d]).unwrap();
    check(version, Packet::WriteUntiled(write), &[2, 0x0060_0000, 0x7f00, 0, 0xcafe_f00d]);
    // ROCr's count of the same fill, less four instead of less one, says the same.
    let rocr = [0x8000_000b, 0x0060_0000, 0x7f00, 0xdead_beef, 0xffc];
    assert_eq!(Packet::decode(&rocr, version), Ok(Packet::ConstFill(fill)));
}

#[test]
fn engines_refuse_the_fields_of_later_ones() {
    let v6 = Fence::new(Version::V6, FENCE, 1).unwrap().encode();
    assert!(matches!(
        Packet::decode(&v6, Version::V4_4_2),
        Err(Error::Reserved { dword: 0, bits: 0x3_0000, .. })
    ));
    let copy = CopyLinear::new(Version::V6, SRC, DST, 1 << 30).unwrap().encode();
    assert!(Packet::decode(&copy, Version::V4_4_0).is_ok());
    for version in [Version::V4_0, Version::V4_2, Version::V4_4_2] {
        let error = Packet::decode(&copy, version).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { value: 0x4000_0000, max: 0x40_0000, .. }));
        assert!(CopyLinear::new(version, SRC, DST, 1 << 22).unwrap().policies(1, 0).is_err());
        let gcr = GcrReq::new(version, GcrReq::AFTER_COPY);
        assert_eq!(gcr, Err(Error::NotOnVersion { packet: Op::GCR_REQ, version }));
    }
    assert!(CopyLinear::new(Version::V6, SRC, DST, 0).is_err());
}

#[test]
fn a_walk_ends_at_an_unknown_packet_and_goes_on_after_a_malformed_one() {
    let mut all = words(&Fence::new(Version::V4_2, FENCE, 1).unwrap());
    all[0] |= 1 << 16;
    all.extend([6, 7, 0, 14, 1, 2]);
    let mut packets = Packets::new(&all, Version::V4_2);
    assert!(matches!(packets.next(), Some(Err(Error::Reserved { .. }))));
    assert_eq!(packets.offset(), 4);
    assert_eq!(packets.next(), Some(Ok(Packet::Trap(Trap::new(7).unwrap()))));
    assert_eq!(packets.next().unwrap().unwrap().to_string(), "NOP skips 0 dwords");
    let error = packets.next().unwrap().unwrap_err();
    assert_eq!(error, Error::Unknown { op: Op { op: 14, sub_op: 0 }, word: 14 });
    assert_eq!(error.to_string(), "unknown packet opcode 14/0 (0x0000000e)");
    assert_eq!(packets.next(), None);
}

#[test]
fn truncated_packets_say_what_is_missing() {
    let data = [1, 2, 3];
    let write = words(&WriteUntiled::new(FENCE, &data).unwrap());
    let nop = words(&Nop::new(&data).unwrap());
    let copy = CopyLinear::new(Version::V6, SRC, DST, 1).unwrap().encode();
    for packet in [&write[..], &nop, &copy] {
        for cut in 1..packet.len() {
            let error = Packet::decode(&packet[..cut], Version::V6).unwrap_err();
            let needed = if packet == write && cut < 4 { 4 } else { packet.len() };
            assert_eq!(error, Error::Truncated { needed, found: cut });
        }
    }
}

#[test]
fn a_placement_never_crosses_the_end_and_keeps_one_dword_free() {
    const RING: u64 = 256;
    for write in (0..3 * RING).step_by(4) {
        for used in (0..RING).step_by(4).filter(|used| *used <= write) {
            for dwords in 1..63 {
                let placed = place(RING, write, write - used, dwords).unwrap();
                let bytes = dwords as u64 * 4;
                let Some(Placement { padding, start, end }) = placed else {
                    let left = RING - write % RING;
                    let padded = if bytes > left { left } else { 0 };
                    assert!(used + padded + bytes >= RING);
                    continue;
                };
                assert_eq!(start, write + padding as u64 * 4);
                assert_eq!(end, start + bytes);
                assert_eq!(start / RING, (end - 1) / RING, "crosses the end");
                assert!(end - (write - used) < RING, "overtakes the reader");
                assert!(padding == 0 || start % RING == 0);
            }
        }
    }
    assert_eq!(place(256, 0, 0, 64), Err(Error::BufferTooSmall { needed: 64, capacity: 63 }));
}

#[test]
fn an_indirect_buffer_ends_on_a_multiple_of_eight_dwords() {
    for position in 0..64 {
        let mut ring = [!0; 16];
        let mut builder = Builder::at(&mut ring[..], position);
        builder.indirect(Indirect::new(FENCE, 4).unwrap());
        assert_eq!((position + builder.dwords() as u64) % 8, 0);
        let dwords = builder.finish(Version::V6).unwrap();
        let last = Packets::new(&ring[..dwords], Version::V6).last().unwrap();
        assert!(matches!(last, Ok(Packet::Indirect(_))));
    }
}

#[test]
fn gfx900_gets_its_64_dwords() {
    let mut ring = [!0; 64];
    let mut builder = Builder::new(&mut ring[..]);
    builder.push(&Trap::new(1).unwrap());
    assert_eq!(builder.finish(Version::V4_0), Ok(64));
    let all: Vec<_> = Packets::new(&ring, Version::V4_0).map(Result::unwrap).collect();
    assert_eq!(
        all,
        [Packet::Trap(Trap::new(1).unwrap()), Packet::Nop(Nop::new(&[0; 61]).unwrap())]
    );
    let mut short = [0; 1];
    let mut builder = Builder::new(&mut short[..]);
    builder.push(&Trap::new(1).unwrap());
    let error = builder.finish(Version::V6);
    assert_eq!(error, Err(Error::BufferTooSmall { needed: 2, capacity: 1 }));
}

#[test]
fn copies_and_fills_of_any_size_are_cut_without_gap_or_overlap() {
    for version in Version::ALL {
        let most = version.max_copy_bytes();
        for bytes in [0, 1, 4095, most - 1, most, most + 1, 3 * most + 7] {
            let mut at = 0;
            for copy in copies(version, SRC, DST, bytes).unwrap() {
                assert_eq!(copy.src().get() - SRC.get(), at);
                assert_eq!(copy.dst().get() - DST.get(), at);
                at += u64::from(copy.bytes());
            }
            assert_eq!(at, bytes);
            let filled = fills(version, DST, FillData::Byte(3), bytes).unwrap();
            assert_eq!(filled.map(|fill| u64::from(fill.bytes())).sum::<u64>(), bytes);
        }
    }
    assert!(copies(Version::V6, SRC, GpuAddr::new(u64::MAX - 10), 11).is_err());
    assert!(fills(Version::V6, DST, FillData::Dword(0), 6).is_err());
}

/// What windows copy, byte by byte: source offset to destination offset.
fn run(windows: impl Iterator<Item = CopySubWindow>) -> Vec<(u64, u64)> {
    let mut moved = Vec::new();
    for window in windows {
        let ((src, dst), [width, rows, planes]) = (window.sides(), window.extent());
        let size = u64::from(window.element_bytes());
        let at = |side: Side, x: u32, y: u32, z: u32| {
            let [x0, y0, z0] = side.origin.map(u64::from);
            let (pitch, slice) = (u64::from(side.pitch), u64::from(side.slice));
            let elements =
                x0 + u64::from(x) + (y0 + u64::from(y)) * pitch + (z0 + u64::from(z)) * slice;
            side.base.get() + elements * size
        };
        for z in 0..planes {
            for y in 0..rows {
                for x in 0..width {
                    for byte in 0..size {
                        moved.push((at(src, x, y, z) + byte, at(dst, x, y, z) + byte));
                    }
                }
            }
        }
    }
    moved
}

#[test]
fn windows_wider_than_a_packet_are_cut() {
    let surface = |base| Surface { base, pitch_bytes: 1 << 19, slice_bytes: 1 };
    let extent = [(1 << 18) + 3, 1, 1];
    let all: Vec<_> = windows(Version::V4_2, surface(SRC), surface(DST), extent).unwrap().collect();
    // 2^14 elements of 16 bytes, then three bytes.
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].element_bytes(), all[0].extent()), (16, [1 << 14, 1, 1]));
    assert_eq!((all[1].element_bytes(), all[1].extent()), (1, [3, 1, 1]));
    assert!(
        windows(Version::V4_2, surface(SRC), surface(DST), [0, 5, 5]).unwrap().next().is_none()
    );
    let tall = [16, (1 << 14) + 1, 1];
    let rows: Vec<_> = windows(Version::V6, surface(SRC), surface(DST), tall).unwrap().collect();
    assert_eq!(rows.iter().map(|window| window.extent()[1]).collect::<Vec<_>>(), [1 << 14, 1]);
    let odd = Surface { base: SRC, pitch_bytes: (1 << 19) + 1, slice_bytes: 1 };
    assert!(matches!(
        windows(Version::V6, odd, odd, [1, 2, 1]).map(|_| ()),
        Err(Error::OutOfRange { field: "pitch", .. })
    ));
}

fn any_version() -> impl Strategy<Value = Version> {
    prop::sample::select(&Version::ALL[..])
}

fn addr(align: u64) -> impl Strategy<Value = GpuAddr> {
    any::<u64>().prop_map(move |raw| GpuAddr::new(raw & !(align - 1)))
}

fn side() -> impl Strategy<Value = Side> {
    let origin = (0u32..1 << 14, 0u32..1 << 14, 0u32..1 << 11);
    (addr(4), origin, 1u32..=1 << 19, 1u32..=1 << 28)
        .prop_map(|(base, (x, y, z), pitch, slice)| Side { base, origin: [x, y, z], pitch, slice })
}

proptest! {
    #[test]
    fn what_is_built_decodes_to_itself(
        version in any_version(),
        (a4, a8, a32, b) in (addr(4), addr(8), addr(32), any::<u64>()),
        bytes in 1u64..=1 << 22,
        (word, mask, operand, comparand) in any::<(u32, u32, u64, u64)>(),
        (function, count, op) in (0u8..7, 1u32..=0xF_FFFF, 0u8..0x80),
        (interval, retries) in any::<(u16, u16)>(),
        data in prop::collection::vec(any::<u32>(), 1..9),
        (src, dst) in (side(), side()),
        extent in (1u32..=1 << 14, 1u32..=1 << 14, 1u32..=1 << 11),
        (element, policy, byte) in (0u8..=4, 0u8..8, any::<u8>()),
        control in 0u32..1 << 19,
    ) {
        let policy = if version.is_v6() { policy } else { 0 };
        let atomic = Atomic::new(AtomicOp(op), a8, operand).unwrap().comparand(comparand);
        let extent = [extent.0, extent.1, extent.2];
        let mut all = vec![
            Packet::CopyLinear(CopyLinear::new(version, a4, GpuAddr::new(b), bytes).unwrap()
                .policies(policy, policy / 2).unwrap()),
            Packet::CopyBroadcast(
                CopyBroadcast::new(version, a4, [a8, GpuAddr::new(b)], bytes).unwrap()
            ),
            Packet::CopySubWindow(CopySubWindow::new(version, element, src, dst, extent).unwrap()
                .policies(policy, policy / 2).unwrap()),
            Packet::ConstFill(ConstFill::new(version, GpuAddr::new(b), FillData::Byte(byte), bytes)
                .unwrap().policy(policy).unwrap()),
            Packet::ConstFill(ConstFill::new(version, a4, FillData::Dword(word),
                bytes.next_multiple_of(4)).unwrap()),
            Packet::WriteUntiled(WriteUntiled::new(a4, &data).unwrap()),
            Packet::Nop(Nop::new(&data).unwrap()),
            Packet::Indirect(Indirect::new(a32, count).unwrap().save_area(a4)),
            Packet::Fence(Fence::new(version, a4, word).unwrap().snooped_system()),
            Packet::Trap(Trap::new(word >> 4).unwrap()),
            Packet::PollMem(PollMem::new(a4, Compare(function), word).unwrap().mask(mask)
                .pace(interval, retries)),
            Packet::HdpFlush(HdpFlush),
            Packet::CondExe(CondExe::new(a4, word, count & 0x3FFF).unwrap()),
            Packet::Atomic(atomic),
            Packet::Atomic(atomic.repeat(interval)),
            Packet::Timestamp(Timestamp::global(a32).unwrap()),
            Packet::Timestamp(Timestamp::local(a32).unwrap()),
        ];
        if version.is_v6() {
            let control = crate::packet::gfx11::Gcr::from_bits_retain(control);
            let high = GpuAddr::new(b & 0xFFFF_FFFF_FF80);
            all.push(Packet::GcrReq(
                GcrReq::new(version, control).unwrap().range(high, high).unwrap(),
            ));
        }
        let mut buffer = vec![0; 256];
        let mut builder = Builder::new(&mut buffer[..]);
        all.iter().for_each(|packet| {
            builder.push(packet);
        });
        let dwords = builder.finish(Version::V6).unwrap();
        let decoded: Result<Vec<_>, _> = Packets::new(&buffer[..dwords], version).collect();
        prop_assert_eq!(decoded, Ok(all));
    }

    #[test]
    fn any_dwords_decode_without_panic_and_encode_to_the_same_packet(
        version in any_version(),
        words in prop::collection::vec(
            prop_oneof![any::<u32>(), Just(0), 0u32..32, (0u32..32, 0u32..8, 0u32..4)
                .prop_map(|(op, sub, top)| op | sub << 8 | top << 30)],
            0..64,
        ),
    ) {
        let mut steps = 0;
        for packet in Packets::new(&words, version) {
            steps += 1;
            let Ok(packet) = packet else { continue };
            prop_assert!(!packet.to_string().is_empty());
            let again = super::tests::words(&packet);
            prop_assert_eq!(Packet::decode(&again, version), Ok(packet));
        }
        prop_assert!(steps <= words.len());
    }

    #[test]
    fn windows_move_exactly_the_bytes_asked_for(
        version in any_version(),
        (src, dst) in (0u64..64, 0u64..64),
        (src_pitch, dst_pitch) in (1u64..80, 1u64..80),
        (src_slice, dst_slice) in (1u64..400, 1u64..400),
        extent in (0u64..70, 0u64..4, 0u64..3),
    ) {
        let surface = |base, pitch_bytes, slice_bytes| Surface { base, pitch_bytes, slice_bytes };
        let from = GpuAddr::new(SRC.get() + src);
        let to = GpuAddr::new(DST.get() + dst);
        let extent = [extent.0, extent.1, extent.2];
        let windows = windows(
            version, surface(from, src_pitch, src_slice), surface(to, dst_pitch, dst_slice), extent,
        ).unwrap();
        let mut moved = run(windows);
        let mut expected = Vec::new();
        for z in 0..extent[2] {
            for y in 0..extent[1] {
                for x in 0..extent[0] {
                    expected.push((
                        from.get() + x + y * src_pitch + z * src_slice,
                        to.get() + x + y * dst_pitch + z * dst_slice,
                    ));
                }
            }
        }
        moved.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(moved, expected);
    }
}
