//! Decompression with a known size: output grows as it is made and stops at that size.

use std::io::Read;

use md5::{Digest, Md5};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::ContainerProblem;

/// First output buffer: a claimed size is believed only as far as output proves it.
const FIRST_BYTES: usize = 1 << 20;

/// log2 of the window that a decoder must accept by RFC 8878, and of the largest that LLVM's
/// long-distance matching uses.
const WINDOW_LOG: [u32; 2] = [23, 27];

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
    let [smallest, largest] = WINDOW_LOG;
    let content_log = expected.max(1).next_power_of_two().trailing_zeros();
    let window_log = content_log.clamp(smallest, largest);
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(1 << window_log);
    let (head, mut rest) = input.split_at(input.len().min(WINDOW_END));
    let head = with_window(head, expected, window_log);
    decoder.init(head.as_slice().chain(&mut rest)).map_err(failed)?;
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

/// End of the window descriptor in a frame: magic number, frame descriptor, window descriptor.
const WINDOW_END: usize = 6;

/// The start of a frame, with a window no larger than needed: a tool that compresses a stream declares
/// its window without knowing that the content is smaller, and the decoder takes memory for it.
fn with_window(head: &[u8], expected: u64, window_log: u32) -> Vec<u8> {
    const SINGLE_SEGMENT: u8 = 0x20;
    // A window of 1 KiB << exponent; three bits below the exponent add eighths.
    let needed = u8::try_from((window_log - 10) << 3).unwrap_or(u8::MAX);
    let mut head = head.to_vec();
    if let [0x28, 0xb5, 0x2f, 0xfd, descriptor, window] = head.as_mut_slice()
        && *descriptor & SINGLE_SEGMENT == 0
        && *window > needed
        && expected <= 1 << window_log
    {
        *window = needed;
    }
    head
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
