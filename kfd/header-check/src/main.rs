//! What a C compiler makes of the kernel's KFD headers, as a table.
//!
//! `kfd-header-check DIRECTORY` finds every struct, field and constant of `linux/kfd_ioctl.h` and
//! `linux/kfd_sysfs.h` in DIRECTORY, asks the C compiler (`$CC`, else `cc`) for their sizes, offsets
//! and values, and prints a table. Tables of the versions that matter are committed in `tables/`;
//! `check.sh` makes them anew from Debian's packages, and the tests here compare `kfd::abi` with them.
//! No name is typed here: all come from the header, so the tests also find what `kfd::abi` lacks.
#![forbid(unsafe_code)]

mod header;
mod probe;
#[cfg(test)]
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(directory), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: kfd-header-check DIRECTORY (that has linux/kfd_ioctl.h)");
        return ExitCode::from(2);
    };
    match probe::table(directory.as_ref()) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kfd-header-check: {error}");
            ExitCode::FAILURE
        }
    }
}
