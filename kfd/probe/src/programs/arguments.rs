//! What a kernel sees of its launch: explicit arguments of every shape, and every dimension.

use super::{Arg, Case, Results, Wrong, bytes_u32, equal, fixture, require};

pub(super) fn cases(target: &'static str) -> Vec<Case> {
    let plain = fixture!(target, "abi_args", ".v5.co");
    let mut cases = arguments("abi_args", plain);
    if let Some(object) = fixture!(target, "abi_args", ".preload.v5.co", ["gfx90a", "gfx942"]) {
        cases.extend(arguments("abi_args preloaded", object));
    }
    if let Some(object) = fixture!(target, "abi_args", ".v6.c22.co", ["gfx942"]) {
        cases.extend(arguments("abi_args v6 clang 22", object));
    }
    let dims_v6 = fixture!(target, "dims", ".v6.co", ["gfx90a", "gfx1100"]);
    let mut dims_objects = vec![
        ("dims v4", fixture!(target, "dims", ".v4.co")),
        ("dims v5", fixture!(target, "dims", ".v5.co")),
    ];
    dims_objects.extend(dims_v6.map(|object| ("dims v6", object)));
    for (name, object) in dims_objects {
        for (grid, group, dimensions) in [
            ([1, 1, 1], [1, 1, 1], 1),
            ([128, 1, 1], [64, 1, 1], 1),
            ([100, 50, 1], [16, 8, 1], 2),
            ([10, 7, 5], [4, 2, 2], 3),
        ] {
            cases.push(dims(name, object, grid, group, dimensions));
        }
    }
    cases
}

fn arguments(name: &str, object: &'static [u8]) -> Vec<Case> {
    vec![mixed(name, object), none(name, object), preload(name, object), template(name, object)]
}

/// `args_mix(char, short, int, long, float, double, Big, Al, void *, u64 *)`.
fn mixed(name: &str, object: &'static [u8]) -> Case {
    const POINTER: u64 = 0x0123_4567_89ab_cdef;
    let mut big = Vec::new(); // struct Big { double d; char c; short s[3]; long l; }
    big.extend(12_345.75_f64.to_le_bytes());
    big.extend((-7_i8).to_le_bytes());
    big.push(0); // padding
    for s in [11_i16, 22, -3_300] {
        big.extend(s.to_le_bytes());
    }
    big.extend(1_000_000_000_000_i64.to_le_bytes());
    let al: Vec<u8> = (0..8_u8).flat_map(|i| (f32::from(i) * 1_000.25).to_le_bytes()).collect();

    // The same expressions in Rust. Unsigned conversion of a negative integer wraps in C.
    let wrapped = |value: i64| u64::from_ne_bytes(value.to_ne_bytes());
    let want = [
        wrapped(-5),
        wrapped(-300),
        wrapped(-70_000),
        wrapped(-5_000_000_000),
        2,         // (u64)2.5f
        1_000_000, // (u64)1000000.5
        12_345_u64
            .wrapping_add(wrapped(-7))
            .wrapping_add(wrapped(-3_300))
            .wrapping_add(1_000_000_000_000),
        7_001, // (u64)(7 * 1000.25f)
        POINTER,
    ];
    Case {
        name: format!("{name} mixed"),
        object,
        kernel: "_Z8args_mixcsilfd3Big2AlPvPy",
        grid: [1, 1, 1],
        group: [1, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![
            Arg::Value((-5_i8).to_le_bytes().to_vec()),
            Arg::Value((-300_i16).to_le_bytes().to_vec()),
            Arg::Value((-70_000_i32).to_le_bytes().to_vec()),
            Arg::Value((-5_000_000_000_i64).to_le_bytes().to_vec()),
            Arg::Value(2.5_f32.to_le_bytes().to_vec()),
            Arg::Value(1_000_000.5_f64.to_le_bytes().to_vec()),
            Arg::Value(big),
            Arg::Value(al),
            Arg::Value(POINTER.to_le_bytes().to_vec()),
            Arg::Buffer(vec![0; 72]),
        ],
        check: Box::new(move |results| equal("out", &results.u64s(0), &want)),
    }
}

/// A kernel without arguments: the launch completes, and that is all there is to see.
fn none(name: &str, object: &'static [u8]) -> Case {
    Case {
        name: format!("{name} none"),
        object,
        kernel: "_Z7no_argsv",
        grid: [96, 1, 1],
        group: [32, 1, 1],
        dynamic_lds_bytes: 0,
        args: Vec::new(),
        check: Box::new(|results| require(results.buffers.is_empty(), "buffers", 0, "none")),
    }
}

fn preload(name: &str, object: &'static [u8]) -> Case {
    let (a, b, c) = (0x1_0000_0001_u64, 0xffff_ffff_u64, 17_u64);
    let value = |v: u64| Arg::Value(v.to_le_bytes().to_vec());
    Case {
        name: format!("{name} preload"),
        object,
        kernel: "preload",
        grid: [48, 1, 1],
        group: [48, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![value(a), value(b), value(c), Arg::Buffer(vec![0; 48 * 8])],
        check: Box::new(move |results| {
            equal("out", &results.u64s(0), &[a.wrapping_mul(b).wrapping_add(c); 48])
        }),
    }
}

fn template(name: &str, object: &'static [u8]) -> Case {
    Case {
        name: format!("{name} template"),
        object,
        kernel: "_Z4tmplILi3EEvPi",
        grid: [1, 1, 1],
        group: [1, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![Arg::Buffer(bytes_u32([9; 6]))],
        check: Box::new(|results| equal("p", &results.u32s(0), &[9, 9, 9, 3, 9, 9])),
    }
}

fn dims(
    name: &str,
    object: &'static [u8],
    grid: [u32; 3],
    group: [u32; 3],
    dimensions: u64,
) -> Case {
    Case {
        name: {
            let [x, y, z] = grid;
            format!("{name} {dimensions}-D {x}x{y}x{z}")
        },
        object,
        kernel: "dims",
        grid,
        group,
        dynamic_lds_bytes: 0,
        args: vec![Arg::Buffer(vec![0xff; 22 * 8])],
        check: Box::new(move |results| check_dims(results, grid, group, dimensions)),
    }
}

/// Every work-item stores to the same words, so ids are those of any work-item, and each word may
/// come from another one. What does not depend on the work-item is exact.
fn check_dims(
    results: &Results<'_>,
    grid: [u32; 3],
    group: [u32; 3],
    dimensions: u64,
) -> Result<(), Wrong> {
    let out = results.u64s(0);
    let [work_dim, per_dimension @ ..] = out.as_slice() else {
        return require(false, "out", out.len(), "22 words");
    };
    require(*work_dim == dimensions, "work_dim", work_dim, dimensions.to_string())?;
    let sizes = grid.into_iter().zip(group);
    for (d, (words, (grid, group))) in per_dimension.chunks(7).zip(sizes).enumerate() {
        let &[local_size, global_size, groups, offset, group_id, local_id, global_id] = words
        else {
            return require(false, "out", out.len(), "22 words");
        };
        let (grid, group) = (u64::from(grid), u64::from(group));
        let rest = grid % group;
        let at = |what: &str| format!("{what}({d})");
        let full_or_rest = local_size == group || (rest != 0 && local_size == rest);
        require(full_or_rest, at("local_size"), local_size, format!("{group} or {rest}"))?;
        require(global_size == grid, at("global_size"), global_size, grid.to_string())?;
        let count = grid.div_ceil(group);
        require(groups == count, at("num_groups"), groups, count.to_string())?;
        require(offset == 0, at("global_offset"), offset, "0")?;
        require(group_id < count, at("group_id"), group_id, format!("below {count}"))?;
        require(local_id < group, at("local_id"), local_id, format!("below {group}"))?;
        require(global_id < grid, at("global_id"), global_id, format!("below {grid}"))?;
    }
    Ok(())
}
