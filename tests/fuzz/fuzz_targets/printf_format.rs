//! Any format with any arguments prints within its limits, and its uncut length is exact.
#![no_main]

use hostcall::format::{Limits, Words, format, needs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // A format, a NUL, arguments.
    let split = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (text, arguments) = data.split_at(split);
    let arguments = arguments.get(1..).unwrap_or_default();
    let tight = Limits { width: 64, precision: 64, message_bytes: 512 };
    let mut out = Vec::new();
    let outcome = format(&mut out, text, &mut Words::new(arguments), &tight);
    assert!(out.len() <= 512);
    if outcome.cut.any() {
        assert!(outcome.needed > out.len() as u64);
        assert_eq!(outcome.result(), -1);
    } else {
        assert_eq!(outcome.needed, out.len() as u64);
    }
    let loose = Limits { width: 1 << 12, precision: 1 << 12, message_bytes: 1 << 16 };
    let mut long = Vec::new();
    let again = format(&mut long, text, &mut Words::new(arguments), &loose);
    assert_eq!(again.needed, outcome.needed);
    if !outcome.cut.any() {
        assert_eq!(long, out);
    }
    let mut words = Words::with_absent_texts(arguments, needs(text).words);
    let _ = format(&mut out, text, &mut words, &tight);
    assert!(out.len() <= 1024);
});
