//! Operand types: how the bits of a register become the value a lane function takes.

use super::lane::half::Half;
use super::lane::soft::{F16 as FORMAT16, F32 as FORMAT32, F64 as FORMAT64, Format};

/// The constants of a [`Ty`] as a value.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub wide: bool,
    pub half: bool,
    pub clears: bool,
    pub float: Option<Format>,
    pub sign: u64,
}

/// An operand type. The bits are those of one or two registers, low word first.
pub trait Ty {
    /// What lane functions see.
    type V: Copy;
    /// Two registers.
    const WIDE: bool = false;
    /// Sixteen bits: half selects apply, and as a destination the other half of the register is
    /// kept.
    const HALF: bool = false;
    /// As a 16-bit destination: gfx9 clears the other half instead of keeping it.
    /// docs/ABI.md §16-bit results.
    const CLEARS: bool = false;
    /// Denormals are flushed and results clamped and scaled as this format.
    const FLOAT: Option<Format> = None;
    /// The bit that negation and absolute value work on; 0 where they do not apply.
    const SIGN: u64 = 0;
    /// The constants above.
    const KIND: Kind = Kind {
        wide: Self::WIDE,
        half: Self::HALF,
        clears: Self::CLEARS,
        float: Self::FLOAT,
        sign: Self::SIGN,
    };
    /// From register bits. Bits above the type's width are ignored.
    fn get(bits: u64) -> Self::V;
    /// To register bits, bits above the width zero.
    fn put(value: Self::V) -> u64;
}

macro_rules! operand_types {
    ($($(#[$doc:meta])* $name:ident: $value:ty { $($item:ident = $is:expr),* } get $get:expr, put $put:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Ty for $name {
            type V = $value;
            $(operand_types!(@const $item $is);)*
            #[inline(always)]
            fn get(bits: u64) -> $value {
                $get(bits)
            }
            #[inline(always)]
            fn put(value: $value) -> u64 {
                $put(value)
            }
        }
    )*};
    (@const WIDE $is:expr) => { const WIDE: bool = $is; };
    (@const HALF $is:expr) => { const HALF: bool = $is; };
    (@const CLEARS $is:expr) => { const CLEARS: bool = $is; };
    (@const FLOAT $is:expr) => { const FLOAT: Option<Format> = Some($is); };
    (@const SIGN $is:expr) => { const SIGN: u64 = 1 << $is; };
}

operand_types! {
    /// Bits or unsigned.
    U32: u32 {} get |b: u64| b as u32, put |v: u32| u64::from(v);
    /// Signed.
    I32: i32 {} get |b: u64| b as i32, put |v: i32| u64::from(v as u32);
    /// Bits that take float modifiers but are no number: moves and selects.
    B32: u32 { SIGN = 31 } get |b: u64| b as u32, put |v: u32| u64::from(v);
    /// Single precision.
    F32: f32 { FLOAT = FORMAT32, SIGN = 31 } get |b: u64| f32::from_bits(b as u32), put |v: f32| u64::from(v.to_bits());
    /// Unsigned or bits, two registers.
    U64: u64 { WIDE = true } get |b: u64| b, put |v: u64| v;
    /// Signed, two registers.
    I64: i64 { WIDE = true } get |b: u64| b as i64, put |v: i64| v as u64;
    /// Double precision.
    F64: f64 { WIDE = true, FLOAT = FORMAT64, SIGN = 63 } get f64::from_bits, put f64::to_bits;
    /// Unsigned half register; as a destination, gfx9 clears the rest.
    U16: u16 { HALF = true, CLEARS = true } get |b: u64| b as u16, put |v: u16| u64::from(v);
    /// Signed half register; as a destination, gfx9 clears the rest.
    I16: i16 { HALF = true, CLEARS = true } get |b: u64| b as i16, put |v: i16| u64::from(v as u16);
    /// Half precision; as a destination, gfx9 clears the rest.
    F16: Half { HALF = true, CLEARS = true, FLOAT = FORMAT16, SIGN = 15 } get |b: u64| Half(b as u16), put |v: Half| u64::from(v.0);
    /// [`U16`] that keeps the rest of the destination on every target.
    U16Keep: u16 { HALF = true } get |b: u64| b as u16, put |v: u16| u64::from(v);
    /// [`I16`] that keeps the rest of the destination on every target.
    I16Keep: i16 { HALF = true } get |b: u64| b as i16, put |v: i16| u64::from(v as u16);
    /// [`F16`] that keeps the rest of the destination on every target.
    F16Keep: Half { HALF = true, FLOAT = FORMAT16, SIGN = 15 } get |b: u64| Half(b as u16), put |v: Half| u64::from(v.0);
    /// Bits of a half register that take float modifiers: 16-bit moves and selects.
    B16: u16 { HALF = true, SIGN = 15 } get |b: u64| b as u16, put |v: u16| u64::from(v);
}
