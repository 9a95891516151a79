//! `weft node vtep` on every server, with one segment, whose stations are the servers, each behind an access port of its own; or on every
//! edge switch, with a segment for each VLAN of the servers below.

use std::collections::BTreeSet;
use std::path::PathBuf;

use weft_datapath::offload::{self, Offload};
use weft_node::DaemonKind;
use weft_node::vtep::protocol::{Request, What};
use weft_node::vtep::{
    EntryTable, FloodText, HookChoice, PortTable, SegmentTable, TaggedText, VniIds, VtepConfig, ask,
};
use weft_scenario::engine::{Hook, Overlay, TunnelEnd};
use weft_scenario::id::NodeId;

use super::switches::mount_bpffs;
use crate::daemons::{Launcher, start_all};
use crate::error::LabError;
use crate::home::socket_dir;
use crate::plan::{VNI, VTEP_PORT, VXLAN_DEVICE, access_ports, segment, tunnel_peers, vxlan_mac};
use crate::trill::{do_without_driver, interfaces_of};
use crate::up::Lab;

/// Unix socket on which a node's VTEP tells its state and takes commands.
pub fn vtep_socket(lab: &str, node: &str) -> PathBuf {
    socket_dir(lab).join(format!("{node}.vtep.sock"))
}

/// Starts the daemons and waits until they answer.
pub(super) fn start(lab: &mut Lab, launcher: &Launcher<'_>) -> Result<(), LabError> {
    mount_bpffs()?;
    let scenario = &lab.scenario;
    let at_tor = |switch| match scenario.forwarding(switch) {
        Overlay::Vtep { hook, at: TunnelEnd::Tor } => Some((switch, hook, at_tor(lab, switch)?)),
        _ => None,
    };
    let found: Vec<(NodeId, Hook, VtepConfig)> = match scenario.overlay {
        Overlay::Vtep { hook, at: TunnelEnd::Server } => {
            let servers = scenario.fabric.servers();
            servers.filter_map(|server| Some((server, hook, at_server(lab, server)?))).collect()
        }
        _ => scenario.fabric.switches().filter_map(at_tor).collect(),
    };
    let in_driver = found.iter().filter(|(_, hook, _)| *hook != Hook::Tc);
    in_driver.into_iter().try_for_each(|(node, _, config)| prepare_for_xdp(lab, *node, config))?;
    let hooked = |hook| if hook == Hook::Tc { HookChoice::Tc } else { HookChoice::Xdp };
    let configs = found.into_iter().map(|(node, hook, config)| (node, VtepConfig { hook: hooked(hook), ..config }));
    start_all(lab, launcher, DaemonKind::Vtep, &configs.collect::<Vec<_>>(), |lab, node| {
        ask(&vtep_socket(&lab.state.lab, &lab.plan.node(node).name), &Request::Show(What::Peers)).is_ok()
    })
}

/// At XDP nobody finishes a checksum or cuts a segment, and the far ends of all ports must take frames that are redirected to them.
fn prepare_for_xdp(lab: &Lab, node: NodeId, config: &VtepConfig) -> Result<(), LabError> {
    let fabric = &lab.scenario.fabric;
    if config.port.iter().any(|port| port.interface == VTEP_PORT) {
        lab.inside(node, || do_without_driver(VXLAN_DEVICE))?;
    }
    let ends = fabric.links_of(node).iter().filter_map(|link| {
        let own = fabric.link(*link).end_at(node)?;
        fabric.link(*link).far_end(node).filter(|_| config.uplink.contains(&own.interface))
    });
    ends.into_iter().try_for_each(|port| lab.inside(port.node, || offload::set(&port.interface, Offload::Gro, true)))
}

/// All stations are known beforehand, as the kernel's device knows them in its overlay: nothing floods, nothing is learnt.
fn at_server(lab: &Lab, server: NodeId) -> Option<VtepConfig> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let (_, link) = fabric.edge_of(server)?;
    let uplink = fabric.link(link).end_at(server)?.interface.clone();
    let entry = |station: NodeId| {
        let here = station == server;
        Some(EntryTable {
            vni: i64::from(VNI),
            mac: vxlan_mac(addresses.aa(station)?).to_string(),
            peer: (!here).then(|| addresses.la(station)),
            port: here.then(|| VTEP_PORT.to_owned()),
            vlan: None,
            ip: None,
        })
    };
    let others = fabric.servers().filter(|other| *other != server);
    Some(VtepConfig {
        peers: others.map(|other| addresses.la(other)).collect(),
        vni: vec![segment_to(VNI, FloodText::Word("peers".to_owned()))],
        port: vec![port(VTEP_PORT, VNI)],
        entry: fabric.servers().filter_map(entry).collect(),
        ..at(lab, server, vec![uplink])
    })
}

/// Stations are learnt from what they say; a segment's frames to many go to the switches that have servers in it.
fn at_tor(lab: &Lab, switch: NodeId) -> Option<VtepConfig> {
    let scenario = &lab.scenario;
    let ports = access_ports(scenario, switch);
    let vlans: BTreeSet<u16> = ports.iter().map(|(_, vlan)| *vlan).collect();
    let peers = |vlan: &u16| tunnel_peers(scenario, switch, *vlan);
    let flood = |vlan: &u16| match peers(vlan) {
        nobody if nobody.is_empty() => FloodText::Word("nowhere".to_owned()),
        others => FloodText::List(others.into_iter().collect()),
    };
    (!ports.is_empty()).then(|| VtepConfig {
        peers: vlans.iter().flat_map(peers).collect(),
        vni: vlans.iter().map(|vlan| segment_to(segment(*vlan), flood(vlan))).collect(),
        port: ports.iter().map(|(interface, vlan)| port(interface, segment(*vlan))).collect(),
        ..at(lab, switch, interfaces_of(lab, switch, |is_switch| is_switch))
    })
}

fn at(lab: &Lab, node: NodeId, uplinks: Vec<String>) -> VtepConfig {
    let name = &lab.plan.node(node).name;
    VtepConfig {
        pin_dir: Some(lab.pins(name)),
        socket: vtep_socket(&lab.state.lab, name),
        ..VtepConfig::new(lab.scenario.addresses.la(node), uplinks)
    }
}

fn segment_to(vni: u32, flood: FloodText) -> SegmentTable {
    SegmentTable { id: Some(VniIds::One(i64::from(vni))), flood: Some(flood), ..SegmentTable::default() }
}

fn port(interface: &str, vni: u32) -> PortTable {
    PortTable {
        interface: interface.to_owned(),
        vni: Some(i64::from(vni)),
        vlans: Vec::new(),
        tagged: TaggedText::Drop,
    }
}
