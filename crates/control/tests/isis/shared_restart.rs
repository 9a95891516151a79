//! Restarts of RBridges on shared links whose data plane works on (RFC 8706 section 3.3): nobody may notice, and whatever happens
//! meanwhile, no VLAN has two forwarders.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_control::isis::{AdjacencyState, Event, Forwarding, PortId, RBridge};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::isis::{LspId, NodeId, SystemId};
use weft_wire::vlan::VlanSet;

use super::campus::{settle_roots, vlans};
use super::net::Net;
use super::shared::no_two_carry;
use super::shared_campus::{judge, run, timing};
use super::topology::Topology;

/// Those that run usually.
const SEEDS: std::ops::Range<u64> = 0..8;

/// So often is looked.
const STEP_NS: u64 = 5 * NS_PER_MS;

/// What others, or end stations, would notice of a restart of one RBridge.
#[derive(Debug, PartialEq)]
struct Seen {
    /// VLANs of end stations that each port carries.
    access: BTreeMap<(usize, PortId), VlanSet>,
    /// DRB, name and bypass of each shared link, by who has a port there.
    links: BTreeMap<(usize, PortId), (SystemId, NodeId, bool)>,
    /// Versions of the LSPs of others.
    lsps: BTreeMap<LspId, u32>,
    /// Adjacencies in Report, and how often one was lost.
    adjacencies: BTreeMap<usize, (usize, u64)>,
    routes: BTreeMap<usize, Forwarding>,
}

fn bridges(net: &Net) -> impl Iterator<Item = (usize, &RBridge)> {
    net.nodes.iter().enumerate().filter_map(|(node, state)| Some((node, state.bridge.as_ref()?)))
}

impl Seen {
    fn of(net: &Net, node: usize) -> Self {
        let others = || bridges(net).filter(|(other, _)| *other != node);
        let mut seen = Self {
            access: BTreeMap::new(),
            links: BTreeMap::new(),
            lsps: BTreeMap::new(),
            adjacencies: BTreeMap::new(),
            routes: BTreeMap::new(),
        };
        for (of, state) in net.nodes.iter().enumerate() {
            let ports = state.access.iter().filter(|(_, carried)| !carried.is_empty());
            seen.access.extend(ports.map(|(port, carried)| ((of, *port), carried.clone())));
        }
        for (other, bridge) in others() {
            for port in (1..32).map(PortId) {
                let link = bridge.shared_link(port);
                seen.links.extend(link.map(|link| ((other, port), (link.drb, link.lan_id, link.bypass))));
            }
            let up = bridge.adjacencies().filter(|(_, with)| with.state == AdjacencyState::Report).count();
            seen.adjacencies.insert(other, (up, bridge.counters().events.get(Event::AdjacencyDown)));
            // In which fragment of its LSP somebody says something is of no concern.
            let mut routes = net.nodes[other].data_plane.clone();
            routes.served.values_mut().for_each(|served| served.sort_by_key(|range| range.first));
            seen.routes.insert(other, routes);
            let foreign = bridge.lsdb().iter().filter(|(id, _)| id.system() != net.nodes[node].system);
            seen.lsps.extend(foreign.map(|(id, entry)| (id, entry.sequence())));
        }
        seen
    }
}

/// Ports with an adjacency.
fn known(net: &Net, node: usize) -> BTreeSet<PortId> {
    let adjacencies = net.nodes[node].bridge.as_ref().unwrap().adjacencies();
    adjacencies.filter(|(_, with)| with.state == AdjacencyState::Report).map(|(port, _)| port).collect()
}

/// Restarts an RBridge; everything stays as it was at each moment, and the restart ends in time.
fn restart_unnoticed(net: &mut Net, node: usize, name: &str) {
    let known = known(net, node);
    // Where nobody else is a port begins anew, and its stations are others' news for a while.
    let is_alone = net.nodes[node].access.iter().any(|(port, carried)| !carried.is_empty() && !known.contains(port));
    if known.is_empty() || is_alone {
        return;
    }
    let before = Seen::of(net, node);
    let held = net.nodes[node].bridge.as_ref().unwrap().forwarding().clone();
    net.restart(node);
    let (begun_ns, mut ended_ns) = (net.now_ns, None);
    while net.now_ns < begun_ns + 6 * NS_PER_S {
        net.run_to(net.now_ns + STEP_NS);
        no_two_carry(net).unwrap_or_else(|what| panic!("{name}: {what}"));
        let (now, after_ms) = (Seen::of(net, node), (net.now_ns - begun_ns) / NS_PER_MS);
        assert!(now == before, "{name}, rb{node} after {after_ms} ms: {now:#?} was {before:#?}");
        if !net.nodes[node].bridge.as_ref().unwrap().is_restarting() {
            ended_ns.get_or_insert(net.now_ns);
        }
    }
    assert!(ended_ns.is_some_and(|at_ns| at_ns < begun_ns + 2900 * NS_PER_MS), "{name}, rb{node}: {ended_ns:?}");
    let bridge = net.nodes[node].bridge.as_ref().unwrap();
    assert_eq!(bridge.forwarding(), &held, "{name}, rb{node}: its first routes are the former ones");
    assert_eq!(bridge.counters().events.get(Event::AdjacencyDown), 0, "{name}, rb{node}");
}

/// One shared link whose last RBridge is DRB; each of them is the forwarder of some of the VLANs.
fn one_link(nodes: usize, seed: u64, ignorant: BTreeSet<usize>) -> Net {
    let vlans = VlanSet::of_ranges(&[(1, 2), (256, 257), (512, 513), (768, 769), (1024, 1025), (1280, 1281)]);
    let mut net = Net::new(&Topology::lan(nodes, &vlans), seed, timing());
    net.ignorant = ignorant;
    (0..nodes).for_each(|node| net.boot(node, false));
    run(&mut net, 20 * NS_PER_S);
    judge(&net, "all on one link");
    net
}

/// DRB or not, forwarder or not, of two to five on a link: who restarts is what it was, at each moment.
#[test]
fn nobody_notices_a_restart_on_a_shared_link() {
    for (nodes, seed) in (2..=5).zip(100..) {
        let mut net = one_link(nodes, seed, BTreeSet::new());
        for node in 0..nodes {
            restart_unnoticed(&mut net, node, &format!("{nodes} on a link"));
            judge(&net, "it has restarted");
        }
    }
}

/// Nor where a neighbour does not know RFC 8706, or none does: nothing is said that it would have to believe.
#[test]
fn nobody_notices_a_restart_who_does_not_know_restarts() {
    for (nodes, seed) in (2..=5).zip(110..) {
        for ignorant in [BTreeSet::from([0]), BTreeSet::from([nodes - 1]), (0..nodes).collect()] {
            let name = format!("{nodes} on a link, {ignorant:?} know nothing");
            let mut net = one_link(nodes, seed, ignorant);
            for node in 0..nodes {
                restart_unnoticed(&mut net, node, &name);
                judge(&net, "it has restarted");
            }
        }
    }
}

fn campus(seed: u64) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let nodes = rng.random_range(3..9);
    let mut net = Net::new(&Topology::random_with_lans(nodes, &mut rng), seed, timing());
    for node in 0..nodes {
        net.nodes[node].vlans = vlans(&mut rng);
        settle_roots(&mut net, node, &mut rng);
        net.boot(node, false);
    }
    run(&mut net, 60 * NS_PER_S);
    for node in 0..nodes {
        restart_unnoticed(&mut net, node, &format!("seed {seed}"));
        run(&mut net, 10 * NS_PER_S);
        judge(&net, "it has restarted");
    }
}

#[test]
fn nobody_notices_a_restart_in_campuses_with_shared_links() {
    weft_needs::each_seed("isis-shared-restart", SEEDS, campus);
}

/// The DRB of a link of five RBridges.
const DRB: usize = 4;
/// How long before the restart of another RBridge the DRB dies; negative: after it.
const DRB_LEADS_MS: [i64; 9] = [-1500, -200, -20, 0, 20, 200, 1000, 2500, 2900];

/// The DRB dies shortly before, with, or shortly after the restart of another one: somebody else becomes DRB, and no VLAN has two
/// forwarders meanwhile.
fn a_drb_dies_during_a_restart(node: usize, lead_ms: i64) {
    let mut net = one_link(5, 120 + node as u64, BTreeSet::new());
    if lead_ms >= 0 {
        net.kill(DRB);
    } else {
        net.restart(node);
    }
    watched(&mut net, lead_ms.unsigned_abs() * NS_PER_MS);
    if lead_ms >= 0 {
        net.restart(node);
    } else {
        net.kill(DRB);
    }
    watched(&mut net, 20 * NS_PER_S);
    judge(&net, &format!("rb{node}, {lead_ms} ms"));
}

#[test]
fn a_drb_that_dies_during_a_restart_leaves_no_two_forwarders() {
    for (node, lead_ms) in (0..DRB).cycle().zip(DRB_LEADS_MS) {
        a_drb_dies_during_a_restart(node, lead_ms);
    }
}

#[test]
#[ignore = "long: make test-long"]
fn a_drb_that_dies_during_a_restart_of_any_rbridge_leaves_no_two_forwarders() {
    for node in 0..DRB {
        DRB_LEADS_MS.iter().for_each(|lead_ms| a_drb_dies_during_a_restart(node, *lead_ms));
    }
}

/// Runs in small steps, in which no VLAN has two forwarders.
fn watched(net: &mut Net, time_ns: u64) {
    let until_ns = net.now_ns + time_ns;
    while net.now_ns < until_ns {
        net.run_to((net.now_ns + STEP_NS).min(until_ns));
        no_two_carry(net).unwrap_or_else(|what| panic!("{what}"));
    }
}

/// A daemon that stays away for longer and longer: its data plane serves stations for the holding time less one Hello, and others
/// give it up after the holding time. Whether it comes back before or after that, no VLAN has two forwarders.
fn comes_back_late(node: usize, away_ms: u64) {
    let timing = timing();
    let serves_ns = u64::from(timing.holding_s()) * NS_PER_S - timing.hello_ns;
    let mut net = one_link(5, 130 + node as u64 / 2, BTreeSet::new());
    run(&mut net, away_ms % 7 * 130 * NS_PER_MS);
    let mut former = net.crash(node);
    let away_ns = away_ms * NS_PER_MS;
    watched(&mut net, away_ns.min(serves_ns));
    if away_ns > serves_ns {
        former.iter_mut().for_each(|former| former.carried = VlanSet::default());
        net.nodes[node].access.clear();
        watched(&mut net, away_ns - serves_ns);
    }
    net.resume(node, former);
    watched(&mut net, 20 * NS_PER_S);
    judge(&net, &format!("rb{node} was away for {away_ms} ms"));
}

/// Times that a daemon stays away.
fn absences_ms() -> impl Iterator<Item = u64> {
    (200..6000).step_by(290)
}

#[test]
fn who_comes_back_late_takes_no_vlan_that_others_have() {
    for (node, away_ms) in [0, 2, 4].into_iter().cycle().zip(absences_ms()) {
        comes_back_late(node, away_ms);
    }
}

#[test]
#[ignore = "long: make test-long"]
fn any_rbridge_that_comes_back_late_takes_no_vlan_that_others_have() {
    for node in [0, 2, 4] {
        absences_ms().for_each(|away_ms| comes_back_late(node, away_ms));
    }
}

/// A link that loses one frame in five: restarts may end otherwise than wished, but never with two forwarders for long, and after
/// quiet everybody is what it should be.
#[test]
fn restarts_on_bad_links_end_well() {
    for seed in 140..150 {
        let mut net = one_link(4, seed, BTreeSet::new());
        net.faults.loss = 200;
        for node in 0..4 {
            net.restart(node);
            run(&mut net, 4 * NS_PER_S);
        }
        net.faults.loss = 0;
        net.run_to(net.now_ns + 30 * NS_PER_S);
        judge(&net, &format!("seed {seed}"));
    }
}
