//! A forked child.
#![allow(unsafe_code)] // fork

use kfd::abi::{EventType, GetVersionArgs, MmapType};
use kfd::sys::{Backing, Errno, Kernel, OpenFlags};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::Client;
use crate::kernel::Model;

/// What the child finds, as its exit code: 0 when all is as on Linux.
fn child(client: &mut Client) -> i32 {
    if client.call(0x01, &mut GetVersionArgs::default()) != Err(Errno::BADF) {
        return 1;
    }
    let offset = MmapType::EVENTS.offset(kfd::GpuId(0));
    let backing = Backing::File { file: client.kfd, offset };
    if client.map(None, 4096, backing) != Err(Errno::INVAL) {
        return 2;
    }
    let Ok(kfd) = client.model.open("/dev/kfd", OpenFlags::READ_WRITE) else { return 3 };
    client.kfd = kfd;
    if client.event(EventType::SIGNAL).event_id.0 == 1 { 0 } else { 4 }
}

#[test]
fn a_child_cannot_use_the_parents_file_and_starts_anew_with_its_own() {
    let model = Model::builder().stepped(true).build();
    let mut client = Client::new(&model);
    client.event(EventType::SIGNAL);
    client.event(EventType::SIGNAL);
    // SAFETY: the child touches this test's own objects only, whose locks nobody holds, and leaves
    // by `_exit` without running destructors.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let code = child(&mut client);
            // SAFETY: ends the process, always sound.
            unsafe { nix::libc::_exit(code) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    // Nothing of the parent's has changed.
    assert_eq!(client.event(EventType::SIGNAL).event_id.0, 3);
}
