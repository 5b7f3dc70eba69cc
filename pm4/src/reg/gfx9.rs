//! Compute registers that gfx900, gfx906, gfx908, gfx90a and gfx942 share, and what each adds.
//!
//! # Source
//! gc_9_2_1, gc_9_4_2 and gc_9_4_3 `_offset.h` and `_sh_mask.h`, v9_structs.h;
//! docs/ABI.md §Compute registers.

use super::registers;

registers! {
    /// What all of them have.
    REGISTERS:
    /// Groups, or work-items, along x; `DISPATCH_DIRECT` writes it.
    COMPUTE_DIM_X = 0x2E01 : Word "A register that is one number." {
        word / set_word [31:0] "The number.",
    };
    /// Groups, or work-items, along y.
    COMPUTE_DIM_Y = 0x2E02 : Word;
    /// Groups, or work-items, along z.
    COMPUTE_DIM_Z = 0x2E03 : Word;
    /// First group id along x.
    COMPUTE_START_X = 0x2E04 : Word;
    /// First group id along y.
    COMPUTE_START_Y = 0x2E05 : Word;
    /// First group id along z.
    COMPUTE_START_Z = 0x2E06 : Word;
    /// Work-items of a group along x.
    COMPUTE_NUM_THREAD_X = 0x2E07 : ComputeNumThread "Work-items of a group along one axis." {
        num_thread_full / set_num_thread_full [15:0] "Of whole groups.",
        num_thread_partial / set_num_thread_partial [31:16] "Of the last group of a row, with PARTIAL_TG_EN.",
    };
    /// Work-items of a group along y.
    COMPUTE_NUM_THREAD_Y = 0x2E08 : ComputeNumThread;
    /// Work-items of a group along z.
    COMPUTE_NUM_THREAD_Z = 0x2E09 : ComputeNumThread;
    /// Whether pipeline statistics are counted.
    COMPUTE_PIPELINESTAT_ENABLE = 0x2E0A : ComputePipelinestatEnable "Whether pipeline statistics are counted." {
        pipelinestat_enable / set_pipelinestat_enable [0] "Counts.",
    };
    /// Whether performance counters count this work.
    COMPUTE_PERFCOUNT_ENABLE = 0x2E0B : ComputePerfcountEnable "Whether performance counters count this work." {
        perfcount_enable / set_perfcount_enable [0] "Counts.",
    };
    /// Address of the code / 256, low.
    COMPUTE_PGM_LO = 0x2E0C : Word;
    /// Address of the code / 256, high.
    COMPUTE_PGM_HI = 0x2E0D : AddressHigh "High bits of an address / 256." {
        data / set_data [7:0] "The bits.",
    };
    /// Address of the AQL packet, low; for debuggers.
    COMPUTE_DISPATCH_PKT_ADDR_LO = 0x2E0E : Word;
    /// Address of the AQL packet, high.
    COMPUTE_DISPATCH_PKT_ADDR_HI = 0x2E0F : AddressHigh;
    /// Address of scratch memory / 256, low.
    COMPUTE_DISPATCH_SCRATCH_BASE_LO = 0x2E10 : Word;
    /// Address of scratch memory / 256, high.
    COMPUTE_DISPATCH_SCRATCH_BASE_HI = 0x2E11 : AddressHigh;
    /// Registers and modes of a wave.
    COMPUTE_PGM_RSRC1 = 0x2E12 : ComputePgmRsrc1 "Registers and modes of a wave." {
        vgprs / set_vgprs [5:0] "Granules of vector registers, minus one.",
        sgprs / set_sgprs [9:6] "Granules of scalar registers, minus one; 0 on gfx11.",
        priority / set_priority [11:10] "Priority, 0 to 3.",
        float_mode / set_float_mode [19:12] "Rounding and denormals.",
        privileged / set_privileged [20] "AMD's `PRIV`: runs privileged.",
        dx10_clamp / set_dx10_clamp [21] "Clamps NaN to 0.",
        ieee_mode / set_ieee_mode [23] "IEEE mode.",
        bulky / set_bulky [24] "Throttles launches.",
        fp16_ovfl / set_fp16_ovfl [26] "Overflow of 16-bit floats saturates.",
    };
    /// What a wave starts with.
    COMPUTE_PGM_RSRC2 = 0x2E13 : ComputePgmRsrc2 "What a wave starts with." {
        scratch_en / set_scratch_en [0] "Has scratch memory.",
        user_sgpr / set_user_sgpr [5:1] "Number of user SGPRs.",
        trap_present / set_trap_present [6] "A trap handler is there.",
        tgid_x_en / set_tgid_x_en [7] "Has the group id x.",
        tgid_y_en / set_tgid_y_en [8] "Has the group id y.",
        tgid_z_en / set_tgid_z_en [9] "Has the group id z.",
        tg_size_en / set_tg_size_en [10] "Has the group size.",
        tidig_comp_cnt / set_tidig_comp_cnt [12:11] "Work-item ids: 0 x, 1 x and y, 2 x, y and z.",
        excp_en_msb / set_excp_en_msb [14:13] "High bits of the exceptions that trap: address watch, memory violation.",
        lds_size / set_lds_size [23:15] "LDS of a group, 512 bytes each.",
        excp_en / set_excp_en [30:24] "Exceptions that trap.",
        skip_usgpr0 / set_skip_usgpr0 [31] "Leaves out the first user SGPR.",
    };
    /// How many waves may run, and where.
    COMPUTE_RESOURCE_LIMITS = 0x2E15 : ComputeResourceLimits "How many waves may run, and where." {
        waves_per_sh / set_waves_per_sh [9:0] "Most waves of a shader array; 0 for no limit.",
        tg_per_cu / set_tg_per_cu [15:12] "Most groups of a CU; 0 for no limit.",
        lock_threshold / set_lock_threshold [21:16] "When a CU is locked for a group, waves / 4.",
        simd_dest_cntl / set_simd_dest_cntl [22] "Waves of a group go to SIMDs in order.",
        force_simd_dist / set_force_simd_dist [23] "Waves of a small group go to different SIMDs.",
        cu_group_count / set_cu_group_count [26:24] "Groups that go to one CU in a row, minus one.",
        simd_disable / set_simd_disable [30:27] "SIMDs that stay idle, one bit each.",
    };
    /// CUs of shader engine 0 that may run waves.
    COMPUTE_STATIC_THREAD_MGMT_SE0 = 0x2E16 : ComputeStaticThreadMgmt "CUs that may run waves, one bit each." {
        sh0_cu_en / set_sh0_cu_en [15:0] "CUs of shader array 0.",
        sh1_cu_en / set_sh1_cu_en [31:16] "CUs of shader array 1.",
    };
    /// CUs of shader engine 1 that may run waves.
    COMPUTE_STATIC_THREAD_MGMT_SE1 = 0x2E17 : ComputeStaticThreadMgmt;
    /// How much scratch memory there is.
    COMPUTE_TMPRING_SIZE = 0x2E18 : ComputeTmpringSize "How much scratch memory there is." {
        waves / set_waves [11:0] "Waves that have a slot on the whole XCC.",
        wavesize / set_wavesize [24:12] "Scratch of a wave, 1024 bytes each.",
    };
    /// CUs of shader engine 2 that may run waves.
    COMPUTE_STATIC_THREAD_MGMT_SE2 = 0x2E19 : ComputeStaticThreadMgmt;
    /// CUs of shader engine 3 that may run waves.
    COMPUTE_STATIC_THREAD_MGMT_SE3 = 0x2E1A : ComputeStaticThreadMgmt;
    /// Group id to restart at along x; 0.
    COMPUTE_RESTART_X = 0x2E1B : Word;
    /// Group id to restart at along y; 0.
    COMPUTE_RESTART_Y = 0x2E1C : Word;
    /// Group id to restart at along z; 0.
    COMPUTE_RESTART_Z = 0x2E1D : Word;
    /// Whether waves are traced.
    COMPUTE_THREAD_TRACE_ENABLE = 0x2E1E : ComputeThreadTraceEnable "Whether waves are traced." {
        thread_trace_enable / set_thread_trace_enable [0] "Traces.",
    };
    /// Number of the dispatch.
    COMPUTE_DISPATCH_ID = 0x2E20 : Word;
    /// Number of the group.
    COMPUTE_THREADGROUP_ID = 0x2E21 : Word;
    /// First of the 16 words that become user SGPRs.
    COMPUTE_USER_DATA_0 = 0x2E40 : Word;
}

/// What gfx900 and gfx906 add.
pub mod gfx900 {
    use super::Word;
    use super::registers;

    registers! {
        /// The registers.
        REGISTERS:
        /// Checksum of the code, for tools.
        COMPUTE_SHADER_CHKSUM = 0x2E25 : Word;
    }
}

/// What gfx908 adds.
pub mod gfx908 {
    use super::ComputeStaticThreadMgmt;
    use super::registers;

    registers! {
        /// The registers.
        REGISTERS:
        /// CUs of shader engine 4 that may run waves.
        COMPUTE_STATIC_THREAD_MGMT_SE4 = 0x2E25 : ComputeStaticThreadMgmt;
        /// CUs of shader engine 5 that may run waves.
        COMPUTE_STATIC_THREAD_MGMT_SE5 = 0x2E26 : ComputeStaticThreadMgmt;
        /// CUs of shader engine 6 that may run waves.
        COMPUTE_STATIC_THREAD_MGMT_SE6 = 0x2E27 : ComputeStaticThreadMgmt;
        /// CUs of shader engine 7 that may run waves.
        COMPUTE_STATIC_THREAD_MGMT_SE7 = 0x2E28 : ComputeStaticThreadMgmt;
    }
}

/// What gfx90a adds.
pub mod gfx90a {
    use super::registers;
    use super::{ComputeStaticThreadMgmt, Word};

    registers! {
        /// The registers.
        REGISTERS:
        /// CUs of shader engine 4 that may run waves.
        COMPUTE_STATIC_THREAD_MGMT_SE4 = 0x2E25 : ComputeStaticThreadMgmt;
        /// CUs of shader engine 5 that may run waves.
        COMPUTE_STATIC_THREAD_MGMT_SE5 = 0x2E26 : ComputeStaticThreadMgmt;
        /// CUs of shader engine 6 that may run waves.
        COMPUTE_STATIC_THREAD_MGMT_SE6 = 0x2E27 : ComputeStaticThreadMgmt;
        /// CUs of shader engine 7 that may run waves.
        COMPUTE_STATIC_THREAD_MGMT_SE7 = 0x2E28 : ComputeStaticThreadMgmt;
        /// Checksum of the code, for tools.
        COMPUTE_SHADER_CHKSUM = 0x2E2C : Word;
        /// Further resources of a wave.
        COMPUTE_PGM_RSRC3 = 0x2E2D : ComputePgmRsrc3 "Further resources of a wave." {
            accum_offset / set_accum_offset [5:0] "First accumulation VGPR / 4, minus one.",
            tg_split / set_tg_split [16] "Waves of a group may run on different CUs.",
        };
    }
}

/// What gfx942 adds.
pub mod gfx942 {
    use super::Word;
    use super::registers;

    registers! {
        /// The registers.
        REGISTERS:
        /// Groups handed to one XCC in a row.
        COMPUTE_TG_CHUNK_SIZE = 0x2E27 : ComputeTgChunkSize "Groups handed to one XCC in a row." {
            tg_chunk_size / set_tg_chunk_size [15:0] "Groups in a row; 0 counts as 1.",
        };
        /// Checksum of the code, for tools.
        COMPUTE_SHADER_CHKSUM = 0x2E2C : Word;
        /// Further resources of a wave.
        COMPUTE_PGM_RSRC3 = 0x2E2D : ComputePgmRsrc3 "Further resources of a wave." {
            accum_offset / set_accum_offset [5:0] "First accumulation VGPR / 4, minus one.",
            trap_on_start / set_trap_on_start [10] "Traps when a wave starts.",
            trap_on_end / set_trap_on_end [11] "Traps when a wave ends.",
            tg_split / set_tg_split [16] "Waves of a group may run on different CUs.",
        };
    }
}
