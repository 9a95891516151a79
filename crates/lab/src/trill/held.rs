//! What the process that measures a lab holds for switches that forward frames, as long as it runs: plain switches at XDP, links in
//! virtual time, ports that take live frames.

use std::collections::BTreeSet;

use weft_datapath::bed::BedPrograms;
use weft_datapath::offload::{self, Offload};
use weft_scenario::engine::{Hook, Overlay, TunnelEnd};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::SpanningTree;

use super::links::CampusLinks;
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::overlay::datapath_error;
use crate::plan::interfaces;
use crate::up::Lab;

/// Programs on a switch's interfaces.
#[derive(Debug)]
struct PlainSwitch {
    node: NodeId,
    programs: BedPrograms,
    /// What the programs call its ports, in the order of its links; none where somebody else forwards.
    ports: Vec<u32>,
}

/// It goes before the lab.
#[derive(Debug, Default)]
pub(crate) struct Held {
    links: CampusLinks,
    /// Plain switches, each in the order of the fabric's switches, and whatever else holds a program on an interface.
    beds: Vec<PlainSwitch>,
}

impl Held {
    /// What a lab's overlay needs, with links of their rates, buffers and delays where it is shaped.
    pub(crate) fn of(lab: &Lab) -> Result<Self, LabError> {
        let mut held = Self::default();
        if lab.scenario.overlay.forwards_frames() && lab.scenario.shaped {
            held.links = CampusLinks::emulate(lab)?;
        }
        match lab.scenario.overlay {
            Overlay::Layer2 { hook } => held.plain_switches(lab, hook)?,
            Overlay::Bridge { .. }
            | Overlay::KernelVxlan { at: TunnelEnd::Tor }
            | Overlay::Vtep { hook: Hook::Tc, at: TunnelEnd::Tor } => held.polling_ports(lab)?,
            Overlay::RBridge { hook: Hook::XdpGeneric, .. } => joining_ports(lab)?,
            _ => {}
        }
        Ok(held)
    }

    /// Tells plain switches behind which server stations are; their frames go along the spanning tree. RBridges would learn it
    /// otherwise; bridges do.
    pub(crate) fn know(&self, lab: &Lab, stations: &[([u8; 6], NodeId)]) -> Result<(), LabError> {
        let fabric = &lab.scenario.fabric;
        let at = |host: NodeId| fabric.edge_of(host);
        if let Overlay::RBridge { .. } = lab.scenario.overlay {
            let places = stations.iter().filter_map(|(mac, host)| at(*host).map(|(_, link)| (*mac, link)));
            let places: Vec<_> = places.collect();
            return super::rbridges::know(lab, &fabric.switches().collect::<Vec<_>>(), &places);
        }
        let tree = SpanningTree::compute(fabric, &BTreeSet::new());
        for (mac, host) in stations {
            let Some((edge, access)) = at(*host) else { continue };
            for PlainSwitch { node, programs, ports } in &self.beds {
                let way = if *node == edge { Some(access) } else { tree.next_hop(*node, edge) };
                let place = way.and_then(|link| fabric.links_of(*node).iter().position(|own| *own == link));
                if let Some(port) = place.and_then(|place| ports.get(place)) {
                    let known = programs.set_mac(*mac, *port);
                    known.map_err(|error| datapath_error(&fabric.node(*node).name, &error))?;
                }
            }
        }
        Ok(())
    }

    fn plain_switches(&mut self, lab: &Lab, hook: Hook) -> Result<(), LabError> {
        for switch in lab.scenario.fabric.switches() {
            let links = self.links.of(switch);
            let add = |programs: &mut BedPrograms, interface: &String| match (hook, links) {
                (Hook::Tc, _) => programs.add_tc_port(interface),
                (_, None) => programs.add_xdp_port(interface),
                (_, Some(links)) => programs.add_xdp_port_over(interface, links),
            };
            let (interfaces, polling) = (interfaces_of(lab, switch, |_| true), interfaces_of(lab, switch, |is| !is));
            let (programs, ports) = load(lab, switch, |programs| {
                if hook == Hook::Tc {
                    polling.iter().try_for_each(|port| programs.poll(port))?;
                }
                interfaces.iter().map(|interface| add(programs, interface)).collect()
            })?;
            self.beds.push(PlainSwitch { node: switch, programs, ports });
        }
        Ok(())
    }

    /// A host's end can send live frames only to an end that polls.
    fn polling_ports(&mut self, lab: &Lab) -> Result<(), LabError> {
        for switch in lab.scenario.fabric.switches() {
            let interfaces = interfaces_of(lab, switch, |is_switch| !is_switch);
            if !interfaces.is_empty() {
                let poll = |programs: &mut BedPrograms| interfaces.iter().try_for_each(|port| programs.poll(port));
                let (programs, ()) = load(lab, switch, poll)?;
                self.beds.push(PlainSwitch { node: switch, programs, ports: Vec::new() });
            }
        }
        Ok(())
    }
}

/// The same where a program in the stack is in the way of one in the driver: an end that joins frames polls, too.
fn joining_ports(lab: &Lab) -> Result<(), LabError> {
    for switch in lab.scenario.fabric.switches() {
        let plan = lab.plan.node(switch);
        let ports = interfaces_of(lab, switch, |is_switch| !is_switch);
        let join = || ports.iter().try_for_each(|port| offload::set(port, Offload::Gro, true));
        let joined = netns::in_namespace(&namespace_path(&plan.namespace), join)?;
        joined.map_err(|error| datapath_error(&plan.name, &error))?;
    }
    Ok(())
}

fn load<T: Send>(
    lab: &Lab,
    node: NodeId,
    work: impl FnOnce(&mut BedPrograms) -> Result<T, weft_datapath::DatapathError> + Send,
) -> Result<(BedPrograms, T), LabError> {
    let plan = lab.plan.node(node);
    let load = || {
        let mut programs = BedPrograms::load()?;
        let made = work(&mut programs)?;
        Ok((programs, made))
    };
    netns::in_namespace(&namespace_path(&plan.namespace), load)?.map_err(|error| datapath_error(&plan.name, &error))
}

/// Interfaces of a node whose far ends are wanted, in the order of its links.
pub(crate) fn interfaces_of(lab: &Lab, node: NodeId, wanted: impl Fn(bool) -> bool) -> Vec<String> {
    let fabric = &lab.scenario.fabric;
    let far_is_switch =
        |link: &LinkId| fabric.link(*link).far_end(node).is_some_and(|port| fabric.node(port.node).role.is_switch());
    let links = fabric.links_of(node).iter().filter(|link| wanted(far_is_switch(link)));
    links.flat_map(|link| interfaces(&lab.scenario, *link, node)).map(|port| port.interface).collect()
}
