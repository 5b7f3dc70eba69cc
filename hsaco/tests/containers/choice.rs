//! Which image runs on which device.

use hsaco::{CodeObject, Container, DeviceTarget, Misfit};

use crate::make::{bundle, fixture, set};

/// A code object for a target: a real one with other e_flags. Only headers matter for the choice.
fn object(flags: u32) -> Vec<u8> {
    set(fixture("vadd.gfx90a.v6.co"), 48, &flags.to_le_bytes())
}

const PREFIX: &str = "hipv4-amdgcn-amd-amdhsa--";

fn device(id: &str) -> DeviceTarget {
    DeviceTarget::from_id(id).unwrap()
}

fn file(targets: &[(&str, u32)]) -> Vec<u8> {
    let objects: Vec<(String, Vec<u8>)> =
        targets.iter().map(|&(id, flags)| (format!("{PREFIX}{id}"), object(flags))).collect();
    let mut entries: Vec<(&str, &[u8])> = vec![("host-x86_64-unknown-linux--", &[])];
    entries.extend(objects.iter().map(|(id, bytes)| (id.as_str(), bytes.as_slice())));
    bundle(&entries)
}

const TARGETS: [(&str, u32); 14] = [
    ("gfx900", 0x12c),
    ("gfx906", 0x52f),
    ("gfx906:sramecc+", 0xd2f),
    ("gfx908:sramecc-", 0x930),
    ("gfx90a", 0x53f),
    ("gfx90a:xnack+", 0x73f),
    ("gfx90a:sramecc+:xnack-", 0xe3f),
    ("gfx942", 0x54c),
    ("gfx1030", 0x36),
    ("gfx1100", 0x41),
    ("gfx9-generic", 0x0100_0151),
    ("gfx9-4-generic", 0x0100_055f),
    ("gfx11-generic", 0x0100_0054),
    ("gfx12-generic", 0xff00_0059),
];

/// One row a device; one letter a target of the list above: `y` fits, `-` does not, `*` is the one to
/// choose. By hand from the target id rules.
#[test]
fn the_best_image_is_chosen_as_worked_out_by_hand() {
    let rows = [
        ("gfx900:xnack-", "*---------y---"),
        ("gfx902:xnack+", "----------*---"),
        ("gfx906:sramecc+:xnack-", "-y*-------y---"),
        ("gfx906:sramecc-:xnack-", "-*--------y---"),
        ("gfx908:sramecc+:xnack-", "--------------"),
        ("gfx908:sramecc-:xnack+", "---*----------"),
        ("gfx90a:sramecc+:xnack-", "----y-*-------"),
        ("gfx90a:sramecc+:xnack+", "----y*--------"),
        ("gfx90a:sramecc-:xnack-", "----*---------"),
        ("gfx942:sramecc+:xnack-", "-------*---y--"),
        ("gfx950:sramecc+:xnack+", "-----------*--"),
        ("gfx1030", "--------*-----"),
        ("gfx1031", "--------------"),
        ("gfx1100", "---------*--y-"),
        ("gfx1102", "------------*-"),
        ("gfx1201", "-------------*"),
    ];
    let orders = [TARGETS.to_vec(), TARGETS.iter().rev().copied().collect()];
    for (id, row) in rows {
        let device = device(id);
        for targets in &orders {
            let file = file(targets);
            let container = Container::read(&file).unwrap();
            for image in container.images() {
                let target = image.target_text().unwrap();
                let column = TARGETS.iter().position(|(id, _)| *id == target).unwrap();
                let expected = &row[column..=column] != "-";
                assert_eq!(image.fits(&device).is_ok(), expected, "{target} on {id}");
            }
            let expected = row.find('*').map(|column| TARGETS[column].0);
            match container.choose(&device) {
                Ok(choice) => {
                    assert_eq!(choice.entry.target_text(), expected, "{id}");
                    assert_eq!(Some(choice.target.to_string().as_str()), expected, "{id}");
                }
                Err(no_fit) => {
                    assert_eq!(expected, None, "{id}: {no_fit}");
                    assert_eq!(no_fit.images.len(), TARGETS.len());
                }
            }
        }
    }
}

#[test]
fn a_miss_names_the_device_and_every_image_with_its_reason() {
    let file = file(&[("gfx90a:xnack+", 0x73f), ("gfx1030", 0x36)]);
    let container = Container::read(&file).unwrap();
    let no_fit = container.choose(&device("gfx90a:sramecc+:xnack-")).unwrap_err();
    assert_eq!(
        no_fit.to_string(),
        "no code for gfx90a:sramecc+:xnack-: hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+: xnack is set \
         the other way; hipv4-amdgcn-amd-amdhsa--gfx1030: another processor"
    );
    // A miss on one device leaves the other as it was.
    container.choose(&device("gfx1030")).unwrap();
}

#[test]
fn images_that_cannot_be_loaded_say_why_and_do_not_hide_others() {
    let good = fixture("vadd.gfx90a.v6.co");
    let old = fixture("vadd.gfx906.v2.c15.co");
    let entries: [(&str, &[u8]); 6] = [
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", b"\x03\x02\x23\x07 and more"),
        ("hip-amdgcn-amd-amdhsa--gfx906", &old),
        ("hipv4-amdgcn-amd-amdhsa--gfx900", &[]),
        // e_flags say gfx90a: one of the two is wrong.
        ("hipv4-amdgcn-amd-amdhsa--gfx908", &good),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", &good),
        ("hipv4-amdgpu9.0a-amd-amdhsa-unknown-gfx90a", &good),
    ];
    let file = bundle(&entries);
    let container = Container::read(&file).unwrap();
    let target = device("gfx90a");
    let reasons: Vec<Option<Misfit>> =
        container.images().map(|image| image.fits(&target).err()).collect();
    let [Some(spirv), Some(old), Some(empty), Some(wrong), Some(feature), None] = &reasons[..]
    else {
        panic!("{reasons:?}")
    };
    assert!(spirv.to_string().starts_with("not an ELF file"), "{spirv}");
    assert!(old.to_string().starts_with("code object version 2 or older"), "{old}");
    assert_eq!(*empty, Misfit::Empty);
    assert_eq!(wrong.to_string(), "the bundle calls it gfx908, its e_flags say gfx90a");
    assert!(matches!(feature, Misfit::Contradiction { .. }));
    assert_eq!(container.choose(&target).unwrap().entry.bytes, good);
}

#[test]
fn version_3_objects_are_matched_by_their_flags_alone() {
    let object = fixture("vadd.gfx90a.v3.c15.co");
    assert_eq!(CodeObject::identify(&object).unwrap().target.to_string(), "gfx90a:sramecc+:xnack+");
    for id in ["hip-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx90a"] {
        let file = bundle(&[(id, &object)]);
        let container = Container::read(&file).unwrap();
        container.choose(&device("gfx90a:sramecc+:xnack+")).unwrap();
        container.choose(&device("gfx90a:sramecc+:xnack-")).unwrap_err();
    }
}

#[test]
fn a_bundle_for_the_host_only_has_no_code() {
    let file = bundle(&[("host-x86_64-unknown-linux--", &[])]);
    let no_fit = Container::read(&file).unwrap().choose(&device("gfx1100")).unwrap_err();
    assert_eq!(no_fit.to_string(), "no code for gfx1100: the file holds no device code");
}

#[test]
fn devices_are_named_by_target_ids() {
    for (id, full) in [
        ("gfx1100", "gfx1100"),
        ("gfx90a", "gfx90a:sramecc+:xnack-"),
        ("gfx906", "gfx906:sramecc-:xnack-"),
        ("gfx90a:xnack+", "gfx90a:sramecc+:xnack+"),
        ("gfx942:xnack+:sramecc-", "gfx942:sramecc-:xnack+"),
    ] {
        assert_eq!(device(id).to_string(), full);
    }
    for id in ["", "gfx", "gfx9-generic", "gfx1100:xnack-", "gfx90a:xnack", "gfx90a:xnack+:xnack+"]
    {
        let error = DeviceTarget::from_id(id).unwrap_err();
        assert!(error.to_string().contains("is not the target id of a GPU"), "{error}");
    }
}
