//! Ports that kernel threads work on ("threaded NAPI", Linux 5.12): whoever sends does no more of the receiving switch's work than to
//! wake it, and a thread's CPU time is what the port took.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use weft_testbed::cpu;

use super::super::cores::set;
use crate::error::LabError;
use crate::tester::TesterError;
use crate::tester::port::Port;

const SETTING: &str = "threaded";

/// A port with threads on one core, until this is dropped.
pub(super) struct Threaded {
    port: Port,
    threads: Vec<u32>,
}

impl Threaded {
    pub(super) fn new(port: Port, core: usize) -> Result<Self, LabError> {
        let before = threads_of(&port);
        let not_fit = |why: String| LabError::NotFit {
            what: format!("port `{}` gets no kernel thread ({why})", port.name()),
            remedy: "CPU time at steady rates needs threaded NAPI: Linux 5.12 or newer".into(),
        };
        set(&port, SETTING, "1").map_err(not_fit)?;
        let mut threaded = Self { port, threads: Vec::new() };
        threaded.threads = threads_of(&threaded.port).difference(&before).copied().collect();
        if threaded.threads.is_empty() {
            let name = threaded.port.name();
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
        }
        Ok(threaded)
    }

    /// CPU time of its threads so far.
    pub(super) fn cpu_ns(&self) -> Result<u64, TesterError> {
        let times = self.threads.iter().map(|thread| cpu::time_ns(*thread, ""));
        times.sum::<Result<u64, _>>().map_err(|error| TesterError::Lab(LabError::Traffic(error.to_string())))
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        // If it fails the namespace is gone, and its ports with it.
        let _ = set(&self.port, SETTING, "0");
    }
}

/// Kernel threads of ports of this name, in any namespace.
fn threads_of(port: &Port) -> BTreeSet<u32> {
    let prefix = format!("napi/{}-", port.interface());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(&prefix)))
        .collect()
}
