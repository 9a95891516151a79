//! Requests of sessions, carried out on the replica.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{oneshot, watch};
use weft_control::address::Locator;
use weft_control::directory::{
    Authority, Change, Denied, Exceeded, REFUSED_COST, Record, Request, Table, Update, Weight,
};

use super::feed::Feed;
use super::share::{Buffered, SessionPlace, Shares};
use super::terms::Terms;
use crate::directory::protocol::{
    AdminRequest, AdminResponse, ChangeRow, DirectoryStatus, LIST_MAX, MappingRow, MappingToSet,
};
use crate::directory::replica::{Committed, Failure, Replica};
use crate::runner::Clock;
use crate::tls::Fingerprint;

/// Rows of a list that cost as much as an update.
const ROWS_PER_UPDATE: usize = 64;

/// Makes the status.
pub(in crate::directory) type StatusOf = Arc<dyn Fn() -> DirectoryStatus + Send + Sync>;

/// What sessions share.
pub(in crate::directory) struct Handler {
    replica: Replica,
    pub(super) feed: Arc<Feed>,
    terms: watch::Sender<Arc<Terms>>,
    shares: Shares,
    clock: Clock,
    status: StatusOf,
    http_address: OnceLock<SocketAddrV4>,
    pub(super) open: AtomicU64,
    pub(super) watching: AtomicU64,
    /// What services asked for beyond their shares.
    beyond: AtomicU64,
}

/// The AAs of a list that is read in parts, in order, those alone that its reader may know: made with the first part, so that
/// the others need no search. AAs that were set since are not in it; a watch from the first part's revision tells them.
pub(super) struct Listing {
    aas: Option<Vec<Ipv4Addr>>,
    kept: Buffered,
}

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
    pub(super) fn new(replica: Replica, feed: Arc<Feed>, terms: Terms, status: StatusOf) -> Self {
        Self {
            replica,
            feed,
            terms: watch::Sender::new(Arc::new(terms)),
            shares: Shares::default(),
            clock: Clock::start(),
            status,
            http_address: OnceLock::new(),
            open: AtomicU64::new(0),
            watching: AtomicU64::new(0),
            beyond: AtomicU64::new(0),
        }
    }

    /// The terms of now.
    pub(super) fn terms(&self) -> Arc<Terms> {
        Arc::clone(&self.terms.borrow())
    }

    /// Other terms from now on.
    pub(in crate::directory) fn set_terms(&self, terms: Terms) {
        self.terms.send_replace(Arc::new(terms));
    }

    /// Returns once this certificate is revoked.
    pub(super) async fn revoked(&self, fingerprint: Fingerprint) {
        let has_revoked = |terms: &Arc<Terms>| terms.trust.as_ref().is_some_and(|trust| trust.has_revoked(fingerprint));
        // The sender is in this very struct.
        let _ = self.terms.subscribe().wait_for(has_revoked).await;
    }

    /// A place for one more session of this client.
    ///
    /// # Errors
    /// It has as many as it may.
    pub(super) fn open_session(&self, who: Authority) -> Result<SessionPlace, Exceeded> {
        self.within(who, |terms, service| self.shares.open_session(who, terms.quotas.of(service)))
    }

    /// Counts the bytes that a session keeps.
    pub(super) fn buffer(&self, who: Authority) -> Buffered {
        self.shares.buffer(who)
    }

    /// A session keeps so many bytes from now on.
    ///
    /// # Errors
    /// They are more than it may.
    pub(super) fn set_buffered(&self, who: Authority, buffered: &mut Buffered, bytes: usize) -> Result<(), Exceeded> {
        self.within(who, |terms, service| buffered.set(bytes, terms.quotas.of(service)))
    }

    /// How long to wait before a request is carried out, nanoseconds: its client may ask no faster.
    pub(super) fn charge(&self, who: Authority, cost: u64) -> u64 {
        let Authority::Service(service) = who else { return 0 };
        self.shares.charge(who, cost, self.clock.now_ns(), self.terms.borrow().quotas.of(service))
    }

    /// A request was refused: the next ones of this client wait for longer.
    pub(super) fn charge_refused(&self, who: Authority) {
        self.charge(who, REFUSED_COST);
    }

    /// What a request costs, in updates.
    pub(super) fn cost(&self, request: &AdminRequest) -> u64 {
        let cost = match request {
            AdminRequest::SetMany { mappings, .. } => mappings.len(),
            AdminRequest::Policy { changes, .. } => changes.len(),
            // The first part looks at every row.
            AdminRequest::List { from: None, .. } => self.replica.read(Table::mapped) / ROWS_PER_UPDATE,
            AdminRequest::List { .. } => LIST_MAX / ROWS_PER_UPDATE,
            _ => 1,
        };
        cost.max(1) as u64
    }

    fn within<T>(&self, who: Authority, take: impl FnOnce(&Terms, u32) -> Result<T, Exceeded>) -> Result<T, Exceeded> {
        let service = if let Authority::Service(service) = who { service } else { 0 };
        take(&self.terms.borrow(), service).inspect_err(|_| {
            self.beyond.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// The server's state, with the numbers of sessions that are open and that watch.
    pub(in crate::directory) fn status(&self) -> DirectoryStatus {
        let mut status = (self.status)();
        status.http_listen = self.http_address.get().copied();
        for (name, count) in [("open", &self.open), ("watching", &self.watching), ("beyond_quota", &self.beyond)] {
            status.sessions.insert(name.to_owned(), count.load(Ordering::Relaxed));
        }
        status
    }

    /// Says where HTTP is.
    pub(in crate::directory) fn set_http_address(&self, address: SocketAddrV4) {
        self.http_address.get_or_init(|| address);
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
    pub(super) fn look(&self, who: Authority, request: &AdminRequest, listing: &mut Listing) -> AdminResponse {
        match request {
            AdminRequest::Get { aa } => self.get(who, *aa),
            AdminRequest::List { from, limit } => self.list(who, *from, *limit, listing),
            AdminRequest::Watch { from } => {
                AdminResponse::committed(from.unwrap_or_else(|| self.replica.read(Table::revision)))
            }
            AdminRequest::Rules {} => {
                AdminResponse { rules: Some(self.terms().rules.clone()), ..AdminResponse::good() }
            }
            AdminRequest::PolicyList {} if who.is_operator() => self.policy(),
            AdminRequest::Status {} if who.is_operator() => {
                AdminResponse { status: Some(self.status()), ..AdminResponse::good() }
            }
            _ => AdminResponse::failed("denied", "this is for operators; use an operator's certificate"),
        }
    }

    /// Submits an update if this client may make it.
    pub(super) fn update(&self, who: Authority, mut request: Request) -> Outcome {
        let weight = match self.open_request(who, &mut request) {
            Ok(weight) => weight,
            Err(refused) => return refused,
        };
        let (sender, receiver) = oneshot::channel();
        // Not the handler, which keeps the replica that keeps this.
        let shares = self.shares.clone();
        let reply = move |outcome| {
            shares.close_request(who, weight);
            // The session may be gone.
            let _ = sender.send(outcome);
        };
        let timeout = self.terms.borrow().update_timeout;
        self.replica.submit(request, timeout, Box::new(reply));
        Outcome::Later(receiver)
    }

    /// Whether this client may make the update, and make it now.
    fn open_request(&self, who: Authority, request: &mut Request) -> Result<Weight, Outcome> {
        let Authority::Service(service) = who else { return Ok(Weight::default()) };
        request.authority = who;
        let checked = self.replica.read(|table| match table.judged_before(request) {
            Some(verdict) => Err(Outcome::Now(Box::new(response(verdict.map_err(Failure::from))))),
            None => Ok((who.check(table, request).map_err(denied)?, table.rows(service))),
        });
        let (new_rows, rows) = checked?;
        let weight = Weight { updates: request.updates.len(), new_rows };
        let opened = self.within(who, |terms, _| self.shares.open_request(who, weight, rows, terms.quotas.of(service)));
        opened.map(|()| weight).map_err(|exceeded| Outcome::Now(Box::new(beyond(exceeded))))
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
        listing: &mut Listing,
    ) -> AdminResponse {
        let limit = limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
        let kept = listing.aas.take().filter(|_| from.is_some());
        let aas = kept.unwrap_or_else(|| {
            let known = |table: &Table| table.mapped_aas(|record: &Record| who.sees(table, record));
            let mut aas = self.replica.read(known);
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
        listing.aas = next.map(|_| aas);
        let bytes = listing.aas.as_ref().map_or(0, |aas| aas.len() * size_of::<Ipv4Addr>());
        match self.set_buffered(who, &mut listing.kept, bytes) {
            Ok(()) => response,
            Err(exceeded) => {
                listing.aas = None;
                beyond(exceeded)
            }
        }
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

impl Listing {
    /// Of a session that has not listed anything.
    pub(super) fn none(handler: &Handler, who: Authority) -> Self {
        Self { aas: None, kept: handler.buffer(who) }
    }
}

/// The answer to who takes more than its share.
pub(super) fn beyond(exceeded: Exceeded) -> AdminResponse {
    AdminResponse::failed(if exceeded.passes { "busy" } else { "refused" }, exceeded)
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

fn denied(why: Denied) -> Outcome {
    let kind = if matches!(why, Denied::Behind { .. }) { "busy" } else { "denied" };
    failed(kind, why)
}

fn failed(kind: &str, why: impl ToString) -> Outcome {
    Outcome::Now(Box::new(AdminResponse::failed(kind, why)))
}
