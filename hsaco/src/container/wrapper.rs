//! The wrapper that a host program registers: where its bundle is in memory.

use crate::bundle::Fields;
use crate::error::ContainerProblem;

/// Size of a fat-binary wrapper.
pub const FAT_WRAPPER_BYTES: usize = 24;

// Source: docs/ABI.md §Fat-binary wrapper.
const MAGIC_HIPF: u32 = 0x4849_5046;
const MAGIC_HIPK: u32 = 0x4b50_4948;
const VERSION: u32 = 1;

/// A fat-binary wrapper, as `__hipRegisterFatBinary` is given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatWrapper {
    /// Address of the bundle in the host program's memory; not null, 8-byte aligned. Its length is
    /// what [`crate::bundle::extent`] tells.
    pub bundle: u64,
}

impl FatWrapper {
    /// Checks a wrapper in memory.
    ///
    /// # Errors
    /// [`ContainerProblem::WrapperMagic`], [`ContainerProblem::PackedKernels`],
    /// [`ContainerProblem::WrapperVersion`], [`ContainerProblem::NullBundle`] or
    /// [`ContainerProblem::Misaligned`].
    pub fn read(bytes: &[u8; FAT_WRAPPER_BYTES]) -> Result<Self, ContainerProblem> {
        let bundle = Self::check(bytes)?;
        if bundle == 0 {
            return Err(ContainerProblem::NullBundle);
        }
        if !bundle.is_multiple_of(8) {
            return Err(ContainerProblem::Misaligned { what: "the bundle", address: bundle });
        }
        Ok(Self { bundle })
    }

    /// Checks that a wrapper may be read at an address.
    ///
    /// # Errors
    /// [`ContainerProblem::NullBundle`] for null, [`ContainerProblem::Misaligned`].
    pub fn check_address(address: u64) -> Result<(), ContainerProblem> {
        match address {
            0 => Err(ContainerProblem::NullBundle),
            _ if !address.is_multiple_of(8) => {
                Err(ContainerProblem::Misaligned { what: "the fat-binary wrapper", address })
            }
            _ => Ok(()),
        }
    }

    /// Checks magic and version; the pointer, which a file may leave to the linker, is returned.
    fn check(bytes: &[u8]) -> Result<u64, ContainerProblem> {
        const WHAT: &str = "the fat-binary wrapper";
        let fields = Fields(bytes);
        match fields.u32(WHAT, 0)? {
            MAGIC_HIPF => {}
            MAGIC_HIPK => return Err(ContainerProblem::PackedKernels),
            found => return Err(ContainerProblem::WrapperMagic { found }),
        }
        match fields.u32(WHAT, 4)? {
            VERSION => {}
            found => return Err(ContainerProblem::WrapperVersion { found }),
        }
        fields.u64(WHAT, 8)
    }

    /// Checks the wrappers in a section of a host file, one after another.
    pub(super) fn check_section(bytes: &[u8]) -> Result<(), ContainerProblem> {
        for wrapper in bytes.chunks(FAT_WRAPPER_BYTES) {
            // The section may be padded at its end.
            if crate::bundle::first_not_zero(wrapper).is_some() {
                Self::check(wrapper)?;
            }
        }
        Ok(())
    }
}
