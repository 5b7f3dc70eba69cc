//! What is refused before anything is submitted, with exact numbers.

use hip::{CopyEngine, CopyError, Error, Extent, Layout, Side};
use kfd_tests::each_device;

use super::{open, pinned, request, stream, vram};

fn refused(result: hip::Result<()>) -> CopyError {
    match result {
        Err(Error::Copy(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ranges_outside_memory_overlaps_and_bad_layouts_name_their_numbers() {
    each_device(|device| {
        let (_runtime, device) = open(device);
        let mut stream = stream(&device, request(CopyEngine::Auto));
        let (a, b) = (pinned(&device, &[7; 4096]), vram(&device, 4096));
        let before = stream.submitted();

        let error = refused(stream.copy(b.at(1), &a, 4096));
        let outside =
            |side, offset, bytes| CopyError::Outside { side, offset, bytes, length: 4096 };
        assert_eq!(error, outside(Side::Destination, 1, 4096));
        assert_eq!(
            error.to_string(),
            "destination: 4096 bytes at offset 0x1 are outside memory of 0x1000 bytes"
        );
        let error = refused(stream.copy(&b, a.at(u64::MAX), 2));
        assert_eq!(error, outside(Side::Source, u64::MAX, 2));
        let error = refused(stream.fill(b.at(4000), 1_u64, 13));
        assert_eq!(error, outside(Side::Destination, 4000, 104));
        // A count of values whose bytes do not fit 64 bits.
        assert!(matches!(refused(stream.fill(&b, 1_u64, u64::MAX)), CopyError::Outside { .. }));

        let error = refused(stream.copy(a.at(100), a.at(0), 101));
        let extent = Extent::linear(101);
        let (src, dst) = (a.at(0).addr(), a.at(100).addr());
        assert_eq!(error, CopyError::Overlap { src, dst, extent });
        stream.copy(a.at(100), a.at(0), 100).unwrap();

        let plane = Extent::plane(100, 4);
        let narrow = Layout::pitched(99);
        let error = refused(stream.copy_rows(&b, narrow, &a, Layout::pitched(100), plane));
        let side = Side::Destination;
        assert_eq!(error, CopyError::Pitch { side, pitch_bytes: 99, width: 100 });
        let volume = Extent::volume(100, 4, 2);
        let flat = Layout { pitch_bytes: 100, slice_bytes: 399 };
        let error = refused(stream.fill_rows(&b, flat, 0_u8, volume));
        assert_eq!(error, CopyError::Slice { side, slice_bytes: 399, plane_bytes: 400 });
        let huge = Extent::volume(u64::MAX, 2, 2);
        let error = refused(stream.fill_rows(&b, Layout::dense(huge), 0_u8, huge));
        assert_eq!(error, CopyError::TooLarge { side, extent: huge });

        let error = refused(stream.fill(b.at(2), 1_u32, 4));
        assert_eq!(error, CopyError::Alignment { dst: b.at(2).addr(), width: 16, size: 4 });
        let error = refused(stream.fill_rows(&b, Layout::pitched(32), 1_u32, Extent::plane(30, 2)));
        assert_eq!(error, CopyError::Alignment { dst: b.addr(), width: 30, size: 4 });

        let error = refused(stream.copy_rows_from_host(
            &b,
            Layout::pitched(64),
            &[0; 100],
            Layout::pitched(64),
            Extent::plane(40, 2),
        ));
        assert_eq!(error, CopyError::HostLength { needed: 104, found: 100 });
        let error = refused(stream.copy_from_host(b.at(4090), &[0; 7]));
        assert_eq!(error, outside(Side::Destination, 4090, 7));
        let error = refused(stream.copy_to_host(&mut [0; 7], b.at(4090)));
        assert_eq!(error, outside(Side::Source, 4090, 7));

        // Nothing of all that was submitted but the one copy that was in order.
        assert_eq!(stream.submitted(), before + 1);
        stream.synchronize().unwrap();
    });
}

#[test]
fn no_bytes_are_no_operation() {
    each_device(|device| {
        let (_runtime, device) = open(device);
        for engine in [CopyEngine::Sdma, CopyEngine::Shader] {
            let mut stream = stream(&device, request(engine));
            let (a, b) = (pinned(&device, &[7; 64]), vram(&device, 64));
            stream.copy(b.at(64), a.at(64), 0).unwrap();
            stream.fill(b.at(64), 1_u32, 0).unwrap();
            stream.copy_from_host(b.at(64), &[]).unwrap();
            stream.copy_to_host(&mut [], b.at(64)).unwrap();
            let none = Extent::volume(4, 0, 9);
            stream.copy_rows(&b, Layout::default(), &a, Layout::default(), none).unwrap();
            assert_eq!(stream.submitted(), 0);
        }
    });
}
