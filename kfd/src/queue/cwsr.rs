//! Sizes of the context save area, control stack and end-of-pipe buffer of a queue.
//!
//! Source: docs/ABI.md §Save area (`kfd_queue_ctx_save_restore_size`). The kernel refuses a queue
//! whose sizes differ from its own, so nothing here is rounded "to be safe".

use super::QueueKind;
use crate::topology::{GfxVersion, Node};

const PAGE: u64 = 0x1000;
/// `struct kfd_context_save_area_header`, 40 bytes, and 8 for the stack's own end marker.
const STACK_OVERHEAD: u64 = 40 + 8;
const SGPR_BYTES_PER_CU: u64 = 0x4000;
const LDS_BYTES_PER_CU: u64 = 0x1_0000;
const HWREG_BYTES_PER_CU: u64 = 0x1000;
/// Debugger memory per wave.
const DEBUG_BYTES_PER_WAVE: u64 = 32;
/// Cap of the control stack on gfx10.
const GFX10_STACK_CAP: u64 = 0x7000;

/// What the sizes depend on. Counts are of the whole node, all XCCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub gfx: GfxVersion,
    pub simd_count: u32,
    pub simd_per_cu: u32,
    pub array_count: u32,
    pub simd_arrays_per_engine: u32,
    pub num_xcc: u32,
    pub lds_kib: u32,
    /// `cwsr_size` and `ctl_stack_size` of the node, where the kernel publishes them.
    pub published: Option<(u32, u32)>,
    /// See [`Shape::older`].
    pub small_vgprs: bool,
}

impl Shape {
    /// Reads the shape off a topology node. `Err` names the property that is missing or zero.
    pub fn of(node: &Node) -> Result<Self, &'static str> {
        let p = &node.properties;
        let need = |value: Option<u32>, name| value.filter(|&v| v > 0).ok_or(name);
        Ok(Self {
            gfx: node.gfx_version().ok_or("gfx_target_version")?,
            simd_count: need(p.simd_count, "simd_count")?,
            simd_per_cu: need(p.simd_per_cu, "simd_per_cu")?,
            array_count: need(p.array_count, "array_count")?,
            simd_arrays_per_engine: need(p.simd_arrays_per_engine, "simd_arrays_per_engine")?,
            num_xcc: node.num_xcc(),
            lds_kib: p.lds_size_in_kb.unwrap_or(64),
            published: p.cwsr_size.zip(p.ctl_stack_size).filter(|&(a, b)| a > 0 && b > 0),
            small_vgprs: false,
        })
    }

    fn cu_per_xcc(self) -> u64 {
        let per_node = u64::from(self.simd_count) / u64::from(self.simd_per_cu).max(1);
        per_node / u64::from(self.num_xcc).max(1)
    }

    fn waves_per_xcc(self) -> u64 {
        if self.gfx.major() >= 10 {
            return self.cu_per_xcc() * 32;
        }
        let arrays = u64::from(self.array_count) / u64::from(self.num_xcc).max(1);
        let engines = arrays / u64::from(self.simd_arrays_per_engine).max(1);
        (self.cu_per_xcc() * 40).min(engines * 512)
    }

    /// Waves of all XCCs.
    pub fn waves(self) -> u64 {
        self.waves_per_xcc().saturating_mul(u64::from(self.num_xcc))
    }

    /// As kernels before December 2025 saw it, where they disagree with the chip. They publish no
    /// sizes and want exactly theirs; on them, saving a full GPU faults.
    pub fn older(self) -> Option<Self> {
        let wrong = self.gfx == GfxVersion::GFX1151 && self.published.is_none();
        wrong.then_some(Self { small_vgprs: true, ..self })
    }

    fn vgpr_bytes_per_cu(self) -> u64 {
        if self.small_vgprs {
            return 0x4_0000;
        }
        match (self.gfx.major(), self.gfx.minor(), self.gfx.stepping()) {
            (9, 0, 8 | 10) | (9, 4 | 5, _) => 0x8_0000,
            (11, 0, 0 | 1) | (11, 5, 1) | (12, 0, 0 | 1) => 0x6_0000,
            _ => 0x4_0000,
        }
    }

    fn lds_bytes_per_cu(self) -> u64 {
        let gfx950 = self.gfx.major() == 9 && self.gfx.minor() == 5;
        if gfx950 { u64::from(self.lds_kib) * 1024 } else { LDS_BYTES_PER_CU }
    }
}

/// Sizes of one queue's save area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SaveArea {
    /// `ctl_stack_size` of CREATE_QUEUE, bytes per XCC.
    pub ctl_stack_bytes: u32,
    /// `ctx_save_restore_size` of CREATE_QUEUE, bytes per XCC; also the distance between the XCCs'
    /// headers.
    pub save_bytes: u32,
    /// Debugger memory, bytes per XCC; it follows the last XCC's save area.
    pub debug_bytes: u32,
    /// XCCs of the node.
    pub num_xcc: u32,
}

impl SaveArea {
    /// Sizes as the kernel computes them; `None` when the node's facts overflow them.
    pub fn new(shape: Shape) -> Option<Self> {
        let waves = shape.waves_per_xcc();
        let debug_bytes = (waves * DEBUG_BYTES_PER_WAVE).next_multiple_of(64);
        let (save_bytes, ctl_stack_bytes) = match shape.published {
            Some((save, stack)) => (u64::from(save), u64::from(stack)),
            None => {
                let per_wave = if shape.gfx.major() >= 10 { 12 } else { 8 };
                let mut stack = (waves * per_wave + STACK_OVERHEAD).next_multiple_of(PAGE);
                if shape.gfx.major() == 10 {
                    stack = stack.min(GFX10_STACK_CAP);
                }
                let per_cu = shape.vgpr_bytes_per_cu()
                    + SGPR_BYTES_PER_CU
                    + shape.lds_bytes_per_cu()
                    + HWREG_BYTES_PER_CU;
                let data = shape.cu_per_xcc().checked_mul(per_cu)?.next_multiple_of(PAGE);
                (stack + data, stack)
            }
        };
        Some(Self {
            ctl_stack_bytes: u32::try_from(ctl_stack_bytes).ok()?,
            save_bytes: u32::try_from(save_bytes).ok()?,
            debug_bytes: u32::try_from(debug_bytes).ok()?,
            num_xcc: shape.num_xcc,
        })
    }

    /// Bytes of the whole area, exactly what the kernel wants mapped.
    pub fn total_bytes(self) -> u64 {
        let per_xcc = u64::from(self.save_bytes) + u64::from(self.debug_bytes);
        (per_xcc * u64::from(self.num_xcc)).next_multiple_of(PAGE)
    }

    /// Offset of the header of XCC `xcc`, in bytes.
    pub fn header_offset(self, xcc: u32) -> u64 {
        u64::from(xcc) * u64::from(self.save_bytes)
    }

    /// `debug_offset` of the header of XCC `xcc`: from that header to the debugger memory.
    pub fn debug_offset(self, xcc: u32) -> u64 {
        u64::from(self.num_xcc - xcc.min(self.num_xcc)) * u64::from(self.save_bytes)
    }

    /// `debug_size` of every header: the debugger memory of all XCCs.
    pub fn debug_total_bytes(self) -> u64 {
        u64::from(self.debug_bytes) * u64::from(self.num_xcc)
    }
}

/// Bytes of the end-of-pipe buffer of a compute queue; 0 where none is given.
///
/// A PM4 queue always has one: its RELEASE_MEM would fault without. Source: docs/ABI.md §Save area
/// (libhsakmt gives AQL queues none on gfx94x and gfx950).
pub(crate) fn eop_bytes(kind: QueueKind, gfx: GfxVersion) -> u64 {
    let without = kind == QueueKind::Aql && gfx.major() == 9 && gfx.minor() >= 4;
    if without { 0 } else { PAGE }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// target, SIMDs, SIMDs per CU, arrays, arrays per engine, XCCs, LDS KiB
    fn shape(gfx: u32, cu: u32, per_cu: u32, arrays: u32, per_engine: u32, xcc: u32) -> Shape {
        Shape {
            gfx: GfxVersion::from_target_version(gfx).unwrap(),
            simd_count: cu * per_cu,
            simd_per_cu: per_cu,
            array_count: arrays,
            simd_arrays_per_engine: per_engine,
            num_xcc: xcc,
            lds_kib: if gfx == 90_500 { 160 } else { 64 },
            published: None,
            small_vgprs: false,
        }
    }

    #[test]
    fn sizes_equal_the_kernels_for_every_known_part() {
        // shape; control stack, save area, debug per XCC, whole mapping. docs/ABI.md §Save area.
        let table = [
            (shape(90_000, 64, 4, 4, 1, 1), 0x5000, 0x154_5000, 0x1_0000, 0x155_5000),
            (shape(90_006, 60, 4, 4, 1, 1), 0x5000, 0x13f_1000, 0x1_0000, 0x140_1000),
            (shape(90_008, 120, 4, 8, 1, 1), 0x9000, 0x45e_1000, 0x2_0000, 0x460_1000),
            (shape(90_010, 110, 4, 8, 1, 1), 0x9000, 0x400_f000, 0x2_0000, 0x402_f000),
            (shape(90_010, 104, 4, 8, 1, 1), 0x9000, 0x3c9_1000, 0x2_0000, 0x3cb_1000),
            (shape(90_402, 304, 4, 32, 1, 8), 0x3000, 0x162_1000, 0xbe00, 0xb16_7000),
            (shape(90_402, 228, 4, 24, 1, 6), 0x3000, 0x162_1000, 0xbe00, 0x850_e000),
            (shape(90_402, 38, 4, 4, 1, 1), 0x3000, 0x162_1000, 0xbe00, 0x162_d000),
            (shape(90_500, 256, 4, 32, 1, 8), 0x3000, 0x15a_3000, 0xa000, 0xad6_8000),
            (shape(100_102, 20, 2, 4, 2, 1), 0x2000, 0x6a_6000, 0x5000, 0x6a_b000),
            (shape(100_300, 80, 2, 8, 2, 1), 0x7000, 0x1a9_7000, 0x1_4000, 0x1aa_b000),
            (shape(100_300, 60, 2, 8, 2, 1), 0x6000, 0x13f_2000, 0xf000, 0x140_1000),
            (shape(110_000, 96, 2, 12, 2, 1), 0xa000, 0x2be_a000, 0x1_8000, 0x2c0_2000),
            (shape(110_000, 84, 2, 12, 2, 1), 0x8000, 0x266_c000, 0x1_5000, 0x268_1000),
            (shape(110_001, 60, 2, 6, 2, 1), 0x6000, 0x1b7_2000, 0xf000, 0x1b8_1000),
            (shape(110_002, 32, 2, 4, 2, 1), 0x4000, 0xaa_4000, 0x8000, 0xaa_c000),
            (shape(110_003, 12, 2, 2, 2, 1), 0x2000, 0x3f_e000, 0x3000, 0x40_1000),
            (shape(110_500, 16, 2, 2, 2, 1), 0x2000, 0x55_2000, 0x4000, 0x55_6000),
            (shape(110_501, 40, 2, 4, 2, 1), 0x4000, 0x124_c000, 0xa000, 0x125_6000),
            (shape(120_001, 64, 2, 8, 2, 1), 0x7000, 0x1d4_7000, 0x1_0000, 0x1d5_7000),
            (shape(120_000, 32, 2, 4, 2, 1), 0x4000, 0xea_4000, 0x8000, 0xea_c000),
        ];
        for (shape, stack, save, debug, total) in table {
            let area = SaveArea::new(shape).unwrap();
            let got = (area.ctl_stack_bytes, area.save_bytes, area.debug_bytes, area.total_bytes());
            assert_eq!(got, (stack, save, debug, total), "{shape:?}");
        }
    }

    #[test]
    fn waves_are_those_of_all_xccs() {
        assert_eq!(shape(90_010, 110, 4, 8, 1, 1).waves(), 4096);
        assert_eq!(shape(90_402, 304, 4, 32, 1, 8).waves(), 8 * 1520);
        assert_eq!(shape(110_000, 96, 2, 12, 2, 1).waves(), 3072);
    }

    #[test]
    fn published_sizes_win_and_the_debug_part_is_still_added() {
        // Field fault FF-12: gfx1012 with 20 CUs, published save size 0x6a6000.
        let mut gfx1012 = shape(100_102, 20, 2, 4, 2, 1);
        gfx1012.published = Some((0x6a_6000, 0x2000));
        assert_eq!(SaveArea::new(gfx1012).unwrap().total_bytes(), 0x6a_b000);
        // A kernel before the fix of gfx1151 publishes nothing; one that publishes decides.
        let mut gfx1151 = shape(110_501, 40, 2, 4, 2, 1);
        gfx1151.published = Some((0xd4_c000, 0x4000));
        assert_eq!(SaveArea::new(gfx1151).unwrap().total_bytes(), 0xd5_6000);
    }

    #[test]
    fn gfx1151_has_a_second_size_for_kernels_that_publish_none() {
        let gfx1151 = shape(110_501, 40, 2, 4, 2, 1);
        let older = SaveArea::new(gfx1151.older().unwrap()).unwrap();
        assert_eq!((older.save_bytes, older.total_bytes()), (0xd4_c000, 0xd5_6000));
        assert_eq!(Shape { published: Some((1, 1)), ..gfx1151 }.older(), None);
        assert_eq!(shape(110_000, 96, 2, 12, 2, 1).older(), None);
    }

    #[test]
    fn headers_of_all_xccs_point_at_one_debug_area() {
        let area = SaveArea::new(shape(90_402, 304, 4, 32, 1, 8)).unwrap();
        let end_of_saves = u64::from(area.save_bytes) * 8;
        for xcc in 0..8 {
            assert_eq!(area.header_offset(xcc) + area.debug_offset(xcc), end_of_saves);
        }
        assert!(end_of_saves + area.debug_total_bytes() <= area.total_bytes());
    }

    #[test]
    fn absurd_facts_are_refused_instead_of_wrapping() {
        let mut absurd = shape(110_000, 96, 2, 12, 2, 1);
        absurd.simd_count = u32::MAX;
        assert_eq!(SaveArea::new(absurd), None);
        absurd.simd_per_cu = 0;
        assert_eq!(SaveArea::new(absurd), None);
    }

    #[test]
    fn a_pm4_queue_always_has_an_end_of_pipe_buffer_and_an_aql_queue_of_gfx94x_none() {
        let eop = |kind, gfx| eop_bytes(kind, GfxVersion::from_target_version(gfx).unwrap());
        assert_eq!(eop(QueueKind::Aql, 90_402), 0);
        assert_eq!(eop(QueueKind::Aql, 90_010), 0x1000);
        assert_eq!(eop(QueueKind::Aql, 110_000), 0x1000);
        for gfx in [90_000, 90_010, 90_402, 110_000] {
            assert_eq!(eop(QueueKind::Pm4, gfx), 0x1000);
        }
    }
}
