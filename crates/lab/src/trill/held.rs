//! What the process that measures a lab holds for switches that forward frames, as long as it runs: plain switches at XDP, links in
//! virtual time, ports that take live frames.

use std::collections::BTreeSet;

use weft_datapath::offload::{self, Offload};
use weft_scenario::engine::{Hook, Overlay, TunnelEnd};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::SpanningTree;
use weft_testbed::bed::BedPrograms;
use weft_testbed::l2::PlainSwitch;

use super::links::CampusLinks;
use crate::error::LabError;
use crate::overlay::datapath_error;
use crate::plan::interfaces;
use crate::up::Lab;

/// A plain switch and what it calls its ports, in the order of its links.
#[derive(Debug)]
struct Placed {
    node: NodeId,
    switch: PlainSwitch,
    ports: Vec<u32>,
}

/// It goes before the lab.
#[derive(Debug, Default)]
pub(crate) struct Held {
    links: CampusLinks,
    plain: Vec<Placed>,
    polling: Vec<BedPrograms>,
}

impl Held {
    /// What a lab's overlay needs, with links of their rates, buffers and delays where it is shaped.
    pub(crate) fn of(lab: &Lab) -> Result<Self, LabError> {
        let mut held = Self::default();
        if lab.scenario.overlay.forwards_frames() && lab.scenario.shaped {
            held.links = CampusLinks::emulate(lab)?;
        }
        for switch in lab.scenario.fabric.switches() {
            match lab.scenario.forwarding(switch) {
                Overlay::Layer2 { hook } => {
                    if hook == Hook::Tc {
                        held.polling_ports(lab, switch)?;
                    }
                    held.plain_switch(lab, switch, hook)?;
                }
                Overlay::Bridge { .. }
                | Overlay::KernelVxlan { at: TunnelEnd::Tor }
                | Overlay::Vtep { hook: Hook::Tc, at: TunnelEnd::Tor } => held.polling_ports(lab, switch)?,
                Overlay::RBridge { hook: Hook::XdpGeneric, .. } => joining_ports(lab, switch)?,
                _ => {}
            }
        }
        Ok(held)
    }

    /// Tells plain switches behind which server stations are; their frames go along the spanning tree. RBridges would learn it
    /// otherwise; bridges do.
    pub(crate) fn know(&self, lab: &Lab, stations: &[([u8; 6], NodeId)]) -> Result<(), LabError> {
        let fabric = &lab.scenario.fabric;
        let at = |host: NodeId| fabric.edge_of(host);
        let places = stations.iter().filter_map(|(mac, host)| at(*host).map(|(_, link)| (*mac, link)));
        super::rbridges::know(lab, &places.collect::<Vec<_>>())?;
        let tree = SpanningTree::compute(fabric, &BTreeSet::new());
        for (mac, host) in stations {
            let Some((edge, access)) = at(*host) else { continue };
            for Placed { node, switch, ports } in &self.plain {
                let way = if *node == edge { Some(access) } else { tree.next_hop(*node, edge) };
                let place = way.and_then(|link| fabric.links_of(*node).iter().position(|own| *own == link));
                if let Some(port) = place.and_then(|place| ports.get(place)) {
                    let known = switch.set_mac(*mac, *port);
                    known.map_err(|error| datapath_error(&fabric.node(*node).name, &error))?;
                }
            }
        }
        Ok(())
    }

    fn plain_switch(&mut self, lab: &Lab, node: NodeId, hook: Hook) -> Result<(), LabError> {
        let links = self.links.of(node);
        let add = |switch: &mut PlainSwitch, interface: &String| match hook {
            Hook::Tc => switch.add_tc_port(interface),
            _ => switch.add_xdp_port(interface, links),
        };
        let interfaces = interfaces_of(lab, node, |_| true);
        self.plain.push(lab.inside(node, || {
            let mut switch = PlainSwitch::load()?;
            let ports = interfaces.iter().map(|interface| add(&mut switch, interface)).collect::<Result<_, _>>()?;
            Ok(Placed { node, switch, ports })
        })?);
        Ok(())
    }

    /// A host's end can send live frames only to an end that polls.
    fn polling_ports(&mut self, lab: &Lab, node: NodeId) -> Result<(), LabError> {
        let interfaces = interfaces_of(lab, node, |is_switch| !is_switch);
        if !interfaces.is_empty() {
            self.polling.push(lab.inside(node, || {
                let mut programs = BedPrograms::load()?;
                interfaces.iter().try_for_each(|port| programs.poll(port))?;
                Ok(programs)
            })?);
        }
        Ok(())
    }
}

/// The same where a program in the stack is in the way of one in the driver: an end that joins frames polls, too.
fn joining_ports(lab: &Lab, node: NodeId) -> Result<(), LabError> {
    let ports = interfaces_of(lab, node, |is_switch| !is_switch);
    lab.inside(node, || ports.iter().try_for_each(|port| offload::set(port, Offload::Gro, true)))
}

/// Interfaces of a node whose far ends are wanted, in the order of its links.
pub(crate) fn interfaces_of(lab: &Lab, node: NodeId, wanted: impl Fn(bool) -> bool) -> Vec<String> {
    let fabric = &lab.scenario.fabric;
    let far_is_switch =
        |link: &LinkId| fabric.link(*link).far_end(node).is_some_and(|port| fabric.node(port.node).role.is_switch());
    let links = fabric.links_of(node).iter().filter(|link| wanted(far_is_switch(link)));
    links.flat_map(|link| interfaces(&lab.scenario, *link, node)).map(|port| port.interface).collect()
}
