//! Kernel dispatch, and agent dispatch.

use core::fmt;

use pm4::GpuAddr;

use super::{Packet, addr, packet_methods};
use crate::{PacketType, Problem};

/// Launches a kernel.
///
/// # Source
/// `hsa_kernel_dispatch_packet_t` in ROCr inc/hsa.h; docs/ABI.md §AQL.
#[doc(alias = "hsa_kernel_dispatch_packet_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct KernelDispatch(Packet);

packet_methods!(KernelDispatch);

/// Most work-items of a workgroup.
const MAX_WORKGROUP_ITEMS: u64 = 1024;

impl KernelDispatch {
    /// Launches the kernel whose descriptor is at `kernel_object` over `grid` work-items (not
    /// workgroups) in workgroups of `workgroup`. The dimensions are those with more than one
    /// work-item. A grid that is no multiple of the workgroup is legal.
    ///
    /// # Errors
    /// [`Problem::KernelObject`] unless `kernel_object` is 64-byte aligned and not null; for sizes
    /// see [`Self::grid`].
    pub const fn new(
        kernel_object: GpuAddr,
        grid: [u32; 3],
        workgroup: [u16; 3],
    ) -> Result<Self, Problem> {
        if kernel_object.get() == 0 || !kernel_object.is_aligned(64) {
            return Err(Problem::KernelObject(kernel_object));
        }
        let mut packet = Packet::with(PacketType::KERNEL_DISPATCH, 0);
        packet.0[8] = kernel_object.lo();
        packet.0[9] = kernel_object.hi();
        Self(packet).grid(grid, workgroup)
    }

    /// Changes the sizes, and with them the dimensions.
    ///
    /// # Errors
    /// [`Problem::GridSize`] for a zero; [`Problem::WorkgroupSize`] over 1024 work-items.
    pub const fn grid(mut self, grid: [u32; 3], workgroup: [u16; 3]) -> Result<Self, Problem> {
        let dimensions = if grid[2] > 1 || workgroup[2] > 1 {
            3
        } else if grid[1] > 1 || workgroup[1] > 1 {
            2
        } else {
            1
        };
        if let Err(problem) = check_sizes(dimensions, grid, workgroup) {
            return Err(problem);
        }
        let words = &mut self.0.0;
        words[0] = words[0] & 0xFFFF | (dimensions as u32) << 16;
        words[1] = workgroup[0] as u32 | (workgroup[1] as u32) << 16;
        words[2] = workgroup[2] as u32;
        words[3] = grid[0];
        words[4] = grid[1];
        words[5] = grid[2];
        Ok(self)
    }

    /// As [`Self::grid`], for sizes that the caller has checked: [`Packet::decode`] refuses others.
    #[inline]
    pub const fn sized(mut self, dimensions: u16, grid: [u32; 3], workgroup: [u16; 3]) -> Self {
        let words = &mut self.0.0;
        words[0] = words[0] & 0xFFFF | (dimensions as u32) << 16;
        words[1] = workgroup[0] as u32 | (workgroup[1] as u32) << 16;
        words[2] = workgroup[2] as u32;
        [words[3], words[4], words[5]] = grid;
        self
    }

    /// Passes the arguments at `address`, 16-byte aligned.
    pub const fn kernarg(mut self, address: GpuAddr) -> Self {
        self.0.0[10] = address.lo();
        self.0.0[11] = address.hi();
        self
    }

    /// Gives each work-item `bytes` of scratch.
    pub const fn private_segment(mut self, bytes: u32) -> Self {
        self.0.0[6] = bytes;
        self
    }

    /// Gives each workgroup `bytes` of LDS, static and dynamic together.
    pub const fn group_segment(mut self, bytes: u32) -> Self {
        self.0.0[7] = bytes;
        self
    }

    /// Labels the packet for a profiler. The command processor ignores it.
    pub const fn correlation(mut self, id: u64) -> Self {
        let id = GpuAddr::new(id);
        self.0.0[12] = id.lo();
        self.0.0[13] = id.hi();
        self
    }

    /// Dimensions used: 1 to 3.
    pub const fn dimensions(&self) -> u16 {
        self.0.setup()
    }

    /// Work-items in x, y and z.
    pub const fn grid_size(&self) -> [u32; 3] {
        let words = &self.0.0;
        [words[3], words[4], words[5]]
    }

    /// Work-items per workgroup in x, y and z.
    #[allow(clippy::cast_possible_truncation)] // the halves of a dword
    pub const fn workgroup_size(&self) -> [u16; 3] {
        let words = &self.0.0;
        [words[1] as u16, (words[1] >> 16) as u16, words[2] as u16]
    }

    /// Scratch per work-item, bytes.
    pub const fn private_segment_bytes(&self) -> u32 {
        self.0.0[6]
    }

    /// LDS per workgroup, bytes.
    pub const fn group_segment_bytes(&self) -> u32 {
        self.0.0[7]
    }

    /// Address of the kernel descriptor.
    pub const fn kernel_object(&self) -> GpuAddr {
        addr(self.0.0[8], self.0.0[9])
    }

    /// Address of the arguments.
    pub const fn kernarg_address(&self) -> GpuAddr {
        addr(self.0.0[10], self.0.0[11])
    }

    /// A profiler's label.
    pub const fn correlation_id(&self) -> u64 {
        addr(self.0.0[12], self.0.0[13]).get()
    }

    pub(super) fn decode(packet: Packet) -> Result<Self, Problem> {
        packet.check_frame()?;
        let [_, _, group_z, ..] = packet.0;
        if group_z > 0xFFFF {
            return Err(Problem::Reserved { dword: 2, bits: group_z & 0xFFFF_0000 });
        }
        let this = Self(packet);
        check_sizes(this.dimensions(), this.grid_size(), this.workgroup_size())?;
        let kernel_object = this.kernel_object();
        if kernel_object == GpuAddr::NULL || !kernel_object.is_aligned(64) {
            return Err(Problem::KernelObject(kernel_object));
        }
        Ok(this)
    }
}

const fn check_sizes(dimensions: u16, grid: [u32; 3], workgroup: [u16; 3]) -> Result<(), Problem> {
    let [grid_x, grid_y, grid_z] = grid;
    let [group_x, group_y, group_z] = workgroup;
    if dimensions == 0 || dimensions > 3 {
        return Err(Problem::Dimensions(dimensions));
    }
    let zero = grid_x == 0 || grid_y == 0 || grid_z == 0;
    let zero = zero || group_x == 0 || group_y == 0 || group_z == 0;
    let beyond = dimensions < 3 && (grid_z != 1 || group_z != 1)
        || dimensions < 2 && (grid_y != 1 || group_y != 1);
    if zero || beyond {
        return Err(Problem::GridSize { dimensions, grid, workgroup });
    }
    let items = group_x as u64 * group_y as u64 * group_z as u64;
    if items > MAX_WORKGROUP_ITEMS {
        return Err(Problem::WorkgroupSize { items });
    }
    Ok(())
}

impl fmt::Display for KernelDispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], [gx, gy, gz]) = (self.grid_size(), self.workgroup_size());
        write!(f, "kernel-dispatch {} dimensions={}", self.header(), self.dimensions())?;
        write!(f, " grid={x}x{y}x{z} workgroup={gx}x{gy}x{gz}")?;
        write!(
            f,
            " private={} group={}",
            self.private_segment_bytes(),
            self.group_segment_bytes()
        )?;
        write!(f, " kernel={} kernarg={}", self.kernel_object(), self.kernarg_address())?;
        if self.correlation_id() != 0 {
            write!(f, " correlation={:#x}", self.correlation_id())?;
        }
        super::decode::completion(f, self.completion_signal())
    }
}

/// Calls a function of another agent. Command processors of GPUs refuse it.
///
/// # Source
/// `hsa_agent_dispatch_packet_t` in ROCr inc/hsa.h; docs/ABI.md §AQL.
#[doc(alias = "hsa_agent_dispatch_packet_t")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct AgentDispatch(Packet);

packet_methods!(AgentDispatch);

impl AgentDispatch {
    /// Calls function `function` with `arguments`.
    pub const fn new(function: u16, arguments: [u64; 4]) -> Self {
        let mut packet = Packet::with(PacketType::AGENT_DISPATCH, function);
        let [a, b, c, d] = arguments;
        let [a, b, c, d] = [GpuAddr::new(a), GpuAddr::new(b), GpuAddr::new(c), GpuAddr::new(d)];
        packet.0[4] = a.lo();
        packet.0[5] = a.hi();
        packet.0[6] = b.lo();
        packet.0[7] = b.hi();
        packet.0[8] = c.lo();
        packet.0[9] = c.hi();
        packet.0[10] = d.lo();
        packet.0[11] = d.hi();
        Self(packet)
    }

    /// Stores the function's result at `address`.
    pub const fn return_address(mut self, address: GpuAddr) -> Self {
        self.0.0[2] = address.lo();
        self.0.0[3] = address.hi();
        self
    }

    /// The function called.
    pub const fn function(&self) -> u16 {
        self.0.setup()
    }

    /// Its arguments.
    pub const fn arguments(&self) -> [u64; 4] {
        let words = &self.0.0;
        [
            addr(words[4], words[5]).get(),
            addr(words[6], words[7]).get(),
            addr(words[8], words[9]).get(),
            addr(words[10], words[11]).get(),
        ]
    }

    /// Where its result goes, or null.
    pub const fn result(&self) -> GpuAddr {
        addr(self.0.0[2], self.0.0[3])
    }

    pub(super) fn decode(packet: Packet) -> Result<Self, Problem> {
        packet.check_frame()?;
        packet.zero(1..2)?;
        packet.zero(12..14)?;
        Ok(Self(packet))
    }
}

impl fmt::Display for AgentDispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.arguments();
        write!(f, "agent-dispatch {} function={}", self.header(), self.function())?;
        write!(f, " arguments={a:#x},{b:#x},{c:#x},{d:#x} result={}", self.result())?;
        super::decode::completion(f, self.completion_signal())
    }
}
