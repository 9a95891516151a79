//! What is true in the simulated system, whoever knows it: the agreed table, what every service might know when, the
//! histories of updates, and where packets ended.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use weft_control::address::{Locator, Mapping};
use weft_control::directory::{Authority, Batch, Request, Table, Update};

use super::clients::operation;
use super::history::{self, Action, Operation, Outcome};
use super::{AAS, SERVICES, aa};

pub(super) const ANYCAST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 1);

/// Mappings of one service's view, with their places.
pub(super) type Known = BTreeMap<(Ipv4Addr, u64), Locator>;

/// What is true.
#[derive(Default)]
pub(super) struct Truth {
    /// After the whole log.
    pub(super) table: Table,
    /// The table's hash at each revision.
    hashes: BTreeMap<u64, u64>,
    /// When each record was committed.
    committed_ns: BTreeMap<u64, u64>,
    /// Where requests of clients with a number were applied.
    applied: BTreeMap<(Authority, u64, u64), u64>,
    /// Requests whose clients were told that nothing was changed, and believed it.
    never: BTreeSet<(Authority, u64, u64)>,
    /// By service: every mapping that it ever might know.
    known: Vec<Known>,
    /// By service, AA and version: the last revision at which it might know the mapping.
    last_known: BTreeMap<(u32, Ipv4Addr, u64), u64>,
    /// By AA; `None` where an answer said nothing about this AA.
    histories: BTreeMap<Ipv4Addr, Vec<Option<Operation>>>,
    delivered: BTreeSet<(usize, Ipv4Addr)>,
    /// Packets that came to a wrong ToR since they were last forgotten.
    pub(super) strayed: u64,
}

impl Truth {
    /// What is true of a log that is empty.
    pub(super) fn at(revision: u64) -> Self {
        let table = Table::at(revision);
        let hashes = BTreeMap::from([(revision, table.hash())]);
        Self { table, hashes, ..Self::default() }
    }

    /// A record enters the log.
    pub(super) fn commit(&mut self, now_ns: u64, revision: u64, batch: &Batch) {
        let services: Vec<Vec<_>> = batch.requests.iter().map(|request| self.services(request)).collect();
        let verdicts = self.table.apply(revision, batch);
        for ((request, services), verdict) in batch.requests.iter().zip(services).zip(verdicts) {
            if verdict == Ok(revision) {
                self.carried_out(revision, request, batch, &services);
            }
        }
        self.hashes.insert(revision, self.table.hash());
        self.committed_ns.insert(revision, now_ns);
        self.known.resize_with(SERVICES as usize, Known::new);
        for (service, aa) in (0..SERVICES).flat_map(|service| (0..AAS).map(move |k| (service, aa(k)))) {
            if let Some(mapping) = self.mapping_for(service, aa) {
                self.known[service as usize].insert((aa, mapping.version), mapping.locator);
                self.last_known.insert((service, aa, mapping.version), revision);
            }
        }
    }

    /// Whose the AAs of a request are.
    fn services(&self, request: &Request) -> Vec<Option<u32>> {
        request.updates.iter().map(|update| self.table.record(update.aa).map(|record| record.service)).collect()
    }

    fn carried_out(&mut self, revision: u64, request: &Request, batch: &Batch, services: &[Option<u32>]) {
        if let Authority::Service(own) = request.authority {
            for (update, service) in request.updates.iter().zip(services) {
                let named = |other: &&Request| other.updates.iter().any(|named| named.aa == update.aa);
                let alone = batch.requests.iter().filter(named).count() == 1;
                let foreign = service.is_some_and(|service| service != own);
                assert!(!(alone && foreign), "service {own} changed {} of service {service:?}", update.aa);
            }
        }
        if request.client != 0 {
            let name = (request.authority, request.client, request.sequence);
            let before = self.applied.insert(name, revision);
            // In one record it may stand twice.
            let once = before.is_none_or(|before| before == revision);
            assert!(once, "{name:?} was applied at {before:?} and again at {revision}");
            assert!(!self.never.contains(&name), "{name:?} was carried out, and its client told that nothing was");
        }
    }

    /// A client was told that nothing was changed by its request, and gives it up.
    pub(super) fn never(&mut self, request: &Request) {
        let name = (request.authority, request.client, request.sequence);
        assert!(!self.applied.contains_key(&name), "{name:?} was carried out, and its client told that nothing was");
        if request.client != 0 {
            self.never.insert(name);
        }
    }

    /// A server's table is what the log up to its revision says.
    pub(super) fn assert_prefix(&self, server: usize, table: &Table) {
        let hash = self.hashes.get(&table.revision());
        assert_eq!(
            hash,
            Some(&table.hash()),
            "server {server} at {} shows what the log does not say",
            table.revision()
        );
    }

    /// Since when there is more than this revision.
    pub(super) fn behind_since_ns(&self, revision: u64) -> Option<u64> {
        self.committed_ns.range(revision + 1..).next().map(|(_, at_ns)| *at_ns)
    }

    /// Where the AA is, if this service may know.
    pub(super) fn mapping_for(&self, service: u32, aa: Ipv4Addr) -> Option<Mapping> {
        let record = self.table.record(aa)?;
        self.table.mapping(aa).filter(|_| self.table.allows(service, record.service))
    }

    pub(super) fn known(&self, service: u32) -> &Known {
        &self.known[service as usize]
    }

    /// An agent that has seen `revision` puts a mapping in force that it did not have: at that revision or later its
    /// service might know it.
    pub(super) fn assert_not_withdrawn(&self, service: u32, aa: Ipv4Addr, version: u64, revision: u64) {
        let last = self.last_known.get(&(service, aa, version)).copied();
        assert!(
            last.is_some_and(|last| last >= revision),
            "service {service} was told of {aa} version {version} by an agent that had seen revision {revision}; last \
             allowed at {last:?}"
        );
    }

    pub(super) fn ask(&mut self, now_ns: u64, update: &Update) -> usize {
        let history = self.histories.entry(update.aa).or_default();
        history.push(Some(operation(now_ns, update)));
        history.len() - 1
    }

    pub(super) fn answer(&mut self, now_ns: u64, aa: Ipv4Addr, place: usize, outcome: Option<Outcome>) {
        let Some(operation) = self.histories.get_mut(&aa).map(|history| &mut history[place]) else { return };
        match (outcome, operation) {
            (Some(outcome), Some(operation)) => operation.answer = Some((now_ns, outcome)),
            (_, operation) => *operation = None,
        }
    }

    /// Every AA's history, ended by a read of what the log says, is linearizable: nothing acknowledged is lost.
    pub(super) fn assert_linearizable(&self, now_ns: u64, log: &Table) {
        for (aa, history) in &self.histories {
            let mut history: Vec<Operation> = history.iter().copied().flatten().collect();
            let (version, locator) = log.record(*aa).map_or((0, None), |record| (record.version, record.locator));
            let place = locator.map(|locator| u32::from(locator.tor_la).into());
            let found = Outcome::Found { version, place };
            history.push(Operation { action: Action::Read, asked_ns: now_ns, answer: Some((now_ns, found)) });
            if let Err(violation) = history::check(&history) {
                panic!("{aa}: {violation} in {history:#?}");
            }
        }
    }

    /// A packet of an agent's host left towards this ToR: true if it was the right one.
    pub(super) fn packet(&mut self, agent: usize, aa: Ipv4Addr, tor_la: Ipv4Addr) -> bool {
        let right = self.table.mapping(aa).is_some_and(|mapping| mapping.locator.tor_la == tor_la);
        if right {
            self.delivered.insert((agent, aa));
        } else {
            self.strayed += 1;
        }
        right
    }

    pub(super) fn delivered(&self, agent: usize, aa: Ipv4Addr) -> bool {
        self.delivered.contains(&(agent, aa))
    }

    pub(super) fn forget_packets(&mut self) {
        self.delivered.clear();
        self.strayed = 0;
    }
}
