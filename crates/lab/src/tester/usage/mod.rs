//! What servers and their VMs use of a machine: CPU as cores and as MHz-equivalents, memory of kernel and processes.
//!
//! | question | answer |
//! | --- | --- |
//! | CPU of a server's switch | frames per second times [`crate::tester::cost::PathCost`]: threads that send or receive also run the soft interrupts that they cause, so their own CPU time cannot tell switch from VM |
//! | CPU and memory of a VM | [`Cgroup`]: the processes that are in it, with quotas |
//! | memory of a server | [`KernelMemory`] before and after it was set up, and [`pss_bytes`] of its processes |
//! | all in one | [`ServerCpu`] and [`ServerMemory`]: the total, and server minus VM beside it, because the total hides the cost |

mod cgroup;
mod memory;

use std::fs;

use serde::Serialize;

pub use cgroup::{Cgroup, CgroupVersion, Enforced, Quota, sweep};
pub use memory::{KernelMemory, ServerMemory, pss_bytes};

/// CPU of a server in cores: 1.0 is one core's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServerCpu {
    /// Its virtual switch: what is left of the server without its VMs.
    pub switch_cores: f64,
    /// Its VMs.
    pub vm_cores: f64,
}

impl ServerCpu {
    /// Switch and VMs.
    pub fn total_cores(&self) -> f64 {
        self.switch_cores + self.vm_cores
    }

    /// The total as the frequency that a core would need for it, as the VXLAN draft prints it.
    pub fn total_mhz(&self, core_mhz: f64) -> f64 {
        self.total_cores() * core_mhz
    }

    /// Server minus VM, likewise.
    pub fn switch_mhz(&self, core_mhz: f64) -> f64 {
        self.switch_cores * core_mhz
    }

    /// How much more this server takes than another at the same sizes and rates, as shares of the other's: of the total, and
    /// of server minus VM. `None` where the other takes nothing.
    pub fn increase_over(&self, plain: &Self) -> Option<CpuIncrease> {
        let ratio = |ours: f64, plain: f64| (plain > 0.0).then(|| ours / plain - 1.0);
        Some(CpuIncrease {
            total_ratio: ratio(self.total_cores(), plain.total_cores())?,
            server_minus_vm_ratio: ratio(self.switch_cores, plain.switch_cores)?,
        })
    }
}

/// Extra CPU, as shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuIncrease {
    /// Of the whole server, VMs included.
    pub total_ratio: f64,
    /// Of the server without its VMs.
    pub server_minus_vm_ratio: f64,
}

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
    fn the_total_hides_what_server_minus_vm_shows() {
        let plain = ServerCpu { switch_cores: 0.2, vm_cores: 1.8 };
        let vxlan = ServerCpu { switch_cores: 0.4, vm_cores: 1.8 };
        let increase = vxlan.increase_over(&plain).unwrap();
        assert!((increase.total_ratio - 0.1).abs() < 1e-12 && (increase.server_minus_vm_ratio - 1.0).abs() < 1e-12);
        assert!((vxlan.total_mhz(2000.0) - 4400.0).abs() < 1e-9 && (vxlan.switch_mhz(2000.0) - 800.0).abs() < 1e-9);
        assert_eq!(vxlan.increase_over(&ServerCpu::default()), None);
    }

    #[test]
    fn frequencies_are_averaged_and_may_be_missing() {
        assert_eq!(mhz_in("processor : 0\ncpu MHz\t\t: 2000.000\n\nprocessor: 1\ncpu MHz\t\t: 3000.0\n"), Some(2500.0));
        assert_eq!(mhz_in("processor : 0\nBogoMIPS : 50\ncpu MHz : junk\n"), None);
        assert!(core_mhz() > 0.0);
    }
}
