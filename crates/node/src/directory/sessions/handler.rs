//! Requests of sessions, carried out on the replica.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::oneshot;
use weft_control::address::Locator;
use weft_control::directory::{Change, Request, Table, Update};

use super::authority::Authority;
use super::feed::Feed;
use crate::directory::protocol::{
    AdminRequest, AdminResponse, ChangeRow, DirectoryStatus, LIST_MAX, MappingRow, MappingToSet, RulesRow,
};
use crate::directory::replica::{Committed, Failure, Replica};

/// Makes the status.
pub(in crate::directory) type StatusOf = Arc<dyn Fn() -> DirectoryStatus + Send + Sync>;

/// What sessions share.
pub(in crate::directory) struct Handler {
    replica: Replica,
    pub(super) feed: Arc<Feed>,
    /// How long an update may wait for the store, and the rules as clients are told them.
    terms: RwLock<(Duration, RulesRow)>,
    status: StatusOf,
    pub(super) open: AtomicU64,
    pub(super) watching: AtomicU64,
}

/// The AAs of a list that is read in parts, in order: made with the first part, so that the others need no search. AAs that
/// were set since are not in it; a watch from the first part's revision tells them.
pub(super) type Listing = Vec<Ipv4Addr>;

/// The answer to a request, or where it comes from.
pub(super) enum Outcome {
    Now(Box<AdminResponse>),
    Later(oneshot::Receiver<Result<u64, Failure>>),
    /// What [`Handler::look`] says when every earlier request was answered: a session reads its own writes.
    Look(AdminRequest),
    /// No answer: to be told when every earlier request was answered.
    Passed(oneshot::Sender<()>),
}

impl Handler {
    pub(super) fn new(replica: Replica, feed: Arc<Feed>, terms: (Duration, RulesRow), status: StatusOf) -> Self {
        let (open, watching) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { replica, feed, terms: RwLock::new(terms), status, open, watching }
    }

    fn terms(&self) -> (Duration, RulesRow) {
        self.terms.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Other terms from now on.
    pub(in crate::directory) fn set_terms(&self, terms: (Duration, RulesRow)) {
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = terms;
    }

    /// The server's state, with the numbers of sessions that are open and that watch.
    pub(in crate::directory) fn status(&self) -> DirectoryStatus {
        let mut status = (self.status)();
        for (name, count) in [("open", &self.open), ("watching", &self.watching)] {
            status.sessions.insert(name.to_owned(), count.load(Ordering::Relaxed));
        }
        status
    }

    /// Whether updates would be kept now. May wait for the store.
    ///
    /// # Errors
    /// Why not.
    pub(in crate::directory) fn ready(&self) -> Result<(), String> {
        self.replica.check()
    }

    /// Starts to carry out a request.
    pub(super) fn handle(&self, who: Authority, request: AdminRequest) -> Outcome {
        match request {
            AdminRequest::Set { aa, tor_la, anycast_la, service, host_la, if_version, version, client, sequence } => {
                let mapping = MappingToSet { aa, tor_la, anycast_la, service, host_la, if_version, version };
                self.update(who, Request { client, sequence, ..Request::once(vec![mapping.update()]) })
            }
            AdminRequest::SetMany { mappings, client, sequence } => {
                let updates = mappings.iter().map(MappingToSet::update).collect();
                self.update(who, Request { client, sequence, ..Request::once(updates) })
            }
            AdminRequest::Del { aa, if_version, client, sequence } => {
                let update = Update { if_version, ..Update::delete(aa) };
                self.update(who, Request { client, sequence, ..Request::once(vec![update]) })
            }
            AdminRequest::Move { aa, tor_la, anycast_la, host_la, if_version, client, sequence } => {
                match self.move_of(who, aa, tor_la, anycast_la, host_la, if_version) {
                    Ok(update) => self.update(who, Request { client, sequence, ..Request::once(vec![update]) }),
                    Err(refused) => refused,
                }
            }
            AdminRequest::Policy { changes, client, sequence } => {
                let changes = changes.into_iter().map(Into::into).collect();
                self.update(who, Request { client, sequence, ..Request::rules(changes) })
            }
            AdminRequest::Get { .. }
            | AdminRequest::List { .. }
            | AdminRequest::Watch { .. }
            | AdminRequest::PolicyList {}
            | AdminRequest::Rules {}
            | AdminRequest::Status {} => Outcome::Look(request),
        }
    }

    /// The answer to a request that changes nothing. A session that lists part after part keeps its `listing`.
    pub(super) fn look(&self, who: Authority, request: &AdminRequest, listing: &mut Option<Listing>) -> AdminResponse {
        match request {
            AdminRequest::Get { aa } => self.get(who, *aa),
            AdminRequest::List { from, limit } => self.list(who, *from, *limit, listing),
            AdminRequest::Watch { from } => {
                AdminResponse::committed(from.unwrap_or_else(|| self.replica.read(Table::revision)))
            }
            AdminRequest::Rules {} => AdminResponse { rules: Some(self.terms().1), ..AdminResponse::good() },
            AdminRequest::PolicyList {} if who.is_operator() => self.policy(),
            AdminRequest::Status {} if who.is_operator() => {
                AdminResponse { status: Some(self.status()), ..AdminResponse::good() }
            }
            _ => AdminResponse::failed("denied", "this is for operators; use an operator's certificate"),
        }
    }

    /// Submits an update if this client may make it.
    pub(super) fn update(&self, who: Authority, mut request: Request) -> Outcome {
        if let Authority::Service(_) = who
            && let Err(why) = self.replica.read(|table| who.check(table, &mut request))
        {
            return failed("denied", why);
        }
        let (sender, receiver) = oneshot::channel();
        let reply = move |outcome| {
            // The session may be gone.
            let _ = sender.send(outcome);
        };
        let timeout = self.terms.read().unwrap_or_else(PoisonError::into_inner).0;
        self.replica.submit(request, timeout, Box::new(reply));
        Outcome::Later(receiver)
    }

    /// The update that moves an AA: what is not named stays, and nothing may change in between.
    fn move_of(
        &self,
        who: Authority,
        aa: Ipv4Addr,
        tor_la: Ipv4Addr,
        anycast_la: Option<Ipv4Addr>,
        host_la: Option<Ipv4Addr>,
        if_version: Option<u64>,
    ) -> Result<Update, Outcome> {
        let record = self.replica.read(|table| table.record(aa).filter(|record| who.sees(table, record)));
        let found = record.and_then(|record| Some((record, record.locator?)));
        let Some((record, locator)) = found else {
            return Err(failed("refused", format!("AA {aa} has no mapping to move; set it first")));
        };
        let locator = Locator { tor_la, anycast_la: anycast_la.unwrap_or(locator.anycast_la) };
        let change = Change::Set { locator, service: record.service, host_la };
        Ok(Update { aa, change, if_version: if_version.or(Some(record.version)), version: None })
    }

    fn get(&self, who: Authority, aa: Ipv4Addr) -> AdminResponse {
        self.replica.read(|table| AdminResponse {
            revision: Some(table.revision()),
            mapping: table
                .record(aa)
                .filter(|record| who.sees(table, record))
                .and_then(|record| MappingRow::of(aa, record)),
            ..AdminResponse::good()
        })
    }

    fn list(
        &self,
        who: Authority,
        from: Option<Ipv4Addr>,
        limit: Option<usize>,
        listing: &mut Option<Listing>,
    ) -> AdminResponse {
        let limit = limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
        let kept = listing.take().filter(|_| from.is_some());
        let aas = kept.unwrap_or_else(|| {
            let mut aas = self.replica.read(Table::mapped_aas);
            aas.sort_unstable();
            aas
        });
        let start = aas.partition_point(|aa| *aa < from.unwrap_or(Ipv4Addr::UNSPECIFIED));
        let end = aas.len().min(start + limit);
        let next = aas.get(end).copied();
        let part = &aas[start..end];
        let response = self.replica.read(|table| {
            let records = part.iter().filter_map(|aa| Some((*aa, table.record(*aa)?)));
            let seen = records.filter(|(_, record)| who.sees(table, record));
            let mappings = seen.filter_map(|(aa, record)| MappingRow::of(aa, record)).collect();
            AdminResponse { revision: Some(table.revision()), mappings: Some(mappings), next, ..AdminResponse::good() }
        });
        *listing = next.map(|_| aas);
        response
    }

    fn policy(&self) -> AdminResponse {
        self.replica.read(|table| AdminResponse {
            revision: Some(table.revision()),
            policy: Some(table.policy().into_iter().map(Into::into).collect()),
            ..AdminResponse::good()
        })
    }

    /// What this client may know of a record that was committed.
    pub(super) fn changes(&self, who: Authority, record: &Committed) -> Vec<ChangeRow> {
        let row = |(aa, record): &(Ipv4Addr, _)| ChangeRow::of(*aa, *record);
        if who.is_operator() {
            return record.changed.iter().map(row).collect();
        }
        self.replica
            .read(|table| record.changed.iter().filter(|(_, record)| who.sees(table, record)).map(row).collect())
    }
}

/// The answer to an update.
pub(super) fn response(outcome: Result<u64, Failure>) -> AdminResponse {
    match outcome {
        Ok(revision) => AdminResponse::committed(revision),
        Err(Failure::Refused(refusal)) => AdminResponse::failed("refused", refusal),
        Err(Failure::Store(error)) => AdminResponse::failed("store", error),
        Err(Failure::Busy(error)) => AdminResponse::failed("busy", error),
    }
}

fn failed(kind: &str, why: impl ToString) -> Outcome {
    Outcome::Now(Box::new(AdminResponse::failed(kind, why)))
}
