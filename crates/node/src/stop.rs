//! Signals as file descriptors: SIGTERM and SIGINT, or another thread, make one readable for good and so end a daemon;
//! SIGHUP makes another one readable until that is noticed.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::error::NodeError;

/// Both ends of a pipe. Requests that find it full are not lost: it is readable (`AsFd`) until they are taken.
#[derive(Debug)]
pub(crate) struct Requests {
    read: UnixStream,
    write: UnixStream,
}

impl Requests {
    pub(crate) fn new() -> Result<Arc<Self>, NodeError> {
        let what = NodeError::system("making a pipe for signals");
        let (read, write) = UnixStream::pair().map_err(what)?;
        let nonblocking = read.set_nonblocking(true).and_then(|()| write.set_nonblocking(true));
        nonblocking.map_err(NodeError::system("setting up a pipe for signals"))?;
        Ok(Arc::new(Self { read, write }))
    }

    /// Lets these signals ask as well, for the rest of the process.
    fn on(&self, signals: &[i32]) -> Result<(), NodeError> {
        let register = |signal: &i32| self.write.try_clone().and_then(|write| pipe::register(*signal, write)).map(drop);
        signals.iter().try_for_each(register).map_err(NodeError::system("setting a signal handler"))
    }

    pub(crate) fn request(&self) {
        // Full is as good as written.
        let _ = (&self.write).write(&[0]);
    }

    /// Whether there were any since the last time.
    pub(crate) fn take(&self) -> bool {
        let mut asked = false;
        while (&self.read).read(&mut [0; 64]).is_ok_and(|count| count > 0) {
            asked = true;
        }
        asked
    }
}

impl AsFd for Requests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

/// Requests that daemons wait for: to stop, which stays once it is made, and to read the settings again.
#[derive(Clone, Debug)]
pub struct Stop {
    stop: Arc<Requests>,
    reload: Arc<Requests>,
}

impl Stop {
    /// One that only [`Stop::request`] and [`Stop::request_reload`] make.
    ///
    /// # Errors
    /// [`NodeError::System`] when no file descriptor is left.
    pub fn manual() -> Result<Self, NodeError> {
        Ok(Self { stop: Requests::new()?, reload: Requests::new()? })
    }

    /// One that signals make as well, from now on and for the rest of the process: SIGTERM and SIGINT to stop, SIGHUP to read
    /// the settings again.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn on_signals() -> Result<Self, NodeError> {
        let stop = Self::manual()?;
        stop.stop.on(&[SIGTERM, SIGINT])?;
        stop.reload.on(&[SIGHUP])?;
        Ok(stop)
    }

    /// Asks to stop.
    pub fn request(&self) {
        self.stop.request();
    }

    /// Asks to read the settings again. Several requests before it is noticed are one.
    pub fn request_reload(&self) {
        self.reload.request();
    }

    /// Whether somebody asked to stop.
    pub fn requested(&self) -> bool {
        self.wait_ms(0)
    }

    /// Waits until somebody asks to stop, at most this long in milliseconds; true if somebody did.
    pub fn wait_ms(&self, timeout_ms: u64) -> bool {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout_ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: (timeout_ms % 1000) as i64 * 1_000_000,
        };
        let mut fds = [PollFd::new(&self.stop.read, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0)
    }

    /// Whether somebody asked to read the settings again since the last time.
    pub(crate) fn take_reload(&self) -> bool {
        self.reload.take()
    }

    /// Readable while [`Self::take_reload`] has something to say.
    pub(crate) fn reload_fd(&self) -> BorrowedFd<'_> {
        self.reload.as_fd()
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use signal_hook::low_level::raise;

    use super::*;

    #[test]
    fn a_request_stays() {
        let stop = Stop::manual().unwrap();
        assert!(!stop.requested());
        let other = stop.clone();
        std::thread::spawn(move || other.request()).join().unwrap();
        assert!(stop.wait_ms(1000));
        assert!(stop.requested());
    }

    #[test]
    fn a_signal_is_a_request() {
        let stop = Stop::on_signals().unwrap();
        assert!(!stop.requested());
        raise(SIGTERM).unwrap();
        assert!(stop.wait_ms(1000));
    }

    #[test]
    fn hangups_are_noticed_once_and_stop_nothing() {
        let stop = Stop::on_signals().unwrap();
        assert!(!stop.take_reload());
        for _ in 0..2 {
            raise(SIGHUP).unwrap();
        }
        assert!(stop.take_reload() && !stop.take_reload());
        stop.request_reload();
        assert!(stop.take_reload());
    }
}
