//! File descriptors: as many as this process may have, enough to be of use, and how a directory server deals them out.
//!
//! Connections that anybody may make never take the last ones: each port has places, counted before a connection is
//! accepted, and what is kept back is enough for the store, for the host's own sockets and for whoever looks after the server.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

use crate::error::NodeError;

/// With fewer no daemon begins.
const LIMIT_MIN: usize = 64;
/// Left to a daemon that is ready, at least: for its clients, its store, and the files of a reload.
const LEFT_MIN: usize = 32;
/// Kept back, where there are enough: half of it for sessions over the Unix socket.
const KEPT: usize = 512;
/// Sessions over TLS at a time; more are refused.
const REMOTE_MAX: usize = 4096;
/// Handshakes at a time; more wait.
const HANDSHAKES_MAX: usize = 256;
/// HTTP connections at a time; more wait.
const HTTP_MAX: usize = 128;

/// Connections that a server has at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// Sessions over TLS.
    pub(crate) remote: usize,
    /// Those that are not sessions yet.
    pub(crate) handshakes: usize,
    pub(crate) http: usize,
    /// Sessions over the Unix socket.
    pub(crate) local: usize,
}

/// Raises the limit as far as this process may.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        warn!(%error, "the limit of file descriptors stays as it is");
    }
}

/// Whether this process may have as many as a daemon needs. With fewer it would begin, and then answer nobody.
///
/// # Errors
/// [`NodeError::Descriptors`].
pub(crate) fn suffice() -> Result<(), NodeError> {
    let (limit, needed) = (limit(), LIMIT_MIN.max(open() + LEFT_MIN));
    if limit < needed { Err(NodeError::Descriptors { limit, needed }) } else { Ok(()) }
}

fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Those that are open.
fn open() -> usize {
    match std::fs::read_dir("/proc/self/fd") {
        Ok(open) => open.count(),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::MFILE) => limit(),
        // Without /proc nobody can say.
        Err(_) => 0,
    }
}

impl Places {
    /// What the limit of this process leaves room for, beside what is open already.
    pub(crate) fn here() -> Self {
        Self::of(limit().saturating_sub(open()))
    }

    fn of(left: usize) -> Self {
        let kept = KEPT.min(left / 2);
        let rest = left - kept;
        let (handshakes, http) = (HANDSHAKES_MAX.min(rest / 4).max(1), HTTP_MAX.min(rest / 4).max(1));
        let remote = REMOTE_MAX.min(rest.saturating_sub(handshakes + http)).max(1);
        Self { remote, handshakes, http, local: (kept / 2).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_kept_back_however_few_there_are() {
        let all = Places { remote: REMOTE_MAX, handshakes: HANDSHAKES_MAX, http: HTTP_MAX, local: KEPT / 2 };
        assert_eq!(Places::of(20_000), all);
        assert_eq!(Places::of(usize::MAX), all);
        for left in LEFT_MIN..8192 {
            let Places { remote, handshakes, http, local } = Places::of(left);
            assert!(remote + handshakes + http + local + left.min(2 * KEPT) / 4 <= left, "{left}");
        }
    }
}
