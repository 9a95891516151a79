//! Where a network is cut into parts, each of which runs by itself for a window of time: as long as the shortest link between
//! switches delays what it carries, no part can know what another one has sent.

use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::Fabric;

use crate::job::Job;
use crate::routes::Routes;
use crate::routes::walk::sender_of;
use crate::time::ps;

/// The parts of a network.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    parts: u32,
    /// By node and by server; empty where there is one part.
    of_node: Vec<u32>,
    of_host: Vec<u32>,
    /// By port, the part of the node that it sends to.
    of_end: Vec<u32>,
    window_ps: u64,
}

impl Cut {
    /// At most so many parts: none without a server, and one where links between switches take no time.
    ///
    /// Each kind of switch is divided evenly in the order of its numbers, those with servers in that of the switches above them,
    /// so that pods stay together; a server is where its switch is.
    pub(super) fn new(job: &Job, parts: u32) -> Self {
        let fabric = &job.fabric;
        let window_ps = window_ps(fabric);
        let mut edges: Vec<NodeId> = fabric.switches().filter(|switch| has_servers(fabric, *switch)).collect();
        let parts = if window_ps == 0 { 1 } else { parts.clamp(1, edges.len().max(1) as u32) };
        if parts == 1 {
            return Self { parts, of_node: Vec::new(), of_host: Vec::new(), of_end: Vec::new(), window_ps };
        }
        edges.sort_by_cached_key(|edge| {
            neighbours(fabric, *edge).filter(|node| is_switch(fabric, *node)).collect::<Vec<NodeId>>()
        });
        let mut of_node = vec![0; fabric.nodes().len()];
        divide(&mut of_node, &edges, parts);
        for role in fabric.switches().map(|switch| fabric.node(switch).role).collect::<std::collections::BTreeSet<_>>()
        {
            let inner = |switch: &NodeId| fabric.node(*switch).role == role && !has_servers(fabric, *switch);
            divide(&mut of_node, &fabric.switches().filter(inner).collect::<Vec<NodeId>>(), parts);
        }
        for server in fabric.servers() {
            of_node[server.index()] = fabric.edge_of(server).map_or(0, |(edge, _)| of_node[edge.index()]);
        }
        let of_host = fabric.servers().map(|server| of_node[server.index()]).collect();
        let far = |port: u32| {
            let (link, near) = sender_of(fabric, port);
            fabric.link(link).far_end(near).map_or(0, |end| of_node[end.node.index()])
        };
        let of_end = (0..2 * fabric.links().len() as u32).map(far).collect();
        Self { parts, of_node, of_host, of_end, window_ps }
    }

    pub(super) fn parts(&self) -> u32 {
        self.parts
    }

    /// The part of a server.
    #[inline]
    pub(super) fn part_of_host(&self, server: u32) -> u32 {
        self.of_host.get(server as usize).copied().unwrap_or(0)
    }

    /// The part that a port sends to.
    pub(super) fn sends_to(&self, port: u32) -> u32 {
        self.of_end.get(port as usize).copied().unwrap_or(0)
    }

    /// The part of a port's sender.
    pub(super) fn sends_from(&self, fabric: &Fabric, port: u32) -> u32 {
        self.of_node.get(sender_of(fabric, port).1.index()).copied().unwrap_or(0)
    }

    /// The part that a packet's route leads to.
    pub(super) fn part_of_end(&self, routes: &Routes, place: u32) -> u32 {
        if self.parts == 1 { 0 } else { self.sends_to(routes.last(place).port()) }
    }

    /// Ports of a part that send to others.
    pub(super) fn outgoing<'a>(&'a self, job: &'a Job, part: u32) -> impl Iterator<Item = u32> + 'a {
        let ports = 0..self.of_end.len() as u32;
        ports.filter(move |port| self.sends_from(&job.fabric, *port) == part && self.sends_to(*port) != part)
    }

    /// When the window ends that a time is in. Windows are the same however a network is cut.
    pub(super) fn window_ends_ps(&self, time_ps: u64) -> u64 {
        match self.window_ps {
            0 => time_ps,
            window_ps => (time_ps / window_ps + 1).saturating_mul(window_ps),
        }
    }
}

fn has_servers(fabric: &Fabric, switch: NodeId) -> bool {
    neighbours(fabric, switch).any(|node| !is_switch(fabric, node))
}

fn neighbours(fabric: &Fabric, switch: NodeId) -> impl Iterator<Item = NodeId> {
    fabric.links_of(switch).iter().filter_map(move |link| fabric.link(*link).far_end(switch).map(|end| end.node))
}

fn is_switch(fabric: &Fabric, node: NodeId) -> bool {
    fabric.node(node).role.is_switch()
}

/// The shortest delay of a link between switches, in picoseconds; 0 if there is none.
fn window_ps(fabric: &Fabric) -> u64 {
    let between = |link: &LinkId| {
        let ends = fabric.link(*link);
        [ends.a.node, ends.b.node].iter().all(|node| fabric.node(*node).role.is_switch())
    };
    let links = (0..fabric.links().len() as u32).map(LinkId).filter(between);
    links.map(|link| ps(fabric.link(link).spec.delay.0)).min().unwrap_or(0)
}

fn divide(of_node: &mut [u32], nodes: &[NodeId], parts: u32) {
    for (place, node) in nodes.iter().enumerate() {
        of_node[node.index()] = (place as u64 * u64::from(parts) / nodes.len() as u64) as u32;
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::Role;

    use super::*;

    /// VL2's ToRs are dealt to pairs of Aggregation switches in turn, so their numbers say nothing about who is near to whom.
    #[test]
    fn a_tor_is_in_the_part_of_its_aggregation_switches() {
        let job = crate::bench::job("vl2_1600").expect("it is in the list");
        let fabric = &job.fabric;
        let cut = Cut::new(&job, 2);
        let of = |node: NodeId| cut.of_node[node.index()];
        let mut tors = [0, 0];
        for tor in fabric.switches().filter(|switch| fabric.node(*switch).role == Role::Tor) {
            tors[of(tor) as usize] += 1;
            let above = neighbours(fabric, tor).filter(|node| is_switch(fabric, *node)).map(of);
            assert_eq!(above.collect::<Vec<u32>>(), [of(tor); 2]);
        }
        assert_eq!(tors, [50, 50]);
    }
}
