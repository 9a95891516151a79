//! Signals as file descriptors: SIGTERM and SIGINT, or another thread, make one readable for good and so end a daemon;
//! SIGHUP makes another one readable until that is noticed.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::error::NodeError;

/// Where the signal handler writes on SIGTERM and SIGINT; -1: nowhere.
static STOP_FD: AtomicI32 = AtomicI32::new(-1);
/// Where it writes on SIGHUP.
static HANGUP_FD: AtomicI32 = AtomicI32::new(-1);

/// A request to stop that daemons wait for. Once made it stays.
#[derive(Clone, Debug)]
pub struct Stop(Arc<OwnedFd>);

impl Stop {
    /// A stop that only [`Stop::request`] asks for.
    ///
    /// # Errors
    /// [`NodeError::System`] when no file descriptor is left.
    pub fn manual() -> Result<Self, NodeError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let fd = eventfd(0, flags).map_err(NodeError::system("making an eventfd"))?;
        Ok(Self(Arc::new(fd)))
    }

    /// A stop that SIGTERM and SIGINT ask for, from now on and for the rest of the process. A later call takes the
    /// signals over.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn on_signals() -> Result<Self, NodeError> {
        let stop = Self::manual()?;
        raise_on(&[libc::SIGTERM, libc::SIGINT], &STOP_FD, &stop.0)?;
        Ok(stop)
    }

    /// Asks to stop.
    pub fn request(&self) {
        raise(self.0.as_raw_fd());
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
        let mut fds = [PollFd::new(&*self.0, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0)
    }
}

/// A request to read the configuration again. Several before it is noticed are one.
#[derive(Clone, Debug)]
pub struct Hangup(Arc<OwnedFd>);

impl Hangup {
    /// One that only [`Hangup::request`] makes.
    ///
    /// # Errors
    /// [`NodeError::System`] when no file descriptor is left.
    pub fn manual() -> Result<Self, NodeError> {
        Stop::manual().map(|stop| Self(stop.0))
    }

    /// One that SIGHUP makes, from now on and for the rest of the process. A later call takes the signal over.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn on_signal() -> Result<Self, NodeError> {
        let hangup = Self::manual()?;
        raise_on(&[libc::SIGHUP], &HANGUP_FD, &hangup.0)?;
        Ok(hangup)
    }

    /// Asks to read it again.
    pub fn request(&self) {
        raise(self.0.as_raw_fd());
    }

    /// Whether somebody asked since the last time.
    pub fn take(&self) -> bool {
        rustix::io::read(&*self.0, &mut [0; 8]).is_ok()
    }
}

impl AsFd for Hangup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn raise(fd: i32) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: `write` is safe to call from a signal handler; the buffer outlives the call. A full eventfd is readable,
    // so its refusal may be ignored.
    unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
}

/// Lets these signals write to a descriptor through `slot`.
fn raise_on(signals: &[i32], slot: &AtomicI32, fd: &OwnedFd) -> Result<(), NodeError> {
    // The handler may run at any later time, so its descriptor is one that nobody closes.
    let kept = fd.try_clone().map_err(NodeError::system("duplicating an eventfd"))?;
    slot.store(std::os::fd::IntoRawFd::into_raw_fd(kept), Ordering::SeqCst);
    signals.iter().try_for_each(|signal| handle(*signal).map_err(NodeError::system("setting a signal handler")))
}

extern "C" fn on_signal(signal: i32) {
    // SAFETY: only reads and restores this thread's errno, as a handler that calls into libc must.
    let errno = unsafe { *libc::__errno_location() };
    let slot = if signal == libc::SIGHUP { &HANGUP_FD } else { &STOP_FD };
    let fd = slot.load(Ordering::SeqCst);
    if fd >= 0 {
        raise(fd);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn handle(signal: i32) -> std::io::Result<()> {
    // SAFETY: an all-zero sigaction is valid; the handler only loads an atomic and writes to a descriptor.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
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
        // SAFETY: raises a signal whose handler was just installed.
        unsafe { libc::raise(libc::SIGTERM) };
        assert!(stop.wait_ms(1000));
    }

    #[test]
    fn hangups_are_noticed_once() {
        let hangup = Hangup::on_signal().unwrap();
        assert!(!hangup.take());
        for _ in 0..2 {
            // SAFETY: raises a signal whose handler was just installed.
            unsafe { libc::raise(libc::SIGHUP) };
        }
        assert!(hangup.take() && !hangup.take());
        hangup.request();
        assert!(hangup.take());
    }
}
