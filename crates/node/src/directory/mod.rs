//! `weft node directory`: the read-optimised directory server of VL2 4.3 before a replicated store.
//!
//! ```text
//! agents, ToRs ──UDP──> look-up threads ──> table <── replica <──> store
//! operators, services ──TLS, Unix──> sessions ──────────^
//! whoever watches over it ──HTTP──> /metrics, /healthz, /readyz
//! ```
//!
//! Threads of their own answer look-ups from memory. Sessions take updates; the [`replica`] between them shows updates to
//! the look-ups once they are in the store. So a slow store delays updates only.
//!
//! Datagrams: [`weft_wire::directory`]. Sessions and the status: [`protocol`].

mod config;
mod http;
mod lookups;
mod metrics;
pub mod protocol;
pub mod replica;
mod sessions;

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::{info, warn};

use crate::READY_LOG;
use crate::error::NodeError;
use crate::stop::Stop;
use crate::tls;
use lookups::{Corrections, Lookups};
use protocol::DirectoryStatus;
use replica::{Replica, ReplicaSettings};
use sessions::{Listeners, Sessions, UnixSocket};

pub use config::{DirectoryConfig, KeyFile, SOCKET_DEFAULT, StoreConfig};
pub use lookups::THREAD_NAME as LOOKUP_THREAD_NAME;
pub use lookups::set_up_socket;
pub(crate) use sessions::Authority;

/// Updates that one request may have.
pub const UPDATES_MAX: usize = 65_536;

/// Runs a directory server until it is told to stop.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, an address or socket in use, a key file that others may read, a store
/// that cannot be opened.
pub fn run(config: &DirectoryConfig, stop: &Stop) -> Result<(), NodeError> {
    config.check_access()?;
    let rules = config.rules()?;
    let keys = config.keys()?;
    let threads = config.lookup_threads()?;
    let remote = config.tls_listen.zip(config.tls.as_ref());
    let remote = remote.map(|(address, files)| Ok::<_, NodeError>((address, tls::server(files)?))).transpose()?;
    let replica = Replica::start(config.store.open()?, rules, ReplicaSettings::default())?;
    let corrections = |local| Corrections::new(config, &keys, local);
    let lookups = Arc::new(Lookups::bind(config.listen, threads, &keys, corrections, replica.clone())?);
    let tcp = |address, field| sessions::listen_tcp(address, field);
    let listeners = Listeners {
        local: UnixSocket::bind(&config.admin_socket)?,
        remote: remote.map(|(address, tls)| Ok::<_, NodeError>((tcp(address, "tls_listen")?, tls))).transpose()?,
        http: config.http_listen.map(|address| tcp(address, "http_listen")).transpose()?,
    };
    if config.open {
        warn!("open: everybody who reaches {} is answered", lookups.listen());
    }
    let (listen, mapped, socket) = (lookups.listen(), replica.status().mapped, config.admin_socket.display());
    info!(target: READY_LOG, "directory server ready: answers at {listen}, {mapped} mappings, updates by {socket}");
    serve(config, &lookups, &replica, listeners, stop)
}

fn serve(
    config: &DirectoryConfig,
    lookups: &Arc<Lookups>,
    replica: &Replica,
    listeners: Listeners,
    stop: &Stop,
) -> Result<(), NodeError> {
    let (theirs, state, open) = (Arc::clone(lookups), replica.clone(), config.open);
    let addresses = (listeners.remote_address(), listeners.http_address());
    let status = Arc::new(move || status(&theirs, &state, open, addresses));
    let sessions = Sessions::new(replica.clone(), config.update_timeout(), config.rules_row(), status)?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let outcome = lookups.serve(stop);
            stop.request();
            outcome
        });
        let outcome = sessions.serve(listeners, stop);
        stop.request();
        let answered = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.and(answered)
    })
}

fn status(lookups: &Lookups, replica: &Replica, open: bool, addresses: sessions::Addresses) -> DirectoryStatus {
    let seen = lookups.counts();
    let named = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    let state = replica.status();
    let updates = state.counts;
    DirectoryStatus {
        schema_version: 1,
        revision: state.revision,
        mappings: state.mapped,
        listen: lookups.listen(),
        tls_listen: addresses.0,
        http_listen: addresses.1,
        open,
        lookups: named(&[
            ("datagrams", seen.datagrams),
            ("answered", seen.answered),
            ("questions", seen.questions),
            ("unsent", seen.unsent),
            ("reports", seen.reports),
        ]),
        ignored: seen.ignored.iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        updates: named(&[
            ("committed", updates.committed),
            ("refused", updates.refused),
            ("failed", updates.failed),
            ("records", updates.records),
        ]),
        corrections: named(&lookups.corrections().counts()),
        sessions: BTreeMap::new(),
        lookup_threads: lookups.threads(),
        table_hash: format!("{:016x}", replica.table_hash().1),
        store_error: state.store_error,
    }
}
