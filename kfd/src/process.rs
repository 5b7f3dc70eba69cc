//! Read-only views: what processes do with the GPUs, from sysfs, and this process's queues as KFD
//! knows them.

use crate::abi::{self, QueueSnapshotEntry};
use crate::device::Kfd;
use crate::error::{Error, Result};
use crate::ids::{GpuId, QueueId};
use crate::sys::{Errno, Kernel, OpenFlags};
use crate::topology::{read_text, retry};

/// Where KFD lists processes, best first.
const ROOTS: [&str; 2] = ["/sys/devices/virtual/kfd/kfd/proc", "/sys/class/kfd/kfd/proc"];
/// Queues a snapshot has room for: KFD's limit of queue ids in a process (docs/ABI.md §Limits).
const MAX_QUEUES: usize = 1024;

/// A queue of some process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessQueue {
    /// The queue.
    pub id: QueueId,
    /// Its GPU.
    pub gpu: GpuId,
    /// Ring, bytes.
    pub ring_bytes: u64,
    /// The kernel's type: 0 compute, 1 SDMA, 4 SDMA over xGMI.
    pub kind: u32,
}

/// What a process uses of one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessGpu {
    /// The GPU.
    pub gpu: GpuId,
    /// VRAM, bytes.
    pub vram_bytes: Option<u64>,
    /// How busy its SDMA queues were, in the kernel's unit.
    pub sdma_activity: Option<u64>,
    /// How long its queues were evicted, milliseconds.
    pub evicted_ms: Option<u64>,
    /// Compute units its waves are on.
    pub cu_occupancy: Option<u64>,
}

/// A process that has KFD open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Process id in the initial namespace.
    pub pid: u32,
    /// Address space id on the GPUs.
    pub pasid: Option<u32>,
    /// Its use of each GPU, by GPU id.
    pub gpus: Vec<ProcessGpu>,
    /// Its queues, by id.
    pub queues: Vec<ProcessQueue>,
}

/// All processes that have KFD open, by id. Those that vanish while they are read, and files that
/// cannot be read, are left out.
///
/// # Errors
/// The errno of reading KFD's list of processes.
pub fn processes(kernel: &dyn Kernel) -> Result<Vec<ProcessInfo>, Errno> {
    let mut last = Errno::NOENT;
    for root in ROOTS {
        match kernel.read_dir(root) {
            Ok(names) => {
                let mut pids: Vec<u32> =
                    names.iter().filter_map(|name| name.parse().ok()).collect();
                pids.sort_unstable();
                return Ok(pids.into_iter().filter_map(|pid| process(kernel, root, pid)).collect());
            }
            Err(errno) => last = errno,
        }
    }
    Err(last)
}

fn number<T: std::str::FromStr>(kernel: &dyn Kernel, path: &str) -> Option<T> {
    read_text(kernel, path).ok()?.trim().parse().ok()
}

fn process(kernel: &dyn Kernel, root: &str, pid: u32) -> Option<ProcessInfo> {
    let path = format!("{root}/{pid}");
    let names = kernel.read_dir(&path).ok()?;
    let mut ids: Vec<u32> = names
        .iter()
        .filter_map(|name| {
            let (kind, id) = name.split_once('_')?;
            matches!(kind, "vram" | "sdma" | "stats").then_some(())?;
            id.parse().ok()
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let gpu = |id: u32| ProcessGpu {
        gpu: GpuId(id),
        vram_bytes: number(kernel, &format!("{path}/vram_{id}")),
        sdma_activity: number(kernel, &format!("{path}/sdma_{id}")),
        evicted_ms: number(kernel, &format!("{path}/stats_{id}/evicted_ms")),
        cu_occupancy: number(kernel, &format!("{path}/stats_{id}/cu_occupancy")),
    };
    let queue = |id: u32| {
        Some(ProcessQueue {
            id: QueueId(id),
            gpu: GpuId(number(kernel, &format!("{path}/queues/{id}/gpuid"))?),
            ring_bytes: number(kernel, &format!("{path}/queues/{id}/size"))?,
            kind: number(kernel, &format!("{path}/queues/{id}/type"))?,
        })
    };
    let queue_names = kernel.read_dir(&format!("{path}/queues")).unwrap_or_default();
    let mut queue_ids: Vec<u32> = queue_names.iter().filter_map(|n| n.parse().ok()).collect();
    queue_ids.sort_unstable();
    Some(ProcessInfo {
        pid,
        pasid: number(kernel, &format!("{path}/pasid")),
        gpus: ids.into_iter().map(gpu).collect(),
        queues: queue_ids.into_iter().filter_map(queue).collect(),
    })
}

/// A queue of this process as KFD knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSnapshot {
    /// The queue.
    pub id: QueueId,
    /// Its GPU.
    pub gpu: GpuId,
    /// Exceptions that are raised, one bit each: bit n is code n + 1.
    pub exceptions: u64,
    /// Address of the ring.
    pub ring: pm4::GpuAddr,
    /// Ring, bytes.
    pub ring_bytes: u32,
    /// Address of the write index.
    pub write_pointer: pm4::GpuAddr,
    /// Address of the read index.
    pub read_pointer: pm4::GpuAddr,
    /// Address of the save area.
    pub save_area: pm4::GpuAddr,
    /// KFD's type: 0 compute PM4, 1 SDMA, 2 compute AQL, 3 SDMA over xGMI.
    pub kind: u32,
}

impl Kfd {
    /// This process's queues as KFD knows them, through the debugger interface: attaches to this
    /// process, looks, and detaches. Needs KFD 1.13. Not for use while a debugger is attached.
    ///
    /// # Errors
    /// [`Error::KfdTooOld`]; [`Error::Ioctl`] of DBG_TRAP: `EALREADY` while a debugger is attached,
    /// `EINVAL` where firmware does not schedule the queues.
    pub fn snapshot_queues(&self) -> Result<Vec<QueueSnapshot>> {
        let core = &self.context.core;
        core.require("queue snapshots", 13)?;
        let system = |call: &'static str, what: &str| {
            let what = what.to_owned();
            move |errno| Error::System { call, what, errno }
        };
        let myself =
            core.kernel.read_link("/proc/self").map_err(system("readlink", "/proc/self"))?;
        let pid = myself.parse().map_err(|_| Error::Nonsense {
            call: "readlink",
            what: "the length of the name of this process",
            value: myself.len() as u64,
        })?;
        // KFD wants a file to write news to.
        let sink = retry(|| core.kernel.open("/dev/null", OpenFlags::WRITE))
            .map_err(system("open", "/dev/null"))?;
        let _runtime = self.context.hold_runtime();
        let attached = core.debug_enable(pid, Some((0, u32::try_from(sink.0).unwrap_or(u32::MAX))));
        let result = attached.and_then(|()| {
            let mut entries = vec![QueueSnapshotEntry::default(); MAX_QUEUES];
            let count = core.queue_snapshot(pid, 0, &mut entries);
            let detached = core.debug_enable(pid, None);
            let count = usize::try_from(count?).unwrap_or(usize::MAX);
            detached?;
            entries.truncate(count);
            Ok(entries.iter().map(snapshot).collect())
        });
        core.kernel.close(sink);
        result
    }
}

fn snapshot(entry: &QueueSnapshotEntry) -> QueueSnapshot {
    let abi::QueueType(kind) = entry.queue_type;
    QueueSnapshot {
        id: entry.queue_id,
        gpu: entry.gpu_id,
        exceptions: entry.exception_status,
        ring: entry.ring_base_address.into(),
        ring_bytes: entry.ring_size,
        write_pointer: entry.write_pointer_address.into(),
        read_pointer: entry.read_pointer_address.into(),
        save_area: entry.ctx_save_restore_address.into(),
        kind,
    }
}
