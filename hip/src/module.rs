//! [`Module`]: code in a GPU's memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use hsaco::{CodeObject, Container, Kernel, Needs, Services};
use kfd::{Buffer, MemoryRequest};
use pm4::GpuAddr;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::{Cold, Function};
#[cfg(feature = "services")]
use crate::services::ModuleServices;

/// Services that this crate gives no kernel, or only with its feature `services`: their slots hold 0. What a kernel does that uses one of
/// them all the same is up to its device library; AMD's follow the null pointer and fault.
const LACKING: Needs = Needs::HOST_SERVICES
    .union(Needs::MULTIGRID_SYNC)
    .union(Needs::DEFAULT_QUEUE)
    .union(Needs::COMPLETION_ACTION);

/// What outlives the module while launches are in flight: its memory.
#[derive(Debug)]
pub(crate) struct ModuleCore {
    code: Buffer,
    managed: Vec<(Box<str>, Buffer)>,
    /// Address and bytes of each variable.
    variables: BTreeMap<Box<str>, (GpuAddr, u64)>,
}

/// A code object that was loaded for a device. `Send` and `Sync`.
///
/// Its memory is freed once it, its functions, and all launches of them are gone.
#[derive(Debug)]
pub struct Module {
    core: Arc<ModuleCore>,
    /// Each kernel, or why it cannot be launched.
    functions: BTreeMap<Box<str>, Result<Function>>,
    needs: Needs,
    lacking: Needs,
    #[cfg(feature = "services")]
    services: Option<Box<hostcall::needs::ModuleNeeds>>,
}

impl Module {
    /// Loads the best code for `device` from `file`: a code object, a bundle, compressed or not, or a
    /// host program with device code in it.
    ///
    /// The file's bytes are not needed afterwards. Managed variables get memory of their own.
    ///
    /// # Errors
    /// [`Error::Object`] for malformed files; [`Error::NoImage`] with the reason for each image when
    /// none fits; [`Error::Driver`] when there is no memory. Nothing is left behind then.
    pub fn load(device: &Device, file: &[u8]) -> Result<Self> {
        let container = Container::read(file)?;
        let choice = container.choose(&device.core.target)?;
        let object = CodeObject::parse(choice.entry.bytes)?;
        let gpu = &device.core.gpu;
        #[cfg(feature = "services")]
        let given = ModuleServices::of(&device.core.services, gpu, &object, choice.entry.bytes)?;
        let request = |bytes: u64| MemoryRequest::gtt(bytes.max(1));
        let code = gpu.allocate(&request(object.load_bytes()).executable().label("code"))?;
        let base = code.addr().get();
        let mut image = object.image(base)?;
        let mut managed: Vec<(Box<str>, Buffer)> = Vec::new();
        for variable in object.managed() {
            let length = usize::try_from(variable.bytes).unwrap_or(usize::MAX);
            let memory = request(variable.bytes).label("managed variable");
            let buffer = gpu.allocate(&memory)?;
            let mut initial = vec![0; length];
            image.read(variable.initial_vaddr, &mut initial)?;
            buffer.write(0, &initial)?;
            image.set_managed(variable, buffer.addr().get())?;
            managed.push((Box::from(variable.name), buffer));
        }
        // The rest is zero: fresh memory.
        code.write(0, image.bytes())?;
        // What instruction caches may hold of these addresses is stale.
        device.core.shared.code_changed();
        let mut variables: BTreeMap<Box<str>, (GpuAddr, u64)> = object
            .variables()
            .iter()
            .map(|variable| {
                let addr = GpuAddr::new(image.address_of(variable.vaddr));
                (Box::from(variable.name), (addr, variable.bytes))
            })
            .collect();
        for (name, buffer) in &managed {
            variables.insert(name.clone(), (buffer.addr(), buffer.bytes()));
        }
        let core = Arc::new(ModuleCore { code, managed, variables });
        let apertures = gpu.apertures();
        let high = |address: u64| GpuAddr::new(address).hi();
        let services = Services {
            private_base: high(apertures.scratch.0),
            shared_base: high(apertures.lds.0),
            ..Services::default()
        };
        let function = |(index, kernel): (usize, &Kernel<'_>)| {
            let address_of = |vaddr| image.address_of(vaddr);
            let cold = Cold::new(&device.core, &core, kernel, &services, address_of);
            #[cfg(feature = "services")]
            let cold = cold.map(|mut cold| {
                let given = given.as_ref().and_then(|given| given.kernel(index, kernel));
                if let Some(given) = given {
                    cold.serve(given);
                }
                cold
            });
            let _ = index;
            (Box::from(kernel.name()), cold.map(|cold| Function { cold: Arc::new(cold) }))
        };
        let functions = object.kernels().iter().enumerate().map(function).collect();
        let needs = object.needs();
        #[cfg(not(feature = "services"))]
        let lacking = needs & LACKING;
        #[cfg(feature = "services")]
        let lacking = {
            let given = given.as_ref().map_or(Needs::empty(), ModuleServices::given_needs);
            needs & (LACKING - given)
        };
        Ok(Self {
            functions,
            needs,
            lacking,
            core,
            #[cfg(feature = "services")]
            services: given.map(|given| given.needs),
        })
    }

    /// The kernel with this name. Everything about its launches was decided when the module was loaded.
    ///
    /// # Errors
    /// [`Error::NoFunction`]; [`Error::Launch`] for a kernel with an argument that cannot be passed.
    pub fn function(&self, name: &str) -> Result<Function> {
        let missing = || Error::NoFunction { name: name.to_owned() };
        self.functions.get(name).ok_or_else(missing)?.clone()
    }

    /// Names of its kernels.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(|name| &**name)
    }

    /// Address and bytes of a variable of the program; of a managed one, those of its memory.
    ///
    /// # Errors
    /// [`Error::NoVariable`].
    pub fn variable(&self, name: &str) -> Result<(GpuAddr, u64)> {
        let found = self.core.variables.get(name).copied();
        found.ok_or_else(|| Error::NoVariable { name: name.to_owned() })
    }

    /// The memory that a variable is in, and where: the host may read and write it while no kernel
    /// does.
    ///
    /// # Errors
    /// [`Error::NoVariable`].
    pub fn variable_memory(&self, name: &str) -> Result<(&Buffer, u64)> {
        let mut managed = self.core.managed.iter();
        if let Some((_, buffer)) = managed.find(|(other, _)| **other == *name) {
            return Ok((buffer, 0));
        }
        let (addr, _) = self.variable(name)?;
        let code = &self.core.code;
        Ok((code, addr.get().saturating_sub(code.addr().get())))
    }

    /// What its kernels need of the host beyond arguments.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Which services each of its kernels needs, over which transport, and how that was found; `None`
    /// when none does.
    #[cfg(feature = "services")]
    pub fn services(&self) -> Option<&hostcall::needs::ModuleNeeds> {
        self.services.as_deref()
    }

    /// Services that its kernels declare and do not get here: their slots hold 0. All of them without the
    /// feature `services`; with it, those that call the host where the link has no atomics for that. A kernel may declare what
    /// it does not use, so it is not refused; one that does use it most likely faults.
    pub fn lacking(&self) -> Needs {
        self.lacking
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Module>();
};
