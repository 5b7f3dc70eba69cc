//! Decompression with a known size: output grows as it is made and stops at that size.

use md5::{Digest, Md5};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::ContainerProblem;

/// First output buffer: a claimed size is believed only as far as output proves it.
const FIRST_BYTES: usize = 1 << 20;

/// Window that a decoder must accept by RFC 8878, and the largest that LLVM's long-distance matching
/// uses.
const WINDOW_BYTES: [u64; 2] = [8 << 20, 128 << 20];

/// Zstandard output collected at a time.
const STEP_BYTES: usize = 1 << 20;

/// Decompresses the zlib stream at the start of `input`; also returns the input's bytes taken.
pub(super) fn zlib(input: &[u8], expected: u64) -> Result<(Vec<u8>, usize), ContainerProblem> {
    const FLAGS: u32 = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
        | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
        | inflate_flags::TINFL_FLAG_COMPUTE_ADLER32;
    let size = usize::try_from(expected).unwrap_or(usize::MAX);
    let mut state = DecompressorOxide::new();
    let mut output = vec![0; size.min(FIRST_BYTES)];
    let (mut taken, mut written) = (0, 0);
    loop {
        let rest = input.get(taken..).unwrap_or(&[]);
        let (status, consumed, made) = decompress(&mut state, rest, &mut output, written, FLAGS);
        taken += consumed;
        written += made;
        match status {
            TINFLStatus::Done => break,
            TINFLStatus::HasMoreOutput if output.len() < size => {
                output.resize(output.len().saturating_mul(2).min(size), 0);
            }
            TINFLStatus::HasMoreOutput => {
                return Err(ContainerProblem::ContentSize {
                    expected,
                    found: expected,
                    more: true,
                });
            }
            _ => return Err(damaged("zlib", zlib_reason(status))),
        }
    }
    output.truncate(written);
    Ok((output, taken))
}

fn zlib_reason(status: TINFLStatus) -> &'static str {
    match status {
        TINFLStatus::Adler32Mismatch => "its checksum differs",
        TINFLStatus::FailedCannotMakeProgress | TINFLStatus::NeedsMoreInput => "it is cut short",
        _ => "invalid data",
    }
}

/// Decompresses the Zstandard frame at the start of `input`; also returns the input's bytes taken.
pub(super) fn zstd(input: &[u8], expected: u64) -> Result<(Vec<u8>, usize), ContainerProblem> {
    let failed = |error: FrameDecoderError| damaged("zstd", &zstd_reason(&error));
    let [smallest, largest] = WINDOW_BYTES;
    let mut rest = input;
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(expected.next_power_of_two().clamp(smallest, largest));
    decoder.init(&mut rest).map_err(failed)?;
    let mut output = Vec::new();
    loop {
        let finished = decoder
            .decode_blocks(&mut rest, BlockDecodingStrategy::UptoBytes(STEP_BYTES))
            .map_err(failed)?;
        let reason = |error: std::io::Error| damaged("zstd", &error.to_string());
        decoder.collect_to_writer(&mut output).map_err(reason)?;
        // What is still in the window counts too, once the frame ends.
        let found = output.len() as u64;
        if found > expected {
            return Err(ContainerProblem::ContentSize { expected, found, more: !finished });
        }
        if finished {
            return Ok((output, input.len() - rest.len()));
        }
    }
}

fn zstd_reason(error: &FrameDecoderError) -> String {
    match error {
        FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { .. }) => {
            "a skippable frame, where the content must be".to_owned()
        }
        FrameDecoderError::WindowSizeTooBig { requested, max } => {
            format!("a window of {requested} bytes, at most {max} are allowed")
        }
        other => other.to_string(),
    }
}

fn damaged(method: &'static str, reason: &str) -> ContainerProblem {
    ContainerProblem::Stream { method, reason: reason.to_owned() }
}

/// First eight bytes of the MD5, as a little-endian number.
pub(super) fn hash(content: &[u8]) -> u64 {
    let digest = Md5::digest(content);
    digest.iter().take(8).rev().fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}
