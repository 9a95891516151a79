//! Whole campuses in virtual time: seeded faults, then quiet, then every RBridge must hold what the oracle says.
//!
//! A failure names its seed; `WEFT_SEEDS=FIRST..END` runs others.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_control::isis::{DropReason, Event, KeyChain, PortId, Timing, Wish};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::isis::lsp::CapabilitySub;
use weft_wire::isis::pdu::Lsp;
use weft_wire::isis::view::LspFlags;
use weft_wire::isis::{LspId, Pdu, Tlv};
use weft_wire::vlan::VlanSet;

use super::net::{Faults, Net, listeners, system};
use super::oracle::Oracle;
use super::topology::{Cable, Topology};

/// Those that run usually.
const SEEDS: std::ops::Range<u64> = 0..150;

pub(crate) fn fast() -> Timing {
    Timing { hello_ns: NS_PER_S, holding_multiplier: 3, ..Timing::default() }
}

/// As in a lab.
fn with_echoes() -> Timing {
    let (hello_ns, echo_ns) = (200 * NS_PER_MS, 100 * NS_PER_MS);
    Timing { hello_ns, holding_multiplier: 10, echo_ns, ..Timing::default() }
}

fn lost_adjacencies(net: &Net) -> u64 {
    let bridges = net.nodes.iter().filter_map(|node| node.bridge.as_ref());
    bridges.map(|bridge| bridge.counters().events.get(Event::AdjacencyDown)).sum()
}

/// Some VLANs; now and then so many ranges that an LSP needs several fragments.
pub(crate) fn vlans(rng: &mut Pcg64Mcg) -> VlanSet {
    let mut set = VlanSet::default();
    if rng.random_range(0..8) == 0 {
        let count = rng.random_range(100..600);
        return (0..count).map(|at| 2 + 3 * at).filter(|_| rng.random_range(0..10) > 0).collect();
    }
    for _ in 0..rng.random_range(0..3) {
        let first = rng.random_range(1..100);
        set.add_range(first, first + rng.random_range(0..10));
    }
    set
}

/// One thing goes wrong, or right again.
pub(crate) fn upset(net: &mut Net, rng: &mut Pcg64Mcg) {
    let (node, link) = (rng.random_range(0..net.nodes.len()), rng.random_range(0..net.links.len()));
    match rng.random_range(0..10) {
        0..=2 => net.set_link(link, false),
        3..=5 => net.set_link(link, true),
        6 => net.links[link].is_silent ^= true,
        7 => match rng.random_range(0..4) {
            0 => net.kill(node),
            1 => net.boot(node, true),
            2 => net.restart(node),
            _ => net.boot(node, false),
        },
        8 => net.set_overload(node, rng.random()),
        _ => {
            let set = vlans(rng);
            net.set_vlans(node, set);
        }
    }
}

/// What an RBridge has to say about trees, and the nickname that it wants: of few, so that they collide.
pub(crate) fn settle_roots(net: &mut Net, node: usize, rng: &mut Pcg64Mcg) {
    let trees = 1 + (net.nodes.len() % 3) as u16;
    let wanted = 0x500 + rng.random_range(0..8);
    let state = &mut net.nodes[node];
    state.root_priority = [0, 0x8000, 0x8000, 0x9000][rng.random_range(0..4)];
    state.trees_max = trees + rng.random_range(0..2);
    state.trees_used = 1 + (node % 3) as u16;
    state.nicknames_wanted = 1 + node % 3;
    state.wish = [Wish::Any, Wish::Any, Wish::Last(wanted), Wish::Configured(wanted)][rng.random_range(0..4)];
}

/// Now and then less than everybody has to take.
fn lsp_buffer_bytes(rng: &mut Pcg64Mcg) -> u16 {
    if rng.random_range(0..10) == 0 { 0 } else { [1600, 3000, 9216, u16::MAX][rng.random_range(0..4)] }
}

/// One life of a campus.
fn live(seed: u64, keys: Option<&KeyChain>, listen: bool) -> u64 {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let nodes = if seed % 25 == 24 { 40 } else { rng.random_range(2..14) };
    let echo_ns = (seed % 2) * 400 * NS_PER_MS;
    let mut net = Net::new(&Topology::random(nodes, &mut rng), seed, Timing { echo_ns, ..fast() });
    net.faults = [(0, 0), (20, 10), (100, 20), (300, 50)].map(|(loss, duplication)| Faults { loss, duplication })
        [seed as usize % 4];
    // Its own numbers, so that histories of seeds that once failed stay as they were.
    let mut lengths = Pcg64Mcg::seed_from_u64(!seed);
    for node in 0..nodes {
        net.nodes[node].vlans = vlans(&mut rng);
        settle_roots(&mut net, node, &mut rng);
        net.nodes[node].keys = keys.cloned();
        if seed % 3 == 1 {
            net.nodes[node].lsp_buffer_bytes = lsp_buffer_bytes(&mut lengths);
        }
        if listen {
            net.nodes[node].listeners = listeners(&mut rng);
        }
        net.run_to(net.now_ns + rng.random_range(0..200 * NS_PER_MS));
        net.boot(node, false);
    }
    for _ in 0..rng.random_range(0..60) {
        net.run_to(net.now_ns + rng.random_range(0..2 * NS_PER_S));
        upset(&mut net, &mut rng);
        if listen {
            let node = rng.random_range(0..nodes);
            net.set_listeners(node, listeners(&mut rng));
        }
    }
    net.faults = Faults::default();
    net.run_to(net.now_ns + 30 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    let pdus = net.pdus;
    net.run_to(net.now_ns + 20 * NS_PER_S);
    let (hellos_per_s, ends) = (2, 2 * net.links.len() as u64);
    assert!(net.pdus - pdus <= 20 * hellos_per_s * ends, "only Hellos are left: {} PDUs", net.pdus - pdus);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("later: {what}"));
    net.pdus
}

#[test]
fn after_quiet_everybody_holds_the_oracles_routes() {
    live_all("isis-campus", SEEDS, None, false);
}

/// The same campuses, one in five of them, with a key and the faults that they had: nothing is lost by it.
#[test]
fn after_quiet_everybody_holds_the_oracles_routes_with_keys_too() {
    live_all("isis-campus-keys", SEEDS.step_by(5), Some(&super::authentication::chain(&[1])), false);
}

/// Campuses whose end stations listen to some groups and not to others.
#[test]
fn after_quiet_everybody_prunes_the_groups_that_the_oracle_prunes() {
    live_all("isis-campus-groups", SEEDS.step_by(2), None, true);
}

fn live_all(simulator: &str, seeds: impl Iterator<Item = u64>, keys: Option<&KeyChain>, listen: bool) {
    let mut pdus = 0;
    weft_needs::each_seed(simulator, seeds, |seed| pdus += live(seed, keys, listen));
    assert!(pdus > 0);
}

/// Two campuses in which every nickname is taken twice become one.
#[test]
fn a_merge_of_two_campuses_ends_with_one_holder_each() {
    let topology = Topology { nodes: 8, cables: (1..8).map(|node| cable(node - 1, node)).collect(), lans: vec![] };
    let mut net = Net::new(&topology, 7, fast());
    net.set_link(3, false);
    for node in 0..8 {
        net.nodes[node].nicknames = vec![0x100 + node as u16 % 4];
        net.boot(node, true);
    }
    net.run_to(10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("apart: {what}"));
    net.set_link(3, true);
    net.run_to(30 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("together: {what}"));
    let kept: Vec<_> = (4..8).map(|node| net.nodes[node].nickname()).collect();
    assert_eq!(kept, [0x100, 0x101, 0x102, 0x103].map(Some), "of equal priorities the higher ID keeps it");
}

/// A ring falls into parts and heals, again and again, while nicknames are wanted by several. At every heal the holder
/// with the higher priority, then the higher ID, keeps what is held twice (RFC 7780 section 4); nobody else changes.
#[test]
fn partitions_and_heals_change_only_the_nicknames_of_losers() {
    const NODES: usize = 12;
    let topology = Topology {
        nodes: NODES,
        cables: (0..NODES).map(|node| cable(node, (node + 1) % NODES)).collect(),
        lans: vec![],
    };
    let mut net = Net::new(&topology, 21, fast());
    let mut rng = Pcg64Mcg::seed_from_u64(22);
    let mut lost = 0;
    for round in 0..12 {
        let cuts = [rng.random_range(0..6), rng.random_range(6..12)];
        cuts.iter().for_each(|cut| net.set_link(*cut, false));
        // In each part everybody starts with a wish; within a part, too, some wishes are the same.
        for node in 0..NODES {
            let wanted = 0x700 + rng.random_range(0..10);
            net.nodes[node].wish = if rng.random() { Wish::Configured(wanted) } else { Wish::Last(wanted) };
            net.boot(node, false);
        }
        net.run_to(net.now_ns + 20 * NS_PER_S);
        Oracle::new(&net).judge().unwrap_or_else(|what| panic!("round {round}, apart: {what}"));
        let before: Vec<(u16, u8)> = (0..NODES).map(|node| held_by(&net, node)).collect();
        cuts.iter().for_each(|cut| net.set_link(*cut, true));
        net.run_to(net.now_ns + 20 * NS_PER_S);
        Oracle::new(&net).judge().unwrap_or_else(|what| panic!("round {round}, together: {what}"));
        for (node, (nickname, priority)) in before.iter().enumerate() {
            let stronger = |(other, (theirs, their_priority)): (usize, &(u16, u8))| {
                theirs == nickname && (*their_priority, other) > (*priority, node)
            };
            let loses = before.iter().enumerate().any(stronger);
            assert_eq!(held_by(&net, node).0 != *nickname, loses, "round {round}: rb{node}, {nickname:#x}");
            lost += u32::from(loses);
        }
    }
    assert!(lost > 5, "{lost} nicknames were held twice");
}

/// A node's nickname and the priority that its LSP tells.
pub(crate) fn held_by(net: &Net, node: usize) -> (u16, u8) {
    let bridge = net.nodes[node].bridge.as_ref().expect("it runs");
    let held = bridge.lsdb().get(net.nodes[node].system.lsp(0)).expect("its own LSP");
    let Ok(Pdu::Lsp(lsp)) = Pdu::parse(held.bytes()) else { panic!("an LSP") };
    let subs = lsp.tlvs.iter().flat_map(|tlv| if let Tlv::Capability { subs, .. } = tlv { &subs[..] } else { &[] });
    let mut records = subs.filter_map(|sub| if let CapabilitySub::Nicknames(list) = sub { list.first() } else { None });
    records.next().map(|record| (record.nickname, record.priority)).expect("it holds one")
}

/// Somebody on a link withdraws everybody's LSPs, present and future versions: each owner says its own again, above that.
#[test]
fn purges_of_everybodys_lsps_are_overcome() {
    let mut rng = Pcg64Mcg::seed_from_u64(31);
    let mut net = Net::new(&Topology::random(10, &mut rng), 31, fast());
    for node in 0..10 {
        net.nodes[node].vlans = (0..300).map(|at| 2 + 2 * at + node as u16 % 2).collect();
        net.boot(node, false);
    }
    net.run_to(10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    for round in 0..5 {
        let (node, _) = net.links[0].ends[0];
        let held = net.nodes[node].bridge.as_ref().unwrap().lsdb().iter();
        let held: Vec<(LspId, u32)> = held.map(|(id, entry)| (id, entry.sequence())).collect();
        assert!(held.len() >= 30, "three fragments each");
        for (id, sequence) in held {
            let sequence = sequence + rng.random_range(0..3);
            let flags = LspFlags::LEVEL_1;
            let purge = Pdu::Lsp(Lsp { lifetime_s: 0, id, sequence, flags, tlvs: vec![] }).emit().unwrap();
            net.forge(0, rng.random_range(0..2), &purge);
        }
        net.run_to(net.now_ns + 10 * NS_PER_S);
        Oracle::new(&net).judge().unwrap_or_else(|what| panic!("round {round}: {what}"));
    }
    net.run_to(net.now_ns + 70 * NS_PER_S);
    for node in &net.nodes {
        let lsdb = node.bridge.as_ref().unwrap().lsdb();
        assert_eq!((lsdb.len(), lsdb.iter().filter(|(_, entry)| entry.is_purged()).count()), (30, 0));
    }
}

/// Two RBridges with one system ID at the ends of a line: they cannot be told apart, but those between them find each
/// other, the flood stays slow, and one of them gone, all is well.
#[test]
fn a_double_harms_only_itself() {
    let topology = Topology { nodes: 8, cables: (1..8).map(|node| cable(node - 1, node)).collect(), lans: vec![] };
    let mut net = Net::new(&topology, 41, fast());
    net.nodes[7].system = net.nodes[0].system;
    (0..8).for_each(|node| net.boot(node, false));
    net.run_to(10 * NS_PER_S);
    let pdus = net.pdus;
    net.run_to(40 * NS_PER_S);
    let per_link_and_s = (net.pdus - pdus) / (7 * 30);
    assert!(per_link_and_s <= 20, "{per_link_and_s} PDUs on each link in a second");
    for (me, to) in (1..7).flat_map(|me| (1..7).map(move |to| (me, to))).filter(|(me, to)| me != to) {
        let port = PortId(if to < me { 1 } else { 2 });
        let nickname = net.nodes[to].nickname().expect("everybody has one");
        let hops: Vec<PortId> = net.nodes[me].data_plane.routes[&nickname].iter().map(|hop| hop.port).collect();
        assert_eq!(hops, [port], "from rb{me} to rb{to}");
    }
    let lsps = net.nodes[3].bridge.as_ref().unwrap().lsdb().len();
    assert_eq!(lsps, 7, "one LSP for both");
    net.kill(7);
    net.set_link(6, false);
    net.run_to(net.now_ns + 20 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("one is gone: {what}"));
}

/// Who restarts with less to say withdraws the fragments of its former life.
#[test]
fn a_restart_with_fewer_fragments() {
    let mut net = Net::new(&Topology::paper(), 51, fast());
    net.nodes[0].vlans = (0..500).map(|at| 2 + 2 * at).collect();
    (0..6).for_each(|node| net.boot(node, false));
    net.run_to(10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    net.nodes[0].vlans = VlanSet::default();
    net.boot(0, true);
    net.run_to(net.now_ns + 10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("restarted: {what}"));
    net.run_to(net.now_ns + 70 * NS_PER_S);
    assert!(net.nodes.iter().all(|node| node.bridge.as_ref().unwrap().lsdb().len() == 6));
}

pub(crate) fn cable(a: usize, b: usize) -> Cable {
    Cable::even([a, b], 10)
}

/// Link-down of a middle switch's port: new routes within the delays of LSP and computation and a few hops.
#[test]
fn the_papers_campus_reroutes_at_once() {
    let mut net = Net::new(&Topology::paper(), 3, fast());
    (0..6).for_each(|node| net.boot(node, false));
    net.run_to(10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    let egress = net.nodes[1].nickname().unwrap();
    assert_eq!(net.nodes[0].data_plane.routes[&egress].len(), 4, "four equal next hops from S1 to S2");
    net.kill(5);
    net.set_link(6, false);
    net.set_link(7, false);
    net.run_to(net.now_ns + 150 * NS_PER_MS);
    assert_eq!(net.nodes[0].data_plane.routes[&egress].len(), 3);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("without S6: {what}"));
}

/// A link that goes and comes ten times a second is told of once a second, but for the first losses.
#[test]
fn a_link_that_flaps_does_not_flood_the_campus() {
    let topology = Topology { nodes: 4, cables: (1..4).map(|node| cable(node - 1, node)).collect(), lans: vec![] };
    let mut net = Net::new(&topology, 3, fast());
    (0..4).for_each(|node| net.boot(node, false));
    net.run_to(10 * NS_PER_S);
    let count = |net: &Net, node: usize, event| net.nodes[node].bridge.as_ref().unwrap().counters().events.get(event);
    let before = [count(&net, 1, Event::LspIssued), count(&net, 3, Event::Computed)];
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    for change in 0..600 {
        net.set_link(0, change % 2 == 1);
        net.run_to(net.now_ns + rng.random_range(10..90) * NS_PER_MS);
    }
    let after = [count(&net, 1, Event::LspIssued), count(&net, 3, Event::Computed)];
    let [issued, computed] = [after[0] - before[0], after[1] - before[1]];
    assert!((10..=40).contains(&issued), "{issued} LSPs in 30 s");
    assert!(computed <= 2 * issued, "{computed} computations of {issued} LSPs");
    net.run_to(net.now_ns + 10 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
}

/// What depends on the RBridge that is started anew must not move: neither at others, nor what it forwards by itself.
#[test]
fn nobody_notices_a_restart_whose_data_plane_works_on() {
    for (node, seed) in (0..6).zip(20..) {
        let mut net = Net::new(&Topology::paper(), seed, fast());
        (0..6).for_each(|node| net.boot(node, false));
        net.run_to(10 * NS_PER_S);
        let changes = |net: &Net| -> Vec<u64> { net.nodes.iter().map(|node| node.changes).collect() };
        let (before, nickname) = (changes(&net), net.nodes[node].nickname());
        let held = net.nodes[node].bridge.as_ref().unwrap().forwarding().clone();
        net.restart(node);
        assert!(net.nodes[node].bridge.as_ref().unwrap().is_restarting());
        net.run_to(net.now_ns + 3 * NS_PER_S);
        let bridge = net.nodes[node].bridge.as_ref().unwrap();
        assert!(!bridge.is_restarting());
        assert_eq!((bridge.forwarding(), bridge.nickname()), (&held, nickname), "its first routes are the former ones");
        net.run_to(net.now_ns + 10 * NS_PER_S);
        let mut after = changes(&net);
        after[node] = before[node];
        assert_eq!(after, before, "nothing changed at others");
        let asked = net.nodes.iter().filter(|state| {
            let events = &state.bridge.as_ref().unwrap().counters().events;
            events.get(Event::NeighborRestart) == 1
        });
        assert_eq!(asked.count(), if node < 2 { 4 } else { 2 }, "each neighbour was asked once");
        Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    }
}

/// A neighbour that is gone meanwhile is waited for, but not for ever.
#[test]
fn a_restart_ends_also_when_a_neighbour_has_gone() {
    let mut net = Net::new(&Topology::paper(), 30, fast());
    (0..6).for_each(|node| net.boot(node, false));
    net.run_to(10 * NS_PER_S);
    net.restart(0);
    net.kill(5);
    net.run_to(net.now_ns + 2 * NS_PER_S);
    assert!(net.nodes[0].bridge.as_ref().unwrap().is_restarting());
    net.run_to(net.now_ns + 8 * NS_PER_S);
    assert!(!net.nodes[0].bridge.as_ref().unwrap().is_restarting());
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
}

/// Who takes leave is forgotten at once, and so is its LSP.
#[test]
fn a_leave_is_known_at_once() {
    let mut net = Net::new(&Topology::paper(), 31, fast());
    (0..6).for_each(|node| net.boot(node, false));
    net.run_to(10 * NS_PER_S);
    let egress = net.nodes[1].nickname().unwrap();
    net.leave(5);
    net.run_to(net.now_ns + 150 * NS_PER_MS);
    assert_eq!(net.nodes[0].data_plane.routes[&egress].len(), 3);
    for node in 0..5 {
        let lsdb = net.nodes[node].bridge.as_ref().unwrap().lsdb();
        assert!(lsdb.get(system(5).lsp(0)).is_some_and(|entry| entry.is_purged()), "rb{node} holds its LSP");
    }
    net.run_to(net.now_ns + NS_PER_S);
    assert!(net.nodes[5].bridge.is_none(), "its last Hello is said");
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
}

/// Without link-down the loss shows by the holding time.
#[test]
fn a_silent_loss_is_seen_when_the_holding_time_ends() {
    let timing = Timing { hello_ns: 300 * NS_PER_MS, holding_multiplier: 3, ..Timing::default() };
    let mut net = Net::new(&Topology::paper(), 4, timing);
    (0..6).for_each(|node| net.boot(node, false));
    net.run_to(10 * NS_PER_S);
    let egress = net.nodes[1].nickname().unwrap();
    net.kill(5);
    net.run_to(net.now_ns + NS_PER_S);
    assert_eq!(net.nodes[0].data_plane.routes[&egress].len(), 3, "nothing goes to S6 any more");
    net.run_to(net.now_ns + NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
}

/// Echoes show it sooner.
#[test]
fn a_silent_loss_is_seen_when_echoes_stay_away() {
    for seed in 0..20 {
        let mut net = Net::new(&Topology::paper(), seed, with_echoes());
        (0..6).for_each(|node| net.boot(node, false));
        net.run_to(10 * NS_PER_S + seed * 17 * NS_PER_MS);
        for node in &net.nodes {
            assert!(node.bridge.as_ref().unwrap().adjacencies().all(|(_, adjacency)| adjacency.returns_echoes()));
        }
        let egress = net.nodes[1].nickname().unwrap();
        net.kill(5);
        net.run_to(net.now_ns + 410 * NS_PER_MS);
        assert_eq!(net.nodes[0].data_plane.routes[&egress].len(), 3, "nothing goes to S6 any more");
        net.run_to(net.now_ns + 2 * NS_PER_S);
        Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    }
}

/// A daemon that gets no turn is no neighbour that is gone, neither to others nor others to it.
#[test]
fn nobody_is_given_up_because_a_daemon_was_starved() {
    for seed in 0..20 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut net = Net::new(&Topology::paper(), seed, with_echoes());
        (0..6).for_each(|node| net.boot(node, false));
        net.run_to(10 * NS_PER_S);
        let before = lost_adjacencies(&net);
        for _ in 0..100 {
            let starved = rng.random_range(0..6);
            if net.nodes[starved].stalled_until_ns < net.now_ns {
                net.stall(starved, rng.random_range(0..1500 * NS_PER_MS));
            }
            net.run_to(net.now_ns + rng.random_range(0..1000 * NS_PER_MS));
        }
        assert_eq!(lost_adjacencies(&net), before, "seed {seed}");
    }
}

/// Queues that drop one frame in five take Echoes with them; as long as Hellos come, nobody is given up.
#[test]
fn nobody_is_given_up_because_echoes_are_lost() {
    for seed in 0..10 {
        let mut net = Net::new(&Topology::paper(), seed, with_echoes());
        (0..6).for_each(|node| net.boot(node, false));
        net.run_to(10 * NS_PER_S);
        let before = lost_adjacencies(&net);
        net.data_loss = 800;
        net.run_to(net.now_ns + 60 * NS_PER_S);
        assert_eq!(lost_adjacencies(&net), before, "seed {seed}");
    }
}

/// Where the neighbour's shortest way back leads over others, its silence shows by the holding time only.
#[test]
fn echoes_that_come_back_by_a_detour_judge_nobody() {
    let cables = vec![Cable::even([0, 1], 100), Cable::even([0, 2], 10), Cable::even([2, 1], 10)];
    let mut net = Net::new(&Topology { nodes: 3, cables, lans: vec![] }, 9, with_echoes());
    net.boot(0, false);
    net.boot(1, false);
    net.run_to(10 * NS_PER_S);
    let direct = |net: &Net| net.nodes[0].bridge.as_ref().unwrap().adjacencies().next().unwrap().1.returns_echoes();
    assert!(direct(&net));
    net.boot(2, false);
    net.run_to(net.now_ns + 20 * NS_PER_S);
    assert!(!direct(&net));
    let detours = net.nodes[0].bridge.as_ref().unwrap().counters().dropped.get(DropReason::EchoDetour);
    assert!(detours > 100, "{detours}");
    assert_eq!(lost_adjacencies(&net), 0);
    // Without the third it is the shortest way again.
    net.kill(2);
    net.run_to(net.now_ns + 10 * NS_PER_S);
    assert!(direct(&net));
}

/// Frames take every way that ECMP may choose; none of them may come to an RBridge that refuses it.
fn refused(net: &Net, from: usize, egress: u16, hops_left: u8) -> Option<usize> {
    let state = &net.nodes[from];
    if state.nicknames.contains(&egress) || hops_left == 0 {
        return None;
    }
    // A port without its neighbour is left out at once.
    let hops = state.data_plane.routes.get(&egress)?.iter().filter(|hop| net.accepts(from, hop.port));
    hops.filter_map(|hop| {
        let (next, port) = net.far_ends(from, hop.port).0.first().copied()?;
        if net.accepts(next, port) { refused(net, next, egress, hops_left - 1) } else { Some(next) }
    })
    .next()
}

/// Neighbours hear of a leave one after the other, because their daemons are busy; no frame is lost between.
#[test]
fn a_leave_loses_no_frame() {
    for seed in 0..30 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let topology = if seed % 2 == 0 { Topology::paper() } else { Topology::random(8, &mut rng) };
        let mut net = Net::new(&topology, seed, fast());
        let all = 0..topology.nodes;
        all.clone().for_each(|node| net.boot(node, false));
        net.run_to(20 * NS_PER_S);
        let leaver = rng.random_range(all.clone());
        net.leave(leaver);
        for node in all.clone().filter(|node| *node != leaver) {
            net.stall(node, rng.random_range(0..100 * NS_PER_MS));
        }
        let stays: Vec<(usize, u16)> =
            all.filter(|node| *node != leaver).filter_map(|node| Some((node, net.nodes[node].nickname()?))).collect();
        for _ in 0..2000 {
            net.run_to(net.now_ns + NS_PER_MS);
            for (from, _) in &stays {
                for (_, egress) in &stays {
                    assert_eq!(refused(&net, *from, *egress, 16), None, "seed {seed}: from rb{from} to {egress}");
                }
            }
        }
        assert!(net.nodes[leaver].bridge.is_none(), "it has left");
    }
}

/// LSPs are renewed before they age out, for hours, and nothing is computed for it.
#[test]
fn hours_pass_without_a_change() {
    let mut net = Net::new(&Topology::paper(), 5, Timing::default());
    (0..6).for_each(|node| net.boot(node, false));
    net.run_to(60 * NS_PER_S);
    let computed = |net: &Net| net.nodes[0].bridge.as_ref().unwrap().counters().events.get(Event::Computed);
    let before = computed(&net);
    net.run_to(3 * 3600 * NS_PER_S);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    assert_eq!(computed(&net), before, "a renewal changes nothing");
    let counters = net.nodes[0].bridge.as_ref().unwrap().counters();
    assert_eq!(counters.events.get(Event::LspExpired), 0);
    assert_eq!(counters.dropped.total(), 0, "{:?}", counters.dropped.iter().collect::<Vec<_>>());
}

/// A fat tree of 80 RBridges boots within a second; then one core switch is lost and comes back. What 500 take is for
/// `weft bench setup` to say.
#[test]
fn a_fat_tree_converges() {
    let topology = Topology::fat_tree(8);
    let mut net = Net::new(&topology, 1, Timing::default());
    let mut rng = Pcg64Mcg::seed_from_u64(9);
    let mut boots: Vec<(u64, usize)> = (0..topology.nodes).map(|node| (rng.random_range(0..NS_PER_S), node)).collect();
    boots.sort_unstable();
    for (at_ns, node) in boots {
        net.nodes[node].vlans = [1, 100 + (node % 7) as u16].into_iter().collect();
        net.run_to(at_ns);
        net.boot(node, false);
    }
    net.run_to(20 * NS_PER_S);
    let settled_within = |net: &Net, what: &str, since_ns: u64, limit_ms: u64| {
        let ms = net.changed_ns.saturating_sub(since_ns) / NS_PER_MS;
        eprintln!("{what}: last change after {ms} ms");
        assert!(ms <= limit_ms, "{what}: {ms} ms");
    };
    settled_within(&net, "boot", 0, 5_000);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("{what}"));
    let (lost, at_ns) = (topology.nodes - 1, net.now_ns);
    net.kill(lost);
    for link in 0..net.links.len() {
        if net.links[link].ends.iter().any(|(node, _)| *node == lost) {
            net.set_link(link, false);
        }
    }
    net.run_to(at_ns + NS_PER_S);
    settled_within(&net, "core lost", at_ns, 300);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("without the core: {what}"));
    let at_ns = net.now_ns;
    net.boot(lost, true);
    for link in 0..net.links.len() {
        net.set_link(link, true);
    }
    net.run_to(at_ns + 10 * NS_PER_S);
    settled_within(&net, "core back", at_ns, 300);
    Oracle::new(&net).judge().unwrap_or_else(|what| panic!("with the core again: {what}"));
}
