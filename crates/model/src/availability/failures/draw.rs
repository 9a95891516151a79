//! Draws failures one by one.

use std::collections::BTreeSet;

use weft_scenario::id::NodeId;
use weft_scenario::random::{Purpose, Stream};
use weft_scenario::units::Nanos;
use weft_scenario::workload::model::{FailureModel, MONTH};

use super::Failure;

const SECOND_NS: f64 = 1e9;
const DAY_S: f64 = 86_400.0;
/// Seconds, and the share of failures that last less (VL2 3.4). A failure is 30 s without function.
const DURATIONS: &[(f64, f64)] =
    &[(30.0, 0.0), (600.0, 0.95), (3600.0, 0.98), (DAY_S, 0.996), (10.0 * DAY_S, 0.9991), (30.0 * DAY_S, 1.0)];
/// Devices, and the share of failures that involve fewer (VL2 3.4). The largest had 217.
const SIZES: &[(f64, f64)] = &[(1.0, 0.0), (4.0, 0.5), (20.0, 0.95), (218.0, 1.0)];

pub(super) fn draw(
    model: &FailureModel,
    switches: &[NodeId],
    groups: &[BTreeSet<NodeId>],
    mean_gap_ns: f64,
    seed: u64,
) -> Vec<Failure> {
    let mut stream = Stream::new(seed, Purpose::Failures, 0);
    let mut failures = Vec::new();
    let mut now_ns = 0.0;
    for number in 1.. {
        now_ns += stream.exponential() * mean_gap_ns;
        if now_ns >= model.duration.0 as f64 {
            break;
        }
        let lasts_s = quantile(DURATIONS, stream.share());
        let size = quantile(SIZES, stream.share()) as usize;
        let takes_group = stream.share() * 1000.0 < model.group_per_mille && !groups.is_empty();
        // What fails has a stream of its own, so that two networks have failures of the same sizes at the same times.
        let mut which = Stream::new(seed, Purpose::Failures, number);
        let order = by_chance(&mut which, switches);
        let mut failing = if takes_group { two_of_a_group(&mut which, groups) } else { BTreeSet::new() };
        add_spared(&order, groups, size, &mut failing);
        let lasts = Nanos((lasts_s * SECOND_NS) as u64).min(MONTH);
        failures.push(Failure {
            at: Nanos(now_ns as u64),
            lasts,
            switches: failing.into_iter().collect(),
            takes_group,
        });
    }
    failures
}

/// The switches in random order; those that two lists have in the same places have the same chances in both.
fn by_chance(stream: &mut Stream, switches: &[NodeId]) -> Vec<NodeId> {
    let mut order: Vec<(u64, NodeId)> = switches.iter().map(|switch| (stream.below(u64::MAX), *switch)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, switch)| switch).collect()
}

/// The value below which a share of a distribution lies that is logarithmic between its points.
pub(super) fn quantile(points: &[(f64, f64)], share: f64) -> f64 {
    let after = points.iter().position(|point| point.1 > share).unwrap_or(points.len() - 1).max(1);
    let ((low, from), (high, to)) = (points[after - 1], points[after]);
    let place = ((share - from) / (to - from)).clamp(0.0, 1.0);
    low * libm::exp(place * libm::log(high / low))
}

fn two_of_a_group(stream: &mut Stream, groups: &[BTreeSet<NodeId>]) -> BTreeSet<NodeId> {
    let mut members: Vec<NodeId> = groups[stream.below(groups.len() as u64) as usize].iter().copied().collect();
    stream.choose(&mut members, 2).iter().copied().collect()
}

/// Adds switches in this order until `size` fail, but never the last of a group.
fn add_spared(order: &[NodeId], groups: &[BTreeSet<NodeId>], size: usize, failing: &mut BTreeSet<NodeId>) {
    for switch in order.iter().copied() {
        if failing.len() >= size {
            return;
        }
        let is_last = |group: &BTreeSet<NodeId>| {
            group.contains(&switch) && group.iter().all(|other| *other == switch || failing.contains(other))
        };
        if !groups.iter().any(is_last) {
            failing.insert(switch);
        }
    }
}
