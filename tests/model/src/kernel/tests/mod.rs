//! The model as a client sees it: raw ioctls, oracled by what Linux answers.

mod aql;
mod client;
mod events;
mod fork;
mod ioctls;
mod memory;
mod queues;

pub(super) use client::{Client, Page};
