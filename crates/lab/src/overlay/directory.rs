//! The directory servers of a lab: `weft node directory` on every node of that role, told all AAs at once.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddrV4;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use weft_node::client::AdminClient;
use weft_node::directory::DirectoryConfig;
use weft_node::directory::protocol::MappingToSet;
use weft_scenario::id::NodeId;
use weft_scenario::topology::Role;
use weft_wire::directory::PORT;

use super::daemons::{Launcher, start_all};
use crate::error::LabError;
use crate::home::socket_dir;
use crate::up::Lab;

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

/// File of the key that agents and directory servers share.
pub(super) fn key_file(lab: &Lab) -> PathBuf {
    socket_dir(&lab.state.lab).join("directory.key")
}

/// Unix socket of a directory server.
pub fn admin_socket(lab: &str, node: &str) -> PathBuf {
    socket_dir(lab).join(format!("{node}.admin"))
}

/// Starts the servers and waits until they take updates.
pub(super) fn start(lab: &mut Lab, launcher: &Launcher<'_>) -> Result<(), LabError> {
    write_key(lab)?;
    let configs: Vec<(NodeId, DirectoryConfig)> =
        nodes(lab).into_iter().map(|node| (node, config(lab, node))).collect();
    start_all(lab, launcher, "directory", &configs, |lab, node| {
        AdminClient::connect(admin_socket(&lab.state.lab, &lab.plan.node(node).name)).is_ok()
    })
}

/// Tells every directory server where every AA is, in one batch each.
pub(super) fn register(lab: &Lab) -> Result<(), LabError> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let mapping = |server: NodeId| {
        let (edge, _) = fabric.edge_of(server)?;
        Some(MappingToSet {
            aa: addresses.aa(server)?,
            tor_la: addresses.la(edge),
            anycast_la: addresses.anycast_for(edge)?,
            service: 0,
            if_version: None,
            version: None,
        })
    };
    let mappings: Vec<MappingToSet> = fabric.servers().filter_map(mapping).collect();
    for node in nodes(lab) {
        let name = &lab.plan.node(node).name;
        AdminClient::connect(admin_socket(&lab.state.lab, name))
            .and_then(|mut client| client.set_many(mappings.clone()))
            .map_err(|error| LabError::Registration { node: name.clone(), reason: error.to_string() })?;
    }
    Ok(())
}

fn config(lab: &Lab, node: NodeId) -> DirectoryConfig {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let name = &lab.plan.node(node).name;
    let edges = fabric.switches().filter(|switch| addresses.rack(*switch).is_some());
    DirectoryConfig {
        listen: SocketAddrV4::new(addresses.la(node), PORT),
        admin_socket: admin_socket(&lab.state.lab, name),
        store: socket_dir(&lab.state.lab).join(format!("{name}.redb")),
        key_file: Some(key_file(lab)),
        key_id: KEY_ID,
        tenant: 0,
        aa_block: addresses.aa_block().to_string(),
        tor_las: Some(edges.map(|edge| addresses.la(edge)).collect()),
        open: false,
        lab: true,
    }
}

/// A fresh key that only root can read.
fn write_key(lab: &Lab) -> Result<(), LabError> {
    let path = key_file(lab);
    let failed = || LabError::io(format!("write {}", path.display()));
    let mut bytes = [0u8; 16];
    fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes)).map_err(failed())?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).map_err(failed())?;
    file.write_all(digits.as_bytes()).map_err(failed())
}
