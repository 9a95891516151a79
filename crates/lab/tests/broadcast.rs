//! Broadcast and multicast in a lab whose fabric has none: the agents copy. Real sockets, two services. And the longest
//! packets, by copies and by the underlay's multicast.

mod common;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use common::hosts::{four_servers, on};
use common::{Gone, PATIENCE, Quiet, can_run, lab_name, options, wait_for};
use weft_lab::{Lab, status_socket, up};
use weft_node::agent::AgentStatus;
use weft_node::agent::status::read;
use weft_scenario::engine::Scenario;

const PORT: u16 = 4000;
const EVERYBODY: [Ipv4Addr; 4] =
    [Ipv4Addr::BROADCAST, Ipv4Addr::new(20, 255, 255, 255), Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::new(239, 1, 2, 3)];
/// Rate and burst of each agent: eight seconds for a thousand bytes, so that a burst is all that leaves in a moment.
const LIMIT: &str = "1 kbit/s";
const LIMIT_BITS_PER_S: u64 = 1000;
const BURST_BYTES: u64 = 20_000;

/// Payload of the longest datagram that an ordinary Ethernet carries in one piece, and of the longest whose packet fits the
/// fabric's 1600 bytes with one outer header.
const ETHERNETS_LONGEST: usize = 1500 - 28;
const FABRICS_LONGEST: usize = 1600 - 20 - 28;

/// Two services, each with one server in either rack.
fn two_services() -> Scenario {
    four_servers(&format!(
        "services:\n  web: {{servers: [s1, s3]}}\n  data: {{servers: [s2, s4]}}\n\
         broadcast: {{delivery: copies, limit: {LIMIT}, burst: {BURST_BYTES} B}}\n"
    ))
}

fn agent(lab: &Lab, server: &str) -> AgentStatus {
    read(status_socket(&lab.state.lab, server)).unwrap()
}

/// A socket that hears all of [`EVERYBODY`], as a discovery daemon's does.
fn listener(lab: &Lab, server: &str) -> UdpSocket {
    let aa = lab.state.node(server).unwrap().aa.unwrap();
    let socket = on(lab, server, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap());
    for group in EVERYBODY.iter().filter(|group| group.is_multicast()) {
        socket.join_multicast_v4(group, &aa).unwrap();
    }
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A socket that names neither its address nor its interface.
fn sender(lab: &Lab, server: &str) -> UdpSocket {
    let socket = on(lab, server, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    socket.set_broadcast(true).unwrap();
    socket
}

fn heard(socket: &UdpSocket) -> Option<(Vec<u8>, String)> {
    let mut buffer = [0; 8192];
    let (length, from) = socket.recv_from(&mut buffer).ok()?;
    Some((buffer[..length].to_vec(), from.ip().to_string()))
}

fn all(socket: &UdpSocket) -> u64 {
    socket.set_nonblocking(true).unwrap();
    std::iter::from_fn(|| heard(socket)).count() as u64
}

fn lab(test: &str, scenario: &Scenario) -> Option<(Lab, Gone)> {
    if !can_run() {
        return None;
    }
    let name = lab_name(test);
    let gone = Gone(name.clone());
    let lab = up(scenario, &options(&name), &Quiet).unwrap();
    Some((lab, gone))
}

#[test]
fn broadcast_and_multicast_reach_the_service_and_nobody_else() {
    let Some((lab, _gone)) = lab("bc", &two_services()) else { return };
    let listeners = ["s1", "s2", "s3", "s4"].map(|server| (server, listener(&lab, server)));
    let socket = sender(&lab, "s1");
    for (number, destination) in (0u8..).zip(EVERYBODY) {
        let text: Vec<u8> = (0..1200u16).map(|n| n as u8 ^ number).collect();
        socket.send_to(&text, (destination, PORT)).unwrap();
        let (_, member) = &listeners[2];
        assert_eq!(heard(member), Some((text, "20.0.0.1".to_owned())), "{destination}");
    }
    let heard: BTreeMap<&str, u64> = listeners.iter().map(|(server, socket)| (*server, all(socket))).collect();
    // The sender's own stack lets its sockets hear what they send, as on any host.
    assert_eq!(heard, [("s1", 4), ("s2", 0), ("s3", 0), ("s4", 0)].into());
    let received = |server: &str| {
        let mut counters = agent(&lab, server).received;
        counters.retain(|name, count| name != "passed" && *count > 0);
        counters
    };
    assert_eq!(received("s3"), [("delivered".to_owned(), 4)].into());
    for server in ["s1", "s2", "s4"] {
        assert_eq!(received(server), BTreeMap::new(), "nothing reached {server}, and nothing came back");
    }
    assert_eq!(agent(&lab, "s1").datapath["broadcast_copied"], 4);
}

#[test]
fn a_storm_is_held_to_the_limit_and_other_traffic_is_not() {
    let Some((lab, _gone)) = lab("bs", &two_services()) else { return };
    let (member, stranger) = (listener(&lab, "s3"), listener(&lab, "s2"));
    let socket = sender(&lab, "s1");
    let (storm, payload) = (500u64, 958usize);
    let frame_bytes = payload as u64 + 8 + 20 + 14;
    let began = Instant::now();
    for number in 0..storm {
        let mut text = vec![0; payload];
        text[..8].copy_from_slice(&number.to_be_bytes());
        // What the limit drops is an error to nobody.
        socket.send_to(&text, (Ipv4Addr::BROADCAST, PORT)).unwrap();
    }
    let lasted_s = began.elapsed().as_secs_f64();
    let counters = agent(&lab, "s1").datapath;
    let (copied, limited) = (counters["broadcast_copied"], counters["broadcast_limited"]);
    assert_eq!(copied + limited, storm);
    let refilled = (lasted_s * LIMIT_BITS_PER_S as f64 / 8.0) as u64;
    let most = (BURST_BYTES + refilled) / frame_bytes + 1;
    assert!((BURST_BYTES / frame_bytes..=most).contains(&copied), "{copied} of {storm} left, at most {most} may");
    // In order, from the first on, and no more than left.
    for number in 0..BURST_BYTES / frame_bytes {
        let (text, _) = heard(&member).expect("what left arrives");
        assert_eq!((text.len(), &text[..8]), (payload, &number.to_be_bytes()[..]));
    }
    assert_eq!(BURST_BYTES / frame_bytes + all(&member), copied);
    assert_eq!(all(&stranger), 0);
    // The bucket is empty, and unicast to the service goes on.
    let unicast = "20.0.0.3".parse::<Ipv4Addr>().unwrap();
    member.set_nonblocking(false).unwrap();
    socket.send_to(b"still here", (unicast, PORT)).unwrap();
    assert_eq!(heard(&member).map(|(text, _)| text), Some(b"still here".to_vec()));
}

#[test]
fn services_do_not_reach_each_other() {
    let Some((lab, _gone)) = lab("bi", &two_services()) else { return };
    let (member, stranger) = (listener(&lab, "s3"), listener(&lab, "s4"));
    let socket = sender(&lab, "s1");
    socket.send_to(b"hello", ("20.0.0.4".parse::<Ipv4Addr>().unwrap(), PORT)).unwrap();
    socket.send_to(b"hello", ("20.0.0.3".parse::<Ipv4Addr>().unwrap(), PORT)).unwrap();
    assert!(heard(&member).is_some(), "its own service answers");
    wait_for("the directory says that s4 is not there", || agent(&lab, "s1").cache["negative"] > 0);
    assert_eq!(all(&stranger), 0);
}

#[test]
fn datagrams_as_long_as_an_ethernets_reach_every_member_and_too_long_ones_are_counted() {
    for (test, delivery) in [("bl", "copies"), ("bg", "group")] {
        let services = format!(
            "services: {{web: {{servers: [s1, s2, s3]}}}}\n\
             broadcast: {{delivery: {delivery}, limit: 100 Mbit/s, burst: 1 MB}}\n"
        );
        let Some((lab, _gone)) = lab(test, &four_servers(&services)) else { return };
        let members = ["s2", "s3"].map(|server| (server, listener(&lab, server)));
        let socket = sender(&lab, "s1");
        let text = |bytes: usize, number: u8| -> Vec<u8> { (0..bytes).map(|place| place as u8 ^ number).collect() };
        let too_big = || agent(&lab, "s1").datapath["broadcast_too_big"];
        let arrives = |bytes: usize, destination: Ipv4Addr, number: u8| {
            socket.send_to(&text(bytes, number), (destination, PORT)).unwrap();
            for (server, member) in &members {
                let got = heard(member).map(|(text, from)| (text.len(), text, from));
                let wanted = (bytes, text(bytes, number), "20.0.0.1".to_owned());
                assert!(got.as_ref() == Some(&wanted), "{delivery}: {bytes} bytes to {destination} at {server}");
            }
        };
        for (number, destination) in (0u8..).zip(EVERYBODY) {
            arrives(ETHERNETS_LONGEST, destination, number);
        }
        // What is multicast goes by a route that says what fits, and is cut into packets of that length.
        arrives(4000, EVERYBODY[3], 4);
        arrives(FABRICS_LONGEST, EVERYBODY[0], 5);
        assert_eq!(too_big(), 0);
        socket.send_to(&text(FABRICS_LONGEST + 1, 6), (EVERYBODY[0], PORT)).unwrap();
        assert_eq!(too_big(), 1, "{delivery}: a byte more, and it is counted where it is sent");
        // What is broadcast is cut to the interface's length, which leaves no room: the kernel gives up after the first piece.
        socket.send_to(&text(4000, 7), (EVERYBODY[0], PORT)).unwrap();
        assert_eq!(too_big(), 2);
        arrives(10, EVERYBODY[0], 8);
        // Unicast is as ever, in packets of 1500 bytes.
        socket.send_to(&text(4000, 9), ("20.0.0.3".parse::<Ipv4Addr>().unwrap(), PORT)).unwrap();
        assert_eq!(heard(&members[1].1).map(|(text, _)| text.len()), Some(4000));
        assert_eq!(agent(&lab, "s1").datapath["mtu_exceeded"], 0);
    }
}
