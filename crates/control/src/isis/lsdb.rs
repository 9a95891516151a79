//! The link state database: one entry for each fragment held, its age, and which of two versions is newer.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;
use std::sync::Arc;

use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::view::{LspFlags, with_lifetime};
use weft_wire::isis::{LspId, View};

use super::digest::Digest;
use crate::NS_PER_S;

/// Lifetime of a new LSP, seconds (ISO 10589: MaxAge).
pub const MAX_AGE_S: u16 = 1200;
/// How long a withdrawal is kept, seconds (ISO 10589: ZeroAgeLifetime).
pub const ZERO_AGE_S: u16 = 60;

/// One fragment of somebody's LSP.
#[derive(Debug)]
pub struct Entry {
    sequence: u32,
    checksum: u16,
    flags: LspFlags,
    /// As received, with the lifetime that it had then.
    bytes: Arc<[u8]>,
    lifetime_s: u16,
    /// When it expires, or, once it is withdrawn, when it is forgotten.
    until_ns: u64,
    pub(super) digest: Digest,
}

impl Entry {
    /// Larger is newer.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// The flags of the originator.
    pub fn flags(&self) -> LspFlags {
        self.flags
    }

    /// Whether it was withdrawn.
    pub fn is_purged(&self) -> bool {
        self.lifetime_s == 0
    }

    /// The whole PDU.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Longest LSP that its originator says it takes, bytes (ISO 10589: originatingLSPBufferSize).
    pub fn lsp_buffer_bytes(&self) -> Option<u16> {
        self.digest.lsp_buffer_bytes
    }

    /// Seconds until it expires, rounded up; 0: withdrawn.
    pub fn remaining_s(&self, now_ns: u64) -> u16 {
        if self.is_purged() {
            return 0;
        }
        let left = self.until_ns.saturating_sub(now_ns).div_ceil(NS_PER_S);
        left.clamp(1, u64::from(MAX_AGE_S)) as u16
    }

    /// Its version, as sequence number PDUs tell it.
    pub fn entry(&self, id: LspId, now_ns: u64) -> LspEntry {
        LspEntry { lifetime_s: self.remaining_s(now_ns), id, sequence: self.sequence, checksum: self.checksum }
    }

    /// The PDU with its present lifetime; shares the bytes while that has not changed.
    pub(super) fn to_send(&self, now_ns: u64) -> Arc<[u8]> {
        let left = self.remaining_s(now_ns);
        if left == self.lifetime_s { Arc::clone(&self.bytes) } else { with_lifetime(&self.bytes, left) }
    }
}

/// How an incoming version stands to the one held (ISO 10589 section 7.3.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Take it.
    Newer,
    /// It is the one held.
    Same,
    /// Ours is newer.
    Older,
    /// One sequence number, two contents.
    Confused,
}

/// Compares by sequence number, then withdrawal, then checksum.
pub fn order(incoming: &LspEntry, held: &LspEntry) -> Order {
    let by_number = incoming.sequence.cmp(&held.sequence);
    let by_age = (incoming.lifetime_s == 0).cmp(&(held.lifetime_s == 0));
    match by_number.then(by_age) {
        std::cmp::Ordering::Greater => Order::Newer,
        std::cmp::Ordering::Less => Order::Older,
        std::cmp::Ordering::Equal if incoming.lifetime_s == 0 || incoming.checksum == held.checksum => Order::Same,
        std::cmp::Ordering::Equal => Order::Confused,
    }
}

/// What an LSP says that was not said before.
pub(super) enum Change {
    /// Nothing that the graph or a nickname depends on.
    Nothing,
    Something,
    /// Of less: a neighbour is gone.
    Loss,
}

/// Every LSP that is held.
#[derive(Debug, Default)]
pub struct Database {
    entries: BTreeMap<LspId, Entry>,
    expiry: BTreeSet<(u64, LspId)>,
    bytes: usize,
}

impl Database {
    /// Number of fragments.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all fragments.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// One fragment.
    pub fn get(&self, id: LspId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// All fragments in order.
    pub fn iter(&self) -> impl Iterator<Item = (LspId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// The fragments of a range in order.
    pub fn range(&self, range: impl RangeBounds<LspId>) -> impl Iterator<Item = (LspId, &Entry)> {
        self.entries.range(range).map(|(id, entry)| (*id, entry))
    }

    /// When something expires.
    pub fn next_expiry_ns(&self) -> Option<u64> {
        self.expiry.first().map(|(at_ns, _)| *at_ns)
    }

    /// Something that has expired; it stays until it is replaced or removed.
    pub(super) fn expired(&self, now_ns: u64) -> Option<LspId> {
        self.expiry.first().filter(|(at_ns, _)| *at_ns <= now_ns).map(|(_, id)| *id)
    }

    /// Takes an LSP in place of what was held.
    ///
    /// `bytes` is a whole LSP; its lifetime counts from now, and is at most [`MAX_AGE_S`].
    pub(super) fn insert(&mut self, now_ns: u64, bytes: Arc<[u8]>, digest: Digest) -> Change {
        let header = View::new(&bytes).ok().and_then(|view| view.lsp()).expect("only whole LSPs are inserted");
        let lifetime_s = header.lifetime_s.min(MAX_AGE_S);
        let lives_s = if lifetime_s == 0 { ZERO_AGE_S } else { lifetime_s };
        let until_ns = now_ns + u64::from(lives_s) * NS_PER_S;
        let (sequence, checksum, flags) = (header.sequence, header.checksum, header.flags);
        self.bytes += bytes.len();
        self.expiry.insert((until_ns, header.id));
        let entry = Entry { sequence, checksum, flags, bytes, lifetime_s, until_ns, digest };
        let is_purged = entry.is_purged();
        match self.entries.get_mut(&header.id) {
            None => {
                self.entries.insert(header.id, entry);
                if is_purged { Change::Nothing } else { Change::Something }
            }
            Some(held) => {
                let was = std::mem::replace(held, entry);
                let changed = was.digest != held.digest || was.flags != held.flags || was.is_purged() != is_purged;
                self.bytes -= was.bytes.len();
                if was.until_ns != until_ns {
                    self.expiry.remove(&(was.until_ns, header.id));
                }
                match changed {
                    true if was.digest.has_more_neighbors_than(&held.digest) => Change::Loss,
                    true => Change::Something,
                    false => Change::Nothing,
                }
            }
        }
    }

    pub(super) fn remove(&mut self, id: LspId) {
        if let Some(entry) = self.entries.remove(&id) {
            self.bytes -= entry.bytes.len();
            self.expiry.remove(&(entry.until_ns, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_of_two_versions_is_newer() {
        let version = |lifetime_s, sequence, checksum| LspEntry { lifetime_s, id: LspId::FIRST, sequence, checksum };
        let held = version(100, 5, 0x1234);
        let cases = [
            (version(1, 6, 1), Order::Newer),
            (version(0, 6, 0), Order::Newer),
            (version(1200, 4, 1), Order::Older),
            (version(0, 4, 1), Order::Older),
            (version(7, 5, 0x1234), Order::Same),
            (version(0, 5, 0), Order::Newer),
            (version(7, 5, 0x1235), Order::Confused),
        ];
        for (incoming, expected) in cases {
            assert_eq!(order(&incoming, &held), expected, "{incoming:?}");
        }
        assert_eq!(order(&held, &version(0, 5, 0)), Order::Older, "a withdrawal is newer than what it withdraws");
        assert_eq!(order(&version(0, 5, 1), &version(0, 5, 2)), Order::Same, "two withdrawals are one");
    }
}
