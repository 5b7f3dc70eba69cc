//! PM4 and SDMA streams: a line a packet, with its offset.

use std::io::{self, Write};

use pm4::sdma;
use pm4::{Packets, Target};
use serde::Serialize;

use crate::exit::{Failure, chain};
use crate::render::Report;

/// What the dwords are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Pm4(Option<Target>),
    Sdma(sdma::Version),
}

#[derive(Debug, Serialize)]
pub(super) struct StreamDecoding {
    stream: &'static str,
    target: Option<String>,
    packets: Vec<StreamRow>,
    /// Packets that no engine accepts.
    pub(super) malformed: usize,
    /// Dwords after a packet that cannot be cut out of the stream.
    pub(super) undecoded_dwords: usize,
    undecoded: Vec<String>,
    /// Bytes after the last whole dword.
    pub(super) trailing_bytes: usize,
}

#[derive(Debug, Serialize)]
struct StreamRow {
    index: usize,
    /// Bytes from the start.
    offset: usize,
    dwords: usize,
    text: Option<String>,
    /// What is wrong with it, if anything.
    problem: Option<String>,
    /// The dwords of a malformed packet.
    raw: Option<Vec<String>>,
}

pub(super) fn decode(bytes: &[u8], stream: Stream) -> StreamDecoding {
    let (dwords, rest) = bytes.as_chunks::<4>();
    let words: Vec<u32> = dwords.iter().map(|dword| u32::from_le_bytes(*dword)).collect();
    let (name, target) = match stream {
        Stream::Pm4(target) => ("pm4", target.map(|target| target.to_string())),
        Stream::Sdma(version) => ("sdma", Some(version.to_string())),
    };
    let packets: Vec<StreamRow> = match stream {
        Stream::Pm4(target) => {
            let mut packets = Packets::new(&words);
            std::iter::from_fn(|| {
                let start = packets.offset();
                let packet = packets.next()?;
                let end = packets.offset();
                Some((
                    start,
                    end,
                    match packet {
                        Ok(packet) => Ok(target.map_or_else(
                            || packet.to_string(),
                            |target| packet.on(target).to_string(),
                        )),
                        Err(error) => Err((
                            chain(&error),
                            matches!(
                                error,
                                pm4::Error::Truncated { .. } | pm4::Error::NotType3 { .. }
                            ),
                        )),
                    },
                ))
            })
            .enumerate()
            .map(|(index, packet)| row(index, packet, &words))
            .collect()
        }
        Stream::Sdma(version) => {
            let mut packets = sdma::Packets::new(&words, version);
            std::iter::from_fn(|| {
                let start = packets.offset();
                let packet = packets.next()?;
                let end = packets.offset();
                Some((
                    start,
                    end,
                    match packet {
                        Ok(packet) => Ok(packet.to_string()),
                        Err(error) => Err((
                            chain(&error),
                            matches!(
                                error,
                                sdma::Error::Truncated { .. } | sdma::Error::Unknown { .. }
                            ),
                        )),
                    },
                ))
            })
            .enumerate()
            .map(|(index, packet)| row(index, packet, &words))
            .collect()
        }
    };
    // A packet whose end is unknown takes all that is left.
    let lost = packets.last().filter(|row| row.problem.is_some() && row.raw.is_none());
    let undecoded_dwords = lost.map_or(0, |row| row.dwords);
    let undecoded = words.get(words.len() - undecoded_dwords..).unwrap_or_default();
    StreamDecoding {
        stream: name,
        target,
        malformed: packets.iter().filter(|row| row.problem.is_some()).count(),
        undecoded_dwords,
        undecoded: undecoded.iter().take(SHOWN).map(|word| format!("{word:08x}")).collect(),
        packets,
        trailing_bytes: rest.len(),
    }
}

/// Dwords shown of what could not be decoded.
const SHOWN: usize = 16;

type Step = (usize, usize, Result<String, (String, bool)>);

fn row(index: usize, (start, end, packet): Step, words: &[u32]) -> StreamRow {
    let raw = || words.get(start..end).unwrap_or_default();
    let hex = || raw().iter().map(|word| format!("{word:08x}")).collect();
    let (text, problem, raw) = match packet {
        Ok(text) => (Some(text), None, None),
        Err((problem, last)) => (None, Some(problem), (!last).then(hex)),
    };
    StreamRow { index, offset: start * 4, dwords: end - start, text, problem, raw }
}

/// Dwords as text: 1 to 8 hex digits each, `0x` allowed, between spaces, commas or newlines.
pub(super) fn parse_dwords(words: &[String]) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let parts = words.iter().flat_map(|text| text.split([' ', ',', '\n', '\t']));
    for part in parts.filter(|part| !part.is_empty()) {
        let digits = part.strip_prefix("0x").unwrap_or(part).replace('_', "");
        let word = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() <= 8);
        let word = word.ok_or_else(|| Failure::BadInput {
            what: format!("{part:?} is no dword of up to 8 hex digits (dword {})", bytes.len() / 4),
        })?;
        bytes.extend(word.to_le_bytes());
    }
    Ok(bytes)
}

impl Report for StreamDecoding {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.packets {
            match (&row.text, &row.problem) {
                (Some(text), _) => writeln!(out, "{:#06x} {text}", row.offset)?,
                (None, problem) => {
                    let problem = problem.as_deref().unwrap_or_default();
                    writeln!(out, "{:#06x} MALFORMED: {problem}", row.offset)?;
                    if let Some(raw) = &row.raw {
                        writeln!(out, "       {}", raw.join(" "))?;
                    }
                }
            }
        }
        if self.undecoded_dwords > 0 {
            let more = if self.undecoded_dwords > SHOWN { " ..." } else { "" };
            let hex = self.undecoded.join(" ");
            writeln!(out, "{} dwords not decoded: {hex}{more}", self.undecoded_dwords)?;
        }
        if self.trailing_bytes > 0 {
            writeln!(out, "{} bytes after the last whole dword", self.trailing_bytes)?;
        }
        writeln!(out, "{} packets, {} malformed", self.packets.len(), self.malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(report: &StreamDecoding) -> String {
        let mut out = Vec::new();
        report.text(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn dwords(text: &str) -> Vec<u8> {
        parse_dwords(&[text.to_owned()]).unwrap()
    }

    #[test]
    fn a_pm4_stream_is_a_line_a_packet_with_registers_by_name() {
        let bytes = dwords("c0027600 0000020c 00002010 0000007f c0004600 407 c0004600 80000407");
        let report = decode(&bytes, Stream::Pm4(Some(Target::Gfx90a)));
        assert_eq!(
            text(&report),
            "0x0000 SET_SH_REG COMPUTE_PGM_LO=0x2010 COMPUTE_PGM_HI=0x7f\n\
             0x0010 EVENT_WRITE event=CS_PARTIAL_FLUSH index=4\n\
             0x0018 MALFORMED: EVENT_WRITE dword 1 is 0x80000407: bits 0x80000000 are reserved\n       \
             c0004600 80000407\n\
             3 packets, 1 malformed\n"
        );
        let plain = decode(&bytes, Stream::Pm4(None));
        assert!(text(&plain).contains("SET_SH_REG 0x2e0c=0x2010 0x2e0d=0x7f"));
    }

    #[test]
    fn a_packet_cut_short_and_an_unknown_one_end_their_streams() {
        let report = decode(&dwords("ffff1000 c0033700 1"), Stream::Pm4(None));
        assert_eq!((report.packets.len(), report.malformed, report.undecoded_dwords), (2, 1, 2));
        assert!(text(&report).contains("2 dwords not decoded: c0033700 00000001"));
        let bytes = dwords("6 7 0000001e 1 2");
        let report = decode(&bytes, Stream::Sdma(sdma::Version::V6));
        assert!(text(&report).contains("unknown packet opcode 30/0"), "{}", text(&report));
        assert_eq!(report.undecoded_dwords, 3);
    }

    #[test]
    fn text_that_is_no_dword_is_refused_with_its_place() {
        for (text, place) in [("1 123456789", "dword 1"), ("xyz", "dword 0"), ("0x", "dword 0")] {
            let error = parse_dwords(&[text.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(place), "{error}");
        }
        assert_eq!(
            parse_dwords(&["0xdead_beef,1".to_owned()]).unwrap(),
            [0xef, 0xbe, 0xad, 0xde, 1, 0, 0, 0]
        );
    }

    #[test]
    fn no_input_of_any_length_panics() {
        let bytes: Vec<u8> = (0..=255_u8).rev().cycle().take(700).collect();
        for end in 0..bytes.len() {
            for version in sdma::Version::ALL {
                decode(&bytes[..end], Stream::Sdma(version));
            }
            let report = decode(&bytes[..end], Stream::Pm4(Some(Target::Gfx11)));
            assert_eq!(report.trailing_bytes, end % 4);
        }
    }
}
