//! Against the kernel's own vxlan device: a station behind our VTEP and one behind the kernel's talk, in both directions.

#![allow(clippy::print_stderr)]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::netns::Namespace;
use common::traffic::{Icmp, received, transfer};
use common::vxlan::{LOCAL, Node, PEER, hold, settings, vni};
use common::*;
use weft_datapath::vxlan::{AccessRule, Flood, Hook, OnMiss, To, Vtep, VtepOptions};

/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);
const STATION: [u8; 4] = [20, 0, 0, 1];
const FAR: [u8; 4] = [20, 0, 0, 2];

/// Our VTEP with one station (20.0.0.1), and a kernel VTEP that is a station itself (20.0.0.2).
struct Bed {
    vtep: Vtep,
    station: Namespace,
    node: Node,
}

fn bed(test: &str, hook: Hook, kernel: &str) -> Option<Bed> {
    if !weft_needs::root() {
        return None;
    }
    let node = Node::new(test);
    let station = node.station(test, "vm", "20.0.0.1/24");
    node.kernel_peer(42, "20.0.0.2/24", kernel);
    let mut vtep = node.vtep(&VtepOptions { hook, ..VtepOptions::new(LOCAL) })?;
    vtep.add_vni(vni(42), &settings()).unwrap();
    node.attach(&mut vtep, "vm", 42, AccessRule::default());
    Some(Bed { vtep, station, node })
}

impl Bed {
    fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.vtep.counters().unwrap().into_iter().collect()
    }

    fn ping(&self, sequences: std::ops::Range<u16>, payload: usize) {
        for (from, to) in [(&self.station, FAR), (&self.node.far, STATION)] {
            let icmp = Icmp::open(from, WAIT);
            for sequence in sequences.clone() {
                let answer = icmp.ping(to.into(), 64, sequence, payload);
                let answer =
                    answer.unwrap_or_else(|| panic!("no answer: {:?}", counted(self.vtep.counters().unwrap())));
                assert_eq!(answer.ttl, 64, "not a hop");
            }
        }
    }

    fn no_drops(&self) {
        let drops = weft_datapath::vxlan::abi::VTEP_OUTCOMES.iter().skip_while(|name| **name != "no_segment");
        let counters = self.counters();
        let dropped: Vec<_> = drops.filter(|name| counters[**name] > 0).collect();
        assert!(dropped.is_empty(), "{dropped:?} in {counters:?}");
    }
}

/// With UDP checksums, which are the kernel's default, and without.
#[test]
fn stations_talk_and_super_frames_stay_whole() {
    for (test, kernel) in [("kern", "udpcsum"), ("kernz", "noudpcsum")] {
        let Some(bed) = bed(test, Hook::Tc, kernel) else { return };
        bed.ping(0..5, 1472);
        let both = [(&bed.station, &bed.node.far, FAR, "vx0"), (&bed.node.far, &bed.station, STATION, "eth0")];
        for (from, to, address, interface) in both {
            let (_, before) = received(to, interface);
            let (bytes, time) = transfer(from, to, address.into(), 64 << 20);
            let (_, after) = received(to, interface);
            assert_eq!(bytes, 64 << 20);
            let mean = bytes as u64 / (after - before);
            eprintln!("{kernel} to {interface}: {:.0} MB/s, mean {mean}", bytes as f64 / 1e6 / time.as_secs_f64());
            assert!(mean > 10_000, "super frames were cut up: {mean} bytes in the mean frame");
        }
        bed.no_drops();
        let entries = bed.vtep.entries(None).unwrap();
        assert!(entries.iter().any(|entry| entry.to == To::Remote(PEER)), "{entries:?}");
        let peer = bed.vtep.peers().unwrap()[0];
        assert!(peer.traffic.sent_bytes > 64 << 20 && peer.traffic.received_bytes > 64 << 20, "{peer:?}");
    }
}

#[test]
fn floods_go_to_an_underlay_group() {
    let Some(mut bed) = bed("kgrp", Hook::Tc, "group 239.1.1.1") else { return };
    let group = [239, 1, 1, 1].into();
    bed.node.node.enter_with(|| bed.vtep.set_flood(vni(42), &Flood::Group(group))).unwrap();
    bed.vtep.add_peer(PEER).unwrap();
    let joined = bed.node.node.enter(|| std::fs::read_to_string("/proc/thread-self/net/igmp")).unwrap();
    assert!(joined.contains("010101EF"), "{joined}");
    bed.ping(0..3, 100);
    let counters = bed.counters();
    assert!(counters["flooded"] >= 1 && counters["sent_later"] >= 1, "{counters:?}");
    bed.no_drops();
}

#[test]
fn without_floods_told_entries_and_arp_are_enough() {
    let Some(mut bed) = bed("ktold", Hook::Tc, "nolearning") else { return };
    let far_mac = mac_of(&bed.node.far, "vx0");
    let station_mac = mac_of(&bed.station, "eth0");
    let quiet = weft_datapath::vxlan::VniSettings {
        flood: Flood::None,
        learn: false,
        arp_miss: OnMiss::Drop,
        unicast_miss: OnMiss::Drop,
        ..settings()
    };
    bed.vtep.add_vni(vni(42), &quiet).unwrap();
    let port = bed
        .vtep
        .ports()
        .unwrap()
        .iter()
        .find(|port| port.role != weft_datapath::vxlan::PortRole::Uplink)
        .unwrap()
        .ifindex;
    bed.vtep.static_entry(vni(42), station_mac, To::Port(port)).unwrap();
    bed.vtep.directory_entry(vni(42), far_mac, To::Remote(PEER)).unwrap();
    bed.vtep.set_arp(vni(42), FAR.into(), far_mac).unwrap();
    let icmp = Icmp::open(&bed.station, WAIT);
    assert!(icmp.ping(FAR.into(), 64, 1, 56).is_some(), "{:?}", counted(bed.vtep.counters().unwrap()));
    assert_eq!(bed.counters()["arp_answered"], 1);
    assert_eq!(bed.counters()["flooded"], 0);
}

fn mac_of(namespace: &Namespace, interface: &str) -> [u8; 6] {
    let output = namespace.command("ip").args(["-o", "link", "show", "dev", interface]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mac = text.split("link/ether ").nth(1).expect("an Ethernet device").split(' ').next().unwrap();
    let bytes: Vec<u8> = mac.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

/// Tagged frames pass where ports keep tags, super frames among them.
#[test]
fn tagged_stations_talk_where_tags_are_kept() {
    let Some(mut bed) = bed("ktag", Hook::Tc, "") else { return };
    for (namespace, device, address) in [(&bed.station, "eth0", "20.0.5.1/24"), (&bed.node.far, "vx0", "20.0.5.2/24")] {
        let added = namespace
            .command("ip")
            .args(["link", "add", "link", device, "name", "v5", "type", "vlan", "id", "5"])
            .output();
        let added = added.expect("ip runs");
        let said = String::from_utf8_lossy(&added.stderr);
        if said.contains("Unknown device type") || said.contains("not supported") {
            return weft_needs::skip("this kernel has no VLAN devices");
        }
        assert!(added.status.success(), "{said}");
        namespace.ip(&format!("addr add {address} dev v5"));
        namespace.ip("link set dev v5 mtu 1400 up");
    }
    let icmp = Icmp::open(&bed.station, Duration::from_millis(300));
    assert!(icmp.ping([20, 0, 5, 2].into(), 64, 1, 56).is_none(), "tags are dropped unless kept");
    assert!(bed.counters()["tagged"] > 0);
    bed.node.attach(&mut bed.vtep, "vm", 42, AccessRule { keep_tags: true });
    let icmp = Icmp::open(&bed.station, WAIT);
    assert!(icmp.ping([20, 0, 5, 2].into(), 64, 2, 56).is_some(), "{:?}", counted(bed.vtep.counters().unwrap()));
    let (bytes, _) = transfer(&bed.station, &bed.node.far, [20, 0, 5, 2].into(), 8 << 20);
    assert_eq!(bytes, 8 << 20);
    let (bytes, _) = transfer(&bed.node.far, &bed.station, [20, 0, 5, 1].into(), 8 << 20);
    assert_eq!(bytes, 8 << 20);
}

/// The packet-rate programs, with TC behind them for what they leave.
#[test]
fn stations_talk_over_xdp() {
    let Some(bed) = bed("kxdp", Hook::Xdp, "noudpcsum") else { return };
    let _polling = (hold(&bed.station, "eth0"), hold(&bed.node.far, "up"));
    bed.ping(0..20, 1472);
    bed.no_drops();
    let counters = bed.counters();
    assert!(counters["encapsulated"] >= 40 && counters["decapsulated"] >= 40, "{counters:?}");
    eprintln!("{:?}", counted(bed.vtep.counters().unwrap()));
}
