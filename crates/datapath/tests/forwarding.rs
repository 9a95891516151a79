//! The Intermediate's hop: the kernel's route and path without the stack, and the stack for all that is not plain transit.

mod common;

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use common::netns::{Namespace, link, mac_text};
use common::tap::Tap;
use common::*;
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, Tier};

/// Addresses of the neighbours: where frames come in, and the two equal ways to the ToR.
const IN_MAC: [u8; 6] = [0x02, 0, 0, 0, 1, 1];
const WAY_MACS: [[u8; 6]; 2] = [[0x02, 0, 0, 0, 2, 1], [0x02, 0, 0, 0, 2, 2]];
/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);
/// More than a tick of the slowest kernel's clock: by then another route is taken.
const TICK: Duration = Duration::from_millis(25);

/// An Intermediate with one port inwards and two ways to `PEER_TOR`; the far ends are tapped, not hosts.
struct Bed {
    intermediate: Namespace,
    /// Holds the far ends.
    _outside: Namespace,
    entry: Tap,
    ways: [Tap; 2],
    /// MACs of the Intermediate's own ports.
    in_port: [u8; 6],
    way_ports: [[u8; 6]; 2],
}

impl Bed {
    fn new(test: &str) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let (intermediate, outside) = (Namespace::new(test, "i"), Namespace::new(test, "o"));
        for name in ["all", "default"] {
            intermediate.sysctl(&format!("net.ipv4.conf.{name}.rp_filter"), "0");
        }
        intermediate.sysctl("net.ipv4.ip_forward", "1");
        let far_ends =
            [("in", "10.128.0", IN_MAC), ("way0", "10.128.1", WAY_MACS[0]), ("way1", "10.128.2", WAY_MACS[1])];
        for (name, net, mac) in far_ends {
            link((&intermediate, name), (&outside, name), 1600);
            outside.sysctl(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1");
            intermediate.sysctl(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1");
            intermediate.ip(&format!("addr add {net}.1/24 dev {name}"));
            intermediate.ip(&format!("neigh replace {net}.2 lladdr {} dev {name}", mac_text(mac)));
        }
        intermediate
            .ip(&format!("route add {PEER_TOR}/32 nexthop via 10.128.1.2 dev way0 nexthop via 10.128.2.2 dev way1"));
        // Where errors about packets with hash sources go.
        intermediate.ip("route add 100.64.0.0/10 via 10.128.0.2 dev in");
        let tap = |name| Tap::open(&outside, name, WAIT);
        Some(Self {
            entry: tap("in"),
            ways: [tap("way0"), tap("way1")],
            in_port: intermediate.mac("in"),
            way_ports: ["way0", "way1"].map(|way| intermediate.mac(way)),
            intermediate,
            _outside: outside,
        })
    }

    fn attach(&self) -> Option<SwitchDatapath> {
        let ports = ["in", "way0", "way1"].map(str::to_owned).to_vec();
        let config = SwitchConfig { ports, ..switch_config(Tier::Intermediate, &[ANYCAST]) };
        available(self.intermediate.enter(|| SwitchDatapath::attach(&config)))
    }

    /// Sends to the Intermediate's port.
    fn send(&self, packet: &[u8]) {
        self.entry.send(&ethernet(self.in_port, IN_MAC, 0x0800, packet));
    }

    /// The next IPv4 frame on either way, and on which.
    fn leaving(&self) -> Option<(usize, Vec<u8>)> {
        let end = Instant::now() + WAIT;
        while Instant::now() < end {
            for (way, tap) in self.ways.iter().enumerate() {
                if let Some(frame) = tap.poll() {
                    return Some((way, frame));
                }
            }
            std::thread::yield_now();
        }
        None
    }

    fn leaves_by(&self, packet: &[u8]) -> usize {
        self.send(packet);
        self.leaving().expect("it is forwarded").0
    }
}

/// A packet as it comes to the Intermediate, and the one for the ToR inside it.
type Both = (Vec<u8>, Vec<u8>);

/// With this hash source, and a change to the header for the ToR.
fn both(source: Ipv4Addr, change: impl FnOnce(&mut Ipv4)) -> Both {
    let mut to_tor = Ipv4 {
        tos: 0,
        id: 0,
        protocol: 4,
        source,
        destination: PEER_TOR,
        payload: Ipv4::default().bytes(),
        ..Ipv4::default()
    };
    change(&mut to_tor);
    let packet = to_tor.bytes();
    let outer = wrapped(&packet, source, ANYCAST, to_tor.tos);
    (outer, packet)
}

fn hash_sources() -> impl Iterator<Item = Ipv4Addr> {
    (0..64u32).map(|n| Ipv4Addr::from(0x6440_0000 | n.wrapping_mul(0x9e37_79b1) >> 10))
}

/// The kernel keeps a tag beside the frame, which then looks like one without.
#[test]
fn a_packet_of_another_vlan_is_not_forwarded() {
    let Some(bed) = Bed::new("vlan") else { return };
    let Some(switch) = bed.attach() else { return };
    let (outer, _) = both(Ipv4Addr::new(100, 64, 3, 7), |_| {});
    let in_vlan = ethernet(bed.in_port, IN_MAC, 0x8100, &[&[0, 5, 8, 0][..], &outer[..]].concat());
    bed.entry.send(&in_vlan);
    let (outer, expected) = both(Ipv4Addr::new(100, 64, 3, 8), |packet| packet.ttl = 9);
    bed.send(&outer);
    let (_, frame) = bed.leaving().expect("the one behind it is forwarded");
    assert_eq!(frame[26..30], expected[12..16], "the tagged one did not come before it");
    assert_eq!(counted(switch.counters().unwrap()), [("forwarded", 1), ("tagged", 1)]);
}

#[test]
fn a_forwarded_packet_has_one_hop_less_and_is_otherwise_as_sent() {
    let Some(bed) = Bed::new("hop") else { return };
    let Some(switch) = bed.attach() else { return };
    // Every TTL, so that the checksum's carry is met as well.
    for ttl in 2..=255 {
        let (outer, _) = both(Ipv4Addr::new(100, 64, 3, 7), |packet| packet.ttl = ttl);
        let (_, expected) = both(Ipv4Addr::new(100, 64, 3, 7), |packet| packet.ttl = ttl - 1);
        bed.send(&outer);
        let (way, frame) = bed.leaving().unwrap_or_else(|| panic!("TTL {ttl} is forwarded"));
        assert_frame(&frame, &ethernet(WAY_MACS[way], bed.way_ports[way], 0x0800, &expected));
    }
    assert_eq!(counted(switch.counters().unwrap()), [("forwarded", 254)]);
}

#[test]
fn flows_spread_over_equal_ways_as_the_kernel_itself_spreads_them() {
    let Some(bed) = Bed::new("ecmp") else { return };
    let ways = |which: fn(Both) -> Vec<u8>| -> Vec<usize> {
        hash_sources().map(|source| bed.leaves_by(&which(both(source, |_| {})))).collect()
    };
    // By addresses alone, and by addresses and protocol.
    let policies = ["0", "1"];
    let set_policy = |policy| {
        bed.intermediate.sysctl("net.ipv4.fib_multipath_hash_policy", policy);
        std::thread::sleep(TICK);
    };
    // The stack first: the packets that an Intermediate hands on, sent by the kernel's own forwarding.
    let by_stack = policies.map(|policy| {
        set_policy(policy);
        ways(|(_, to_tor)| to_tor)
    });
    let Some(switch) = bed.attach() else { return };
    let by_program = policies.map(|policy| {
        set_policy(policy);
        ways(|(to_intermediate, _)| to_intermediate)
    });
    assert_eq!(by_program, by_stack);
    assert_ne!(by_program[0], by_program[1], "the policy matters");
    let first = by_program[0].iter().filter(|way| **way == 0).count();
    assert!((16..=48).contains(&first), "{first} of 64 flows go the first way");
    assert_eq!(counted(switch.counters().unwrap()), [("forwarded", 128)]);
}

#[test]
fn another_route_is_taken_with_the_next_tick_and_a_longer_packet_is_asked_for_again() {
    let Some(bed) = Bed::new("burst") else { return };
    let Some(switch) = bed.attach() else { return };
    bed.intermediate.ip("route add 10.1.0.4/32 via 10.128.1.2 dev way0 mtu lock 1000");
    let sized = |payload: usize| {
        both(Ipv4Addr::new(100, 64, 3, 7), move |packet| {
            packet.destination = Ipv4Addr::new(10, 1, 0, 4);
            packet.payload = Ipv4 { payload: vec![0; payload], ..Ipv4::default() }.bytes();
        })
        .0
    };
    // As many times as make it sure that some of them come within one tick.
    for _ in 0..20 {
        assert_eq!([bed.leaves_by(&sized(100)), bed.leaves_by(&sized(900)), bed.leaves_by(&sized(10))], [0, 0, 0]);
    }
    bed.send(&sized(100));
    assert_eq!(answered(&bed, &sized(1000)), Some((3, 4)), "fragmentation needed");
    assert_eq!(bed.leaving().map(|(way, _)| way), Some(0));
    bed.intermediate.ip("route replace 10.1.0.4/32 via 10.128.2.2 dev way1");
    std::thread::sleep(TICK);
    assert_eq!(bed.leaves_by(&sized(1000)), 1);
    assert_eq!(counted(switch.counters().unwrap()), [("decapsulated", 1), ("forwarded", 62)]);
}

/// Type and code of the ICMP message that comes back to the sender.
fn answered(bed: &Bed, packet: &[u8]) -> Option<(u8, u8)> {
    bed.send(packet);
    let frame = bed.entry.next()?;
    assert_eq!(frame[14 + 9], 1, "ICMP:\n{}", dump(&frame));
    Some((frame[34], frame[35]))
}

#[test]
fn the_stack_answers_where_forwarding_ends() {
    let Some(bed) = Bed::new("icmp") else { return };
    let Some(switch) = bed.attach() else { return };
    bed.intermediate.ip("route add 10.1.0.4/32 via 10.128.1.2 dev way0 mtu lock 1000");
    bed.intermediate.ip("route add unreachable 10.1.0.5/32");
    // The kernel limits errors by the address they go to.
    let source = |last| Ipv4Addr::new(100, 64, 3, last);
    let to = |last| move |packet: &mut Ipv4| packet.destination = Ipv4Addr::new(10, 1, 0, last);

    assert_eq!(answered(&bed, &both(source(1), |packet| packet.ttl = 1).0), Some((11, 0)), "time exceeded");
    assert_eq!(answered(&bed, &both(source(2), to(9)).0), Some((3, 0)), "no route");
    assert_eq!(answered(&bed, &both(source(3), to(5)).0), Some((3, 1)), "unreachable");
    let large = |packet: &mut Ipv4| {
        to(4)(packet);
        packet.payload = Ipv4 { payload: vec![0; 1000], ..Ipv4::default() }.bytes();
    };
    assert_eq!(answered(&bed, &both(source(4), large).0), Some((3, 4)), "fragmentation needed");
    assert_eq!(counted(switch.counters().unwrap()), [("decapsulated", 4)]);
}

#[test]
fn what_a_router_must_not_forward_ends_in_the_stack() {
    let Some(bed) = Bed::new("stop") else { return };
    let Some(switch) = bed.attach() else { return };
    let source = Ipv4Addr::new(100, 64, 3, 7);
    bed.intermediate.ip("route add default via 10.128.1.2 dev way0");
    bed.intermediate.ip("route add blackhole 10.1.0.3/32");
    let addressed = |destination| both(source, move |packet| packet.destination = destination).0;

    let mut bad_checksum = both(source, |_| {}).0;
    bad_checksum[20 + 10] ^= 1;
    bed.send(&bad_checksum);
    bed.send(&addressed(Ipv4Addr::new(10, 1, 0, 3)));
    bed.send(&addressed(Ipv4Addr::new(224, 0, 0, 5)));
    bed.send(&addressed(Ipv4Addr::BROADCAST));
    bed.entry.send(&ethernet(OTHER_MAC, IN_MAC, 0x0800, &both(source, |_| {}).0));
    // With options the stack forwards it, one hop less.
    let with_options = |ttl| both(source, move |packet| (packet.options, packet.ttl) = (vec![1; 4], ttl));
    bed.send(&with_options(64).0);

    let (way, frame) = bed.leaving().expect("the one with options");
    assert_frame(&frame, &ethernet(WAY_MACS[way], bed.way_ports[way], 0x0800, &with_options(63).1));
    assert_eq!(bed.ways.iter().find_map(Tap::poll), None, "nothing else");
    assert_eq!(counted(switch.counters().unwrap()), [("decapsulated", 6)]);
}
