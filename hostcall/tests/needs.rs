//! What a module needs is decided once, from its metadata, and costs nothing where there is nothing.

#![cfg(not(loom))]
#![allow(clippy::indexing_slicing)] // a test that indexes past the end should fail

use hostcall::needs::{Addresses, Evidence, ModuleNeeds, ServiceNeeds};
use hostcall::{Error, Transport};
use hsaco::{CodeObject, Geometry, Services};

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/code-objects/");
    std::fs::read(format!("{folder}{name}")).unwrap()
}

fn needs(name: &str) -> Option<Box<ModuleNeeds>> {
    let bytes = fixture(name);
    ModuleNeeds::of(&CodeObject::parse(&bytes).unwrap(), &bytes, None)
}

#[test]
fn kernels_without_services_have_nothing() {
    for name in
        ["vadd.gfx90a.v5.co", "vadd.gfx1100.v6.co", "triton_add.gfx942.co", "iree_mul.gfx90a.co"]
    {
        assert_eq!(needs(name), None, "{name}");
    }
}

#[test]
fn declared_services_are_found_by_name_in_every_version() {
    let hostcall = needs("hostcall.gfx1100.v5.co").unwrap();
    assert_eq!(hostcall.kernel(0), ServiceNeeds::HOSTCALL);
    assert_eq!(hostcall.kernel(1), ServiceNeeds::empty(), "there is no such kernel");
    let heap = needs("devmalloc.gfx90a.v5.co").unwrap();
    assert_eq!(heap.kernel(0), ServiceNeeds::HOSTCALL | ServiceNeeds::HEAP);
    let buffered = needs("printf_buffered.gfx90a.v5.co").unwrap();
    assert!(buffered.any().contains(ServiceNeeds::PRINTF_BUFFER));
    let opencl = needs("ocl.gfx90a.v5.co").unwrap();
    assert!(opencl.any().contains(ServiceNeeds::PRINTF_BUFFER));
    // -O0: the compiler cannot prove anything unused.
    let unproved = needs("vadd.gfx90a.O0.v5.co").unwrap();
    assert!(unproved.any().contains(ServiceNeeds::HOSTCALL));
}

#[test]
fn the_transport_is_what_the_caller_says_or_the_one_of_releases() {
    let bytes = fixture("hostcall.gfx1100.v5.co");
    let object = CodeObject::parse(&bytes).unwrap();
    let assumed = ModuleNeeds::of(&object, &bytes, None).unwrap();
    assert_eq!((assumed.transport(), assumed.evidence()), (Transport::Stack, Evidence::Assumed));
    assert!(assumed.evidence().text().contains("does not say"));
    let phase = needs("phase.gfx1100.v5.co").unwrap();
    assert_eq!((phase.transport(), phase.evidence()), (Transport::Phase, Evidence::Variable));
    for choice in [Transport::Stack, Transport::Phase] {
        let chosen = ModuleNeeds::of(&object, &bytes, Some(choice)).unwrap();
        assert_eq!((chosen.transport(), chosen.evidence()), (choice, Evidence::Chosen));
    }
}

#[test]
fn every_declared_slot_is_written_and_nothing_else() {
    let bytes = fixture("hostcall.gfx1100.v5.co");
    let object = CodeObject::parse(&bytes).unwrap();
    let kernel = object.kernels().first().unwrap();
    let needs = ServiceNeeds::of(kernel);
    let addresses = Addresses { hostcall_buffer: 0x1234_5000, printf_buffer: 0x77, heap: 0x88 };
    let mut services = Services { queue_ptr: 5, ..Services::default() };
    needs.claim(&addresses, &mut services);
    let wanted = Services { queue_ptr: 5, hostcall_buffer: 0x1234_5000, ..Services::default() };
    assert_eq!(services, wanted, "what is not declared stays");
    let template = kernel.arguments().template(&services).unwrap();
    let mut segment = vec![0xee; template.segment_bytes()];
    let arguments: [&[u8]; 3] = [&[1; 8], &[2; 8], &[3; 8]];
    let geometry = Geometry::new([64, 1, 1], [64, 1, 1], 1).unwrap();
    template.write(&mut segment, &arguments, &geometry).unwrap();
    let slot = kernel.arguments().hidden().iter();
    let slot = slot.clone().find(|a| a.kind == hsaco::kernarg::Hidden::HostcallBuffer).unwrap();
    let at = slot.offset as usize;
    assert_eq!(segment[at..at + 8], 0x1234_5000_u64.to_le_bytes());
    // Without the service the slot is 0, not what the memory held.
    let template = kernel.arguments().template(&Services::default()).unwrap();
    segment.fill(0xee);
    template.write(&mut segment, &arguments, &geometry).unwrap();
    assert_eq!(segment[at..at + 8], [0; 8]);
    // And a segment that is too small is refused, not overrun.
    let short = segment.len() - 1;
    assert!(template.write(&mut segment[..short], &arguments, &geometry).is_err());
}

#[test]
fn graphs_refuse_by_name_what_needs_memory_of_each_launch() {
    let refused = ServiceNeeds::all().check_graph().unwrap_err();
    assert!(matches!(refused, Error::NotInGraph { .. }));
    assert!(refused.to_string().contains("hidden_printf_buffer"), "{refused}");
    let blocking = ServiceNeeds::HOSTCALL | ServiceNeeds::HEAP;
    assert!(blocking.check_graph().is_ok());
    assert!(ServiceNeeds::empty().check_graph().is_ok());
}
