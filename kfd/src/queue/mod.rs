//! Queues.

mod cwsr;
