//! Which ways packets take: shares, trees, pins, sprays, and VL2's bounce.

mod common;

use std::collections::BTreeMap;

use common::{GBPS, PACKET, fabric, flow, job, outcome};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::Overlay;
use weft_scenario::switching::{LoadBalance, Switching};
use weft_scenario::topology::{Fabric, LinkParams, Role, TestbedParams, vl2_testbed};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_sim::{Flow, Job, Outcome, PacketSizes};

/// Packets that left nodes of one role towards nodes of another, by the names of both ends.
fn carried(fabric: &Fabric, outcome: &Outcome, from: Role, to: Role) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for port in &outcome.ports {
        let far = fabric.link(port.link).far_end(port.node).unwrap().node;
        let (near, far) = (fabric.node(port.node), fabric.node(far));
        if (near.role, far.role) == (from, to) {
            *counts.entry((near.name.clone(), far.name.clone())).or_insert(0) += port.counters.packets;
        }
    }
    counts
}

/// Many flows of one packet each from server 0 to server 1, 2 us apart.
fn mice(count: u64) -> Vec<Flow> {
    (0..count).map(|number| flow(0, 1, PACKET, 2_000 * number)).collect()
}

#[test]
fn flows_spread_evenly_and_both_directions_on_their_own() {
    let mut job = job(fabric(4, 2, 1, 40), mice(2_000));
    let first = outcome(&job);
    let up = carried(&job.fabric, &first, Role::Leaf, Role::Spine);
    // Each flow sends its SYN and its segment one way: 1000 of 4000 packets by each spine, within five deviations.
    let mean_and_five_sigma = (1_000, 5 * 39);
    assert_eq!(up.len(), 8);
    assert!(up.values().all(|packets| packets.abs_diff(mean_and_five_sigma.0) < mean_and_five_sigma.1), "{up:?}");
    let of =
        |leaf: &str| up.iter().filter(|((near, _), _)| near == leaf).map(|(_, packets)| *packets).collect::<Vec<_>>();
    assert_ne!(of("leaf1"), of("leaf2"), "acknowledgements are hashed apart");
    job.settings.seed = 2;
    assert_ne!(outcome(&job), first, "another seed, other paths");
}

#[test]
fn a_pinned_flow_goes_by_its_switch_both_ways() {
    let fabric = fabric(4, 2, 1, 40);
    let spine = fabric.find("spine3");
    let flows = mice(50).into_iter().map(|flow| Flow { through: spine, ..flow }).collect();
    let job = job(fabric, flows);
    let down = carried(&job.fabric, &outcome(&job), Role::Spine, Role::Leaf);
    let used: Vec<_> = down.iter().filter(|(_, packets)| **packets > 0).map(|((spine, _), _)| spine.as_str()).collect();
    assert_eq!(used, ["spine3", "spine3"]);
}

#[test]
fn a_spanning_tree_uses_one_path() {
    let mut job = job(fabric(4, 2, 1, 40), mice(50));
    job.settings.switching.load_balance = LoadBalance::SpanningTree;
    let down = carried(&job.fabric, &outcome(&job), Role::Spine, Role::Leaf);
    assert_eq!(down.values().filter(|packets| **packets > 0).count(), 2);
    assert_eq!(down[&("spine1".to_owned(), "leaf2".to_owned())], 100);
}

fn long_flow(load_balance: LoadBalance) -> Vec<u64> {
    let mut job = job(fabric(4, 2, 1, 40), vec![flow(0, 1, 4_000 * PACKET, 0)]);
    job.settings.switching.load_balance = load_balance;
    let up = carried(&job.fabric, &outcome(&job), Role::Leaf, Role::Spine);
    up.into_iter().filter(|((near, _), _)| near == "leaf1").map(|(_, packets)| packets).collect()
}

#[test]
fn one_flow_takes_one_path_or_all_of_them() {
    let one = long_flow(LoadBalance::FlowEcmp);
    assert_eq!(one.iter().filter(|packets| **packets > 0).count(), 1);
    let sprayed = long_flow(LoadBalance::PacketSpray);
    assert!(sprayed.iter().all(|packets| packets.abs_diff(1_000) < 150), "{sprayed:?}");
    // A flow that fills its link has no pauses of a millisecond; of a nanosecond it has one before each packet.
    let rare = long_flow(LoadBalance::Flowlet { gap: Nanos(1_000_000) });
    assert_eq!(rare.iter().filter(|packets| **packets > 0).count(), 1);
    let often = long_flow(LoadBalance::Flowlet { gap: Nanos(1) });
    assert!(often.iter().all(|packets| *packets > 500), "{often:?}");
}

/// Two flows at once from two servers of one leaf to two of the other, over four spines no faster than a server.
fn pair(load_balance: LoadBalance, seed: u64) -> Outcome {
    let bytes = 20_000 * PACKET;
    let mut job = job(fabric(4, 2, 2, 10), vec![flow(0, 2, bytes, 0), flow(1, 3, bytes, 0)]);
    job.fabric = common::with_links(&job.fabric, |link| link.spec.buffer = Bytes(200_000));
    job.settings.switching = Switching { load_balance, ..Switching::default() };
    job.settings.tcp = weft_sim::tcp::Config::default();
    job.settings.seed = seed;
    outcome(&job)
}

fn spines_used(outcome: &Outcome) -> usize {
    let fabric = fabric(4, 2, 2, 10);
    let up = carried(&fabric, outcome, Role::Leaf, Role::Spine);
    up.iter().filter(|((near, _), packets)| near == "leaf1" && **packets > 1_000).count()
}

#[test]
fn flows_that_collide_part_and_stay_apart() {
    let rehash = LoadBalance::Rehash { hold: Nanos(2_000_000), large: Bytes(1_000_000), only_timeouts: false };
    let last = |outcome: &Outcome| outcome.flows.iter().filter_map(|flow| flow.acknowledged_ps).max();
    let colliding: Vec<u64> = (1..40).filter(|seed| spines_used(&pair(LoadBalance::FlowEcmp, *seed)) == 1).collect();
    assert!((3..=20).contains(&colliding.len()), "about one draw in four: {colliding:?}");
    let parted = |seed: &&u64| {
        let (kept, moved) = (pair(LoadBalance::FlowEcmp, **seed), pair(rehash, **seed));
        last(&moved).unwrap() < last(&kept).unwrap() * 3 / 4
    };
    let count = colliding.iter().filter(parted).count();
    assert!(count * 10 >= colliding.len() * 9, "{count} of {}", colliding.len());
}

/// Fast retransmissions repair what two flows on one link lose, so there is no timeout to move for.
#[test]
fn flows_that_move_after_timeouts_alone_share_a_link_for_good() {
    let rehash = LoadBalance::Rehash { hold: Nanos(2_000_000), large: Bytes(1_000_000), only_timeouts: true };
    let colliding = (1..40).filter(|seed| spines_used(&pair(LoadBalance::FlowEcmp, *seed)) == 1);
    for seed in colliding.take(3) {
        let (kept, asked) = (pair(LoadBalance::FlowEcmp, seed), pair(rehash, seed));
        assert_eq!(asked.totals.timeouts, 0, "seed {seed}");
        assert_eq!(asked, kept, "seed {seed}");
    }
}

#[test]
fn flows_that_lose_nothing_or_are_small_never_move() {
    let apart: Vec<u64> = (1..20).filter(|seed| spines_used(&pair(LoadBalance::FlowEcmp, *seed)) == 2).collect();
    for (large, seeds) in [(Bytes(0), &apart[..]), (Bytes(u64::MAX), &[1, 2, 3, 4, 5, 6])] {
        let rehash = LoadBalance::Rehash { hold: Nanos(2_000_000), large, only_timeouts: false };
        for seed in seeds {
            assert_eq!(pair(rehash, *seed), pair(LoadBalance::FlowEcmp, *seed), "seed {seed}");
        }
    }
}

fn vl2(flows: Vec<Flow>) -> Job {
    let links = LinkParams::for_server_rate(BitsPerSec(GBPS));
    let fabric = vl2_testbed(&TestbedParams { servers_per_tor: [2; 4], links }).unwrap();
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
    let mut job = job(fabric, flows);
    job.settings.overlay = Overlay::Vl2;
    job.settings.sizes = PacketSizes::ethernet(false);
    job.addresses = Some(addresses);
    job
}

#[test]
fn under_vl2_every_packet_bounces_off_an_intermediate_also_within_a_rack() {
    for to in [1, 7] {
        let job = vl2((0..900).map(|number| flow(0, to, PACKET, 20_000 * number)).collect());
        let outcome = outcome(&job);
        let bounced = carried(&job.fabric, &outcome, Role::Intermediate, Role::Aggregation);
        assert_eq!(bounced.values().sum::<u64>(), outcome.totals.sent.packets);
        assert_eq!(outcome.totals.packet_hops, 6 * outcome.totals.sent.packets);
    }
}

#[test]
fn switches_choose_apart_so_that_no_path_is_left_out() {
    let job = vl2((0..1_800).map(|number| flow(0, 7, PACKET, 20_000 * number)).collect());
    let up = carried(&job.fabric, &outcome(&job), Role::Aggregation, Role::Intermediate);
    // tor1 spreads over agg1 and agg2, each of these over three Intermediates: 600 of the 3600 packets on each of the six
    // links, plus the other direction's from tor4, which hangs below the same two.
    let used: Vec<u64> = up.values().copied().filter(|packets| *packets > 0).collect();
    assert_eq!(used.len(), 6);
    assert!(used.iter().all(|packets| packets.abs_diff(1_200) < 200), "{up:?}");
}

#[test]
fn outer_headers_are_on_the_links_where_they_belong() {
    let job = vl2(vec![flow(0, 7, PACKET, 0)]);
    let outcome = outcome(&job);
    let bytes = |from: Role, to: Role| {
        let fabric = &job.fabric;
        let far = |port: &weft_sim::PortOutcome| fabric.link(port.link).far_end(port.node).unwrap().node;
        let ports = outcome
            .ports
            .iter()
            .filter(|port| fabric.node(port.node).role == from && fabric.node(far(port)).role == to);
        ports.map(|port| port.counters.bytes).sum::<u64>()
    };
    // SYN, SYN-ACK, one segment, ACK; 38 bytes of Ethernet around each.
    let plain = 1_500 + 3 * 40 + 4 * 38;
    assert_eq!(bytes(Role::Server, Role::Tor), plain + 4 * 40);
    assert_eq!(bytes(Role::Aggregation, Role::Intermediate), plain + 4 * 40);
    assert_eq!(bytes(Role::Intermediate, Role::Aggregation), plain + 4 * 20);
    assert_eq!(bytes(Role::Aggregation, Role::Tor), plain + 4 * 20);
    assert_eq!(bytes(Role::Tor, Role::Server), plain);
}
