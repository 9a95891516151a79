//! What is drawn of a fabric: all of it, or of a large one the servers of a rack as one node, and of a still larger one what has
//! one role in a pod.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::name::NAME_MAX;
use weft_scenario::topology::{Fabric, Link, Node, Port, RATE_MAX, Role};
use weft_scenario::units::BitsPerSec;

/// Most nodes that are drawn.
pub const NODES_MOST: usize = 600;

/// A fabric and what is drawn of it.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    pub real: &'a Fabric,
    /// What is drawn. Rates of its links are no more than a fabric may have; [`Self::rates`] are true.
    pub drawn: Cow<'a, Fabric>,
    /// How many nodes each drawn one stands for.
    pub node_members: Vec<usize>,
    /// How many links each drawn one stands for, and what they carry together.
    pub link_members: Vec<usize>,
    pub rates: Vec<u64>,
    /// The drawn node of each node.
    nodes: Vec<usize>,
    /// The drawn link of each link, and whether it has its ends the other way round; none within a drawn node.
    links: Vec<Option<(usize, bool)>>,
}

impl<'a> Picture<'a> {
    /// The picture of a fabric; `None` if it is too large, folded as it may be.
    pub fn of(real: &'a Fabric) -> Option<Self> {
        if real.nodes().len() <= NODES_MOST {
            return Some(Self::whole(real));
        }
        let folds = [racks, pods].into_iter().map(|fold| fold(real));
        let mut fits = folds.filter(|groups| groups.iter().collect::<BTreeSet<_>>().len() <= NODES_MOST);
        fits.next().and_then(|groups| Self::folded(real, &groups))
    }

    fn whole(real: &'a Fabric) -> Self {
        let (nodes, links) = (real.nodes().len(), real.links().len());
        Self {
            real,
            drawn: Cow::Borrowed(real),
            node_members: vec![1; nodes],
            link_members: vec![1; links],
            rates: real.links().iter().map(|link| link.spec.rate.0).collect(),
            nodes: (0..nodes).collect(),
            links: (0..links).map(|link| Some((link, false))).collect(),
        }
    }

    /// `groups` are the names of what nodes become part of.
    fn folded(real: &'a Fabric, groups: &[String]) -> Option<Self> {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut drawn, mut nodes, mut node_members) = (Vec::new(), Vec::new(), Vec::<usize>::new());
        for (node, group) in real.nodes().iter().zip(groups) {
            let number = *numbers.entry(group).or_insert(drawn.len());
            if number == drawn.len() {
                drawn.push(Node { name: group.clone(), role: node.role });
                node_members.push(0);
            }
            node_members[number] += 1;
            nodes.push(number);
        }
        let (mut between, mut links): (BTreeMap<(usize, usize), usize>, Vec<Link>) = (BTreeMap::new(), Vec::new());
        let (mut link_members, mut rates) = (Vec::<usize>::new(), Vec::<u64>::new());
        let mut fold = |link: &Link| {
            let (a, b) = (nodes[link.a.node.index()], nodes[link.b.node.index()]);
            if a == b {
                return None;
            }
            let number = *between.entry((a.min(b), a.max(b))).or_insert(links.len());
            if number == links.len() {
                let port = |node: usize| Port { node: NodeId(node as u32), interface: format!("p{number}") };
                links.push(Link { a: port(a), b: port(b), spec: link.spec.clone() });
                link_members.push(0);
                rates.push(0);
            }
            link_members[number] += 1;
            rates[number] += link.spec.rate.0;
            Some((number, links[number].a.node.index() != a))
        };
        let of_links: Vec<Option<(usize, bool)>> = real.links().iter().map(&mut fold).collect();
        for (link, rate) in links.iter_mut().zip(&rates) {
            link.spec.rate = BitsPerSec(*rate).min(RATE_MAX);
        }
        let drawn = Cow::Owned(Fabric::new(real.name(), drawn, links).ok()?);
        Some(Self { real, drawn, node_members, link_members, rates, nodes, links: of_links })
    }

    /// The drawn direction of a direction of the fabric.
    pub fn direction(&self, real: usize) -> Option<usize> {
        self.links[real / 2].map(|(link, is_turned)| 2 * link + ((real % 2) ^ usize::from(is_turned)))
    }

    /// The drawn node of a node that it alone stands for.
    pub fn node(&self, real: usize) -> Option<usize> {
        Some(self.nodes[real]).filter(|drawn| self.node_members[*drawn] == 1)
    }

    /// Drawn links all of whose links are among these.
    pub fn whole_links(&self, real: &[usize]) -> Vec<usize> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (drawn, _) in real.iter().filter_map(|link| self.links[*link]) {
            *counts.entry(drawn).or_default() += 1;
        }
        counts
            .into_iter()
            .filter(|(drawn, count)| self.link_members[*drawn] == *count)
            .map(|(drawn, _)| drawn)
            .collect()
    }
}

/// Servers of a rack together, everybody else alone.
fn racks(fabric: &Fabric) -> Vec<String> {
    let group = |id: NodeId| match fabric.edge_of(id).filter(|_| folds(fabric, id)) {
        Some((edge, _)) => name(&fabric.node(edge).name, "servers", edge.index()),
        None => fabric.node(id).name.clone(),
    };
    fabric.ids().map(group).collect()
}

/// What has one role in a pod together: a pod is what hangs together without the top switches.
fn pods(fabric: &Fabric) -> Vec<String> {
    let pods = numbered_pods(fabric);
    let group = |id: NodeId| {
        let Node { name: own, role } = fabric.node(id);
        match pods.get(&id) {
            Some(pod) if folds(fabric, id) => name(&format!("pod{pod}"), "servers", *pod),
            Some(pod) if role.tier() != Role::HOST_TIER => name(&format!("pod{pod}"), word(*role), *pod),
            _ => own.clone(),
        }
    };
    fabric.ids().map(group).collect()
}

/// End hosts with one link are servers, or much like them.
fn folds(fabric: &Fabric, id: NodeId) -> bool {
    fabric.node(id).role.tier() == Role::HOST_TIER && fabric.links_of(id).len() == 1
}

fn word(role: Role) -> &'static str {
    match role {
        Role::Access => "access",
        Role::Aggregation => "aggregations",
        Role::Tor => "tors",
        Role::Leaf => "leaves",
        _ => "switches",
    }
}

/// Names of nodes have an end.
fn name(of: &str, what: &str, number: usize) -> String {
    let name = format!("{of}-{what}");
    if name.len() <= NAME_MAX { name } else { format!("{what}-{number}") }
}

/// The number of the pod of each node that is in one, from 1.
fn numbered_pods(fabric: &Fabric) -> BTreeMap<NodeId, usize> {
    let is_top = |id: NodeId| fabric.node(id).role.tier() <= 1;
    let mut pods = BTreeMap::new();
    let mut count = 0;
    for begin in fabric.ids().filter(|id| !is_top(*id)) {
        if pods.contains_key(&begin) {
            continue;
        }
        count += 1;
        let mut edge = vec![begin];
        while let Some(at) = edge.pop() {
            if pods.insert(at, count).is_none() {
                let links = fabric.links_of(at).iter().map(|link: &LinkId| fabric.link(*link));
                edge.extend(links.filter_map(|link| Some(link.far_end(at)?.node)).filter(|far| !is_top(*far)));
            }
        }
    }
    pods
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{FatTreeParams, LeafSpineParams, TestbedParams, fat_tree, leaf_spine, vl2_testbed};

    use super::*;

    fn racks_of(leaves: u32, servers_per_leaf: u32) -> Fabric {
        leaf_spine(&LeafSpineParams { spines: 4, leaves, servers_per_leaf, ..Default::default() }).unwrap()
    }

    #[test]
    fn a_small_fabric_is_drawn_as_it_is() {
        let fabric = vl2_testbed(&TestbedParams::default()).unwrap();
        let picture = Picture::of(&fabric).unwrap();
        assert_eq!(&*picture.drawn, &fabric);
        assert!((0..2 * fabric.links().len()).all(|direction| picture.direction(direction) == Some(direction)));
        assert_eq!((picture.node(3), picture.whole_links(&[5, 2])), (Some(3), vec![2, 5]));
    }

    #[test]
    fn servers_of_a_rack_are_one_node_with_one_link_of_all_their_rates() {
        let fabric = racks_of(40, 20);
        let picture = Picture::of(&fabric).unwrap();
        assert_eq!((picture.drawn.nodes().len(), picture.drawn.links().len()), (4 + 40 + 40, 4 * 40 + 40));
        assert_eq!(picture.node_members.iter().sum::<usize>(), fabric.nodes().len());
        let rack = picture.drawn.find("leaf7-servers").unwrap();
        assert_eq!(picture.node_members[rack.index()], 20);
        let (edge, link) = picture.drawn.edge_of(rack).unwrap();
        assert_eq!(picture.drawn.node(edge).name, "leaf7");
        let server = fabric.links().iter().find(|link| fabric.node(link.b.node).name == "s121").unwrap();
        assert_eq!(picture.rates[link.index()], 20 * server.spec.rate.0);
        // All links of one server are not all links of its rack; those of all servers are.
        let of_rack: Vec<usize> = (0..fabric.links().len())
            .filter(|number| picture.direction(2 * number).is_some_and(|drawn| drawn / 2 == link.index()))
            .collect();
        assert_eq!((of_rack.len(), picture.whole_links(&of_rack[1..]).len()), (20, 0));
        assert_eq!(picture.whole_links(&of_rack), [link.index()]);
        let s121 = fabric.find("s121").unwrap();
        assert_eq!((picture.node(s121.index()), picture.node(0)), (None, Some(0)));
    }

    #[test]
    fn directions_stay_those_of_the_ends() {
        let fabric = racks_of(40, 20);
        let picture = Picture::of(&fabric).unwrap();
        for (number, link) in fabric.links().iter().enumerate() {
            for (side, port) in [&link.a, &link.b].into_iter().enumerate() {
                let drawn = picture.direction(2 * number + side).unwrap();
                let of_drawn = &picture.drawn.links()[drawn / 2];
                let sender = if drawn.is_multiple_of(2) { of_drawn.a.node } else { of_drawn.b.node };
                assert_eq!(sender.index(), picture.nodes[port.node.index()], "{number} {side}");
            }
        }
    }

    #[test]
    fn a_fat_tree_of_thousands_is_drawn_by_its_pods() {
        let fabric = fat_tree(&FatTreeParams::with_ports(24)).unwrap();
        assert!(fabric.nodes().len() > 4_000);
        let picture = Picture::of(&fabric).unwrap();
        // 144 cores; Aggregations, ToRs and servers of 24 pods.
        assert_eq!(picture.drawn.nodes().len(), 144 + 3 * 24);
        let tors = picture.drawn.find("pod1-tors").unwrap();
        assert_eq!(picture.node_members[tors.index()], 12);
        assert!(picture.link_members.iter().sum::<usize>() == fabric.links().len(), "no link is within a node");
    }

    #[test]
    fn what_is_too_large_however_folded_has_no_picture() {
        assert!(Picture::of(&racks_of(400, 2)).is_none());
    }
}
