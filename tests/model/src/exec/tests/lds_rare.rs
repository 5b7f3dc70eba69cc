//! LDS operations with both operands in LDS, and the conditional exchange.

use super::*;

fn machine(address: u32) -> Machine<64> {
    let mut m = Machine::<64>::new(Target::Gfx906);
    m.fill(0, |_| address);
    m.wave.set_exec(1);
    for dword in 0..64 {
        m.lds.write_u32(4 * dword, 100 + dword);
    }
    m
}

#[test]
fn the_second_operand_lies_behind_the_first() {
    let mut m = machine(16 + 3); // the low two bits are ignored
    m.run(&[0xd900_0002, 0]); // ds_add_src2_u32 v0 offset:2: dwords 4 and 6
    assert_eq!((m.lds.read_u32(16), m.lds.read_u32(24)), (104 + 106, 106));
    let mut m = machine(16);
    m.lds.write_u32(16, !0);
    m.run(&[0xd90c_0002, 0]); // ds_max_src2_i32: -1 and 106
    assert_eq!(m.lds.read_u32(16), 106);
}

#[test]
fn the_distance_has_a_sign() {
    // offset:32767 is -1 dword: bit 14 is the sign.
    let mut m = machine(16);
    m.lds.write_u32(16, 2.0f32.to_bits());
    m.lds.write_u32(12, (-3.0f32).to_bits());
    m.run(&[0xd924_7fff, 0]); // ds_min_src2_f32 v0 offset:32767
    assert_eq!(f32::from_bits(m.lds.read_u32(16)), -3.0);
    // With bit 15 of the offset the address's bits 31:17 are the distance, 16:0 the place.
    let mut m = machine(0xffff << 17 | 16);
    m.run(&[0xd900_8000, 0]); // ds_add_src2_u32 v0 offset:32768
    assert_eq!(m.lds.read_u32(16), 104 + 103);
    let mut m = machine(3 << 17 | 16);
    m.run(&[0xd900_8000, 0]);
    assert_eq!(m.lds.read_u32(16), 104 + 107);
}

#[test]
fn wide_operands_are_whole_quadwords() {
    let mut m = machine(16);
    m.run(&[0xd99a_0002, 0]); // ds_write_src2_b64 v0 offset:2
    assert_eq!([16, 20].map(|at| m.lds.read_u32(at)), [106, 107]);
    let mut m = machine(16);
    m.lds.write_u64(16, 5);
    m.lds.write_u64(24, 3);
    m.run(&[0xd984_0002, 0]); // ds_rsub_src2_u64: B - A
    assert_eq!(m.lds.read_u64(16), -2i64 as u64);
}

#[test]
fn a_conditional_exchange_stores_what_has_its_top_bit_set() {
    for (target, words) in [
        (Target::Gfx906, [0xd8fc_0004, 0x0400_0200]),
        (Target::Gfx1100, [0xd9f8_0004, 0x0400_0200]),
    ] {
        let mut m = Machine::<64>::new(target);
        m.fill(0, |_| 11); // + 4, rounded down to a quadword: 8
        m.fill(2, |_| 0x8000_0005);
        m.fill(3, |_| 0x7fff_ffff);
        m.wave.set_exec(1);
        m.lds.write_u64(8, 7 << 32 | 6);
        m.run(&words); // ds_condxchg32_rtn_b64 v[4:5], v0, v[2:3] offset:4
        assert_eq!((m.wave.v[4][0], m.wave.v[5][0]), (6, 7), "{target}");
        assert_eq!(m.lds.read_u64(8), 7 << 32 | 5, "{target}");
    }
}
