//! Opening the device: what is there, what is not and why, old and new kernels, nonsense.

use std::sync::Arc;

use kfd::access::{AccessProblem, diagnose};
use kfd::sys::{Errno, FileId, Kernel, Metadata, OpenFlags};
use kfd::{Error, Feature, Kfd, KfdVersion, NodeId};
use kfd_model::{Call, Model, Preset, Profile};
use kfd_tests::{each_device, each_kernel, each_model};

use crate::support::use_everything;

const GET_VERSION: u32 = 0x01;
const GET_APERTURES: u32 = 0x14;
const KFD_PATH: &str = "/dev/kfd";
const RENDER_PATH: &str = "/dev/dri/renderD128";

fn open(model: &Arc<Model>) -> kfd::Result<Kfd> {
    Kfd::open_on(Arc::<Model>::clone(model))
}

/// A model that claims to be KFD `major`.`minor`.
fn claims(profile: Profile, major: u32, minor: u32) -> Arc<Model> {
    claiming(Model::builder().gpu(Preset::gfx1100()).profile(profile).build(), major, minor)
}

fn claiming(model: Arc<Model>, major: u32, minor: u32) -> Arc<Model> {
    model.faults().garble(GET_VERSION, move |answer| {
        answer[..4].copy_from_slice(&major.to_le_bytes());
        answer[4..8].copy_from_slice(&minor.to_le_bytes());
    });
    model
}

#[test]
fn an_open_device_knows_its_version_and_its_gpus() {
    each_kernel(|device| {
        assert_eq!(device.kfd.version().major, 1);
        assert!(device.kfd.version().minor >= 11, "{}", device.kfd.version());
        let gpu = device.gpu();
        assert_eq!(device.kfd.gpu_of(gpu.node().id), Some(gpu.clone()));
        assert!(device.kfd.topology().gpus().any(|node| node.gpu_id == gpu.id()));
        let apertures = gpu.apertures();
        for (base, limit) in [apertures.lds, apertures.scratch, apertures.gpuvm] {
            assert!(base < limit, "{apertures:?}");
        }
        gpu.check().unwrap();
    });
}

#[test]
fn two_gpus_come_in_topology_order() {
    let model = Model::builder().gpu(Preset::gfx90a()).gpu(Preset::gfx1100()).build();
    let kfd = open(&model).unwrap();
    let names: Vec<_> = kfd.gpus().iter().map(|gpu| gpu.gfx_version().to_string()).collect();
    assert_eq!(names, ["gfx90a", "gfx1100"]);
    assert_eq!(kfd.gpu_of(NodeId(0)), None, "node 0 is a CPU");
}

#[test]
fn each_errno_of_open_is_its_own_problem_and_open_works_once_it_is_lifted() {
    // Group 109 as container images often have it, and a number that no caller here has.
    let node = Metadata { mode: 0o20_660, uid: 0, gid: 40_109, rdev: 0 };
    let builder = || Model::builder().device_node(KFD_PATH, Some(node));
    let mut texts = Vec::new();
    for errno in [Errno::NOENT, Errno::ACCESS, Errno::PERM, Errno::BUSY, Errno::NOMEM] {
        let model = builder().build();
        model.faults().fail(Call::Open(KFD_PATH.to_owned()), 0, 1, errno);
        let error = open(&model).unwrap_err();
        let Error::Access(problem) = &error else { panic!("{error:?}") };
        match (errno, problem) {
            (Errno::NOENT, AccessProblem::KfdAbsent { errno: told })
            | (Errno::BUSY, AccessProblem::KfdBusy { errno: told })
            | (Errno::NOMEM, AccessProblem::KfdFailing { errno: told }) => assert_eq!(*told, errno),
            (Errno::ACCESS | Errno::PERM, AccessProblem::KfdNotPermitted(permission)) => {
                assert_eq!(permission.errno, errno);
                assert_eq!(permission.owner_gid, Some(40_109));
                let own = nix::unistd::getegid().as_raw();
                assert!(permission.gids.contains(&own), "{permission:?}");
                assert!(problem.to_string().contains("40109"), "{problem}");
            }
            (errno, other) => panic!("{errno:?}: {other:?}"),
        }
        assert!(problem.to_string().contains(&errno.to_string()), "{problem} lacks {errno}");
        assert!(!problem.remedy().is_empty());
        texts.push(problem.remedy() + &problem.to_string());
        use_everything(&open(&model).unwrap()).unwrap();
    }
    let count = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), count, "each problem has words of its own");
}

#[test]
fn an_absent_device_is_told_from_a_forbidden_one() {
    let model = Model::builder().device_node(KFD_PATH, None).build();
    let error = open(&model).unwrap_err();
    let absent = AccessProblem::KfdAbsent { errno: Errno::NOENT };
    assert!(matches!(&error, Error::Access(problem) if *problem == absent), "{error:?}");
    let checks = diagnose(&*model);
    assert_eq!(checks[0].outcome, Err(absent));
    // The next layer is looked at all the same.
    assert!(checks.iter().any(|check| check.name == "topology" && check.outcome.is_ok()));
}

#[test]
fn diagnosis_finds_nothing_wrong_with_a_usable_device() {
    each_device(|device| {
        let checks = diagnose(&**device.kfd.kernel());
        assert!(checks.len() >= 3, "{checks:?}");
        assert!(checks.iter().all(|check| check.outcome.is_ok()), "{checks:?}");
    });
}

#[test]
fn a_gpu_without_its_render_node_is_unusable_and_the_others_are_not() {
    let model = Model::builder()
        .gpu(Preset::gfx1100())
        .gpu(Preset::gfx90a())
        .device_node(RENDER_PATH, None)
        .build();
    let kfd = open(&model).unwrap();
    assert_eq!(kfd.gpus().len(), 1);
    let [AccessProblem::RenderNodeAbsent { path, errno, .. }] = kfd.unusable() else {
        panic!("{:?}", kfd.unusable());
    };
    assert_eq!((path.as_str(), *errno), (RENDER_PATH, Errno::NOENT));
    use_everything(&kfd).unwrap();
}

#[test]
fn without_any_render_node_the_error_says_why_for_each_gpu() {
    let model = Model::builder().build();
    model.faults().fail(Call::Open(RENDER_PATH.to_owned()), 0, 1, Errno::ACCESS);
    let kfd = open(&model).unwrap();
    let error = kfd.first_gpu().unwrap_err();
    let Error::NoUsableGpu(problems) = &error else { panic!("{error:?}") };
    assert!(matches!(problems[..], [AccessProblem::RenderNodeNotPermitted { .. }]), "{problems:?}");
    assert!(error.to_string().contains(RENDER_PATH), "{error}");
}

#[test]
fn hidden_nodes_missing_files_and_gaps_leave_the_other_gpus_usable() {
    const NODES: &str = "/sys/devices/virtual/kfd/kfd/topology/nodes";
    let gpu = Preset::gfx90a;
    let builder = Model::builder()
        .gpu(gpu())
        .gpu(gpu())
        .gpu(gpu())
        .gpu(gpu())
        .hide_gpu(1)
        .device_node(&format!("{NODES}/3/caches"), None)
        .device_node(&format!("{NODES}/4/name"), None)
        .device_node(&format!("{NODES}/../generation_id"), None)
        .device_node("/sys/module/amdgpu/version", None);
    let mut topology = builder.topology();
    for (node, minor) in [(1, 128), (2, 129), (3, 130), (4, 133)] {
        topology.nodes[node].properties.set("drm_render_minor", minor);
    }
    // GPU 1 also has a link to the hidden GPU 2, and one to GPU 3.
    let to = |node| {
        let mut link = topology.nodes[1].io_links[0].clone();
        link.set("node_to", node);
        link
    };
    let links = [to(2), to(3)];
    topology.nodes[1].io_links.extend(links);
    let model = builder.build_topology(&topology);

    let kfd = open(&model).unwrap();
    let nodes: Vec<u32> = kfd.gpus().iter().map(|gpu| gpu.node().id.0).collect();
    assert_eq!(nodes, [1, 3, 4]);
    let hidden: Vec<_> = kfd.unusable().iter().collect();
    assert!(
        matches!(
            hidden[..],
            [AccessProblem::HiddenNode { node: NodeId(2), file: "gpu_id", errno: Errno::PERM }]
        ),
        "{hidden:?}"
    );
    let links: Vec<_> = kfd.gpus()[0].node().io_links.iter().map(|link| link.node_to).collect();
    assert_eq!(links, [Some(0), Some(3)], "no link leads to the hidden node");
    assert!(kfd.gpus()[1].node().caches.is_empty());
    assert_eq!(kfd.gpus()[2].node().name, None);
    use_everything(&kfd).unwrap();
    for gpu in kfd.gpus() {
        gpu.allocate(&kfd::MemoryRequest::vram(4096)).unwrap();
    }
}

#[test]
fn interrupted_calls_are_repeated_exactly_as_often_as_needed() {
    each_model(Model::builder, |device| {
        let (map, create) = (0x18, 0x02);
        let count = |number| device.model().ioctl_count(number);
        use_everything(&device.kfd).unwrap();
        let before = [count(map), count(create)];
        use_everything(&device.kfd).unwrap();
        let calm = [count(map) - before[0], count(create) - before[1]];
        let before = [count(map), count(create)];
        let faults = device.model().faults();
        faults.fail(Call::Ioctl(map.into()), 0, 3, Errno::INTR);
        faults.fail(Call::Ioctl(create.into()), 0, 3, Errno::INTR);
        use_everything(&device.kfd).unwrap();
        let interrupted = [count(map) - before[0], count(create) - before[1]];
        assert_eq!(interrupted, [calm[0] + 3, calm[1] + 3]);
    });
}

#[test]
fn an_interrupted_open_is_no_absence() {
    let model = Model::builder().build();
    let plan = model.faults();
    plan.fail(Call::Open(KFD_PATH.to_owned()), 0, 3, Errno::INTR);
    plan.fail(Call::Open(RENDER_PATH.to_owned()), 0, 3, Errno::INTR);
    plan.fail(Call::Read, 0, 3, Errno::INTR);
    plan.fail(Call::AnyIoctl, 0, 3, Errno::INTR);
    use_everything(&open(&model).unwrap()).unwrap();
    // The orders were not void: the fourth call of a kind is the first to get another answer.
    plan.fail(Call::Open(KFD_PATH.to_owned()), 0, 3, Errno::INTR);
    plan.fail(Call::Open(KFD_PATH.to_owned()), 0, 1, Errno::BUSY);
    let error = open(&model).unwrap_err();
    assert!(matches!(error, Error::Access(AccessProblem::KfdBusy { .. })), "{error:?}");
}

#[test]
fn a_signal_at_any_ioctl_changes_nothing() {
    each_model(Model::builder, |device| {
        for skip in 0..60 {
            device.model().faults().fail(Call::AnyIoctl, skip, 2, Errno::INTR);
            use_everything(&device.kfd).unwrap();
            device.model().faults().clear();
        }
    });
}

#[test]
fn the_oldest_interface_lacks_features_and_works() {
    let model = claims(Profile::V6_1, 1, 0);
    let kfd = open(&model).unwrap();
    assert_eq!(kfd.version(), KfdVersion { major: 1, minor: 0 });
    for feature in [Feature::Svm, Feature::EventAge, Feature::RuntimeEnable, Feature::DmabufExport]
    {
        assert!(!kfd.supports(feature), "{}", feature.name());
    }
    use_everything(&kfd).unwrap();
    assert_eq!(model.ioctl_count(0x25), 0, "RUNTIME_ENABLE is not tried");
    let error = kfd.first_gpu().unwrap().available_memory().unwrap_err();
    let Error::KfdTooOld { needed, found, .. } = error else { panic!("{error:?}") };
    assert_eq!((needed.minor, found.minor), (9, 0));
}

#[test]
fn another_major_version_is_refused_by_name() {
    for (major, minor) in [(2, 0), (0, 17), (u32::MAX, u32::MAX)] {
        let error = open(&claims(Profile::V6_12, major, minor)).unwrap_err();
        let Error::UnknownMajor { found, supported } = &error else { panic!("{error:?}") };
        assert_eq!((found.major, *supported), (major, 1));
        let text = error.to_string();
        assert!(text.contains(&format!("{major}.{minor}")) && text.contains("1.x"), "{text}");
    }
}

#[test]
fn versions_are_compared_as_pairs_not_field_by_field() {
    let kfd = open(&claims(Profile::V6_12, 1, 18)).unwrap();
    assert!(Feature::ALL.iter().all(|feature| kfd.supports(*feature)));
    let kfd = open(&claims(Profile::V6_1, 1, 13)).unwrap();
    assert!(kfd.supports(Feature::RuntimeEnable) && !kfd.supports(Feature::EventAge));
}

#[test]
fn an_ioctl_that_the_version_promises_and_the_kernel_lacks_is_reported() {
    // 6.1 has no RUNTIME_ENABLE: ENOTTY. Nor has it the capability bit, without which the driver would
    // not ask.
    let builder = Model::builder().gpu(Preset::gfx1100()).profile(Profile::V6_1);
    let mut topology = builder.topology();
    for node in topology.nodes.iter_mut().filter(|node| node.gpu_id != 0) {
        let capability = node.properties.get("capability").unwrap();
        node.properties.set("capability", capability | 1 << 29);
    }
    let model = claiming(builder.build_topology(&topology), 1, 17);
    let error = use_everything(&open(&model).unwrap()).unwrap_err();
    let Error::Ioctl { name, errno, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*name, *errno), ("RUNTIME_ENABLE", Errno::NOTTY));
}

#[test]
fn einval_is_never_taken_for_absence() {
    each_model(Model::builder, |device| {
        device.model().faults().fail(Call::Ioctl(0x25), 0, 1, Errno::INVAL);
        let error = use_everything(&device.kfd).unwrap_err();
        let Error::Ioctl { name, errno, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*name, *errno), ("RUNTIME_ENABLE", Errno::INVAL));
        use_everything(&device.kfd).unwrap();
    });
}

#[test]
fn a_second_device_of_the_process_is_refused_with_advice() {
    each_device(|device| {
        device.gpu().acquire().unwrap();
        let second = Kfd::open_on(Arc::clone(device.kfd.kernel())).unwrap();
        let error = second.first_gpu().unwrap().acquire().unwrap_err();
        let Error::Ioctl { name, errno, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*name, *errno), ("ACQUIRE_VM", Errno::BUSY));
        assert!(error.to_string().contains("share one Kfd"), "{error}");
    });
}

#[test]
fn descriptors_from_a_broker_open_the_device() {
    each_device(|device| {
        let kernel = device.kfd.kernel();
        let export = |path: &str| {
            let file = kernel.open(path, OpenFlags::READ_WRITE).unwrap();
            let fd = kernel.export_fd(file).unwrap();
            (file, fd)
        };
        let minor = device.gpu().node().properties.drm_render_minor.unwrap();
        let (kfd_file, kfd_fd) = export(KFD_PATH);
        let (render_file, render_fd) = export(&format!("/dev/dri/renderD{minor}"));
        let kfd = Kfd::from_fds_on(Arc::clone(kernel), kfd_fd, [(minor, render_fd)]).unwrap();
        assert_eq!(kfd.version(), device.kfd.version());
        assert_eq!(kfd.gpus().len(), 1);
        use_everything(&kfd).unwrap();
        assert!(kfd.leaks().is_empty());
        drop(kfd);
        let (again, kfd_fd) = export(KFD_PATH);
        let kfd = Kfd::from_fds_on(Arc::clone(kernel), kfd_fd, []).unwrap();
        assert!(kfd.gpus().is_empty());
        assert!(matches!(kfd.unusable()[0], AccessProblem::RenderNodeAbsent { .. }));
        drop(kfd);
        for file in [kfd_file, render_file, again] {
            kernel.close(file);
        }
    });
}

#[test]
fn a_descriptor_of_something_else_is_refused() {
    each_model(Model::builder, |device| {
        let other = std::fs::File::open("/dev/null").unwrap().into();
        let error = Kfd::from_fds_on(Arc::clone(device.kfd.kernel()), other, []).unwrap_err();
        let Error::System { call, errno, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*call, *errno), ("import_fd", Errno::BADF));
    });
}

#[test]
fn impossible_apertures_are_nonsense_not_addresses() {
    let model = Model::builder().build();
    model.faults().garble(GET_APERTURES, |answer| answer[8..12].fill(0xff));
    let error = open(&model).unwrap_err();
    assert!(matches!(error, Error::Nonsense { what: "the number of GPUs", .. }), "{error:?}");
    model.faults().clear();
    open(&model).unwrap();
}

/// Each answer of the kernel, replaced by rubbish, ends in an error or in nothing: never in a panic,
/// a hang or a lost file.
#[test]
fn nonsense_in_any_answer_is_an_error_at_most() {
    let numbers = kfd::abi::request::IOCTLS.iter().map(|ioctl| u32::from(ioctl.number));
    for number in numbers {
        for rubbish in [0x00_u8, 0x01, 0x7f, 0x80, 0xff] {
            let model = Model::builder().stepped(true).build();
            model.faults().garble(number, move |answer| answer.fill(rubbish));
            let outcome = open(&model).and_then(|kfd| {
                let result = use_everything(&kfd);
                let _ = kfd.poll_faults();
                result
            });
            if let Err(error) = outcome {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn a_failed_open_leaves_no_file_open() {
    let model = Model::builder().build();
    // Ids of files only grow: what is still open can be closed, and answers; what is closed does not.
    model.faults().fail(Call::Ioctl(GET_APERTURES), 0, 1, Errno::NOMEM);
    let error = open(&model).unwrap_err();
    assert!(matches!(error, Error::Ioctl { name: "GET_PROCESS_APERTURES_NEW", .. }), "{error:?}");
    for id in 3..200 {
        let closed = model.export_fd(FileId(id)).is_err();
        assert!(closed, "file {id} is still open");
    }
}
