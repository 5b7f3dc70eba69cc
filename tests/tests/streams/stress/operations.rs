//! What the streams are given, and the same done on the CPU.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hip::{CommandBuffer, CommandRecorder, CommandRequest, Extent, Grid, KernelId, Layout};

use super::super::Adder;
use super::memory::{BYTES, Piece};
use super::{LONG, Random, Stress};

/// What host functions found that they should not have.
pub type Wrong = Arc<Mutex<Vec<String>>>;

/// Numbers in a piece.
const NUMBERS: usize = BYTES / 4;

/// `sum = sum + other`, then a copy of a part of it, then a fill.
pub struct Recorded {
    buffer: CommandBuffer,
    add: KernelId,
    sum: usize,
    bytes: usize,
    from: usize,
    value: u32,
}

fn word(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

fn byte(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

fn grid(count: usize) -> Grid {
    Grid::items([word(count), 1, 1], [64, 1, 1])
}

fn add(pieces: &mut [Piece], to: usize, a: usize, b: usize, count: usize) {
    for offset in (0..count * 4).step_by(4) {
        let sum = pieces[a].number(offset) + pieces[b].number(offset);
        pieces[to].store(offset, &sum.to_le_bytes());
    }
}

impl Recorded {
    pub fn new(
        adders: &[Adder],
        device: usize,
        number: usize,
        pieces: &mut Vec<Piece>,
        random: &mut Random,
    ) -> Self {
        let adder = &adders[device];
        // The kind of memory follows from the index, and so does what is in it.
        let mut piece = |index| {
            pieces.push(Piece { is_fixed: true, ..Piece::new(adders, device, index, device) });
            pieces.len() - 1
        };
        let (sum, bytes) = (piece(4 * number), piece(3 + 4 * number));
        let (from, value) = (random.below(BYTES - 100), word(random.below(1 << 30)));
        let mut recorder =
            CommandRecorder::new(&adder.device, CommandRequest::new().instances(4)).unwrap();
        let (sums, to) = (pieces[sum].pointer(0), &pieces[bytes]);
        let add = (sums, sums, sums, word(NUMBERS));
        let add = recorder.kernel(&adder.vadd, &grid(NUMBERS), add).unwrap();
        recorder.barrier();
        recorder.copy(to.at(3), pieces[sum].at(from), 100).unwrap();
        recorder.fill(to.at(512), value, 16).unwrap();
        let buffer = recorder.finish().unwrap();
        Self { buffer, add, sum, bytes, from, value }
    }
}

impl Stress<'_> {
    fn piece(&mut self) -> usize {
        self.random.below(self.pieces.len())
    }

    /// One for kernels.
    fn numbers(&mut self) -> usize {
        loop {
            let piece = self.piece();
            if self.pieces[piece].is_numbers {
                return piece;
            }
        }
    }

    /// A place for `bytes` bytes.
    fn place(&mut self, piece: usize, bytes: usize) -> usize {
        let unit = self.pieces[piece].unit();
        self.random.below((BYTES - bytes) / unit + 1) * unit
    }

    /// From now on `stream` uses it, after its owner so far.
    fn give(&mut self, piece: usize, stream: usize) {
        let owner = std::mem::replace(&mut self.pieces[piece].owner, stream);
        if owner != stream {
            let event = self.random.below(self.events.len());
            self.streams[owner].0.record(&self.events[event]).unwrap();
            self.streams[stream].0.wait(&self.events[event]).unwrap();
        }
    }

    /// Bytes that hold numbers if they have to.
    fn data(&mut self, piece: usize, bytes: usize) -> Vec<u8> {
        if !self.pieces[piece].is_numbers {
            return (0..bytes).map(|_| byte(self.random.below(256))).collect();
        }
        (0..bytes / 4).flat_map(|_| (self.random.below(1000) as f32).to_le_bytes()).collect()
    }

    pub fn step(&mut self) {
        match self.random.below(100) {
            0..30 => self.launch(),
            30..44 => self.copy(),
            44..52 => self.copy_rows(),
            52..62 => self.fill(),
            62..68 => self.fill_rows(),
            68..76 => self.upload(),
            76..78 => self.download(),
            78..86 => self.hand_over(),
            86..89 => self.host_call(),
            89..94 => self.submit(),
            94..98 => self.query(),
            98 => self.replace(),
            _ => self.synchronize(),
        }
    }

    fn launch(&mut self) {
        let [to, a, b] = [(); 3].map(|()| self.numbers());
        let stream = self.pieces[to].owner;
        self.give(a, stream);
        self.give(b, stream);
        let count = 1 + self.random.below(NUMBERS);
        let pointers = [a, b, to].map(|piece| self.pieces[piece].pointer(0));
        let (stream, device) = &mut self.streams[stream];
        let vadd = &self.adders[*device].vadd;
        let arguments = (pointers[0], pointers[1], pointers[2], word(count));
        stream.launch(vadd, &grid(count), arguments).unwrap();
        add(&mut self.pieces, to, a, b, count);
    }

    /// Two that copies may go between, of one stream from now on; and the unit of offsets.
    fn pair(&mut self) -> (usize, usize, usize) {
        loop {
            let (to, from) = (self.piece(), self.piece());
            let (target, source) = (&self.pieces[to], &self.pieces[from]);
            if to != from && (source.is_numbers || !target.is_numbers) {
                let (unit, stream) = (target.unit(), target.owner);
                self.give(from, stream);
                return (to, from, unit);
            }
        }
    }

    fn copy(&mut self) {
        let (to, from, unit) = self.pair();
        let bytes = self.random.below(BYTES / unit + 1) * unit;
        let to_at = self.place(to, bytes);
        let from_at = self.random.below((BYTES - bytes) / unit + 1) * unit;
        let (target, source) = (&self.pieces[to], &self.pieces[from]);
        let stream = &mut self.streams[target.owner].0;
        stream.copy(target.at(to_at), source.at(from_at), bytes as u64).unwrap();
        let moved = source.shadow[from_at..from_at + bytes].to_vec();
        self.pieces[to].store(to_at, &moved);
    }

    /// Width, rows, and the pitch of each of two sides, all multiples of `unit`.
    fn rows(&mut self, unit: usize) -> (usize, usize, [usize; 2]) {
        let width = (1 + self.random.below(20)) * unit;
        let rows = 1 + self.random.below(6);
        (width, rows, [(); 2].map(|()| width + self.random.below(5) * unit))
    }

    fn copy_rows(&mut self) {
        let (to, from, unit) = self.pair();
        let (width, rows, pitches) = self.rows(unit);
        let to_at = self.place(to, pitches[0] * rows);
        let from_at = self.random.below((BYTES - pitches[1] * rows) / unit + 1) * unit;
        let [target_rows, source_rows] = pitches.map(|pitch| Layout::pitched(pitch as u64));
        let extent = Extent::plane(width as u64, rows as u64);
        let (target, source) = (&self.pieces[to], &self.pieces[from]);
        let stream = &mut self.streams[target.owner].0;
        let (target, source) = (target.at(to_at), source.at(from_at));
        stream.copy_rows(target, target_rows, source, source_rows, extent).unwrap();
        for row in 0..rows {
            let start = from_at + row * pitches[1];
            let moved = self.pieces[from].shadow[start..start + width].to_vec();
            self.pieces[to].store(to_at + row * pitches[0], &moved);
        }
    }

    fn fill(&mut self) {
        let to = self.piece();
        let count = self.random.below(BYTES + 1);
        if self.pieces[to].is_numbers {
            let (count, value) = (count / 4, count as f32);
            let to_at = self.place(to, count * 4);
            let piece = &self.pieces[to];
            let stream = &mut self.streams[piece.owner].0;
            stream.fill(piece.at(to_at), value.to_bits(), count as u64).unwrap();
            self.pieces[to].store(to_at, &value.to_le_bytes().repeat(count));
        } else {
            let value = byte(count);
            let piece = &self.pieces[to];
            let stream = &mut self.streams[piece.owner].0;
            stream.fill(piece.at(BYTES - count), value, count as u64).unwrap();
            self.pieces[to].store(BYTES - count, &[value].repeat(count));
        }
    }

    fn fill_rows(&mut self) {
        let to = self.piece();
        let (width, rows, [pitch, _]) = self.rows(4);
        let to_at = self.place(to, pitch * rows) / 4 * 4;
        let value = self.random.below(1000) as f32;
        let extent = Extent::plane(width as u64, rows as u64);
        let piece = &self.pieces[to];
        let stream = &mut self.streams[piece.owner].0;
        let layout = Layout::pitched(pitch as u64);
        stream.fill_rows(piece.at(to_at), layout, value.to_bits(), extent).unwrap();
        for row in 0..rows {
            let values = value.to_le_bytes().repeat(width / 4);
            self.pieces[to].store(to_at + row * pitch, &values);
        }
    }

    fn upload(&mut self) {
        let to = self.piece();
        let unit = self.pieces[to].unit();
        let bytes = self.random.below(BYTES / unit + 1) * unit;
        let to_at = self.place(to, bytes);
        let mut data = self.data(to, bytes);
        let piece = &self.pieces[to];
        let stream = &mut self.streams[piece.owner].0;
        stream.copy_from_host(piece.at(to_at), &data).unwrap();
        self.pieces[to].store(to_at, &data);
        // It is staged by now: what becomes of it does not matter.
        data.fill(0xEE);
    }

    fn download(&mut self) {
        let from = self.piece();
        let piece = &self.pieces[from];
        let mut found = vec![0x77; BYTES];
        self.streams[piece.owner].0.copy_to_host(&mut found, &*piece.memory).unwrap();
        assert!(found == piece.shadow, "piece {from} as copied to the host");
    }

    fn hand_over(&mut self) {
        let (piece, stream) = (self.piece(), self.random.below(self.streams.len()));
        self.give(piece, stream);
    }

    /// A function that looks at memory in its place in the order, and changes it.
    fn host_call(&mut self) {
        let to = self.piece();
        if !self.pieces[to].is_host {
            return self.hand_over();
        }
        let at = self.place(to, 4) / 4 * 4;
        let data = self.data(to, 4);
        let piece = &self.pieces[to];
        let wanted = piece.shadow.clone();
        let (memory, wrong, new) =
            (Arc::clone(&piece.memory), Arc::clone(&self.wrong), data.clone());
        let operation = self.run.operation;
        let function = move || {
            let mut found = vec![0; BYTES];
            memory.read(0, &mut found).unwrap();
            if found != wanted {
                wrong.lock().unwrap().push(format!("piece {to} at operation {operation}"));
            }
            memory.write(at as u64, &new).unwrap();
        };
        self.streams[piece.owner].0.host_call(function).unwrap();
        self.pieces[to].store(at, &data);
    }

    fn submit(&mut self) {
        let stream = self.random.below(self.streams.len());
        let device = self.streams[stream].1;
        let (number, other) = (self.random.below(self.commands[device].len()), self.numbers());
        let command = &self.commands[device][number];
        let (sum, bytes, from, value) = (command.sum, command.bytes, command.from, command.value);
        for piece in [other, sum, bytes] {
            self.give(piece, stream);
        }
        let command = &mut self.commands[device][number];
        command.buffer.set_argument(command.add, 1, self.pieces[other].pointer(0)).unwrap();
        self.streams[stream].0.submit(&mut command.buffer).unwrap();
        add(&mut self.pieces, sum, sum, other, NUMBERS);
        let moved = self.pieces[sum].shadow[from..from + 100].to_vec();
        self.pieces[bytes].store(3, &moved);
        self.pieces[bytes].store(512, &value.to_le_bytes().repeat(16));
    }

    fn query(&mut self) {
        let (stream, event) =
            (self.random.below(self.streams.len()), self.random.below(self.events.len()));
        let stream = &mut self.streams[stream].0;
        stream.query().unwrap();
        let (submitted, done) = stream.waiter().progress().unwrap();
        assert!(done <= submitted, "{done} of {submitted}");
        self.events[event].query();
    }

    /// Memory goes while the device may still use it, and other memory comes.
    fn replace(&mut self) {
        let which = self.piece();
        let old = &self.pieces[which];
        if old.is_fixed {
            return self.query();
        }
        let (owner, is_numbers) = (old.owner, old.is_numbers);
        let index = self.random.below(6) * 4 + if is_numbers { 0 } else { 3 };
        let device = self.random.below(self.adders.len());
        let data = self.data(which, BYTES);
        let mut piece = Piece::new(self.adders, device, index, owner);
        assert_eq!(piece.is_numbers, is_numbers);
        self.streams[owner].0.copy_from_host(&*piece.memory, &data).unwrap();
        piece.store(0, &data);
        self.pieces[which] = piece;
    }

    fn synchronize(&mut self) {
        let stream = self.random.below(self.streams.len());
        let event = self.random.below(self.events.len());
        match self.random.below(3) {
            0 => self.streams[stream].0.synchronize_within(LONG).unwrap(),
            1 => self.events[event].synchronize_within(LONG).unwrap(),
            // A time that is up is no harm.
            _ => drop(self.streams[stream].0.synchronize_within(Duration::from_micros(50))),
        }
    }
}
