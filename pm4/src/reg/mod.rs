//! Registers that packets reach, as bit ranges.
//!
//! Addresses are dword addresses, as packets count them; each target's module has the registers
//! that it has: [`gfx9`] what gfx900 to gfx942 share, its submodules what single targets add,
//! [`gfx11`] all of gfx1100 to gfx1151.
//!
//! Numbers: docs/ABI.md §Compute registers.

use core::fmt;

use bitflags::bitflags;

use crate::bits::Bits;
use crate::{Error, Opcode, Target};

pub mod gfx11;
pub mod gfx9;

/// A register's dword address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Reg(pub u32);

impl Reg {
    /// The `n`th register after this one.
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// The registers that one packet reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Space {
    /// Shader registers: `SET_SH_REG`.
    pub const SH: Self = Self { first: 0x2C00, last: 0x2FFF };
    /// User configuration registers: `SET_UCONFIG_REG`.
    pub const UCONFIG: Self = Self { first: 0xC000, last: 0xFFFF };
    /// What the 18 bits of other packets reach.
    pub(crate) const ANY: Self = Self { first: 0, last: 0x3_FFFF };

    /// Whether `reg` is one of them.
    pub const fn contains(self, reg: Reg) -> bool {
        self.first <= reg.0 && reg.0 <= self.last
    }
}

/// A register's name, address and fields.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// AMD's name, without the block's prefix.
    pub name: &'static str,
    /// Where it is.
    pub reg: Reg,
    /// Its fields by name; the rest of the bits is reserved.
    pub fields: &'static [(&'static str, Bits)],
}

impl Register {
    /// The register at `reg` of `target`, if this crate knows it.
    pub fn find(target: Target, reg: Reg) -> Option<&'static Self> {
        target
            .registers()
            .iter()
            .flat_map(|table| table.iter())
            .find(|register| register.reg == reg)
    }

    /// Shows `value` field by field.
    pub const fn show(&self, value: u32) -> impl fmt::Display {
        Shown { register: *self, value }
    }
}

struct Shown {
    register: Register,
    value: u32,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { register, value } = self;
        write!(f, "{}={value:#x}", register.name)?;
        if let [] | [(_, _)] = register.fields {
            return Ok(());
        }
        let mut rest = *value;
        let mut separator = " (";
        for (name, bits) in register.fields {
            rest &= !bits.mask();
            match bits.get(*value) {
                0 => continue,
                1 if bits.max() == 1 => write!(f, "{separator}{name}")?,
                field => write!(f, "{separator}{name}={field:#x}")?,
            }
            separator = " ";
        }
        if rest != 0 {
            write!(f, "{separator}reserved={rest:#x}")?;
            separator = " ";
        }
        f.write_str(if separator == " " { ")" } else { "" })
    }
}

bitflags! {
    /// `COMPUTE_DISPATCH_INITIATOR`: how a grid is launched.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct DispatchInitiator: u32 {
        /// Launches waves.
        const COMPUTE_SHADER_EN = 1;
        /// The last group of a row may be partial; its size is in NUM_THREAD_*.
        const PARTIAL_TG_EN = 1 << 1;
        /// Group ids start at zero instead of START_*.
        const FORCE_START_AT_000 = 1 << 2;
        /// Ordered append.
        const ORDERED_APPEND_ENBL = 1 << 3;
        /// Mode of ordered append.
        const ORDERED_APPEND_MODE = 1 << 4;
        /// Dimensions are in work-items instead of groups.
        const USE_THREAD_DIMENSIONS = 1 << 5;
        /// Groups start in order.
        const ORDER_MODE = 1 << 6;
        /// Invalidates volatile lines of the scalar cache.
        const SCALAR_L1_INV_VOL = 1 << 10;
        /// Invalidates volatile lines of the vector L1.
        const VECTOR_L1_INV_VOL = 1 << 11;
        /// Runs beside a graphics tunnel. gfx11.
        const TUNNEL_ENABLE = 1 << 13;
        /// Restores preempted waves.
        const RESTORE = 1 << 14;
        /// Waves have 32 lanes. gfx11.
        const CS_W32_EN = 1 << 15;
        /// Amplification shader. gfx11.
        const AMP_SHADER_EN = 1 << 16;
        /// The dispatch is not preempted. gfx11.
        const DISABLE_DISP_PREMPT_EN = 1 << 17;
    }
}

impl DispatchInitiator {
    pub(crate) const fn decode(opcode: Opcode, dword: usize, word: u32) -> Result<Self, Error> {
        match word & !Self::all().bits() {
            0 => Ok(Self::from_bits_retain(word)),
            bits => Err(Error::Reserved { opcode, dword, word, bits }),
        }
    }
}

impl fmt::Display for DispatchInitiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

/// Declares registers: `NAME = address: Type "doc" { field / setter [high:low] "doc", ... }`. Registers
/// whose type was declared before end after its name.
macro_rules! registers {
    ($(#[$table_doc:meta])* $table:ident: $(
        $(#[$doc:meta])*
        $name:ident = $address:literal : $type:ident
        $($type_doc:literal { $($field:ident / $set:ident [$high:literal $(: $low:literal)?] $field_doc:literal,)* })?;
    )*) => {
        $(
            $(#[$doc])*
            pub const $name: $crate::reg::Reg = $crate::reg::Reg($address);
            $($crate::reg::register_type! {
                $type $type_doc { $($field / $set [$high $(: $low)?] $field_doc,)* }
            })?
        )*

        $(#[$table_doc])*
        pub const $table: &[$crate::reg::Register] = &[$(
            $crate::reg::Register { name: stringify!($name), reg: $name, fields: $type::FIELDS },
        )*];
    };
}
pub(crate) use registers;

/// The value type of a register: a word with an accessor and a setter for each field.
macro_rules! register_type {
    ($type:ident $doc:literal {
        $($field:ident / $set:ident [$high:literal $(: $low:literal)?] $field_doc:literal,)*
    }) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $type(pub u32);

        impl $type {
            /// The fields by name.
            pub const FIELDS: &'static [(&'static str, $crate::bits::Bits)] = &[
                $((stringify!($field), $crate::reg::bits!($high $(: $low)?)),)*
            ];

            $($crate::reg::accessor! { $field / $set [$high $(: $low)?] $field_doc })*
        }
    };
}
pub(crate) use register_type;

macro_rules! bits {
    ($bit:literal) => {
        $crate::bits::Bits::new($bit, $bit)
    };
    ($high:literal : $low:literal) => {
        $crate::bits::Bits::new($high, $low)
    };
}
pub(crate) use bits;

macro_rules! accessor {
    ($field:ident / $set:ident [$bit:literal] $doc:literal) => {
        #[doc = $doc]
        pub const fn $field(self) -> bool {
            $crate::reg::bits!($bit).is_set(self.0)
        }

        #[doc = concat!("Sets: ", $doc)]
        #[must_use]
        pub const fn $set(self, value: bool) -> Self {
            let bits = $crate::reg::bits!($bit);
            Self(self.0 & !bits.mask() | bits.flag(value))
        }
    };
    ($field:ident / $set:ident [$high:literal : $low:literal] $doc:literal) => {
        #[doc = $doc]
        pub const fn $field(self) -> u32 {
            $crate::reg::bits!($high : $low).get(self.0)
        }

        #[doc = concat!("Sets: ", $doc, " `None` if the value does not fit.")]
        pub const fn $set(self, value: u32) -> Option<Self> {
            match $crate::reg::bits!($high : $low).replace(self.0, value) {
                Some(word) => Some(Self(word)),
                None => None,
            }
        }
    };
}
pub(crate) use accessor;
