#![allow(unsafe_code)] // mapping test buffers
#![allow(clippy::indexing_slicing)]

use super::*;

const RW: Access = Access { write: true, execute: false };

fn map(space: &AddressSpace, start: u64, host: &mut [u8], access: Access) -> Result<(), MapError> {
    // SAFETY: the tests keep the buffer alive and untouched while the space is used.
    unsafe { space.map(start, host.len() as u64, host.as_mut_ptr(), access) }
}

#[test]
fn an_access_over_two_adjacent_ranges_reaches_both() {
    let (mut a, mut b) = ([0; 16], [0; 16]);
    let space = AddressSpace::new();
    map(&space, 0x1000, &mut a, RW).unwrap();
    map(&space, 0x1010, &mut b, RW).unwrap();
    space.write(0x100c, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let mut back = [0; 8];
    space.read(0x100c, &mut back).unwrap();
    assert_eq!(back, [1, 2, 3, 4, 5, 6, 7, 8]);
    drop(space);
    assert_eq!((a[12..16].to_vec(), b[..4].to_vec()), (vec![1, 2, 3, 4], vec![5, 6, 7, 8]));
}

#[test]
fn faults_name_the_first_bad_byte_and_why() {
    let mut a = [0; 16];
    let space = AddressSpace::new();
    map(&space, 0x1000, &mut a, Access::default()).unwrap();
    let fault = space.read(0x100c, &mut [0; 8]).unwrap_err();
    assert_eq!(
        fault,
        MemoryFault { address: 0x1010, write: false, fetch: false, not_present: true }
    );
    let fault = space.write(0x1004, &[0]).unwrap_err();
    assert_eq!(
        fault,
        MemoryFault { address: 0x1004, write: true, fetch: false, not_present: false }
    );
    assert_eq!(space.load_u32(0x1002), Err(AccessError::Misaligned { address: 0x1002 }));
    assert!(matches!(space.load_u64(u64::MAX - 7), Err(AccessError::Fault(_))));
}

#[test]
fn overlapping_and_wrapping_ranges_are_refused() {
    let mut a = [0; 16];
    let space = AddressSpace::new();
    map(&space, 0x1000, &mut a, RW).unwrap();
    assert!(matches!(
        map(&space, 0xff8, &mut [0; 16], RW),
        Err(MapError::Overlap { other: 0x1000, .. })
    ));
    assert!(matches!(map(&space, 0x1008, &mut [0; 4], RW), Err(MapError::Overlap { .. })));
    assert!(matches!(map(&space, u64::MAX - 7, &mut [0; 16], RW), Err(MapError::Range { .. })));
    assert!(matches!(map(&space, 0x2000, &mut [], RW), Err(MapError::Range { .. })));
}

#[test]
fn unmapping_the_middle_keeps_both_ends() {
    let mut a: Vec<u8> = (0..32).collect();
    let space = AddressSpace::new();
    map(&space, 0x1000, &mut a, RW).unwrap();
    assert!(space.unmap(0x1008, 8));
    assert!(!space.unmap(0x1008, 8));
    let mut byte = [0];
    space.read(0x1007, &mut byte).unwrap();
    assert_eq!(byte, [7]);
    space.read(0x1010, &mut byte).unwrap();
    assert_eq!(byte, [16]);
    assert!(space.read(0x1008, &mut byte).is_err());
    assert!(space.allows(0x1010, 16, RW) && !space.allows(0x1000, 9, RW));
}
