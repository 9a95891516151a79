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

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::topology::{Fabric, Role};
use crate::units::Nanos;

/// A month: 30 days.
pub const MONTH: Nanos = Nanos(30 * DAY_NS);
/// Most failures that a model may draw.
const FAILURES_MAX: f64 = 1e6;
const DAY_NS: u64 = 86_400_000_000_000;

/// What may be chosen about failures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FailureModel {
    /// For how long failures begin.
    pub duration: Nanos,
    /// Failures a month for each switch of the network. The paper does not say; 1 is our choice.
    pub per_switch_month: f64,
    /// Share of failures, in per mille, that take all of a redundant pair.
    pub group_per_mille: f64,
}

impl Default for FailureModel {
    fn default() -> Self {
        Self { duration: MONTH, per_switch_month: 1.0, group_per_mille: 3.0 }
    }
}

/// Why a model is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FailureError {
    /// A setting outside its range.
    #[error("`{setting}` of the failures is {value}; choose {allowed}")]
    Range {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// What may be chosen.
        allowed: &'static str,
    },
    /// More failures than can be kept.
    #[error("the failures would be about {expected:.0}; choose a shorter `duration` or fewer `per_switch_month`")]
    TooMany {
        /// How many are expected.
        expected: f64,
    },
}

/// Switches that fail together and come back together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When, from the start.
    pub at: Nanos,
    /// For how long.
    pub lasts: Nanos,
    /// Which switches, in order.
    pub switches: Vec<NodeId>,
    /// Whether it takes two members of a redundant group.
    pub takes_group: bool,
}

impl Failure {
    /// When it is repaired.
    pub fn ends(&self) -> Nanos {
        Nanos(self.at.0.saturating_add(self.lasts.0))
    }
}

impl FailureModel {
    /// Whether the settings make sense.
    pub fn check(&self) -> Result<(), FailureError> {
        let refuse = |setting, value: f64, allowed| Err(FailureError::Range { setting, value, allowed });
        if self.duration.0 == 0 || self.duration.0 > 400 * DAY_NS {
            return refuse("duration", self.duration.as_secs_f64(), "up to 400 days");
        }
        if !(self.per_switch_month > 0.0 && self.per_switch_month <= 1000.0) {
            return refuse("per_switch_month", self.per_switch_month, "above 0, at most 1000");
        }
        if !(0.0..=1000.0).contains(&self.group_per_mille) {
            return refuse("group_per_mille", self.group_per_mille, "0 to 1000");
        }
        Ok(())
    }

    /// Failures of a fabric's switches in order of time: a Poisson process. The same seed gives the same.
    pub fn failures(&self, fabric: &Fabric, seed: u64) -> Result<Vec<Failure>, FailureError> {
        self.check()?;
        let mut switches: Vec<NodeId> = fabric.switches().collect();
        // Racks first: networks with as many of them lose the same ones.
        switches.sort_by_key(|switch| fabric.node(*switch).role != Role::Tor);
        let a_month = self.per_switch_month * switches.len() as f64;
        let expected = a_month * self.duration.0 as f64 / MONTH.0 as f64;
        if expected > FAILURES_MAX {
            return Err(FailureError::TooMany { expected });
        }
        let mean_gap_ns = MONTH.0 as f64 / a_month.max(f64::MIN_POSITIVE);
        Ok(draw::draw(self, &switches, &redundant_groups(fabric), mean_gap_ns, seed))
    }
}

/// The sets of two and more switches that some switch has above it, each once: all of one fail, and what is below is cut
/// off.
pub fn redundant_groups(fabric: &Fabric) -> Vec<BTreeSet<NodeId>> {
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
