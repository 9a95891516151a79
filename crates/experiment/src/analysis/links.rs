//! Link counters as series, with the roles and rates that the fabric declares.

use std::collections::BTreeMap;

use weft_scenario::record::LinkRow;
use weft_scenario::topology::{Fabric, Role};

use super::series::Cumulative;

/// One direction of one link over time.
#[derive(Clone, Debug)]
pub struct LinkSeries {
    /// The sending node.
    pub node: String,
    pub role: Role,
    /// The sending interface.
    pub interface: String,
    /// The node at the far end.
    pub peer: String,
    pub peer_role: Role,
    /// Class of the link, for instance `aggregation-tor`.
    pub class: String,
    /// Declared rate in bits per second.
    pub rate_bps: f64,
    /// Bytes sent, as the interface counts them.
    pub sent: Cumulative,
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
