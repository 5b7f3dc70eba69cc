//! What real kernels need and take: services, printf formats, occupancy.
#![allow(clippy::indexing_slicing)] // test helpers: a panic is the failure

use std::path::Path;

use hsaco::metadata::PrintfId;
use hsaco::occupancy::{Limiter, UnitLimits};
use hsaco::{CodeObject, Needs, Processor, Resources, occupancy};
use serde_json::Value;

fn fixture(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/code-objects");
    std::fs::read(directory.join(name)).unwrap()
}

fn facts() -> Vec<Value> {
    let text = String::from_utf8(fixture("facts.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Against the facts that an independent script decoded.
#[test]
fn needs_are_the_declared_hidden_arguments_and_property_bits() {
    let names = [
        ("hidden_printf_buffer", Needs::PRINTF_BUFFER),
        ("hidden_hostcall_buffer", Needs::HOSTCALL_BUFFER),
        ("hidden_heap_v1", Needs::HEAP),
        ("hidden_multigrid_sync_arg", Needs::MULTIGRID_SYNC),
        ("hidden_default_queue", Needs::DEFAULT_QUEUE),
        ("hidden_completion_action", Needs::COMPLETION_ACTION),
        ("hidden_queue_ptr", Needs::QUEUE_PTR),
    ];
    let bits = [(1, Needs::DISPATCH_PTR), (2, Needs::QUEUE_PTR), (4, Needs::DISPATCH_ID)];
    let mut seen = Needs::empty();
    for fact in facts() {
        let Some(kernels) = fact["kernels"].as_array() else { continue };
        let bytes = fixture(fact["file"].as_str().unwrap());
        let Ok(object) = CodeObject::parse(&bytes) else { continue };
        let mut all = Needs::empty();
        for (fact, kernel) in kernels.iter().zip(object.kernels()) {
            let mut expected = Needs::empty();
            for (name, need) in names {
                expected.set(need, expected.contains(need) || fact["hidden"].get(name).is_some());
            }
            let text = fact["props"].as_str().unwrap();
            let properties = u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            for (bit, need) in bits {
                expected.set(need, expected.contains(need) || properties >> bit & 1 != 0);
            }
            let is_dynamic = fact["dynstack"] == true || properties >> 11 & 1 != 0;
            expected.set(Needs::DYNAMIC_STACK, is_dynamic);
            assert_eq!(kernel.needs(), expected, "{}, {}", fact["file"], kernel.name());
            all |= expected;
        }
        assert_eq!(object.needs(), all);
        seen |= all;
    }
    let common =
        Needs::HOST_SERVICES | Needs::QUEUE_PTR | Needs::DISPATCH_PTR | Needs::DYNAMIC_STACK;
    assert!(seen.contains(common), "the fixtures have {:?}", seen.names().collect::<Vec<_>>());
}

#[test]
fn ordinary_kernels_need_nothing() {
    for name in ["vadd.gfx1100.v5.co", "triton_add.gfx90a.co", "iree_mul.gfx1100.co"] {
        let bytes = fixture(name);
        assert!(CodeObject::parse(&bytes).unwrap().needs().is_empty(), "{name}");
    }
}

#[test]
fn needs_of_service_kernels_have_names() {
    let bytes = fixture("hostcall.gfx1100.v5.co");
    let needs = CodeObject::parse(&bytes).unwrap().needs();
    assert!(needs.names().any(|name| name == "hostcall"));
    assert_eq!(needs & Needs::PRINTF_BUFFER, Needs::empty());
}

#[test]
fn printf_formats_of_both_kinds_are_taken_apart() {
    let bytes = fixture("ocl.gfx90a.v5.co");
    let object = CodeObject::parse(&bytes).unwrap();
    let found: Vec<(PrintfId, &[u32], &str)> =
        object.printf_formats().iter().map(|f| (f.id, &f.argument_bytes[..], &*f.format)).collect();
    let expected: [(PrintfId, &[u32], &str); 2] =
        [(PrintfId::Ordinal(1), &[], "second\n"), (PrintfId::Ordinal(2), &[4, 4], "a=%d b=%f\n")];
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    let bytes = fixture("printf_buffered.gfx90a.v5.co");
    let object = CodeObject::parse(&bytes).unwrap();
    let mut found: Vec<(PrintfId, &str)> =
        object.printf_formats().iter().map(|f| (f.id, &*f.format)).collect();
    found.sort();
    assert_eq!(
        found,
        [
            (PrintfId::Hash(0x2319_1091_60b1_8660), "hello from %d of block %u\n"),
            (PrintfId::Hash(0x7688_6c8d_9a7b_82c2), "no args\n"),
            (PrintfId::Hash(0xd8ae_465a_b908_74ad), "odd %s %5.2f %lld %c %p %%\n"),
        ]
    );
    assert!(object.printf_formats().iter().all(|format| format.argument_bytes.is_empty()));
    let bytes = fixture("vadd.gfx90a.v5.co");
    assert!(CodeObject::parse(&bytes).unwrap().printf_formats().is_empty());
}

/// Every kernel of the fixtures fits the unit it is for, and is held to the limits of one.
#[test]
fn every_real_kernel_has_an_occupancy_within_its_units_limits() {
    let mut count = 0;
    for fact in facts() {
        let bytes = fixture(fact["file"].as_str().unwrap());
        let Ok(object) = CodeObject::parse(&bytes) else { continue };
        let processor = object.target().processor();
        for kernel in object.kernels() {
            let facts = kernel.launch_facts();
            let resources = kernel.resources(processor, 0);
            let Some(limits) = UnitLimits::of(processor, resources.wave_size) else {
                assert!(processor.generic().is_some());
                // Generic code is counted on the processor that runs it.
                let device = if processor.major() == 9 { "gfx90c" } else { "gfx1103" };
                let device = Processor::from_name(device).unwrap();
                assert!(occupancy(device, &kernel.resources(device, 0), 64).is_some());
                continue;
            };
            let found = occupancy(processor, &resources, 64).unwrap();
            let place = format!("{}, {}", fact["file"], kernel.name());
            assert!(found.groups_per_unit > 0 && found.limiter != Limiter::GroupSize, "{place}");
            assert!(found.waves_per_simd <= limits.waves_per_simd, "{place}");
            let lds = resources.lds_bytes * found.groups_per_unit;
            assert!(lds <= limits.lds_per_cu * found.cus_per_unit, "{place}");
            let vgprs = facts.vgprs * found.waves_per_simd;
            assert!(vgprs <= limits.vgprs_per_simd, "{place}");
            // Dynamic LDS counts as static does.
            let full = kernel.resources(processor, limits.lds_per_cu - resources.lds_bytes);
            assert!(occupancy(processor, &full, 64).unwrap().groups_per_unit <= found.cus_per_unit);
            count += 1;
        }
    }
    assert!(count > 100);
}

/// Against what LLVM 19 says of kernels that use the VGPRs up to a given one.
#[test]
fn waves_of_a_simd_are_those_that_llvm_counts() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/occupancy/llvm-19.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for line in text.lines() {
        let [target, numbers @ ..] = &line.split('\t').collect::<Vec<_>>()[..] else { panic!() };
        let numbers: Vec<u32> = numbers.iter().map(|number| number.parse().unwrap()).collect();
        let [wave_size, last, waves] = numbers[..] else { panic!("{line}") };
        let processor = Processor::from_name(target).unwrap();
        let vgprs = last + 1;
        let resources = Resources { wave_size, vgprs, sgprs: 16, lds_bytes: 0, is_wgp_mode: true };
        let found = occupancy(processor, &resources, wave_size).unwrap();
        assert_eq!(found.waves_per_simd, waves, "{line}");
        rows += 1;
    }
    assert!(rows > 1500, "{rows}");
}
