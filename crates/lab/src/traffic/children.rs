//! The worker processes: started together, watched, and gone when the run is over.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::TrafficError;
use super::table::{Table, now_ns};
use crate::process;

const START_LIMIT_NS: u64 = 20_000_000_000;
const STOP_LIMIT_NS: u64 = 5_000_000_000;
/// The kernel resets the connections of a killed worker before it closes what tells its end: peers may be seen to end
/// this much earlier.
const CAUSE_LIMIT_NS: u64 = 500_000_000;

/// All workers. Dropping it kills them; the kernel kills them when the calling thread ends without that.
pub(super) struct Workers {
    all: Vec<Worker>,
}

struct Worker {
    host: String,
    process: Child,
    stderr: ChildStderr,
}

impl Workers {
    /// Starts one worker per server; each gets the table as its standard input and its number as argument.
    pub(super) fn start(table: &Table, command: &[OsString]) -> Result<Self, TrafficError> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| TrafficError::Invalid("the worker command is empty".to_owned()))?;
        let mut workers = Self { all: Vec::with_capacity(table.config().hosts.len()) };
        for (index, host) in table.config().hosts.iter().enumerate() {
            let spawn = || {
                let mut process = process::command(program)
                    .args(arguments)
                    .args([index.to_string(), host.name.clone()])
                    .stdin(table.share()?)
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()?;
                let stderr = process.stderr.take().expect("stderr is piped");
                Ok::<_, std::io::Error>(Worker { host: host.name.clone(), process, stderr })
            };
            workers.all.push(spawn().map_err(TrafficError::system(format!("start {}", program.display())))?);
        }
        Ok(workers)
    }

    /// Process ids, in the order of the servers.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.all.iter().map(|worker| worker.process.id()).collect()
    }

    /// Waits until every worker listens; `interrupted` is asked all the time.
    pub(super) fn wait_ready(&mut self, table: &Table, interrupted: &dyn Fn() -> bool) -> Result<(), TrafficError> {
        let limit = now_ns() + START_LIMIT_NS;
        loop {
            let ready = table.header().ready.load(Acquire) as usize;
            if ready == self.all.len() {
                return Ok(());
            }
            if interrupted() {
                return Err(TrafficError::Interrupted);
            }
            if now_ns() > limit {
                let what = format!("only {ready} of {} workers got ready in 20 s", self.all.len());
                return Err(TrafficError::Invalid(what));
            }
            self.watch(now_ns() + 2_000_000)?;
        }
    }

    /// Sleeps until `until_ns`, or returns early with the error of a worker that ended.
    pub(super) fn watch(&mut self, until_ns: u64) -> Result<(), TrafficError> {
        let ended = self.wait_for_ends(until_ns)?;
        if ended.is_empty() { Ok(()) } else { Err(self.first_cause(ended)?) }
    }

    /// Sleeps until `until_ns`, or until workers have ended: their numbers.
    fn wait_for_ends(&self, until_ns: u64) -> Result<Vec<usize>, TrafficError> {
        let mut ends: Vec<PollFd<'_>> =
            self.all.iter().map(|worker| PollFd::new(&worker.stderr, PollFlags::IN)).collect();
        loop {
            let left = until_ns.saturating_sub(now_ns());
            let timeout = Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
            match poll(&mut ends, Some(&timeout)) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(TrafficError::system("wait for workers")(error)),
            }
        }
        Ok((0..ends.len()).filter(|worker| !ends[*worker].revents().is_empty()).collect())
    }

    /// When one worker is killed its peers lose their connections and end as well: the killed one is the cause.
    fn first_cause(&mut self, mut ended: Vec<usize>) -> Result<TrafficError, TrafficError> {
        let limit_ns = now_ns() + CAUSE_LIMIT_NS;
        let mut first = None;
        while !ended.is_empty() {
            for worker in ended.into_iter().rev() {
                let (killed, report) = self.all.remove(worker).post_mortem();
                if killed {
                    return Ok(report);
                }
                first.get_or_insert(report);
            }
            ended = self.wait_for_ends(limit_ns)?;
        }
        Ok(first.expect("a worker had ended"))
    }

    /// Waits until every worker has counted what arrived within the duration of the run.
    pub(super) fn wait_ended(&mut self, table: &Table) -> Result<(), TrafficError> {
        let limit = now_ns() + STOP_LIMIT_NS;
        while (table.header().ended.load(Acquire) as usize) < self.all.len() && now_ns() < limit {
            self.watch(now_ns() + 2_000_000)?;
        }
        Ok(())
    }

    /// Tells all workers to write their last numbers and end, and waits until they have.
    pub(super) fn stop(mut self, table: &Table) -> Result<(), TrafficError> {
        table.header().stop.store(1, Release);
        let limit = now_ns() + STOP_LIMIT_NS;
        while let Some(mut worker) = self.all.pop() {
            let status = worker.wait_until(limit).map_err(TrafficError::system("wait for a worker"))?;
            if !status.is_some_and(|status| status.success()) {
                return Err(worker.post_mortem().1);
            }
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.all {
            let _ = worker.process.kill();
        }
        for worker in &mut self.all {
            let _ = worker.process.wait();
        }
    }
}

impl Worker {
    /// Waits for the process to end by itself; `None` if it has not by `limit_ns`.
    fn wait_until(&mut self, limit_ns: u64) -> std::io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(Some(status));
            }
            if now_ns() > limit_ns {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether this worker was killed, and why it is of no use any more: the last line it wrote, or how it ended.
    fn post_mortem(mut self) -> (bool, TrafficError) {
        let ended = self.wait_until(now_ns() + 500_000_000).ok().flatten();
        if ended.is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        let mut text = Vec::new();
        let _ = self.stderr.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned());
        let why = line.unwrap_or_else(|| match ended {
            None => "its worker did not end when told".to_owned(),
            Some(status) => status.signal().map_or_else(
                || format!("its worker ended early with {status}"),
                |signal| format!("its worker was killed by signal {signal}"),
            ),
        });
        let killed = ended.is_some_and(|status| status.signal().is_some());
        (killed, TrafficError::Worker { host: self.host.clone(), why })
    }
}
