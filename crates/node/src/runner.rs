//! The one loop that every daemon runs: it waits for descriptors and for a machine's deadline, and hands both on.

use std::time::Instant;

use crate::error::NodeError;
use crate::poll::Poller;
use crate::stop::Stop;

/// The token of the request to stop; a daemon numbers its own from 0.
const STOP: u64 = u64::MAX;

/// What differs between daemons.
pub(crate) trait Daemon {
    /// Names what it waits for, each with a token of its own.
    fn watch(&self, poller: &Poller) -> Result<(), NodeError>;

    /// Something with this token is readable. What is left unread is told again.
    fn ready(&mut self, token: u64) -> Result<(), NodeError>;

    /// The clock that its machine lives by.
    fn clock(&self) -> &Clock;

    /// When [`Self::deadline`] wants to be called; `None`: not at all.
    fn next_deadline_ns(&self) -> Option<u64>;

    /// That time has come.
    fn deadline(&mut self) -> Result<(), NodeError>;
}

/// Nanoseconds since a daemon began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Serves until somebody asks to stop.
pub(crate) fn serve(daemon: &mut impl Daemon, stop: &Stop) -> Result<(), NodeError> {
    let poller = Poller::new()?;
    poller.add(stop, STOP)?;
    daemon.watch(&poller)?;
    while turn(daemon, &poller)? {}
    Ok(())
}

/// Serves until the daemon itself has come to an end.
pub(crate) fn serve_until<D: Daemon>(daemon: &mut D, is_over: impl Fn(&D) -> bool) -> Result<(), NodeError> {
    let poller = Poller::new()?;
    daemon.watch(&poller)?;
    while !is_over(daemon) && turn(daemon, &poller)? {}
    Ok(())
}

/// Waits once, and hands on what happened; false: somebody asks to stop.
fn turn(daemon: &mut impl Daemon, poller: &Poller) -> Result<bool, NodeError> {
    let wait_ns = daemon.next_deadline_ns().map(|at_ns| at_ns.saturating_sub(daemon.clock().now_ns()));
    for token in poller.wait(wait_ns)? {
        if token == STOP {
            return Ok(false);
        }
        daemon.ready(token)?;
    }
    if daemon.next_deadline_ns().is_some_and(|at_ns| at_ns <= daemon.clock().now_ns()) {
        daemon.deadline()?;
    }
    Ok(true)
}
