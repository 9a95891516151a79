//! What servers and their VMs use of a machine: CPU as cores and as MHz-equivalents, memory of kernel and processes.
//!
//! | question | answer |
//! | --- | --- |
//! | CPU of a server's switch | frames per second times [`crate::tester::cost::PathCost`]: threads that send or receive also run the soft interrupts that they cause, so their own CPU time cannot tell switch from VM |
//! | quotas of a VM | [`Cgroup`]: the processes that are in it |
//! | memory of a VM | [`pss_bytes`] of its process |
//! | memory of a server | [`KernelMemory`] before and after it was set up, and [`pss_bytes`] of its processes |

mod cgroup;
mod memory;

use std::fs;

pub use cgroup::{Cgroup, Quota, sweep};
pub use memory::{KernelMemory, pss_bytes};

/// Frequency of this machine's cores, MHz: what the kernel says, or 1000 where it does not, so that MHz are then
/// thousandths of a core.
pub fn core_mhz() -> f64 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    mhz_in(&text).unwrap_or(1000.0)
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
    fn frequencies_are_averaged_and_may_be_missing() {
        assert_eq!(mhz_in("processor : 0\ncpu MHz\t\t: 2000.000\n\nprocessor: 1\ncpu MHz\t\t: 3000.0\n"), Some(2500.0));
        assert_eq!(mhz_in("processor : 0\nBogoMIPS : 50\ncpu MHz : junk\n"), None);
        assert!(core_mhz() > 0.0);
    }
}
