//! Whatever a device writes: no panic, bounded output, exact counts, all good records printed.

use std::time::Duration;

use hostcall::format::{Limits, Needs, Words, format, needs};
use hostcall::printf::{
    Blocking, Descriptor, DrainLimits, ERROR_REPLY, FormatTable, MessageLimits, Records, Sender,
    drain,
};
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: Limits = Limits { width: 100, precision: 100, message_bytes: 1000 };

/// Formats made of pieces of the grammar, in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just("%".to_owned()),
        2 => "[-+ #0'*.vhlLjztq$]{1,3}",
        2 => "[0-9]{1,12}",
        4 => "[diouxXfFeEgGaAcspn%]",
        1 => "\\PC{0,6}",
        1 => Just("\0".to_owned()),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

/// An honest HIP record of `format` with one number and one text.
fn honest(hash: u64, number: u64, text: &[u8]) -> Vec<u8> {
    let mut stored = text.to_vec();
    stored.resize((text.len() + 1).next_multiple_of(8), 0);
    let size = u32::try_from(4 + 8 + 8 + stored.len()).unwrap();
    let mut record = (size << 2 | 2).to_le_bytes().to_vec();
    record.extend_from_slice(&hash.to_le_bytes());
    record.extend_from_slice(&number.to_le_bytes());
    record.extend_from_slice(&stored);
    record
}

proptest! {
    #[test]
    fn any_format_prints_within_its_limits(text in pieces(), arguments in vec(any::<u8>(), 0..200)) {
        let mut out = Vec::new();
        let outcome = format(&mut out, &text, &mut Words::new(&arguments), &LIMITS);
        prop_assert!(out.len() <= 1000);
        if outcome.cut.any() {
            prop_assert!(outcome.needed > u64::try_from(out.len()).unwrap());
            prop_assert_eq!(outcome.result(), -1);
        } else {
            prop_assert_eq!(usize::try_from(outcome.needed), Ok(out.len()));
            prop_assert_eq!(usize::try_from(outcome.result()), Ok(out.len()));
        }
    }

    #[test]
    fn the_uncut_length_does_not_depend_on_the_limits(
        text in pieces(),
        arguments in vec(0u64..2000, 0..20),
    ) {
        let arguments: Vec<u8> = arguments.iter().flat_map(|word| word.to_le_bytes()).collect();
        let print = |limits: Limits| {
            let mut out = Vec::new();
            format(&mut out, &text, &mut Words::new(&arguments), &limits).needed
        };
        let none = Limits { width: 0, precision: 0, message_bytes: 0 };
        prop_assert_eq!(print(none), print(LIMITS));
    }

    #[test]
    fn a_format_takes_the_arguments_that_needs_counts(text in pieces()) {
        let Needs { words, texts } = needs(&text);
        // With an argument of one word each, nothing is missing, and with one less something is.
        let all = usize::try_from(words + texts).unwrap();
        let missing = |count: usize| {
            let arguments = vec![0; count * 8];
            format(&mut Vec::new(), &text, &mut Words::new(&arguments), &LIMITS).missing
        };
        prop_assert_eq!(missing(all), 0);
        if all > 0 {
            prop_assert!(missing(all - 1) > 0);
        }
    }

    #[test]
    fn any_bytes_of_a_fifo_are_gone_through_once(
        bytes in vec(any::<u8>(), 0..400),
        entries in prop_oneof![
            Just(vec!["0:0:1,%s %d %*.*f\n"]),
            Just(vec!["1:0:x\n", "2:3:4:8:16:%s %n %v4hlf\n", "3:1:0:%s\n"]),
        ],
        small in any::<bool>(),
    ) {
        // With small words more of the bytes are records.
        let bytes: Vec<u8> =
            if small { bytes.iter().map(|byte| byte & 0x1e).collect() } else { bytes };
        let table = FormatTable::new(entries);
        let records: Vec<_> = Records::new(&bytes, &table).collect();
        prop_assert!(records.len() <= bytes.len() / 4 + 1);
        prop_assert!(records.iter().rev().skip(1).all(Result::is_ok));
        let mut last = None;
        for record in records.iter().flatten() {
            prop_assert!(last.is_none_or(|last| record.at >= last + 4));
            last = Some(record.at);
        }
        let drain_limits = DrainLimits { message: LIMITS, ..DrainLimits::default() };
        let mut calls = 0;
        let drained = drain(Records::new(&bytes, &table), &drain_limits, &mut Vec::new(), |_, text| {
            calls += 1;
            assert!(text.len() <= 1000);
        });
        prop_assert_eq!(drained.printed, calls);
        prop_assert_eq!(drained.error.is_some(), records.last().is_some_and(Result::is_err));
    }

    #[test]
    fn good_records_before_garbage_are_printed(
        good in vec((any::<u32>(), "[a-z]{0,20}"), 0..10),
        garbage in vec(any::<u8>(), 0..64),
    ) {
        let table = FormatTable::new(["0:0:7,%u %s\n"]);
        let mut bytes = Vec::new();
        let mut wanted = Vec::new();
        for (number, text) in &good {
            bytes.extend(honest(7, u64::from(*number), text.as_bytes()));
            wanted.push(format!("{number} {text}\n"));
        }
        bytes.extend_from_slice(&garbage);
        let mut printed = Vec::new();
        drain(Records::new(&bytes, &table), &DrainLimits::default(), &mut Vec::new(), |_, text| {
            printed.push(String::from_utf8_lossy(text).into_owned());
        });
        prop_assert!(printed.starts_with(&wanted));
    }

    #[test]
    fn hostile_fragments_are_all_answered_and_never_disturb_a_good_message(
        hostile in vec((any::<u8>(), any::<u64>(), any::<bool>(), any::<[u64; 7]>()), 0..100),
    ) {
        let limits = MessageLimits {
            open: 8,
            message_bytes: 256,
            total_bytes: 1024,
            fragments: 16,
            idle: Duration::from_secs(1),
        };
        let mut printf = Blocking::new(limits, LIMITS);
        let victim = Sender { pool: 0, service: 2, lane: 63 };
        let now = Duration::ZERO;
        let begin = [Descriptor::BEGIN | 1 << 5, 0, 0, 0, 0, 0, 0, 0];
        let descriptor = printf.serve(victim, &begin, now, |_, _| ());
        for (lane, word, guess, data) in hostile {
            let sender = Sender { lane: lane & 3, ..victim };
            // Either anything, or the victim's own descriptor with other flags.
            let word = if guess { descriptor & !0xff | word & 0xff } else { word };
            let mut payload = [word, 0, 0, 0, 0, 0, 0, 0];
            payload[1..].copy_from_slice(&data);
            printf.serve(sender, &payload, now, |_, text| assert!(text.len() <= 1000));
            prop_assert!(printf.messages().open() <= 8);
            prop_assert!(printf.messages().total_bytes() <= 1024);
        }
        let last = [
            descriptor & !(7 << 5) | 1 << 5 | Descriptor::END,
            u64::from_le_bytes(*b"good!\n\0\0"),
            0, 0, 0, 0, 0, 0,
        ];
        let mut text = Vec::new();
        let result = printf.serve(victim, &last, now, |_, line| text.extend_from_slice(line));
        prop_assert!(result != ERROR_REPLY || printf.messages().total_bytes() + 8 > 1024);
        if result != ERROR_REPLY {
            prop_assert_eq!((result, &text[..]), (6, &b"good!\n"[..]));
        }
    }
}
