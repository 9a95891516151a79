//! What a service manager hears of a daemon (sd_notify(3)): that it is ready, that it lives, that it ends. Without one, nobody hears.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use tracing::debug;

/// Who started this process.
pub(crate) struct ServiceManager {
    /// How often it is told that the daemon lives: twice as often as it wants to hear that (sd_watchdog_enabled(3)).
    alive_every: Option<Duration>,
    alive_at: Instant,
}

impl ServiceManager {
    /// As this process's environment says.
    pub(crate) fn here() -> Self {
        Self { alive_every: sd_notify::watchdog_enabled().map(|within| within / 2), alive_at: Instant::now() }
    }

    /// The daemon serves from now on.
    pub(crate) fn ready(&self, line: &str) {
        say(&[NotifyState::Ready, NotifyState::Status(line)]);
    }

    /// The daemon ends.
    pub(crate) fn stopping(&self) {
        say(&[NotifyState::Stopping]);
    }

    /// Says that the daemon lives, if it is time to. Returns when it is the next time, nanoseconds from now.
    pub(crate) fn alive(&mut self) -> Option<u64> {
        let every = self.alive_every?;
        let now = Instant::now();
        if now >= self.alive_at {
            say(&[NotifyState::Watchdog]);
            self.alive_at = now + every;
        }
        let left = self.alive_at.saturating_duration_since(now);
        Some(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A manager that does not listen is its own business.
fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        debug!(%error, "the service manager is not told");
    }
}
