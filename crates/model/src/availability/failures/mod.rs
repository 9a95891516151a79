//! Failures as a data centre has them, drawn from the statistics of VL2 3.4: how many devices fail together, how long
//! it lasts, and how rarely all of a redundant group fail at once.
//!
//! | what | paper | here |
//! | --- | --- | --- |
//! | devices in one failure | half < 4, 95 % < 20, largest 217 | logarithmic between these points; never more than there are |
//! | duration | > 30 s; 95 % in 10 min, 98 % < 1 h, 99.6 % < 1 day, 0.09 % > 10 days | logarithmic between these points, 30 days at most |
//! | all of a redundant group | 0.3 % of failures | that share takes two members of a group; other failures leave one of each |
//! | how often | not said | [`FailureModel::per_switch_month`] |
//! | which devices | not said | any switches, each equally likely |
//!
//! The paper's groups are pairs, so "all redundant components" are two. A group is here the set of switches that some
//! switch has above it: a pair in the conventional network, of which nothing is left, and in a Clos network the
//! Aggregations of a ToR or all Intermediates, of which n - 2 are left.

mod draw;

use std::collections::BTreeSet;

use weft_scenario::id::NodeId;
use weft_scenario::topology::{Fabric, Role};
use weft_scenario::units::Nanos;
use weft_scenario::workload::model::{FailureModel, MONTH};

use crate::ModelError;

/// Most failures that a model may draw.
const FAILURES_MAX: f64 = 1e6;

/// Switches that fail together and come back together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// When, from the start.
    pub(super) at: Nanos,
    /// For how long.
    pub(super) lasts: Nanos,
    /// Which switches, in order.
    pub(super) switches: Vec<NodeId>,
    /// Whether it takes two members of a redundant group.
    pub(super) takes_group: bool,
}

impl Failure {
    /// When it is repaired.
    pub(super) fn ends(&self) -> Nanos {
        Nanos(self.at.0.saturating_add(self.lasts.0))
    }
}

/// Failures of a fabric's switches in order of time: a Poisson process. The same seed gives the same.
pub(super) fn failures(model: &FailureModel, fabric: &Fabric, seed: u64) -> Result<Vec<Failure>, ModelError> {
    model.check().map_err(|error| ModelError::Setting(error.to_string()))?;
    let mut switches: Vec<NodeId> = fabric.switches().collect();
    // Racks first: networks with as many of them lose the same ones.
    switches.sort_by_key(|switch| fabric.node(*switch).role != Role::Tor);
    let a_month = model.per_switch_month * switches.len() as f64;
    let expected = a_month * model.duration.0 as f64 / MONTH.0 as f64;
    if expected > FAILURES_MAX {
        return Err(ModelError::Setting(format!(
            "the failures would be about {expected:.0}; choose a shorter `duration` or fewer `per_switch_month`"
        )));
    }
    let mean_gap_ns = MONTH.0 as f64 / a_month.max(f64::MIN_POSITIVE);
    Ok(draw::draw(model, &switches, &redundant_groups(fabric), mean_gap_ns, seed))
}

/// The sets of two and more switches that some switch has above it, each once: all of one fail, and what is below is cut
/// off.
fn redundant_groups(fabric: &Fabric) -> Vec<BTreeSet<NodeId>> {
    let mut groups = BTreeSet::new();
    for switch in fabric.switches() {
        let links = fabric.links_of(switch).iter().map(|link| fabric.link(*link));
        let above: BTreeSet<NodeId> = links.filter(|link| link.b.node == switch).map(|link| link.a.node).collect();
        let is_group = above.len() > 1 && above.iter().all(|node| fabric.node(*node).role != Role::Tor);
        if is_group {
            groups.insert(above);
        }
    }
    groups.into_iter().collect()
}

#[cfg(test)]
mod tests;
