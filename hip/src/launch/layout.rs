//! [`Layout`]: how the kernel arguments of a launch are made, decided when its module is loaded.

use hsaco::kernarg::Hidden;
use hsaco::{ArgLayout, Geometry, KernargTemplate, Services};

use super::args::{Arguments, MAX_NATURAL, Shape, Slot};
use super::grid::Size;
use crate::error::LaunchProblem;

/// Words of the hidden arguments that compilers give kernels of code object versions 5 and 6.
const HIDDEN_WORDS: usize = 32;
const HIDDEN_BYTES: usize = 8 * HIDDEN_WORDS;
/// Block counts, group sizes and remainders; global offsets and dimensions.
/// docs/ABI.md §Kernel arguments.
const PER_LAUNCH: [std::ops::Range<u32>; 2] = [0..24, 40..66];
/// Word of the dynamic LDS size.
const DYNAMIC_LDS_WORD: usize = 15;
/// Word of the dimensions.
const DIMENSIONS_WORD: usize = 8;

/// How everything but explicit arguments is made.
#[derive(Debug)]
enum Hidden5 {
    /// There are none.
    None,
    /// All at their usual places, this far into the segment.
    Usual { at: usize, image: Box<[u64; HIDDEN_WORDS]>, dynamic_lds: bool },
    /// Any other shape.
    Other(KernargTemplate),
}

/// The kernel arguments of a kernel.
#[derive(Debug)]
pub(crate) struct Layout {
    slots: Box<[Slot]>,
    shape: Option<Shape>,
    explicit_bytes: usize,
    /// In whole words.
    explicit_words_bytes: usize,
    /// There are bytes in those words that belong to no argument.
    has_gaps: bool,
    /// Bytes of the ring that a launch takes: whole words.
    ring_bytes: u32,
    align: u32,
    staging_bytes: usize,
    hidden: Hidden5,
    /// Where the address of the queue goes, if the kernel asks for it.
    queue_at: Option<usize>,
}

/// Bytes of the segment in the ring are whole words.
const WORD: usize = 8;

impl Layout {
    /// # Errors
    /// [`LaunchProblem::Arguments`] for an argument that cannot be passed.
    pub fn new(layout: &ArgLayout, services: &Services) -> Result<Self, LaunchProblem> {
        let template = layout.template(services)?;
        let slot = |argument: &hsaco::kernarg::ExplicitArg| Slot {
            offset: argument.offset,
            size: argument.size,
        };
        let queue = layout.hidden().iter().find(|argument| argument.kind == Hidden::QueuePtr);
        let hidden = if layout.hidden().is_empty()
            && (layout.explicit_bytes() as usize).next_multiple_of(WORD)
                >= layout.segment_bytes() as usize
        {
            Hidden5::None
        } else {
            Self::usual(layout, &template).unwrap_or(Hidden5::Other(template))
        };
        let slots: Box<[Slot]> = layout.explicit().iter().map(slot).collect();
        let explicit_bytes = layout.explicit_bytes() as usize;
        let explicit_words_bytes = explicit_bytes.next_multiple_of(WORD);
        let used: u32 = slots.iter().map(|slot| slot.size).sum();
        let ring_bytes = layout.segment_bytes().next_multiple_of(8);
        Ok(Self {
            shape: Shape::of(&slots),
            slots,
            explicit_bytes,
            explicit_words_bytes,
            has_gaps: used as usize != explicit_words_bytes,
            ring_bytes,
            staging_bytes: ring_bytes as usize + explicit_words_bytes + MAX_NATURAL,
            // Never less than the K cache's line, so that no two launches share one.
            align: layout.segment_align().max(64),
            hidden,
            queue_at: queue.map(|argument| argument.offset as usize),
        })
    }

    fn usual(layout: &ArgLayout, template: &KernargTemplate) -> Option<Hidden5> {
        let at = layout.explicit_bytes().next_multiple_of(8);
        let usual = layout.segment_bytes() as usize == at as usize + HIDDEN_BYTES
            && layout.hidden().iter().all(|argument| {
                argument.offset == at + argument.kind.v5_offset()
                    && argument.size == argument.kind.bytes()
            });
        // Each of these has to be declared: what is not declared stays zero.
        let declared = |range: &std::ops::Range<u32>| {
            let kinds = layout.hidden().iter().map(|argument| argument.kind);
            let inside = kinds.filter(|kind| range.contains(&kind.v5_offset()));
            inside.map(Hidden::bytes).sum::<u32>() == range.end - range.start
        };
        if !usual || !PER_LAUNCH.iter().all(declared) {
            return None;
        }
        // The template of a launch of one work-item, from which the constant words come.
        let one = Geometry::new([1; 3], [1; 3], 1).ok()?;
        let explicit = vec![0; layout.explicit_bytes() as usize];
        let mut segment = vec![0; layout.segment_bytes() as usize];
        template.write_packed(&mut segment, &explicit, &one).ok()?;
        let hidden = segment.get(at as usize..)?.first_chunk::<HIDDEN_BYTES>()?;
        let mut image = Box::new([0; HIDDEN_WORDS]);
        for (word, bytes) in image.iter_mut().zip(hidden.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let dynamic_lds = layout.declares(Hidden::DynamicLdsSize);
        Some(Hidden5::Usual { at: at as usize, image, dynamic_lds })
    }

    /// The explicit arguments' places.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Bytes that a launch takes of the ring, whole words.
    #[inline]
    pub const fn ring_bytes(&self) -> u32 {
        self.ring_bytes
    }

    /// Alignment in the ring, bytes.
    #[inline]
    pub const fn align(&self) -> u32 {
        self.align
    }

    /// Bytes of scratch memory that [`Self::fill`] works in.
    #[inline]
    pub const fn staging_bytes(&self) -> usize {
        self.staging_bytes
    }

    /// Makes the segment of a launch at the start of `staging`: explicit arguments, and each hidden one
    /// that the kernel declares. `queue` is the address of the queue's descriptor.
    #[inline]
    pub fn fill(
        &self,
        staging: &mut [u8],
        arguments: &impl Arguments,
        size: &Size,
        dynamic_lds_bytes: u32,
        queue: impl FnOnce() -> u64,
    ) -> Result<(), LaunchProblem> {
        match &self.hidden {
            Hidden5::None => self.explicit(staging, arguments),
            Hidden5::Usual { at, image, dynamic_lds } => {
                self.explicit(staging, arguments)?;
                let hidden = staging.get_mut(*at..).and_then(<[u8]>::first_chunk_mut);
                let Some(hidden) = hidden else { return Err(self.no_space(staging.len())) };
                usual(hidden, image, size, if *dynamic_lds { dynamic_lds_bytes } else { 0 });
                match self.queue_at {
                    None => Ok(()),
                    Some(at) => self.put_queue(staging, at, queue()),
                }
            }
            Hidden5::Other(template) => {
                self.other(template, staging, arguments, size, dynamic_lds_bytes, queue())
            }
        }
    }

    /// Explicit arguments, and zeros between them and up to a whole word.
    #[inline]
    fn explicit(
        &self,
        staging: &mut [u8],
        arguments: &impl Arguments,
    ) -> Result<(), LaunchProblem> {
        if let (Some(shape), Some(known)) = (arguments.shape(), self.shape)
            && shape == known
            && let Some(packed) = staging.first_chunk_mut::<MAX_NATURAL>()
        {
            if self.has_gaps {
                *packed = [0; MAX_NATURAL];
            }
            arguments.put_naturally(packed);
            return Ok(());
        }
        let Some(explicit) = staging.get_mut(..self.explicit_words_bytes) else {
            return Err(self.no_space(staging.len()));
        };
        explicit.fill(0);
        let Some(packed) = explicit.get_mut(..self.explicit_bytes) else {
            return Err(self.no_space(self.explicit_words_bytes));
        };
        Ok(arguments.pack(&self.slots, packed)?)
    }

    #[cold]
    fn other(
        &self,
        template: &KernargTemplate,
        staging: &mut [u8],
        arguments: &impl Arguments,
        size: &Size,
        dynamic_lds_bytes: u32,
        queue: u64,
    ) -> Result<(), LaunchProblem> {
        let found = staging.len();
        let words = self.ring_bytes() as usize;
        let (segment, packed) =
            staging.split_at_mut_checked(words).ok_or_else(|| self.no_space(found))?;
        let packed = packed.get_mut(..self.explicit_bytes).ok_or_else(|| self.no_space(found))?;
        packed.fill(0);
        arguments.pack(&self.slots, packed)?;
        let geometry = Geometry::new(size.grid, size.group.map(u32::from), size.dimensions)?
            .dynamic_lds_bytes(dynamic_lds_bytes);
        segment.fill(0);
        template.write_packed(segment, packed, &geometry)?;
        match self.queue_at {
            None => Ok(()),
            Some(at) => self.put_queue(staging, at, queue),
        }
    }

    #[cold]
    fn put_queue(&self, staging: &mut [u8], at: usize, queue: u64) -> Result<(), LaunchProblem> {
        let found = staging.len();
        let place = staging.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>);
        *place.ok_or_else(|| self.no_space(found))? = queue.to_le_bytes();
        Ok(())
    }

    #[cold]
    fn no_space(&self, found: usize) -> LaunchProblem {
        let needed = self.staging_bytes();
        LaunchProblem::Arguments(hsaco::ArgumentError::Space { needed, found })
    }
}

/// The usual hidden arguments of a launch.
#[inline]
fn usual(to: &mut [u8; HIDDEN_BYTES], image: &[u64; HIDDEN_WORDS], size: &Size, dynamic_lds: u32) {
    let ([x, y, z], [gx, gy, gz]) = (size.grid, size.group);
    // Sizes of groups are not 0: `Grid::check`. A remainder is less than the group's size.
    let whole = |grid: u32, group: u16| grid.checked_div(u32::from(group)).unwrap_or(0);
    let rest = |grid: u32, group: u16| u64::from(grid.checked_rem(u32::from(group)).unwrap_or(0));
    let words = to.as_chunks_mut::<8>().0;
    for (place, word) in words.iter_mut().zip(image) {
        *place = word.to_le_bytes();
    }
    let mut set = |at: usize, word: u64| {
        if let Some(place) = words.get_mut(at) {
            *place = word.to_le_bytes();
        }
    };
    set(0, u64::from(whole(x, gx)) | u64::from(whole(y, gy)) << 32);
    set(1, u64::from(whole(z, gz)) | u64::from(gx) << 32 | u64::from(gy) << 48);
    set(2, u64::from(gz) | rest(x, gx) << 16 | rest(y, gy) << 32 | rest(z, gz) << 48);
    set(DIMENSIONS_WORD, u64::from(size.dimensions));
    set(DYNAMIC_LDS_WORD, u64::from(dynamic_lds));
}
