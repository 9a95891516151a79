//! A real path for agents: server A - ToR 1 - Intermediate - ToR 2 - server B, five namespaces, static routes, the
//! shipped eBPF programs on the switches. The directory server listens at ToR 1.
#![allow(dead_code, unreachable_pub)]

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, Tier};
use weft_node::NodeError;
use weft_node::agent::{self, AgentConfig, AgentStatus, status};
use weft_node::client::AdminClient;
use weft_node::directory::DirectoryConfig;

use crate::common::{ANYCAST, Daemon, derived_key, loopback_config, mapping, start, wait_until};

pub const AA: [Ipv4Addr; 2] = [Ipv4Addr::new(20, 0, 0, 1), Ipv4Addr::new(20, 0, 0, 2)];
pub const TOR_LA: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)];
const GATEWAY_MAC: &str = "02:56:4c:32:00:01";

/// A namespace `weft-node-<pid>-<test>-<name>` that ends with this value.
pub struct Namespace(pub String);

impl Namespace {
    fn new(test: &str, name: &str) -> Self {
        let namespace = Self(format!("weft-node-{}-{test}-{name}", std::process::id()));
        run(&["ip", "netns", "add", &namespace.0]);
        namespace.ip("link set lo up");
        namespace
    }

    pub fn ip(&self, arguments: &str) {
        let mut command = vec!["ip", "-n", &self.0];
        command.extend(arguments.split_whitespace());
        run(&command);
    }

    /// A command inside. Unlike with `ip netns exec`, mounts stay as they are.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.0)).arg(program);
        command
    }

    /// Moves the calling thread inside for good.
    pub fn enter(name: &str) {
        let file = File::open(format!("/run/netns/{name}")).expect("the namespace exists");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may enter it");
    }

    /// Runs `work` on a thread inside.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            Self::enter(&self.0);
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn sysctl(&self, key: &str, value: &str) {
        self.within(|| std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value)).expect("the sysctl exists");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It may be gone.
        let _ = Command::new("ip").args(["netns", "del", &self.0]).stderr(Stdio::null()).status();
    }
}

pub fn run(command: &[&str]) {
    let output = Command::new(command[0]).args(&command[1..]).output().expect("the program is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn veth(a: &Namespace, a_name: &str, b: &Namespace, b_name: &str) {
    a.ip(&format!("link add {a_name} mtu 1600 type veth peer name {b_name} mtu 1600 netns {}", b.0));
    a.ip(&format!("link set {a_name} up"));
    b.ip(&format!("link set {b_name} up"));
}

/// The network, its switches at work, and a directory server that knows both AAs.
pub struct Bed {
    pub servers: [Namespace; 2],
    pub tors: [Namespace; 2],
    pub intermediate: Namespace,
    /// Behind ToR 1 at port `host2`, with the AA of B, and without a route to it.
    pub third: Option<Namespace>,
    pub admin: AdminClient,
    pub directory: DirectoryConfig,
    pub dir: tempfile::TempDir,
    _directory: Daemon,
    _switches: Vec<SwitchDatapath>,
}

impl Bed {
    /// `None` without the right to namespaces and eBPF.
    pub fn new(test: &str) -> Option<Self> {
        Self::build(test, None)
    }

    /// One where an AA can move: with a third server, and the ToRs' data paths pinned below `pins`.
    pub fn for_migration(test: &str, pins: &Path) -> Option<Self> {
        Self::build(test, Some(pins))
    }

    fn build(test: &str, pins: Option<&Path>) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let node = |name: &str| Namespace::new(test, name);
        let (servers, tors, intermediate) = ([node("a"), node("b")], [node("t1"), node("t2")], node("i"));
        for switch in tors.iter().chain([&intermediate]) {
            for (key, value) in [("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")] {
                switch.sysctl(key, value);
            }
        }
        for k in 0..2 {
            wire(k, &servers[k], &tors[k], &intermediate);
        }
        intermediate.ip(&format!("addr add {ANYCAST}/32 dev lo"));
        let third = pins.map(|_| node("c"));
        if let Some(third) = &third {
            wire_third(third, &tors[0]);
        }
        let switches = attach_switches(&tors, &intermediate, pins);
        let dir = tempfile::tempdir().unwrap();
        let directory = DirectoryConfig {
            listen: SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 1), 5300),
            ..loopback_config(dir.path())
        };
        let (daemon, mut admin) = tors[0].within(|| start(&directory));
        admin.set_many(vec![mapping(AA[0], 1), mapping(AA[1], 2)]).unwrap();
        Some(Self {
            servers,
            tors,
            intermediate,
            third,
            admin,
            directory,
            dir,
            _directory: daemon,
            _switches: switches,
        })
    }

    /// The configuration of server `k`'s agent.
    pub fn config(&self, k: usize) -> AgentConfig {
        AgentConfig {
            aa: AA[k],
            la: Ipv4Addr::new(10, 64, k as u8, 2),
            own_tor_la: TOR_LA[k],
            gateway_mac: GATEWAY_MAC.to_owned(),
            underlay_mtu: 1600,
            directory_servers: vec![self.directory.listen],
            key_file: Some(derived_key(self.dir.path(), 0, Ipv4Addr::new(10, 64, k as u8, 2))),
            pin_dir: None,
            socket: self.socket(k),
            ..AgentConfig::example()
        }
    }

    pub fn socket(&self, k: usize) -> PathBuf {
        self.dir.path().join(format!("agent{k}.sock"))
    }

    /// Starts server `k`'s agent and waits until it is ready.
    pub fn agent(&self, k: usize, config: AgentConfig) -> Daemon {
        self.agent_of(k, move || Ok(config.clone()))
    }

    /// The same with settings that may be others when they are read again.
    pub fn agent_of(&self, k: usize, load: impl Fn() -> Result<AgentConfig, NodeError> + Send + 'static) -> Daemon {
        let namespace = self.servers[k].0.clone();
        let daemon = Daemon::spawn(move |stop| {
            Namespace::enter(&namespace);
            agent::run(&load, stop)
        });
        wait_until("the agent is ready", || {
            assert!(!daemon.ended(), "the agent ended");
            status::read(self.socket(k)).is_ok()
        });
        daemon
    }

    pub fn status(&self, k: usize) -> AgentStatus {
        status::read(self.socket(k)).unwrap()
    }

    /// Pings from A to B; returns the program's output.
    pub fn ping(&self, arguments: &str) -> String {
        let mut command = self.servers[0].command("ping");
        command.args(arguments.split_whitespace()).arg(AA[1].to_string());
        let output = command.output().expect("ping is installed");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }
}

fn wire(k: usize, server: &Namespace, tor: &Namespace, intermediate: &Namespace) {
    veth(tor, "fabric", intermediate, &format!("tor{k}"));
    veth(server, "eth0", tor, "host");
    tor.ip(&format!("link set host address {GATEWAY_MAC}"));
    tor.ip(&format!("addr add 10.64.{k}.1/24 dev host"));
    tor.ip(&format!("addr add {}/32 dev lo", TOR_LA[k]));
    tor.ip(&format!("addr add 10.128.0.{}/31 dev fabric", 2 * k));
    tor.ip(&format!("route add 10.0.0.0/8 via 10.128.0.{}", 2 * k + 1));
    tor.ip(&format!("route add {}/32 dev host", AA[k]));
    intermediate.ip(&format!("addr add 10.128.0.{}/31 dev tor{k}", 2 * k + 1));
    for la in [format!("{}/32", TOR_LA[k]), format!("10.64.{k}.0/24")] {
        intermediate.ip(&format!("route add {la} via 10.128.0.{}", 2 * k));
    }
    server.ip("link set eth0 mtu 1500");
    server.ip(&format!("addr add {}/8 dev eth0", AA[k]));
    server.ip(&format!("addr add 10.64.{k}.2/24 dev eth0"));
    server.ip(&format!("route add 10.0.0.0/8 via 10.64.{k}.1"));
    for key in ["conf/all/rp_filter", "conf/default/rp_filter"] {
        server.sysctl(key, "0");
    }
}

fn wire_third(server: &Namespace, tor: &Namespace) {
    veth(server, "eth0", tor, "host2");
    tor.ip(&format!("link set host2 address {GATEWAY_MAC}"));
    tor.ip("addr add 10.64.2.1/24 dev host2");
    server.ip(&format!("addr add {}/8 dev eth0", AA[1]));
    for key in ["conf/all/rp_filter", "conf/default/rp_filter"] {
        server.sysctl(key, "0");
    }
}

fn attach_switches(tors: &[Namespace; 2], intermediate: &Namespace, pins: Option<&Path>) -> Vec<SwitchDatapath> {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mut switches = Vec::new();
    for (k, (tor, la)) in tors.iter().zip(TOR_LA).enumerate() {
        let config = SwitchConfig {
            ports: names(&["fabric"]),
            host_ports: if pins.is_some() && k == 0 { names(&["host", "host2"]) } else { names(&["host"]) },
            own_las: vec![la],
            tier: Tier::Tor,
            pin_dir: pins.map(|pins| pins.join(format!("tor{k}"))),
        };
        switches.push(tor.within(|| SwitchDatapath::attach(&config)).unwrap());
    }
    let config = SwitchConfig {
        ports: names(&["tor0", "tor1"]),
        host_ports: Vec::new(),
        own_las: vec![ANYCAST],
        tier: Tier::Intermediate,
        pin_dir: None,
    };
    switches.push(intermediate.within(|| SwitchDatapath::attach(&config)).unwrap());
    switches
}
