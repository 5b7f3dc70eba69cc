//! One file per subcommand: each collects into a serde struct that `render` prints.

mod capture;
mod decode;
mod demo;
mod device;
mod devices;
mod doctor;
mod isa;
mod machine;
mod object;
mod queues;
mod rings;
mod run;
mod selftest;
mod topology;
mod watch;

use crate::cli::{Cli, Command};
use crate::exit::{Code, Failure};
use crate::render::Output;

/// Runs the subcommand that was asked for.
pub fn run(cli: &Cli, out: &Output) -> Result<Code, Failure> {
    match &cli.command {
        Command::Devices(args) => devices::run(args, out),
        Command::Selftest(args) => selftest::run(args, out),
        Command::Queues(args) => queues::run(args, out),
        Command::Watch(args) => watch::run(args, out),
        Command::Capture(args) => capture::run(args, out),
        Command::Decode(args) => decode::run(args, out),
        Command::Isa(args) => isa::run(args, out),
        Command::Object(args) => object::run(args, out),
        Command::Doctor(args) => doctor::run(args, out),
        Command::Run(args) => match run::run(args)? {},
        Command::Topology(args) => topology::run(args),
    }
}
