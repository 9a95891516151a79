//! The questions of shipped plans, asked of rows whose answers are known.

mod calculations;
mod core_to_nic_speed;
mod directory;
mod ecmp;
mod elephants;
mod incast;
mod isolation;
mod kernel_tcp;
mod link_speed;
mod model_a;
mod mutations;
mod outage;
mod outside;
mod overlay_goodput;
mod queues;
mod regions;
mod shuffle;
mod trill;
mod trill_load;
mod vlb_fairness;
mod vxlan;

use crate::metric::Findings;
use crate::plan::{Mode, PlanSpec};

/// A shipped plan as it runs by default.
fn shipped(name: &str) -> PlanSpec {
    crate::plan::load(name).expect("it is shipped").for_mode(Mode::Default).clone()
}

#[track_caller]
fn value(findings: &Findings, name: &str) -> f64 {
    let found = findings.metrics.get(name);
    found.unwrap_or_else(|| panic!("no {name}: {:?}, {:?}", findings.metrics.keys(), findings.problems)).value
}

#[track_caller]
fn close(findings: &Findings, name: &str, want: f64) {
    let got = value(findings, name);
    assert!((got - want).abs() < 1e-6 * want.abs().max(1.0), "{name}: got {got}, want {want}");
}
