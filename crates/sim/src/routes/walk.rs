//! Which way a packet takes: at every switch one of the equal-cost next hops, chosen by a hash with the switch's own seed.
//!
//! A *salt* stands for what switches hash: the flow's five-tuple for per-flow ECMP, a flowlet's number, or each packet's
//! own number when packets are sprayed. Different seeds at every switch keep flows that chose alike once from choosing
//! alike ever after (polarisation).

use std::collections::BTreeSet;

use weft_scenario::addressing::AddressPlan;
use weft_scenario::engine::Overlay;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::{EcmpRoutes, SpanningTree};
use weft_scenario::topology::{Fabric, Role};

use super::outer::{Stage, outer_bytes, outer_headers};
use super::{Hop, Routes};
use crate::hash::{below, scramble};
use crate::outcome::{Toward, WayChoice, WayHop};

/// The port that sends from `node` onto `link`: ports 2 l and 2 l + 1 are the two ends of link l.
pub(crate) fn port_of(fabric: &Fabric, link: LinkId, node: NodeId) -> u32 {
    2 * link.0 + u32::from(fabric.link(link).a.node != node)
}

/// The link and the sending node of a port.
pub(crate) fn sender_of(fabric: &Fabric, port: u32) -> (LinkId, NodeId) {
    let link = LinkId(port / 2);
    let ends = fabric.link(link);
    (link, if port.is_multiple_of(2) { ends.a.node } else { ends.b.node })
}

/// What makes a switch's hash its own.
fn own_seed(seed: u64, switch: NodeId) -> u64 {
    scramble(seed ^ u64::from(switch.0) << 32)
}

/// How switches forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouterSettings {
    pub(crate) overlay: Overlay,
    pub(crate) spanning_tree: bool,
    pub(crate) cut_through: bool,
    /// Bytes around every packet on every wire.
    pub(crate) framing_bytes: u32,
    pub(crate) seed: u64,
}

/// The routing tables of all switches.
#[derive(Debug)]
pub(crate) struct Router<'a> {
    fabric: &'a Fabric,
    addresses: Option<&'a AddressPlan>,
    settings: RouterSettings,
    tables: Tables,
    /// The way being walked: ports and stages.
    way: Vec<(u32, Stage)>,
    hops: Vec<Hop>,
}

/// What changes when links fail.
#[derive(Debug)]
struct Tables {
    paths: Paths,
    /// By the number of the switch, the row that it has once something is looked up there. Columns are families of
    /// switches and then anycast groups; a cell says where in `lists` the next hops begin, 0: not looked up yet.
    rows: Vec<Box<[u32]>>,
    columns: usize,
    /// Of each cell a count n of lists, where they begin and where the last ends, n + 1 places, and then all their ports.
    /// A neighbour of a family has a list for each of its members; to others these are alike. The first entry is unused.
    lists: Vec<u32>,
}

/// Which links lead to which switch.
#[derive(Debug)]
enum Paths {
    Ecmp(EcmpRoutes),
    Tree(SpanningTree),
}

/// Where a packet is headed between switches.
#[derive(Clone, Copy, Debug)]
enum Target {
    Switch(NodeId),
    /// Any Intermediate that a group of [`AddressPlan::anycast_groups`] names.
    Anycast(usize),
}

impl<'a> Router<'a> {
    /// The tables of a fabric whose `failed` links are known to be down.
    pub(crate) fn new(
        fabric: &'a Fabric,
        addresses: Option<&'a AddressPlan>,
        settings: RouterSettings,
        failed: &BTreeSet<LinkId>,
    ) -> Self {
        let tables = Tables::new(fabric, addresses, settings.spanning_tree, failed);
        Self { fabric, addresses, settings, tables, way: Vec::new(), hops: Vec::new() }
    }

    /// Routes around these links from now on.
    pub(crate) fn reconverge(&mut self, failed: &BTreeSet<LinkId>) {
        self.tables = Tables::new(self.fabric, self.addresses, self.settings.spanning_tree, failed);
    }

    /// Whether there is a way from host to host.
    pub(crate) fn reaches(&mut self, from: NodeId, to: NodeId) -> bool {
        self.walk(from, to, 0, None).is_some()
    }

    /// The place in `routes` of the way from host to host that `salt` chooses. Where `through` is a next hop, it is
    /// taken whatever the salt. `None`: there is no way.
    pub(crate) fn route(
        &mut self,
        routes: &mut Routes,
        from: NodeId,
        to: NodeId,
        salt: u64,
        through: Option<NodeId>,
    ) -> Option<u32> {
        self.walk(from, to, salt, through)?;
        let rate = |port: u32| self.fabric.link(LinkId(port / 2)).spec.rate;
        self.hops.clear();
        for (place, (port, stage)) in self.way.iter().enumerate() {
            let next = self.way.get(place + 1);
            // A switch that sends faster than it receives would run dry in the middle of the packet.
            let cut_through = self.settings.cut_through && next.is_some_and(|(next, _)| rate(*next) <= rate(*port));
            let extra = outer_bytes(self.settings.overlay, *stage) as u32 + self.settings.framing_bytes;
            self.hops.push(Hop::new(*port, extra, cut_through));
        }
        Some(routes.intern(&self.hops))
    }

    /// The way from host to host that `salt` chooses, with what each node chose it from.
    pub(crate) fn explain(&mut self, from: NodeId, to: NodeId, salt: u64, through: Option<NodeId>) -> Vec<WayHop> {
        match (self.walk(from, to, salt, through), self.fabric.edge_of(to)) {
            (Some(()), Some((last, _))) => {
                let way = std::mem::take(&mut self.way);
                let hops =
                    way.iter().map(|(port, stage)| self.explained(*port, *stage, last, (salt, through))).collect();
                self.way = way;
                hops
            }
            _ => Vec::new(),
        }
    }

    fn explained(&mut self, port: u32, stage: Stage, last: NodeId, flow: (u64, Option<NodeId>)) -> WayHop {
        let (link, node) = sender_of(self.fabric, port);
        let target = self.target(stage, last).filter(|_| !matches!(stage, Stage::FromHost | Stage::ToHost));
        let ports = target.map_or(&[][..], |target| self.tables.next_hops(self.fabric, self.addresses, node, target));
        let chosen = ports.iter().position(|one| *one == port);
        let (salt, through) = flow;
        let far = self.fabric.link(link).far_end(node).map(|end| end.node);
        let is_pinned = through.is_some() && far == through;
        let choice = chosen.filter(|_| ports.len() > 1 && !is_pinned).map(|chosen| WayChoice {
            next_hops: ports.len() as u32,
            chosen: chosen as u32 + 1,
            hash: scramble(salt ^ own_seed(self.settings.seed, node)),
        });
        let toward = match target {
            Some(_) if is_pinned => Toward::Pinned,
            Some(Target::Anycast(_)) => Toward::AnyIntermediate,
            Some(Target::Switch(switch)) => Toward::Switch(switch),
            None => Toward::FarEnd,
        };
        WayHop { link, node, headers: outer_headers(self.settings.overlay, stage).to_vec(), toward, choice }
    }

    /// What a switch looks up on this part of the way to a last switch.
    fn target(&self, stage: Stage, last: NodeId) -> Option<Target> {
        if self.settings.overlay != Overlay::Vl2 || stage != Stage::Up {
            return Some(Target::Switch(last));
        }
        let addresses = self.addresses?;
        let address = addresses.anycast_for(last)?;
        addresses.anycast_groups().iter().position(|group| group.address == address).map(Target::Anycast)
    }

    fn walk(&mut self, from: NodeId, to: NodeId, salt: u64, through: Option<NodeId>) -> Option<()> {
        let (first, up) = self.fabric.edge_of(from)?;
        let (last, down) = self.fabric.edge_of(to)?;
        self.way.clear();
        self.way.push((port_of(self.fabric, up, from), Stage::FromHost));
        let mut at = first;
        let mut stage = Stage::Up;
        if self.settings.overlay == Overlay::Vl2 {
            let target = self.target(stage, last)?;
            while self.fabric.node(at).role != Role::Intermediate {
                at = self.hop(at, target, salt, through, stage)?;
            }
            stage = Stage::Down;
        }
        while at != last {
            at = self.hop(at, Target::Switch(last), salt, through, stage)?;
        }
        self.way.push((port_of(self.fabric, down, last), Stage::ToHost));
        Some(())
    }

    /// Takes one hop and says where it leads.
    fn hop(&mut self, at: NodeId, target: Target, salt: u64, through: Option<NodeId>, stage: Stage) -> Option<NodeId> {
        let fabric = self.fabric;
        let far = |port: u32| {
            let (link, near) = sender_of(fabric, port);
            fabric.link(link).far_end(near).map(|end| end.node)
        };
        let ports = self.tables.next_hops(fabric, self.addresses, at, target);
        let is_pinned = |port: &u32| through.is_some() && far(*port) == through;
        let own = own_seed(self.settings.seed, at);
        let choose = |count: usize| below(scramble(salt ^ own), count as u32) as usize;
        let port = match ports.iter().filter(|port| is_pinned(port)).count() {
            0 => *ports.get(choose(ports.len()))?,
            pinned => *ports.iter().filter(|port| is_pinned(port)).nth(choose(pinned))?,
        };
        self.way.push((port, stage));
        far(port)
    }
}

impl Tables {
    fn new(fabric: &Fabric, addresses: Option<&AddressPlan>, tree: bool, failed: &BTreeSet<LinkId>) -> Self {
        let paths = if tree {
            Paths::Tree(SpanningTree::compute(fabric, failed))
        } else {
            Paths::Ecmp(EcmpRoutes::compute(fabric, failed))
        };
        let rows = vec![Box::default(); fabric.switches().last().map_or(0, |last| last.index() + 1)];
        let families = match &paths {
            Paths::Tree(_) => rows.len(),
            Paths::Ecmp(routes) => routes.families(),
        };
        let columns = families + addresses.map_or(0, |plan| plan.anycast_groups().len());
        Self { paths, rows, columns, lists: vec![0] }
    }

    fn next_hops(&mut self, fabric: &Fabric, addresses: Option<&AddressPlan>, at: NodeId, target: Target) -> &[u32] {
        let (column, member) = match target {
            Target::Switch(node) if node == at => return &[],
            Target::Switch(node) => self.paths.member(node),
            Target::Anycast(group) => (self.columns - 1 - group, 0),
        };
        let row = &mut self.rows[at.index()];
        if row.is_empty() {
            *row = vec![0; self.columns].into();
        }
        if row[column] == 0 {
            row[column] = self.lists.len() as u32;
            add_lists(&mut self.lists, &self.paths.links(addresses, at, target), |link| port_of(fabric, link, at));
        }
        let begin = row[column] as usize;
        let list = if self.lists[begin] == 1 { 0 } else { member };
        let [from, to] = [1, 2].map(|end| self.lists[begin + list + end] as usize);
        &self.lists[from..to]
    }
}

/// Adds lists of links to those of ports, see [`Tables`].
fn add_lists(lists: &mut Vec<u32>, links: &[Vec<LinkId>], port: impl Fn(LinkId) -> u32) {
    lists.push(links.len() as u32);
    let mut end = (lists.len() + links.len() + 1) as u32;
    lists.push(end);
    for list in links {
        end += list.len() as u32;
        lists.push(end);
    }
    lists.extend(links.iter().flatten().map(|link| port(*link)));
}

impl Paths {
    /// The family of a switch and its place there. On a tree every node stands for itself.
    fn member(&self, node: NodeId) -> (usize, usize) {
        match self {
            Self::Ecmp(routes) => routes.family_of(node).expect("packets are headed for switches"),
            Self::Tree(_) => (node.index(), 0),
        }
    }

    /// The next hops of a switch: one list, or one for each member of the target's family if they are its neighbours.
    fn links(&self, addresses: Option<&AddressPlan>, at: NodeId, target: Target) -> Vec<Vec<LinkId>> {
        match (self, target) {
            (Self::Ecmp(routes), Target::Switch(node)) if routes.distance(at, node) == Some(1) => {
                let members = routes.members(self.member(node).0);
                members.iter().map(|member| routes.next_hops(at, *member)).collect()
            }
            (Self::Ecmp(routes), Target::Switch(node)) => vec![routes.next_hops(at, node)],
            (Self::Tree(tree), Target::Switch(node)) => vec![tree.next_hop(at, node).into_iter().collect()],
            (Self::Ecmp(routes), Target::Anycast(group)) => {
                let members = addresses.map_or(&[][..], |plan| &plan.anycast_groups()[group].members);
                vec![routes.anycast_next_hops(at, members)]
            }
            // Refused before the run: a tree knows no anycast.
            (Self::Tree(_), Target::Anycast(_)) => vec![Vec::new()],
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::addressing::AddressingOptions;
    use weft_scenario::random::{Purpose, Stream};
    use weft_scenario::topology::{ClosParams, LeafSpineParams, LinkParams, leaf_spine, vl2_clos};

    use super::*;

    /// Small networks of all shapes, some of VL2.
    fn random_network(random: &mut Stream) -> (Fabric, Overlay) {
        let mut up_to = |bound: u64| random.below(bound) as u32 + 1;
        if up_to(3) == 1 {
            let params = LeafSpineParams {
                spines: up_to(4),
                leaves: up_to(5),
                servers_per_leaf: up_to(2),
                links_per_pair: up_to(3),
                links: LinkParams::default(),
            };
            return (leaf_spine(&params).expect("it is within the limits"), Overlay::Routed);
        }
        let overlay = if up_to(3) > 1 { Overlay::Vl2 } else { Overlay::Routed };
        let params = ClosParams {
            aggregation_ports: 2 * up_to(4),
            intermediate_ports: 2 * up_to(4),
            servers_per_tor: up_to(2),
            links: LinkParams::default(),
        };
        (vl2_clos(&params).expect("it is within the limits"), overlay)
    }

    /// The switches' links that lead one hop nearer to any of `owners`, by a search of its own for every question.
    fn next_links(fabric: &Fabric, failed: &BTreeSet<LinkId>, at: NodeId, owners: &[NodeId]) -> Vec<LinkId> {
        let far = |link: LinkId, near| fabric.link(link).far_end(near).expect("it ends there").node;
        let alive = |node: NodeId| {
            let links = fabric.links_of(node).iter().copied().filter(|link| !failed.contains(link));
            links.filter(move |link| fabric.node(far(*link, node)).role.is_switch()).collect::<Vec<LinkId>>()
        };
        let mut reached: BTreeSet<NodeId> = owners.iter().copied().collect();
        while !reached.contains(&at) {
            let next: BTreeSet<NodeId> =
                reached.iter().flat_map(|node| alive(*node).into_iter().map(|link| far(link, *node))).collect();
            let nearer =
                alive(at).into_iter().filter(|link| reached.contains(&far(*link, at))).collect::<Vec<LinkId>>();
            if !nearer.is_empty() || next.is_subset(&reached) {
                return nearer;
            }
            reached.extend(next);
        }
        Vec::new()
    }

    /// The ports of a way as hashes choose it, hop by hop.
    fn way(router: &Router<'_>, failed: &BTreeSet<LinkId>, from: NodeId, to: NodeId, salt: u64) -> Option<Vec<u32>> {
        let fabric = router.fabric;
        let ((mut at, up), (last, down)) = (fabric.edge_of(from)?, fabric.edge_of(to)?);
        let mut ports = vec![port_of(fabric, up, from)];
        let mut bounced = router.settings.overlay != Overlay::Vl2;
        let any = router.addresses.and_then(|plan| {
            let address = plan.anycast_for(last)?;
            plan.anycast_groups().iter().find(|group| group.address == address)
        });
        loop {
            bounced |= fabric.node(at).role == Role::Intermediate;
            if bounced && at == last {
                break;
            }
            let owners = if bounced { vec![last] } else { any?.members.clone() };
            let links = next_links(fabric, failed, at, &owners);
            let hash = scramble(salt ^ own_seed(router.settings.seed, at));
            let link = *links.get(below(hash, links.len() as u32) as usize)?;
            ports.push(port_of(fabric, link, at));
            at = fabric.link(link).far_end(at)?.node;
        }
        ports.push(port_of(fabric, down, last));
        Some(ports)
    }

    #[test]
    fn ways_are_those_of_a_search_for_every_hop_whatever_has_failed() {
        let mut unreached = 0;
        for seed in 0..60 {
            let mut random = Stream::new(seed, Purpose::Failures, 0);
            let (fabric, overlay) = random_network(&mut random);
            let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).expect("it has addresses");
            let settings =
                RouterSettings { overlay, spanning_tree: false, cut_through: false, framing_bytes: 38, seed };
            let mut router = Router::new(&fabric, Some(&addresses), settings, &BTreeSet::new());
            let hosts: Vec<NodeId> = fabric.servers().collect();
            for faults in 0..4 {
                let failed: BTreeSet<LinkId> =
                    (0..faults).map(|_| LinkId(random.below(fabric.links().len() as u64) as u32)).collect();
                router.reconverge(&failed);
                for _ in 0..40 {
                    let [from, to] = [0; 2].map(|_| hosts[random.below(hosts.len() as u64) as usize]);
                    let salt = random.below(u64::MAX);
                    let found =
                        router.walk(from, to, salt, None).map(|()| router.way.iter().map(|(port, _)| *port).collect());
                    unreached += u32::from(found.is_none());
                    assert_eq!(
                        found,
                        way(&router, &failed, from, to, salt),
                        "seed {seed}, {failed:?}, {from:?} to {to:?}"
                    );
                }
            }
        }
        assert!((10..5_000).contains(&unreached), "{unreached} of 9600 had no way");
    }
}
