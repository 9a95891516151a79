//! The paper's data-centre mix (VL2 3.2, used in 5.2): sizes of flows (Figure 2) and how many a server has at once
//! (Figure 3), as tables of integers, so that a seed gives the same flows on every machine.
//!
//! The paper prints both figures without their numbers. What it says about them is this:
//!
//! * Figure 2: the majority of flows are a few KB; 99 % are smaller than 100 MB; more than 90 % of the *bytes* are in
//!   flows between 100 MB and 1 GB, with a mode around 100 MB, the file system's chunk; flows over a few GB are rare.
//! * Figure 3: more than 50 % of the time a machine has about ten flows, at least 5 % of the time more than 80 (a second
//!   mode), and almost never more than 100.
//!
//! [`FLOW_SIZES`] takes the points up to 90 % of the flows (400 kB) from the two public readings of Figure 2, which agree
//! there (the distributions called "data mining" in HKUST-SING/TrafficGenerator and in pFabric's simulator). Above, they
//! disagree with each other and with the caption: one has 98 % of the flows below 100 MB, and 87 % and 72 % of the bytes
//! in the range that should hold more than 90 %. There the table follows the caption: 99 % of the flows below 100 MB,
//! 94 % of the bytes between 100 MB and 1 GB, the mode of the bytes at 100 to 110 MB, none above 1 GB. The mean flow is
//! 3.1 MB ([`super::SizeDistribution::mean_bytes`]).

use super::sizes::{draw, segments};
use super::{MixSpec, WorkloadError, check_server, check_servers};
use crate::random::{Purpose, Stream};

/// Sizes of flows: `(bytes, flows)` says that so many of every 100,000 flows are at most so large. Between two rows all
/// sizes are equally likely; the smallest flow has one byte.
pub const FLOW_SIZES: [(u64, u32); 18] = [
    (180, 10_000),
    (216, 20_000),
    (560, 30_000),
    (900, 40_000),
    (1_100, 50_000),
    (1_870, 60_000),
    (3_160, 70_000),
    (10_000, 80_000),
    (400_000, 90_000),
    (1_000_000, 96_000),
    (3_160_000, 98_500),
    (10_000_000, 98_900),
    (100_000_000, 99_000),
    (110_000_000, 99_450),
    (200_000_000, 99_600),
    (400_000_000, 99_740),
    (700_000_000, 99_890),
    (1_000_000_000, 100_000),
];

/// Flows of one server at once: `(flows, servers)` says that so many of every 1,000 servers have at most so many flows.
/// Between two rows all numbers are equally likely; the smallest is one.
pub const CONCURRENCY: [(u32, u32); 9] =
    [(3, 30), (7, 160), (12, 710), (20, 820), (40, 860), (74, 895), (84, 975), (100, 999), (120, 1_000)];

/// Flows that a server keeps going, on average over [`CONCURRENCY`].
pub fn mean_concurrency() -> f64 {
    let table = CONCURRENCY.map(|(flows, servers)| (u64::from(flows), servers));
    let middles = segments(&table).map(|(low, high, servers)| (low + 1 + high) as f64 / 2.0 * servers as f64);
    middles.sum::<f64>() / 1e3
}

/// One server of the mix: how many flows it keeps going, and an endless sequence of flows.
#[derive(Clone, Debug)]
pub struct MixServer {
    stream: Stream,
    servers: u32,
    me: u32,
    size_divisor: u64,
    concurrency: u32,
}

impl MixServer {
    /// Server number `me` of `n_servers` in the run with this seed. The sequence depends on nothing else.
    pub fn new(spec: &MixSpec, n_servers: u32, me: u32, seed: u64) -> Result<Self, WorkloadError> {
        spec.check()?;
        check_servers(n_servers)?;
        check_server(me, n_servers)?;
        let mut stream = Stream::new(seed, Purpose::Mix, me);
        let table = CONCURRENCY.map(|(flows, servers)| (u64::from(flows), servers));
        let concurrency = draw(&mut stream, &table) as u32;
        Ok(Self { stream, servers: n_servers, me, size_divisor: u64::from(spec.size_divisor), concurrency })
    }

    /// How many flows the server keeps going throughout the run (VL2 5.2).
    pub fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// The next flow: number of the receiving server, which is never this one, and payload in bytes, at least 1.
    pub fn next_flow(&mut self) -> (u32, u64) {
        let other = self.stream.below(u64::from(self.servers) - 1) as u32;
        let to = if other < self.me { other } else { other + 1 };
        let bytes = draw(&mut self.stream, &FLOW_SIZES) / self.size_divisor;
        (to, bytes.max(1))
    }

    /// The flow under way once `age_bytes` of the sequence are sent: its receiver and the bytes that it has left, at
    /// least 1. The next flow is the one after it. A server that begins in the middle does not send all its first flows
    /// at the same time as the others.
    pub fn flow_under_way(&mut self, mut age_bytes: u64) -> (u32, u64) {
        loop {
            let (to, bytes) = self.next_flow();
            if bytes > age_bytes {
                return (to, bytes - age_bytes);
            }
            age_bytes -= bytes;
        }
    }
}

impl Iterator for MixServer {
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        Some(self.next_flow())
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizes::segments as rows;
    use super::*;
    use crate::units::{BitsPerSec, Nanos};
    use crate::workload::SizeDistribution;

    fn spec(size_divisor: u32) -> MixSpec {
        MixSpec { duration: Nanos(1), offered_rate_per_server: Some(BitsPerSec(1)), size_divisor }
    }

    fn server(me: u32, seed: u64) -> MixServer {
        MixServer::new(&spec(1), 75, me, seed).unwrap()
    }

    /// Bytes per 100,000 flows between two sizes that are rows of the table.
    fn bytes_between(from: u64, to: u64) -> f64 {
        let inside = rows(&FLOW_SIZES).filter(|(low, high, _)| *low >= from && *high <= to);
        inside.map(|(low, high, flows)| (low + 1 + high) as f64 / 2.0 * flows as f64).sum()
    }

    /// Share of the time, in 1/1000, with a number of flows in the range; exact.
    fn share(range: std::ops::RangeInclusive<u64>) -> f64 {
        let table = CONCURRENCY.map(|(flows, servers)| (u64::from(flows), servers));
        let inside = |low: u64, high: u64| (low + 1..=high).filter(|value| range.contains(value)).count() as f64;
        rows(&table).map(|(low, high, count)| count as f64 * inside(low, high) / (high - low) as f64).sum()
    }

    #[test]
    fn both_tables_rise() {
        assert!(FLOW_SIZES.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        assert!(CONCURRENCY.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    }

    #[test]
    fn sizes_are_as_the_caption_of_figure_2_says() {
        let upto = |bytes: u64| FLOW_SIZES.iter().find(|row| row.0 == bytes).unwrap().1;
        assert!(upto(3_160) > 50_000, "the majority of flows are a few KB");
        assert_eq!(upto(100_000_000), 99_000, "99 % of flows are smaller than 100 MB");
        let share = bytes_between(100_000_000, 1_000_000_000) / bytes_between(0, 1_000_000_000);
        assert!((0.93..0.95).contains(&share), "{share} of the bytes between 100 MB and 1 GB");
        assert_eq!(SizeDistribution::Vl2Mix.mean_bytes(), 3_082_119);
    }

    #[test]
    fn a_random_byte_is_most_likely_in_a_flow_of_about_100_mb() {
        let density = |(low, high, _): (u64, u64, u64)| bytes_between(low, high) / (high as f64 / low as f64).ln();
        let mode = rows(&FLOW_SIZES).skip(1).max_by(|a, b| density(*a).total_cmp(&density(*b))).unwrap();
        assert_eq!((mode.0, mode.1), (100_000_000, 110_000_000));
    }

    #[test]
    fn concurrency_has_the_two_modes_of_figure_3() {
        assert!(share(8..=12) > 500.0, "about ten, more than half of the time");
        assert!(share(81..=u64::MAX) >= 50.0, "more than 80, at least 5 % of the time: {}", share(81..=u64::MAX));
        assert!(share(101..=u64::MAX) <= 1.0, "almost never more than 100");
        let (ten, eighty) = (share(10..=10), share(80..=80));
        for (mode, valley) in
            [(ten, share(5..=5)), (ten, share(30..=30)), (eighty, share(50..=50)), (eighty, share(95..=95))]
        {
            assert!(mode > 3.0 * valley, "{mode} {valley}");
        }
    }

    #[test]
    fn drawn_flows_follow_the_tables() {
        let (mut all, mut large, mut small, mut flows) = (0u64, 0u64, 0u32, 0u32);
        for (_, bytes) in (0..75).flat_map(|me| server(me, 1).take(4_000)) {
            all += bytes;
            large += if (100_000_001..=1_000_000_000).contains(&bytes) { bytes } else { 0 };
            small += u32::from(bytes <= 10_000);
            flows += 1;
        }
        let share = large as f64 / all as f64;
        assert!(share > 0.9, "{share} of the drawn bytes");
        assert!(small.abs_diff(flows / 5 * 4) < flows / 100, "{small} of {flows}");
        let mean = SizeDistribution::Vl2Mix.mean_bytes();
        assert!((all / u64::from(flows)).abs_diff(mean) < mean / 20);
    }

    #[test]
    fn drawn_concurrencies_follow_the_table() {
        let numbers: Vec<u32> = (0..4_000).map(|seed| server(3, seed).concurrency()).collect();
        let count =
            |range: std::ops::RangeInclusive<u32>| numbers.iter().filter(|number| range.contains(number)).count();
        let mean = f64::from(numbers.iter().sum::<u32>()) / numbers.len() as f64;
        assert!((mean_concurrency() / mean - 1.0).abs() < 0.05, "{mean}");
        assert!(count(8..=12) > 2_000 && count(81..=u32::MAX) > 180 && count(101..=u32::MAX) < 20);
        assert_eq!(count(1..=120), 4_000);
    }

    #[test]
    fn receivers_are_all_the_others_equally_often() {
        let mut counts = [0u32; 5];
        for (to, _) in MixServer::new(&spec(1), 5, 2, 1).unwrap().take(8_000) {
            counts[to as usize] += 1;
        }
        assert_eq!(counts[2], 0);
        assert!([0, 1, 3, 4].iter().all(|to| counts[*to].abs_diff(2_000) < 200), "{counts:?}");
    }

    #[test]
    fn the_flow_under_way_is_the_rest_of_the_one_that_its_age_falls_into() {
        let flows: Vec<(u32, u64)> = server(0, 1).take(3).collect();
        let (first, two) = (flows[0].1, flows[0].1 + flows[1].1);
        let (mut before, mut last, mut next) = (server(0, 1), server(0, 1), server(0, 1));
        assert_eq!(before.flow_under_way(0), flows[0]);
        assert_eq!(last.flow_under_way(first - 1), (flows[0].0, 1));
        assert_eq!(last.next_flow(), flows[1], "the sequence goes on after it");
        assert_eq!(next.flow_under_way(first), flows[1]);
        assert_eq!(server(0, 1).flow_under_way(two - 2), (flows[1].0, 2));
    }

    #[test]
    fn sizes_are_divided_and_never_vanish() {
        let whole: Vec<u64> = server(0, 1).take(100).map(|(_, bytes)| bytes).collect();
        let scaled: Vec<u64> = MixServer::new(&spec(50), 75, 0, 1).unwrap().take(100).map(|(_, bytes)| bytes).collect();
        assert_eq!(scaled, whole.iter().map(|bytes| (bytes / 50).max(1)).collect::<Vec<_>>());
        let tiny = MixServer::new(&spec(u32::MAX), 75, 0, 1).unwrap();
        assert!(tiny.take(1_000).all(|(_, bytes)| bytes == 1));
    }

    #[test]
    fn a_seed_gives_the_same_flows_on_every_machine() {
        let mut first = server(0, 1);
        let flows: Vec<(u32, u64)> = first.by_ref().take(4).collect();
        assert_eq!((first.concurrency(), flows), (12, vec![(52, 437), (18, 481), (67, 7_253), (40, 102)]));
        let again: Vec<(u32, u64)> = server(0, 1).take(4).collect();
        let other: Vec<(u32, u64)> = server(0, 2).take(4).collect();
        assert_ne!(again, other);
    }

    #[test]
    fn impossible_servers_are_refused() {
        assert_eq!(MixServer::new(&spec(1), 1, 0, 1).err(), Some(WorkloadError::TooFewServers { servers: 1 }));
        let outside = WorkloadError::NoSuchServer { server: 75, servers: 75 };
        assert_eq!(MixServer::new(&spec(1), 75, 75, 1).err(), Some(outside));
        assert_eq!(MixServer::new(&spec(0), 75, 0, 1).err(), Some(WorkloadError::ZeroDivisor));
    }
}
