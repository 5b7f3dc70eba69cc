//! What a launch is made of: [`Function`] with all that was decided when its module was loaded,
//! [`Grid`], and [`Arguments`].

mod args;
mod grid;
mod layout;

use std::fmt;
use std::sync::Arc;

use aql::{FenceScope, KernelDispatch, Packet};
use hsaco::{Kernel, KernelProperties, LaunchFacts, Needs, Services};
use kfd::KernelLabel;
use pm4::GpuAddr;
use pm4::dispatch::{Program, Properties, Template};

pub use args::{Argument, Arguments, ByValue, MAX_NATURAL, Packed, Shape, Slot};
pub use grid::Grid;
pub(crate) use grid::{Limits, Size};
pub(crate) use layout::Layout;

use crate::device::DeviceCore;
use crate::error::{Error, LaunchProblem, Result};
use crate::module::ModuleCore;

/// Stack of a work-item for calls whose depth the compiler could not tell (recursion, calls through
/// pointers), bytes, on top of what the kernel declares: HIP's default limit.
pub const DYNAMIC_STACK_BYTES: u32 = 1024;

/// Work-items of a group that hardware takes at most.
const MAX_GROUP: u32 = 1024;

/// Immutable, and all of it known before the first launch.
#[derive(Debug)]
pub(crate) struct Cold {
    /// No other kernel of the runtime has, or had, the same; not 0.
    pub id: u64,
    pub layout: Layout,
    pub limits: Limits,
    /// What a launch by the short way is checked against: `limits`, or limits that no grid is in for a
    /// kernel that is launched another way. So the short way has no check for those.
    pub gate: Limits,
    #[cfg(feature = "services")]
    pub services: Option<Box<crate::services::KernelServices>>,
    /// Everything but sizes and arguments, with the fences of a launch inside a stream.
    pub dispatch: KernelDispatch,
    pub private_bytes: u32,
    pub label: KernelLabel,
    pub device: Arc<DeviceCore>,
    pub module: Arc<ModuleCore>,
    pub name: Arc<str>,
    pub needs: Needs,
    pub facts: LaunchFacts,
    /// For PM4 queues: the checked program, or why there is none.
    pub program: std::result::Result<Program, LaunchProblem>,
    /// Its launch state, for programs that want nothing but scratch and arguments.
    pub template: Option<Box<Template>>,
}

impl Cold {
    /// # Errors
    /// [`Error::Launch`] where the kernel can never be launched.
    pub fn new(
        device: &Arc<DeviceCore>,
        module: &Arc<ModuleCore>,
        kernel: &Kernel<'_>,
        services: &Services,
        address_of: impl Fn(u64) -> u64,
    ) -> Result<Self> {
        let name: Arc<str> = kernel.name().into();
        let refused = |problem| Error::Launch { kernel: Arc::clone(&name), problem };
        let facts = kernel.launch_facts();
        let layout = Layout::new(kernel.arguments(), services).map_err(refused)?;
        let private_bytes = if facts.uses_dynamic_stack {
            facts.private_bytes.saturating_add(DYNAMIC_STACK_BYTES)
        } else {
            facts.private_bytes
        };
        let object = GpuAddr::new(address_of(kernel.descriptor_vaddr()));
        // The loader has checked the descriptor's alignment; the size of a launch comes later.
        let dispatch = KernelDispatch::new(object, [1; 3], [1; 3])
            .map_err(|_| Error::InvalidArgument {
                call: "load",
                what: "the address of a kernel descriptor",
                value: object.get(),
            })?
            .private_segment(private_bytes)
            .barrier()
            .acquire(FenceScope::AGENT)
            .release(FenceScope::AGENT);
        let narrow = |size: u32| u16::try_from(size).unwrap_or(u16::MAX);
        let fixed = facts.static_lds_bytes;
        let Some(max_dynamic_lds_bytes) = device.max_lds_bytes.checked_sub(fixed) else {
            let max = device.max_lds_bytes;
            return Err(refused(LaunchProblem::Lds { bytes: fixed.into(), fixed, max }));
        };
        let limits = Limits {
            max_group: facts.max_flat_group_size.min(MAX_GROUP),
            required_group: Size {
                grid: [0; 3],
                group: facts.required_group_size.unwrap_or([0; 3]).map(narrow),
                dimensions: 0,
            }
            .group_word(),
            static_lds_bytes: fixed,
            max_dynamic_lds_bytes,
        };
        let program = program(device, kernel, GpuAddr::new(address_of(kernel.entry_vaddr())));
        Ok(Self {
            id: device.shared.next_id(),
            layout,
            gate: limits,
            limits,
            #[cfg(feature = "services")]
            services: None,
            dispatch,
            private_bytes,
            label: device.shared.label(&name),
            device: Arc::clone(device),
            module: Arc::clone(module),
            needs: kernel.needs(),
            facts,
            template: program.as_ref().ok().and_then(Template::new).map(Box::new),
            program,
            name,
        })
    }

    /// Has the kernel launched with services.
    #[cfg(feature = "services")]
    pub fn serve(&mut self, services: crate::services::KernelServices) {
        self.gate = Limits { max_group: 0, ..self.limits };
        self.services = Some(Box::new(services));
    }

    #[cold]
    pub fn refuse(&self, problem: LaunchProblem) -> Error {
        Error::Launch { kernel: Arc::clone(&self.name), problem }
    }

    /// LDS of a group, bytes: `Grid::check` has seen to it that it is no more than there is.
    #[inline]
    pub const fn lds_bytes(&self, grid: &Grid) -> u32 {
        self.limits.static_lds_bytes.wrapping_add(grid.dynamic_lds_bytes())
    }

    /// The packet of a launch.
    #[inline]
    pub fn packet(
        &self,
        size: &Size,
        lds_bytes: u32,
        kernarg: GpuAddr,
        acquire: FenceScope,
        completion: GpuAddr,
    ) -> Packet {
        self.dispatch
            .sized(size.dimensions, size.grid, size.group)
            .group_segment(lds_bytes)
            .kernarg(kernarg)
            .acquire(acquire)
            .completion(completion)
            .encode()
    }
}

/// The program for PM4 queues.
fn program(
    device: &DeviceCore,
    kernel: &Kernel<'_>,
    entry: GpuAddr,
) -> std::result::Result<Program, LaunchProblem> {
    let descriptor = kernel.descriptor();
    let unknown = pm4::dispatch::Error::Missing { what: "the target's registers" };
    let target = device.pm4.ok_or(LaunchProblem::Pm4(unknown))?;
    let words = pm4::dispatch::Kernel {
        entry,
        rsrc1: descriptor.rsrc1,
        rsrc2: descriptor.rsrc2,
        rsrc3: descriptor.rsrc3,
        properties: properties(descriptor.properties),
        preload: (descriptor.preload.offset_dwords, descriptor.preload.dwords),
    };
    Ok(Program::new(target, &words, pm4::dispatch::Options::default())?)
}

/// The same bits in another crate's type.
fn properties(properties: KernelProperties) -> Properties {
    Properties::from_bits_retain(properties.bits())
}

/// A kernel of a loaded module. Cheap to clone; `Send` and `Sync`. Keeps the module's code.
#[derive(Clone)]
pub struct Function {
    pub(crate) cold: Arc<Cold>,
}

impl Function {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.cold.name
    }

    /// Registers, LDS, scratch and sizes.
    pub fn facts(&self) -> &LaunchFacts {
        &self.cold.facts
    }

    /// What it needs of the host beyond arguments.
    pub fn needs(&self) -> Needs {
        self.cold.needs
    }

    /// Places of its explicit arguments.
    pub fn arguments(&self) -> &[Slot] {
        self.cold.layout.slots()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.cold.name).finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Function>();
};
