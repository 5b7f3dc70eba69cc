//! Speed of the formatter and of what feeds it.
#![allow(missing_docs)] // criterion's macros
#![allow(clippy::indexing_slicing)] // of arrays made here

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hostcall::format::{Limits, Words, format};
use hostcall::printf::{
    Blocking, Descriptor, DrainLimits, FormatTable, MessageLimits, Records, Sender, drain,
};

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

const LINES: u32 = 1000;

/// Lines of buffered printf: a number, a text, a double.
fn buffered(criterion: &mut Criterion) {
    let table = FormatTable::new(["0:0:1234,lane %d of %s: %.3f\n"]);
    let mut fifo = Vec::new();
    for line in 0..LINES {
        fifo.extend_from_slice(&(36u32 << 2 | 2).to_le_bytes());
        fifo.extend_from_slice(&0x1234u64.to_le_bytes());
        fifo.extend_from_slice(&u64::from(line).to_le_bytes());
        fifo.extend_from_slice(b"block 7\0");
        fifo.extend_from_slice(&(f64::from(line) / 8.0).to_le_bytes());
    }
    let mut group = criterion.benchmark_group("printf");
    group.throughput(Throughput::Elements(u64::from(LINES)));
    let mut scratch = Vec::new();
    group.bench_function("buffered lines", |bencher| {
        bencher.iter(|| {
            let records = Records::new(black_box(&fifo), &table);
            let drained = drain(records, &DrainLimits::default(), &mut scratch, |_, text| {
                black_box(text);
            });
            assert_eq!(drained.printed, u64::from(LINES));
        });
    });
    group.finish();
}

/// Lines of blocking printf, five fragments each: control word, format, number, text, double.
fn blocking(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("printf");
    group.throughput(Throughput::Elements(1));
    let mut printf = Blocking::new(MessageLimits::default(), Limits::default());
    let sender = Sender { pool: 0, service: 2, lane: 0 };
    let text = |text: &[u8; 8]| u64::from_le_bytes(*text);
    let items: [&[u64]; 4] = [
        &[text(b"lane %d "), text(b"of %s: %"), text(b".3f\n\0\0\0\0")],
        &[42],
        &[text(b"block 7\0")],
        &[5.25f64.to_bits()],
    ];
    group.bench_function("blocking lines", |bencher| {
        bencher.iter(|| {
            let mut payload = [Descriptor::BEGIN | 1 << 5, 0, 0, 0, 0, 0, 0, 0];
            let mut serve = |payload: &[u64; 8]| {
                printf.serve(sender, black_box(payload), Duration::ZERO, |_, text| {
                    black_box(text);
                })
            };
            for (index, item) in items.iter().enumerate() {
                let end = if index + 1 == items.len() { Descriptor::END } else { 0 };
                let words = u64::try_from(item.len()).unwrap();
                payload[0] = serve(&payload) & !(7 << 5) | words << 5 | end;
                for (word, &data) in payload[1..].iter_mut().zip(*item) {
                    *word = data;
                }
            }
            assert_eq!(serve(&payload), 26);
        });
    });
    group.finish();
}

criterion_group!(benches, conversions, buffered, blocking);
criterion_main!(benches);
