//! `object`: what is in a file of code objects, whether it fits a GPU, and what its kernels need.

mod text;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use hsaco::bundle::Encoding;
use hsaco::{
    Bundle, BundleEntry, CodeObject, Container, ContainerKind, DeviceTarget, Kernel, Processor,
    occupancy,
};
use kfd::Kfd;
use kfd::sys::Linux;
use serde::Serialize;

use super::device;
use crate::cli::ObjectArgs;
use crate::exit::{Code, Failure, chain};
use crate::render::Output;

/// A file is not larger, bytes. The largest libraries with device code have a few gigabytes.
const FILE_LIMIT: u64 = 8 << 30;

/// Work-items of the workgroup for which occupancy is told, where the kernel does not fix it.
const USUAL_GROUP: u32 = 256;

#[derive(Serialize)]
struct Report {
    file: String,
    file_bytes: u64,
    /// "code object", "bundles" or "host file".
    container: &'static str,
    bundles: Vec<BundleRow>,
    /// What the images were checked against.
    devices: Vec<DeviceRow>,
    /// Why no GPU was asked, if none was.
    device_problem: Option<String>,
}

#[derive(Serialize)]
struct BundleRow {
    /// Where it starts in the file.
    offset: u64,
    /// "bare", "plain", or the version and method of a compressed one.
    encoding: String,
    content_bytes: usize,
    images: Vec<ImageRow>,
}

#[derive(Serialize)]
struct ImageRow {
    /// Id in the bundle, or the target of a code object by itself.
    name: String,
    bytes: usize,
    /// Why it cannot be loaded; nothing else is known of it then.
    problem: Option<String>,
    #[serde(flatten)]
    object: Option<ObjectRow>,
}

#[derive(Serialize)]
struct ObjectRow {
    /// Target id by e_flags.
    target: String,
    generic_version: Option<u8>,
    /// Version of the code object ABI.
    version: String,
    load_bytes: u64,
    relocations: usize,
    variables: Vec<VariableRow>,
    managed: Vec<VariableRow>,
    printf_formats: Vec<String>,
    /// What its kernels need together.
    needs: Vec<&'static str>,
    kernels: Vec<KernelRow>,
}

#[derive(Serialize)]
struct VariableRow {
    name: String,
    bytes: u64,
}

#[derive(Serialize)]
struct KernelRow {
    name: String,
    wave_size: u32,
    vgprs: u32,
    sgprs: u32,
    lds_bytes: u32,
    private_bytes: u32,
    kernarg_bytes: u32,
    arguments: usize,
    hidden_arguments: Vec<&'static str>,
    max_group: u32,
    required_group: Option<[u32; 3]>,
    /// Dwords of arguments in SGPRs.
    preload_dwords: u16,
    needs: Vec<&'static str>,
    occupancy: Option<OccupancyRow>,
}

#[derive(Serialize)]
struct OccupancyRow {
    /// The processor it is told for.
    processor: &'static str,
    /// Work-items of the workgroup it is told for.
    group: u32,
    groups_per_unit: u32,
    compute_units_per_unit: u32,
    waves_per_simd: u32,
    max_waves_per_simd: u32,
    limiter: &'static str,
}

#[derive(Serialize)]
struct DeviceRow {
    target: String,
    gpu_id: Option<u32>,
    /// Whether every bundle has an image for it.
    fits: bool,
    /// The image of each bundle, or why none fits.
    images: Vec<FitRow>,
}

#[derive(Serialize)]
struct FitRow {
    image: Option<String>,
    /// Image and reason, where none fits.
    misfits: Vec<[String; 2]>,
}

/// Runs `object`.
pub fn run(args: &ObjectArgs, out: &Output) -> Result<Code, Failure> {
    let bytes = read(&args.file)?;
    let container = Container::read(&bytes).map_err(|error| Failure::BadInput {
        what: format!("{}: {}", args.file.display(), chain(&error)),
    })?;
    let (devices, device_problem) = devices(args)?;
    let report = collect(args, bytes.len(), &container, &devices, device_problem);
    out.report("object", &report)?;
    let is_loadable = container.images().any(|image| CodeObject::parse(image.bytes).is_ok());
    let fits = report.devices.iter().all(|device| device.fits);
    Ok(if is_loadable && fits { Code::Passed } else { Code::Failed })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |source| Failure::Read { path: path.display().to_string(), source };
    let bytes = fs::metadata(path).map_err(failure)?.len();
    if bytes > FILE_LIMIT {
        let what = format!("{}: {bytes} bytes are more than can be read", path.display());
        return Err(Failure::BadInput { what });
    }
    fs::read(path).map_err(failure)
}

struct Wanted {
    target: DeviceTarget,
    gpu_id: Option<u32>,
}

/// The devices to check against, and why there are none. Without an option the machine's GPUs are
/// asked; a machine without any is no reason to fail.
fn devices(args: &ObjectArgs) -> Result<(Vec<Wanted>, Option<String>), Failure> {
    if let Some(target) = args.target {
        return Ok((vec![Wanted { target, gpu_id: None }], None));
    }
    if args.device.model.is_some() || args.device.hardware {
        return Ok((gpus(&device::select(&args.device)?.kfd)?, None));
    }
    match device::hardware(Arc::new(Linux::new())) {
        Ok(kfd) => Ok((gpus(&kfd)?, None)),
        Err(failure) => Ok((Vec::new(), Some(failure.to_string()))),
    }
}

fn gpus(kfd: &Kfd) -> Result<Vec<Wanted>, Failure> {
    let xnack = kfd.xnack_enabled()?;
    let mut wanted = Vec::new();
    for gpu in kfd.gpus() {
        let version = gpu.gfx_version().target_version();
        let target = DeviceTarget::new(version, gpu.has_sram_ecc(), xnack);
        // A GPU that no code object can name fits nothing; `devices` tells of it.
        if let Ok(target) = target {
            wanted.push(Wanted { target, gpu_id: Some(gpu.id().0) });
        }
    }
    Ok(wanted)
}

fn collect(
    args: &ObjectArgs,
    file_bytes: usize,
    container: &Container<'_>,
    devices: &[Wanted],
    device_problem: Option<String>,
) -> Report {
    let processors: Vec<DeviceTarget> = devices.iter().map(|device| device.target).collect();
    let bundles = container.bundles().iter().map(|bundle| BundleRow {
        offset: bundle.offset(),
        encoding: encoding(bundle.encoding()),
        content_bytes: bundle.content_bytes(),
        images: bundle.images().map(|entry| image(&entry, &processors)).collect(),
    });
    Report {
        file: args.file.display().to_string(),
        file_bytes: file_bytes as u64,
        container: match container.kind() {
            ContainerKind::CodeObject => "code object",
            ContainerKind::Bundles => "bundles",
            ContainerKind::HostFile => "host file",
            _ => "unknown",
        },
        bundles: bundles.collect(),
        devices: devices.iter().map(|device| device_row(device, container)).collect(),
        device_problem,
    }
}

fn encoding(encoding: Encoding) -> String {
    match encoding {
        Encoding::Bare => "bare".to_owned(),
        Encoding::Plain => "plain".to_owned(),
        Encoding::Compressed(header) => format!("CCOB {} {}", header.version, header.method),
        _ => "unknown".to_owned(),
    }
}

fn device_row(device: &Wanted, container: &Container<'_>) -> DeviceRow {
    let images: Vec<FitRow> =
        container.bundles().iter().map(|bundle| fit(bundle, &device.target)).collect();
    DeviceRow {
        target: device.target.to_string(),
        gpu_id: device.gpu_id,
        fits: images.iter().all(|fit| fit.image.is_some()),
        images,
    }
}

fn fit(bundle: &Bundle<'_>, target: &DeviceTarget) -> FitRow {
    match bundle.choose(target) {
        Ok(choice) => FitRow { image: Some(choice.entry.name()), misfits: Vec::new() },
        Err(no_fit) => {
            let misfit = |(name, misfit): (String, hsaco::Misfit)| [name, misfit.to_string()];
            FitRow { image: None, misfits: no_fit.images.into_iter().map(misfit).collect() }
        }
    }
}

fn image(entry: &BundleEntry<'_>, devices: &[DeviceTarget]) -> ImageRow {
    let (problem, object) = match CodeObject::parse(entry.bytes) {
        Ok(object) => (None, Some(object_row(&object, devices))),
        Err(error) => (Some(chain(&error)), None),
    };
    ImageRow { name: entry.name(), bytes: entry.bytes.len(), problem, object }
}

fn object_row(object: &CodeObject<'_>, devices: &[DeviceTarget]) -> ObjectRow {
    let target = object.target();
    // Generic code is counted on the first device it runs on.
    let on = devices.iter().find(|device| target.fits(device).is_ok());
    let processor = on.map_or(target.processor(), DeviceTarget::processor);
    let row = |name: &str, bytes| VariableRow { name: name.to_owned(), bytes };
    ObjectRow {
        target: target.to_string(),
        generic_version: Some(target.generic_version()).filter(|&version| version != 0),
        version: format!("v{}", object.version().number()),
        load_bytes: object.load_bytes(),
        relocations: object.relocation_counts().values().sum(),
        variables: object.variables().iter().map(|v| row(v.name, v.bytes)).collect(),
        managed: object.managed().iter().map(|v| row(v.name, v.bytes)).collect(),
        printf_formats: object.printf_formats().iter().map(|f| f.format.to_string()).collect(),
        needs: object.needs().names().collect(),
        kernels: object.kernels().iter().map(|kernel| kernel_row(kernel, processor)).collect(),
    }
}

fn kernel_row(kernel: &Kernel<'_>, processor: Processor) -> KernelRow {
    let facts = kernel.launch_facts();
    let fixed = facts.required_group_size.map(|sizes| sizes.iter().product());
    let group = fixed.unwrap_or(USUAL_GROUP.min(facts.max_flat_group_size));
    let found = occupancy(processor, &kernel.resources(processor, 0), group);
    KernelRow {
        name: kernel.name().to_owned(),
        wave_size: facts.wave_size,
        vgprs: facts.vgprs,
        sgprs: facts.sgprs,
        lds_bytes: facts.static_lds_bytes,
        private_bytes: facts.private_bytes,
        kernarg_bytes: facts.kernarg_bytes,
        arguments: kernel.arguments().explicit().len(),
        hidden_arguments: kernel.arguments().hidden().iter().map(|h| h.kind.name()).collect(),
        max_group: facts.max_flat_group_size,
        required_group: facts.required_group_size,
        preload_dwords: facts.preload.dwords,
        needs: kernel.needs().names().collect(),
        occupancy: found.map(|found| OccupancyRow {
            processor: processor.name(),
            group,
            groups_per_unit: found.groups_per_unit,
            compute_units_per_unit: found.cus_per_unit,
            waves_per_simd: found.waves_per_simd,
            max_waves_per_simd: found.max_waves_per_simd,
            limiter: found.limiter.name(),
        }),
    }
}
