//! The reference job R1, which other simulators were measured with, and its larger sister with 1600 hosts.
//!
//! R1 has 100 hosts in 5 racks of 20 and 5 spines; every flow names its spine. Jobs a, b and i are integer arithmetic; job w
//! draws web-search sizes and exponential gaps with the logarithm of `libm`, so that all of them are the same everywhere.

use super::flow_file::{PACKET_PAYLOAD_BYTES, PinnedFlow};
use super::sizes::WEB_SEARCH;
use crate::random::scramble;

/// Hosts of R1.
pub const HOSTS: u32 = 100;
/// Hosts below each leaf of R1.
pub const HOSTS_PER_RACK: u32 = 20;
/// Spines of R1.
pub const SPINES: u32 = 5;
/// Hosts of [`hosts1600`].
pub const LARGE_HOSTS: u32 = 1600;
/// Hosts below each leaf of [`hosts1600`].
pub const LARGE_HOSTS_PER_RACK: u32 = 40;
/// Spines of [`hosts1600`].
pub const LARGE_SPINES: u32 = 10;

/// Time between the starts of two flows of a permutation, in picoseconds.
const GAP_PS: u64 = 100_000;

/// Job a: host i sends `packets` to host (i + 20) mod 100 by spine i mod 5, starts 100 ns apart. Nothing is lost.
pub fn permutation(packets: u32) -> Vec<PinnedFlow> {
    shifted(HOSTS, HOSTS_PER_RACK, packets, |from, _| from % SPINES)
}

/// Job b: the same with hashed spines, so that some are crowded and lose packets.
pub fn hashed_permutation(packets: u32) -> Vec<PinnedFlow> {
    shifted(HOSTS, HOSTS_PER_RACK, packets, hashed_spine)
}

/// Job i: `senders` hosts of other racks send `packets` each to host 0, starts 1 ns apart.
pub fn incast(senders: u32, packets: u32) -> Vec<PinnedFlow> {
    let flow = |number: u32| {
        let from = HOSTS_PER_RACK + number % (HOSTS - HOSTS_PER_RACK);
        PinnedFlow { start_ps: u64::from(number) * 1_000, from, to: 0, packets, spine: hashed_spine(from, 0) as u16 }
    };
    (0..senders).map(flow).collect()
}

/// 1600 hosts in 40 racks, 10 spines: host i sends `packets` to host (i + 40) mod 1600 by spine i mod 10, starts 100 ns
/// apart.
pub fn hosts1600(packets: u32) -> Vec<PinnedFlow> {
    shifted(LARGE_HOSTS, LARGE_HOSTS_PER_RACK, packets, |from, _| from % LARGE_SPINES)
}

/// Job w: `flows` web-search flows that arrive at random at 60 % of the hosts' links, between random hosts of different
/// racks, spines hashed. The load counts payload against 1460 / 1500 of the link rate of 10 Gb/s.
pub fn web_search(flows: u32) -> Vec<PinnedFlow> {
    let flows_per_s = 0.6 * f64::from(HOSTS) * 10e9 / 8.0 * (1460.0 / 1500.0) / mean_bytes();
    let mut draws = Draws { taken: 0 };
    let mut at_s = 0.0;
    (0..flows)
        .map(|_| {
            at_s += -libm::log(draws.uniform()) / flows_per_s;
            let from = draws.below(HOSTS);
            let elsewhere = draws.below(HOSTS - HOSTS_PER_RACK);
            let to = (from / HOSTS_PER_RACK * HOSTS_PER_RACK + HOSTS_PER_RACK + elsewhere) % HOSTS;
            let bytes = size_at(draws.uniform());
            let packets = libm::ceil(bytes / f64::from(PACKET_PAYLOAD_BYTES)).max(1.0) as u32;
            PinnedFlow { start_ps: (at_s * 1e12) as u64, from, to, packets, spine: hashed_spine(from, to) as u16 }
        })
        .collect()
}

fn shifted(hosts: u32, by: u32, packets: u32, spine: fn(u32, u32) -> u32) -> Vec<PinnedFlow> {
    let flow = |from: u32| {
        let to = (from + by) % hosts;
        PinnedFlow { start_ps: u64::from(from) * GAP_PS, from, to, packets, spine: spine(from, to) as u16 }
    };
    (0..hosts).map(flow).collect()
}

/// R1's hash of a pair of hosts.
fn hashed_spine(from: u32, to: u32) -> u32 {
    (scramble(u64::from(from) * 65_536 + u64::from(to)) % u64::from(SPINES)) as u32
}

/// Pairs of neighbouring points of the distribution, each a size and the share of the flows up to it.
fn steps() -> impl Iterator<Item = ((f64, f64), (f64, f64))> {
    let point = |(bytes, percent): (u64, u32)| (bytes as f64, f64::from(percent) / 100.0);
    let points = WEB_SEARCH.into_iter().map(point);
    std::iter::once((0.0, 0.0)).chain(points.clone()).zip(points)
}

fn mean_bytes() -> f64 {
    steps().map(|((low, less), (high, upto))| (low + high) / 2.0 * (upto - less)).sum()
}

/// The size below which this share of the flows is.
fn size_at(share: f64) -> f64 {
    let step = steps().find(|(_, (_, upto))| share <= *upto);
    step.map_or(0.0, |((low, less), (high, upto))| low + (high - low) * ((share - less) / (upto - less)))
}

/// R1's random numbers: SplitMix64's finalizer over a counter, seed 1.
struct Draws {
    taken: u64,
}

impl Draws {
    /// Above 0 and below 1.
    fn uniform(&mut self) -> f64 {
        self.taken += 1;
        ((scramble((1 << 32) ^ self.taken) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn below(&mut self, bound: u32) -> u32 {
        (self.uniform() * f64::from(bound)) as u32
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::super::flow_file::to_text;
    use super::*;

    fn sha256(flows: &[PinnedFlow]) -> String {
        Sha256::digest(to_text(flows)).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The flow lists that other simulators were measured with, known by the SHA-256 of their files.
    #[test]
    fn the_lists_are_those_of_the_reference_job() {
        for (flows, expected) in [
            (permutation(10_000), "910a879132b54c9479302f41cc4f7efafe2b592232b8fba898e32e0230c58ba7"),
            (hashed_permutation(10_000), "9e9ccfb958404f2aa7dccd2b243be80b0b6ae1884c9b8377ecbd4bb21fa092eb"),
            (web_search(1_000), "ff292b86cb3536f6046beaf47b9d18b8bb12e8c684df699ff99d3872fa77add2"),
            (incast(40, 14), "1c2672d3dbc063ab3d998758546337557dbc1148c6d2c9ac685e043007a364a3"),
        ] {
            assert_eq!(sha256(&flows), expected);
        }
    }

    #[test]
    fn the_larger_job_joins_each_rack_with_the_next() {
        let flows = hosts1600(1_000);
        assert_eq!(flows.len(), 1_600);
        let last = PinnedFlow { start_ps: 159_900_000, from: 1_599, to: 39, packets: 1_000, spine: 9 };
        assert_eq!(flows.last(), Some(&last));
        assert!(flows.iter().all(|flow| flow.to / 40 == (flow.from / 40 + 1) % 40));
    }
}
