//! The same objects in every form a compiler writes.

use hsaco::bundle::{CompressionMethod, Encoding};
use hsaco::{CodeObject, Container, ContainerKind};

use crate::make::{bundle, ccob, fixture, hash, stored_zstd, zlib};

/// Ids and bytes of all images.
fn images(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let container = Container::read(file).unwrap();
    container.images().map(|image| (image.name(), image.bytes.to_vec())).collect()
}

fn kernels(object: &[u8]) -> Vec<String> {
    let object = CodeObject::parse(object).unwrap();
    object.kernels().iter().map(|kernel| kernel.name().to_owned()).collect()
}

#[test]
fn a_bundle_holds_the_very_objects_it_was_made_from() {
    let found = images(&fixture("vadd.multi.bundle"));
    for (id, name) in [
        ("gfx1100", "vadd.gfx1100.v5.co"),
        ("gfx90a:xnack+", "vadd.gfx90a_xnackp.v5.co"),
        ("gfx90a:xnack-", "vadd.gfx90a_xnackm.v5.co"),
    ] {
        let object = fixture(name);
        let id = format!("hipv4-amdgcn-amd-amdhsa--{id}");
        let (_, bytes) = found.iter().find(|(found, _)| *found == id).unwrap();
        assert_eq!(kernels(bytes), kernels(&object), "{name}");
        assert_eq!(*bytes, object, "{name}");
    }
    assert_eq!(found.len(), 3);
}

/// The kernels of src/fat_host.hip, mangled by clang.
const FAT_HOST: [&str; 2] = ["_Z3setIiEvPT_S0_", "_Z5scalePffj"];

#[test]
fn every_form_of_a_fat_binary_gives_the_same_objects() {
    let plain = images(&fixture("fat_host.bundle"));
    let ids: Vec<&str> = plain.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(
        ids,
        ["gfx1100", "gfx90a", "gfx942"].map(|t| format!("hipv4-amdgcn-amd-amdhsa--{t}"))
    );
    for (_, object) in &plain {
        let mut found = kernels(object);
        found.sort();
        assert_eq!(found, FAT_HOST);
    }
    for name in [
        "fat_host.ccob1.bundle",
        "fat_host.ccob2.bundle",
        "fat_host.ccob2zlib.bundle",
        "fat_host.o",
        "fat_host.ccob2.o",
    ] {
        assert_eq!(images(&fixture(name)), plain, "{name}");
    }
    let twice = images(&fixture("fat_host.two_ccob.bundle"));
    assert_eq!(twice, [plain.clone(), plain].concat());
}

#[test]
fn files_of_clang_22_give_the_same_objects_in_every_form() {
    let bundle = images(&fixture("fat_host.ccob3.c22.bundle"));
    assert_eq!(images(&fixture("fat_host.ccob3.c22.o")), bundle);
    assert_eq!(bundle.len(), 3);
    for (id, object) in bundle.iter().chain(&images(&fixture("fat_host.generic.c22.bundle"))) {
        let mut found = kernels(object);
        found.sort();
        assert_eq!(found, FAT_HOST, "{id}");
        let target = CodeObject::parse(object).unwrap().target().to_string();
        assert!(id.ends_with(&target), "{id} holds {target}");
    }
}

#[test]
fn containers_say_what_they_are() {
    let kind = |name: &str| Container::read(&fixture(name)).unwrap().kind();
    assert_eq!(kind("vadd.gfx90a.v5.co"), ContainerKind::CodeObject);
    assert_eq!(kind("fat_host.bundle"), ContainerKind::Bundles);
    assert_eq!(kind("fat_host.o"), ContainerKind::HostFile);
    let encoding = |name: &str| Container::read(&fixture(name)).unwrap().bundles()[0].encoding();
    assert_eq!(encoding("vadd.gfx90a.v5.co"), Encoding::Bare);
    assert_eq!(encoding("fat_host.o"), Encoding::Plain);
    for (name, version, method) in [
        ("fat_host.ccob1.bundle", 1, CompressionMethod::Zstd),
        ("fat_host.ccob2.bundle", 2, CompressionMethod::Zstd),
        ("fat_host.ccob2zlib.bundle", 2, CompressionMethod::Zlib),
        ("fat_host.ccob3.c22.bundle", 3, CompressionMethod::Zstd),
    ] {
        let Encoding::Compressed(header) = encoding(name) else { panic!("{name}") };
        assert_eq!((header.version, header.method), (version, method), "{name}");
    }
}

#[test]
fn a_code_object_by_itself_is_its_own_image() {
    let bytes = fixture("vadd.gfx906_srameccp.v5.co");
    assert_eq!(images(&bytes), [("gfx906:sramecc+".to_owned(), bytes.clone())]);
}

#[test]
fn every_version_and_method_of_compression_is_read() {
    let plain = fixture("fat_host.bundle");
    let expected = images(&plain);
    let size = plain.len() as u64;
    for version in [1, 2, 3] {
        let file = ccob(version, 0, &zlib(&plain), size, hash(&plain));
        assert_eq!(images(&file), expected, "zlib, version {version}");
    }
    assert_eq!(images(&stored_zstd(&plain)), expected);
}

#[test]
fn bundles_of_all_kinds_may_follow_one_another_with_padding() {
    let kinds = ["fat_host.bundle", "fat_host.ccob1.bundle", "fat_host.ccob2zlib.bundle"];
    let mut file = Vec::new();
    for index in 0..64 {
        file.extend(fixture(kinds[index % 3]));
        // From no padding to more than a page of it.
        file.resize(file.len() + index * 100, 0);
    }
    let container = Container::read(&file).unwrap();
    assert_eq!(container.bundles().len(), 64);
    let expected = images(&fixture("fat_host.bundle"));
    for bundle in container.bundles() {
        assert!(bundle.images().map(|image| image.bytes).eq(expected.iter().map(|(_, b)| b)));
        let at = usize::try_from(bundle.offset()).unwrap();
        assert!(matches!(&file[at..at + 4], b"__CL" | b"CCOB"));
    }
}

#[test]
fn old_and_new_host_entries_are_told_from_images() {
    let object = fixture("vadd.gfx90a.v5.co");
    for host in ["host-x86_64-unknown-linux", "host-x86_64-unknown-linux--", "host-x86_64-pc-gnu-"]
    {
        let file = bundle(&[(host, &[]), ("hip-amdgcn-amd-amdhsa-gfx90a", &object)]);
        let container = Container::read(&file).unwrap();
        let names: Vec<String> = container.images().map(|image| image.name()).collect();
        assert_eq!(names, ["hip-amdgcn-amd-amdhsa-gfx90a"]);
        assert_eq!(container.bundles()[0].entries().len(), 2);
    }
}

#[test]
fn containers_and_objects_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Container<'static>>();
    shared::<CodeObject<'static>>();
    let file = fixture("fat_host.ccob2.bundle");
    let container = Container::read(&file).unwrap();
    let expected = images(&fixture("fat_host.bundle"));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for (image, (_, bytes)) in container.images().zip(&expected) {
                    assert_eq!(kernels(image.bytes), kernels(bytes));
                }
            });
        }
    });
}
