//! Shared virtual memory, from the program's side: ordinary memory that a GPU computes on.

use aql::KernelDispatch;
use hsaco::{CodeObject, DeviceTarget, Geometry, HiddenValues};
use kfd::report::FaultCause;
use kfd::sys::Errno;
use kfd::{
    Error, KernelLabel, MemoryRequest, QueueRequest, SvmAccess, SvmPlace, SvmRange, SvmSetting,
    Until,
};
use kfd_model::{Model, Preset};
use kfd_tests::{Device, each_device, each_model, skip};

use super::support::LONG;

const N: u32 = 4096;
const GROUP: u16 = 256;

fn with_svm() -> kfd_model::Builder {
    Model::builder().svm(true)
}

/// The sum of the first two vectors of `range`, as the third, by the GPU.
fn add(device: &Device, range: &SvmRange) -> kfd::Result<()> {
    let gpu = device.gpu();
    let file = format!(
        "{}/fixtures/code-objects/vadd.{}.v5.co",
        env!("CARGO_MANIFEST_DIR"),
        device.target()
    );
    let bytes = std::fs::read(file).unwrap();
    let object = CodeObject::parse(&bytes).unwrap();
    let version = gpu.gfx_version().target_version();
    let target = DeviceTarget::new(version, gpu.has_sram_ecc(), false).unwrap();
    object.target().fits(&target).unwrap();
    let code = gpu.allocate(&MemoryRequest::gtt(object.load_bytes()).executable())?;
    let image = object.image(code.addr().get()).unwrap();
    code.write(0, image.bytes())?;
    let kernel = object.kernel("vadd").unwrap();

    let geometry = Geometry::new([N, 1, 1], [GROUP.into(), 1, 1], 1).unwrap();
    let mut arguments = kernel.arguments().builder().unwrap();
    for vector in 0..3 {
        let address = range.addr().get() + vector * u64::from(N) * 4;
        arguments.push(&address.to_le_bytes()).unwrap();
    }
    arguments.push(&N.to_le_bytes()).unwrap();
    let packed = arguments.finish(&HiddenValues::new(geometry)).unwrap();
    let kernarg = gpu.allocate(&MemoryRequest::gtt(packed.len() as u64).coherent())?;
    kernarg.write(0, &packed)?;

    let facts = kernel.launch_facts();
    let queue = gpu.create_queue(&QueueRequest::aql(64).scratch(facts.private_bytes))?;
    let done = gpu.create_signal(1)?;
    let descriptor = image.address_of(kernel.descriptor_vaddr());
    let packet = KernelDispatch::new(descriptor.into(), [N, 1, 1], [GROUP, 1, 1])
        .unwrap()
        .kernarg(kernarg.addr())
        .private_segment(facts.private_bytes)
        .group_segment(facts.static_lds_bytes)
        .completion(done.addr());
    queue.submit(&packet.encode(), KernelLabel::NONE)?;
    queue.wait(&done, Until::Below(1), LONG).map(drop)
}

/// Two vectors, and room for their sum.
fn vectors(device: &Device) -> SvmRange {
    let range = device.kfd.create_svm(u64::from(N) * 12).unwrap();
    let input: Vec<u8> = (0..2 * N).flat_map(|i| (i as f32).to_le_bytes()).collect();
    range.write(0, &input).unwrap();
    range
}

/// The GPU adds what the CPU wrote to its own anonymous memory, and the CPU finds the sums there:
/// no buffer, no copy, one address.
#[test]
fn a_gpu_adds_ordinary_host_memory_without_a_copy() {
    let test = |device: &Device| {
        device.gpu().acquire().unwrap();
        let range = vectors(device);
        let gpu = device.gpu().id();
        match range.set(&[SvmSetting::Access(gpu, SvmAccess::InPlace)]) {
            Err(Error::Ioctl { errno: Errno::PERM, .. }) if device.try_model().is_none() => {
                return skip("this machine's kernel is built without CONFIG_HSA_AMD_SVM");
            }
            result => result.unwrap(),
        }
        assert_eq!(range.access(gpu).unwrap(), SvmAccess::InPlace);
        add(device, &range).unwrap();
        let mut sums = vec![0; N as usize * 4];
        range.read(u64::from(N) * 8, &mut sums).unwrap();
        for (sum, i) in sums.chunks_exact(4).zip(0..N) {
            let sum = f32::from_le_bytes(sum.try_into().unwrap());
            assert_eq!(sum, i as f32 + (N + i) as f32, "element {i}");
        }
    };
    if kfd_tests::on_hardware() { each_device(test) } else { each_model(with_svm, test) }
}

#[test]
fn without_access_the_gpu_faults_at_the_range() {
    each_model(with_svm, |device| {
        device.gpu().acquire().unwrap();
        let range = vectors(device);
        range.set(&[SvmSetting::Preferred(SvmPlace::System)]).unwrap();
        let error = add(device, &range).unwrap_err();
        let Error::DeviceLost(report) = &error else { panic!("{error:?}") };
        let FaultCause::Memory { page, not_present, .. } = report.cause else {
            panic!("{report:?}")
        };
        let inside = range.addr().get()..range.addr().get() + range.bytes();
        assert!(not_present && inside.contains(&page.get()), "{page:?} of {inside:x?}");
    });
}

#[test]
fn a_kernel_without_svm_says_so_and_the_range_is_memory_all_the_same() {
    each_model(Model::builder, |device| {
        device.gpu().acquire().unwrap();
        let range = vectors(device);
        let error = range.set(&[SvmSetting::Granularity(9)]).unwrap_err();
        assert!(matches!(error, Error::Ioctl { name: "SVM", errno: Errno::PERM, .. }), "{error:?}");
        assert!(!device.kfd.xnack_enabled().unwrap());
        let mut word = [0; 4];
        range.read(8, &mut word).unwrap();
        assert_eq!(f32::from_le_bytes(word), 2.0);
    });
}

/// A program may look at its own queues while another of its threads makes the first one. The
/// kernel keeps a process that enables its runtime waiting for an attached debugger: without care
/// nobody would ever let it go on.
#[test]
fn looking_at_queues_does_not_block_the_thread_that_makes_the_first() {
    for _ in 0..20 {
        let model = Model::builder().gpu(Preset::gfx90a()).build();
        let device = Device::of(model, "gfx90a");
        std::thread::scope(|scope| {
            let look = scope.spawn(|| {
                for _ in 0..50 {
                    device.kfd.snapshot_queues().unwrap();
                }
            });
            let queue = device.gpu().create_queue(&QueueRequest::aql(64)).unwrap();
            look.join().unwrap();
            queue.destroy().unwrap();
        });
        device.finish();
    }
}
