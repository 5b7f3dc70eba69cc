//! Hidden arguments: what a launcher tells a kernel beyond the caller's arguments.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{Immutable, IntoBytes};

use crate::error::ArgumentError;

/// Defines the kinds with their name in metadata, their offset in version 5's block and their size.
macro_rules! hidden {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $offset:literal, $bytes:literal;)*) => {
        /// A hidden argument. Source: LLVM's AMDGPU usage guide, code object metadata;
        /// docs/ABI.md §Kernel arguments.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Hidden { $($(#[$doc])* $variant,)* }

        impl Hidden {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name in metadata.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The kind with this name in metadata.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// Size of its value; a kernel may declare more, which is zero.
            pub const fn bytes(self) -> u32 {
                match self { $(Self::$variant => $bytes,)* }
            }

            /// Offset from the first hidden argument in code object versions 5 and 6.
            pub const fn v5_offset(self) -> u32 {
                match self { $(Self::$variant => $offset,)* }
            }
        }
    };
}

hidden! {
    /// Whole workgroups of the grid in x.
    BlockCountX = "hidden_block_count_x", 0, 4;
    /// Whole workgroups of the grid in y.
    BlockCountY = "hidden_block_count_y", 4, 4;
    /// Whole workgroups of the grid in z.
    BlockCountZ = "hidden_block_count_z", 8, 4;
    /// Work-items of a workgroup in x.
    GroupSizeX = "hidden_group_size_x", 12, 2;
    /// Work-items of a workgroup in y.
    GroupSizeY = "hidden_group_size_y", 14, 2;
    /// Work-items of a workgroup in z.
    GroupSizeZ = "hidden_group_size_z", 16, 2;
    /// Work-items of the partial workgroup in x, 0 if there is none.
    RemainderX = "hidden_remainder_x", 18, 2;
    /// Work-items of the partial workgroup in y, 0 if there is none.
    RemainderY = "hidden_remainder_y", 20, 2;
    /// Work-items of the partial workgroup in z, 0 if there is none.
    RemainderZ = "hidden_remainder_z", 22, 2;
    /// Global offset in x (OpenCL).
    GlobalOffsetX = "hidden_global_offset_x", 40, 8;
    /// Global offset in y (OpenCL).
    GlobalOffsetY = "hidden_global_offset_y", 48, 8;
    /// Global offset in z (OpenCL).
    GlobalOffsetZ = "hidden_global_offset_z", 56, 8;
    /// Dimensions of the dispatch, 1 to 3.
    GridDims = "hidden_grid_dims", 64, 2;
    /// Address of the buffer of buffered printf.
    PrintfBuffer = "hidden_printf_buffer", 72, 8;
    /// Address of the hostcall buffer.
    HostcallBuffer = "hidden_hostcall_buffer", 80, 8;
    /// Address of the grid synchronisation record of a cooperative launch.
    MultigridSyncArg = "hidden_multigrid_sync_arg", 88, 8;
    /// Address of the device heap.
    HeapV1 = "hidden_heap_v1", 96, 8;
    /// Address of the default queue (device enqueue).
    DefaultQueue = "hidden_default_queue", 104, 8;
    /// Address of the completion action (device enqueue).
    CompletionAction = "hidden_completion_action", 112, 8;
    /// Dynamic LDS of a workgroup, bytes.
    DynamicLdsSize = "hidden_dynamic_lds_size", 120, 4;
    /// High half of the scratch aperture (before gfx9).
    PrivateBase = "hidden_private_base", 192, 4;
    /// High half of the LDS aperture (before gfx9).
    SharedBase = "hidden_shared_base", 196, 4;
    /// Address of the queue's `amd_queue_t`.
    QueuePtr = "hidden_queue_ptr", 200, 8;
    /// A placeholder that stays zero (versions 3 and 4); it may have any size.
    None = "hidden_none", 0, 1;
}

impl Hidden {
    /// Whether the value can change from launch to launch. The others belong to the queue and the
    /// module.
    pub(super) const fn is_per_launch(self) -> bool {
        !matches!(self, Self::None)
            && (self.v5_offset() < Self::PrintfBuffer.v5_offset()
                || matches!(self, Self::DynamicLdsSize))
    }
}

/// Per-launch hidden values in the layout of code object version 5, which makes most kernels two
/// copies. Also the source for other layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
struct Block {
    block_count: [U32; 3],
    group_size: [U16; 3],
    remainder: [U16; 3],
    reserved: [u8; 16],
    global_offset: [U64; 3],
    grid_dims: U16,
    services: [u8; 54],
    dynamic_lds_size: U32,
}

pub(super) const BLOCK_BYTES: usize = 124;

const _: () = {
    assert!(size_of::<Block>() == BLOCK_BYTES);
    assert!(core::mem::offset_of!(Block, group_size) == Hidden::GroupSizeX.v5_offset() as usize);
    assert!(core::mem::offset_of!(Block, remainder) == Hidden::RemainderX.v5_offset() as usize);
    assert!(
        core::mem::offset_of!(Block, global_offset) == Hidden::GlobalOffsetX.v5_offset() as usize
    );
    assert!(core::mem::offset_of!(Block, grid_dims) == Hidden::GridDims.v5_offset() as usize);
    assert!(
        core::mem::offset_of!(Block, dynamic_lds_size)
            == Hidden::DynamicLdsSize.v5_offset() as usize
    );
};

/// Grid and workgroup of a launch, with what hidden arguments say of them worked out once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    grid: [u32; 3],
    block: Block,
}

impl Geometry {
    /// A launch of `grid` work-items in workgroups of `group`, in `dimensions` (1 to 3).
    ///
    /// The grid need not be a multiple of the workgroup: the last workgroup is then partial.
    ///
    /// # Errors
    /// [`ArgumentError::Geometry`] if a size is 0, a workgroup size is above 65535, or `dimensions`
    /// is not 1, 2 or 3 or leaves out a dimension that is not 1.
    #[inline]
    pub fn new(grid: [u32; 3], group: [u32; 3], dimensions: u16) -> Result<Self, ArgumentError> {
        let invalid = ArgumentError::Geometry { grid, group };
        let [grid_x, grid_y, grid_z] = grid;
        let is_flat = match dimensions {
            1 => [grid_y, grid_z] == [1, 1] && matches!(group, [_, 1, 1]),
            2 => grid_z == 1 && matches!(group, [_, _, 1]),
            3 => true,
            _ => false,
        };
        if !is_flat {
            return Err(invalid);
        }
        // Whole groups, group size and what is left over, of one dimension.
        let split = |grid: u32, group: u32| -> Option<(U32, U16, U16)> {
            let size = u16::try_from(group).ok()?;
            let remainder = u16::try_from(grid.checked_rem(group)?).ok()?;
            let count = grid.checked_div(group).filter(|_| grid != 0)?;
            Some((U32::new(count), U16::new(size), U16::new(remainder)))
        };
        let [group_x, group_y, group_z] = group;
        let (Some(x), Some(y), Some(z)) =
            (split(grid_x, group_x), split(grid_y, group_y), split(grid_z, group_z))
        else {
            return Err(invalid);
        };
        let block = Block {
            block_count: [x.0, y.0, z.0],
            group_size: [x.1, y.1, z.1],
            remainder: [x.2, y.2, z.2],
            reserved: [0; 16],
            global_offset: [U64::ZERO; 3],
            grid_dims: U16::new(dimensions),
            services: [0; 54],
            dynamic_lds_size: U32::ZERO,
        };
        Ok(Self { grid, block })
    }

    /// The same launch with a global offset in work-items (OpenCL); HIP has none.
    #[must_use]
    pub fn global_offset(mut self, offset: [u64; 3]) -> Self {
        self.block.global_offset = offset.map(U64::new);
        self
    }

    /// The same launch with dynamic LDS, in bytes of a workgroup.
    #[must_use]
    pub fn dynamic_lds_bytes(mut self, bytes: u32) -> Self {
        self.block.dynamic_lds_size = U32::new(bytes);
        self
    }

    /// Grid in work-items.
    pub const fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Workgroup in work-items.
    pub fn group(&self) -> [u16; 3] {
        self.block.group_size.map(U16::get)
    }

    /// Dimensions, as the dispatch packet has them.
    pub const fn dimensions(&self) -> u16 {
        self.block.grid_dims.get()
    }

    /// Version 5's block, per-launch fields only.
    #[inline]
    pub(super) fn block(&self) -> &[u8; BLOCK_BYTES] {
        zerocopy::transmute_ref!(&self.block)
    }
}

/// Hidden values that belong to a queue or a module, not to a launch. Zero means "not there".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Services {
    /// Buffer of buffered printf.
    pub printf_buffer: u64,
    /// Hostcall buffer.
    pub hostcall_buffer: u64,
    /// Grid synchronisation record.
    pub multigrid_sync_arg: u64,
    /// Device heap.
    pub heap_v1: u64,
    /// Default queue (device enqueue).
    pub default_queue: u64,
    /// Completion action (device enqueue).
    pub completion_action: u64,
    /// High half of the scratch aperture.
    pub private_base: u32,
    /// High half of the LDS aperture.
    pub shared_base: u32,
    /// The queue's `amd_queue_t`.
    pub queue_ptr: u64,
}

impl Services {
    /// The value of a kind that is not per launch; 0 for one that is.
    pub(super) fn value(&self, kind: Hidden) -> u64 {
        match kind {
            Hidden::PrintfBuffer => self.printf_buffer,
            Hidden::HostcallBuffer => self.hostcall_buffer,
            Hidden::MultigridSyncArg => self.multigrid_sync_arg,
            Hidden::HeapV1 => self.heap_v1,
            Hidden::DefaultQueue => self.default_queue,
            Hidden::CompletionAction => self.completion_action,
            Hidden::PrivateBase => self.private_base.into(),
            Hidden::SharedBase => self.shared_base.into(),
            Hidden::QueuePtr => self.queue_ptr,
            _ => 0,
        }
    }
}

/// Everything hidden arguments can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenValues {
    /// Values of the launch.
    pub geometry: Geometry,
    /// Values of the queue and the module.
    pub services: Services,
}

impl HiddenValues {
    /// Values for a launch without services.
    pub fn new(geometry: Geometry) -> Self {
        Self { geometry, services: Services::default() }
    }
}
