//! Streams on a PM4 queue: the same operations as packets of the command processor.
//!
//! Each operation ends with `RELEASE_MEM`, which writes the L2 back and stores the count that an AQL
//! packet would decrement to. A launch is followed by a flush of the waves, so that nothing overtakes it.

use std::any::Any;
use std::sync::Mutex;

use aql::FenceScope;
use kfd::{Pm4Queue, Pm4QueueRequest, QueueWatch, Signal};
use pm4::dispatch::{Launch, Scratch, Template, Words};
use pm4::packet::{Compare, EventWrite, WaitOn, WaitRegMem, gfx9, gfx11};
use pm4::{Encode, GpuAddr, IbBuilder, IndirectBuffer, Pm4Packet, ReleaseMem, RingSink, Target};

use super::core::{Core, Engine};
use super::request::StreamRequest;
use super::shared::START;
use crate::device::DeviceCore;
use crate::error::{Error, LaunchProblem, Result};
use crate::launch::{Cold, Grid, Size};
use crate::sync::lock;

/// Dwords of ring for each operation that may be in flight: a launch takes some 80.
const OPERATION_DWORDS: u32 = 128;

/// Offset of `end_ts` in a signal, bytes. docs/ABI.md §AQL signal.
const END_TS: u64 = 40;

/// A PM4 queue and what its packets are made of.
#[derive(Debug)]
pub(crate) struct Pm4Line {
    queue: Pm4Queue,
    /// What its waves call the host through. Dropped after the queue.
    #[cfg(feature = "services")]
    pub pools: crate::services::QueuePools,
    /// `ACQUIRE_MEM` at agent and at system scope.
    acquire: [Acquire; 2],
    release: ReleaseMem,
    /// The queue's scratch, for launches.
    scratch: Scratch,
    scratch_bytes: u32,
    /// The last launch, whose dwords are changed for the next.
    words: Words,
    last: Last,
    /// What the queue may still use of a stream that is gone. Dropped after the queue.
    remains: Mutex<Vec<Box<dyn Any + Send>>>,
}

/// What the dwords of the last launch are for.
#[derive(Debug, Default)]
struct Last {
    /// The kernel's number; 0 for none.
    kernel: u64,
    grid: Option<Grid>,
    scope: Option<FenceScope>,
}

/// The packet of one of the generations.
#[derive(Clone, Copy, Debug)]
struct Acquire {
    words: [u32; 8],
    dwords: usize,
}

impl Acquire {
    fn new(words: &[u32]) -> Self {
        let mut this = Self { words: [0; 8], dwords: words.len() };
        this.words.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
        this
    }
}

impl Encode for Acquire {
    #[inline]
    fn dwords(&self) -> usize {
        self.dwords
    }

    #[inline]
    fn emit(&self, mut put: impl FnMut(&[u32])) {
        put(self.words.get(..self.dwords).unwrap_or_default());
    }
}

impl Pm4Packet for Acquire {}

/// Where the count is among the dwords of an operation's end: dword 5 of RELEASE_MEM.
const DONE_AT: usize = EventWrite::DWORDS + 5;

/// An operation's end.
const END_DWORDS: usize = EventWrite::DWORDS + ReleaseMem::DWORDS;

impl Pm4Line {
    pub fn new(device: &DeviceCore, request: &StreamRequest) -> Result<Self> {
        let gpu = device.gpu.id();
        if device.gpu.node().num_xcc() > 1 {
            let what = "a PM4 queue runs on one of its XCCs only: use an AQL stream";
            return Err(Error::Unsupported { gpu, what });
        }
        let packets = u64::from(request.packets);
        let bytes = packets.checked_mul(u64::from(OPERATION_DWORDS) * 4);
        let ring_bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
        let what = "the number of packets, a power of two,";
        let refused = Error::InvalidArgument { call: "Stream::new", what, value: packets };
        if !request.packets.is_power_of_two() || request.packets < 64 {
            return Err(refused);
        }
        let ring_bytes = ring_bytes.filter(|bytes| *bytes <= 1 << 30).ok_or(refused)?;
        let queue = Pm4QueueRequest::new(ring_bytes)
            .priority(request.priority)
            .scratch(request.scratch_bytes);
        let queue = device.gpu.create_pm4_queue(&queue)?;
        let target = queue.target();
        Ok(Self {
            acquire: acquire(target),
            release: release(target),
            scratch: queue.scratch(),
            scratch_bytes: queue.scratch_bytes(),
            words: Words::new(),
            last: Last::default(),
            #[cfg(feature = "services")]
            pools: crate::services::QueuePools::default(),
            queue,
            remains: Mutex::default(),
        })
    }

    pub fn watch(&self) -> QueueWatch {
        self.queue.watch()
    }

    pub fn descriptor(&self) -> u64 {
        self.queue.descriptor().get()
    }

    /// Keeps `remains` until the queue is gone.
    pub fn keep(&self, remains: Box<dyn Any + Send>) {
        lock(&self.remains).push(remains);
    }

    /// Gives kernels up to `bytes` of private memory a work-item.
    #[cold]
    fn grow(&mut self, bytes: u32, patience: std::time::Duration) -> Result<()> {
        self.queue.grow_scratch(bytes, patience)?;
        self.scratch = self.queue.scratch();
        self.scratch_bytes = self.queue.scratch_bytes();
        self.last = Last::default();
        Ok(())
    }

    /// Starts the dwords of launches of another kernel.
    #[cold]
    fn other_kernel(
        &mut self,
        cold: &Cold,
        template: &Template,
        scope: FenceScope,
        word: GpuAddr,
    ) -> Result<()> {
        self.last = Last::default();
        let acquire = self.acquire(scope);
        let before = acquire.words.get(..acquire.dwords).unwrap_or_default();
        let release = self.release.write_64(word, 0).map_err(|cause| misaligned(self, cause))?;
        let [first, second] = EventWrite::CS_PARTIAL_FLUSH.encode();
        let [a, b, c, d, e, f, g, h] = release.encode();
        let after = [first, second, a, b, c, d, e, f, g, h];
        let scratch = self.scratch;
        if template.start(&mut self.words, before, &scratch, &after).is_none() {
            let missing = pm4::dispatch::Error::Missing { what: "room for its launch state" };
            return Err(cold.refuse(LaunchProblem::Pm4(missing)));
        }
        self.last = Last { kernel: cold.id, grid: None, scope: Some(scope) };
        Ok(())
    }

    /// Sets other sizes.
    #[cold]
    fn other_grid(
        &mut self,
        cold: &Cold,
        template: &Template,
        grid: &Grid,
        size: &Size,
        lds_bytes: u32,
    ) -> Result<()> {
        self.last.grid = None;
        let group = size.group.map(u32::from);
        let set = template.size(&mut self.words, size.grid, group, lds_bytes);
        set.map_err(|problem| cold.refuse(LaunchProblem::Pm4(problem)))?;
        self.last.grid = Some(*grid);
        Ok(())
    }

    #[inline]
    fn acquire(&self, scope: FenceScope) -> Acquire {
        let [agent, system] = self.acquire;
        if scope == FenceScope::SYSTEM { system } else { agent }
    }
}

fn acquire(target: Target) -> [Acquire; 2] {
    use gfx9::AcquireCache as C;
    use gfx11::Gcr as G;
    if target.is_gfx9() {
        let agent = C::SH_ICACHE | C::SH_KCACHE | C::TCL1;
        [agent, C::ALL].map(|cache| Acquire::new(&gfx9::AcquireMem::new(cache).encode()))
    } else {
        let agent = G::GLI_INV_ALL | G::GLK_INV | G::GLV_INV | G::GL1_INV;
        let system = G::ALL | G::SEQ_FORWARD;
        [agent, system].map(|cache| Acquire::new(&gfx11::AcquireMem::new(cache).encode()))
    }
}

fn release(target: Target) -> ReleaseMem {
    if target.is_gfx9() {
        ReleaseMem::gfx9(gfx9::ReleaseCache::TC_WB | gfx9::ReleaseCache::TC_NC).confirm()
    } else {
        use gfx11::ReleaseCache as R;
        ReleaseMem::gfx11(R::GL2_WB | R::GLM_WB | R::SEQ_FORWARD).confirm()
    }
}

type Ring<'a> = IbBuilder<RingSink<'a>>;

impl Core {
    #[inline]
    fn pm4(&mut self) -> Result<&mut Pm4Line> {
        match &mut self.engine {
            Engine::Pm4(line) => Ok(line),
            _ => Err(not_pm4()),
        }
    }

    /// Submits an operation of up to `dwords` dwords besides its end, which is added.
    #[inline]
    fn pm4_submit(&mut self, dwords: usize, fill: impl Fn(&mut Ring<'_>)) -> Result<u64> {
        let number = self.count + 1;
        let word = self.shared.word.value_addr();
        let patience = self.shared.patience;
        self.shared.progress.announce(number);
        let line = self.pm4()?;
        let done = START.wrapping_sub_unsigned(number).cast_unsigned();
        let submitted = match line.release.write_64(word, done) {
            Err(cause) => Err(misaligned(line, cause)),
            Ok(release) => {
                let dwords = dwords + END_DWORDS;
                let fill = &fill;
                let fill = |ring: &mut Ring<'_>| {
                    fill(ring);
                    ring.push(&EventWrite::CS_PARTIAL_FLUSH).push(&release);
                };
                match line.queue.submit(dwords, fill) {
                    Err(error) if error.is_full() => {
                        line.queue.submit_within(dwords, fill, patience)
                    }
                    result => result,
                }
            }
        };
        if let Err(error) = submitted {
            self.shared.progress.announce(self.count);
            return Err(error.into());
        }
        self.note(number);
        self.note_released();
        Ok(number)
    }

    /// Launches a kernel whose arguments are at `kernarg`.
    #[inline]
    pub fn pm4_launch(
        &mut self,
        cold: &Cold,
        grid: &Grid,
        size: &Size,
        kernarg: GpuAddr,
        scope: FenceScope,
    ) -> Result<u64> {
        let lds_bytes = cold.lds_bytes(grid);
        let patience = self.shared.patience;
        let number = self.count + 1;
        let word = self.shared.word.value_addr();
        let line = match &mut self.engine {
            Engine::Pm4(line) => &mut **line,
            _ => return Err(not_pm4()),
        };
        if cold.private_bytes > line.scratch_bytes {
            line.grow(cold.private_bytes, patience)?;
        }
        let Some(template) = &cold.template else {
            let acquire = line.acquire(scope);
            return self.pm4_launch_in_full(cold, size, lds_bytes, kernarg, acquire);
        };
        if line.last.kernel != cold.id || line.last.scope != Some(scope) {
            line.other_kernel(cold, template, scope, word)?;
        }
        if line.last.grid != Some(*grid) {
            line.other_grid(cold, template, grid, size, lds_bytes)?;
        }
        template.arguments(&mut line.words, kernarg);
        let done = GpuAddr::new(START.wrapping_sub_unsigned(number).cast_unsigned());
        line.words.set_after(DONE_AT, done.lo());
        line.words.set_after(DONE_AT + 1, done.hi());
        self.shared.progress.announce(number);
        let (words, queue) = (&line.words, &mut line.queue);
        let fill = |ring: &mut Ring<'_>| {
            ring.push(words);
        };
        let submitted = match queue.submit(words.dwords(), fill) {
            Err(error) if error.is_full() => queue.submit_within(words.dwords(), fill, patience),
            result => result,
        };
        if let Err(error) = submitted {
            self.shared.progress.announce(self.count);
            return Err(error.into());
        }
        self.note(number);
        self.note_released();
        Ok(number)
    }

    /// A kernel that wants more than its arguments.
    #[cold]
    fn pm4_launch_in_full(
        &mut self,
        cold: &Cold,
        size: &Size,
        lds_bytes: u32,
        kernarg: GpuAddr,
        acquire: Acquire,
    ) -> Result<u64> {
        let program = cold.program.as_ref().map_err(|problem| cold.refuse(*problem))?;
        let (first, count) = program.preload();
        let preload: Vec<u32> = self
            .staging
            .as_chunks()
            .0
            .iter()
            .skip(usize::from(first))
            .take(usize::from(count))
            .map(|word| u32::from_le_bytes(*word))
            .collect();
        // A kernel that looks at its packet finds one behind its arguments.
        let wants_packet = program.properties().contains(pm4::dispatch::Properties::DISPATCH_PTR);
        let packet = if wants_packet {
            let none = GpuAddr::NULL;
            let packet = cold.packet(size, lds_bytes, kernarg, FenceScope::SYSTEM, none);
            Some(self.put_packet(cold, &packet)?)
        } else {
            None
        };
        let id = self.count;
        let line = self.pm4()?;
        let state = program.launch(&Launch {
            grid: size.grid,
            group: size.group.map(u32::from),
            lds_bytes,
            private_bytes: cold.private_bytes,
            kernarg,
            preload: &preload,
            packet,
            queue: Some(line.queue.descriptor()),
            id,
            scratch: line.scratch,
        });
        let state = state.map_err(|problem| cold.refuse(LaunchProblem::Pm4(problem)))?;
        self.pm4_submit(acquire.dwords() + state.dwords(), |ring| {
            ring.push(&acquire).push(&state);
        })
    }

    /// Scratch for kernels that need up to `bytes` a work-item.
    pub fn pm4_scratch(&mut self, bytes: u32) -> Result<Scratch> {
        let patience = self.shared.patience;
        let line = self.pm4()?;
        if bytes > line.scratch_bytes {
            line.grow(bytes, patience)?;
        }
        Ok(line.scratch)
    }

    /// Runs an indirect buffer.
    #[inline]
    pub fn pm4_enter(&mut self, buffer: IndirectBuffer, scope: FenceScope) -> Result<u64> {
        let acquire = self.pm4()?.acquire(scope);
        self.pm4_submit(acquire.dwords() + IndirectBuffer::DWORDS, |ring| {
            ring.push(&acquire).push(&buffer);
        })
    }

    /// Puts a dispatch packet where kernel arguments go.
    fn put_packet(&mut self, cold: &Cold, packet: &aql::Packet) -> Result<GpuAddr> {
        let place = match self.kernarg.place(64, 64) {
            Some(place) => place,
            None => {
                self.make_room(|core| core.kernarg.place(64, 64).is_some())?;
                let ring = self.kernarg.bytes();
                let full = LaunchProblem::Kernarg { bytes: 64, ring };
                self.kernarg.place(64, 64).ok_or_else(|| cold.refuse(full))?
            }
        };
        self.kernarg.write(place.offset, &packet.to_bytes())?;
        self.kernarg.take(place.end);
        Ok(self.kernarg.addr(place.offset))
    }

    /// Puts an event here: its time, then its value.
    #[inline]
    pub fn pm4_record(&mut self, slot: GpuAddr) -> Result<u64> {
        let line = self.pm4()?;
        let release = line.release;
        let clock = release.write_clock(GpuAddr::new(slot.get() + END_TS));
        let value = release.write_64(GpuAddr::new(slot.get() + 8), 0);
        match (clock, value) {
            (Ok(clock), Ok(value)) => self.pm4_submit(2 * ReleaseMem::DWORDS, |ring| {
                ring.push(&clock).push(&value);
            }),
            (Err(cause), _) | (_, Err(cause)) => Err(misaligned(line, cause).into()),
        }
    }

    /// Sets a slot to 0 once everything before is done and written back.
    pub fn pm4_set(&mut self, slot: GpuAddr) -> Result<u64> {
        let line = self.pm4()?;
        match line.release.write_64(GpuAddr::new(slot.get() + 8), 0) {
            Ok(value) => self.pm4_submit(ReleaseMem::DWORDS, |ring| {
                ring.push(&value);
            }),
            Err(cause) => Err(misaligned(line, cause).into()),
        }
    }

    /// Waits until a signal's value is 0, and acquires at system scope.
    #[inline]
    pub fn pm4_wait(&mut self, signal: GpuAddr) -> Result<u64> {
        let line = self.pm4()?;
        let acquire = line.acquire(FenceScope::SYSTEM);
        let wait = wait(signal).map_err(|cause| misaligned(line, cause))?;
        self.pm4_submit(acquire.dwords() + WaitRegMem::DWORDS, |ring| {
            ring.push(&wait).push(&acquire);
        })
    }

    /// Says that a host function's turn has come, and waits for its end.
    pub fn pm4_host_call(&mut self, reached: &Signal, done: &Signal) -> Result<u64> {
        let line = self.pm4()?;
        let acquire = line.acquire(FenceScope::SYSTEM);
        let told = line.release.write_64(reached.value_addr(), 0);
        match (told, wait(done.addr())) {
            (Ok(told), Ok(wait)) => {
                let dwords = ReleaseMem::DWORDS + WaitRegMem::DWORDS + acquire.dwords();
                self.pm4_submit(dwords, |ring| {
                    ring.push(&told).push(&wait).push(&acquire);
                })
            }
            (Err(cause), _) | (_, Err(cause)) => Err(misaligned(line, cause).into()),
        }
    }
}

/// Waits until a signal's value, 1 before, is 0: its low half is enough.
#[inline]
fn wait(signal: GpuAddr) -> std::result::Result<WaitRegMem, pm4::Error> {
    let value = GpuAddr::new(signal.get() + 8);
    WaitRegMem::new(WaitOn::Memory(value), Compare::EQUAL, 0)
}

#[cold]
fn misaligned(line: &Pm4Line, cause: pm4::Error) -> kfd::Error {
    kfd::Error::Pm4 { queue: line.queue.id(), cause }
}

#[cold]
fn not_pm4() -> Error {
    let what = "a PM4 packet, on an AQL queue,";
    Error::InvalidArgument { call: "submit", what, value: 0 }
}
