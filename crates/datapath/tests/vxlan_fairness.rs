//! What one tenant does leaves the others theirs: room in the table, messages to user space, and segments that a VTEP has
//! nothing to say in.

mod common;

use std::net::Ipv4Addr;

use common::vxlan::{LOCAL, Node, Outer, PEER, arriving, settings, vni};
use common::*;
use weft_datapath::frame::{FrameInput, Verdict};
use weft_datapath::vxlan::{
    AccessRule, Attachment, Capacities, Flood, OnMiss, Origin, RateLimit, Senders, To, Trunk, Upcall, VniSettings,
    Vtep, VtepOptions, VtepProgram, now_ns,
};
use weft_wire::vlan::VlanId;

/// More than the table holds.
const MANY: u32 = 20_000;
/// More than there are slots that keep the same from being told twice.
const MISSES: u32 = 4_000;

/// A VTEP with ports 0 and 1 in segment 42, port 2 in segment 43.
struct Bench {
    vtep: Vtep,
    ports: [u32; 3],
    bed: Node,
}

fn bench(test: &str) -> Option<Bench> {
    bench_with(test, Capacities::default())
}

fn bench_with(test: &str, capacities: Capacities) -> Option<Bench> {
    if !weft_needs::root() {
        return None;
    }
    let bed = Node::new(test);
    bed.silence();
    let options = VtepOptions { attachment: Attachment::Filter, capacities, ..VtepOptions::new(LOCAL) };
    let mut vtep = bed.vtep(&options)?;
    for number in [42, 43] {
        vtep.add_vni(vni(number), &settings()).unwrap();
    }
    let ports = [("p0", 42), ("p1", 42), ("p2", 43)].map(|(port, number)| {
        bed.node.ip(&format!("link add {port} type bridge mcast_snooping 0"));
        bed.node.ip(&format!("link set {port} up"));
        bed.attach(&mut vtep, port, number, AccessRule::default())
    });
    Some(Bench { vtep, ports, bed })
}

/// Its number is in its last bytes.
fn station(kind: u8, n: u32) -> [u8; 6] {
    let [_, a, b, c] = n.to_be_bytes();
    [2, kind, 0, a, b, c]
}

impl Bench {
    /// All these frames, each at its port.
    fn at_ports(&self, frames: impl Iterator<Item = (u32, Vec<u8>)>) {
        self.bed.node.enter_with(|| {
            for (ifindex, bytes) in frames {
                let input = FrameInput { bytes: &bytes, ifindex, ..FrameInput::default() };
                self.vtep.run(VtepProgram::Access, &input).expect("the program runs");
            }
        });
    }

    fn at_uplink(&self, frames: impl Iterator<Item = Vec<u8>>) -> Vec<Verdict> {
        let run = |bytes: Vec<u8>| {
            let input = FrameInput { bytes: &bytes, ..FrameInput::default() };
            self.vtep.run(VtepProgram::Uplink, &input).expect("the program runs").verdict
        };
        self.bed.node.enter_with(|| frames.map(run).collect())
    }

    /// Stations that speak for the first time, to nobody in particular.
    fn speak(&self, port: usize, stations: impl Iterator<Item = [u8; 6]>) {
        let quiet = |source| (self.ports[port], ethernet(source, source, 0x88b5, &[0; 46]));
        self.at_ports(stations.map(quiet));
    }

    /// Stations behind a peer that speak to nobody in particular.
    fn speak_from(&self, peer: Ipv4Addr, number: u32, stations: impl Iterator<Item = [u8; 6]>) {
        let quiet =
            |mac| Outer { source: peer, vni: number, ..arriving() }.frame(&ethernet(mac, mac, 0x88b5, &[0; 46]));
        self.at_uplink(stations.map(quiet));
    }

    /// Learned in a segment.
    fn learned(&self, number: u32) -> usize {
        self.vtep.entries(Some(vni(number))).unwrap().iter().filter(|entry| entry.origin == Origin::Learned).count()
    }

    fn event(&self, name: &str) -> u64 {
        self.vtep.events().unwrap().iter().find(|(of, _)| *of == name).expect("an event of ours").1
    }

    fn knows(&self, number: u32, mac: [u8; 6]) -> bool {
        self.vtep.entry(vni(number), mac).unwrap().is_some()
    }

    fn told(&self) -> Vec<Upcall> {
        let calls = self.vtep.upcalls().unwrap();
        std::iter::repeat_with(|| calls.take().unwrap()).take_while(|some| !some.is_empty()).flatten().collect()
    }

    /// Makes a segment ask user space for what is not known.
    fn ask(&mut self, number: u32, broadcast_limit: Option<RateLimit>) {
        let asking = VniSettings { arp_miss: OnMiss::Upcall, broadcast_limit, ..settings() };
        self.vtep.add_vni(vni(number), &asking).unwrap();
    }

    /// ARP requests for addresses that nobody knows; how many of them user space is told of.
    fn told_requests(&self, port: usize, number: u32, targets: std::ops::Range<u32>) -> usize {
        let address = |n: u32| Ipv4Addr::from(0x1400_0000 | n);
        let request = |n| {
            let arp = arp(1, (SERVER_MAC, [20, 255, 0, 1].into()), ([0; 6], address(n)));
            (self.ports[port], ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &arp))
        };
        self.at_ports(targets.map(request));
        let mine = |call: &&Upcall| matches!(call, Upcall::ArpMiss { vni: of, .. } if *of == vni(number));
        self.told().iter().filter(mine).count()
    }
}

#[test]
fn a_segment_full_of_addresses_leaves_the_others_room() {
    let Some(mut bench) = bench("room") else { return };
    bench.speak(0, (0..MANY).map(|n| station(1, n)));
    bench.speak(1, (0..MANY).map(|n| station(2, n)));
    bench.speak(2, [station(3, 0)].into_iter());
    assert!(bench.knows(43, station(3, 0)), "the other segment's station was learned");
    assert!(bench.knows(42, station(1, 0)), "who came first is not pushed out");
    for n in 0..4096 {
        bench.vtep.directory_entry(vni(43), station(4, n), To::Remote(PEER)).expect("there is room for what is told");
    }
}

#[test]
fn a_port_full_of_addresses_leaves_its_segment_room_until_they_are_over() {
    let Some(mut bench) = bench("port") else { return };
    bench.speak(0, (0..MANY).map(|n| station(1, n)));
    bench.speak(1, [station(2, 0)].into_iter());
    assert!(bench.knows(42, station(2, 0)), "the other port's station was learned");
    let behind_port = bench.vtep.entries(Some(vni(42))).unwrap().len();
    assert!(behind_port > 2);
    // They go one by one or by age, and so many others find room.
    assert!(bench.vtep.remove_entry(vni(42), station(1, 0)).unwrap());
    bench.speak(0, (0..2).map(|n| station(5, n)));
    assert_eq!([bench.knows(42, station(5, 0)), bench.knows(42, station(5, 1))], [true, false]);
    bench.vtep.age_out(now_ns() + 400_000_000_000).unwrap();
    bench.speak(0, (0..MANY).map(|n| station(6, n)));
    bench.speak(1, [station(2, 1)].into_iter());
    assert!(bench.knows(42, station(2, 1)));
    assert_eq!(bench.vtep.entries(Some(vni(42))).unwrap().len(), behind_port);
}

#[test]
fn a_segment_has_fewer_addresses_than_its_ports_could() {
    let capacities = Capacities { vni_macs: 3000, ..Capacities::default() };
    let Some(bench) = bench_with("vniroom", capacities) else { return };
    bench.speak(0, (0..2500).map(|n| station(1, n)));
    assert_eq!((bench.learned(42), bench.event("port_full")), (2048, 2500 - 2048));
    bench.speak(1, (0..2000).map(|n| station(2, n)));
    assert_eq!((bench.learned(42), bench.event("vni_full")), (3000, 2000 - 952));
    bench.speak(2, (0..2000).map(|n| station(3, n)));
    assert_eq!((bench.learned(43), bench.event("table_full")), (2000, 0), "the other segment has all of its room");
}

#[test]
fn what_is_told_has_room_when_all_that_is_learned_has_none() {
    const TOLD: u32 = 1000;
    let capacities = Capacities { macs: 3000, vni_macs: 2000, told_macs: TOLD, ..Capacities::default() };
    let Some(mut bench) = bench_with("toldroom", capacities) else { return };
    bench.speak(0, (0..2000).map(|n| station(1, n)));
    bench.speak(2, (0..2000).map(|n| station(2, n)));
    bench.speak_from(PEER, 43, (0..2000).map(|n| station(3, n)));
    assert_eq!([bench.learned(42), bench.learned(43)], [2000, 1000]);
    assert_eq!(bench.event("table_full"), 3000);
    for n in 0..TOLD / 2 {
        bench
            .vtep
            .directory_entry(vni(42), station(4, n), To::Remote(PEER))
            .expect("there is room for the directory's");
        bench.vtep.static_entry(vni(43), station(5, n), To::Remote(PEER)).expect("and for the operator's");
    }
    assert_eq!([bench.learned(42), bench.learned(43)], [2000, 1000], "nothing was pushed out for them");
}

#[test]
fn addresses_behind_a_peer_stay_within_their_segments_room() {
    let Some(bench) = bench("peerroom") else { return };
    bench.speak_from(PEER, 42, (0..MANY).map(|n| station(1, n)));
    assert_eq!((bench.learned(42), bench.event("vni_full")), (4096, u64::from(MANY) - 4096));
    bench.speak_from(PEER, 43, [station(2, 0)].into_iter());
    bench.speak(2, [station(3, 0)].into_iter());
    assert_eq!(bench.learned(43), 2);
}

#[test]
fn a_trunk_has_room_of_its_own() {
    let capacities = Capacities { trunk_macs: 3000, ..Capacities::default() };
    let Some(mut bench) = bench_with("trunkroom", capacities) else { return };
    bench.bed.node.enter_with(|| bench.vtep.detach(bench.ports[0])).unwrap();
    let vlans = [(VlanId::new(10).unwrap(), vni(43))].into();
    let trunk = Trunk { untagged: Some(vni(42)), vlans };
    bench.bed.node.enter_with(|| bench.vtep.attach_trunk(bench.ports[0], &trunk)).unwrap();
    bench.speak(0, (0..MANY).map(|n| station(1, n)));
    assert_eq!(
        (bench.learned(42), bench.event("port_full")),
        (3000, u64::from(MANY) - 3000),
        "more than a port, no more"
    );
    bench.speak(1, (0..1000).map(|n| station(2, n)));
    assert_eq!((bench.learned(42), bench.event("vni_full")), (4000, 0), "the port beside it has room");
}

#[test]
fn a_segment_that_asks_for_everything_leaves_the_others_their_questions() {
    let Some(mut bench) = bench("asks") else { return };
    bench.ask(42, None);
    bench.ask(43, None);
    bench.told_requests(0, 42, 0..MISSES);
    assert_eq!(bench.told_requests(2, 43, 0..40), 40);
    // Nor do VTEPs that nobody knows take their place.
    let stranger = |n: u32| Outer { source: (0x0a09_0000 | n).into(), vni: 43, ..arriving() };
    let inner = ethernet(BROADCAST_MAC, station(7, 0), 0x88b5, &[0; 46]);
    bench.at_uplink((0..MISSES).map(|n| stranger(n).frame(&inner)));
    assert_eq!(bench.told_requests(2, 43, 100..140), 40);
}

#[test]
fn a_station_that_is_everywhere_leaves_room_for_messages() {
    let Some(mut bench) = bench("moves") else { return };
    bench.ask(43, None);
    let moving = |n: u32| (bench.ports[n as usize % 2], ethernet(station(1, 0), station(1, 0), 0x88b5, &[0; 46]));
    bench.at_ports((0..MISSES).map(moving));
    assert_eq!(bench.told_requests(2, 43, 0..40), 40);
}

#[test]
fn what_a_flood_limit_drops_asks_nobody() {
    let Some(mut bench) = bench("limit") else { return };
    bench.ask(43, Some(RateLimit { frames_per_sec: 1, burst_frames: 2 }));
    let told = bench.told_requests(2, 43, 0..40);
    assert!((2..40).contains(&told), "{told} of 40");
}

#[test]
fn a_peer_is_heard_in_its_own_segments_only() {
    let Some(mut bench) = bench("member") else { return };
    let other = Ipv4Addr::new(10, 0, 0, 3);
    bench.vtep.add_vni(vni(43), &VniSettings { flood: Flood::HeadEnd(vec![other]), ..settings() }).unwrap();
    bench.vtep.static_entry(vni(43), SERVER_MAC, To::Port(bench.ports[2])).unwrap();
    bench.vtep.static_entry(vni(42), SERVER_MAC, To::Port(bench.ports[0])).unwrap();
    let inner = ethernet(SERVER_MAC, station(8, 0), 0x0800, &Ipv4::default().bytes());
    let from = |source, number| Outer { source, vni: number, ..arriving() }.frame(&inner);
    let heard = |bench: &Bench| {
        bench.at_uplink(
            [(PEER, 42), (PEER, 43), (other, 43), (other, 42)].map(|(source, number)| from(source, number)).into_iter(),
        )
    };
    let (yes, no) = (Verdict::Redirect, Verdict::Drop);
    assert_eq!(heard(&bench), [yes, no, yes, no]);
    assert_eq!(bench.vtep.entry(vni(43), station(8, 0)).unwrap().unwrap().to, To::Remote(other), "nothing is learned");
    // Being told that a station is behind it makes it one, for as long as that is so; so does the operator's word.
    bench.vtep.directory_entry(vni(43), station(9, 0), To::Remote(PEER)).unwrap();
    assert_eq!(heard(&bench), [yes, yes, yes, no]);
    bench.vtep.remove_entry(vni(43), station(9, 0)).unwrap();
    assert_eq!(heard(&bench), [yes, no, yes, no]);
    bench.vtep.add_peer(PEER).unwrap();
    assert_eq!(heard(&bench), [yes, yes, yes, no]);
}

#[test]
fn who_is_named_is_heard_wherever_floods_go() {
    let Some(mut bench) = bench("named") else { return };
    let named = VniSettings { senders: Senders::Named, ..settings() };
    bench.vtep.add_vni(vni(43), &named).unwrap();
    bench.vtep.static_entry(vni(43), SERVER_MAC, To::Port(bench.ports[2])).unwrap();
    bench.vtep.add_peer(PEER).unwrap();
    let inner = ethernet(SERVER_MAC, station(8, 0), 0x0800, &Ipv4::default().bytes());
    let heard = |bench: &Bench| bench.at_uplink([Outer { vni: 43, ..arriving() }.frame(&inner)].into_iter())[0];
    assert_eq!(heard(&bench), Verdict::Drop, "its floods go there, no more");
    assert!(!bench.knows(43, station(8, 0)));
    bench.vtep.set_members(vni(43), &[PEER].into()).unwrap();
    assert_eq!(heard(&bench), Verdict::Redirect);
    // An entry that comes and goes takes nothing away, and once it is named no longer, what was seen does not count.
    bench.vtep.static_entry(vni(43), station(9, 0), To::Remote(PEER)).unwrap();
    bench.vtep.remove_entry(vni(43), station(9, 0)).unwrap();
    assert_eq!(heard(&bench), Verdict::Redirect);
    bench.vtep.set_members(vni(43), &[].into()).unwrap();
    assert_eq!(heard(&bench), Verdict::Drop);
    bench.vtep.add_vni(vni(43), &settings()).unwrap();
    assert_eq!(heard(&bench), Verdict::Redirect);
}
