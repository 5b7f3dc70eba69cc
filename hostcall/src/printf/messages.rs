//! Messages of the hostcall services, put together from their fragments.

use std::time::Duration;

/// Word 0 of a fragment, and of the answer to it.
///
/// docs/ABI.md §printf messages
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor(pub u64);

impl Descriptor {
    /// First fragment.
    pub const BEGIN: u64 = 1 << 0;
    /// Last fragment.
    pub const END: u64 = 1 << 1;
    /// Must be 0.
    pub const RESERVED: u64 = 0b111 << 2;
    const WORDS_SHIFT: u32 = 5;
    const WORDS_MASK: u64 = 0b111;
    const ID_SHIFT: u32 = 8;

    /// Whether bits of `mask` are set.
    #[must_use]
    pub const fn has(self, mask: u64) -> bool {
        self.0 & mask != 0
    }

    /// Data words that follow, 0 to 7.
    #[must_use]
    pub const fn words(self) -> u64 {
        self.0 >> Self::WORDS_SHIFT & Self::WORDS_MASK
    }

    /// Message id, 56 bits.
    #[must_use]
    pub const fn id(self) -> u64 {
        self.0 >> Self::ID_SHIFT
    }

    /// This descriptor without its begin flag and with an id of 56 bits.
    const fn answer(self, id: u64) -> Self {
        let low = self.0 & ((1 << Self::ID_SHIFT) - 1) & !Self::BEGIN;
        Self(low | id << Self::ID_SHIFT)
    }
}

/// Who sent a fragment, as the host knows it. An id is valid for its sender only: a lane keeps its number
/// while its wave lives, whatever packets the wave gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Packet pool.
    pub pool: u32,
    /// Service.
    pub service: u32,
    /// Lane, by its slot in the payload.
    pub lane: u8,
}

/// What messages may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimits {
    /// Messages that are open at once; [`MessageLimits::MAX_OPEN`] at most.
    pub open: u32,
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Bytes of all open messages; the memory behind them can be twice that.
    pub total_bytes: usize,
    /// Fragments of one message, those without data included.
    pub fragments: u32,
    /// Without a fragment for so long, a message is dropped once the table is full.
    pub idle: Duration,
}

impl MessageLimits {
    /// Most that [`MessageLimits::open`] can be: 24 bits of an id.
    pub const MAX_OPEN: u32 = 1 << 24;
}

impl Default for MessageLimits {
    /// 65,536 messages of 1 MiB and 65,536 fragments each, 64 MiB together, 10 seconds.
    fn default() -> Self {
        Self {
            open: 1 << 16,
            message_bytes: 1 << 20,
            total_bytes: 64 << 20,
            fragments: 1 << 16,
            idle: Duration::from_secs(10),
        }
    }
}

/// Why a fragment was refused. Its message, if it had one, is gone, except for
/// [`Refused::UnknownMessage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Bits are set that mean nothing.
    #[error("descriptor {descriptor:#x} has reserved bits set")]
    ReservedBits {
        /// Word 0.
        descriptor: u64,
    },
    /// No message of this sender has the id.
    #[error("lane {} of pool {} has no message {id:#x}", sender.lane, sender.pool)]
    UnknownMessage {
        /// As the device gave it.
        id: u64,
        /// Whose fragment it was.
        sender: Sender,
    },
    /// As many messages are open as may be, and none is old enough to be dropped.
    #[error("{limit} messages are open already")]
    TooManyOpen {
        /// [`MessageLimits::open`].
        limit: u32,
    },
    /// The message has more bytes than one may have.
    #[error("a message exceeds {limit} bytes")]
    MessageTooLong {
        /// [`MessageLimits::message_bytes`].
        limit: usize,
    },
    /// The message has more fragments than one may have.
    #[error("a message exceeds {limit} fragments")]
    TooManyFragments {
        /// [`MessageLimits::fragments`].
        limit: u32,
    },
    /// All messages together have more bytes than they may have.
    #[error("open messages exceed {limit} bytes")]
    TableFull {
        /// [`MessageLimits::total_bytes`].
        limit: usize,
    },
}

struct Message {
    sender: Sender,
    bytes: Vec<u8>,
    fragments: u32,
    /// Time of the last fragment.
    last: Duration,
}

#[derive(Default)]
struct Slot {
    /// Distinguishes the messages that used this slot one after another.
    generation: u32,
    message: Option<Message>,
}

/// Bits of an id that are a slot; the others are its generation.
const SLOT_BITS: u32 = 24;

/// Buffers of finished messages that are kept for new ones.
const SPARE: usize = 64;

/// Largest buffer that is kept.
const SPARE_BYTES: usize = 4096;

/// Open messages. Ids are a slot and a generation, so that none is valid again soon.
pub struct Messages {
    slots: Vec<Slot>,
    free: Vec<u32>,
    spare: Vec<Vec<u8>>,
    limits: MessageLimits,
    total_bytes: usize,
    /// No message is old before this time; spares looking through all of them for nothing.
    next_expiry: Duration,
    expired: u64,
}

impl Messages {
    /// No memory is taken before the first message.
    #[must_use]
    pub fn new(limits: MessageLimits) -> Self {
        let limits = MessageLimits { open: limits.open.min(MessageLimits::MAX_OPEN), ..limits };
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            limits,
            total_bytes: 0,
            next_expiry: Duration::ZERO,
            expired: 0,
        }
    }

    /// Messages that are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Bytes of the messages that are open.
    #[must_use]
    pub const fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    /// Messages dropped for their age.
    #[must_use]
    pub const fn expired(&self) -> u64 {
        self.expired
    }

    /// Takes one lane's fragment, a private copy of its eight words, and returns the word to answer in
    /// word 0. `finish` gets the bytes of the message if this was the last fragment, and its result is
    /// the answer. `now` is time since any fixed start.
    ///
    /// # Errors
    /// [`Refused`]; answer [`ERROR_REPLY`](super::ERROR_REPLY) then.
    pub fn accept(
        &mut self,
        sender: Sender,
        payload: &[u64; 8],
        now: Duration,
        finish: impl FnOnce(&[u8]) -> u64,
    ) -> Result<u64, Refused> {
        let [word, data @ ..] = payload;
        let descriptor = Descriptor(*word);
        let slot = self.open_or_find(descriptor, sender, now)?;
        let added = self.append(slot, descriptor, data, now);
        if let Err(refused) = added {
            self.close(slot);
            return Err(refused);
        }
        if !descriptor.has(Descriptor::END) {
            return Ok(descriptor.answer(self.id(slot)).0);
        }
        // Closed before `finish` runs: a panic in there leaks nothing.
        let bytes = self.close(slot);
        let answer = finish(&bytes);
        self.keep(bytes);
        Ok(answer)
    }

    /// Drops the messages of a pool whose waves are gone. Returns how many there were.
    pub fn drop_pool(&mut self, pool: u32) -> usize {
        self.drop_where(|message| message.sender.pool == pool)
    }

    fn open_or_find(
        &mut self,
        descriptor: Descriptor,
        sender: Sender,
        now: Duration,
    ) -> Result<u32, Refused> {
        let found = if descriptor.has(Descriptor::BEGIN) {
            None
        } else {
            let unknown = Refused::UnknownMessage { id: descriptor.id(), sender };
            Some(self.find(descriptor.id(), sender).ok_or(unknown)?)
        };
        if descriptor.has(Descriptor::RESERVED) {
            found.map(|slot| self.close(slot));
            return Err(Refused::ReservedBits { descriptor: descriptor.0 });
        }
        found.map_or_else(|| self.begin(sender, now), Ok)
    }

    fn find(&self, id: u64, sender: Sender) -> Option<u32> {
        let slot = u32::try_from(id & ((1 << SLOT_BITS) - 1)).ok()?;
        let entry = self.slots.get(usize::try_from(slot).ok()?)?;
        let message = entry.message.as_ref()?;
        (u64::from(entry.generation) == id >> SLOT_BITS && message.sender == sender).then_some(slot)
    }

    fn begin(&mut self, sender: Sender, now: Duration) -> Result<u32, Refused> {
        let count = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        if self.free.is_empty() && count >= self.limits.open {
            self.expire(now);
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if count < self.limits.open => {
                self.slots.push(Slot::default());
                count
            }
            None => return Err(Refused::TooManyOpen { limit: self.limits.open }),
        };
        let bytes = self.spare.pop().unwrap_or_default();
        if let Some(entry) = self.slot(slot) {
            // Message 0 does not exist: its number goes to waves whose message was refused.
            entry.generation = entry.generation.wrapping_add(1).max(1);
            entry.message = Some(Message { sender, bytes, fragments: 0, last: now });
        }
        Ok(slot)
    }

    fn append(
        &mut self,
        slot: u32,
        descriptor: Descriptor,
        data: &[u64; 7],
        now: Duration,
    ) -> Result<(), Refused> {
        let limits = self.limits;
        let total_bytes = self.total_bytes;
        let Some(message) = self.slot(slot).and_then(|slot| slot.message.as_mut()) else {
            return Ok(());
        };
        let words = usize::try_from(descriptor.words()).unwrap_or_default();
        message.last = now;
        message.fragments = message.fragments.saturating_add(1);
        if message.fragments > limits.fragments {
            return Err(Refused::TooManyFragments { limit: limits.fragments });
        }
        if message.bytes.len() + words * 8 > limits.message_bytes {
            return Err(Refused::MessageTooLong { limit: limits.message_bytes });
        }
        if total_bytes + words * 8 > limits.total_bytes {
            return Err(Refused::TableFull { limit: limits.total_bytes });
        }
        for word in data.iter().take(words) {
            message.bytes.extend_from_slice(&word.to_le_bytes());
        }
        self.total_bytes += words * 8;
        Ok(())
    }

    /// Ends a message and returns its bytes.
    fn close(&mut self, slot: u32) -> Vec<u8> {
        let Some(message) = self.slot(slot).and_then(|slot| slot.message.take()) else {
            return Vec::new();
        };
        self.free.push(slot);
        self.total_bytes -= message.bytes.len();
        message.bytes
    }

    fn keep(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < SPARE && bytes.capacity() <= SPARE_BYTES {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// Drops messages without a fragment for [`MessageLimits::idle`]. Looks at all of them at most eight
    /// times in that time, so that a device which fills the table cannot make every fragment slow.
    fn expire(&mut self, now: Duration) {
        if now < self.next_expiry {
            return;
        }
        let idle = self.limits.idle;
        let dropped = self.drop_where(|message| message.last.saturating_add(idle) <= now);
        self.expired += u64::try_from(dropped).unwrap_or_default();
        self.next_expiry = now.saturating_add(idle / 8);
    }

    fn drop_where(&mut self, condition: impl Fn(&Message) -> bool) -> usize {
        let mut dropped = 0;
        for slot in 0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX) {
            let message = self.slot(slot).and_then(|slot| slot.message.as_ref());
            if message.is_some_and(&condition) {
                self.close(slot);
                dropped += 1;
            }
        }
        dropped
    }

    fn slot(&mut self, slot: u32) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(slot).ok()?)
    }

    fn id(&mut self, slot: u32) -> u64 {
        let generation = self.slot(slot).map_or(0, |slot| slot.generation);
        u64::from(generation) << SLOT_BITS | u64::from(slot)
    }
}
