//! CPU time of a directory's processes and of everything else, and waiting with a deadline.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::ClockId;
use weft_scenario::engine::Progress;
use weft_testbed::cpu;

use super::tier::Tier;
use crate::error::LabError;
use crate::sys;

/// How long something that should happen soon may take.
const WAIT_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Clock ticks in /proc are hundredths of a second on every Linux.
const NS_PER_TICK: u64 = 10_000_000;

/// CPU time so far.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// By process, of the servers that are asked.
    servers_ns: Vec<(u32, u64)>,
    /// By process, of the store's nodes.
    store_ns: Vec<(u32, u64)>,
    /// Of servers, store and this process.
    ours_ns: u64,
    /// Of the whole machine.
    busy_ns: u64,
    at: Instant,
}

/// What was used between two readings, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// By each of the servers that are asked.
    by_server_ns: Vec<u64>,
    /// By the store's nodes.
    pub(super) store_ns: u64,
    /// By everything else on the machine.
    foreign_ns: u64,
    /// What all cores had.
    capacity_ns: u64,
}

impl Used {
    /// This and what was used in another span of time.
    pub(super) fn and(self, other: Self) -> Self {
        let of = |used: &Self, server: usize| used.by_server_ns.get(server).copied().unwrap_or(0);
        let servers = self.by_server_ns.len().max(other.by_server_ns.len());
        Self {
            by_server_ns: (0..servers).map(|server| of(&self, server) + of(&other, server)).collect(),
            store_ns: self.store_ns + other.store_ns,
            foreign_ns: self.foreign_ns + other.foreign_ns,
            capacity_ns: self.capacity_ns + other.capacity_ns,
        }
    }

    /// By the servers that are asked.
    pub(super) fn servers_ns(&self) -> u64 {
        self.by_server_ns.iter().sum()
    }

    /// By the one of them that used most.
    pub(super) fn busiest_server_ns(&self) -> u64 {
        self.by_server_ns.iter().copied().max().unwrap_or(0)
    }

    /// The share of all cores' time that everything else used, 0 to 1.
    pub(super) fn foreign_ratio(&self) -> f64 {
        (self.foreign_ns as f64 / self.capacity_ns.max(1) as f64).min(1.0)
    }
}

impl Usage {
    /// Reads what the first `asked` servers, the others, the store, this process and the machine have used.
    pub(super) fn read(tier: &dyn Tier, asked: usize) -> Self {
        // A process that was killed has no time any more.
        let of = |pid: u32| cpu::time_ns(pid, "").unwrap_or(0);
        let servers: Vec<(u32, u64)> = tier.servers().iter().map(|server| (server.pid, of(server.pid))).collect();
        let store_ns: Vec<(u32, u64)> = tier.store_pids().into_iter().map(|pid| (pid, of(pid))).collect();
        Self {
            ours_ns: own_ns() + servers.iter().chain(&store_ns).map(|process| process.1).sum::<u64>(),
            servers_ns: servers.into_iter().take(asked).collect(),
            store_ns,
            busy_ns: machine_busy_ns(),
            at: Instant::now(),
        }
    }

    /// What was used since an earlier reading. Of a process that is gone or new nothing is known.
    pub(super) fn since(&self, earlier: &Self) -> Used {
        let grown = |earlier: &[(u32, u64)], (pid, now): &(u32, u64)| {
            let before = earlier.iter().find(|(known, _)| known == pid);
            before.map_or(0, |(_, before)| now.saturating_sub(*before))
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let busy_ns = self.busy_ns.saturating_sub(earlier.busy_ns);
        Used {
            by_server_ns: self.servers_ns.iter().map(|server| grown(&earlier.servers_ns, server)).collect(),
            store_ns: self.store_ns.iter().map(|node| grown(&earlier.store_ns, node)).sum(),
            foreign_ns: busy_ns.saturating_sub(self.ours_ns.saturating_sub(earlier.ours_ns)),
            capacity_ns: self.at.duration_since(earlier.at).as_nanos() as u64 * cores,
        }
    }
}

/// CPU time of this process, that of threads which have ended included.
fn own_ns() -> u64 {
    sys::now_ns(ClockId::ProcessCPUTime)
}

/// CPU time of the whole machine.
pub(crate) fn machine_busy_ns() -> u64 {
    fs::read_to_string("/proc/stat").map_or(0, |text| busy_ticks(&text)) * NS_PER_TICK
}

/// Of the line of all cores: everything but idle and waiting for IO. Guests' time is part of user.
fn busy_ticks(stat: &str) -> u64 {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks = line.split_ascii_whitespace().take(8).enumerate();
    ticks.filter(|(field, _)| !matches!(field, 3 | 4)).filter_map(|(_, text)| text.parse::<u64>().ok()).sum()
}

/// The load average over one minute.
pub(super) fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Memory that a process has in use now, bytes.
pub(super) fn resident_bytes(pid: u32) -> u64 {
    memory_bytes(pid, "VmRSS:")
}

/// The most that it had in use at a time, bytes.
pub(super) fn peak_bytes(pid: u32) -> u64 {
    memory_bytes(pid, "VmHWM:")
}

fn memory_bytes(pid: u32, kind: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(kind)).unwrap_or_default();
    line.split_ascii_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Waits until something happens. An error names what did not happen in time.
pub(crate) fn wait_until(
    progress: &dyn Progress,
    what: &str,
    mut happened: impl FnMut() -> Result<bool, LabError>,
) -> Result<(), LabError> {
    let deadline = Instant::now() + WAIT_MAX;
    while !happened()? {
        if progress.interrupted() {
            return Err(LabError::Interrupted);
        }
        if Instant::now() > deadline {
            return Err(LabError::DirectoryLoad(format!("waited {} s in vain: {what}", WAIT_MAX.as_secs())));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 2000 8 16 32 64 0\ncpu0 9 9 9 9\n"), 63);
        assert!(machine_busy_ns() > 0);
        assert!(resident_bytes(std::process::id()) > 1 << 20);
    }

    #[test]
    fn what_nobody_of_us_did_is_foreign() {
        let now = Instant::now();
        let usage = |server, ours, busy, at| Usage {
            servers_ns: vec![(1, server), (4, 2 * server)],
            store_ns: vec![(3, server)],
            ours_ns: ours,
            busy_ns: busy,
            at,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let before = usage(10, 100, 1000, now);
        let after = usage(40, 300, 1000 + 700 * cores, now + Duration::from_nanos(1000));
        let used = after.since(&before);
        assert_eq!((used.servers_ns(), used.busiest_server_ns(), used.store_ns), (90, 60, 30));
        let expected = (700 * cores - 200) as f64 / (1000 * cores) as f64;
        assert!((used.foreign_ratio() - expected).abs() < 1e-9, "{used:?}");
        let capacity_ns = used.capacity_ns;
        let both = used.and(Used { by_server_ns: vec![40], store_ns: 2, foreign_ns: 0, capacity_ns });
        assert!((both.foreign_ratio() - expected / 2.0).abs() < 1e-9, "{both:?}");
        assert_eq!((both.servers_ns(), both.busiest_server_ns(), both.store_ns), (130, 70, 32));
        let restarted = Usage { servers_ns: vec![(2, 5)], store_ns: vec![(5, 5)], ..after };
        let restarted = restarted.since(&before);
        assert_eq!((restarted.servers_ns(), restarted.store_ns), (0, 0));
    }
}
