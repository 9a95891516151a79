//! One-way latency as an HDR histogram, as the analyser's program counts it.
//!
//! The program counts in buckets of two significant digits (at most 0.8 % wide); here they become a histogram of the
//! `hdrhistogram` crate, whose buckets of that precision are the same ones. Mean, minimum and maximum are exact.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Values below this have a bucket of their own; above it every octave has half as many.
const LINEAR: u64 = 256;
const PER_OCTAVE: u64 = LINEAR / 2;
const LINEAR_BITS: u32 = LINEAR.trailing_zeros();
/// Number of buckets: up to 2^36 ns, a minute. The program counts anything longer in the last one.
pub const BUCKETS: usize = 256 + 28 * 128;

/// The bucket of a value, nanoseconds.
pub fn bucket_of(value_ns: u64) -> usize {
    if value_ns < LINEAR {
        return value_ns as usize;
    }
    let octave = value_ns.ilog2();
    let within = (value_ns >> (octave - LINEAR_BITS + 1)) - PER_OCTAVE;
    let bucket = LINEAR + u64::from(octave - LINEAR_BITS) * PER_OCTAVE + within;
    (bucket as usize).min(BUCKETS - 1)
}

/// The smallest value of a bucket, nanoseconds.
pub fn lowest_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < LINEAR {
        return bucket;
    }
    let (octave, within) = ((bucket - LINEAR) / PER_OCTAVE, (bucket - LINEAR) % PER_OCTAVE);
    (PER_OCTAVE + within) << (octave + 1)
}

/// What the program knows beside the buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exact {
    /// Number of frames.
    pub count: u64,
    /// Sum of their latencies, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
    /// Sum of the differences between neighbours of a stream, nanoseconds.
    pub jitter_sum_ns: u64,
    /// Number of those differences.
    pub jitter_count: u64,
}

/// Latencies of many frames, or gaps between them.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    exact: Exact,
}

impl Latencies {
    /// From the program's buckets, in order.
    ///
    /// # Panics
    /// For more than [`BUCKETS`] of them.
    pub fn new(buckets: &[u64], exact: Exact) -> Self {
        assert!(buckets.len() <= BUCKETS, "the program has {BUCKETS} buckets");
        let mut histogram = Histogram::new_with_bounds(1, 1 << 37, 2).expect("the bounds are constants");
        for (bucket, count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.record_n(lowest_of(bucket), *count).expect("every bucket is within the bounds");
        }
        Self { histogram, exact }
    }

    /// The value that a share `ratio` of all frames does not exceed, nanoseconds: the middle of its bucket. 0 of none.
    pub fn percentile_ns(&self, ratio: f64) -> u64 {
        if self.histogram.is_empty() {
            return 0;
        }
        let highest = self.histogram.value_at_quantile(ratio);
        let middle = self.histogram.median_equivalent(highest);
        if self.exact.max_ns > 0 { middle.min(self.exact.max_ns) } else { middle }
    }

    /// The numbers that people ask for.
    pub fn summary(&self) -> LatencySummary {
        let mean = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        LatencySummary {
            count: self.histogram.len(),
            mean: mean(self.exact.sum_ns, self.exact.count),
            p50: self.percentile_ns(0.5),
            p99: self.percentile_ns(0.99),
            p999: self.percentile_ns(0.999),
            max: self.exact.max_ns,
            jitter: mean(self.exact.jitter_sum_ns, self.exact.jitter_count),
        }
    }

    /// Bucket by bucket: lowest value in nanoseconds, frames; for raw rows.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram
            .iter_recorded()
            .map(|step| (self.histogram.lowest_equivalent(step.value_iterated_to()), step.count_since_last_iteration()))
    }
}

/// Latency in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Number of frames.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// The longest. On a shared core this is some stolen slice: look at [`Self::p999`] first.
    pub max: u64,
    /// Mean difference between neighbouring frames of a stream.
    pub jitter: f64,
}

impl LatencySummary {
    /// What the path adds to the tester's own floor, which was measured at the same rate in the same run. Never negative.
    #[must_use]
    pub fn above(&self, floor: &Self) -> Self {
        Self {
            count: self.count,
            mean: (self.mean - floor.mean).max(0.0),
            p50: self.p50.saturating_sub(floor.p50),
            p99: self.p99.saturating_sub(floor.p99),
            p999: self.p999.saturating_sub(floor.p999),
            max: self.max.saturating_sub(floor.max),
            jitter: (self.jitter - floor.jitter).max(0.0),
        }
    }
}

/// Latency of a path beside the tester's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyCells {
    /// Median of the tester alone at this rate.
    pub floor_p50: u64,
    /// 99th percentile of the tester alone.
    pub floor_p99: u64,
    /// As measured, the floor included.
    #[serde(flatten)]
    pub measured: LatencySummary,
    /// Median without the floor.
    pub net_p50: u64,
    /// 99th percentile without the floor.
    pub net_p99: u64,
}

impl LatencyCells {
    /// From a path's latencies and those of the tester alone.
    pub fn new(measured: LatencySummary, floor: &LatencySummary) -> Self {
        let net = measured.above(floor);
        Self { floor_p50: floor.p50, floor_p99: floor.p99, measured, net_p50: net.p50, net_p99: net.p99 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way that the histogram's own crate divides, which is written independently.
    #[test]
    fn buckets_are_those_of_the_hdr_histogram() {
        let histogram = Histogram::<u64>::new_with_bounds(1, 1 << 37, 2).unwrap();
        let octaves = (0..36).flat_map(|octave| (0..40).map(move |n| (1u64 << octave) + (n << octave) / 40));
        for value in octaves.chain([0, 255, 256, 257, 511, 512]) {
            let bucket = bucket_of(value);
            assert_eq!(lowest_of(bucket), histogram.lowest_equivalent(value), "{value}");
            assert_eq!(bucket_of(lowest_of(bucket)), bucket, "{value}");
        }
        assert_eq!((bucket_of(u64::MAX), lowest_of(BUCKETS - 1) >> 35), (BUCKETS - 1, 1));
    }

    #[test]
    fn percentiles_of_known_values() {
        let mut buckets = vec![0; BUCKETS];
        for value in 1..=1000u64 {
            buckets[bucket_of(value * 1000)] += 1;
        }
        let exact =
            Exact { count: 1000, sum_ns: 500_500_000, max_ns: 1_000_000, jitter_sum_ns: 999_000, jitter_count: 999 };
        let summary = Latencies::new(&buckets, exact).summary();
        let close = |got: u64, want: f64| (got as f64 / want - 1.0).abs() < 0.008;
        assert!(close(summary.p50, 500e3) && close(summary.p99, 990e3) && close(summary.p999, 999e3), "{summary:?}");
        assert_eq!((summary.count, summary.mean, summary.max, summary.jitter), (1000, 500_500.0, 1_000_000, 1000.0));
        assert_eq!(Latencies::new(&buckets, exact).buckets().map(|(_, count)| count).sum::<u64>(), 1000);
    }

    #[test]
    fn no_frames_have_no_latency() {
        assert_eq!(Latencies::new(&[], Exact::default()).summary(), LatencySummary::default());
    }

    #[test]
    fn the_floor_is_taken_off_and_never_more() {
        let path = LatencySummary { count: 9, mean: 900.0, p50: 880, p99: 1000, p999: 1200, max: 5000, jitter: 12.0 };
        let floor = LatencySummary { count: 5, mean: 240.0, p50: 236, p99: 2000, p999: 100, max: 1, jitter: 20.0 };
        let net = path.above(&floor);
        assert_eq!((net.count, net.mean, net.p50, net.p99, net.jitter), (9, 660.0, 644, 0, 0.0));
    }
}
