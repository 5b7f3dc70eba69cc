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
    /// The fastest the host can run. Each takes a quarter of the crate's build time, so debug builds
    /// have one, and in release builds the one for any host has no code for common instructions.
    pub(super) fn new() -> Self {
        #[cfg(not(debug_assertions))]
        if avx512::is_available() {
            return Self { wave32: avx512::run::<32>, wave64: avx512::run::<64> };
        }
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
    group.run::<{ cfg!(debug_assertions) }>(cx, halted)
}

/// Declares a module with the interpreter compiled for some features of the host.
#[cfg(not(debug_assertions))]
macro_rules! interpreter {
    ($(#[$doc:meta])* $name:ident, $features:literal, $($feature:tt),+) => {
        $(#[$doc])*
        mod $name {
            use super::{Context, Group, Halted, Left};

            /// Whether the host has every feature that [`enabled`] uses.
            pub(super) fn is_available() -> bool {
                $(std::arch::is_x86_feature_detected!($feature))&&+
            }

            #[target_feature(enable = $features)]
            fn enabled<const N: usize>(
                group: &mut Group<N>,
                cx: &mut Context<'_>,
                halted: &mut Vec<Halted>,
            ) -> Left {
                group.run::<true>(cx, halted)
            }

            /// Runs a group. Given out only where [`is_available`].
            pub(super) fn run<const N: usize>(
                group: &mut Group<N>,
                cx: &mut Context<'_>,
                halted: &mut Vec<Halted>,
            ) -> Left {
                // SAFETY: `Runners::new` hands this function out only after `is_available` found
                // every feature that `enabled` enables.
                unsafe { enabled::<N>(group, cx, halted) }
            }
        }
    };
}

#[cfg(not(debug_assertions))]
interpreter!(
    /// For hosts with AVX2 and FMA.
    avx2,
    "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c",
    "avx2", "fma", "bmi1", "bmi2", "lzcnt", "popcnt", "f16c"
);

#[cfg(not(debug_assertions))]
interpreter!(
    /// For hosts with AVX-512 as servers have had it since 2017.
    avx512,
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c",
    "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "bmi1", "bmi2", "lzcnt",
    "popcnt", "f16c"
);
