//! Link counters as series, with the roles and rates that the fabric declares.

use std::collections::BTreeMap;

use weft_scenario::record::LinkRow;
use weft_scenario::topology::{Fabric, Role};

use super::series::{Cumulative, Window};
use crate::stats;

/// One direction of one link over time.
#[derive(Clone, Debug)]
pub struct LinkSeries {
    /// The sending node.
    pub node: String,
    /// Its role.
    pub role: Role,
    /// The sending interface.
    pub interface: String,
    /// The node at the far end.
    pub peer: String,
    /// Its role.
    pub peer_role: Role,
    /// Class of the link, for instance `aggregation-tor`.
    pub class: String,
    /// Declared rate in bits per second.
    pub rate_bps: f64,
    /// Bytes sent, as the interface counts them.
    pub sent: Cumulative,
}

impl LinkSeries {
    /// Share of the declared rate that was used in the window. Interfaces count neither preamble and gap nor the
    /// headers that segmentation adds below them, so a full link reads less than 1.
    pub fn utilisation(&self, window: Window) -> f64 {
        self.sent.rate(window.from_s, window.to_s) * 8.0 / self.rate_bps
    }
}

/// Every direction of every link that has rows. Rows of nodes that the fabric does not have are left out.
pub fn all(rows: &[LinkRow], fabric: &Fabric) -> Vec<LinkSeries> {
    let mut groups: BTreeMap<(&str, &str), Vec<&LinkRow>> = BTreeMap::new();
    for row in rows {
        groups.entry((&row.node, &row.interface)).or_default().push(row);
    }
    groups.into_values().filter_map(|rows| one(&rows, fabric)).collect()
}

fn one(rows: &[&LinkRow], fabric: &Fabric) -> Option<LinkSeries> {
    let first = rows.first()?;
    let (node, peer) = (fabric.find(&first.node)?, fabric.find(&first.peer)?);
    let at_interface = |link: &&weft_scenario::id::LinkId| {
        fabric.link(**link).end_at(node).is_some_and(|port| port.interface == first.interface)
    };
    let link = fabric.links_of(node).iter().find(at_interface)?;
    Some(LinkSeries {
        node: first.node.clone(),
        role: fabric.node(node).role,
        interface: first.interface.clone(),
        peer: first.peer.clone(),
        peer_role: fabric.node(peer).role,
        class: first.class.clone(),
        rate_bps: fabric.link(*link).spec.rate.0 as f64,
        sent: Cumulative::new(rows.iter().map(|row| (row.time_ns, row.sent_bytes))),
    })
}

/// Jain's index of what one switch sent to each Intermediate in the window; `None` if it sent nothing.
pub fn split_index(uplinks: &[&LinkSeries], window: Window) -> Option<f64> {
    let sent = |link: &&LinkSeries| link.sent.at(window.to_s) - link.sent.at(window.from_s);
    stats::jain(&uplinks.iter().map(sent).collect::<Vec<_>>())
}

/// The links from each Aggregation switch to the Intermediates, by switch.
pub fn intermediate_links(links: &[LinkSeries]) -> BTreeMap<&str, Vec<&LinkSeries>> {
    let mut by_switch: BTreeMap<&str, Vec<&LinkSeries>> = BTreeMap::new();
    for link in links {
        if link.role == Role::Aggregation && link.peer_role == Role::Intermediate {
            by_switch.entry(&link.node).or_default().push(link);
        }
    }
    by_switch
}

/// Utilisation of all links between two roles, both directions.
pub fn utilisations(links: &[LinkSeries], roles: [Role; 2], window: Window) -> Vec<f64> {
    let between = |link: &&LinkSeries| [link.role, link.peer_role] == roles || [link.peer_role, link.role] == roles;
    links.iter().filter(between).map(|link| link.utilisation(window)).collect()
}
