mod blocking;
mod fifo;
mod messages;
mod table;

/// A text as HIP stores it: with its NUL, padded to 8 bytes.
fn stored_text(text: &[u8]) -> Vec<u8> {
    let mut stored = text.to_vec();
    stored.resize((text.len() + 1).next_multiple_of(8), 0);
    stored
}
