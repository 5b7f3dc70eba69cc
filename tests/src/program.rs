//! Loads code objects and makes packets of their kernels.

use aql::KernelDispatch;
use hsaco::{CodeObject, DeviceTarget, Geometry, HiddenValues, Image, Services};
use kfd::{Buffer, Gpu, KernelLabel, Kfd, MemoryRequest};

/// The targets of [`faults`].
pub const FAULT_TARGETS: [&str; 5] = ["gfx900", "gfx90a", "gfx942", "gfx1100", "gfx1151"];

/// Kernels that go wrong on purpose, for one of [`FAULT_TARGETS`].
///
/// # Panics
/// For a target without such kernels.
pub fn faults(target: &str) -> &'static [u8] {
    match target {
        "gfx900" => include_bytes!("../fixtures/code-objects/faults.gfx900.v5.co"),
        "gfx942" => include_bytes!("../fixtures/code-objects/faults.gfx942.v5.co"),
        "gfx1151" => include_bytes!("../fixtures/code-objects/faults.gfx1151.v5.co"),
        "gfx90a" => include_bytes!("../fixtures/code-objects/faults.gfx90a.v5.co"),
        "gfx1100" => include_bytes!("../fixtures/code-objects/faults.gfx1100.v5.co"),
        other => panic!("there are no fault kernels for {other}"),
    }
}

/// A code object in a GPU's memory.
#[derive(Debug)]
pub struct Program {
    object: CodeObject<'static>,
    image: Image,
    _code: Buffer,
}

/// A launch that can be submitted, with its arguments in memory.
#[derive(Debug)]
pub struct Launch {
    /// The packet.
    pub packet: KernelDispatch,
    /// The kernel's name, for reports.
    pub label: KernelLabel,
    _arguments: Buffer,
}

impl Program {
    /// Loads `object` for `gpu`.
    ///
    /// # Panics
    /// When the object is malformed, does not fit the GPU, or there is no memory.
    pub fn load(gpu: &Gpu, object: &'static [u8]) -> Self {
        let object = CodeObject::parse(object).expect("the object parses");
        let version = gpu.gfx_version().target_version();
        let target = DeviceTarget::new(version, gpu.has_sram_ecc(), false).expect("a known GPU");
        object.target().fits(&target).expect("the object fits the GPU");
        let request = MemoryRequest::gtt(object.load_bytes()).executable().label("code");
        let code = gpu.allocate(&request).expect("memory for the code");
        let image = object.image(code.addr().get()).expect("an image");
        code.write(0, image.bytes()).expect("the code is written");
        Self { object, image, _code: code }
    }

    /// A launch of `kernel` over `grid` work-items in one-dimensional workgroups of `group`, with
    /// 8-byte arguments.
    ///
    /// # Panics
    /// When the object has no such kernel or it takes other arguments.
    pub fn launch(
        &self,
        kfd: &Kfd,
        gpu: &Gpu,
        kernel: &str,
        (grid, group): (u32, u16),
        arguments: &[u64],
    ) -> Launch {
        let arguments: Vec<[u8; 8]> = arguments.iter().map(|word| word.to_le_bytes()).collect();
        let arguments: Vec<&[u8]> = arguments.iter().map(<[u8; 8]>::as_slice).collect();
        self.launch_with(kfd, gpu, kernel, (grid, group), &arguments, &Services::default())
    }

    /// As [`Self::launch`], with arguments of any size, and services in the hidden ones.
    ///
    /// # Panics
    /// As [`Self::launch`].
    pub fn launch_with(
        &self,
        kfd: &Kfd,
        gpu: &Gpu,
        kernel: &str,
        (grid, group): (u32, u16),
        arguments: &[&[u8]],
        services: &Services,
    ) -> Launch {
        let name = kernel;
        let kernel = self.object.kernel(name).expect("the kernel");
        let geometry = Geometry::new([grid, 1, 1], [group.into(), 1, 1], 1).expect("a geometry");
        let mut builder = kernel.arguments().builder().expect("an argument layout");
        for argument in arguments {
            builder.push(argument).expect("an argument");
        }
        let hidden = HiddenValues { geometry, services: *services };
        let segment = builder.finish(&hidden).expect("all arguments");
        let bytes = (segment.len() as u64).max(64);
        let memory = gpu
            .allocate(&MemoryRequest::gtt(bytes).label("arguments"))
            .expect("memory for the arguments");
        memory.write(0, &segment).expect("the arguments are written");
        let facts = kernel.launch_facts();
        let object = self.image.address_of(kernel.descriptor_vaddr()).into();
        let packet = KernelDispatch::new(object, [grid, 1, 1], [group, 1, 1])
            .expect("a packet")
            .kernarg(memory.addr())
            .private_segment(kfd_probe::runner::private_bytes(&facts))
            .group_segment(facts.static_lds_bytes);
        Launch { packet, label: kfd.register_kernel(name), _arguments: memory }
    }
}
