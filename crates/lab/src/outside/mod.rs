//! The outside world of a VL2 lab (VL2 4.2.3): servers with a public LA, borders that announce the pool by BGP, and a node
//! that stands for the Internet.
//!
//! OSPF goes on carrying switches and racks only. Public LAs and the way out are BGP's, as in a provider's network: every
//! switch speaks iBGP with the border Intermediates, which reflect routes, and those speak eBGP with the outside. (OSPF
//! could carry both as external routes, but with FRR 8.4 a switch whose links go away for less than a second never puts
//! such routes back into the kernel.)
//!
//! * [`bgp`]: the configuration of `bgpd`
//! * [`rules`]: what passes a border
//! * [`routes`]: the routes that must be there
//! * [`setup`]: what the plans of nodes get beside what they have anyway

pub(crate) mod bgp;
pub(crate) mod routes;
pub(crate) mod rules;
mod setup;

use weft_scenario::id::NodeId;
use weft_scenario::topology::Fabric;

/// Intermediates with a link to the outside, each once, in the fabric's order.
pub(crate) fn borders(fabric: &Fabric) -> Vec<NodeId> {
    let links = fabric.outside().map(|outside| fabric.links_of(outside.node)).unwrap_or_default();
    let mut borders: Vec<NodeId> = links.iter().filter_map(|link| fabric.border_of(*link)).collect();
    borders.sort_unstable();
    borders.dedup();
    borders
}
