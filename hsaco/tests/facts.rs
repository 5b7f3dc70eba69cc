//! Every field of real code objects against facts that an independent script decoded
//! (tests/fixtures/code-objects/src/inspect_co.py).
#![allow(clippy::indexing_slicing)] // test helpers: a panic is the failure

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hsaco::metadata::KernelMetadata;
use hsaco::{CodeObject, DeviceTarget, Error, FeatureState, Kernel};
use serde_json::{Value, json};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/code-objects")
}

/// What one run over a facts file saw.
#[derive(Default)]
struct Tally {
    objects: usize,
    kernels: usize,
    fields: usize,
    refused: usize,
    differences: Vec<String>,
}

impl Tally {
    fn check(&mut self, place: &str, field: &str, fact: &Value, ours: Value) {
        self.fields += 1;
        if *fact != ours {
            self.differences.push(format!("{place}: {field}: facts say {fact}, we say {ours}"));
        }
    }
}

fn hex(value: impl Into<u64>) -> Value {
    json!(format!("{:#x}", value.into()))
}

/// Keys of a kernel map that the typed metadata holds.
fn keys(metadata: &KernelMetadata<'_>) -> BTreeSet<&'static str> {
    let optional = [
        (".args", metadata.args.is_some()),
        (".agpr_count", metadata.agpr_count.is_some()),
        (".sgpr_spill_count", metadata.sgpr_spill_count.is_some()),
        (".vgpr_spill_count", metadata.vgpr_spill_count.is_some()),
        (".uses_dynamic_stack", metadata.uses_dynamic_stack.is_some()),
        (".workgroup_processor_mode", metadata.workgroup_processor_mode.is_some()),
        (".uniform_work_group_size", metadata.uniform_work_group_size.is_some()),
        (".language", metadata.language.is_some()),
        (".language_version", metadata.language_version.is_some()),
        (".reqd_workgroup_size", metadata.reqd_workgroup_size.is_some()),
        (".workgroup_size_hint", metadata.workgroup_size_hint.is_some()),
        (".vec_type_hint", metadata.vec_type_hint.is_some()),
        (".device_enqueue_symbol", metadata.device_enqueue_symbol.is_some()),
        (".cluster_dims", metadata.cluster_dims.is_some()),
    ];
    let required = [
        ".name",
        ".symbol",
        ".kernarg_segment_size",
        ".kernarg_segment_align",
        ".group_segment_fixed_size",
        ".private_segment_fixed_size",
        ".wavefront_size",
        ".max_flat_workgroup_size",
        ".sgpr_count",
        ".vgpr_count",
    ];
    let present = optional.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key);
    required.into_iter().chain(present).collect()
}

fn compare_kernel(
    tally: &mut Tally,
    file: &str,
    fact: &Value,
    object: &CodeObject<'_>,
    kernel: &Kernel<'_>,
) {
    let place = format!("{file}, kernel {}", kernel.name());
    let descriptor = kernel.descriptor();
    let metadata = kernel.metadata();
    let processor = object.target().processor();
    let explicit_end = kernel.arguments().explicit_bytes();
    let hidden: BTreeMap<&str, [u32; 2]> = (metadata.args.iter().flatten())
        .filter(|argument| argument.kind.is_hidden())
        .map(|argument| (argument.kind.name(), [argument.offset, argument.size]))
        .collect();
    let ours = [
        ("name", json!(kernel.name())),
        ("group", json!(descriptor.group_segment_fixed_size)),
        ("private", json!(descriptor.private_segment_fixed_size)),
        ("kernarg", json!(descriptor.kernarg_size)),
        ("entry", json!(descriptor.code_entry_offset)),
        ("rsrc1", hex(descriptor.rsrc1)),
        ("rsrc2", hex(descriptor.rsrc2)),
        ("rsrc3", hex(descriptor.rsrc3)),
        ("props", hex(descriptor.properties.bits())),
        ("preload", hex(descriptor.preload.dwords | descriptor.preload.offset_dwords << 7)),
        ("vgpr_alloc", json!(kernel.launch_facts().vgprs)),
        ("vgpr_md", json!(metadata.vgpr_count)),
        ("agpr_md", json!(metadata.agpr_count)),
        ("sgpr_field", json!(descriptor.rsrc1 >> 6 & 0xf)),
        ("sgpr_md", json!(metadata.sgpr_count)),
        ("lds_field", json!(descriptor.rsrc2 >> 15 & 0x1ff)),
        ("accum", json!(descriptor.accum_offset(processor))),
        ("user_sgprs", json!(kernel.launch_facts().user_sgpr_count)),
        ("wave", json!(kernel.launch_facts().wave_size)),
        ("dynstack", json!(metadata.uses_dynamic_stack)),
        ("keys", json!(keys(metadata))),
        ("hidden", json!(hidden)),
        ("args_end", json!(explicit_end)),
    ];
    let known: BTreeSet<&str> = ours.iter().map(|(field, _)| *field).collect();
    let there: BTreeSet<&str> = fact.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(known, there, "{place}: every fact of a kernel is compared");
    for (field, value) in ours {
        tally.check(&place, field, &fact[field], value);
    }
}

fn compare_object(tally: &mut Tally, fact: &Value, object: &CodeObject<'_>, bytes: &[u8]) {
    let file = fact["file"].as_str().unwrap();
    let loads: Vec<Value> = (object.segments())
        .map(|segment| {
            json!({
                "flags": segment.permissions.bits(),
                "va": segment.vaddr,
                "filesz": segment.file_bytes,
                "memsz": segment.memory_bytes,
            })
        })
        .collect();
    let mut fact_loads = fact["loads"].clone();
    for (load, segment) in fact_loads.as_array_mut().unwrap().iter_mut().zip(object.segments()) {
        // The file offset is not public; the bytes found there are, so those are compared.
        let offset = load.as_object_mut().unwrap().remove("off").unwrap().as_u64().unwrap();
        if segment.file_bytes > 0 {
            let start = usize::try_from(offset).unwrap();
            let end = start + usize::try_from(segment.file_bytes).unwrap();
            assert_eq!(object.bytes_at(segment.vaddr).unwrap(), &bytes[start..end], "{file}");
        }
    }
    let image = object.image(0x7000_0000_0000).expect(file);
    assert_eq!(image.segments().len(), loads.len(), "{file}");
    if let Some((major, minor, step)) = object.target().processor().version() {
        // The device that has every feature as the object asks for it.
        let on = |state: FeatureState| state.required().unwrap_or(false);
        let (sramecc, xnack) = (on(object.target().sramecc()), on(object.target().xnack()));
        let version = major * 10000 + minor * 100 + step;
        let device = DeviceTarget::new(version, sramecc, xnack).expect(file);
        object.target().fits(&device).expect(file);
    }
    let variables: Vec<&str> = object.variables().iter().map(|variable| variable.name).collect();
    let (major, minor) = object.metadata_version();
    tally.check(file, "size", &fact["size"], json!(bytes.len()));
    tally.check(file, "type", &fact["type"], json!(3));
    tally.check(file, "machine", &fact["machine"], json!(224));
    tally.check(file, "osabi", &fact["osabi"], json!(64));
    tally.check(file, "abi", &fact["abi"], json!(object.version().number() - 2));
    tally.check(file, "flags", &fact["flags"], hex(object.flags()));
    tally.check(file, "loads", &fact_loads, json!(loads));
    tally.check(file, "target", &fact["target"], json!(object.target_text()));
    tally.check(file, "version", &fact["version"], json!([major, minor]));
    tally.check(file, "printf", &fact["printf"], json!(object.printf_strings()));
    tally.check(file, "note_bytes", &fact["note_bytes"], json!(object.note_bytes()));
    tally.check(file, "has_symtab", &fact["has_symtab"], json!(!object.is_stripped()));
    tally.check(file, "relocs", &fact["relocs"], json!(object.relocation_counts()));
    tally.check(file, "objects", &fact["objects"], json!(variables));
    let kernels = fact["kernels"].as_array().unwrap();
    tally.check(file, "kernels", &json!(kernels.len()), json!(object.kernels().len()));
    for (fact, kernel) in kernels.iter().zip(object.kernels()) {
        compare_kernel(tally, file, fact, object, kernel);
        tally.kernels += 1;
    }
}

/// A file the facts say is no loadable code object must be refused by name.
fn compare_refused(tally: &mut Tally, fact: &Value, error: Error) {
    let matches = match (&error, fact["kind"].as_str(), fact["machine"].as_u64()) {
        (Error::CompressedBundle, Some(kind), _) => kind.starts_with("CCOB"),
        (Error::OffloadBundle, Some(kind), _) => kind == "__CLANG_OFFLOAD_BUNDLE__",
        (Error::NotElf { .. }, Some(kind), _) => kind.starts_with("PK"),
        (Error::NotAmdgpu { machine: 62 }, None, Some(62)) => true,
        (Error::Relocatable, None, Some(224)) => fact["type"] == 1,
        (Error::ObsoleteVersion, None, Some(224)) => fact["type"] == 3 && fact["abi"] == 0,
        _ => false,
    };
    if matches {
        tally.refused += 1;
    } else {
        tally.differences.push(format!("{}: refused with {error:?}", fact["file"]));
    }
}

fn compare_directory(directory: &Path) -> Tally {
    let facts = std::fs::read_to_string(directory.join("facts.jsonl")).unwrap();
    let mut tally = Tally::default();
    for line in facts.lines() {
        let fact: Value = serde_json::from_str(line).unwrap();
        let bytes = std::fs::read(directory.join(fact["file"].as_str().unwrap())).unwrap();
        match CodeObject::parse(&bytes) {
            Ok(object) => {
                tally.objects += 1;
                compare_object(&mut tally, &fact, &object, &bytes);
            }
            Err(error) => compare_refused(&mut tally, &fact, error),
        }
    }
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    tally
}

#[test]
fn the_fixtures_agree_with_their_facts_field_by_field() {
    let tally = compare_directory(&fixtures());
    let files = std::fs::read_dir(fixtures()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
        [".co", ".o", ".bundle"].iter().any(|end| name.ends_with(end))
    });
    assert_eq!(tally.objects + tally.refused, files.count(), "every fixture has its line of facts");
    assert!(tally.objects >= 60 && tally.kernels >= 120, "the fixtures are there");
}

/// The same over a whole directory of code objects with a `facts.jsonl`, named by
/// `HSACO_CORPUS`.
#[test]
fn a_corpus_agrees_with_its_facts_field_by_field() {
    let Some(directory) = std::env::var_os("HSACO_CORPUS") else {
        println!("not run: HSACO_CORPUS names no directory with a facts.jsonl");
        return;
    };
    let Tally { objects, kernels, fields, refused, .. } = compare_directory(Path::new(&directory));
    println!(
        "{objects} objects, {kernels} kernels, {fields} fields equal; {refused} refused by name"
    );
    assert!(objects > 0);
}
