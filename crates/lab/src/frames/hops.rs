//! The switches between the test centre's ports, hop by hop, and the chain of them ended behind one.

use std::collections::BTreeSet;

use weft_scenario::engine::Overlay;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::EcmpRoutes;
use weft_testbed::Cut;
use weft_testbed::loss::Cuts;

use super::bed::Bed;
use crate::error::LabError;
use crate::plan::interfaces;
use crate::tester::TesterError;
use crate::tester::port::Port;
use crate::up::Lab;

/// The switches on all shortest paths, by their distance from the sending port.
pub(super) struct Hops<'a> {
    lab: &'a Lab,
    levels: Vec<Vec<NodeId>>,
}

impl<'a> Hops<'a> {
    pub(super) fn of(lab: &'a Lab, bed: &Bed<'_>) -> Result<Self, TesterError> {
        let fabric = &lab.scenario.fabric;
        let edge = |server| fabric.edge_of(server).expect("a server of the bed has an edge switch").0;
        let ends: BTreeSet<NodeId> = bed.receivers.iter().map(|server| edge(*server)).collect();
        let routes = EcmpRoutes::compute(fabric, &BTreeSet::new());
        let mut levels = vec![vec![edge(bed.sender)]];
        while levels.last().is_some_and(|level| !level.iter().any(|node| ends.contains(node))) {
            let level = levels.last().expect("there is the first");
            let links = level.iter().flat_map(|node| ends.iter().map(move |end| (*node, *end)));
            let next = links.flat_map(|(node, end)| {
                routes
                    .next_hops(node, end)
                    .into_iter()
                    .filter_map(move |link| Some(fabric.link(link).far_end(node)?.node))
            });
            let next: BTreeSet<NodeId> = next.collect();
            if next.is_empty() {
                let why = format!("no path of switches leads between the servers of fabric `{}`", fabric.name());
                return Err(TesterError::Refused(why));
            }
            levels.push(next.into_iter().collect());
        }
        Ok(Self { lab, levels })
    }

    /// How many switches a frame passes.
    pub(super) fn count(&self) -> usize {
        self.levels.len()
    }

    /// Who a frame has passed behind so many hops, from 1: `leaf1`, or the first and the last of several, `spine1-spine4`. Behind the
    /// last are the receiving servers.
    pub(super) fn name(&self, hop: usize, bed: &Bed<'_>) -> String {
        let name = |node: &NodeId| self.lab.scenario.fabric.node(*node).name.as_str();
        match &self.levels.get(hop - 1).unwrap_or(&bed.receivers)[..] {
            [only] => name(only).to_owned(),
            [first, .., last] => format!("{}-{}", name(first), name(last)),
            [] => unreachable!("a hop has switches"),
        }
    }

    /// The first switch of a hop by name.
    pub(super) fn switch(&self, hop: usize) -> &str {
        &self.lab.scenario.fabric.node(self.switches(hop)[0]).name
    }

    /// The switches of a hop.
    pub(super) fn switches(&self, hop: usize) -> &[NodeId] {
        &self.levels[hop - 1]
    }

    /// Every switch of the second hop by name, with its port towards the first; none where there is only one hop.
    pub(super) fn second(&self) -> Result<Vec<(String, Port)>, TesterError> {
        let Some(switches) = self.levels.get(1) else { return Ok(Vec::new()) };
        let port = |node: &NodeId| {
            let [(at, link), ..] = self.between(1, *node)[..] else { unreachable!("it is a neighbour of the first") };
            let plan = self.lab.plan.node(at);
            let interface = interfaces(&self.lab.scenario, link, at).swap_remove(0).interface;
            Ok((plan.name.clone(), Port::open(&format!("{}:{interface}", plan.namespace))?))
        };
        switches.iter().map(port).collect()
    }

    /// Where frames come in at the switches of a hop, from 1.
    pub(super) fn entries(&self, hop: usize, bed: &Bed<'_>) -> Result<Vec<Port>, TesterError> {
        let links = match hop {
            1 => vec![self.access(bed)],
            _ => self.levels[hop - 1].iter().flat_map(|switch| self.between(hop - 1, *switch)).collect(),
        };
        let port = |(node, link)| {
            let interface = interfaces(&self.lab.scenario, link, node).swap_remove(0).interface;
            Port::open(&format!("{}:{interface}", self.lab.plan.node(node).namespace))
        };
        links.into_iter().map(port).collect()
    }

    /// The first switch, and its link to the sending server.
    fn access(&self, bed: &Bed<'_>) -> (NodeId, LinkId) {
        self.lab.scenario.fabric.edge_of(bed.sender).expect("a server of the bed has an edge switch")
    }

    /// Links of a switch to those of a hop before it.
    fn between(&self, hop: usize, switch: NodeId) -> Vec<(NodeId, LinkId)> {
        let fabric = &self.lab.scenario.fabric;
        let leads = |link: &&LinkId| {
            fabric.link(**link).far_end(switch).is_some_and(|port| self.levels[hop - 1].contains(&port.node))
        };
        fabric.links_of(switch).iter().filter(leads).map(|link| (switch, *link)).collect()
    }

    /// Ends the chain behind the sending server, until the result is dropped.
    pub(super) fn cut_behind_sender(&self, cuts: &Cuts, bed: &Bed<'_>) -> Result<Vec<Cut>, LabError> {
        let (edge, link) =
            self.lab.scenario.fabric.edge_of(bed.sender).expect("a server of the bed has an edge switch");
        let port = interfaces(&self.lab.scenario, link, edge).swap_remove(0).interface;
        Ok(vec![self.lab.inside(edge, || cuts.cut(&port))?])
    }

    /// Ends the chain behind a hop that is not the last, until the result is dropped: what comes next drops every frame. Where a
    /// switch forwards at XDP, the packet that the kernel of a routing switch or a bridge makes of a frame is not that switch's cost.
    pub(super) fn cut_behind(&self, hop: usize, cuts: &Cuts) -> Result<Vec<Cut>, LabError> {
        let mut all = Vec::new();
        let from_driver = self.levels[hop - 1].iter().any(|switch| self.in_driver(*switch));
        for switch in &self.levels[hop] {
            let ports = self.between(hop, *switch).into_iter();
            let ports: Vec<String> = ports
                .flat_map(|(node, link)| interfaces(&self.lab.scenario, link, node))
                .map(|port| port.interface)
                .collect();
            let to_kernel = match self.lab.scenario.forwarding(*switch) {
                Overlay::Bridge { .. } => true,
                other => other.tunnels_at_tors() && hop + 1 < self.count(),
            };
            let before_kernel = from_driver && to_kernel;
            let cut_one = |port: &String| if before_kernel { cuts.cut_at_xdp(port) } else { cuts.cut(port) };
            let cut = || ports.iter().map(cut_one).collect::<Result<Vec<_>, _>>();
            all.extend(self.lab.inside(*switch, cut)?);
        }
        Ok(all)
    }

    fn in_driver(&self, switch: NodeId) -> bool {
        self.lab.scenario.forwarding(switch).is_in_driver()
    }

    /// Ends it behind the last switch, at the receiving ports: where the last switch forwards at XDP, before the kernel makes a
    /// packet of a frame.
    pub(super) fn cut_at_receivers(&self, cuts: &Cuts, bed: &Bed<'_>) -> Result<Vec<Cut>, LabError> {
        let cut = |server: &NodeId| {
            let edge = self.lab.scenario.fabric.edge_of(*server);
            let in_driver = edge.is_some_and(|(edge, _)| self.in_driver(edge));
            let port = bed.interface(*server);
            self.lab.inside(*server, || if in_driver { cuts.cut_at_xdp(&port) } else { cuts.cut(&port) })
        };
        bed.receivers.iter().map(cut).collect()
    }
}
