//! The programs of the self-test through streams of every kind: on every target, the CPU's results.

use hip::{Grid, Memory, Module, Runtime, Stream, StreamRequest};
use kfd::MemoryRequest;
use kfd_model::{Model, Preset, Target};
use kfd_probe::programs::{Arg, Case, Results, cases};
use kfd_tests::{on_hardware, skip};

use super::kinds;

fn run(runtime: &Runtime, case: &Case, kind: StreamRequest) -> Result<(), String> {
    let device = &runtime.devices()[0];
    let module = Module::load(device, case.object).map_err(|error| error.to_string())?;
    let function = module.function(case.kernel).unwrap();
    let buffer = |arg: &Arg| match arg {
        Arg::Buffer(content) => {
            let request = MemoryRequest::gtt(content.len().max(1) as u64);
            let memory = device.allocate(&request).unwrap();
            memory.write(0, content).unwrap();
            Some(memory)
        }
        Arg::Value(_) | Arg::Null => None,
    };
    let buffers: Vec<Option<Memory>> = case.args.iter().map(buffer).collect();
    let values: Vec<Vec<u8>> = case
        .args
        .iter()
        .zip(&buffers)
        .map(|(arg, buffer)| match (arg, buffer) {
            (Arg::Value(bytes), _) => bytes.clone(),
            (_, Some(buffer)) => buffer.addr().get().to_le_bytes().to_vec(),
            (_, None) => vec![0; 8],
        })
        .collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    let mut stream = Stream::new(device, kind).unwrap();
    let grid = Grid::items(case.grid, case.group).dynamic_lds(case.dynamic_lds_bytes);
    stream.launch(&function, &grid, &values[..]).map_err(|error| format!("{error:?}"))?;
    stream.synchronize().map_err(|error| format!("{error:?}"))?;
    let read = |memory: &Memory| {
        let mut bytes = vec![0; usize::try_from(memory.bytes()).unwrap()];
        memory.read(0, &mut bytes).unwrap();
        bytes
    };
    let variable = |name: &str| {
        let (_, bytes) = module.variable(name).ok()?;
        let (memory, offset) = module.variable_memory(name).ok()?;
        let mut content = vec![0; usize::try_from(bytes).ok()?];
        memory.read(offset, &mut content).ok()?;
        Some(content)
    };
    let results =
        Results { buffers: buffers.iter().flatten().map(read).collect(), variable: &variable };
    (case.check)(&results).map_err(|wrong| wrong.to_string())
}

fn programs(targets: &[Target]) {
    if on_hardware() {
        return skip("it compares the software GPU's targets");
    }
    for target in targets {
        let model = Model::builder().gpu(Preset::of(*target)).build();
        let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
        let mut failed = Vec::new();
        let cases = cases(target.name());
        for case in &cases {
            for kind in kinds(&runtime.devices()[0]).into_iter().filter(|kind| !kind.is_shared()) {
                if let Err(why) = run(&runtime, case, kind) {
                    failed.push(format!("{target}: {} on {kind:?}: {why}", case.name));
                }
            }
        }
        assert!(!cases.is_empty() && failed.is_empty(), "{failed:#?}");
    }
}

#[test]
fn programs_compute_the_same_on_aql_and_pm4_streams_of_every_gfx9() {
    let all: Vec<Target> = Target::ALL.into_iter().filter(|one| one.name().len() < 7).collect();
    assert_eq!(all.len(), 5);
    programs(&all);
}

#[test]
fn programs_compute_the_same_on_aql_and_pm4_streams_of_every_gfx11() {
    let all: Vec<Target> = Target::ALL.into_iter().filter(|one| one.name().len() == 7).collect();
    assert_eq!(all.len(), 6);
    programs(&all);
}
