//! What servers and their VMs use of a machine: CPU as cores and as MHz-equivalents, memory of kernel and processes.
//!
//! | question | answer |
//! | --- | --- |
//! | CPU of a server's switch | frames per second times [`crate::tester::cost::PathCost`]: threads that send or receive also run the soft interrupts that they cause, so their own CPU time cannot tell switch from VM |
//! | quotas of a VM | [`Cgroup`]: the processes that are in it |
//! | memory of a VM | [`pss_bytes`] of its process |
//! | CPU of a server, or of everything on a core | [`core_idle_ns`]: what the core did not idle, which is exact where a switch's work is soft interrupts of nobody's |
//! | memory of a server | [`KernelMemory`] before and after it was set up, and [`pss_bytes`] of its processes |

mod cgroup;
mod memory;

use std::fs;

use crate::error::LabError;

pub use cgroup::{Cgroup, Enforced, Quota, left_behind, sweep};
pub use memory::{KernelMemory, pss_bytes};

/// Frequency of this machine's cores, MHz: what the kernel says, or 1000 where it does not, so that MHz are then
/// thousandths of a core.
pub fn core_mhz() -> f64 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    mhz_in(&text).unwrap_or(1000.0)
}

/// Clock ticks in /proc are hundredths of a second on every Linux.
const NS_PER_TICK: u64 = 10_000_000;

/// How long a core has idled since the machine began, nanoseconds, in steps of ten milliseconds. The kernel measures it from the end of
/// one interrupt to the beginning of the next; busy time it only samples, at the clock's ticks.
///
/// # Errors
/// [`LabError`] where the kernel does not list the core.
pub fn core_idle_ns(core: usize) -> Result<u64, LabError> {
    let text = fs::read_to_string("/proc/stat").map_err(LabError::io("read /proc/stat"))?;
    idle_ns_in(&text, core).ok_or_else(|| LabError::NotFit {
        what: format!("/proc/stat does not say how long core {core} idles"),
        remedy: "mount /proc, and let this process use that core".into(),
    })
}

/// `cpuN user nice system idle iowait ...`.
fn idle_ns_in(stat: &str, core: usize) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{core} ")))?;
    let mut ticks = line.split_ascii_whitespace().skip(3).map_while(|number| number.parse::<u64>().ok());
    Some((ticks.next()? + ticks.next()?) * NS_PER_TICK)
}

/// The mean over cores.
fn mhz_in(cpuinfo: &str) -> Option<f64> {
    let values: Vec<f64> = cpuinfo
        .lines()
        .filter(|line| line.starts_with("cpu MHz"))
        .filter_map(|line| line.split(':').nth(1)?.trim().parse().ok())
        .filter(|mhz: &f64| *mhz > 0.0)
        .collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_has_its_own_line() {
        let stat = "cpu  9 9 9 9 9 9\ncpu1 1 2 3 4 5 6\ncpu10 1 2 3 40 50 6\nintr 7\n";
        assert_eq!(idle_ns_in(stat, 1), Some(90_000_000));
        assert_eq!(idle_ns_in(stat, 10), Some(900_000_000));
        assert_eq!(idle_ns_in(stat, 0), None);
        assert!(core_idle_ns(usize::MAX).is_err());
    }

    #[test]
    fn frequencies_are_averaged_and_may_be_missing() {
        assert_eq!(mhz_in("processor : 0\ncpu MHz\t\t: 2000.000\n\nprocessor: 1\ncpu MHz\t\t: 3000.0\n"), Some(2500.0));
        assert_eq!(mhz_in("processor : 0\nBogoMIPS : 50\ncpu MHz : junk\n"), None);
        assert!(core_mhz() > 0.0);
    }
}
