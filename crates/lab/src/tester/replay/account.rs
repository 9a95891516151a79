//! What became of frames that are told apart by their digest only.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::tester::account::sent_of;

/// Frames of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayAccount {
    pub sent: u64,
    /// Came in as they were sent, once for each time that they were sent.
    pub received: u64,
    /// Did not. A frame that was changed on its way is lost, and foreign.
    pub lost: u64,
    /// Came in more often than they were sent.
    pub duplicated: u64,
    /// Frames that are not in the file; the kernel has them.
    pub foreign: u64,
}

impl ReplayAccount {
    /// Lost of sent, 0 to 1; 0 if nothing was sent.
    pub fn loss_ratio(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 / self.sent as f64 }
    }

    /// Adds up: `sent` and `received` of each digest. A copy too many makes up for one too few of the same bytes, and only of those.
    pub(super) fn new(each: impl Iterator<Item = (u64, u64)>, foreign: u64) -> Self {
        let mut account = Self { foreign, ..Self::default() };
        for (sent, received) in each {
            account.sent += sent;
            account.received += sent.min(received);
            account.lost += sent.saturating_sub(received);
            account.duplicated += received.saturating_sub(sent);
        }
        account
    }
}

/// How often frames of each digest were sent, when frames took turns and `total` were sent.
pub(super) fn sent_by_digest(digests: &[u64], total: u64) -> BTreeMap<u64, u64> {
    let mut sent = BTreeMap::new();
    for (place, digest) in digests.iter().enumerate() {
        *sent.entry(*digest).or_default() += sent_of(place, digests.len(), total);
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_with_the_same_bytes_are_counted_together() {
        let sent = sent_by_digest(&[7, 5, 7], 8);
        assert_eq!(sent, BTreeMap::from([(5, 3), (7, 5)]));
        assert_eq!(sent_by_digest(&[7, 5, 7], 1), BTreeMap::from([(5, 0), (7, 1)]));
    }

    #[test]
    fn losses_duplicates_and_strangers_are_told_apart() {
        let account = ReplayAccount::new([(5, 5), (5, 3), (5, 6), (0, 0)].into_iter(), 9);
        let expected = ReplayAccount { sent: 15, received: 13, lost: 2, duplicated: 1, foreign: 9 };
        assert_eq!(account, expected);
        assert!((account.loss_ratio() - 2.0 / 15.0).abs() < 1e-12);
        assert_eq!(ReplayAccount::default().loss_ratio(), 0.0);
    }
}
