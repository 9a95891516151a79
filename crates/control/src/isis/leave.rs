//! A polite end: others find other ways while this one still forwards, and only then is told that it is gone.
//!
//! If both were told at once, a neighbour that hears it first would refuse frames that another, which hears it later, still
//! sends this way. So own LSPs are withdrawn, which leads all ways elsewhere and no adjacency down; when everybody has had
//! the time to compute, neighbours are told not to wait for Hellos any more.

use weft_wire::isis::LspId;

use super::RBridge;
use super::io::Output;
use super::origin::Origin;
use super::timing::Timing;
use crate::NS_PER_MS;

/// For the LSP to get everywhere, and into data planes.
const FLOOD_NS: u64 = 100 * NS_PER_MS;
/// How often an LSP is sent in that time to a neighbour that does not acknowledge it.
const SENT: u64 = 4;

/// How long others may take to compute, if their timing is like ours.
fn wait_ns(timing: &Timing) -> u64 {
    FLOOD_NS + timing.spf_delay_ns + timing.spf_interval_ns
}

impl RBridge {
    /// Whether all is said after [`Input::Leave`](super::Input::Leave).
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Begins to take leave: own LSPs are withdrawn.
    pub(super) fn leave(&mut self, now_ns: u64) {
        if self.leave_at_ns.is_some() {
            return;
        }
        let held = self.lsdb.range(self.own_lsps()).filter(|(_, entry)| !entry.is_purged());
        let held: Vec<LspId> = held.map(|(id, _)| id).collect();
        let wait_ns = wait_ns(&self.config.timing);
        self.config.timing.resend_ns = self.config.timing.resend_ns.min(wait_ns / SENT);
        self.leave_at_ns = Some(now_ns + wait_ns);
        held.into_iter().for_each(|id| self.purge(now_ns, id));
        if let Some(restart) = self.restart.take() {
            restart.into_former().for_each(|entry| self.withdraw(now_ns, entry.id, entry.sequence));
        }
        self.origin = Origin::new();
    }

    /// Ends it: neighbours are told not to wait.
    pub(super) fn end_leave(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        self.has_left = true;
        self.config.timing.holding_multiplier = 0;
        for index in 0..self.ports.len() {
            if std::mem::replace(&mut self.ports[index].is_up, false) {
                self.send_hello(now_ns, index, outputs);
            }
        }
    }
}
