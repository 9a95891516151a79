//! Hosts of a campus that are not alone on their wire: behind ordinary switches, moving from RBridge to RBridge, and sending
//! TCP as people would, with iperf3.

mod common;

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::beds::turn;
use common::campus::{Campus, address, answers, build, build_of, close, pings};
use common::{lab_name, wait_for};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use weft_scenario::engine::{Hook, Overlay};
use weft_scenario::topology::from_yaml;

/// Of the guest that moves.
const GUEST_MAC: &str = "02:00:5e:10:00:07";

/// Runs `ip` with these words, which must succeed.
fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().expect("ip runs");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a host's namespace an ordinary switch: a kernel bridge over its interface, which has no address any more.
fn ordinary_switch(campus: &Campus, host: &str) {
    let namespace = campus.namespace(host);
    for line in [
        "address flush dev eth0",
        "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        "link set eth0 master br0",
        "link set br0 up",
    ] {
        ip(&format!("-n {namespace} {line}"));
    }
}

/// A host of its own behind an ordinary switch. Dropping it removes it.
struct Guest {
    namespace: String,
    address: Ipv4Addr,
}

impl Guest {
    fn new(campus: &Campus, name: &str, address: Ipv4Addr, switch: &str) -> Self {
        let namespace = format!("weft-{}-{name}", campus.lab().state.lab);
        ip(&format!("netns add {namespace}"));
        let guest = Self { namespace, address };
        let at = campus.namespace(switch);
        ip(&format!("-n {} link add eth0 type veth peer name {name} netns {at}", guest.namespace));
        ip(&format!("netns exec {} sysctl -qw net.ipv4.conf.eth0.arp_notify=1", guest.namespace));
        ip(&format!("-n {} address add {address}/24 dev eth0", guest.namespace));
        ip(&format!("-n {} link set eth0 up", guest.namespace));
        plug(at, name);
        guest
    }

    /// Takes its cable from one switch to another, and announces itself as a hypervisor does for a machine that it took over
    /// (an ARP announcement, RFC 5227 section 3).
    fn moves(&self, campus: &Campus, name: &str, [from, to]: [&str; 2]) {
        let [from, to] = [from, to].map(|switch| campus.namespace(switch));
        ip(&format!("-n {from} link set {name} netns {to}"));
        plug(to, name);
        // With `arp_notify` the kernel announces whoever gets an address, the same one included.
        ip(&format!("-n {} link set eth0 address {GUEST_MAC}", self.namespace));
    }

    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = std::fs::File::open(Path::new("/run/netns").join(&self.namespace)).unwrap();
        let enter_and_work = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        std::thread::scope(|scope| {
            scope.spawn(enter_and_work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

fn plug(namespace: &str, port: &str) {
    ip(&format!("-n {namespace} link set {port} master br0 up"));
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.namespace]).output();
    }
}

/// What became of the datagrams of one sender.
#[derive(Clone, Copy, Debug)]
struct Received {
    sent: u64,
    received: u64,
    /// Longest time between two that arrived.
    longest: Duration,
}

/// Datagrams every millisecond from each host to the guest, while `change` happens.
fn watched<const N: usize>(campus: &Campus, from: [&str; N], guest: &Guest, change: impl FnOnce()) -> [Received; N] {
    const PORT: u16 = 6000;
    let socket = guest.inside(|| UdpSocket::bind((guest.address, PORT)).unwrap());
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let senders = from.map(|host| {
        let socket = campus.inside(host, || UdpSocket::bind((address(campus, host), PORT)).unwrap());
        (socket, address(campus, host))
    });
    let over = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut sent = 0;
            while !over.load(Relaxed) {
                // Refused for a moment where a neighbour is not known: as good as lost.
                senders.iter().for_each(|(socket, _)| drop(socket.send_to(&[1; 100], (guest.address, PORT))));
                sent += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            sent
        });
        let receiving = scope.spawn(|| {
            let mut seen = [(0, None::<Instant>, Duration::ZERO); N];
            // Beyond the end, so that what is under way arrives.
            let mut last_look = false;
            while !last_look {
                last_look = over.load(Relaxed);
                while let Ok((_, sender)) = socket.recv_from(&mut [0; 200]) {
                    let place = senders.iter().position(|(_, address)| sender.ip() == *address).unwrap();
                    let (count, last, longest) = &mut seen[place];
                    let now = Instant::now();
                    *longest = last.map_or(Duration::ZERO, |last| now - last).max(*longest);
                    (*count, *last) = (*count + 1, Some(now));
                }
            }
            seen
        });
        std::thread::sleep(Duration::from_millis(500));
        change();
        std::thread::sleep(Duration::from_millis(1500));
        over.store(true, Relaxed);
        (sending.join().unwrap(), receiving.join().unwrap())
    });
    received.map(|(received, _, longest)| Received { sent, received, longest })
}

#[test]
fn ordinary_switches_may_sit_between_rbridges_and_hosts() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("osw");
    let campus = build(&name, "trill-s1-s6", Overlay::RBRIDGE);
    ordinary_switch(&campus, "h1");
    let guests =
        [("v1", 71), ("v2", 72)].map(|(guest, last)| Guest::new(&campus, guest, Ipv4Addr::new(10, 0, 10, last), "h1"));
    let [first, second] = &guests;
    assert!(first.inside(|| answers(second.address)), "behind one switch, by it alone");
    for guest in &guests {
        assert!(guest.inside(|| answers(address(&campus, "h2"))), "across the campus");
        assert!(campus.inside("h2", || answers(guest.address)));
        assert!(!guest.inside(|| answers(address(&campus, "h4"))), "VLANs are apart");
    }
    drop(guests);
    close(campus, &name);
}

#[test]
fn a_host_moves_to_another_rbridge() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("move");
    let campus = build(&name, "trill-s1-s6", Overlay::RBRIDGE);
    // Hosts of virtual machines: one at S1, one at S2, in one VLAN.
    ordinary_switch(&campus, "h1");
    ordinary_switch(&campus, "t2");
    let guest = Guest::new(&campus, "vm", Ipv4Addr::new(10, 0, 10, 77), "h1");
    assert!(campus.inside("t1", || answers(guest.address)));
    assert!(campus.inside("h2", || answers(guest.address)));
    for way in [["h1", "t2"], ["t2", "h1"]] {
        // One sender at the RBridge that it leaves, one at that it comes to.
        let hosts = ["t1", "h2"];
        let start = Instant::now();
        let mut took = Duration::ZERO;
        let seen = watched(&campus, hosts, &guest, || {
            let begin = start.elapsed();
            guest.moves(&campus, "vm", way);
            took = start.elapsed() - begin;
        });
        for (host, seen) in hosts.iter().zip(seen) {
            let Received { sent, received, longest } = seen;
            eprintln!(
                "move from {} to {} in {took:?}: {host} lost {} of {sent} datagrams, longest silence {longest:?}",
                way[0],
                way[1],
                sent - received,
            );
            assert!(received > sent / 2, "{host}: {seen:?} after the move");
            assert!(longest < took + Duration::from_secs(1), "{host}: {seen:?}");
        }
    }
    drop(guest);
    close(campus, &name);
}

const IPERF3_PORT: u16 = 5201;

/// Whether somebody waits for connections at a port of the caller's namespace.
fn listens(port: u16) -> bool {
    const LISTEN: &str = " 0A ";
    let table = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
    table.lines().any(|line| line.contains(&format!(":{port:04X} ")) && line.contains(LISTEN))
}

/// Bytes that iperf3's receiver reports, and the bits per second.
fn iperf3(campus: &Campus, from: &str, to: &str, options: &[&str]) -> (u64, f64) {
    let target = address(campus, to).to_string();
    let serve =
        || Command::new("iperf3").args(["--server", "--one-off", "--bind", &target]).stdout(Stdio::null()).spawn();
    let mut server = campus.inside(to, serve).unwrap();
    let client =
        || Command::new("iperf3").args(["--client", &target, "--time", "1", "--json"]).args(options).output().unwrap();
    wait_for("iperf3 listens", || campus.inside(to, || listens(IPERF3_PORT)));
    let output = campus.inside(from, client);
    let _ = server.kill();
    let _ = server.wait();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{report}");
    let end = &report["end"]["sum_received"];
    (end["bytes"].as_u64().unwrap(), end["bits_per_second"].as_f64().unwrap())
}

#[test]
fn iperf3_gets_through_whatever_forwards() {
    let Some(_turn) = turn() else { return };
    if !weft_needs::program("iperf3") {
        return;
    }
    let generic = Overlay::RBridge { hook: Hook::XdpGeneric, elide: false };
    for (suffix, switching) in [("ipx", Overlay::RBRIDGE), ("ipg", generic), ("ipb", Overlay::BRIDGE)] {
        let name = lab_name(suffix);
        let campus = build(&name, "trill-s1-s6", switching);
        assert!(pings(&campus, "h1", "h2"));
        // Large and ordinary segments, both ways, and several flows at once, which take several paths.
        for options in [&[][..], &["--set-mss", "1448"], &["--reverse"], &["--parallel", "4"]] {
            let (bytes, bits_per_s) = iperf3(&campus, "h1", "h2", options);
            eprintln!("iperf3 {options:?} over {switching:?}: {:.2} Gbit/s", bits_per_s / 1e9);
            // A segment or checksum that nobody finished lets nothing through but the handshake.
            assert!(bytes > 1_000_000, "{switching:?} {options:?}: {bytes} bytes in a second");
        }
        close(campus, &name);
    }
}

const THREE: &str = r#"
name: three
topology:
  defaults: {kind: linux, link: {rate: 10 Gbit/s, mtu: 9216}}
  nodes:
    s1: {role: rbridge}
    s2: {role: rbridge}
    h1: {role: server}
    h2: {role: server}
    h3: {role: server}
  links:
    - {endpoints: ["s1:s2", "s2:s1"]}
    - {endpoints: ["s1:h1", "h1:eth0"], vlan: 10, address: 10.0.10.1/24, mtu: 1500}
    - {endpoints: ["s2:h2", "h2:eth0"], vlan: 10, address: 10.0.10.2/24, mtu: 1500}
    - {endpoints: ["s2:h3", "h3:eth0"], vlan: 10, address: 10.0.10.3/24, mtu: 1500}
  groups: true
"#;

/// A stream for a group, by the programs' own sockets: who has joined has it, and nobody else's line carries it.
#[test]
fn a_stream_goes_to_the_hosts_that_have_joined_its_group() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("stream");
    let campus =
        build_of(&name, from_yaml(THREE, "three.yaml").unwrap(), Overlay::RBridge { hook: Hook::Xdp, elide: false });
    let group = Ipv4Addr::new(239, 1, 2, 3);
    ip(&format!("-n {} route add 224.0.0.0/4 dev eth0", campus.namespace("h1")));
    let listener = campus.inside("h2", || {
        let socket = UdpSocket::bind("0.0.0.0:5000").unwrap();
        socket.join_multicast_v4(&group, &Ipv4Addr::new(10, 0, 10, 2)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        socket
    });
    let sender = campus.inside("h1", || UdpSocket::bind("10.0.10.1:5000").unwrap());
    // Packets that have come to the host, of groups that it has not joined, too.
    let packets = |host: &str| -> u64 {
        let text = campus.inside(host, || std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
        let values = text.lines().filter(|line| line.starts_with("Ip:")).nth(1).unwrap();
        values.split(' ').nth(3).unwrap().parse().unwrap()
    };
    let stream = || {
        let before = packets("h3");
        let mut bytes = [0; 200];
        // One at a time: a frame that was redirected takes a page of the socket's buffer.
        let arrives = |n: u8| {
            sender.send_to(&[n; 100], (group, 5000)).unwrap();
            listener.recv(&mut bytes).is_ok_and(|length| length == 100 && bytes[..100] == [n; 100])
        };
        let heard = (0..200).map(arrives).filter(|arrived| *arrived).count();
        (heard, packets("h3") - before)
    };
    wait_for("who has not joined gets none of it", || stream().1 < 100);
    let (heard, elsewhere) = stream();
    assert_eq!(heard, 200, "all of it");
    assert!(elsewhere < 100, "{elsewhere} packets at a host that has not joined");
    close(campus, &name);
}
