//! Devmaps of their own for sets of ports: the same copies leave by the same ports as when the kernel copies for all, also after an
//! interface was made anew; and there are only so many, whatever stations send.

mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::available;
use common::netns::{Namespace, link as wire};
use common::tap::Tap as Socket;
use common::trill::*;
use common::trill_model::{SET_AT, SOME_SET};
use weft_datapath::frame::Verdict;
use weft_datapath::offload::{self, Offload};
use weft_datapath::trill::abi::TRILL_SETS;
use weft_datapath::trill::{Elision, Fib, PortConfig, PortKind, RBridgeConfig, RBridgeDatapath, Tap};
use weft_wire::ethernet::MacAddress;
use weft_wire::listener::{Group, Listeners};
use weft_wire::vlan::VlanSet;

const SHARED: u8 = 7;
const VLAN_OF_SHARED: u16 = 20;
const PORTS: [u8; 7] = [LINK_A, LINK_B, ACCESS_10, OTHER_10, ACCESS_20, TRUNK, SHARED];
/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);
/// Station on the shared link, and RBridge there.
const HERE: [u8; 6] = [0x02, 0, 0, 0, 0x70, 0x01];

/// The RBridge of the other tests between wires, and what is at their other ends.
struct Wired {
    datapath: RBridgeDatapath,
    tap: Tap,
    ends: BTreeMap<u8, Socket>,
    inside: Namespace,
    outside: Namespace,
}

fn interface(number: u8) -> String {
    format!("p{number}")
}

fn wire_port(inside: &Namespace, outside: &Namespace, number: u8) {
    let name = interface(number);
    wire((inside, &name), (outside, &name), 1600);
    // So that it takes what is redirected to it.
    outside.enter(|| offload::set(&name, Offload::Gro, true).expect("veth can join frames"));
}

fn wired(test: &str) -> Option<Wired> {
    if !weft_needs::root() {
        return None;
    }
    let [inside, outside] = ["s", "o"].map(|name| {
        let namespace = Namespace::new(test, name);
        for scope in ["all", "default"] {
            namespace.sysctl(&format!("net.ipv6.conf.{scope}.disable_ipv6"), "1");
        }
        namespace
    });
    PORTS.into_iter().for_each(|number| wire_port(&inside, &outside, number));
    let datapath = available(inside.enter(|| {
        let mut datapath = RBridgeDatapath::load(&RBridgeConfig::default())?;
        for (number, kind) in kinds().into_iter().chain([(SHARED, PortKind::shared(10))]) {
            datapath.add_port(number, &config(number, kind))?;
        }
        Ok(datapath)
    }))?;
    PORTS.into_iter().for_each(|number| inside.wait_up(&interface(number)));
    let ends = PORTS.into_iter().map(|number| (number, Socket::open_for_all(&outside, &interface(number), WAIT)));
    let tap = datapath.tap(1).unwrap();
    let mut wired = Wired { ends: ends.collect(), datapath, tap, inside, outside };
    wired.datapath.change(tables).unwrap();
    wired.datapath.maps().set_access_until(u64::MAX).unwrap();
    wired.datapath.maps().tick(100).unwrap();
    // Interfaces with a program come up anew; what is redirected before that is lost.
    std::thread::sleep(Duration::from_millis(50));
    Some(wired)
}

fn config(number: u8, kind: PortKind) -> PortConfig {
    PortConfig { interface: interface(number), ..port(number, kind) }
}

/// Those of the other tests; the shared link carries VLAN 20, one link goes without outer headers, and one group has listeners in
/// VLAN 10 behind some ports only.
fn tables(fib: &mut Fib) {
    edit(fib);
    fib.ports.get_mut(&LINK_B).unwrap().kind = link(LINK_B, Elision::Agreed);
    let neighbors = [MacAddress(neighbor_mac(SHARED))].into();
    let carried = VlanSet::of_ranges(&[(VLAN_OF_SHARED, VLAN_OF_SHARED)]);
    fib.ports.get_mut(&SHARED).unwrap().kind =
        PortKind::Shared { untagged: 10, designated_vlan: 10, carried, neighbors };
    let mut listeners = Listeners::default();
    listeners.groups.insert(Group { vlan: 10, mac: MacAddress(GROUP_4) });
    let tree = fib.trees.get_mut(&NEAR).unwrap();
    tree.listeners = [(LINK_A, listeners.clone()), (LINK_B, Listeners::default())].into();
    fib.listeners = [(ACCESS_10, listeners.clone()), (OTHER_10, Listeners::default()), (TRUNK, listeners)].into();
}

/// Frames for many by every port, in every VLAN.
fn frames() -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    let payload = [0x45; 100];
    for to in [BROADCAST, GROUP_4, ALL_SYSTEMS, NOBODY] {
        for port in [ACCESS_10, OTHER_10, ACCESS_20, TRUNK, SHARED] {
            frames.push((port, common::ethernet(to, HERE, 0x0800, &payload)));
        }
        for (port, vlan) in [(TRUNK, 10), (TRUNK, 20), (SHARED, 20), (SHARED, 30)] {
            frames.push((port, tagged(to, HERE, vlan, 0x0800, &payload)));
        }
        for (port, ingress) in [(LINK_A, FAR), (LINK_A, NEAR), (SHARED, WIDE)] {
            for control in [10, 20, 0xa01e] {
                for flags_word in [None, Some(5), Some(0x4000_0000)] {
                    let frame = multicast(port, ingress, NEAR).with(|frame| {
                        (frame.inner_destination, frame.control, frame.flags_word) = (to, control, flags_word);
                    });
                    frames.push((port, frame.bytes()));
                }
            }
        }
        // A station that nobody knows, and one copy alone.
        let unknown = unicast(LINK_A, FAR, OWN).with(|frame| frame.inner_destination = to);
        frames.push((LINK_A, unknown.bytes()));
        frames.push((LINK_A, multicast(LINK_A, FAR, NEAR).with(|frame| frame.control = 25).bytes()));
        frames.push((LINK_B, multicast(LINK_B, WIDE, NEAR).with(|frame| frame.inner_destination = to).bytes()));
    }
    // Cut short, too long, and no frames at all.
    let whole = multicast(LINK_A, FAR, NEAR).bytes();
    // The far kernel drops a frame that ends in its tag.
    let lengths = (14..60).filter(|length| ![38, 39].contains(length));
    frames.extend(lengths.map(|length| (LINK_A, whole[..length].to_vec())));
    let long = multicast(LINK_A, FAR, NEAR).with(|frame| frame.payload = vec![7; 1540]);
    frames.push((LINK_A, long.bytes()));
    frames
}

type Copies = BTreeMap<(u8, &'static str, Vec<u8>), usize>;

impl Wired {
    fn count(&self, name: &str) -> u64 {
        let ports = self.datapath.maps().counters().unwrap();
        ports.iter().flat_map(|port| &port.counts).filter(|(other, _)| *other == name).map(|(_, count)| count).sum()
    }

    /// Sends a frame, and takes what leaves of it: by which port, as what, with which bytes.
    fn send(&self, port: u8, frame: &[u8], copies: &mut Copies) {
        self.ends[&port].send(frame);
        let start = Instant::now();
        let mut seen = Vec::new();
        let is_copy = |name: &str| name.starts_with("copy_");
        let has_come = |seen: &[weft_datapath::trill::Tapped]| seen.iter().any(|record| !is_copy(record.outcome));
        while !has_come(&seen) || self.count("handed") > self.count("copied") {
            assert!(start.elapsed() < WAIT, "the frame never came");
            seen.extend(self.tap.take().unwrap());
        }
        let mut last = Instant::now();
        while last.elapsed() < Duration::from_millis(2) {
            let more = self.tap.take().unwrap();
            if !more.is_empty() {
                last = Instant::now();
            }
            seen.extend(more);
        }
        for mut record in seen.into_iter().filter(|record| record.outcome != "copy_pruned") {
            // What is noted for copies has the numbers of a set and of the frame.
            if record.bytes[6] & 1 == 1 && record.bytes[12..14] == [0x22, 0xf3] {
                record.bytes[SET_AT..12].fill(SOME_SET);
            }
            *copies.entry((record.port, record.outcome, record.bytes)).or_default() += 1;
        }
    }

    fn pruned_at(&self, port: u8) -> u64 {
        let ports = self.datapath.maps().counters().unwrap();
        let port = ports.iter().find(|counters| counters.port == port).unwrap();
        port.counts.iter().find(|(name, _)| *name == "copy_pruned").unwrap().1
    }

    /// How many copies have left by a port, the one copy of a frame included.
    fn left(&self, port: u8) -> usize {
        let ports = self.datapath.maps().counters().unwrap();
        let counts = ports.iter().find(|counters| counters.port == port).unwrap().counts.iter();
        counts
            .filter(|(name, _)| ["copy_sent", "copy_delivered"].contains(name))
            .map(|(_, count)| *count as usize)
            .sum()
    }

    /// Sends all; what left, all of which came to the other ends.
    fn send_all(&self) -> Copies {
        let mut copies = Copies::new();
        let before = PORTS.map(|port| self.left(port));
        for (port, frame) in frames() {
            self.send(port, &frame, &mut copies);
        }
        let before: BTreeMap<u8, usize> = PORTS.into_iter().zip(before).collect();
        let left = |port: u8| self.left(port) - before[&port];
        let start = Instant::now();
        let mut came: BTreeMap<u8, usize> = BTreeMap::new();
        for (number, end) in &self.ends {
            let seen = came.entry(*number).or_default();
            while *seen < left(*number) && start.elapsed() < WAIT {
                *seen += usize::from(end.poll().is_some());
            }
        }
        std::thread::sleep(Duration::from_millis(20));
        for (number, end) in &self.ends {
            let more = std::iter::from_fn(|| end.poll()).count();
            assert_eq!(came[number] + more, left(*number), "port {number}");
        }
        copies
    }
}

#[track_caller]
fn assert_same(got: &Copies, expected: &Copies) {
    let beyond = |these: &Copies, those: &Copies| -> Vec<String> {
        let others = these.iter().filter(|(copy, count)| those.get(*copy) != Some(*count));
        others
            .map(|((port, outcome, bytes), n)| format!("{n} by port {port}: {outcome}\n{}", common::dump(bytes)))
            .collect()
    };
    let (more, less) = (beyond(got, expected), beyond(expected, got));
    assert!(more.is_empty() && less.is_empty(), "got\n{}expected\n{}", more.concat(), less.concat());
}

#[test]
fn the_same_copies_leave_by_the_same_ports() {
    let Some(mut wired) = wired("tset") else { return };
    // Stations are learned, and the rest of the campus stays as it is.
    wired.send_all();
    let before = wired.send_all();
    // At a shared link one of two copies is for nothing where a frame goes there in one form.
    let counts = |wired: &Wired| [wired.count("set_missed"), wired.count("copy_pruned") - wired.pruned_at(SHARED)];
    let [missed, pruned] = counts(&wired);
    assert!(missed > 0 && pruned > missed, "nobody has a devmap yet");
    assert!(before.keys().filter(|(_, outcome, _)| outcome.starts_with("copy_")).count() > 50, "{}", before.len());

    wired.datapath.maps().tick(101).unwrap();
    let Wired { datapath, inside, .. } = &mut wired;
    inside.enter_with(|| datapath.prepare_sets(101)).unwrap();
    assert_same(&wired.send_all(), &before);
    assert_eq!(counts(&wired), [missed, pruned], "every set has one now, and no copy is made in vain");

    // An interface that is made anew takes its entries with it.
    for number in [OTHER_10, LINK_B] {
        wired.inside.ip(&format!("link del {}", interface(number)));
        wire_port(&wired.inside, &wired.outside, number);
        let kind = wired.datapath.fib().ports[&number].kind.clone();
        let Wired { datapath, inside, .. } = &mut wired;
        inside.enter_with(|| datapath.add_port(number, &config(number, kind)).unwrap());
        inside.wait_up(&interface(number));
        wired.ends.insert(number, Socket::open_for_all(&wired.outside, &interface(number), WAIT));
    }
    std::thread::sleep(Duration::from_millis(50));
    let missed = counts(&wired)[0];
    wired.send_all();
    assert_same(&wired.send_all(), &before);
    assert_eq!(counts(&wired)[0], missed, "the sets are the same");
}

const TRUNKS: u8 = 7;
const NONE: [u16; 0] = [];
/// The port that has all VLANs.
const ALL_VLANS: u8 = 8;

/// Each VLAN from 1 to 127 is at the ports of its bits: more sets than there are devmaps.
fn many_sets() -> Option<RBridgeDatapath> {
    let mut datapath = available(RBridgeDatapath::load(&RBridgeConfig::default()))?;
    for number in 1..=TRUNKS {
        let vlans = (1..128_u16).filter(|vlan| vlan >> (number - 1) & 1 == 1).collect();
        datapath.set_port(number, &port(number, PortKind::trunk(vlans))).unwrap();
    }
    datapath.set_port(ALL_VLANS, &port(ALL_VLANS, PortKind::trunk(VlanSet::of_ranges(&[(1, 127)])))).unwrap();
    Some(datapath)
}

fn missed(datapath: &RBridgeDatapath) -> u64 {
    let ports = datapath.maps().counters().unwrap();
    let port = ports.iter().find(|counters| counters.port == ALL_VLANS).unwrap();
    port.counts.iter().find(|(name, _)| *name == "set_missed").unwrap().1
}

/// Which of these VLANs' frames find no devmap of their set.
fn without_set(datapath: &mut RBridgeDatapath, vlans: &[u16]) -> Vec<u16> {
    let mut without = Vec::new();
    for vlan in vlans {
        let before = missed(datapath);
        let output = datapath.run(ALL_VLANS, &tagged(BROADCAST, HERE, *vlan, 0x0800, &[0x45; 60])).unwrap();
        assert_eq!(output.verdict, Verdict::Redirect, "it is copied in any case");
        if missed(datapath) > before {
            without.push(*vlan);
        }
    }
    without
}

fn at(datapath: &mut RBridgeDatapath, now_s: u32) {
    datapath.maps().tick(now_s).unwrap();
}

#[test]
fn there_are_so_many_sets_and_the_oldest_makes_way() {
    let Some(mut datapath) = many_sets() else { return };
    let several: Vec<u16> = (1..128).filter(|vlan: &u16| vlan.count_ones() > 1).collect();
    at(&mut datapath, 100);
    assert_eq!(without_set(&mut datapath, &several), several, "nobody has one at first");
    datapath.prepare_sets(100).unwrap();
    let without = without_set(&mut datapath, &several);
    assert_eq!(several.len() - without.len(), TRILL_SETS as usize);
    let with: Vec<u16> = several.iter().copied().filter(|vlan| !without.contains(vlan)).collect();
    // A single copy asks for none.
    assert_eq!(without_set(&mut datapath, &[1, 64]), NONE);

    // While all are in use, who asks gets none.
    for now_s in 101..120 {
        at(&mut datapath, now_s);
        assert_eq!(without_set(&mut datapath, &with), NONE, "at {now_s}");
        datapath.prepare_sets(now_s).unwrap();
        assert_eq!(without_set(&mut datapath, &without[..5]), without[..5], "at {now_s}");
    }
    // Some are not used for ten seconds; those of who asks take their places, a while after they have gone.
    let (used, idle) = with.split_at(with.len() / 2);
    let wanted: Vec<u16> = without.iter().copied().filter(|vlan| vlan.count_ones() < 4).take(5).collect();
    for now_s in 120..129 {
        at(&mut datapath, now_s);
        assert_eq!(without_set(&mut datapath, used), NONE);
        datapath.prepare_sets(now_s).unwrap();
    }
    at(&mut datapath, 129);
    assert_eq!(without_set(&mut datapath, &wanted), wanted);
    datapath.prepare_sets(129).unwrap();
    for now_s in [129, 130] {
        at(&mut datapath, now_s);
        datapath.prepare_sets(now_s).unwrap();
        assert_eq!(without_set(&mut datapath, &wanted), wanted, "at {now_s}");
    }
    at(&mut datapath, 131);
    datapath.prepare_sets(131).unwrap();
    assert_eq!(without_set(&mut datapath, &wanted), NONE, "they have them now");
    assert_eq!(without_set(&mut datapath, used), NONE);
    assert_eq!(without_set(&mut datapath, idle).len(), wanted.len(), "as many went as were asked for");
}

#[test]
fn a_set_with_a_port_that_is_gone_gets_none() {
    let Some(mut datapath) = many_sets() else { return };
    at(&mut datapath, 100);
    without_set(&mut datapath, &[3, 6, 127]);
    datapath.remove_port(1).unwrap();
    datapath.prepare_sets(100).unwrap();
    assert_eq!(without_set(&mut datapath, &[6]), NONE);
    // What is left of the others are other sets.
    assert_eq!(without_set(&mut datapath, &[7, 127]), [127]);
    datapath.prepare_sets(100).unwrap();
    assert_eq!(without_set(&mut datapath, &[6, 7, 127]), NONE);
}
