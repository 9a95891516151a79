//! All mappings at one revision of the log.

use std::net::Ipv4Addr;

use weft_wire::directory::{AnswerMut, Entry, QuestionMut, Status};

use super::authority::Authority;
use super::clients::{Clients, Last};
use super::fault::{Fault, UpdateFault};
use super::hash::mix;
use super::holdings::Holdings;
use super::policy::{Policy, PolicyChange, RULES_MAX};
use super::rows::{Row, Rows};
use super::update::{Batch, Change, Refusal, Request, Update};
use crate::address::{Locator, Mapping};

/// What the directory knows of an AA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it is; `None` once it was deleted. The record stays for long, so that the AA is still its service's.
    pub locator: Option<Locator>,
    pub service: u32,
    /// LA of the host that has it, where its agent listens; `None` if that was not said.
    pub host_la: Option<Ipv4Addr>,
    /// Version of this state.
    pub version: u64,
}

/// The mappings at one revision.
///
/// Revisions need not be dense. A store should start them at a number that no earlier store of the same fabric has
/// reached (time since 1970 in microseconds does), so that agents that knew the lost store believe the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    records: Rows,
    policy: Policy,
    clients: Clients,
    holdings: Holdings,
    mapped: usize,
    revision: u64,
    /// The highest version of a deleted mapping whose record went: what is set where there is none has a higher one, so that
    /// versions never go back.
    forgotten: u64,
    /// Sum of the hashes of all records.
    sum: u64,
}

impl Table {
    /// An empty table at this revision.
    pub fn at(revision: u64) -> Self {
        Self { revision, ..Self::default() }
    }

    /// The revision of the last batch applied.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many AAs have a mapping.
    pub fn mapped(&self) -> usize {
        self.mapped
    }

    /// What is known of an AA, deleted ones included.
    pub fn record(&self, aa: Ipv4Addr) -> Option<Record> {
        self.records.get(aa).map(Row::record)
    }

    /// How many records a service has, deleted ones included.
    pub fn rows(&self, service: u32) -> usize {
        self.holdings.rows(service)
    }

    /// The AA's mapping.
    pub fn mapping(&self, aa: Ipv4Addr) -> Option<Mapping> {
        let record = self.record(aa)?;
        Some(Mapping { locator: record.locator?, version: record.version })
    }

    /// Every record, deleted ones included, in order of AAs.
    pub fn records(&self) -> Vec<(Ipv4Addr, Record)> {
        let mut records: Vec<_> = self.records.iter().collect();
        records.sort_unstable_by_key(|(aa, _)| *aa);
        records
    }

    /// Every record with a mapping, in no particular order.
    pub fn mapped_records(&self) -> impl Iterator<Item = (Ipv4Addr, Record)> + '_ {
        self.records.iter().filter(|(_, record)| record.locator.is_some())
    }

    /// The AAs that have a mapping of which `known` holds, in no particular order.
    pub fn mapped_aas(&self, known: impl Fn(&Record) -> bool) -> Vec<Ipv4Addr> {
        let mapped = |record: &Record| record.locator.is_some() && known(record);
        self.records.iter().filter(|(_, record)| mapped(record)).map(|(aa, _)| aa).collect()
    }

    /// Whether servers of service `from` may be told where AAs of service `to` are.
    pub fn allows(&self, from: u32, to: u32) -> bool {
        self.policy.allows(from, to)
    }

    /// The policy: every rule that differs from the default, in order of services.
    pub fn policy(&self) -> Vec<PolicyChange> {
        self.policy.rules()
    }

    /// A number that is equal for tables that are equal, revision included, and differs for others but once in 2^64. It
    /// costs nothing: servers can be compared at any revision.
    pub fn hash(&self) -> u64 {
        let (clients, policy) = (self.clients.hash(), self.policy.hash());
        mix(0x0074_6162_6c65, &[self.revision, self.sum, clients, policy, self.forgotten])
    }

    /// Answers one entry of a question from an asker of `asker_service` that wants at least revision `revision_min`.
    ///
    /// An AA that the asker may not reach is answered in every byte as one that was never set.
    pub fn answer(&self, question: Entry, revision_min: u64, asker_service: u32) -> Entry {
        self.answer_from(question, revision_min, asker_service)
    }

    /// Answers all entries of a question, each as [`Self::answer`] does.
    pub fn answer_all<'a>(&self, question: QuestionMut<'a>, asker_service: u32) -> AnswerMut<'a> {
        self.records.touch((0..question.count()).map(|index| question.aa(index)));
        let revision_min = question.revision();
        question.answer(self.revision, |question| self.answer_from(question, revision_min, asker_service))
    }

    fn answer_from(&self, question: Entry, revision_min: u64, asker_service: u32) -> Entry {
        if self.revision < revision_min {
            return behind(question);
        }
        let row = self.records.get(question.aa).filter(|row| self.policy.allows(asker_service, row.service()));
        let Some(row) = row else {
            return Entry { status: Status::Unknown, ..Entry::question(question.aa, 0) };
        };
        let version = row.version();
        if version < question.version {
            return behind(question);
        }
        match row.locator() {
            Some(Locator { tor_la, anycast_la }) => {
                Entry { aa: question.aa, tor_la, anycast_la, status: Status::Ok, version }
            }
            None => Entry { status: Status::Unknown, ..Entry::question(question.aa, version) },
        }
    }

    /// Applies a record of the log and returns the verdict on each request: the revision at which it was applied,
    /// which is an earlier one for a request that came again, or why it changed nothing.
    ///
    /// # Panics
    /// When `revision` does not rise: the log would be out of order.
    pub fn apply(&mut self, revision: u64, batch: &Batch) -> Vec<Result<u64, Refusal>> {
        assert!(revision > self.revision, "revision {revision} after {}: the log is in order", self.revision);
        let verdicts = batch.requests.iter().map(|request| self.apply_request(revision, request)).collect();
        self.revision = revision;
        self.forget_deleted();
        verdicts
    }

    /// What [`Self::apply`] would say if the request came next, and whether it was applied before.
    ///
    /// # Errors
    /// Why it would change nothing, or changed nothing when it came before.
    pub fn check(&self, request: &Request) -> Result<Option<u64>, Refusal> {
        if let Some(verdict) = self.judged_before(request) {
            return verdict.map(Some);
        }
        self.fault(request).map_or(Ok(None), |fault| Err(fault.into()))
    }

    /// The verdict on a request that came before. A refusal is kept like an applied request: a copy of the request that
    /// comes late must not do what its client was told is not done.
    pub fn judged_before(&self, request: &Request) -> Option<Result<u64, Refusal>> {
        let Request { authority, client, sequence, .. } = *request;
        let last = self.clients.get(authority, client).filter(|last| sequence <= last.sequence)?;
        Some(if sequence < last.sequence {
            Err(Refusal::SequenceBack { client, sequence, last: last.sequence })
        } else {
            last.fault.map_or(Ok(last.revision), |fault| Err(fault.into()))
        })
    }

    fn fault(&self, request: &Request) -> Option<Fault> {
        let new_rules = request.policy.iter().filter(|change| self.policy.grows_by(change)).count();
        if new_rules > 0 && self.policy.len() + new_rules > RULES_MAX {
            return Some(Fault::PolicyFull);
        }
        let numbered = (1..).zip(&request.updates);
        let mut faults = numbered.filter_map(|(number, update)| {
            let reason = self.check_update(update)?;
            Some(Fault::Update { number, aa: update.aa, reason })
        });
        faults.next()
    }

    fn check_update(&self, update: &Update) -> Option<UpdateFault> {
        let record = self.record(update.aa);
        let current = record.map_or(0, |record| record.version);
        if let Some(expected) = update.if_version.filter(|expected| *expected != current) {
            return Some(UpdateFault::VersionMismatch { expected, current });
        }
        let newest = if record.is_none() { self.forgotten } else { current };
        if let Some(version) = update.version.filter(|version| *version <= newest) {
            return Some(UpdateFault::VersionBack { version, current: newest });
        }
        let absent = record.and_then(|record| record.locator).is_none();
        (update.change == Change::Delete && absent).then_some(UpdateFault::NotFound)
    }

    fn apply_request(&mut self, revision: u64, request: &Request) -> Result<u64, Refusal> {
        if let Some(verdict) = self.judged_before(request) {
            return verdict;
        }
        let fault = self.fault(request);
        if fault.is_none() {
            for update in &request.updates {
                self.apply_update(revision, update);
            }
            for change in &request.policy {
                self.policy.set(change);
            }
        }
        if request.client != 0 {
            self.remember(request.authority, request.client, Last { sequence: request.sequence, revision, fault });
        }
        fault.map_or(Ok(revision), |fault| Err(fault.into()))
    }

    fn apply_update(&mut self, revision: u64, update: &Update) {
        let before = self.record(update.aa);
        let current = before.map_or(0, |record| record.version);
        let version = update.version.unwrap_or(revision.max(current.saturating_add(1)));
        let record = match update.change {
            Change::Set { locator, service, host_la } => Record { locator: Some(locator), service, host_la, version },
            Change::Delete => {
                Record { locator: None, service: before.map_or(0, |record| record.service), host_la: None, version }
            }
        };
        self.put(update.aa, record);
    }

    pub(super) fn put(&mut self, aa: Ipv4Addr, record: Record) {
        self.mapped += usize::from(record.locator.is_some());
        self.sum = self.sum.wrapping_add(record.hash(aa));
        let before = self.records.insert(aa, &record);
        if let Some(before) = before {
            self.mapped -= usize::from(before.locator.is_some());
            self.sum = self.sum.wrapping_sub(before.hash(aa));
        }
        self.holdings.note(aa, before.as_ref(), &record);
    }

    /// Lets records of deleted mappings go that are too many. After each record of the log, so that a table that was loaded
    /// and one that was kept do the same.
    fn forget_deleted(&mut self) {
        while let Some((version, aa)) = self.holdings.surplus(self.revision) {
            let Some(record) = self.records.remove(aa) else { return };
            self.sum = self.sum.wrapping_sub(record.hash(aa));
            self.holdings.drop(aa, &record);
            self.forgotten = self.forgotten.max(version);
        }
    }

    /// The highest version of a record that went.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    pub(super) fn set_forgotten(&mut self, version: u64) {
        self.forgotten = version;
    }

    pub(super) fn set_rule(&mut self, change: &PolicyChange) {
        self.policy.set(change);
    }

    pub(super) fn remember(&mut self, authority: Authority, client: u64, last: Last) {
        self.clients.remember(authority, client, last);
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = (Authority, u64, Last)> + '_ {
        self.clients.iter()
    }
}

/// The answer of a server that has not applied what the asker knows of.
fn behind(question: Entry) -> Entry {
    Entry { status: Status::Behind, ..Entry::question(question.aa, question.version) }
}

impl Record {
    fn hash(&self, aa: Ipv4Addr) -> u64 {
        let address = |address: Ipv4Addr| u64::from(u32::from(address));
        let (there, place) = self
            .locator
            .map_or((0, 0), |Locator { tor_la, anycast_la }| (1, address(tor_la) << 32 | address(anycast_la)));
        let host = self.host_la.map_or(0, |la| address(la) << 2 | 2);
        mix(0x7265_636f_7264, &[address(aa) << 32 | u64::from(self.service), place, host | there, self.version])
    }
}
