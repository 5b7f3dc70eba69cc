//! `kfd-probe`: asks an AMD GPU, or the software GPU, what it is, whether it works and why not.
//!
//! Exit codes are part of the interface: see [`exit::Code`].
#![forbid(unsafe_code)]

mod cli;
mod cmd;
mod exit;
mod render;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let out = render::Output::new(&cli);
    match cmd::run(&cli, &out) {
        Ok(code) => code.into(),
        Err(failure) => {
            // A reader that went away (`kfd-probe ... | head`) is not a failure worth a word.
            if failure.is_closed_pipe() {
                return exit::Code::Passed.into();
            }
            out.failure(&failure);
            failure.code().into()
        }
    }
}
