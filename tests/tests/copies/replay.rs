//! Random copies and fills of every kind, replayed on the CPU.

use hip::{CopyEngine, Device, Extent, Layout, Memory, Stream, StreamRequest};
use kfd::MemoryRequest;
use kfd_tests::{each_device, every_target};

use super::{Random, at, difference, open, request};
use crate::streams::kinds;

/// Memory and what it should hold.
struct Pair {
    memory: Memory,
    shadow: Vec<u8>,
}

/// Bytes of each.
const BYTES: u64 = 48 << 10;

struct Replay {
    stream: Stream,
    random: Random,
    pairs: Vec<Pair>,
}

impl Replay {
    fn new(device: &Device, stream: StreamRequest, seed: u64) -> Self {
        let seed = seed * 7919 + u64::from(device.gpu().gfx_version().target_version());
        let mut stream = Stream::new(device, stream).unwrap();
        let mut random = Random::new(seed);
        let kinds = [
            MemoryRequest::vram(BYTES),
            MemoryRequest::vram(BYTES),
            MemoryRequest::gtt(BYTES),
            MemoryRequest::userptr(BYTES),
        ];
        let pair = |kind: MemoryRequest| {
            let memory = device.allocate(&kind).unwrap();
            let shadow = random.bytes(at(BYTES));
            stream.copy_from_host(&memory, &shadow).unwrap();
            Pair { memory, shadow }
        };
        let pairs = kinds.map(pair).into();
        Self { stream, random, pairs }
    }

    fn pick(&mut self) -> usize {
        usize::try_from(self.random.below(self.pairs.len() as u64)).unwrap()
    }

    /// Two that are not the same.
    fn pick_two(&mut self) -> (usize, usize) {
        let (a, b) = (self.pick(), self.pick());
        if a == b { (a, (b + 1) % self.pairs.len()) } else { (a, b) }
    }

    fn bytes(&mut self) -> u64 {
        let most = [0, 1, 40, 300, 5000, BYTES][usize::try_from(self.random.below(6)).unwrap()];
        self.random.below(most + 1)
    }

    /// Rows that fit, for one side and another.
    fn rows(&mut self) -> (Extent, Layout, Layout) {
        let extent = Extent {
            width: 1 + self.random.below([20, 200, 5000][at(self.random.0 % 3)]),
            rows: 1 + self.random.below(5),
            planes: 1 + self.random.below(2),
        };
        let layout = |random: &mut Random| {
            let round = if random.below(2) == 0 { 4 } else { 1 };
            let pitch_bytes = (extent.width + random.below(9)).next_multiple_of(round);
            let slice = pitch_bytes * extent.rows + random.below(20);
            Layout { pitch_bytes, slice_bytes: slice.next_multiple_of(round) }
        };
        let (a, b) = (layout(&mut self.random), layout(&mut self.random));
        if a.slice_bytes.max(b.slice_bytes) * extent.planes > BYTES {
            return self.rows();
        }
        (extent, a, b)
    }

    /// An offset with room for planes.
    fn offset(&mut self, layout: Layout, extent: Extent) -> u64 {
        self.random.below(BYTES + 1 - layout.slice_bytes * extent.planes)
    }

    fn step(&mut self) {
        match self.random.below(9) {
            0 | 1 => self.copy(),
            2 | 3 => self.copy_rows(),
            4 => self.fill(),
            5 => self.fill_rows(),
            6 => self.upload(),
            7 => self.download(),
            _ => self.within(),
        }
    }

    fn copy(&mut self) {
        let (dst, src) = self.pick_two();
        let bytes = self.bytes();
        let (to, from) =
            (self.random.below(BYTES + 1 - bytes), self.random.below(BYTES + 1 - bytes));
        let [d, s] = [dst, src].map(|n| &self.pairs[n].memory);
        self.stream.copy(d.at(to), s.at(from), bytes).unwrap();
        let moved = self.pairs[src].shadow[at(from)..at(from + bytes)].to_vec();
        self.pairs[dst].shadow[at(to)..at(to + bytes)].copy_from_slice(&moved);
    }

    /// Between halves of the same memory.
    fn within(&mut self) {
        let n = self.pick();
        let bytes = self.bytes().min(BYTES / 2);
        let (to, from) = (self.random.below(BYTES / 2 + 1 - bytes), BYTES / 2);
        let memory = &self.pairs[n].memory;
        self.stream.copy(memory.at(to), memory.at(from), bytes).unwrap();
        self.pairs[n].shadow.copy_within(at(from)..at(from + bytes), at(to));
    }

    fn copy_rows(&mut self) {
        let (dst, src) = self.pick_two();
        let (extent, to_layout, from_layout) = self.rows();
        let (to, from) = (self.offset(to_layout, extent), self.offset(from_layout, extent));
        let [d, s] = [dst, src].map(|n| &self.pairs[n].memory);
        self.stream.copy_rows(d.at(to), to_layout, s.at(from), from_layout, extent).unwrap();
        let source = self.pairs[src].shadow.clone();
        each_row(extent, |y, z| {
            let to = at(to + y * to_layout.pitch_bytes + z * to_layout.slice_bytes);
            let from = at(from + y * from_layout.pitch_bytes + z * from_layout.slice_bytes);
            let width = at(extent.width);
            self.pairs[dst].shadow[to..to + width].copy_from_slice(&source[from..from + width]);
        });
    }

    fn fill(&mut self) {
        let n = self.pick();
        let value = u128::from(self.random.next()) << 64 | u128::from(self.random.next());
        let size = 1 << self.random.below(5);
        let count = self.bytes() / size;
        let to = self.random.below(BYTES + 1 - count * size) / size * size;
        let place = self.pairs[n].memory.at(to);
        let bytes = value.to_le_bytes();
        match size {
            1 => self.stream.fill(place, bytes[0], count),
            2 => self.stream.fill(place, u16::from_le_bytes([bytes[0], bytes[1]]), count),
            4 => self.stream.fill(place, u32::from_le_bytes(bytes[..4].try_into().unwrap()), count),
            8 => self.stream.fill(place, u64::from_le_bytes(bytes[..8].try_into().unwrap()), count),
            _ => self.stream.fill(place, value, count),
        }
        .unwrap();
        for (offset, byte) in (0..count * size).zip(bytes[..at(size)].iter().cycle()) {
            self.pairs[n].shadow[at(to + offset)] = *byte;
        }
    }

    fn fill_rows(&mut self) {
        let n = self.pick();
        let (mut extent, layout, _) = self.rows();
        extent.width = (extent.width / 4).max(1) * 4;
        let layout = Layout {
            pitch_bytes: layout.pitch_bytes.max(extent.width),
            slice_bytes: layout.pitch_bytes.max(extent.width) * extent.rows,
        };
        if layout.slice_bytes * extent.planes > BYTES {
            return;
        }
        let to = self.offset(layout, extent) / 4 * 4;
        let value = u32::from_le_bytes(self.random.bytes(4).try_into().unwrap());
        self.stream.fill_rows(self.pairs[n].memory.at(to), layout, value, extent).unwrap();
        each_row(extent, |y, z| {
            let to = at(to + y * layout.pitch_bytes + z * layout.slice_bytes);
            for (offset, byte) in (0..at(extent.width)).zip(value.to_le_bytes().iter().cycle()) {
                self.pairs[n].shadow[to + offset] = *byte;
            }
        });
    }

    fn upload(&mut self) {
        let n = self.pick();
        let bytes = self.bytes();
        let to = self.random.below(BYTES + 1 - bytes);
        let mut source = self.random.bytes(at(bytes));
        self.stream.copy_from_host(self.pairs[n].memory.at(to), &source).unwrap();
        self.pairs[n].shadow[at(to)..at(to + bytes)].copy_from_slice(&source);
        // Staged by now: what becomes of it does not matter.
        source.fill(0xEE);
    }

    fn download(&mut self) {
        let n = self.pick();
        let bytes = self.bytes();
        let from = self.random.below(BYTES + 1 - bytes);
        let mut found = vec![0x77; at(bytes)];
        self.stream.copy_to_host(&mut found, self.pairs[n].memory.at(from)).unwrap();
        let wanted = &self.pairs[n].shadow[at(from)..at(from + bytes)];
        assert_eq!(difference(&found, wanted), None, "memory {n} from {from}");
    }

    fn finish(mut self) {
        for (n, pair) in self.pairs.iter().enumerate() {
            let mut found = vec![0; at(BYTES)];
            self.stream.copy_to_host(&mut found, &pair.memory).unwrap();
            assert_eq!(difference(&found, &pair.shadow), None, "memory {n} at the end");
        }
        self.stream.synchronize().unwrap();
    }
}

fn each_row(extent: Extent, mut row: impl FnMut(u64, u64)) {
    (0..extent.planes).for_each(|z| (0..extent.rows).for_each(|y| row(y, z)));
}

/// Streams of every kind with each choice of engine, and small rings and chunks, so that all wrap.
fn small(device: &Device) -> Vec<StreamRequest> {
    let engines = [CopyEngine::Sdma, CopyEngine::Shader, CopyEngine::Auto];
    let copies =
        engines.map(|engine| request(engine).small(2000).sdma_ring_bytes(4096).staging(3, 5000));
    let of = |kind: StreamRequest| {
        copies.map(|copies| kind.packets(64).kernarg_bytes(4096).copies(copies))
    };
    kinds(device).into_iter().flat_map(of).collect()
}

#[test]
fn any_sequence_leaves_what_the_cpu_leaves_on_every_target() {
    every_target(|device| {
        let (_runtime, device) = open(device);
        for (seed, kind) in (1..).zip(small(&device)) {
            let mut replay = Replay::new(&device, kind, seed);
            (0..30).for_each(|_| replay.step());
            replay.finish();
        }
    });
}

#[test]
fn long_sequences_wrap_every_ring() {
    each_device(|device| {
        let (_runtime, device) = open(device);
        for (seed, kind) in (100..).zip(small(&device)) {
            let mut replay = Replay::new(&device, kind, seed);
            (0..300).for_each(|_| replay.step());
            replay.finish();
        }
    });
}
