//! Waiting for several file descriptors at once, until a deadline.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::error::NodeError;

/// A set of descriptors, each with a token.
#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

impl Poller {
    pub(crate) fn new() -> Result<Self, NodeError> {
        epoll::create(epoll::CreateFlags::CLOEXEC).map(Self).map_err(NodeError::system("making an epoll instance"))
    }

    /// Waits for this descriptor to be readable.
    pub(crate) fn add(&self, source: impl AsFd, token: u64) -> Result<(), NodeError> {
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.0, source, data, epoll::EventFlags::IN).map_err(NodeError::system("watching a descriptor"))
    }

    /// The tokens of what is ready; none when `timeout_ns` passed or a signal came.
    pub(crate) fn wait(&self, timeout_ns: Option<u64>) -> Result<Vec<u64>, NodeError> {
        let timeout = timeout_ns.map(|timeout_ns| Timespec {
            tv_sec: i64::try_from(timeout_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (timeout_ns % 1_000_000_000) as i64,
        });
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 64];
        match epoll::wait(&self.0, &mut events[..], timeout.as_ref()) {
            Ok((ready, _)) => Ok(ready.iter().map(|event| event.data.u64()).collect()),
            Err(Errno::INTR) => Ok(Vec::new()),
            Err(errno) => Err(NodeError::system("waiting for events")(errno)),
        }
    }
}
