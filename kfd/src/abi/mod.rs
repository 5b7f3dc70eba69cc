//! The ioctl interface of `/dev/kfd`, as KFD 1.17 (Linux 6.12) defines it.
//!
//! Plain data: the arguments of every ioctl, the records behind their pointers, and every constant.
//! No driver method takes or returns these types; software KFDs and recorders need them.
//!
//! Names follow the C header: `kfd_ioctl_create_queue_args` is [`CreateQueueArgs`], fields keep
//! their C names, and every constant has its C name as a documentation alias. Values that the
//! kernel may extend are open newtypes, so any bit pattern is a value of every type here.
//!
//! # Source
//! include/uapi/linux/kfd_ioctl.h and kfd_sysfs.h, Linux 6.12.117; docs/ABI.md §ioctl. The package
//! `kfd-header-check` compares all of it with what a C compiler makes of those headers.

/// Asserts a struct's layout at compile time and records it for the comparison with C.
///
/// `field @ offset` is a field that C names alike; `field as "x.y" @ offset` one that C names
/// otherwise. `rust_only` lists fields that C does not name, `members` the members of the C union
/// in their place, or a flexible array.
macro_rules! abi_layout {
    (
        $name:ident = $c_name:literal, size = $size:literal,
        { $($field:ident $(as $c_field:literal)? @ $offset:literal),* $(,)? }
        $(, rust_only { $($hidden:ident @ $hidden_offset:literal),+ $(,)? })?
        $(, members { $($member:literal: $member_type:ty, @ $member_offset:literal);+ $(;)? })?
        $(,)?
    ) => {
        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
            $($(assert!(core::mem::offset_of!($name, $hidden) == $hidden_offset);)+)?
            $($(assert!($member_offset + size_of::<$member_type>() <= $size);)+)?
        };
        impl $crate::abi::AbiStruct for $name {
            const LAYOUT: $crate::abi::StructLayout = $crate::abi::StructLayout {
                c_name: $c_name,
                bytes: $size,
                fields: &[
                    $($crate::abi::FieldLayout {
                        c_name: abi_layout!(@name $field $($c_field)?),
                        offset: $offset,
                        bytes: $crate::abi::field_bytes(|s: &$name| &s.$field),
                    },)*
                    $($($crate::abi::FieldLayout {
                        c_name: $member,
                        offset: $member_offset,
                        bytes: size_of::<$member_type>(),
                    },)+)?
                ],
            };
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $c_field:literal) => { $c_field };
}

/// A value that the kernel may give meanings we do not know: a newtype with named constants.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($raw:ty);
        $($(#[$const_meta:meta])* $const:ident = $value:literal, $c_name:literal;)+
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(transparent)]
        pub struct $name(pub $raw);

        impl $name {
            $($(#[$const_meta])* #[doc(alias = $c_name)] pub const $const: Self = Self($value);)+

            /// Name of the constant with this value, if it has one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                [$((Self::$const, stringify!($const))),+]
                    .iter()
                    .find_map(|&(value, name)| (value == self).then_some(name))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{}::{name}", stringify!($name)),
                    None => write!(f, "{}({:#x})", stringify!($name), self.0),
                }
            }
        }

        impl $crate::abi::AbiConstants for $name {
            const CONSTANTS: &'static [$crate::abi::Constant] = &[
                $($crate::abi::Constant { c_name: $c_name, value: $value },)+
            ];
        }
    };
}

/// A word of flags. Bits we do not know are kept.
macro_rules! open_flags {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($raw:ty);
        $($(#[$($const_meta:tt)*])* $const:ident = $value:expr, $c_name:literal;)+
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(transparent)]
        pub struct $name($raw);

        bitflags::bitflags! {
            impl $name: $raw {
                $($(#[$($const_meta)*])* #[doc(alias = $c_name)] const $const = $value;)+
                const _ = !0;
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}(", stringify!($name))?;
                bitflags::parser::to_writer(self, &mut *f)?;
                f.write_str(")")
            }
        }

        impl $crate::abi::AbiConstants for $name {
            const CONSTANTS: &'static [$crate::abi::Constant] = &[
                $($crate::abi::Constant { c_name: $c_name, value: $value },)+
            ];
        }
    };
}

/// Plain constants of one file.
macro_rules! constants {
    ($($(#[$meta:meta])* pub const $name:ident: $type:ty = $value:expr, $c_name:literal;)+) => {
        $($(#[$meta])* #[doc(alias = $c_name)] pub const $name: $type = $value;)+

        pub(super) const CONSTANTS: &[$crate::abi::Constant] = &[
            $($crate::abi::Constant { c_name: $c_name, value: $name as u64 },)+
        ];
    };
}

/// Typed views of a C union that is an array of bytes here.
macro_rules! union_members {
    ($owner:ident.$field:ident { $($(#[$meta:meta])* $member:ident / $setter:ident: $type:ty;)+ }) => {
        impl $owner {
            $(
                $(#[$meta])*
                #[must_use]
                pub fn $member(&self) -> $type {
                    $crate::abi::read_prefix(&self.$field)
                }

                #[doc = concat!("Writes `", stringify!($member), "` and zeroes the rest of the union.")]
                pub fn $setter(&mut self, value: $type) {
                    $crate::abi::write_prefix(&mut self.$field, &value);
                }
            )+
        }
    };
}

mod criu;
mod debug;
mod debug_args;
mod event;
mod memory;
mod process;
mod queue;
pub mod request;
mod smi;
mod svm;
mod sysfs;
mod table;

pub use criu::*;
pub use debug::*;
pub use debug_args::*;
pub use event::*;
pub use memory::*;
pub use process::*;
pub use queue::*;
pub use smi::*;
pub use svm::*;
pub use sysfs::*;
pub use table::{constants, layouts};

use crate::KfdVersion;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The version that these types mirror.
#[doc(alias = "KFD_IOCTL_MAJOR_VERSION")]
#[doc(alias = "KFD_IOCTL_MINOR_VERSION")]
pub const MIRRORED: KfdVersion = KfdVersion { major: 1, minor: 17 };

/// A struct of the C header.
pub trait AbiStruct {
    /// Where C puts its fields.
    const LAYOUT: StructLayout;
}

/// Constants of the C header that belong to one type.
pub trait AbiConstants {
    /// All of them.
    const CONSTANTS: &'static [Constant];
}

/// Layout of one struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructLayout {
    /// Tag in C.
    pub c_name: &'static str,
    /// Size in bytes.
    pub bytes: usize,
    /// Fields that C names, members of anonymous unions included.
    pub fields: &'static [FieldLayout],
}

/// Layout of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// Name in C; a path where the field is in a nested struct without a tag.
    pub c_name: &'static str,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes, 0 for a flexible array.
    pub bytes: usize,
}

/// One constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name in C.
    pub c_name: &'static str,
    /// Value, zero-extended from its own width.
    pub value: u64,
}

const fn field_bytes<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// Reads a union member from the bytes of the union; zero where the union is too short, which the
/// layout assertions rule out.
fn read_prefix<T: FromBytes + Default>(bytes: &[u8]) -> T {
    T::read_from_prefix(bytes).map_or_else(|_| T::default(), |(value, _)| value)
}

/// Writes a union member and zeroes the rest of the union.
fn write_prefix<T: IntoBytes + Immutable>(bytes: &mut [u8], value: &T) {
    let source = value.as_bytes().iter().copied().chain(std::iter::repeat(0));
    bytes.iter_mut().zip(source).for_each(|(to, from)| *to = from);
}
