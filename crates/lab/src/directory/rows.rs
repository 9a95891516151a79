//! What a load saw as rows of records.

use std::collections::BTreeMap;

use weft_scenario::record::LatencyRow;

/// Bins of a power of two: none is wider than a sixteenth of where it begins.
const BINS_PER_OCTAVE_LOG2: u32 = 4;

/// How long requests of one kind took, in bins of at most 6.25 %.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    /// Adds `count` requests that took so long.
    pub(super) fn add(&mut self, latency_ns: u64, count: u64) {
        *self.0.entry(bin_end(latency_ns)).or_insert(0) += count;
    }

    /// How many there are.
    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The upper end of the bin below which a share of them lies; 0 of none.
    pub(super) fn percentile_ns(&self, ratio: f64) -> u64 {
        let rank = (ratio * self.total() as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let bin = self.0.iter().find(|(_, count)| {
            below += *count;
            below >= rank
        });
        bin.map_or(0, |(end, _)| *end)
    }

    /// Rows of a step.
    pub(super) fn rows(&self, kind: &str, step: u32, server: Option<&str>) -> Vec<LatencyRow> {
        let row = |(end, count): (&u64, &u64)| LatencyRow {
            kind: kind.to_owned(),
            step,
            server: server.map(str::to_owned),
            latency_at_most_ns: *end,
            requests: *count,
        };
        self.0.iter().map(row).collect()
    }
}

/// The upper end of the bin that a value belongs to.
fn bin_end(value: u64) -> u64 {
    let value = value.max(1);
    let octave = 63 - value.leading_zeros();
    let width = 1u64 << octave.saturating_sub(BINS_PER_OCTAVE_LOG2);
    value.div_ceil(width).saturating_mul(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_at_most_a_sixteenth_too_wide() {
        assert_eq!([1, 15, 16, 17, 32, 33, 34].map(bin_end), [1, 15, 16, 17, 32, 34, 34]);
        for value in [1u64, 99, 1_000, 123_456, 2_000_000_001, u64::MAX / 2] {
            let end = bin_end(value);
            assert!(end >= value && (end - value) as f64 <= value as f64 / 16.0, "{value} {end}");
        }
    }

    #[test]
    fn percentiles_and_rows() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile_ns(0.5), 0);
        latencies.add(16, 98);
        latencies.add(1000, 2);
        assert_eq!((latencies.total(), latencies.percentile_ns(0.5), latencies.percentile_ns(0.99)), (100, 16, 1024));
        let rows = latencies.rows("lookup", 2, None);
        assert_eq!((rows.len(), rows[1].latency_at_most_ns, rows[1].requests, rows[1].step), (2, 1024, 2, 2));
    }
}
