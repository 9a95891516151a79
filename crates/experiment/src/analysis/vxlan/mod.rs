//! The VXLAN draft's experiments: one module per question, and what they share.
//!
//! * [`model_a`]: what one server carries, and what that costs it (2.5)
//! * [`model_b`]: what VXLAN adds between two servers (3.1)
//! * [`encapsulations`]: the same cost for every way between virtual switches
//! * [`segments`]: what thousands of segments take (3.2)
//!
//! CPU time is that of the least disturbed run, per frame, times a rate: on a machine that others use too, soft interrupts
//! of others only ever add. Comparisons are made within a repetition, between runs that took turns.

pub mod encapsulations;
pub mod model_a;
pub mod model_b;
pub mod segments;

use weft_scenario::record::{OfferedRow, ServerRow};
use weft_scenario::workload::vxlan::{BenchmarkSpec, MatrixSpec, SegmentsSpec, ServersSpec};
use weft_scenario::workload::{VxlanSpec, Workload};

use super::TrialRecords;
use super::trials::{cell, cell_with_interval, put, put_calibration, put_empty};
use crate::plan::PlanSpec;

/// Bytes of a megabyte as the draft's tables have it.
const MEGABYTE: f64 = 1e6;

/// The workloads of a plan that are experiments of the draft.
fn experiments(spec: &PlanSpec) -> impl Iterator<Item = (&str, &VxlanSpec)> {
    spec.workload.iter().filter_map(|(name, workload)| match workload {
        Workload::Vxlan(experiment) => Some((name.as_str(), experiment)),
        _ => None,
    })
}

/// Those of traffic model A.
pub fn benchmarks(spec: &PlanSpec) -> impl Iterator<Item = (&str, &BenchmarkSpec)> {
    experiments(spec).filter_map(|(name, experiment)| match experiment {
        VxlanSpec::Benchmark(benchmark) => Some((name, benchmark)),
        _ => None,
    })
}

/// Those of traffic model B.
pub fn server_pairs(spec: &PlanSpec) -> impl Iterator<Item = (&str, &ServersSpec)> {
    experiments(spec).filter_map(|(name, experiment)| match experiment {
        VxlanSpec::Servers(servers) => Some((name, servers)),
        _ => None,
    })
}

/// Those that compare ways.
pub fn matrices(spec: &PlanSpec) -> impl Iterator<Item = (&str, &MatrixSpec)> {
    experiments(spec).filter_map(|(name, experiment)| match experiment {
        VxlanSpec::Matrix(matrix) => Some((name, matrix)),
        _ => None,
    })
}

/// Those with many segments.
pub fn scales(spec: &PlanSpec) -> impl Iterator<Item = (&str, &SegmentsSpec)> {
    experiments(spec).filter_map(|(name, experiment)| match experiment {
        VxlanSpec::Segments(segments) => Some((name, segments)),
        _ => None,
    })
}

/// Whether all workloads are of one experiment and there is no sweep.
fn check_only(spec: &PlanSpec, analysis: &str, experiment: &str) -> Result<(), String> {
    let right = |workload: &Workload| matches!(workload, Workload::Vxlan(found) if found.name() == experiment);
    match spec.workload.values().all(right) && spec.axes.is_empty() {
        true => Ok(()),
        false => {
            Err(format!("analysis `{analysis}` needs workloads with `experiment = \"{experiment}\"` and no sweep"))
        }
    }
}

/// The row of a server on a way at a size.
fn server_row<'a>(trial: &'a TrialRecords, path: &str, server: &str, bytes: u32) -> Option<&'a ServerRow> {
    let is_it = |row: &&ServerRow| row.path == path && row.server == server && row.frame_bytes == bytes;
    trial.records.servers.iter().find(is_it)
}

/// Lost of sent, 0 to 1; `None` if nothing was sent.
pub fn loss_ratio(row: &OfferedRow) -> Option<f64> {
    (row.sent_frames > 0).then(|| 1.0 - row.received_frames.min(row.sent_frames) as f64 / row.sent_frames as f64)
}

/// Frames that arrived per second.
pub fn received_per_s(row: &OfferedRow) -> f64 {
    row.received_frames as f64 * 1e9 / row.wall_ns.max(1) as f64
}

/// Share of one core that the receiving VMs had.
pub fn vm_cpu_share(row: &OfferedRow) -> f64 {
    row.vm_cpu_ns as f64 / row.wall_ns.max(1) as f64
}

/// Frames per second of a size as bits per second with FCS.
fn bits_per_s(frames_per_s: f64, frame_bytes: u32) -> f64 {
    frames_per_s * f64::from(frame_bytes) * 8.0
}

#[cfg(test)]
mod tests;
