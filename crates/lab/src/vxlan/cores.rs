//! Who runs where: the test centre on the last core, the VMs and their server's soft interrupts on the first.

use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::error::LabError;
use crate::tester::TesterError;

/// The two cores of an experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cores {
    /// Of the test centre, and of everything when costs are read in lock step.
    pub(super) tester: usize,
    /// Of the VMs and their server.
    pub(super) server: usize,
}

impl Cores {
    pub(super) fn of_this_machine() -> Result<Self, TesterError> {
        let allowed = sched_getaffinity(None).map_err(LabError::errno("read the allowed cores"))?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        match (cores.next(), cores.next_back()) {
            (Some(server), Some(tester)) => Ok(Self { tester, server }),
            _ => Err(TesterError::Refused(
                "a server beside the test centre needs two cores; this process has one".into(),
            )),
        }
    }
}

/// Lets soft interrupts of what comes in at an interface run on one core (receive packet steering), or, with `None`, on the
/// core that caused them.
pub(super) fn steer(namespace: &str, interface: &str, core: Option<usize>) -> Result<(), LabError> {
    let mask = core.map_or(0u64, |core| 1 << core.min(63));
    // `ip netns exec` mounts the namespace's own /sys; a thread that only moved there would see this one's.
    let script = format!("echo {mask:x} > /sys/class/net/{interface}/queues/rx-0/rps_cpus");
    let output = Command::new("ip")
        .args(["netns", "exec", namespace, "sh", "-c", &script])
        .output()
        .map_err(LabError::io("run ip netns exec"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::NotFit {
        what: format!("this kernel does not steer received packets ({why})"),
        remedy: "it needs CONFIG_RPS".into(),
    })
}
