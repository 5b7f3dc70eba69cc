//! Random command sequences against the same on the CPU.

use hip::{CommandBuffer, CommandRecorder, CommandRequest, KernelId, Memory, Stream};
use kfd_tests::{each_device, every_target};

use super::{LONG, N, grid, pairs, values, vector};
use crate::streams::Adder;

/// A small generator of which nothing is asked but variety: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

const VECTORS: usize = 6;

/// `v[c] = v[a] + v[b]`: arguments 0, 1 and 2.
type Add = [usize; 3];

#[derive(Clone, Copy, Debug)]
enum Command {
    Add(Add),
    /// To the start of a vector, from element `skip` of another on.
    Copy {
        to: usize,
        from: usize,
        skip: usize,
    },
    /// From element 1 on.
    Fill {
        to: usize,
        value: f32,
    },
}

impl Command {
    /// What it reads, twice the same if that is one, and what it writes.
    fn uses(self) -> Add {
        match self {
            Self::Add(add) => add,
            Self::Copy { to, from, .. } => [from, from, to],
            Self::Fill { to, .. } => [to; 3],
        }
    }
}

struct Replay {
    adder: Adder,
    vectors: Vec<Memory>,
    expected: Vec<Vec<f32>>,
    random: Random,
}

impl Replay {
    fn new(adder: Adder, seed: u64) -> Self {
        let value = |index: usize| move |i: u32| (i as usize * 3 + index) as f32;
        let vectors = (0..VECTORS).map(|index| vector(&adder, value(index))).collect();
        let expected = (0..VECTORS).map(|index| (0..N).map(value(index)).collect()).collect();
        Self { adder, vectors, expected, random: Random(seed) }
    }

    fn add(&mut self) -> Add {
        [0; 3].map(|_| self.random.below(VECTORS))
    }

    fn replay(&mut self, commands: &[Command]) {
        for command in commands {
            match *command {
                Command::Add([a, b, c]) => {
                    let (a, b) = (&self.expected[a], &self.expected[b]);
                    self.expected[c] = a.iter().zip(b).map(|(a, b)| a + b).collect();
                }
                Command::Copy { to, from, skip } => {
                    let source = self.expected[from].clone();
                    self.expected[to][..N as usize - skip].copy_from_slice(&source[skip..]);
                }
                Command::Fill { to, value } => self.expected[to][1..].fill(value),
            }
        }
    }

    fn command(&mut self) -> Command {
        let [a, _, c] = self.add();
        match self.random.below(8) {
            0 if a != c => Command::Copy { to: c, from: a, skip: self.random.below(9) },
            1 => Command::Fill { to: c, value: 0.5 },
            _ => Command::Add(self.add()),
        }
    }

    /// Records `count` random commands with barriers and times between them. In explicit order, a
    /// barrier comes before whatever depends on what is not behind one.
    fn record(
        &mut self,
        request: CommandRequest,
        explicit: bool,
        count: usize,
    ) -> (CommandBuffer, Vec<(KernelId, usize)>, Vec<Command>) {
        let request = if explicit { request.explicit_order() } else { request };
        let mut recorder = CommandRecorder::new(&self.adder.device, request).unwrap();
        let (mut ids, mut commands) = (Vec::new(), Vec::new());
        let (mut read, mut written) = ([false; VECTORS], [false; VECTORS]);
        for at in 0..count {
            let command = self.command();
            let [a, b, c] = command.uses();
            let depends = written[a] || written[b] || written[c] || read[c];
            if explicit && depends || self.random.below(10) == 0 {
                recorder.barrier();
                (read, written) = ([false; VECTORS], [false; VECTORS]);
            }
            if self.random.below(12) == 0 {
                recorder.time().unwrap();
            }
            (read[a], read[b], written[c]) = (true, true, true);
            let [a, b, c] = [a, b, c].map(|index| &self.vectors[index]);
            match command {
                Command::Add(_) => {
                    let vadd = &self.adder.vadd;
                    ids.push((recorder.kernel(vadd, &grid(), (a, b, c, N)).unwrap(), at));
                }
                Command::Copy { skip, .. } => {
                    let from = a.at(4 * skip as u64);
                    recorder.copy(c, from, 4 * (u64::from(N) - skip as u64)).unwrap();
                }
                Command::Fill { value, .. } => {
                    recorder.fill(c.at(4), value.to_bits(), u64::from(N) - 1).unwrap();
                }
            }
            commands.push(command);
        }
        (recorder.finish().unwrap(), ids, commands)
    }

    fn run(&mut self, request: CommandRequest, explicit: bool, stream: &mut Stream, count: usize) {
        let (mut command, ids, mut commands) = self.record(request, explicit, count);
        for _ in 0..12 {
            if !explicit && !ids.is_empty() {
                for _ in 0..self.random.below(3) {
                    let ((kernel, at), argument) =
                        (ids[self.random.below(ids.len())], self.random.below(3));
                    let to = self.random.below(VECTORS);
                    let memory = &self.vectors[to];
                    command.set_argument(kernel, argument, memory).unwrap();
                    if let Command::Add(add) = &mut commands[at] {
                        add[argument] = to;
                    }
                }
            }
            if self.random.below(3) == 0 {
                let add @ [a, b, c] = self.add();
                let [a, b, c] = [a, b, c].map(|index| &self.vectors[index]);
                stream.launch(&self.adder.vadd, &grid(), (a, b, c, N)).unwrap();
                self.replay(&[Command::Add(add)]);
            }
            stream.submit(&mut command).unwrap();
            self.replay(&commands);
        }
        stream.synchronize_within(LONG).unwrap();
        for (index, (memory, expected)) in self.vectors.iter().zip(&self.expected).enumerate() {
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&values(memory)), bits(expected), "vector {index}");
        }
    }
}

fn run(adder: &dyn Fn() -> Adder, seed: u64, count: usize) {
    for (stream, commands) in pairs(&adder()) {
        let mut replay = Replay::new(adder(), seed);
        let mut stream = replay.adder.stream(stream.packets(64));
        for explicit in [false, true] {
            replay.run(commands.buffer_dwords(256), explicit, &mut stream, count);
            replay.run(commands.instances(2), explicit, &mut stream, count);
        }
    }
}

#[test]
fn random_commands_compute_what_the_cpu_does_on_every_target_and_kind_of_stream() {
    every_target(|device| run(&|| Adder::new(device), 5, 12));
}

#[test]
fn long_random_commands_compute_what_the_cpu_does() {
    each_device(|device| {
        for seed in 1..4 {
            run(&|| Adder::new(device), seed, 100);
        }
    });
}
