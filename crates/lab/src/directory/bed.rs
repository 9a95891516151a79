//! A directory tier on loopback: daemons of `weft node directory` and, for a shared store, etcd, without namespaces.
//!
//! It is a lab without nodes: its state, configuration and logs are where those of labs are, so that `weft lab down --all`
//! and the next run remove what a killed one left behind.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::CapabilitySet;
use weft_node::agent::AGENT_PORT;
use weft_node::certs::{self, Wanted};
use weft_node::client::{AdminClient, Target};
use weft_node::directory::{DirectoryConfig, StoreConfig};
use weft_node::rbridge::XdpChoice;
use weft_node::store::EtcdSettings;
use weft_node::{TlsFiles, settings_text};
use weft_scenario::engine::{DirectoryStore, Overlay, Progress};
use weft_scenario::workload::DirectoryVictim;
use weft_testbed::etcd::{EtcdClusterSettings, EtcdNode};
use weft_testbed::load::Access;
use weft_wire::directory::{PORT, Secret};

use super::apart::{self, Apart};
use super::etcd;
use super::tier::{ServerView, Tier, store_victims};
use super::usage::wait_until;
use crate::down;
use crate::error::LabError;
use crate::home::{log_dir, record_file, socket_dir, store_dir};
use crate::overlay::{read_secret, write_secret};
use crate::process::{Daemon, ProcessId, kill_all, log_tail};
use crate::rights::Rights;
use crate::state::{LabState, ProcessState};

/// LA of the one ToR that mappings of this tier name.
const TOR_LA: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const KEY_ID: u32 = 1;
/// What a server with a card may do, as its service may then.
const PROGRAMS: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::NET_ADMIN).union(CapabilitySet::PERFMON);
/// Services that have certificates.
pub(super) const SERVICES: [u32; 2] = [7, 8];

/// What a tier on loopback is made of.
#[derive(Clone, Debug)]
pub struct BedOptions {
    /// The `weft` program that the daemons are started from.
    pub weft_binary: PathBuf,
    /// Directory servers.
    pub servers: usize,
    /// What keeps their mappings.
    pub store: DirectoryStore,
    /// Threads of each server that answer look-ups; `None`: one for each CPU.
    pub lookup_threads: Option<usize>,
    /// CPU that servers and store run on; `None`: all.
    pub cpu: Option<usize>,
}

/// The racks that a tier's mappings may name.
#[derive(Clone, Debug)]
pub(super) struct Racks {
    /// LAs of their ToRs.
    pub(super) tor_las: Vec<Ipv4Addr>,
    /// UDP port of the agents in them.
    pub(super) agent_port: u16,
    /// The servers are in a namespace of their own.
    pub(super) apart: Option<Apart>,
}

impl Default for Racks {
    fn default() -> Self {
        Self { tor_las: vec![TOR_LA], agent_port: AGENT_PORT, apart: None }
    }
}

/// A tier that runs until it is dropped.
pub struct Bed {
    options: BedOptions,
    racks: Racks,
    state: LabState,
    /// Where the daemons' processes are written down.
    record: PathBuf,
    secret: Secret,
    certificates: PathBuf,
    servers: Vec<Server>,
    cluster: Option<Cluster>,
}

/// etcd nodes.
struct Cluster {
    nodes: Vec<EtcdNode>,
    processes: Vec<ProcessId>,
    killed: Vec<usize>,
}

struct Server {
    name: String,
    config: DirectoryConfig,
    process: ProcessId,
    killed: bool,
}

impl Bed {
    /// Starts the tier and waits until it takes updates.
    pub fn start(options: &BedOptions, progress: &dyn Progress) -> Result<Self, LabError> {
        Self::start_for(Racks::default(), options, progress)
    }

    /// The same for other racks than one.
    pub(super) fn start_for(racks: Racks, options: &BedOptions, progress: &dyn Progress) -> Result<Self, LabError> {
        let (name, state) = LabState::claim("bench", "directory on loopback", Overlay::Vl2)?;
        let record = record_file(&name);
        let key_file = socket_dir(&name).join("directory.key");
        write_secret(&key_file)?;
        let secret = read_secret(&key_file)?;
        let certificates = socket_dir(&name).join("tls");
        let wanted = Wanted {
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            services: SERVICES.to_vec(),
            ..Wanted::default()
        };
        certs::make(&certificates, &wanted)?;
        let (options, servers, cluster) = (options.clone(), Vec::new(), None);
        let mut bed = Self { options, racks, state, record, secret, certificates, servers, cluster };
        if bed.racks.apart.is_some() {
            apart::make(&bed.state.lab)?;
        }
        if bed.options.store != DirectoryStore::Embedded {
            bed.start_cluster(progress)?;
        }
        for number in 1..=bed.options.servers {
            let server = bed.spawn(number)?;
            bed.servers.push(server);
            bed.remember()?;
        }
        for number in 0..bed.servers.len() {
            bed.wait_ready(number, progress)?;
        }
        bed.state.ready = true;
        bed.state.save()?;
        Ok(bed)
    }

    fn start_cluster(&mut self, progress: &dyn Progress) -> Result<(), LabError> {
        if crate::deps::find_program("etcd").is_none() {
            let what = "program `etcd` is missing".to_owned();
            let remedy = "install Debian's package etcd-server: make deps, or choose the embedded store".to_owned();
            return Err(LabError::NotFit { what, remedy });
        }
        let count = self.options.store.servers();
        let nodes = EtcdClusterSettings::loopback(count, &store_dir(&self.state.lab))
            .map_err(|error| LabError::DirectoryLoad(error.to_string()))?
            .nodes;
        let mut processes = Vec::new();
        for index in 0..count {
            processes.push(self.launch_etcd(&nodes, index)?);
            self.cluster = Some(Cluster { nodes: nodes.clone(), processes: processes.clone(), killed: Vec::new() });
            self.remember()?;
        }
        (0..count).try_for_each(|index| self.wait_etcd(index, progress))
    }

    fn launch_etcd(&self, nodes: &[EtcdNode], index: usize) -> Result<ProcessId, LabError> {
        let log = log_dir(&self.state.lab).join(format!("etcd{}.log", index + 1));
        self.pinned(|| etcd::start(nodes, index, &self.daemon(&log)))
    }

    fn wait_etcd(&self, index: usize, progress: &dyn Progress) -> Result<(), LabError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        wait_until(progress, "an etcd node finds a leader", || {
            Ok(etcd::status(&cluster.nodes[index]).is_some_and(|status| status.is_healthy))
        })
    }

    fn sessions(&self, config: &DirectoryConfig, certificate: &str) -> Target {
        match config.tls_listen {
            Some(address) => {
                Target::Server { address: address.into(), files: TlsFiles::in_dir(&self.certificates, certificate) }
            }
            None => Target::from(&config.admin_socket),
        }
    }

    /// Where one of [`SERVICES`] has its sessions.
    pub(super) fn sessions_of(&self, service: u32) -> Vec<Target> {
        self.servers.iter().map(|server| self.sessions(&server.config, &certs::service_name(service))).collect()
    }

    /// The servers' secret, and which one it is.
    pub(super) fn secret(&self) -> (Secret, u32) {
        (self.secret.clone(), KEY_ID)
    }

    fn key_file(&self) -> PathBuf {
        socket_dir(&self.state.lab).join("directory.key")
    }

    fn spawn(&self, number: usize) -> Result<Server, LabError> {
        let (lab, name) = (&self.state.lab, format!("dir{number}"));
        let card_mappings = self.racks.apart.and_then(|apart| apart.card_mappings);
        let example = DirectoryConfig::example();
        let config = DirectoryConfig {
            listen: match self.racks.apart {
                Some(_) => SocketAddrV4::new(apart::SERVER, PORT),
                // The kernel chooses the port.
                None => SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
            },
            socket: socket_dir(lab).join(format!("{name}.directory")),
            admin_socket: socket_dir(lab).join(format!("{name}.admin")),
            store: match &self.cluster {
                Some(cluster) => StoreConfig::Etcd(cluster.settings_of(number - 1)),
                None => store_dir(lab).join(format!("{name}.redb")).into(),
            },
            key_file: Some(self.key_file()),
            key_id: KEY_ID,
            tls_listen: Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, free_port()?)),
            tls: Some(TlsFiles::in_dir(&self.certificates, certs::SERVER)),
            http_listen: Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)),
            tor_las: Some(self.racks.tor_las.clone()),
            agent_port: self.racks.agent_port,
            lookup_threads: self.options.lookup_threads,
            xdp_interface: card_mappings.map(|_| apart::INTERFACE.to_owned()),
            xdp: XdpChoice::Generic,
            xdp_mappings: card_mappings.unwrap_or(example.xdp_mappings),
            ..example
        };
        let process = self.launch(&name, &config)?;
        Ok(Server { name, config, process, killed: false })
    }

    /// Starts a server with this configuration.
    fn launch(&self, name: &str, config: &DirectoryConfig) -> Result<ProcessId, LabError> {
        let path = socket_dir(&self.state.lab).join(format!("{name}.directory.toml"));
        fs::write(&path, settings_text(config)).map_err(LabError::io(format!("write {}", path.display())))?;
        let mut command = Command::new(&self.options.weft_binary);
        command.args(["node", "directory", "--config"]).arg(&path);
        let place = self.racks.apart.map(|_| apart::servers(&self.state.lab));
        let card = self.racks.apart.is_some_and(|apart| apart.card_mappings.is_some());
        let needed = if card { PROGRAMS } else { CapabilitySet::empty() };
        let log = self.log(name);
        let rights = Some(Rights::of(&self.state.lab, needed));
        let daemon = Daemon { namespace: place.as_deref(), rights, ..self.daemon(&log) };
        self.pinned(|| daemon.spawn(&mut command))
    }

    /// Namespace of who asks, where the servers are apart.
    pub(super) fn agents_place(&self) -> PathBuf {
        apart::agents(&self.state.lab)
    }

    /// Nothing but this record tells that a daemon on loopback is ours.
    fn daemon<'a>(&'a self, log: &'a Path) -> Daemon<'a> {
        // Of a directory server as of etcd.
        let rights = Rights::of(&self.state.lab, CapabilitySet::empty());
        Daemon { namespace: None, log, record: Some(&self.record), nice: 0, rights: Some(rights) }
    }

    /// Starts a process on the CPU of servers and store: children have their parent thread's place.
    fn pinned<T: Send>(&self, spawn: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
        let cpu = self.options.cpu;
        let on_cpu = || {
            if let Some(cpu) = cpu {
                weft_testbed::cpu::pin_this_thread(cpu).map_err(|error| LabError::DirectoryLoad(error.to_string()))?;
            }
            spawn()
        };
        std::thread::scope(|scope| scope.spawn(on_cpu).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    fn log(&self, name: &str) -> PathBuf {
        log_dir(&self.state.lab).join(format!("{name}.directory.log"))
    }

    /// Waits until a server takes updates, and notes which port it has.
    fn wait_ready(&mut self, number: usize, progress: &dyn Progress) -> Result<(), LabError> {
        let log = self.log(&self.servers[number].name);
        let server = &mut self.servers[number];
        wait_until(progress, "a directory server becomes ready", || {
            if !server.process.is_alive() {
                return Err(LabError::Daemon {
                    daemon: "directory",
                    node: server.name.clone(),
                    what: "ended at its start".to_owned(),
                    log: log_tail(&log),
                });
            }
            let status = AdminClient::connect(&server.config.admin_socket).and_then(|mut client| client.status());
            Ok(status.is_ok_and(|status| {
                server.config.listen = status.listen;
                true
            }))
        })?;
        Ok(())
    }

    fn remember(&mut self) -> Result<(), LabError> {
        let process = |server: &Server| ProcessState {
            node: server.name.clone(),
            daemon: "directory".to_owned(),
            id: server.process,
        };
        self.state.processes = self.servers.iter().map(process).collect();
        for (number, id) in (0..).zip(self.cluster.iter().flat_map(|cluster| &cluster.processes)) {
            let process = ProcessState { node: etcd_name(number), daemon: "etcd".to_owned(), id: *id };
            self.state.processes.push(process);
        }
        self.state.save()
    }
}

impl Cluster {
    /// What directory server `number` is told: an etcd node of its own first.
    fn settings_of(&self, number: usize) -> EtcdSettings {
        let count = self.nodes.len();
        let url = |step: usize| self.nodes[(number + step) % count].client_url();
        EtcdSettings::plain((0..count).map(url), "weft/bench/")
    }
}

impl Tier for Bed {
    fn servers(&self) -> Vec<ServerView> {
        let view = |server: &Server| ServerView {
            name: server.name.clone(),
            namespace: None,
            lookups: server.config.listen,
            admin: server.config.admin_socket.clone(),
            sessions: self.sessions(&server.config, certs::OPERATOR),
            pid: server.process.pid,
        };
        self.servers.iter().map(view).collect()
    }

    fn store_pids(&self) -> Vec<u32> {
        self.cluster.iter().flat_map(|cluster| &cluster.processes).map(|process| process.pid).collect()
    }

    fn is_shared(&self) -> bool {
        self.options.store != DirectoryStore::Embedded || self.options.servers == 1
    }

    fn access(&self) -> Access {
        Access { key: self.secret.derive(0, Ipv4Addr::LOCALHOST), key_id: KEY_ID, service: 0 }
    }

    fn tor_la(&self) -> Ipv4Addr {
        self.racks.tor_las[0]
    }

    fn client_namespace(&self) -> Option<PathBuf> {
        None
    }

    fn kill(&mut self, victim: DirectoryVictim, asked: usize) -> Result<Vec<String>, LabError> {
        if victim == DirectoryVictim::Server {
            let server = &mut self.servers[asked - 1];
            kill_all(&[server.process]);
            server.killed = true;
            return Ok(vec![server.name.clone()]);
        }
        let none = || LabError::DirectoryLoad(format!("there is no {} to kill", victim.name()));
        let cluster = self.cluster.as_mut().ok_or_else(none)?;
        let leads = |node: &EtcdNode| etcd::status(node).is_some_and(|status| status.leads);
        let victims = store_victims(victim, cluster.nodes.len(), cluster.nodes.iter().position(leads));
        if victims.is_empty() {
            return Err(none());
        }
        kill_all(&victims.iter().map(|node| cluster.processes[*node]).collect::<Vec<_>>());
        cluster.killed.extend(&victims);
        Ok(victims.into_iter().map(etcd_name).collect())
    }

    fn mend(&mut self, progress: &dyn Progress) -> Result<Vec<String>, LabError> {
        let mut mended = Vec::new();
        let killed = self.cluster.as_mut().map(|cluster| std::mem::take(&mut cluster.killed)).unwrap_or_default();
        for index in &killed {
            let nodes = self.cluster.as_ref().map(|cluster| cluster.nodes.clone()).unwrap_or_default();
            let process = self.launch_etcd(&nodes, *index)?;
            if let Some(cluster) = &mut self.cluster {
                cluster.processes[*index] = process;
            }
            self.remember()?;
        }
        for index in killed {
            self.wait_etcd(index, progress)?;
            mended.push(etcd_name(index));
        }
        for number in 0..self.servers.len() {
            if !std::mem::take(&mut self.servers[number].killed) {
                continue;
            }
            let (name, config) = (self.servers[number].name.clone(), self.servers[number].config.clone());
            self.servers[number].process = self.launch(&name, &config)?;
            self.remember()?;
            self.wait_ready(number, progress)?;
            mended.push(name);
        }
        Ok(mended)
    }

    fn set_loss(&mut self, percent: u32) -> Result<(), LabError> {
        match percent {
            0 => Ok(()),
            _ => Err(LabError::DirectoryLoad("loopback loses nothing; use a lab".to_owned())),
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Err(error) = down::down(&self.state.lab) {
            tracing::error!("{} could not be removed: {error}; try: weft lab down --all", self.state.lab);
        }
    }
}

fn etcd_name(index: usize) -> String {
    format!("etcd{}", index + 1)
}

/// A TCP port that is free now.
fn free_port() -> Result<u16, LabError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(LabError::io("find a free port"))
}
