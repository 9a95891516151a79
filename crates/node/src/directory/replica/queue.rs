//! Requests that wait for a record, and records that wait for the store and the follower. Pure bookkeeping: the
//! threads that use it share it under one lock.
//!
//! Operators and each service wait in a flow of their own, and the flows share records alike: who sends much waits behind
//! itself.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weft_control::directory::{Authority, Batch, FairQueue, Refusal, Request};

use super::table::Verdicts;
use super::{Failure, ReplicaSettings, Reply};

/// Applied records whose verdicts are kept while an own append has not returned, at most.
const APPLIED_KEPT: usize = 4096;
/// Verdicts out of the ordinary in them, at most.
const ODD_KEPT: usize = 65_536;

/// Somebody who waits for an answer.
pub(super) struct Ticket {
    pub(super) deadline: Instant,
    /// Gone once it was called.
    pub(super) reply: Option<Reply>,
}

/// A request that waits for its record.
struct Waiting {
    request: Request,
    ticket: Ticket,
    since: Instant,
    /// It was on its way before, and may be in the store.
    tried: bool,
}

/// A record on its way to the store.
pub(super) struct Open {
    pub(super) batch: Arc<Batch>,
    pub(super) tickets: Vec<Ticket>,
}

/// A verdict on its way to somebody. Sent after the lock is released.
pub(super) type Settled = (Ticket, Result<u64, Failure>);

/// What an appender is to do.
pub(super) enum Next {
    /// Append this record.
    Append { number: u64, batch: Arc<Batch> },
    /// Wait until something changes, or for this long.
    Wait(Option<Duration>),
}

/// An applied record while an own append has not returned: it may be that one.
struct Applied {
    revision: u64,
    /// Verdicts other than "at this revision", by number of the request.
    odd: Vec<(usize, Result<u64, Refusal>)>,
}

/// All of it.
#[derive(Default)]
pub(super) struct Queue {
    waiting: FairQueue<Authority, Waiting>,
    updates_waiting: usize,
    /// Records whose append has not returned, by number.
    open: HashMap<u64, Open>,
    next_number: u64,
    /// Clients and AAs named in them.
    clients: HashSet<(Authority, u64)>,
    aas: HashSet<Ipv4Addr>,
    /// Records among them that change the policy.
    policies: usize,
    /// Records in the store that the follower has not applied, by revision.
    committed: HashMap<u64, Open>,
    applied: VecDeque<Applied>,
    odd: usize,
    applied_revision: u64,
    /// When the last own record was settled, and how many requests it had and were waiting then.
    settled_at: Option<Instant>,
    askers: usize,
    /// No ticket expires before this.
    expiry: Option<Instant>,
}

impl Queue {
    pub(super) fn at(revision: u64) -> Self {
        Self { applied_revision: revision, ..Self::default() }
    }

    /// Takes a request, or gives the ticket back with the reason. Returns whether an appender should look.
    pub(super) fn push(
        &mut self,
        request: Request,
        ticket: Ticket,
        now: Instant,
        settings: &ReplicaSettings,
    ) -> Result<bool, Settled> {
        let updates = weight(&request);
        // What services may not fill is left for operators.
        let room = |max: usize| if request.authority.is_operator() { max } else { max - max / 8 };
        let updates_room = room(settings.updates_waiting);
        if self.waiting.len() >= room(settings.requests_waiting) || self.updates_waiting + updates > updates_room {
            let why = format!(
                "overloaded: {} requests with {} updates wait for the store, nothing was changed; try again later",
                self.waiting.len(),
                self.updates_waiting
            );
            return Err((ticket, Err(Failure::Busy(why))));
        }
        self.expires(ticket.deadline);
        self.updates_waiting += updates;
        self.waiting.push_back(request.authority, updates, Waiting { request, ticket, since: now, tried: false });
        // In between, an appender waits for one of these or for the window to end.
        let count = self.waiting.len();
        Ok(count == 1 || count == self.expected() || self.updates_waiting >= settings.record_updates)
    }

    /// Puts requests back in front of all others, in their order.
    pub(super) fn push_back(&mut self, again: Vec<(Request, Ticket)>, now: Instant) {
        for (request, ticket) in again.into_iter().rev() {
            let updates = weight(&request);
            self.updates_waiting += updates;
            self.waiting.push_front(request.authority, updates, Waiting { request, ticket, since: now, tried: true });
        }
    }

    /// The next record, if there is one to append now.
    ///
    /// With nothing on its way a request goes at once, unless those who were answered just now are likely to ask again
    /// and share its record. Otherwise it waits for others to share its record, and for records that name the same
    /// client or AA: the order of those is kept, and only its own flow waits with it.
    pub(super) fn next(&mut self, now: Instant, settings: &ReplicaSettings) -> Next {
        if self.open.len() >= settings.records_open.max(1) {
            return Next::Wait(None);
        }
        let ready = self.waiting.heads().filter(|(_, head)| !self.conflicts(&head.request));
        let Some(since) = ready.map(|(_, head)| head.since).min() else { return Next::Wait(None) };
        let left = self.patience(since, now, settings.window);
        if self.updates_waiting < settings.record_updates && !left.is_zero() {
            return Next::Wait(Some(left));
        }
        self.open_record(settings)
    }

    /// How much longer requests, of which the first waits since then, should wait for others.
    fn patience(&self, since: Instant, now: Instant, window: Duration) -> Duration {
        if !self.open.is_empty() || !self.committed.is_empty() {
            return window.saturating_sub(now.saturating_duration_since(since));
        }
        match self.settled_at {
            Some(settled_at) if self.waiting.len() < self.expected() => {
                window.saturating_sub(now.saturating_duration_since(settled_at))
            }
            _ => Duration::ZERO,
        }
    }

    /// How many requests are likely to wait soon after a record was settled: most of those who asked before.
    fn expected(&self) -> usize {
        self.askers - self.askers / 8
    }

    fn open_record(&mut self, settings: &ReplicaSettings) -> Next {
        let mut batch = Batch::default();
        let (mut tickets, mut updates) = (Vec::new(), 0);
        // Flows whose turn it is not: nothing of theirs overtakes their first.
        let mut held = BTreeSet::new();
        loop {
            let Some((who, first)) = self.waiting.heads().find(|(who, _)| !held.contains(who)) else { break };
            if self.conflicts(&first.request) {
                held.insert(who);
                continue;
            }
            let more = weight(&first.request);
            if updates > 0 && updates + more > settings.record_updates {
                break;
            }
            let Some(Waiting { request, ticket, .. }) = self.waiting.pop(who) else { break };
            updates += more;
            self.updates_waiting -= more;
            batch.requests.push(request);
            tickets.push(ticket);
        }
        self.name(&batch, true);
        let number = self.next_number;
        self.next_number += 1;
        let batch = Arc::new(batch);
        self.open.insert(number, Open { batch: Arc::clone(&batch), tickets });
        Next::Append { number, batch }
    }

    fn conflicts(&self, request: &Request) -> bool {
        self.clients.contains(&(request.authority, request.client))
            || (self.policies > 0 && !request.policy.is_empty())
            || (!self.aas.is_empty() && request.updates.iter().any(|update| self.aas.contains(&update.aa)))
    }

    /// Notes what an open record names, or forgets it.
    fn name(&mut self, batch: &Batch, open: bool) {
        if batch.requests.iter().any(|request| !request.policy.is_empty()) {
            self.policies = if open { self.policies + 1 } else { self.policies - 1 };
        }
        for request in &batch.requests {
            if open {
                self.aas.extend(request.updates.iter().map(|update| update.aa));
            } else {
                for update in &request.updates {
                    self.aas.remove(&update.aa);
                }
            }
            if request.client == 0 {
                continue;
            }
            let client = (request.authority, request.client);
            if open {
                self.clients.insert(client);
            } else {
                self.clients.remove(&client);
            }
        }
    }

    /// Whether no other record than this one is on its way.
    pub(super) fn alone(&self, number: u64) -> bool {
        self.open.len() == 1 && self.open.contains_key(&number) && self.committed.is_empty()
    }

    /// Takes a record out whose append has returned.
    pub(super) fn close(&mut self, number: u64) -> Option<Open> {
        let open = self.open.remove(&number)?;
        self.name(&open.batch, false);
        Some(open)
    }

    /// An own record is in the store. Settles it if it was applied already; `None` in place of verdicts that are no
    /// longer known.
    pub(super) fn appended(&mut self, revision: u64, open: Open, now: Instant) -> Option<(Open, Option<Verdicts>)> {
        let settled = if revision > self.applied_revision {
            self.committed.insert(revision, open);
            None
        } else {
            self.settled(open.tickets.len(), now);
            let found = self.applied.iter().find(|applied| applied.revision == revision);
            let verdicts = found.map(|applied| applied.verdicts(open.tickets.len()));
            Some((open, verdicts))
        };
        if self.open.is_empty() {
            self.applied.clear();
            self.odd = 0;
        }
        settled
    }

    /// A record was applied. Returns it if it is an own one that is known to be.
    pub(super) fn applied(&mut self, revision: u64, verdicts: &Verdicts, now: Instant) -> Option<Open> {
        self.applied_revision = revision;
        let own = self.committed.remove(&revision);
        match &own {
            Some(open) => self.settled(open.tickets.len(), now),
            None if self.open.is_empty() => {}
            None => self.keep(Applied::of(revision, verdicts)),
        }
        own
    }

    fn settled(&mut self, requests: usize, now: Instant) {
        self.settled_at = Some(now);
        self.askers = requests + self.waiting.len();
    }

    /// The table jumped to this revision. Returns the own records that were passed over, whose verdicts are not known.
    pub(super) fn jumped(&mut self, revision: u64) -> Vec<(u64, Open)> {
        self.applied_revision = revision;
        let passed: Vec<u64> = self.committed.keys().copied().filter(|committed| *committed <= revision).collect();
        passed.into_iter().filter_map(|revision| Some((revision, self.committed.remove(&revision)?))).collect()
    }

    fn keep(&mut self, applied: Applied) {
        self.odd += applied.odd.len();
        self.applied.push_back(applied);
        while self.applied.len() > APPLIED_KEPT || self.odd > ODD_KEPT {
            match self.applied.pop_front() {
                Some(oldest) => self.odd -= oldest.odd.len(),
                None => return,
            }
        }
    }

    fn expires(&mut self, deadline: Instant) {
        self.expiry = Some(self.expiry.map_or(deadline, |expiry| expiry.min(deadline)));
    }

    /// When to look for expired tickets next.
    pub(super) fn expiry(&self) -> Option<Instant> {
        self.expiry
    }

    /// Takes the tickets whose time is over: those that never left, and those that may be in the store.
    pub(super) fn expired(&mut self, now: Instant) -> (Vec<Ticket>, Vec<Ticket>) {
        let (mut never_left, mut on_the_way) = (Vec::new(), Vec::new());
        for entry in self.waiting.take(|entry| entry.ticket.deadline <= now) {
            self.updates_waiting -= weight(&entry.request);
            if entry.tried { &mut on_the_way } else { &mut never_left }.push(entry.ticket);
        }
        let mut expiry = self.waiting.iter().map(|entry| entry.ticket.deadline).min();
        for open in self.open.values_mut().chain(self.committed.values_mut()) {
            for ticket in open.tickets.iter_mut().filter(|ticket| ticket.reply.is_some()) {
                if ticket.deadline <= now {
                    on_the_way.push(Ticket { reply: ticket.reply.take(), ..*ticket });
                } else {
                    expiry = Some(expiry.map_or(ticket.deadline, |expiry| expiry.min(ticket.deadline)));
                }
            }
        }
        self.expiry = expiry;
        (never_left, on_the_way)
    }

    /// Takes everybody who waits.
    pub(super) fn drain(&mut self) -> Vec<Ticket> {
        let waiting = self.waiting.take(|_| true).into_iter().map(|entry| entry.ticket);
        let open = self.open.drain().chain(self.committed.drain()).flat_map(|(_, open)| open.tickets);
        self.updates_waiting = 0;
        waiting.chain(open).collect()
    }

    /// Whether requests wait for a record.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Requests that wait or whose record is on its way.
    pub(super) fn len(&self) -> usize {
        let open = self.open.values().chain(self.committed.values());
        self.waiting.len() + open.map(|open| open.tickets.len()).sum::<usize>()
    }
}

/// What a request counts for in a record: its changes.
pub(super) fn weight(request: &Request) -> usize {
    request.updates.len() + request.policy.len()
}

impl Applied {
    fn of(revision: u64, verdicts: &Verdicts) -> Self {
        let odd = verdicts.iter().enumerate().filter(|(_, verdict)| **verdict != Ok(revision));
        Self { revision, odd: odd.map(|(index, verdict)| (index, verdict.clone())).collect() }
    }

    fn verdicts(&self, count: usize) -> Verdicts {
        let mut verdicts = vec![Ok(self.revision); count];
        for (index, verdict) in &self.odd {
            if let Some(place) = verdicts.get_mut(*index) {
                *place = verdict.clone();
            }
        }
        verdicts
    }
}
