//! How many datagrams may repeat questions: what is answered pays for it, and a little more is free.
//!
//! A server that has no time left answers late, and clients that ask again because of it take the rest of its time. So of
//! all that a client sends, repeats are bounded: by one for every two answers that told what was asked, ten a second and 64
//! at once. Whoever has to wait waits with all others and shares their datagrams.

use crate::{NS_PER_MS, NS_PER_S};

/// What a datagram costs: so long must nothing be repeated. Ten a second are harmless even where each of 100 K hosts of a
/// data centre sends them, as that is what the paper expects of their first questions (VL2 5.5).
const COST_NS: i64 = 100 * NS_PER_MS as i64;
/// What an answer pays.
const PAID_NS: i64 = COST_NS / 2;
/// What passing time saves at most: datagrams for five questions that nobody answers until they are given up.
const SAVED_MAX_NS: i64 = 64 * COST_NS;
/// What answers pay beyond that is kept about so long: enough for what was lost of a burst that has ended.
const KEPT_NS: i64 = NS_PER_S as i64;

/// What may still be repeated.
#[derive(Clone, Debug)]
pub struct Repeats {
    saved_ns: i64,
    at_ns: u64,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { saved_ns: SAVED_MAX_NS, at_ns: 0 }
    }
}

impl Repeats {
    /// Whether questions may be repeated now. `Err`: when they may.
    pub fn may(&mut self, now_ns: u64) -> Result<(), u64> {
        self.pass(now_ns);
        match u64::try_from(self.saved_ns.saturating_neg()) {
            Ok(missing_ns) => Err(now_ns.saturating_add(missing_ns).saturating_add(1)),
            Err(_) => Ok(()),
        }
    }

    /// So many datagrams repeated questions.
    pub fn spend(&mut self, datagrams: usize) {
        let cost_ns = COST_NS.saturating_mul(i64::try_from(datagrams).unwrap_or(i64::MAX));
        self.saved_ns = self.saved_ns.saturating_sub(cost_ns);
    }

    /// An answer told what was asked; not one that came second.
    pub fn answered(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.saved_ns = self.saved_ns.saturating_add(PAID_NS);
    }

    fn pass(&mut self, now_ns: u64) {
        let passed_ns = i64::try_from(now_ns.saturating_sub(self.at_ns)).unwrap_or(i64::MAX);
        self.at_ns = self.at_ns.max(now_ns);
        let above_ns = self.saved_ns.saturating_sub(SAVED_MAX_NS);
        self.saved_ns = if above_ns > 0 {
            let part = passed_ns.min(KEPT_NS) as f64 / KEPT_NS as f64;
            self.saved_ns - (above_ns as f64 * part) as i64
        } else {
            self.saved_ns.saturating_add(passed_ns).min(SAVED_MAX_NS)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats whenever it may, with `per_ms` answers a millisecond. Returns the datagrams.
    fn repeat(repeats: &mut Repeats, from_ms: u64, to_ms: u64, per_ms: usize) -> usize {
        let mut sent = 0;
        for ms in from_ms..to_ms {
            (0..per_ms).for_each(|_| repeats.answered(ms * NS_PER_MS));
            while repeats.may(ms * NS_PER_MS).is_ok() {
                repeats.spend(1);
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn a_few_are_free_and_answers_pay_for_more() {
        let mut repeats = Repeats::default();
        assert_eq!(repeat(&mut repeats, 0, 1, 0), 64);
        let silent = repeat(&mut repeats, 1, 10_000, 0);
        assert!((98..=100).contains(&silent), "{silent}");
        let answered = repeat(&mut repeats, 10_000, 11_000, 4);
        assert!((2005..=2015).contains(&answered), "half of 4000, and ten: {answered}");
    }

    #[test]
    fn a_burst_pays_for_what_was_lost_at_its_end_and_not_for_ever() {
        let burst = || {
            let mut repeats = Repeats::default();
            (0..1000).for_each(|ms| (0..10).for_each(|_| repeats.answered(ms * NS_PER_MS)));
            repeats
        };
        let soon = repeat(&mut burst(), 1050, 1051, 0);
        assert!((2000..5000).contains(&soon), "of half of 10 000 what was kept: {soon}");
        assert_eq!(repeat(&mut burst(), 10_000, 10_001, 0), 64);
    }

    #[test]
    fn whoever_may_not_is_told_when() {
        let mut repeats = Repeats::default();
        repeats.spend(66);
        let at_ns = repeats.may(5 * NS_PER_S).map_or_else(|at_ns| at_ns, |()| 0);
        assert_eq!(at_ns, 0, "five seconds paid for 50");
        repeats.spend(70);
        let at_ns = repeats.may(5 * NS_PER_S).unwrap_err();
        assert!(repeats.may(at_ns - 1).is_err());
        assert!(repeats.may(at_ns).is_ok());
    }
}
