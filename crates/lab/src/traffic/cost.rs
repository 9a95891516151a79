//! CPU time of the traffic on the core that all of it is pinned to.
//!
//! On a pinned core every part of the path runs either inside a worker's system calls (soft interrupts are handled
//! where they are raised) or in that core's ksoftirqd, so their exact run times (the scheduler's `sum_exec_runtime`,
//! read through their CPU clocks) add up to the cost; other processes do not count.
#![allow(unsafe_code)]

use std::fs;
use std::io;

use weft_scenario::record::CostRow;
use weft_testbed::cpu::kernel_threads;

use super::table::now_ns;

/// Measures from the first payload of every flow to the end of the run, so that connection set-up does not count.
pub(super) struct CostMeter {
    clocks: Vec<libc::clockid_t>,
    opened: Option<CostRow>,
}

impl CostMeter {
    /// For these processes and the ksoftirqd of `core`.
    pub(super) fn new(core: usize, processes: &[u32]) -> io::Result<Self> {
        let softirqs = ksoftirqd(core)?;
        let clocks = processes.iter().copied().chain([softirqs]).map(cpu_clock).collect::<io::Result<_>>()?;
        Ok(Self { clocks, opened: None })
    }

    pub(super) fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Begins the measured window, at which `payload_bytes` have been carried.
    pub(super) fn open(&mut self, payload_bytes: u64) -> io::Result<()> {
        self.opened = Some(self.reading(payload_bytes)?);
        Ok(())
    }

    /// Ends it; `None` if it never began.
    pub(super) fn close(&self, payload_bytes: u64) -> io::Result<Option<CostRow>> {
        let Some(before) = self.opened else { return Ok(None) };
        let now = self.reading(payload_bytes)?;
        Ok(Some(CostRow {
            cpu_ns: now.cpu_ns - before.cpu_ns,
            payload_bytes: now.payload_bytes - before.payload_bytes,
            wall_ns: now.wall_ns - before.wall_ns,
        }))
    }

    fn reading(&self, payload_bytes: u64) -> io::Result<CostRow> {
        let cpu_ns = self.clocks.iter().map(|&clock| read_clock(clock)).sum::<io::Result<u64>>()?;
        Ok(CostRow { cpu_ns, payload_bytes, wall_ns: now_ns() })
    }
}

/// Process id of the kernel thread that handles soft interrupts of a core when they pile up.
fn ksoftirqd(core: usize) -> io::Result<u32> {
    let name = format!("ksoftirqd/{core}");
    // Not that of core 12 for core 1.
    let is_it = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == name);
    kernel_threads(&name)
        .into_iter()
        .find(is_it)
        .ok_or_else(|| io::Error::other(format!("no ksoftirqd/{core} in /proc: the CPU cost cannot be measured here")))
}

fn cpu_clock(process: u32) -> io::Result<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: `clock` outlives the call, which only writes it.
    match unsafe { libc::clock_getcpuclockid(process as libc::pid_t, &mut clock) } {
        0 => Ok(clock),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn read_clock(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, which only writes it.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_busy_process_costs_no_more_than_the_wall_time_and_a_sleeping_one_little() {
        let start = |script: &str| Command::new("sh").args(["-c", script]).spawn().unwrap();
        let (mut busy, mut asleep) = (start("while :; do :; done"), start("exec sleep 60"));
        let core = crate::sys::last_core().unwrap();
        let mut meters = [busy.id(), asleep.id()].map(|pid| CostMeter::new(core, &[pid]).unwrap());
        assert_eq!(meters[0].close(0).unwrap(), None);
        std::thread::sleep(Duration::from_millis(50));
        meters.iter_mut().for_each(|meter| meter.open(1000).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        let [busy_cost, asleep_cost] = meters.each_ref().map(|meter| meter.close(3000).unwrap().unwrap());
        for child in [&mut busy, &mut asleep] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(busy_cost.payload_bytes, 2000);
        assert!(busy_cost.wall_ns >= 300_000_000, "{busy_cost:?}");
        assert!(busy_cost.cpu_ns > asleep_cost.cpu_ns + 10_000_000, "{busy_cost:?} {asleep_cost:?}");
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        assert!(CostMeter::new(crate::sys::last_core().unwrap(), &[gone.id()]).is_err());
    }
}
