//! A Clos network as the programs see it: ToRs on Aggregations, every Aggregation on every Intermediate alike.
//!
//! All Intermediates look the same to every Aggregation, so a routing that treats them alike is as good as any: of a
//! solution that does not, the mean over all orders of the Intermediates is one that does, and its most loaded link is no
//! more loaded. What an Aggregation sends up is therefore one number, of which each Intermediate gets its part.

use std::collections::BTreeMap;

use weft_scenario::id::NodeId;
use weft_scenario::topology::{Fabric, Role};
use weft_scenario::units::BitsPerSec;

use crate::ModelError;

/// A ToR and what hangs around it.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The ToR.
    pub(super) tor: NodeId,
    pub(super) name: String,
    /// Aggregations above it by their place, with the rate of the link.
    pub(super) uplinks: Vec<(usize, f64)>,
    /// Rate of its servers together.
    pub(super) servers: BitsPerSec,
}

/// The network.
#[derive(Clone, Debug)]
pub(super) struct Clos {
    pub(super) racks: Vec<Rack>,
    pub(super) aggregations: Vec<NodeId>,
    pub(super) intermediates: Vec<NodeId>,
    /// Rate of each link between an Aggregation and an Intermediate.
    pub(super) core_rate: f64,
}

impl Clos {
    /// Reads the network from a fabric, with only the first so many Intermediates; an error names what does not fit.
    pub(super) fn of(fabric: &Fabric, intermediates: Option<u32>) -> Result<Self, ModelError> {
        let aggregations: Vec<NodeId> = fabric.with_role(Role::Aggregation).collect();
        let mut tops: Vec<NodeId> = fabric.with_role(Role::Intermediate).collect();
        if tops.is_empty() || aggregations.is_empty() {
            return Err(ModelError::Shape(format!(
                "fabric `{}` has no Intermediates above Aggregations; the question is about a VL2 Clos (`vl2-clos`)",
                fabric.name()
            )));
        }
        if let Some(wanted) = intermediates {
            if wanted as usize > tops.len() {
                let has = tops.len();
                return Err(ModelError::Setting(format!("`intermediates` is {wanted}; the fabric has {has}")));
            }
            tops.truncate(wanted as usize);
        }
        let core_rate = core_rate(fabric, &aggregations, &tops)?;
        let place: BTreeMap<NodeId, usize> = aggregations.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let racks = fabric.with_role(Role::Tor).map(|tor| rack(fabric, tor, &place)).collect::<Result<Vec<_>, _>>()?;
        if racks.len() < 2 {
            return Err(ModelError::Shape("traffic between racks needs at least two ToRs".into()));
        }
        Ok(Self { racks, aggregations, intermediates: tops, core_rate })
    }

    /// What all links from an Aggregation to the Intermediates carry, in each direction.
    pub(super) fn core_capacity(&self) -> f64 {
        self.core_rate * self.intermediates.len() as f64
    }

    /// Aggregations that two racks share, with their places among the uplinks of the first and of the second.
    pub(super) fn shared(&self, from: usize, to: usize) -> Vec<(usize, usize)> {
        let (ups, downs) = (&self.racks[from].uplinks, &self.racks[to].uplinks);
        let same = |up: usize| downs.iter().position(|down| down.0 == ups[up].0).map(|down| (up, down));
        (0..ups.len()).filter_map(same).collect()
    }
}

fn core_rate(fabric: &Fabric, aggregations: &[NodeId], tops: &[NodeId]) -> Result<f64, ModelError> {
    let mut found: Option<f64> = None;
    for (aggregation, top) in aggregations.iter().flat_map(|one| tops.iter().map(move |top| (*one, *top))) {
        let links = fabric.links_of(aggregation).iter().map(|link| fabric.link(*link));
        let between = links.filter(|link| link.far_end(aggregation).is_some_and(|port| port.node == top));
        let rate: f64 = between.map(|link| link.spec.rate.0 as f64).sum();
        let (a, b) = (&fabric.node(aggregation).name, &fabric.node(top).name);
        if rate == 0.0 {
            return Err(ModelError::Shape(format!(
                "`{a}` and `{b}` are not linked; every Aggregation is on every Intermediate"
            )));
        }
        if found.is_some_and(|known| known != rate) {
            return Err(ModelError::Shape(format!(
                "the link of `{a}` and `{b}` has another rate than others of its tier"
            )));
        }
        found = Some(rate);
    }
    found.ok_or_else(|| ModelError::Shape("there is no link between Aggregations and Intermediates".into()))
}

fn rack(fabric: &Fabric, tor: NodeId, place: &BTreeMap<NodeId, usize>) -> Result<Rack, ModelError> {
    let mut uplinks: BTreeMap<usize, f64> = BTreeMap::new();
    let mut servers = 0;
    for link in fabric.links_of(tor).iter().map(|link| fabric.link(*link)) {
        let Some(far) = link.far_end(tor) else { continue };
        match place.get(&far.node) {
            Some(aggregation) => *uplinks.entry(*aggregation).or_default() += link.spec.rate.0 as f64,
            None if fabric.node(far.node).role == Role::Server => servers += link.spec.rate.0,
            None => {}
        }
    }
    let name = &fabric.node(tor).name;
    match (uplinks.is_empty(), servers) {
        (true, _) => Err(ModelError::Shape(format!("`{name}` is on no Aggregation"))),
        (_, 0) => Err(ModelError::Shape(format!("`{name}` has no servers, so it has no rate"))),
        _ => Ok(Rack { tor, name: name.clone(), uplinks: uplinks.into_iter().collect(), servers: BitsPerSec(servers) }),
    }
}
