//! Which LSPs a port still has to send (SRM) or to acknowledge (SSN), and when (ISO 10589 section 7.3.15).

use std::collections::{BTreeMap, VecDeque};

use weft_wire::isis::LspId;
use weft_wire::isis::tlv::LspEntry;

/// Shorter lists are never tidied before they are sent.
const TIDY_MIN: usize = 1024;

/// The two flags of every LSP for one port, as lists of those that are set.
#[derive(Debug, Default)]
pub(super) struct Flood {
    /// To send: 0, at once; otherwise when to send it again, unless it is acknowledged before.
    send: BTreeMap<LspId, u64>,
    /// Candidates for "at once", in order; what is not in `send` with 0 any more is stale.
    fresh: VecDeque<LspId>,
    /// Candidates for "again", in the order of their times; stale in the same way.
    again: VecDeque<(u64, LspId)>,
    /// No burst before.
    pub(super) resume_ns: u64,
    /// To list in the next PSNP as held; some may be there twice.
    held: Vec<LspId>,
    /// When `held` is this long, what is there twice is removed.
    tidy_at: usize,
    /// To list in the next PSNP as given, for they are not held.
    given: BTreeMap<LspId, LspEntry>,
    pub(super) psnp_at_ns: Option<u64>,
}

impl Flood {
    /// Sets SRM: the LSP goes out with the next burst.
    pub(super) fn send_now(&mut self, id: LspId) {
        if self.send.insert(id, 0) != Some(0) {
            self.fresh.push_back(id);
        }
    }

    /// Sets SRM, but leaves the neighbour until `at_ns` to show that it holds the LSP. Times must not go back.
    pub(super) fn send_at(&mut self, id: LspId, at_ns: u64) {
        self.send.insert(id, at_ns);
        self.again.push_back((at_ns, id));
    }

    /// Clears SRM: the neighbour holds it.
    pub(super) fn sent(&mut self, id: LspId) {
        self.send.remove(&id);
        if self.send.is_empty() {
            self.fresh.clear();
            self.again.clear();
        }
    }

    /// The next LSP to send, and whether it was sent before.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<(LspId, bool)> {
        while let Some(id) = self.fresh.pop_front() {
            if self.send.get(&id) == Some(&0) {
                return Some((id, false));
            }
        }
        while let Some((at_ns, id)) = self.again.front().copied().filter(|(at_ns, _)| *at_ns <= now_ns) {
            self.again.pop_front();
            if self.send.get(&id) == Some(&at_ns) {
                return Some((id, true));
            }
        }
        None
    }

    /// Sets SSN for an LSP that is held. The PSNP tells the version held when it is sent, so nothing is ever taken back.
    pub(super) fn list_held(&mut self, id: LspId, at_ns: u64) {
        self.psnp_at_ns.get_or_insert(at_ns);
        self.held.push(id);
        if self.held.len() >= self.tidy_at.max(TIDY_MIN) {
            self.tidy();
            self.tidy_at = 2 * self.held.len();
        }
    }

    fn tidy(&mut self) {
        self.held.sort_unstable();
        self.held.dedup();
    }

    /// Sets SSN for an LSP that is not held; false if there are `most` of them already.
    pub(super) fn list_given(&mut self, entry: LspEntry, at_ns: u64, most: usize) -> bool {
        if self.given.len() >= most && !self.given.contains_key(&entry.id) {
            return false;
        }
        self.given.insert(entry.id, entry);
        self.psnp_at_ns.get_or_insert(at_ns);
        true
    }

    /// Everything to list, which is then no more to be listed: LSPs that are held, entries of others.
    pub(super) fn take_list(&mut self) -> (Vec<LspId>, BTreeMap<LspId, LspEntry>) {
        self.tidy();
        self.psnp_at_ns = None;
        (std::mem::take(&mut self.held), std::mem::take(&mut self.given))
    }

    /// When LSPs could be sent.
    pub(super) fn lsps_at_ns(&self) -> Option<u64> {
        let at_ns = if self.fresh.is_empty() { self.again.front()?.0 } else { 0 };
        Some(at_ns.max(self.resume_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> LspId {
        LspId([0, 0, 0, 0, 0, number, 0, 0])
    }

    #[test]
    fn an_lsp_is_sent_again_until_it_is_acknowledged() {
        let mut flood = Flood::default();
        flood.send_now(id(1));
        flood.send_now(id(1));
        flood.send_now(id(2));
        assert_eq!(flood.next(10), Some((id(1), false)));
        flood.send_at(id(1), 15);
        assert_eq!(flood.next(10), Some((id(2), false)));
        flood.send_at(id(2), 15);
        assert_eq!(flood.next(14), None);
        flood.sent(id(1));
        assert_eq!(flood.next(15), Some((id(2), true)));
        flood.send_at(id(2), 20);
        flood.send_now(id(2));
        assert_eq!(flood.next(20), Some((id(2), false)), "a newer version does not wait");
        flood.sent(id(2));
        assert_eq!((flood.next(99), flood.lsps_at_ns(), flood.psnp_at_ns), (None, None, None));
    }

    #[test]
    fn requests_are_bounded() {
        let mut flood = Flood::default();
        let entry = |number| LspEntry { lifetime_s: 1, id: id(number), sequence: 0, checksum: 0 };
        assert!(flood.list_given(entry(1), 7, 2) && flood.list_given(entry(2), 8, 2));
        assert!(!flood.list_given(entry(3), 9, 2));
        assert!(flood.list_given(entry(2), 9, 2), "the same again needs no room");
        assert_eq!(flood.psnp_at_ns, Some(7));
        assert_eq!(flood.take_list().1.len(), 2);
        assert_eq!(flood.psnp_at_ns, None);
    }

    #[test]
    fn acknowledgements_take_no_more_room_than_lsps() {
        let mut flood = Flood::default();
        for round in 0..100_000_u32 {
            flood.list_held(id((round % 200) as u8), 5);
            assert!(flood.held.len() <= TIDY_MIN);
        }
        let listed: Vec<LspId> = (0..200).map(id).collect();
        assert_eq!(flood.take_list().0, listed);
    }
}
