//! IP multicast groups in the square: the kernels of hosts join and leave, and frames go where somebody listens.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use weft_node::rbridge::GroupsTable;
use weft_node::rbridge::protocol::{GroupRow, Shown, What};
use weft_wire::ethernet::{HEADER_LEN, MacAddress, ethertype};

use crate::bed::{Running, Square, address, mac, wait_for_routes};
use crate::common::wait_until;
use crate::forwarding::{A_WHILE, TEST_TYPE, frame, received};
use crate::net::tap::Tap;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const OTHER: Ipv4Addr = Ipv4Addr::new(239, 9, 9, 9);
const IGMP: u8 = 2;
const QUERY: u8 = 0x11;
/// Hosts in VLAN 10.
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

fn rows(running: &Running) -> Vec<GroupRow> {
    match running.show(What::Groups) {
        Shown::Groups(rows) => rows,
        other => panic!("{other:?}"),
    }
}

/// RBridges that listen to a group, as one of them sees it.
fn listeners(running: &Running, group: &str) -> Vec<String> {
    rows(running).into_iter().filter(|row| row.group == group).flat_map(|row| row.rbridges).collect()
}

fn join(square: &Square, host: usize) -> UdpSocket {
    square.host(host).within(|| {
        let socket = UdpSocket::bind("0.0.0.0:5000").unwrap();
        socket.join_multicast_v4(&GROUP, &address(host)).unwrap();
        socket
    })
}

struct Bed {
    square: Square,
    all: Vec<Running>,
    taps: Vec<Tap>,
}

impl Bed {
    fn new(test: &str) -> Option<Self> {
        let square = Square::new(test)?;
        let start = |number| {
            let mut config = square.config(number);
            config.groups = Some(GroupsTable { interval_s: 3, response_ms: 300, ..GroupsTable::default() });
            square.start(&config, number)
        };
        let all: Vec<Running> = (1..=4).map(start).collect();
        let taps = (0..3).map(|host| Tap::open(square.host(host), "eth0", false)).collect();
        let bed = Self { square, all, taps };
        wait_for_routes(&bed.all);
        bed.wait_for("all IPv4", &[]);
        Some(bed)
    }

    /// Everybody knows who listens, and goes by it.
    fn wait_for(&self, group: &str, rbridges: &[&str]) {
        wait_until(&format!("{rbridges:?} listen to {group}"), || {
            self.all.iter().all(|running| listeners(running, group) == rbridges)
        });
    }

    /// Sends a frame for a group; which hosts get it, once, as it was.
    fn reached(&mut self, from: usize, group: Ipv4Addr) -> Vec<usize> {
        let sent = frame(MacAddress::of_ipv4_group(group), mac(from), TEST_TYPE, 100);
        self.taps.iter_mut().for_each(|tap| while tap.poll().is_some() {});
        self.taps[from].send(&sent);
        let mut reached = Vec::new();
        for (host, tap) in self.taps.iter_mut().enumerate() {
            let frames = received(tap, 2, A_WHILE);
            assert!(frames.is_empty() || frames == [sent.clone()], "host {host}: {} frames", frames.len());
            reached.extend((!frames.is_empty()).then_some(host));
        }
        reached
    }

    /// The same, once what is shown of LSPs has gone into every data path.
    fn expect(&mut self, from: usize, group: Ipv4Addr, hosts: &[usize], why: &str) {
        wait_until(why, || self.reached(from, group) == hosts);
    }

    fn sent_copies(&self) -> u64 {
        self.all.iter().map(|running| running.count_at_ports("copy_sent")).sum()
    }
}

#[test]
fn frames_for_a_group_go_where_hosts_have_joined_it() {
    let Some(mut bed) = Bed::new("groups") else { return };
    let text = MacAddress::of_ipv4_group(GROUP).to_string();
    bed.expect(A, GROUP, &[], "nobody listens");
    bed.expect(A, Ipv4Addr::new(224, 0, 0, 251), &[B, C], "everybody gets what is for the local network");

    let at_b = join(&bed.square, B);
    bed.wait_for(&text, &["s3"]);
    bed.expect(A, GROUP, &[B], "those who have joined listen");
    bed.expect(A, OTHER, &[], "nobody listens");
    bed.expect(B, GROUP, &[], "who sends need not listen, and gets nothing back");
    let row = rows(&bed.all[2]).into_iter().find(|row| row.group == text).unwrap();
    assert_eq!((&row.vlans[..], row.interfaces), ("10", vec!["b".to_owned()]));

    // One that speaks an older version; its reports go to no other station.
    bed.square.host(C).within(|| std::fs::write("/proc/sys/net/ipv4/conf/eth0/force_igmp_version", "2")).unwrap();
    bed.taps.iter_mut().for_each(|tap| while tap.poll().is_some() {});
    let at_c = join(&bed.square, C);
    bed.wait_for(&text, &["s2", "s3"]);
    assert!(!is_reported(&mut bed.taps[A]) && !is_reported(&mut bed.taps[B]), "reports are for routers");
    bed.expect(A, GROUP, &[B, C], "those who have joined listen");
    // Longer than a membership lasts that nobody asks for.
    std::thread::sleep(Duration::from_millis(7500));
    bed.expect(A, GROUP, &[B, C], "those who have joined listen");
    assert!(bed.all[2].count("groups", "join") > 2, "hosts answer every question");

    drop(at_b);
    bed.wait_for(&text, &["s2"]);
    bed.expect(B, GROUP, &[C], "those who have joined listen");
    let before = bed.sent_copies();
    assert_eq!(bed.reached(B, GROUP), [C]);
    assert_eq!(bed.sent_copies(), before + 3, "one copy on each link of the way S3 - S4 - S1 - S2");
    drop(at_c);
    bed.wait_for(&text, &[]);
    bed.expect(A, GROUP, &[], "nobody listens");
}

#[test]
fn a_multicast_router_gets_all_groups_until_it_falls_silent() {
    let Some(mut bed) = Bed::new("routers") else { return };
    // What a router in place of host a would ask.
    let query = |source: [u8; 4]| {
        let mut packet = vec![0x45, 0xc0, 0, 28, 0, 0, 0, 0, 1, IGMP, 0, 0];
        packet.extend(source);
        packet.extend([224, 0, 0, 1]);
        let sum = weft_wire::checksum::of(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0x11, 3, 0xee, 0xfc, 0, 0, 0, 0]);
        let head = [&MacAddress::of_ipv4_group([224, 0, 0, 1].into()).0[..], &mac(A).0, &[8, 0]].concat();
        [head, packet].concat()
    };
    bed.taps[A].send(&query([0; 4]));
    wait_until("the question is heard", || bed.all[0].count("groups", "query") > 0);
    bed.expect(C, OTHER, &[], "a bridge asks from no address");
    // It asks again and again, or it would be forgotten.
    let asks = |bed: &mut Bed| bed.taps[A].send(&query([10, 0, 10, 1]));
    wait_until("a router gets all", || {
        asks(&mut bed);
        bed.reached(C, OTHER) == [A] && bed.reached(B, GROUP) == [A]
    });
    assert_eq!(listeners(&bed.all[3], "all IPv4"), ["s1"]);
    let _at_b = join(&bed.square, B);
    wait_until("a router hears reports", || {
        asks(&mut bed);
        std::thread::sleep(A_WHILE);
        is_reported(&mut bed.taps[A])
    });
    bed.wait_for("all IPv4", &[]);
    bed.expect(C, OTHER, &[], "it has not asked again");
    let odd = bed.all[0].count("daemon", "odd_listener");
    bed.taps[A].send(&[&query([10, 0, 10, 1])[..34], &[0x11, 3, 0, 0, 0, 0, 0, 0]].concat());
    wait_until("a wrong checksum is counted", || bed.all[0].count("daemon", "odd_listener") == odd + 1);
}

/// Whether a report has come by.
fn is_reported(tap: &mut Tap) -> bool {
    let mut heard = false;
    while let Some(frame) = tap.poll() {
        let is_igmp = frame[12..14] == ethertype::IPV4.to_be_bytes() && frame[HEADER_LEN + 9] == IGMP;
        let kind = || frame[HEADER_LEN + usize::from(frame[HEADER_LEN] & 15) * 4];
        heard |= is_igmp && kind() != QUERY;
    }
    heard
}
