//! Runs whose outcome can be worked out by hand, to the picosecond and to the byte.

mod common;

use std::collections::BTreeMap;

use common::{PACKET, US, fabric, flow, job, outcome, with_links};
use weft_scenario::engine::CongestionControl;
use weft_scenario::switching::{BufferPolicy, Forwarding, HostQueue};
use weft_scenario::units::Bytes;
use weft_sim::{Job, bench};

/// 40 bytes at 10 and 40 Gb/s, in picoseconds.
const SMALL_10: u64 = 32_000;
const SMALL_40: u64 = 8_000;

#[test]
fn one_packet_crosses_two_hops() {
    let outcome = outcome(&job(fabric(1, 1, 2, 40), vec![flow(0, 1, PACKET, 500)]));
    let handshake = 4 * (SMALL_10 + US);
    let received = 500_000 + handshake + 2 * (1_200_000 + US);
    assert_eq!(outcome.flows[0].received_ps, Some(received));
    assert_eq!(outcome.flows[0].acknowledged_ps, Some(received + 2 * (SMALL_10 + US)));
    assert_eq!(outcome.totals.packet_hops, 8, "SYN, SYN-ACK, data and ACK over two links each");
    assert_eq!((outcome.totals.sent.packets, outcome.totals.sent.bytes), (4, 1500 + 3 * 40));
}

#[test]
fn the_clock_goes_on_for_as_long_as_it_takes() {
    let hour_ns = 3_600_000_000_000;
    let flows = (0..3).map(|hour| flow(0, 1, PACKET, hour * hour_ns)).collect();
    let outcome = outcome(&job(fabric(1, 1, 2, 40), flows));
    let took: Vec<_> = outcome.flows.iter().map(|flow| flow.completion_ps().unwrap()).collect();
    assert_eq!(took, [8_528_000; 3]);
}

#[test]
fn store_and_forward_and_cut_through_differ_by_the_packet_less_its_header() {
    let mut job = job(fabric(1, 2, 1, 40), vec![flow(0, 1, PACKET, 0)]);
    let handshake = 4 * (SMALL_10 + SMALL_40) + 8 * US;
    let stored = handshake + 2 * (1_200_000 + 300_000) + 4 * US;
    assert_eq!(outcome(&job).flows[0].received_ps, Some(stored));
    job.settings.switching.forwarding = Forwarding::CutThrough;
    // The leaf sends four times as fast as it receives and must wait; the spine and the second leaf forward after 64 B.
    let cut = handshake + 1_200_000 + 2 * 12_800 + 1_200_000 + 4 * US;
    assert_eq!(outcome(&job).flows[0].received_ps, Some(cut));
}

/// Two hosts send ten packets each to a third at once. The SYN-ACKs leave 32 ns (40 B) apart, and so do the k-th packets:
/// the first finds 1500 (k - 1) B in the queue, the second 1500 k - 40 B, as long as nothing is dropped.
fn duel(change: impl FnOnce(&mut Job)) -> weft_sim::Totals {
    let mut job = job(fabric(1, 1, 3, 40), vec![flow(0, 2, 10 * PACKET, 0), flow(1, 2, 10 * PACKET, 0)]);
    change(&mut job);
    let outcome = outcome(&job);
    assert_eq!(outcome.totals.flows_done, 2);
    outcome.totals
}

#[test]
fn a_port_drops_what_exceeds_its_buffer_by_a_byte() {
    let drops =
        |bytes| duel(|job| job.fabric = with_links(&job.fabric, |link| link.spec.buffer = Bytes(bytes))).drops();
    // The second packet of pair 5 ends at 1500 * 6 - 40. Where it fits, one of each later pair does not, else also it.
    assert_eq!((drops(8_960), drops(8_959)), (5, 6));
    assert_eq!((drops(16_460), drops(16_459)), (0, 1), "the last packet of all ends at 1500 * 11 - 40");
}

fn pool(bytes: u64, dynamic_alpha_milli: Option<u32>) -> BufferPolicy {
    BufferPolicy::SharedPool { pool: Bytes(bytes), dynamic_alpha_milli, tier_pools: BTreeMap::new() }
}

#[test]
fn a_shared_pool_drops_what_exceeds_it_by_a_byte() {
    let drops = |bytes| duel(|job| job.settings.switching.buffer = pool(bytes, None)).drops();
    assert_eq!((drops(8_960), drops(8_959)), (5, 6));
    assert_eq!((drops(16_460), drops(16_459)), (0, 1));
}

#[test]
fn a_dynamic_threshold_leaves_a_share_of_the_pool_free() {
    let drops = |alpha| duel(|job| job.settings.switching.buffer = pool(12_000, Some(alpha))).drops();
    // One queue q: room while q < alpha (12000 - q). With alpha 1 up to 6000 B: from pair 5 on one packet finds 6000 B and
    // goes. With alpha 2 up to 8000 B: pair 6 finds 7500 and 8960 B.
    assert_eq!((drops(1_000), drops(2_000)), (6, 5));
}

#[test]
fn packets_that_meet_a_queue_above_the_threshold_are_marked() {
    let marked = |bytes| {
        let totals = duel(|job| {
            job.settings.switching.ecn_threshold = Some(Bytes(bytes));
            job.settings.tcp.congestion_control = CongestionControl::Dctcp;
        });
        totals.marked
    };
    // The second packet of pair 4 finds 5960 B; both of pairs 5 to 10 find more.
    assert_eq!((marked(5_960), marked(5_959)), (12, 13));
    let reno = duel(|job| job.settings.switching.ecn_threshold = Some(Bytes(0)));
    assert_eq!(reno.marked, 0, "a transport that does not understand marks gets none");
}

#[test]
fn delayed_acknowledgements_are_half_as_many() {
    let mut job = job(fabric(1, 1, 2, 40), vec![flow(0, 1, 1_000 * PACKET, 0)]);
    assert_eq!(outcome(&job).totals.sent.packets, 2 + 1_000 + 1_000);
    job.settings.tcp.segments_per_ack = 2;
    assert_eq!(outcome(&job).totals.sent.packets, 2 + 1_000 + 500);
}

#[test]
fn the_last_segment_is_as_long_as_what_is_left() {
    let outcome = outcome(&job(fabric(1, 1, 2, 40), vec![flow(0, 1, 2 * PACKET + 1, 0)]));
    assert_eq!(outcome.totals.sent.bytes, 2 * 1500 + 41 + 5 * 40);
    assert_eq!((outcome.flows[0].received_bytes, outcome.totals.received_bytes), (2_921, 2_921));
}

#[test]
fn a_card_with_back_pressure_loses_nothing_and_its_flows_take_turns() {
    let flows = vec![flow(0, 1, 500 * PACKET, 0), flow(0, 2, 500 * PACKET, 0)];
    let mut job = job(fabric(1, 1, 3, 40), flows);
    job.settings.tcp.initial_window = 500;
    job.settings.switching.host_queue = HostQueue::DropTail { limit: Bytes(30_000) };
    assert!(outcome(&job).totals.drops() > 0);
    job.settings.switching.host_queue = HostQueue::BackPressure { limit: Bytes(30_000) };
    let outcome = outcome(&job);
    assert_eq!(outcome.totals.drops(), 0);
    let ends = outcome.flows.iter().map(|flow| flow.received_ps.unwrap()).collect::<Vec<_>>();
    // The first flow is ahead by the 20 packets that it puts on the card before the second is connected, and one more.
    assert!(ends[1] - ends[0] <= 21 * 1_200_000, "{ends:?}");
    let all = ends[0].max(ends[1]);
    assert!((1_200 * US..1_210 * US).contains(&all), "the card never idles: {all}");
}

/// One flow over four hops of 10 Gb/s and 1 us: the handshake, then one packet after another, with a gap where the first
/// window is shorter than the round trip; all in times on the wire of a packet, an ACK and a SYN, which is as long.
#[test]
fn a_flow_of_a_thousand_packets_takes_what_the_closed_form_says() {
    for framing in [0, 2, 38] {
        let mut job = job(fabric(1, 2, 1, 10), vec![flow(0, 1, 1_000 * PACKET, 0)]);
        job.settings.tcp.initial_window = 10;
        job.settings.sizes.framing_bytes = framing;
        let [packet, ack] = [1_500, 40].map(|bytes| (bytes + u64::from(framing)) * 800);
        let round_trip = 4 * (packet + US) + 4 * (ack + US);
        let received = 8 * (ack + US) + 1_003 * packet + 4 * US + round_trip.saturating_sub(10 * packet);
        assert_eq!(outcome(&job).flows[0].received_ps, Some(received), "framing of {framing} B");
    }
}

#[test]
fn the_reference_job_comes_out_as_published() {
    let outcome = outcome(&bench::job("r1a").unwrap());
    assert_eq!((outcome.totals.packet_hops, outcome.totals.drops()), (8_000_800, 0));
    let mean_ns = bench::mean_completion_ns(&outcome);
    assert!(mean_ns.abs_diff(12_368_800) < 12_369, "{mean_ns}");
}

#[test]
fn the_reference_job_of_1600_hosts_comes_out_as_published() {
    let outcome = outcome(&bench::job("hosts1600").unwrap());
    assert_eq!((outcome.totals.packet_hops, outcome.totals.drops()), (12_812_800, 0));
    let mean_ns = bench::mean_completion_ns(&outcome);
    assert!(mean_ns.abs_diff(1_288_000) < 1_288, "{mean_ns}");
}
