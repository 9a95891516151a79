//! Waiting for what others do: until it is late, or the user has had enough.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weft_scenario::engine::Progress;

use crate::error::LabError;
use crate::process::{ProcessId, log_tail};

/// How long a request to stop may take.
const ATTENTION: Duration = Duration::from_millis(20);

/// A wait, from when it was made.
pub(crate) struct Wait<'a> {
    progress: &'a dyn Progress,
    start: Instant,
    limit: Duration,
    pause: Duration,
}

impl<'a> Wait<'a> {
    /// For at most `limit`, with a pause between two looks.
    pub(crate) fn new(progress: &'a dyn Progress, limit: Duration, pause: Duration) -> Self {
        Self { progress, start: Instant::now(), limit, pause }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The pause until the next look.
    ///
    /// # Errors
    /// [`LabError::Interrupted`], or what `late` says when the time is over.
    pub(crate) fn pause(&self, late: impl FnOnce() -> LabError) -> Result<(), LabError> {
        if self.progress.interrupted() {
            return Err(LabError::Interrupted);
        }
        if self.elapsed() > self.limit {
            return Err(late());
        }
        std::thread::sleep(self.pause);
        Ok(())
    }

    /// The same; when the time is over, a node's routing has not settled.
    pub(crate) fn pause_for_routing(
        &self,
        late: impl FnOnce() -> (String, String),
        log: impl FnOnce() -> String,
    ) -> Result<(), LabError> {
        self.pause(|| {
            let (node, missing) = late();
            LabError::NotConverged { node, missing, waited_s: self.limit.as_secs(), log: log() }
        })
    }
}

/// Waits until so long after `start`; `look` is called now and then.
pub(crate) fn until(
    progress: &dyn Progress,
    start: Instant,
    time: Duration,
    look: impl Fn(Duration),
) -> Result<(), LabError> {
    while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        if progress.interrupted() {
            return Err(LabError::Interrupted);
        }
        look(start.elapsed());
        std::thread::sleep(left.min(ATTENTION));
    }
    Ok(())
}

/// A daemon that was started and is not ready yet.
pub(crate) struct Starting<'a> {
    pub(crate) daemon: &'static str,
    pub(crate) node: &'a str,
    pub(crate) process: Option<ProcessId>,
    pub(crate) log: PathBuf,
}

impl Starting<'_> {
    /// Waits until it is ready, or fails with the end of its log and, if the time is over, with what `late` says.
    pub(crate) fn wait(
        &self,
        wait: &Wait<'_>,
        late: &str,
        mut is_ready: impl FnMut() -> Result<bool, LabError>,
    ) -> Result<(), LabError> {
        let failed = |what: &str| LabError::Daemon {
            daemon: self.daemon,
            node: self.node.to_owned(),
            what: what.to_owned(),
            log: log_tail(&self.log),
        };
        while !is_ready()? {
            if self.process.is_some_and(|process| !process.is_alive()) {
                return Err(failed("ended at its start"));
            }
            wait.pause(|| failed(late))?;
        }
        Ok(())
    }
}
