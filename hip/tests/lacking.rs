//! Without the feature `services`: nothing is given, and the module says so. A build of this package
//! alone tests it; in a build of the workspace the feature is on.
#![cfg(all(not(feature = "services"), not(loom)))]

use hip::{Module, Runtime};
use hsaco::Needs;
use kfd_model::{Model, Preset};

#[test]
fn without_the_feature_services_are_lacking_by_name() {
    let model = Model::builder().gpu(Preset::gfx90a()).build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    let device = &runtime.devices()[0];
    for (program, needs) in [
        ("printf", Needs::HOSTCALL_BUFFER),
        ("printf_buffered", Needs::PRINTF_BUFFER),
        ("devmalloc", Needs::HEAP),
        ("vadd", Needs::empty()),
    ] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/code-objects");
        let code = std::fs::read(format!("{folder}/{program}.gfx90a.v5.co")).unwrap();
        let module = Module::load(device, &code).unwrap();
        assert!(module.lacking().contains(needs), "{program}: {:?}", module.lacking());
        assert_eq!(module.lacking().is_empty(), needs.is_empty(), "{program}");
    }
}
