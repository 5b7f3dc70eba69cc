//! The worked examples of docs/ABI.md §PM4 worked examples, dword for dword: two whole launches,
//! built and decoded.

use pm4::packet::{
    Compare, DispatchDirect, EventWrite, PredExec, SetReg, WaitOn, WaitRegMem, gfx9, gfx11,
};
use pm4::reg::{self, DispatchInitiator, Reg};
use pm4::{Encode, GpuAddr, IbBuilder, Packets, ReleaseMem, Target};

const FENCE: GpuAddr = GpuAddr::new(0x7f00_0060_0000);

/// E6: gfx90a, 4096 groups of 256, a kernel that wants only its arguments.
#[rustfmt::skip]
const E6: [u32; 58] = [
    0xc005_5802, 0x28c4_0000, 0xffff_ffff, 0x00ff_ffff, 0, 0, 0xa, // ACQUIRE_MEM
    0xc002_7600, 0x20c, 0x2010, 0x7f, // PGM_LO, PGM_HI
    0xc002_7600, 0x212, 0x00ac_0083, 0x84, // RSRC1, RSRC2
    0xc001_7600, 0x22d, 7, // RSRC3
    0xc001_7600, 0x218, 0, // TMPRING_SIZE
    0xc003_7600, 0x21b, 0, 0, 0, // RESTART
    0xc001_7600, 0x215, 0, // RESOURCE_LIMITS
    0xc008_7600, 0x204, 0, 0, 0, 0x100, 1, 1, 0, 0, // START, NUM_THREAD, two enables
    0xc002_7600, 0x240, 0x0030_0000, 0x7f00, // USER_DATA
    0xc003_1502, 0x1000, 1, 1, 5, // DISPATCH_DIRECT
    0xc000_4600, 0x407, // CS_PARTIAL_FLUSH
    0xc006_4900, 0x0002_8514, 0x4300_0000, 0x0060_0000, 0x7f00, 1, 0, 0, // RELEASE_MEM
];

/// E7: the same on gfx1100, in waves of 32.
#[rustfmt::skip]
const E7: [u32; 63] = [
    0xc006_5800, 0, 0xffff_ffff, 0x01ff_ffff, 0, 0, 0xa, 0xc3f1, // ACQUIRE_MEM
    0xc006_7600, 0x20c, 0x2010, 0x7f, 0, 0, 0, 0, // PGM, PKT_ADDR, SCRATCH_BASE
    0xc002_7600, 0x212, 0x60ac_0001, 0x84, // RSRC1, RSRC2
    0xc001_7600, 0x228, 0, // RSRC3
    0xc001_7600, 0x218, 0, // TMPRING_SIZE
    0xc003_7600, 0x21b, 0, 0, 0, // RESTART
    0xc001_7600, 0x215, 0, // RESOURCE_LIMITS
    0xc008_7600, 0x204, 0, 0, 0, 0x100, 1, 1, 0, 0, // START, NUM_THREAD, two enables
    0xc002_7600, 0x240, 0x0030_0000, 0x7f00, // USER_DATA
    0xc003_1502, 0x1000, 1, 1, 0x8005, // DISPATCH_DIRECT
    0xc000_4600, 0x407, // CS_PARTIAL_FLUSH
    0xc006_4900, 0x0070_f514, 0x4300_0000, 0x0060_0000, 0x7f00, 1, 0, 0, // RELEASE_MEM
];

/// Appends `SET_SH_REG`.
fn set(ib: &mut IbBuilder<&mut [u32]>, first: Reg, values: &[u32]) {
    ib.push(&SetReg::sh(first, values).unwrap());
}

/// The middle part, which is the same on both targets.
fn middle(ib: &mut IbBuilder<&mut [u32]>, initiator: DispatchInitiator) {
    use reg::gfx9::*;
    set(ib, COMPUTE_TMPRING_SIZE, &[0]);
    set(ib, COMPUTE_RESTART_X, &[0; 3]);
    set(ib, COMPUTE_RESOURCE_LIMITS, &[0]);
    set(ib, COMPUTE_START_X, &[0, 0, 0, 256, 1, 1, 0, 0]);
    set(ib, COMPUTE_USER_DATA_0, &[0x0030_0000, 0x7f00]);
    ib.push(&DispatchDirect::new([4096, 1, 1], initiator));
    ib.push(&EventWrite::CS_PARTIAL_FLUSH);
}

/// The size field of ACQUIRE_MEM, in which other drivers fill more than the eight bits there are.
fn without_size(words: &[u32]) -> Vec<u32> {
    let mut words = words.to_vec();
    words.iter_mut().skip(3).take(1).for_each(|word| *word &= 0xff);
    words
}

#[test]
fn a_gfx90a_launch_matches_the_worked_example() {
    let mut words = [0; 58];
    let mut ib = IbBuilder::new(&mut words[..]);
    ib.push(&gfx9::AcquireMem::new(gfx9::AcquireCache::ALL));
    set(&mut ib, reg::gfx9::COMPUTE_PGM_LO, &[0x2010, 0x7f]);
    let rsrc1 = reg::gfx9::ComputePgmRsrc1(0).set_vgprs(3).and_then(|r| r.set_sgprs(2));
    let rsrc1 = rsrc1.and_then(|r| r.set_float_mode(0xC0)).unwrap();
    let rsrc1 = rsrc1.set_dx10_clamp(true).set_ieee_mode(true);
    let rsrc2 = reg::gfx9::ComputePgmRsrc2(0).set_user_sgpr(2).unwrap().set_tgid_x_en(true);
    set(&mut ib, reg::gfx9::COMPUTE_PGM_RSRC1, &[rsrc1.0, rsrc2.0]);
    let rsrc3 = reg::gfx9::gfx90a::ComputePgmRsrc3(0).set_accum_offset(7).unwrap();
    set(&mut ib, reg::gfx9::gfx90a::COMPUTE_PGM_RSRC3, &[rsrc3.0]);
    use DispatchInitiator as I;
    middle(&mut ib, I::COMPUTE_SHADER_EN | I::FORCE_START_AT_000);
    let cache = gfx9::ReleaseCache::TC_WB | gfx9::ReleaseCache::TC;
    ib.push(&ReleaseMem::gfx9(cache).write_64(FENCE, 1).unwrap().confirm());
    assert_eq!(ib.end(), Ok(58));
    assert_eq!(words.to_vec(), without_size(&E6));
}

#[test]
fn a_gfx1100_launch_matches_the_worked_example() {
    let mut words = [0; 63];
    let mut ib = IbBuilder::new(&mut words[..]);
    ib.push(&gfx11::AcquireMem::new(gfx11::Gcr::ALL));
    set(&mut ib, reg::gfx11::COMPUTE_PGM_LO, &[0x2010, 0x7f, 0, 0, 0, 0]);
    let rsrc1 = reg::gfx11::ComputePgmRsrc1(0).set_vgprs(1).unwrap().set_float_mode(0xC0).unwrap();
    let rsrc1 = rsrc1.set_dx10_clamp(true).set_ieee_mode(true);
    let rsrc1 = rsrc1.set_wgp_mode(true).set_mem_ordered(true);
    let rsrc2 = reg::gfx11::ComputePgmRsrc2(0).set_user_sgpr(2).unwrap().set_tgid_x_en(true);
    set(&mut ib, reg::gfx11::COMPUTE_PGM_RSRC1, &[rsrc1.0, rsrc2.0]);
    set(&mut ib, reg::gfx11::COMPUTE_PGM_RSRC3, &[0]);
    use DispatchInitiator as I;
    middle(&mut ib, I::COMPUTE_SHADER_EN | I::FORCE_START_AT_000 | I::CS_W32_EN);
    use gfx11::ReleaseCache as C;
    let cache = C::GLM_WB | C::GLM_INV | C::GLV_INV | C::GL1_INV | C::GL2_INV | C::GL2_WB;
    ib.push(&ReleaseMem::gfx11(cache | C::SEQ_FORWARD).write_64(FENCE, 1).unwrap().confirm());
    assert_eq!(ib.end(), Ok(63));
    assert_eq!(words.to_vec(), without_size(&E7));
}

#[test]
fn worked_launches_decode_to_text_with_every_register_by_name() {
    for (words, target, expected) in [
        (&E6[..], Target::Gfx90a, include_str!("worked_gfx90a.txt")),
        (&E7[..], Target::Gfx11, include_str!("worked_gfx1100.txt")),
    ] {
        let mut packets = Packets::new(words);
        let mut text = String::new();
        while let Some(packet) = {
            let at = packets.offset();
            packets.next().map(|p| (at, p))
        } {
            let (at, packet) = packet;
            text += &format!("{:#06x} {}\n", at * 4, packet.unwrap().on(target));
        }
        assert_eq!(text, expected, "{text}");
    }
}

#[test]
fn worked_launches_encode_to_the_dwords_they_were_decoded_from() {
    for words in [&E6[..], &E7[..]] {
        let mut again = Vec::new();
        for packet in Packets::new(words) {
            packet.unwrap().emit(|part| again.extend_from_slice(part));
        }
        assert_eq!(again, without_size(words));
    }
}

#[test]
fn a_wait_and_a_predicate_match_the_worked_examples() {
    let wait = WaitRegMem::new(WaitOn::Memory(FENCE), Compare::GREATER_EQUAL, 5).unwrap();
    let words = [0xc005_3c00, 0x15, 0x0060_0000, 0x7f00, 5, 0xffff_ffff, 4];
    assert_eq!(wait.encode(), words);
    assert_eq!(WaitRegMem::decode(&words), Ok(wait));
    let predicate = PredExec::new(1, 8);
    assert_eq!(PredExec::decode(&[0xc000_2300, 0x0100_0008]), Ok(predicate));
}
