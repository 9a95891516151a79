//! Random frames through the programs and through a slow model of the RFCs' text: outcome, bytes and what was learned
//! are the same, and every outcome is met.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::trill::*;
use common::trill_model::{Model, SET_AT, SOME_SET};
use common::{Ipv4, Random, arp, ethernet};
use weft_datapath::frame::Verdict;
use weft_datapath::trill::abi::{OUTCOMES, SHARERS};
use weft_datapath::trill::{Elision, Hop, OwnTrees, Place, PortKind};
use weft_wire::ethernet::MacAddress;
use weft_wire::listener::{Group, Listeners};
use weft_wire::vlan::VlanSet;

const SHARED: u8 = 7;
const FRAMES_PER_PORT: usize = 1000;
const ROUNDS: u64 = 9;
const ELISIONS: [Elision; 3] = [Elision::Off, Elision::Offered, Elision::Agreed];

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

fn one_in(random: &mut Random, n: u64) -> bool {
    random.below(n) == 0
}

fn mac(random: &mut Random) -> [u8; 6] {
    let known = [NEAR_STATION, SECOND_STATION, FAR_STATION, LOST_STATION, NOBODY, GATEWAY, BROADCAST, ALL_EGRESS];
    if one_in(random, 5) {
        return pick(random, &[GROUP_4, GROUP_4, GROUP_6, ALL_SYSTEMS, SOLICITED]);
    }
    match random.below(12) {
        0 => [0x01, 0x80, 0xc2, 0, 0, random.below(0x50) as u8],
        1 => port_mac(random.below(8) as u8),
        2 => [0; 6],
        3 => [0x02, 1, 1, 1, 1, random.below(40) as u8],
        _ => pick(random, &known),
    }
}

fn packet(random: &mut Random) -> (u16, Vec<u8>) {
    let host = |random: &mut Random| pick(random, &[FAR_HOST, NEAR_HOST, GATEWAY_IP, [10, 0, 10, 9].into()]);
    let mut payload = random.bytes(4);
    let length = pick(random, &[0, 1, 40, 1000, 1480, 1500, 1560]);
    payload.extend(random.bytes(length));
    let mut ip = Ipv4 {
        source: host(random),
        destination: host(random),
        protocol: pick(random, &[1, 6, 17]),
        fragment: pick(random, &[0, 0x4000, 0x2000, 5]),
        ttl: pick(random, &[0, 1, 2, 64]),
        payload,
        ..Ipv4::default()
    };
    if one_in(random, 5) {
        ip.options = vec![1; 8];
    }
    let mut bytes = ip.bytes();
    if one_in(random, 8) {
        let place = random.below(20) as usize;
        bytes[place] ^= 1 << random.below(8);
    }
    if one_in(random, 10) {
        let kind = pick(random, &[0x11, 0x12, 0x16, 0x17, 0x22, 0x30]);
        return (0x0800, igmp(kind, [239, 1, 2, 3]));
    }
    if one_in(random, 10) {
        return (0x86dd, mld(pick(random, &[130, 131, 132, 143, 135])));
    }
    match random.below(8) {
        0 => (0x0806, arp(pick(random, &[1, 2]), (NOBODY, host(random)), ([0; 6], host(random)))),
        1 => (0x86dd, [&[0x60, 0, 0, 0, 0, 20, pick(random, &[6, 17, 58]), 64][..], &random.bytes(52)].concat()),
        2 => (pick(random, &[0x22f3, 0x22f4, 0x8946, 0x8100]), random.bytes(50)),
        _ => (0x0800, bytes),
    }
}

fn control(random: &mut Random) -> u16 {
    (random.below(16) << 12) as u16 | pick(random, &[10, 10, 10, 20, 20, 30, 25, 40, 0, 4095])
}

/// By a link: mostly right, with one or two things that are not.
fn by_link(random: &mut Random, port: u8) -> Vec<u8> {
    let nickname = |random: &mut Random| {
        pick(random, &[NEAR, FAR, WIDE, OWN, OTHERS[0], OTHERS[1], OWN, UNKNOWN, 0, 0xffc0, 0xffff, NEAR, FAR, WIDE])
    };
    let (from, to) = (nickname(random), nickname(random));
    let from = if one_in(random, 2) { pick(random, &[NEAR, FAR, WIDE]) } else { from };
    let mut frame = if one_in(random, 2) { unicast(port, from, to) } else { multicast(port, from, to) };
    (frame.kind, frame.payload) = packet(random);
    (frame.inner_source, frame.control) = (mac(random), control(random));
    if one_in(random, 2) {
        frame.inner_destination = mac(random);
    }
    if one_in(random, 20) {
        frame.inner_destination = [0x01, 0x80, 0xc2, 0, 0, random.below(0x22) as u8];
    }
    if one_in(random, 4) {
        frame.flags_word = Some((random.next() >> 32) as u32 >> random.below(4));
    }
    match random.below(16) {
        0 => frame.flags = random.next() as u16,
        1 => frame.flags &= !63,
        2 => frame.destination = mac(random),
        3 => frame.source = mac(random),
        4 => frame.label = pick(random, &[0x893b, 0x88a8, 0x0800]),
        5 => frame.flags |= 0x3000,
        _ => {}
    }
    if one_in(random, 3) {
        return frame.elided();
    }
    let mut bytes = frame.bytes();
    if one_in(random, 10) {
        let tag = pick(random, &[0, DESIGNATED_VLAN, DESIGNATED_VLAN + 1]);
        bytes = within(tag, bytes);
    }
    match random.below(30) {
        0 => ethernet(mac(random), mac(random), pick(random, &[0x22f4, 0x22f3, 0x0800]), &bytes[14..]),
        1 => ethernet(frame.destination, frame.source, 0x22f4, &bytes[14..]),
        _ => bytes,
    }
}

/// With a tag around everything.
fn within(vlan: u16, mut frame: Vec<u8>) -> Vec<u8> {
    let inside = frame.split_off(12);
    [frame, vec![0x81, 0], vlan.to_be_bytes().to_vec(), inside].concat()
}

/// By a shared link, from one of its neighbours or from a station.
fn by_shared_link(random: &mut Random) -> Vec<u8> {
    if one_in(random, 2) {
        return native(random);
    }
    let mut frame = by_link(random, SHARED);
    let last = random.below(SHARERS as u64 + 2) as u8;
    if one_in(random, 2) && frame[6..12] == neighbor_mac(SHARED) {
        frame[6..12].copy_from_slice(&sharer(last));
    }
    if one_in(random, 3) { within(pick(random, &[0, 10, DESIGNATED_VLAN]), frame) } else { frame }
}

/// Of other neighbours on the shared link; the last two are none.
fn sharer(number: u8) -> [u8; 6] {
    [0x02, 0xdd, number % 7, 0, 0, number]
}

/// By a native port.
fn native(random: &mut Random) -> Vec<u8> {
    let (kind, payload) = packet(random);
    let source = if one_in(random, 6) { mac(random) } else { [0x02, 1, 1, 1, 1, random.below(40) as u8] };
    match random.below(2) {
        0 => ethernet(mac(random), source, kind, &payload),
        _ => tagged(mac(random), source, control(random), kind, &payload),
    }
}

type ByPort = BTreeMap<u8, Listeners>;

/// Of ports to end stations, and of branches.
fn random_listeners(random: &mut Random) -> (ByPort, ByPort) {
    let mut of = |ports: &[u8]| {
        let mut by_port = ByPort::new();
        for port in ports {
            if one_in(random, 4) {
                continue;
            }
            let mut listeners = Listeners::default();
            for vlan in [10, 20, 30] {
                if one_in(random, 4) {
                    listeners.all_ipv4.add_range(vlan, vlan);
                }
                if one_in(random, 4) {
                    listeners.all_ipv6.add_range(vlan, vlan);
                }
                for group in [GROUP_4, GROUP_6, ALL_SYSTEMS] {
                    if one_in(random, 3) {
                        listeners.groups.insert(Group { vlan, mac: MacAddress(group) });
                    }
                }
            }
            by_port.insert(*port, listeners);
        }
        by_port
    };
    (of(&[ACCESS_10, OTHER_10, ACCESS_20, TRUNK, SHARED]), of(&[LINK_A, LINK_B, SHARED]))
}

fn cut(random: &mut Random, frame: Vec<u8>) -> Vec<u8> {
    let length = if one_in(random, 12) { 14 + random.below(60) as usize } else { frame.len() };
    frame[..length.min(frame.len())].to_vec()
}

#[test]
fn programs_and_model_agree() {
    let Some(mut rb) = rbridge() else { return };
    rb.datapath.set_port(SHARED, &port(SHARED, PortKind::shared(10))).unwrap();
    rb.datapath.maps().set_access_until(u64::MAX).unwrap();
    let mut model = Model::new(rb.datapath.fib().clone());
    let mut random = Random(0x7e57_0001_d1ff_e4e7);
    let mut met: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..ROUNDS {
        // Once without a tree, once without a nickname, mostly with two trees.
        let edit = |fib: &mut weft_datapath::trill::Fib| {
            let roots: &[u16] = [&[NEAR, WIDE][..], &[NEAR], &[], &[WIDE, NEAR]][round as usize % 4];
            fib.own_trees = OwnTrees::of(roots.iter().copied());
            fib.nickname = (round % 4 != 3).then_some(OWN);
            fib.other_nicknames = OTHERS[..round as usize % 3].to_vec();
            // With and without outer headers, on one link or both, towards the neighbour or not.
            for (number, number_of) in [(LINK_A, round % 3), (LINK_B, round / 3)] {
                fib.ports.get_mut(&number).unwrap().kind = link(number, ELISIONS[number_of as usize]);
            }
        };
        // The shared link is forwarder now of these VLANs, then of those, and a branch of the tree or not.
        let share = |fib: &mut weft_datapath::trill::Fib| {
            let carried = [&[10, 20][..], &[20], &[10, 30]][round as usize % 3].iter().copied().collect();
            let neighbors = (1..SHARERS as u8).map(sharer).chain([neighbor_mac(SHARED)]).map(MacAddress).collect();
            let designated_vlan = [10, 10, DESIGNATED_VLAN][round as usize / 2 % 3];
            fib.ports.get_mut(&SHARED).unwrap().kind =
                PortKind::Shared { untagged: 10, designated_vlan, carried, neighbors };
            let tree = fib.trees.get_mut(&NEAR).expect("it is there");
            let wanted = VlanSet::of_ranges(&[(10, 20)]);
            tree.branches.remove(&SHARED);
            tree.branches.extend((round % 2 == 0).then_some((SHARED, wanted)));
            tree.rpf.insert(WIDE, if round % 2 == 0 { SHARED } else { LINK_B });
            // So few that all there is to say about groups has room: beyond that, frames go where nobody listens as well.
            let few = VlanSet::of_ranges(&[(1, 64)]);
            fib.trees.get_mut(&WIDE).expect("it is there").branches = [(LINK_B, few)].into();
        };
        // Who listens to what; in every fourth round nobody says so.
        let listening = (round % 4 != 3).then(|| random_listeners(&mut random));
        let listen = |fib: &mut weft_datapath::trill::Fib| {
            let (natives, trees) = listening.clone().unwrap_or_default();
            fib.listeners = natives;
            fib.trees.values_mut().for_each(|tree| tree.listeners = trees.clone());
            fib.snoops = round % 2 == 0;
            fib.overloaded = round % 5 == 4;
            let relays = [(LINK_A, neighbor_mac(LINK_A)), (LINK_B, neighbor_mac(LINK_B)), (SHARED, sharer(1))];
            let relays = relays.into_iter().take(if fib.overloaded { 1 + round as usize % 3 } else { 0 });
            fib.relays = relays.map(|(port, mac)| Hop { port, mac: MacAddress(mac) }).collect();
        };
        rb.datapath.change(listen).unwrap();
        listen(&mut model.fib);
        rb.datapath.change(edit).unwrap();
        rb.datapath.change(share).unwrap();
        rb.datapath.prepare_sets(100).unwrap();
        edit(&mut model.fib);
        share(&mut model.fib);
        for port in [LINK_A, LINK_B, ACCESS_10, OTHER_10, ACCESS_20, TRUNK, SHARED] {
            for n in 0..FRAMES_PER_PORT {
                let frame = match port {
                    LINK_A | LINK_B => by_link(&mut random, port),
                    SHARED => by_shared_link(&mut random),
                    _ => native(&mut random),
                };
                let frame = cut(&mut random, frame);
                let (expected, bytes) = model.receive(port, &frame);
                let (outcome, mut output) = rb.run(port, &frame);
                if outcome.ends_with("_flood") && output.bytes[6] & 1 == 1 {
                    output.bytes[SET_AT] = SOME_SET;
                }
                let place = || format!("round {round}, port {port}, frame {n}\n{}", common::dump(&frame));
                assert_eq!(outcome, expected, "{}", place());
                assert_eq!(output.verdict == Verdict::Drop, bytes.is_none(), "{}", place());
                if let Some(bytes) = bytes {
                    assert!(
                        output.bytes == bytes,
                        "{}got\n{}expected\n{}",
                        place(),
                        common::dump(&output.bytes),
                        common::dump(&bytes)
                    );
                }
                *met.entry(expected).or_default() += 1;
            }
        }
        let learned: BTreeSet<([u8; 6], u16, Place)> =
            rb.datapath.maps().stations().unwrap().iter().map(|known| (known.mac.0, known.vlan, known.place)).collect();
        assert_eq!(learned, model.stations.iter().map(|(key, known)| (key.0, key.1, known.0)).collect());
    }
    // What one frame alone, of a length that the kernel takes for a trial, cannot be; and what comes of many in a second.
    let elsewhere = [
        "copy_sent",
        "copy_delivered",
        "copy_pruned",
        "no_port",
        "too_long_to_copy",
        "push_failed",
        "pop_failed",
        "control_limit",
        "storm_limit",
        "port_full",
        "nickname_full",
        "not_snooped",
        "set_missed",
        "fdb_full",
        "fdb_moved",
        "handed",
        "copied",
    ];
    let missed: Vec<&&str> =
        OUTCOMES.iter().filter(|name| !met.contains_key(**name) && !elsewhere.contains(name)).collect();
    assert!(missed.is_empty(), "never met: {missed:?}; met: {met:?}");
}
