//! Device text on its way out: nothing waits for a slow reader, nothing is cut, what is lost is
//! counted.

#![cfg(not(loom))]

use std::io;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hostcall::sink::{Callback, OUTPUT_OVERHEAD, OutputLimits, Overflow, Sink, Stream, Writer};
use hostcall::{Count, Counters};

const LONG: Duration = Duration::from_secs(20);

fn limits(messages: usize, text: usize, overflow: Overflow) -> OutputLimits {
    OutputLimits { bytes: messages * (text + OUTPUT_OVERHEAD), overflow }
}

/// Takes nothing before it is told to.
struct Slow(Receiver<()>, Arc<Mutex<Vec<u8>>>);

impl Sink for Slow {
    fn write(&mut self, _: Stream, text: &[u8]) -> io::Result<()> {
        let _ = self.0.recv();
        self.1.lock().unwrap().extend_from_slice(text);
        Ok(())
    }
}

#[test]
fn messages_keep_their_order_and_their_bytes() {
    let seen = Arc::<Mutex<Vec<(Stream, Vec<u8>)>>>::default();
    let theirs = Arc::clone(&seen);
    let sink = Callback(move |stream, text: &[u8]| {
        theirs.lock().unwrap().push((stream, text.to_vec()));
    });
    let counters = Arc::<Counters>::default();
    let writer = Writer::start(sink, OutputLimits::DEFAULT, Arc::clone(&counters)).unwrap();
    let output = writer.output();
    let mut expected = Vec::new();
    for n in 0..1000_u32 {
        let stream = if n % 7 == 0 { Stream::Stderr } else { Stream::Stdout };
        let text = [&n.to_le_bytes()[..], b"\0\x1b[31m\xff\n"].concat();
        assert!(output.push(stream, text.clone()));
        expected.push((stream, text));
    }
    assert!(output.flush(LONG));
    assert_eq!(*seen.lock().unwrap(), expected);
    assert!(writer.finish(LONG));
    assert_eq!(counters.get(Count::Written), 1000);
    assert!(!output.push(Stream::Stdout, vec![1]), "its writer has ended");
}

#[test]
fn a_sink_that_takes_nothing_holds_up_nobody_and_what_is_dropped_is_counted() {
    let (go_on, gate) = channel();
    let text = Arc::<Mutex<Vec<u8>>>::default();
    let counters = Arc::<Counters>::default();
    let sink = Slow(gate, Arc::clone(&text));
    let writer = Writer::start(sink, limits(4, 8, Overflow::Drop), Arc::clone(&counters)).unwrap();
    let output = writer.output();
    let start = Instant::now();
    let taken: Vec<u8> = (0..100_u8).filter(|n| output.push(Stream::Stdout, vec![*n; 8])).collect();
    assert!(start.elapsed() < LONG);
    assert_eq!(taken, [0, 1, 2, 3], "the oldest are kept");
    assert_eq!((counters.get(Count::Dropped), counters.get(Count::DroppedBytes)), (96, 768));
    assert!(!output.flush(Duration::from_millis(20)));
    for _ in 0..4 {
        go_on.send(()).unwrap();
    }
    assert!(output.flush(LONG));
    // Room again.
    assert!(output.push(Stream::Stdout, vec![b'!'; 8]));
    go_on.send(()).unwrap();
    assert!(writer.finish(LONG));
    assert_eq!(text.lock().unwrap().len(), 5 * 8);
}

#[test]
fn empty_messages_are_bounded_too_and_one_that_is_too_long_is_never_taken() {
    let (_go_on, gate) = channel();
    let sink = Slow(gate, Arc::default());
    let counters = Arc::<Counters>::default();
    let writer = Writer::start(sink, limits(4, 8, Overflow::Drop), Arc::clone(&counters)).unwrap();
    let output = writer.output();
    assert!(!output.push(Stream::Stdout, vec![0; 4 * (8 + OUTPUT_OVERHEAD)]));
    let taken = (0..100).filter(|_| output.push(Stream::Stdout, Vec::new())).count();
    assert_eq!(taken, 4 * (8 + OUTPUT_OVERHEAD) / OUTPUT_OVERHEAD);
    drop(_go_on);
    assert!(writer.finish(LONG));
}

#[test]
fn a_host_can_have_waves_wait_for_room_but_not_for_ever() {
    let (go_on, gate) = channel();
    let sink = Slow(gate, Arc::default());
    let counters = Arc::<Counters>::default();
    let wait = Overflow::Wait(Duration::from_millis(30));
    let writer = Writer::start(sink, limits(1, 8, wait), Arc::clone(&counters)).unwrap();
    let output = writer.output();
    assert!(output.push(Stream::Stdout, vec![1; 8]));
    let start = Instant::now();
    assert!(!output.push(Stream::Stdout, vec![2; 8]));
    assert!(start.elapsed() >= Duration::from_millis(30));
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        go_on.send(()).unwrap();
        go_on
    });
    let mut tries = 0;
    while !output.push(Stream::Stdout, vec![3; 8]) {
        tries += 1;
        assert!(tries < 100, "there is room");
    }
    drop(opener.join().unwrap());
    assert!(writer.finish(LONG));
}

#[test]
fn a_sink_that_panics_or_fails_is_counted_and_gets_the_next_message() {
    struct Bad(u32, Arc<Mutex<Vec<u8>>>);
    impl Sink for Bad {
        fn write(&mut self, _: Stream, text: &[u8]) -> io::Result<()> {
            self.0 += 1;
            match self.0 % 3 {
                0 => panic!("as the test asked"),
                1 => Err(io::ErrorKind::BrokenPipe.into()),
                _ => {
                    self.1.lock().unwrap().extend_from_slice(text);
                    Ok(())
                }
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("even here");
        }
    }
    let text = Arc::<Mutex<Vec<u8>>>::default();
    let counters = Arc::<Counters>::default();
    let sink = Bad(0, Arc::clone(&text));
    let writer = Writer::start(sink, OutputLimits::DEFAULT, Arc::clone(&counters)).unwrap();
    let output = writer.output();
    for n in 1..=9 {
        assert!(output.push(Stream::Stdout, vec![n]));
    }
    assert!(writer.finish(LONG));
    assert_eq!(*text.lock().unwrap(), [2, 5, 8]);
    assert_eq!(counters.get(Count::SinkFailures), 6 + 1);
}

#[test]
fn a_sink_that_never_returns_delays_the_end_no_longer_than_the_limit() {
    let (go_on, gate) = channel();
    let sink = Slow(gate, Arc::default());
    let writer = Writer::start(sink, OutputLimits::DEFAULT, Arc::default()).unwrap();
    assert!(writer.output().push(Stream::Stdout, vec![1]));
    let start = Instant::now();
    assert!(!writer.finish(Duration::from_millis(30)));
    assert!(start.elapsed() < LONG);
    drop(go_on);
}

/// What the child of the next test does.
const CHILD: &str = "HOSTCALL_TEST_STDIO_CHILD";
const LINES: usize = 3000;

#[test]
fn lines_of_the_device_and_of_the_host_are_never_cut() {
    if std::env::var_os(CHILD).is_some() {
        let sink = hostcall::sink::Stdio::new();
        let writer = Writer::start(sink, OutputLimits::DEFAULT, Arc::default()).unwrap();
        std::thread::scope(|scope| {
            for name in ["aaa", "bbb"] {
                let output = writer.output();
                scope.spawn(move || {
                    for _ in 0..LINES {
                        let line = format!("<{}>\n", name.repeat(30));
                        assert!(output.push(Stream::Stdout, line.into_bytes()));
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..LINES {
                    println!("<{}>", "ccc".repeat(30));
                }
            });
        });
        assert!(writer.finish(LONG));
        return;
    }
    let name = "lines_of_the_device_and_of_the_host_are_never_cut";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([name, "--exact", "--nocapture"]).env(CHILD, "1").stderr(Stdio::null());
    let output = child.output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let counted = |name: &str| {
        let line = format!("<{}>", name.repeat(30));
        text.lines().filter(|found| found.trim_start().ends_with(&line)).count()
    };
    assert_eq!([counted("aaa"), counted("bbb"), counted("ccc")], [LINES; 3]);
}

#[test]
fn text_for_logs_has_no_control_characters() {
    let text = b"a\x1b[2J\r\n\0\x07 b\xff\xc2\x9b\n";
    let line = hostcall::sink::escaped(text);
    assert!(!line.contains(char::is_control), "{line:?}");
    assert!(line.starts_with("a\\u{1b}[2J\\r\\n") && line.contains(" b\u{fffd}"), "{line}");
    assert_eq!(hostcall::sink::escaped(b"plain\n"), "plain");
}

#[test]
fn lines_queued_by_the_drain_are_written_at_two_hundred_thousand_a_second() {
    let counters = Arc::<Counters>::default();
    let sink = Callback(|_, text: &[u8]| assert_eq!(text.len(), 80));
    let writer = Writer::start(sink, OutputLimits::DEFAULT, Arc::clone(&counters)).unwrap();
    let output = writer.output();
    let start = Instant::now();
    for _ in 0..200_000 {
        assert!(output.push(Stream::Stdout, vec![b'x'; 80]));
    }
    assert!(output.flush(LONG));
    // Unoptimised, on a busy machine: the queue itself must not be the bottleneck by far.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
