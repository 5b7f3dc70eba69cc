use super::*;
use crate::sys::{Advice, MapRequest, Metadata, OpenFlags};
use crate::{GpuId, MemHandle};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::Duration;

type Answer = Box<dyn FnMut(u32, &mut [u8]) -> Result<u32, Errno> + Send>;

/// A kernel that answers ioctls from a closure and has nothing else.
struct Answering(Mutex<Answer>);

impl Answering {
    fn new(answer: impl FnMut(u32, &mut [u8]) -> Result<u32, Errno> + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(answer)))
    }
}

impl std::fmt::Debug for Answering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answering")
    }
}

impl Kernel for Answering {
    unsafe fn ioctl(&self, _: FileId, request: u32, arg: &mut [u8]) -> Result<u32, Errno> {
        (self.0.lock().unwrap())(request, arg)
    }
    unsafe fn mmap(&self, _: &MapRequest) -> Result<NonNull<u8>, Errno> {
        Err(Errno::NOSYS)
    }
    unsafe fn munmap(&self, _: NonNull<u8>, _: usize) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }
    unsafe fn advise(&self, _: NonNull<u8>, _: usize, _: Advice) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }
    fn open(&self, _: &str, _: OpenFlags) -> Result<FileId, Errno> {
        Err(Errno::NOSYS)
    }
    fn close(&self, _: FileId) {}
    fn read(&self, _: FileId, _: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::NOSYS)
    }
    fn write(&self, _: FileId, _: &[u8]) -> Result<usize, Errno> {
        Err(Errno::NOSYS)
    }
    fn poll(&self, _: FileId, _: Duration) -> Result<bool, Errno> {
        Err(Errno::NOSYS)
    }
    fn metadata(&self, _: &str) -> Result<Metadata, Errno> {
        Err(Errno::NOSYS)
    }
    fn read_link(&self, _: &str) -> Result<String, Errno> {
        Err(Errno::NOSYS)
    }
    fn read_dir(&self, _: &str) -> Result<Vec<String>, Errno> {
        Err(Errno::NOSYS)
    }
    fn export_fd(&self, _: FileId) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }
    fn import_fd(&self, _: OwnedFd) -> Result<FileId, Errno> {
        Err(Errno::NOSYS)
    }
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn relax(&self, _: u32) {}
}

fn map(kernel: &Answering, args: &mut abi::MapMemoryToGpuArgs) -> Result<u32, IoctlError> {
    // SAFETY: the kernel of these tests follows no address.
    unsafe { call(kernel, FileId(3), args) }
}

#[test]
fn every_ioctl_but_svm_is_paired_with_one_struct_of_its_size() {
    let paired: Vec<_> = request::IOCTLS
        .iter()
        .filter(|ioctl| ioctl.name != "SVM")
        .map(|ioctl| (ioctl.name, ioctl.request()))
        .collect();
    assert_eq!(PAIRS, paired);
}

#[test]
fn an_interrupted_call_is_repeated_with_what_the_kernel_wrote() {
    let mut rounds = 0;
    let kernel = Answering::new(move |word, bytes| {
        assert_eq!(word, 0xc018_4b18);
        let args = abi::MapMemoryToGpuArgs::mut_from_bytes(bytes).unwrap();
        assert_eq!(args.n_success, rounds);
        rounds += 1;
        args.n_success = rounds;
        if rounds < 3 { Err(Errno::INTR) } else { Ok(0) }
    });
    let mut args = abi::MapMemoryToGpuArgs { handle: MemHandle(7), ..Default::default() };
    assert_eq!(map(&kernel, &mut args), Ok(0));
    assert_eq!(args.n_success, 3);
}

#[test]
fn a_refused_call_names_the_ioctl_and_keeps_what_the_kernel_wrote() {
    let kernel = Answering::new(|_, bytes| {
        abi::MapMemoryToGpuArgs::mut_from_bytes(bytes).unwrap().n_success = 1;
        Err(Errno::NOMEM)
    });
    let mut args = abi::MapMemoryToGpuArgs::default();
    let error = map(&kernel, &mut args).unwrap_err();
    assert_eq!(error, IoctlError { name: "MAP_MEMORY_TO_GPU", errno: Errno::NOMEM });
    assert_eq!(error.to_string(), "KFD ioctl MAP_MEMORY_TO_GPU failed");
    assert_eq!(args.n_success, 1);
}

#[test]
fn again_is_not_repeated() {
    let mut calls = 0;
    let kernel = Answering::new(move |_, _| {
        calls += 1;
        assert_eq!(calls, 1);
        Err(Errno::AGAIN)
    });
    assert_eq!(map(&kernel, &mut Default::default()).unwrap_err().errno, Errno::AGAIN);
}

#[test]
fn a_kernel_that_only_interrupts_is_given_up_on() {
    let kernel = Answering::new(|_, _| Err(Errno::INTR));
    assert_eq!(map(&kernel, &mut Default::default()).unwrap_err().errno, Errno::INTR);
}

#[test]
fn svm_sends_its_attributes_behind_the_struct_and_takes_them_back() {
    let kernel = Answering::new(|word, bytes| {
        assert_eq!(word, 0xc028_4b20);
        let (args, tail) = abi::SvmArgs::mut_from_prefix(bytes).unwrap();
        assert_eq!(args.nattr, 2);
        let attributes = <[abi::SvmAttribute]>::mut_from_bytes(tail).unwrap();
        assert_eq!(attributes[0].kind, abi::SvmAttrType::ACCESS);
        attributes[0].kind = abi::SvmAttrType::NO_ACCESS;
        attributes[1].value = 5;
        Ok(0)
    });
    let args = abi::SvmArgs { size: 4096, op: abi::SvmOp::GET_ATTR, ..Default::default() };
    let mut attributes = [
        abi::SvmAttribute { kind: abi::SvmAttrType::ACCESS, value: GpuId(9).0 },
        abi::SvmAttribute { kind: abi::SvmAttrType::GRANULARITY, value: 0 },
    ];
    // SAFETY: the kernel of these tests has no memory.
    unsafe { call_svm(&kernel, FileId(3), args, &mut attributes) }.unwrap();
    assert_eq!(attributes[0].kind, abi::SvmAttrType::NO_ACCESS);
    assert_eq!(attributes[1].value, 5);
}

#[test]
fn svm_with_more_attributes_than_a_request_word_can_count_is_not_sent() {
    let kernel = Answering::new(|_, _| panic!("sent"));
    let mut attributes = vec![abi::SvmAttribute::default(); 2045];
    // SAFETY: the kernel of these tests has no memory.
    let result = unsafe { call_svm(&kernel, FileId(3), Default::default(), &mut attributes) };
    assert_eq!(result, Err(IoctlError { name: "SVM", errno: Errno::TOOBIG }));
}
