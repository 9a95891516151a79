//! Where the nodes of a fabric stand in a picture: by tiers where it has them, else in a row or on a circle.
//!
//! * [`tiers`]: a Clos, a tree, a row of switches; end hosts below their edge switches
//! * [`circle`]: rings and meshes; end hosts around them
//!
//! Units are those of a screen where the whole picture has its natural size.

mod circle;
mod tiers;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::{Fabric, Role};

/// Room around the picture.
const MARGIN: f64 = 60.0;
/// From one end host to the next.
const HOST_STEP: f64 = 22.0;
/// Least from one switch to the next.
const SWITCH_STEP: f64 = 110.0;
/// What parallel links are apart in their middle.
const PARALLEL: f64 = 26.0;

/// Where everything stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Layout {
    pub width: f64,
    pub height: f64,
    /// What is beside each other, from the top; empty where nodes stand on a circle.
    pub tiers: Vec<Tier>,
    /// The place of each node.
    #[serde(skip)]
    pub places: Vec<Place>,
    /// How far the middle of each link lies from the straight line, to the left as seen from its first end.
    #[serde(skip)]
    pub bends: Vec<f64>,
}

/// A row of nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// Its roles as the field writes them.
    pub name: String,
    pub y: f64,
}

/// The middle of a node, and where away from the network is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    pub x: f64,
    pub y: f64,
    /// A direction of length 1.
    pub out: (f64, f64),
}

impl Layout {
    /// The places of a fabric's nodes.
    pub fn of(fabric: &Fabric) -> Self {
        let mut layout = match levels(fabric) {
            Some(levels) => tiers::layout(fabric, &levels),
            None => circle::layout(fabric),
        };
        layout.bends = bends(fabric, &layout);
        layout
    }
}

/// The level of each switch, 0 at the top: by its role, or where all have one role by how far it is from end hosts. `None` where
/// switches of one role are linked with each other in a way that no tiers and no row show.
fn levels(fabric: &Fabric) -> Option<BTreeMap<NodeId, usize>> {
    let by_role: BTreeMap<NodeId, usize> = upper(fabric).map(|id| (id, level_of(fabric.node(id).role))).collect();
    if by_role.values().collect::<BTreeSet<_>>().len() > 1 {
        return Some(dense(by_role));
    }
    let far = by_distance(fabric);
    let across = inner_links(fabric).any(|(a, b)| far[&a] == far[&b]);
    (!across || row(fabric).is_some()).then(|| dense(far))
}

/// Nodes that are no end hosts.
fn upper(fabric: &Fabric) -> impl Iterator<Item = NodeId> {
    fabric.ids().filter(|id| fabric.node(*id).role.tier() != Role::HOST_TIER)
}

/// Access switches stand above the Aggregations that they are linked to, both of one tier.
fn level_of(role: Role) -> usize {
    role.tier() * 2 + usize::from(role != Role::Access)
}

/// For switches of one role: how far it is to the next one with end hosts, the farthest at the top.
fn by_distance(fabric: &Fabric) -> BTreeMap<NodeId, usize> {
    let mut distance: BTreeMap<NodeId, usize> =
        upper(fabric).filter(|id| has_hosts(fabric, *id)).map(|id| (id, 0)).collect();
    let mut edge: Vec<NodeId> = distance.keys().copied().collect();
    for step in 1.. {
        let reached = edge.iter().flat_map(|id| switch_neighbours(fabric, *id));
        let next: BTreeSet<NodeId> = reached.filter(|id| !distance.contains_key(id)).collect();
        if next.is_empty() {
            break;
        }
        distance.extend(next.iter().map(|id| (*id, step)));
        edge = next.into_iter().collect();
    }
    let far = distance.values().copied().max().unwrap_or(0);
    upper(fabric).map(|id| (id, distance.get(&id).map_or(0, |near| far - near))).collect()
}

/// Levels without gaps.
fn dense(levels: BTreeMap<NodeId, usize>) -> BTreeMap<NodeId, usize> {
    let used: Vec<usize> = levels.values().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let number = |level: usize| used.iter().position(|one| *one == level).expect("it is used");
    levels.into_iter().map(|(id, level)| (id, number(level))).collect()
}

fn has_hosts(fabric: &Fabric, switch: NodeId) -> bool {
    neighbours(fabric, switch).any(|id| fabric.node(id).role.tier() == Role::HOST_TIER)
}

fn neighbours(fabric: &Fabric, node: NodeId) -> impl Iterator<Item = NodeId> {
    fabric.links_of(node).iter().filter_map(move |link| Some(fabric.link(*link).far_end(node)?.node))
}

/// Neighbours that are no end hosts, each once.
fn switch_neighbours(fabric: &Fabric, node: NodeId) -> BTreeSet<NodeId> {
    neighbours(fabric, node).filter(|id| fabric.node(*id).role.tier() != Role::HOST_TIER).collect()
}

/// Links between nodes that are no end hosts.
fn inner_links(fabric: &Fabric) -> impl Iterator<Item = (NodeId, NodeId)> {
    let ends = fabric.links().iter().map(|link| (link.a.node, link.b.node));
    ends.filter(|(a, b)| [a, b].into_iter().all(|id| fabric.node(*id).role.tier() != Role::HOST_TIER))
}

/// The switches from one end to the other, if they are one behind the other.
fn row(fabric: &Fabric) -> Option<Vec<NodeId>> {
    let all: Vec<NodeId> = upper(fabric).collect();
    let begins = all.iter().find(|id| switch_neighbours(fabric, **id).len() <= 1)?;
    let chain = walk(fabric, *begins);
    let joined = chain.windows(2).all(|pair| switch_neighbours(fabric, pair[0]).contains(&pair[1]));
    let most = all.iter().all(|id| switch_neighbours(fabric, *id).len() <= 2);
    (joined && most && chain.len() == all.len()).then_some(chain)
}

/// All switches, each beside a neighbour where there is one left: around a ring, along a row.
fn walk(fabric: &Fabric, begin: NodeId) -> Vec<NodeId> {
    let mut left: BTreeSet<NodeId> = upper(fabric).collect();
    let (mut order, mut now) = (Vec::new(), Some(begin));
    while let Some(id) = now {
        left.remove(&id);
        order.push(id);
        let next = switch_neighbours(fabric, id).into_iter().find(|near| left.contains(near));
        now = next.or_else(|| left.first().copied());
    }
    order
}

/// The switch that an end host hangs below.
fn home(fabric: &Fabric, host: NodeId) -> Option<NodeId> {
    neighbours(fabric, host).find(|id| fabric.node(*id).role.tier() != Role::HOST_TIER)
}

/// Links beside each other bow apart; one along a row bows around who stands between.
fn bends(fabric: &Fabric, layout: &Layout) -> Vec<f64> {
    let mut same: BTreeMap<(NodeId, NodeId), Vec<usize>> = BTreeMap::new();
    for (number, link) in fabric.links().iter().enumerate() {
        let (a, b) = (link.a.node, link.b.node);
        same.entry((a.min(b), a.max(b))).or_default().push(number);
    }
    let mut bends = vec![0.0; fabric.links().len()];
    for ((low, _), links) in same {
        for (place, number) in links.iter().enumerate() {
            let apart = (place as f64 - (links.len() - 1) as f64 / 2.0) * PARALLEL;
            let first = fabric.link(LinkId(*number as u32)).a.node;
            bends[*number] = if first == low { apart } else { -apart } + around(fabric, layout, *number);
        }
    }
    bends
}

fn around(fabric: &Fabric, layout: &Layout, number: usize) -> f64 {
    if layout.tiers.is_empty() {
        return 0.0;
    }
    let link = fabric.link(LinkId(number as u32));
    let [a, b] = [link.a.node, link.b.node].map(|id| layout.places[id.index()]);
    let between = |place: &Place| place.y == a.y && place.x > a.x.min(b.x) && place.x < a.x.max(b.x);
    match a.y == b.y && layout.places.iter().any(between) {
        true => (a.x - b.x) * 0.18,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests;
