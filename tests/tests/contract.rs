//! What kfd, aql, pm4 and hsaco promise a program that embeds them.

use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kfd::{Kfd, MemoryRequest, QueueRequest};
use kfd_model::{Model, Preset};
use kfd_tests::process::{in_child, redirect_output};
use kfd_tests::program::{Program, faults};
use kfd_tests::{on_hardware, skip};

use crate::support::use_everything;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn handles_can_be_sent_and_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Kfd>();
    shared::<kfd::Gpu>();
    shared::<kfd::Buffer>();
    shared::<kfd::Queue>();
    shared::<kfd::Signal>();
    shared::<kfd::Error>();
    shared::<kfd::MemoryRequest>();
    shared::<kfd::QueueRequest>();
    shared::<kfd::KernelLabel>();
    shared::<kfd::report::FaultReport>();
    shared::<kfd::report::HangReport>();
    shared::<kfd::topology::Topology>();
    shared::<kfd::sys::Linux>();
    shared::<aql::Ring<'static>>();
    shared::<aql::Packet>();
    shared::<hsaco::CodeObject<'static>>();
    shared::<hsaco::Image>();
    shared::<hsaco::KernargTemplate>();
}

/// Lines of /proc/self/status: threads, and the masks of caught, ignored and blocked signals.
fn state() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let wanted = ["Threads:", "SigCgt:", "SigIgn:", "SigBlk:"];
    let lines = status.lines().filter(|line| wanted.iter().any(|name| line.starts_with(name)));
    lines.map(str::to_owned).collect()
}

/// Everything there is, faults included, with a software GPU that has no threads of its own.
fn use_it_all() {
    let model = Model::builder().gpu(Preset::gfx1100()).stepped(true).build();
    let kfd = Kfd::open_on(Arc::<Model>::clone(&model)).unwrap();
    use_everything(&kfd).unwrap();
    let gpu = kfd.first_gpu().unwrap();
    let program = Program::load(&gpu, faults("gfx1100"));
    let memory = gpu.allocate(&MemoryRequest::vram(4096)).unwrap();
    let launch = program.launch(&kfd, &gpu, "wild_store", (1, 1), &[memory.addr().get()]);
    assert!(launch.packet.workgroup_size()[0] == 1);
    gpu.allocate(&MemoryRequest::vram(1 << 44)).unwrap_err();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    let signal = gpu.create_signal(1).unwrap();
    queue.wait(&signal, kfd::Until::Below(1), Duration::from_millis(5)).unwrap_err();
    // A packet that the packet processor refuses.
    let mut bad = aql::BarrierAnd::noop().encode();
    bad.0[0] = 0x0204;
    queue.submit(&bad, kfd::KernelLabel::NONE).unwrap();
    queue.wait(&signal, kfd::Until::Below(1), LIMIT).unwrap_err();
    model.reset_gpu(0);
    signal.wait(kfd::Until::Below(1), LIMIT).unwrap_err();
}

#[test]
fn no_thread_is_started_and_no_signal_handler_is_installed() {
    in_child(LIMIT, || {
        let before = state();
        assert!(before.contains(&"Threads:\t1".to_owned()), "{before:?}");
        assert_eq!(before.len(), 4, "{before:?}");
        use_it_all();
        assert_eq!(state(), before);
    })
    .unwrap();
}

#[test]
fn nothing_is_printed() {
    let mut output = tempfile::tempfile().unwrap();
    let copy = output.try_clone().unwrap();
    in_child(LIMIT, move || {
        redirect_output(&copy);
        use_it_all();
    })
    .unwrap();
    output.rewind().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(text, "");
}

#[test]
fn two_devices_in_one_process_know_nothing_of_each_other() {
    if on_hardware() {
        return skip("a machine has one KFD");
    }
    let open = || Kfd::open_on(Model::builder().build()).unwrap();
    let (one, two) = (open(), open());
    use_everything(&one).unwrap();
    assert!(two.allocations().is_empty());
    drop(one);
    use_everything(&two).unwrap();
}

/// The promise, checked where it could be broken: no call of these is in the source.
#[test]
fn the_source_has_no_threads_no_environment_no_output_and_no_global_state() {
    let forbidden = [
        ("thread::spawn", "threads"),
        ("thread::scope", "threads"),
        ("thread::Builder", "threads"),
        ("env::", "the environment"),
        ("getenv", "the environment"),
        ("println!", "output"),
        ("eprint", "output"),
        ("print!(", "output"),
        ("dbg!", "output"),
        ("stdout", "output"),
        ("stderr", "output"),
        ("sigaction", "signal handlers"),
        ("static mut", "global state"),
        ("thread_local!", "global state"),
        ("LazyLock", "global state"),
        ("process::exit", "an end of the process"),
        ("abort()", "an end of the process"),
    ];
    let mut read = 0;
    for name in ["kfd", "aql", "pm4", "hsaco"] {
        for path in
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"))
        {
            let text = std::fs::read_to_string(&path).unwrap();
            read += text.len();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate() {
                let line = line.split("//").next().unwrap_or_default();
                let place = format!("{}:{}", path.display(), number + 1);
                // Constant tables are no state; what can change is.
                let is_static = line.trim_start().trim_start_matches("pub ").starts_with("static ");
                let changes = ["Atomic", "Mutex", "RwLock", "Once", "Cell"];
                let state = is_static && changes.iter().any(|word| line.contains(word));
                assert!(!state, "{place} has global state: {line}");
                for (word, what) in forbidden {
                    assert!(!line.contains(word), "{place} has {what}: {line}");
                }
            }
        }
    }
    assert!(read > 100_000, "the sources are where they were");
}

/// Source files, without those that hold only tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut list = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" {
                list.extend(sources(&path));
            }
        } else if name.ends_with(".rs") && !name.contains("tests") {
            list.push(path);
        }
    }
    list
}
