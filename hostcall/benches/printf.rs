//! Speed of the formatter and of what feeds it.
#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hostcall::format::{Limits, Words, format};

const CONVERSIONS: u64 = 8;

/// Messages of eight conversions of one kind.
fn conversions(criterion: &mut Criterion) {
    let word = |value: u64| value.to_le_bytes().to_vec();
    let text = |text: &[u8; 8]| text.to_vec();
    let kinds = [
        ("decimal, small", "%d", word(42)),
        ("decimal, ten digits", "%d", word(2_147_483_647)),
        ("text, short", "%s", text(b"lane 7\0\0")),
        ("hex, eight digits", "%x", word(0xdead_beef)),
        ("hex, padded", "%016lx", word(0x7f00_1234_5678)),
        ("float", "%f", word(3.25f64.to_bits())),
        ("float, general", "%g", word(0.1f64.to_bits())),
    ];
    let mut group = criterion.benchmark_group("format");
    group.throughput(Throughput::Elements(CONVERSIONS));
    for (name, conversion, argument) in kinds {
        let line = format!("{conversion} ").repeat(8);
        let arguments = argument.repeat(8);
        let mut out = Vec::new();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                let mut words = Words::new(black_box(&arguments));
                let outcome = format(&mut out, line.as_bytes(), &mut words, &Limits::default());
                assert!(outcome.is_clean());
                black_box(out.len())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, conversions);
criterion_main!(benches);
