//! Ratios of means with bootstrap intervals: for completion times, whose distributions have long tails and whose
//! neighbours in time share queues.
//!
//! Flows are cut into blocks of neighbours, and whole blocks are drawn with replacement (non-overlapping block bootstrap,
//! Carlstein 1986). Both sides of a ratio are the same flows on two fabrics, so a block brings its numerator and its
//! denominator along. The generator and its seed are fixed: the same records always give the same interval.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::{CONFIDENCE, Interval, Method, percentile_of_sorted, sorted};

/// Blocks in all; each should be longer than flows remember, and there should be enough to draw from.
const BLOCKS: usize = 20;
/// Fewer blocks than this do not show their spread.
const BLOCKS_MIN: usize = 8;
/// Draws of all blocks.
const DRAWS: usize = 2000;
/// Any number; it is fixed so that reports can be redrawn.
const SEED: u128 = 0x005e_ed0f_b007_57a9;
const STREAM: u128 = 0xda3e_39cb_94b9_5bdb;

/// A ratio of means and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Sum of the first numbers / sum of the second.
    pub value: f64,
    /// Its interval; `None` of too few pairs.
    pub interval: Option<Interval>,
    /// Number of pairs.
    pub n: usize,
}

/// Mean of the first numbers over mean of the second. Each series is one run's pairs in order of time; blocks do not
/// reach from one run into the next. `None` without pairs or with a denominator that is not above 0.
pub fn paired_ratio(series: &[Vec<(f64, f64)>]) -> Option<Ratio> {
    let per_series = (BLOCKS / series.len().max(1)).max(1);
    let blocks: Vec<(f64, f64)> = series.iter().flat_map(|pairs| block_sums(pairs, per_series)).collect();
    let value = quotient(blocks.iter().copied())?;
    let n = series.iter().map(Vec::len).sum();
    let interval = (blocks.len() >= BLOCKS_MIN).then(|| interval(&blocks)).flatten();
    Some(Ratio { value, interval, n })
}

/// Sums over `count` stretches of almost equal length.
fn block_sums(pairs: &[(f64, f64)], count: usize) -> Vec<(f64, f64)> {
    let edge = |block: usize| block * pairs.len() / count;
    let sum = |block: &[(f64, f64)]| block.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let blocks = (0..count).map(|block| &pairs[edge(block)..edge(block + 1)]);
    blocks.filter(|block| !block.is_empty()).map(sum).collect()
}

fn quotient(sums: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (over, under) = sums.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (under > 0.0).then(|| over / under)
}

/// The middle [`CONFIDENCE`] of the ratios of all draws (percentile method).
fn interval(blocks: &[(f64, f64)]) -> Option<Interval> {
    let mut generator = Pcg64::new(SEED, STREAM);
    let last = u32::try_from(blocks.len()).ok()?;
    let draw = |_| quotient((0..last).map(|_| blocks[generator.random_range(0..last) as usize]));
    let ratios = sorted(&(0..DRAWS).filter_map(draw).collect::<Vec<_>>());
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let (low, high) = (percentile_of_sorted(&ratios, tail)?, percentile_of_sorted(&ratios, 1.0 - tail)?);
    Some(Interval { low, high, coverage: CONFIDENCE, method: Method::PairedRatio })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(seed: u128, count: usize, factor: f64) -> Vec<(f64, f64)> {
        let mut generator = Pcg64::new(seed, STREAM);
        let mut pair = || {
            let base = 1.0 + f64::from(generator.random_range(0..1000u32)) / 100.0;
            (base * factor * (0.9 + f64::from(generator.random_range(0..200u32)) / 1000.0), base)
        };
        (0..count).map(|_| pair()).collect()
    }

    #[test]
    fn a_constant_factor_has_no_spread() {
        let pairs: Vec<(f64, f64)> = (1..=100).map(|i| (f64::from(i) * 1.5, f64::from(i))).collect();
        let ratio = paired_ratio(&[pairs]).unwrap();
        let interval = ratio.interval.unwrap();
        assert!((ratio.value - 1.5).abs() < 1e-12 && ratio.n == 100);
        assert!((interval.low - 1.5).abs() < 1e-12 && (interval.high - 1.5).abs() < 1e-12);
    }

    #[test]
    fn the_interval_covers_the_truth_about_as_often_as_it_says() {
        let covers = |seed: u128| {
            let interval = paired_ratio(&[noisy(seed, 400, 1.2)]).unwrap().interval.unwrap();
            interval.low <= 1.2 && 1.2 <= interval.high
        };
        let covered = (0..200).filter(|seed| covers(*seed)).count();
        assert!((176..=198).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn the_same_pairs_give_the_same_interval() {
        assert_eq!(paired_ratio(&[noisy(1, 300, 1.0)]), paired_ratio(&[noisy(1, 300, 1.0)]));
    }

    #[test]
    fn several_runs_keep_their_blocks_apart() {
        // 20 blocks over 2 runs are 10 each; 3 pairs make 3 blocks.
        assert_eq!(block_sums(&[(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)], 10).len(), 3);
        assert_eq!(block_sums(&[(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)], 2), [(1.0, 2.0), (8.0, 10.0)]);
        let ratio = paired_ratio(&[noisy(1, 40, 1.0), noisy(2, 40, 1.0)]).unwrap();
        assert!(ratio.interval.is_some() && ratio.n == 80);
    }

    #[test]
    fn too_little_says_little() {
        assert_eq!(paired_ratio(&[]), None);
        assert_eq!(paired_ratio(&[vec![(1.0, 0.0)]]), None);
        let few = paired_ratio(&[vec![(1.0, 2.0), (2.0, 4.0)]]).unwrap();
        assert_eq!((few.value, few.interval, few.n), (0.5, None, 2));
    }
}
