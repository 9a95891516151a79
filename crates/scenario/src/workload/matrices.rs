//! Traffic matrices of a day, drawn: who below which ToR sends how much to whom in each interval.
//!
//! VL2 3.3 found them to change within 100 s, without pattern, because jobs and chunks are placed at random. So every
//! interval has jobs of its own, each on a random set of racks that exchange data all with all, in random shares, above
//! a little even traffic. The busiest ToR of an interval has a random load, at most the rate of its servers, so that
//! every matrix is within the hose model.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::frames::range;
use crate::random::{Purpose, Stream};
use crate::units::{BitsPerSec, Nanos, Percent, named};

/// A day of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MatricesSpec {
    /// How many; a day has 288.
    pub count: u32,
    /// Time that each stands for; the paper's Figure 15 has 5 minutes.
    pub interval: Nanos,
    /// Jobs at a time.
    pub jobs: u32,
    /// Most racks of a job; a job has at least 2.
    pub job_racks: u32,
    /// Least load of an interval's busiest ToR, percent of its servers' rate.
    #[serde(deserialize_with = "named::number::<Percent, _, _>")]
    #[schemars(with = "named::Number<Percent>")]
    pub least_load_percent: u32,
    /// Most load of the same.
    #[serde(deserialize_with = "named::number::<Percent, _, _>")]
    #[schemars(with = "named::Number<Percent>")]
    pub most_load_percent: u32,
}

impl Default for MatricesSpec {
    fn default() -> Self {
        let interval = Nanos(300_000_000_000);
        Self { count: 288, interval, jobs: 8, job_racks: 12, least_load_percent: 30, most_load_percent: 100 }
    }
}

/// Mean rates between racks in one interval, bits per second; nothing within a rack.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    racks: usize,
    rates_bps: Vec<f64>,
}

impl Matrix {
    /// A matrix of zeros.
    pub fn zero(racks: usize) -> Self {
        Self { racks, rates_bps: vec![0.0; racks * racks] }
    }

    /// How many racks it is between.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// What rack `from` sends to rack `to`.
    pub fn rate_bps(&self, from: usize, to: usize) -> f64 {
        self.rates_bps[from * self.racks + to]
    }

    /// Sets what one rack sends to another; traffic within a rack is left out.
    pub fn set(&mut self, from: usize, to: usize, rate_bps: f64) {
        if from != to {
            self.rates_bps[from * self.racks + to] = rate_bps;
        }
    }

    /// All that a rack sends.
    pub fn sent_bps(&self, from: usize) -> f64 {
        (0..self.racks).map(|to| self.rate_bps(from, to)).sum()
    }

    /// All that a rack receives.
    pub fn received_bps(&self, to: usize) -> f64 {
        (0..self.racks).map(|from| self.rate_bps(from, to)).sum()
    }

    /// All traffic.
    pub fn total_bps(&self) -> f64 {
        self.rates_bps.iter().sum()
    }

    /// Pairs of racks with traffic, and its rate.
    pub fn demands(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let place = |(place, rate): (usize, &f64)| (place / self.racks, place % self.racks, *rate);
        self.rates_bps.iter().enumerate().map(place).filter(|demand| demand.2 > 0.0)
    }

    fn scale(&mut self, factor: f64) {
        self.rates_bps.iter_mut().for_each(|rate| *rate *= factor);
    }
}

impl MatricesSpec {
    /// Whether numbers make sense.
    pub fn check(&self) -> Result<(), WorkloadError> {
        range("count", self.count, 1, 100_000)?;
        range("jobs", self.jobs, 1, 1000)?;
        range("job_racks", self.job_racks, 2, 10_000)?;
        range("least_load_percent", self.least_load_percent, 1, 100)?;
        range("most_load_percent", self.most_load_percent, self.least_load_percent, 100)?;
        if self.interval.0 == 0 { Err(WorkloadError::ZeroTime { setting: "interval" }) } else { Ok(()) }
    }

    /// The matrices between so many racks whose servers have these rates together; needs at least two racks.
    pub fn matrices(&self, rack_rates: &[BitsPerSec], seed: u64) -> Vec<Matrix> {
        (0..self.count).map(|number| self.matrix(rack_rates, seed, number)).collect()
    }

    fn matrix(&self, rack_rates: &[BitsPerSec], seed: u64, number: u32) -> Matrix {
        let racks = rack_rates.len();
        let mut stream = Stream::new(seed, Purpose::Matrices, number);
        let mut matrix = Matrix::zero(racks);
        for (from, to) in (0..racks).flat_map(|from| (0..racks).map(move |to| (from, to))) {
            matrix.set(from, to, 0.1 / racks as f64);
        }
        let mut all: Vec<usize> = (0..racks).collect();
        for _ in 0..self.jobs {
            let most = (self.job_racks as usize).min(racks);
            let size = 2 + stream.below((most.max(2) - 1) as u64) as usize;
            let weight = stream.exponential();
            let members = stream.choose(&mut all, size).to_vec();
            for (from, to) in members.iter().flat_map(|from| members.iter().map(move |to| (*from, *to))) {
                let rate = matrix.rate_bps(from, to) + weight * stream.exponential() / members.len() as f64;
                matrix.set(from, to, rate);
            }
        }
        let load =
            |rack: usize| matrix.sent_bps(rack).max(matrix.received_bps(rack)) / rack_rates[rack].0.max(1) as f64;
        let busiest = (0..racks).map(load).fold(0.0, f64::max);
        let span = f64::from(self.most_load_percent - self.least_load_percent);
        let wanted = (f64::from(self.least_load_percent) + span * stream.share()) / 100.0;
        if busiest > 0.0 {
            matrix.scale(wanted / busiest);
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RACK: BitsPerSec = BitsPerSec(20_000_000_000);

    #[test]
    fn every_matrix_is_within_the_hose_model_and_its_busiest_rack_within_the_range() {
        let spec = MatricesSpec { count: 50, least_load_percent: 40, most_load_percent: 80, ..MatricesSpec::default() };
        for matrix in spec.matrices(&[RACK; 20], 1) {
            let loads = (0..20).map(|rack| matrix.sent_bps(rack).max(matrix.received_bps(rack)) / RACK.0 as f64);
            let busiest = loads.fold(0.0, f64::max);
            assert!((0.4..=0.8).contains(&busiest), "{busiest}");
            assert!((0..20).all(|rack| matrix.rate_bps(rack, rack) == 0.0));
            let sum: f64 = matrix.demands().map(|demand| demand.2).sum();
            assert!((sum - matrix.total_bps()).abs() < 1.0);
        }
    }

    #[test]
    fn intervals_differ_and_a_seed_gives_the_same_day() {
        let spec = MatricesSpec { count: 3, ..MatricesSpec::default() };
        let day = spec.matrices(&[RACK; 10], 1);
        assert_eq!(day, spec.matrices(&[RACK; 10], 1));
        assert_ne!(day, spec.matrices(&[RACK; 10], 2));
        assert_ne!(day[0], day[1]);
    }

    #[test]
    fn two_racks_are_enough() {
        let matrix = &MatricesSpec { count: 1, ..MatricesSpec::default() }.matrices(&[RACK; 2], 1)[0];
        assert_eq!(matrix.demands().count(), 2);
    }
}
