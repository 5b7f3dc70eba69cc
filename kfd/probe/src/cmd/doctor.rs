//! `doctor`: why a GPU cannot be used: each check with its remedy.

use std::io::{self, Write};
use std::sync::Arc;

use kfd::access::{AccessProblem, diagnose};
use kfd::sys::{Errno, Kernel};
use kfd::topology::{Capability, Node};
use kfd::{Feature, Gpu, Kfd};
use serde::Serialize;

use super::device::{self, code_of, read_text};
use super::devices::bytes;
use crate::cli::DeviceArgs;
use crate::exit::{Code, Failure, chain};
use crate::render::{Output, Report};

#[derive(Serialize)]
struct Doctor {
    device: String,
    /// Whether something that the caller needs failed.
    healthy: bool,
    /// As the process exits.
    exit_code: u8,
    checks: Vec<Check>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// As it should be.
    Ok,
    /// Neither good nor bad.
    Info,
    /// Works, but less well than it could.
    Warning,
    /// Does not work.
    Failed,
}

#[derive(Serialize)]
struct Check {
    name: String,
    status: Status,
    found: String,
    remedy: Option<String>,
    #[serde(skip)]
    code: Code,
}

impl Check {
    fn new(name: &str, status: Status, found: impl Into<String>) -> Self {
        let code = if status == Status::Failed { Code::Failed } else { Code::Passed };
        Self { name: name.to_owned(), status, found: found.into(), remedy: None, code }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    fn problem(name: &str, status: Status, problem: &AccessProblem) -> Self {
        let mut check = Self::new(name, status, problem.to_string()).remedy(problem.remedy());
        if status == Status::Failed {
            check.code = code_of(problem);
        }
        check
    }
}

/// Runs `doctor`. Without `--model` it looks at the hardware, never at the software GPU.
pub fn run(args: &DeviceArgs, out: &Output) -> Result<Code, Failure> {
    let (kernel, device) = device::kernel(args)?;
    let checks = examine(&kernel);
    let first = checks.iter().find(|check| check.status == Status::Failed);
    let code = first.map_or(Code::Passed, |check| check.code);
    let healthy = code == Code::Passed;
    out.report("doctor", &Doctor { device, healthy, exit_code: code as u8, checks })?;
    Ok(code)
}

fn examine(kernel: &Arc<dyn Kernel>) -> Vec<Check> {
    let mut checks = system(&**kernel);
    let steps = diagnose(&**kernel);
    let gpu_step = |name: &str| name.starts_with("GPU ");
    let usable = steps.iter().any(|step| gpu_step(&step.name) && step.outcome.is_ok());
    for step in &steps {
        checks.push(match &step.outcome {
            Ok(found) => Check::new(&step.name, Status::Ok, found.clone()),
            Err(problem) => {
                // Part of the machine may be kept from a process on purpose.
                let of_one_gpu = gpu_step(&step.name) || step.name == "topology node";
                let status = if of_one_gpu && usable { Status::Warning } else { Status::Failed };
                Check::problem(&step.name, status, problem)
            }
        });
    }
    let reached_gpus = steps.iter().any(|step| step.name == "topology" && step.outcome.is_ok());
    if reached_gpus && !steps.iter().any(|step| gpu_step(&step.name)) {
        let mut check = Check::new("GPUs", Status::Failed, "KFD lists no GPU that can be seen")
            .remedy("look in the kernel log for amdgpu and kfd; in a container allow /dev/dri");
        check.code = Code::NoGpu;
        checks.push(check);
    }
    match Kfd::open_on(Arc::clone(kernel)) {
        Ok(kfd) => opened(&mut checks, &kfd),
        // Why it cannot be opened is among the steps.
        Err(kfd::Error::Access(_)) => {}
        Err(error) => {
            let mut check = Check::new("KFD", Status::Failed, chain(&error))
                .remedy("report it with the kernel version: this is no KFD that is known");
            check.code = Code::DeviceFailed;
            checks.push(check);
        }
    }
    checks
}

/// What lies below and around KFD.
fn system(kernel: &dyn Kernel) -> Vec<Check> {
    let release = read_text(kernel, "/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut checks = vec![Check::new("kernel", Status::Info, release.trim())];
    checks.push(match kernel.metadata("/sys/module/amdgpu") {
        Ok(_) => Check::new("amdgpu driver", Status::Ok, "loaded"),
        Err(Errno::NOENT) => {
            // In a container /sys may be another machine's view; /dev/kfd decides.
            Check::new("amdgpu driver", Status::Warning, "not loaded: /sys/module/amdgpu is absent")
                .remedy("load it on the host: modprobe amdgpu")
        }
        Err(errno) => Check::new(
            "amdgpu driver",
            Status::Warning,
            format!("/sys/module/amdgpu gives {errno}"),
        )
        .remedy("make /sys visible in the container"),
    });
    checks.push(caller());
    checks.push(container(kernel));
    checks
}

/// Who asks, by number: names mean nothing across containers.
fn caller() -> Check {
    let mut groups: Vec<u32> =
        nix::unistd::getgroups().unwrap_or_default().iter().map(|group| group.as_raw()).collect();
    groups.push(nix::unistd::getegid().as_raw());
    groups.sort_unstable();
    groups.dedup();
    let user = nix::unistd::geteuid().as_raw();
    Check::new("caller", Status::Info, format!("user {user} in groups {groups:?}"))
}

fn container(kernel: &dyn Kernel) -> Check {
    let marks = [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/run/host/container-manager", "systemd-nspawn or toolbox"),
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ];
    let found: Vec<&str> = marks
        .into_iter()
        .filter(|(path, _)| kernel.metadata(path).is_ok())
        .map(|(_, name)| name)
        .collect();
    if found.is_empty() {
        return Check::new("container", Status::Info, "no sign of one");
    }
    Check::new("container", Status::Info, found.join(", ")).remedy(
        "a GPU needs --device=/dev/kfd --device=/dev/dri and, for users other than root, \
         --group-add with the numbers of the groups that own them on the host",
    )
}

/// What only an open device tells.
fn opened(checks: &mut Vec<Check>, kfd: &Kfd) {
    checks.push(version(kfd));
    for gpu in kfd.gpus() {
        checks.extend(gpu_checks(kfd, &gpu));
    }
}

fn version(kfd: &Kfd) -> Check {
    let missing: Vec<String> = Feature::ALL
        .into_iter()
        .filter(|feature| !kfd.supports(*feature))
        .map(|feature| format!("{} ({})", feature.name(), feature.since()))
        .collect();
    let version = kfd.version();
    if missing.is_empty() {
        return Check::new("KFD version", Status::Ok, format!("{version}, nothing is missing"));
    }
    let found = format!("{version} is without {}", missing.join(", "));
    Check::new("KFD version", Status::Info, found)
        .remedy("a newer kernel has them; nothing here needs one")
}

fn gpu_checks(kfd: &Kfd, gpu: &Gpu) -> Vec<Check> {
    let node = gpu.node();
    let name = |what: &str| format!("GPU {} {what}", gpu.id());
    let mut checks = vec![
        address_space(gpu, &name("address space")),
        bar(node, &name("CPU access to VRAM")),
        atomics(node, &name("PCIe atomics")),
        exceptions(node, &name("exception delivery")),
    ];
    let firmware = |value: Option<u32>| value.map_or("unknown".to_owned(), |v| v.to_string());
    let found = format!(
        "compute {}, SDMA {}",
        firmware(node.properties.fw_version),
        firmware(node.properties.sdma_fw_version)
    );
    checks.push(Check::new(&name("firmware"), Status::Info, found));
    checks.push(xnack(kfd, gpu, &name("XNACK")));
    checks
}

/// Whether this process gets an address space on the GPU, which is what every program needs next.
fn address_space(gpu: &Gpu, name: &str) -> Check {
    match gpu.acquire() {
        Ok(()) => Check::new(name, Status::Ok, "can be acquired"),
        Err(error) => {
            let mut check = Check::new(name, Status::Failed, chain(&error))
                .remedy("end other programs that use the GPU and look in the kernel log");
            check.code = Code::DeviceFailed;
            check
        }
    }
}

fn bar(node: &Node, name: &str) -> Check {
    let (all, visible) = (node.vram_bytes(), node.visible_vram_bytes());
    if all == 0 {
        return Check::new(name, Status::Info, "no VRAM of its own");
    }
    if visible == all {
        return Check::new(name, Status::Ok, format!("all {}", bytes(all)));
    }
    Check::new(name, Status::Warning, format!("none of {}: copies take another way", bytes(all)))
        .remedy("switch on Resizable BAR and 64-bit addressing of PCIe devices in the firmware")
}

/// `io_links` flags: no 32-bit, no 64-bit atomics. Source: docs/ABI.md §Topology.
const NO_ATOMICS: u32 = 4 | 8;

fn atomics(node: &Node, name: &str) -> Check {
    let flags = node.io_links.iter().find_map(|link| link.flags);
    match flags {
        None => Check::new(name, Status::Info, "the topology shows no link to the host"),
        Some(flags) if flags & NO_ATOMICS == 0 => Check::new(name, Status::Ok, "32 and 64 bits"),
        Some(flags) => Check::new(
            name,
            Status::Warning,
            format!("not on the way to the host (link flags {flags:#x})"),
        )
        .remedy("use a PCIe slot that is wired to the CPU; atomics on host memory will not work"),
    }
}

fn exceptions(node: &Node, name: &str) -> Check {
    if node.capability().contains(Capability::DEBUG_FIRMWARE) {
        return Check::new(name, Status::Ok, "the firmware supports it");
    }
    Check::new(name, Status::Info, "not by this kernel or firmware: faults tell less")
        .remedy("a kernel from 6.5 on with current firmware delivers exceptions to the process")
}

fn xnack(kfd: &Kfd, gpu: &Gpu, name: &str) -> Check {
    // Source: docs/ABI.md §SVM: gfx10 and newer never retry.
    let found = match kfd.xnack_mode() {
        _ if gpu.gfx_version().major() >= 10 => "this generation has none".to_owned(),
        Ok(true) => "on: code objects with xnack- are refused".to_owned(),
        Ok(false) => "off: code objects with xnack+ are refused".to_owned(),
        Err(error) => format!("off, and cannot be turned on: {}", chain(&error)),
    };
    Check::new(name, Status::Info, found)
}

impl Report for Doctor {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "examined: {}", self.device)?;
        for check in &self.checks {
            let mark = match check.status {
                Status::Ok => "ok     ",
                Status::Info => "info   ",
                Status::Warning => "warning",
                Status::Failed => "FAILED ",
            };
            writeln!(out, "{mark} {}: {}", check.name, check.found)?;
            if let Some(remedy) = &check.remedy {
                writeln!(out, "        remedy: {remedy}")?;
            }
        }
        if self.healthy {
            writeln!(out, "The GPU can be used.")
        } else {
            writeln!(out, "The GPU cannot be used (exit code {}).", self.exit_code)
        }
    }
}

#[cfg(all(test, feature = "model"))]
mod tests {
    use kfd_model::{Call, FaultPlan, Model, Preset, Profile};

    use super::*;

    fn check<'a>(checks: &'a [Check], name: &str) -> &'a Check {
        checks.iter().find(|check| check.name.contains(name)).unwrap()
    }

    #[test]
    fn an_old_kernel_is_told_what_it_lacks_by_name() {
        let model: Arc<dyn Kernel> = Model::builder().profile(Profile::V6_1).build();
        let checks = examine(&model);
        let version = check(&checks, "KFD version");
        assert!(version.found.contains("1.11") && version.found.contains("event age (1.14)"));
        assert!(checks.iter().all(|check| check.status != Status::Failed));
    }

    #[test]
    fn a_small_window_to_vram_is_a_warning_with_a_remedy() {
        let model: Arc<dyn Kernel> = Model::builder().gpu(Preset::gfx1100().small_bar()).build();
        let checks = examine(&model);
        let bar = check(&checks, "CPU access to VRAM");
        assert!(bar.status == Status::Warning);
        assert!(bar.remedy.as_ref().unwrap().contains("Resizable BAR"));
    }

    #[test]
    fn one_hidden_gpu_of_two_is_a_warning_and_the_only_one_a_failure() {
        let both = || Model::builder().gpu(Preset::gfx90a()).gpu(Preset::gfx1100());
        let two: Arc<dyn Kernel> = both().hide_gpu(0).build();
        assert!(check(&examine(&two), "topology node").status == Status::Warning);
        let one: Arc<dyn Kernel> = Model::builder().hide_gpu(0).build();
        let checks = examine(&one);
        let failed = check(&checks, "topology node");
        assert!(failed.status == Status::Failed && failed.code == Code::NoGpu);
    }

    #[test]
    fn the_first_failing_check_gives_the_exit_code() {
        let plan = FaultPlan::new();
        plan.fail(Call::Open("/dev/dri/renderD128".to_owned()), 0, 9, Errno::ACCESS);
        let model: Arc<dyn Kernel> = Model::builder().fault_plan(plan).build();
        let checks = examine(&model);
        let failed = checks.iter().find(|check| check.status == Status::Failed).unwrap();
        assert!(failed.code == Code::NotPermitted, "{}", failed.found);
    }

    #[test]
    fn an_address_space_that_is_refused_is_a_failing_device() {
        let plan = FaultPlan::new();
        plan.fail(Call::Ioctl(0x15), 0, 1, Errno::BUSY);
        let model: Arc<dyn Kernel> = Model::builder().fault_plan(plan).build();
        let checks = examine(&model);
        let failed = check(&checks, "address space");
        assert!(failed.status == Status::Failed && failed.code == Code::DeviceFailed);
        assert!(failed.found.contains("ACQUIRE_VM"), "{}", failed.found);
    }
}
