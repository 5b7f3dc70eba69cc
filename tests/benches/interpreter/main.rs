//! How fast the model interprets compiled kernels, beside the prototype's loops in the same
//! process: a 256x256 matrix product and a million additions on gfx1100, from
//! `tests/fixtures/bench`. The engine is measured alone on this thread, and the whole model with one
//! worker, from doorbell to signal. Prints wave instructions a second and ratios.
//!
//! `cargo bench -p kfd-tests --bench interpreter`, with `-- mm` or `-- va` only that; with `-- --gate`
//! a ratio below 0.75 is an error.
#![allow(unsafe_code)] // mapping host arrays for the engine
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // sizes are constants here
#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)]
#![allow(clippy::needless_range_loop)]

mod driver;
mod prototype;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hsaco::CodeObject;
use kfd_model::Target;
use kfd_model::exec::{
    Apertures, Engine, Launch, Listener, MemoryFault, Outcome, Part, ScratchSetup,
};
use kfd_model::memory::{Access, AddressSpace};

const OBJECT: &[u8] = include_bytes!("../../fixtures/bench/bench.gfx1100.co");
/// Where the code is.
const CODE: u64 = 0x7000_0000_0000;
/// Where the argument block is.
const ARGS: u64 = 0x7000_1000_0000;

struct Silent;

impl Listener for Silent {
    fn finished(&self, _outcome: Outcome) {}
    fn memory_fault(&self, fault: MemoryFault) {
        eprintln!("memory fault: {fault:x?}");
    }
    fn interrupt(&self, _data: u32, _privileged: bool) {}
}

/// The engine with code, arguments and arrays mapped.
struct Machine {
    space: Arc<AddressSpace>,
    launch: Launch,
    _code: Vec<u64>,
    _args: Vec<u64>,
}

impl Machine {
    fn new(kernel: &str, groups: u32, arrays: [(*mut f32, usize); 3]) -> Option<Self> {
        let object = CodeObject::parse(OBJECT).ok()?;
        let kernel = object.kernel(kernel)?;
        let image = object.image(CODE).ok()?;
        let mut code = vec![0u64; usize::try_from(image.load_bytes().div_ceil(8)).ok()?];
        let mut args: Vec<u64> = arrays.iter().map(|(at, _)| at.addr() as u64).collect();
        let space = Arc::new(AddressSpace::new());
        let rw = Access { write: true, execute: false };
        let rx = Access { write: true, execute: true };
        let bytes = 8 * code.len() as u64;
        // SAFETY: the vector lives in the machine as long as the space, and is not touched.
        unsafe { space.map(CODE, bytes, code.as_mut_ptr().cast(), rx) }.ok()?;
        // SAFETY: as above.
        unsafe { space.map(ARGS, 24, args.as_mut_ptr().cast(), rw) }.ok()?;
        for (at, len) in arrays {
            // SAFETY: the caller keeps the arrays alive and untouched while the engine runs.
            unsafe { space.map(at.addr() as u64, 4 * len as u64, at.cast(), rw) }.ok()?;
        }
        space.write(CODE, image.bytes()).ok()?;
        let descriptor = kernel.descriptor();
        let launch = Launch {
            target: Target::Gfx1100,
            memory: Arc::clone(&space),
            entry: image.address_of(kernel.entry_vaddr()),
            rsrc1: descriptor.rsrc1,
            rsrc2: descriptor.rsrc2,
            rsrc3: descriptor.rsrc3,
            wave_size: 32,
            user_sgprs: vec![ARGS as u32, (ARGS >> 32) as u32],
            grid: [256 * groups, 1, 1],
            group: [256, 1, 1],
            lds_bytes: 0,
            private_bytes: 0,
            xccs: 1,
            part: Part::default(),
            scratch: ScratchSetup::default(),
            apertures: Apertures {
                lds_base: 1 << 48,
                lds_limit: (1 << 48) + 0xffff_ffff,
                scratch_base: 2 << 48,
                scratch_limit: (2 << 48) + 0xffff_ffff,
            },
            trap: None,
            trap_enabled: true,
            dispatch_index: 0,
            doorbell_id: 0,
            gws: None,
        };
        Some(Self { space, launch, _code: code, _args: args })
    }

    /// Runs the launch once on this thread: instructions and time from launch to outcome.
    fn run(&self, engine: &Engine) -> (u64, Duration) {
        let before = engine.instructions();
        let start = Instant::now();
        let Ok(job) = engine.launch(self.launch.clone(), Arc::new(Silent)) else {
            return (0, Duration::MAX);
        };
        while engine.step(u64::MAX / 2) {}
        let time = start.elapsed();
        drop(job);
        (engine.instructions() - before, time)
    }
}

fn rate((count, time): (u64, Duration)) -> f64 {
    count as f64 / time.as_secs_f64() / 1e6
}

fn best(times: usize, mut f: impl FnMut() -> (u64, Duration)) -> f64 {
    (0..times).map(|_| rate(f())).fold(0.0, f64::max)
}

/// Measures one kernel; the lower of the two ratios.
fn measure(name: &str, groups: u32, len: usize, want: &[f32]) -> f64 {
    let a: Vec<f32> = (0..len).map(|i| ((i * 7919) % 1000) as f32 / 1000.0).collect();
    let b: Vec<f32> = (0..len).map(|i| ((i * 104_729) % 1000) as f32 / 1000.0).collect();
    let (mut c, mut d) = (vec![0.0f32; len], vec![0.0f32; len]);
    let stepped = Engine::new(0);
    let arrays =
        [(c.as_mut_ptr(), len), (a.as_ptr().cast_mut(), len), (b.as_ptr().cast_mut(), len)];
    let Some(machine) = Machine::new(name, groups, arrays) else {
        eprintln!("{name}: cannot set up");
        return 0.0;
    };
    let launcher = match driver::Launcher::new(OBJECT, name, groups, [&a, &b]) {
        Ok(launcher) => launcher,
        Err(error) => {
            eprintln!("{name}: {error}");
            return 0.0;
        }
    };
    // Rounds alternate, so that all see the same machine.
    let (mut proto, mut step, mut signal) = (0.0f64, 0.0f64, 0.0f64);
    for _ in 0..5 {
        proto = proto.max(best(2, || prototype::run(name, groups, &mut d, &a, &b)));
        let mut count = 0;
        step = step.max(best(2, || {
            let run = machine.run(&stepped);
            count = run.0;
            run
        }));
        signal = signal.max(best(2, || (count, launcher.run().expect("a launch"))));
    }
    drop(stepped);
    assert!(machine.space.generation() > 0);
    drop(machine);
    assert!(d == want, "the prototype computes {name} wrongly");
    assert!(c == want, "the engine computes {name} wrongly");
    assert!(launcher.result().expect("a result") == want, "the model computes {name} wrongly");
    println!(
        "{name}: prototype {proto:6.1}, engine {step:6.1} (ratio {:.2}), doorbell to signal {signal:6.1} (ratio {:.2}) M wave instructions/s",
        step / proto,
        signal / proto,
    );
    (step / proto).min(signal / proto)
}

fn main() -> ExitCode {
    let n = 256;
    let a: Vec<f32> = (0..n * n).map(|i| ((i * 7919) % 1000) as f32 / 1000.0).collect();
    let b: Vec<f32> = (0..n * n).map(|i| ((i * 104_729) % 1000) as f32 / 1000.0).collect();
    let mut product = vec![0.0f32; n * n];
    for i in 0..n {
        for j in 0..n {
            product[i * n + j] = (0..n).fold(0.0, |sum, k| a[i * n + k].mul_add(b[k * n + j], sum));
        }
    }
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|wanted| wanted == name);
    let mut lowest = f64::INFINITY;
    if wanted("mm") {
        lowest = lowest.min(measure("mm", 256, n * n, &product));
    }
    let len = 1 << 20;
    let sums: Vec<f32> = (0..len)
        .map(|i| ((i * 7919) % 1000) as f32 / 1000.0 + ((i * 104_729) % 1000) as f32 / 1000.0)
        .collect();
    if wanted("va") {
        lowest = lowest.min(measure("va", 4096, len, &sums));
    }
    let gate = std::env::args().any(|arg| arg == "--gate");
    if gate && lowest < 0.75 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
