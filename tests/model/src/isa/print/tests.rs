use super::*;

#[test]
fn text_is_close_to_llvm() {
    let p = |target, words: &[u32]| {
        print(target, if target == Target::Gfx1100 { 32 } else { 64 }, words, 0)
    };
    assert_eq!(
        p(Target::Gfx1100, &[0xdc51_0000, 0x0083_0001 | 0x0080_0000]),
        "scratch_load_b32 v0, v1, s3"
    );
    assert_eq!(
        p(Target::Gfx90a, &[0x0200_04f9, 0x2615_3001]),
        "v_add_f32_sdwa v0, -v1, |v2| clamp dst_sel:BYTE_0 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:DWORD"
    );
    assert_eq!(p(Target::Gfx1100, &[0xbfa2_fffe]), "s_cbranch_scc1 0xfffffffffffffffc");
    assert_eq!(p(Target::Gfx1100, &[0xffff_ffff]), ".long 0xffffffff");
}
