//! Converting buffer accesses, and loads to LDS.

use super::*;
use crate::exec::context::Trouble;

/// R, G, B, A into X, Y, Z, W.
const IDENTITY: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;

/// s[8:11]: a buffer at DATA.
fn descriptor<const N: usize>(m: &mut Machine<N>, stride: u32, records: u32, word3: u32) {
    let words = [DATA as u32, (DATA >> 32) as u32 | stride << 16, records, word3];
    for (reg, word) in words.into_iter().enumerate() {
        m.wave.set_s32(8 + reg as u8, word);
    }
}

fn rows<const N: usize>(m: &Machine<N>, lane: usize) -> [u32; 4] {
    [4, 5, 6, 7].map(|reg| m.wave.v[reg][lane])
}

fn floats(words: [u32; 4]) -> [f32; 4] {
    words.map(f32::from_bits)
}

#[test]
fn a_gfx9_descriptor_says_format_and_order() {
    let mut m = gfx90a();
    m.fill(0, |lane| lane);
    m.put(DATA, &[0xff80_3300, 0x0102_0304]);
    // 8_8_8_8 unorm: data format 10, number format 0.
    descriptor(&mut m, 4, 2, IDENTITY | 10 << 15);
    m.run(&[0xe00c_2000, 0x8002_0400]); // buffer_load_format_xyzw v[4:7], v0, s[8:11], 0 idxen
    assert_eq!(floats(rows(&m, 0)), [0.0, 0.2, 128.0 / 255.0, 1.0]);
    assert_eq!(rows(&m, 2), [0; 4], "out of range");
    // uint, in the order A, 1, 0, R.
    descriptor(&mut m, 4, 2, 7 | 1 << 3 | 4 << 9 | 10 << 15 | 4 << 12);
    m.run(&[0xe00c_2000, 0x8002_0400]);
    assert_eq!(rows(&m, 1), [1, 1, 0, 4]);
    assert_eq!(rows(&m, 2), [0, 1, 0, 0], "a constant one is one out of range too");
    // 32_32 sint has no third component.
    descriptor(&mut m, 8, 1, IDENTITY | 11 << 15 | 5 << 12);
    m.run(&[0xe00c_2000, 0x8002_0400]);
    assert_eq!(rows(&m, 0), [0xff80_3300, 0x0102_0304, 0, 0]);
    // No format: the buffer of nothing.
    descriptor(&mut m, 8, 1, IDENTITY);
    m.fill(4, |_| 9);
    m.run(&[0xe00c_2000, 0x8002_0400]);
    assert_eq!(rows(&m, 0), [0; 4]);
}

#[test]
fn a_gfx11_descriptor_has_one_format_number() {
    let mut m = gfx11();
    m.fill(0, |lane| lane);
    m.put(DATA, &[0x8000_7fff, 0x3c00_c000]);
    // 16_16 snorm is 24.
    descriptor(&mut m, 4, 1, IDENTITY | 24 << 12);
    m.run(&[0xe00c_0000, 0x8082_0400]);
    assert_eq!(floats(rows(&m, 0)), [1.0, -1.0, 0.0, 0.0]);
    // 16_16_16_16 float is 57.
    descriptor(&mut m, 8, 1, IDENTITY | 57 << 12);
    m.run(&[0xe00c_0000, 0x8082_0400]);
    assert_eq!(floats([rows(&m, 0)[2], rows(&m, 0)[3], 0, 0])[..2], [-2.0, 1.0]);
    // Stores: two components of four, the others get the first.
    descriptor(&mut m, 8, 1, IDENTITY | 57 << 12);
    m.fill(4, |_| 1.0f32.to_bits());
    m.fill(5, |_| (-2.0f32).to_bits());
    m.run(&[0xe014_0000, 0x8082_0400]); // buffer_store_format_xy v[4:5], v0, s[8:11], 0 idxen
    assert_eq!([0, 4].map(|at| m.word(DATA + at)), [0xc000_3c00, 0x3c00_3c00]);
}

#[test]
fn typed_instructions_bring_their_own_format() {
    let mut m = gfx90a();
    m.fill(0, |lane| lane);
    descriptor(&mut m, 4, 64, 0); // neither format nor order
    m.put(DATA, &[0x8000_7fff]);
    // tbuffer_load_format_xyzw format:[BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_SINT]
    m.run(&[0xeaa9_a000, 0x8002_0400]);
    assert_eq!(rows(&m, 0), [32767, -32768i32 as u32, 0, 0]);
    for (reg, value) in [(4, 1.0f32), (5, 0.5), (6, -1.0)] {
        m.fill(reg, |_| value.to_bits());
    }
    // tbuffer_store_format_xyz format:[BUF_DATA_FORMAT_2_10_10_10,BUF_NUM_FORMAT_UNORM]: W gets X.
    m.run(&[0xe84b_2000, 0x8002_0400]);
    assert_eq!(m.word(DATA), 3 << 30 | 512 << 10 | 1023);
    let mut m = gfx11();
    m.fill(0, |lane| lane);
    descriptor(&mut m, 4, 64, 0);
    m.put(DATA, &[0x3c0 | 0x7c0 << 11 | 0x1c0 << 22]);
    // tbuffer_load_format_xyzw format:[BUF_FMT_10_11_11_FLOAT]
    m.run(&[0xe8f1_8000, 0x8082_0400]);
    assert_eq!(floats(rows(&m, 0)), [1.0, f32::INFINITY, 0.5, 0.0]);
}

#[test]
fn half_data_packs_two_components_per_register() {
    let mut m = gfx11();
    m.fill(0, |lane| lane);
    descriptor(&mut m, 4, 64, 0);
    m.put(DATA, &[0xff00_00ff]);
    // tbuffer_load_d16_format_xyzw format:[BUF_FMT_8_8_8_8_UNORM]
    m.run(&[0xe955_8000, 0x8082_0400]);
    assert_eq!([4, 5].map(|reg| m.wave.v[reg][0]), [0x0000_3c00, 0x3c00_0000]);
    m.fill(4, |_| 0xffff_4000);
    m.run(&[0xe86e_0000, 0x8082_0400]); // tbuffer_store_d16_format_x format:[BUF_FMT_16_FLOAT]
    assert_eq!(m.word(DATA), 0xff00_4000);
    let mut m = gfx90a();
    m.fill(0, |lane| lane);
    // 16_16_16_16 uint.
    descriptor(&mut m, 8, 1, IDENTITY | 12 << 15 | 4 << 12);
    m.put(DATA, &[0x2222_1111, 0x4444_3333]);
    m.fill(4, |_| !0);
    m.fill(5, |_| !0);
    m.run(&[0xe028_2000, 0x8002_0400]); // buffer_load_format_d16_xyz v[4:5], v0, s[8:11], 0 idxen
    assert_eq!([4, 5].map(|reg| m.wave.v[reg][0]), [0x2222_1111, 0xffff_3333]);
    m.run(&[0xe098_2000, 0x8002_0400]); // buffer_load_format_d16_hi_x keeps the low half
    assert_eq!(m.wave.v[4][0], 0x1111_1111);
    m.fill(4, |_| 0xaaaa_bbbb);
    m.run(&[0xe034_2000, 0x8002_0400]); // buffer_store_format_d16_xy: Z and W get X
    assert_eq!([0, 4].map(|at| m.word(DATA + at)), [0xaaaa_bbbb, 0xbbbb_bbbb]);
    m.run(&[0xe09c_2000, 0x8002_0400]); // buffer_store_format_d16_hi_x
    assert_eq!(m.word(DATA), 0xaaaa_aaaa);
}

#[test]
fn converting_accesses_are_in_range_as_a_whole() {
    let mut m = gfx90a();
    m.fill(0, |_| 0);
    m.put(DATA, &[1, 2, 3, 4]);
    // 32_32_32_32 uint, 12 bytes.
    descriptor(&mut m, 0, 12, IDENTITY | 14 << 15 | 4 << 12);
    m.run(&[0xe00c_2000, 0x8002_0400]);
    assert_eq!(rows(&m, 0), [0; 4]);
    m.fill(4, |_| 9);
    m.run(&[0xe010_2000, 0x8002_0400]); // buffer_store_format_x
    assert_eq!(m.word(DATA), 1);
    descriptor(&mut m, 0, 16, IDENTITY | 14 << 15 | 4 << 12);
    m.run(&[0xe010_2000, 0x8002_0400]);
    assert_eq!([0, 4, 8, 12].map(|at| m.word(DATA + at)), [9; 4], "X everywhere");
}

#[test]
fn buffer_loads_to_lds_place_a_dword_per_lane_behind_m0() {
    let mut m = gfx90a();
    descriptor(&mut m, 0, 64, IDENTITY | 1 << 15);
    m.put(DATA, &[0x8382_8180, 0x8786_8584]);
    m.wave.set_s32(sgpr::M0, 0xabc0_0010);
    m.wave.set_exec(0b101);
    m.lds.write_u32(0x18, 7);
    // buffer_load_ubyte off, s[8:11], 0 offset:4 lds: the offset counts on both sides
    m.run(&[0xe041_0004, 0x8002_0000]);
    assert_eq!([0x14, 0x18, 0x1c].map(|at| m.lds.read_u32(at)), [0x84, 7, 0x84]);
    m.fill(0, |lane| lane);
    m.run(&[0xe001_2000, 0x8002_0000]); // buffer_load_format_x v0, s[8:11], 0 idxen lds
    assert_eq!(f32::from_bits(m.lds.read_u32(0x10)), 128.0 / 255.0);
    let mut m = gfx11();
    descriptor(&mut m, 0, 64, 3 << 28);
    m.put(DATA, &[0x8382_8180, 0x8786_8584]);
    m.wave.set_s32(sgpr::M0, 0x20);
    m.run(&[0xe0b8_0004, 0x8002_0000]); // buffer_load_lds_i8 off, s[8:11], 0 offset:4
    assert_eq!([0x24, 0x28].map(|at| m.lds.read_u32(at)), [0xffff_ff84; 2]);
    m.run(&[0xe0c4_0000, 0x8002_0000]); // buffer_load_lds_b32 off, s[8:11], 0
    assert_eq!(m.lds.read_u32(0x20), 0x8382_8180);
    descriptor(&mut m, 0, 64, IDENTITY | 21 << 12 | 3 << 28);
    m.run(&[0xe0c8_0000, 0x8002_0000]); // buffer_load_lds_format_x, 32 sint
    assert_eq!(m.lds.read_u32(0x24), 0x8382_8180);
}

#[test]
fn global_and_scratch_loads_to_lds_use_m0_in_dwords() {
    let mut m = Machine::<64>::new(Target::Gfx942);
    m.put(DATA, &[1, 2, 0x80, 4]);
    m.wave.set_s32(sgpr::M0, 0x13); // the low two bits are ignored
    m.wave.set_exec(0b11);
    m.addresses(2, |lane| DATA + 4 * lane);
    m.run(&[0xdca8_8004, 0x007f_0002]); // global_load_lds_dword v[2:3], off offset:4
    assert_eq!([0x14, 0x18].map(|at| m.lds.read_u32(at)), [2, 0x80]);
    m.wave.set_s64(4, DATA);
    m.fill(0, |_| 8);
    m.run(&[0xdc9c_8000, 0x0004_0000]); // global_load_lds_sbyte v0, s[4:5]
    assert_eq!(m.lds.read_u32(0x10), 0xffff_ff80);
    // Scratch is lane-interleaved dwords.
    m.put(SCRATCH, &[11, 12]);
    m.put(SCRATCH + 4 * 64, &[0x0102_0304]);
    m.fill(0, |_| 0);
    m.run(&[0xdca8_6000, 0x007f_0000]); // scratch_load_lds_dword v0, off
    assert_eq!([0x10, 0x14].map(|at| m.lds.read_u32(at)), [11, 12]);
    m.wave.set_s32(2, 4);
    m.run(&[0xdca0_4002, 0x0002_0000]); // scratch_load_lds_ushort off, s2 offset:2
    assert_eq!(m.lds.read_u32(0x12), 0x0102);
    let mut m = Machine::<64>::new(Target::Gfx906);
    m.put(DATA, &[5, 6]);
    m.addresses(2, |_| DATA);
    m.run(&[0xdc50_a000, 0x007f_0002]); // global_load_dword v[2:3], off lds
    assert_eq!(m.lds.read_u32(4), 5);
    // Two dwords per lane do not go to LDS.
    let wide = m.run(&[0xdc54_a000, 0x007f_0002]);
    assert_eq!(wide, Stop::Halted(Some(Trouble::Illegal)));
}
