use alloc::boxed::Box;
use alloc::vec::Vec;

use super::*;

#[derive(Default)]
#[repr(align(64))]
struct Line {
    _words: [AtomicU64; 8],
}

/// Zeroed memory that lives as long as the test process.
pub(crate) fn memory(bytes: usize) -> SharedWords<'static> {
    assert!(bytes.is_multiple_of(64));
    let lines: Vec<Line> = (0..bytes / 64).map(|_| Line::default()).collect();
    let lines = Box::leak(lines.into_boxed_slice());
    let base = NonNull::from(&mut *lines).cast::<u8>();
    // SAFETY: leaked, so alive for `'static`; only atomics reach it from here on.
    unsafe { SharedWords::new(base, bytes) }.unwrap()
}

#[test]
fn words_outside_the_region_are_refused() {
    let words = memory(64);
    assert!(words.u32(60).is_ok());
    assert!(words.u64(56).is_ok());
    let error = Error::OutOfBounds { offset: 64, bytes: 4, region: 64 };
    assert_eq!(words.u32(64).unwrap_err(), error);
    assert!(words.u64(60).is_err());
    assert!(words.u32(usize::MAX).is_err());
    assert!(words.slice(8, 57).is_err());
    assert!(words.write(8, &[0; 57]).is_err());
    assert!(words.slice(64, 0).is_ok());
}

#[test]
fn misaligned_words_are_refused() {
    let words = memory(64);
    let address = words.address() + 2;
    assert_eq!(words.u32(2).unwrap_err(), Error::Misaligned { address, align: 4 });
    assert!(matches!(words.u64(4), Err(Error::Misaligned { align: 8, .. })));
    assert!(matches!(words.slice(4, 8), Err(Error::Misaligned { align: 8, .. })));
}

#[test]
fn write_copies_every_byte_and_no_more() {
    let words = memory(64);
    for length in 0..=24u8 {
        words.write(0, &[0xEE; 64]).unwrap();
        let source: Vec<u8> = (0..length).collect();
        words.write(8, &source).unwrap();
        let found: Vec<u8> = (0..64)
            .map(|i| words.u64(i & !7).unwrap().load(Ordering::Relaxed).to_le_bytes()[i & 7])
            .collect();
        let end = 8 + usize::from(length);
        assert_eq!(found[8..end], source);
        assert!(found[..8].iter().chain(&found[end..]).all(|byte| *byte == 0xEE));
    }
}

#[test]
fn slots_need_a_power_of_two_of_packets() {
    for bytes in [0usize, 192, 64 * 3] {
        let error = Slots::new(memory(bytes)).unwrap_err();
        assert_eq!(error, Error::RingSize { bytes });
    }
    let odd = memory(128).slice(0, 72).unwrap();
    assert_eq!(Slots::new(odd).unwrap_err(), Error::RingSize { bytes: 72 });
    let shifted = memory(128).slice(8, 64).unwrap();
    assert!(matches!(Slots::new(shifted), Err(Error::Misaligned { align: 64, .. })));
}

#[test]
fn slots_keep_packets_word_for_word() {
    let slots = Slots::new(memory(128)).unwrap();
    let words: [u32; 16] = core::array::from_fn(|i| 0x0101_0101 * u32::try_from(i).unwrap());
    slots.slot(3).write_body(&crate::Packet(words));
    assert_eq!(slots.slot(3).header().load(Ordering::Relaxed), 0);
    slots.slot(3).header().store(words[0], Ordering::Relaxed);
    assert_eq!(slots.slot(1).read().0, words);
    assert_eq!(slots.slot(0).read().0, [0; 16]);
}
