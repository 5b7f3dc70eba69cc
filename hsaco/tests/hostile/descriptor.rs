//! Kernel descriptors and their symbols.

use hsaco::{DescriptorProblem, Error};

use crate::patch::{Patch, assert_refused};

const KD: &str = "vadd.kd";

fn set(name: &str, at: usize, value: &[u8]) -> Patch {
    let patch = Patch::of(name).without_sections();
    let place = patch.descriptor(KD);
    patch.set(place + at, value)
}

macro_rules! assert_kernel {
    ($patch:expr, $pattern:pat $(if $guard:expr)?) => {
        assert_refused!($patch, Error::Kernel { problem: $pattern, .. } $(if $guard)?)
    };
}

#[test]
fn a_descriptor_symbol_must_be_an_object_of_64_bytes() {
    for size in [0, 63, 65] {
        let patch = Patch::vadd().set_symbol_size(KD, size);
        assert_kernel!(patch, DescriptorProblem::SymbolKind { bytes, .. } if bytes == size);
    }
    let patch = Patch::vadd();
    let info = patch.symbol(KD) + 4;
    let function = patch.set(info, &[0x12]);
    assert_kernel!(function, DescriptorProblem::SymbolKind { kind: 2, .. });
}

#[test]
fn a_descriptor_symbol_must_be_defined() {
    let patch = Patch::vadd().without_sections();
    let section = patch.symbol(KD) + 6;
    let patch = patch.set(section, &[0, 0]);
    assert_kernel!(patch, DescriptorProblem::NoSymbol { ref symbol } if symbol == KD);
}

#[test]
fn a_descriptor_must_be_aligned_and_in_file_bytes() {
    let patch = Patch::vadd();
    let vaddr = patch.u64_at(patch.symbol(KD) + 8);
    for value in [vaddr + 1, vaddr + 32, u64::MAX - 63, 0x7fff_ffc0, 0x2fc0] {
        let patch = Patch::vadd().set_symbol_value(KD, value);
        assert_kernel!(patch, DescriptorProblem::Address { vaddr: v } if v == value);
    }
}

#[test]
fn the_entry_must_be_aligned_code() {
    for offset in [0, 1, 0x100, 0x7fff_ff00, i64::MIN, i64::MAX] {
        let patch = set("vadd.gfx90a.v5.co", 16, &offset.to_le_bytes());
        assert_kernel!(patch, DescriptorProblem::Entry { offset: o } if o == offset);
    }
}

#[test]
fn sizes_have_the_limits_of_the_hardware() {
    let patch = set("vadd.gfx90a.v5.co", 0, &65537_u32.to_le_bytes());
    assert_kernel!(
        patch,
        DescriptorProblem::Limit { field: "group_segment_fixed_size", value: 65537, limit: 65536 }
    );
    let patch = set("vadd.gfx90a.v5.co", 4, &(1_u32 << 31).to_le_bytes());
    assert_kernel!(patch, DescriptorProblem::Limit { field: "private_segment_fixed_size", .. });
    set("vadd.gfx90a.v5.co", 0, &65536_u32.to_le_bytes()).parses();
}

#[test]
fn the_kernarg_size_must_be_that_of_metadata_or_unknown() {
    let patch = set("vadd.gfx90a.v5.co", 8, &8_u32.to_le_bytes());
    assert_kernel!(
        patch,
        DescriptorProblem::Contradiction { field: "kernarg size", descriptor: 8, .. }
    );
    let patch = set("vadd.gfx90a.v5.co", 8, &[0; 4]);
    assert_eq!(patch.parses().kernels()[0].launch_facts().kernarg_bytes, 288);
}

#[test]
fn reserved_bytes_are_accepted_and_told() {
    let patch = set("vadd.gfx90a.v5.co", 24, &[1]);
    assert!(!patch.parses().kernels()[0].descriptor().reserved_is_zero);
    assert!(Patch::vadd().parses().kernels()[0].descriptor().reserved_is_zero);
}

#[test]
fn user_sgprs_must_cover_what_is_enabled() {
    let patch = Patch::vadd();
    let rsrc2 = patch.u32_at(patch.descriptor(KD) + 52);
    assert_eq!(rsrc2 >> 1 & 0x1f, 6);
    let with = |count: u32| {
        let rsrc2 = rsrc2 & !(0x1f << 1) | count << 1;
        set("vadd.gfx90a.v5.co", 52, &rsrc2.to_le_bytes())
    };
    assert_kernel!(with(5), DescriptorProblem::UserSgprs { count: 5, needed: 6 });
    assert_kernel!(
        with(17),
        DescriptorProblem::Limit { field: "USER_SGPR_COUNT", value: 17, limit: 16 }
    );
    with(16).parses();
}

#[test]
fn preload_must_fit_in_sgprs_and_in_the_segment() {
    let patch = set("vadd.gfx90a.v5.co", 58, &2_u16.to_le_bytes());
    assert_kernel!(patch, DescriptorProblem::UserSgprs { count: 6, needed: 8 });
    let patch = Patch::of("abi_args.gfx942.preload.v5.co");
    let place = patch.descriptor("preload.kd");
    let preload = patch.u16_at(place + 58);
    assert_eq!((preload & 0x7f, preload >> 7), (8, 0));
    let patch = patch.set(place + 58, &(preload | 1 << 7).to_le_bytes());
    assert_kernel!(
        patch,
        DescriptorProblem::Limit { field: "kernarg_preload end", value: 36, limit: 32 }
    );
}

#[test]
fn wave_sizes_must_agree() {
    let patch = Patch::vadd();
    let properties = patch.u16_at(patch.descriptor(KD) + 56) | 1 << 10;
    let patch = set("vadd.gfx90a.v5.co", 56, &properties.to_le_bytes());
    assert_kernel!(patch, DescriptorProblem::Wave32 { .. });
    let patch = set("vadd.gfx1100.wave64.v5.co", 56, &0x408_u16.to_le_bytes());
    assert_kernel!(
        patch,
        DescriptorProblem::Contradiction { field: "wavefront size", descriptor: 32, metadata: 64 }
    );
}

#[test]
fn register_counts_have_limits() {
    let patch = Patch::of("vadd.gfx1100.v5.co");
    let rsrc1 = patch.u32_at(patch.descriptor(KD) + 48) | 0x3f;
    let patch = set("vadd.gfx1100.v5.co", 48, &rsrc1.to_le_bytes());
    assert_kernel!(patch, DescriptorProblem::Limit { field: "VGPRs", value: 512, limit: 256 });
    let patch = set("vadd.gfx90a.v5.co", 44, &0x3f_u32.to_le_bytes());
    assert_kernel!(patch, DescriptorProblem::Limit { field: "ACCUM_OFFSET", value: 256, .. });
}

#[test]
fn sgpr_blocks_on_gfx11_are_ignored() {
    let patch = Patch::of("vadd.gfx1100.v5.co");
    let rsrc1 = patch.u32_at(patch.descriptor(KD) + 48) | 0xf << 6;
    let patch = set("vadd.gfx1100.v5.co", 48, &rsrc1.to_le_bytes());
    assert_eq!(patch.parses().kernels()[0].launch_facts().sgprs, 128);
}

#[test]
fn the_preload_entry_is_256_bytes_after_the_entry() {
    let patch = Patch::of("abi_args.gfx942.preload.v5.co");
    let object = patch.parses();
    let kernel = object.kernel("preload").unwrap();
    assert_eq!(kernel.preload_entry_vaddr(), kernel.entry_vaddr() + 256);
    let kernel = object.kernel("_Z7no_argsv").unwrap();
    assert_eq!(kernel.preload_entry_vaddr(), kernel.entry_vaddr());
}
