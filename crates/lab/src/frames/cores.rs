//! Who runs where: the test centre on the last core, the receiving processes and their edge switch's soft interrupts on the first.

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::error::LabError;
use crate::process;
use crate::tester::TesterError;
use crate::tester::port::Port;

/// The two cores of an experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cores {
    /// Of the test centre, and of everything when costs are read in lock step.
    pub(super) tester: usize,
    /// Of the receivers and their edge switch.
    pub(super) server: usize,
}

impl Cores {
    pub(super) fn of_this_machine() -> Result<Self, TesterError> {
        let allowed = sched_getaffinity(None).map_err(LabError::errno("read the allowed cores"))?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        match (cores.next(), cores.next_back()) {
            (Some(server), Some(tester)) => Ok(Self { tester, server }),
            _ => Err(TesterError::Refused(
                "a receiver beside the test centre needs two cores; this process has one".into(),
            )),
        }
    }
}

/// Soft interrupts of what comes in at a port on one core until this is dropped (receive packet steering).
pub(super) struct Steered(Port);

impl Steered {
    pub(super) fn new(port: Port, core: usize) -> Result<Self, LabError> {
        steer(&port, 1 << core.min(63))?;
        Ok(Self(port))
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        // If it fails the namespace is gone, and its settings with it.
        let _ = steer(&self.0, 0);
    }
}

/// `mask`: one bit for each core; 0: whichever core caused them.
fn steer(port: &Port, mask: u64) -> Result<(), LabError> {
    set(port, "queues/rx-0/rps_cpus", &format!("{mask:x}")).map_err(|why| {
        LabError::not_fit(format!("this kernel does not steer received packets ({why})"), "it needs CONFIG_RPS")
    })
}

/// Writes a port's setting; why it did not work.
pub(super) fn set(port: &Port, setting: &str, value: &str) -> Result<(), String> {
    // `ip netns exec` mounts the namespace's own /sys; a thread that only moved there would see this one's.
    let script = format!("echo {value} > /sys/class/net/{}/{setting}", port.interface());
    let namespace = port.name().split(':').next().unwrap_or_default();
    let output = process::command("ip").args(["netns", "exec", namespace, "sh", "-c", &script]).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("run ip netns exec: {error}")),
    }
}
