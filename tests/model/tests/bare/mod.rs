//! Programs on the bare engine: no KFD, no queue, no packet. What a packet processor would do is done
//! here by hand.
#![allow(unsafe_code)] // mapping buffers for the engine
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation)] // words of addresses and packets
#![allow(dead_code, missing_docs)] // each test program uses some of it

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use hsaco::kernarg::{Geometry, HiddenValues};
use hsaco::{CodeObject, KernelProperties};
use kfd_model::Target;
use kfd_model::exec::{
    Apertures, Diagnosis, Engine, Launch, Listener, MemoryFault, Outcome, Part, ScratchSetup,
    TrapSetup,
};
use kfd_model::memory::{Access, AddressSpace};
use kfd_probe::programs::{Arg, Case, Results};

/// What the engine said, in order.
#[derive(Debug, Default)]
pub struct Heard {
    pub outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
    pub faults: Mutex<Vec<MemoryFault>>,
    pub diagnoses: Mutex<Vec<Diagnosis>>,
}

impl Listener for Heard {
    fn finished(&self, outcome: Outcome) {
        assert!(self.outcome.lock().unwrap().replace(outcome).is_none(), "two outcomes");
        self.ended.notify_all();
    }
    fn memory_fault(&self, fault: MemoryFault) {
        self.faults.lock().unwrap().push(fault);
    }
    fn interrupt(&self, _data: u32, _privileged: bool) {}
    fn diagnosis(&self, diagnosis: &Diagnosis) {
        self.diagnoses.lock().unwrap().push(diagnosis.clone());
    }
}

impl Heard {
    fn wait(&self, limit: Duration) -> Option<Outcome> {
        let outcome = self.outcome.lock().unwrap();
        let (outcome, _) = self.ended.wait_timeout_while(outcome, limit, |o| o.is_none()).unwrap();
        *outcome
    }
}

/// GPU memory: buffers that live as long as the space, at addresses that are no host addresses.
#[derive(Default)]
struct Memory {
    space: Arc<AddressSpace>,
    buffers: VecDeque<Vec<u64>>,
    next: u64,
}

impl Memory {
    fn new() -> Self {
        Self { next: 0x7000_0000_0000, ..Self::default() }
    }

    fn alloc(&mut self, bytes: u64, access: Access) -> u64 {
        let mut buffer = vec![0u64; usize::try_from(bytes.max(1).div_ceil(8)).unwrap()];
        let (start, size) = (self.next, 8 * buffer.len() as u64);
        self.next += size.next_multiple_of(4096) + 4096;
        // SAFETY: the buffer is kept in `self` and not touched but through the space, which no
        // engine uses once `self` is dropped.
        unsafe { self.space.map(start, size, buffer.as_mut_ptr().cast(), access) }.unwrap();
        self.buffers.push_back(buffer);
        start
    }

    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.alloc(bytes.len() as u64, Access { write: true, execute: false });
        self.space.write(at, bytes).unwrap();
        at
    }

    fn get(&self, at: u64, bytes: u64) -> Vec<u8> {
        let mut out = vec![0; usize::try_from(bytes).unwrap()];
        self.space.read(at, &mut out).unwrap();
        out
    }
}

const APERTURES: Apertures = Apertures {
    lds_base: 0x0001_0000_0000_0000,
    lds_limit: 0x0001_0000_ffff_ffff,
    scratch_base: 0x0002_0000_0000_0000,
    scratch_limit: 0x0002_0000_ffff_ffff,
};

/// What came of a run.
pub struct Run {
    pub outcome: Option<Outcome>,
    pub faults: Vec<MemoryFault>,
    pub diagnoses: Vec<Diagnosis>,
    /// The buffers, also of a run that did not end.
    pub buffers: Vec<Vec<u8>>,
    /// Of the case's check.
    pub check: Result<(), String>,
}

impl Run {
    /// Each diagnosis on a line.
    pub fn says(&self) -> String {
        self.diagnoses.iter().map(|d| d.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Runs a case and checks its result.
pub fn run(engine: &Engine, step: bool, target: Target, case: &Case) -> Result<(), String> {
    let run = observe(engine, step.then_some(10_000), target, case)?;
    match run.outcome {
        Some(Outcome::Completed) => run.check,
        outcome => Err(format!("{outcome:?}, faults {:x?}, {}", run.faults, run.says())),
    }
}

/// Runs a case; on this thread in so many steps at most, or on the engine's.
pub fn observe(
    engine: &Engine,
    steps: Option<usize>,
    target: Target,
    case: &Case,
) -> Result<Run, String> {
    run_until(engine, steps, Duration::from_secs(20), target, case, None)
}

/// Runs a case on this thread with another kernel of its object as trap handler.
pub fn observe_with_handler(
    engine: &Engine,
    target: Target,
    case: &Case,
    handler: &str,
) -> Result<Run, String> {
    run_until(engine, Some(1000), Duration::from_secs(20), target, case, Some(handler))
}

/// Runs a case on the engine's threads for so long at most.
pub fn observe_for(
    engine: &Engine,
    limit: Duration,
    target: Target,
    case: &Case,
) -> Result<Run, String> {
    run_until(engine, None, limit, target, case, None)
}

fn run_until(
    engine: &Engine,
    steps: Option<usize>,
    limit: Duration,
    target: Target,
    case: &Case,
    handler: Option<&str>,
) -> Result<Run, String> {
    let mut memory = Memory::new();
    let object = CodeObject::parse(case.object).map_err(|e| e.to_string())?;
    let kernel = object.kernel(case.kernel).ok_or("no such kernel")?;
    let code = memory.alloc(object.load_bytes(), Access { write: true, execute: true });
    let image = object.image(code).map_err(|e| e.to_string())?;
    memory.space.write(code, image.bytes()).unwrap();
    for variable in object.variables() {
        // A managed variable's pointer is set by whoever loads the object.
        if let Some(name) = variable.name.strip_suffix(".managed")
            && let Some(pointer) = object.variable(name)
        {
            let bytes = image.address_of(variable.vaddr).to_le_bytes();
            memory.space.write(image.address_of(pointer.vaddr), &bytes).unwrap();
        }
    }

    let dimensions = dimensions(case);
    let geometry = Geometry::new(case.grid, case.group, dimensions)
        .map_err(|e| e.to_string())?
        .dynamic_lds_bytes(case.dynamic_lds_bytes);
    let mut builder = kernel.arguments().builder().map_err(|e| e.to_string())?;
    let mut buffers = Vec::new();
    for arg in &case.args {
        match arg {
            Arg::Value(bytes) => builder.push(bytes),
            Arg::Null => builder.push(&[0; 8]),
            Arg::Buffer(bytes) => {
                let at = memory.put(bytes);
                buffers.push((at, bytes.len() as u64));
                builder.push(&at.to_le_bytes())
            }
        }
        .map_err(|e| e.to_string())?;
    }
    let hidden = HiddenValues { geometry, services: Default::default() };
    let arguments = builder.finish(&hidden).map_err(|e| e.to_string())?;
    let kernarg = memory.put(&arguments);

    let facts = kernel.launch_facts();
    let descriptor = kernel.descriptor();
    let private_bytes = if facts.uses_dynamic_stack { 16_384 } else { facts.private_bytes };
    let scratch = scratch(&mut memory, target, &facts, private_bytes);
    let packet = memory.put(&packet(case, kernarg, private_bytes));
    let p = descriptor.properties;
    let mut user = Vec::new();
    let pair = |value: u64| [value as u32, (value >> 32) as u32];
    if p.contains(KernelProperties::PRIVATE_SEGMENT_BUFFER) {
        user.extend(scratch.resource);
    }
    for (bit, value) in [
        (KernelProperties::DISPATCH_PTR, packet),
        (KernelProperties::QUEUE_PTR, 0),
        (KernelProperties::KERNARG_SEGMENT_PTR, kernarg),
        (KernelProperties::DISPATCH_ID, 1),
        (KernelProperties::FLAT_SCRATCH_INIT, scratch.base),
    ] {
        if p.contains(bit) {
            user.extend(pair(value));
        }
    }
    let mut entry = image.address_of(kernel.entry_vaddr());
    if descriptor.preload.dwords != 0 && target.has_unified_vgprs() {
        let words = arguments.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        let first = usize::from(descriptor.preload.offset_dwords);
        user.extend(words.skip(first).take(usize::from(descriptor.preload.dwords)));
        entry += 256;
    }
    let handler = handler.and_then(|name| object.kernel(name));
    let trap =
        handler.map(|handler| TrapSetup { tba: image.address_of(handler.entry_vaddr()), tma: 0 });
    let launch = Launch {
        target,
        memory: Arc::clone(&memory.space),
        entry,
        rsrc1: descriptor.rsrc1,
        rsrc2: descriptor.rsrc2,
        rsrc3: descriptor.rsrc3,
        wave_size: facts.wave_size,
        user_sgprs: user,
        grid: case.grid,
        group: case.group,
        lds_bytes: facts.static_lds_bytes + case.dynamic_lds_bytes,
        private_bytes,
        xccs: 1,
        part: Part::default(),
        scratch,
        apertures: APERTURES,
        trap,
        trap_enabled: true,
        dispatch_index: 0,
        gws: None,
        doorbell_id: 1,
    };
    let heard = Arc::new(Heard::default());
    let listener: Arc<dyn Listener> = heard.clone();
    let job = engine.launch(launch, listener).map_err(|e| e.to_string())?;
    for _ in 0..steps.unwrap_or(0) {
        if !engine.step(100_000) {
            break;
        }
    }
    let outcome = match steps {
        Some(_) => *heard.outcome.lock().unwrap(),
        None => heard.wait(limit),
    };
    if outcome != Some(Outcome::Completed) {
        job.cancel();
        if steps.is_some() {
            engine.step(1);
        }
        heard.wait(Duration::from_secs(20));
    }
    let variable = |name: &str| {
        let managed = format!("{name}.managed");
        let variable = object.variable(&managed).or_else(|| object.variable(name))?;
        Some(memory.get(image.address_of(variable.vaddr), variable.bytes))
    };
    let read = || buffers.iter().map(|&(at, bytes)| memory.get(at, bytes)).collect::<Vec<_>>();
    let results = Results { buffers: read(), variable: &variable };
    let check = (case.check)(&results).map_err(|wrong| wrong.to_string());
    Ok(Run {
        outcome,
        faults: heard.faults.lock().unwrap().clone(),
        diagnoses: heard.diagnoses.lock().unwrap().clone(),
        buffers: read(),
        check,
    })
}

/// Scratch for some resident waves, as a runtime would size it.
fn scratch(
    memory: &mut Memory,
    target: Target,
    facts: &hsaco::LaunchFacts,
    private_bytes: u32,
) -> ScratchSetup {
    if private_bytes == 0 {
        return ScratchSetup::default();
    }
    let granule = if target.is_gfx9() { 1024 } else { 256 };
    let wave_bytes = u64::from(private_bytes * facts.wave_size).next_multiple_of(granule);
    let waves = 32;
    let base = memory.alloc(wave_bytes * waves, Access { write: true, execute: false });
    let resource =
        [base as u32, (base >> 32) as u32 | 1 << 31, (wave_bytes * waves) as u32, 0x00ea_4fac];
    ScratchSetup { base, wave_bytes, waves: waves as u32, xcc_bytes: 0, resource }
}

/// `hsa_kernel_dispatch_packet_t`, as far as kernels read it.
fn packet(case: &Case, kernarg: u64, private_bytes: u32) -> Vec<u8> {
    let mut words = vec![0u8; 64];
    for (d, (&group, &grid)) in case.group.iter().zip(&case.grid).enumerate() {
        words[4 + 2 * d..6 + 2 * d].copy_from_slice(&(group as u16).to_le_bytes());
        words[12 + 4 * d..16 + 4 * d].copy_from_slice(&grid.to_le_bytes());
    }
    words[2] = dimensions(case) as u8;
    words[24..28].copy_from_slice(&private_bytes.to_le_bytes());
    words[28..32].copy_from_slice(&case.dynamic_lds_bytes.to_le_bytes());
    words[40..48].copy_from_slice(&kernarg.to_le_bytes());
    words
}

fn dimensions(case: &Case) -> u16 {
    match case.grid {
        [_, 1, 1] => 1,
        [_, _, 1] => 2,
        _ => 3,
    }
}
