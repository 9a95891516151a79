//! Ports that kernel threads work on ("threaded NAPI", Linux 5.12): whoever sends does no more of the receiving switch's work than to
//! wake it, and a thread's CPU time is what the port took.
//!
//! A port is polled at most every [`POLL_INTERVAL_NS`], as network cards moderate their interrupts. Woken for every frame, a switch would
//! spend ten times as long on waking as on the frame, and six of them would share a full core evenly, whatever each has to do.

use std::collections::BTreeSet;

use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use weft_testbed::cpu;

use super::super::cores::set;
use crate::error::LabError;
use crate::tester::TesterError;
use crate::tester::port::Port;

const SETTING: &str = "threaded";
/// At half a million frames a second a hundred wait meanwhile; a veth's ring has room for 256.
const POLL_INTERVAL_NS: &str = "200000";
/// How often a port waits that long and finds nothing before it is to be woken again.
const EMPTY_POLLS: &str = "1";
/// Of the ports' threads: a ring is full in less time than other work may have the core for.
const BEFORE_OTHERS: i32 = -20;

/// A port with threads on one core, until this is dropped.
pub(super) struct Threaded {
    port: Port,
    threads: Vec<u32>,
}

impl Threaded {
    pub(super) fn new(port: Port, core: usize) -> Result<Self, LabError> {
        let before = threads_of(&port);
        let name = port.name().to_owned();
        let not_fit = |why: String| LabError::NotFit {
            what: format!("port `{name}` gets no kernel thread ({why})"),
            remedy: "CPU time at steady rates needs threaded NAPI: Linux 5.12 or newer".into(),
        };
        set(&port, SETTING, "1").map_err(not_fit)?;
        let mut threaded = Self { port, threads: Vec::new() };
        threaded.poll_every(POLL_INTERVAL_NS, EMPTY_POLLS).map_err(not_fit)?;
        threaded.threads = threads_of(&threaded.port).difference(&before).copied().collect();
        if threaded.threads.is_empty() {
            return Err(LabError::NotFit {
                what: format!("port `{name}` has no kernel thread, although it was asked to"),
                remedy: "it needs a driver with NAPI; a veth end has it with an XDP program".into(),
            });
        }
        let mut cores = CpuSet::new();
        cores.set(core);
        for thread in &threaded.threads {
            let pid = Pid::from_raw(*thread as i32);
            sched_setaffinity(pid, &cores).map_err(LabError::errno("bind a port's kernel thread to a core"))?;
            setpriority_process(pid, BEFORE_OTHERS).map_err(LabError::errno("let a port's kernel thread go first"))?;
        }
        Ok(threaded)
    }

    fn poll_every(&self, interval_ns: &str, empty_polls: &str) -> Result<(), String> {
        set(&self.port, "gro_flush_timeout", interval_ns)?;
        set(&self.port, "napi_defer_hard_irqs", empty_polls)
    }

    /// CPU time of its threads so far.
    pub(super) fn cpu_ns(&self) -> Result<u64, TesterError> {
        cpu::times_ns(&self.threads).map_err(|error| TesterError::Lab(LabError::Traffic(error.to_string())))
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        // If it fails the namespace is gone, and its ports with it.
        let _ = self.poll_every("0", "0");
        let _ = set(&self.port, SETTING, "0");
    }
}

/// Kernel threads of ports of this name, in any namespace.
fn threads_of(port: &Port) -> BTreeSet<u32> {
    cpu::kernel_threads(&format!("napi/{}-", port.interface())).into_iter().collect()
}
