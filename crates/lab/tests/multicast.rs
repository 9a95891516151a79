//! Broadcast by multicast of the underlay (VL2 4.2.3): `pimd` on every switch, the agents' groups, real sockets, and a real
//! mDNS responder and resolver.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::hosts::{Running, SETTLE, four_servers, on, program, run, seen_during, start};
use common::{Gone, PATIENCE, Quiet, can_run, lab_name, options, testbed, wait_for};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use weft_lab::traffic::FaultActuator;
use weft_lab::{Lab, LabActuator, broadcast_amiss, up};
use weft_scenario::engine::{Overlay, Scenario};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::topology::{Broadcast, Delivery, Service};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};

const PORT: u16 = 4000;
const EVERYBODY: [Ipv4Addr; 3] = [Ipv4Addr::BROADCAST, Ipv4Addr::new(20, 255, 255, 255), Ipv4Addr::new(239, 1, 2, 3)];
/// How often each server says something to each of them.
const ROUNDS: u16 = 50;

/// Two services of four servers each, one below every ToR.
fn two_services() -> Scenario {
    let mut scenario = testbed([2, 2, 2, 2], Overlay::Vl2);
    let servers: Vec<_> = scenario.fabric.servers().collect();
    let every_other = |first: usize| servers.iter().copied().skip(first).step_by(2).collect();
    let services = vec![
        Service { name: "web".into(), servers: every_other(0) },
        Service { name: "data".into(), servers: every_other(1) },
    ];
    let broadcast = Broadcast { delivery: Delivery::Group, limit: BitsPerSec(1_000_000_000), burst: Bytes(1_000_000) };
    scenario.fabric = scenario.fabric.with_services(services, Some(broadcast)).unwrap();
    scenario
}

/// A socket of a server that hears all of [`EVERYBODY`], never waits, and has room for all that a test says.
fn listener(lab: &Lab, server: &str) -> UdpSocket {
    let aa = lab.state.node(server).unwrap().aa.unwrap();
    let socket = on(lab, server, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap());
    set_socket_recv_buffer_size_force(&socket, 16 << 20).unwrap();
    socket.join_multicast_v4(&EVERYBODY[2], &aa).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// A socket that names neither its address nor its interface, and does not hear itself.
fn sender(lab: &Lab, server: &str) -> UdpSocket {
    let socket = on(lab, server, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    socket.set_broadcast(true).unwrap();
    socket.set_multicast_loop_v4(false).unwrap();
    socket
}

/// What one server says, different every time.
fn text(server: &str, destination: Ipv4Addr, number: u16) -> Vec<u8> {
    let mut text = format!("{server} {destination} {number} ").into_bytes();
    text.extend((0..1000u16).map(|place| (place ^ number) as u8));
    text
}

/// How often a socket has heard each text, and from whom.
type Heard = BTreeMap<(String, Vec<u8>), u32>;

/// Adds what a socket has heard since the last time.
fn listen(socket: &UdpSocket, heard: &mut Heard) {
    let mut buffer = [0; 2048];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        *heard.entry((from.ip().to_string(), buffer[..length].to_vec())).or_default() += 1;
    }
}

/// Adds what each server's socket has heard since the last time.
fn listen_all<'a>(listeners: &BTreeMap<&'a str, UdpSocket>, heard: &mut BTreeMap<&'a str, Heard>) {
    listeners.iter().for_each(|(server, socket)| listen(socket, heard.entry(server).or_default()));
}

#[test]
fn everybody_in_the_service_hears_everything_once_and_nobody_else_anything() {
    if !can_run() {
        return;
    }
    let name = lab_name("mg");
    let _gone = Gone(name.clone());
    let lab = up(&two_services(), &options(&name), &Quiet).unwrap();
    assert_eq!(broadcast_amiss(&lab).unwrap(), None);
    let fabric = &lab.scenario.fabric;
    let servers: Vec<&str> = fabric.servers().map(|server| fabric.node(server).name.as_str()).collect();
    let listeners: BTreeMap<&str, UdpSocket> = servers.iter().map(|server| (*server, listener(&lab, server))).collect();
    let mut heard: BTreeMap<&str, Heard> = servers.iter().map(|server| (*server, Heard::new())).collect();
    let aa = |server: &str| lab.state.node(server).unwrap().aa.unwrap().to_string();
    // The first packet of a source finds its tree ready, so every one is expected.
    let web = ["s1", "s3", "s5", "s7"];
    assert_eq!(servers, ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"]);
    for server in web {
        let socket = sender(&lab, server);
        for number in 0..ROUNDS {
            for destination in EVERYBODY {
                socket.send_to(&text(server, destination, number), (destination, PORT)).unwrap();
            }
        }
        let (from, said) = (aa(server), usize::from(ROUNDS) * EVERYBODY.len());
        wait_for("everybody hears everything", || {
            listen_all(&listeners, &mut heard);
            let from_it = |other: &&str| heard[*other].keys().filter(|(by, _)| *by == from).count();
            web.iter().filter(|other| **other != server).all(|other| from_it(other) == said)
        });
    }
    std::thread::sleep(SETTLE);
    listen_all(&listeners, &mut heard);
    for server in servers {
        let others = web.iter().filter(|other| **other != server && web.contains(&server));
        let said = |other: &str| {
            let (from, other) = (aa(other), other.to_owned());
            let texts = (0..ROUNDS).flat_map(move |number| {
                let other = other.clone();
                EVERYBODY.map(move |to| text(&other, to, number))
            });
            texts.map(move |text| ((from.clone(), text), 1))
        };
        let expected: Heard = others.flat_map(|other| said(other)).collect();
        // A server hears its own broadcast, by its own stack, as on any host.
        let mut actual = heard.remove(server).unwrap_or_default();
        actual.retain(|(from, _), _| *from != aa(server));
        assert!(actual == expected, "{server} heard {} texts of {}", actual.len(), expected.len());
    }
}

#[test]
fn what_a_stranger_sends_to_the_group_goes_nowhere() {
    if !can_run() {
        return;
    }
    let name = lab_name("ms");
    let _gone = Gone(name.clone());
    let services = "services: {web: {servers: [s1, s3]}, data: {servers: [s2, s4]}}\n\
                    broadcast: {delivery: group, limit: 10 Mbit/s}\n";
    let lab = up(&four_servers(services), &options(&name), &Quiet).unwrap();
    let state = |server: &str| lab.state.node(server).unwrap();
    let group = Ipv4Addr::new(239, 192, 0, 1);
    let member = listener(&lab, "s3");
    let ports = [("tor1", "s1"), ("tor2", "s3")];
    let seen = seen_during(&lab, &ports, "ip.dst == 239.192.0.1", &["ip.src", "ip.proto"], || {
        // By their LAs they come to the ToR as they are: past the agent, as from a server that has been taken over.
        for server in ["s2", "s4"] {
            let socket = on(&lab, server, || UdpSocket::bind((state(server).la.unwrap(), 0)).unwrap());
            socket.set_multicast_ttl_v4(64).unwrap();
            socket.send_to(b"let me in", (group, PORT)).unwrap();
        }
        sender(&lab, "s1").send_to(b"hello", (Ipv4Addr::BROADCAST, PORT)).unwrap();
        let mut heard = Heard::new();
        wait_for("the member hears", || {
            listen(&member, &mut heard);
            !heard.is_empty()
        });
    });
    let packets: BTreeSet<&str> = seen.iter().map(String::as_str).collect();
    let own = "10.64.0.2,20.0.0.1\t4,17";
    assert_eq!(packets, [own].into(), "only the member's, with its outer header: {seen:?}");
    assert_eq!(seen.len(), 2, "as it enters and as it leaves");
}

/// The switch that a ToR gets a server's broadcast from.
fn upstream(lab: &Lab, tor: &str, server: &str) -> String {
    let (_, routes) = run(lab, tor, Command::new("ip").arg("mroute"));
    let of_server = format!("({},", lab.state.node(server).unwrap().la.unwrap());
    let line = routes.lines().find(|line| line.starts_with(&of_server)).unwrap_or_else(|| panic!("{routes}"));
    line.split_whitespace().skip_while(|word| *word != "Iif:").nth(1).unwrap().to_owned()
}

#[test]
fn a_tree_grows_round_a_switch_that_dies() {
    if !can_run() {
        return;
    }
    let name = lab_name("mf");
    let _gone = Gone(name.clone());
    let services = "services: {web: {servers: [s1, s2, s3]}}\n\
                    broadcast: {delivery: group, limit: 100 Mbit/s, burst: 1 MB}\n";
    let lab = up(&four_servers(services), &options(&name), &Quiet).unwrap();
    let (socket, listener) = (sender(&lab, "s1"), listener(&lab, "s3"));
    let say = |number: u16| {
        let text = text("s1", Ipv4Addr::BROADCAST, number);
        socket.send_to(&text, (Ipv4Addr::BROADCAST, PORT)).unwrap();
        text
    };
    let hears = |number: u16, patience: Duration| {
        let text = say(number);
        let told = Instant::now();
        let mut heard = Heard::new();
        while !heard.keys().any(|(_, heard)| *heard == text) && told.elapsed() < patience {
            listen(&listener, &mut heard);
        }
        heard.into_keys().any(|(_, heard)| heard == text)
    };
    assert!(hears(0, PATIENCE), "before");
    let on_the_tree = upstream(&lab, "tor2", "s1");
    let mut actuator = LabActuator::new(&lab);
    let fault = Fault { at: Nanos(0), lasts: None, kind: FaultKind::SwitchDown { node: on_the_tree.clone() } };
    actuator.apply(&fault).unwrap();
    let mut number = 0;
    wait_for("a new tree", || {
        number += 1;
        hears(number, Duration::from_millis(100))
    });
    assert_ne!(upstream(&lab, "tor2", "s1"), on_the_tree);
    let each_once = |first: u16| {
        let (mut texts, mut heard) = (BTreeSet::new(), Heard::new());
        for number in first..first + 100 {
            texts.insert(say(number));
        }
        wait_for("all of a hundred", || {
            listen(&listener, &mut heard);
            heard.retain(|(_, text), _| texts.contains(text));
            heard.len() == texts.len()
        });
        std::thread::sleep(SETTLE);
        listen(&listener, &mut heard);
        assert!(heard.iter().all(|((_, text), times)| !texts.contains(text) || *times == 1), "some came twice");
    };
    each_once(1000);
    actuator.repair(&fault).unwrap();
    actuator.finish();
    wait_for("whole trees", || broadcast_amiss(&lab).unwrap().is_none());
    each_once(2000);
}

/// avahi on a server, with only what these hosts have, in a `/run` of its own: it wants to be the machine's only one.
struct Avahi {
    _running: Running,
    socket: PathBuf,
}

impl Avahi {
    fn start(lab: &Lab, server: &str, directory: &Path) -> Self {
        let run_directory = directory.join(server);
        fs::create_dir(&run_directory).unwrap();
        let (config, log) = (directory.join(format!("{server}.conf")), directory.join(format!("{server}.log")));
        let text = format!(
            "[server]\nhost-name={server}\nuse-ipv4=yes\nuse-ipv6=no\nenable-dbus=no\nallow-interfaces=eth0\n\
             [publish]\npublish-hinfo=no\npublish-workstation=no\n"
        );
        fs::write(&config, text).unwrap();
        let script = format!(
            "mount -t tmpfs tmpfs /run && mkdir /run/avahi-daemon && mount --bind {} /run/avahi-daemon && \
             exec {} --no-drop-root --no-chroot --no-rlimits -f {}",
            run_directory.display(),
            program("avahi-daemon").display(),
            config.display()
        );
        let output = fs::File::create(&log).unwrap();
        let mut unshared = Command::new("unshare");
        unshared.args(["--mount", "sh", "-c", &script]).stdout(output.try_clone().unwrap()).stderr(output);
        let running = start(lab, server, &mut unshared);
        let says = || fs::read_to_string(&log).unwrap();
        wait_for("the start of avahi", || says().contains("Server startup complete"));
        Self { _running: running, socket: run_directory.join("socket") }
    }

    /// What a program on the server hears that asks it as the resolver library does: `+` and the answer, or why not.
    fn ask(&self, question: &str) -> String {
        let mut socket = UnixStream::connect(&self.socket).unwrap();
        socket.write_all(format!("{question}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }
}

/// What avahi says when nobody has answered a question.
const NOT_FOUND: &str = "Timeout reached";

#[test]
fn names_are_found_inside_the_service_and_not_from_another() {
    if !can_run() {
        return;
    }
    let name = lab_name("mn");
    let _gone = Gone(name.clone());
    let services = "services: {web: {servers: [s1, s3]}, data: {servers: [s2, s4]}}\n\
                    broadcast: {delivery: group, limit: 10 Mbit/s}\n";
    let lab = up(&four_servers(services), &options(&name), &Quiet).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let avahis = ["s1", "s2", "s3", "s4"].map(|server| (server, Avahi::start(&lab, server, directory.path())));
    let asked = |from: &str, question: String| {
        avahis.iter().find(|(server, _)| *server == from).map(|(_, avahi)| avahi.ask(&question)).unwrap()
    };
    let aa = |server: &str| lab.state.node(server).unwrap().aa.unwrap();
    // avahi gives up after five seconds, which a busy machine may need.
    let found = |from: &str, question: String| {
        let mut answer = String::new();
        wait_for(&question, || {
            answer = asked(from, question.clone());
            !answer.contains(NOT_FOUND)
        });
        answer
    };
    for (from, whom) in [("s3", "s1"), ("s1", "s3"), ("s4", "s2"), ("s2", "s4")] {
        let answer = found(from, format!("RESOLVE-HOSTNAME-IPV4 {whom}.local"));
        assert!(answer.starts_with('+') && answer.ends_with(&aa(whom).to_string()), "{from}: {answer}");
        let answer = found(from, format!("RESOLVE-ADDRESS {}", aa(whom)));
        assert!(answer.starts_with('+') && answer.ends_with(&format!("{whom}.local")), "{from}: {answer}");
    }
    for (from, whom) in [("s4", "s1"), ("s3", "s2")] {
        for question in [format!("RESOLVE-HOSTNAME-IPV4 {whom}.local"), format!("RESOLVE-ADDRESS {}", aa(whom))] {
            let answer = asked(from, question.clone());
            assert!(answer.contains(NOT_FOUND), "{from} of another service asks {question}: {answer}");
        }
    }
}
