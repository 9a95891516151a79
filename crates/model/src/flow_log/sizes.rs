//! Flows and bytes by size (VL2 Figure 2), in twenty bins to a factor of ten.

use weft_scenario::record::FlowSizeRow;

/// 10^(i/20) for i from 0 to 19, times 1000.
const STEPS: [u64; 20] = [
    1000, 1122, 1259, 1413, 1585, 1778, 1995, 2239, 2512, 2818, 3162, 3548, 3981, 4467, 5012, 5623, 6310, 7079, 7943,
    8913,
];
/// Powers of ten, beginning with 1000: a flow of less than 1000 bytes has bins of one or a few bytes.
const POWERS: u32 = 16;

/// Counts of flows and bytes in bins of sizes.
#[derive(Clone, Debug)]
pub struct Sizes {
    edges: Vec<u64>,
    flows: Vec<u64>,
    bytes: Vec<u64>,
}

/// Upper ends of the bins; every power of ten is one, and the last is above everything.
fn edges() -> Vec<u64> {
    let mut edges = vec![0];
    for power in 0..POWERS {
        edges.extend(STEPS.map(|step| step * 10u64.pow(power) / 1000));
    }
    edges.push(u64::MAX);
    edges.dedup();
    edges
}

impl Default for Sizes {
    fn default() -> Self {
        let edges = edges();
        Self { flows: vec![0; edges.len()], bytes: vec![0; edges.len()], edges }
    }
}

impl Sizes {
    /// Counts a flow.
    pub fn add(&mut self, bytes: u64) {
        let bin = self.edges.partition_point(|edge| *edge < bytes);
        self.flows[bin] += 1;
        self.bytes[bin] = self.bytes[bin].saturating_add(bytes);
    }

    /// The bins that hold something, in rising order.
    pub fn rows(&self) -> Vec<FlowSizeRow> {
        let bins = self.edges.iter().zip(&self.flows).zip(&self.bytes);
        bins.filter(|((_, flows), _)| **flows > 0)
            .map(|((edge, flows), bytes)| FlowSizeRow { bytes_at_most: *edge, flows: *flows, bytes: *bytes })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_edges_and_edges_rise() {
        let edges = edges();
        assert!(edges.windows(2).all(|pair| pair[0] < pair[1]));
        for power in 0..=15 {
            assert!(edges.contains(&10u64.pow(power)), "{power}");
        }
    }

    #[test]
    fn a_flow_is_in_the_first_bin_that_is_not_below_it() {
        let mut sizes = Sizes::default();
        for bytes in [0, 1, 1, 100_000_000, 100_000_001, u64::MAX] {
            sizes.add(bytes);
        }
        let row = |bytes_at_most, flows, bytes| FlowSizeRow { bytes_at_most, flows, bytes };
        let expected = [
            row(0, 1, 0),
            row(1, 2, 2),
            row(100_000_000, 1, 100_000_000),
            row(112_200_000, 1, 100_000_001),
            row(u64::MAX, 1, u64::MAX),
        ];
        assert_eq!(sizes.rows(), expected);
    }
}
