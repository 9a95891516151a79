//! Sparse traffic on fat trees, the benchmark of simulators made of actors: every second server sends a small packet a second to a
//! server of another pod, so that each packet crosses six links and finds most queues empty.

use weft_scenario::random::{Purpose, Stream};
use weft_scenario::topology::{FatTreeParams, LinkParams, fat_tree};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::services::DatagramStream;

use super::{bare, settings};
use crate::job::{DatagramFlow, Job};

/// Ports of the switches of the trees.
pub(super) const PORTS: [u32; 3] = [8, 16, 32];
/// Packets of each stream.
const PACKETS: u64 = 1_500;
/// Payload of a packet of 1000 bytes.
const PAYLOAD_BYTES: u32 = 972;
/// A packet a second.
const RATE: BitsPerSec = BitsPerSec(PAYLOAD_BYTES as u64 * 8);
const S_NS: u64 = 1_000_000_000;
/// A packet takes 8 ms; a queue holds 50.
const LINKS: LinkParams = LinkParams {
    server_rate: BitsPerSec(1_000_000),
    core_rate: BitsPerSec(1_000_000),
    server_buffer: Bytes(50_000),
    core_buffer: Bytes(50_000),
    delay: Nanos(0),
};
const SEED: u64 = 1;

/// The job of a tree of switches with `k` ports.
pub(super) fn job(k: u32) -> Job {
    let params = FatTreeParams { links: LINKS, ..FatTreeParams::with_ports(k) };
    let fabric = fat_tree(&params).expect("the parameters are within the generator's limits");
    let servers = fabric.servers().count() as u32;
    let datagrams = streams(servers, servers / k);
    Job { datagrams, ..bare(fabric, settings(LINKS.server_buffer)) }
}

/// The job with so many times fewer packets in each stream.
pub(super) fn divide(streams: &mut [DatagramFlow], divisor: u64) {
    streams.iter_mut().for_each(|stream| stream.spec.end_ns = end_ns(stream.spec.start_ns, PACKETS / divisor));
}

/// One stream from each of half of the servers.
fn streams(servers: u32, per_pod: u32) -> Vec<DatagramFlow> {
    let mut draws = Stream::new(SEED, Purpose::Datagrams, servers);
    let mut all: Vec<u32> = (0..servers).collect();
    let senders = draws.choose(&mut all, servers as usize / 2).to_vec();
    let stream = |from: u32| {
        let elsewhere = draws.below(u64::from(servers - per_pod)) as u32;
        let to = (from / per_pod * per_pod + per_pod + elsewhere) % servers;
        let start_ns = draws.below(S_NS);
        let spec = DatagramStream { from, to, rate: RATE, start_ns, end_ns: end_ns(start_ns, PACKETS), limit: None };
        DatagramFlow { spec, payload_bytes: PAYLOAD_BYTES }
    };
    senders.into_iter().map(stream).collect()
}

/// Half a second after the last of so many packets, so that no rounding decides whether there is one more.
fn end_ns(start_ns: u64, packets: u64) -> u64 {
    start_ns + packets.max(1) * S_NS - S_NS / 2
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_second_server_sends_to_another_pod() {
        for k in PORTS {
            let job = job(k);
            let (servers, per_pod) = (k * k * k / 4, k * k / 4);
            let senders: BTreeSet<u32> = job.datagrams.iter().map(|stream| stream.spec.from).collect();
            assert_eq!((senders.len(), job.datagrams.len()), (servers as usize / 2, servers as usize / 2));
            assert!(job.datagrams.iter().all(|stream| stream.spec.from / per_pod != stream.spec.to / per_pod));
            assert!(job.datagrams.iter().all(|stream| stream.spec.to < servers));
        }
    }

    #[test]
    fn every_packet_crosses_six_links_and_none_is_lost() {
        let mut job = job(8);
        divide(&mut job.datagrams, 100);
        let outcome = crate::run(&job, &mut crate::Unobserved).expect("the job runs");
        assert_eq!((outcome.totals.packet_hops, outcome.totals.drops()), (64 * 15 * 6, 0));
        let least = outcome.datagrams.iter().filter_map(|stream| stream.mean_delay_ps()).min();
        assert_eq!(least, Some(6 * 8_000_000_000), "some stream meets no other");
    }
}
