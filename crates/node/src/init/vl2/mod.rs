//! A VL2 network: directory servers, servers with an agent each, ToRs, Intermediates, and Aggregations between them.
//!
//! * `check`: the file as a whole
//! * `network`: what configures interfaces and routing

mod check;
mod network;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Deserialize;
use weft_wire::directory::{PORT, Secret};

use super::hosts_file::{At, HostsFile};
use super::tree::{Vault, random_hex};
use super::{Deployment, Host};
use crate::agent::AgentConfig;
use crate::certs::{SERVER, Wanted};
use crate::directory::{DirectoryConfig, ServiceConfig, StoreConfig};
use crate::error::NodeError;
use crate::runner::DaemonKind;
use crate::store::EtcdSettings;
use crate::switch::{SwitchConfig, Tier};
use crate::tls::TlsFiles;
use crate::tor::TorConfig;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vl2 {
    /// All AAs come from it.
    #[serde(default = "aa_block")]
    aa_block: String,
    /// All LAs come from it.
    #[serde(default = "la_block")]
    la_block: String,
    /// The Intermediates' common LA.
    #[serde(default = "anycast")]
    anycast: Ipv4Addr,
    /// MAC of all ToRs' host ports.
    #[serde(default = "gateway_mac")]
    gateway_mac: String,
    /// Of every link, outer headers included, bytes.
    mtu: u32,
    /// Of what servers send, bytes.
    #[serde(default = "server_mtu")]
    server_mtu: u32,
    /// Where agents have their metrics. Other daemons have them at the ports that follow; without it nobody has any.
    http_listen: Option<SocketAddrV4>,
    /// TCP port for sessions over TLS with directory servers; without it there are none from afar.
    tls_port: Option<u16>,
    /// Client URLs of the etcd cluster that several directory servers share.
    etcd: Option<Vec<String>>,
    directory: Vec<Directory>,
    server: Vec<Server>,
    tor: Vec<Tor>,
    intermediate: Vec<Core>,
    #[serde(default)]
    aggregation: Vec<Core>,
    #[serde(default)]
    service: Vec<Service>,
}

/// A directory server's host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Directory {
    name: String,
    interface: String,
    la: Ipv4Addr,
    tor: String,
    tor_port: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    name: String,
    interface: String,
    la: Ipv4Addr,
    aa: Ipv4Addr,
    #[serde(default)]
    service: u32,
    tor: String,
    tor_port: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tor {
    name: String,
    la: Ipv4Addr,
    /// Its address for the servers behind it.
    gateway: Ipv4Addr,
    /// Ports to other switches with their addresses.
    uplinks: BTreeMap<String, String>,
}

/// An Intermediate or Aggregation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Core {
    name: String,
    la: Ipv4Addr,
    uplinks: BTreeMap<String, String>,
}

/// Whose AAs they are, and whom they may know.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    number: u32,
    /// Its AAs are there and nowhere else.
    #[serde(default)]
    aa_ranges: Vec<String>,
    /// Services whose AAs its servers may look up, beside its own and service 0's.
    #[serde(default)]
    may_reach: Vec<u32>,
}

fn aa_block() -> String {
    "20.0.0.0/8".to_owned()
}

fn la_block() -> String {
    "10.0.0.0/8".to_owned()
}

fn anycast() -> Ipv4Addr {
    Ipv4Addr::new(10, 255, 255, 1)
}

fn gateway_mac() -> String {
    "02:56:4c:32:00:01".to_owned()
}

fn server_mtu() -> u32 {
    1500
}

const DIRECTORY_KEY: &str = "directory.key";

/// What the file says.
pub(super) fn deployment(file: &HostsFile, vault: &Vault) -> Result<Deployment, NodeError> {
    let vl2: Vl2 = file.parse()?;
    check::check(file, &vl2)?;
    let secret = vault.secret(DIRECTORY_KEY, || random_hex(1) + "\n")?;
    let keys: Secret = secret.trim().parse().map_err(|error| NodeError::config("directory.key", format!("{error}")))?;
    let mut hosts = Vec::new();
    for index in 0..vl2.directory.len() {
        hosts.push(directory(file, &vl2, index, &secret)?);
    }
    for index in 0..vl2.server.len() {
        hosts.push(server(file, &vl2, index, &keys)?);
    }
    for index in 0..vl2.tor.len() {
        hosts.push(tor(file, &vl2, index, &keys)?);
    }
    for index in 0..vl2.intermediate.len() {
        hosts.push(intermediate(file, &vl2, index)?);
    }
    for core in &vl2.aggregation {
        let mut host = Host::new(&core.name, "an Aggregation");
        network::of_core(&mut host, &vl2, core, None);
        hosts.push(host);
    }
    let certificates = vl2.tls_port.map(|_| Wanted {
        addresses: vl2.directory.iter().map(|server| server.la.into()).collect(),
        names: vl2.directory.iter().map(|server| server.name.clone()).collect(),
        services: vl2.service.iter().map(|service| service.number).collect(),
    });
    Ok(Deployment { hosts, secrets: vec![(DIRECTORY_KEY, secret)], certificates })
}

impl Vl2 {
    fn directory_servers(&self) -> Vec<SocketAddrV4> {
        self.directory.iter().map(|server| SocketAddrV4::new(server.la, PORT)).collect()
    }

    /// Where a daemon of this kind has its metrics: there are several on a ToR.
    fn http_listen(&self, kind: DaemonKind) -> Option<SocketAddrV4> {
        let behind = kind.metrics_port() - DaemonKind::Agent.metrics_port();
        self.http_listen.map(|first| SocketAddrV4::new(*first.ip(), first.port().saturating_add(behind)))
    }

    /// The ToR of that name; the check has found it.
    fn tor(&self, name: &str) -> &Tor {
        self.tor.iter().find(|tor| tor.name == name).expect("the check has found it")
    }

    /// Everybody behind a ToR: its port, LA and AA.
    fn behind<'a>(&'a self, tor: &'a str) -> impl Iterator<Item = (&'a str, Ipv4Addr, Option<Ipv4Addr>)> {
        let servers = self.server.iter().map(|server| (&server.tor, &*server.tor_port, server.la, Some(server.aa)));
        let directory = self.directory.iter().map(|server| (&server.tor, &*server.tor_port, server.la, None));
        servers.chain(directory).filter(move |(of, ..)| *of == tor).map(|(_, port, la, aa)| (port, la, aa))
    }
}

fn directory(file: &HostsFile, vl2: &Vl2, index: usize, secret: &str) -> Result<Host, NodeError> {
    let one = &vl2.directory[index];
    let mut host = Host::new(&one.name, "a directory server");
    let store = match &vl2.etcd {
        Some(urls) => StoreConfig::Etcd(EtcdSettings::plain(urls.iter().cloned(), "weft/")),
        None => StoreConfig::from("/var/lib/weft/directory/table.redb"),
    };
    let of = |service: &Service| ServiceConfig {
        service: service.number,
        aa_ranges: service.aa_ranges.clone(),
        quota: Default::default(),
    };
    let settings = DirectoryConfig {
        listen: SocketAddrV4::new(one.la, PORT),
        store,
        key_file: Some("/etc/weft/directory.key".into()),
        tls_listen: vl2.tls_port.map(|port| SocketAddrV4::new(one.la, port)),
        tls: vl2.tls_port.map(|_| TlsFiles::in_dir("/etc/weft/tls".as_ref(), SERVER)),
        aa_block: vl2.aa_block.clone(),
        tor_las: Some(vl2.tor.iter().map(|tor| tor.la).collect()),
        quota: Default::default(),
        services: vl2.service.iter().map(of).collect(),
        http_listen: vl2.http_listen(DaemonKind::Directory),
        ..DirectoryConfig::example()
    };
    host.daemon(DaemonKind::Directory, &settings, |why| file.fault(At::of("directory", index, "name"), why))?;
    host.secret(DIRECTORY_KEY, secret.to_owned());
    host.certificate = vl2.tls_port.is_some();
    if index == 0 {
        host.file("mappings.csv", mappings(vl2));
        host.file("fill.sh", fill(vl2));
    }
    network::of_end(&mut host, vl2, (&one.interface, one.la, None), &one.tor);
    Ok(host)
}

/// Where all AAs are, as `weft directory import` reads it.
fn mappings(vl2: &Vl2) -> String {
    let mut text = "aa,tor_la,anycast_la,service,host_la\n".to_owned();
    for Server { aa, la, service, tor, .. } in &vl2.server {
        let _ = writeln!(text, "{aa},{},{},{service},{la}", vl2.tor(tor).la, vl2.anycast);
    }
    text
}

/// What the first directory server is told once.
fn fill(vl2: &Vl2) -> String {
    let mut text =
        "# Where the AAs are, and who may know. Run it once, when the directory server runs.\nset -e\n".to_owned();
    text += "weft directory import /etc/weft/mappings.csv\n";
    for Service { number, may_reach, .. } in &vl2.service {
        for to in may_reach {
            let _ = writeln!(text, "weft directory policy allow {number} {to}");
        }
    }
    text
}

fn server(file: &HostsFile, vl2: &Vl2, index: usize, keys: &Secret) -> Result<Host, NodeError> {
    let one = &vl2.server[index];
    let mut host = Host::new(&one.name, "a server");
    let settings = AgentConfig {
        interface: one.interface.clone(),
        aa: one.aa,
        aa_block: vl2.aa_block.clone(),
        la: one.la,
        own_tor_la: vl2.tor(&one.tor).la,
        gateway_mac: vl2.gateway_mac.clone(),
        underlay_mtu: vl2.mtu,
        directory_servers: vl2.directory_servers(),
        service: one.service,
        http_listen: vl2.http_listen(DaemonKind::Agent),
        ..AgentConfig::example()
    };
    host.daemon(DaemonKind::Agent, &settings, |why| file.fault(At::of("server", index, "name"), why))?;
    host.secret("agent.key", keys.derive(one.service, one.la).to_hex() + "\n");
    network::of_end(&mut host, vl2, (&one.interface, one.la, Some(one.aa)), &one.tor);
    Ok(host)
}

fn tor(file: &HostsFile, vl2: &Vl2, index: usize, keys: &Secret) -> Result<Host, NodeError> {
    let one = &vl2.tor[index];
    let fault = |why| file.fault(At::of("tor", index, "name"), why);
    let mut host = Host::new(&one.name, "a ToR");
    let switch = SwitchConfig {
        tier: Tier::Tor,
        ports: one.uplinks.keys().cloned().collect(),
        host_ports: vl2.behind(&one.name).map(|(port, ..)| port.to_owned()).collect(),
        own_las: vec![one.la],
        http_listen: vl2.http_listen(DaemonKind::Switch),
        ..SwitchConfig::example()
    };
    host.daemon(DaemonKind::Switch, &switch, fault)?;
    let http_listen = vl2.http_listen(DaemonKind::Tor);
    let directory_servers = vl2.directory_servers();
    let reporter = TorConfig { la: one.la, directory_servers, http_listen, ..TorConfig::example() };
    host.daemon(DaemonKind::Tor, &reporter, fault)?;
    host.secret("tor.key", keys.derive(0, one.la).to_hex() + "\n");
    network::of_tor(&mut host, vl2, one);
    Ok(host)
}

fn intermediate(file: &HostsFile, vl2: &Vl2, index: usize) -> Result<Host, NodeError> {
    let one = &vl2.intermediate[index];
    let mut host = Host::new(&one.name, "an Intermediate");
    let settings = SwitchConfig {
        tier: Tier::Intermediate,
        ports: one.uplinks.keys().cloned().collect(),
        host_ports: Vec::new(),
        own_las: vec![vl2.anycast],
        http_listen: vl2.http_listen(DaemonKind::Switch),
        ..SwitchConfig::example()
    };
    host.daemon(DaemonKind::Switch, &settings, |why| file.fault(At::of("intermediate", index, "name"), why))?;
    network::of_core(&mut host, vl2, one, Some(vl2.anycast));
    Ok(host)
}
