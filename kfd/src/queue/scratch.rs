//! Sizes of a queue's scratch (private) memory: arithmetic, and where the results go.
//!
//! Source: docs/ABI.md §Scratch.

use aql::AmdQueueV2;
use pm4::dispatch::Scratch as DispatchScratch;

use crate::memory::Allocation;
use crate::topology::{GfxVersion, Node};

/// Most bytes of scratch of a wave: what 13 bits of KiB hold.
const MAX_WAVE_BYTES: u64 = 8191 * 1024;
/// Lanes the sizes are for: what a wave of 64 needs is enough for one of 32.
const LANES: u64 = 64;

/// What the sizes depend on; counts are of all XCCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScratchShape {
    pub gfx: GfxVersion,
    pub compute_units: u32,
    pub engines: u32,
    pub slots_per_cu: u32,
    pub num_xcc: u32,
}

impl ScratchShape {
    /// Reads the shape off a topology node. `Err` says what is missing.
    pub fn of(node: &Node) -> Result<Self, &'static str> {
        let p = &node.properties;
        let gfx = node.gfx_version().ok_or("gfx_target_version")?;
        if !matches!(gfx.major(), 9 | 11) {
            return Err("the scratch layout of its generation is not known");
        }
        let arrays = p.array_count.ok_or("array_count")?;
        let per_engine = p.simd_arrays_per_engine.ok_or("simd_arrays_per_engine")?;
        Ok(Self {
            gfx,
            compute_units: node.compute_units().filter(|&n| n > 0).ok_or("simd_count")?,
            engines: arrays.checked_div(per_engine).unwrap_or(0).max(1),
            slots_per_cu: p.max_slots_scratch_cu.unwrap_or(32).max(1),
            num_xcc: node.num_xcc(),
        })
    }

    /// Granule of a wave's scratch, bytes.
    fn granule(self) -> u64 {
        if self.gfx.major() >= 11 { 256 } else { 1024 }
    }

    /// Waves of the whole GPU that can have scratch at once.
    fn slots(self) -> u64 {
        let cus = u64::from(self.compute_units).next_multiple_of(u64::from(self.engines));
        cus * u64::from(self.slots_per_cu)
    }
}

/// A queue's scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scratch {
    /// Bytes a lane of a wave of 64 gets.
    pub lane_bytes: u32,
    /// `COMPUTE_TMPRING_SIZE`.
    pub tmpring_size: u32,
    /// Bytes of one XCC.
    pub xcc_bytes: u64,
    /// Bytes of all XCCs.
    pub total_bytes: u64,
}

impl Scratch {
    /// Scratch for `private_bytes` a work-item. `shrink` halves the waves that can run at once, as
    /// often as it says. `None` when a wave would need more than the hardware can address, or no
    /// wave would be left.
    pub fn new(shape: ScratchShape, private_bytes: u32, shrink: u32) -> Option<Self> {
        let granule = shape.granule();
        let lane = u64::from(private_bytes).max(1).next_multiple_of(granule / LANES);
        let wave = lane * LANES;
        if wave > MAX_WAVE_BYTES {
            return None;
        }
        let wave_size = wave.div_ceil(granule);
        let xccs = u64::from(shape.num_xcc);
        let engines_per_xcc = (u64::from(shape.engines) / xccs).max(1);
        // Every engine of an XCC gets the same number of waves.
        let full = (shape.slots() / xccs).next_multiple_of(engines_per_xcc);
        let waves = (full >> shrink) / engines_per_xcc * engines_per_xcc;
        if waves == 0 {
            return None;
        }
        let field = if shape.gfx.major() >= 11 { waves / engines_per_xcc } else { waves };
        let xcc_bytes = (waves * wave).next_multiple_of(0x1000);
        Some(Self {
            lane_bytes: u32::try_from(lane).ok()?,
            tmpring_size: u32::try_from(field.min(0xfff) | wave_size << 12).ok()?,
            xcc_bytes,
            total_bytes: xcc_bytes * xccs,
        })
    }

    /// The buffer descriptor of scratch at `base`.
    #[allow(clippy::cast_possible_truncation)] // halves of a 48-bit address, masked
    pub fn resource_descriptor(self, gfx: GfxVersion, base: u64) -> [u32; 4] {
        let (swizzle, format) =
            if gfx.major() >= 11 { (0x4000_0000, 0x2081_4fac) } else { (0x8000_0000, 0x00ea_4fac) };
        let high = (base >> 32) as u32 & 0xffff;
        let bytes = u32::try_from(self.xcc_bytes).unwrap_or(u32::MAX);
        [(base & 0xffff_ffff) as u32, high | swizzle, bytes, format]
    }
}

/// What dispatches by registers need to know of it.
pub(super) fn dispatch_scratch(
    scratch: &Scratch,
    gfx: GfxVersion,
    memory: &Allocation,
) -> DispatchScratch {
    DispatchScratch {
        base: memory.addr(),
        tmpring_size: scratch.tmpring_size,
        resource: scratch.resource_descriptor(gfx, memory.addr().get()),
    }
}

/// Writes the scratch fields of a descriptor.
pub(super) fn describe(
    queue: &mut AmdQueueV2,
    scratch: &Scratch,
    gfx: GfxVersion,
    memory: &Allocation,
) {
    queue.compute_tmpring_size = scratch.tmpring_size;
    queue.scratch_resource_descriptor = scratch.resource_descriptor(gfx, memory.addr().get());
    queue.scratch_backing_memory_location = memory.addr().get();
    queue.scratch_backing_memory_byte_size = scratch.xcc_bytes;
    queue.scratch_wave64_lane_byte_size = scratch.lane_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gfx90a() -> ScratchShape {
        ScratchShape {
            gfx: GfxVersion::from_target_version(90_010).unwrap(),
            compute_units: 104,
            engines: 8,
            slots_per_cu: 32,
            num_xcc: 1,
        }
    }

    fn gfx1100() -> ScratchShape {
        ScratchShape {
            gfx: GfxVersion::from_target_version(110_000).unwrap(),
            compute_units: 96,
            engines: 6,
            ..gfx90a()
        }
    }

    #[test]
    fn sizes_equal_the_worked_examples() {
        // docs/ABI.md §Scratch: 272 bytes a work-item.
        let scratch = Scratch::new(gfx90a(), 272, 0).unwrap();
        assert_eq!(scratch.tmpring_size, 0x0001_1d00);
        assert_eq!(scratch.total_bytes, 57_933_824);
        assert_eq!(scratch.lane_bytes, 272);
        let scratch = Scratch::new(gfx1100(), 272, 0).unwrap();
        assert_eq!(scratch.tmpring_size, 0x0004_4200);
    }

    #[test]
    fn a_lane_gets_whole_granules() {
        assert_eq!(Scratch::new(gfx90a(), 1, 0).unwrap().lane_bytes, 16);
        assert_eq!(Scratch::new(gfx90a(), 17, 0).unwrap().lane_bytes, 32);
        assert_eq!(Scratch::new(gfx1100(), 1, 0).unwrap().lane_bytes, 4);
    }

    #[test]
    fn shrinking_keeps_every_engine_equal_and_ends() {
        for shape in [gfx90a(), gfx1100()] {
            let sizes: Vec<Scratch> =
                (0..32).map_while(|shrink| Scratch::new(shape, 1 << 12, shrink)).collect();
            assert!((5..32).contains(&sizes.len()), "{}", sizes.len());
            assert!(sizes.is_sorted_by(|more, less| more.total_bytes > less.total_bytes));
            for size in sizes {
                let engines = u64::from(shape.engines);
                assert!(size.total_bytes.is_multiple_of(engines * 64 * u64::from(size.lane_bytes)));
            }
        }
    }

    #[test]
    fn more_than_a_wave_can_address_is_refused() {
        assert!(Scratch::new(gfx90a(), 131_056, 0).is_some());
        assert_eq!(Scratch::new(gfx90a(), 131_057, 0), None);
        assert_eq!(Scratch::new(gfx90a(), u32::MAX, 0), None);
    }

    #[test]
    fn eight_xccs_have_an_eighth_each() {
        let shape = ScratchShape {
            gfx: GfxVersion::from_target_version(90_402).unwrap(),
            compute_units: 304,
            engines: 32,
            slots_per_cu: 32,
            num_xcc: 8,
        };
        let scratch = Scratch::new(shape, 272, 0).unwrap();
        // 304 units in 32 engines count as 320: 320 * 32 / 8 = 1280 waves an XCC, of 17 KiB.
        assert_eq!(scratch.tmpring_size, 1280 | 17 << 12);
        assert_eq!(scratch.xcc_bytes * 8, scratch.total_bytes);
    }

    #[test]
    fn the_descriptor_holds_base_size_and_format() {
        let scratch = Scratch::new(gfx90a(), 272, 0).unwrap();
        let words = scratch.resource_descriptor(gfx90a().gfx, 0x7f12_3456_7000);
        assert_eq!(words, [0x3456_7000, 0x8000_7f12, 57_933_824, 0x00ea_4fac]);
        let words = scratch.resource_descriptor(gfx1100().gfx, 0x7f12_3456_7000);
        assert_eq!((words[1], words[3]), (0x4000_7f12, 0x2081_4fac));
    }
}
