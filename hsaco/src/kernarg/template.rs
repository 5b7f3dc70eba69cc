//! The fast path: all that can be decided before a launch is decided when a template is made.

use super::hidden::BLOCK_BYTES;
use super::{ArgLayout, Geometry, Hidden, Services};
use crate::error::ArgumentError;

/// Fills kernarg segments of one kernel without allocation.
#[derive(Clone, Debug)]
pub struct KernargTemplate {
    segment_bytes: usize,
    explicit: Box<[Slot]>,
    explicit_bytes: usize,
    /// There are bytes between explicit arguments that belong to none.
    has_gaps: bool,
    plan: Plan,
}

/// An explicit argument.
#[derive(Clone, Copy, Debug)]
struct Slot {
    offset: usize,
    size: usize,
}

/// How everything but explicit arguments is filled.
#[derive(Clone, Debug)]
enum Plan {
    Standard(Standard),
    General(General),
}

/// The shape that compilers give kernels of versions 5 and 6: 256 bytes of hidden arguments at
/// their usual offsets behind the explicit ones.
#[derive(Clone, Debug)]
struct Standard {
    hidden_at: usize,
    services: Box<[(usize, [u8; 8])]>,
    has_dynamic_lds: bool,
}

const HIDDEN_BYTES: usize = 256;
/// Block counts, group sizes and remainders lie together, ...
const GROUPS: core::ops::Range<usize> = 0..24;
/// ... and so do global offsets and the number of dimensions.
const GRID: core::ops::Range<usize> = 40..66;

/// Any other shape.
#[derive(Clone, Debug)]
struct General {
    /// The whole segment with the services in place, zero elsewhere.
    initial: Box<[u8]>,
    /// Copies from the geometry's block.
    patches: Box<[Patch]>,
    /// Hidden arguments of queue and module that lie between explicit ones; usually none.
    between: Box<[core::ops::Range<usize>]>,
}

#[derive(Clone, Copy, Debug)]
struct Patch {
    to: usize,
    from: usize,
    bytes: usize,
}

impl Standard {
    fn new(layout: &ArgLayout, services: &Services) -> Option<Self> {
        let hidden_at = layout.explicit_bytes().next_multiple_of(8);
        let is_usual = layout.segment_bytes() as usize == hidden_at as usize + HIDDEN_BYTES
            && layout.hidden().iter().all(|argument| {
                argument.offset == hidden_at + argument.kind.v5_offset()
                    && argument.size == argument.kind.bytes()
            });
        let covered = |range: &core::ops::Range<usize>| {
            let kinds = layout.hidden().iter().map(|argument| argument.kind);
            let inside = kinds.filter(|kind| range.contains(&(kind.v5_offset() as usize)));
            inside.map(|kind| kind.bytes() as usize).sum::<usize>() == range.len()
        };
        let mut values = Vec::new();
        for argument in layout.hidden().iter().filter(|argument| !argument.kind.is_per_launch()) {
            if argument.size != 8 {
                return None;
            }
            let value = services.value(argument.kind);
            if value != 0 {
                values.push((argument.kind.v5_offset() as usize, value.to_le_bytes()));
            }
        }
        (is_usual && covered(&GROUPS) && covered(&GRID)).then(|| Self {
            hidden_at: hidden_at as usize,
            services: values.into_boxed_slice(),
            has_dynamic_lds: layout.declares(Hidden::DynamicLdsSize),
        })
    }

    #[inline]
    fn fill(&self, segment: &mut [u8], geometry: &Geometry) -> Option<()> {
        let block = geometry.block();
        let (explicit, hidden) = segment.split_at_mut_checked(self.hidden_at)?;
        // The gap between explicit and hidden arguments is less than 8 bytes.
        if let Some(gap) = explicit.last_chunk_mut::<8>() {
            *gap = [0; 8];
        }
        let hidden = hidden.first_chunk_mut::<HIDDEN_BYTES>()?;
        *hidden = [0; HIDDEN_BYTES];
        hidden.get_mut(GROUPS)?.copy_from_slice(block.get(GROUPS)?);
        hidden.get_mut(GRID)?.copy_from_slice(block.get(GRID)?);
        if self.has_dynamic_lds {
            const DYNAMIC_LDS: core::ops::Range<usize> = 120..124;
            hidden.get_mut(DYNAMIC_LDS)?.copy_from_slice(block.get(DYNAMIC_LDS)?);
        }
        for (offset, value) in &self.services {
            *hidden.get_mut(*offset..)?.first_chunk_mut::<8>()? = *value;
        }
        Some(())
    }
}

impl General {
    fn new(layout: &ArgLayout, services: &Services) -> Self {
        let mut initial = vec![0_u8; layout.segment_bytes() as usize].into_boxed_slice();
        let mut patches: Vec<Patch> = Vec::new();
        let mut between = Vec::new();
        let mut hidden = layout.hidden().to_vec();
        hidden.sort_unstable_by_key(|argument| argument.offset);
        for argument in hidden {
            let to = argument.offset as usize;
            let bytes = argument.kind.bytes() as usize;
            let from = argument.kind.v5_offset() as usize;
            if argument.kind.is_per_launch() {
                match patches.last_mut() {
                    Some(last) if last.to + last.bytes == to && last.from + last.bytes == from => {
                        last.bytes += bytes;
                    }
                    _ => patches.push(Patch { to, from, bytes }),
                }
            } else if let Some(place) = initial.get_mut(to..to + bytes) {
                let value = services.value(argument.kind).to_le_bytes();
                for (byte, new) in place.iter_mut().zip(value) {
                    *byte = new;
                }
                if argument.offset < layout.explicit_bytes() {
                    between.push(to..(argument.offset + argument.size) as usize);
                }
            }
        }
        Self { initial, patches: patches.into_boxed_slice(), between: between.into_boxed_slice() }
    }

    #[inline]
    fn fill(&self, segment: &mut [u8], geometry: &Geometry) -> Option<()> {
        segment.get_mut(..self.initial.len())?.copy_from_slice(&self.initial);
        self.fill_hidden(segment, geometry)
    }

    #[inline]
    fn fill_hidden(&self, segment: &mut [u8], geometry: &Geometry) -> Option<()> {
        let block: &[u8; BLOCK_BYTES] = geometry.block();
        for patch in &self.patches {
            let place = segment.get_mut(patch.to..)?.get_mut(..patch.bytes)?;
            place.copy_from_slice(block.get(patch.from..)?.get(..patch.bytes)?);
        }
        Some(())
    }
}

impl KernargTemplate {
    pub(super) fn new(layout: &ArgLayout, services: &Services) -> Self {
        let plan = Standard::new(layout, services)
            .map_or_else(|| Plan::General(General::new(layout, services)), Plan::Standard);
        let explicit = layout.explicit().iter();
        let used: u32 = explicit.clone().map(|argument| argument.size).sum();
        Self {
            segment_bytes: layout.segment_bytes() as usize,
            explicit: explicit
                .map(|argument| Slot {
                    offset: argument.offset as usize,
                    size: argument.size as usize,
                })
                .collect(),
            explicit_bytes: layout.explicit_bytes() as usize,
            has_gaps: used != layout.explicit_bytes(),
            plan,
        }
    }

    /// Bytes that [`Self::write`] writes.
    pub const fn segment_bytes(&self) -> usize {
        self.segment_bytes
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
        let Some(segment) = segment.get_mut(..self.segment_bytes) else {
            return Err(self.space_error(segment.len()));
        };
        let filled = match &self.plan {
            Plan::Standard(plan) => {
                if self.has_gaps
                    && let Some(explicit) = segment.get_mut(..plan.hidden_at)
                {
                    explicit.fill(0);
                }
                plan.fill(segment, geometry)
            }
            Plan::General(plan) => plan.fill(segment, geometry),
        };
        if filled.is_none() {
            return Err(self.space_error(segment.len()));
        }
        for (index, (slot, value)) in self.explicit.iter().zip(arguments).enumerate() {
            let place = segment.get_mut(slot.offset..).and_then(|rest| rest.get_mut(..slot.size));
            let Some(place) = place.filter(|place| place.len() == value.len()) else {
                return Err(self.size_error(index, value.len()));
            };
            if !copy_fixed::<8>(place, value) && !copy_fixed::<4>(place, value) {
                place.copy_from_slice(value);
            }
        }
        Ok(())
    }

    /// Writes the segment of a launch whose explicit arguments are already packed at their offsets,
    /// gaps included: the quickest way, above all with arguments of a size known when compiling.
    ///
    /// Exactly the first [`Self::segment_bytes`] of `segment` are written.
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
            return Err(self.packed_error(arguments.len()));
        }
        let found = segment.len();
        let written = segment.get_mut(..self.segment_bytes).and_then(|segment| match &self.plan {
            Plan::Standard(plan) => {
                plan.fill(segment, geometry)?;
                segment.get_mut(..arguments.len())?.copy_from_slice(arguments);
                Some(())
            }
            Plan::General(plan) => write_general(plan, segment, arguments, geometry),
        });
        written.ok_or_else(|| self.space_error(found))
    }

    #[cold]
    fn count_error(&self, given: usize) -> ArgumentError {
        ArgumentError::Count { given, expected: self.explicit.len() }
    }

    #[cold]
    fn space_error(&self, found: usize) -> ArgumentError {
        ArgumentError::Space { needed: self.segment_bytes, found }
    }

    #[cold]
    fn packed_error(&self, given: usize) -> ArgumentError {
        ArgumentError::PackedSize { given, expected: self.explicit_bytes }
    }

    #[cold]
    fn size_error(&self, index: usize, given: usize) -> ArgumentError {
        let size = self.explicit.get(index).map_or(0, |slot| slot.size);
        ArgumentError::Size { index, given, expected: u32::try_from(size).unwrap_or(u32::MAX) }
    }
}

/// Copies if both have `N` bytes: a plain move instead of a call.
#[inline]
fn copy_fixed<const N: usize>(place: &mut [u8], value: &[u8]) -> bool {
    match (<&mut [u8; N]>::try_from(place), <&[u8; N]>::try_from(value)) {
        (Ok(place), Ok(value)) => {
            *place = *value;
            true
        }
        _ => false,
    }
}

/// Packed arguments may cover hidden ones that lie between them, so those come last.
fn write_general(
    plan: &General,
    segment: &mut [u8],
    arguments: &[u8],
    geometry: &Geometry,
) -> Option<()> {
    let (explicit, rest) = segment.split_at_mut_checked(arguments.len())?;
    explicit.copy_from_slice(arguments);
    rest.copy_from_slice(plan.initial.get(arguments.len()..)?);
    for service in &plan.between {
        let value = plan.initial.get(service.clone())?;
        segment.get_mut(service.clone())?.copy_from_slice(value);
    }
    plan.fill_hidden(segment, geometry)
}
