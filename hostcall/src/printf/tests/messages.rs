use std::time::Duration;

use crate::printf::{Descriptor, MessageLimits, Messages, Refused, Sender};

const SENDER: Sender = Sender { pool: 1, service: 2, lane: 3 };
const NOW: Duration = Duration::from_secs(100);

fn fragment(flags: u64, id: u64, data: &[u64]) -> [u64; 8] {
    let mut payload = [0; 8];
    payload[0] = flags | u64::try_from(data.len()).unwrap() << 5 | id << 8;
    payload[1..=data.len()].copy_from_slice(data);
    payload
}

fn never(_: &[u8]) -> u64 {
    panic!("the message is not finished")
}

fn begin(messages: &mut Messages, sender: Sender, now: Duration) -> Result<u64, Refused> {
    let answer = messages
        .accept(sender, &fragment(Descriptor::BEGIN, 0, &[1]), now, never)
        .map(Descriptor)?;
    assert!(!answer.has(Descriptor::BEGIN | Descriptor::END | Descriptor::RESERVED));
    Ok(answer.id())
}

#[test]
fn fragments_are_joined_in_order_and_the_result_is_the_answer() {
    let mut messages = Messages::new(MessageLimits::default());
    let id = begin(&mut messages, SENDER, NOW).unwrap();
    let more = messages.accept(SENDER, &fragment(0, id, &[2, 3]), NOW, never).unwrap();
    assert_eq!(Descriptor(more).id(), id);
    // Without data, as for an empty string.
    messages.accept(SENDER, &fragment(0, id, &[]), NOW, never).unwrap();
    let last = fragment(Descriptor::END, id, &[4, 5, 6, 7, 8, 9, 10]);
    let answer = messages.accept(SENDER, &last, NOW, |bytes| {
        let words: Vec<u64> =
            bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        77
    });
    assert_eq!(answer, Ok(77));
    assert_eq!((messages.open(), messages.total_bytes()), (0, 0));
}

#[test]
fn one_fragment_can_be_a_whole_message() {
    let mut messages = Messages::new(MessageLimits::default());
    let whole = fragment(Descriptor::BEGIN | Descriptor::END, 0, &[5]);
    assert_eq!(messages.accept(SENDER, &whole, NOW, |bytes| u64::from(bytes[0])), Ok(5));
    assert_eq!(messages.open(), 0);
}

#[test]
fn reserved_bits_drop_the_message() {
    let mut messages = Messages::new(MessageLimits::default());
    for bit in 2..5 {
        let id = begin(&mut messages, SENDER, NOW).unwrap();
        let payload = fragment(1 << bit, id, &[1]);
        let descriptor = payload[0];
        let refused = messages.accept(SENDER, &payload, NOW, never);
        assert_eq!(refused, Err(Refused::ReservedBits { descriptor }));
        assert_eq!((messages.open(), messages.total_bytes()), (0, 0));
    }
    let payload = fragment(Descriptor::BEGIN | 4, 0, &[]);
    assert!(messages.accept(SENDER, &payload, NOW, never).is_err());
    assert_eq!(messages.open(), 0);
}

#[test]
fn what_follows_an_error_answer_is_refused_too() {
    // The device takes the answer as its next descriptor and puts length and end flag in.
    let mut messages = Messages::new(MessageLimits::default());
    let mut payload = [0; 8];
    payload[0] = crate::printf::ERROR_REPLY & !(7 << 5) | 1 << 5;
    let refused = messages.accept(SENDER, &payload, NOW, never);
    assert!(matches!(refused, Err(Refused::ReservedBits { .. })));
    assert_eq!(messages.open(), 0);
}

#[test]
fn an_id_is_valid_once_and_for_its_sender_only() {
    let mut messages = Messages::new(MessageLimits::default());
    let id = begin(&mut messages, SENDER, NOW).unwrap();
    let strangers = [
        Sender { pool: 9, ..SENDER },
        Sender { service: 9, ..SENDER },
        Sender { lane: 9, ..SENDER },
    ];
    for sender in strangers {
        let refused = messages.accept(sender, &fragment(0, id, &[1]), NOW, never);
        assert_eq!(refused, Err(Refused::UnknownMessage { id, sender }));
    }
    for wrong in [id + 1, id ^ 1 << 40, 0, (1 << 56) - 1] {
        let refused = messages.accept(SENDER, &fragment(0, wrong, &[1]), NOW, never);
        assert_eq!(refused, Err(Refused::UnknownMessage { id: wrong, sender: SENDER }));
    }
    // None of that touched the message.
    assert_eq!((messages.open(), messages.total_bytes()), (1, 8));
    let end = fragment(Descriptor::END, id, &[]);
    assert_eq!(messages.accept(SENDER, &end, NOW, |bytes| u64::from(bytes[0])), Ok(1));
    assert!(messages.accept(SENDER, &end, NOW, never).is_err());
    // The slot is used again under another id.
    assert_ne!(begin(&mut messages, SENDER, NOW).unwrap(), id);
}

#[test]
fn a_message_over_its_limits_is_dropped_and_leaks_nothing() {
    let limits = MessageLimits { message_bytes: 24, fragments: 4, ..MessageLimits::default() };
    let mut messages = Messages::new(limits);
    let id = begin(&mut messages, SENDER, NOW).unwrap();
    let refused = messages.accept(SENDER, &fragment(0, id, &[1, 2, 3]), NOW, never);
    assert_eq!(refused, Err(Refused::MessageTooLong { limit: 24 }));
    assert_eq!((messages.open(), messages.total_bytes()), (0, 0));

    let id = begin(&mut messages, SENDER, NOW).unwrap();
    for _ in 0..3 {
        messages.accept(SENDER, &fragment(0, id, &[]), NOW, never).unwrap();
    }
    let refused = messages.accept(SENDER, &fragment(0, id, &[]), NOW, never);
    assert_eq!(refused, Err(Refused::TooManyFragments { limit: 4 }));
    assert_eq!((messages.open(), messages.total_bytes()), (0, 0));
}

#[test]
fn all_messages_together_have_a_limit() {
    let limits = MessageLimits { total_bytes: 80, ..MessageLimits::default() };
    let mut messages = Messages::new(limits);
    for _ in 0..10 {
        begin(&mut messages, SENDER, NOW).unwrap();
    }
    assert_eq!(begin(&mut messages, SENDER, NOW), Err(Refused::TableFull { limit: 80 }));
    assert_eq!((messages.open(), messages.total_bytes()), (10, 80));
}

#[test]
fn a_full_table_drops_old_messages_only() {
    let idle = Duration::from_secs(10);
    let limits = MessageLimits { open: 2, idle, ..MessageLimits::default() };
    let mut messages = Messages::new(limits);
    let old = begin(&mut messages, SENDER, NOW).unwrap();
    let fresh = begin(&mut messages, SENDER, NOW + idle / 2).unwrap();
    assert_eq!(
        begin(&mut messages, SENDER, NOW + idle / 2),
        Err(Refused::TooManyOpen { limit: 2 })
    );
    begin(&mut messages, SENDER, NOW + idle).unwrap();
    assert_eq!((messages.open(), messages.expired()), (2, 1));
    let fragment = |id| fragment(0, id, &[]);
    assert!(messages.accept(SENDER, &fragment(old), NOW + idle, never).is_err());
    assert!(messages.accept(SENDER, &fragment(fresh), NOW + idle, never).is_ok());
}

#[test]
fn a_reset_pool_loses_its_messages_and_no_others() {
    let mut messages = Messages::new(MessageLimits::default());
    let other = Sender { pool: 2, ..SENDER };
    begin(&mut messages, SENDER, NOW).unwrap();
    let kept = begin(&mut messages, other, NOW).unwrap();
    begin(&mut messages, SENDER, NOW).unwrap();
    assert_eq!(messages.drop_pool(1), 2);
    assert_eq!((messages.open(), messages.total_bytes()), (1, 8));
    assert!(messages.accept(other, &fragment(0, kept, &[]), NOW, never).is_ok());
}

#[test]
fn a_panic_in_the_handler_leaks_no_message() {
    let mut messages = Messages::new(MessageLimits::default());
    let whole = fragment(Descriptor::BEGIN | Descriptor::END, 0, &[5]);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        messages.accept(SENDER, &whole, NOW, never)
    }));
    assert!(caught.is_err());
    assert_eq!((messages.open(), messages.total_bytes()), (0, 0));
    assert!(begin(&mut messages, SENDER, NOW).is_ok());
}
