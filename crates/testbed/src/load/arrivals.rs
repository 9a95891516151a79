//! When the requests of an open loop are due: one burst after another, evenly spaced or at random.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// How bursts follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly spaced and all of one size.
    #[default]
    Even,
    /// At random times, all equally likely (a Poisson process), and of random sizes from 1 to twice the mean less 1.
    Random,
}

impl Arrivals {
    /// The largest burst where `mean` is the mean.
    pub fn burst_max(self, mean: usize) -> usize {
        match self {
            Self::Even => mean,
            Self::Random => (2 * mean).saturating_sub(1),
        }
    }
}

/// Requests that become due, in bursts.
#[derive(Debug)]
pub(super) struct Schedule {
    arrivals: Arrivals,
    burst: usize,
    /// Mean time from one burst to the next.
    gap_ns: f64,
    due_ns: f64,
    /// Requests of the burst at hand that were not taken yet.
    left: usize,
    random: Pcg64,
}

impl Schedule {
    /// Requests at `per_s` in bursts of `burst`, the first at `first_ns` or, at random, after it.
    pub(super) fn new(arrivals: Arrivals, burst: usize, per_s: f64, first_ns: f64, seed: u64) -> Self {
        let burst = burst.max(1);
        let random = Pcg64::new(u128::from(seed), 0x6172_7269);
        let mut schedule =
            Self { arrivals, burst, gap_ns: burst as f64 * 1e9 / per_s, due_ns: first_ns, left: burst, random };
        if arrivals == Arrivals::Random {
            schedule.go_on();
        }
        schedule
    }

    /// When the next request is due.
    pub(super) fn due_ns(&self) -> u64 {
        self.due_ns as u64
    }

    /// Takes the next request.
    pub(super) fn take_one(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.go_on();
        }
    }

    /// Takes what is left of the burst at hand and says how many requests that is.
    pub(super) fn take_burst(&mut self) -> usize {
        let taken = self.left;
        self.go_on();
        taken
    }

    fn go_on(&mut self) {
        match self.arrivals {
            Arrivals::Even => {
                self.due_ns += self.gap_ns;
                self.left = self.burst;
            }
            Arrivals::Random => {
                // In (0, 1], so that the logarithm is finite.
                let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                self.due_ns -= uniform.ln() * self.gap_ns;
                let most = self.arrivals.burst_max(self.burst) as u64;
                self.left = 1 + (self.random.next_u64() % most) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps in nanoseconds and sizes of bursts.
    fn bursts(mut schedule: Schedule, count: usize) -> Vec<(f64, usize)> {
        let mut before_ns = 0.0;
        let mut one = || {
            let due_ns = schedule.due_ns;
            let gap_ns = due_ns - before_ns;
            before_ns = due_ns;
            (gap_ns, schedule.take_burst())
        };
        (0..count).map(|_| one()).collect()
    }

    #[test]
    fn even_bursts_are_what_is_asked() {
        let all = bursts(Schedule::new(Arrivals::Even, 4, 1e6, 500.0, 1), 3);
        assert_eq!(all, [(500.0, 4), (4000.0, 4), (4000.0, 4)]);
    }

    #[test]
    fn random_bursts_have_the_rate_and_the_spread_of_their_process() {
        let count = 40_000;
        let all = bursts(Schedule::new(Arrivals::Random, 16, 1e6, 0.0, 7), count);
        let mean = |of: &dyn Fn(&(f64, usize)) -> f64| all.iter().map(of).sum::<f64>() / count as f64;
        let (gap_ns, size) = (mean(&|one| one.0), mean(&|one| one.1 as f64));
        assert!((gap_ns / 16_000.0 - 1.0).abs() < 0.03, "{gap_ns}");
        assert!((size / 16.0 - 1.0).abs() < 0.03, "{size}");
        // Times that know nothing of each other: as wide as their mean.
        let deviation = mean(&|one| (one.0 - gap_ns).powi(2)).sqrt();
        assert!((deviation / gap_ns - 1.0).abs() < 0.05, "{deviation} {gap_ns}");
        let sizes: std::collections::BTreeSet<usize> = all.iter().map(|one| one.1).collect();
        assert_eq!(sizes, (1..=31).collect());
        assert_eq!(Arrivals::Random.burst_max(16), 31);
        let again = bursts(Schedule::new(Arrivals::Random, 16, 1e6, 0.0, 7), 10);
        assert_eq!(again, all[..10]);
        assert_ne!(bursts(Schedule::new(Arrivals::Random, 16, 1e6, 0.0, 8), 10), again);
    }

    #[test]
    fn single_requests_come_out_of_bursts() {
        let mut schedule = Schedule::new(Arrivals::Even, 2, 1e9, 0.0, 1);
        let mut one = || {
            let due_ns = schedule.due_ns();
            schedule.take_one();
            due_ns
        };
        assert_eq!([one(), one(), one(), one(), one()], [0, 0, 2, 2, 4]);
    }
}
