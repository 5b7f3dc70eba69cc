use std::time::Duration;

use super::stored_text;
use crate::format::Limits;
use crate::printf::{Blocking, Descriptor, ERROR_REPLY, MessageLimits, Sender, Stream};

const SENDER: Sender = Sender { pool: 0, service: 2, lane: 0 };

/// What a lane prints, and what it gets back.
struct Lane {
    printf: Blocking,
    printed: Vec<(Stream, Vec<u8>)>,
}

impl Lane {
    fn new(limits: Limits) -> Self {
        Self { printf: Blocking::new(MessageLimits::default(), limits), printed: Vec::new() }
    }

    fn send(&mut self, payload: [u64; 8]) -> u64 {
        let printed = &mut self.printed;
        self.printf.serve(SENDER, &payload, Duration::ZERO, |stream, text| {
            printed.push((stream, text.to_vec()));
        })
    }

    /// One call of printf, as the compiler and the device library send it: one item after another,
    /// texts in pieces of 56 bytes.
    fn print(&mut self, control: u64, items: &[Vec<u8>]) -> i32 {
        let mut payload = [0; 8];
        payload[0] = Descriptor::BEGIN | 1 << 5;
        payload[1] = control;
        let mut descriptor = self.send(payload);
        let pieces: Vec<&[u8]> = items.iter().flat_map(|item| item.chunks(56)).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let mut payload = [0; 8];
            for (word, bytes) in payload[1..].iter_mut().zip(piece.chunks(8)) {
                *word = u64::from_le_bytes(bytes.try_into().unwrap());
            }
            let words = u64::try_from(piece.len() / 8).unwrap();
            let end = if index + 1 == pieces.len() { Descriptor::END } else { 0 };
            payload[0] = descriptor & !(7 << 5) | words << 5 | end;
            descriptor = self.send(payload);
        }
        let [low, high] = [descriptor & 0xffff_ffff, descriptor >> 32];
        assert!(high == 0 || descriptor == ERROR_REPLY);
        u32::try_from(low).unwrap().cast_signed()
    }
}

fn word(value: u64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

#[test]
fn a_call_prints_once_and_returns_its_length() {
    let mut lane = Lane::new(Limits::default());
    let long = "a text of more than fifty-six bytes, which takes more than one fragment";
    let items = [
        stored_text(b"%s: %d %.2f\n"),
        stored_text(long.as_bytes()),
        word(u64::from((-5i32).cast_unsigned())),
        word(2.5f64.to_bits()),
    ];
    let wanted = format!("{long}: -5 2.50\n");
    assert_eq!(usize::try_from(lane.print(0, &items)), Ok(wanted.len()));
    assert_eq!(lane.printed, [(Stream::Stdout, wanted.into_bytes())]);
    assert_eq!(lane.printf.stats().printed, 1);
    assert_eq!(lane.printf.messages().open(), 0);
}

#[test]
fn the_control_word_picks_the_stream() {
    let mut lane = Lane::new(Limits::default());
    assert_eq!(lane.print(1, &[stored_text(b"error\n")]), 6);
    assert_eq!(lane.printed, [(Stream::Stderr, b"error\n".to_vec())]);
    assert_eq!(lane.print(2, &[stored_text(b"nowhere\n")]), -1);
    assert_eq!(lane.printed.len(), 1);
    assert_eq!(lane.printf.stats().bad_stream, 1);
}

#[test]
fn a_null_string_is_one_zero_word_and_prints_empty() {
    let mut lane = Lane::new(Limits::default());
    assert_eq!(lane.print(0, &[stored_text(b"[%s] %d"), word(0), word(3)]), 4);
    assert_eq!(lane.printed[0].1, b"[] 3");
}

#[test]
fn a_pointer_where_a_text_belongs_is_bytes_and_not_followed() {
    // What a format that the compiler could not see sends for %s.
    let mut lane = Lane::new(Limits::default());
    lane.print(0, &[stored_text(b"<%s> %d"), word(0x7f12_3456_7841), word(9)]);
    assert_eq!(lane.printed[0].1, b"<\x41\x78\x56\x34\x12\x7f> 9");
}

#[test]
fn a_message_over_the_limit_prints_nothing_and_returns_minus_one() {
    let mut lane = Lane::new(Limits { message_bytes: 100, ..Limits::default() });
    assert_eq!(lane.print(0, &[stored_text(b"%1000d"), word(1)]), -1);
    assert!(lane.printed.is_empty());
    assert_eq!(lane.printf.stats().over_limit, 1);
    assert_eq!(lane.print(0, &[stored_text(b"%d"), word(1)]), 1);
}

#[test]
fn a_refused_fragment_makes_the_whole_call_return_minus_one() {
    let mut lane = Lane::new(Limits::default());
    let limits = MessageLimits { message_bytes: 64, ..MessageLimits::default() };
    lane.printf = Blocking::new(limits, Limits::default());
    let long = stored_text(&[b'x'; 200]);
    assert_eq!(lane.print(0, &[stored_text(b"%s %d"), long, word(1)]), -1);
    assert!(lane.printed.is_empty());
    let stats = lane.printf.stats();
    assert!(stats.refused >= 2 && stats.last_refusal.is_some());
    assert_eq!(lane.print(0, &[stored_text(b"next\n")]), 5);
}

#[test]
fn an_empty_message_is_answered() {
    let mut lane = Lane::new(Limits::default());
    let mut payload = [0; 8];
    payload[0] = Descriptor::BEGIN | Descriptor::END;
    assert_eq!(lane.send(payload), ERROR_REPLY);
    assert!(lane.printed.is_empty());
}

#[test]
fn messages_of_two_lanes_do_not_mix() {
    let mut printf = Blocking::new(MessageLimits::default(), Limits::default());
    let mut printed = Vec::new();
    let begin = [Descriptor::BEGIN | 1 << 5, 0, 0, 0, 0, 0, 0, 0];
    let lanes = [SENDER, Sender { lane: 1, ..SENDER }];
    let open = lanes.map(|lane| printf.serve(lane, &begin, Duration::ZERO, |_, _| ()));
    for (lane, descriptor) in lanes.into_iter().zip(open).rev() {
        let mut payload = [0; 8];
        payload[0] = descriptor & !(7 << 5) | Descriptor::END | 2 << 5;
        payload[1] = u64::from_le_bytes(*b"lane %d\0");
        payload[2] = u64::from(lane.lane);
        let result = printf.serve(lane, &payload, Duration::ZERO, |_, text| {
            printed.push(text.to_vec());
        });
        assert_eq!(result, 6);
    }
    assert_eq!(printed, [b"lane 1", b"lane 0"]);
}
