//! Datagrams at steady rates: how many arrive, how long they take, which way they go.

mod common;

use std::collections::BTreeMap;

use common::{US, fabric, job, outcome};
use weft_scenario::topology::{Fabric, FatTreeParams, fat_tree};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::services::DatagramStream;
use weft_sim::{DatagramFlow, Job, SimError, Unobserved, datagram_ways, run};

const MS_NS: u64 = 1_000_000;

/// Packets of 1000 bytes, one a millisecond from the first on.
fn every_ms(from: u32, to: u32, count: u64) -> DatagramFlow {
    let (rate, start_ns) = (BitsPerSec(972 * 8 * 1_000), MS_NS / 2);
    let end_ns = start_ns + count * MS_NS;
    DatagramFlow { spec: DatagramStream { from, to, rate, start_ns, end_ns, limit: None }, payload_bytes: 972 }
}

fn with_datagrams(fabric: Fabric, datagrams: Vec<DatagramFlow>) -> Job {
    Job { datagrams, ..job(fabric, Vec::new()) }
}

/// A fat tree of links that take 25 ms for 1000 bytes.
fn slow_tree(k: u32) -> Fabric {
    let mut params = FatTreeParams::with_ports(k);
    params.links.server_rate = BitsPerSec(320_000);
    params.links.core_rate = BitsPerSec(320_000);
    params.links.server_buffer = Bytes(10_000);
    params.links.core_buffer = Bytes(10_000);
    fat_tree(&params).unwrap()
}

#[test]
fn a_datagram_on_an_empty_path_takes_its_transmissions_and_propagations() {
    let outcome = outcome(&with_datagrams(fabric(1, 2, 1, 40), vec![every_ms(0, 1, 5)]));
    let stream = &outcome.datagrams[0];
    // Two links at 10 Gb/s, two at 40, 1 us each.
    let delay_ps = 2 * 800_000 + 2 * 200_000 + 4 * US;
    assert_eq!((stream.sent, stream.received, stream.delay_max_ps), (5, 5, delay_ps));
    assert_eq!((stream.mean_delay_ps(), stream.delay_sum_ps), (Some(delay_ps), 5 * u128::from(delay_ps)));
    assert_eq!((outcome.totals.packet_hops, outcome.totals.sent.bytes), (5 * 4, 5_000));
    assert_eq!(outcome.end_ps, (MS_NS / 2 + 5 * MS_NS) * 1_000, "when the sixth would be due, nothing is left to do");
}

#[test]
fn a_pod_is_four_links_across_and_the_next_is_six() {
    let slow = |to: u32| {
        let stream = every_ms(0, to, 1);
        let stream = DatagramFlow { spec: DatagramStream { rate: BitsPerSec(7_776), ..stream.spec }, ..stream };
        let outcome = outcome(&with_datagrams(slow_tree(4), vec![stream]));
        (outcome.datagrams[0].mean_delay_ps(), outcome.totals.packet_hops)
    };
    let ms = |count: u64| Some(count * 1_000_000_000);
    assert_eq!([1, 2, 15].map(slow), [(ms(50), 2), (ms(100), 4), (ms(150), 6)]);
}

#[test]
fn one_of_two_that_meet_waits_for_the_other() {
    let outcome = outcome(&with_datagrams(fabric(1, 1, 3, 40), vec![every_ms(0, 2, 4), every_ms(1, 2, 4)]));
    let alone_ps = 2 * (800_000 + US);
    let sums: u128 = outcome.datagrams.iter().map(|stream| stream.delay_sum_ps).sum();
    assert_eq!(sums, 4 * u128::from(2 * alone_ps + 800_000), "whichever it is");
    assert!(outcome.datagrams.iter().any(|stream| stream.delay_max_ps == alone_ps + 800_000));
}

#[test]
fn what_a_full_queue_refuses_was_sent_and_has_no_delay() {
    let mut job = with_datagrams(slow_tree(2), vec![every_ms(0, 1, 100)]);
    job.stop = Some(Nanos(10_000 * MS_NS));
    job.settings.switching.host_queue = weft_scenario::switching::HostQueue::DropTail { limit: Bytes(10_000) };
    let outcome = outcome(&job);
    let stream = &outcome.datagrams[0];
    // In 100 ms four leave, and ten have room.
    assert_eq!((stream.sent, stream.received, outcome.totals.drops()), (100, 13, 87));
    assert!(stream.delay_max_ps <= (10 + 6) * 25_000_000_000, "{}", stream.delay_max_ps);
}

#[test]
fn datagrams_go_the_ways_that_were_foretold() {
    let streams = (0..16).map(|from| every_ms(from, (from + 5) % 16, 3)).collect();
    let mut params = FatTreeParams::with_ports(4);
    params.links.server_rate = BitsPerSec(1_000_000_000);
    let job = with_datagrams(fat_tree(&params).unwrap(), streams);
    let mut expected = BTreeMap::new();
    for way in datagram_ways(&job) {
        way.windows(2).for_each(|pair| *expected.entry((pair[0], pair[1])).or_insert(0) += 3);
    }
    let carried = outcome(&job).ports.into_iter().filter(|port| port.counters.packets > 0).map(|port| {
        let far = job.fabric.link(port.link).far_end(port.node).unwrap().node;
        ((port.node, far), port.counters.packets)
    });
    assert_eq!(carried.collect::<BTreeMap<_, _>>(), expected);
}

#[test]
fn datagrams_that_are_no_packets_are_refused_by_name() {
    for (payload_bytes, message) in [
        (0, "`payload_bytes` is 0; give a datagram at least one byte of payload"),
        (65_508, "`payload_bytes` is 65508; an IP packet has at most 65535 bytes"),
        (1_573, "packets of 1601 bytes"),
    ] {
        let stream = DatagramFlow { payload_bytes, ..every_ms(0, 1, 1) };
        let error: SimError = run(&with_datagrams(fabric(1, 1, 2, 40), vec![stream]), &mut Unobserved).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}
