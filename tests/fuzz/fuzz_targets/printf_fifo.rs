//! Any metadata and any FIFO: every byte is gone through once, messages stay within their limits.
#![no_main]

use hostcall::format::Limits;
use hostcall::printf::{DrainLimits, FormatTable, Records, drain, used};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Entries, one a line, an empty line, the FIFO.
    let split = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(0);
    let (entries, fifo) = data.split_at(split);
    let entries = String::from_utf8_lossy(entries);
    let table = FormatTable::new(entries.split('\n'));
    assert!(table.errors().len() <= entries.split('\n').count());
    let fifo = fifo.get(2..).unwrap_or_default();
    let Some((header, records)) = fifo.split_first_chunk::<8>() else { return };
    let offset = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let used = used(offset, fifo.len());
    let records = &records[..used.bytes];
    let message = Limits { width: 64, precision: 64, message_bytes: 512 };
    let limits = DrainLimits { message, output_bytes: 1 << 20 };
    let mut seen = 0;
    let mut next = 0;
    for record in Records::new(records, &table) {
        seen += 1;
        if let Ok(record) = record {
            assert!(record.at >= next);
            next = record.at + 4;
        }
    }
    assert!(seen <= records.len() / 4 + 1);
    let mut scratch = Vec::new();
    let drained = drain(Records::new(records, &table), &limits, &mut scratch, |_, text| {
        assert!(text.len() <= 512);
    });
    let messages = drained.printed + drained.over_limit + u64::from(drained.error.is_some());
    // Unless the output limit ended the drain.
    assert!(messages == seen as u64 || drained.lost_bytes > 0 && drained.error.is_none());
    assert!(drained.lost_bytes <= records.len());
});
