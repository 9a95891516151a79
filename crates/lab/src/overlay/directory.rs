//! The directory servers of a lab: `weft node directory` on every node of that role, told all AAs at once.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use weft_node::TlsFiles;
use weft_node::certs::{self, Wanted};
use weft_node::client::{AdminClient, Target};
use weft_node::directory::protocol::MappingToSet;
use weft_node::directory::{DirectoryConfig, StoreConfig};
use weft_node::{DaemonKind, NodeError, settings_text, socket};
use weft_scenario::engine::DirectoryStore;
use weft_scenario::id::NodeId;
use weft_scenario::topology::Role;
use weft_testbed::load::Access;
use weft_wire::directory::{PORT, Secret};

use super::store;
use crate::daemons::{Launcher, start_all};
use crate::error::LabError;
use crate::home::socket_dir;
use crate::up::Lab;

/// TCP port of sessions.
const TLS_PORT: u16 = 5390;
/// Name of the lab's only key.
pub(super) const KEY_ID: u32 = 1;

/// The directory servers' nodes.
fn nodes(lab: &Lab) -> Vec<NodeId> {
    lab.scenario.fabric.with_role(Role::Directory).collect()
}

/// Where agents ask.
pub(super) fn servers(lab: &Lab) -> Vec<SocketAddrV4> {
    nodes(lab).into_iter().map(|node| SocketAddrV4::new(lab.scenario.addresses.la(node), PORT)).collect()
}

/// File of the secret that all keys are derived from.
fn secret_file(lab: &Lab) -> PathBuf {
    socket_dir(&lab.state.lab).join("directory.secret")
}

/// Unix socket of a directory server.
pub fn admin_socket(lab: &str, node: &str) -> PathBuf {
    socket_dir(lab).join(format!("{node}.admin"))
}

/// Starts the servers and waits until they take updates.
pub(super) fn start(lab: &mut Lab, launcher: &Launcher<'_>) -> Result<(), LabError> {
    write_secret(&secret_file(lab))?;
    make_certificates(lab)?;
    let nodes = nodes(lab);
    restart(lab, launcher, &nodes)
}

/// Starts servers that were killed and waits until they take updates.
pub(super) fn restart(lab: &mut Lab, launcher: &Launcher<'_>, nodes: &[NodeId]) -> Result<(), LabError> {
    let configs: Vec<(NodeId, DirectoryConfig)> = nodes.iter().map(|node| (*node, config(lab, *node))).collect();
    start_all(lab, launcher, DaemonKind::Directory, &configs, is_ready)
}

fn is_ready(lab: &Lab, node: NodeId) -> bool {
    let socket = admin_socket(&lab.state.lab, &lab.plan.node(node).name);
    AdminClient::connect(socket).is_ok_and(|mut client| client.status().is_ok())
}

/// Where a server answers look-ups.
pub(crate) fn lookups_at(lab: &Lab, node: NodeId) -> SocketAddrV4 {
    SocketAddrV4::new(lab.scenario.addresses.la(node), PORT)
}

/// Where a server takes updates over mutual TLS, as the lab's operator.
pub(crate) fn sessions_at(lab: &Lab, node: NodeId) -> Target {
    let address = SocketAddrV4::new(lab.scenario.addresses.la(node), TLS_PORT).into();
    Target::Server { address, files: TlsFiles::in_dir(&certificates(lab), certs::OPERATOR) }
}

/// As whom a server of service 0 asks from its LA.
pub(crate) fn access_of(lab: &Lab, node: NodeId) -> Access {
    let secret = read_secret(&secret_file(lab)).expect("the secret is there while the lab is up");
    Access { key: secret.derive(0, lab.scenario.addresses.la(node)), key_id: KEY_ID, service: 0 }
}

/// The lab's own CA and the certificates of servers and operator.
fn certificates(lab: &Lab) -> PathBuf {
    socket_dir(&lab.state.lab).join("tls")
}

fn make_certificates(lab: &Lab) -> Result<(), LabError> {
    let addresses = nodes(lab).into_iter().map(|node| lab.scenario.addresses.la(node).into()).collect();
    certs::make(&certificates(lab), &Wanted { addresses, ..Wanted::default() })?;
    Ok(())
}

/// Tells the directory where the AAs of those of the nodes are that are servers, and of which service, so that services do not reach each other: each
/// directory server in one batch, or any of those that share a store.
pub(super) fn register(lab: &Lab, of: &[NodeId]) -> Result<(), LabError> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let mapping = |server: NodeId| {
        let (edge, _) = fabric.edge_of(server)?;
        Some(MappingToSet {
            aa: addresses.aa(server)?,
            tor_la: addresses.la(edge),
            anycast_la: addresses.anycast_for(edge)?,
            service: fabric.service_of(server),
            host_la: Some(addresses.la(server)),
            if_version: None,
            version: None,
        })
    };
    let servers = fabric.servers().filter(|server| of.contains(server));
    let mappings: Vec<MappingToSet> = servers.filter_map(mapping).collect();
    if mappings.is_empty() {
        return Ok(());
    }
    tell(lab, |client| client.set_many(mappings.clone()).map(drop))
}

/// Tells the directory that the AAs of these servers are nowhere.
pub(super) fn forget(lab: &Lab, servers: &[NodeId]) -> Result<(), LabError> {
    let aas: Vec<Ipv4Addr> = servers.iter().filter_map(|server| lab.scenario.addresses.aa(*server)).collect();
    tell(lab, |client| aas.iter().try_for_each(|aa| client.del(*aa).map(drop)))
}

/// Tells each directory server, or one of those that share a store.
fn tell(lab: &Lab, what: impl Fn(&mut AdminClient) -> Result<(), NodeError>) -> Result<(), LabError> {
    let told = if lab.scenario.directory == DirectoryStore::Embedded { usize::MAX } else { 1 };
    for node in nodes(lab).into_iter().take(told) {
        let name = &lab.plan.node(node).name;
        AdminClient::connect(admin_socket(&lab.state.lab, name))
            .and_then(|mut client| what(&mut client))
            .map_err(|error| LabError::Registration { node: name.clone(), reason: error.to_string() })?;
    }
    Ok(())
}

/// Has the servers know the ToRs that there are now.
pub(super) fn tell_rules(lab: &Lab) -> Result<(), LabError> {
    for node in nodes(lab) {
        let name = &lab.plan.node(node).name;
        let failed = |reason: String| LabError::Registration { node: name.clone(), reason };
        let settings = socket_dir(&lab.state.lab).join(format!("{name}.{}.toml", DaemonKind::Directory.word()));
        fs::write(&settings, settings_text(&config(lab, node))).map_err(|error| failed(error.to_string()))?;
        let socket = super::control_socket(&lab.state.lab, name, DaemonKind::Directory);
        socket::reload(DaemonKind::Directory, &socket).map_err(|error| failed(error.to_string()))?;
    }
    Ok(())
}

fn config(lab: &Lab, node: NodeId) -> DirectoryConfig {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let name = &lab.plan.node(node).name;
    let edges = fabric.switches().filter(|switch| addresses.rack(*switch).is_some());
    DirectoryConfig {
        listen: SocketAddrV4::new(addresses.la(node), PORT),
        socket: super::control_socket(&lab.state.lab, name, DaemonKind::Directory),
        admin_socket: admin_socket(&lab.state.lab, name),
        store: match store::settings_for(lab, node) {
            Some(etcd) => StoreConfig::Etcd(etcd),
            None => socket_dir(&lab.state.lab).join(format!("{name}.redb")).into(),
        },
        key_file: Some(secret_file(lab)),
        key_id: KEY_ID,
        tls_listen: Some(SocketAddrV4::new(addresses.la(node), TLS_PORT)),
        tls: Some(TlsFiles::in_dir(&certificates(lab), certs::SERVER)),
        aa_block: addresses.aa_block().to_string(),
        tor_las: Some(edges.map(|edge| addresses.la(edge)).collect()),
        lab: true,
        ..DirectoryConfig::example()
    }
}

/// A fresh secret in a file that only root can read.
pub(crate) fn write_secret(path: &Path) -> Result<(), LabError> {
    write_private(path, &random_digits(16)?)
}

/// So many random bytes in hexadecimal digits.
pub(crate) fn random_digits(len_bytes: usize) -> Result<String, LabError> {
    let mut bytes = vec![0u8; len_bytes];
    let read = fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes));
    read.map_err(LabError::io("read /dev/urandom"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The secret of a file that [`write_secret`] made.
pub(crate) fn read_secret(path: &Path) -> Result<Secret, LabError> {
    let failed = || LabError::io(format!("read {}", path.display()));
    let digits = fs::read_to_string(path).map_err(failed())?;
    Secret::from_hex(&digits).map_err(|error| failed()(std::io::Error::other(error)))
}

/// Derives the key of a node whose datagrams come from its LA, and keeps it in a file of its own.
pub(super) fn write_key(lab: &Lab, node: NodeId, service: u32) -> Result<PathBuf, LabError> {
    write_key_at(lab, node, service, lab.scenario.addresses.la(node))
}

/// The same for a node that is at another LA.
pub(super) fn write_key_at(lab: &Lab, node: NodeId, service: u32, la: Ipv4Addr) -> Result<PathBuf, LabError> {
    let secret = read_secret(&secret_file(lab))?;
    let path = socket_dir(&lab.state.lab).join(format!("{}.key", lab.plan.node(node).name));
    write_private(&path, &secret.derive(service, la).to_hex())?;
    Ok(path)
}

/// Writes a file that only root can read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), LabError> {
    let failed = || LabError::io(format!("write {}", path.display()));
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path).map_err(failed())?;
    file.write_all(text.as_bytes()).map_err(failed())
}
