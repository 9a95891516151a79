//! What every RBridge should hold, from the true topology alone: all-pairs distances by Floyd and Warshall, parents and
//! branches by the text of RFC 6325 section 4.5 and RFC 7780 section 3. Shares no code with what it judges.
//!
//! The vertices are the RBridges and, after them, the shared links that are nodes of the graph ([`shared`](super::shared)).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use weft_control::isis::{Hop, PortId, RBridge, TreePort, TreeState};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::lsp::CapabilitySub;
use weft_wire::isis::{NodeId, Pdu, SystemId, Tlv};
use weft_wire::listener::Listeners;
use weft_wire::vlan::VlanSet;

use super::broadcast;
use super::net::{Link, Net};
use super::shared::{self, Domain};

const FAR: u64 = u64::MAX / 4;
/// In larger campuses frames are not followed from everybody to everybody.
const BROADCAST_NODES_MAX: usize = 50;

/// The true campus.
pub(crate) struct Oracle<'a> {
    net: &'a Net,
    nodes: usize,
    domains: Vec<Domain>,
    /// Names of the vertices.
    ids: Vec<NodeId>,
    /// Least cost of sending over a working link, from the first to the second.
    link: Vec<Vec<u64>>,
    /// Least cost over nodes that are not overloaded.
    far: Vec<Vec<u64>>,
    /// Which nodes working links connect at all.
    component: Vec<usize>,
    /// Ways from each node to others over one link.
    ways: Vec<Vec<Way>>,
    /// Trees that somebody asked for already: the parents of all vertices, by root and number.
    parents: RefCell<Trees>,
}

/// From a port to a port at the other end of a link, or of a shared one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) from: (usize, PortId),
    pub(crate) to: (usize, PortId),
    pub(crate) cost: u64,
    /// What LSPs say of it: the vertex of the shared link, if that is one, else the neighbour.
    pub(crate) via: usize,
    /// Of a shared link.
    pub(crate) lan_id: Option<NodeId>,
}

type Trees = BTreeMap<(usize, u16), Rc<[Option<usize>]>>;

impl<'a> Oracle<'a> {
    pub(crate) fn new(net: &'a Net) -> Self {
        let nodes = net.nodes.len();
        let domains = shared::domains(net);
        let mut ids: Vec<NodeId> = net.nodes.iter().map(|node| node.system.node()).collect();
        let mut ways = cable_ways(net);
        for domain in &domains {
            let vertex = (!domain.bypass).then_some(ids.len());
            ids.extend(vertex.map(|_| domain.lan_id));
            ways.extend(domain.ways(net, vertex));
        }
        let mut link = vec![vec![FAR; ids.len()]; ids.len()];
        let mut component: Vec<usize> = (0..ids.len()).collect();
        for way in &ways {
            let (a, b) = (way.from.0, way.to.0);
            link[a][way.via] = link[a][way.via].min(way.cost);
            if way.via != b {
                link[way.via][b] = 0;
            }
            for next in [b, way.via] {
                let (old, new) = (component[a], component[next]);
                component.iter_mut().filter(|label| **label == old).for_each(|label| *label = new);
            }
        }
        let mut far = link.clone();
        for (node, row) in far.iter_mut().enumerate() {
            row[node] = 0;
        }
        let is_crossed = |vertex: &usize| net.nodes.get(*vertex).is_none_or(|node| !node.overloaded);
        for middle in (0..ids.len()).filter(is_crossed) {
            let onward = far[middle].clone();
            for row in far.iter_mut().filter(|row| row[middle] < FAR) {
                let first = row[middle];
                row.iter_mut().zip(&onward).for_each(|(direct, rest)| *direct = (*direct).min(first + rest));
            }
        }
        let of = |me| ways.iter().filter(|way| way.from.0 == me).copied().collect();
        let ways = (0..nodes).map(of).collect();
        Self { net, nodes, domains, ids, link, far, component, ways, parents: RefCell::default() }
    }

    /// Every RBridge that runs holds what it should, and its outputs said so.
    pub(crate) fn judge(&self) -> Result<(), String> {
        let alive: Vec<usize> = (0..self.nodes).filter(|node| self.net.nodes[*node].bridge.is_some()).collect();
        let mut names = BTreeSet::new();
        for &node in &alive {
            let (nicknames, told) = (self.nicknames(node), &self.net.nodes[node].nicknames);
            let wanted = self.net.nodes[node].nicknames_wanted;
            if nicknames.len() != wanted || *told != nicknames {
                return Err(format!("rb{node} holds {nicknames:x?}, wants {wanted}, and told of {told:x?}"));
            }
            if let Some(shared) = nicknames.iter().find(|nickname| !names.insert((self.component[node], **nickname))) {
                return Err(format!("rb{node} shares the nickname {shared:#06x}"));
            }
        }
        for &me in &alive {
            self.judge_one(me).map_err(|what| format!("rb{me} at {} ms: {what}", self.net.now_ns / 1_000_000))?;
        }
        self.domains.iter().try_for_each(|domain| domain.judge(self.net))?;
        if self.nodes > BROADCAST_NODES_MAX {
            return Ok(());
        }
        broadcast::judge(self.net, |ingress, root, to| {
            let root = self.others(ingress).chain([ingress]).find(|node| self.nicknames(*node).contains(&root));
            root.is_some_and(|root| self.far[root][to] < FAR)
        })
    }

    /// Whether working links lead from one to the other.
    pub(crate) fn connects(&self, from: usize, to: usize) -> bool {
        self.component[from] == self.component[to]
    }

    /// Nobody speaks for a shared link that is not its own to speak for.
    fn judge_pseudonodes(&self, me: usize) -> Result<(), String> {
        let lsdb = self.net.nodes[me].bridge.as_ref().expect("it runs").lsdb();
        let mine = lsdb.iter().filter(|(id, held)| id.system() == self.system(me) && !held.is_purged());
        let mut spoken_for = mine.map(|(id, _)| id.node()).filter(|node| node.is_pseudonode());
        let is_known = |node: &NodeId| self.ids[self.nodes..].contains(node);
        spoken_for.find(|node| !is_known(node)).map_or(Ok(()), |node| Err(format!("it speaks for {node}")))
    }

    fn judge_one(&self, me: usize) -> Result<(), String> {
        self.judge_pseudonodes(me)?;
        let node = &self.net.nodes[me];
        let holds = node.bridge.as_ref().expect("it runs").forwarding();
        let routes = self.routes(me);
        if holds.routes != routes {
            return Err(format!("routes are {:x?}, should be {routes:x?}", holds.routes));
        }
        let relays = self.relays(me);
        if holds.relays != relays {
            return Err(format!("relays are {:x?}, should be {relays:x?}", holds.relays));
        }
        let trees = self.trees(me);
        if holds.trees != trees {
            return Err(format!("trees are {:x?}, should be {trees:x?}", holds.trees));
        }
        // Of several trees those whose roots are nearest, and others know.
        let roots = self.roots(me);
        let is_choice = roots.len() > 1;
        let mut nearest: Vec<(u64, usize)> = roots.iter().map(|(root, _)| self.far[me][*root]).zip(0..).collect();
        nearest.sort_unstable();
        nearest.truncate(node.trees_used.into());
        let own: BTreeSet<u16> = nearest.iter().map(|(_, place)| roots[*place].1).collect();
        let told = announced_trees(node.bridge.as_ref().expect("it runs"));
        if holds.own_trees != own || told != (if is_choice { own.clone() } else { BTreeSet::new() }) {
            return Err(format!("its own trees are {:x?}, told {told:x?}, should be {own:x?}", holds.own_trees));
        }
        self.judge_sz(me)?;
        if node.data_plane != *holds {
            return Err(format!("its outputs made {:x?}", node.data_plane));
        }
        Ok(())
    }

    /// The longest LSP that everybody takes whom it gets to, and its own LSPs, of which the first is never longer than 1470.
    fn judge_sz(&self, me: usize) -> Result<(), String> {
        let bridge = self.net.nodes[me].bridge.as_ref().expect("it runs");
        let there = (0..self.nodes).filter(|node| self.net.nodes[*node].bridge.is_some() && self.connects(me, *node));
        let sz_bytes = there.map(|node| self.net.nodes[node].lsp_buffer_bytes).min().unwrap_or(0).max(1470);
        if bridge.sz_bytes() != sz_bytes {
            return Err(format!("Sz is {}, should be {sz_bytes}", bridge.sz_bytes()));
        }
        let own = bridge.lsdb().iter().filter(|(id, held)| id.system() == self.system(me) && !held.is_purged());
        let mut long =
            own.filter(|(id, held)| held.bytes().len() > if id.fragment() == 0 { 1470 } else { usize::from(sz_bytes) });
        long.next().map_or(Ok(()), |(id, held)| Err(format!("{id} has {} bytes", held.bytes().len())))
    }

    fn nicknames(&self, node: usize) -> Vec<u16> {
        self.net.nodes[node].bridge.iter().flat_map(RBridge::nicknames).collect()
    }

    fn system(&self, node: usize) -> SystemId {
        self.net.nodes[node].system
    }

    fn others(&self, me: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes).filter(move |node| *node != me && self.component[*node] == self.component[me])
    }

    fn may_cross(&self, vertex: usize) -> bool {
        self.net.nodes.get(vertex).is_none_or(|node| !node.overloaded)
    }

    fn routes(&self, me: usize) -> BTreeMap<u16, Vec<Hop>> {
        let mut routes = BTreeMap::new();
        for to in self.others(me).filter(|to| self.far[me][*to] < FAR) {
            let leads = |way: &&Way| {
                let passes = way.to.0 == to || self.may_cross(way.to.0);
                passes && way.cost + self.far[way.to.0][to] == self.far[me][to]
            };
            let hops = self.ways[me].iter().filter(leads);
            let hops = hops.map(|way| Hop { port: way.from.1, mac: mac_of(way.to) });
            let hops: BTreeSet<Hop> = hops.collect();
            let hops: Vec<Hop> = hops.into_iter().collect();
            routes.extend(self.nicknames(to).into_iter().map(|nickname| (nickname, hops.clone())));
        }
        routes
    }

    /// Whom an overloaded RBridge may give what it does not know: "any neighbor that is not overloaded".
    fn relays(&self, me: usize) -> Vec<Hop> {
        let others = self.ways[me].iter().filter(|way| !self.may_cross(me) && self.may_cross(way.to.0));
        others.map(|way| Hop { port: way.from.1, mac: mac_of(way.to) }).collect::<BTreeSet<Hop>>().into_iter().collect()
    }

    fn trees(&self, me: usize) -> BTreeMap<u16, TreeState> {
        let numbered = self.roots(me).into_iter().zip(1_u16..);
        numbered.map(|((root, nickname), number)| (nickname, self.tree(me, root, number))).collect()
    }

    /// Roots and the nicknames that they are roots by, in the order of their trees' numbers. Nobody in this campus lists roots;
    /// some have priority 0.
    fn roots(&self, me: usize) -> Vec<(usize, u16)> {
        let priority = |node: usize| self.net.nodes[node].root_priority;
        let trees_max = |node: usize| self.net.nodes[node].trees_max;
        let eligible = |node: &usize| self.may_cross(*node) && self.far[me][*node] < FAR;
        let eligible = self.others(me).chain([me]).filter(eligible);
        let named = eligible.flat_map(|node| self.nicknames(node).into_iter().map(move |nickname| (node, nickname)));
        let mut roots: Vec<(usize, u16)> = named.collect();
        roots.sort_by_key(|(node, nickname)| std::cmp::Reverse((priority(*node), self.system(*node), *nickname)));
        let Some(first) = roots.first().copied() else { return roots };
        let weakest = self.others(me).chain([me]).map(trees_max).min().expect("we are there");
        roots.truncate(trees_max(first.0).min(weakest).into());
        // "A nickname whose tree root priority is zero is not selected as a tree root based on priority", unless there is
        // no other: then one of them is, and only one.
        roots.retain(|root| priority(root.0) > 0 || *root == first);
        roots
    }

    fn tree(&self, me: usize, root: usize, number: u16) -> TreeState {
        let parents = self.parents(root, number);
        let on_tree = |node: usize| node == root || parents[node].is_some();
        let mut tree = TreeState { number, ..TreeState::default() };
        if !on_tree(me) {
            return tree;
        }
        let mut branches: BTreeMap<PortId, (VlanSet, Listeners)> = BTreeMap::new();
        for node in (0..self.nodes).filter(|node| *node != me && on_tree(*node)) {
            let way = way(&parents, node, me);
            let port = self.tree_port(me, way[way.len() - 2]);
            // A shared link is no hop.
            let steps = way.iter().filter(|vertex| **vertex < self.nodes).count() - 1;
            tree.depth = tree.depth.max(steps as u16);
            let (vlans, listeners) = branches.entry(port).or_default();
            vlans.add_all(&self.net.nodes[node].interest());
            let theirs = self.net.nodes[node].listened();
            listeners.all_ipv4.add_all(&theirs.all_ipv4);
            listeners.all_ipv6.add_all(&theirs.all_ipv6);
            listeners.groups.extend(theirs.groups);
            tree.rpf.extend(self.nicknames(node).into_iter().map(|nickname| (nickname, port)));
        }
        let ports = branches.into_iter().map(|(port, (vlans, listeners))| TreePort { port, vlans, listeners });
        tree.ports = ports.collect();
        tree
    }

    fn parents(&self, root: usize, number: u16) -> Rc<[Option<usize>]> {
        let all = || (0..self.ids.len()).map(|node| self.parent(root, node, number)).collect();
        Rc::clone(self.parents.borrow_mut().entry((root, number)).or_insert_with(all))
    }

    fn parent(&self, root: usize, node: usize, number: u16) -> Option<usize> {
        if node == root || self.far[root][node] >= FAR {
            return None;
        }
        let leads = |from: &usize| {
            let passes = *from == root || self.may_cross(*from);
            let cost = self.link[*from][node];
            passes && cost < FAR && self.far[root][*from] + cost == self.far[root][node]
        };
        let mut parents: Vec<usize> = (0..self.ids.len()).filter(leads).collect();
        parents.sort_by_key(|parent| self.ids[*parent]);
        Some(parents[usize::from(number - 1) % parents.len()])
    }

    /// The parallel link that carries trees, whatever it costs (RFC 6325 section 4.5.2): most preferred are point-to-point
    /// ones, of them the highest number as the higher system ID counts; then shared ones, by the largest name. Where one has
    /// several ports on a link, which of them is its own affair: the highest.
    fn tree_port(&self, me: usize, vertex: usize) -> PortId {
        let counts = |way: &Way| if self.ids[me] > self.ids[vertex] { way.from.1 } else { way.to.1 };
        let rank = |way: &&Way| match way.lan_id {
            None => (1, counts(way).0, NodeId::default(), way.from.1),
            Some(name) => (0, 0, name, way.from.1),
        };
        let parallel = self.ways[me].iter().filter(|way| way.via == vertex);
        parallel.max_by_key(rank).expect("neighbours on a tree are linked").from.1
    }
}

/// The trees that an RBridge's LSP says its frames come by.
pub(crate) fn announced_trees(bridge: &RBridge) -> BTreeSet<u16> {
    let bytes = bridge.lsdb().get(bridge.config().system.lsp(0)).map(|held| held.bytes());
    let Some(Ok(Pdu::Lsp(lsp))) = bytes.map(Pdu::parse) else { return BTreeSet::new() };
    let subs = lsp.tlvs.into_iter().flat_map(|tlv| if let Tlv::Capability { subs, .. } = tlv { subs } else { vec![] });
    subs.flat_map(|sub| if let CapabilitySub::TreesUsed(list) = sub { list.roots } else { vec![] }).collect()
}

/// Point-to-point links that work.
fn cable_ways(net: &Net) -> Vec<Way> {
    let works = |link: &&Link| {
        let runs = |(node, _): &(usize, PortId)| net.nodes[*node].bridge.is_some();
        link.is_up && !link.is_silent && link.ends.iter().all(runs)
    };
    let of_link = |link: &Link| {
        let [a, b] = link.ends;
        let way = |from: (usize, PortId), to: (usize, PortId), cost: u32| Way {
            from,
            to,
            cost: cost.into(),
            via: to.0,
            lan_id: None,
        };
        [way(a, b, link.costs[0]), way(b, a, link.costs[1])]
    };
    net.links.iter().filter(works).flat_map(of_link).collect()
}

/// The nodes from `node` to `me` over the tree.
fn way(parents: &[Option<usize>], node: usize, me: usize) -> Vec<usize> {
    let up = |mut node: usize| {
        let mut way = vec![node];
        while let Some(parent) = parents[node] {
            way.push(parent);
            node = parent;
        }
        way
    };
    let (from, to) = (up(node), up(me));
    let meet = from.iter().position(|step| to.contains(step)).expect("both are on one tree");
    let back = to.iter().position(|step| *step == from[meet]).expect("they meet");
    from[..=meet].iter().chain(to[..back].iter().rev()).copied().collect()
}

pub(crate) fn mac_of((node, port): (usize, PortId)) -> MacAddress {
    let ([a, b], [c, d]) = ((node as u16 + 1).to_be_bytes(), port.0.to_be_bytes());
    MacAddress([2, 0, a, b, c, d])
}
