//! Many agents against real servers: the sizes of `weft bench directory fabric` at a hundredth, and what fails on the way.

#[path = "../../node/tests/common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::*;
use weft_node::client::AdminClient;
use weft_node::directory::DirectoryConfig;
use weft_node::directory::protocol::MappingToSet;
use weft_node::stop::Stop;
use weft_testbed::load::agents::{self, AGENTS_MAX, Agents, AgentsLoad, Moved};
use weft_testbed::load::{Access, LookupLoad, Pace};
use weft_wire::directory::Secret;

const FIRST: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
const AGENTS: u32 = 500;
const AAS: u32 = 2000;
const AAS_EACH: u32 = AAS / AGENTS;
/// ToRs that are addresses of loopback.
const TORS: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 16, 0, 1), Ipv4Addr::new(127, 16, 0, 2)];

/// A directory server that has every mapping, and its files.
struct Server {
    daemon: Option<Daemon>,
    admin: AdminClient,
    config: DirectoryConfig,
    address: SocketAddrV4,
    _dir: tempfile::TempDir,
}

impl Server {
    fn start(agent_port: u16) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = DirectoryConfig { agent_port, lookup_threads: Some(1), ..loopback_config(dir.path()) };
        let (daemon, mut admin) = start(&config);
        admin.set_many((0..AAS).map(|number| behind(TORS[0], number)).collect()).unwrap();
        let address = admin.status().unwrap().listen;
        let config = DirectoryConfig { listen: address, ..config };
        Self { daemon: Some(daemon), admin, config, address, _dir: dir }
    }

    fn end(&mut self) {
        self.daemon.take().expect("it runs").finish().unwrap();
    }

    fn start_again(&mut self) {
        let (daemon, admin) = start(&self.config);
        (self.daemon, self.admin) = (Some(daemon), admin);
    }
}

fn aa(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FIRST) + number)
}

/// The mapping of the AA with this number, of the server whose it is.
fn behind(tor_la: Ipv4Addr, number: u32) -> MappingToSet {
    let host_la = Some(Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 64, 0, 1)) + number / AAS_EACH));
    MappingToSet { aa: aa(number), tor_la, host_la, ..mapping(aa(number), 1) }
}

fn load(servers: &[&Server], port: u16) -> AgentsLoad {
    AgentsLoad {
        servers: servers.iter().map(|server| server.address).collect(),
        secret: Secret::from_hex(KEY).unwrap(),
        key_id: 0,
        agents: AGENTS,
        first_la: Ipv4Addr::new(127, 64, 0, 1),
        port,
        first_aa: FIRST,
        aas: AAS,
        questions: 10,
        cpu: None,
        seed: 7,
    }
}

fn never() -> Stop {
    Stop::manual().unwrap()
}

#[test]
fn all_ask_at_once_each_as_itself_and_are_answered() {
    let port = agents::free_port().unwrap();
    let mut servers = [Server::start(port), Server::start(port)];
    let mut agents = Agents::new(&load(&servers.each_ref(), port)).unwrap();
    for round in 1..=2 {
        let report = agents.ask_at_once(&never()).unwrap();
        assert_eq!((report.agents, report.answered, report.dropped, report.given_up), (500, 500, 0, 0));
        assert_eq!((report.since_instant_ns.len(), report.since_asked_ns.len()), (500, 500));
        assert!(report.since_asked_ns.max() <= report.since_instant_ns.max() && report.last_asked_ns > 0);
        // Each question goes to both, and again only on a machine that is late.
        assert!(report.datagrams >= 1000 && report.unsent == 0);
        assert!(report.repeated > 0 || report.datagrams == 1000);
        for server in &mut servers {
            wait_until("every question has come", || {
                server.admin.status().unwrap().lookups["datagrams"] >= 500 * round
            });
            let status = server.admin.status().unwrap();
            assert_eq!(status.lookups["questions"], status.lookups["datagrams"] * 10);
            assert!(status.ignored.values().all(|count| *count == 0), "{:?}", status.ignored);
        }
    }
}

#[test]
fn those_who_asked_dead_servers_ask_the_living_one_by_their_own_rules() {
    let port = agents::free_port().unwrap();
    let mut servers = [Server::start(port), Server::start(port), Server::start(port)];
    let mut agents = Agents::new(&load(&servers.each_ref(), port)).unwrap();
    assert_eq!(agents.ask_at_once(&never()).unwrap().answered, 500);
    servers[1..].iter_mut().for_each(Server::end);
    let report = agents.ask_at_once(&never()).unwrap();
    assert_eq!((report.answered, report.dropped), (500, 0));
    // A third of them asked the two that are dead, and each of these ten questions again after 20 ms.
    assert!((1000..4000).contains(&report.repeated), "{}", report.repeated);
    assert!(report.since_asked_ns.max() > 20_000_000);
    servers[0].end();
    // After two seconds.
    let report = agents.ask_at_once(&never()).unwrap();
    assert_eq!((report.answered, report.dropped, report.given_up), (0, 5000, 5000));
}

#[test]
fn a_stream_is_answered_while_one_of_two_servers_is_killed_and_starts_again() {
    let mut servers = [Server::start(1), Server::start(1)];
    let access = Access { key: Secret::from_hex(KEY).unwrap().derive(0, Ipv4Addr::LOCALHOST), key_id: 0, service: 0 };
    let load = LookupLoad {
        servers: servers.iter().map(|server| server.address).collect(),
        fanout: 2,
        pace: Pace::Rate(2000.0),
        duration: PATIENCE,
        timeout: PATIENCE,
        retry: Some(Duration::from_millis(20)),
        ..LookupLoad::of(servers[0].address, access, FIRST, AAS)
    };
    let stop = never();
    let (report, alone) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| load.run(&stop).unwrap());
        let [stays, goes] = &mut servers;
        let mut answered = || stays.admin.status().unwrap().lookups["answered"];
        wait_until("questions come", || answered() > 100);
        goes.end();
        let before = answered();
        wait_until("questions go on", || answered() > before + 100);
        goes.start_again();
        wait_until("it has all and is asked", || {
            let status = goes.admin.status().unwrap();
            status.mappings == AAS as usize && status.lookups["answered"] > 0
        });
        stop.request();
        (asking.join().unwrap(), answered() - before)
    });
    assert!(alone > 100);
    assert_eq!((report.failed, report.skipped, report.answered), (0, 0, report.sent));
    assert_eq!(report.statuses.keys().copied().collect::<Vec<_>>(), ["ok"]);
}

#[test]
fn what_only_comes_back_is_counted() {
    let port = agents::free_port().unwrap();
    let server = Server::start(port);
    let echo = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    echo.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let SocketAddr::V4(address) = echo.local_addr().unwrap() else { panic!("IPv4") };
    let mut agents = Agents::new(&load(&[&server], port)).unwrap();
    let over = AtomicBool::new(false);
    let (report, senders) = std::thread::scope(|scope| {
        let back = scope.spawn(|| {
            let (mut senders, mut buffer) = (BTreeSet::new(), [0; 512]);
            while !over.load(Relaxed) {
                if let Ok((length, from)) = echo.recv_from(&mut buffer) {
                    echo.send_to(&buffer[..length], from).unwrap();
                    senders.insert(from);
                }
            }
            senders
        });
        let report = agents.bounce(&[address], &never()).unwrap();
        over.store(true, Relaxed);
        (report, back.join().unwrap())
    });
    // What the echo's queue had no room for is lost; each that was not came from an LA of its own.
    assert_eq!((report.sent, report.back), (500, senders.len() as u64));
    assert!(report.back > 50 && report.since_instant_ns.len() == report.back);
}

#[test]
fn stale_mappings_are_corrected_once_the_directory_knows_better() {
    let port = agents::free_port().unwrap();
    let mut server = Server::start(port);
    let mut agents = Agents::new(&load(&[&server], port)).unwrap();
    // The first four servers move; the twenty after them talk to three of their AAs each.
    let moving = 4 * AAS_EACH;
    let silent = std::iter::repeat_n(Vec::new(), 4);
    let talks_to = silent.chain((0..20).map(|k| (0..3).map(|n| aa((k * 3 + n) % moving)).collect())).collect();
    let moved = Moved { from_tor: TORS[0], to_tor: TORS[1], talks_to };
    assert_eq!(agents.learn(&moved, &never()).unwrap(), 60);

    // What has not moved is not corrected, whatever a ToR says.
    let report = agents.use_stale(&moved, Instant::now(), Duration::from_millis(100), &never()).unwrap();
    assert_eq!((report.stale, report.corrected), (60, 0));
    assert!(report.astray >= 60 && report.reported >= 60);

    let start = Instant::now();
    server.admin.set_many((0..moving).map(|number| behind(TORS[1], number)).collect()).unwrap();
    let report = agents.use_stale(&moved, start, PATIENCE, &never()).unwrap();
    assert_eq!((report.stale, report.corrected, report.corrected_ns.len()), (60, 60, 60));
    assert!(server.admin.status().unwrap().corrections["corrected"] >= 60);
}

#[test]
fn agents_that_cannot_be_are_refused_in_one_line() {
    let port = agents::free_port().unwrap();
    let server = Server::start(port);
    let good = load(&[&server], port);
    for (bad, says) in [
        (AgentsLoad { agents: 0, ..good.clone() }, "agents: 0 is not between 1 and"),
        (AgentsLoad { agents: AGENTS_MAX + 1, aas: u32::MAX, ..good.clone() }, "agents: 4194305 is not between 1 and"),
        (AgentsLoad { aas: 499, ..good.clone() }, "aas: 499 are fewer than the 500 agents"),
        (AgentsLoad { questions: 0, ..good.clone() }, "questions: 0 is not between 1 and 40"),
        (AgentsLoad { questions: 41, ..good.clone() }, "questions: 41"),
        (AgentsLoad { servers: Vec::new(), ..good.clone() }, "servers: 0"),
        (AgentsLoad { port: server.address.port(), ..good.clone() }, "binding the agents' UDP port"),
    ] {
        let Err(error) = Agents::new(&bad) else { panic!("{bad:?}") };
        let error = error.to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error} does not say: {says}");
    }
    let error = agents::check_room(u32::MAX).unwrap_err().to_string();
    assert!(error.contains("MB of memory") && error.ends_with("ask for fewer"), "{error}");
}
