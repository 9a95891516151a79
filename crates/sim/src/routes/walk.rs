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
pub(crate) fn port_of(fabric: &Fabric, link: LinkId, node: NodeId) -> u16 {
    (2 * link.0 + u32::from(fabric.link(link).a.node != node)) as u16
}

/// The link and the sending node of a port.
pub(crate) fn sender_of(fabric: &Fabric, port: u16) -> (LinkId, NodeId) {
    let link = LinkId(u32::from(port / 2));
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
    pub(crate) framing_bytes: u16,
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
    way: Vec<(u16, Stage)>,
    hops: Vec<Hop>,
}

/// What changes when links fail.
#[derive(Debug)]
struct Tables {
    paths: Paths,
    /// Each switch's place among the switches; hosts have none.
    places: Vec<usize>,
    /// Where in `ports` each switch's next hops for each target begin; 0: not looked up yet. Rows of switches, columns
    /// of switches and then of anycast groups.
    begins: Vec<u32>,
    columns: usize,
    /// A count and so many ports for each list of next hops; the first entry is unused.
    ports: Vec<u16>,
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
        let rate = |port: u16| self.fabric.link(LinkId(u32::from(port / 2))).spec.rate;
        self.hops.clear();
        for (place, (port, stage)) in self.way.iter().enumerate() {
            let next = self.way.get(place + 1);
            // A switch that sends faster than it receives would run dry in the middle of the packet.
            let cut_through = self.settings.cut_through && next.is_some_and(|(next, _)| rate(*next) <= rate(*port));
            let extra = outer_bytes(self.settings.overlay, *stage) as u16 + self.settings.framing_bytes;
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

    fn explained(&mut self, port: u16, stage: Stage, last: NodeId, flow: (u64, Option<NodeId>)) -> WayHop {
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
        let far = |port: u16| {
            let (link, near) = sender_of(fabric, port);
            fabric.link(link).far_end(near).map(|end| end.node)
        };
        let ports = self.tables.next_hops(fabric, self.addresses, at, target);
        let is_pinned = |port: &u16| through.is_some() && far(*port) == through;
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
        let mut places = vec![usize::MAX; fabric.nodes().len()];
        fabric.switches().enumerate().for_each(|(place, switch)| places[switch.index()] = place);
        let switches = fabric.switches().count();
        let columns = switches + addresses.map_or(0, |plan| plan.anycast_groups().len());
        let begins = vec![0; switches * columns];
        let paths = if tree {
            Paths::Tree(SpanningTree::compute(fabric, failed))
        } else {
            Paths::Ecmp(EcmpRoutes::compute(fabric, failed))
        };
        Self { paths, places, begins, columns, ports: vec![0] }
    }

    fn next_hops(&mut self, fabric: &Fabric, addresses: Option<&AddressPlan>, at: NodeId, target: Target) -> &[u16] {
        let column = match target {
            Target::Switch(node) => self.places[node.index()],
            Target::Anycast(group) => self.begins.len() / self.columns + group,
        };
        let cell = self.places[at.index()] * self.columns + column;
        if self.begins[cell] == 0 {
            let links = self.paths.links(addresses, at, target);
            self.begins[cell] = self.ports.len() as u32;
            self.ports.push(links.len() as u16);
            self.ports.extend(links.iter().map(|link| port_of(fabric, *link, at)));
        }
        let begin = self.begins[cell] as usize;
        let count = usize::from(self.ports[begin]);
        &self.ports[begin + 1..][..count]
    }
}

impl Paths {
    fn links(&self, addresses: Option<&AddressPlan>, at: NodeId, target: Target) -> Vec<LinkId> {
        match (self, target) {
            (Self::Ecmp(routes), Target::Switch(node)) => routes.next_hops(at, node),
            (Self::Tree(tree), Target::Switch(node)) => tree.next_hop(at, node).into_iter().collect(),
            (Self::Ecmp(routes), Target::Anycast(group)) => {
                let members = addresses.map_or(&[][..], |plan| &plan.anycast_groups()[group].members);
                routes.anycast_next_hops(at, members)
            }
            // Refused before the run: a tree knows no anycast.
            (Self::Tree(_), Target::Anycast(_)) => Vec::new(),
        }
    }
}
