//! The fast path: all that can be decided before a launch is decided when a template is made.

use super::hidden::BLOCK_BYTES;
use super::{ArgLayout, Geometry, Services};
use crate::error::ArgumentError;

/// Fills kernarg segments of one kernel without allocation.
#[derive(Clone, Debug)]
pub struct KernargTemplate {
    /// The whole segment with the services in place, zero elsewhere.
    initial: Box<[u8]>,
    explicit: Box<[Slot]>,
    explicit_bytes: usize,
    /// Copies from the geometry's block.
    copies: Box<[Patch]>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    offset: usize,
    size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Patch {
    to: usize,
    from: usize,
    bytes: usize,
}

impl KernargTemplate {
    pub(super) fn new(layout: &ArgLayout, services: &Services) -> Self {
        let mut initial = vec![0_u8; layout.segment_bytes() as usize].into_boxed_slice();
        let mut copies: Vec<Patch> = Vec::new();
        let mut hidden = layout.hidden().to_vec();
        hidden.sort_unstable_by_key(|argument| argument.offset);
        for argument in hidden {
            let to = argument.offset as usize;
            let bytes = argument.kind.bytes() as usize;
            let from = argument.kind.v5_offset() as usize;
            if argument.kind.is_per_launch() {
                match copies.last_mut() {
                    Some(last) if last.to + last.bytes == to && last.from + last.bytes == from => {
                        last.bytes += bytes;
                    }
                    _ => copies.push(Patch { to, from, bytes }),
                }
            } else if let Some(place) = initial.get_mut(to..to + bytes) {
                let value = services.value(argument.kind).to_le_bytes();
                for (byte, new) in place.iter_mut().zip(value) {
                    *byte = new;
                }
            }
        }
        let explicit = layout.explicit().iter();
        Self {
            initial,
            explicit: explicit
                .map(|argument| Slot {
                    offset: argument.offset as usize,
                    size: argument.size as usize,
                })
                .collect(),
            explicit_bytes: layout.explicit_bytes() as usize,
            copies: copies.into_boxed_slice(),
        }
    }

    /// Bytes that [`Self::write`] writes.
    pub fn segment_bytes(&self) -> usize {
        self.initial.len()
    }

    /// Writes the segment of a launch: one byte string per explicit argument.
    ///
    /// Exactly the first [`Self::segment_bytes`] of `segment` are written. On an error nothing that
    /// was written may be launched.
    ///
    /// # Errors
    /// [`ArgumentError::Space`], [`ArgumentError::Count`], [`ArgumentError::Size`].
    #[inline]
    pub fn write(
        &self,
        segment: &mut [u8],
        arguments: &[&[u8]],
        geometry: &Geometry,
    ) -> Result<(), ArgumentError> {
        if arguments.len() != self.explicit.len() {
            return Err(self.count_error(arguments.len()));
        }
        let segment = self.start(segment, geometry)?;
        for (index, (slot, value)) in self.explicit.iter().zip(arguments).enumerate() {
            let place = segment.get_mut(slot.offset..).and_then(|rest| rest.get_mut(..slot.size));
            let Some(place) = place.filter(|place| place.len() == value.len()) else {
                return Err(self.size_error(index, value.len()));
            };
            copy_short(place, value);
        }
        Ok(())
    }

    /// Writes the segment of a launch whose explicit arguments are already packed at their offsets.
    ///
    /// # Errors
    /// [`ArgumentError::Space`], [`ArgumentError::PackedSize`].
    #[inline]
    pub fn write_packed(
        &self,
        segment: &mut [u8],
        arguments: &[u8],
        geometry: &Geometry,
    ) -> Result<(), ArgumentError> {
        if arguments.len() != self.explicit_bytes {
            return Err(ArgumentError::PackedSize {
                given: arguments.len(),
                expected: self.explicit_bytes,
            });
        }
        let segment = self.start(segment, geometry)?;
        if let Some(place) = segment.get_mut(..arguments.len()) {
            place.copy_from_slice(arguments);
        }
        // Hidden arguments may lie between explicit ones; the copy above may have covered them.
        self.copy_hidden(segment, geometry);
        Ok(())
    }

    #[inline]
    fn start<'s>(
        &self,
        segment: &'s mut [u8],
        geometry: &Geometry,
    ) -> Result<&'s mut [u8], ArgumentError> {
        let found = segment.len();
        let Some(segment) = segment.get_mut(..self.initial.len()) else {
            return Err(ArgumentError::Space { needed: self.initial.len(), found });
        };
        segment.copy_from_slice(&self.initial);
        self.copy_hidden(segment, geometry);
        Ok(segment)
    }

    #[inline]
    fn copy_hidden(&self, segment: &mut [u8], geometry: &Geometry) {
        let block: &[u8; BLOCK_BYTES] = geometry.block();
        for copy in &self.copies {
            let place = segment.get_mut(copy.to..).and_then(|rest| rest.get_mut(..copy.bytes));
            let value = block.get(copy.from..).and_then(|rest| rest.get(..copy.bytes));
            if let (Some(place), Some(value)) = (place, value) {
                copy_short(place, value);
            }
        }
    }

    #[cold]
    fn count_error(&self, given: usize) -> ArgumentError {
        ArgumentError::Count { given, expected: self.explicit.len() }
    }

    #[cold]
    fn size_error(&self, index: usize, given: usize) -> ArgumentError {
        let size = self.explicit.get(index).map_or(0, |slot| slot.size);
        ArgumentError::Size { index, given, expected: u32::try_from(size).unwrap_or(u32::MAX) }
    }
}

/// Copies equal lengths; the usual ones become plain moves instead of calls.
#[inline]
fn copy_short(place: &mut [u8], value: &[u8]) {
    fn fixed<const N: usize>(place: &mut [u8], value: &[u8]) -> bool {
        match (<&mut [u8; N]>::try_from(place), <&[u8; N]>::try_from(value)) {
            (Ok(place), Ok(value)) => {
                *place = *value;
                true
            }
            _ => false,
        }
    }
    let done = match place.len() {
        8 => fixed::<8>(place, value),
        4 => fixed::<4>(place, value),
        24 => fixed::<24>(place, value),
        26 => fixed::<26>(place, value),
        _ => false,
    };
    if !done {
        for (byte, new) in place.iter_mut().zip(value) {
            *byte = *new;
        }
    }
}
