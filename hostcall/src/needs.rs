//! Which services a kernel needs: decided once, when its module is loaded.
//!
//! A kernel needs a service when its metadata declares the hidden argument for it. Compilers
//! declare more than kernels use, so a declared argument is no proof of use: it is always written,
//! with an address or with 0, and never a reason to refuse a launch.

use hsaco::{CodeObject, Kernel, Needs, has_local_variable};

use crate::error::{Error, Result};
use crate::layout::Transport;

bitflags::bitflags! {
    /// Services that a kernel declares. Empty for an ordinary kernel.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ServiceNeeds: u8 {
        /// `hidden_hostcall_buffer`: a pool of the launch's queue.
        const HOSTCALL = 1;
        /// `hidden_printf_buffer`: a buffer of the launch's own.
        const PRINTF_BUFFER = 2;
        /// `hidden_heap_v1`: the device's heap, which is served through hostcall.
        const HEAP = 4;
    }
}

/// Cold data of a kernel is one byte.
const _: () = assert!(size_of::<ServiceNeeds>() == 1);
const _: () = assert!(size_of::<Option<Box<ModuleNeeds>>>() == 8);

/// Addresses for the hidden arguments; 0 for what is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// [`Pool::address`](crate::Pool::address) of the launch's queue.
    pub hostcall_buffer: u64,
    /// The launch's printf buffer.
    pub printf_buffer: u64,
    /// The device's heap block.
    pub heap: u64,
}

const _: () = assert!(size_of::<Addresses>() == 24);

impl ServiceNeeds {
    /// Those among a kernel's needs.
    pub fn of(kernel: &Kernel<'_>) -> Self {
        let mut services = Self::empty();
        services.set(Self::HOSTCALL, kernel.needs().contains(Needs::HOSTCALL_BUFFER));
        services.set(Self::PRINTF_BUFFER, kernel.needs().contains(Needs::PRINTF_BUFFER));
        services.set(Self::HEAP, kernel.needs().contains(Needs::HEAP));
        services
    }

    /// Writes the addresses of declared services into what a kernarg template is made from, and
    /// leaves the rest as it is. A service that is not offered is 0.
    pub fn claim(self, addresses: &Addresses, services: &mut hsaco::Services) {
        if self.contains(Self::HOSTCALL) {
            services.hostcall_buffer = addresses.hostcall_buffer;
        }
        if self.contains(Self::PRINTF_BUFFER) {
            services.printf_buffer = addresses.printf_buffer;
        }
        if self.contains(Self::HEAP) {
            services.heap_v1 = addresses.heap;
        }
    }

    /// Whether a recorded graph can hold the kernel: its arguments are written once.
    ///
    /// # Errors
    /// [`Error::NotInGraph`] with the service that needs memory of each launch.
    pub const fn check_graph(self) -> Result<()> {
        if self.contains(Self::PRINTF_BUFFER) {
            return Err(Error::NotInGraph { service: "buffered printf (hidden_printf_buffer)" });
        }
        Ok(())
    }
}

/// How the transport of a module was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// The caller said so.
    Chosen,
    /// The object has the variable that only the phase transport's device library has.
    Variable,
    /// Nothing in the object tells; the stack transport is what releases have.
    Assumed,
}

impl Evidence {
    /// A line for reports.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Chosen => "chosen by the caller",
            Self::Variable => "the object has the variable last_signal_time",
            Self::Assumed => {
                "assumed: the object does not say; choose the phase transport if it was built \
                 with USE_NEW_HOSTCALL_IMPL and stripped"
            }
        }
    }
}

/// The variable of the phase transport's device library, and its size.
///
/// # Source
/// device-libs ockl/src/hostcall_impl.cl (2026); docs/ABI.md §Hostcall transports.
const PHASE_VARIABLE: (&str, u64) = ("last_signal_time", 8);

/// What the kernels of a module need. Never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleNeeds {
    transport: Transport,
    evidence: Evidence,
    kernels: Box<[ServiceNeeds]>,
}

impl ModuleNeeds {
    /// The needs of an object's kernels, in the object's order; `None` when there are none, which
    /// is all there is to know of most modules. `bytes` are those that `object` was parsed from.
    pub fn of(
        object: &CodeObject<'_>,
        bytes: &[u8],
        choice: Option<Transport>,
    ) -> Option<Box<Self>> {
        let needs = object.kernels().iter().map(ServiceNeeds::of);
        let kernels: Box<[ServiceNeeds]> = needs.collect();
        if kernels.iter().all(|needs| needs.is_empty()) {
            return None;
        }
        let (name, size) = PHASE_VARIABLE;
        let (transport, evidence) = match choice {
            Some(transport) => (transport, Evidence::Chosen),
            None if has_local_variable(bytes, name, size) => (Transport::Phase, Evidence::Variable),
            None => (Transport::Stack, Evidence::Assumed),
        };
        Some(Box::new(Self { transport, evidence, kernels }))
    }

    /// The transport that the module's device library uses.
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// How it was found.
    pub const fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// What a kernel needs, by its place in the object; empty for one that is not there.
    pub fn kernel(&self, index: usize) -> ServiceNeeds {
        self.kernels.get(index).copied().unwrap_or_default()
    }

    /// What any kernel needs.
    pub fn any(&self) -> ServiceNeeds {
        self.kernels.iter().copied().collect()
    }
}
