//! The last request of each client: one that comes again, perhaps through another server, is not applied again.

use std::collections::{BTreeMap, BTreeSet};

use super::authority::Authority;
use super::fault::Fault;
use super::hash::mix;

/// Clients of one authority whose last request is remembered; the one that was silent longest is forgotten first. What an
/// authority does makes it forget its own only.
pub(super) const CLIENTS_MAX: usize = 4096;

/// The last request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) sequence: u64,
    /// Where it was judged.
    pub(super) revision: u64,
    /// Why it changed nothing.
    pub(super) fault: Option<Fault>,
}

/// Of all clients. A number names a client of its authority, and another one of another's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clients {
    last: BTreeMap<(Authority, u64), Last>,
    /// Each authority's clients by the revision of their last request: who was silent longest stands first.
    silence: BTreeMap<Authority, BTreeSet<(u64, u64)>>,
    /// Sum of the hashes.
    sum: u64,
}

impl Clients {
    pub(super) fn get(&self, authority: Authority, client: u64) -> Option<&Last> {
        self.last.get(&(authority, client))
    }

    pub(super) fn remember(&mut self, authority: Authority, client: u64, last: Last) {
        let silence = self.silence.entry(authority).or_default();
        if let Some(before) = self.last.insert((authority, client), last) {
            silence.remove(&(before.revision, client));
            self.sum = self.sum.wrapping_sub(before.hash(authority, client));
        }
        silence.insert((last.revision, client));
        self.sum = self.sum.wrapping_add(last.hash(authority, client));
        if silence.len() > CLIENTS_MAX
            && let Some((_, silent)) = silence.pop_first()
            && let Some(forgotten) = self.last.remove(&(authority, silent))
        {
            self.sum = self.sum.wrapping_sub(forgotten.hash(authority, silent));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Authority, u64, Last)> + '_ {
        self.last.iter().map(|((authority, client), last)| (*authority, *client, *last))
    }

    /// A number that is equal for equal clients.
    pub(super) fn hash(&self) -> u64 {
        self.sum
    }
}

impl Last {
    fn hash(self, authority: Authority, client: u64) -> u64 {
        let (kind, [one, two, three]) = self.fault.map_or((0, [0; 3]), Fault::words);
        let who = match authority {
            Authority::Operator => 0,
            Authority::Service(service) => 1 << 32 | u64::from(service),
        };
        mix(0x636c_6965_6e74, &[who, client, self.sequence, self.revision, kind.into(), one, two, three])
    }
}
