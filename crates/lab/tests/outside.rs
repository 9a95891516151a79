//! The outside world of a lab (VL2 4.2.3): real HTTP across real BGP, and what a border keeps apart.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Gone, PATIENCE, Quiet, can_run, lab_name, options, scenario, wait_for};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use weft_lab::traffic::FaultActuator;
use weft_lab::{Lab, LabActuator, RouteTable, home, in_namespace, kernel_table, status_socket, up};
use weft_node::agent::status::read;
use weft_scenario::engine::{Overlay, Scenario};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::topology::from_yaml;
use weft_scenario::units::Nanos;
use weft_wire::ipv4::{self, protocol};
use weft_wire::udp;

/// Public LAs of s1 and s3, and an address of the pool that nobody has.
const S1: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const S3: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const NOBODY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 77);
const CLIENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const POOL: &str = "198.51.100.0/24";
/// More than one link's share of a transfer by chance: five standard deviations of 64 flows over two links.
const LEAST_SHARE: f64 = 0.18;

fn internet() -> Scenario {
    let text = include_str!("../../../fabrics/vl2-internet.yaml");
    scenario(from_yaml(text, "vl2-internet.yaml").unwrap(), Overlay::Vl2)
}

fn can_run_programs() -> bool {
    can_run() && ["curl", "busybox", "vtysh"].into_iter().all(weft_needs::program)
}

fn path(lab: &Lab, node: &str) -> PathBuf {
    home::namespace_path(&lab.state.node(node).unwrap().namespace)
}

/// Runs a program on a node.
fn run(lab: &Lab, node: &str, program: &str, arguments: &[&str]) -> Output {
    in_namespace(&path(lab, node), || Command::new(program).args(arguments).output().unwrap()).unwrap()
}

fn ip(lab: &Lab, node: &str, line: &str) {
    let output = run(lab, node, "ip", &line.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An HTTP server on a node, for as long as this lives.
struct HttpServer(Child);

impl HttpServer {
    fn start(lab: &Lab, node: &str, address: Ipv4Addr, folder: &Path) -> Self {
        let mut command = Command::new("busybox");
        command.args(["httpd", "-f", "-p", &format!("{address}:80"), "-h"]).arg(folder).stdout(Stdio::null());
        let server = Self(in_namespace(&path(lab, node), || command.spawn().unwrap()).unwrap());
        wait_for("the server listens", || {
            let sockets = run(lab, node, "busybox", &["netstat", "-ltn"]);
            String::from_utf8_lossy(&sockets.stdout).contains(&format!("{address}:80"))
        });
        server
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fetches into the folder `got`; curl's exit code and message.
fn curl(lab: &Lab, node: &str, got: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut all = vec!["-sS", "--max-time", "60", "--output-dir", got.to_str().unwrap()];
    all.extend(arguments);
    let output = run(lab, node, "curl", &all);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{:?} {said}", output.status.code())) }
}

/// Bytes that left each interface of the lab, by `node:interface`.
fn sent(lab: &Lab) -> BTreeMap<String, u64> {
    let mut sent = BTreeMap::new();
    for node in &lab.state.nodes {
        let output = run(lab, &node.name, "ip", &["-s", "-j", "link", "show"]);
        let links: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        for link in links {
            let bytes = link["stats64"]["tx"]["bytes"].as_u64().unwrap();
            sent.insert(format!("{}:{}", node.name, link["ifname"].as_str().unwrap()), bytes);
        }
    }
    sent
}

fn difference(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    after.iter().map(|(port, bytes)| (port.clone(), bytes - before[port])).collect()
}

/// The smaller share of two ports.
fn smaller_share(sent: &BTreeMap<String, u64>, ports: [&str; 2]) -> f64 {
    let [a, b] = ports.map(|port| sent[port] as f64);
    a.min(b) / (a + b)
}

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn curl_outside_fetches_from_a_server_straight_over_all_egress_links_and_the_other_way() {
    if !can_run_programs() {
        return;
    }
    let name = lab_name("oa");
    let _gone = Gone(name.clone());
    let lab = up(&internet(), &options(&name), &Quiet).unwrap();
    let (site, got) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wanted = body(50_000);
    fs::write(site.path().join("page"), &wanted).unwrap();
    let is_whole = |name: &str| fs::read(got.path().join(name)).unwrap() == wanted;

    let _inside = HttpServer::start(&lab, "s1", S1, site.path());
    let before = sent(&lab);
    // One connection for each: this server closes them.
    curl(&lab, "net", got.path(), &[&format!("http://{S1}/page?[1-64]"), "-o", "in#1"]).unwrap();
    assert!((1..=64).all(|number| is_whole(&format!("in{number}"))));
    let inbound = difference(&before, &sent(&lab));
    let bytes = 64 * wanted.len() as u64;
    let carried = |ports: &[&str]| ports.iter().map(|port| inbound[*port]).sum::<u64>();
    for stage in [&["s1:eth0"][..], &["tor1:agg1", "tor1:agg2"], &["int1:net", "int2:net"]] {
        assert!((bytes..bytes * 11 / 10).contains(&carried(stage)), "once on every stage: {inbound:?}");
    }
    for server in ["s2:eth0", "s3:eth0", "s4:eth0", "dir1:eth0", "tor1:s2", "tor2:s3", "tor2:s4", "tor2:dir1"] {
        assert!(inbound[server] < bytes / 50, "no server is a gateway: {server} {inbound:?}");
    }
    for links in [["int1:net", "int2:net"], ["net:int1", "net:int2"]] {
        assert!(smaller_share(&inbound, links) > LEAST_SHARE, "{links:?} {inbound:?}");
    }

    let _outside = HttpServer::start(&lab, "net", CLIENT, site.path());
    let before = sent(&lab);
    curl(&lab, "s3", got.path(), &[&format!("http://{CLIENT}/page?[1-64]"), "-o", "out#1"]).unwrap();
    assert!((1..=64).all(|number| is_whole(&format!("out{number}"))));
    let outbound = difference(&before, &sent(&lab));
    for links in [["int1:net", "int2:net"], ["net:int1", "net:int2"]] {
        assert!(smaller_share(&outbound, links) > LEAST_SHARE, "{links:?} {outbound:?}");
    }
    // From one server to another it stays inside, by either kind of address.
    let before = sent(&lab);
    curl(&lab, "s3", got.path(), &[&format!("http://{S1}/page"), "-o", "public"]).unwrap();
    assert!(is_whole("public") && difference(&before, &sent(&lab))["int1:net"] < 10_000);
}

/// A node's table, without what the kernel makes of the node's own addresses.
fn table(lab: &Lab, node: &str) -> RouteTable {
    kernel_table(&lab.state.node(node).unwrap().namespace).unwrap()
}

/// What a node's `bgpd` answers.
fn bgp(lab: &Lab, node: &str, question: &str) -> serde_json::Value {
    let namespace = &lab.state.node(node).unwrap().namespace;
    let output = run(lab, node, "vtysh", &["-N", namespace, "-d", "bgpd", "-c", &format!("show bgp {question} json")]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
}

/// Prefixes that a node has heard of by BGP.
fn heard(lab: &Lab, node: &str) -> Vec<String> {
    bgp(lab, node, "ipv4 unicast")["routes"].as_object().unwrap().keys().cloned().collect()
}

/// Metrics by which `bgpd` chooses among the borders that lead outside.
fn metrics_to_outside(lab: &Lab, node: &str) -> BTreeMap<String, u64> {
    let answer = bgp(lab, node, "ipv4 unicast 0.0.0.0/0");
    let hops = answer["paths"].as_array().into_iter().flatten().flat_map(|path| path["nexthops"].as_array().unwrap());
    hops.filter_map(|hop| Some((hop["ip"].as_str()?.to_owned(), hop["metric"].as_u64()?))).collect()
}

#[test]
fn the_outside_hears_of_the_pool_and_of_nothing_else() {
    if !can_run_programs() {
        return;
    }
    let name = lab_name("ob");
    let _gone = Gone(name.clone());
    let lab = up(&internet(), &options(&name), &Quiet).unwrap();
    assert_eq!(heard(&lab, "net"), [POOL]);
    let outside: Vec<String> = table(&lab, "net").into_keys().collect();
    assert_eq!(outside, ["192.0.2.0/31", "192.0.2.2/31", POOL]);
    let mut inside = heard(&lab, "agg1");
    inside.sort();
    assert_eq!(inside, ["0.0.0.0/0", POOL, "198.51.100.1/32", "198.51.100.2/32"], "no AA, no LA: OSPF has those");
    for switch in ["int1", "agg1", "tor2"] {
        assert!(table(&lab, switch).keys().all(|to| !to.starts_with("20.0.0.") || switch == "tor2"));
    }
    let daemons = lab.state.processes.iter().filter(|process| process.daemon == "bgpd").count();
    assert_eq!(daemons, 7, "one on every switch, and outside");
    assert!(!lab.state.processes.iter().any(|process| process.node == "net" && process.daemon == "ospfd"));
}

#[test]
fn who_has_no_public_la_is_not_reached_and_does_not_get_out() {
    if !can_run_programs() {
        return;
    }
    let name = lab_name("oc");
    let _gone = Gone(name.clone());
    let lab = up(&internet(), &options(&name), &Quiet).unwrap();
    let (site, got) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(site.path().join("page"), b"page").unwrap();
    let any = Ipv4Addr::UNSPECIFIED;
    let _servers = ["s1", "s2"].map(|node| HttpServer::start(&lab, node, any, site.path()));
    let _outside = HttpServer::start(&lab, "net", CLIENT, site.path());
    let fetch = |from: &str, to: Ipv4Addr| curl(&lab, from, got.path(), &[&format!("http://{to}/page"), "-o", "page"]);
    let gets_nothing = |from: &str, to: Ipv4Addr| {
        curl(&lab, from, got.path(), &["--connect-timeout", "2", &format!("http://{to}/page"), "-o", "page"]).is_err()
    };
    fetch("net", S1).unwrap();
    fetch("s1", CLIENT).unwrap();
    let s2 = lab.state.node("s2").unwrap();
    let (aa, la) = (s2.aa.unwrap(), s2.la.unwrap());
    fetch("s1", aa).unwrap();
    assert!(fetch("s2", CLIENT).unwrap_err().starts_with("Some(7)"), "it has no route");
    // Even where somebody gives both sides the routes that they lack.
    for route in ["10.0.0.0/8", "20.0.0.0/8"] {
        ip(&lab, "net", &format!("route add {route} via 192.0.2.0"));
    }
    ip(&lab, "s2", "route add default via 10.64.0.1 dev eth0 onlink");
    for (from, to) in
        [("net", aa), ("net", la), ("net", NOBODY), ("net", lab.state.node("s1").unwrap().la.unwrap()), ("s2", CLIENT)]
    {
        assert!(gets_nothing(from, to), "{from} to {to}");
    }
    // Addresses of the pool that nobody has do not go round in circles: the border says so at once.
    let error = fetch("s3", NOBODY).unwrap_err();
    assert!(error.starts_with("Some(7)") && !error.contains("timed out"), "{error}");
    fetch("net", S1).unwrap();
}

/// Sends a packet that was made up, as it is.
fn inject(lab: &Lab, node: &str, packet: &[u8]) {
    let send = || {
        let raw: OwnedFd =
            socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::RAW)).unwrap();
        let destination = ipv4::View::new(packet).unwrap().destination();
        UdpSocket::from(raw).send_to(packet, SocketAddrV4::new(destination, 0)).unwrap();
    };
    in_namespace(&path(lab, node), send).unwrap();
}

fn datagram(source: Ipv4Addr, destination: Ipv4Addr, text: &str) -> Vec<u8> {
    let [source, destination] = [source, destination].map(|address| SocketAddrV4::new(address, 9999));
    udp::packet(source, destination, text.as_bytes()).unwrap()
}

/// The packet in an outer header (RFC 2003).
fn wrapped(source: Ipv4Addr, destination: Ipv4Addr, inner: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; ipv4::HEADER_LEN + inner.len()];
    ipv4::Header::new(source, destination, protocol::IPV4, inner.len() as u16).emit_into(&mut packet);
    packet[ipv4::HEADER_LEN..].copy_from_slice(inner);
    packet
}

#[test]
fn what_is_made_up_outside_does_not_pass_the_border() {
    if !can_run_programs() {
        return;
    }
    let name = lab_name("od");
    let _gone = Gone(name.clone());
    let lab = up(&internet(), &options(&name), &Quiet).unwrap();
    let socket = in_namespace(&path(&lab, "s1"), || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 9999)).unwrap()).unwrap();
    let next = |patience: Duration| {
        socket.set_read_timeout(Some(patience)).unwrap();
        let mut text = [0; 64];
        socket.recv(&mut text).map(|length| String::from_utf8_lossy(&text[..length]).into_owned()).ok()
    };
    for prefix in ["10.0.0.0/8", "20.0.0.0/8"] {
        ip(&lab, "net", &format!("route add {prefix} via 192.0.2.0"));
    }
    let place = |node: &str| lab.state.node(node).unwrap();
    let (s1_aa, s2_aa, tor1) = (place("s1").aa.unwrap(), place("s2").aa.unwrap(), place("tor1").la.unwrap());
    let anycast = Ipv4Addr::new(10, 255, 255, 1);
    let hash = Ipv4Addr::new(100, 64, 0, 9);
    let to_tor = wrapped(hash, tor1, &datagram(s2_aa, s1_aa, "by ToR"));
    for made_up in [
        wrapped(CLIENT, anycast, &to_tor),
        wrapped(hash, anycast, &to_tor),
        wrapped(CLIENT, tor1, &datagram(s2_aa, s1_aa, "by ToR, from outside")),
        to_tor.clone(),
        datagram(CLIENT, s1_aa, "to AA"),
        datagram(CLIENT, place("s1").la.unwrap(), "to LA"),
        datagram(s2_aa, S1, "from AA"),
        datagram(place("s2").la.unwrap(), S1, "from LA"),
        datagram(hash, S1, "from hash"),
        datagram(S3, S1, "from pool"),
    ] {
        inject(&lab, "net", &made_up);
    }
    inject(&lab, "net", &datagram(CLIENT, S1, "as it should be"));
    assert_eq!(next(PATIENCE).as_deref(), Some("as it should be"), "and nothing before it");
    assert_eq!(next(Duration::from_secs(2)), None, "nor after");
    // It is the border's rules that do it: without them the made-up headers are taken off.
    for preference in [10, 10, 10, 10, 40] {
        ip(&lab, "int1", &format!("rule del pref {preference}"));
    }
    inject(&lab, "net", &to_tor);
    assert_eq!(next(PATIENCE).as_deref(), Some("by ToR"));
}

/// A socket of the node outside, and what it hears next.
struct Ear(UdpSocket);

impl Ear {
    fn outside(lab: &Lab) -> Self {
        let socket = in_namespace(&path(lab, "net"), || UdpSocket::bind((CLIENT, 9999)).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        Self(socket)
    }

    fn hears(&self) -> Option<String> {
        let mut text = [0; 64];
        self.0.recv(&mut text).map(|length| String::from_utf8_lossy(&text[..length]).into_owned()).ok()
    }
}

#[test]
fn a_server_sends_by_its_own_addresses_only() {
    if !can_run() {
        return;
    }
    let name = lab_name("og");
    let _gone = Gone(name.clone());
    let lab = up(&internet(), &options(&name), &Quiet).unwrap();
    let ear = Ear::outside(&lab);
    ip(&lab, "s2", "route add default via 10.64.0.1 dev eth0 onlink");
    let place = |node: &str| lab.state.node(node).unwrap();
    let (s1_la, s2_aa, tor2) = (place("s1").la.unwrap(), place("s2").aa.unwrap(), place("tor2").la.unwrap());
    let anycast = Ipv4Addr::new(10, 255, 255, 1);
    let foreign =
        [S3, NOBODY, s2_aa, place("s2").la.unwrap(), Ipv4Addr::new(192, 0, 2, 0), Ipv4Addr::new(8, 8, 8, 8), CLIENT];
    for source in foreign {
        inject(&lab, "s1", &datagram(source, CLIENT, "from another"));
    }
    for source in [S1, NOBODY] {
        inject(&lab, "s2", &datagram(source, CLIENT, "from a server without"));
    }
    // Nor in an outer header that an Intermediate takes off, or a ToR.
    for (to, inner) in
        [(anycast, datagram(S3, CLIENT, "inside")), (tor2, datagram(S3, place("s3").aa.unwrap(), "inside"))]
    {
        inject(&lab, "s1", &wrapped(s1_la, to, &inner));
    }
    inject(&lab, "s1", &datagram(S1, CLIENT, "as it should be"));
    assert_eq!(ear.hears().as_deref(), Some("as it should be"), "and nothing before it");
    assert_eq!(ear.hears(), None, "nor after");
    let dropped = |server: &str, reason: &str| read(status_socket(&lab.state.lab, server)).unwrap().datapath[reason];
    assert_eq!(dropped("s1", "foreign_source"), foreign.len() as u64);
    assert_eq!((dropped("s2", "foreign_source"), dropped("s1", "made_up_header")), (2, 2));
}

/// What came by the wrong port, as the kernel counts it.
fn came_by_the_wrong_port(lab: &Lab, node: &str) -> u64 {
    let table =
        in_namespace(&path(lab, node), || fs::read_to_string("/proc/thread-self/net/netstat").unwrap()).unwrap();
    let mut rows = table.lines().filter(|line| line.starts_with("TcpExt:")).map(|line| line.split_whitespace());
    let (names, numbers) = (rows.next().unwrap(), rows.next().unwrap());
    names.zip(numbers).find(|(name, _)| *name == "IPReversePathFilter").unwrap().1.parse().unwrap()
}

#[test]
fn where_servers_have_no_agents_their_tors_look_at_sources() {
    if !can_run() {
        return;
    }
    let name = lab_name("oh");
    let _gone = Gone(name.clone());
    let lab = up(&Scenario { overlay: Overlay::Routed, ..internet() }, &options(&name), &Quiet).unwrap();
    let ear = Ear::outside(&lab);
    let before = came_by_the_wrong_port(&lab, "tor1");
    for source in [S3, NOBODY, lab.state.node("s2").unwrap().la.unwrap(), Ipv4Addr::new(8, 8, 8, 8)] {
        inject(&lab, "s1", &datagram(source, CLIENT, "from another"));
    }
    inject(&lab, "s1", &datagram(S1, CLIENT, "as it should be"));
    assert_eq!(ear.hears().as_deref(), Some("as it should be"), "and nothing before it");
    assert_eq!(ear.hears(), None, "nor after");
    assert_eq!(came_by_the_wrong_port(&lab, "tor1") - before, 4);
}

/// Whether tables become and stay so in this time.
fn become_equal<T: PartialEq>(tables: &impl Fn() -> T, wanted: &T, within: Duration) -> bool {
    let begun = Instant::now();
    let mut times = 0;
    while times < 3 && begun.elapsed() < within {
        std::thread::sleep(Duration::from_millis(50));
        times = if tables() == *wanted { times + 1 } else { 0 };
    }
    times == 3
}

#[test]
fn a_border_link_that_fails_or_falls_silent_leaves_the_other() {
    if !can_run_programs() {
        return;
    }
    let name = lab_name("oe");
    let _gone = Gone(name.clone());
    let mut scenario = internet();
    scenario.switching.bfd = Some(Nanos(50_000_000));
    let lab = up(&scenario, &options(&name), &Quiet).unwrap();
    let (site, got) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(site.path().join("page"), b"page").unwrap();
    let _inside = HttpServer::start(&lab, "s1", S1, site.path());
    let by = |node: &str, to: &str| -> Vec<String> { table(&lab, node).remove(to).into_iter().flatten().collect() };
    let tables = || ["net", "int1", "int2", "agg1", "agg2", "tor1", "tor2"].map(|node| table(&lab, node));
    let before = tables();
    let metrics = ["agg1", "agg2"].map(|node| metrics_to_outside(&lab, node));
    assert!(metrics.iter().all(|metrics| metrics.len() == 2), "of both borders: {metrics:?}");
    let reached = || curl(&lab, "net", got.path(), &[&format!("http://{S1}/page"), "-o", "page"]);
    let between = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let (a, b) = between("int1", "net");
    for kind in [FaultKind::LinkDown { a: a.clone(), b: b.clone() }, FaultKind::LinkSilent { a, b }] {
        let fault = Fault { at: Nanos(0), lasts: None, kind };
        let mut actuator = LabActuator::new(&lab);
        actuator.apply(&fault).unwrap();
        wait_for("both directions leave the link", || by("net", POOL) == ["int2"] && by("agg1", "default") == ["int2"]);
        reached().unwrap();
        actuator.repair(&fault).unwrap();
        wait_for("both links are used again", || {
            by("net", POOL) == ["int1", "int2"] && by("agg1", "default") == ["int1", "int2"]
        });
        assert!(matches!(actuator.finish()[..], [(0, Some(_))]), "all routes are those of before");
    }
    // A border that is cut off from the fabric draws no traffic.
    let cut =
        |b: &str| Fault { at: Nanos(0), lasts: None, kind: FaultKind::LinkDown { a: "int1".into(), b: b.into() } };
    let mut actuator = LabActuator::new(&lab);
    for neighbour in ["agg1", "agg2"] {
        actuator.apply(&cut(neighbour)).unwrap();
    }
    wait_for("the border withdraws the pool", || by("net", POOL) == ["int2"]);
    reached().unwrap();
    for neighbour in ["agg1", "agg2"] {
        actuator.repair(&cut(neighbour)).unwrap();
    }
    wait_for("and announces it again", || by("net", POOL) == ["int1", "int2"]);
    // Links that go away for less than any timer: everything comes back.
    for _ in 0..3 {
        for neighbour in ["agg1", "agg2"] {
            actuator.apply(&cut(neighbour)).unwrap();
        }
        for neighbour in ["agg1", "agg2"] {
            actuator.repair(&cut(neighbour)).unwrap();
        }
    }
    if !become_equal(&tables, &before, Duration::from_secs(5)) {
        // FRR's bgpd may keep a metric of in between where links flap faster than it computes (its issue 14895): one border too few is
        // used until a link of that switch changes the next time, for as long as `bgpd` needs to see it.
        for (neighbour, metrics) in ["agg1", "agg2"].into_iter().zip(&metrics) {
            actuator.apply(&cut(neighbour)).unwrap();
            wait_for("bgpd has noticed", || metrics_to_outside(&lab, neighbour) != *metrics);
            actuator.repair(&cut(neighbour)).unwrap();
            wait_for("bgpd is where it was", || metrics_to_outside(&lab, neighbour) == *metrics);
        }
        eprintln!("bgpd kept a metric of a link that was away, and was shown another change");
    }
    assert!(become_equal(&tables, &before, PATIENCE), "{:?} are to be those of before, {before:?}", tables());
    assert!(lab.state.processes.iter().any(|process| process.node == "net" && process.daemon == "bfdd"));
}

#[test]
fn an_outside_needs_an_overlay_with_routes() {
    if !can_run() {
        return;
    }
    let scenario = Scenario { overlay: Overlay::BRIDGE, ..internet() };
    let name = lab_name("of");
    let error = up(&scenario, &options(&name), &Quiet).unwrap_err().to_string();
    assert!(error.contains("has an outside, which is reached by routes; choose --overlay vl2"), "{error}");
    assert!(!home::lab_names().contains(&name));
}
