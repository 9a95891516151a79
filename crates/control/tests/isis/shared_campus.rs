//! Whole campuses with shared links in virtual time: members come and go, links fall into parts and heal, repeaters join them;
//! then quiet, and every RBridge must be, and hold, what the oracle says.
//!
//! A failure names its seed; `WEFT_SEEDS=FIRST..END` runs others.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_control::isis::{Event, KeyChain, PortId, Timing};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::isis::hello::{PortSub, VlanFlags};
use weft_wire::isis::pdu::LanHello;
use weft_wire::isis::{NodeId, Pdu, SystemId, Tlv};
use weft_wire::vlan::VlanSet;

use super::campus::{fast, settle_roots, upset, vlans};
use super::lan::Seat;
use super::net::{Faults, Net, listeners};
use super::oracle::Oracle;
use super::shared::no_two_carry;
use super::topology::Topology;

/// Those that run usually.
const SEEDS: std::ops::Range<u64> = 0..25;

/// Lists of LSPs, on which everything that was lost waits, come often.
pub(crate) fn timing() -> Timing {
    Timing { csnp_ns: 2 * NS_PER_S, ..fast() }
}

pub(crate) fn judge(net: &Net, when: &str) {
    Oracle::new(net).judge().unwrap_or_else(|what| panic!("{when}: {what}"));
}

/// Runs step by step; with good links no VLAN ever has two forwarders.
pub(crate) fn run(net: &mut Net, time_ns: u64) {
    let until_ns = net.now_ns + time_ns;
    while net.now_ns < until_ns {
        net.run_to((net.now_ns + 50 * NS_PER_MS).min(until_ns));
        if net.faults.loss == 0 {
            no_two_carry(net).unwrap_or_else(|what| panic!("{what}"));
        }
    }
}

/// One thing goes wrong, or right again, with a shared link.
fn upset_lan(net: &mut Net, rng: &mut Pcg64Mcg) {
    let lan = rng.random_range(0..net.lans.all.len());
    let members = net.lans.all[lan].members.len();
    let seat: Seat = (lan, rng.random_range(0..members));
    match rng.random_range(0..7) {
        0 => net.set_seat(seat, false),
        1 | 2 => net.set_seat(seat, true),
        3 => {
            let parts: Vec<usize> = (0..members).map(|_| rng.random_range(0..2)).collect();
            net.rewire(|lans| {
                lans.all[lan].members.iter_mut().zip(parts).for_each(|(member, part)| member.part = part)
            });
        }
        4 | 5 => net.rewire(|lans| lans.all[lan].members.iter_mut().for_each(|member| member.part = 0)),
        _ => {
            let other = rng.random_range(0..net.lans.all.len());
            if other != lan {
                let pair = (lan.min(other), lan.max(other));
                net.rewire(|lans| {
                    if !lans.repeaters.remove(&pair) {
                        lans.repeaters.insert(pair);
                    }
                });
            }
        }
    }
}

fn lsps_issued(net: &Net) -> u64 {
    let bridges = net.nodes.iter().filter_map(|node| node.bridge.as_ref());
    bridges.map(|bridge| bridge.counters().events.get(Event::LspIssued)).sum()
}

/// One life of a campus.
fn live(seed: u64, keys: Option<&KeyChain>, listen: bool) -> u64 {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let nodes = rng.random_range(3..11);
    let mut net = Net::new(&Topology::random_with_lans(nodes, &mut rng), seed, timing());
    net.faults = [(0, 0), (0, 30), (20, 10), (150, 30)].map(|(loss, duplication)| Faults { loss, duplication })
        [seed as usize % 4];
    for node in 0..nodes {
        net.nodes[node].vlans = vlans(&mut rng);
        settle_roots(&mut net, node, &mut rng);
        net.nodes[node].keys = keys.cloned();
        if listen {
            net.nodes[node].listeners = listeners(&mut rng);
        }
        let pause_ns = rng.random_range(0..200 * NS_PER_MS);
        run(&mut net, pause_ns);
        net.boot(node, false);
    }
    for _ in 0..rng.random_range(0..40) {
        let pause_ns = rng.random_range(0..4 * NS_PER_S);
        run(&mut net, pause_ns);
        if net.links.is_empty() || rng.random() {
            upset_lan(&mut net, &mut rng)
        } else {
            upset(&mut net, &mut rng)
        }
        if listen {
            let node = rng.random_range(0..nodes);
            net.set_listeners(node, listeners(&mut rng));
        }
    }
    net.faults = Faults::default();
    net.run_to(net.now_ns + 60 * NS_PER_S);
    judge(&net, "after quiet");
    let issued = lsps_issued(&net);
    run(&mut net, 20 * NS_PER_S);
    judge(&net, "later");
    assert_eq!(lsps_issued(&net), issued, "nobody has anything new to say");
    net.pdus
}

/// One shared link whose last RBridge is DRB, with VLANs of twelve blocks that all share.
pub(crate) fn one_link(seed: u64) -> Net {
    let vlans = VlanSet::of_ranges(&[(1, 2), (256, 257), (512, 513), (768, 769), (1024, 1025), (1280, 1281)]);
    let mut net = Net::new(&Topology::lan(5, &vlans), seed, timing());
    (0..5).for_each(|node| net.boot(node, false));
    run(&mut net, 20 * NS_PER_S);
    judge(&net, "five on a link");
    net
}

/// How long each VLAN had no forwarder, ns, while so much time passes; those that others carried before are carried throughout.
fn outages(net: &mut Net, time_ns: u64, kept: &VlanSet, all: &VlanSet) -> BTreeMap<u16, u64> {
    const STEP_NS: u64 = 20 * NS_PER_MS;
    let (mut outages, until_ns) = (BTreeMap::new(), net.now_ns + time_ns);
    while net.now_ns < until_ns {
        run(net, STEP_NS);
        let mut carried = VlanSet::default();
        net.nodes.iter().flat_map(|node| node.access.values()).for_each(|vlans| carried.add_all(vlans));
        assert!(kept.iter().all(|vlan| carried.contains(vlan)), "{carried:?} of {kept:?} at {}", net.now_ns);
        for vlan in all.iter().filter(|vlan| !carried.contains(*vlan)) {
            *outages.entry(vlan).or_default() += STEP_NS;
        }
    }
    outages
}

/// Whoever is killed but the DRB: what others carry goes on without a gap, its own VLANs find another forwarder within the
/// holding time. With the DRB all that it appointed ends (RFC 8139 section 2.2), until each has heard a Hello of the next one;
/// its own VLANs wait for its holding time, those of the next one for its inhibition as well (section 3).
#[test]
fn the_loss_of_a_forwarder_stops_its_own_vlans_alone() {
    const DRB: usize = 4;
    let (hello_ns, holding_ns) = (timing().hello_ns, u64::from(timing().holding_s()) * NS_PER_S);
    for (lost, seed) in (0..5).zip(60..) {
        let mut net = one_link(seed);
        let carried = |node: usize, net: &Net| net.nodes[node].access.values().next().cloned().unwrap_or_default();
        let (mut kept, mut own) = (VlanSet::default(), carried(lost, &net));
        (0..5).filter(|node| *node != lost).for_each(|node| kept.add_all(&carried(node, &net)));
        let mut all = kept.clone();
        all.add_all(&own);
        assert_eq!(all.iter().count(), 12);
        if lost == DRB {
            kept = VlanSet::default();
            own.add_all(&carried(DRB - 1, &net));
        }
        net.kill(lost);
        let outages = outages(&mut net, 3 * holding_ns, &kept, &all);
        let longest = |of_own: bool| {
            let some = outages.iter().filter(|(vlan, _)| own.contains(**vlan) == of_own);
            some.map(|(_, time_ns)| *time_ns).max().unwrap_or(0)
        };
        let (longest_own, longest_other) = (longest(true), longest(false));
        let (most_own, most_other) = if lost == DRB { (2 * holding_ns, hello_ns) } else { (holding_ns, 0) };
        assert!(longest_own <= most_own + 200 * NS_PER_MS, "rb{lost}: {longest_own} ns of {outages:?}");
        assert!(longest_other <= most_other + 200 * NS_PER_MS, "rb{lost}: {longest_other} ns of {outages:?}");
        judge(&net, "one is gone");
    }
}

/// Somebody without a key who says once that it is DRB, and lists nobody: believed where nobody has keys, for its holding time
/// and no longer; never two forwarders.
#[test]
fn a_forged_drb_does_not_stay() {
    for keys in [None, Some(super::authentication::chain(&[1]))] {
        let mut net = one_link(70);
        if keys.is_some() {
            (0..5).for_each(|node| net.nodes[node].keys = keys.clone());
            (0..5).for_each(|node| net.boot(node, true));
            run(&mut net, 20 * NS_PER_S);
        }
        net.forge_shared((0, 0), 1, &forged_hello());
        run(&mut net, 100 * NS_PER_MS);
        let believed = net.nodes[1].bridge.as_ref().unwrap().shared_link(PortId(1)).unwrap().drb == SystemId([0xee; 6]);
        assert_eq!(believed, keys.is_none());
        run(&mut net, 30 * NS_PER_S);
        judge(&net, "it is gone");
    }
}

fn forged_hello() -> Vec<u8> {
    let flags = VlanFlags { port_id: 9, outer_vlan: 1, designated_vlan: 1, ..VlanFlags::default() };
    let subs = vec![PortSub::VlanFlags(flags)];
    let tlvs = vec![Tlv::Areas(vec![vec![0]]), Tlv::PortCapability { topology: 0, subs }];
    let lan_id = NodeId([0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 1]);
    let hello =
        LanHello { circuit_type: 1, source: SystemId([0xee; 6]), holding_time_s: 3, priority: 127, lan_id, tlvs };
    Pdu::LanHello(hello).emit().unwrap()
}

fn live_all(simulator: &str, seeds: impl Iterator<Item = u64>, keys: Option<&KeyChain>, listen: bool) {
    let mut pdus = 0;
    weft_needs::each_seed(simulator, seeds, |seed| pdus += live(seed, keys, listen));
    assert!(pdus > 0);
}

#[test]
fn after_quiet_everybody_is_what_the_oracle_says() {
    live_all("isis-shared", SEEDS, None, false);
}

#[test]
fn after_quiet_everybody_is_what_the_oracle_says_with_keys_too() {
    live_all("isis-shared-keys", SEEDS.step_by(6), Some(&super::authentication::chain(&[1])), false);
}

/// The same campuses, one in three, whose end stations listen to some groups and not to others.
#[test]
fn after_quiet_everybody_prunes_the_groups_that_the_oracle_prunes() {
    live_all("isis-shared-groups", SEEDS.step_by(3), None, true);
}
