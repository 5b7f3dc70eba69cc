use super::*;

fn object(flags: u32) -> ObjectTarget {
    ObjectTarget::from_flags(flags, CodeObjectVersion::V6).unwrap()
}

fn device(version: u32, sramecc: bool, xnack: bool) -> DeviceTarget {
    DeviceTarget::new(version, sramecc, xnack).unwrap()
}

#[test]
fn flags_display_as_the_target_ids_that_compilers_print() {
    // e_flags and target id of real objects.
    for (flags, id) in [
        (0x12c, "gfx900"),
        (0x53f, "gfx90a"),
        (0x73f, "gfx90a:xnack+"),
        (0x63f, "gfx90a:xnack-"),
        (0xe3f, "gfx90a:sramecc+:xnack-"),
        (0xb3f, "gfx90a:sramecc-:xnack+"),
        (0xe4c, "gfx942:sramecc+:xnack-"),
        (0x930, "gfx908:sramecc-"),
        (0xd2f, "gfx906:sramecc+"),
        (0x41, "gfx1100"),
        (0x0100_0151, "gfx9-generic"),
        (0x0100_055f, "gfx9-4-generic"),
        (0x0100_0054, "gfx11-generic"),
    ] {
        assert_eq!(object(flags).to_string(), id);
    }
}

#[test]
fn version_3_has_no_any() {
    let v3 = |flags| ObjectTarget::from_flags(flags, CodeObjectVersion::V3).unwrap();
    assert_eq!(v3(0x33f).to_string(), "gfx90a:sramecc+:xnack+");
    assert_eq!(v3(0x3f).to_string(), "gfx90a:sramecc-:xnack-");
    assert_eq!(v3(0x41).to_string(), "gfx1100");
    assert_eq!(v3(0x41).xnack(), FeatureState::Unsupported);
}

#[test]
fn kfd_version_numbers_name_processors() {
    for (version, name) in [
        (90000, "gfx900"),
        (90006, "gfx906"),
        (90008, "gfx908"),
        (90010, "gfx90a"),
        (90012, "gfx90c"),
        (90402, "gfx942"),
        (90500, "gfx950"),
        (100301, "gfx1031"),
        (110000, "gfx1100"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
    ] {
        assert_eq!(device(version, false, false).processor().name(), name);
    }
    for unknown in [0, 1, 80003, 90011, 110009, 130000, u32::MAX] {
        assert_eq!(DeviceTarget::new(unknown, true, true), Err(UnknownDevice(unknown)));
    }
}

#[test]
fn every_processor_name_follows_from_its_version() {
    let mut count = 0;
    for processor in Processor::all() {
        assert_eq!(Processor::from_name(processor.name()), Some(processor));
        assert_eq!(Processor::from_mach(processor.mach()), Some(processor));
        if let Some((major, minor, step)) = processor.version() {
            assert_eq!(processor.name(), format!("gfx{major}{minor}{step:x}"));
            assert_eq!(processor.major(), major);
            let number = major * 10000 + minor * 100 + step;
            assert_eq!(Processor::from_gfx_target_version(number), Some(processor));
        } else {
            let family = processor.generic().unwrap();
            assert_eq!(processor.name(), family.name());
            assert!(processor.name().starts_with(&format!("gfx{}-", processor.major())));
        }
        count += 1;
    }
    assert_eq!(count, 44);
}

#[test]
fn a_device_shows_only_the_features_it_has() {
    assert_eq!(device(90010, true, false).to_string(), "gfx90a:sramecc+:xnack-");
    assert_eq!(device(90000, true, true).to_string(), "gfx900:xnack+");
    assert_eq!(device(110000, true, true).to_string(), "gfx1100");
}

/// Rows: objects by e_flags. Columns: devices. `y`: runs; otherwise why not: `p`rocessor, `f`amily,
/// `s`ramecc, `x`nack. Worked out by hand from the target id rules.
#[test]
fn objects_fit_devices_as_the_target_id_rules_say() {
    let devices = [
        device(90000, false, false),  // gfx900:xnack-
        device(90006, true, false),   // gfx906:sramecc+:xnack-
        device(90008, true, false),   // gfx908:sramecc+:xnack-
        device(90010, true, false),   // gfx90a:sramecc+:xnack-
        device(90010, true, true),    // gfx90a:sramecc+:xnack+
        device(90010, false, true),   // gfx90a:sramecc-:xnack+
        device(90402, true, false),   // gfx942:sramecc+:xnack-
        device(90500, true, true),    // gfx950:sramecc+:xnack+
        device(110000, false, false), // gfx1100
        device(110002, false, false), // gfx1102
        device(110501, false, false), // gfx1151
        device(120000, false, false), // gfx1200
    ];
    let table = [
        (0x12c, "yppppppppppp"),       // gfx900
        (0x32c, "xppppppppppp"),       // gfx900:xnack+
        (0xd2f, "pypppppppppp"),       // gfx906:sramecc+
        (0x92f, "pspppppppppp"),       // gfx906:sramecc-
        (0x53f, "pppyyypppppp"),       // gfx90a
        (0x73f, "pppxyypppppp"),       // gfx90a:xnack+
        (0x63f, "pppyxxpppppp"),       // gfx90a:xnack-
        (0xe3f, "pppyxspppppp"),       // gfx90a:sramecc+:xnack-
        (0xb3f, "pppssypppppp"),       // gfx90a:sramecc-:xnack+
        (0xe4c, "ppppppyppppp"),       // gfx942:sramecc+:xnack-
        (0x41, "ppppppppyppp"),        // gfx1100
        (0x4a, "ppppppppppyp"),        // gfx1151
        (0x0100_0151, "yyffffffffff"), // gfx9-generic
        (0x0100_0351, "xxffffffffff"), // gfx9-generic:xnack+
        (0x0100_055f, "ffffffyyffff"), // gfx9-4-generic
        (0x0100_0f5f, "ffffffxyffff"), // gfx9-4-generic:sramecc+:xnack+
        (0x0100_0054, "ffffffffyyyf"), // gfx11-generic
        (0xff00_0054, "ffffffffyyyf"), // gfx11-generic, version 255
    ];
    for (flags, row) in table {
        let object = object(flags);
        assert_eq!(row.len(), devices.len(), "{object}");
        for (device, expected) in devices.iter().zip(row.chars()) {
            let found = match object.fits(device) {
                Ok(()) => 'y',
                Err(Mismatch { reason: MismatchReason::Processor, .. }) => 'p',
                Err(Mismatch { reason: MismatchReason::Family, .. }) => 'f',
                Err(Mismatch { reason: MismatchReason::Sramecc, .. }) => 's',
                Err(Mismatch { reason: MismatchReason::Xnack, .. }) => 'x',
                Err(Mismatch { reason: MismatchReason::GenericVersion { .. }, .. }) => 'v',
            };
            assert_eq!(found, expected, "{object} on {device}");
        }
    }
}

#[test]
fn every_member_of_a_family_and_no_other_takes_its_generic_code() {
    let families = [
        (0x0100_0151, "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c"),
        (0x0100_055f, "gfx940 gfx941 gfx942 gfx950"),
        (0x0100_0152, "gfx1010 gfx1011 gfx1012 gfx1013"),
        (0x0100_0053, "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036"),
        (0x0100_0054, "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153"),
        (0x0100_0059, "gfx1200 gfx1201"),
    ];
    for (flags, members) in families {
        let object = object(flags);
        let fitting: Vec<&str> = Processor::all()
            .filter_map(|processor| {
                let (major, minor, step) = processor.version()?;
                let device = device(major * 10000 + minor * 100 + step, false, false);
                object.fits(&device).is_ok().then(|| processor.name())
            })
            .collect();
        assert_eq!(fitting.join(" "), members);
    }
}

#[test]
fn a_mismatch_names_both_and_what_would_fit() {
    let mismatch = object(0x73f).fits(&device(90010, true, false)).unwrap_err();
    assert_eq!(
        mismatch.to_string(),
        "compiled for gfx90a:xnack+, the GPU is gfx90a:sramecc+:xnack-: xnack is set the other \
         way; would fit: gfx90a, or gfx90a:sramecc+:xnack- with either feature left out"
    );
    let mismatch = object(0x53f).fits(&device(110000, false, false)).unwrap_err();
    assert_eq!(
        mismatch.to_string(),
        "compiled for gfx90a, the GPU is gfx1100: another processor; would fit: gfx1100, or \
         gfx11-generic"
    );
}

#[test]
fn target_strings_are_found_in_both_spellings() {
    let object = object(0x73f);
    assert_eq!(object.is_named_by("amdgcn-amd-amdhsa--gfx90a:xnack+"), Some(true));
    assert_eq!(object.is_named_by("amdgpu9.0a-amd-amdhsa-unknown-gfx90a:xnack+"), Some(true));
    assert_eq!(object.is_named_by("amdgcn-amd-amdhsa--gfx90a"), Some(false));
    assert_eq!(object.is_named_by("something else"), None);
    let generic = self::object(0x0100_055f);
    assert_eq!(generic.is_named_by("amdgcn-amd-amdhsa--gfx9-4-generic"), Some(true));
}
