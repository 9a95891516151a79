//! How routing spreads traffic between racks over links, as shares: equal-cost multi-path everywhere, and in a VL2
//! network over a random Intermediate.
//!
//! Every switch splits evenly over its next hops, whatever they can carry beyond, as OSPF with ECMP does. After a failure
//! an Intermediate can so be given more than a ToR's other uplink would have given it; that is part of the answer.

use std::collections::{BTreeMap, BTreeSet};

use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::EcmpRoutes;
use weft_scenario::topology::{Fabric, Role};

/// A direction of a link: twice its number, one more if it is used from its lower to its upper end.
pub(super) fn direction(fabric: &Fabric, link: LinkId, from: NodeId) -> usize {
    2 * link.index() + usize::from(fabric.link(link).b.node == from)
}

/// Directions, and the share of the traffic that each carries.
type Shares = BTreeMap<usize, f64>;
/// Shares on the way to several ends, and the share that each end gets.
type Walk = (Shares, BTreeMap<NodeId, f64>);

/// A network with some of its switches down.
pub(super) struct Spread<'a> {
    fabric: &'a Fabric,
    routes: EcmpRoutes,
    intermediates: Vec<NodeId>,
    /// From a ToR up to the Intermediates; asked for again and again.
    upward: BTreeMap<NodeId, Option<Walk>>,
    /// From an Intermediate down to a ToR; the same.
    downward: BTreeMap<(NodeId, NodeId), Option<Shares>>,
}

impl<'a> Spread<'a> {
    pub(super) fn new(fabric: &'a Fabric, down: &BTreeSet<NodeId>) -> Self {
        let failed: BTreeSet<LinkId> = down.iter().flat_map(|switch| fabric.links_of(*switch)).copied().collect();
        let intermediates = fabric.with_role(Role::Intermediate).filter(|one| !down.contains(one)).collect();
        let routes = EcmpRoutes::compute(fabric, &failed);
        Self { fabric, routes, intermediates, upward: BTreeMap::new(), downward: BTreeMap::new() }
    }

    /// How traffic from one rack to another is spread; `None` if there is no way.
    pub(super) fn between(&mut self, from: NodeId, to: NodeId) -> Option<Vec<(usize, f64)>> {
        let is_vl2 = self.fabric.with_role(Role::Intermediate).next().is_some();
        let shares = if is_vl2 { self.bounced(from, to)? } else { self.straight(from, to)? };
        Some(shares.into_iter().collect())
    }

    fn straight(&self, from: NodeId, to: NodeId) -> Option<Shares> {
        self.walk(from, |at| (at != to).then(|| self.routes.next_hops(at, to))).map(|(shares, _)| shares)
    }

    /// To the nearest Intermediates by their anycast address, and from there to the ToR.
    fn bounced(&mut self, from: NodeId, to: NodeId) -> Option<Shares> {
        if !self.upward.contains_key(&from) {
            let owners = &self.intermediates;
            let up = |at: NodeId| (!owners.contains(&at)).then(|| self.routes.anycast_next_hops(at, owners));
            self.upward.insert(from, self.walk(from, up));
        }
        let (mut all, ends) = self.upward[&from].clone()?;
        for (intermediate, part) in ends {
            if !self.downward.contains_key(&(intermediate, to)) {
                let shares = self.straight(intermediate, to);
                self.downward.insert((intermediate, to), shares);
            }
            for (link, share) in self.downward[&(intermediate, to)].as_ref()? {
                *all.entry(*link).or_default() += part * share;
            }
        }
        Some(all)
    }

    /// Follows next hops from a switch to where `next` says `None`: shares of links, and of the ends. `None` where there is
    /// no next hop. Next hops come nearer with every hop, so a switch is done when the frontier of its distance is.
    fn walk(&self, from: NodeId, next: impl Fn(NodeId) -> Option<Vec<LinkId>>) -> Option<Walk> {
        let mut shares = Shares::new();
        let mut ends = BTreeMap::new();
        let mut frontier = BTreeMap::from([(from, 1.0)]);
        while !frontier.is_empty() {
            let mut further: BTreeMap<NodeId, f64> = BTreeMap::new();
            for (at, part) in frontier {
                let Some(hops) = next(at) else {
                    *ends.entry(at).or_default() += part;
                    continue;
                };
                if hops.is_empty() {
                    return None;
                }
                let each = part / hops.len() as f64;
                for link in hops {
                    *shares.entry(direction(self.fabric, link, at)).or_default() += each;
                    *further.entry(self.fabric.link(link).far_end(at)?.node).or_default() += each;
                }
            }
            frontier = further;
        }
        Some((shares, ends))
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{ConventionalParams, TestbedParams, conventional, vl2_testbed};

    use super::*;

    fn shares(fabric: &Fabric, down: &[&str], from: &str, to: &str) -> Option<Vec<(String, f64)>> {
        let node = |name: &str| fabric.find(name).unwrap();
        let down = down.iter().map(|name| node(name)).collect();
        let found = Spread::new(fabric, &down).between(node(from), node(to))?;
        let name = |direction: usize| {
            let link = fabric.link(LinkId(direction as u32 / 2));
            let (a, b) = (&fabric.node(link.a.node).name, &fabric.node(link.b.node).name);
            if direction % 2 == 1 { format!("{b}>{a}") } else { format!("{a}>{b}") }
        };
        Some(found.into_iter().map(|(direction, share)| (name(direction), share)).collect())
    }

    #[test]
    fn vl2_spreads_over_all_intermediates_up_and_down() {
        let fabric = vl2_testbed(&TestbedParams::default()).unwrap();
        let found = shares(&fabric, &[], "tor1", "tor3").unwrap();
        let of = |name: &str| found.iter().find(|share| share.0 == name).map(|share| share.1);
        assert_eq!(
            (of("tor1>agg1"), of("tor1>agg2"), of("agg1>tor3"), of("agg3>tor3")),
            (Some(0.5), Some(0.5), Some(0.5), Some(0.5))
        );
        assert!((of("agg1>int2").unwrap() - 1.0 / 6.0).abs() < 1e-12);
        assert_eq!(found.len(), 2 + 6 + 6 + 2);
        let without = shares(&fabric, &["int1", "agg2"], "tor1", "tor3").unwrap();
        let of = |name: &str| without.iter().find(|share| share.0 == name).map(|share| share.1);
        assert_eq!((of("tor1>agg1"), of("agg1>int2"), of("agg1>int1")), (Some(1.0), Some(0.5), None));
    }

    #[test]
    fn the_conventional_network_has_two_ways_and_then_one_and_then_none() {
        let fabric =
            conventional(&ConventionalParams { tors: 4, aggregation_pairs: 2, ..ConventionalParams::default() })
                .unwrap();
        let near = shares(&fabric, &[], "tor1", "tor3").unwrap();
        assert_eq!(near.len(), 4, "two Aggregations, up and down: {near:?}");
        assert_eq!(shares(&fabric, &["agg1"], "tor1", "tor3").unwrap().len(), 2);
        assert_eq!(shares(&fabric, &["agg1", "agg2"], "tor1", "tor3"), None);
        // Two domains: only the core connects them.
        assert!(shares(&fabric, &["core1"], "tor1", "tor2").is_some());
        assert_eq!(shares(&fabric, &["core1", "core2"], "tor1", "tor2"), None);
    }
}
