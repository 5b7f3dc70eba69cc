//! Services in streams: compiled kernels that print, allocate and call the host, launched as any other.

mod ends;
mod printf;
mod requests;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::hip::{Device, Function, Module, Runtime, ServicesConfig, Stream, StreamRequest};
use ::hostcall::sink::{Callback, Stream as TextStream};
use kfd_model::{Model, Preset, Target};
use kfd_tests::{each_device, on_hardware};

use crate::streams::code;

/// Longest wait for one launch, on a busy machine that interprets it.
pub const LIMIT: Duration = Duration::from_secs(240);

/// Text of kernels, as the sink gets it.
pub type Lines = Arc<Mutex<Vec<String>>>;

/// A device whose kernels' text is collected.
pub struct Host {
    pub device: Device,
    pub lines: Lines,
    target: String,
}

impl Host {
    pub fn new(device: &kfd_tests::Device) -> Self {
        Self::with(device, ServicesConfig::new())
    }

    pub fn with(device: &kfd_tests::Device, config: ServicesConfig) -> Self {
        Self::on(&device.kfd, config)
    }

    pub fn on(kfd: &kfd::Kfd, config: ServicesConfig) -> Self {
        let lines = Lines::default();
        let theirs = Arc::clone(&lines);
        let sink = Callback(move |stream, text: &[u8]| {
            assert_eq!(stream, TextStream::Stdout);
            theirs.lock().unwrap().push(String::from_utf8(text.to_vec()).unwrap());
        });
        let runtime = Runtime::new(kfd.clone()).unwrap();
        let device = runtime.devices()[0].clone();
        device.configure_services(config.sink(sink)).unwrap();
        let target = device.gpu().gfx_version().to_string();
        Self { device, lines, target }
    }

    pub fn load(&self, program: &str) -> Module {
        Module::load(&self.device, &code(&self.target, program)).unwrap()
    }

    pub fn function(&self, program: &str, kernel: &str) -> Function {
        self.load(program).function(kernel).unwrap()
    }

    pub fn stream(&self, request: StreamRequest) -> Stream {
        // The kernels of the device heap have a stack.
        Stream::new(&self.device, request.scratch(4096)).unwrap()
    }

    /// Everything printed so far.
    pub fn text(&self) -> Vec<String> {
        let services = self.device.services().unwrap();
        assert!(services.flush(LIMIT));
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// Waits until no launch is in flight that could use a service.
    pub fn wait_until_quiet(&self) {
        let start = Instant::now();
        while self.device.services().unwrap().in_flight() > 0 {
            assert!(start.elapsed() < LIMIT, "the drain never lands them");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What `hello` of the fixtures prints, as the CPU prints it, for each work-item.
pub fn hello(base: u32, name: u64, items: u32, group: u32) -> Vec<String> {
    let mut expected = Vec::new();
    for item in 0..items {
        let (t, block) = (item % group, item / group);
        expected.push(format!("hello from {} of block {block}\n", base + t));
        if t % 2 == 1 {
            let (float, long) = (1.5 * f64::from(t), u64::from(t) << 40);
            expected.push(format!("odd literal {float:5.2} {long} x {name:#x} %\n"));
        }
        expected.push("no args\n".to_owned());
    }
    expected.sort_unstable();
    expected
}

/// Runs `test` on every target that the fixtures of services are there for.
pub fn each_fixture(test: impl Fn(&kfd_tests::Device)) {
    each_device(&test);
    if on_hardware() {
        return;
    }
    for target in [Target::Gfx900, Target::Gfx942] {
        let model = Model::builder().gpu(Preset::of(target)).build();
        let device = kfd_tests::Device::of(model, &target.to_string());
        test(&device);
        device.finish();
    }
}
