//! What calculations yield: [`cost`] of networks, [`link_use`] by routing, [`availability`] while devices fail.

pub mod availability;
pub mod cost;
pub mod link_use;

use weft_scenario::workload::{ModelSpec, Workload};

use super::TrialRecords;
use crate::plan::PlanSpec;

/// The question that the plan asks; it is the only workload.
fn question(spec: &PlanSpec) -> Option<&ModelSpec> {
    match spec.workload.values().collect::<Vec<_>>().as_slice() {
        [Workload::Model(model)] => Some(model),
        _ => None,
    }
}

/// What a plan must have: one workload with this question, and at most one axis.
fn check(spec: &PlanSpec, analysis: &str, wanted: &str) -> Result<(), String> {
    if question(spec).is_none_or(|model| model.question() != wanted) {
        return Err(format!("analysis `{analysis}` takes one workload of kind `model` with the question `{wanted}`"));
    }
    match spec.axes.len() {
        0 | 1 => Ok(()),
        _ => Err(format!("analysis `{analysis}` takes at most one axis")),
    }
}

/// The places of the plan's axis; one without a name in a plan without a sweep.
fn places(spec: &PlanSpec) -> Vec<String> {
    spec.axes.first().map_or_else(|| vec![String::new()], |axis| axis.labels.clone())
}

/// `METRIC.PLACE`, or the metric alone.
fn name_at(metric: &str, place: &str) -> String {
    if place.is_empty() { metric.to_owned() } else { format!("{metric}.{place}") }
}

/// The trials at a place, in the order of their seeds.
fn trials_at<'a>(trials: &'a [TrialRecords], place: &str) -> Vec<&'a TrialRecords> {
    trials.iter().filter(|trial| trial.key.point.first().map_or("", String::as_str) == place).collect()
}

#[cfg(test)]
mod tests;
