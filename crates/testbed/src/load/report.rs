//! What a load saw.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Length of a [`Tick`], nanoseconds.
pub const TICK_NS: u64 = 100_000_000;
/// Longest latency that is told apart, nanoseconds.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// What happened in a tenth of a second, for pictures of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Look-ups sent.
    pub sent: u64,
    /// Look-ups answered in it.
    pub answered: u64,
    /// Look-ups that failed in it.
    pub failed: u64,
    /// The longest latency of those answered, nanoseconds.
    pub worst_ns: u64,
}

impl Tick {
    pub(super) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.failed += other.failed;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }
}

/// The tick of a moment; it and those before are made if they are missing.
pub(super) fn tick_at(ticks: &mut Vec<Tick>, since_start_ns: u64) -> &mut Tick {
    let index = usize::try_from(since_start_ns / TICK_NS).unwrap_or(usize::MAX).min(TICKS_MAX - 1);
    if ticks.len() <= index {
        ticks.resize(index + 1, Tick::default());
    }
    &mut ticks[index]
}

/// What a load of look-ups saw, without its warm-up. A look-up is one datagram to each of the servers asked.
#[derive(Clone, Debug)]
pub struct LookupReport {
    /// How long was counted, nanoseconds.
    pub elapsed_ns: u64,
    /// Look-ups sent.
    pub sent: u64,
    /// Look-ups with a valid answer in time.
    pub answered: u64,
    /// Look-ups without.
    pub failed: u64,
    /// Look-ups that were due and never begun: too many others were outstanding, or the load had no time for them before
    /// their timeout was over.
    pub skipped: u64,
    /// Look-ups sent again after a silence.
    pub retried: u64,
    /// Datagrams with questions, repeated ones included.
    pub datagrams: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: u64,
    /// Valid answers to look-ups that had one already or had failed.
    pub late: u64,
    /// Datagrams that were no valid answer.
    pub invalid: u64,
    /// AAs answered, by status.
    pub statuses: BTreeMap<&'static str, u64>,
    /// Latencies of look-ups, nanoseconds: from when each was due (open loop) or sent to its first valid answer.
    pub latency_ns: Histogram<u64>,
    /// CPU time of the load itself, nanoseconds: near `elapsed_ns`, the load was the limit.
    pub own_cpu_ns: u64,
    /// In tenths of a second from the start of the counting.
    pub ticks: Vec<Tick>,
}

impl LookupReport {
    pub(super) fn new() -> Self {
        Self {
            elapsed_ns: 0,
            sent: 0,
            answered: 0,
            failed: 0,
            skipped: 0,
            retried: 0,
            datagrams: 0,
            unsent: 0,
            late: 0,
            invalid: 0,
            statuses: BTreeMap::new(),
            latency_ns: histogram(),
            own_cpu_ns: 0,
            ticks: Vec::new(),
        }
    }

    /// Look-ups answered per second.
    pub fn per_second(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.answered as f64 * 1e9 / self.elapsed_ns as f64 }
    }

    /// Adds what another load saw at the same time.
    pub fn merge(&mut self, other: &Self) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        for (mine, theirs) in [
            (&mut self.sent, other.sent),
            (&mut self.answered, other.answered),
            (&mut self.failed, other.failed),
            (&mut self.skipped, other.skipped),
            (&mut self.retried, other.retried),
            (&mut self.datagrams, other.datagrams),
            (&mut self.unsent, other.unsent),
            (&mut self.late, other.late),
            (&mut self.invalid, other.invalid),
            (&mut self.own_cpu_ns, other.own_cpu_ns),
        ] {
            *mine += theirs;
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.latency_ns.add(&other.latency_ns).expect("both have the same bounds");
        if self.ticks.len() < other.ticks.len() {
            self.ticks.resize(other.ticks.len(), Tick::default());
        }
        for (mine, theirs) in self.ticks.iter_mut().zip(&other.ticks) {
            mine.merge(theirs);
        }
    }

    pub(super) fn tick(&mut self, since_start_ns: u64) -> &mut Tick {
        tick_at(&mut self.ticks, since_start_ns)
    }
}

/// A histogram of latencies: 1 ns to a minute, three digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("the bounds are constants")
}

/// A day of ticks.
const TICKS_MAX: usize = 864_000;

pub(super) fn record(histogram: &mut Histogram<u64>, latency_ns: u64) {
    histogram.saturating_record(latency_ns.max(1));
}
