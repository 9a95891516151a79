//! Sessions of operators and services: updates, reads and watches over the Unix socket and over mutual TLS.
//!
//! These are many, slow and talk TCP, so they run on a small async runtime of their own, apart from the threads that answer
//! look-ups. A session reads ahead while earlier requests wait for the store; answers keep the order of requests.
//!
//! * [`connection`]: one session
//! * [`feed`]: what was committed lately, for watches
//! * [`handler`]: requests to the replica
//! * [`share`]: what a service has open, against its quota
//! * [`terms`]: settings that may change while sessions go on

mod connection;
mod feed;
mod handler;
mod listen;
mod share;
mod terms;

pub(super) use handler::{Handler, StatusOf};
pub(super) use listen::Listeners;
pub(super) use terms::Terms;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::replica::Replica;
use crate::error::NodeError;
use crate::stop::Stop;

/// Threads that carry sessions.
const THREADS: usize = 2;
/// How long to wait for the end at a time, milliseconds: it wakes at once.
const STOP_POLL_MS: u64 = 60_000;
/// How long sessions may take to end.
const PATIENCE: Duration = Duration::from_millis(200);

/// The runtime and what runs on it.
pub(super) struct Sessions {
    runtime: Runtime,
    handler: Arc<Handler>,
}

impl Sessions {
    /// Makes the runtime and follows the replica.
    pub(super) fn new(replica: Replica, terms: Terms, status: StatusOf) -> Result<Self, NodeError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("sessions")
            .enable_all()
            .build()
            .map_err(NodeError::system("starting the sessions' runtime"))?;
        let feed = feed::Feed::start(&replica, runtime.handle());
        Ok(Self { runtime, handler: Arc::new(Handler::new(replica, feed, terms, status)) })
    }

    /// What carries requests out.
    pub(super) fn handler(&self) -> &Arc<Handler> {
        &self.handler
    }

    /// Serves until it is told to stop.
    pub(super) fn serve(self, listeners: Listeners, stop: &Stop) -> Result<(), NodeError> {
        let theirs = stop.clone();
        let stopped = self.runtime.spawn_blocking(move || while !theirs.wait_ms(STOP_POLL_MS) {});
        let outcome = self.runtime.block_on(async {
            tokio::select! {
                ended = stopped => ended.map_err(|error| NodeError::system("waiting for the end")(std::io::Error::from(error))),
                ended = listeners.serve(self.handler) => ended,
            }
        });
        // Ends the thread that waits for it.
        stop.request();
        self.runtime.shutdown_timeout(PATIENCE);
        outcome
    }
}
