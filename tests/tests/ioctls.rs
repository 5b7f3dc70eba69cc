//! Every ioctl that the driver issues, once with success and once refused: a table, and proof that
//! it is complete.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use kfd::abi::request::IOCTLS;
use kfd::sys::{Errno, OpenFlags};
use kfd::{
    Error, GpuId, Kfd, MemoryKind, MemoryRequest, QueueRequest, SvmAccess, SvmPlace, SvmSetting,
};
use kfd_model::{Call, Model, Preset, Profile};
use kfd_tests::Device;

/// How an ioctl is made to fail.
enum Refusal {
    /// The kernel is ordered to.
    Ordered(Errno),
    /// The call itself deserves it: makes it, and says what must come.
    Real(fn(&Device) -> Error, Errno),
    /// The driver has nobody to tell: the call must have been made, and everything goes on.
    Silent,
}

struct Row {
    number: u8,
    name: &'static str,
    /// Makes the driver issue it, successfully.
    call: fn(&Device) -> kfd::Result<()>,
    refusal: Refusal,
}

use Refusal::{Ordered, Real, Silent};

const fn row(
    number: u8,
    name: &'static str,
    call: fn(&Device) -> kfd::Result<()>,
    refusal: Refusal,
) -> Row {
    Row { number, name, call, refusal }
}

fn reopen(device: &Device) -> kfd::Result<()> {
    Kfd::open_on(Arc::clone(device.kfd.kernel())).map(drop)
}

fn queue(device: &Device) -> kfd::Result<kfd::Queue> {
    device.gpu().create_queue(&QueueRequest::aql(64))
}

fn allocate(device: &Device) -> kfd::Result<kfd::Buffer> {
    device.gpu().allocate(&MemoryRequest::gtt(4096))
}

const TABLE: &[Row] = &[
    row(0x01, "GET_VERSION", reopen, Ordered(Errno::IO)),
    row(0x02, "CREATE_QUEUE", |device| queue(device).map(drop), Ordered(Errno::INVAL)),
    row(0x03, "DESTROY_QUEUE", |device| queue(device)?.destroy(), Ordered(Errno::NODEV)),
    row(
        0x04,
        "SET_MEMORY_POLICY",
        |device| {
            device.gpu().set_memory_policy(true)?;
            device.gpu().set_memory_policy(false)
        },
        Ordered(Errno::INVAL),
    ),
    row(
        0x05,
        "GET_CLOCK_COUNTERS",
        |device| {
            let (first, second) = (device.gpu().clocks()?, device.gpu().clocks()?);
            assert!(first.gpu_ticks > 0 && second.gpu_ticks >= first.gpu_ticks);
            assert!(second.cpu_ns > first.cpu_ns && second.system_ticks > first.system_ticks);
            assert_eq!(first.system_hz, 1_000_000_000);
            Ok(())
        },
        Ordered(Errno::INVAL),
    ),
    row(0x06, "GET_PROCESS_APERTURES", open_oldest, Ordered(Errno::NOMEM)),
    row(
        0x07,
        "UPDATE_QUEUE",
        |device| {
            let queue = queue(device)?;
            queue.suspend()?;
            queue.resume()?;
            queue.set_priority(15)
        },
        Ordered(Errno::ACCESS),
    ),
    row(
        0x08,
        "CREATE_EVENT",
        |device| device.gpu().create_signal(1).map(drop),
        Ordered(Errno::NOSPC),
    ),
    row(0x09, "DESTROY_EVENT", open_signal_and_close, Silent),
    row(0x0a, "SET_EVENT", |device| device.gpu().create_signal(1)?.notify(), Ordered(Errno::INVAL)),
    row(
        0x0b,
        "RESET_EVENT",
        |device| device.gpu().create_signal(1)?.reset_event(),
        Ordered(Errno::INVAL),
    ),
    row(
        0x0c,
        "WAIT_EVENTS",
        |device| {
            let _signal = device.gpu().create_signal(1)?;
            device.kfd.poll_faults()
        },
        Ordered(Errno::NOMEM),
    ),
    row(
        0x11,
        "SET_SCRATCH_BACKING_VA",
        |device| device.gpu().set_scratch_backing(&allocate(device)?),
        Ordered(Errno::INVAL),
    ),
    row(
        0x12,
        "GET_TILE_CONFIG",
        |device| {
            let config = device.gpu().tile_config()?;
            assert!(config.tiles.len() <= 32 && config.macro_tiles.len() <= 16);
            Ok(())
        },
        Ordered(Errno::INVAL),
    ),
    row(0x13, "SET_TRAP_HANDLER", |device| queue(device).map(drop), Ordered(Errno::SRCH)),
    row(0x14, "GET_PROCESS_APERTURES_NEW", reopen, Ordered(Errno::NOMEM)),
    row(0x15, "ACQUIRE_VM", |device| device.gpu().acquire(), Real(acquire_twice, Errno::BUSY)),
    row(
        0x16,
        "ALLOC_MEMORY_OF_GPU",
        |device| allocate(device).map(drop),
        Real(
            |device| device.gpu().allocate(&MemoryRequest::vram(1 << 44)).unwrap_err(),
            Errno::NOMEM,
        ),
    ),
    row(0x17, "FREE_MEMORY_OF_GPU", |device| allocate(device)?.free(), Ordered(Errno::BUSY)),
    row(
        0x18,
        "MAP_MEMORY_TO_GPU",
        |device| allocate(device).map(drop),
        Real(
            |device| {
                let gpus = device.kfd.gpus();
                let buffer = gpus[0].allocate(&MemoryRequest::vram(4096)).unwrap();
                buffer.map_on(&[&gpus[1]]).unwrap_err()
            },
            Errno::INVAL,
        ),
    ),
    row(
        0x19,
        "UNMAP_MEMORY_FROM_GPU",
        |device| allocate(device)?.unmap_from(&[&device.gpu()]),
        Ordered(Errno::BUSY),
    ),
    row(
        0x1a,
        "SET_CU_MASK",
        |device| queue(device)?.set_cu_mask(&[0b11, 0xffff_ffff]),
        // Half of a pair of compute units.
        Real(|device| queue(device).unwrap().set_cu_mask(&[0b01]).unwrap_err(), Errno::INVAL),
    ),
    row(
        0x1b,
        "GET_QUEUE_WAVE_STATE",
        |device| {
            let queue = queue(device)?;
            queue.suspend()?;
            let state = queue.wave_state()?;
            assert_eq!(state.save_area_bytes, 0, "it has no waves");
            Ok(())
        },
        Real(|device| queue(device).unwrap().wave_state().unwrap_err(), Errno::INVAL),
    ),
    row(
        0x1c,
        "GET_DMABUF_INFO",
        |device| {
            let buffer = device.gpu().allocate(&MemoryRequest::vram(8192))?;
            let info = buffer.export_dmabuf()?.info()?;
            assert_eq!((info.bytes, info.kind), (8192, MemoryKind::Vram));
            assert_eq!((info.cpu_visible, info.gpu), (false, device.gpu().id()));
            Ok(())
        },
        Real(info_of_something_else, Errno::INVAL),
    ),
    row(
        0x1d,
        "IMPORT_DMABUF",
        |device| {
            let buffer = device.gpu().allocate(&MemoryRequest::vram(8192))?;
            let import = device.gpu().import_dmabuf(&buffer.export_dmabuf()?)?;
            assert_ne!(import.addr(), buffer.addr());
            assert_eq!(import.bytes(), 8192);
            drop(buffer);
            import.free()
        },
        Ordered(Errno::NOMEM),
    ),
    row(
        0x1e,
        "ALLOC_QUEUE_GWS",
        |device| {
            let queue = queue(device)?;
            queue.set_global_wave_sync(true)?;
            queue.set_global_wave_sync(false)
        },
        Real(
            |device| queue(device).unwrap().set_global_wave_sync(false).unwrap_err(),
            Errno::INVAL,
        ),
    ),
    row(
        0x1f,
        "SMI_EVENTS",
        |device| {
            let events = device.gpu().smi_events(1)?;
            assert!(events.read(std::time::Duration::ZERO)?.is_empty());
            Ok(())
        },
        Ordered(Errno::INVAL),
    ),
    row(
        0x20,
        "SVM",
        |device| {
            device.gpu().acquire()?;
            let range = device.kfd.create_svm(8192)?;
            range.write(0, &[1; 8192])?;
            let gpu = device.gpu().id();
            range.set(&[
                SvmSetting::Preferred(SvmPlace::System),
                SvmSetting::Granularity(9),
                SvmSetting::Access(gpu, SvmAccess::InPlace),
            ])?;
            assert_eq!(range.places()?, (SvmPlace::System, SvmPlace::Undefined));
            assert_eq!(range.access(gpu)?, SvmAccess::InPlace);
            Ok(())
        },
        Real(
            |device| {
                device.gpu().acquire().unwrap();
                let range = device.kfd.create_svm(4096).unwrap();
                range.set(&[SvmSetting::Access(GpuId(1), SvmAccess::Migrate)]).unwrap_err()
            },
            Errno::INVAL,
        ),
    ),
    row(
        0x21,
        "SET_XNACK_MODE",
        |device| {
            device.kfd.set_xnack_mode(false)?;
            assert!(!device.kfd.xnack_mode()?);
            Ok(())
        },
        // One of the two GPUs is a gfx1100.
        Real(|device| device.kfd.set_xnack_mode(true).unwrap_err(), Errno::PERM),
    ),
    row(
        0x23,
        "AVAILABLE_MEMORY",
        |device| {
            let bytes = device.gpu().available_memory()?;
            let all = device.gpu().node().vram_bytes();
            assert!(bytes > 0 && bytes <= all && bytes.is_multiple_of(2 << 20), "{bytes} of {all}");
            Ok(())
        },
        Ordered(Errno::INVAL),
    ),
    row(
        0x24,
        "EXPORT_DMABUF",
        |device| allocate(device)?.export_dmabuf().map(drop),
        Real(
            |device| {
                let buffer = device.gpu().allocate(&MemoryRequest::userptr(4096)).unwrap();
                buffer.export_dmabuf().unwrap_err()
            },
            Errno::PERM,
        ),
    ),
    row(0x25, "RUNTIME_ENABLE", |device| queue(device).map(drop), Ordered(Errno::INVAL)),
    row(
        0x26,
        "DBG_TRAP",
        |device| {
            let queue = queue(device)?;
            let snapshot = device.kfd.snapshot_queues()?;
            assert_eq!(snapshot.len(), 1);
            assert_eq!((snapshot[0].id, snapshot[0].ring_bytes), (queue.id(), 4096));
            assert_eq!((snapshot[0].gpu, snapshot[0].kind), (device.gpu().id(), 2));
            Ok(())
        },
        // gfx11 cannot be debugged while a queue has global wave sync.
        Real(
            |device| {
                let queue = queue(device).unwrap();
                queue.set_global_wave_sync(true).unwrap();
                device.kfd.snapshot_queues().unwrap_err()
            },
            Errno::BUSY,
        ),
    ),
];

/// What the driver has structs for and never issues, why, and what its source would say if it did.
const NOT_ISSUED: &[(u8, &str, &str)] = &[
    (0x0d, "the old debugger: always EPERM", "DbgRegisterArgs"),
    (0x0e, "the old debugger: always EPERM", "DbgUnregisterArgs"),
    (0x0f, "the old debugger: always EPERM", "DbgAddressWatchArgs"),
    (0x10, "the old debugger: always EPERM", "DbgWaveControlArgs"),
    (0x22, "checkpointing is no driver's business", "CriuArgs"),
];

/// Asks for the facts of a descriptor that is no dma-buf.
fn info_of_something_else(device: &Device) -> Error {
    let kernel = device.kfd.kernel();
    let file = kernel.open("/dev/dri/renderD128", OpenFlags::READ_WRITE).unwrap();
    let fd = kernel.export_fd(file).unwrap();
    device.kfd.adopt_dmabuf(fd).unwrap().info().unwrap_err()
}

fn open_oldest(device: &Device) -> kfd::Result<()> {
    device.model().faults().garble(0x01, |answer| answer[4..8].fill(0));
    let result = reopen(device);
    device.model().faults().garble(0x01, |answer| answer[4..8].copy_from_slice(&[17, 0, 0, 0]));
    result
}

fn open_signal_and_close(device: &Device) -> kfd::Result<()> {
    let kfd = Kfd::open_on(Arc::clone(device.kfd.kernel()))?;
    let signal = kfd.first_gpu()?.create_signal(1)?;
    drop((signal, kfd));
    Ok(())
}

fn acquire_twice(device: &Device) -> Error {
    device.gpu().acquire().unwrap();
    let second = Kfd::open_on(Arc::clone(device.kfd.kernel())).unwrap();
    second.first_gpu().unwrap().acquire().unwrap_err()
}

fn device(profile: Profile) -> Device {
    let model = Model::builder().gpu(Preset::gfx1100()).gpu(Preset::gfx90a()).profile(profile);
    // Debian's kernels are built without SVM, and it has ioctls too.
    Device::of(model.svm(true).build(), "gfx1100 and gfx90a")
}

#[test]
fn every_ioctl_succeeds() {
    for row in TABLE {
        let device = device(Profile::V6_12);
        let before = device.model().ioctl_count(row.number);
        (row.call)(&device).unwrap_or_else(|error| panic!("{}: {error:?}", row.name));
        assert!(device.model().ioctl_count(row.number) > before, "{} was not issued", row.name);
        assert!(device.kfd.leaks().is_empty(), "{}", row.name);
    }
}

#[test]
fn every_ioctl_of_6_1_succeeds() {
    // 6.1 has no export of dma-bufs, so there is none to ask of or to import.
    let there = |row: &&Row| row.number < 0x24 && !matches!(row.number, 0x1c | 0x1d);
    for row in TABLE.iter().filter(there) {
        let device = device(Profile::V6_1);
        (row.call)(&device).unwrap_or_else(|error| panic!("{}: {error:?}", row.name));
        assert!(device.model().ioctl_count(row.number) > 0, "{} was not issued", row.name);
    }
}

#[test]
fn every_refusal_names_the_ioctl_and_the_errno_and_the_next_call_works() {
    for row in TABLE {
        let device = device(Profile::V6_12);
        let call = Call::Ioctl(row.number.into());
        let (error, errno) = match &row.refusal {
            Real(refused, errno) => (refused(&device), *errno),
            Ordered(errno) => {
                device.model().faults().fail(call, 0, 1, *errno);
                let error = (row.call)(&device).expect_err(row.name);
                (error, *errno)
            }
            Silent => {
                let before = device.model().ioctl_count(row.number);
                device.model().faults().fail(call, 0, u32::MAX, Errno::INVAL);
                (row.call)(&device).unwrap();
                assert!(device.model().ioctl_count(row.number) > before);
                continue;
            }
        };
        let text = error.to_string();
        match error {
            Error::Ioctl { name, errno: told, .. } => assert_eq!((name, told), (row.name, errno)),
            Error::CreateQueue { errno: told, .. } | Error::QueueLimit { errno: told, .. } => {
                assert_eq!(("CREATE_QUEUE", told), (row.name, errno));
            }
            other => panic!("{}: {other:?}", row.name),
        }
        assert!(text.contains(row.name), "{text}");
        // Whatever was refused, the device goes on.
        (row.call)(&device).unwrap_or_else(|error| panic!("{} again: {error:?}", row.name));
    }
}

#[test]
fn the_table_and_the_list_of_what_is_not_issued_cover_the_interface() {
    let covered = TABLE.iter().map(|row| row.number).chain(NOT_ISSUED.iter().map(|row| row.0));
    let covered: Vec<u8> = covered.collect();
    let all: BTreeSet<u8> = IOCTLS.iter().map(|ioctl| ioctl.number).collect();
    assert_eq!(covered.iter().copied().collect::<BTreeSet<_>>(), all);
    assert_eq!(covered.len(), all.len(), "each once");
    for row in TABLE {
        let ioctl = IOCTLS.iter().find(|ioctl| ioctl.number == row.number).unwrap();
        assert_eq!(ioctl.name, row.name);
    }
}

/// Whoever starts to issue one has to move it into the table.
#[test]
fn what_is_listed_as_not_issued_is_issued_nowhere_in_the_driver() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kfd/src");
    let mut text = String::new();
    collect(&source, &mut text);
    assert!(text.contains("CreateQueueArgs"), "the driver's source is where it was");
    for (number, why, needle) in NOT_ISSUED {
        assert!(!text.contains(needle), "{needle} ({number:#x}) is used; listed as: {why}");
    }
}

/// All source of the driver but its list of ioctls and their structs.
fn collect(directory: &Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match (path.is_dir(), name.as_str()) {
            (true, "abi" | "ioctl") => {}
            (true, _) => collect(&path, text),
            (false, "ioctl.rs" | "ioctl_tests.rs") => {}
            (false, _) => text.push_str(&std::fs::read_to_string(&path).unwrap_or_default()),
        }
    }
}
