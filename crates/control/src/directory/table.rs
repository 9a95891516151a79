//! All mappings at one revision of the log.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::Ipv4Addr;

use weft_wire::directory::{Entry, Status};

use super::update::{Batch, Change, Reason, Refusal, Request, Update};
use crate::address::{Locator, Mapping};

/// Clients whose last request is remembered; the one that was silent longest is forgotten first.
pub(super) const CLIENTS_MAX: usize = 4096;

/// What the directory knows of an AA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it is; `None` once it was deleted. The record stays, so that versions never go back.
    pub locator: Option<Locator>,
    /// Whose it is.
    pub service: u32,
    /// Version of this state.
    pub version: u64,
}

/// The last request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) sequence: u64,
    pub(super) revision: u64,
}

/// The mappings at one revision.
///
/// Revisions need not be dense. A store should start them at a number that no earlier store of the same fabric has
/// reached (time since 1970 in microseconds does), so that agents that knew the lost store believe the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    records: HashMap<Ipv4Addr, Record, BuildHasherDefault<AddressHasher>>,
    clients: BTreeMap<u64, Last>,
    mapped: usize,
    revision: u64,
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
        self.records.get(&aa).copied()
    }

    /// The AA's mapping.
    pub fn mapping(&self, aa: Ipv4Addr) -> Option<Mapping> {
        let record = self.record(aa)?;
        Some(Mapping { locator: record.locator?, version: record.version })
    }

    /// Every record, deleted ones included, in order of AAs.
    pub fn records(&self) -> Vec<(Ipv4Addr, Record)> {
        let mut records: Vec<_> = self.records.iter().map(|(aa, record)| (*aa, *record)).collect();
        records.sort_unstable_by_key(|(aa, _)| *aa);
        records
    }

    /// The first `limit` mappings from AA `from` on, in order of AAs.
    pub fn mappings_from(&self, from: Ipv4Addr, limit: usize) -> Vec<(Ipv4Addr, Record)> {
        let wanted = |(aa, record): &(Ipv4Addr, Record)| *aa >= from && record.locator.is_some();
        let mut rows: Vec<_> = self.records.iter().map(|(aa, record)| (*aa, *record)).filter(wanted).collect();
        if rows.len() > limit && limit > 0 {
            rows.select_nth_unstable_by_key(limit - 1, |(aa, _)| *aa);
        }
        rows.truncate(limit);
        rows.sort_unstable_by_key(|(aa, _)| *aa);
        rows
    }

    /// Answers one entry of a question from an asker that wants at least revision `revision_min`.
    pub fn answer(&self, question: Entry, revision_min: u64) -> Entry {
        let record = self.records.get(&question.aa);
        let version = record.map_or(0, |record| record.version);
        let nowhere = Entry::question(question.aa, version);
        if self.revision < revision_min || version < question.version {
            return Entry { status: Status::Behind, version: question.version, ..nowhere };
        }
        match record.and_then(|record| record.locator) {
            Some(Locator { tor_la, anycast_la }) => {
                Entry { aa: question.aa, tor_la, anycast_la, status: Status::Ok, version }
            }
            None => Entry { status: Status::Unknown, ..nowhere },
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
        verdicts
    }

    /// What [`Self::apply`] would say if the request came next, and whether it was applied before.
    ///
    /// # Errors
    /// Why it would change nothing.
    pub fn check(&self, request: &Request) -> Result<Option<u64>, Refusal> {
        if let Some(revision) = self.applied_before(request)? {
            return Ok(Some(revision));
        }
        for (index, update) in request.updates.iter().enumerate() {
            self.check_update(update).map_err(|reason| Refusal::Update { number: index + 1, aa: update.aa, reason })?;
        }
        Ok(None)
    }

    fn applied_before(&self, request: &Request) -> Result<Option<u64>, Refusal> {
        let Request { client, sequence, .. } = *request;
        match self.clients.get(&client) {
            Some(last) if sequence == last.sequence => Ok(Some(last.revision)),
            Some(last) if sequence < last.sequence => {
                Err(Refusal::SequenceBack { client, sequence, last: last.sequence })
            }
            _ => Ok(None),
        }
    }

    fn check_update(&self, update: &Update) -> Result<(), Reason> {
        let record = self.record(update.aa);
        let current = record.map_or(0, |record| record.version);
        if let Some(expected) = update.if_version.filter(|expected| *expected != current) {
            return Err(Reason::VersionMismatch { expected, current });
        }
        if let Some(version) = update.version.filter(|version| *version <= current) {
            return Err(Reason::VersionBack { version, current });
        }
        if update.change == Change::Delete && record.and_then(|record| record.locator).is_none() {
            return Err(Reason::NotFound);
        }
        Ok(())
    }

    fn apply_request(&mut self, revision: u64, request: &Request) -> Result<u64, Refusal> {
        if let Some(before) = self.check(request)? {
            return Ok(before);
        }
        for update in &request.updates {
            self.apply_update(revision, update);
        }
        if request.client != 0 {
            self.remember(request.client, Last { sequence: request.sequence, revision });
        }
        Ok(revision)
    }

    fn apply_update(&mut self, revision: u64, update: &Update) {
        let before = self.record(update.aa);
        let current = before.map_or(0, |record| record.version);
        let version = update.version.unwrap_or(revision.max(current.saturating_add(1)));
        let record = match update.change {
            Change::Set { locator, service } => Record { locator: Some(locator), service, version },
            Change::Delete => Record { locator: None, service: before.map_or(0, |record| record.service), version },
        };
        self.put(update.aa, record);
    }

    pub(super) fn put(&mut self, aa: Ipv4Addr, record: Record) {
        self.mapped += usize::from(record.locator.is_some());
        let before = self.records.insert(aa, record);
        self.mapped -= usize::from(before.is_some_and(|before| before.locator.is_some()));
    }

    pub(super) fn remember(&mut self, client: u64, last: Last) {
        self.clients.insert(client, last);
        if self.clients.len() > CLIENTS_MAX {
            let silent = self.clients.iter().min_by_key(|(client, last)| (last.revision, **client));
            if let Some(silent) = silent.map(|(client, _)| *client) {
                self.clients.remove(&silent);
            }
        }
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = (u64, Last)> + '_ {
        self.clients.iter().map(|(client, last)| (*client, *last))
    }
}

/// Hashes an IPv4 address with one multiplication: AAs come from one dense block and only operators choose them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
