//! Any sequence of fragments is answered, within the limits of the message table.
#![no_main]

use std::time::Duration;

use hostcall::format::Limits;
use hostcall::printf::{Blocking, Descriptor, MessageLimits, Sender};
use libfuzzer_sys::fuzz_target;

const LIMITS: MessageLimits = MessageLimits {
    open: 6,
    message_bytes: 400,
    total_bytes: 900,
    fragments: 12,
    idle: Duration::from_millis(40),
};

fuzz_target!(|data: &[u8]| {
    let limits = Limits { width: 64, precision: 64, message_bytes: 512 };
    let mut printf = Blocking::new(LIMITS, limits);
    let mut now = Duration::ZERO;
    let mut last = [0; 4];
    // A step: who, what, and eight bytes of data that make up the words.
    for step in data.chunks(10) {
        let [who, what, bytes @ ..] = step else { break };
        let lane = who & 3;
        let sender = Sender { pool: u32::from(who >> 2 & 1), service: 2, lane };
        if who & 0x80 != 0 {
            printf.drop_pool(sender.pool);
        }
        now += Duration::from_millis(u64::from(who >> 3 & 7));
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let data = u64::from_le_bytes(word);
        // The flags and the length are the input's; the id is what the lane was told, or the data.
        let id = if what & 0x10 == 0 { last[usize::from(lane)] } else { data } >> 8 << 8;
        let flags = u64::from(what & 0xe3) | if what & 0x0c == 0x0c { 4 } else { 0 };
        let payload = [id | flags, data & 1, data, data.rotate_left(8), 0, !data, data, 0];
        let mut calls = 0;
        let answer = printf.serve(sender, &payload, now, |_, text| {
            calls += 1;
            assert!(text.len() <= 512);
        });
        assert!(calls == 0 || Descriptor(flags).has(Descriptor::END));
        last[usize::from(lane)] = answer;
        assert!(printf.messages().open() <= 6);
        assert!(printf.messages().total_bytes() <= 900);
    }
    printf.drop_pool(0);
    printf.drop_pool(1);
    assert_eq!((printf.messages().open(), printf.messages().total_bytes()), (0, 0));
});
