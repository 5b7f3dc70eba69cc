//! Which device a command talks to: the hardware if it can be used, else the software GPU.

use std::sync::Arc;

use kfd::access::AccessProblem;
use kfd::sys::{Errno, Kernel, Linux, OpenFlags};
use kfd::{Gpu, Kfd};
use serde::Serialize;

use crate::cli::{DeviceArgs, ModelChoice};
use crate::exit::{Code, Failure, chain};

/// Files of /sys and /proc that are read whole are not larger, bytes.
const FILE_LIMIT: usize = 1 << 20;

/// A device, open.
pub struct Device {
    /// The device.
    pub kfd: Kfd,
    /// What reports say of it.
    pub summary: DeviceSummary,
    /// The software GPU's own channel.
    #[cfg(feature = "model")]
    model: Option<Arc<kfd_model::Model>>,
}

/// What reports say of the device that ran.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceSummary {
    /// `hardware` or `software`.
    pub kind: &'static str,
    /// For people: `software GPU (gfx1100 preset)`, `hardware`.
    pub description: String,
    /// Version of the KFD interface.
    pub kfd_version: String,
    /// Why the hardware was not used, where that was not asked for.
    pub hardware_not_used: Option<String>,
    /// The usable GPUs.
    pub gpus: Vec<GpuSummary>,
}

/// One usable GPU.
#[derive(Clone, Debug, Serialize)]
pub struct GpuSummary {
    /// Topology node.
    pub node: u32,
    /// KFD's id.
    pub gpu_id: u32,
    /// ASIC name.
    pub name: Option<String>,
    /// Target without features: `gfx90a`.
    pub target: String,
}

impl GpuSummary {
    /// Of a GPU.
    pub fn of(gpu: &Gpu) -> Self {
        let node = gpu.node();
        Self {
            node: node.id.0,
            gpu_id: gpu.id().0,
            name: node.name.clone(),
            target: gpu.gfx_version().to_string(),
        }
    }
}

impl DeviceSummary {
    fn new(kfd: &Kfd, kind: &'static str, description: String) -> Self {
        Self {
            kind,
            description,
            kfd_version: kfd.version().to_string(),
            hardware_not_used: None,
            gpus: kfd.gpus().iter().map(GpuSummary::of).collect(),
        }
    }

    /// The first line of every text report; a second one where the hardware was given up.
    pub fn headline(&self) -> String {
        let gpus: Vec<String> = self
            .gpus
            .iter()
            .map(|gpu| match &gpu.name {
                Some(name) if *name != gpu.target => {
                    format!("{} ({name}, node {})", gpu.target, gpu.node)
                }
                _ => format!("{} (node {})", gpu.target, gpu.node),
            })
            .collect();
        let gpus = if gpus.is_empty() { "no GPU".to_owned() } else { gpus.join(" + ") };
        let mut line = format!("device: {gpus}, {}, KFD {}", self.description, self.kfd_version);
        if let Some(reason) = &self.hardware_not_used {
            line.push_str("\nhardware not used: ");
            line.push_str(reason);
        }
        line
    }
}

impl Device {
    /// What the software GPU has to say; nothing for hardware.
    pub fn diagnostics(&self) -> Vec<String> {
        #[cfg(feature = "model")]
        if let Some(model) = &self.model {
            return model.diagnostics().iter().map(ToString::to_string).collect();
        }
        Vec::new()
    }

    /// What watching the software GPU showed: its report. Nothing where nothing is watched.
    pub fn watched(&self) -> Option<serde_json::Value> {
        #[cfg(feature = "model")]
        if let Some(model) = &self.model {
            return model.report().and_then(|report| serde_json::to_value(report).ok());
        }
        None
    }

    /// How many bugs watching found.
    pub fn findings(&self) -> usize {
        #[cfg(feature = "model")]
        if let Some(report) = self.model.as_ref().and_then(|model| model.report()) {
            return report.findings.len();
        }
        0
    }

    fn hardware(kfd: Kfd) -> Self {
        let summary = DeviceSummary::new(&kfd, "hardware", "hardware".to_owned());
        Self {
            kfd,
            summary,
            #[cfg(feature = "model")]
            model: None,
        }
    }
}

/// Opens the device that the arguments ask for.
///
/// # Errors
/// [`Failure::Device`] when it cannot be used, [`Failure::BadInput`] for a bad report.
pub fn select(args: &DeviceArgs) -> Result<Device, Failure> {
    select_if(args, |_| Ok(()))
}

/// As [`select`], but hardware that is not `fit` for the command counts as unusable.
///
/// # Errors
/// As [`select`].
pub fn select_if(
    args: &DeviceArgs,
    fit: impl Fn(&Kfd) -> Result<(), Failure>,
) -> Result<Device, Failure> {
    let watch = args.watch.as_deref().unwrap_or_default();
    if let Some(choice) = &args.model {
        return software(choice, watch);
    }
    let kfd = hardware(Arc::new(Linux::new())).and_then(|kfd| fit(&kfd).map(|()| kfd));
    match kfd {
        Ok(kfd) => Ok(Device::hardware(kfd)),
        Err(failure) if args.hardware => Err(failure),
        Err(failure) => fall_back(&failure, watch),
    }
}

/// The device that the arguments ask for, though it may have no GPU that can be used.
///
/// # Errors
/// As [`select`].
pub fn without_gpu(args: &DeviceArgs) -> Result<Device, Failure> {
    let (kernel, _) = kernel(args)?;
    Ok(Device::hardware(Kfd::open_on(kernel).map_err(|error| refusal(&error))?))
}

/// The kernel that the arguments ask for, without opening its device, and what to call it.
///
/// # Errors
/// [`Failure::BadInput`] for a bad report.
pub fn kernel(args: &DeviceArgs) -> Result<(Arc<dyn Kernel>, String), Failure> {
    match &args.model {
        None => Ok((Arc::new(Linux::new()), "hardware".to_owned())),
        #[cfg(feature = "model")]
        Some(choice) => {
            let (model, description) = model(choice, "")?;
            Ok((model, description))
        }
        #[cfg(not(feature = "model"))]
        Some(choice) => Err(no_model(choice)),
    }
}

/// Opens a device that has at least one usable GPU.
///
/// # Errors
/// [`Failure::Device`] with the reason and the remedy in one line, and the exit code of the reason.
pub fn hardware(kernel: Arc<dyn Kernel>) -> Result<Kfd, Failure> {
    let kfd = Kfd::open_on(kernel).map_err(|error| refusal(&error))?;
    if kfd.gpus().is_empty() {
        return Err(no_gpu(kfd.unusable()));
    }
    Ok(kfd)
}

fn refusal(error: &kfd::Error) -> Failure {
    match error {
        kfd::Error::Access(problem) => {
            Failure::Device { code: code_of(problem), what: explain(problem) }
        }
        other => Failure::Device {
            code: Code::DeviceFailed,
            what: format!("/dev/kfd answers, but not as a KFD: {}", chain(other)),
        },
    }
}

fn no_gpu(problems: &[AccessProblem]) -> Failure {
    // What is not permitted can be repaired by whoever runs this; the rest may have to stay.
    let denied = problems.iter().find(|problem| code_of(problem) == Code::NotPermitted);
    let code = if denied.is_some() { Code::NotPermitted } else { Code::NoGpu };
    let reasons: Vec<String> = problems.iter().map(explain).collect();
    let what = if reasons.is_empty() {
        "KFD works but knows no GPU: look in the kernel log for amdgpu and kfd".to_owned()
    } else {
        format!("KFD works but no GPU can be used: {}", reasons.join("; "))
    };
    Failure::Device { code, what }
}

/// The exit code of a problem.
pub fn code_of(problem: &AccessProblem) -> Code {
    match problem {
        AccessProblem::KfdAbsent { .. } => Code::NoDevice,
        AccessProblem::KfdNotPermitted(_) | AccessProblem::RenderNodeNotPermitted { .. } => {
            Code::NotPermitted
        }
        AccessProblem::KfdBusy { .. }
        | AccessProblem::KfdFailing { .. }
        | AccessProblem::NoTopology { .. } => Code::DeviceFailed,
        _ => Code::NoGpu,
    }
}

/// A problem and its remedy, in one line.
fn explain(problem: &AccessProblem) -> String {
    format!("{problem}. Remedy: {}", problem.remedy())
}

/// Reads a small text file of this kernel whole.
///
/// # Errors
/// The errno of `open` or `read`; `FBIG` past 1 MiB.
pub fn read_text(kernel: &dyn Kernel, path: &str) -> Result<String, Errno> {
    let file = retry(|| kernel.open(path, OpenFlags::READ))?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    let result = loop {
        match retry(|| kernel.read(file, &mut chunk)) {
            Ok(0) => break Ok(()),
            Ok(n) if bytes.len() + n > FILE_LIMIT => break Err(Errno::FBIG),
            Ok(n) => bytes.extend(chunk.iter().take(n)),
            Err(errno) => break Err(errno),
        }
    };
    kernel.close(file);
    result?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names in a directory that are numbers, in order; none where it cannot be read.
pub fn numbers(kernel: &dyn Kernel, path: &str) -> Vec<u32> {
    let names = kernel.read_dir(path).unwrap_or_default();
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(not(feature = "model"))]
fn no_model(choice: &ModelChoice) -> Failure {
    let what = format!("this kfd-probe was built without the software GPU: {choice:?} asked for");
    Failure::Device { code: Code::NoGpu, what }
}

#[cfg(not(feature = "model"))]
fn software(choice: &ModelChoice, _: &str) -> Result<Device, Failure> {
    Err(no_model(choice))
}

#[cfg(not(feature = "model"))]
fn fall_back(failure: &Failure, _: &str) -> Result<Device, Failure> {
    let what = format!("{failure} (this kfd-probe was built without the software GPU)");
    Err(Failure::Device { code: failure.code(), what })
}

#[cfg(feature = "model")]
fn software(choice: &ModelChoice, watch: &str) -> Result<Device, Failure> {
    let (model, description) = model(choice, watch)?;
    let kfd = hardware(Arc::clone(&model) as Arc<dyn Kernel>)?;
    let summary = DeviceSummary::new(&kfd, "software", description);
    Ok(Device { kfd, summary, model: Some(model) })
}

#[cfg(feature = "model")]
fn fall_back(failure: &Failure, watch: &str) -> Result<Device, Failure> {
    let mut device = software(&ModelChoice::Presets(vec!["gfx1100"]), watch)?;
    device.summary.hardware_not_used = Some(failure.to_string());
    Ok(device)
}

/// The software GPU, and what to call it.
#[cfg(feature = "model")]
fn model(choice: &ModelChoice, watch: &str) -> Result<(Arc<kfd_model::Model>, String), Failure> {
    use kfd_model::{Model, Preset, Profile, Target, Watch};

    let bad = |error: &dyn std::error::Error| Failure::BadInput { what: chain(error) };
    let watch: Watch = watch.parse().map_err(|error| bad(&error))?;
    let builder = || Model::builder().watch(watch.clone()).map_err(|error| bad(&error));
    match choice {
        ModelChoice::Presets(names) => {
            let mut builder = builder()?;
            for name in names {
                let preset = name.parse::<Target>().ok().map(Preset::of);
                builder = builder.gpu(preset.ok_or_else(|| Failure::BadInput {
                    what: format!("the software GPU has no preset {name}"),
                })?);
            }
            let plural = if names.len() == 1 { "preset" } else { "presets" };
            let description = format!("software GPU ({} {plural})", names.join(", "));
            Ok((builder.build(), description))
        }
        ModelChoice::Report(path) => {
            let report = super::selftest::SavedReport::load(path)?;
            let profile = match report.machine.kfd_minor() {
                Some(..=11) => Profile::V6_1,
                _ if report.machine.shows_save_sizes() => Profile::V6_12,
                _ => Profile::V6_12_0,
            };
            let topology = report.machine.topology.to_model();
            let model = builder()?.profile(profile).build_topology(&topology);
            let description = format!("software GPU (topology of {})", path.display());
            Ok((model, description))
        }
    }
}

#[cfg(all(test, feature = "model"))]
mod tests {
    use kfd_model::{Call, FaultPlan, Model};

    use super::*;
    use crate::cli::PRESETS;

    fn refused(errno: Errno) -> (Code, String) {
        let plan = FaultPlan::new();
        plan.fail(Call::Open("/dev/kfd".to_owned()), 0, 1, errno);
        let model = Model::builder().fault_plan(plan).build();
        let failure = hardware(Arc::clone(&model) as Arc<dyn Kernel>).unwrap_err();
        // The fault is lifted: the second try finds the GPU.
        assert_eq!(hardware(model).unwrap().gpus().len(), 1);
        (failure.code(), failure.to_string())
    }

    #[test]
    fn each_errno_of_open_has_its_own_reason_and_exit_code() {
        let cases = [
            (Errno::NOENT, Code::NoDevice, "absent"),
            (Errno::ACCESS, Code::NotPermitted, "in groups ["),
            (Errno::NOMEM, Code::DeviceFailed, "cannot be opened"),
            (Errno::BUSY, Code::DeviceFailed, "busy"),
        ];
        let mut texts = Vec::new();
        for (errno, code, word) in cases {
            let (found, text) = refused(errno);
            assert_eq!(found, code, "{text}");
            assert!(text.contains(word) && text.contains("Remedy:"), "{text}");
            assert!(!text.contains('\n'), "{text}");
            texts.push(text);
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 4);
    }

    #[test]
    fn a_denied_device_names_the_owning_group_and_the_callers_groups() {
        let (_, text) = refused(Errno::ACCESS);
        assert!(text.contains("owned by group 0"), "{text}");
        assert!(text.contains("caller is user"), "{text}");
    }

    #[test]
    fn a_machine_whose_only_gpu_is_hidden_has_no_usable_gpu() {
        let model = Model::builder().hide_gpu(0).build();
        let failure = hardware(model).unwrap_err();
        assert_eq!(failure.code(), Code::NoGpu);
        assert!(failure.to_string().contains("is hidden"), "{failure}");
    }

    #[test]
    fn a_denied_render_node_is_a_matter_of_permission() {
        let plan = FaultPlan::new();
        plan.fail(Call::Open("/dev/dri/renderD128".to_owned()), 0, 1, Errno::ACCESS);
        let failure = hardware(Model::builder().fault_plan(plan).build()).unwrap_err();
        assert_eq!(failure.code(), Code::NotPermitted);
        assert!(failure.to_string().contains("renderD128"), "{failure}");
    }

    #[test]
    fn nonsense_from_the_device_is_a_failing_device() {
        let plan = FaultPlan::new();
        plan.garble(1, |answer| answer.fill(0xff));
        let failure = hardware(Model::builder().fault_plan(plan).build()).unwrap_err();
        assert_eq!(failure.code(), Code::DeviceFailed);
    }

    #[test]
    fn every_preset_of_the_command_line_exists() {
        for name in PRESETS {
            let device = software(&ModelChoice::Presets(vec![name]), "").unwrap();
            assert_eq!(device.summary.gpus[0].target, name);
            assert!(device.summary.headline().contains(&format!("{name} preset")));
        }
    }
}
