//! The model as a client sees it: raw ioctls, oracled by what Linux answers.

mod aql;
mod client;
mod debug;
mod engines;
mod events;
mod examples;
mod fork;
mod ioctls;
mod memory;
mod pm4;
mod pm4_buffer;
mod pm4_dispatch;
mod queues;
mod random;
mod ring;
mod sdma;
mod sdma_order;
mod svm;

pub(super) use client::{Client, Page};
mod drm;
