//! Whole instructions on a wave, against a second formulation.

mod across;
mod harness;
mod masks;
mod matrix;
mod modifiers;
mod paths;
mod reference;
mod wmma;
