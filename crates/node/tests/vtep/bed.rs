//! Namespaces for VTEPs: hosts with an underlay between them, VMs behind access ports, and what they send each other.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use weft_node::NodeError;
use weft_node::vtep::protocol::{Answer, FdbRow, Item, Request, Shown, What};
use weft_node::vtep::{self, PortTable, SegmentTable, VniIds, VtepConfig};
use weft_node::{DaemonKind, socket};

use crate::common::{Daemon, wait_until};
use crate::net::{Namespace, link};

/// Addresses of the hosts in the underlay.
pub(crate) const HOST: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];

/// The machine's queues in front of its receivers, which are everybody's: who counts what arrives shares them, and who fills them has
/// them alone.
static QUEUES: RwLock<()> = RwLock::new(());

pub(crate) fn shared_queues() -> RwLockReadGuard<'static, ()> {
    QUEUES.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn own_queues() -> RwLockWriteGuard<'static, ()> {
    QUEUES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Two hosts with a link of 1600 bytes between their interfaces `eth0`.
pub(crate) struct Hosts {
    pub(crate) test: &'static str,
    pub(crate) hosts: [Namespace; 2],
    pub(crate) dir: tempfile::TempDir,
}

impl Hosts {
    /// `None` where these tests cannot run.
    pub(crate) fn new(test: &'static str) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let hosts = [Namespace::new(test, "h0"), Namespace::new(test, "h1")];
        link((&hosts[0], "eth0"), (&hosts[1], "eth0"), 1600);
        for (host, address) in hosts.iter().zip(HOST) {
            host.ip(&format!("addr add {address}/24 dev eth0"));
        }
        Some(Self { test, hosts, dir: tempfile::tempdir().unwrap() })
    }

    /// A VM behind port `port` of host `k`, with this address at its interface `eth0`.
    pub(crate) fn vm(&self, k: usize, port: &str, address: &str) -> Namespace {
        let vm = Namespace::new(self.test, port);
        link((&self.hosts[k], port), (&vm, "eth0"), 1500);
        vm.ip(&format!("addr add {address} dev eth0"));
        vm
    }

    /// The configuration of host `k`'s VTEP: the other host is its peer.
    pub(crate) fn config(&self, k: usize) -> VtepConfig {
        let mut config = VtepConfig::new(HOST[k], vec!["eth0".to_owned()]);
        config.peers = [HOST[1 - k]].into();
        config.socket = self.dir.path().join(format!("vtep{k}.sock"));
        config
    }

    /// Starts host `k`'s VTEP.
    pub(crate) fn vtep(&self, k: usize, config: VtepConfig) -> Running {
        Running::start(&self.hosts[k], config)
    }

    /// Gives host 1 a VXLAN device of the kernel instead, with this address inside.
    pub(crate) fn kernel_vxlan(&self, vni: u32, to: &str, address: &str) {
        let (name, local) = (format!("vx{vni}"), HOST[1]);
        self.hosts[1].ip(&format!("link add {name} type vxlan id {vni} local {local} {to} dstport 4789 dev eth0"));
        let _ = self.hosts[1].within(|| std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1"));
        self.hosts[1].ip(&format!("link set {name} mtu 1500 up"));
        self.hosts[1].ip(&format!("addr add {address} brd + dev {name}"));
    }
}

pub(crate) fn segment(vni: i64) -> SegmentTable {
    SegmentTable { id: Some(VniIds::One(vni)), ..SegmentTable::default() }
}

pub(crate) fn segments(range: &str) -> SegmentTable {
    SegmentTable { id: Some(VniIds::Range(range.to_owned())), ..SegmentTable::default() }
}

pub(crate) fn port(interface: &str, vni: i64) -> PortTable {
    PortTable::access(interface, vni)
}

/// A VTEP in a thread.
pub(crate) struct Running {
    daemon: Option<Daemon>,
    /// What it reads when it is told to read its configuration again.
    pub(crate) config: Arc<Mutex<VtepConfig>>,
    socket: PathBuf,
}

impl Running {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(host: &Namespace, config: VtepConfig) -> Self {
        // Children of other tests hold the sockets of a VTEP of this process that has just ended, until they are programs.
        let own_port = (config.local, config.udp_port);
        wait_until("the tunnels' port is free", || host.within(|| std::net::UdpSocket::bind(own_port).is_ok()));
        let (namespace, socket) = (host.0.clone(), config.socket.clone());
        let config = Arc::new(Mutex::new(config));
        let theirs = Arc::clone(&config);
        let daemon = Daemon::spawn(move |stop| {
            Namespace::enter(&namespace);
            let load = || Ok::<_, NodeError>(theirs.lock().expect("nobody panics with it").clone());
            vtep::run(&load, stop)
        });
        let mut running = Self { daemon: Some(daemon), config, socket };
        wait_until("the VTEP is ready", || {
            if running.daemon.as_ref().is_some_and(Daemon::ended) {
                panic!("the VTEP ended: {:?}", running.daemon.take().map(Daemon::finish));
            }
            running.try_ask(Request::Config).is_ok()
        });
        running
    }

    pub(crate) fn try_ask(&self, request: Request) -> Result<Answer, NodeError> {
        vtep::ask(&self.socket, &request)
    }

    pub(crate) fn ask(&self, request: Request) -> Answer {
        self.try_ask(request).expect("it is no bad request")
    }

    pub(crate) fn show(&self, what: What) -> Shown {
        socket::show(DaemonKind::Vtep, &self.socket, what).expect("it is no bad request")
    }

    /// Asks it to read its settings again, as SIGHUP does.
    pub(crate) fn hang_up(&self) {
        self.daemon.as_ref().expect("it runs").hang_up();
    }

    pub(crate) fn add(&self, item: Item) {
        assert_eq!(self.ask(Request::Add(item)), Answer::Done);
    }

    pub(crate) fn remove(&self, item: Item) {
        assert_eq!(self.ask(Request::Remove(item)), Answer::Done);
    }

    pub(crate) fn refused(&self, request: Request) -> String {
        let error = self.try_ask(request).expect_err("it cannot work").to_string();
        assert!(!error.contains('\n'), "one line: {error}");
        error
    }

    pub(crate) fn fdb(&self) -> Vec<FdbRow> {
        match self.show(What::Fdb { vni: None }) {
            Shown::Fdb(rows) => rows,
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

    /// Stops it as SIGTERM does.
    pub(crate) fn finish(mut self) {
        self.daemon.take().expect("it runs").finish().expect("it ends well");
    }

    /// Stops it with its data path, as `weft stop vtep` does.
    pub(crate) fn stop(mut self) {
        assert_eq!(self.ask(Request::Stop), Answer::Done);
        let daemon = self.daemon.take().expect("it runs");
        wait_until("the VTEP ends", || daemon.ended());
        daemon.finish().expect("it ends well");
    }
}
