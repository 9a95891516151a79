//! Requests that wait for a record, and records that wait for the store and the follower. Those who carry records to the
//! store ask it what to do, and tell it what became of that; each answer goes out once.
//!
//! Operators and each service wait in a flow of their own, and the flows share records alike: who sends much waits behind
//! itself.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::super::{Authority, Batch, FairQueue, Refusal, Request, Table};
use super::{Failure, STOPS, Verdicts};

/// Applied records whose verdicts are kept while an own append has not returned, at most.
const APPLIED_KEPT: usize = 4096;
/// Verdicts out of the ordinary in them, at most.
const ODD_KEPT: usize = 65_536;

/// How requests share records, and how many may wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long a request waits for others to share its record.
    pub window_ns: u64,
    /// Updates after which a record is full.
    pub record_updates: usize,
    /// Records on their way to the store at a time.
    pub records_open: usize,
    /// Requests that may wait. Services leave an eighth to operators.
    pub requests_waiting: usize,
    /// Updates that may wait. The same.
    pub updates_waiting: usize,
}

/// Who waits for an answer, and until when.
struct Ticket<T> {
    deadline_ns: u64,
    /// Gone once it was answered.
    who: Option<T>,
}

/// A request that waits for its record.
struct Waiting<T> {
    request: Request,
    ticket: Ticket<T>,
    since_ns: u64,
    /// It was on its way before, and may be in the store.
    tried: bool,
}

/// A record on its way to the store.
struct Open<T> {
    batch: Arc<Batch>,
    tickets: Vec<Ticket<T>>,
}

/// Who is answered, and what.
pub type Settled<T> = (T, Result<u64, Failure>);

/// A record of ours that was applied here, with those who wait for it.
pub struct Done<T> {
    revision: u64,
    open: Open<T>,
    /// `None`: the table took it over with a snapshot, or so long ago that they are not known any more.
    verdicts: Option<Verdicts>,
}

/// What is to be done for the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Append this record.
    Append {
        /// What it is called until that is done.
        number: u64,
        batch: Arc<Batch>,
    },
    /// Wait until something changes, or for this long.
    Wait(Option<u64>),
}

/// An applied record while an own append has not returned: it may be that one.
struct Applied {
    revision: u64,
    /// Verdicts other than "at this revision", by number of the request.
    odd: Vec<(usize, Result<u64, Refusal>)>,
}

/// All of it. `T` is who is to be answered.
pub struct Queue<T> {
    bounds: Bounds,
    waiting: FairQueue<Authority, Waiting<T>>,
    updates_waiting: usize,
    /// Records whose append has not returned, by number.
    open: BTreeMap<u64, Open<T>>,
    next_number: u64,
    /// Clients and AAs named in them.
    clients: HashSet<(Authority, u64)>,
    aas: HashSet<Ipv4Addr>,
    /// Records among them that change the policy.
    policies: usize,
    /// Records in the store that the follower has not applied, by revision.
    committed: BTreeMap<u64, Open<T>>,
    applied: VecDeque<Applied>,
    odd: usize,
    applied_revision: u64,
    /// When the last own record was settled, and how many requests it had and were waiting then.
    settled_ns: Option<u64>,
    askers: usize,
    /// No ticket expires before this.
    expiry_ns: Option<u64>,
}

impl<T> Queue<T> {
    /// Of a server whose table is at this revision.
    pub fn at(revision: u64, bounds: Bounds) -> Self {
        Self {
            bounds,
            waiting: FairQueue::default(),
            updates_waiting: 0,
            open: BTreeMap::new(),
            next_number: 0,
            clients: HashSet::new(),
            aas: HashSet::new(),
            policies: 0,
            committed: BTreeMap::new(),
            applied: VecDeque::new(),
            odd: 0,
            applied_revision: revision,
            settled_ns: None,
            askers: 0,
            expiry_ns: None,
        }
    }

    /// Takes a request. Returns whether there may be a record to append.
    ///
    /// # Errors
    /// Too much waits: who is to be told so.
    pub fn submit(&mut self, request: Request, who: T, deadline_ns: u64, now_ns: u64) -> Result<bool, Settled<T>> {
        let updates = weight(&request);
        let bounds = &self.bounds;
        // What services may not fill is left for operators.
        let room = |max: usize| if request.authority.is_operator() { max } else { max - max / 8 };
        let updates_room = room(bounds.updates_waiting);
        if self.waiting.len() >= room(bounds.requests_waiting) || self.updates_waiting + updates > updates_room {
            let why = format!(
                "overloaded: {} requests with {} updates wait for the store, nothing was changed; try again later",
                self.waiting.len(),
                self.updates_waiting
            );
            return Err((who, Err(Failure::Busy(why))));
        }
        self.expiry_ns = Some(self.expiry_ns.map_or(deadline_ns, |expiry_ns| expiry_ns.min(deadline_ns)));
        self.updates_waiting += updates;
        let ticket = Ticket { deadline_ns, who: Some(who) };
        let authority = request.authority;
        self.waiting.push_back(authority, updates, Waiting { request, ticket, since_ns: now_ns, tried: false });
        // In between, whoever appends waits for one of these or for the window to end.
        let count = self.waiting.len();
        Ok(count == 1 || count == self.expected() || self.updates_waiting >= self.bounds.record_updates)
    }

    /// Puts requests back in front of all others, in their order.
    fn push_back(&mut self, again: Vec<(Request, Ticket<T>)>, now_ns: u64) {
        for (request, ticket) in again.into_iter().rev() {
            let updates = weight(&request);
            self.updates_waiting += updates;
            let authority = request.authority;
            self.waiting.push_front(authority, updates, Waiting { request, ticket, since_ns: now_ns, tried: true });
        }
    }

    /// The next record, if there is one to append now.
    ///
    /// With nothing on its way a request goes at once, unless those who were answered just now are likely to ask again
    /// and share its record. Otherwise it waits for others to share its record, and for records that name the same
    /// client or AA: the order of those is kept, and only its own flow waits with it.
    pub fn next(&mut self, now_ns: u64) -> Next {
        if self.open.len() >= self.bounds.records_open.max(1) {
            return Next::Wait(None);
        }
        let ready = self.waiting.heads().filter(|(_, head)| !self.conflicts(&head.request));
        let Some(since_ns) = ready.map(|(_, head)| head.since_ns).min() else { return Next::Wait(None) };
        let left_ns = self.patience(since_ns, now_ns);
        if self.updates_waiting < self.bounds.record_updates && left_ns > 0 {
            return Next::Wait(Some(left_ns));
        }
        self.open_record()
    }

    /// How much longer requests, of which the first waits since then, should wait for others.
    fn patience(&self, since_ns: u64, now_ns: u64) -> u64 {
        let left_ns = |from_ns: u64| self.bounds.window_ns.saturating_sub(now_ns.saturating_sub(from_ns));
        if !self.open.is_empty() || !self.committed.is_empty() {
            return left_ns(since_ns);
        }
        match self.settled_ns {
            Some(settled_ns) if self.waiting.len() < self.expected() => left_ns(settled_ns),
            _ => 0,
        }
    }

    /// How many requests are likely to wait soon after a record was settled: most of those who asked before.
    fn expected(&self) -> usize {
        self.askers - self.askers / 8
    }

    fn open_record(&mut self) -> Next {
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
            if updates > 0 && updates + more > self.bounds.record_updates {
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
    pub fn alone(&self, number: u64) -> bool {
        self.open.len() == 1 && self.open.contains_key(&number) && self.committed.is_empty()
    }

    /// A record is not appended: these verdicts were foreseen.
    pub fn foreseen(&mut self, number: u64, verdicts: Verdicts) -> Option<Done<T>> {
        let open = self.close(number)?;
        Some(Done { revision: 0, open, verdicts: Some(verdicts) })
    }

    /// Takes a record out whose append has returned.
    fn close(&mut self, number: u64) -> Option<Open<T>> {
        let open = self.open.remove(&number)?;
        self.name(&open.batch, false);
        Some(open)
    }

    /// A record of ours is in the store. Returns it if it was applied already.
    pub fn appended(&mut self, number: u64, revision: u64, now_ns: u64) -> Option<Done<T>> {
        let open = self.close(number)?;
        let done = if revision > self.applied_revision {
            self.committed.insert(revision, open);
            None
        } else {
            self.settled(open.tickets.len(), now_ns);
            let found = self.applied.iter().find(|applied| applied.revision == revision);
            let verdicts = found.map(|applied| applied.verdicts(open.tickets.len()));
            Some(Done { revision, open, verdicts })
        };
        if self.open.is_empty() {
            self.applied.clear();
            self.odd = 0;
        }
        done
    }

    /// The store did not take a record, or did not say so: then it is `unknown` whether it has it. A client with a number
    /// need not hear of that: its request is sent again, and the log sees to it that it happens once.
    pub fn failed(&mut self, number: u64, why: &dyn Display, unknown: bool, now_ns: u64) -> Vec<Settled<T>> {
        let Some(Open { batch, tickets }) = self.close(number) else { return Vec::new() };
        let (mut again, mut settled) = (Vec::new(), Vec::new());
        for (request, ticket) in Arc::unwrap_or_clone(batch).requests.into_iter().zip(tickets) {
            if unknown && request.client != 0 && ticket.who.is_some() {
                again.push((request, ticket));
            } else {
                let failure = || if unknown { Failure::unknown(why) } else { Failure::Store(why.to_string()) };
                settled.extend(ticket.who.map(|who| (who, Err(failure()))));
            }
        }
        self.push_back(again, now_ns);
        settled
    }

    /// A record was applied, whoever appended it. Returns it if it is one of ours that is known to be.
    pub fn applied(&mut self, revision: u64, verdicts: Verdicts, now_ns: u64) -> Option<Done<T>> {
        self.applied_revision = revision;
        match self.committed.remove(&revision) {
            Some(open) => {
                self.settled(open.tickets.len(), now_ns);
                Some(Done { revision, open, verdicts: Some(verdicts) })
            }
            None => {
                if !self.open.is_empty() {
                    self.keep(Applied::of(revision, &verdicts));
                }
                None
            }
        }
    }

    fn settled(&mut self, requests: usize, now_ns: u64) {
        self.settled_ns = Some(now_ns);
        self.askers = requests + self.waiting.len();
    }

    /// The table jumped to this revision. Returns our records that were passed over.
    pub fn jumped(&mut self, revision: u64) -> Vec<Done<T>> {
        self.applied_revision = revision;
        let later = self.committed.split_off(&(revision + 1));
        let passed = std::mem::replace(&mut self.committed, later);
        passed.into_iter().map(|(revision, open)| Done { revision, open, verdicts: None }).collect()
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

    /// When to look for expired requests next.
    pub fn expiry_ns(&self) -> Option<u64> {
        self.expiry_ns
    }

    /// Answers those whose time is over; `why` is what is wrong with the store.
    pub fn expired(&mut self, now_ns: u64, why: &str) -> Vec<Settled<T>> {
        let late = || Failure::Store(format!("the store did not take it in time, nothing was changed: {why}"));
        let lost = || Failure::unknown(format_args!("no answer of the store in time: {why}"));
        let mut settled = Vec::new();
        for entry in self.waiting.take(|entry| entry.ticket.deadline_ns <= now_ns) {
            self.updates_waiting -= weight(&entry.request);
            let failure = if entry.tried { lost() } else { late() };
            settled.extend(entry.ticket.who.map(|who| (who, Err(failure))));
        }
        let mut expiry_ns = self.waiting.iter().map(|entry| entry.ticket.deadline_ns).min();
        for open in self.open.values_mut().chain(self.committed.values_mut()) {
            for ticket in open.tickets.iter_mut().filter(|ticket| ticket.who.is_some()) {
                if ticket.deadline_ns <= now_ns {
                    settled.extend(ticket.who.take().map(|who| (who, Err(lost()))));
                } else {
                    expiry_ns =
                        Some(expiry_ns.map_or(ticket.deadline_ns, |expiry_ns| expiry_ns.min(ticket.deadline_ns)));
                }
            }
        }
        self.expiry_ns = expiry_ns;
        settled
    }

    /// The server ends: answers everybody who waits.
    pub fn drain(&mut self) -> Vec<Settled<T>> {
        let mut settled = Vec::new();
        for Waiting { ticket, tried, .. } in self.waiting.take(|_| true) {
            let failure = if tried { Failure::unknown(STOPS) } else { Failure::stops() };
            settled.extend(ticket.who.map(|who| (who, Err(failure))));
        }
        let open = std::mem::take(&mut self.open).into_values();
        let on_the_way = open.chain(std::mem::take(&mut self.committed).into_values()).flat_map(|open| open.tickets);
        settled.extend(on_the_way.filter_map(|ticket| Some((ticket.who?, Err(Failure::unknown(STOPS))))));
        self.updates_waiting = 0;
        settled
    }

    /// Whether requests wait for a record.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Requests that wait or whose record is on its way.
    pub fn requests(&self) -> usize {
        let open = self.open.values().chain(self.committed.values());
        self.waiting.len() + open.map(|open| open.tickets.len()).sum::<usize>()
    }
}

impl<T> Done<T> {
    /// What everybody is told. Where the verdicts are not known, `check` asks the table that is shown now, which remembers
    /// clients with a number.
    pub fn answers(self, check: impl Fn(&Request) -> Result<Option<u64>, Refusal>) -> Vec<Settled<T>> {
        let Self { revision, open: Open { batch, tickets }, verdicts } = self;
        let recollect = |request: &Request| match check(request) {
            Ok(Some(before)) => Ok(before),
            // A later request of its client hides what became of it.
            _ => Err(Failure::unknown(format_args!("the record of revision {revision} is known from a snapshot only"))),
        };
        let outcomes: Vec<Result<u64, Failure>> = match verdicts {
            Some(verdicts) => verdicts.into_iter().map(|verdict| verdict.map_err(Failure::from)).collect(),
            None => batch.requests.iter().map(recollect).collect(),
        };
        tickets.into_iter().zip(outcomes).filter_map(|(ticket, outcome)| Some((ticket.who?, outcome))).collect()
    }
}

/// The verdicts on a record that would change nothing. They count only where nobody else writes, and while nothing else is
/// on its way: otherwise the table here may not be the latest. A refusal of a client with a number goes through the log
/// all the same, which remembers it: a late copy of the request must not be carried out after its client was told that it
/// was not.
pub fn foresee(table: &Table, batch: &Batch) -> Option<Verdicts> {
    let verdict = |request: &Request| table.check(request).transpose();
    let refused = |request: &Request| request.client != 0 && matches!(verdict(request), Some(Err(_)));
    if batch.requests.iter().any(refused) {
        return None;
    }
    batch.requests.iter().map(verdict).collect()
}

/// What a request counts for in a record: its changes.
pub fn weight(request: &Request) -> usize {
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

#[cfg(test)]
mod tests {
    use super::super::super::Update;
    use super::*;
    use crate::address::Locator;

    const BOUNDS: Bounds =
        Bounds { window_ns: 0, record_updates: 8, records_open: 4, requests_waiting: 64, updates_waiting: 64 };
    const LATE: u64 = 1000;

    fn set(k: u8, client: u64, sequence: u64) -> Request {
        let locator = Locator { tor_la: Ipv4Addr::new(10, 1, 0, k), anycast_la: Ipv4Addr::new(10, 255, 255, 1) };
        Request { client, sequence, ..Request::once(vec![Update::set(Ipv4Addr::new(20, 0, 0, k), locator)]) }
    }

    /// The next record.
    fn record(queue: &mut Queue<u8>) -> (u64, Arc<Batch>) {
        match queue.next(0) {
            Next::Append { number, batch } => (number, batch),
            Next::Wait(left) => panic!("nothing to append for {left:?}"),
        }
    }

    #[test]
    fn what_a_later_request_hides_was_not_refused() {
        let (mut queue, mut table) = (Queue::at(0, BOUNDS), Table::default());
        for sequence in 1..=2 {
            queue.submit(set(sequence as u8, 7, sequence), sequence as u8, LATE, 0).expect("there is room");
            let (number, batch) = record(&mut queue);
            assert!(queue.appended(number, sequence, 0).is_none(), "it is not applied here");
            table.apply(sequence, &batch);
        }
        let passed = queue.jumped(2).into_iter();
        let answers: Vec<_> = passed.flat_map(|done| done.answers(|request| table.check(request))).collect();
        let [(1, Err(Failure::Store(why))), (2, Ok(2))] = answers.as_slice() else { panic!("{answers:?}") };
        assert!(why.contains("unknown"), "it was carried out: {why}");
    }

    #[test]
    fn services_leave_an_eighth_of_the_queue_to_operators() {
        let mut queue = Queue::at(0, BOUNDS);
        let of = |authority, k| Request { authority, ..set(k, 0, 0) };
        let taken = (0..64).take_while(|k| queue.submit(of(Authority::Service(7), *k), *k, LATE, 0).is_ok()).count();
        assert_eq!(taken, 56);
        assert!(queue.submit(of(Authority::Service(8), 64), 64, LATE, 0).is_err(), "it is not a service's own");
        let taken = (64..128).take_while(|k| queue.submit(of(Authority::Operator, *k), *k, LATE, 0).is_ok()).count();
        assert_eq!(taken, 8);
    }

    #[test]
    fn a_server_that_ends_says_what_it_does_not_know() {
        let mut queue = Queue::at(0, BOUNDS);
        queue.submit(set(1, 0, 0), 1, LATE, 0).expect("there is room");
        record(&mut queue);
        queue.submit(set(1, 0, 0), 2, LATE, 0).expect("there is room");
        let answers = queue.drain();
        let [(2, Err(waits)), (1, Err(on_the_way))] = answers.as_slice() else { panic!("{answers:?}") };
        assert!(waits.to_string().contains("nothing was changed"), "{waits}");
        assert!(on_the_way.to_string().contains("is unknown: the server stops"), "{on_the_way}");
    }
}
