//! Asks the C compiler: writes a program that prints the table, compiles it, runs it.

use crate::header::{self, Names};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const FILES: [&str; 2] = ["linux/kfd_ioctl.h", "linux/kfd_sysfs.h"];

/// Stands in for the header of that name, which Debian does not ship in these packages.
const DRM_H: &str = "#include <linux/types.h>\n#include <asm/ioctl.h>\n";

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A program could not be started.
    #[error("cannot run {program}: {source}")]
    Start {
        /// Which.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// A program failed.
    #[error("{program} failed:\n{output}")]
    Failed {
        /// Which.
        program: String,
        /// What it wrote.
        output: String,
    },
    /// The header was not understood.
    #[error(transparent)]
    Header(#[from] header::Unexpected),
}

/// The table of the headers in `directory`.
pub(crate) fn table(directory: &Path) -> Result<String, Error> {
    let work = tempfile::tempdir().map_err(|source| file(Path::new("temporary files"), source))?;
    let at = |name: &str| work.path().join(name);
    for name in ["drm", "linux"] {
        std::fs::create_dir(at(name)).map_err(|source| file(&at(name), source))?;
    }
    write(&at("drm/drm.h"), DRM_H)?;
    // Only these come from `directory`: a kernel's unexported headers around them would not compile.
    for name in FILES {
        let from = directory.join(name);
        std::fs::copy(&from, at(name)).map_err(|source| file(&from, source))?;
    }
    let includes = FILES.map(|name| format!("#include <{name}>\n")).concat();

    write(&at("names.c"), &includes)?;
    let names = header::names(&compile(work.path(), &["-E", "-dD", "names.c"])?, &FILES)?;
    write(&at("probe.c"), &program(&includes, &names))?;
    compile(work.path(), &["-o", "probe", "probe.c"])?;
    run(&mut Command::new(at("probe")))
}

/// A C program that prints the table.
fn program(includes: &str, names: &Names) -> String {
    let mut text = format!(
        "#include <stdio.h>\n#include <stddef.h>\n{includes}\
         #define VALUE(x) (sizeof(x) == 8 ? (unsigned long long)(x) : (unsigned)(x))\n\
         int main(void) {{\n"
    );
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "printf({arguments});");
    };
    for name in &names.constants {
        line(format_args!(r#""constant {name} %#llx\n", VALUE({name})"#));
    }
    for layout in &names.structs {
        let tag = &layout.tag;
        line(format_args!(r#""struct {tag} %zu\n", sizeof(struct {tag})"#));
        for field in &layout.fields {
            let path = &field.path;
            let size = if field.flexible {
                "(size_t)0".to_owned()
            } else {
                format!("sizeof(((struct {tag} *)0)->{path})")
            };
            line(format_args!(
                r#""field {tag} {path} %zu %zu\n", offsetof(struct {tag}, {path}), {size}"#
            ));
        }
    }
    text.push_str("return 0;\n}\n");
    text
}

fn compile(directory: &Path, arguments: &[&str]) -> Result<String, Error> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    run(Command::new(compiler).current_dir(directory).args(["-I", "."]).args(arguments))
}

fn run(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Err(source) => Err(Error::Start { program, source }),
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => {
            let output = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Error::Failed { program, output })
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|source| file(path, source))
}

fn file(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), source }
}
