//! Arguments.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use hsaco::DeviceTarget;

/// Asks an AMD GPU, or the software GPU, what it is, whether it works and why not.
///
/// Exit codes: 0 passed; 1 a test or check failed; 2 usage; 3 no /dev/kfd; 4 not permitted;
/// 5 the device failed; 6 no usable GPU; 7 bad input file; 8 output failed.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
pub struct Cli {
    /// Print one JSON document instead of tables. Names are stable; "schema" is 1.
    #[arg(long, global = true)]
    pub json: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List CPU and GPU nodes with what matters to a runtime.
    Devices(DeviceArgs),
    /// Run compiled kernels and compare every result with the CPU.
    Selftest(SelftestArgs),
    /// Show compute and copy queues: of this process, and of others from sysfs.
    Queues(DeviceArgs),
    /// Decode AQL packets from a file or from hex.
    Decode(DecodeArgs),
    /// Scan a code object: which instructions it uses, and which of them the software GPU lacks.
    Isa(IsaArgs),
    /// Tell what is in a code object, bundle or program: images, kernels, what they take and need,
    /// and whether they fit a GPU.
    ///
    /// Exits with 1 if nothing in the file can be loaded or a GPU that was checked has no image.
    Object(ObjectArgs),
    /// Say why the GPU cannot be used: each check with its remedy.
    Doctor(DeviceArgs),
}

/// Presets of the software GPU, in the order of `--model all`.
pub const PRESETS: [&str; 11] = kfd_probe::programs::TARGETS;

/// What the software GPU is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChoice {
    /// One machine with these presets, in this order.
    Presets(Vec<&'static str>),
    /// The machine of a report.
    Report(PathBuf),
}

impl ModelChoice {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::Presets(PRESETS.to_vec()));
        }
        if text.contains('/') || Path::new(text).extension().is_some_and(|end| end == "json") {
            return Ok(Self::Report(PathBuf::from(text)));
        }
        let preset = |name: &str| {
            PRESETS.into_iter().find(|known| *known == name.trim()).ok_or_else(|| {
                let known = PRESETS.join(", ");
                format!("unknown preset {name:?}; known are {known}, all, or a report file (.json)")
            })
        };
        text.split(',').map(preset).collect::<Result<_, _>>().map(Self::Presets)
    }
}

/// Which device a command talks to.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// Use the software GPU: a preset (gfx900, gfx906, gfx908, gfx90a, gfx942, gfx1100 to
    /// gfx1103, gfx1150, gfx1151), several by comma, `all`, or a report file
    /// of `selftest --report` whose topology it takes on.
    #[arg(long, value_name = "PRESET", value_parser = ModelChoice::parse, conflicts_with = "hardware")]
    pub model: Option<ModelChoice>,

    /// Use the hardware; fail rather than fall back to the software GPU.
    #[arg(long)]
    pub hardware: bool,

    /// Let the software GPU look for bugs and count while it executes: report, poison, late, races,
    /// lds, check (those four), ulp=SEED, schedule=SEED, trace=FILE, coverage=FILE, by comma.
    #[arg(long, value_name = "WHAT", conflicts_with = "hardware")]
    pub watch: Option<String>,
}

/// Arguments of `selftest`.
#[derive(Clone, Debug, Args)]
pub struct SelftestArgs {
    /// Which device.
    #[command(flatten)]
    pub device: DeviceArgs,

    /// Run only the tests whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,

    /// Write a JSON report with kernel, firmware, topology, results and measurements; on the software
    /// GPU also how close to hardware what it executed is.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Compare with an earlier report and say each difference. Differences do not change the exit
    /// code.
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,

    /// Longest wait for one kernel, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 20_000)]
    pub timeout: u64,
}

/// Reads a target's name.
fn parse_target(text: &str) -> Result<pm4::Target, String> {
    pm4::Target::from_name(text).ok_or_else(|| {
        "not one of gfx900, gfx906, gfx908, gfx90a, gfx942, gfx1100 to gfx1103, gfx1150, gfx1151"
            .to_owned()
    })
}

/// Arguments of `decode`.
#[derive(Clone, Debug, Args)]
pub struct DecodeArgs {
    /// A file of packets, as they are in memory; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "hex")]
    pub from: Option<PathBuf>,

    /// The packets are PM4, of a ring or an indirect buffer.
    #[arg(long, conflicts_with = "sdma")]
    pub pm4: bool,

    /// The packets are SDMA's.
    #[arg(long, requires = "target")]
    pub sdma: bool,

    /// GPU of the PM4 or SDMA packets, such as gfx90a: names registers, chooses the engine's version.
    #[arg(long, value_name = "TARGET", value_parser = parse_target)]
    pub target: Option<pm4::Target>,

    /// AQL packets as hex bytes, PM4 and SDMA packets as hex dwords, spaces allowed.
    #[arg(value_name = "HEX", required_unless_present = "from")]
    pub hex: Vec<String>,
}

/// Arguments of `isa`.
#[derive(Clone, Debug, Args)]
pub struct IsaArgs {
    /// A code object.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// List every instruction with its address.
    #[arg(long)]
    pub disassemble: bool,
}

/// Arguments of `object`.
#[derive(Clone, Debug, Args)]
pub struct ObjectArgs {
    /// A code object, an offload bundle (compressed or not), or a host program or object file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Check against this target, such as gfx1100 or gfx90a:sramecc+:xnack-, not against a GPU.
    #[arg(long, value_name = "TARGET", value_parser = DeviceTarget::from_id,
        conflicts_with_all = ["model", "hardware"])]
    pub target: Option<DeviceTarget>,

    /// Which device to check against; without an option, the GPUs of this machine if there are any.
    #[command(flatten)]
    pub device: DeviceArgs,
}
