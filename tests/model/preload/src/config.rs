//! The environment variables.

use std::sync::Arc;

use kfd::sys::Metadata;
use model::{Model, Offsets, Preset, Profile, Target};

/// The machine that the environment asks for.
///
/// # Errors
/// A line that says which variable is wrong and what it can be.
pub(crate) fn model() -> Result<Arc<Model>, String> {
    let mut builder = Model::builder().descriptors(offsets()?).profile(profile()?);
    if let Some(mode) = node_mode()? {
        let rdev = libc::makedev(242, 0);
        let node = Metadata { mode: libc::S_IFCHR | mode, uid: 0, gid: 0, rdev };
        builder = builder.device_node("/dev/kfd", Some(node));
    }
    let presets = std::env::var("KFD_MODEL").unwrap_or_else(|_| "gfx1100".to_owned());
    if presets != "none" {
        for name in presets.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            builder = builder.gpu(preset(name)?);
        }
    }
    Ok(builder.build_presets())
}

fn preset(name: &str) -> Result<Preset, String> {
    name.parse::<Target>().map(Preset::of).map_err(|_| {
        let known = Target::ALL.map(Target::name).join(", ");
        format!("KFD_MODEL names the unknown preset {name:?}; known are {known}, and none")
    })
}

fn profile() -> Result<Profile, String> {
    match std::env::var("KFD_MODEL_KERNEL").as_deref() {
        Err(_) | Ok("" | "6.12") => Ok(Profile::V6_12),
        Ok("6.12.0") => Ok(Profile::V6_12_0),
        Ok("6.1") => Ok(Profile::V6_1),
        Ok(other) => Err(format!("KFD_MODEL_KERNEL is {other:?}; known are 6.1, 6.12.0 and 6.12")),
    }
}

fn offsets() -> Result<Offsets, String> {
    match std::env::var("KFD_MODEL_OFFSETS").as_deref() {
        Err(_) | Ok("" | "plain") => Ok(Offsets::Plain),
        Ok("kfd") => Ok(Offsets::Kfd),
        Ok(other) => Err(format!("KFD_MODEL_OFFSETS is {other:?}; known are plain and kfd")),
    }
}

/// Permission bits of `/dev/kfd`, where they are not to be those of udev's rule.
fn node_mode() -> Result<Option<u32>, String> {
    let Ok(mode) = std::env::var("KFD_MODEL_MODE") else { return Ok(None) };
    let bits = u32::from_str_radix(&mode, 8).ok().filter(|bits| *bits <= 0o777);
    bits.map(Some).ok_or_else(|| format!("KFD_MODEL_MODE is {mode:?}: it can be an octal mode"))
}

/// What is told on the error stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Log {
    Nothing,
    /// Unknown requests.
    Unknown,
    /// Every request that fails.
    Failed,
    /// Every request.
    All,
}

/// What `KFD_MODEL_LOG` asks for: 1, 2 or 3.
pub(crate) fn log() -> Log {
    match std::env::var("KFD_MODEL_LOG").as_deref() {
        Ok("1") => Log::Unknown,
        Ok("2") => Log::Failed,
        Ok("3") => Log::All,
        _ => Log::Nothing,
    }
}
