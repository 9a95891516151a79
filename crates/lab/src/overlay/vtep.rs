//! `weft node vtep` on every server: one segment, whose stations are the servers, each behind an access port of its own.

use std::path::PathBuf;

use weft_datapath::offload::{self, Offload};
use weft_node::vtep::protocol::{Request, What};
use weft_node::vtep::{
    EntryTable, FloodText, HookChoice, PortTable, SegmentTable, TaggedText, VniIds, VtepConfig, ask,
};
use weft_scenario::engine::Hook;
use weft_scenario::id::NodeId;

use super::switches::{datapath_error, mount_bpffs};
use crate::daemons::{Launcher, start_all};
use crate::error::LabError;
use crate::home::{namespace_path, socket_dir};
use crate::netns;
use crate::plan::{VNI, VTEP_PORT, VXLAN_DEVICE, vxlan_mac};
use crate::trill::do_without_driver;
use crate::up::Lab;

/// Unix socket on which a server's VTEP tells its state and takes commands.
pub fn vtep_socket(lab: &str, node: &str) -> PathBuf {
    socket_dir(lab).join(format!("{node}.vtep.sock"))
}

/// Starts the daemons and waits until they answer.
pub(super) fn start(lab: &mut Lab, launcher: &Launcher<'_>, hook: Hook) -> Result<(), LabError> {
    mount_bpffs()?;
    let servers: Vec<NodeId> = lab.scenario.fabric.servers().collect();
    if hook != Hook::Tc {
        servers.iter().try_for_each(|server| prepare_for_xdp(lab, *server))?;
    }
    let config = |server: &NodeId| Some((*server, config(lab, *server, hook)?));
    let configs: Vec<(NodeId, VtepConfig)> = servers.iter().filter_map(config).collect();
    start_all(lab, launcher, "vtep", &configs, |lab, node| {
        ask(&vtep_socket(&lab.state.lab, &lab.plan.node(node).name), &Request::Show(What::Peers)).is_ok()
    })
}

/// At XDP nobody finishes a checksum or cuts a segment, and the peers of both ports must take frames that are redirected to them.
fn prepare_for_xdp(lab: &Lab, server: NodeId) -> Result<(), LabError> {
    let fabric = &lab.scenario.fabric;
    on_node(lab, server, || do_without_driver(VXLAN_DEVICE))?;
    let edge = fabric.edge_of(server).and_then(|(_, link)| fabric.link(link).far_end(server));
    edge.map_or(Ok(()), |port| on_node(lab, port.node, || offload::set(&port.interface, Offload::Gro, true)))
}

fn on_node(
    lab: &Lab,
    node: NodeId,
    work: impl FnOnce() -> Result<(), weft_datapath::DatapathError> + Send,
) -> Result<(), LabError> {
    let plan = lab.plan.node(node);
    netns::in_namespace(&namespace_path(&plan.namespace), work)?.map_err(|error| datapath_error(&plan.name, &error))
}

/// All stations are known beforehand, as the kernel's device knows them in its overlay: nothing floods, nothing is learnt.
fn config(lab: &Lab, server: NodeId, hook: Hook) -> Option<VtepConfig> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let name = &lab.plan.node(server).name;
    let (_, link) = fabric.edge_of(server)?;
    let uplink = fabric.link(link).end_at(server)?.interface.clone();
    let entry = |station: NodeId| {
        let here = station == server;
        Some(EntryTable {
            vni: i64::from(VNI),
            mac: vxlan_mac(addresses.aa(station)?),
            peer: (!here).then(|| addresses.la(station)),
            port: here.then(|| VTEP_PORT.to_owned()),
            vlan: None,
            ip: None,
        })
    };
    let others = fabric.servers().filter(|other| *other != server);
    Some(VtepConfig {
        hook: if hook == Hook::Tc { HookChoice::Tc } else { HookChoice::Xdp },
        peers: others.map(|other| addresses.la(other)).collect(),
        pin_dir: Some(lab.pins(name)),
        socket: vtep_socket(&lab.state.lab, name),
        vni: vec![SegmentTable {
            id: Some(VniIds::One(i64::from(VNI))),
            flood: Some(FloodText::Word("peers".to_owned())),
            ..SegmentTable::default()
        }],
        port: vec![PortTable {
            interface: VTEP_PORT.to_owned(),
            vni: Some(i64::from(VNI)),
            vlans: Vec::new(),
            tagged: TaggedText::Drop,
        }],
        entry: fabric.servers().filter_map(entry).collect(),
        ..VtepConfig::new(addresses.la(server), vec![uplink])
    })
}
