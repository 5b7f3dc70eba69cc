//! The model as a client sees it: raw ioctls, oracled by what Linux answers.

mod aql;
mod client;
mod debug;
mod events;
mod fork;
mod ioctls;
mod memory;
mod pm4;
mod queues;
mod ring;
mod sdma;
mod svm;

pub(super) use client::{Client, Page};
mod drm;
