//! Four RBridges in a square, S1 - S2 - S3 - S4 - S1: between opposite corners there are two equal paths. Hosts a at S1,
//! b at S3 and c at S2 in VLAN 10; host d at S3 in VLAN 20.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use weft_datapath::offload::{self, Offload};
use weft_node::rbridge::protocol::{Answer, Request, RouteRow, Shown, What};
use weft_node::rbridge::{self, GatewayHost, GatewayTable, GatewayVlan, PortTable, RBridgeConfig, TimingTable};
use weft_node::socket::{self, Reloaded};
use weft_node::{DaemonKind, NodeError};
use weft_wire::ethernet::MacAddress;

use crate::common::{Daemon, example_program, wait_until};
use crate::net::{Namespace, Process, link};

/// Neighbours of each corner.
const NEIGHBORS: [[usize; 2]; 4] = [[2, 4], [1, 3], [2, 4], [3, 1]];
/// Of each host: name, corner, VLAN, address.
const HOSTS: [(&str, usize, u16, [u8; 4]); 4] = [
    ("a", 1, 10, [10, 0, 10, 1]),
    ("b", 3, 10, [10, 0, 10, 2]),
    ("c", 2, 10, [10, 0, 10, 3]),
    ("d", 3, 20, [10, 0, 20, 1]),
];
pub(crate) const GATEWAY: MacAddress = MacAddress([0x02, 0x54, 0x52, 0, 0, 0xfe]);

/// The network; RBridges are started one by one.
pub(crate) struct Square {
    corners: Vec<Namespace>,
    hosts: Vec<Namespace>,
    pub(crate) dir: tempfile::TempDir,
}

pub(crate) fn mac(host: usize) -> MacAddress {
    MacAddress([0x02, 0x77, 0, 0, 0, host as u8])
}

pub(crate) fn address(host: usize) -> Ipv4Addr {
    HOSTS[host].3.into()
}

/// Nickname of a corner; S4 has none configured.
pub(crate) const NICKNAME: [u16; 3] = [0x101, 0x102, 0x103];

impl Square {
    /// `None` where these tests cannot run.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let node = |name: &str| {
            let namespace = Namespace::new(test, name);
            // Else frames would be about that nobody sent on purpose.
            let quiet = ["all", "default"].map(|scope| format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"));
            namespace.within(|| quiet.iter().for_each(|path| drop(std::fs::write(path, "1"))));
            namespace
        };
        let square = Self {
            corners: (1..=4).map(|corner| node(&format!("s{corner}"))).collect(),
            hosts: HOSTS.iter().map(|host| node(host.0)).collect(),
            dir: tempfile::tempdir().unwrap(),
        };
        for (one, other) in [(1, 2), (2, 3), (3, 4), (4, 1)] {
            square.connect(one, other);
        }
        for (host, (name, corner, _, _)) in HOSTS.into_iter().enumerate() {
            square.connect_host(host, name, corner);
        }
        Some(square)
    }

    pub(crate) fn corner(&self, number: usize) -> &Namespace {
        &self.corners[number - 1]
    }

    pub(crate) fn host(&self, host: usize) -> &Namespace {
        &self.hosts[host]
    }

    /// A cable between two corners.
    pub(crate) fn connect(&self, one: usize, other: usize) {
        link((self.corner(one), &format!("s{other}")), (self.corner(other), &format!("s{one}")), 1600);
    }

    fn connect_host(&self, host: usize, name: &str, corner: usize) {
        let namespace = &self.hosts[host];
        link((self.corner(corner), name), (namespace, "eth0"), 1500);
        namespace.ip(&format!("link set dev eth0 address {}", mac(host)));
        namespace.ip(&format!("addr add {}/24 dev eth0", address(host)));
        let [first, second, third, _] = address(host).octets();
        namespace.ip(&format!("route add default via {first}.{second}.{third}.254"));
        namespace.within(|| {
            for what in [Offload::TxChecksum, Offload::Tso, Offload::Gso] {
                offload::set("eth0", what, false).expect("veth can do without");
            }
            // So that the host's interface polls and takes what is redirected to it.
            offload::set("eth0", Offload::Gro, true).expect("veth can join frames");
        });
    }

    /// The configuration of a corner, with Hellos that make a silent neighbour known within a second.
    pub(crate) fn config(&self, corner: usize) -> RBridgeConfig {
        let mut config = RBridgeConfig::new(format!("s{corner}"));
        config.system_id = Some(format!("0200.0000.000{corner}"));
        config.nickname = NICKNAME.get(corner - 1).copied();
        config.socket = self.socket(corner);
        config.timing = TimingTable {
            hello_ms: Some(300),
            nickname_wait_ms: Some(1000),
            nickname_settle_ms: Some(100),
            ..TimingTable::default()
        };
        config.port = NEIGHBORS[corner - 1].map(|neighbor| PortTable::p2p(format!("s{neighbor}"))).into();
        let hosts = HOSTS.iter().filter(|host| host.1 == corner);
        config.port.extend(hosts.map(|(name, _, vlan, _)| PortTable::access(*name, *vlan)));
        config
    }

    /// A gateway between VLAN 10 and 20 that knows all hosts.
    pub(crate) fn gateway() -> GatewayTable {
        let vlan = |vlan: u16| GatewayVlan { vlan, address: format!("10.0.{vlan}.254/24") };
        let host = |host: usize| {
            let (_, corner, vlan, _) = HOSTS[host];
            let nickname = NICKNAME.get(corner - 1).copied();
            GatewayHost { address: address(host), mac: mac(host).to_string(), vlan, nickname }
        };
        GatewayTable { mac: GATEWAY.to_string(), vlan: vec![vlan(10), vlan(20)], host: (0..4).map(host).collect() }
    }

    pub(crate) fn socket(&self, corner: usize) -> PathBuf {
        self.dir.path().join(format!("s{corner}.sock"))
    }

    /// Starts a corner in a thread.
    pub(crate) fn start(&self, config: &RBridgeConfig, corner: usize) -> Running {
        let theirs = config.clone();
        self.start_with(config, corner, move || Ok(theirs.clone()))
    }

    /// The same with settings that may be others when they are read again.
    pub(crate) fn start_with(
        &self,
        config: &RBridgeConfig,
        corner: usize,
        load: impl Fn() -> Result<RBridgeConfig, NodeError> + Send + 'static,
    ) -> Running {
        Running::start(self.corner(corner), config, load)
    }

    /// Starts a corner as a process.
    pub(crate) fn spawn(&self, config: &RBridgeConfig, corner: usize) -> Process {
        spawn(self.corner(corner), config)
    }

    /// Starts all four, and waits until everybody knows the way to everybody.
    pub(crate) fn start_all(&self) -> Vec<Running> {
        let all: Vec<Running> = (1..=4).map(|corner| self.start(&self.config(corner), corner)).collect();
        wait_for_routes(&all);
        all
    }
}

/// Starts an RBridge as a process.
pub(crate) fn spawn(namespace: &Namespace, config: &RBridgeConfig) -> Process {
    let file = config.socket.with_extension("toml");
    std::fs::write(&file, weft_node::settings_text(&config)).unwrap();
    let program = example_program("rbridge-daemon");
    let mut command = namespace.command(program.to_str().expect("an ordinary path"));
    let process = Process::start(command.arg(file));
    let ask = || rbridge::ask(&config.socket, &Request::Show(What::Counters));
    wait_until("the RBridge is ready", || ask().is_ok());
    process
}

/// Waits until everybody knows the way to everybody by all ports, and the tree of S4: it has the highest system ID, and
/// itself is the last to know that its nickname makes it the root.
pub(crate) fn wait_for_routes(all: &[Running]) {
    wait_until("all routes are there", || {
        all.iter().all(|running| {
            let routes = running.routes();
            let is_whole = routes.len() == 3 && routes.values().map(|route| route.hops.len()).sum::<usize>() == 4;
            is_whole && running.root().as_deref() == Some("s4")
        })
    });
}

/// An RBridge in a thread.
pub(crate) struct Running {
    daemon: Option<Daemon>,
    socket: PathBuf,
}

impl Running {
    /// Starts an RBridge in a thread, with settings that may be others when they are read again.
    pub(crate) fn start(
        namespace: &Namespace,
        config: &RBridgeConfig,
        load: impl Fn() -> Result<RBridgeConfig, NodeError> + Send + 'static,
    ) -> Self {
        let namespace = namespace.0.clone();
        let daemon = Daemon::spawn(move |stop| {
            Namespace::enter(&namespace);
            rbridge::run(&load, stop)
        });
        let mut running = Self { daemon: Some(daemon), socket: config.socket.clone() };
        wait_until("the RBridge is ready", || {
            if running.daemon.as_ref().is_some_and(Daemon::ended) {
                panic!("the RBridge ended: {:?}", running.daemon.take().map(Daemon::finish));
            }
            running.try_ask(Request::Show(What::Counters)).is_ok()
        });
        running
    }

    pub(crate) fn try_ask(&self, request: Request) -> Result<Answer, NodeError> {
        rbridge::ask(&self.socket, &request)
    }

    pub(crate) fn show(&self, what: What) -> Shown {
        socket::show(DaemonKind::Rbridge, &self.socket, what).expect("it is no bad request")
    }

    pub(crate) fn reload(&self) -> Result<Reloaded, NodeError> {
        socket::reload(DaemonKind::Rbridge, &self.socket)
    }

    /// Routes by host name of the egress.
    pub(crate) fn routes(&self) -> BTreeMap<String, RouteRow> {
        match self.show(What::Route) {
            Shown::Routes(rows) => rows.into_iter().map(|row| (row.hostname.clone(), row)).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Host name of the root of the tree that it sends on.
    fn root(&self) -> Option<String> {
        match self.show(What::Tree) {
            Shown::Trees(rows) => rows.into_iter().find(|row| row.used).map(|row| row.hostname),
            other => panic!("{other:?}"),
        }
    }

    /// State of the adjacency on each interface.
    pub(crate) fn states(&self) -> BTreeMap<String, String> {
        match self.show(What::Adjacency) {
            Shown::Adjacencies(rows) => rows.into_iter().map(|row| (row.interface, row.state)).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// A counter of a group.
    pub(crate) fn count(&self, group: &str, name: &str) -> u64 {
        match self.show(What::Counters) {
            Shown::Counters(groups) => groups[group][name],
            other => panic!("{other:?}"),
        }
    }

    /// A counter of all ports together.
    pub(crate) fn count_at_ports(&self, name: &str) -> u64 {
        match self.show(What::Counters) {
            Shown::Counters(groups) => {
                let ports = groups.iter().filter(|(group, _)| group.starts_with("port "));
                ports.map(|(_, counters)| counters[name]).sum()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Stops it as SIGTERM does.
    pub(crate) fn finish(mut self) {
        self.daemon.take().expect("it runs").finish().expect("it ends well");
    }

    /// Stops it with its data path, as `weft stop rbridge` does.
    pub(crate) fn stop(mut self) {
        assert_eq!(self.try_ask(Request::Stop).unwrap(), Answer::Done);
        let daemon = self.daemon.take().expect("it runs");
        wait_until("the RBridge ends", || daemon.ended());
        daemon.finish().expect("it ends well");
    }
}
