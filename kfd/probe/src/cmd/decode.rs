//! `decode`: packets from a file or from hex, every field by name: AQL here, PM4 and SDMA in
//! [`stream`]. A file that `capture` or a program saved is shown as what it is.

mod stream;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use aql::{Decoded, Header, Packet, PacketType};
use serde::Serialize;

use crate::cli::DecodeArgs;
use crate::exit::{Code, Failure, chain};
use crate::render::{Output, Report};

/// More than this is neither a snapshot nor a ring that anybody reads as text.
const INPUT_LIMIT: u64 = 192 << 20;

#[derive(Serialize)]
struct Decoding {
    packets: Vec<PacketRow>,
    /// Packets that no command processor accepts.
    malformed: usize,
    /// Bytes after the last whole packet.
    trailing_bytes: usize,
    trailing_hex: Option<String>,
}

#[derive(Serialize)]
struct PacketRow {
    index: usize,
    offset: usize,
    kind: String,
    header: HeaderRow,
    fields: Vec<Field>,
    completion_signal: Option<String>,
    /// What is wrong with it, if anything.
    problem: Option<String>,
    /// The sixteen dwords of a malformed packet.
    dwords: Option<Vec<String>>,
}

#[derive(Serialize)]
struct HeaderRow {
    raw: String,
    packet_type: u8,
    barrier: bool,
    acquire: String,
    release: String,
}

#[derive(Serialize)]
struct Field {
    name: &'static str,
    value: String,
}

/// Runs `decode`.
pub fn run(args: &DecodeArgs, out: &Output) -> Result<Code, Failure> {
    let stream = match args.target {
        target if args.pm4 => Some(stream::Stream::Pm4(target)),
        Some(target) if args.sdma => Some(stream::Stream::Sdma(pm4::sdma::Version::of(target))),
        _ => None,
    };
    let bytes = match &args.from {
        Some(path) => read(path)?,
        None if stream.is_some() => stream::parse_dwords(&args.hex)?,
        None => parse_hex(&args.hex)?,
    };
    if let Some(path) = &args.from
        && kfd::Snapshot::is_at(&bytes)
    {
        let rings = super::rings::parse(&path.display().to_string(), &*bytes)?;
        out.report("decode", &rings)?;
        return Ok(Code::Passed);
    }
    if bytes.is_empty() {
        return Err(Failure::BadInput { what: "there is nothing to decode".to_owned() });
    }
    if let Some(stream) = stream {
        let report = stream::decode(&bytes, stream);
        let good = report.malformed == 0 && report.trailing_bytes == 0;
        out.report("decode", &report)?;
        return Ok(if good { Code::Passed } else { Code::Failed });
    }
    let report = decode(&bytes);
    let good = report.malformed == 0 && report.trailing_bytes == 0;
    out.report("decode", &report)?;
    Ok(if good { Code::Passed } else { Code::Failed })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |source| Failure::Read { path: path.display().to_string(), source };
    let mut bytes = Vec::new();
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(failure)?)
    };
    input.take(INPUT_LIMIT + 1).read_to_end(&mut bytes).map_err(failure)?;
    if bytes.len() as u64 > INPUT_LIMIT {
        let what = format!("{}: more than {INPUT_LIMIT} bytes", path.display());
        return Err(Failure::BadInput { what });
    }
    Ok(bytes)
}

/// Hex bytes; spaces, commas and `0x` in front of a word do not count.
fn parse_hex(words: &[String]) -> Result<Vec<u8>, Failure> {
    let mut digits = Vec::new();
    for word in words.iter().flat_map(|text| text.split([' ', ',', '\n', '\t', '_'])) {
        let word = word.strip_prefix("0x").unwrap_or(word);
        for character in word.chars() {
            let digit = character.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            digits.push(digit.ok_or_else(|| Failure::BadInput {
                what: format!("{character:?} is no hex digit (digit {})", digits.len() + 1),
            })?);
        }
    }
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        let what = format!("{} hex digits are not whole bytes", digits.len());
        return Err(Failure::BadInput { what });
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn decode(bytes: &[u8]) -> Decoding {
    let (chunks, rest) = bytes.as_chunks::<{ Packet::BYTES }>();
    let packets: Vec<PacketRow> =
        chunks.iter().enumerate().map(|(n, bytes)| row(n, &Packet::from_bytes(bytes))).collect();
    let hex = rest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    Decoding {
        malformed: packets.iter().filter(|packet| packet.problem.is_some()).count(),
        packets,
        trailing_bytes: rest.len(),
        trailing_hex: (!rest.is_empty()).then_some(hex),
    }
}

fn row(index: usize, packet: &Packet) -> PacketRow {
    let decoded = packet.decode();
    let mut fields = Vec::new();
    let mut push = |name, value: String| fields.push(Field { name, value });
    let (kind, completion) = match &decoded {
        Decoded::Invalid => ("invalid", None),
        Decoded::KernelDispatch(packet) => {
            let ([x, y, z], [gx, gy, gz]) = (packet.grid_size(), packet.workgroup_size());
            push("dimensions", packet.dimensions().to_string());
            push("grid", format!("{x}x{y}x{z}"));
            push("workgroup", format!("{gx}x{gy}x{gz}"));
            push("private_segment_bytes", packet.private_segment_bytes().to_string());
            push("group_segment_bytes", packet.group_segment_bytes().to_string());
            push("kernel_object", packet.kernel_object().to_string());
            push("kernarg_address", packet.kernarg_address().to_string());
            push("correlation_id", format!("{:#x}", packet.correlation_id()));
            ("kernel_dispatch", Some(packet.completion_signal()))
        }
        Decoded::BarrierAnd(packet) => {
            signals(&packet.signals(), &mut push);
            ("barrier_and", Some(packet.completion_signal()))
        }
        Decoded::BarrierOr(packet) => {
            signals(&packet.signals(), &mut push);
            ("barrier_or", Some(packet.completion_signal()))
        }
        Decoded::AgentDispatch(packet) => {
            push("function", packet.function().to_string());
            push("return_address", packet.result().to_string());
            for (name, argument) in ["argument_0", "argument_1", "argument_2", "argument_3"]
                .into_iter()
                .zip(packet.arguments())
            {
                push(name, format!("{argument:#x}"));
            }
            ("agent_dispatch", Some(packet.completion_signal()))
        }
        Decoded::Pm4Ib(packet) => {
            let words = packet.pm4().map(|word| format!("{word:08x}"));
            push("pm4_words", words.join(" "));
            push(
                "indirect_buffer",
                match packet.buffer() {
                    Ok(buffer) => format!("{buffer:?}"),
                    Err(error) => format!("not one: {error}"),
                },
            );
            ("pm4_ib", Some(packet.completion_signal()))
        }
        Decoded::BarrierValue(packet) => {
            push("signal", packet.signal().to_string());
            push("condition", packet.condition().to_string());
            push("value", packet.value().to_string());
            push("mask", format!("{:#x}", packet.value_mask()));
            ("barrier_value", Some(packet.completion_signal()))
        }
        _ => (type_name(packet.header().packet_type()), None),
    };
    let problem = match &decoded {
        Decoded::Malformed { problem, .. } => Some(chain(problem)),
        _ => None,
    };
    let dwords = || packet.0.iter().map(|word| format!("{word:08x}")).collect();
    PacketRow {
        index,
        offset: index * Packet::BYTES,
        kind: kind.to_owned(),
        header: header(packet.header()),
        fields,
        completion_signal: completion.map(|signal| signal.to_string()),
        dwords: problem.is_some().then(dwords),
        problem,
    }
}

fn signals(signals: &[pm4::GpuAddr], push: &mut impl FnMut(&'static str, String)) {
    const NAMES: [&str; 5] = ["signal_0", "signal_1", "signal_2", "signal_3", "signal_4"];
    for (name, signal) in NAMES.into_iter().zip(signals) {
        push(name, signal.to_string());
    }
}

/// What a packet that cannot be decoded claims to be.
fn type_name(packet_type: PacketType) -> &'static str {
    match packet_type {
        PacketType::VENDOR_SPECIFIC => "vendor",
        PacketType::KERNEL_DISPATCH => "kernel_dispatch",
        PacketType::BARRIER_AND => "barrier_and",
        PacketType::AGENT_DISPATCH => "agent_dispatch",
        PacketType::BARRIER_OR => "barrier_or",
        _ => "unknown",
    }
}

fn header(header: Header) -> HeaderRow {
    HeaderRow {
        raw: format!("{:#06x}", header.0),
        packet_type: header.packet_type().0,
        barrier: header.has_barrier(),
        acquire: header.acquire_scope().to_string(),
        release: header.release_scope().to_string(),
    }
}

impl Report for Decoding {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for packet in &self.packets {
            let HeaderRow { raw, barrier, acquire, release, .. } = &packet.header;
            writeln!(
                out,
                "packet {} at {:#x}: {} (header {raw}{}, acquire {acquire}, release {release})",
                packet.index,
                packet.offset,
                packet.kind,
                if *barrier { ", barrier" } else { "" },
            )?;
            for field in &packet.fields {
                writeln!(out, "  {:<22} {}", field.name, field.value)?;
            }
            if let Some(signal) = &packet.completion_signal {
                writeln!(out, "  {:<22} {signal}", "completion_signal")?;
            }
            if let Some(problem) = &packet.problem {
                writeln!(out, "  MALFORMED: {problem}")?;
            }
            if let Some(dwords) = &packet.dwords {
                writeln!(out, "  {}", dwords.join(" "))?;
            }
        }
        if let Some(hex) = &self.trailing_hex {
            writeln!(out, "{} bytes after the last whole packet: {hex}", self.trailing_bytes)?;
        }
        writeln!(out, "{} packets, {} malformed", self.packets.len(), self.malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    #[test]
    fn hex_may_have_spaces_commas_and_prefixes() {
        assert_eq!(parse_hex(&words("0x0102 03,0xff")).unwrap(), [1, 2, 3, 255]);
        assert_eq!(parse_hex(&["01".to_owned(), "fe".to_owned()]).unwrap(), [1, 0xfe]);
    }

    #[test]
    fn half_bytes_and_other_letters_are_refused_with_their_place() {
        let error = parse_hex(&words("012")).unwrap_err().to_string();
        assert!(error.contains("3 hex digits"), "{error}");
        let error = parse_hex(&words("01g2")).unwrap_err().to_string();
        assert!(error.contains("'g'") && error.contains("digit 3"), "{error}");
    }

    #[test]
    fn no_input_of_any_length_panics() {
        let bytes: Vec<u8> = (0..200_u8).collect();
        for end in 0..bytes.len() {
            let report = decode(&bytes[..end]);
            assert_eq!(report.trailing_bytes, end % 64);
        }
        for first in 0..=u8::MAX {
            for second in [0, 1, 0x15, 0xff] {
                let mut packet = [0; 64];
                packet[0] = first;
                packet[1] = second;
                assert_eq!(decode(&packet).packets.len(), 1);
            }
        }
    }
}
