//! A small workload with something in every ring, for commands that show rings: on each GPU an AQL
//! queue waits for the host, a PM4 queue for the AQL queue, and an SDMA queue for the PM4 queue.

use std::time::Duration;

use aql::BarrierAnd;
use kfd::{Error, Gpu, KernelLabel, Kfd, Pm4Queue, Pm4QueueRequest, Queue, QueueRequest};
use kfd::{SdmaQueue, SdmaQueueRequest, Signal, Until};
use pm4::packet::{Compare, WaitOn, WaitRegMem, gfx9, gfx11};
use pm4::sdma::{Fence, PollMem};
use pm4::{GpuAddr, ReleaseMem};

use crate::exit::Failure;

/// Longest wait for a step: it is a few packets.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of a ring.
const RING_BYTES: u32 = 4096;

/// Queues of one GPU. What comes first is waited for by what follows.
struct Chain {
    gpu: Gpu,
    aql: Queue,
    gate: Signal,
    first: Signal,
    pm4: Option<(Pm4Queue, Signal)>,
    sdma: Option<(SdmaQueue, Signal)>,
}

/// The workload.
pub struct Demo {
    kfd: Kfd,
    chains: Vec<Chain>,
    label: KernelLabel,
    /// Kinds of queues that could not be had, and why.
    pub missing: Vec<String>,
}

/// What a GPU may lack, or have none left of.
fn optional<T>(made: kfd::Result<T>, missing: &mut Vec<String>) -> Result<Option<T>, Failure> {
    match made {
        Ok(queue) => Ok(Some(queue)),
        Err(error @ (Error::QueueLimit { .. } | Error::Unsupported { .. })) => {
            missing.push(error.to_string());
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

impl Demo {
    /// Makes the queues and lets them wait.
    pub fn start(kfd: &Kfd) -> Result<Self, Failure> {
        let label = kfd.register_kernel("demo");
        let mut missing = Vec::new();
        let mut chains = Vec::new();
        for gpu in kfd.gpus() {
            let aql = gpu.create_queue(&QueueRequest::aql(QueueRequest::MIN_PACKETS))?;
            let pm4 = gpu.create_pm4_queue(&Pm4QueueRequest::new(RING_BYTES));
            let sdma = gpu.create_sdma_queue(&SdmaQueueRequest::new(RING_BYTES));
            let signal = || gpu.create_silent_signal(1);
            chains.push(Chain {
                gate: signal()?,
                first: signal()?,
                pm4: optional(pm4, &mut missing)?
                    .map(|queue| Ok::<_, kfd::Error>((queue, signal()?)))
                    .transpose()?,
                sdma: optional(sdma, &mut missing)?
                    .map(|queue| Ok::<_, kfd::Error>((queue, signal()?)))
                    .transpose()?,
                aql,
                gpu,
            });
        }
        let mut demo = Self { kfd: kfd.clone(), chains, label, missing };
        demo.fill()?;
        Ok(demo)
    }

    /// What its queues stand at.
    pub fn snapshot(&self) -> kfd::Snapshot {
        self.kfd.snapshot()
    }

    /// The AQL queue of each GPU.
    pub fn aql(&self) -> impl Iterator<Item = (&Gpu, &Queue)> {
        self.chains.iter().map(|chain| (&chain.gpu, &chain.aql))
    }

    fn fill(&mut self) -> Result<(), Failure> {
        let label = self.label;
        self.chains.iter_mut().try_for_each(|chain| chain.fill(label))?;
        Ok(())
    }

    /// Lets everything through, and fills the rings anew.
    pub fn step(&mut self) -> Result<(), Failure> {
        self.open()?;
        self.fill()
    }

    fn open(&mut self) -> Result<(), Failure> {
        self.chains.iter_mut().try_for_each(Chain::open)?;
        Ok(())
    }

    /// Lets everything through and ends.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.open()?;
        for Chain { aql, pm4, sdma, .. } in self.chains {
            if let Some((queue, _)) = sdma {
                queue.destroy()?;
            }
            if let Some((queue, _)) = pm4 {
                queue.destroy()?;
            }
            aql.destroy()?;
        }
        Ok(())
    }
}

impl Chain {
    fn fill(&mut self, label: KernelLabel) -> kfd::Result<()> {
        let none = GpuAddr::NULL;
        self.gate.set(1);
        self.first.set(1);
        let packet = BarrierAnd::new([self.gate.addr(), none, none, none, none]);
        self.aql.submit(&packet.completion(self.first.addr()).encode(), label)?;
        let mut before = &self.first;
        if let Some((queue, done)) = &mut self.pm4 {
            done.set(1);
            let id = queue.id();
            let failed = |cause| Error::Pm4 { queue: id, cause };
            let on = WaitOn::Memory(before.value_addr());
            let wait = WaitRegMem::new(on, Compare::EQUAL, 0).map_err(failed)?;
            let release = match queue.target().is_gfx9() {
                true => ReleaseMem::gfx9(gfx9::ReleaseCache::TC_WB),
                false => ReleaseMem::gfx11(gfx11::ReleaseCache::GL2_WB),
            };
            let release = release.write_64(done.value_addr(), 0).map_err(failed)?;
            let dwords = WaitRegMem::DWORDS + ReleaseMem::DWORDS;
            queue.submit_within(
                dwords,
                |ib| {
                    ib.push(&wait).push(&release);
                },
                LIMIT,
            )?;
            before = done;
        }
        if let Some((queue, done)) = &mut self.sdma {
            done.set(1);
            let (id, version) = (queue.id(), queue.version());
            let failed = |cause| Error::Sdma { queue: id, cause };
            let poll = PollMem::new(before.value_addr(), Compare::EQUAL, 0).map_err(failed)?;
            let fence = Fence::new(version, done.value_addr(), 0).map_err(failed)?;
            let fence = fence.snooped_system();
            let repeats = version.poll_repeats();
            queue.submit_within(
                PollMem::DWORDS * repeats + Fence::DWORDS,
                |out| {
                    (0..repeats).for_each(|_| {
                        out.push(&poll);
                    });
                    out.push(&fence);
                },
                LIMIT,
            )?;
        }
        Ok(())
    }

    fn open(&mut self) -> kfd::Result<()> {
        self.gate.set(0);
        self.aql.wait(&self.first, Until::Below(1), LIMIT)?;
        if let Some((queue, done)) = &self.pm4 {
            queue.wait(done, Until::Below(1), LIMIT)?;
        }
        if let Some((queue, done)) = &self.sdma {
            queue.wait(done, Until::Below(1), LIMIT)?;
        }
        Ok(())
    }
}
