//! `isa`: what instructions a code object has, and which of them the software GPU lacks.

#[cfg(feature = "model")]
mod scan;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use hsaco::CodeObject;
use serde::Serialize;

use crate::cli::IsaArgs;
use crate::exit::{Code, Failure, chain};
use crate::render::{Output, Report, table};

/// A code object is not larger, bytes.
const FILE_LIMIT: u64 = 1 << 30;

#[derive(Serialize)]
struct Isa {
    file: String,
    target: String,
    /// Version of the code object ABI.
    version: String,
    /// Target whose instruction tables were used; another one only for generic targets.
    decoded_as: String,
    /// Operations that the software GPU has no semantics for, anywhere in the object.
    lacking: Vec<Opcode>,
    kernels: Vec<KernelRow>,
    /// All code of the object, functions that are called through pointers included.
    object: CodeRow,
    disassembly: Option<Vec<Line>>,
}

#[derive(Serialize)]
struct KernelRow {
    name: String,
    entry: String,
    wave_size: u32,
    /// Calls or jumps through registers: what they lead to is counted in `object` only.
    has_indirect_calls: bool,
    /// The first instruction of each class that is not exact whose result can get to memory, an
    /// address or a branch.
    inexact: Vec<InexactRow>,
    #[serde(flatten)]
    code: CodeRow,
}

#[derive(Serialize)]
struct InexactRow {
    /// tolerance, approximated or missing.
    class: &'static str,
    name: String,
    address: String,
    /// Where its result can get; none when it goes nowhere.
    reaches: Vec<&'static str>,
}

#[derive(Default, Serialize)]
struct CodeRow {
    instructions: u64,
    code_bytes: u64,
    /// By name.
    opcodes: Vec<Opcode>,
    /// Words that are no instruction of this target.
    undecodable: Vec<Undecodable>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Opcode {
    name: String,
    count: u64,
    supported: bool,
    /// How close to hardware the software GPU is: exact, tolerance, approximated or missing.
    fidelity: &'static str,
    /// The tolerance, or what is approximated or why it is missing.
    note: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Undecodable {
    address: String,
    word: String,
    problem: String,
}

#[derive(Serialize)]
struct Line {
    address: String,
    words: String,
    text: String,
    /// Name of the kernel that starts here.
    kernel: Option<String>,
}

/// Runs `isa`.
pub fn run(args: &IsaArgs, out: &Output) -> Result<Code, Failure> {
    let bytes = read(&args.file)?;
    let object = CodeObject::parse(&bytes).map_err(|error| Failure::BadInput {
        what: format!("{}: {}", args.file.display(), chain(&error)),
    })?;
    out.report("isa", &collect(args, &object)?)?;
    Ok(Code::Passed)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |source| Failure::Read { path: path.display().to_string(), source };
    let bytes = fs::metadata(path).map_err(failure)?.len();
    if bytes > FILE_LIMIT {
        let what = format!("{}: {bytes} bytes are more than a code object has", path.display());
        return Err(Failure::BadInput { what });
    }
    fs::read(path).map_err(failure)
}

#[cfg(not(feature = "model"))]
fn collect(args: &IsaArgs, _: &CodeObject<'_>) -> Result<Isa, Failure> {
    let file = args.file.display();
    let what =
        format!("{file}: this kfd-probe was built without the instruction tables (feature model)");
    Err(Failure::BadInput { what })
}

#[cfg(feature = "model")]
fn collect(args: &IsaArgs, object: &CodeObject<'_>) -> Result<Isa, Failure> {
    let file = args.file.display().to_string();
    let target = scan::target_of(object).ok_or_else(|| Failure::BadInput {
        what: format!("{file}: there are no instruction tables for {}", object.target()),
    })?;
    let whole = scan::whole(object, target);
    let kernels = object.kernels().iter().map(|kernel| scan::kernel(object, kernel, target));
    Ok(Isa {
        file,
        target: object.target().to_string(),
        version: format!("v{}", object.version().number()),
        decoded_as: target.to_string(),
        lacking: whole.opcodes.iter().filter(|opcode| !opcode.supported).cloned().collect(),
        kernels: kernels.collect(),
        object: whole,
        disassembly: args.disassemble.then(|| scan::disassemble(object, target)),
    })
}

impl Report for Isa {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}: {}, code object {}", self.file, self.target, self.version)?;
        if let Some(lines) = &self.disassembly {
            return disassembly(out, lines);
        }
        let mut kernels =
            table(&["kernel", "wave", "entry", "instructions", "bytes", "opcodes", "lacking"]);
        for kernel in &self.kernels {
            let code = &kernel.code;
            let lacking = code.opcodes.iter().filter(|opcode| !opcode.supported).count();
            kernels.add_row([
                kernel.name.clone(),
                kernel.wave_size.to_string(),
                kernel.entry.clone(),
                code.instructions.to_string(),
                code.code_bytes.to_string(),
                code.opcodes.len().to_string(),
                lacking.to_string(),
            ]);
        }
        writeln!(out, "{kernels}")?;
        let mut opcodes = table(&["instruction", "count", "software GPU", ""]);
        for opcode in &self.object.opcodes {
            let fidelity =
                if opcode.supported { opcode.fidelity.to_owned() } else { "MISSING".to_owned() };
            let note = opcode.note.unwrap_or_default().to_owned();
            opcodes.add_row([opcode.name.clone(), opcode.count.to_string(), fidelity, note]);
        }
        writeln!(out, "\nAll code of the object:\n{opcodes}")?;
        for kernel in self.kernels.iter().filter(|kernel| kernel.has_indirect_calls) {
            let name = &kernel.name;
            writeln!(
                out,
                "{name} calls through registers: its counts are without those functions"
            )?;
        }
        for kernel in &self.kernels {
            for row in &kernel.inexact {
                let (name, class) = (&kernel.name, row.class);
                let reaches = match row.reaches.is_empty() {
                    true => "nothing".to_owned(),
                    false => row.reaches.join(", "),
                };
                writeln!(
                    out,
                    "{name}: {class}: {} at {} reaches {reaches}",
                    row.name, row.address
                )?;
            }
        }
        for bad in &self.object.undecodable {
            writeln!(out, "{}: {} is no instruction: {}", bad.address, bad.word, bad.problem)?;
        }
        if self.lacking.is_empty() {
            return writeln!(out, "The software GPU has every instruction.");
        }
        let names: Vec<&str> = self.lacking.iter().map(|opcode| opcode.name.as_str()).collect();
        writeln!(out, "The software GPU lacks: {}", names.join(", "))
    }
}

fn disassembly(out: &mut dyn Write, lines: &[Line]) -> io::Result<()> {
    for line in lines {
        if let Some(kernel) = &line.kernel {
            writeln!(out, "\n{kernel}:")?;
        }
        writeln!(out, "{:>10}  {:<26}  {}", line.address, line.words, line.text)?;
    }
    Ok(())
}
