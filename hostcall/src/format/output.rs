//! The bytes of one message: appended up to the limit, counted beyond it.

use super::{Cut, Limits, Outcome};

/// Zeros and spaces are appended in pieces of this size.
const CHUNK: usize = 64;

pub(super) struct Output<'out> {
    out: &'out mut Vec<u8>,
    /// Bytes that may still be appended.
    room: usize,
    needed: u64,
    width_limit: u64,
    precision_limit: u64,
    cut: Cut,
}

impl<'out> Output<'out> {
    pub fn new(out: &'out mut Vec<u8>, limits: &Limits) -> Self {
        Self {
            out,
            room: usize::try_from(limits.message_bytes).unwrap_or(usize::MAX),
            needed: 0,
            width_limit: u64::from(limits.width),
            precision_limit: u64::from(limits.precision),
            cut: Cut::default(),
        }
    }

    pub fn finish(self, outcome: Outcome) -> Outcome {
        Outcome { needed: self.needed, cut: self.cut, ..outcome }
    }

    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.bytes(&[byte]);
    }

    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.needed = self.needed.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if let Some(room) = self.room.checked_sub(bytes.len()) {
            self.room = room;
            self.out.extend_from_slice(bytes);
        } else {
            self.out.extend_from_slice(bytes.get(..self.room).unwrap_or_default());
            self.room = 0;
            self.cut.message = true;
        }
    }

    /// `content` in a field of `width`, padded with spaces.
    #[inline]
    pub fn field(&mut self, content: &[u8], width: u64, left: bool) {
        if width == 0 {
            return self.bytes(content);
        }
        let padding = width.saturating_sub(u64::try_from(content.len()).unwrap_or(u64::MAX));
        if left {
            self.bytes(content);
            self.padding(b' ', padding);
        } else {
            self.padding(b' ', padding);
            self.bytes(content);
        }
    }

    /// Padding that a width asks for.
    #[inline]
    pub fn padding(&mut self, byte: u8, count: u64) {
        let shown = count.min(self.width_limit);
        self.cut.width |= shown < count;
        self.repeat(byte, shown, count);
    }

    /// Zeros that a precision asks for.
    #[inline]
    pub fn zeros(&mut self, count: u64) {
        let shown = count.min(self.precision_limit);
        self.cut.precision |= shown < count;
        self.repeat(b'0', shown, count);
    }

    fn repeat(&mut self, byte: u8, shown: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.needed = self.needed.saturating_add(count);
        let shown = usize::try_from(shown).unwrap_or(usize::MAX);
        let fits = shown.min(self.room);
        self.cut.message |= fits < shown;
        self.room -= fits;
        if fits <= CHUNK {
            let chunk = [byte; CHUNK];
            self.out.extend_from_slice(chunk.get(..fits).unwrap_or_default());
        } else {
            self.out.resize(self.out.len() + fits, byte);
        }
    }
}
