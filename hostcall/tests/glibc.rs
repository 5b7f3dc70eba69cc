//! The formatter against glibc's `snprintf`: random formats and values, byte for byte.
//!
//! A run compares 100,000 messages; `KFD_PRINTF_CASES` sets another number, `KFD_PRINTF_SEED` another
//! start. The full comparison, ten million messages, is
//! `cargo test --release -p hostcall --test glibc -- --ignored`.
// snprintf is variadic and C: only an unsafe call reaches it.
#![allow(unsafe_code)]

use std::ffi::{CString, c_int, c_long, c_void};

use hostcall::format::{Limits, Words, format, needs};
use hostcall::printf::{DrainLimits, FormatTable, Records, drain};

/// splitmix64: any seed, the same sequence everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap();
        *from.get(index).unwrap()
    }
}

/// The low half, as an `int`.
fn int(value: u64) -> c_int {
    u32::try_from(value & u64::from(u32::MAX)).unwrap().cast_signed()
}

enum Value {
    Int(c_int),
    Long(c_long),
    Double(f64),
    Text(Vec<u8>),
    Pointer(u64),
}

/// One conversion, as both sides take it.
struct Case {
    spec: String,
    stars: Vec<c_int>,
    value: Value,
}

fn integer(random: &mut Random) -> u64 {
    let edge = random.pick(&[0, 1, 7, 8, 9, 10, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fff_ffff]);
    let value = match random.below(4) {
        0 => edge,
        1 => random.below(2000),
        2 => 1u64.rotate_left(u32::try_from(random.below(64)).unwrap()).wrapping_add(edge),
        _ => random.next() >> random.below(64),
    };
    if random.one_in(2) { value.wrapping_neg() } else { value }
}

fn double(random: &mut Random) -> f64 {
    let value = match random.below(9) {
        0 => f64::from_bits(random.next()),
        1 => random.pick(&[0.0, 1.0, 0.1, 0.5, 1.5, 2.5, 9.5, 99.5, 0.05, 1e15, 123_456.5, 5e-5]),
        2 => random.pick(&[f64::INFINITY, f64::NAN, f64::MAX, f64::MIN_POSITIVE, 5e-324]),
        // Ties: few bits after the point.
        3 => random.below(1 << 20) as f64 / 2f64.powi(i32::try_from(random.below(20)).unwrap()),
        // A hair beside a power of ten.
        4 => {
            let power = 10f64.powi(i32::try_from(random.below(40)).unwrap() - 20);
            f64::from_bits(power.to_bits().wrapping_add(random.below(3)).wrapping_sub(1))
        }
        5 => f64::from_bits(random.below(1 << 52)), // subnormal
        6 => random.below(1_000_000) as f64 / 1000.0,
        // Few hexadecimal digits, for %a.
        7 => f64::from_bits(random.next() & 0xffff_f800_0000_0000),
        _ => random.next() as f64,
    };
    if random.one_in(3) { -value } else { value }
}

fn single(random: &mut Random) -> f32 {
    if random.one_in(3) {
        f32::from_bits(int(random.next()).cast_unsigned())
    } else {
        random.below(1 << 20) as f32 / 1024.0
    }
}

fn text(random: &mut Random) -> Vec<u8> {
    let most = if random.one_in(50) { 300 } else { 20 };
    let length = random.below(most);
    (0..length).map(|_| u8::try_from(1 + random.below(255)).unwrap()).collect()
}

fn case(random: &mut Random) -> Case {
    let mut spec = String::from("%");
    let mut stars = Vec::new();
    for flag in ['-', '+', ' ', '#', '0', '\''] {
        if random.one_in(4) {
            spec.push(flag);
        }
    }
    let most = if random.one_in(40) { 3000 } else { 30 };
    let width = random.below(most);
    match random.below(6) {
        0 | 1 => spec.push_str(&if width == 0 { String::new() } else { width.to_string() }),
        2 => {
            spec.push('*');
            let width = c_int::try_from(width).unwrap();
            stars.push(if random.one_in(3) { -width } else { width });
        }
        _ => {}
    }
    let precision = match random.below(30) {
        0 => random.below(3000),
        1 => 700 + random.below(500),
        _ => random.below(25),
    };
    match random.below(6) {
        0 | 1 => spec.push_str(&format!(".{precision}")),
        2 => {
            spec.push_str(".*");
            let precision = c_int::try_from(precision).unwrap();
            stars.push(if random.one_in(4) { -1 - precision } else { precision });
        }
        3 if random.one_in(3) => spec.push('.'),
        _ => {}
    }
    let value = match random.below(10) {
        0..=3 => {
            let value = integer(random);
            let length = random.pick(&["hh", "h", "", "", "l", "ll", "j", "z", "t"]);
            spec.push_str(length);
            spec.push(random.pick(&['d', 'i', 'u', 'o', 'x', 'X']));
            if matches!(length, "hh" | "h" | "") {
                Value::Int(int(value))
            } else {
                Value::Long(value.cast_signed())
            }
        }
        4..=6 => {
            spec.push_str(random.pick(&["", "", "l"]));
            spec.push(random.pick(&['f', 'F', 'e', 'E', 'g', 'G', 'a', 'A']));
            Value::Double(double(random))
        }
        7 => {
            spec.push_str(random.pick(&["", "", "hh", "h"]));
            spec.push('s');
            Value::Text(text(random))
        }
        8 => {
            if random.one_in(4) {
                spec.push_str("lc");
                let point = random.below(0x11_0000);
                let point = char::from_u32(u32::try_from(point).unwrap()).unwrap_or('x');
                Value::Int(int(u64::from(point)))
            } else {
                spec.push_str(random.pick(&["", "", "hh", "h"]));
                spec.push('c');
                Value::Int(int(random.next()))
            }
        }
        _ => {
            spec.push('p');
            Value::Pointer(if random.one_in(8) { 0 } else { integer(random) })
        }
    };
    Case { spec, stars, value }
}

/// What snprintf makes of it, with `buffer` as its buffer.
fn expected(case: &Case, buffer: &mut Vec<u8>, out: &mut Vec<u8>) {
    let spec = CString::new(case.spec.as_str()).unwrap();
    loop {
        let (start, size, format) = (buffer.as_mut_ptr().cast(), buffer.len(), spec.as_ptr());
        macro_rules! print {
            ($value:expr) => {
                match case.stars[..] {
                    // SAFETY:
                    // - `start` and `size` are a buffer that is borrowed exclusively and outlives the call.
                    // - `format` ends with a NUL and outlives the call; it holds one conversion, no star, and
                    //   `case` chose the value's type by its length modifier and conversion character.
                    // - A text is a pointer to bytes that end with a NUL and outlive the call.
                    [] => unsafe { libc::snprintf(start, size, format, $value) },
                    // SAFETY: as above, and the format has one star, for an `int`.
                    [a] => unsafe { libc::snprintf(start, size, format, a, $value) },
                    // SAFETY: as above, and the format has two stars, for an `int` each.
                    [a, b] => unsafe { libc::snprintf(start, size, format, a, b, $value) },
                    _ => unreachable!("a conversion has two stars at most"),
                }
            };
        }
        let written = match &case.value {
            Value::Int(value) => print!(*value),
            Value::Long(value) => print!(*value),
            Value::Double(value) => print!(*value),
            Value::Pointer(value) => print!(*value as *const c_void),
            Value::Text(value) => {
                let value = CString::new(value.as_slice()).unwrap();
                print!(value.as_ptr())
            }
        };
        let written = usize::try_from(written).expect("glibc prints every such conversion");
        if written < buffer.len() {
            out.extend_from_slice(buffer.get(..written).unwrap());
            return;
        }
        buffer.resize(written + 1, 0);
    }
}

/// The stored form of the arguments.
fn store(case: &Case, arguments: &mut Vec<u8>) {
    for &star in &case.stars {
        // As the compiler does: zero-extended.
        arguments.extend_from_slice(&u64::from(star.cast_unsigned()).to_le_bytes());
    }
    let word = match &case.value {
        Value::Int(value) => u64::from(value.cast_unsigned()),
        Value::Long(value) => value.cast_unsigned(),
        Value::Double(value) => value.to_bits(),
        Value::Pointer(value) => *value,
        Value::Text(value) => {
            arguments.extend_from_slice(value);
            // The NUL, and padding to 8 bytes.
            arguments.resize(arguments.len() + 8 - value.len() % 8, 0);
            return;
        }
    };
    arguments.extend_from_slice(&word.to_le_bytes());
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |value| value.parse().expect("a number"))
}

fn compare(cases: u64) {
    // `%lc` is UTF-8, numbers stay as in C.
    // SAFETY: no other thread reads the locale meanwhile: each test of this file sets it first, to the same value.
    let locale = unsafe { libc::setlocale(libc::LC_CTYPE, c"C.UTF-8".as_ptr()) };
    assert!(!locale.is_null(), "glibc has C.UTF-8");
    let mut random = Random(number("KFD_PRINTF_SEED", 1));
    let mut buffer = vec![0; 4096];
    let (mut wanted, mut got, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
    let mut line = String::new();
    for number in 0..cases {
        wanted.clear();
        got.clear();
        arguments.clear();
        line.clear();
        for _ in 0..random.pick(&[1, 1, 2, 4]) {
            if random.one_in(2) {
                line.push_str("a%%z ");
                wanted.extend_from_slice(b"a%z ");
            }
            let case = case(&mut random);
            line.push_str(&case.spec);
            store(&case, &mut arguments);
            expected(&case, &mut buffer, &mut wanted);
        }
        let mut words = Words::new(&arguments);
        let outcome = format(&mut got, line.as_bytes(), &mut words, &Limits::default());
        let same = got == wanted
            && outcome.is_clean()
            && usize::try_from(outcome.result()) == Ok(got.len());
        // As a record of buffered printf, where a null text would take no bytes.
        let mut buffered = Vec::new();
        let mut words = Words::with_absent_texts(&arguments, needs(line.as_bytes()).words);
        let outcome_buffered =
            format(&mut buffered, line.as_bytes(), &mut words, &Limits::default());
        assert!(
            same && buffered == got && outcome_buffered == outcome,
            "case {number}: {line:?} of {arguments:02x?}\n glibc {:?}\n  ours {:?}\n{outcome:?}",
            String::from_utf8_lossy(&wanted),
            String::from_utf8_lossy(&got),
        );
    }
}

#[test]
fn random_formats_print_as_with_glibc() {
    compare(number("KFD_PRINTF_CASES", 100_000));
}

/// Vectors of OpenCL: each lane as glibc prints it, commas in between.
#[test]
fn random_vectors_print_lane_by_lane_as_with_glibc() {
    let mut random = Random(number("KFD_PRINTF_SEED", 1));
    let mut buffer = vec![0; 4096];
    for _ in 0..number("KFD_PRINTF_CASES", 100_000) / 10 {
        let mut front = String::from("%");
        for flag in ['-', '+', ' ', '#', '0'] {
            if random.one_in(4) {
                front.push(flag);
            }
        }
        if random.one_in(2) {
            front.push_str(&(1 + random.below(20)).to_string());
        }
        if random.one_in(2) {
            front.push_str(&format!(".{}", random.below(20)));
        }
        let count: u8 = random.pick(&[2, 3, 4, 8, 16]);
        let (length, bytes) = random.pick(&[("hh", 1), ("h", 2), ("hl", 4), ("l", 8)]);
        let float = bytes >= 4 && random.one_in(2);
        let conversion = if float {
            random.pick(&['f', 'e', 'g', 'a'])
        } else {
            random.pick(&['d', 'u', 'x', 'o'])
        };
        // What C calls it: `hl` is OpenCL's.
        let c_length = if float || length == "hl" { "" } else { length };
        let mut stored = Vec::new();
        let mut wanted = Vec::new();
        for lane in 0..if count == 3 { 4 } else { count } {
            let word = if float { double(&mut random).to_bits() } else { integer(&mut random) };
            let mut lane_bytes = word.to_le_bytes().to_vec();
            let value = match (float, bytes) {
                (true, 4) => {
                    let single = single(&mut random);
                    lane_bytes = single.to_le_bytes().to_vec();
                    Value::Double(f64::from(single))
                }
                (true, _) => Value::Double(f64::from_bits(word)),
                (false, 8) => Value::Long(word.cast_signed()),
                (false, _) => Value::Int(int(word)),
            };
            stored.extend_from_slice(lane_bytes.get(..bytes).unwrap());
            if lane < count {
                if lane > 0 {
                    wanted.push(b',');
                }
                let spec = format!("{front}{c_length}{conversion}");
                expected(&Case { spec, stars: Vec::new(), value }, &mut buffer, &mut wanted);
            }
        }
        let size = stored.len();
        let entry = format!("1:1:{size}:{front}v{count}{length}{conversion}");
        let table = FormatTable::new([entry.as_str()]);
        let record = [1u32.to_le_bytes().to_vec(), stored].concat();
        let mut got = Vec::new();
        let drained = drain(
            Records::new(&record, &table),
            &DrainLimits::default(),
            &mut Vec::new(),
            |_, text| got.extend_from_slice(text),
        );
        let text = String::from_utf8_lossy(&got);
        assert_eq!(text, String::from_utf8_lossy(&wanted), "{entry:?}");
        assert_eq!((drained.printed, drained.odd), (1, 0), "{entry:?}");
    }
}

#[test]
#[ignore = "takes minutes; see the top of this file"]
fn ten_million_random_formats_print_as_with_glibc() {
    compare(number("KFD_PRINTF_CASES", 10_000_000));
}
