//! Elementwise kernels by three compilers, a softmax, and register pressure.

use hsaco::target::{Generic, Processor};

use super::{Arg, Case, Wrong, bits, bytes_f32, bytes_u32, equal, fixture, floats, require};

pub(super) fn cases(target: &'static str) -> Vec<Case> {
    let mut cases: Vec<Case> =
        vadd_objects(target).into_iter().map(|(variant, object)| vadd(variant, object)).collect();
    cases.extend(triton_add(target));
    cases.extend(triton_softmax(target));
    cases.extend(iree_mul(target));
    cases.extend(register_edges(target));
    cases
}

/// Code object versions 4 to 6 for every target; for some also version 3, no optimisation, both wave
/// sizes, both workgroup modes, a newer compiler, and the generic target's.
fn vadd_objects(target: &str) -> Vec<(&'static str, &'static [u8])> {
    let mut objects = vec![
        ("v4", fixture!(target, "vadd", ".v4.co")),
        ("v5", fixture!(target, "vadd", ".v5.co")),
        ("v6", fixture!(target, "vadd", ".v6.co")),
    ];
    let optional = [
        ("O0", fixture!(target, "vadd", ".O0.v5.co", ["gfx90a", "gfx1100"])),
        ("wave64", fixture!(target, "vadd", ".wave64.v5.co", ["gfx1100", "gfx1151"])),
        ("v6 clang 22", fixture!(target, "vadd", ".v6.c22.co", ["gfx942", "gfx1100"])),
        ("generic", generic_object(target)),
    ];
    objects.extend(optional.into_iter().filter_map(|(name, object)| Some((name, object?))));
    match target {
        "gfx90a" => objects.extend([
            ("v3", fixture!("vadd.gfx90a_xnackm.v3.c15.co")),
            ("tgsplit", fixture!("vadd.gfx90a.tgsplit.v5.co")),
        ]),
        "gfx1100" => objects.extend([
            ("v3", fixture!("vadd.gfx1100.v3.c15.co")),
            ("CU mode", fixture!("vadd.gfx1100.cumode.v5.co")),
        ]),
        _ => {}
    }
    objects
}

/// What is compiled for the generic target that a GPU belongs to.
fn generic_object(target: &str) -> Option<&'static [u8]> {
    match Processor::from_name(target).and_then(Processor::family) {
        Some(Generic::Gfx9) => Some(fixture!("vadd.gfx9-generic.v6.co")),
        Some(Generic::Gfx9_4) => Some(fixture!("vadd.gfx9-4-generic.v6.c22.co")),
        Some(Generic::Gfx11) => Some(fixture!("vadd.gfx11-generic.v6.co")),
        _ => None,
    }
}

/// What runs on a GPU that has no programs of its own.
pub(super) fn generic(target: &str) -> Vec<Case> {
    generic_object(target).into_iter().map(|object| vadd("generic", object)).collect()
}

fn vadd(variant: &str, object: &'static [u8]) -> Case {
    // Not a multiple of the workgroup: the last one is partial, and n stops before it ends.
    const COUNT: u32 = 10_007;
    let a = floats(10_240, 1);
    let b = floats(10_240, 2);
    let want = sums(&a, &b, 10_007, -1.0);
    Case {
        name: format!("vadd {variant}"),
        object,
        kernel: "vadd",
        grid: [COUNT + 13, 1, 1],
        group: [256, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![
            Arg::Buffer(bytes_f32(a)),
            Arg::Buffer(bytes_f32(b)),
            Arg::Buffer(bytes_f32([-1.0; 10_240])),
            Arg::Value(COUNT.to_le_bytes().to_vec()),
        ],
        check: Box::new(move |results| equal("c", &results.u32s(2), &want)),
    }
}

/// Bits of `a + b` for the first `count` elements, and of `untouched` after them.
fn sums(a: &[f32], b: &[f32], count: usize, untouched: f32) -> Vec<u32> {
    a.iter()
        .zip(b)
        .enumerate()
        .map(|(i, (a, b))| if i < count { a + b } else { untouched }.to_bits())
        .collect()
}

fn lanes(target: &str) -> u32 {
    if target.starts_with("gfx9") { 64 } else { 32 }
}

fn triton_add(target: &'static str) -> Option<Case> {
    let object = fixture!(
        target,
        "triton_add",
        ".co",
        ["gfx906", "gfx908", "gfx90a", "gfx942", "gfx1100", "gfx1151"]
    )?;
    const COUNT: u32 = 1_000;
    let x = floats(1_024, 3);
    let y = floats(1_024, 4);
    let want = sums(&x, &y, 1_000, 0.0);
    let group = 4 * lanes(target); // compiled with num_warps = 4
    Some(Case {
        name: "triton_add".into(),
        object,
        kernel: "add_kernel",
        grid: [COUNT.div_ceil(256) * group, 1, 1], // BLOCK = 256
        group: [group, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![
            Arg::Buffer(bytes_f32(x)),
            Arg::Buffer(bytes_f32(y)),
            Arg::Buffer(bytes_f32([0.0; 1_024])),
            Arg::Value(COUNT.to_le_bytes().to_vec()),
            Arg::Null, // global scratch
            Arg::Null, // profile scratch
        ],
        check: Box::new(move |results| equal("o", &results.u32s(2), &want)),
    })
}

fn triton_softmax(target: &'static str) -> Option<Case> {
    let object = fixture!(
        target,
        "triton_softmax",
        ".co",
        ["gfx906", "gfx908", "gfx90a", "gfx942", "gfx1100", "gfx1151"]
    )?;
    const ROWS: usize = 7;
    const COLUMNS: usize = 500; // BLOCK = 512: the tail is masked
    let x = floats(ROWS * COLUMNS, 5);
    let want: Vec<f64> = x
        .chunks(COLUMNS)
        .flat_map(|row| {
            let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let e: Vec<f64> = row.iter().map(|&v| f64::from(v - top).exp()).collect();
            let sum: f64 = e.iter().sum();
            e.into_iter().map(move |v| v / sum)
        })
        .collect();
    let group = 4 * lanes(target);
    Some(Case {
        name: "triton_softmax".into(),
        object,
        kernel: "softmax_kernel",
        grid: [7 * group, 1, 1],
        group: [group, 1, 1],
        dynamic_lds_bytes: 16, // "shared" in the object's JSON
        args: vec![
            Arg::Buffer(bytes_f32(x)),
            Arg::Buffer(bytes_f32(vec![0.0; ROWS * COLUMNS])),
            Arg::Value(500_u32.to_le_bytes().to_vec()),
            Arg::Null,
            Arg::Null,
        ],
        check: Box::new(move |results| close(&results.f32s(1), &want)),
    })
}

/// The kernel computes 2^(d * log2 e) in f32, d down to -16: rounding the product, up to 23, is an
/// error of 8 ulp of the result, and that of log2 e 2 more; exponential, sum and division add 1 ulp
/// each. 16 ulp are generous to that and still catch a wrong lane, mask or maximum.
fn close(got: &[f32], want: &[f64]) -> Result<(), Wrong> {
    require(got.len() == want.len(), "length of o", got.len(), want.len().to_string())?;
    for (at, (&got, &want)) in got.iter().zip(want).enumerate() {
        let tolerance = want.abs() * 16.0 * f64::from(f32::EPSILON) + 1e-30;
        require(
            (f64::from(got) - want).abs() <= tolerance,
            format!("o[{at}]"),
            got,
            format!("{want} within {tolerance:e}"),
        )?;
    }
    Ok(())
}

fn iree_mul(target: &'static str) -> Option<Case> {
    let object = fixture!(target, "iree_mul", ".co", ["gfx90a", "gfx942", "gfx1100", "gfx1151"])?;
    let a = floats(1_024, 6);
    let b = floats(1_024, 7);
    let want: Vec<u32> = a.iter().zip(&b).map(|(a, b)| (a * b).to_bits()).collect();
    Some(Case {
        name: "iree_mul".into(),
        object,
        kernel: "mul_dispatch_0_elementwise_1024_f32",
        grid: [256, 1, 1], // four elements a work-item
        group: [lanes(target), 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![
            Arg::Buffer(bytes_f32(a)),
            Arg::Buffer(bytes_f32(b)),
            Arg::Buffer(bytes_f32([0.0; 1_024])),
        ],
        check: Box::new(move |results| equal("product", &bits(&results.f32s(2)), &want)),
    })
}

/// Kernels that use a certain number of registers, at the edges of the allocation granules.
fn register_edges(target: &'static str) -> Vec<Case> {
    const KERNELS: [&str; 10] = [
        "v3_s15",
        "v4_s16",
        "v7_s31",
        "v8_s32",
        "v31_s47",
        "v32_s48",
        "v63_s63",
        "v64_s64",
        "v127_s95",
        "v255_s101",
    ];
    let mut objects = vec![("bigvgpr", fixture!(target, "bigvgpr", ".v5.co"))];
    if target == "gfx1100" {
        objects.push(("bigvgpr wave64", fixture!("bigvgpr.gfx1100.wave64.v5.co")));
    }
    objects
        .into_iter()
        .flat_map(|(name, object)| {
            KERNELS.map(|kernel| Case {
                name: format!("{name} {kernel}"),
                object,
                kernel,
                grid: [64, 1, 1],
                group: [64, 1, 1],
                dynamic_lds_bytes: 0,
                args: vec![Arg::Buffer(bytes_u32([0; 64]))],
                check: Box::new(|results| equal("o", &results.u32s(0), &[1; 64])),
            })
        })
        .collect()
}
