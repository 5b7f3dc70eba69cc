use super::stored_text;
use crate::format::Limits;
use crate::printf::{
    DrainLimits, Drained, FormatTable, RecordError, Records, Stream, Used, drain, fifo_header, used,
};

fn record(control: u32, payload: &[Vec<u8>]) -> Vec<u8> {
    let payload = payload.concat();
    let size = u32::try_from(payload.len() + 4).unwrap();
    [(size << 2 | control).to_le_bytes().to_vec(), payload].concat()
}

fn word(value: u64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

fn dword(value: u32) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

fn print(records: &[u8], table: &FormatTable) -> (String, Drained) {
    let mut text = String::new();
    let drained =
        drain(Records::new(records, table), &DrainLimits::default(), &mut Vec::new(), |_, line| {
            text.push_str(&String::from_utf8_lossy(line));
        });
    (text, drained)
}

fn hip() -> FormatTable {
    FormatTable::new(["0:0:a,hello %d\n", "0:0:b,[%s] %d\n", "0:0:c,none\n"])
}

#[test]
fn records_print_in_the_order_in_which_they_were_reserved() {
    let fifo = [
        record(2, &[word(0xa), word(5)]),
        record(2, &[word(0xb), stored_text(b"text of three words"), word(7)]),
        record(2, &[word(0xc)]),
        record(2, &[word(0xa), word(6)]),
    ]
    .concat();
    let (text, drained) = print(&fifo, &hip());
    assert_eq!(text, "hello 5\n[text of three words] 7\nnone\nhello 6\n");
    assert_eq!(drained, Drained { printed: 4, ..Drained::default() });
}

#[test]
fn a_run_time_format_is_inline() {
    let fifo = record(0, &[stored_text(b"run %s time %d\n"), stored_text(b"at"), word(1)]);
    assert_eq!(print(&fifo, &hip()).0, "run at time 1\n");
}

#[test]
fn padding_of_texts_is_never_printed() {
    let mut text = b"ab\0secret".to_vec();
    text.truncate(8);
    let fifo = record(2, &[word(0xb), text, word(7)]);
    assert_eq!(print(&fifo, &hip()).0, "[ab] 7\n");
}

#[test]
fn a_null_text_takes_no_bytes_and_the_number_after_it_is_right() {
    let fifo = record(2, &[word(0xb), word(7)]);
    let (text, drained) = print(&fifo, &hip());
    assert_eq!(text, "[] 7\n");
    assert_eq!(drained.odd, 0);
}

#[test]
fn the_control_word_picks_the_stream() {
    let fifo = [record(3, &[word(0xc)]), record(2, &[word(0xc)])].concat();
    let table = hip();
    let streams: Vec<Stream> =
        Records::new(&fifo, &table).map(|record| record.unwrap().stream).collect();
    assert_eq!(streams, [Stream::Stderr, Stream::Stdout]);
}

#[test]
fn an_unknown_hash_prints_a_marker_and_the_next_record_is_read() {
    let fifo = [record(2, &[word(0xdead), word(1)]), record(2, &[word(0xc)])].concat();
    let (text, drained) = print(&fifo, &hip());
    assert_eq!(text, "[printf: unknown format 0x000000000000dead]\nnone\n");
    assert_eq!((drained.printed, drained.unresolved), (2, 1));
}

#[test]
fn an_ambiguous_hash_prints_a_marker_and_a_repeated_format_its_text() {
    let table = FormatTable::new(["0:0:1,one\n", "0:0:1,two\n", "0:0:2,same\n", "0:0:2,same\n"]);
    let fifo = [record(2, &[word(1)]), record(2, &[word(2)])].concat();
    let (text, drained) = print(&fifo, &table);
    assert_eq!(text, "[printf: ambiguous format 0x0000000000000001]\nsame\n");
    assert_eq!(drained.unresolved, 1);
}

#[test]
fn a_bad_record_size_ends_the_drain_after_the_good_records() {
    let good = record(2, &[word(0xc)]);
    for (size, control, rest) in [
        (0, 2, 16),  // reserved but never written
        (3, 0, 16),  // less than its own head
        (8, 2, 16),  // less than head and hash
        (13, 2, 16), // no multiple of 4
        (24, 2, 16), // more than is left
        (u32::MAX >> 2, 2, 16),
    ] {
        let mut fifo = good.clone();
        fifo.extend_from_slice(&dword(size << 2 | control));
        fifo.resize(good.len() + rest, 0);
        let (text, drained) = print(&fifo, &hip());
        assert_eq!(text, "none\n");
        let at = good.len();
        assert_eq!(drained.error, Some(RecordError::Size { at, size, left: rest }), "{size}");
        assert_eq!((drained.printed, drained.lost_bytes), (1, rest));
    }
}

#[test]
fn a_rest_of_less_than_a_word_is_an_error() {
    let fifo = [record(2, &[word(0xc)]), vec![1, 2, 3]].concat();
    let drained = print(&fifo, &hip()).1;
    assert_eq!(drained.error, Some(RecordError::Truncated { at: 12, left: 3 }));
}

#[test]
fn records_may_lie_on_4_byte_boundaries() {
    let fifo = [record(2, &[word(0xc)]), record(2, &[word(0xa), word(3)])].concat();
    let moved = [vec![0; 4], fifo].concat();
    assert_eq!(print(&moved[4..], &hip()).0, "none\nhello 3\n");
}

#[test]
fn the_offset_word_is_clamped_to_what_the_host_allocated() {
    assert_eq!(used(0, 4096), Used { bytes: 0, excess: 0 });
    assert_eq!(used(100, 4096), Used { bytes: 100, excess: 0 });
    assert_eq!(used(4088, 4096), Used { bytes: 4088, excess: 0 });
    assert_eq!(used(4100, 4096), Used { bytes: 4088, excess: 12 });
    assert_eq!(used(u32::MAX, 4096).bytes, 4088);
    assert_eq!(used(100, 4), Used { bytes: 0, excess: 100 });
}

#[test]
fn every_truncation_of_a_fifo_is_read_or_refused() {
    let fifo = [
        record(2, &[word(0xa), word(5)]),
        record(0, &[stored_text(b"%s %d"), stored_text(b"text"), word(7)]),
        record(2, &[word(0xb), stored_text(b"text"), word(7)]),
    ]
    .concat();
    for end in 0..fifo.len() {
        let (_, drained) = print(&fifo[..end], &hip());
        assert!(drained.printed < 3);
    }
}

fn open_cl() -> FormatTable {
    FormatTable::new([
        "1:0:second\\n",
        "2:2:4:4:a=%d b=%f\\n",
        "3:3:8:4:4:%s|%s|%d\\n",
        "4:1:16:%v4hld\\n",
        "5:1:32:%5.1v3hlf|\\n",
        "6:2:4:8:%v2hhu %ld\\n",
        "7:1:8:%v4hf\\n",
        "8:2:16:4:%d %d\\n",
        "9:1:12:%v4hlf\\n",
    ])
}

#[test]
fn open_cl_records_are_an_id_and_arguments_of_the_metadata_s_sizes() {
    let fifo = [
        dword(2),
        dword((-3i32).cast_unsigned()),
        dword(1.5f32.to_bits()),
        dword(1),
        dword(2),
        dword(4),
        dword(0x3f00_0000),
    ]
    .concat();
    let (text, drained) = print(&fifo, &open_cl());
    assert_eq!(text, "a=-3 b=1.500000\nsecond\na=4 b=0.500000\n");
    assert_eq!(drained, Drained { printed: 3, ..Drained::default() });
}

#[test]
fn open_cl_texts_fill_their_slots_and_an_empty_one_is_not_null() {
    // A text whose length is a multiple of 4 has no NUL.
    let fifo = [dword(3), b"12345678".to_vec(), dword(0xffff_ff00), dword(77)].concat();
    assert_eq!(print(&fifo, &open_cl()).0, "12345678||77\n");
    let fifo = [dword(3), word(0), b"ab\0\0".to_vec(), dword(77)].concat();
    assert_eq!(print(&fifo, &open_cl()).0, "(null)|ab|77\n");
}

#[test]
fn open_cl_vectors_print_lane_by_lane() {
    let ints: Vec<u8> = [1, -2, 3, -4i32].iter().flat_map(|lane| lane.to_le_bytes()).collect();
    assert_eq!(print(&[dword(4), ints].concat(), &open_cl()).0, "1,-2,3,-4\n");
    // Three lanes are stored as four.
    let doubles: Vec<u8> =
        [1.0, 2.25, -0.5, 9.0f64].iter().flat_map(|lane| lane.to_le_bytes()).collect();
    assert_eq!(print(&[dword(5), doubles].concat(), &open_cl()).0, "  1.0,  2.2, -0.5|\n");
    // Two chars, widened to ints by the compiler.
    let fifo = [dword(6), dword(0), word(5)].concat();
    let (text, drained) = print(&fifo, &open_cl());
    assert_eq!(text, "0,0 5\n");
    assert_eq!(drained.odd, 0);
    // Halves: 1, -2, the smallest subnormal, infinity.
    let halves: Vec<u8> =
        [0x3c00u16, 0xc000, 1, 0x7c00].iter().flat_map(|lane| lane.to_le_bytes()).collect();
    assert_eq!(
        print(&[dword(7), halves].concat(), &open_cl()).0,
        "1.000000,-2.000000,0.000000,inf\n"
    );
}

#[test]
fn open_cl_arguments_of_a_wrong_size_are_counted_and_the_next_one_is_right() {
    let fifo = [dword(8), vec![0xff; 16], dword(5)].concat();
    let (text, drained) = print(&fifo, &open_cl());
    assert_eq!(text, "0 5\n");
    assert_eq!(drained.odd, 1);
    let (text, drained) = print(&[dword(9), vec![0; 12]].concat(), &open_cl());
    assert_eq!(text, "%v4hlf\n");
    assert_eq!(drained.odd, 1);
}

#[test]
fn an_unknown_open_cl_id_ends_the_drain() {
    let fifo = [dword(1), dword(99), dword(1)].concat();
    let (text, drained) = print(&fifo, &open_cl());
    assert_eq!(text, "second\n");
    assert_eq!(drained.error, Some(RecordError::UnknownId { at: 4, id: 99 }));
    assert_eq!(drained.lost_bytes, 8);
}

#[test]
fn an_open_cl_record_longer_than_the_rest_ends_the_drain() {
    let fifo = [dword(2), dword(1)].concat();
    let drained = print(&fifo, &open_cl()).1;
    assert_eq!(drained.error, Some(RecordError::Size { at: 0, size: 12, left: 8 }));
}

#[test]
fn a_message_over_the_limit_is_counted_and_the_next_one_printed() {
    let table = FormatTable::new(["0:0:1,%*d\n", "0:0:2,ok\n"]);
    let fifo = [record(2, &[word(1), word(1000), word(1)]), record(2, &[word(2)])].concat();
    let message = Limits { message_bytes: 100, ..Limits::default() };
    let limits = DrainLimits { message, ..DrainLimits::default() };
    let mut lines = Vec::new();
    let drained = drain(Records::new(&fifo, &table), &limits, &mut Vec::new(), |_, line| {
        lines.push(line.to_vec());
    });
    assert_eq!(lines, [b"ok\n"]);
    assert_eq!((drained.printed, drained.over_limit), (1, 1));
}

#[test]
fn short_records_of_a_long_format_stop_at_the_output_limit() {
    let entry = format!("1:0:{}", "x".repeat(1000));
    let table = FormatTable::new([entry.as_str()]);
    let fifo = dword(1).repeat(1000);
    let limits = DrainLimits { output_bytes: 10_000, ..DrainLimits::default() };
    let mut bytes = 0;
    let drained = drain(Records::new(&fifo, &table), &limits, &mut Vec::new(), |_, line| {
        bytes += line.len();
    });
    assert_eq!((bytes, drained.printed, drained.lost_bytes), (10_000, 10, 990 * 4));
    // Messages over their own limit count as well.
    let message = Limits { message_bytes: 100, ..Limits::default() };
    let limits = DrainLimits { message, output_bytes: 10_000 };
    let drained = drain(Records::new(&fifo, &table), &limits, &mut Vec::new(), |_, _| ());
    assert_eq!((drained.printed, drained.over_limit, drained.lost_bytes), (0, 100, 900 * 4));
}

#[test]
fn both_allocators_stay_inside_a_fifo_with_our_header() {
    for fifo_bytes in [0, 8, 16, 20, 4096] {
        let [mut offset, size] = fifo_header(fifo_bytes);
        assert_eq!(offset, 0);
        // The device library's: 8 + offset + n <= size. It wastes the last 8 bytes.
        while 8 + offset + 4 <= size {
            offset += 4;
        }
        assert!(offset == 0 || 8 + offset <= fifo_bytes);
        // One that leaves the header out of its count.
        let mut offset = 0;
        while offset + 4 <= size {
            offset += 4;
        }
        assert!(offset == 0 || 8 + offset <= fifo_bytes);
    }
}
