//! Arguments.

use std::ffi::OsString;
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
    /// Show compute and copy queues: live rings of this process or of a program's snapshot, and
    /// what the kernel tells of other processes.
    Queues(QueuesArgs),
    /// Show live rings again and again; on a terminal `q` and ^C end it.
    Watch(WatchArgs),
    /// Save live rings to a file that `decode --from` shows.
    Capture(CaptureArgs),
    /// Decode packets from a file or from hex, or show what `capture` or a program saved.
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
    /// Run an unmodified program that sees the software GPU as the machine's.
    ///
    /// Ends as the program ends: with its exit status, or by the signal that killed it; 124 after
    /// `--timeout`.
    Run(RunArgs),
    /// Write what KFD shows in sysfs as a directory, as HSA_MODEL_TOPOLOGY wants it.
    Topology(TopologyArgs),
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

/// Arguments of `queues`.
#[derive(Clone, Debug, Args)]
pub struct QueuesArgs {
    /// Which device.
    #[command(flatten)]
    pub device: DeviceArgs,

    /// Show the rings in this file, which a program wrote with `kfd::Snapshot::save`; `-` reads
    /// standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "hardware"])]
    pub from: Option<PathBuf>,
}

/// Arguments of `watch`.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// Which device; a small workload of this process keeps its rings moving.
    #[command(flatten)]
    pub device: DeviceArgs,

    /// Show the rings in this file, which a program writes anew with `kfd::Snapshot::save`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "hardware"])]
    pub from: Option<PathBuf>,

    /// Time between two looks, in milliseconds, 10 at least.
    #[arg(short = 's', long, value_name = "MS", default_value_t = 1000)]
    pub interval: u64,

    /// End after so many looks.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

/// Arguments of `capture`.
#[derive(Clone, Debug, Args)]
pub struct CaptureArgs {
    /// Where to; a file that is there is replaced.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Which device; a small workload of this process fills the rings. A program saves its own with
    /// `kfd::Snapshot::save`.
    #[command(flatten)]
    pub device: DeviceArgs,
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

/// Presets of a machine that a program is run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presets(pub Vec<&'static str>);

impl Presets {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(vec!["none"]));
        }
        match ModelChoice::parse(text)? {
            ModelChoice::Presets(names) => Ok(Self(names)),
            ModelChoice::Report(_) => Err("a report cannot be run on: name presets".to_owned()),
        }
    }
}

/// Arguments of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// GPUs of the machine: presets by comma (gfx900, gfx906, gfx908, gfx90a, gfx942, gfx1100 to
    /// gfx1103, gfx1150, gfx1151), `all`, or `none` for a machine whose KFD has found no GPU.
    #[arg(long, value_name = "PRESET", value_parser = Presets::parse)]
    pub model: Presets,

    /// Kill the program, and what it started, after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,

    /// Write a JSON report: how it ended, and what the software GPU has to say of each process.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Hand out KFD's own offsets for mmap instead of plain ones. For programs that check them,
    /// such as those of this project; they must call mmap by its name.
    #[arg(long)]
    pub kfd_offsets: bool,

    /// The program and its arguments.
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub program: Vec<OsString>,
}

/// Arguments of `topology`.
#[derive(Clone, Debug, Args)]
pub struct TopologyArgs {
    /// Which device.
    #[command(flatten)]
    pub device: DeviceArgs,

    /// As the runtime's model interface 0.4 wants it: node numbers for GPU ids, no debugger.
    #[arg(long = "interface-0.4")]
    pub interface_0_4: bool,

    /// The directory; made if it is not there.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
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
    /// A file of packets, as they are in memory, or a snapshot of rings; `-` reads standard input.
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
