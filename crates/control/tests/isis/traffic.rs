//! Frames of end stations on their way while routes change, counted at every port: what the data planes of all RBridges hold at
//! the moment decides each step (RFC 6325 section 4.6), so that circles and doubles show.

use std::collections::BTreeMap;

use weft_control::isis::{AdjacencyState, Hop, PortId};
use weft_wire::ethernet::MacAddress;

use super::net::{Net, Node};

/// What an ingress puts into a header for one egress.
pub(crate) const HOPS_MAX: u8 = 63;
/// All end stations are in it.
pub(crate) const VLAN: u16 = 1;

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Egress {
    /// Stations behind the RBridge with this nickname.
    One(u16),
    /// Everybody, by the tree with this root.
    Tree(u16),
}

/// A copy of a frame between two RBridges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traveller {
    /// Its place in [`Traffic::journeys`].
    id: usize,
    ingress: u16,
    egress: Egress,
    hops_left: u8,
}

/// Where the copies of one frame have been.
#[derive(Debug)]
pub(crate) struct Journey {
    pub(crate) sent_ns: u64,
    /// Where it came in.
    pub(crate) from: usize,
    pub(crate) egress: Egress,
    /// What its header said at first.
    pub(crate) hop_count: u8,
    /// How often each port took it.
    pub(crate) taken: BTreeMap<(usize, PortId), u32>,
    /// How often each RBridge had it for its own end stations.
    pub(crate) delivered: BTreeMap<usize, u32>,
    /// How often it came to each shared link's stations, by the first port there.
    pub(crate) heard: BTreeMap<(usize, PortId), u32>,
    /// Copies whose hop count was used up.
    pub(crate) spent: u32,
}

/// All frames.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) journeys: Vec<Journey>,
}

impl Journey {
    /// How often an RBridge took it at most.
    pub(crate) fn most_taken(&self) -> u32 {
        let mut by_node: BTreeMap<usize, u32> = BTreeMap::new();
        self.taken.iter().for_each(|((node, _), count)| *by_node.entry(*node).or_default() += count);
        by_node.into_values().max().unwrap_or(0)
    }

    /// How often somebody's end stations had it at most.
    pub(crate) fn most_delivered(&self) -> u32 {
        self.delivered.values().chain(self.heard.values()).copied().max().unwrap_or(0)
    }
}

/// The tree of the frames that a node brings in, of several by the frame's number.
pub(crate) fn own_tree(node: &Node, id: usize) -> Option<u16> {
    let trees = &node.data_plane.own_trees;
    trees.iter().nth(id % trees.len().max(1)).copied()
}

impl Net {
    /// A frame comes in from an end station of `node` alone. Nothing happens where the data plane has no way for it.
    pub(crate) fn come_in(&mut self, node: usize, egress: Egress) {
        let hop_count = match egress {
            Egress::One(_) => HOPS_MAX,
            Egress::Tree(root) => self.nodes[node].data_plane.trees.get(&root).map_or(0, |tree| tree.depth as u8 + 1),
        };
        let id = self.traffic.journeys.len();
        self.traffic.journeys.push(Journey {
            sent_ns: self.now_ns,
            from: node,
            egress,
            hop_count,
            taken: BTreeMap::new(),
            delivered: BTreeMap::new(),
            heard: BTreeMap::new(),
            spent: 0,
        });
        self.encapsulate(node, id, egress, hop_count);
        if let Egress::Tree(_) = egress {
            self.tell_stations(node, id, None);
        }
    }

    fn encapsulate(&mut self, node: usize, id: usize, egress: Egress, hops_left: u8) {
        let Some(ingress) = self.nodes[node].nickname() else { return };
        self.send_onward(node, None, Traveller { id, ingress, egress, hops_left });
    }

    /// Steps 5 to 10 of RFC 6325 section 4.6.2.
    pub(crate) fn arrive_as(&mut self, to: (usize, PortId), source: MacAddress, mut traveller: Traveller) {
        let (node, port) = to;
        if !self.is_neighbor(node, Hop { port, mac: source }) {
            return;
        }
        let journey = &mut self.traffic.journeys[traveller.id];
        if traveller.hops_left == 0 {
            journey.spent += 1;
            return;
        }
        let state = &self.nodes[node];
        if state.nicknames.is_empty() || state.nicknames.contains(&traveller.ingress) {
            return;
        }
        let is_last = match traveller.egress {
            Egress::One(egress) => state.nicknames.contains(&egress),
            Egress::Tree(root) => {
                let tree = state.data_plane.trees.get(&root);
                if tree.is_none_or(|tree| tree.rpf.get(&traveller.ingress) != Some(&port)) {
                    return;
                }
                false
            }
        };
        *journey.taken.entry(to).or_default() += 1;
        if is_last {
            *journey.delivered.entry(node).or_default() += 1;
            return;
        }
        if let Egress::Tree(_) = traveller.egress {
            *journey.delivered.entry(node).or_default() += 1;
            self.tell_stations(node, traveller.id, None);
        }
        traveller.hops_left -= 1;
        self.send_onward(node, Some(port), traveller);
    }

    fn send_onward(&mut self, node: usize, came_by: Option<PortId>, traveller: Traveller) {
        let plane = &self.nodes[node].data_plane;
        let hops: Vec<(PortId, Option<MacAddress>)> = match traveller.egress {
            Egress::One(egress) => {
                let there = plane.routes.get(&egress).into_iter().flatten().filter(|hop| self.is_neighbor(node, **hop));
                let there: Vec<&Hop> = there.collect();
                let chosen = there.get(traveller.id % there.len().max(1));
                chosen.map(|hop| (hop.port, Some(hop.mac))).into_iter().collect()
            }
            Egress::Tree(root) => {
                let branches = plane.trees.get(&root).map_or(&[][..], |tree| &tree.ports);
                let onward = branches.iter().map(|branch| branch.port).filter(|port| Some(*port) != came_by);
                onward.filter(|port| self.accepts(node, *port)).map(|port| (port, None)).collect()
            }
        };
        hops.into_iter().for_each(|(port, to)| self.send_on(node, port, to, traveller));
    }

    fn is_neighbor(&self, node: usize, hop: Hop) -> bool {
        let Some(bridge) = &self.nodes[node].bridge else { return false };
        let is_reported = |adjacency: AdjacencyState| adjacency == AdjacencyState::Report;
        bridge.adjacencies().any(|(at, with)| at == hop.port && with.mac == hop.mac && is_reported(with.state))
    }

    /// A forwarder gives the frame to the stations of its shared links, but for the one it came from. Who else forwards there
    /// hears it, too, and brings it in anew: that is how two forwarders make a circle.
    fn tell_stations(&mut self, node: usize, id: usize, came_by: Option<PortId>) {
        let carries = |net: &Self, node: usize, port: PortId| {
            net.nodes[node].access.get(&port).is_some_and(|vlans| vlans.contains(VLAN))
        };
        let ports: Vec<PortId> = self.nodes[node].access.keys().copied().collect();
        for port in ports.into_iter().filter(|port| Some(*port) != came_by) {
            let domain = self.shared_domain(node, port);
            let Some(first) = domain.first().copied().filter(|_| carries(self, node, port)) else { continue };
            *self.traffic.journeys[id].heard.entry(first).or_default() += 1;
            let others = domain.into_iter().filter(|(other, at)| *other != node && carries(self, *other, *at));
            for (other, _) in others.collect::<Vec<_>>() {
                let journey = &self.traffic.journeys[id];
                if journey.most_delivered() > HOPS_MAX.into() {
                    return;
                }
                let Some(root) = own_tree(&self.nodes[other], id) else { continue };
                let hop_count = journey.hop_count;
                self.encapsulate(other, id, Egress::Tree(root), hop_count);
            }
        }
    }
}
