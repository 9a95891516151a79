//! What a server of the data-centre mix may send: a steady rate, shared evenly by its flows.

/// Flows write this much at once: eight full segments, so that pacing does not multiply packets.
pub(super) const QUANTUM_BYTES: f64 = 8.0 * 1448.0;
/// A flow that the network holds back saves up no more than this.
const CREDIT_LIMIT: f64 = 4.0 * QUANTUM_BYTES;

/// Payload that may be sent and has not been handed to a flow yet.
pub(super) struct Budget {
    bytes_per_ns: f64,
    pool: f64,
    /// Time up to which the pool has been filled.
    filled_ns: u64,
}

impl Budget {
    pub(super) fn new(bits_per_second: u64, now_ns: u64) -> Self {
        Self { bytes_per_ns: bits_per_second as f64 / 8e9, pool: 0.0, filled_ns: now_ns }
    }

    /// Hands out what has become due since the last time, in equal parts.
    pub(super) fn share<'a>(&mut self, now_ns: u64, credits: impl ExactSizeIterator<Item = &'a mut f64>) {
        self.pool += now_ns.saturating_sub(self.filled_ns) as f64 * self.bytes_per_ns;
        self.filled_ns = self.filled_ns.max(now_ns);
        let flows = credits.len();
        if flows == 0 || self.pool <= 0.0 {
            self.pool = self.pool.min(CREDIT_LIMIT);
            return;
        }
        let part = self.pool / flows as f64;
        self.pool = 0.0;
        for credit in credits {
            *credit = (*credit + part).min(CREDIT_LIMIT);
        }
    }

    /// Lends a new flow a part of a quantum (`phase` from 0 to 1) so that flows do not write in step.
    pub(super) fn lend(&mut self, phase: f64) -> f64 {
        self.pool -= phase * QUANTUM_BYTES;
        phase * QUANTUM_BYTES
    }

    /// Takes back what a finished flow did not need.
    pub(super) fn give_back(&mut self, credit: f64) {
        self.pool += credit;
    }

    /// Time until the first of `flows` flows that lacks `bytes` to its next write can make it.
    pub(super) fn wait_ns(&self, bytes: f64, flows: usize) -> u64 {
        let due = (bytes * flows as f64 - self.pool) / self.bytes_per_ns.max(1e-12);
        due.clamp(0.0, 1e9) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_share_the_rate_evenly_and_nothing_is_lost_or_made() {
        let mut budget = Budget::new(8_000_000, 0);
        let mut credits = [budget.lend(0.5), budget.lend(0.0), budget.lend(0.25)];
        let mut written = 0.0;
        for tick in 1..=500 {
            budget.share(tick * 20_000_000, credits.iter_mut());
            for credit in credits.iter_mut().filter(|credit| **credit >= QUANTUM_BYTES) {
                written += QUANTUM_BYTES;
                *credit -= QUANTUM_BYTES;
            }
        }
        let total = written + credits.iter().sum::<f64>() + budget.pool;
        assert!((total - 10_000_000.0).abs() < 1.0, "{total}");
        budget.give_back(credits[0]);
        assert!(budget.pool >= 0.0);
    }

    #[test]
    fn a_blocked_flow_saves_up_a_bounded_burst() {
        let mut budget = Budget::new(8_000_000_000, 0);
        let mut credit = 0.0;
        budget.share(1_000_000_000, std::iter::once(&mut credit));
        assert_eq!(credit, CREDIT_LIMIT);
    }

    #[test]
    fn the_wait_for_the_next_write_counts_all_flows() {
        let budget = Budget::new(8_000_000, 0);
        assert_eq!(budget.wait_ns(1000.0, 10), 10_000_000);
        assert_eq!(Budget::new(0, 0).wait_ns(1000.0, 10), 1_000_000_000);
    }
}
