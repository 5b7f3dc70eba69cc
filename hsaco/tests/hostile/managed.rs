//! Managed variables.

use hsaco::{Error, ManagedProblem, ManagedVariable};

use crate::patch::{PT_LOAD, Patch, assert_refused};

fn globals() -> Patch {
    Patch::of("globals.gfx90a.stripped.v5.co")
}

macro_rules! assert_managed {
    ($patch:expr, $pattern:pat $(if $guard:expr)?) => {
        assert_refused!(
            $patch,
            Error::Managed { ref variable, problem: $pattern } if variable == "shared_total" $(&& $guard)?
        )
    };
}

#[test]
fn managed_variables_have_a_pointer_and_a_first_value() {
    let patch = globals();
    let object = patch.parses();
    let names: Vec<(&str, u64)> = object.managed().iter().map(|v| (v.name, v.bytes)).collect();
    assert_eq!(names, [("managed_arr", 32), ("shared_total", 4)]);
    let at = |name: &str| object.variable(name).unwrap();
    for variable in object.managed() {
        assert_eq!(variable.pointer_vaddr, at(variable.name).vaddr);
        let first_value = at(&format!("{}.managed", variable.name));
        assert_eq!(variable.initial_vaddr, first_value.vaddr);
        assert_eq!(variable.bytes, first_value.bytes);
        assert!(variable.align >= 4 && variable.initial_vaddr.is_multiple_of(variable.align));
    }
    assert!(Patch::vadd().parses().managed().is_empty());
}

#[test]
fn an_image_takes_the_pointer_and_gives_the_first_value() {
    let patch = globals();
    let object = patch.parses();
    let mut image = object.image(0x10_0000).unwrap();
    let [array, total] = object.managed() else { panic!("two variables") };
    let mut value = [0xff; 4];
    image.read(total.initial_vaddr, &mut value).unwrap();
    assert_eq!(value, 41_u32.to_le_bytes());
    let mut zeros = [0xff; 32];
    image.read(array.initial_vaddr, &mut zeros).unwrap();
    assert_eq!(zeros, [0; 32]);
    for (variable, address) in [(array, 0x1111_2222_3333_4444_u64), (total, 0x5555_6666_7777_8888)]
    {
        image.set_managed(variable, address).unwrap();
        let mut pointer = [0; 8];
        image.read(variable.pointer_vaddr, &mut pointer).unwrap();
        assert_eq!(pointer, address.to_le_bytes());
    }
    let mut memory = vec![0xee; usize::try_from(image.load_bytes()).unwrap()];
    image.write_to(&mut memory).unwrap();
    let at = usize::try_from(image.address_of(total.pointer_vaddr) - image.base()).unwrap();
    assert_eq!(&memory[at..at + 8], &0x5555_6666_7777_8888_u64.to_le_bytes());
}

#[test]
fn nothing_outside_the_image_is_read_or_written() {
    let patch = globals();
    let object = patch.parses();
    let mut image = object.image(0x10_0000).unwrap();
    let end = image.load_bytes();
    for vaddr in [end - 3, end, u64::MAX - 1] {
        let mut memory = [0x5a; 4];
        let error = image.read(vaddr, &mut memory).unwrap_err();
        assert!(matches!(error, Error::TableOutside { bytes: 4, .. }), "{error:?}");
        assert_eq!(memory, [0x5a; 4]);
    }
    let elsewhere = ManagedVariable { pointer_vaddr: u64::MAX - 3, ..object.managed()[0] };
    let before = image.clone();
    assert!(image.set_managed(&elsewhere, 1).is_err());
    assert_eq!(image, before);
}

#[test]
fn a_first_value_without_bytes_is_refused() {
    let patch = globals().set_symbol_size("shared_total.managed", 0);
    assert_managed!(patch, ManagedProblem::Empty);
}

#[test]
fn a_first_value_without_its_pointer_is_refused() {
    let patch = globals();
    let (pointer, other) = (patch.symbol("shared_total"), patch.symbol("shared_total.managed"));
    // The name without its first letter is another name.
    let name = patch.u32_at(pointer) + 1;
    assert_managed!(patch.clone().set(pointer, &name.to_le_bytes()), ManagedProblem::NoPointer);
    let info = patch.bytes[other + 4] & 0xf0 | 2;
    assert_managed!(patch.clone().set(pointer + 4, &[info]), ManagedProblem::NoPointer);
    // A function of that name is none.
    assert!(patch.set(other + 4, &[info]).parses().managed().len() == 1);
}

#[test]
fn a_pointer_of_another_size_is_refused() {
    for size in [0, 4, 16] {
        let patch = globals().set_symbol_size("shared_total", size);
        assert_managed!(patch, ManagedProblem::PointerSize { bytes } if bytes == size);
    }
}

#[test]
fn a_pointer_in_read_only_memory_is_refused() {
    let patch = globals();
    let code = patch.u64_at(patch.program_headers(PT_LOAD)[1] + 16);
    let patch = patch.set_symbol_value("shared_total", code);
    assert_managed!(patch, ManagedProblem::PointerPlace { vaddr } if vaddr == code);
}

#[test]
fn a_pointer_on_a_kernel_descriptor_is_refused() {
    let patch = globals();
    let descriptor = patch.parses().kernels()[0].descriptor_vaddr();
    // The segment of the descriptors made writable.
    let first = patch.program_headers(PT_LOAD)[0];
    let patch = patch.set(first + 4, &[6]);
    for vaddr in [descriptor - 4, descriptor, descriptor + 60] {
        let patch = patch.clone().set_symbol_value("shared_total", vaddr);
        assert_managed!(patch, ManagedProblem::PointerPlace { vaddr: v } if v == vaddr);
    }
    let beside = patch.set_symbol_value("shared_total", descriptor - 8);
    assert_eq!(beside.parses().managed().len(), 2);
}
