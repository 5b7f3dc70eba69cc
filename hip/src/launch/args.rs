//! Arguments of a launch: values, checked against what the kernel takes, at their places.

use hsaco::ArgumentError;
use pm4::GpuAddr;
use zerocopy::{Immutable, IntoBytes};

use crate::memory::Memory;

/// Where an explicit argument goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Bytes from the start of the kernel arguments.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

impl Slot {
    /// Its place in the kernel arguments.
    #[inline]
    pub fn place(self, packed: &mut [u8]) -> Option<&mut [u8]> {
        packed.get_mut(self.offset as usize..)?.get_mut(..self.size as usize)
    }
}

/// All explicit arguments of a launch.
///
/// Tuples of up to sixteen [`Argument`]s are; so is a slice of byte strings, one per argument, and
/// [`Packed`]. A caller with arguments of its own shape implements it.
pub trait Arguments {
    /// Writes each argument to its place in `packed`, which holds the explicit arguments and is zero
    /// between them. `slots` are the kernel's, in order.
    ///
    /// # Errors
    /// [`ArgumentError`] where count or sizes differ.
    fn pack(&self, slots: &[Slot], packed: &mut [u8]) -> Result<(), ArgumentError>;

    /// The sizes of the arguments where they are known when compiling: a launch of a kernel with the
    /// same is checked by one comparison.
    #[inline]
    fn shape(&self) -> Option<Shape> {
        None
    }

    /// Writes the arguments at their natural places. Called only where [`Arguments::shape`] is the
    /// kernel's.
    #[inline]
    fn put_naturally(&self, packed: &mut [u8; MAX_NATURAL]) {
        let _ = packed;
    }
}

/// Bytes of sixteen arguments at most.
pub const MAX_NATURAL: usize = 128;

/// Sizes of up to sixteen arguments of 1, 2, 4 or 8 bytes, each at the next multiple of its size: two
/// bits for each above their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(u64);

impl Shape {
    /// No arguments.
    pub const EMPTY: Self = Self(0);

    /// The shape with another argument; `None` for a size or a number that no shape has.
    #[inline]
    pub const fn with(self, bytes: usize) -> Option<Self> {
        let count = self.0 & 0xff;
        let size = match bytes {
            1 => 0,
            2 => 1,
            4 => 2,
            8 => 3,
            _ => return None,
        };
        if count == 16 {
            return None;
        }
        Some(Self((self.0 | size << (8 + 2 * count)) + 1))
    }

    /// The shape of a kernel's arguments, if they have one.
    pub(crate) fn of(slots: &[Slot]) -> Option<Self> {
        let mut shape = Self::EMPTY;
        let mut end = 0_u32;
        for slot in slots {
            shape = shape.with(slot.size as usize)?;
            let offset = end.next_multiple_of(slot.size);
            if slot.offset != offset {
                return None;
            }
            end = offset + slot.size;
        }
        Some(shape)
    }
}

/// One argument: its bytes are those that the kernel sees.
pub trait Argument {
    /// Bytes of every value of the type; 0 where they differ.
    const SIZE: usize = 0;

    /// Bytes of the value.
    fn bytes(&self) -> usize;

    /// Writes the value to `place` if that has exactly its size.
    fn put(&self, place: &mut [u8]) -> bool;
}

/// Writes `N` bytes where there are exactly that many: a plain store.
#[inline]
fn put<const N: usize>(place: &mut [u8], value: [u8; N]) -> bool {
    match <&mut [u8; N]>::try_from(place) {
        Ok(place) => {
            *place = value;
            true
        }
        Err(_) => false,
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Argument for $number {
            const SIZE: usize = size_of::<Self>();
            fn bytes(&self) -> usize {
                size_of::<Self>()
            }
            #[inline]
            fn put(&self, place: &mut [u8]) -> bool {
                put(place, self.to_le_bytes())
            }
        }
    )*};
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

/// An address in GPU memory.
impl Argument for GpuAddr {
    const SIZE: usize = 8;

    fn bytes(&self) -> usize {
        8
    }

    #[inline]
    fn put(&self, place: &mut [u8]) -> bool {
        put(place, self.get().to_le_bytes())
    }
}

/// Its address.
impl Argument for &Memory {
    const SIZE: usize = 8;

    fn bytes(&self) -> usize {
        8
    }

    #[inline]
    fn put(&self, place: &mut [u8]) -> bool {
        self.addr().put(place)
    }
}

/// A struct or array by value, as the kernel declares it.
#[derive(Clone, Copy, Debug)]
pub struct ByValue<T>(pub T);

impl<T: IntoBytes + Immutable> Argument for ByValue<T> {
    fn bytes(&self) -> usize {
        size_of::<T>()
    }

    #[inline]
    fn put(&self, place: &mut [u8]) -> bool {
        self.0.write_to(place).is_ok()
    }
}

impl Argument for &[u8] {
    fn bytes(&self) -> usize {
        self.len()
    }

    #[inline]
    fn put(&self, place: &mut [u8]) -> bool {
        self.write_to(place).is_ok()
    }
}

/// Arguments that the caller has packed already at their offsets, with what lies between them.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a>(pub &'a [u8]);

impl Arguments for Packed<'_> {
    #[inline]
    fn pack(&self, _: &[Slot], packed: &mut [u8]) -> Result<(), ArgumentError> {
        if self.0.write_to(packed).is_err() {
            return Err(ArgumentError::PackedSize { given: self.0.len(), expected: packed.len() });
        }
        Ok(())
    }
}

#[cold]
fn count(given: usize, slots: &[Slot]) -> ArgumentError {
    ArgumentError::Count { given, expected: slots.len() }
}

#[cold]
fn size(index: usize, given: usize, slot: Slot) -> ArgumentError {
    ArgumentError::Size { index, given, expected: slot.size }
}

impl Arguments for [&[u8]] {
    fn pack(&self, slots: &[Slot], packed: &mut [u8]) -> Result<(), ArgumentError> {
        if self.len() != slots.len() {
            return Err(count(self.len(), slots));
        }
        for (index, (argument, slot)) in self.iter().zip(slots).enumerate() {
            if !slot.place(packed).is_some_and(|place| argument.put(place)) {
                return Err(size(index, argument.len(), *slot));
            }
        }
        Ok(())
    }
}

impl<T: Arguments + ?Sized> Arguments for &T {
    #[inline]
    fn pack(&self, slots: &[Slot], packed: &mut [u8]) -> Result<(), ArgumentError> {
        T::pack(self, slots, packed)
    }

    #[inline]
    fn shape(&self) -> Option<Shape> {
        T::shape(self)
    }

    #[inline]
    fn put_naturally(&self, packed: &mut [u8; MAX_NATURAL]) {
        T::put_naturally(self, packed);
    }
}

macro_rules! tuples {
    ($($name:ident $slot:ident $index:literal,)*) => {
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            #[inline]
            #[allow(non_snake_case, unused_variables)]
            fn pack(&self, slots: &[Slot], packed: &mut [u8]) -> Result<(), ArgumentError> {
                let ($($name,)*) = self;
                const GIVEN: usize = 0 $(+ { let _ = $index; 1 })*;
                let &[$($slot),*] = slots else { return Err(count(GIVEN, slots)) };
                $(if !$slot.place(packed).is_some_and(|place| $name.put(place)) {
                    return Err(size($index, $name.bytes(), $slot));
                })*
                Ok(())
            }

            #[inline]
            #[allow(unused_mut)]
            fn shape(&self) -> Option<Shape> {
                const {
                    let mut shape = Some(Shape::EMPTY);
                    $(shape = match shape {
                        Some(known) => known.with(<$name as Argument>::SIZE),
                        None => None,
                    };)*
                    shape
                }
            }

            #[inline]
            #[allow(non_snake_case, unused_assignments, unused_mut, unused_variables)]
            fn put_naturally(&self, packed: &mut [u8; MAX_NATURAL]) {
                let ($($name,)*) = self;
                let mut at = 0_usize;
                $(
                    let size = $name::SIZE.max(1);
                    at = at.next_multiple_of(size);
                    if let Some(place) = packed.get_mut(at..).and_then(|rest| rest.get_mut(..size)) {
                        $name.put(place);
                    }
                    at += size;
                )*
            }
        }
    };
}

macro_rules! all_tuples {
    ([$($done:tt)*]) => { tuples!($($done)*); };
    ([$($done:tt)*] $name:ident $slot:ident $index:literal, $($rest:tt)*) => {
        tuples!($($done)*);
        all_tuples!([$($done)* $name $slot $index,] $($rest)*);
    };
}

all_tuples!([] A a 0, B b 1, C c 2, D d 3, E e 4, F f 5, G g 6, H h 7, I i 8, J j 9, K k 10,
    L l 11, M m 12, N n 13, O o 14, P p 15,);

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: [Slot; 3] =
        [Slot { offset: 0, size: 8 }, Slot { offset: 8, size: 4 }, Slot { offset: 16, size: 2 }];

    fn pack(arguments: impl Arguments) -> Result<[u8; 18], ArgumentError> {
        let mut packed = [0; 18];
        arguments.pack(&SLOTS, &mut packed).map(|()| packed)
    }

    #[test]
    fn tuples_byte_strings_and_packed_bytes_give_the_same() {
        let mut expected = [0; 18];
        expected[..8].copy_from_slice(&0x1122_3344_5566_7788_u64.to_le_bytes());
        expected[8..12].copy_from_slice(&1.5_f32.to_le_bytes());
        expected[16..].copy_from_slice(&[7, 0]);
        assert_eq!(pack((0x1122_3344_5566_7788_u64, 1.5_f32, 7_i16)), Ok(expected));
        let strings: [&[u8]; 3] = [&expected[..8], &expected[8..12], &expected[16..]];
        assert_eq!(pack(&strings[..]), Ok(expected));
        assert_eq!(pack(Packed(&expected)), Ok(expected));
        assert_eq!(
            pack((GpuAddr::new(0x1122_3344_5566_7788), 1.5_f32, ByValue([7_u8, 0]))),
            Ok(expected)
        );
    }

    #[test]
    fn a_shape_is_that_of_slots_at_their_natural_places() {
        let arguments = (0x1122_3344_5566_7788_u64, 1.5_f32, 7_i16);
        let natural = [
            Slot { offset: 0, size: 8 },
            Slot { offset: 8, size: 4 },
            Slot { offset: 12, size: 2 },
        ];
        assert_eq!(arguments.shape(), Shape::of(&natural));
        assert_ne!(arguments.shape(), Shape::of(&SLOTS));
        assert_ne!(arguments.shape(), (1_u64, 1.5_f32, 7_i32).shape());
        assert_ne!(arguments.shape(), (1_u64, 1.5_f32).shape());
        assert_eq!((ByValue([1_u8]), 2_u8).shape(), None);
        assert_eq!(Shape::of(&[Slot { offset: 0, size: 12 }]), None);
        let mut packed = [0; MAX_NATURAL];
        arguments.put_naturally(&mut packed);
        let mut expected = [0; 14];
        arguments.pack(&natural, &mut expected).unwrap();
        assert_eq!(packed[..14], expected);
    }

    #[test]
    fn a_wrong_count_is_refused_with_both_numbers() {
        let error = ArgumentError::Count { given: 2, expected: 3 };
        assert_eq!(pack((1_u64, 2_u32)), Err(error));
        assert_eq!(pack(&[&[0_u8; 8][..], &[0; 4]][..]), Err(error));
        assert_eq!(pack(()), Err(ArgumentError::Count { given: 0, expected: 3 }));
        assert_eq!(().pack(&[], &mut []), Ok(()));
    }

    #[test]
    fn a_wrong_size_is_refused_by_index() {
        let error = ArgumentError::Size { index: 1, given: 8, expected: 4 };
        assert_eq!(pack((1_u64, 2_u64, 3_u16)), Err(error));
        let strings: [&[u8]; 3] = [&[0; 8], &[0; 8], &[0; 2]];
        assert_eq!(pack(&strings[..]), Err(error));
        let error = ArgumentError::PackedSize { given: 17, expected: 18 };
        assert_eq!(pack(Packed(&[0; 17])), Err(error));
    }
}
