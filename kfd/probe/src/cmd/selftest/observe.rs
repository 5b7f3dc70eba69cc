//! What a GPU does that no document tells: answers to open points of queue behaviour, and a few
//! measurements. Needs nothing but a queue, changes no setting, and every wait ends.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use aql::{BarrierAnd, PacketType};
use kfd::{Error, Gpu, KernelLabel, Queue, QueueRequest, Until};
use kfd_probe::runner::{READ_INDEX_GRACE, Session, indices};
use serde::{Deserialize, Serialize};

use super::report::CaseRow;
use crate::exit::chain;

/// How long the GPU's clock is compared with the host's.
const CLOCK_TIME: Duration = Duration::from_millis(100);
/// Packets submitted one by one.
const SINGLES: u64 = 64;
/// Packets submitted as one batch.
const BATCH: u64 = 32;

/// Answers and measurements; `None` where there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Observations {
    /// Ticks of the GPU's counter in a second, by the host's clock.
    pub gpu_clock_hz: Option<f64>,
    /// Whether grids that are no multiple of their workgroup gave right results.
    pub partial_groups_right: Option<bool>,
    /// Whether the header of a consumed packet became INVALID.
    pub consumed_headers_reset: Option<bool>,
    /// Whether a doorbell for one packet more than there is left the queue working.
    pub doorbell_past_end_harmless: Option<bool>,
    /// Whether a packet's time stamps are between two readings of the GPU's counter.
    pub timestamps_on_gpu_clock: Option<bool>,
    /// Read index against completion.
    pub read_index: Option<ReadIndex>,
    /// Fastest and median time from doorbell to completion seen by the host, no-op packets.
    pub noop_microseconds: Option<[f64; 2]>,
    /// What ended the observations early.
    pub problem: Option<String>,
}

/// How the device's read index moves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReadIndex {
    /// Packets submitted one by one.
    pub singles: u64,
    /// How often the index had moved when the completion signal was seen.
    pub moved_at_completion: u64,
    /// Longest time from the completion to the move.
    pub longest_lag_microseconds: f64,
    /// Packets submitted as one batch.
    pub batch: u64,
    /// Values of the index seen while the batch ran, relative to its first packet.
    pub values_in_batch: Vec<u64>,
    /// Whether the index reached the end of the batch.
    pub reached_end: bool,
}

/// Observes a GPU. `cases` are its results so far.
pub fn observe(session: &mut Session, cases: &[CaseRow], timeout: Duration) -> Observations {
    let mut seen =
        Observations { partial_groups_right: partial_groups(cases), ..Observations::default() };
    let gpu = session.gpu().clone();
    seen.problem = watch(&mut seen, &gpu, timeout).err().map(|error| chain(&error));
    seen
}

fn watch(seen: &mut Observations, gpu: &Gpu, timeout: Duration) -> Result<(), Error> {
    seen.gpu_clock_hz = clock(gpu)?;
    // A queue of its own: what is tried here must not disturb the tests.
    let queue = gpu.create_queue(&QueueRequest::aql(QueueRequest::MIN_PACKETS).profiling())?;
    let result = on_queue(seen, gpu, &queue, timeout);
    let destroyed = queue.destroy();
    result.and(destroyed)
}

fn on_queue(
    seen: &mut Observations,
    gpu: &Gpu,
    queue: &Queue,
    timeout: Duration,
) -> Result<(), Error> {
    let mut read_index = ReadIndex::default();
    singles(seen, &mut read_index, gpu, queue, timeout)?;
    batch(&mut read_index, gpu, queue, timeout)?;
    seen.read_index = Some(read_index);
    seen.consumed_headers_reset = headers(queue);
    queue.ring_one_past()?;
    // Long enough for the device to look, and to report if it dislikes what it finds.
    std::thread::sleep(Duration::from_millis(10));
    seen.doorbell_past_end_harmless = Some(match noop(gpu, queue, timeout) {
        Ok(_) => true,
        Err(Error::Timeout(_) | Error::QueueLost(_)) => false,
        Err(error) => return Err(error),
    });
    Ok(())
}

/// Ticks per second.
#[allow(clippy::cast_precision_loss)] // 53 bits of a span of 0.1 s
fn clock(gpu: &Gpu) -> Result<Option<f64>, Error> {
    let first = gpu.clocks()?;
    std::thread::sleep(CLOCK_TIME);
    let last = gpu.clocks()?;
    let ticks = last.gpu_ticks.wrapping_sub(first.gpu_ticks);
    let nanoseconds = last.cpu_ns.wrapping_sub(first.cpu_ns);
    Ok((nanoseconds != 0).then(|| ticks as f64 * 1e9 / nanoseconds as f64))
}

/// One no-op packet.
struct Noop {
    elapsed: Duration,
    timestamps: (u64, u64),
}

fn noop(gpu: &Gpu, queue: &Queue, timeout: Duration) -> Result<Noop, Error> {
    let done = gpu.create_signal(1)?;
    let packet = BarrierAnd::noop().barrier().completion(done.addr()).encode();
    let start = Instant::now();
    queue.submit_within(&packet, KernelLabel::NONE, timeout)?;
    queue.wait(&done, Until::Below(1), timeout)?;
    Ok(Noop { elapsed: start.elapsed(), timestamps: done.timestamps() })
}

fn singles(
    seen: &mut Observations,
    read_index: &mut ReadIndex,
    gpu: &Gpu,
    queue: &Queue,
    timeout: Duration,
) -> Result<(), Error> {
    let mut times = Vec::new();
    let mut in_range = None;
    for _ in 0..SINGLES {
        let before = gpu.clocks()?.gpu_ticks;
        let noop = noop(gpu, queue, timeout)?;
        let completed = Instant::now();
        let now = indices(queue);
        read_index.singles += 1;
        if now.read == now.write {
            read_index.moved_at_completion += 1;
        } else {
            while indices(queue).read < now.write && completed.elapsed() < READ_INDEX_GRACE {
                std::thread::yield_now();
            }
            let lag = completed.elapsed().as_secs_f64() * 1e6;
            read_index.longest_lag_microseconds = read_index.longest_lag_microseconds.max(lag);
        }
        let after = gpu.clocks()?.gpu_ticks;
        let (start, end) = noop.timestamps;
        if (start, end) != (0, 0) {
            let inside = before <= start && start <= end && end <= after;
            in_range = Some(in_range.unwrap_or(true) && inside);
        }
        times.push(noop.elapsed.as_secs_f64() * 1e6);
    }
    seen.timestamps_on_gpu_clock = in_range;
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2);
    seen.noop_microseconds = times.first().zip(median).map(|(least, median)| [*least, *median]);
    Ok(())
}

fn batch(
    read_index: &mut ReadIndex,
    gpu: &Gpu,
    queue: &Queue,
    timeout: Duration,
) -> Result<(), Error> {
    let done = gpu.create_signal(1)?;
    let noop = BarrierAnd::noop().barrier();
    let count = usize::try_from(BATCH).unwrap_or(1);
    let mut packets = vec![(noop.encode(), KernelLabel::NONE); count];
    if let Some((last, _)) = packets.last_mut() {
        *last = noop.completion(done.addr()).encode();
    }
    let first = indices(queue).write;
    queue.submit_all(&packets)?;
    let start = Instant::now();
    loop {
        let read = indices(queue).read.saturating_sub(first);
        if read_index.values_in_batch.last() != Some(&read) {
            read_index.values_in_batch.push(read);
        }
        if read >= BATCH || start.elapsed() > READ_INDEX_GRACE {
            break;
        }
    }
    queue.wait(&done, Until::Below(1), timeout)?;
    read_index.batch = BATCH;
    read_index.reached_end = indices(queue).read >= first + BATCH;
    Ok(())
}

/// Whether every slot whose packet was consumed last holds an INVALID header.
fn headers(queue: &Queue) -> Option<bool> {
    let state = indices(queue);
    let consumed = state.read.saturating_sub(BATCH)..state.read;
    if consumed.is_empty() {
        return None;
    }
    let reset = |index| queue.slot(index).header().packet_type() == PacketType::INVALID;
    Some(consumed.into_iter().all(reset))
}

/// Whether the cases with a partial workgroup passed; `None` when none was launched.
fn partial_groups(cases: &[CaseRow]) -> Option<bool> {
    let is_partial = |case: &&CaseRow| {
        let mut sizes = case.grid.iter().zip(case.workgroup);
        case.packets > 0 && sizes.any(|(grid, group)| group != 0 && grid % group != 0)
    };
    let mut partial = cases.iter().filter(is_partial).peekable();
    partial.peek()?;
    Some(partial.all(|case| case.result == "passed"))
}

impl Observations {
    /// What can be compared between two runs: names and answers.
    pub fn answers(&self) -> Vec<(&'static str, String)> {
        let text = |answer: Option<bool>| match answer {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => "not observed".to_owned(),
        };
        let batched = self.read_index.as_ref().map(|seen| {
            let mut steps = seen.values_in_batch.iter().zip(seen.values_in_batch.iter().skip(1));
            // Steps of more than one may also be moves that were too fast to be seen.
            steps.any(|(from, to)| to - from == 1)
        });
        vec![
            ("partial workgroups right", text(self.partial_groups_right)),
            ("headers of consumed packets reset to INVALID", text(self.consumed_headers_reset)),
            ("doorbell past the end harmless", text(self.doorbell_past_end_harmless)),
            ("time stamps on the GPU's clock", text(self.timestamps_on_gpu_clock)),
            ("read index seen to move by single packets", text(batched)),
            (
                "read index reaches the write index",
                text(self.read_index.as_ref().map(|seen| seen.reached_end)),
            ),
        ]
    }

    /// Writes the text form.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "Observed:")?;
        for (name, answer) in self.answers() {
            writeln!(out, "  {name}: {answer}")?;
        }
        if let Some(seen) = &self.read_index {
            writeln!(
                out,
                "  read index had moved at {} of {} completions, longest lag {:.0} us",
                seen.moved_at_completion, seen.singles, seen.longest_lag_microseconds
            )?;
        }
        if let Some(hz) = self.gpu_clock_hz {
            writeln!(out, "  GPU clock: {:.3} MHz", hz / 1e6)?;
        }
        if let Some([least, median]) = self.noop_microseconds {
            writeln!(
                out,
                "  doorbell to completion: {least:.1} us at best, {median:.1} us median"
            )?;
        }
        match &self.problem {
            Some(problem) => writeln!(out, "  ended early: {problem}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(grid: [u32; 3], result: &str) -> CaseRow {
        CaseRow {
            name: String::new(),
            kernel: String::new(),
            grid,
            workgroup: [64, 1, 1],
            result: result.to_owned(),
            detail: None,
            microseconds: 0.0,
            gpu_ticks: None,
            packets: 1,
            queue_before: None,
            queue_after: None,
        }
    }

    #[test]
    fn partial_groups_are_judged_by_the_cases_that_have_some() {
        let whole = case([128, 1, 1], "wrong");
        assert_eq!(partial_groups(std::slice::from_ref(&whole)), None);
        let partial = case([100, 1, 1], "passed");
        assert_eq!(partial_groups(&[whole.clone(), partial.clone()]), Some(true));
        assert_eq!(partial_groups(&[whole, partial, case([1, 1, 1], "wrong")]), Some(false));
    }
}
