//! GNU parallel: a process of its own on this machine, which starts shards here or over SSH.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::sweep::Sweep;
use super::tool::Tool;
use super::{ClusterError, Queue, Scheduler};
use crate::run_folder::{FolderError, shell_words};

const TOOL: Tool = Tool { program: "parallel", remedy: "install GNU parallel (on Debian: apt-get install parallel)" };

pub(super) struct Parallel;

impl Scheduler for Parallel {
    fn script_file(&self) -> &'static str {
        "submit.sh"
    }

    fn script(&self, sweep: &Sweep, shards: &[u32], _: usize) -> Result<String, ClusterError> {
        let (jobs, log) = (sweep.jobs.unwrap_or(1), sweep.log().display().to_string());
        let here = shell_words(&[sweep.work_dir.display().to_string()]);
        let task = format!(
            "cd {here} && {} > {}/{{}} 2>&1",
            sweep.task("{}", &sweep.folder),
            shell_words(std::slice::from_ref(&log))
        );
        let mut words = ["parallel", "--will-cite", "--termseq", "TERM,5000,KILL,100"].map(str::to_owned).to_vec();
        words.extend(["--jobs".to_owned(), jobs.to_string(), "--retries".to_owned(), sweep.tries.to_string()]);
        words.extend(["--joblog".to_owned(), format!("{log}/joblog")]);
        words.extend(sweep.options.iter().cloned());
        let numbers: Vec<String> = shards.iter().map(u32::to_string).collect();
        Ok(format!(
            "#!/bin/sh\ncd {here} || exit\nexec {} {} ::: {}\n",
            shell_words(&words),
            shell_words(&[task]),
            numbers.join(" ")
        ))
    }

    /// Its output's file is locked as long as it, or a shard that it has started, is there.
    fn submit(&self, sweep: &Sweep, _: usize) -> Result<String, ClusterError> {
        TOOL.call(["--version"])?;
        let path = said(sweep);
        let log = File::create(&path).map_err(FolderError::io("create", &path))?;
        log.lock().map_err(FolderError::io("lock", &path))?;
        let errors = log.try_clone().map_err(FolderError::io("write", &path))?;
        let mut command = Command::new("sh");
        command.arg(sweep.folder.join(self.script_file())).stdin(Stdio::null()).stdout(log).stderr(errors);
        // In a group of its own: Ctrl-C here does not end it.
        let child = command.process_group(0).spawn().map_err(|error| TOOL.failed(&error))?;
        Ok(child.id().to_string())
    }

    fn ask(&self, sweep: &Sweep, _: &str) -> Result<Queue, ClusterError> {
        let path = said(sweep);
        let log = File::open(&path).map_err(FolderError::io("read", &path))?;
        let at_work = match log.try_lock_shared() {
            Ok(()) => None,
            Err(TryLockError::WouldBlock) => Some(BTreeMap::new()),
            Err(TryLockError::Error(error)) => return Err(FolderError::io("lock", &path)(error).into()),
        };
        Ok(Queue { at_work, whole: BTreeSet::new() })
    }

    fn cancel(&self, sweep: &Sweep, job: &str) -> Result<(), ClusterError> {
        let failed = |said: String| ClusterError::Refused { program: TOOL.program, said };
        let words = std::fs::read(format!("/proc/{job}/cmdline")).unwrap_or_default();
        let is_ours = String::from_utf8_lossy(&words).contains(&sweep.folder.display().to_string());
        let pid = job.parse().ok().and_then(Pid::from_raw).filter(|_| is_ours);
        let pid =
            pid.ok_or_else(|| failed(format!("process {job} is gone; shards that it has started end by themselves")))?;
        // After the first it starts nothing more, after the second it ends what runs.
        for _ in 0..2 {
            kill_process(pid, Signal::TERM).map_err(|error| failed(error.to_string()))?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(200)
    }
}

/// What GNU parallel itself says.
fn said(sweep: &Sweep) -> PathBuf {
    sweep.log().join("parallel")
}
