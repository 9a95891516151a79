//! `weft node directory`: the read-optimised directory server of VL2 4.3 with its store built in.
//!
//! Two threads share the table. One answers look-ups over UDP from memory; the other takes updates over a Unix socket
//! and shows them to the first once they are in the store. So a slow disk delays updates only.
//!
//! Datagrams: [`weft_wire::directory`]. The admin socket's lines and the status: [`protocol`].

mod admin;
mod config;
mod lookups;
pub mod protocol;
mod service;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tracing::{info, warn};
use weft_control::directory::Responder;

use crate::error::NodeError;
use crate::key;
use crate::stop::Stop;
use crate::store::RedbStore;
use admin::{Admin, AdminSocket};
use lookups::{LookupCounts, Lookups};
use protocol::DirectoryStatus;
use service::Service;

pub use config::DirectoryConfig;
pub(crate) use lookups::set_up_socket;

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
    let key = key::read_or_open(config.key_file.as_deref())?;
    let responder = Responder { key, key_id: config.key_id, tenant: config.tenant };
    let service = Service::new(Box::new(RedbStore::open(&config.store)?), rules)?;
    let lookups = Lookups::bind(config.listen, responder, service.table())?;
    let socket = AdminSocket::bind(&config.admin_socket)?;
    if config.open {
        warn!("open: everybody who reaches {} is answered", lookups.listen());
    }
    info!(listen = %lookups.listen(), admin_socket = %config.admin_socket.display(), "directory server ready");
    serve(config, &lookups, service, &socket, stop)
}

fn serve(
    config: &DirectoryConfig,
    lookups: &Lookups,
    service: Service,
    socket: &AdminSocket,
    stop: &Stop,
) -> Result<(), NodeError> {
    let counts = Mutex::new(LookupCounts::default());
    let status = |service: &Service| status(config, lookups, service, &counts);
    let admin = Admin::new(service, &status)?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let outcome = lookups.serve(&counts, stop);
            stop.request();
            outcome
        });
        let outcome = admin.serve(socket, stop);
        stop.request();
        let answered = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.and(answered)
    })
}

fn status(
    config: &DirectoryConfig,
    lookups: &Lookups,
    service: &Service,
    counts: &Mutex<LookupCounts>,
) -> DirectoryStatus {
    let seen = counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let named = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    let updates = service.counts;
    let (revision, mappings) = service.read(|table| (table.revision(), table.mapped()));
    DirectoryStatus {
        schema_version: 1,
        revision,
        mappings,
        listen: lookups.listen(),
        open: config.open,
        lookups: named(&[
            ("datagrams", seen.datagrams),
            ("answered", seen.answered),
            ("questions", seen.questions),
            ("unsent", seen.unsent),
        ]),
        ignored: seen.ignored.iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        updates: named(&[
            ("committed", updates.committed),
            ("refused", updates.refused),
            ("failed", updates.failed),
            ("records", updates.records),
        ]),
    }
}
