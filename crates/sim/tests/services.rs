//! Services on one network: datagrams that nothing slows down, the agent's limit on them, and payload counted by service.

mod common;

use common::{PACKET, fabric, flow, job, outcome};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::services::{DATAGRAM_PAYLOAD_BYTES, DatagramLimit, DatagramStream};
use weft_sim::{Job, Outcome};

const MS: u64 = 1_000_000;

fn stream(from: u32, to: u32, gbit_per_s: u64) -> DatagramStream {
    let rate = BitsPerSec(gbit_per_s * 1_000_000_000);
    DatagramStream { from, to, rate, start_ns: MS, end_ns: 3 * MS, limit: None }
}

/// Two leaves with two servers of 10 Gb/s each, a spine of 40 Gb/s: server 0 sends to 2 by TCP, 1 floods.
fn flooded(streams: Vec<DatagramStream>) -> Job {
    let mut job = job(fabric(2, 2, 2, 40), vec![flow(0, 2, 0, 0)]);
    job.datagrams = streams.into_iter().map(Into::into).collect();
    job.stop = Some(Nanos(4 * MS));
    job.watch.sample_interval = Some(Nanos(MS));
    job.watch.services = vec![("one".to_owned(), vec![0, 2]), ("two".to_owned(), vec![1, 3])];
    job
}

fn received(outcome: &Outcome, service: usize) -> Vec<u64> {
    outcome.samples.iter().map(|sample| sample.services[service]).collect()
}

#[test]
fn a_stream_arrives_at_its_rate_within_its_times() {
    let outcome = outcome(&flooded(vec![stream(1, 3, 2)]));
    let bytes = received(&outcome, 1);
    // 2 Gb/s are 250 kB a millisecond, give or take a datagram.
    let off = |got: u64, want: u64| got.abs_diff(want) <= 2 * u64::from(DATAGRAM_PAYLOAD_BYTES);
    assert_eq!(bytes[..2], [0, 0]);
    assert!(off(bytes[2], 250_000) && off(bytes[3], 500_000) && bytes[4] - bytes[3] <= 2_000, "{bytes:?}");
    let last = outcome.samples.last().unwrap();
    assert_eq!(last.services.iter().sum::<u64>(), last.received_bytes);
}

#[test]
fn a_flood_takes_the_capacity_of_tcp_flows_and_a_limit_gives_it_back() {
    let tcp = |streams| outcome(&flooded(streams)).flows[0].received_bytes as f64;
    let flood = stream(1, 2, 9);
    let limit = Some(DatagramLimit { rate: BitsPerSec(100_000_000), burst: Bytes(15_140) });
    let (alone, flooded, limited) = (tcp(vec![]), tcp(vec![flood]), tcp(vec![DatagramStream { limit, ..flood }]));
    // Two of the four milliseconds are flooded.
    assert!(flooded < 0.75 * alone, "{flooded} beside {alone}");
    assert!(limited > 0.9 * alone, "{limited} beside {alone}");
}

#[test]
fn what_the_card_has_no_room_for_is_lost_at_the_source() {
    let outcome = outcome(&flooded(vec![stream(1, 3, 20)]));
    let bytes = received(&outcome, 1);
    // The link carries 10 Gb/s: 2.5 MB in 2 ms, and what the card still held.
    assert!((2_300_000..2_700_000).contains(&(bytes[3] - bytes[1])), "{bytes:?}");
}

#[test]
fn a_run_with_datagrams_goes_on_after_its_last_flow() {
    let mut job = flooded(vec![stream(1, 3, 2)]);
    job.source = weft_sim::Source::Flows(vec![flow(0, 2, 3 * PACKET, 0)]);
    let outcome = outcome(&job);
    assert_eq!((outcome.totals.flows_done, outcome.end_ps), (1, 4 * MS * 1_000));
    assert!(received(&outcome, 1)[4] > 0);
}
