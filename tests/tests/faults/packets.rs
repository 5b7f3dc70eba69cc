//! Bad packets.

use super::*;

/// A packet that no command processor takes: its words, KFD's code and the bit of the inactive
/// signal that say why. Source: docs/ABI.md §Queue errors.
fn bad_packets() -> Vec<(&'static str, Packet, u32, u64)> {
    let dispatch = aql::KernelDispatch::new(0x10_0000_u64.into(), [64, 1, 1], [64, 1, 1]).unwrap();
    let with = |change: &dyn Fn(&mut [u32; 16])| {
        let mut packet = dispatch.encode();
        change(&mut packet.0);
        packet
    };
    vec![
        ("no work-items", with(&|words| words[3] = 0), 16, 0x2),
        ("no dimensions", with(&|words| words[0] &= 0xffff), 16, 0x2),
        ("too much LDS", with(&|words| words[7] = 1 << 20), 17, 0x4),
        ("a null kernel", with(&|words| words[8] = 0), 18, 0x8),
        ("a misaligned kernel", with(&|words| words[8] |= 8), 18, 0x8),
        ("an agent dispatch", with(&|words| words[0] = words[0] & !0xff | 4), 20, 0x20),
        ("a packet of type 7", with(&|words| words[0] = words[0] & !0xff | 7), 20, 0x20),
        ("a huge workgroup", with(&|words| words[1] = 1025 | 1 << 16), 21, 0x40),
        (
            "an unknown vendor format",
            with(&|words| words[0] = words[0] & !0xff_00ff | 0x7f_0000),
            23,
            0x100,
        ),
    ]
}

#[test]
fn a_bad_packet_stops_its_queue_unconsumed_and_the_second_queue_runs_on() {
    each_kernel(|device| {
        let gpu = device.gpu();
        for (name, packet, code, bit) in bad_packets() {
            let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
            run_noops(&gpu, &queue, 2).unwrap();
            let behind: Vec<_> = (0..3).map(|_| gpu.create_signal(1).unwrap()).collect();
            let label = device.kfd.register_kernel(name);
            queue.submit(&packet, label).unwrap();
            for signal in &behind {
                let _ = queue.submit(&noop(signal), KernelLabel::NONE);
            }
            for signal in &behind {
                let error = queue.wait(signal, Until::Below(1), SOON).unwrap_err();
                let Error::QueueLost(fault) = &error else { panic!("{name}: {error}") };
                let allowed = [Exception::Kfd(code), Exception::Inactive(bit)];
                assert!(!fault.reasons.is_empty(), "{name}: {error}");
                assert!(fault.reasons.iter().all(|r| allowed.contains(r)), "{name}: {error}");
                assert_eq!(fault.state.read_index, 2, "{name}: it is not consumed");
                assert_eq!(fault.state.packets[0].index, 2);
                assert_eq!(fault.state.packets[0].kernel.as_deref(), Some(name));
            }
            assert!(behind.iter().all(|signal| signal.value() == 1));
            let other = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
            run_noops(&gpu, &other, 3).unwrap();
            gpu.check().unwrap();
            queue.destroy().unwrap();
        }
    });
}

#[test]
fn a_thread_asleep_hears_of_a_bad_packet() {
    each_kernel(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let never = gpu.create_signal(1).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait(&never, Until::Below(1), LONG));
            std::thread::sleep(Duration::from_millis(40));
            let (_, packet, ..) = bad_packets().swap_remove(0);
            queue.submit(&packet, KernelLabel::NONE).unwrap();
            let error = waiter.join().unwrap().unwrap_err();
            assert!(matches!(error, Error::QueueLost(_)), "{error}");
        });
    });
}
