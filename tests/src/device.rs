//! The device a test runs on.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use kfd::{Gpu, Kfd};
use kfd_model::{Builder, Model, Preset, Profile, Target};

use crate::process::in_child;

/// The longest that a test on hardware may take before its process is killed.
const HARDWARE_LIMIT: Duration = Duration::from_secs(120);

/// What a test runs on.
#[derive(Debug)]
pub struct Device {
    /// The open device.
    pub kfd: Kfd,
    model: Option<Arc<Model>>,
    name: String,
}

impl Device {
    /// Opens a model.
    ///
    /// # Panics
    /// When it cannot be opened.
    pub fn of(model: Arc<Model>, name: &str) -> Self {
        let kfd = Kfd::open_on(Arc::<Model>::clone(&model)).expect("the model opens");
        Self { kfd, model: Some(model), name: name.to_owned() }
    }

    fn hardware() -> Self {
        let kfd = Kfd::open().expect("the machine's device opens");
        Self { kfd, model: None, name: "hardware".to_owned() }
    }

    /// The first usable GPU.
    ///
    /// # Panics
    /// When there is none.
    pub fn gpu(&self) -> Gpu {
        self.kfd.first_gpu().expect("a GPU is usable")
    }

    /// The target of the first GPU: `gfx1100`.
    pub fn target(&self) -> String {
        self.gpu().gfx_version().to_string()
    }

    /// The model; `None` on hardware.
    pub fn try_model(&self) -> Option<&Arc<Model>> {
        self.model.as_ref()
    }

    /// The model.
    ///
    /// # Panics
    /// On hardware: use it in tests of [`each_model`] only.
    pub fn model(&self) -> &Arc<Model> {
        self.try_model().expect("the test runs on the model")
    }

    /// What it runs on, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Closes the device and checks that nothing is left in the model's kernel but the event page,
    /// which KFD keeps until the process ends.
    ///
    /// # Panics
    /// When something is.
    pub fn finish(self) {
        let Self { kfd, model, name } = self;
        let leaks = kfd.leaks();
        assert!(leaks.is_empty(), "leaked on {name}: {leaks:?}");
        drop(kfd);
        if let Some(model) = model {
            let left = model.live();
            let empty = left.queues == 0 && left.buffers <= 1 && left.svm_ranges == 0;
            assert!(empty, "left behind on {name}: {left:?}");
        }
    }
}

/// Whether tests run on the machine's own GPUs (`KFD_TEST_DEVICE=hardware`).
///
/// # Panics
/// When the variable names no device.
pub fn on_hardware() -> bool {
    match std::env::var("KFD_TEST_DEVICE").as_deref() {
        Ok("hardware") => true,
        Ok("model") | Err(_) => false,
        Ok(other) => panic!("KFD_TEST_DEVICE is {other:?}: it can be model or hardware"),
    }
}

/// Says on the error stream, past the test harness's capture, that this test does not run and why.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a test"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Runs `test` on one configuration of the model and checks what it left behind.
fn run(builder: Builder, name: &str, test: &impl Fn(&Device)) {
    let builder = match std::env::var("KFD_MODEL_WATCH") {
        Ok(watch) => {
            let watch = watch.parse().expect("KFD_MODEL_WATCH");
            builder.watch(watch).expect("KFD_MODEL_WATCH")
        }
        Err(_) => builder,
    };
    let device = Device::of(builder.build(), name);
    let model = Arc::clone(device.model());
    let result = catch_unwind(AssertUnwindSafe(|| {
        test(&device);
        device.finish();
        if let Some(report) = model.report() {
            assert!(report.findings.is_empty(), "{:#?}", report.findings);
        }
    }));
    if let Err(panic) = result {
        eprintln!("that was on {name}");
        for diagnostic in model.diagnostics() {
            eprintln!("the model says: {diagnostic}");
        }
        resume_unwind(panic);
    }
}

/// The presets that every test of presets runs on.
const USUAL: [Target; 2] = [Target::Gfx1100, Target::Gfx90a];

/// Those of [`each_target`] besides: separate work-item ids and no packed mathematics; eight XCCs;
/// an APU whose waves enter the gfx11 trap handler.
const OTHERS: [Target; 3] = [Target::Gfx900, Target::Gfx942, Target::Gfx1151];

fn kernel_name(profile: Profile) -> &'static str {
    match profile {
        Profile::V6_1 => "Linux 6.1",
        Profile::V6_12_0 => "Linux 6.12.0",
        Profile::V6_12 => "Linux 6.12",
    }
}

/// Runs `test` on the usual presets, or on hardware.
///
/// # Panics
/// When the test fails.
pub fn each_device(test: impl Fn(&Device)) {
    if !on_hardware() {
        return each_model(Model::builder, test);
    }
    hardware(test);
}

/// Runs `test` on the usual presets with every kernel, or on hardware.
///
/// # Panics
/// When the test fails.
pub fn each_kernel(test: impl Fn(&Device)) {
    if on_hardware() {
        return hardware(test);
    }
    for profile in Profile::ALL {
        each_model_of(&[profile], Model::builder, &test);
    }
}

/// As [`each_kernel`], and on the presets of further targets with the default kernel.
///
/// # Panics
/// When the test fails.
pub fn each_target(test: impl Fn(&Device)) {
    each_kernel(&test);
    if !on_hardware() {
        on_models(&OTHERS, &[Profile::default()], Model::builder, &test);
    }
}

/// Runs `test` on the preset of every target with every kernel that knows it. Skipped on hardware.
///
/// # Panics
/// When the test fails.
pub fn every_target(test: impl Fn(&Device)) {
    if on_hardware() {
        return skip("it compares the software GPU's targets");
    }
    on_models(&Target::ALL, &Profile::ALL, Model::builder, &test);
}

/// A process has one KFD state for its whole life, so each test gets a process.
fn hardware(test: impl Fn(&Device)) {
    let outcome = in_child(HARDWARE_LIMIT, || {
        let device = Device::hardware();
        test(&device);
        device.finish();
    });
    if let Err(message) = outcome {
        panic!("on hardware: {message}");
    }
}

/// Runs `test` on the usual presets, configured further by `builder`. Skipped on hardware.
///
/// # Panics
/// When the test fails.
pub fn each_model(builder: impl Fn() -> Builder, test: impl Fn(&Device)) {
    each_model_of(&[Profile::default()], builder, test);
}

/// As [`each_model`], with each kernel of `profiles`.
///
/// # Panics
/// When the test fails.
pub fn each_model_of(profiles: &[Profile], builder: impl Fn() -> Builder, test: impl Fn(&Device)) {
    if on_hardware() {
        return skip("it orders faults, or a kernel, that only the software GPU has");
    }
    on_models(&USUAL, profiles, builder, &test);
}

fn on_models(
    targets: &[Target],
    profiles: &[Profile],
    builder: impl Fn() -> Builder,
    test: &impl Fn(&Device),
) {
    for target in targets {
        for profile in profiles {
            let preset = Preset::of(*target);
            if !preset.is_known_to(*profile) {
                continue; // such a kernel would not show the GPU
            }
            let name = format!("{target} with {}", kernel_name(*profile));
            run(builder().gpu(preset).profile(*profile), &name, test);
        }
    }
}
