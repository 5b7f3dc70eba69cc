//! Variables, relocations, atomics, LDS and scratch.

use super::{
    Arg, Case, Results, Wrong, bits, bytes_f32, bytes_u32, equal, fixture, floats, require,
};

pub(super) fn cases(target: &'static str) -> Vec<Case> {
    vec![
        reduce(target),
        static_lds(target),
        globals(target),
        atomics(target),
        recursive(target),
        indirect(target),
        private_array(target),
        private_arrays(target),
        relocations(target),
    ]
}

/// A tree reduction through dynamic LDS, three workgroups.
fn reduce(target: &'static str) -> Case {
    const GROUP: usize = 128;
    let input = floats(3 * GROUP, 8);
    let want: Vec<u32> = input
        .chunks(GROUP)
        .map(|group| {
            // The same tree, so the same roundings.
            let mut level = group.to_vec();
            while level.len() > 1 {
                let (low, high) = level.split_at(level.len() / 2);
                level = low.iter().zip(high).map(|(a, b)| a + b).collect();
            }
            level.first().copied().unwrap_or_default().to_bits()
        })
        .collect();
    Case {
        name: "dynlds reduce".into(),
        object: fixture!(target, "dynlds", ".v5.co"),
        kernel: "reduce_dyn",
        grid: [384, 1, 1],
        group: [128, 1, 1],
        dynamic_lds_bytes: 512, // one f32 a work-item
        args: vec![Arg::Buffer(bytes_f32(input)), Arg::Buffer(bytes_f32([0.0; 3]))],
        check: Box::new(move |results| equal("sum", &bits(&results.f32s(1)), &want)),
    }
}

fn static_lds(target: &'static str) -> Case {
    let want: Vec<u32> = (0..64).map(|t: u32| (63 - t) * (63 - t)).collect();
    Case {
        name: "dynlds static".into(),
        object: fixture!(target, "dynlds", ".v5.co"),
        kernel: "static_lds",
        grid: [64, 1, 1],
        group: [64, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![Arg::Buffer(bytes_u32([0; 64]))],
        check: Box::new(move |results| equal("out", &results.u32s(0), &want)),
    }
}

fn globals(target: &'static str) -> Case {
    Case {
        name: "globals".into(),
        object: fixture!(target, "globals", ".v5.co"),
        kernel: "use_globals",
        grid: [8, 1, 1],
        group: [8, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![Arg::Buffer(bytes_u32([0; 8]))],
        check: Box::new(check_globals),
    }
}

/// `counter` starts at 7 and eight work-items add 1 each; what one of them then reads of it, or of
/// its neighbour's copy, depends on their order.
fn check_globals(results: &Results<'_>) -> Result<(), Wrong> {
    equal("counter", &results.variable_u32s("counter")?, &[15])?;
    let zeroed = results.variable_u32s("zeroed")?;
    require(zeroed.len() == 64, "length of zeroed", zeroed.len(), "64")?;
    let (used, unused) = zeroed.split_at(8);
    for (i, seen) in used.iter().enumerate() {
        require((8..=15).contains(seen), format!("zeroed[{i}]"), seen, "8 to 15")?;
    }
    equal("rest of zeroed", unused, &[0; 56])?;
    // *ptr_into_table is table[5]
    equal("managed_arr", &results.variable_u32s("managed_arr")?, &[6.0_f32.to_bits(); 8])?;
    equal("shared_total", &results.variable_u32s("shared_total")?, &[41 + 3])?;
    for (i, (&out, scaled)) in results.u32s(0).iter().zip((1..).map(|n: u32| n * 3)).enumerate() {
        let neighbour = out.wrapping_sub(scaled);
        require(
            neighbour == 0 || (8..=15).contains(&neighbour),
            format!("out[{i}]"),
            out,
            format!("{scaled} plus 0 or 8 to 15"),
        )?;
    }
    Ok(())
}

/// Two workgroups of 64: integer, 64-bit and float atomics, a maximum, a compare-and-swap loop.
fn atomics(target: &'static str) -> Case {
    Case {
        name: "atomics".into(),
        object: fixture!(target, "atomics", ".v5.co"),
        kernel: "atomics",
        grid: [128, 1, 1],
        group: [64, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![
            Arg::Buffer(bytes_u32([100, 0, 0])),
            Arg::Buffer(5_u64.to_le_bytes().to_vec()),
            Arg::Buffer(1.5_f32.to_le_bytes().to_vec()),
            Arg::Buffer((-20_i32).to_le_bytes().to_vec()),
        ],
        check: Box::new(check_atomics),
    }
}

fn check_atomics(results: &Results<'_>) -> Result<(), Wrong> {
    let ids: u32 = (0..64).sum();
    let words = results.u32s(0);
    let &[sum, swapped, local] = words.as_slice() else {
        return require(false, "length of g", words.len(), "3");
    };
    require(sum == 100 + 2 * ids, "g[0]", sum, (100 + 2 * ids).to_string())?;
    require(swapped == 256, "g[1]", swapped, "256")?;
    // Work-item 0 publishes its workgroup's counter without waiting for the other waves.
    require((1..=64).contains(&local), "g[2]", local, "1 to 64")?;
    equal("g64", &results.u64s(1), &[5 + ((2 * u64::from(ids)) << 33)])?;
    // Halves add exactly in any order.
    equal("f", &results.f32s(2), &[1.5 + 64.0])?;
    equal("m", &results.u32s(3), &[58])
}

fn stack_case(target: &'static str, kernel: &'static str, args: Vec<Arg>, want: Vec<u32>) -> Case {
    Case {
        name: format!("stack {kernel}"),
        object: fixture!(target, "stack", ".v5.co"),
        kernel,
        grid: [64, 1, 1],
        group: [64, 1, 1],
        dynamic_lds_bytes: 0,
        args,
        check: Box::new(move |results| equal("out", &results.u32s(0), &want)),
    }
}

fn recursive(target: &'static str) -> Case {
    fn ack(m: u32, n: u32) -> u32 {
        match (m, n) {
            (0, n) => n + 1,
            (m, 0) => ack(m - 1, 1),
            (m, n) => ack(m - 1, ack(m, n - 1)),
        }
    }
    let want = (0..64).map(|t| ack(t & 1, t & 3)).collect();
    stack_case(target, "recursive", vec![Arg::Buffer(bytes_u32([0; 64]))], want)
}

fn indirect(target: &'static str) -> Case {
    let select = (0..64).map(|t| t / 3);
    let want = (0..64).map(|t| if (t / 3) & 1 == 0 { t * 2 } else { t + 1 }).collect();
    stack_case(target, "indirect", vec![Arg::Buffer(bytes_u32(select))], want)
}

fn private_array(target: &'static str) -> Case {
    let index = |t: u32| t.wrapping_mul(7).wrapping_add(100);
    let want = (0..64).map(|t| (index(t) & 31) * t).collect();
    let args = vec![Arg::Buffer(bytes_u32([0; 64])), Arg::Buffer(bytes_u32((0..64).map(index)))];
    stack_case(target, "priv_array", args, want)
}

/// The same in 40 workgroups: each wave has scratch of its own, on each XCC.
fn private_arrays(target: &'static str) -> Case {
    let case = private_array(target);
    let name = format!("{} in 40 workgroups", case.name);
    Case { name, grid: [40 * 64, 1, 1], ..case }
}

fn relocations(target: &'static str) -> Case {
    Case {
        name: "reloc".into(),
        object: fixture!(target, "reloc", ".v5.co"),
        kernel: "use_relocs",
        grid: [1, 1, 1],
        group: [1, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![Arg::Buffer(bytes_u32([0, 1, 0, 1, 70]))],
        // *ptrs[0] = pub, pub_zero[2], priv, *ptrs[1] again, and helper adds pub.
        check: Box::new(|results| equal("out", &results.u32s(0), &[5, 0, 6, 0, 75])),
    }
}
