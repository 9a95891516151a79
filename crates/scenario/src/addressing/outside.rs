//! Addresses of the outside world: public LAs of servers, the border's links, the node outside (VL2 4.2.3).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::{AddressError, AddressPlan, AddressingOptions};
use crate::id::{LinkId, NodeId};
use crate::topology::Fabric;
use crate::topology::outside::{BORDER_LINKS, OUTSIDE_NET, OutsideError};
use weft_wire::block::Block;

/// Addresses at and beyond the border of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideAddresses {
    pool: Block,
    public: BTreeMap<NodeId, Ipv4Addr>,
    links: BTreeMap<LinkId, (Ipv4Addr, Ipv4Addr)>,
}

impl OutsideAddresses {
    /// `None` for a fabric without an outside.
    pub(super) fn new(fabric: &Fabric, options: &AddressingOptions) -> Result<Option<Self>, AddressError> {
        let Some(outside) = fabric.outside() else { return Ok(None) };
        if outside.pool.overlaps(options.aa_block) {
            let with = format!("the AAs, {}", options.aa_block);
            return Err(OutsideError::PoolOverlaps { pool: outside.pool.to_string(), with }.into());
        }
        for (prefix, what) in [(BORDER_LINKS, "the links of the border"), (OUTSIDE_NET, "the addresses outside")] {
            if options.aa_block.overlaps(prefix) {
                let with = format!("{what}, {prefix}");
                return Err(AddressError::Overlap { block: options.aa_block.to_string(), with });
            }
        }
        let after = |first: Ipv4Addr, places: usize| Ipv4Addr::from(u32::from(first) + places as u32);
        let public = outside.servers.iter().enumerate();
        let public = public.map(|(place, server)| (*server, after(outside.pool.network(), place + 1))).collect();
        let links = fabric.links_of(outside.node).iter().enumerate();
        let ends = |place| (after(BORDER_LINKS.network(), 2 * place), after(BORDER_LINKS.network(), 2 * place + 1));
        let links = links.map(|(place, link)| (*link, ends(place))).collect();
        Ok(Some(Self { pool: outside.pool, public, links }))
    }

    /// The prefix that the border announces.
    pub fn pool(&self) -> Block {
        self.pool
    }

    /// A server's public LA, if it has one.
    pub fn public_la(&self, server: NodeId) -> Option<Ipv4Addr> {
        self.public.get(&server).copied()
    }

    /// All servers with their public LAs, in the fabric's order.
    pub fn public_las(&self) -> impl Iterator<Item = (NodeId, Ipv4Addr)> + '_ {
        self.public.iter().map(|(server, la)| (*server, *la))
    }

    /// A border link's addresses, a /31: the Intermediate's and the outside's. `None` for other links.
    pub fn border_link(&self, link: LinkId) -> Option<(Ipv4Addr, Ipv4Addr)> {
        self.links.get(&link).copied()
    }

    /// The address of a border link's end at `node`. `None` for other links.
    pub fn at(&self, fabric: &Fabric, link: LinkId, node: NodeId) -> Option<Ipv4Addr> {
        let (inside, outside) = self.border_link(link)?;
        Some(if fabric.border_of(link) == Some(node) { inside } else { outside })
    }

    /// The address by which the node outside is known.
    pub fn client(&self) -> Ipv4Addr {
        client()
    }
}

impl AddressPlan {
    /// Addresses at and beyond the border, if the fabric has one.
    pub fn outside(&self) -> Option<&OutsideAddresses> {
        self.outside.as_ref()
    }
}

/// The first host's address outside.
pub(super) fn client() -> Ipv4Addr {
    Ipv4Addr::from(u32::from(OUTSIDE_NET.network()) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::outside::tests::{bed_linked_to, spec};

    fn plan(aa_block: &str) -> Result<(Fabric, AddressPlan), AddressError> {
        let bed = bed_linked_to(&["int1", "int3"]);
        let fabric = bed.with_outside(Some(&spec("198.51.100.0/24", &["s3", "s1"]))).unwrap();
        let options = AddressingOptions { aa_block: aa_block.parse().unwrap(), ..AddressingOptions::default() };
        AddressPlan::new(&fabric, options).map(|plan| (fabric, plan))
    }

    #[test]
    fn servers_and_borders_have_addresses_apart_from_everything_inside() {
        let (fabric, plan) = plan("20.0.0.0/8").unwrap();
        let outside = plan.outside().unwrap();
        let public = |name: &str| outside.public_la(fabric.find(name).unwrap()).map(|la| la.to_string());
        assert_eq!(public("s3").as_deref(), Some("198.51.100.1"));
        assert_eq!(public("s1").as_deref(), Some("198.51.100.2"));
        assert_eq!((public("s2"), public("tor1")), (None, None));
        let net = fabric.outside().unwrap().node;
        let links = fabric.links_of(net).iter().map(|link| outside.border_link(*link).unwrap());
        let texts: Vec<String> = links.map(|(inside, out)| format!("{inside} {out}")).collect();
        assert_eq!(texts, ["192.0.2.0 192.0.2.1", "192.0.2.2 192.0.2.3"]);
        assert_eq!((plan.la(net), outside.client()), (outside.client(), "203.0.113.1".parse().unwrap()));
        assert!(fabric.links_of(net).iter().all(|link| plan.link(*link).is_none()), "OSPF stays inside");
        assert_eq!(outside.border_link(LinkId(0)), None);
    }

    #[test]
    fn the_pool_and_the_aas_are_apart() {
        let error = plan("198.0.0.0/8").unwrap_err().to_string();
        assert!(error.starts_with("`outside.pool` 198.51.100.0/24 overlaps the AAs, 198.0.0.0/8"), "{error}");
        let error = plan("203.0.113.0/25").unwrap_err().to_string();
        assert!(error.contains("AA block 203.0.113.0/25 overlaps the addresses outside"), "{error}");
    }
}
