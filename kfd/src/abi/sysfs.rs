//! Bits and numbers in the topology's files. Source: include/uapi/linux/kfd_sysfs.h, Linux 6.12.117.

open_flags! {
    /// `capability` of a node.
    pub struct Capability(u32);
    /// Can be plugged while running.
    HOT_PLUGGABLE = 0x1, "HSA_CAP_HOT_PLUGGABLE";
    /// Translates addresses through the IOMMU.
    ATS_PRESENT = 0x2, "HSA_CAP_ATS_PRESENT";
    /// Also draws.
    SHARED_WITH_GRAPHICS = 0x4, "HSA_CAP_SHARED_WITH_GRAPHICS";
    /// Ring sizes are powers of two.
    QUEUE_SIZE_POW2 = 0x8, "HSA_CAP_QUEUE_SIZE_POW2";
    /// Ring sizes are 32-bit.
    QUEUE_SIZE_32BIT = 0x10, "HSA_CAP_QUEUE_SIZE_32BIT";
    /// Has an idle event.
    QUEUE_IDLE_EVENT = 0x20, "HSA_CAP_QUEUE_IDLE_EVENT";
    /// Has a limit on addresses.
    VA_LIMIT = 0x40, "HSA_CAP_VA_LIMIT";
    /// Has address watches.
    WATCH_POINTS_SUPPORTED = 0x80, "HSA_CAP_WATCH_POINTS_SUPPORTED";
    /// log2 of their number.
    WATCH_POINTS_TOTALBITS_MASK = 0xf00, "HSA_CAP_WATCH_POINTS_TOTALBITS_MASK";
    /// A [`DoorbellType`].
    DOORBELL_TYPE_TOTALBITS_MASK = 0x3000, "HSA_CAP_DOORBELL_TYPE_TOTALBITS_MASK";
    /// AQL rings are mapped twice.
    AQL_QUEUE_DOUBLE_MAP = 0x4000, "HSA_CAP_AQL_QUEUE_DOUBLE_MAP";
    /// Can be debugged.
    TRAP_DEBUG_SUPPORT = 0x8000, "HSA_CAP_TRAP_DEBUG_SUPPORT";
    /// Exceptions that trap can be chosen.
    TRAP_DEBUG_WAVE_LAUNCH_TRAP_OVERRIDE_SUPPORTED = 0x1_0000,
        "HSA_CAP_TRAP_DEBUG_WAVE_LAUNCH_TRAP_OVERRIDE_SUPPORTED";
    /// How waves start can be chosen.
    TRAP_DEBUG_WAVE_LAUNCH_MODE_SUPPORTED = 0x2_0000,
        "HSA_CAP_TRAP_DEBUG_WAVE_LAUNCH_MODE_SUPPORTED";
    /// Memory operations can be made precise.
    TRAP_DEBUG_PRECISE_MEMORY_OPERATIONS_SUPPORTED = 0x4_0000,
        "HSA_CAP_TRAP_DEBUG_PRECISE_MEMORY_OPERATIONS_SUPPORTED";
    /// Kept 0 for old programs.
    RESERVED_WAS_SRAM_EDCSUPPORTED = 0x8_0000, "HSA_CAP_RESERVED_WAS_SRAM_EDCSUPPORTED";
    /// Memory is checked.
    MEM_EDCSUPPORTED = 0x10_0000, "HSA_CAP_MEM_EDCSUPPORTED";
    /// Reports memory errors.
    RASEVENTNOTIFY = 0x20_0000, "HSA_CAP_RASEVENTNOTIFY";
    /// Revision of the chip.
    ASIC_REVISION_MASK = 0x3c0_0000, "HSA_CAP_ASIC_REVISION_MASK";
    /// SRAM is checked.
    SRAM_EDCSUPPORTED = 0x400_0000, "HSA_CAP_SRAM_EDCSUPPORTED";
    /// Has shared virtual memory.
    SVMAPI_SUPPORTED = 0x800_0000, "HSA_CAP_SVMAPI_SUPPORTED";
    /// The host's accesses to VRAM are coherent.
    FLAGS_COHERENTHOSTACCESS = 0x1000_0000, "HSA_CAP_FLAGS_COHERENTHOSTACCESS";
    /// The firmware can debug.
    TRAP_DEBUG_FIRMWARE_SUPPORTED = 0x2000_0000, "HSA_CAP_TRAP_DEBUG_FIRMWARE_SUPPORTED";
    /// Arithmetic can be made precise.
    TRAP_DEBUG_PRECISE_ALU_OPERATIONS_SUPPORTED = 0x4000_0000,
        "HSA_CAP_TRAP_DEBUG_PRECISE_ALU_OPERATIONS_SUPPORTED";
    /// What the header calls reserved.
    RESERVED = 0x800f_8000, "HSA_CAP_RESERVED";
}

constants! {
    /// Lowest bit of [`Capability::WATCH_POINTS_TOTALBITS_MASK`].
    pub const WATCH_POINTS_TOTALBITS_SHIFT: u32 = 8, "HSA_CAP_WATCH_POINTS_TOTALBITS_SHIFT";
    /// Lowest bit of [`Capability::DOORBELL_TYPE_TOTALBITS_MASK`].
    pub const DOORBELL_TYPE_TOTALBITS_SHIFT: u32 = 12, "HSA_CAP_DOORBELL_TYPE_TOTALBITS_SHIFT";
    /// Lowest bit of [`Capability::ASIC_REVISION_MASK`].
    pub const ASIC_REVISION_SHIFT: u32 = 22, "HSA_CAP_ASIC_REVISION_SHIFT";
    /// Lowest bit of [`DebugProp::WATCH_ADDR_MASK_LO_BIT_MASK`].
    pub const WATCH_ADDR_MASK_LO_BIT_SHIFT: u32 = 0, "HSA_DBG_WATCH_ADDR_MASK_LO_BIT_SHIFT";
    /// Lowest bit of [`DebugProp::WATCH_ADDR_MASK_HI_BIT_MASK`].
    pub const WATCH_ADDR_MASK_HI_BIT_SHIFT: u32 = 4, "HSA_DBG_WATCH_ADDR_MASK_HI_BIT_SHIFT";
}

open_enum! {
    /// What a doorbell takes.
    pub struct DoorbellType(u32);
    /// gfx7: 32 bits, dwords in the ring.
    PRE_1_0 = 0, "HSA_CAP_DOORBELL_TYPE_PRE_1_0";
    /// gfx8: 32 bits, an index.
    V1_0 = 1, "HSA_CAP_DOORBELL_TYPE_1_0";
    /// gfx9 and later: 64 bits.
    V2_0 = 2, "HSA_CAP_DOORBELL_TYPE_2_0";
}

open_flags! {
    /// `debug_prop` of a node.
    pub struct DebugProp(u64);
    /// Lowest bit of an address that a watch compares.
    WATCH_ADDR_MASK_LO_BIT_MASK = 0xf, "HSA_DBG_WATCH_ADDR_MASK_LO_BIT_MASK";
    /// Highest one.
    WATCH_ADDR_MASK_HI_BIT_MASK = 0x3f0, "HSA_DBG_WATCH_ADDR_MASK_HI_BIT_MASK";
    /// Waves always know their dispatch.
    DISPATCH_INFO_ALWAYS_VALID = 0x400, "HSA_DBG_DISPATCH_INFO_ALWAYS_VALID";
    /// A watch belongs to one process.
    WATCHPOINTS_EXCLUSIVE = 0x800, "HSA_DBG_WATCHPOINTS_EXCLUSIVE";
    /// What the header calls reserved.
    RESERVED = 0xffff_ffff_ffff_f000, "HSA_DBG_RESERVED";
}

open_enum! {
    /// `heap_type` of a memory bank.
    pub struct HeapType(u32);
    /// The host's memory.
    SYSTEM = 0, "HSA_MEM_HEAP_TYPE_SYSTEM";
    /// VRAM that the CPU can access.
    FB_PUBLIC = 1, "HSA_MEM_HEAP_TYPE_FB_PUBLIC";
    /// VRAM of which the CPU can access only a window.
    FB_PRIVATE = 2, "HSA_MEM_HEAP_TYPE_FB_PRIVATE";
    /// Global data share.
    GPU_GDS = 3, "HSA_MEM_HEAP_TYPE_GPU_GDS";
    /// Local data share.
    GPU_LDS = 4, "HSA_MEM_HEAP_TYPE_GPU_LDS";
    /// Scratch.
    GPU_SCRATCH = 5, "HSA_MEM_HEAP_TYPE_GPU_SCRATCH";
}

open_flags! {
    /// `flags` of a memory bank.
    pub struct MemoryBankFlags(u32);
    /// Can be plugged while running.
    HOT_PLUGGABLE = 1, "HSA_MEM_FLAGS_HOT_PLUGGABLE";
    /// Keeps its content.
    NON_VOLATILE = 2, "HSA_MEM_FLAGS_NON_VOLATILE";
    /// What the header calls reserved.
    RESERVED = 0xffff_fffc, "HSA_MEM_FLAGS_RESERVED";
}

open_flags! {
    /// `type` of a cache.
    pub struct CacheType(u32);
    /// Holds data.
    DATA = 1, "HSA_CACHE_TYPE_DATA";
    /// Holds instructions.
    INSTRUCTION = 2, "HSA_CACHE_TYPE_INSTRUCTION";
    /// The CPU's.
    CPU = 4, "HSA_CACHE_TYPE_CPU";
    /// The GPU's.
    HSACU = 8, "HSA_CACHE_TYPE_HSACU";
    /// What the header calls reserved.
    RESERVED = 0xffff_fff0, "HSA_CACHE_TYPE_RESERVED";
}

open_enum! {
    /// `type` of a link.
    pub struct IoLinkType(u32);
    /// Not known.
    UNDEFINED = 0, "HSA_IOLINK_TYPE_UNDEFINED";
    /// HyperTransport.
    HYPERTRANSPORT = 1, "HSA_IOLINK_TYPE_HYPERTRANSPORT";
    /// PCI Express.
    PCIEXPRESS = 2, "HSA_IOLINK_TYPE_PCIEXPRESS";
    /// AMBA.
    AMBA = 3, "HSA_IOLINK_TYPE_AMBA";
    /// MIPI.
    MIPI = 4, "HSA_IOLINK_TYPE_MIPI";
    /// QPI 1.1.
    QPI_1_1 = 5, "HSA_IOLINK_TYPE_QPI_1_1";
    /// Reserved.
    RESERVED1 = 6, "HSA_IOLINK_TYPE_RESERVED1";
    /// Reserved.
    RESERVED2 = 7, "HSA_IOLINK_TYPE_RESERVED2";
    /// RapidIO.
    RAPID_IO = 8, "HSA_IOLINK_TYPE_RAPID_IO";
    /// InfiniBand.
    INFINIBAND = 9, "HSA_IOLINK_TYPE_INFINIBAND";
    /// Reserved.
    RESERVED3 = 10, "HSA_IOLINK_TYPE_RESERVED3";
    /// xGMI.
    XGMI = 11, "HSA_IOLINK_TYPE_XGMI";
    /// xGOP.
    XGOP = 12, "HSA_IOLINK_TYPE_XGOP";
    /// GZ.
    GZ = 13, "HSA_IOLINK_TYPE_GZ";
    /// RDMA over Ethernet.
    ETHERNET_RDMA = 14, "HSA_IOLINK_TYPE_ETHERNET_RDMA";
    /// Other RDMA.
    RDMA_OTHER = 15, "HSA_IOLINK_TYPE_RDMA_OTHER";
    /// Other.
    OTHER = 16, "HSA_IOLINK_TYPE_OTHER";
}

open_flags! {
    /// `flags` of a link.
    pub struct IoLinkFlags(u32);
    /// Can be used.
    ENABLED = 1, "HSA_IOLINK_FLAGS_ENABLED";
    /// Not coherent.
    NON_COHERENT = 2, "HSA_IOLINK_FLAGS_NON_COHERENT";
    /// No 32-bit atomics.
    NO_ATOMICS_32_BIT = 4, "HSA_IOLINK_FLAGS_NO_ATOMICS_32_BIT";
    /// No 64-bit atomics.
    NO_ATOMICS_64_BIT = 8, "HSA_IOLINK_FLAGS_NO_ATOMICS_64_BIT";
    /// No DMA between peers.
    NO_PEER_TO_PEER_DMA = 0x10, "HSA_IOLINK_FLAGS_NO_PEER_TO_PEER_DMA";
    /// What the header calls reserved.
    RESERVED = 0xffff_ffe0, "HSA_IOLINK_FLAGS_RESERVED";
}
