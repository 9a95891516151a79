//! The cache: what is known of each AA, and when each entry wants attention.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::asker::Asked;
use super::counters::DropReason;
use crate::address::Mapping;

/// What is known of an AA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing yet: frames wait for the answer.
    Resolving(Attempt),
    /// Nothing, and not asked again before the deadline: frames are dropped for this reason.
    Negative(DropReason),
    /// This mapping, asked for again at the deadline.
    Fresh(Mapping),
    /// This mapping, in force while it is being asked for again.
    Confirming(Mapping, Attempt),
}

/// A look-up under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// When the look-up began.
    pub(super) began_ns: u64,
    /// Retries so far.
    pub(super) retries: u32,
    /// The servers asked last.
    pub(super) asked: Asked,
}

impl Attempt {
    pub(super) fn first(now_ns: u64) -> Self {
        Self { began_ns: now_ns, retries: 0, asked: Asked::new() }
    }
}

impl State {
    /// The mapping in force.
    pub(super) fn mapping(&self) -> Option<Mapping> {
        match self {
            Self::Fresh(mapping) | Self::Confirming(mapping, _) => Some(*mapping),
            Self::Resolving(_) | Self::Negative(_) => None,
        }
    }

    /// The look-up under way.
    pub(super) fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        match self {
            Self::Resolving(attempt) | Self::Confirming(_, attempt) => Some(attempt),
            Self::Negative(_) | Self::Fresh(_) => None,
        }
    }
}

#[derive(Debug)]
struct Entry {
    state: State,
    deadline_ns: Option<u64>,
}

/// Entries by AA, with their deadlines in order.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: BTreeMap<Ipv4Addr, Entry>,
    deadlines: BTreeSet<(u64, Ipv4Addr)>,
    resolving: usize,
}

impl Cache {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many look-ups without a mapping are under way.
    pub(super) fn resolving(&self) -> usize {
        self.resolving
    }

    pub(super) fn get(&self, aa: Ipv4Addr) -> Option<&State> {
        self.entries.get(&aa).map(|entry| &entry.state)
    }

    pub(super) fn attempt_mut(&mut self, aa: Ipv4Addr) -> Option<&mut Attempt> {
        self.entries.get_mut(&aa)?.state.attempt_mut()
    }

    /// Sets what is known, and when the entry wants attention (`None`: when something arrives).
    pub(super) fn set(&mut self, aa: Ipv4Addr, state: State, deadline_ns: Option<u64>) {
        self.remove(aa);
        self.resolving += usize::from(matches!(state, State::Resolving(_)));
        if let Some(at_ns) = deadline_ns {
            self.deadlines.insert((at_ns, aa));
        }
        self.entries.insert(aa, Entry { state, deadline_ns });
    }

    /// Changes only the deadline.
    pub(super) fn set_deadline(&mut self, aa: Ipv4Addr, at_ns: u64) {
        if let Some(entry) = self.entries.get_mut(&aa) {
            if let Some(before_ns) = entry.deadline_ns.replace(at_ns) {
                self.deadlines.remove(&(before_ns, aa));
            }
            self.deadlines.insert((at_ns, aa));
        }
    }

    pub(super) fn remove(&mut self, aa: Ipv4Addr) -> Option<State> {
        let entry = self.entries.remove(&aa)?;
        if let Some(at_ns) = entry.deadline_ns {
            self.deadlines.remove(&(at_ns, aa));
        }
        self.resolving -= usize::from(matches!(entry.state, State::Resolving(_)));
        Some(entry.state)
    }

    /// The earliest deadline.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(at_ns, _)| *at_ns)
    }

    /// An entry whose deadline has come; the entry keeps its state and loses its deadline.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Ipv4Addr> {
        let (at_ns, aa) = *self.deadlines.first()?;
        if at_ns > now_ns {
            return None;
        }
        self.deadlines.pop_first();
        if let Some(entry) = self.entries.get_mut(&aa) {
            entry.deadline_ns = None;
        }
        Some(aa)
    }

    /// The entry to give up first: a negative one or the mapping confirmed longest ago. `None` while all are being
    /// looked up.
    pub(super) fn eldest(&self) -> Option<Ipv4Addr> {
        let idle = |aa: &Ipv4Addr| !matches!(self.get(*aa), Some(State::Resolving(_)) | None);
        self.deadlines.iter().map(|(_, aa)| *aa).find(idle).or_else(|| self.entries.keys().copied().find(idle))
    }

    /// Every AA with its mapping in force.
    pub(super) fn mappings(&self) -> impl Iterator<Item = (Ipv4Addr, Mapping)> + '_ {
        self.entries.iter().filter_map(|(aa, entry)| Some((*aa, entry.state.mapping()?)))
    }

    /// How many entries are negative.
    pub(super) fn negative(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.state, State::Negative(_))).count()
    }
}
