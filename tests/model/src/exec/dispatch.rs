//! The interpreter compiled for the host's vector unit, chosen at start.
//!
//! Without FMA `f32::mul_add` is a library call, and without AVX2 a lane loop takes two to four
//! times the instructions; the results are the same bits.
#![allow(unsafe_code)] // calling functions compiled for features that were tested for

use super::context::Context;
use super::group::{Group, Halted, Left};

/// Runs a group of one wave size.
pub(super) type Runner<const N: usize> =
    fn(&mut Group<N>, &mut Context<'_>, &mut Vec<Halted>) -> Left;

/// The interpreters for both wave sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runners {
    pub(super) wave32: Runner<32>,
    pub(super) wave64: Runner<64>,
}

impl Runners {
    /// The fastest the host can run. Debug builds have one interpreter: a second doubles the time
    /// they take to build.
    pub(super) fn new() -> Self {
        #[cfg(not(debug_assertions))]
        if avx2::is_available() {
            return Self { wave32: avx2::run::<32>, wave64: avx2::run::<64> };
        }
        Self::baseline()
    }

    /// Those that need no feature beyond the compilation target's.
    pub(super) fn baseline() -> Self {
        Self { wave32: baseline::<32>, wave64: baseline::<64> }
    }
}

fn baseline<const N: usize>(
    group: &mut Group<N>,
    cx: &mut Context<'_>,
    halted: &mut Vec<Halted>,
) -> Left {
    group.run(cx, halted)
}

/// The interpreter for hosts with AVX2 and FMA.
#[cfg(not(debug_assertions))]
mod avx2 {
    use super::{Context, Group, Halted, Left};

    /// Whether the host has every feature that [`enabled`] uses.
    pub(super) fn is_available() -> bool {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("f16c")
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    fn enabled<const N: usize>(
        group: &mut Group<N>,
        cx: &mut Context<'_>,
        halted: &mut Vec<Halted>,
    ) -> Left {
        group.run(cx, halted)
    }

    /// Runs a group. Given out only where [`is_available`].
    pub(super) fn run<const N: usize>(
        group: &mut Group<N>,
        cx: &mut Context<'_>,
        halted: &mut Vec<Halted>,
    ) -> Left {
        // SAFETY: `Runners::new` hands this function out only after `is_available` found every
        // feature that `enabled` enables.
        unsafe { enabled::<N>(group, cx, halted) }
    }
}
