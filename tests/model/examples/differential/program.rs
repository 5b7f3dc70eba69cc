//! Random programs whose result does not depend on order, as source that compiles for the CPU and for
//! GPUs. What a work-item computes is plain code; between phases work-items meet through LDS, atomic
//! operations and other lanes, which the CPU's build does in loops.

use std::fmt::Write as _;

/// Work-items of a workgroup.
pub const GROUP: u32 = 64;
/// Workgroups.
pub const GROUPS: u32 = 2;
/// Results of a work-item, in words; the sums come after those of all.
pub const WORDS: u32 = 20;
/// Words that all work-items add to.
pub const SUMS: u32 = 4;

/// A pseudo-random sequence: the same for a seed everywhere.
pub struct Random(u64);

impl Random {
    /// Of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A statement: a line, or a block that can be taken apart.
#[derive(Clone, Debug)]
pub enum Stmt {
    Line(String),
    Block { head: String, body: Vec<Stmt> },
}

/// A phase: what each work-item does, then how they meet.
#[derive(Clone, Debug)]
pub struct Phase {
    pub body: Vec<Stmt>,
    pub meet: Vec<String>,
}

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    pub seed: u64,
    pub phases: Vec<Phase>,
    functions: Vec<String>,
}

/// A 32-bit expression over `s`.
fn int(r: &mut Random, depth: u32) -> String {
    if depth == 0 {
        return match r.below(5) {
            0 => format!(
                "{}u",
                [0, 1, 2, 7, 31, 255, 0x7fff_ffff, 0x8000_0000u32, !0][r.below(9) as usize]
            ),
            1 => "item".into(),
            2 => format!("(u32)s->q[{}]", r.below(4)),
            _ => format!("s->r[{}]", r.below(8)),
        };
    }
    let a = int(r, depth - 1);
    let b = int(r, depth - 1);
    match r.below(20) {
        0..8 => format!("({a} {} {b})", r.pick(&["+", "-", "*", "^", "&", "|", "<", "=="])),
        8 => format!("({a} << ({b} & 31))"),
        9 => format!("({a} >> ({b} & 31))"),
        10 => format!("(u32)((int)({a}) >> ({b} & 31))"),
        11 => format!("({a} / ({b} | 1))"),
        12 => format!("(u32)((int)({a}) % ((int)(({b}) & 0x7fff) + 1))"),
        13 => format!("(u32)(short)({a})"),
        14 => format!("(u32)__builtin_popcount({a})"),
        15 => format!("(u32)__builtin_clz(({a}) | 1)"),
        16 => format!("(({a}) < ({b}) ? {} : {a})", int(r, depth - 1)),
        17 => format!("f{}({a}, {b})", r.below(4)),
        18 => format!("bits({})", float(r, depth - 1)),
        _ => format!("to_int({})", double(r, depth - 1)),
    }
}

fn long(r: &mut Random, depth: u32) -> String {
    if depth == 0 {
        return format!("s->q[{}]", r.below(4));
    }
    let a = long(r, depth - 1);
    let b = long(r, depth - 1);
    match r.below(9) {
        0..5 => format!("({a} {} {b})", r.pick(&["+", "-", "*", "^", "|"])),
        5 => format!("({a} << ({b} & 63))"),
        6 => format!("({a} / ({b} | 1))"),
        7 => format!("(u64)((long long)({a}) >> ({b} & 63))"),
        _ => format!("((u64){} << 32 | {})", int(r, depth - 1), int(r, depth - 1)),
    }
}

fn float(r: &mut Random, depth: u32) -> String {
    if depth == 0 {
        return match r.below(3) {
            0 => format!("{}f", ["0.0", "1.0", "-2.5", "1e-40", "3.0e38"][r.below(5) as usize]),
            _ => format!("s->f[{}]", r.below(4)),
        };
    }
    let a = float(r, depth - 1);
    let b = float(r, depth - 1);
    match r.below(9) {
        0..4 => format!("({a} {} {b})", r.pick(&["+", "-", "*", "/"])),
        4 => format!("__builtin_fmaf({a}, {b}, {})", float(r, depth - 1)),
        5 => format!("__builtin_sqrtf({a})"),
        6 => format!("(float)(int)({})", int(r, depth - 1)),
        7 => format!("(float)({})", double(r, depth - 1)),
        _ => format!("({a} < {b} ? {a} : -({b}))"),
    }
}

fn double(r: &mut Random, depth: u32) -> String {
    if depth == 0 {
        return format!("s->d[{}]", r.below(4));
    }
    let a = double(r, depth - 1);
    let b = double(r, depth - 1);
    match r.below(7) {
        0..4 => format!("({a} {} {b})", r.pick(&["+", "-", "*", "/"])),
        4 => format!("__builtin_fma({a}, {b}, {})", double(r, depth - 1)),
        5 => format!("(double)({})", float(r, depth - 1)),
        _ => format!("(double)(int)({})", int(r, depth - 1)),
    }
}

fn statement(r: &mut Random, depth: u32) -> Stmt {
    let line = |text: String| Stmt::Line(text);
    match r.below(if depth == 0 { 8 } else { 12 }) {
        0..3 => line(format!("s->r[{}] = {};", r.below(8), int(r, 3))),
        3 => line(format!("s->q[{}] = {};", r.below(4), long(r, 2))),
        4 => line(format!("s->f[{}] = {};", r.below(4), float(r, 2))),
        5 => line(format!("s->d[{}] = {};", r.below(4), double(r, 2))),
        6 => line(format!(
            "{{ u32 a[8]; for (u32 k = 0; k < 8; k++) a[k] = s->r[k] + k; a[({}) & 7] ^= item; s->r[{}] += a[({}) & 7]; }}",
            int(r, 1),
            r.below(8),
            int(r, 1)
        )),
        7 => line(format!(
            "s->r[{}] ^= table[({}) & 3]({}, {});",
            r.below(8),
            int(r, 1),
            int(r, 1),
            int(r, 1)
        )),
        8 | 9 => {
            Stmt::Block { head: format!("if ({})", int(r, 2)), body: statements(r, depth - 1, 3) }
        }
        10 => Stmt::Block {
            head: format!("for (u32 k{depth} = 0; k{depth} < ({} & 7); k{depth}++)", int(r, 1)),
            body: statements(r, depth - 1, 2),
        },
        _ => Stmt::Block {
            head: format!(
                "switch ({} & 3) case {}: case {}:",
                int(r, 1),
                r.below(2),
                2 + r.below(2)
            ),
            body: statements(r, depth - 1, 2),
        },
    }
}

fn statements(r: &mut Random, depth: u32, most: u64) -> Vec<Stmt> {
    (0..=r.below(most)).map(|_| statement(r, depth)).collect()
}

/// How work-items meet: a macro of the prelude, with its arguments.
fn meeting(r: &mut Random) -> String {
    let (to, from) = (r.below(8), r.below(8));
    match r.below(4) {
        0 => format!("LDS({to}, {from}, {}, {})", 2 * r.below(32) + 1, r.below(64)),
        1 => format!("LANE({to}, {from}, {}, {})", 2 * r.below(16) + 1, r.below(32)),
        // Each sum has an operation of its own: workgroups reach a phase in any order.
        2 => {
            let word = r.below(4) as usize;
            format!("SUM({word}, {}, {from})", ["add", "or", "xor", "max"][word])
        }
        _ => format!("LDS_SUM({to}, {from})"),
    }
}

impl Program {
    /// The program of a seed.
    pub fn new(seed: u64) -> Self {
        let mut r = Random::new(seed);
        let functions = (0..4)
            .map(|k| {
                // Functions know only their arguments; each may call those before it.
                let body = match k {
                    0 => "return x * 3 + (y >> 3);".to_owned(),
                    1 => "return y == 0 ? x : f1(x ^ y * 5, (y & 15) >> 1);".to_owned(),
                    _ => {
                        let op = r.pick(&["+", "^", "*", "-"]);
                        format!(
                            "u32 z = f{}(y, x {op} {}u); return (z {op} x) ^ (y << {});",
                            r.below(k),
                            r.below(1000),
                            r.below(31)
                        )
                    }
                };
                format!("DEVICE NOINLINE u32 f{k}(u32 x, u32 y) {{ {body} }}")
            })
            .collect();
        let phases = (0..2 + r.below(3))
            .map(|_| Phase {
                body: statements(&mut r, 2, 8),
                meet: (0..r.below(3)).map(|_| meeting(&mut r)).collect(),
            })
            .collect();
        Self { seed, phases, functions }
    }

    /// How many parts can be taken out.
    pub fn parts(&self) -> usize {
        self.phases.iter().map(|phase| count(&phase.body) + phase.meet.len()).sum()
    }

    /// The program without part `k`; a block may also lose only its head (`open`).
    pub fn without(&self, k: usize, open: bool) -> Self {
        let mut program = self.clone();
        let mut left = k;
        for phase in &mut program.phases {
            if remove(&mut phase.body, &mut left, open) {
                return program;
            }
            if left < phase.meet.len() {
                phase.meet.remove(left);
                return program;
            }
            left -= phase.meet.len();
        }
        program
    }

    /// The source.
    pub fn source(&self) -> String {
        let mut text = format!("// seed {}\n{}", self.seed, include_str!("prelude.h"));
        for function in &self.functions {
            let _ = writeln!(text, "{function}");
        }
        text.push_str("typedef u32 (*function)(u32, u32);\nDEVICE CONSTANT function table[4] = {f0, f1, f2, f3};\n");
        for (k, phase) in self.phases.iter().enumerate() {
            let _ = writeln!(text, "DEVICE NOINLINE void phase{k}(State *s, u32 item) {{");
            write(&mut text, &phase.body, 1);
            text.push_str("}\n");
        }
        text.push_str("BEGIN\n");
        for (k, phase) in self.phases.iter().enumerate() {
            let _ = writeln!(text, "  EACH(phase{k})");
            for meet in &phase.meet {
                let _ = writeln!(text, "  {meet}");
            }
        }
        text.push_str("END\n");
        text
    }
}

fn count(body: &[Stmt]) -> usize {
    body.iter()
        .map(|stmt| match stmt {
            Stmt::Line(_) => 1,
            Stmt::Block { body, .. } => 1 + count(body),
        })
        .sum()
}

fn remove(body: &mut Vec<Stmt>, left: &mut usize, open: bool) -> bool {
    let mut at = 0;
    while at < body.len() {
        if *left == 0 {
            let stmt = body.remove(at);
            if let (Stmt::Block { body: inner, .. }, true) = (stmt, open) {
                body.splice(at..at, inner);
            }
            return true;
        }
        *left -= 1;
        if let Stmt::Block { body: inner, .. } = &mut body[at]
            && remove(inner, left, open)
        {
            return true;
        }
        at += 1;
    }
    false
}

fn write(text: &mut String, body: &[Stmt], depth: usize) {
    let indent = "  ".repeat(depth);
    for stmt in body {
        match stmt {
            Stmt::Line(line) => {
                let _ = writeln!(text, "{indent}{line}");
            }
            Stmt::Block { head, body } => {
                let _ = writeln!(text, "{indent}{head} {{");
                write(text, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
        }
    }
}
