//! What a ToR takes from its servers: packets in the name of their own addresses, in whatever headers, also of who sends past
//! the agent that would see to it.

mod common;

use std::net::Ipv4Addr;
use std::time::Duration;

use common::bed::Bed;
use common::netns::{Namespace, link, mac_text};
use common::tap::Tap;
use common::*;
use weft_datapath::frame::{FrameInput, Verdict};
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, Tier};
use weft_datapath::vxlan::interface_index;

/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);
/// More than a tick of the slowest kernel's clock: by then another route is taken.
const TICK: Duration = Duration::from_millis(25);

const UP_MAC: [u8; 6] = [0x02, 0, 0, 0, 3, 1];
/// Two servers of the rack, each at a port of its own: MAC, AA, LA.
const SERVERS: [([u8; 6], Ipv4Addr, Ipv4Addr); 2] = [
    ([0x02, 0, 0, 0, 2, 1], MY_AA, Ipv4Addr::new(10, 64, 0, 2)),
    ([0x02, 0, 0, 0, 2, 2], Ipv4Addr::new(20, 0, 0, 5), Ipv4Addr::new(10, 64, 0, 5)),
];
const NEIGHBOUR: Ipv4Addr = SERVERS[1].1;
const NEIGHBOURS_LA: Ipv4Addr = SERVERS[1].2;
/// Elsewhere: a host of another rack, and the world, to which the ToR has a route.
const FAR_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 1, 2);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const HASH: Ipv4Addr = Ipv4Addr::new(100, 64, 3, 7);
const IPIP: u8 = 4;

/// A ToR with a port for each server and one to the fabric; the far ends are tapped, not hosts.
struct Rack {
    tor: Namespace,
    _outside: Namespace,
    up: Tap,
    servers: [Tap; 2],
}

impl Rack {
    fn new(test: &str) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let (tor, outside) = (Namespace::new(test, "t"), Namespace::new(test, "o"));
        for (key, value) in [("ip_forward", "1"), ("conf.all.rp_filter", "0"), ("conf.default.rp_filter", "0")] {
            tor.sysctl(&format!("net.ipv4.{key}"), value);
        }
        tor.sysctl("net.ipv4.conf.all.send_redirects", "0");
        tor.sysctl("net.ipv4.conf.default.send_redirects", "0");
        for port in ["up", "host0", "host1"] {
            link((&tor, port), (&outside, port), 1600);
            for namespace in [&tor, &outside] {
                namespace.sysctl(&format!("net.ipv6.conf.{port}.disable_ipv6"), "1");
            }
        }
        tor.ip("addr add 10.128.0.1/31 dev up");
        tor.ip(&format!("neigh replace 10.128.0.0 lladdr {} dev up", mac_text(UP_MAC)));
        tor.ip("route add default via 10.128.0.0");
        tor.ip(&format!("addr add {MY_TOR}/32 dev lo"));
        for (k, (mac, aa, la)) in SERVERS.into_iter().enumerate() {
            tor.ip(&format!("link set host{k} address {}", mac_text(GATEWAY_MAC)));
            tor.ip(&format!("addr add 10.64.0.1/32 dev host{k}"));
            for address in [aa, la] {
                tor.ip(&format!("route add {address}/32 dev host{k}"));
                tor.ip(&format!("neigh replace {address} lladdr {} dev host{k}", mac_text(mac)));
            }
        }
        let tap = |name| Tap::open(&outside, name, WAIT);
        Some(Self { up: tap("up"), servers: [tap("host0"), tap("host1")], tor, _outside: outside })
    }

    fn attach(&self) -> Option<SwitchDatapath> {
        let config = SwitchConfig {
            ports: vec!["up".to_owned()],
            host_ports: vec!["host0".to_owned(), "host1".to_owned()],
            ..switch_config(Tier::Tor, &[MY_TOR])
        };
        available(self.tor.enter(|| SwitchDatapath::attach(&config)))
    }

    /// A server sends, past any agent.
    fn send(&self, server: usize, packet: &[u8]) {
        self.servers[server].send(&ethernet(GATEWAY_MAC, SERVERS[server].0, 0x0800, packet));
    }

    /// What the first server sends arrives in the fabric with one hop less and otherwise as it was.
    #[track_caller]
    fn goes_up(&self, packet: &[u8]) {
        self.send(0, packet);
        let frame = self.up.next().expect("it is forwarded");
        assert_frame(&frame, &ethernet(UP_MAC, self.tor.mac("up"), 0x0800, &one_hop_less(packet)));
    }

    #[track_caller]
    fn goes_to_neighbour(&self, packet: &[u8], expected: &[u8]) {
        self.send(0, packet);
        let frame = self.servers[1].next().expect("it is delivered");
        assert_frame(&frame, &ethernet(SERVERS[1].0, GATEWAY_MAC, 0x0800, expected));
    }

    /// After this nothing is under way that was sent before.
    #[track_caller]
    fn nothing_came(&self) {
        self.goes_up(&unicast(&plain(MY_AA, PEER_AA)));
        let rest: Vec<_> = [&self.up, &self.servers[0], &self.servers[1]].into_iter().filter_map(Tap::poll).collect();
        assert!(rest.is_empty(), "{}", rest.iter().map(|frame| dump(frame)).collect::<String>());
    }
}

fn one_hop_less(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[8] -= 1;
    write_checksum(&mut packet);
    packet
}

fn plain(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    Ipv4 { source, destination, ..Ipv4::default() }.bytes()
}

/// As an agent sends it by way of an Intermediate.
fn unicast(packet: &[u8]) -> Vec<u8> {
    wrapped(&wrapped(packet, HASH, PEER_TOR, 0), HASH, ANYCAST, 0)
}

/// As an agent sends it within the rack.
fn rack_direct(packet: &[u8]) -> Vec<u8> {
    wrapped(packet, HASH, MY_TOR, 0)
}

/// A tunnel that applications have between two AAs.
fn tunnel(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let inside = plain(Ipv4Addr::new(192, 168, 0, 1), Ipv4Addr::new(192, 168, 0, 2));
    Ipv4 { source, destination, protocol: IPIP, payload: inside, ..Ipv4::default() }.bytes()
}

/// A copy of a broadcast for a member of the service.
fn copy(la: Ipv4Addr, aa: Ipv4Addr) -> Vec<u8> {
    wrapped(&plain(aa, Ipv4Addr::BROADCAST), la, FAR_LA, 0)
}

#[test]
fn what_agents_send_passes_in_both_directions() {
    let Some(rack) = Rack::new("own") else { return };
    let Some(tor) = rack.attach() else { return };
    let (_, aa, la) = SERVERS[0];
    for source in [aa, la] {
        rack.goes_up(&unicast(&plain(source, PEER_AA)));
        rack.goes_to_neighbour(&rack_direct(&plain(source, NEIGHBOUR)), &plain(source, NEIGHBOUR));
        // What needs no agent: LAs, the outside. Among AAs of one rack the stack is a router.
        rack.goes_up(&plain(source, FAR_LA));
        rack.goes_up(&plain(source, OUTSIDE));
        rack.goes_to_neighbour(&plain(source, NEIGHBOUR), &one_hop_less(&plain(source, NEIGHBOUR)));
    }
    rack.goes_up(&copy(la, aa));
    rack.goes_up(&unicast(&tunnel(aa, PEER_AA)));
    rack.goes_to_neighbour(&rack_direct(&tunnel(aa, NEIGHBOUR)), &tunnel(aa, NEIGHBOUR));
    // Downwards: whoever sends it.
    for source in [PEER_AA, FAR_LA, OUTSIDE] {
        let packet = plain(source, NEIGHBOUR);
        rack.up.send(&ethernet(rack.tor.mac("up"), UP_MAC, 0x0800, &wrapped(&packet, HASH, MY_TOR, 0)));
        let frame = rack.servers[1].next().expect("it is delivered");
        assert_frame(&frame, &ethernet(SERVERS[1].0, GATEWAY_MAC, 0x0800, &packet));
    }
    rack.nothing_came();
    assert_eq!(counted(tor.counters().unwrap()), [("passed", 6), ("forwarded", 5), ("delivered", 6)]);
}

#[test]
fn what_is_in_anothers_name_is_dropped_in_whatever_headers() {
    let Some(rack) = Rack::new("other") else { return };
    let Some(tor) = rack.attach() else { return };
    let (_, aa, la) = SERVERS[0];
    let mut forged = 0;
    let mut send = |packet: &[u8]| {
        rack.send(0, packet);
        forged += 1;
    };
    let gateway = Ipv4Addr::new(10, 64, 0, 1);
    let nobody = Ipv4Addr::UNSPECIFIED;
    for other in
        [NEIGHBOUR, NEIGHBOURS_LA, PEER_AA, FAR_LA, OUTSIDE, gateway, MY_TOR, HASH, Ipv4Addr::LOCALHOST, nobody]
    {
        for packet in [plain(other, PEER_AA), tunnel(other, PEER_AA)] {
            send(&unicast(&packet));
            send(&wrapped(&packet, HASH, PEER_TOR, 0));
            send(&wrapped(&packet, HASH, ANYCAST, 0));
            send(&wrapped(&packet, la, ANYCAST, 0));
        }
        send(&rack_direct(&plain(other, NEIGHBOUR)));
        send(&rack_direct(&tunnel(other, NEIGHBOUR)));
        for destination in [NEIGHBOUR, FAR_LA, OUTSIDE] {
            send(&plain(other, destination));
        }
        send(&copy(la, other));
        if other != HASH {
            send(&copy(other, aa));
        }
    }
    // One header more than an agent has.
    send(&wrapped(&unicast(&plain(aa, PEER_AA)), HASH, ANYCAST, 0));
    rack.nothing_came();
    assert_eq!(counted(tor.counters().unwrap()), [("forwarded", 1), ("foreign_source", forged)]);
}

#[test]
fn headers_that_cannot_be_looked_behind_are_dropped() {
    let Some(rack) = Rack::new("behind") else { return };
    let Some(tor) = rack.attach() else { return };
    let packet = plain(MY_AA, PEER_AA);
    let outer = |change: &dyn Fn(&mut Ipv4), payload: Vec<u8>| {
        let mut header = Ipv4 { protocol: IPIP, source: HASH, destination: ANYCAST, id: 0, payload, ..Ipv4::default() };
        change(&mut header);
        header.bytes()
    };
    let options = |header: &mut Ipv4| header.options = vec![1; 4];
    let fragment = |header: &mut Ipv4| header.fragment = 0x2000;
    let later = |header: &mut Ipv4| header.fragment = 5;
    for change in [&options as &dyn Fn(&mut Ipv4), &fragment, &later] {
        rack.send(0, &outer(change, packet.clone()));
        rack.send(0, &outer(&|_| {}, outer(change, packet.clone())));
    }
    // Cut off within what is inside.
    rack.send(0, &outer(&|_| {}, packet[..12].to_vec()));
    rack.nothing_came();
    assert_eq!(counted(tor.counters().unwrap()), [("forwarded", 1), ("fragment", 4), ("malformed", 3)]);
}

#[test]
fn who_has_no_address_yet_asks_everybody_and_arp_is_nobodys_packet() {
    let Some(rack) = Rack::new("nobody") else { return };
    let Some(tor) = rack.attach() else { return };
    let ifindex = rack.tor.enter(|| interface_index("host0")).unwrap();
    let verdict = |bytes: &[u8]| {
        let output = rack.tor.enter_with(|| tor.run(&FrameInput { bytes, ifindex, ..FrameInput::default() })).unwrap();
        assert_frame(&output.bytes, bytes);
        output.verdict
    };
    let from = |source, destination| Ipv4 { source, destination, ..Ipv4::default() }.frame();
    let nobody = Ipv4Addr::UNSPECIFIED;
    for group in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 22)] {
        assert_eq!(verdict(&from(nobody, group)), Verdict::Next);
        assert_eq!(verdict(&from(SERVERS[0].2, group)), Verdict::Next);
        assert_eq!(verdict(&from(NEIGHBOURS_LA, group)), Verdict::Drop);
    }
    assert_eq!(verdict(&from(nobody, FAR_LA)), Verdict::Drop);
    let request = arp(1, (SERVER_MAC, NEIGHBOUR), ([0; 6], NEIGHBOUR));
    assert_eq!(verdict(&ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &request)), Verdict::Next);
    assert_eq!(counted(tor.counters().unwrap()), [("passed", 5), ("foreign_source", 3)]);
}

#[test]
fn an_address_that_moves_to_another_port_is_its_own_there_and_nobodys_here() {
    let Some(rack) = Rack::new("moved") else { return };
    let Some(tor) = rack.attach() else { return };
    let packet = unicast(&plain(MY_AA, PEER_AA));
    let comes = |server| {
        rack.send(server, &packet);
        rack.up.next().expect("it is forwarded");
    };
    // As many times as make it sure that some of them come within one tick.
    for _ in 0..20 {
        comes(0);
        rack.send(1, &packet);
    }
    rack.nothing_came();
    rack.tor.ip(&format!("route replace {MY_AA}/32 dev host1"));
    std::thread::sleep(TICK);
    for _ in 0..20 {
        comes(1);
        rack.send(0, &packet);
    }
    rack.tor.ip(&format!("route replace {MY_AA}/32 dev host0"));
    std::thread::sleep(TICK);
    rack.nothing_came();
    assert_eq!(counted(tor.counters().unwrap()), [("forwarded", 42), ("foreign_source", 40)]);
}

/// Every packet in up to three outer headers, from addresses of every kind, to every place where one is taken off, from a server
/// without an agent through a whole fabric.
#[test]
fn nothing_arrives_in_anothers_name_whatever_a_server_makes_up() {
    if !weft_needs::root() {
        return;
    }
    let bed = Bed::new("chains");
    let Some(attached) = bed.attach() else { return };
    drop(attached.a);
    let own = [MY_AA, Ipv4Addr::new(10, 64, 0, 2)];
    let sources = [own[0], own[1], HASH, PEER_AA, OUTSIDE];
    let (from, to) = (Tap::open(&bed.a, "eth0", WAIT), Tap::open(&bed.b, "eth0", WAIT));
    let inner: Vec<Vec<u8>> = sources.iter().map(|source| plain(*source, PEER_AA)).collect();
    let around = |packets: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let places = [ANYCAST, MY_TOR, PEER_TOR, PEER_AA];
        let headers = sources.iter().flat_map(|source| places.map(|place| (*source, place)));
        headers
            .flat_map(|(source, place)| packets.iter().map(move |packet| wrapped(packet, source, place, 0)))
            .collect()
    };
    let one = around(&inner);
    let two = around(&one);
    let three = around(&two);
    let last = unicast(&Ipv4 { id: 0xfeed, ..Ipv4::default() }.bytes());
    let mut arrived = 0;
    for packets in [inner, one, two, three].concat().chunks(50) {
        for packet in packets.iter().chain([&last]) {
            from.send(&ethernet(GATEWAY_MAC, SERVER_MAC, 0x0800, packet));
        }
        loop {
            let frame = to.next().expect("the last one arrives");
            let source = Ipv4Addr::from([frame[26], frame[27], frame[28], frame[29]]);
            assert!(own.contains(&source), "in the name of {source}:\n{}", dump(&frame));
            if frame[18..20] == [0xfe, 0xed] {
                break;
            }
            arrived += 1;
        }
    }
    // By way of the Intermediate or straight, as it is or in a tunnel between AAs, from either address.
    assert!(arrived >= 4, "{arrived}");
    eprintln!("{arrived} arrived");
}
