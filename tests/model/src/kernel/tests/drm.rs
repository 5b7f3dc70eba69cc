//! Render nodes, and models whose files have real descriptors.
#![allow(unsafe_code)] // ioctl is an unsafe method of the trait

use std::os::fd::AsRawFd as _;
use std::sync::Arc;

use kfd::sys::{Errno, FileId, Kernel as _, OpenFlags};

use crate::{Descriptors, Model, Offsets, Preset, Target};

fn request(number: u32, bytes: u32) -> u32 {
    3 << 30 | bytes << 16 | 0x64 << 8 | number
}

/// Calls an ioctl of a render node with words as argument.
fn drm(model: &Model, number: u32, words: &mut [u64]) -> Result<u32, Errno> {
    let file = model.open("/dev/dri/renderD128", OpenFlags::READ_WRITE).unwrap();
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let request = request(number, u32::try_from(bytes.len()).unwrap());
    // SAFETY: pointers in `words` are to live memory of the test.
    let result = unsafe { model.ioctl(file, request, &mut bytes) };
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap());
    }
    model.close(file);
    result
}

/// Asks `AMDGPU_INFO`.
fn info(model: &Model, query: u32, parameter: u64, answer: &mut [u8]) -> Result<u32, Errno> {
    let room = u64::try_from(answer.len()).unwrap();
    let address = answer.as_mut_ptr().expose_provenance() as u64;
    drm(model, 0x45, &mut [address, room | u64::from(query) << 32, parameter, 0])
}

#[test]
fn a_render_node_says_that_it_is_amdgpu() {
    let model = Model::builder().build();
    let mut name = [0_u8; 16];
    let at = name.as_mut_ptr().expose_provenance() as u64;
    let mut version = [0, 0, 4, at, 0, 0, 0, 0];
    assert_eq!(drm(&model, 0x00, &mut version), Ok(0));
    // The whole length comes back, what fits is copied.
    assert_eq!((version[0] & 0xffff_ffff, version[0] >> 32, version[2]), (3, 59, 6));
    assert_eq!(&name[..6], b"amdg\0\0");
}

#[test]
fn a_render_node_serves_no_authentication_and_refuses_what_is_unknown() {
    let model = Model::builder().build();
    // drm_ioctl.c: GET_CLIENT is not allowed on render nodes; unknown numbers are EINVAL.
    assert_eq!(drm(&model, 0x05, &mut [0; 5]), Err(Errno::ACCESS));
    assert_eq!(drm(&model, 0x7f, &mut [0; 2]), Err(Errno::INVAL));
    assert_eq!(info(&model, 0x77, 0, &mut [0; 8]), Err(Errno::INVAL));
    assert_eq!(info(&model, 0x16, 0, &mut []), Err(Errno::INVAL));
    assert_eq!(model.unmodelled(), 2);
}

#[test]
fn device_information_agrees_with_the_topology() {
    for target in Target::ALL {
        let model = Model::builder().gpu(Preset::of(target)).build();
        let mut answer = [0_u8; 368];
        info(&model, 0x16, 0, &mut answer).unwrap();
        let word = |at: usize| u32::from_le_bytes(answer[at..at + 4].try_into().unwrap());
        let gpu = &model.gpus[0];
        let cus = u32::try_from(gpu.cus_per_xcc).unwrap();
        assert_eq!(u64::from(word(0)), gpu.device_id, "{target}");
        let in_bitmap: u32 = (0..16).map(|i| word(56 + 4 * i).count_ones()).sum();
        assert_eq!(in_bitmap, cus, "{target}");
        // A shorter room is filled as far as it goes.
        let mut short = [0xee_u8; 8];
        info(&model, 0x16, 0, &mut short[..4]).unwrap();
        assert_eq!(short[4..], [0xee; 4]);
        // One register is readable.
        let mut register = [0_u8; 4];
        assert_eq!(info(&model, 0x15, 0x263e | 1 << 32, &mut register), Ok(0));
        assert_eq!(info(&model, 0x15, 0x1 | 1 << 32, &mut register), Err(Errno::FAULT));
    }
}

/// No descriptors but those that were published.
struct None_;

impl Descriptors for None_ {
    fn file(&self, _: i32) -> Option<FileId> {
        None
    }

    fn publish(&self, _: FileId) -> Result<i32, Errno> {
        Err(Errno::MFILE)
    }
}

fn with_descriptors(offsets: Offsets) -> (Arc<Model>, FileId) {
    let model = Model::builder().descriptors(offsets).build();
    let file = model.open("/dev/kfd", OpenFlags::READ_WRITE).unwrap();
    (model, file)
}

#[test]
fn an_argument_in_memory_is_read_and_written_there_or_is_efault() {
    let (model, file) = with_descriptors(Offsets::Plain);
    let mut version = [0_u32; 2];
    let at = version.as_mut_ptr().expose_provenance() as u64;
    assert_eq!(model.ioctl_at(file, 0x8008_4b01, at, &None_), Ok(0));
    assert_eq!(version, [1, 17]);
    assert_eq!(model.ioctl_at(file, 0x8008_4b01, 0, &None_), Err(Errno::FAULT));
    assert_eq!(model.ioctl_at(file, 0xc008_4b7f, 0, &None_), Err(Errno::NOTTY));
}

#[test]
fn both_kinds_of_offset_lead_to_the_same_page_of_the_descriptor() {
    for offsets in [Offsets::Plain, Offsets::Kfd] {
        let (model, file) = with_descriptors(offsets);
        let mut event = [0_u32; 8];
        let at = event.as_mut_ptr().expose_provenance() as u64;
        model.ioctl_at(file, 0xc020_4b08, at, &None_).unwrap();
        let given = u64::from(event[0]) | u64::from(event[1]) << 32;
        let literal = 2 << 62;
        assert_eq!(given == literal, offsets == Offsets::Kfd);
        let plan = model.plan_map(file, given, 0x8000).unwrap();
        assert_eq!(model.plan_map(file, literal, 0x8000), Ok(plan));
        assert!(plan.offset >= 1 << 32 && plan.dont_fork);
        assert_eq!(model.plan_map(file, literal, 0x9000), Err(Errno::INVAL));
        // The descriptor shows the page at that offset.
        let fd = model.descriptor(file, OpenFlags::READ_WRITE).unwrap();
        assert!(fd.as_raw_fd() > 2);
        let mut slot = [0_u8; 8];
        rustix::io::pread(&fd, &mut slot, plan.offset + 8).unwrap();
        assert_eq!(slot, [0xff; 8]);
    }
}
