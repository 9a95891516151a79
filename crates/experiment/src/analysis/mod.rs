//! Records to metrics: pure functions, one module per question that a figure asks.
//!
//! * [`shuffle`]: how efficient and fair an all-to-all shuffle is (VL2 5.1, Figure 9)
//! * [`vlb_split`]: how evenly Aggregation switches split traffic over the Intermediates (VL2 5.2, Figure 10)
//! * [`overlay_cost`]: what an overlay costs in CPU and goodput beside plain routing
//! * [`outage`]: what a failure costs and how fast the fabric is back
//! * [`series`], [`links`], [`cpu`]: what they share
//! * [`framing`]: how much of a link's rate can be payload

pub mod cpu;
pub mod framing;
pub mod links;
pub mod outage;
pub mod overlay_cost;
pub mod series;
pub mod shuffle;
pub mod vlb_split;

use serde::{Deserialize, Serialize};
use weft_scenario::engine::Overlay;
use weft_scenario::record::Records;
use weft_scenario::topology::Fabric;

use crate::metric::{Findings, Problem};
use crate::plan::PlanSpec;

/// Which question a plan asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Analysis {
    /// [`shuffle`].
    Shuffle,
    /// [`vlb_split`].
    VlbSplit,
    /// [`overlay_cost`].
    OverlayCost,
    /// [`outage`].
    Outage,
}

/// A metric that an analysis yields.
#[derive(Clone, Copy, Debug)]
pub struct MetricInfo {
    /// Its name, which claims refer to.
    pub name: &'static str,
    /// What it is, with its denominator.
    pub meaning: &'static str,
}

/// Which trial of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialKey {
    /// Number in the order of running, from 1.
    pub trial: u32,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Its seed.
    pub seed: u64,
    /// Its overlay.
    pub overlay: Overlay,
    /// Name of its workload in the plan.
    pub workload: String,
}

/// A trial and what it yielded.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecords {
    /// Which one.
    pub key: TrialKey,
    /// Its rows.
    pub records: Records,
}

/// Everything that an analysis may look at.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The plan as it ran.
    pub spec: &'a PlanSpec,
    /// The network it ran on.
    pub fabric: &'a Fabric,
    /// Its trials, in order.
    pub trials: &'a [TrialRecords],
}

impl Analysis {
    /// As a plan writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shuffle => "shuffle",
            Self::VlbSplit => "vlb-split",
            Self::OverlayCost => "overlay-cost",
            Self::Outage => "outage",
        }
    }

    /// The metrics it yields.
    pub fn metrics(self) -> &'static [MetricInfo] {
        match self {
            Self::Shuffle => shuffle::METRICS,
            Self::VlbSplit => vlb_split::METRICS,
            Self::OverlayCost => overlay_cost::METRICS,
            Self::Outage => outage::METRICS,
        }
    }

    /// Whether it yields `metric`. [`Analysis::OverlayCost`] also yields each metric per workload, `metric.workload`.
    pub fn yields<'a>(self, metric: &str, workloads: impl Iterator<Item = &'a str>) -> bool {
        let known = |name: &str| self.metrics().iter().any(|metric| metric.name == name);
        let suffix = |workload: &'a str| metric.strip_suffix(workload)?.strip_suffix('.');
        known(metric) || (self == Self::OverlayCost && workloads.filter_map(suffix).any(known))
    }

    /// Runs it.
    pub fn run(self, input: &Input<'_>) -> Findings {
        let mut findings = match self {
            Self::Shuffle => shuffle::analyse(input),
            Self::VlbSplit => vlb_split::analyse(input),
            Self::OverlayCost => overlay_cost::analyse(input),
            Self::Outage => outage::analyse(input),
        };
        findings.problems.extend(unexpected_route_changes(input));
        findings
    }
}

/// A run without faults in which routing neighbours were lost did not measure the fabric that the plan describes.
fn unexpected_route_changes(input: &Input<'_>) -> Option<Problem> {
    let events = input.trials.iter().flat_map(|trial| &trial.records.events);
    let changes = events.filter(|event| event.kind == "adjacency").count();
    let expected = !input.spec.fault.is_empty();
    (changes > 0 && !expected)
        .then(|| Problem::Invalid(format!("{changes} routing adjacency changes in a run without faults")))
}

#[cfg(test)]
pub(crate) mod testing;
