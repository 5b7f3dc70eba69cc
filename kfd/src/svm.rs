//! Shared virtual memory: ranges of ordinary memory that GPUs reach by themselves.

use std::sync::Arc;

use crate::abi::{self, SvmAttrType, SvmLocation, SvmOp};
use crate::core::Core;
use crate::device::Kfd;
use crate::error::{Error, Object, Result};
use crate::ids::GpuId;
use crate::memory::{Lease, Mapping};
use crate::sys::{Backing, Errno};

/// Where the pages of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvmPlace {
    /// In system memory.
    System,
    /// In a GPU's memory.
    Gpu(GpuId),
    /// Not said, or not the same for the whole range.
    Undefined,
}

/// How a GPU reaches a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvmAccess {
    /// It may move pages to itself.
    Migrate,
    /// It leaves pages where they are.
    InPlace,
    /// Not at all.
    None,
}

/// A change of a range's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SvmSetting {
    /// Where pages should be.
    Preferred(SvmPlace),
    /// Moves the pages now.
    Prefetch(SvmPlace),
    /// How a GPU reaches them.
    Access(GpuId, SvmAccess),
    /// Sets flags (docs/ABI.md §SVM).
    SetFlags(u32),
    /// Clears flags.
    ClearFlags(u32),
    /// log2 of the pages that move together, at most 63.
    Granularity(u8),
}

impl SvmPlace {
    fn raw(self) -> u32 {
        match self {
            Self::System => SvmLocation::SYSMEM.0,
            Self::Gpu(gpu) => gpu.0,
            Self::Undefined => SvmLocation::UNDEFINED.0,
        }
    }

    fn from_raw(raw: u32) -> Self {
        match SvmLocation(raw) {
            SvmLocation::SYSMEM => Self::System,
            SvmLocation::UNDEFINED => Self::Undefined,
            SvmLocation(gpu) => Self::Gpu(GpuId(gpu)),
        }
    }
}

impl SvmSetting {
    fn encode(self) -> abi::SvmAttribute {
        let (kind, value) = match self {
            Self::Preferred(place) => (SvmAttrType::PREFERRED_LOC, place.raw()),
            Self::Prefetch(place) => (SvmAttrType::PREFETCH_LOC, place.raw()),
            Self::Access(gpu, SvmAccess::Migrate) => (SvmAttrType::ACCESS, gpu.0),
            Self::Access(gpu, SvmAccess::InPlace) => (SvmAttrType::ACCESS_IN_PLACE, gpu.0),
            Self::Access(gpu, SvmAccess::None) => (SvmAttrType::NO_ACCESS, gpu.0),
            Self::SetFlags(flags) => (SvmAttrType::SET_FLAGS, flags),
            Self::ClearFlags(flags) => (SvmAttrType::CLR_FLAGS, flags),
            Self::Granularity(pages) => (SvmAttrType::GRANULARITY, u32::from(pages)),
        };
        abi::SvmAttribute { kind, value }
    }
}

/// A range of shared virtual memory. Not inherited by a forked child.
#[derive(Debug)]
pub struct SvmRange {
    core: Arc<Core>,
    // Unmapped before its addresses are free.
    mapping: Mapping,
    lease: Lease,
}

impl Kfd {
    /// Makes a zeroed range of at least `bytes`, which no GPU reaches before
    /// [`SvmRange::set`] says so. Needs KFD 1.5 and a kernel built with it.
    ///
    /// # Errors
    /// [`Error::KfdTooOld`]; [`Error::OutOfAddressSpace`]; [`Error::System`].
    pub fn create_svm(&self, bytes: u64) -> Result<SvmRange> {
        let core = Arc::clone(&self.context.core);
        core.require("shared virtual memory", 5)?;
        let lease = core.space.lease(bytes)?;
        let mapping = lease.map(Backing::Anonymous)?;
        Ok(SvmRange { core, mapping, lease })
    }

    /// Whether the process may take page faults of GPUs. Needs KFD 1.5.
    ///
    /// # Errors
    /// [`Error::KfdTooOld`]; [`Error::Ioctl`] of SET_XNACK_MODE: `EPERM` from a kernel built
    /// without SVM.
    pub fn xnack_mode(&self) -> Result<bool> {
        self.context.core.require("the XNACK mode", 5)?;
        let mut args = abi::SetXnackModeArgs { xnack_enabled: -1 };
        self.context.core.call(&mut args, Object::Process)?;
        Ok(args.xnack_enabled > 0)
    }

    /// As [`Kfd::xnack_mode`], and off where the kernel cannot say: it is off unless something
    /// turned it on, and then the kernel can say.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of SET_XNACK_MODE other than `EPERM`.
    pub fn xnack_enabled(&self) -> Result<bool> {
        match self.xnack_mode() {
            Err(Error::KfdTooOld { .. } | Error::Ioctl { errno: Errno::PERM, .. }) => Ok(false),
            mode => mode,
        }
    }

    /// Chooses whether the process may take page faults of GPUs, before its first queue.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of SET_XNACK_MODE: `EBUSY` once there is a queue, `EPERM` when a GPU of the
    /// process cannot; [`Error::KfdTooOld`].
    pub fn set_xnack_mode(&self, enabled: bool) -> Result<()> {
        self.context.core.require("the XNACK mode", 5)?;
        let mut args = abi::SetXnackModeArgs { xnack_enabled: i32::from(enabled) };
        self.context.core.call(&mut args, Object::Process).map(drop)
    }
}

impl SvmRange {
    /// First address, for CPU and GPU.
    pub fn addr(&self) -> pm4::GpuAddr {
        self.lease.start().into()
    }

    /// Whole pages, bytes.
    pub fn bytes(&self) -> u64 {
        self.lease.bytes()
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        self.mapping.read(offset, to)
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<()> {
        self.mapping.write(offset, from)
    }

    /// Changes attributes, all or none.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of SVM: `EINVAL` for a GPU without SVM or without acquired VM, `EPERM` from
    /// a kernel built without it.
    pub fn set(&self, settings: &[SvmSetting]) -> Result<()> {
        let mut attributes: Vec<_> = settings.iter().map(|setting| setting.encode()).collect();
        self.core.svm(SvmOp::SET_ATTR, &self.lease, &mut attributes)
    }

    /// Where the pages should be, and where they were last moved to.
    ///
    /// # Errors
    /// As [`SvmRange::set`].
    pub fn places(&self) -> Result<(SvmPlace, SvmPlace)> {
        let ask = |kind| abi::SvmAttribute { kind, value: 0 };
        let mut answer = [ask(SvmAttrType::PREFERRED_LOC), ask(SvmAttrType::PREFETCH_LOC)];
        self.core.svm(SvmOp::GET_ATTR, &self.lease, &mut answer)?;
        let [preferred, prefetched] = answer.map(|attribute| SvmPlace::from_raw(attribute.value));
        Ok((preferred, prefetched))
    }

    /// How a GPU reaches it.
    ///
    /// # Errors
    /// As [`SvmRange::set`].
    pub fn access(&self, gpu: GpuId) -> Result<SvmAccess> {
        let mut answer = [abi::SvmAttribute { kind: SvmAttrType::ACCESS, value: gpu.0 }];
        self.core.svm(SvmOp::GET_ATTR, &self.lease, &mut answer)?;
        let [attribute] = answer;
        Ok(match attribute.kind {
            SvmAttrType::ACCESS => SvmAccess::Migrate,
            SvmAttrType::ACCESS_IN_PLACE => SvmAccess::InPlace,
            _ => SvmAccess::None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_pairs_of_type_and_value() {
        let encode = |setting: SvmSetting| {
            let attribute = setting.encode();
            (attribute.kind, attribute.value)
        };
        let gpu = GpuId(4672);
        assert_eq!(encode(SvmSetting::Preferred(SvmPlace::System)), (SvmAttrType(0), 0));
        assert_eq!(encode(SvmSetting::Prefetch(SvmPlace::Gpu(gpu))), (SvmAttrType(1), 4672));
        assert_eq!(encode(SvmSetting::Access(gpu, SvmAccess::InPlace)), (SvmAttrType(3), 4672));
        assert_eq!(encode(SvmSetting::ClearFlags(2)), (SvmAttrType(6), 2));
        assert_eq!(SvmPlace::from_raw(u32::MAX), SvmPlace::Undefined);
    }
}
