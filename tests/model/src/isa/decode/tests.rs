use super::super::ir::SrcKind;
use super::*;

fn one(target: Target, words: &[u32]) -> (Inst, Pools) {
    let mut pools = Pools::default();
    let wave = if target.is_gfx9() { 64 } else { 32 };
    let decoded = decode(target, wave, words, &mut pools).unwrap();
    (decoded.inst, pools)
}

#[test]
fn an_unused_vop3_source_is_ignored() {
    // v_add_f32_e64 v64, v32, v96 with src2 = 0x80, as a current compiler writes it.
    let (inst, _) = one(Target::Gfx1100, &[0xd503_0040, 0x0202_c120]);
    assert_eq!(inst.op, Op::VAddF32);
    assert_eq!(inst.words, 2);
    assert_eq!(inst.vgprs, 97);
    assert_eq!(inst.src[0], Src::v(32));
    assert_eq!(inst.src[1], Src::v(96));
}

#[test]
fn the_same_inline_constant_has_bits_by_operand_type() {
    let value = |target, words: &[u32]| {
        let (inst, pools) = one(target, words);
        let SrcKind::K(index) = inst.src[0].kind() else { panic!("{inst:?}") };
        pools.consts[index as usize]
    };
    // v_add_f32, v_add_f16, s_mov_b64 of 1.0
    assert_eq!(value(Target::Gfx90a, &[0x0200_02f2]), 0x3f80_0000);
    assert_eq!(value(Target::Gfx90a, &[0x3e00_02f2]), 0x3c00);
    assert_eq!(value(Target::Gfx90a, &[0xbe80_01f2]), 0x3ff0_0000_0000_0000);
    // s_mov_b64 -1
    assert_eq!(value(Target::Gfx90a, &[0xbe80_01c1]), u64::MAX);
    // v_add_f64 (gfx11 VOP3) with a literal: the high word
    assert_eq!(
        value(Target::Gfx1100, &[0xd727_0000, 0x0002_04ff, 0x4024_0000]),
        0x4024_0000_0000_0000
    );
}

#[test]
fn m0_and_null_have_one_number_on_every_target() {
    // s_mov_b32 s0, m0
    assert_eq!(one(Target::Gfx90a, &[0xbe80_007c]).0.src[0], Src::s(sgpr::M0));
    assert_eq!(one(Target::Gfx1100, &[0xbe80_007d]).0.src[0], Src::s(sgpr::M0));
    assert_eq!(one(Target::Gfx1100, &[0xbe80_007c]).0.src[0], Src::s(sgpr::NULL));
    // s_mov_b32 null, s0
    assert_eq!(one(Target::Gfx1100, &[0xbefc_0000]).0.dst, u16::from(sgpr::SINK));
}

#[test]
fn truncated_words_say_how_many_are_missing() {
    let mut pools = Pools::default();
    let error = decode(Target::Gfx1100, 32, &[0xd503_0040], &mut pools).unwrap_err();
    assert_eq!(error, DecodeError::Truncated { missing: 1 });
    let error = decode(Target::Gfx1100, 32, &[], &mut pools).unwrap_err();
    assert_eq!(error, DecodeError::Truncated { missing: 1 });
}
