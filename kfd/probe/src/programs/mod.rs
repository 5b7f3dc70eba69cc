//! The self-test's programs: real compiled kernels, their inputs, and what the CPU says of them.
//!
//! A [`Case`] is data: an object, a kernel, a launch and a check that computes the expected result
//! from the inputs. It knows nothing of devices, so the same cases serve `kfd-probe selftest` and
//! the integration tests. The objects and their sources are in `tests/fixtures/code-objects`.

mod arguments;
mod arithmetic;
mod memory;

/// A launch with its inputs and its check.
pub struct Case {
    /// Program, and variant where there are several: `vadd v5`.
    pub name: String,
    /// The code object.
    pub object: &'static [u8],
    /// The kernel in it.
    pub kernel: &'static str,
    /// Work-items.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub group: [u32; 3],
    /// LDS bytes of a workgroup on top of what the kernel declares.
    pub dynamic_lds_bytes: u32,
    /// Explicit arguments, in order.
    pub args: Vec<Arg>,
    /// Compares what came out with a CPU computation of the same thing.
    pub check: Check,
}

/// The type of [`Case::check`].
pub type Check = Box<dyn Fn(&Results<'_>) -> Result<(), Wrong> + Send + Sync>;

/// An explicit kernel argument.
pub enum Arg {
    /// Bytes passed by value.
    Value(Vec<u8>),
    /// The address of a buffer with these bytes, which is read back after the launch.
    Buffer(Vec<u8>),
    /// A null pointer.
    Null,
}

/// What a launch left behind.
pub struct Results<'run> {
    /// The buffers, in the order of the arguments.
    pub buffers: Vec<Vec<u8>>,
    /// Reads a variable of the loaded object; a managed one's own bytes. `None`: no such variable.
    pub variable: &'run dyn Fn(&str) -> Option<Vec<u8>>,
}

/// A result that differs from the CPU's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: got {got}, the CPU says {want}")]
pub struct Wrong {
    /// Which element.
    pub what: String,
    /// The device's value.
    pub got: String,
    /// The CPU's value, or the values it allows.
    pub want: String,
}

/// The targets that have programs of their own.
pub const TARGETS: [&str; 11] = [
    "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1100", "gfx1101", "gfx1102", "gfx1103",
    "gfx1150", "gfx1151",
];

/// All cases for one of [`TARGETS`]; for others the programs of their generic target, if there are
/// any.
pub fn cases(target: &str) -> Vec<Case> {
    let Some(&target) = TARGETS.iter().find(|known| **known == target) else {
        return arithmetic::generic(target);
    };
    let mut cases = arithmetic::cases(target);
    cases.extend(arguments::cases(target));
    cases.extend(memory::cases(target));
    cases
}

/// A fixture by its file name, or by program and target: of every target, or, as an `Option`, of
/// some.
macro_rules! fixture {
    ($file:literal) => {
        include_bytes!(concat!("../../../../tests/fixtures/code-objects/", $file)).as_slice()
    };
    ($target:expr, $name:literal, $suffix:literal) => {
        fixture!($target, $name, $suffix, [
            "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1100", "gfx1101", "gfx1102",
            "gfx1103", "gfx1150", "gfx1151",
        ])
        .unwrap_or_default()
    };
    ($target:expr, $name:literal, $suffix:literal, [$($known:literal),+ $(,)?]) => {
        match $target {
            $($known => Some(
                include_bytes!(concat!(
                    "../../../../tests/fixtures/code-objects/",
                    $name,
                    ".",
                    $known,
                    $suffix
                ))
                .as_slice(),
            ),)+
            _ => None,
        }
    };
}
use fixture;

impl Results<'_> {
    /// Buffer `index` as an array of `T`'s little-endian words.
    fn words<const N: usize, T>(&self, index: usize, from: fn([u8; N]) -> T) -> Vec<T> {
        let bytes = self.buffers.get(index).map_or(&[][..], Vec::as_slice);
        bytes.as_chunks().0.iter().map(|word| from(*word)).collect()
    }

    /// Buffer `index` as u32s.
    pub fn u32s(&self, index: usize) -> Vec<u32> {
        self.words(index, u32::from_le_bytes)
    }

    /// Buffer `index` as u64s.
    pub fn u64s(&self, index: usize) -> Vec<u64> {
        self.words(index, u64::from_le_bytes)
    }

    /// Buffer `index` as f32s.
    pub fn f32s(&self, index: usize) -> Vec<f32> {
        self.words(index, f32::from_le_bytes)
    }

    /// A variable as u32s.
    fn variable_u32s(&self, name: &str) -> Result<Vec<u32>, Wrong> {
        let bytes = (self.variable)(name).ok_or_else(|| Wrong {
            what: format!("variable {name}"),
            got: "nothing".into(),
            want: "a symbol".into(),
        })?;
        Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}

/// Compares element by element, floats by their bits.
fn equal<T: PartialEq + std::fmt::Debug>(what: &str, got: &[T], want: &[T]) -> Result<(), Wrong> {
    if got.len() != want.len() {
        return Err(Wrong {
            what: format!("length of {what}"),
            got: got.len().to_string(),
            want: want.len().to_string(),
        });
    }
    match got.iter().zip(want).enumerate().find(|(_, (got, want))| got != want) {
        None => Ok(()),
        Some((at, (got, want))) => Err(Wrong {
            what: format!("{what}[{at}]"),
            got: format!("{got:?}"),
            want: format!("{want:?}"),
        }),
    }
}

/// Fails with `want` in words unless `holds`.
fn require(
    holds: bool,
    what: impl Into<String>,
    got: impl std::fmt::Debug,
    want: impl Into<String>,
) -> Result<(), Wrong> {
    if holds {
        return Ok(());
    }
    Err(Wrong { what: what.into(), got: format!("{got:?}"), want: want.into() })
}

/// Little-endian bytes of 32-bit words.
fn bytes_u32(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Little-endian bytes of floats.
fn bytes_f32(words: impl IntoIterator<Item = f32>) -> Vec<u8> {
    words.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// A reproducible sequence of floats in -8..8 with fractions, different for each `seed`.
fn floats(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769).wrapping_add(1);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // 16 bits are exact in f32.
            (f32::from((state >> 16) as u16) - 32_768.0) / 4_096.0
        })
        .collect()
}

/// Bits of floats, for exact comparison.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
