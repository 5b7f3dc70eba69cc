//! AMDGPU code objects: what a loader needs to know of them, without touching a device.
//!
//! A code object ("HSACO") is an ELF shared object that a compiler made for one AMD GPU target.
//! [`CodeObject::parse`] checks it completely and borrows from its bytes:
//!
//! ```
//! # fn load(bytes: &[u8], device: hsaco::DeviceTarget, base: u64) -> Result<(), Box<dyn std::error::Error>> {
//! let object = hsaco::CodeObject::parse(bytes)?;
//! object.target().fits(&device)?;
//! let image = object.image(base)?; // relocated for `base`; `image.load_bytes()` of GPU memory
//! let kernel = object.kernel("vadd").ok_or("no such kernel")?;
//! let descriptor_address = image.address_of(kernel.descriptor_vaddr()); // for the dispatch packet
//! let mut kernarg = kernel.arguments().builder()?;
//! kernarg.push(&0x1000_u64.to_le_bytes())?;
//! # let _ = descriptor_address;
//! # Ok(())
//! # }
//! ```
//!
//! [`Container::read`] finds the objects in any file that has some, a bundle or a host program, and
//! [`Container::choose`] takes the best for a device; [`Kernel::needs`] and [`occupancy()`] tell what a
//! kernel asks of the host and how much of it runs at once. What costs time or memory is left until it
//! is wanted: images are parsed when chosen, relocated when loaded, and a kernel's
//! [`KernargTemplate`] is made when it is first launched.
//!
//! The crate is pure: bytes in, values out. It starts no thread, opens no file, prints nothing.
//! Versions 3 to 6 are read; anything else is refused by name ([`Error`]). Nothing in the input
//! can make it panic, loop without end, or allocate more than a small multiple of the input's size;
//! decompression has a limit of its own ([`bundle::MAX_DECOMPRESSED_BYTES`]).
//! docs/hostile-inputs.md lists what can be wrong with a file, and the test for each.
#![forbid(unsafe_code)]

pub mod bundle;
mod code_object;
pub mod container;
mod descriptor;
mod elf;
mod error;
pub mod kernarg;
mod kernel;
pub mod load;
mod local;
mod managed;
pub mod metadata;
mod needs;
pub mod occupancy;
mod select;
pub mod target;

pub use bundle::{Bundle, BundleEntry};
pub use code_object::{CodeObject, Identity, Variable};
pub use container::{Container, ContainerKind};
pub use descriptor::{DESCRIPTOR_BYTES, KernelDescriptor, KernelProperties, Preload};
pub use elf::CodeObjectVersion;
pub use error::{
    ArgumentError, ContainerProblem, DescriptorProblem, Error, ManagedProblem, MetadataProblem,
    PrintfProblem, Result, TargetProblem,
};
pub use kernarg::{ArgLayout, Geometry, HiddenValues, KernargTemplate, Services};
pub use kernel::{Kernel, LaunchFacts};
pub use load::{Image, Permissions, Segment};
pub use local::has_local_variable;
pub use managed::ManagedVariable;
pub use needs::Needs;
pub use occupancy::{Occupancy, Resources, occupancy};
pub use select::{Choice, Misfit, NoFit};
pub use target::{DeviceTarget, FeatureState, Mismatch, ObjectTarget, Processor};
