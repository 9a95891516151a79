//! Broadcast and multicast in a lab whose fabric has none: the agents copy. Real sockets, two services.

mod common;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use common::{Gone, Quiet, can_run, lab_name, options, scenario};
use weft_lab::{Lab, home, in_namespace, status_socket, up};
use weft_node::agent::AgentStatus;
use weft_node::agent::status::read;
use weft_scenario::engine::Overlay;
use weft_scenario::topology::{Fabric, from_yaml};

const PORT: u16 = 4000;
const EVERYBODY: [Ipv4Addr; 4] =
    [Ipv4Addr::BROADCAST, Ipv4Addr::new(20, 255, 255, 255), Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::new(239, 1, 2, 3)];
/// Rate and burst of each agent: eight seconds for a thousand bytes, so that a burst is all that leaves in a moment.
const LIMIT: &str = "1 kbit/s";
const LIMIT_BITS_PER_S: u64 = 1000;
const BURST_BYTES: u64 = 20_000;

/// Two services, each with one server in either rack.
fn fabric() -> Fabric {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/vl2-4servers.yaml");
    let text = std::fs::read_to_string(path).expect("the fabric is in the repository");
    let services = format!(
        "services:\n  web: {{servers: [s1, s3]}}\n  data: {{servers: [s2, s4]}}\n\
         broadcast: {{delivery: copies, limit: {LIMIT}, burst: {BURST_BYTES} B}}\n"
    );
    from_yaml(&(text + &services), "two-services").expect("a valid fabric")
}

/// Runs `work` in a server's namespace.
fn at<T: Send>(lab: &Lab, server: &str, work: impl FnOnce() -> T + Send) -> T {
    let namespace = home::namespace_path(&lab.state.node(server).unwrap().namespace);
    in_namespace(&namespace, work).unwrap()
}

fn agent(lab: &Lab, server: &str) -> AgentStatus {
    read(status_socket(&lab.state.lab, server)).unwrap()
}

/// A socket that hears all of [`EVERYBODY`], as a discovery daemon's does.
fn listener(lab: &Lab, server: &str) -> UdpSocket {
    let aa = lab.state.node(server).unwrap().aa.unwrap();
    let socket = at(lab, server, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap());
    for group in EVERYBODY.iter().filter(|group| group.is_multicast()) {
        socket.join_multicast_v4(group, &aa).unwrap();
    }
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// A socket that names neither its address nor its interface.
fn sender(lab: &Lab, server: &str) -> UdpSocket {
    let socket = at(lab, server, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    socket.set_broadcast(true).unwrap();
    socket
}

fn heard(socket: &UdpSocket) -> Option<(Vec<u8>, String)> {
    let mut buffer = [0; 2048];
    let (length, from) = socket.recv_from(&mut buffer).ok()?;
    Some((buffer[..length].to_vec(), from.ip().to_string()))
}

fn all(socket: &UdpSocket) -> u64 {
    socket.set_nonblocking(true).unwrap();
    std::iter::from_fn(|| heard(socket)).count() as u64
}

fn lab(test: &str) -> Option<(Lab, Gone)> {
    if !can_run() {
        return None;
    }
    let name = lab_name(test);
    let gone = Gone(name.clone());
    let lab = up(&scenario(fabric(), Overlay::Vl2), &options(&name), &Quiet).unwrap();
    Some((lab, gone))
}

#[test]
fn broadcast_and_multicast_reach_the_service_and_nobody_else() {
    let Some((lab, _gone)) = lab("bc") else { return };
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
    let Some((lab, _gone)) = lab("bs") else { return };
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
    let Some((lab, _gone)) = lab("bi") else { return };
    let (member, stranger) = (listener(&lab, "s3"), listener(&lab, "s4"));
    let socket = sender(&lab, "s1");
    socket.send_to(b"hello", ("20.0.0.4".parse::<Ipv4Addr>().unwrap(), PORT)).unwrap();
    socket.send_to(b"hello", ("20.0.0.3".parse::<Ipv4Addr>().unwrap(), PORT)).unwrap();
    assert!(heard(&member).is_some(), "its own service answers");
    let deadline = Instant::now() + Duration::from_secs(5);
    while agent(&lab, "s1").cache["negative"] == 0 {
        assert!(Instant::now() < deadline, "the directory says nothing of s4: {:?}", agent(&lab, "s1"));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(all(&stranger), 0);
}
