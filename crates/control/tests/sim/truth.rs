//! What is true in the simulated system, whoever knows it: the agreed table, what every service might know when, the
//! histories of updates, and where packets ended.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use weft_control::address::{Locator, Mapping};
use weft_control::directory::{Batch, Table, Update};

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
    pub(super) fn commit(&mut self, revision: u64, batch: &Batch) {
        self.table.apply(revision, batch);
        self.known.resize_with(SERVICES as usize, Known::new);
        for (service, aa) in (0..SERVICES).flat_map(|service| (0..AAS).map(move |k| (service, aa(k)))) {
            if let Some(mapping) = self.mapping_for(service, aa) {
                self.known[service as usize].insert((aa, mapping.version), mapping.locator);
                self.last_known.insert((service, aa, mapping.version), revision);
            }
        }
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
