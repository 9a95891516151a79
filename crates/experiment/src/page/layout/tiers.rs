//! Rows from the top: each tier evenly over the width, edge switches over the middle of their end hosts.

use std::collections::{BTreeMap, BTreeSet};

use weft_scenario::id::NodeId;
use weft_scenario::topology::{Fabric, Role};

use super::{HOST_STEP, Layout, MARGIN, Place, SWITCH_STEP, Tier, has_hosts, home, row, switch_neighbours, upper};
use crate::figure::fabric::word;

/// Most end hosts side by side; more of them stand in several rows, one between the others.
const HOSTS_ABREAST: usize = 130;
/// Between such rows.
const HOST_ROW: f64 = 34.0;
/// Least width of a picture.
const WIDTH_LEAST: f64 = 720.0;

pub(super) fn layout(fabric: &Fabric, levels: &BTreeMap<NodeId, usize>) -> Layout {
    let hosts = fabric.ids().filter(|id| fabric.node(*id).role.tier() == Role::HOST_TIER).count();
    let mut placed: BTreeSet<NodeId> = upper(fabric).collect();
    let rows = hosts.div_ceil(HOSTS_ABREAST).clamp(1, 5);
    let racks = racks(fabric, rows);
    let depth = levels.values().max().map_or(0, |most| most + 1);
    let level = |number: usize| upper(fabric).filter(move |id| levels[id] == number).collect::<Vec<_>>();
    let widest = (0..depth).map(|number| level(number).len() as f64 * SWITCH_STEP).fold(WIDTH_LEAST, f64::max);
    let needed: f64 = racks.iter().map(|rack| rack.width).sum();
    let (width, stretch) = (needed.max(widest), needed.max(widest) / needed.max(1.0));
    let gap = (width * 0.14).clamp(130.0, 330.0);

    let mut places = vec![Place::default(); fabric.nodes().len()];
    let mut put =
        |id: NodeId, x: f64, y: f64, out: f64| places[id.index()] = Place { x: MARGIN + x, y, out: (0.0, out) };
    let y = |number: usize| MARGIN + gap * number as f64;
    let hosts_y = y(depth);
    let mut middles: BTreeMap<NodeId, f64> = BTreeMap::new();
    let mut left = 0.0;
    for rack in &racks {
        let middle = (left + rack.width / 2.0) * stretch;
        middles.insert(rack.switch, middle);
        let step = HOST_STEP / rows as f64 * stretch.min(2.0);
        for (place, host) in rack.hosts.iter().enumerate() {
            let x = middle + step * (place as f64 - (rack.hosts.len() - 1) as f64 / 2.0);
            placed.insert(*host);
            put(*host, x, hosts_y + HOST_ROW * (place % rows) as f64, 1.0);
        }
        left += rack.width;
    }
    // From the bottom up: whoever has end hosts above them, all others in the order of those below them.
    for number in (0..depth).rev() {
        let mut ids = level(number);
        let own = ids.iter().all(|id| middles.contains_key(id));
        if !own {
            ids.sort_by(|a, b| below(fabric, &middles, *a).total_cmp(&below(fabric, &middles, *b)));
        }
        let step = width / ids.len() as f64;
        for (place, id) in ids.into_iter().enumerate() {
            let x = if own { middles[&id] } else { step * (place as f64 + 0.5) };
            middles.insert(id, x);
            put(id, x, y(number), if number == 0 { -1.0 } else { 1.0 });
        }
    }
    // End hosts that hang below no switch.
    let alone: Vec<NodeId> = fabric.ids().filter(|id| !placed.contains(id)).collect();
    for (place, host) in alone.iter().enumerate() {
        put(*host, width * (place as f64 + 0.5) / alone.len() as f64, hosts_y, 1.0);
    }
    let mut tiers: Vec<Tier> =
        (0..depth).map(|number| Tier { name: names(fabric, &level(number)), y: y(number) }).collect();
    if hosts > 0 {
        tiers.push(Tier { name: "servers".to_owned(), y: hosts_y });
    }
    let last = if hosts > 0 { hosts_y + HOST_ROW * (rows - 1) as f64 } else { y(depth.saturating_sub(1)) };
    Layout { width: width + 2.0 * MARGIN, height: last + MARGIN, tiers, places, bends: Vec::new() }
}

/// A switch and what hangs below it.
struct Rack {
    switch: NodeId,
    hosts: Vec<NodeId>,
    width: f64,
}

/// Switches with end hosts, in the order in which they stand.
fn racks(fabric: &Fabric, rows: usize) -> Vec<Rack> {
    let order = row(fabric).unwrap_or_else(|| upper(fabric).collect());
    let whole_row = row(fabric).is_some();
    let homes: Vec<(NodeId, NodeId)> = fabric
        .ids()
        .filter(|id| fabric.node(*id).role.tier() == Role::HOST_TIER)
        .filter_map(|host| Some((home(fabric, host)?, host)))
        .collect();
    let rack = |switch: NodeId| {
        let hosts: Vec<NodeId> = homes.iter().filter(|(home, _)| *home == switch).map(|(_, host)| *host).collect();
        let width = ((hosts.len() + 1) as f64 * HOST_STEP / rows as f64 + HOST_STEP).max(SWITCH_STEP);
        Rack { switch, hosts, width }
    };
    order.into_iter().filter(|id| whole_row || has_hosts(fabric, *id)).map(rack).collect()
}

/// The middle of what a switch is linked to and has its place already.
fn below(fabric: &Fabric, middles: &BTreeMap<NodeId, f64>, switch: NodeId) -> f64 {
    let placed: Vec<f64> = switch_neighbours(fabric, switch).iter().filter_map(|id| middles.get(id).copied()).collect();
    placed.iter().sum::<f64>() / placed.len().max(1) as f64
}

fn names(fabric: &Fabric, tier: &[NodeId]) -> String {
    let roles: BTreeSet<Role> = tier.iter().map(|id| fabric.node(*id).role).collect();
    roles.into_iter().map(word).collect::<Vec<_>>().join(", ")
}
