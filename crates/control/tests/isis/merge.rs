//! Campuses that were apart become one, fall into parts again and heal, while frames of end stations are on their way: who keeps
//! which nickname (RFC 6325 section 3.7.3), that all agree on trees and roots, and that no frame circles.
//!
//! A failure names its seed; `WEFT_SEEDS=FIRST..END` runs others.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_control::isis::Timing;
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::vlan::VlanSet;

use super::campus::{cable, fast, held_by, settle_roots};
use super::net::Net;
use super::oracle::Oracle;
use super::shared::{domains, no_two_carry};
use super::topology::Topology;
use super::traffic::{Egress, Journey, own_tree};

/// Those that run usually.
const SEEDS: std::ops::Range<u64> = 0..24;
/// How long is looked at after a change: it has long settled then.
const WATCHED_NS: u64 = 10 * NS_PER_S;
/// How often an RBridge takes one frame for everybody while trees change that lose branches: on a shared link from all others.
const DOUBLES_MAX: u32 = 5;
/// What comes in after a change has to go its way.
const FLIGHT_NS: u64 = 10 * NS_PER_MS;
/// Between two frames that come in.
const STEP_NS: u64 = 2 * NS_PER_MS;

fn timing() -> Timing {
    Timing { csnp_ns: 2 * NS_PER_S, root_change_ns: 2 * NS_PER_S, ..fast() }
}

/// What happened while a campus found itself anew.
#[derive(Debug, Default)]
struct Seen {
    /// Until the last route or tree was changed, ms, of each change of the campus.
    settled_ms: Vec<u64>,
    frames: usize,
    /// Frames for one egress, or for everybody, that came to an RBridge more than once.
    repeated: [usize; 2],
    /// Copies whose hop count was used up.
    spent: u32,
    nicknames_lost: usize,
    /// Whether a change takes ways away, and not only RBridges that they led to.
    loses_ways: bool,
    /// Shared links of which each of two parts had a DRB and a pseudonode of its own.
    split_links: usize,
}

impl Seen {
    /// Whether a few seeds were asked for, in which not everything happens.
    fn is_few(&self) -> bool {
        self.settled_ms.len() < 30
    }
}

/// Two campuses of different roots, in which many nicknames are taken twice, and the way between them as the last cable.
fn two_campuses(rng: &mut Pcg64Mcg, with_lans: bool) -> Topology {
    let sizes = [rng.random_range(2..9), rng.random_range(2..9)];
    let mut random =
        |nodes| if with_lans { Topology::random_with_lans(nodes, rng) } else { Topology::random(nodes, rng) };
    let (mut both, other) = (random(sizes[0]), random(sizes[1]));
    both.join(other);
    let ends = [rng.random_range(0..sizes[0]), sizes[0] + rng.random_range(0..sizes[1])];
    both.cables.push(cable(ends[0], ends[1]));
    both
}

fn judge(net: &Net, when: &str) {
    Oracle::new(net).judge().unwrap_or_else(|what| panic!("{when}: {what}"));
}

/// Time passes, and frames come in everywhere: for some egress that is known there, and for everybody.
fn with_traffic(net: &mut Net, rng: &mut Pcg64Mcg, time_ns: u64) {
    let until_ns = net.now_ns + time_ns;
    while net.now_ns < until_ns {
        let node = rng.random_range(0..net.nodes.len());
        let root = own_tree(&net.nodes[node], net.traffic.journeys.len());
        let egresses: Vec<u16> = net.nodes[node].data_plane.routes.keys().copied().collect();
        if !egresses.is_empty() {
            net.come_in(node, Egress::One(egresses[rng.random_range(0..egresses.len())]));
        }
        if let Some(root) = root {
            net.come_in(node, Egress::Tree(root));
        }
        net.run_to(net.now_ns + STEP_NS);
        no_two_carry(net).unwrap_or_else(|what| panic!("{what}"));
    }
}

/// What has to hold of every frame: none is carried farther than its header says, and what comes in when all is settled comes to
/// each once. Until then one for a single egress may circle where its nickname, one of `twice`, was held by two: RBridges that know
/// of one of them stand beside those that know both. The same where ways are lost to who is still reached. One for everybody never
/// circles; on a shared link several may send it that hold trees of different times.
fn judge_traffic(net: &Net, settled_ns: u64, twice: &BTreeSet<u16>, seen: &mut Seen) {
    let oracle = Oracle::new(net);
    for journey in &net.traffic.journeys {
        judge_settled(net, &oracle, journey, settled_ns).unwrap_or_else(|what| panic!("{what}: {journey:?}"));
        if journey.most_taken() > 1 {
            let (which, is_excused) = match journey.egress {
                Egress::One(egress) => (0, seen.loses_ways || twice.contains(&egress)),
                Egress::Tree(_) => (1, seen.loses_ways && journey.most_taken() <= DOUBLES_MAX),
            };
            assert!(is_excused, "it circles: {journey:?}");
            seen.repeated[which] += 1;
        }
        seen.spent += journey.spent;
    }
    seen.frames += net.traffic.journeys.len();
}

fn judge_settled(net: &Net, oracle: &Oracle<'_>, journey: &Journey, settled_ns: u64) -> Result<(), String> {
    let bound = u32::from(journey.hop_count);
    if let Egress::One(_) = journey.egress
        && journey.taken.values().sum::<u32>() > bound
    {
        return Err(format!("it is carried more than {bound} hops"));
    }
    if journey.sent_ns < settled_ns {
        return Ok(());
    }
    let reached = |to: usize| oracle.connects(journey.from, to);
    let meant: BTreeSet<usize> = match journey.egress {
        Egress::One(egress) => {
            (0..net.nodes.len()).filter(|to| net.nodes[*to].nicknames.contains(&egress) && reached(*to)).collect()
        }
        Egress::Tree(_) => (0..net.nodes.len()).filter(|to| *to != journey.from && reached(*to)).collect(),
    };
    let delivered: BTreeSet<usize> = journey.delivered.keys().copied().collect();
    if delivered != meant || journey.most_taken() > 1 || journey.most_delivered() > 1 || journey.spent > 0 {
        return Err(format!("when all was settled it was meant for {meant:?}"));
    }
    Ok(())
}

/// A change of the campus; then frames, until it has long settled.
fn change(net: &mut Net, rng: &mut Pcg64Mcg, seen: &mut Seen, when: &str, what: impl FnOnce(&mut Net)) {
    net.traffic.journeys.clear();
    let (begun_ns, twice) = (net.now_ns, held_twice(net));
    what(net);
    with_traffic(net, rng, WATCHED_NS);
    net.run_to(net.now_ns + FLIGHT_NS);
    judge(net, when);
    seen.settled_ms.push(net.changed_ns.saturating_sub(begun_ns) / NS_PER_MS);
    judge_traffic(net, net.changed_ns.max(begun_ns), &twice, seen);
}

fn held_twice(net: &Net) -> BTreeSet<u16> {
    let mut seen = BTreeSet::new();
    let all = net.nodes.iter().flat_map(|node| node.nicknames.iter().copied());
    all.filter(|nickname| !seen.insert(*nickname)).collect()
}

/// A change that joins campuses: of two holders of a nickname the one with the higher priority, then the higher ID, keeps it;
/// nobody else has another one afterwards.
fn join(net: &mut Net, rng: &mut Pcg64Mcg, seen: &mut Seen, what: impl FnOnce(&mut Net)) {
    let before: Vec<(u16, u8)> = (0..net.nodes.len()).map(|node| held_by(net, node)).collect();
    change(net, rng, seen, "together", what);
    let oracle = Oracle::new(net);
    for (node, (nickname, priority)) in before.iter().enumerate() {
        let is_stronger = |(other, (theirs, their_priority)): (usize, &(u16, u8))| {
            theirs == nickname && (*their_priority, other) > (*priority, node) && oracle.connects(node, other)
        };
        let loses = before.iter().enumerate().any(is_stronger);
        assert_eq!(held_by(net, node).0 != *nickname, loses, "rb{node}, {nickname:#x}");
        seen.nicknames_lost += usize::from(loses);
    }
}

/// One life: apart, together, apart, together.
fn live(seed: u64, with_lans: bool, seen: &mut Seen) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let topology = two_campuses(&mut rng, with_lans);
    let mut net = Net::new(&topology, seed, timing());
    let way = net.links.len() - 1;
    net.set_link(way, false);
    for node in 0..net.nodes.len() {
        net.nodes[node].vlans = VlanSet::of_ranges(&[(1, 1)]);
        settle_roots(&mut net, node, &mut rng);
        net.boot(node, false);
    }
    net.run_to(40 * NS_PER_S);
    judge(&net, "apart");
    join(&mut net, &mut rng, seen, |net| net.set_link(way, true));
    change(&mut net, &mut rng, seen, "apart again", |net| net.set_link(way, false));
    join(&mut net, &mut rng, seen, |net| net.set_link(way, true));
}

/// Falls into two parts, all cables between them and each shared link; in each some start anew and want nicknames that the other
/// part has, too. Then all is joined again.
fn live_in_parts(seed: u64, seen: &mut Seen) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let nodes = rng.random_range(6..14);
    let mut net = Net::new(&Topology::random_with_lans(nodes, &mut rng), seed, timing());
    for node in 0..nodes {
        net.nodes[node].vlans = VlanSet::of_ranges(&[(1, 1)]);
        settle_roots(&mut net, node, &mut rng);
        net.boot(node, false);
    }
    net.run_to(40 * NS_PER_S);
    judge(&net, "whole");
    for _ in 0..2 {
        let side: Vec<usize> = (0..nodes).map(|_| rng.random_range(0..2)).collect();
        change(&mut net, &mut rng, seen, "in parts", |net| part(net, &side));
        seen.split_links += split_links(&net);
        for node in (0..nodes).step_by(3) {
            settle_roots(&mut net, node, &mut rng);
            net.boot(node, false);
        }
        net.run_to(net.now_ns + 20 * NS_PER_S);
        judge(&net, "in parts, some anew");
        join(&mut net, &mut rng, seen, |net| part(net, &vec![0; nodes]));
    }
}

/// Only who is on one side hears each other.
fn part(net: &mut Net, side: &[usize]) {
    for link in 0..net.links.len() {
        let [a, b] = net.links[link].ends.map(|(node, _)| side[node]);
        net.set_link(link, a == b);
    }
    net.rewire(|lans| {
        lans.all.iter_mut().flat_map(|lan| &mut lan.members).for_each(|member| member.part = side[member.wanted.node]);
    });
}

/// Links both parts of which are nodes of the graph, each by the name that its own DRB gave it.
fn split_links(net: &Net) -> usize {
    let nodes: Vec<usize> = domains(net).iter().filter(|domain| !domain.bypass).map(|domain| domain.link()).collect();
    (0..net.lans.all.len()).filter(|lan| nodes.iter().filter(|of| *of == lan).count() == 2).count()
}

fn say(what: &str, seen: &mut Seen) {
    seen.settled_ms.sort_unstable();
    let times = &seen.settled_ms;
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let Seen { frames, repeated: [one, all], spent, nicknames_lost, split_links, .. } = seen;
    eprintln!("{what}: {} changes settled in {median} ms (median), {worst} ms (worst)", times.len());
    eprintln!("{nicknames_lost} nicknames given up, {split_links} shared links with two DRBs and two pseudonodes");
    eprintln!(
        "of {frames} frames {one} for one egress and {all} for everybody came to an RBridge more than once, {spent} copies ended by their hop count"
    );
}

/// Different roots, and nicknames that both have.
#[test]
fn two_campuses_become_one_and_part_again() {
    let mut seen = Seen::default();
    weft_needs::each_seed("isis-merge", SEEDS, |seed| live(seed, false, &mut seen));
    say("campuses of cables", &mut seen);
    assert!(seen.nicknames_lost > 0 || seen.is_few());
}

#[test]
fn two_campuses_with_shared_links_become_one_and_part_again() {
    let mut seen = Seen::default();
    weft_needs::each_seed("isis-merge-shared", SEEDS.step_by(2), |seed| live(seed, true, &mut seen));
    say("campuses with shared links", &mut seen);
    assert!(seen.nicknames_lost > 0 || seen.is_few());
}

#[test]
fn a_campus_and_its_shared_links_fall_into_parts_and_heal() {
    let mut seen = Seen { loses_ways: true, ..Seen::default() };
    weft_needs::each_seed("isis-parts", SEEDS.step_by(2), |seed| live_in_parts(seed, &mut seen));
    say("campuses in parts", &mut seen);
    assert!((seen.nicknames_lost > 0 && seen.split_links > 0) || seen.is_few());
}
