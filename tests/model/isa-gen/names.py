"""Mnemonics: from LLVM's spelling to the canonical one (gfx11's), and to the name of the enum's variant.

A gfx9 mnemonic is an alias of a gfx11 one only where the operation is the same: operands in the same
order, same result, same flags. Not aliases, though they look alike:
- ds_cmpst_* (data0 is the comparand, data1 the new value) and ds_cmpstore_* (the other way round);
- v_mad_*, v_mac_*, v_madak_*, v_madmk_*, v_mad_mix* (two roundings) and v_fma* (one);
- v_dot4_i32_i8, v_dot8_i32_i4 and the _iu8, _iu4 forms (whose neg bits choose signedness);
- v_div_fixup_legacy_f16, v_fma_legacy_f16, v_mad_legacy_*16 (gfx8's result in the high half) and the plain ones;
- buffer_wbinvl1, buffer_invl2, buffer_inv, buffer_wbl2 and buffer_gl0_inv, buffer_gl1_inv.
What differs by target within one name (which half of its register a 16-bit result leaves alone, what v_cmpx
writes) is in docs/ABI.md, "What is the same operation on different targets".
"""
import re

SUFFIX = re.compile(r"_(e32|e64|dpp8|dpp|sdwa|gfx10|gfx11)$")

EXACT = {
    "v_add_u32": "v_add_nc_u32", "v_sub_u32": "v_sub_nc_u32", "v_subrev_u32": "v_subrev_nc_u32",
    "v_add_i32": "v_add_nc_i32", "v_sub_i32": "v_sub_nc_i32",
    "v_add_u16": "v_add_nc_u16", "v_sub_u16": "v_sub_nc_u16",
    "v_add_i16": "v_add_nc_i16", "v_sub_i16": "v_sub_nc_i16",
    "v_addc_co_u32": "v_add_co_ci_u32", "v_subb_co_u32": "v_sub_co_ci_u32",
    "v_subbrev_co_u32": "v_subrev_co_ci_u32",
    "v_cvt_flr_i32_f32": "v_cvt_floor_i32_f32", "v_cvt_rpi_i32_f32": "v_cvt_nearest_i32_f32",
    "v_cvt_pkrtz_f16_f32": "v_cvt_pk_rtz_f16_f32",
    "v_cvt_pknorm_i16_f16": "v_cvt_pk_norm_i16_f16", "v_cvt_pknorm_u16_f16": "v_cvt_pk_norm_u16_f16",
    "v_cvt_pknorm_i16_f32": "v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_u16_f32": "v_cvt_pk_norm_u16_f32",
    "v_ffbh_u32": "v_clz_i32_u32", "v_ffbl_b32": "v_ctz_i32_b32", "v_ffbh_i32": "v_cls_i32",
    "v_mul_legacy_f32": "v_mul_dx9_zero_f32",
    "v_dot2c_f32_f16": "v_dot2acc_f32_f16",
    "s_ff1_i32_b32": "s_ctz_i32_b32", "s_ff1_i32_b64": "s_ctz_i32_b64",
    "s_flbit_i32_b32": "s_clz_i32_u32", "s_flbit_i32_b64": "s_clz_i32_u64",
    "s_flbit_i32": "s_cls_i32", "s_flbit_i32_i64": "s_cls_i32_i64",
}
# gfx908's and gfx90a's MFMA names to gfx942's. The bf16 ones without _1k take half as many values per
# register and are operations of their own.
MFMA = {
    "v_mfma_f32_16x16x16bf16_1k": "v_mfma_f32_16x16x16_bf16",
    "v_mfma_f32_16x16x16f16": "v_mfma_f32_16x16x16_f16",
    "v_mfma_f32_16x16x1f32": "v_mfma_f32_16x16x1_4b_f32",
    "v_mfma_f32_16x16x4bf16_1k": "v_mfma_f32_16x16x4_4b_bf16",
    "v_mfma_f32_16x16x4f16": "v_mfma_f32_16x16x4_4b_f16",
    "v_mfma_f32_16x16x4f32": "v_mfma_f32_16x16x4_f32",
    "v_mfma_f32_32x32x1f32": "v_mfma_f32_32x32x1_2b_f32",
    "v_mfma_f32_32x32x2f32": "v_mfma_f32_32x32x2_f32",
    "v_mfma_f32_32x32x4bf16_1k": "v_mfma_f32_32x32x4_2b_bf16",
    "v_mfma_f32_32x32x4f16": "v_mfma_f32_32x32x4_2b_f16",
    "v_mfma_f32_32x32x8bf16_1k": "v_mfma_f32_32x32x8_bf16",
    "v_mfma_f32_32x32x8f16": "v_mfma_f32_32x32x8_f16",
    "v_mfma_f32_4x4x1f32": "v_mfma_f32_4x4x1_16b_f32",
    "v_mfma_f32_4x4x4bf16_1k": "v_mfma_f32_4x4x4_16b_bf16",
    "v_mfma_f32_4x4x4f16": "v_mfma_f32_4x4x4_16b_f16",
    "v_mfma_f64_16x16x4f64": "v_mfma_f64_16x16x4_f64",
    "v_mfma_f64_4x4x4f64": "v_mfma_f64_4x4x4_4b_f64",
    "v_mfma_i32_16x16x4i8": "v_mfma_i32_16x16x4_4b_i8",
    "v_mfma_i32_32x32x4i8": "v_mfma_i32_32x32x4_2b_i8",
    "v_mfma_i32_4x4x4i8": "v_mfma_i32_4x4x4_16b_i8",
}
EXACT.update(MFMA)

SIZES = {"dword": "b32", "dwordx2": "b64", "dwordx3": "b96", "dwordx4": "b128", "dwordx8": "b256", "dwordx16": "b512"}
NARROW = {
    "load_ubyte": "load_u8", "load_sbyte": "load_i8", "load_ushort": "load_u16", "load_sshort": "load_i16",
    "store_byte": "store_b8", "store_short": "store_b16",
    "load_ubyte_d16": "load_d16_u8", "load_ubyte_d16_hi": "load_d16_hi_u8",
    "load_sbyte_d16": "load_d16_i8", "load_sbyte_d16_hi": "load_d16_hi_i8",
    "load_short_d16": "load_d16_b16", "load_short_d16_hi": "load_d16_hi_b16",
    "store_byte_d16_hi": "store_d16_hi_b8", "store_short_d16_hi": "store_d16_hi_b16",
}
ATOMICS = {
    "add": "add_u", "sub": "sub_u", "smin": "min_i", "umin": "min_u", "smax": "max_i", "umax": "max_u",
    "and": "and_b", "or": "or_b", "xor": "xor_b", "inc": "inc_u", "dec": "dec_u", "swap": "swap_b",
    "cmpswap": "cmpswap_b",
}


def strip(mnemonic):
    """Removes the encoding suffix that LLVM prints."""
    before = None
    while before != mnemonic:
        before, mnemonic = mnemonic, SUFFIX.sub("", mnemonic)
    return mnemonic


def canonical(mnemonic):
    """The canonical mnemonic of a stripped one."""
    m = mnemonic
    if m in EXACT:
        return EXACT[m]
    if m.startswith("v_dual_"):
        return canonical("v_" + m[len("v_dual_"):])
    found = re.match(r"v_(cmpx?)_tru_(f\d+)$", m)
    if found:
        return "v_%s_t_%s" % found.groups()
    found = re.match(r"(s|s_buffer)_load_(dword\w*)$", m)
    if found:
        return "%s_load_%s" % (found.group(1), SIZES[found.group(2)])
    found = re.match(r"(buffer|flat|global|scratch)_(load|store)_(dword\w*)$", m)
    if found:
        return "%s_%s_%s" % (found.group(1), found.group(2), SIZES[found.group(3)])
    found = re.match(r"(buffer|flat|global|scratch)_(\w+)$", m)
    if found and found.group(2) in NARROW:
        return "%s_%s" % (found.group(1), NARROW[found.group(2)])
    found = re.match(r"(t?buffer)_(load|store)_format_d16_(hi_)?(x|xy|xyz|xyzw)$", m)
    if found:
        return "%s_%s_d16_%sformat_%s" % (found.group(1), found.group(2), found.group(3) or "", found.group(4))
    found = re.match(r"(buffer|flat|global)_atomic_([a-z]+)(_x2)?$", m)
    if found and found.group(2) in ATOMICS:
        return "%s_atomic_%s%d" % (found.group(1), ATOMICS[found.group(2)], 64 if found.group(3) else 32)
    if m.startswith("ds_") and "src2" not in m:
        for old, new in (("ds_read2st64", "ds_load_2addr_stride64"), ("ds_read2", "ds_load_2addr"),
                         ("ds_write2st64", "ds_store_2addr_stride64"), ("ds_write2", "ds_store_2addr"),
                         ("ds_wrxchg2st64", "ds_storexchg_2addr_stride64"), ("ds_wrxchg2", "ds_storexchg_2addr"),
                         ("ds_wrxchg", "ds_storexchg"), ("ds_read", "ds_load"), ("ds_write", "ds_store")):
            if m.startswith(old + "_"):
                return new + m[len(old):]
    if m.startswith("s_"):
        for old, new in (("s_andn2", "s_and_not1"), ("s_orn2", "s_or_not1"),
                         ("s_andn1", "s_and_not0"), ("s_orn1", "s_or_not0")):
            if m.startswith(old + "_"):
                return new + m[len(old):]
    return m


def camel(mnemonic):
    """The variant's name."""
    return "".join(part[:1].upper() + part[1:] for part in mnemonic.split("_"))
