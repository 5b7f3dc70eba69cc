//! Tests of the driver on a device: the software GPU, or with `KFD_TEST_DEVICE=hardware` a real one.
#![allow(clippy::indexing_slicing)] // a test that indexes past the end should fail

mod commands;
mod contract;
mod copies;
mod dispatch;
mod docs;
mod driver_example;
mod driver_memory;
mod driver_pm4;
mod driver_queue;
mod driver_sdma;
mod faults;
mod fork;
mod hip_example;
mod hostcall;
mod ioctls;
mod memory;
mod open;
mod queues;
mod services;
mod streams;
mod support;
mod svm;
mod waits;

#[test]
fn every_file_of_this_directory_is_part_of_the_tests() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let list = include_str!("main.rs");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "main") {
            assert!(list.contains(&format!("\nmod {stem};\n")), "main.rs lacks {name}");
        }
    }
}
