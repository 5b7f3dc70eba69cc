//! PM4 and SDMA packets of AMD GPUs.
#![no_std]
#![forbid(unsafe_code)]

mod addr;

pub use addr::GpuAddr;
