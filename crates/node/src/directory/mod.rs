//! `weft node directory`: the read-optimised directory server of VL2 4.3 before a replicated store.
//!
//! ```text
//! agents, ToRs ──UDP──> look-up threads ──> table <── replica <──> store
//! operators, services ──TLS, Unix──> sessions ──────────^
//! ```
//!
//! Threads of their own answer look-ups from memory, and before them a card by XDP, where the settings name one. Sessions take
//! updates; the [`replica`] between them shows updates to the look-ups once they are in the store. So a slow store delays
//! updates only.
//!
//! Datagrams: [`weft_wire::directory`]. Sessions and the status: [`protocol`].

mod card;
mod config;
mod lookups;
pub mod protocol;
pub mod replica;
mod sessions;

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use tracing::warn;

use crate::error::NodeError;
use crate::poll::Poller;
use crate::runner::{self, DaemonKind, Load};
use crate::socket::{Listener, Nothing, named};
use crate::stop::Stop;
use crate::tcp;
use crate::threads::guarded;
use crate::watch::{Metrics, Readiness};
use card::Card;
use lookups::Lookups;
use protocol::{CardStatus, DirectoryStatus};
use replica::{Replica, ReplicaSettings};
use sessions::{Handler, Listeners, Sessions, Terms};

pub use config::{DirectoryConfig, KeyFile, QuotaConfig, SOCKET_DEFAULT, ServiceConfig, SessionTimers, StoreConfig};
pub use lookups::THREAD_NAME as LOOKUP_THREAD_NAME;
pub use lookups::set_up_socket;

/// Updates that one request may have.
pub const UPDATES_MAX: usize = 65_536;

/// Runs a directory server until it is told to stop.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, an address or socket in use, a key file that others may read, a store
/// that cannot be opened.
pub fn run(load: &Load<'_, DirectoryConfig>, stop: &Stop) -> Result<(), NodeError> {
    runner::run::<Daemon>(load, stop)
}

struct Daemon {
    lookups: Arc<Lookups>,
    replica: Replica,
    handler: Arc<Handler>,
    socket: PathBuf,
    /// Ends the threads; one that fails asks for it.
    over: Stop,
    threads: Vec<JoinHandle<Result<(), NodeError>>>,
}

impl Daemon {
    /// A server of what a replica shows.
    fn around(replica: Replica, terms: Terms, config: &DirectoryConfig) -> Result<Self, NodeError> {
        let lookups = Arc::new(Lookups::bind(config, replica.clone())?);
        let listeners = Listeners {
            local: Listener::bind(&config.admin_socket, "admin_socket")?,
            remote: config.tls_listen.map(|address| tcp::listen(address, "tls_listen")).transpose()?,
        };
        if config.open {
            warn!("open: everybody who reaches {} is answered", lookups.listen());
        }
        let (theirs, state, open) = (Arc::clone(&lookups), replica.clone(), config.open);
        let tls_listen = listeners.remote_address();
        let status = Arc::new(move || status(&theirs, &state, open, tls_listen));
        let sessions = Sessions::new(replica.clone(), terms, status)?;
        let (handler, over, socket) = (Arc::clone(sessions.handler()), Stop::manual()?, config.admin_socket.clone());
        replica.on_failure(over.clone());
        let mut daemon = Self { lookups: Arc::clone(&lookups), replica, handler, socket, over, threads: Vec::new() };
        daemon.spawn("lookups", move |over| lookups.serve(over))?;
        daemon.spawn("sessions", move |over| sessions.serve(listeners, over))?;
        Ok(daemon)
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(&Stop) -> Result<(), NodeError> + Send + 'static,
    ) -> Result<(), NodeError> {
        let (over, named) = (self.over.clone(), name.to_owned());
        let work = move || guarded(&named, &over, || work(&over));
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(thread.map_err(NodeError::system("starting a thread"))?);
        Ok(())
    }

    /// How the threads ended, which they have to.
    fn join(&mut self) -> Result<(), NodeError> {
        self.over.request();
        let join = |thread: JoinHandle<_>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.threads.drain(..).map(join).fold(Ok(()), Result::and)
    }
}

impl runner::Daemon for Daemon {
    const KIND: DaemonKind = DaemonKind::Directory;

    type Settings = DirectoryConfig;
    type What = ();
    type Shown = DirectoryStatus;
    type Item = Nothing;

    fn start(config: &DirectoryConfig) -> Result<Self, NodeError> {
        let terms = config.terms()?;
        let replica = Replica::start(config.store.open()?, config.rules()?, ReplicaSettings::default())?;
        Self::around(replica, terms, config)
    }

    fn ready_line(&self) -> String {
        let (listen, mapped, socket) = (self.lookups.listen(), self.replica.status().mapped, self.socket.display());
        format!("directory server ready: answers at {listen}, {mapped} mappings, updates by {socket}")
    }

    fn watch(&self, poller: &Poller) -> Result<(), NodeError> {
        poller.add(&self.over, 0)
    }

    fn ready(&mut self, _: u64) -> Result<(), NodeError> {
        self.join()?;
        let why = self.replica.failure().unwrap_or_else(|| "they ended although nobody asked".to_owned());
        Err(NodeError::system("answering look-ups and sessions")(std::io::Error::other(why)))
    }

    fn show(&self, (): ()) -> Result<DirectoryStatus, NodeError> {
        Ok(self.handler.status())
    }

    fn metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
        self.handler.status().metrics(to);
        Ok(())
    }

    /// Updates would be kept now.
    fn readiness(&self) -> Readiness {
        let handler = Arc::clone(&self.handler);
        Box::new(move || handler.ready())
    }

    fn is_watched_at(&mut self, address: SocketAddrV4) {
        self.handler.set_http_address(address);
    }

    fn reload(&mut self, config: &DirectoryConfig) -> Result<Vec<String>, NodeError> {
        let (keys, rules, terms) = (config.keys()?, config.rules()?, config.terms()?);
        self.replica.renew_store()?;
        self.lookups.reconfigure(config, keys);
        self.replica.set_rules(rules);
        self.handler.set_terms(terms);
        Ok(Vec::new())
    }

    fn end(mut self, _: bool) -> Result<(), NodeError> {
        // First, so that whoever asks meanwhile asks the server.
        if let Some(card) = self.lookups.card() {
            card.detach();
        }
        self.join()
    }
}

fn status(lookups: &Lookups, replica: &Replica, open: bool, tls_listen: Option<SocketAddrV4>) -> DirectoryStatus {
    let card = lookups.card().map(Card::status);
    let mut seen = lookups.counts();
    seen.add_answered_before(card.as_ref().map_or(0, CardStatus::answered));
    let state = replica.status();
    let updates = state.counts;
    DirectoryStatus {
        schema_version: 1,
        revision: state.revision,
        mappings: state.mapped,
        listen: lookups.listen(),
        tls_listen,
        http_listen: None,
        open,
        lookups: named([
            ("datagrams", seen.datagrams),
            ("answered", seen.answered),
            ("questions", seen.questions),
            ("unsent", seen.unsent),
            ("reports", seen.reports),
        ]),
        ignored: named(seen.ignored.iter()),
        updates: named([
            ("committed", updates.committed),
            ("refused", updates.refused),
            ("failed", updates.failed),
            ("records", updates.records),
        ]),
        corrections: named(lookups.corrections().counts()),
        xdp: card,
        sessions: BTreeMap::new(),
        lookup_threads: lookups.threads(),
        table_hash: format!("{:016x}", replica.table_hash().1),
        store_error: state.store_error,
    }
}

impl DirectoryStatus {
    /// What it says in numbers.
    fn metrics(self, to: &mut Metrics) {
        to.gauge("revision", "Revision of the table", self.revision);
        to.gauge("mappings", "AAs that have a mapping", self.mappings);
        to.gauge("lookup_threads", "Threads that answer look-ups", self.lookup_threads);
        to.gauge("store_up", "1 if the store could be used when last tried", self.store_error.is_none());
        let count = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
        for (of, name, help) in [
            ("datagrams", "lookup_datagrams", "Datagrams that came"),
            ("answered", "lookup_answered", "Answers sent"),
            ("questions", "lookup_questions", "AAs asked for in valid questions"),
            ("unsent", "lookup_unsent", "Answers that the kernel did not take"),
            ("reports", "lookup_reports", "Reports of ToRs"),
        ] {
            to.counter(name, help, count(&self.lookups, of));
        }
        to.tally("ignored", "Datagrams without an answer", "reason", self.ignored);
        to.tally("updates", "Requests that change something, and log records", "outcome", self.updates);
        to.tally("corrections", "Packets that ToRs reported", "outcome", self.corrections);
        if let Some(card) = self.xdp {
            to.gauge("xdp_answers", "1 if look-ups are answered at the card", card.answers);
            to.gauge("xdp_mappings", "Mappings that the card has", card.mappings);
            to.tally("xdp_frames", "Frames at the card, by what became of them", "outcome", card.frames);
        }
        let beyond = count(&self.sessions, "beyond_quota");
        to.counter("beyond_quota", "What services asked for beyond their shares", beyond);
        to.gauge("sessions_open", "Sessions", count(&self.sessions, "open"));
        to.gauge("sessions_watching", "Sessions that watch", count(&self.sessions, "watching"));
    }
}

#[cfg(test)]
mod tests {
    use super::replica::tests::{Fickle, start};
    use super::*;

    /// A server on a log that can be broken, and how it ends once `broken` has broken something.
    fn end(store: &Fickle, broken: impl FnOnce(&mut Daemon)) -> String {
        let dir = tempfile::tempdir().unwrap();
        let config = DirectoryConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            admin_socket: dir.path().join("admin.sock"),
            key_file: None,
            open: true,
            ..DirectoryConfig::example()
        };
        let mut daemon = Daemon::around(start(store), config.terms().unwrap(), &config).unwrap();
        broken(&mut daemon);
        let said = runner::serve_until(&mut daemon, |_| false).unwrap_err().to_string();
        assert!(!said.contains('\n'), "{said}");
        said
    }

    #[test]
    fn a_server_one_of_whose_threads_panics_ends_and_says_which() {
        let said = end(&Fickle::default(), |daemon| daemon.spawn("more-sessions", |_| panic!("no\nfeed")).unwrap());
        assert_eq!(said, "the thread `more-sessions` failed (no feed): a bug; restart the daemon");
    }

    #[test]
    fn a_server_whose_replica_panics_ends_and_says_why() {
        let store = Fickle::default();
        let said = end(&store, |_| store.breaks());
        assert!(said.contains("the thread `follower` failed (a bug)") && said.contains("restart"), "{said}");
    }
}
