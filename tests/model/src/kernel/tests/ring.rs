//! A PM4 or SDMA queue through its ring and doorbell.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use kfd::abi::{CreateEventArgs, CreateQueueArgs, EventData, MmapType, QueueType, WaitResult};
use kfd::sys::{Backing, Errno, Kernel};
use pm4::{Pm4Packet, SdmaPacket};

use super::client::GTT;
use super::{Client, Page};

/// Dwords of packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(pub(super) Vec<u32>);

impl Words {
    pub(super) fn pm4(mut self, packet: &impl Pm4Packet) -> Self {
        packet.emit(|words| self.0.extend(words));
        self
    }

    pub(super) fn sdma(mut self, packet: &impl SdmaPacket) -> Self {
        packet.emit(|words| self.0.extend(words));
        self
    }

    pub(super) fn raw(mut self, words: &[u32]) -> Self {
        self.0.extend(words);
        self
    }
}

pub(super) fn words() -> Words {
    Words::default()
}

/// A queue with memory and an event page.
pub(super) struct Ring {
    pub(super) client: Client,
    pub(super) args: CreateQueueArgs,
    pub(super) ring: Page,
    pub(super) pointers: Page,
    pub(super) doorbells: Page,
    /// 64 KiB for the test.
    pub(super) memory: Page,
    pub(super) events: Page,
    /// The write pointer, in the queue's unit.
    pub(super) next: u64,
    unit: u64,
}

pub(super) const RING: usize = 4096;

impl Ring {
    pub(super) fn on(client: Client, queue_type: QueueType) -> Self {
        Self::with(client, |args| args.queue_type = queue_type)
    }

    /// A queue whose arguments the test changes.
    pub(super) fn with(client: Client, change: impl FnOnce(&mut CreateQueueArgs)) -> Self {
        let events = client.page(GTT, 32768);
        let mut first = CreateEventArgs { event_page_offset: events.handle, ..Default::default() };
        client.call(0x08, &mut first).unwrap();
        let memory = client.page(GTT, 1 << 16);
        let (args, ring, pointers) = Self::create(&client, change).unwrap();
        let offset = MmapType::DOORBELL.offset(client.gpu());
        let at = client.map(None, 0x2000, Backing::File { file: client.kfd, offset }).unwrap();
        let doorbells = Page { at, bytes: 0x2000, handle: 0 };
        let unit = if args.queue_type == QueueType::COMPUTE { 4 } else { 1 };
        Self { client, args, ring, pointers, doorbells, memory, events, next: 0, unit }
    }

    fn create(
        client: &Client,
        change: impl FnOnce(&mut CreateQueueArgs),
    ) -> Result<(CreateQueueArgs, Page, Page), Errno> {
        let (mut args, [ring, pointers, ..]) = client.queue_args(RING);
        pointers.u32(136).store(0, Release);
        change(&mut args);
        client.call(0x02, &mut args)?;
        Ok((args, ring, pointers))
    }

    /// A second queue of the same client, with the memory of this one.
    pub(super) fn sibling(&self, change: impl FnOnce(&mut CreateQueueArgs)) -> Self {
        let client = Client {
            model: std::sync::Arc::clone(&self.client.model),
            kfd: self.client.kfd,
            render: self.client.render.clone(),
            gpus: self.client.gpus.clone(),
        };
        let (args, ring, pointers) = Self::create(&client, change).unwrap();
        let unit = if args.queue_type == QueueType::COMPUTE { 4 } else { 1 };
        let (doorbells, memory, events) = (self.doorbells, self.memory, self.events);
        Self { client, args, ring, pointers, doorbells, memory, events, next: 0, unit }
    }

    /// Writes packets and the write pointer, without doorbell.
    pub(super) fn push(&mut self, words: &Words) {
        for word in &words.0 {
            let at = usize::try_from(self.next * self.unit).unwrap() % RING;
            self.ring.u32(at).store(*word, Relaxed);
            self.next += 4 / self.unit;
        }
        self.pointers.u64(56).store(self.next, Release);
    }

    pub(super) fn ring_doorbell(&self, value: u64) {
        let at = usize::try_from(self.args.doorbell_offset & 0x1fff).unwrap();
        self.doorbells.u64(at).store(value, Release);
    }

    pub(super) fn submit(&mut self, words: &Words) {
        self.push(words);
        self.ring_doorbell(self.next);
    }

    /// Submits, and lets the queue do what it can.
    pub(super) fn run(&mut self, words: &Words) {
        self.submit(words);
        self.settle();
    }

    pub(super) fn settle(&self) {
        for _ in 0..200 {
            self.client.model.relax(0);
        }
    }

    /// The read pointer in memory.
    pub(super) fn read(&self) -> u64 {
        self.pointers.u64(128).load(Acquire)
    }

    /// Whether the ring is drained, as the driver sees it.
    pub(super) fn is_drained(&self) -> bool {
        let wrapped = if self.unit == 4 { self.next % (RING as u64 / 4) } else { self.next };
        self.read() == wrapped
    }

    pub(super) fn address(&self, at: usize) -> u64 {
        self.memory.address() + at as u64
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        self.memory.u32(at).load(Acquire)
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        self.memory.u64(at).load(Acquire)
    }

    pub(super) fn set(&self, at: usize, value: u64) {
        self.memory.u64(at).store(value, Release);
    }

    /// Writes a buffer into the memory.
    pub(super) fn buffer(&self, at: usize, words: &Words) -> u64 {
        for (i, word) in words.0.iter().enumerate() {
            self.memory.u32(at + 4 * i).store(*word, Relaxed);
        }
        self.address(at)
    }

    /// What the model says, as one text.
    pub(super) fn said(&self) -> String {
        let all = self.client.model.diagnostics();
        all.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn poll(&self, event: kfd::EventId) -> WaitResult {
        let mut events = [EventData { event_id: event, ..Default::default() }];
        self.client.wait(&mut events, false, 0).unwrap()
    }
}
