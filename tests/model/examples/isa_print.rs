//! Reads lines `TARGET WAVE WORD...` (hexadecimal words) and prints for each what the decoder makes
//! of it: `SIZE TEXT`, or `- REASON`. The comparison with LLVM in `isa-gen` drives it.
//!
//! `cargo run -p kfd-model --example isa_print`

use std::io::{self, BufRead, Write};

use kfd_model::Target;
use kfd_model::isa::{self, Pools};

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut parts = line.split_whitespace();
        let target = parts.next().and_then(|name| name.parse::<Target>().ok());
        let wave = parts.next().and_then(|size| size.parse().ok());
        let words: Option<Vec<u32>> =
            parts.map(|word| u32::from_str_radix(word.trim_start_matches("0x"), 16).ok()).collect();
        let (Some(target), Some(wave), Some(words)) = (target, wave, words) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, line));
        };
        match isa::decode(target, wave, &words, &mut Pools::default()) {
            Ok(decoded) => {
                let text = isa::print(target, wave, &words, 0);
                writeln!(out, "{} {text}", decoded.inst.words)?;
            }
            Err(error) => writeln!(out, "- {error}")?,
        }
    }
    Ok(())
}
