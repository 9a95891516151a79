//! CPU time of threads as the scheduler knows it, and binding a thread to a CPU.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::ClockId;
use weft_datapath::{DatapathError, clock};
use weft_node::NodeError;

/// CPU time that the living threads of a process whose names begin with `prefix` have used so far, nanoseconds. With an
/// empty prefix: all its threads.
///
/// # Errors
/// [`NodeError::System`] when there is no such process.
pub fn time_ns(pid: u32, prefix: &str) -> Result<u64, NodeError> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let failed = || NodeError::at("reading", &tasks);
    let mut sum_ns = 0;
    for task in fs::read_dir(&tasks).map_err(failed())? {
        let task = task.map_err(failed())?.path();
        // A thread may end while this reads; then its time is gone.
        if fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with(prefix)) {
            sum_ns += fs::read_to_string(task.join("schedstat")).ok().and_then(|text| run_time_ns(&text)).unwrap_or(0);
        }
    }
    Ok(sum_ns)
}

/// Threads of the kernel whose names begin with `prefix`.
pub fn kernel_threads(prefix: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    let is_named =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(prefix));
    // A process that is about to become another program has no command line either, but never this flag.
    let is_kernels = |pid: &u32| stat(*pid).get(6).is_some_and(|flags| flags & PF_KTHREAD != 0);
    pids.filter(is_named).filter(is_kernels).collect()
}

/// The flag of the kernel's threads in its `sched.h`.
const PF_KTHREAD: u64 = 0x0020_0000;

/// What /proc/PID/stat says behind the name; what is no number, or less than none, is 0. Nothing where there is no such process.
fn stat(pid: u32) -> Vec<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may have spaces in it.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0)).collect()
}

/// CPU time that these have used so far, nanoseconds.
///
/// # Errors
/// [`NodeError::System`] when one of them is gone.
pub fn times_ns(pids: &[u32]) -> Result<u64, NodeError> {
    pids.iter().map(|pid| time_ns(*pid, "")).sum()
}

/// CPU time that a process has used so far, that of threads which have ended included, nanoseconds; as coarse as the kernel's ticks.
/// 0 where there is no such process.
pub fn process_ns(pid: u32) -> u64 {
    /// Ticks in /proc are hundredths of a second on every Linux.
    const NS_PER_TICK: u64 = 10_000_000;
    // User and system time.
    stat(pid).iter().skip(11).take(2).sum::<u64>() * NS_PER_TICK
}

/// CPU time of the calling thread, nanoseconds.
pub fn this_thread_ns() -> u64 {
    clock::ns(ClockId::ThreadCPUTime)
}

/// Binds the calling thread, and those it will start, to one CPU.
///
/// # Errors
/// [`DatapathError::Config`] when there is no such CPU.
pub fn pin_this_thread(cpu: usize) -> Result<(), DatapathError> {
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|errno| DatapathError::Config {
        field: "cpu",
        why: format!("{cpu} cannot be used ({}); name a CPU of this machine", io::Error::from(errno)),
    })
}

/// The same, before other work there: a CPU that is taken away makes a wrong measurement. It goes without where this process may
/// not ask for that.
///
/// # Errors
/// As [`pin_this_thread`].
pub fn take(cpu: usize) -> Result<(), DatapathError> {
    const BEFORE_OTHERS: i32 = -10;
    pin_this_thread(cpu)?;
    // Of the calling thread alone, on Linux.
    let _without = rustix::process::setpriority_process(None, BEFORE_OTHERS);
    Ok(())
}

fn run_time_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_time_and_only_of_the_threads_that_are_named() {
        let own = std::process::id();
        let before = this_thread_ns();
        let mut sum = 0u64;
        while this_thread_ns() < before + 20_000_000 {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        std::hint::black_box(sum);
        // The thread that worked may have ended.
        assert!(process_ns(own) >= 10_000_000 && process_ns(own) < 3_600_000_000_000);
        assert_eq!(process_ns(u32::MAX), 0);
        assert!(time_ns(own, "").unwrap() >= 10_000_000);
        assert_eq!(time_ns(own, "no such name").unwrap(), 0);
        assert!(time_ns(u32::MAX, "").is_err());
    }

    #[test]
    fn the_kernels_threads_are_not_processes_of_that_name() {
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let of_kernel = kernel_threads("kthreadd");
        assert_eq!((of_kernel.len(), kernel_threads("sleep")), (1, Vec::new()));
        assert!(times_ns(&of_kernel).is_ok() && times_ns(&[of_kernel[0], u32::MAX]).is_err());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let error = std::thread::spawn(|| pin_this_thread(1 << 20)).join().unwrap().unwrap_err().to_string();
        assert!(error.contains("cpu: 1048576 cannot be used"), "{error}");
    }
}
