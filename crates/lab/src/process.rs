//! Processes of a lab: started inside a namespace, remembered by id and start time, ended for certain.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, setpriority_process, waitpid};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::netns;

/// A process, safe against reuse of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
}

impl ProcessId {
    /// The process that has this id now, if there is one and it is not a zombie.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { pid, start_ticks: start_of_living(&stat)? })
    }

    /// This process.
    pub fn own() -> Self {
        Self::of(std::process::id()).unwrap_or(Self { pid: std::process::id(), start_ticks: 0 })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// When the process of this line of `/proc/PID/stat` started, unless it has ended.
///
/// A process whose first thread has ended shows as a zombie while its others are still in the kernel, perhaps waiting for
/// the disk: it holds its files and locks until the last one is gone.
fn start_of_living(stat: &str) -> Option<u64> {
    // The name in brackets may contain spaces and brackets; fields count from behind it.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    let (state, threads, start) = (*fields.first()?, *fields.get(17)?, *fields.get(19)?);
    let ended = state == "X" || (state == "Z" && threads.parse::<u32>().ok()? <= 1);
    (!ended).then(|| start.parse().ok())?
}

/// How a daemon is started.
pub(crate) struct Daemon<'a> {
    /// Namespace it runs in; without one, this process's.
    pub(crate) namespace: Option<&'a Path>,
    /// File that receives its output.
    pub(crate) log: &'a Path,
    /// Scheduling priority; below 0 it goes before others.
    pub(crate) nice: i32,
}

impl Daemon<'_> {
    /// Starts the command in its namespace, in a process group of its own (Ctrl-C must not reach it before clean-up).
    pub(crate) fn spawn(&self, command: &mut Command) -> Result<ProcessId, LabError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let log = File::create(self.log).map_err(LabError::io(format!("create {}", self.log.display())))?;
        let copy = log.try_clone().map_err(LabError::io("duplicate a log file"))?;
        command.stdin(Stdio::null()).stdout(log).stderr(copy).process_group(0);
        let spawned = match self.namespace {
            Some(namespace) => netns::in_namespace(namespace, || command.spawn())?,
            None => command.spawn(),
        };
        let child = spawned.map_err(LabError::io(format!("start {program}")))?;
        let pid = child.id();
        if self.nice != 0
            && let Some(pid) = Pid::from_raw(pid as i32)
        {
            // Without the right to raise priority the daemon runs at the usual one.
            let _ = setpriority_process(Some(pid), self.nice);
        }
        // A process that has ended already is found out by whoever waits for it to become ready.
        Ok(ProcessId::of(pid).unwrap_or(ProcessId { pid, start_ticks: 0 }))
    }
}

/// The last lines of a log, on one line, for an error message.
pub(crate) fn log_tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(3)..].join(" | ");
    if tail.is_empty() { format!("nothing ({})", path.display()) } else { tail }
}

/// Every process whose network namespace is one of the named ones. This process is never among them.
pub(crate) fn in_namespaces(names: &[String]) -> Vec<ProcessId> {
    let inodes = netns::inodes(names);
    let own = std::process::id();
    let pids = crate::home::names_in(Path::new("/proc")).into_iter().filter_map(|name| name.parse::<u32>().ok());
    pids.filter(|pid| *pid != own)
        .filter(|pid| fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|data| inodes.contains_key(&data.ino())))
        .filter_map(ProcessId::of)
        .collect()
}

/// Kills processes at once and waits until they are gone. Labs hold nothing that needs a gentle end.
pub(crate) fn kill_all(processes: &[ProcessId]) {
    let alive: Vec<ProcessId> = processes.iter().copied().filter(|process| process.is_alive()).collect();
    for process in &alive {
        if let Some(pid) = Pid::from_raw(process.pid as i32) {
            // It may end by itself just now.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    // A thread that waits for the disk ends when the disk has answered.
    let deadline = Instant::now() + Duration::from_secs(10);
    for process in processes {
        while !reap(*process) && process.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Collects a child that ended, so that it does not stay as a zombie. False if it is not ours or still runs.
pub(crate) fn reap(process: ProcessId) -> bool {
    let Some(pid) = Pid::from_raw(process.pid as i32) else { return false };
    matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_time() {
        let own = ProcessId::own();
        assert!(own.start_ticks > 0 && own.is_alive());
        assert!(!ProcessId { start_ticks: own.start_ticks + 1, ..own }.is_alive());
        assert_eq!(ProcessId::of(u32::MAX), None);
    }

    #[test]
    fn a_zombie_with_threads_still_holds_what_it_had() {
        let line = |state: &str, threads: u32| {
            format!("7 (a (b) c) {state} 1 7 7 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 {threads} 0 4711 0 0\n")
        };
        assert_eq!(start_of_living(&line("S", 1)), Some(4711));
        assert_eq!(start_of_living(&line("Z", 3)), Some(4711));
        assert_eq!(start_of_living(&line("Z", 1)), None);
        assert_eq!(start_of_living(&line("X", 1)), None);
        assert_eq!(start_of_living("7 (a) S 1"), None);
        assert_eq!(start_of_living("junk"), None);
    }

    #[test]
    fn killing_waits_and_reaps() {
        #[allow(clippy::zombie_processes)] // That it is waited for is what this test is about.
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        kill_all(&[process]);
        assert!(!process.is_alive());
        assert!(!Path::new(&format!("/proc/{}", process.pid)).exists(), "no zombie stays");
    }
}
