//! Shared virtual memory, of kernels built with it.

use std::sync::Arc;

use kfd::abi::request;
use kfd::abi::{
    AllocFlags, SetXnackModeArgs, SvmArgs, SvmAttrType, SvmAttribute, SvmFlags, SvmLocation, SvmOp,
};
use kfd::sys::{Backing, Errno, Kernel, OpenFlags};
use zerocopy::{FromBytes, IntoBytes};

use super::client::GTT;
use super::{Client, Page};
use crate::kernel::Model;
use crate::memory::Access;
use crate::{Preset, Profile};

const READ: Access = Access { write: false, execute: false };
const WRITE: Access = Access { write: true, execute: false };
const RUN: Access = Access { write: false, execute: true };

const GPU: SvmAttrType = SvmAttrType::ACCESS;
const NONE: SvmAttrType = SvmAttrType::NO_ACCESS;
const UNDEFINED: u32 = SvmLocation::UNDEFINED.0;

/// A client on a kernel with SVM, of one gfx1100 and one gfx90a.
fn two_gpus() -> Client {
    let builder = Model::builder().gpu(Preset::gfx1100()).gpu(Preset::gfx90a());
    Client::new(&builder.svm(true).stepped(true).build())
}

impl Client {
    fn svm(
        &self,
        op: SvmOp,
        (start_addr, size): (u64, u64),
        attributes: &mut [(SvmAttrType, u32)],
    ) -> Result<u32, Errno> {
        let nattr = u32::try_from(attributes.len()).unwrap();
        let mut bytes = SvmArgs { start_addr, size, op, nattr }.as_bytes().to_vec();
        for &mut (kind, value) in &mut *attributes {
            bytes.extend_from_slice(SvmAttribute { kind, value }.as_bytes());
        }
        let result = self.raw(request::svm(attributes.len()).unwrap(), &mut bytes);
        for (to, from) in attributes.iter_mut().zip(bytes[24..].chunks_exact(8)) {
            let attribute = SvmAttribute::read_from_bytes(from).unwrap();
            *to = (attribute.kind, attribute.value);
        }
        result
    }

    fn set(&self, range: (u64, u64), attributes: &[(SvmAttrType, u32)]) -> Result<u32, Errno> {
        self.svm(SvmOp::SET_ATTR, range, &mut attributes.to_vec())
    }

    fn get(&self, range: (u64, u64), kind: SvmAttrType, value: u32) -> (SvmAttrType, u32) {
        let mut one = [(kind, value)];
        assert_eq!(self.svm(SvmOp::GET_ATTR, range, &mut one), Ok(0));
        one[0]
    }

    /// Zeroed memory of the client's own.
    fn anonymous(&self, bytes: usize) -> Page {
        let at = self.map(None, bytes, Backing::Anonymous).unwrap();
        Page { at, bytes, handle: 0 }
    }

    /// Whether a GPU may do that with the bytes.
    fn reaches(&self, gpu: usize, (start, bytes): (u64, u64), access: Access) -> bool {
        let state = self.model.lock();
        let process = state.processes.values().next().unwrap();
        process.devices[gpu].device.space.allows(start, bytes, access)
    }
}

#[test]
fn a_kernel_without_svm_refuses_it_after_the_size_of_the_argument() {
    let client = Client::stepped(Preset::gfx90a(), Profile::V6_12);
    assert_eq!(client.set((1, 1), &[]), Err(Errno::PERM));
    let mut args = SetXnackModeArgs { xnack_enabled: -1 };
    assert_eq!(client.call(0x21, &mut args), Err(Errno::PERM));
    let with = Model::builder().gpu(Preset::gfx90a()).svm(true).build();
    assert!(with.gpus[0].has_svm() && !client.model.gpus[0].has_svm());
    let counters = |model: &Arc<Model>| {
        let _kfd = model.open("/dev/kfd", OpenFlags::READ_WRITE).unwrap();
        let id = std::process::id();
        let gpu = model.gpus[0].id;
        let path = format!("/sys/class/kfd/kfd/proc/{id}/counters_{gpu}/page_in");
        model.open(&path, OpenFlags::READ).map(|_| ())
    };
    assert_eq!((counters(&with), counters(&client.model)), (Ok(()), Err(Errno::NOENT)));
}

#[test]
fn attributes_and_ranges_are_checked_in_the_order_of_linux() {
    let client = two_gpus();
    let gpu = client.gpus[0];
    let page = client.anonymous(8192);
    let (start, bytes) = (page.address(), 8192);
    let fails = |range, attributes: &[_], errno| {
        assert_eq!(client.set(range, attributes), Err(errno), "{range:x?} {attributes:?}");
    };
    for range in [(start + 1, bytes), (start, bytes + 1), (0, bytes), (start, 0)] {
        fails(range, &[(GPU, gpu)], Errno::INVAL);
    }
    // Attributes before the range.
    let nowhere = (0x5000_0000_0000, 4096);
    for bad in [
        (SvmAttrType(8), 0),
        (GPU, 1),
        (NONE, 0),
        (SvmAttrType::PREFERRED_LOC, 7),
        (SvmAttrType::PREFETCH_LOC, UNDEFINED),
    ] {
        fails(nowhere, &[(GPU, gpu), bad], Errno::INVAL);
    }
    fails(nowhere, &[(GPU, gpu)], Errno::FAULT);
    fails((start, 1 << 46), &[(GPU, gpu)], Errno::FAULT);
    fails((u64::MAX - 4095, 8192), &[(GPU, gpu)], Errno::OVERFLOW);
    assert_eq!(client.svm(SvmOp(2), (start, bytes), &mut []), Err(Errno::INVAL));
    // The CPU's mapping of a buffer, and the GPU's where the CPU has none.
    let buffer = client.page(GTT, 4096);
    fails((buffer.address(), 4096), &[(GPU, gpu)], Errno::FAULT);
    let hidden = client.page(AllocFlags::VRAM | AllocFlags::WRITABLE, 4096);
    fails((hidden.address(), 4096), &[(GPU, gpu)], Errno::ADDRINUSE);
    assert_eq!(client.model.live().svm_ranges, 0, "nothing was made");
    // Memory that SVM has is no buffer's.
    assert_eq!(client.set((start, bytes), &[(SvmAttrType::PREFERRED_LOC, 0)]), Ok(0));
    let alloc = |flags, va| client.alloc(0, flags, va, 4096).map(drop);
    assert_eq!(alloc(GTT, start + 4096), Err(Errno::ADDRINUSE));
    assert_eq!(alloc(AllocFlags::VRAM, 0), Ok(()));
    assert_eq!(client.model.live().svm_ranges, 1);
    // Without an address space there is nothing to map into; asking is allowed.
    let bare = Client::without_vm(&Model::builder().svm(true).build());
    let page = bare.anonymous(4096);
    assert_eq!(bare.set((page.address(), 4096), &[]), Err(Errno::INVAL));
    assert_eq!(bare.get((page.address(), 4096), SvmAttrType::GRANULARITY, 0).1, 9);
}

#[test]
fn access_maps_host_pages_at_their_own_address() {
    let client = two_gpus();
    let (gpu, other) = (client.gpus[0], client.gpus[1]);
    let page = client.anonymous(3 * 4096);
    let all = (page.address(), 3 * 4096);
    let middle = (page.address() + 4096, 4096);
    assert_eq!(client.set(all, &[(SvmAttrType::PREFERRED_LOC, gpu)]), Ok(0));
    assert!(!client.reaches(0, all, READ));
    assert_eq!(client.set(all, &[(GPU, gpu), (SvmAttrType::ACCESS_IN_PLACE, other)]), Ok(0));
    assert!(client.reaches(0, all, WRITE) && client.reaches(1, all, WRITE));
    assert!(!client.reaches(0, all, RUN));
    page.u64(4096).store(77, std::sync::atomic::Ordering::Release);
    let space = {
        let state = client.model.lock();
        Arc::clone(&state.processes.values().next().unwrap().devices[0].device.space)
    };
    assert_eq!(space.load_u64(middle.0), Ok(77));
    space.store_u64(middle.0, 78).unwrap();
    assert_eq!(page.u64(4096).load(std::sync::atomic::Ordering::Acquire), 78);
    // Flags of a part.
    let read_only = (SvmFlags::GPU_RO | SvmFlags::GPU_EXEC).bits();
    assert_eq!(client.set(middle, &[(SvmAttrType::SET_FLAGS, read_only)]), Ok(0));
    assert!(client.reaches(0, all, READ) && !client.reaches(0, all, WRITE));
    assert!(client.reaches(1, middle, RUN));
    assert_eq!(client.model.live().svm_ranges, 3);
    let flags = SvmFlags::GPU_RO.bits();
    assert_eq!(client.set(middle, &[(SvmAttrType::CLR_FLAGS, flags)]), Ok(0));
    assert!(client.reaches(0, all, WRITE));
}

#[test]
fn a_gpu_that_lost_access_keeps_its_translation_until_the_pages_go() {
    let client = two_gpus();
    let page = client.anonymous(4096);
    let range = (page.address(), 4096);
    client.set(range, &[(GPU, client.gpus[0]), (GPU, client.gpus[1])]).unwrap();
    client.set(range, &[(NONE, client.gpus[0])]).unwrap();
    assert_eq!(client.get(range, GPU, client.gpus[0]).0, NONE);
    assert!(client.reaches(0, range, READ) && client.reaches(1, range, READ));
    assert!(client.model.diagnostics().is_empty());
    client.unmap(page.at, 4096).unwrap();
    assert!(!client.reaches(0, range, READ) && !client.reaches(1, range, READ));
    let diagnostics = client.model.diagnostics();
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].gpu_id, client.gpus[0]);
    assert_eq!(client.model.live().svm_ranges, 0);
}

#[test]
fn unmapping_a_part_keeps_the_ends_and_runs_queues_on() {
    let client = two_gpus();
    let page = client.anonymous(4 * 4096);
    let address = page.address();
    client.set((address, 4 * 4096), &[(GPU, client.gpus[0])]).unwrap();
    let hole = std::ptr::NonNull::new(page.at.as_ptr().wrapping_add(4096)).unwrap();
    client.unmap(hole, 8192).unwrap();
    assert!(client.reaches(0, (address, 4096), WRITE));
    assert!(!client.reaches(0, (address + 4096, 8192), READ));
    assert!(!client.reaches(0, (address + 8192, 4096), READ));
    assert!(client.reaches(0, (address + 3 * 4096, 4096), WRITE));
    assert_eq!(client.model.live().svm_ranges, 2);
    assert!(client.model.diagnostics().is_empty());
}

#[test]
fn get_attr_tells_what_all_pages_agree_on() {
    let client = two_gpus();
    let (gpu, other) = (client.gpus[0], client.gpus[1]);
    let page = client.anonymous(8192);
    let (all, first) = ((page.address(), 8192), (page.address(), 4096));
    // What nobody set: host access and coherent, 2 MiB.
    assert_eq!(client.get(all, SvmAttrType::SET_FLAGS, 0).1, 3);
    assert_eq!(client.get(all, SvmAttrType::CLR_FLAGS, 0).1, !3);
    assert_eq!(client.get(all, SvmAttrType::PREFERRED_LOC, 0).1, UNDEFINED);
    assert_eq!(client.get(all, GPU, gpu), (NONE, gpu));
    let changes = [
        (SvmAttrType::PREFERRED_LOC, gpu),
        (SvmAttrType::GRANULARITY, 200),
        (SvmAttrType::SET_FLAGS, 16),
        (SvmAttrType::ACCESS_IN_PLACE, other),
    ];
    client.set(first, &changes).unwrap();
    assert_eq!(client.get(first, SvmAttrType::PREFERRED_LOC, 0).1, gpu);
    assert_eq!(client.get(first, SvmAttrType::GRANULARITY, 0).1, 63);
    assert_eq!(client.get(first, GPU, other), (SvmAttrType::ACCESS_IN_PLACE, other));
    // Pages outside any range do not count.
    assert_eq!(client.get(all, SvmAttrType::SET_FLAGS, 0).1, 19);
    client.set((page.address() + 4096, 4096), &[(SvmAttrType::CLR_FLAGS, 1)]).unwrap();
    assert_eq!(client.get(all, SvmAttrType::SET_FLAGS, 0).1, 2);
    assert_eq!(client.get(all, SvmAttrType::CLR_FLAGS, 0).1, !19);
    assert_eq!(client.get(all, SvmAttrType::PREFERRED_LOC, 0).1, UNDEFINED);
    assert_eq!(client.get(all, SvmAttrType::GRANULARITY, 0).1, 9);
    assert_eq!(client.get(all, GPU, other), (NONE, other));
    // Questions that are none; an unknown GPU leaves the answers before it.
    for kind in [SvmAttrType::ACCESS_IN_PLACE, NONE, SvmAttrType(8)] {
        let mut one = [(kind, gpu)];
        assert_eq!(client.svm(SvmOp::GET_ATTR, all, &mut one), Err(Errno::INVAL));
    }
    let mut two = [(SvmAttrType::SET_FLAGS, 0), (GPU, 1)];
    assert_eq!(client.svm(SvmOp::GET_ATTR, all, &mut two), Err(Errno::INVAL));
    assert_eq!(two, [(SvmAttrType::SET_FLAGS, 2), (GPU, 1)]);
}

#[test]
fn prefetching_to_a_gpu_is_kept_and_told_and_moves_nothing() {
    let client = two_gpus();
    let page = client.anonymous(4096);
    let range = (page.address(), 4096);
    let gpu = client.gpus[0];
    client.set(range, &[(GPU, gpu), (SvmAttrType::PREFETCH_LOC, gpu)]).unwrap();
    assert_eq!(client.get(range, SvmAttrType::PREFETCH_LOC, 0).1, gpu);
    assert!(client.reaches(0, range, WRITE));
    assert_eq!(client.model.unmodelled(), 1);
    assert!(client.model.diagnostics()[0].text.contains("prefetch"));
    client.set(range, &[(SvmAttrType::PREFETCH_LOC, 0)]).unwrap();
    assert_eq!(client.model.unmodelled(), 1);
}

#[test]
fn a_gpu_without_address_space_is_refused_and_the_attribute_stays() {
    let builder = Model::builder().gpu(Preset::gfx1100()).gpu(Preset::gfx90a()).svm(true);
    let client = Client::without_vm(&builder.build());
    let drm_fd = client.render[0].0.unsigned_abs();
    let mut args = kfd::abi::AcquireVmArgs { drm_fd, gpu_id: client.gpu() };
    client.call(0x15, &mut args).unwrap();
    let page = client.anonymous(4096);
    let range = (page.address(), 4096);
    assert_eq!(client.set(range, &[(GPU, client.gpus[1])]), Err(Errno::INVAL));
    assert_eq!(client.get(range, GPU, client.gpus[1]).0, GPU);
    assert_eq!(client.model.diagnostics().len(), 1);
}

#[test]
fn xnack_stays_off_and_says_who_cannot_have_it() {
    let call = |client: &Client, value: i32| {
        let mut args = SetXnackModeArgs { xnack_enabled: value };
        client.call(0x21, &mut args).map(|_| args.xnack_enabled)
    };
    let client = two_gpus();
    assert_eq!([-1, 0, 1].map(|v| call(&client, v)), [Ok(0), Ok(0), Err(Errno::PERM)]);
    assert_eq!(client.model.unmodelled(), 0, "gfx11 cannot: the kernel's own answer");
    let builder = Model::builder().gpu(Preset::gfx90a()).svm(true).stepped(true);
    let client = Client::new(&builder.build());
    assert_eq!([-1, 0, 1].map(|v| call(&client, v)), [Ok(0), Ok(0), Err(Errno::PERM)]);
    assert_eq!(client.model.unmodelled(), 1, "gfx90a could");
    let (mut args, _) = client.queue_args(4096);
    client.call(0x02, &mut args).unwrap();
    assert_eq!([-1, 0, 1].map(|v| call(&client, v)), [Ok(0), Err(Errno::BUSY), Err(Errno::BUSY)]);
}

#[test]
fn a_save_area_in_svm_needs_to_be_always_mapped_and_takes_the_queues_with_it() {
    let builder = Model::builder().gpu(Preset::gfx90a()).svm(true).stepped(true);
    let client = Client::new(&builder.build());
    let (mut args, _) = client.queue_args(4096);
    let info = Arc::clone(&client.model.gpus[0]);
    let bytes = info.save_area_bytes(info.save_area.cwsr);
    let area = client.anonymous(usize::try_from(bytes).unwrap());
    let range = (area.address(), bytes);
    args.ctx_save_restore_address = area.address();
    assert_eq!(client.call(0x02, &mut args), Err(Errno::INVAL));
    client.set(range, &[(GPU, client.gpus[0])]).unwrap();
    assert_eq!(client.call(0x02, &mut args), Err(Errno::INVAL));
    let always = SvmFlags::GPU_ALWAYS_MAPPED.bits();
    client.set(range, &[(SvmAttrType::SET_FLAGS, always)]).unwrap();
    assert_eq!(client.call(0x02, &mut args), Ok(0));
    assert!(client.model.diagnostics().is_empty());
    client.unmap(area.at, area.bytes).unwrap();
    let diagnostics = client.model.diagnostics();
    assert!(diagnostics[0].text.contains("evicted"), "{diagnostics:?}");
    let mut destroy = kfd::abi::DestroyQueueArgs { queue_id: args.queue_id, ..Default::default() };
    assert_eq!(client.call(0x03, &mut destroy), Ok(0));
}
