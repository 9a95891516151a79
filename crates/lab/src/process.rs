//! Processes of a lab: started inside a namespace, remembered by id and start time, ended for certain.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, setpriority_process, waitpid,
};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::netns;
use crate::rights::Rights;

/// A process, safe against reuse of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
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

    /// Its command line, with blanks between the words; its name if it has none.
    pub(crate) fn command_line(self) -> String {
        let read = |file: &str| fs::read(format!("/proc/{}/{file}", self.pid)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ").trim().to_owned();
        if line.is_empty() { String::from_utf8_lossy(&read("comm")).trim().to_owned() } else { line }
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

/// A program in a process group of its own. What a terminal sends by Ctrl-C reaches the processes of its foreground group:
/// this one alone, which then ends what it has started in order.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.process_group(0);
    command
}

/// How a daemon is started.
pub(crate) struct Daemon<'a> {
    /// Namespace it runs in; without one, this process's.
    pub(crate) namespace: Option<&'a Path>,
    /// File that receives its output.
    pub(crate) log: &'a Path,
    /// File that names it before it runs. Whoever runs in a lab's namespace is found there and needs none.
    pub(crate) record: Option<&'a Path>,
    /// Scheduling priority; below 0 it goes before others.
    pub(crate) nice: i32,
    /// `None`: the program sees to it itself that it has no more than it needs.
    pub(crate) rights: Option<Rights>,
}

impl Daemon<'_> {
    /// Starts the command in its namespace, in a process group of its own (Ctrl-C must not reach it before clean-up).
    pub(crate) fn spawn(&self, command: &mut Command) -> Result<ProcessId, LabError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let log = create_log(self.log)?;
        let copy = log.try_clone().map_err(LabError::io("duplicate a log file"))?;
        command.stdin(Stdio::null()).stdout(log).stderr(copy).process_group(0);
        if let Some(path) = self.record {
            let record = File::options().append(true).create(true).open(path);
            record_at_start(command, record.map_err(LabError::io(format!("open {}", path.display())))?);
        }
        if let Some(rights) = &self.rights {
            rights.clone().impose(command)?;
        }
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

/// A link in its place is refused: FRR's logs are in folders of another user.
fn create_log(path: &Path) -> Result<File, LabError> {
    let nofollow = OFlags::NOFOLLOW.bits() as i32;
    let file = File::options().write(true).create(true).truncate(true).custom_flags(nofollow).open(path);
    file.map_err(LabError::io(format!("create {}", path.display())))
}

/// The last lines of a log, on one line, for an error message.
pub(crate) fn log_tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(3)..].join(" | ");
    if tail.is_empty() { format!("nothing ({})", path.display()) } else { tail }
}

/// Every process whose network namespace has one of these inodes. This process is never among them.
pub(crate) fn in_namespaces(inodes: &BTreeSet<u64>) -> Vec<ProcessId> {
    let own = std::process::id();
    let pids = crate::home::names_in(Path::new("/proc")).into_iter().filter_map(|name| name.parse::<u32>().ok());
    let of_namespace = |pid: u32| {
        // First who it is, then where: a process that gets the id afterwards has another start.
        let process = ProcessId::of(pid)?;
        let inode = fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino();
        inodes.contains(&inode).then_some(process)
    };
    pids.filter(|pid| *pid != own).filter_map(of_namespace).collect()
}

/// Kills processes at once and waits until they are gone. Labs hold nothing that needs a gentle end.
pub(crate) fn kill_all(processes: &[ProcessId]) {
    processes.iter().for_each(|process| kill(*process));
    // A thread that waits for the disk ends when the disk has answered.
    let deadline = Instant::now() + Duration::from_secs(10);
    for process in processes {
        while !reap(*process) && process.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Kills this process, and never one that has got its id since: the descriptor is opened first, then it is looked who it is.
fn kill(process: ProcessId) {
    let Some(pid) = Pid::from_raw(process.pid as i32).filter(|pid| *pid != Pid::INIT) else { return };
    // Without a descriptor it has ended already.
    if let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty())
        && process.is_alive()
    {
        // It may end by itself just now.
        let _ = pidfd_send_signal(&descriptor, Signal::KILL);
    }
}

/// The processes that a file of [`Daemon::record`] names.
pub(crate) fn recorded_in(path: &Path) -> Vec<ProcessId> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let process = |line: &str| {
        let pid = line.split(' ').next()?.parse().ok()?;
        Some(ProcessId { pid, start_ticks: start_of_living(line)? })
    };
    text.lines().filter_map(process).collect()
}

/// Has the command write its line of `/proc/self/stat` to the end of a file before it becomes the program, so that nothing
/// runs that the file does not name, wherever this process is killed.
fn record_at_start(command: &mut Command, record: File) {
    let note = move || {
        let stat = openat(CWD, c"/proc/self/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut line = [0; 1024];
        let length = rustix::io::read(&stat, &mut line)?;
        let written = rustix::io::write(&record, &line[..length])?;
        if written == length && length > 0 { Ok(()) } else { Err(Errno::NOSPC.into()) }
    };
    // SAFETY: between fork and exec only three system calls are made, on descriptors and a buffer of its own: nothing allocates
    // or takes a lock.
    unsafe { command.pre_exec(note) };
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
    fn a_daemon_is_on_record_before_it_is_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let (log, record) = (folder.path().join("log"), folder.path().join("record"));
        let daemon = Daemon { namespace: None, log: &log, record: Some(&record), nice: 0, rights: None };
        let processes = [1, 2].map(|_| daemon.spawn(Command::new("sleep").arg("60")).unwrap());
        assert_eq!(recorded_in(&record), processes);
        // What cannot be started is named, too: this is written before.
        assert!(daemon.spawn(&mut Command::new("/nowhere/daemon")).is_err());
        assert_eq!(fs::read_to_string(&record).unwrap().lines().count(), 3);
        kill_all(&processes);
    }

    #[test]
    fn who_got_the_id_since_is_spared() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        kill(ProcessId { start_ticks: process.start_ticks + 1, ..process });
        assert!(process.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
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
