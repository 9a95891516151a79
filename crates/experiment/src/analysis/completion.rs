//! Flow completion times: which flows are measured, in which class of sizes they are, and the same flow on two networks.

use weft_scenario::record::FlowRow;
use weft_scenario::workload::{FlowClass, Workload};

use super::{Input, TrialKey, TrialRecords};
use crate::metric::Problem;
use crate::plan::PlanSpec;

/// A bin with fewer samples makes no claim.
pub const SAMPLES_MIN: usize = 200;

/// Classes in which the leaf-spine paper reports completion times; sizes on the paper's scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// Background flows below 100 kB.
    Small,
    /// Background flows of 100 kB to 10 MB.
    Medium,
    /// Background flows above 10 MB: "Large (10MB, inf)".
    Large,
    /// Responses to queries, whatever their size.
    Query,
}

/// Below this a flow is small.
const SMALL_BELOW_BYTES: u64 = 100_000;
/// Above this a flow is large.
const LARGE_ABOVE_BYTES: u64 = 10_000_000;

impl SizeClass {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Small, Self::Medium, Self::Large, Self::Query];

    /// As names of metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Query => "query",
        }
    }

    /// The class of a flow whose size was divided by `size_divisor`.
    pub fn of(flow: &FlowRow, size_divisor: u32) -> Self {
        let bytes = flow.bytes_asked.saturating_mul(u64::from(size_divisor));
        match flow.class {
            FlowClass::Query => Self::Query,
            _ if bytes < SMALL_BELOW_BYTES => Self::Small,
            _ if bytes <= LARGE_ABOVE_BYTES => Self::Medium,
            _ => Self::Large,
        }
    }
}

/// By what the sizes of a workload's background flows were divided.
pub fn size_divisor(workload: &Workload) -> u32 {
    match workload {
        Workload::Traffic(traffic) => traffic.background.as_ref().map_or(1, |background| background.size_divisor),
        Workload::Mix(mix) => mix.size_divisor,
        _ => 1,
    }
}

/// Whether a flow starts in the measured time: not in the warm-up, and not after `sampling.measure_until`.
pub fn is_measured(spec: &PlanSpec, flow: &FlowRow) -> bool {
    let sampling = &spec.sampling;
    flow.start_ns >= sampling.warm_up.0 && sampling.measure_until.is_none_or(|until| flow.start_ns <= until.0)
}

/// From start to last byte, in nanoseconds.
pub fn fct_ns(flow: &FlowRow) -> Option<f64> {
    flow.end_ns.map(|end| end.saturating_sub(flow.start_ns) as f64)
}

/// Completion time / what it would have been alone on an idle network, where the engine knows that.
pub fn slowdown(flow: &FlowRow) -> Option<f64> {
    let ideal = flow.ideal_ns.filter(|ideal| *ideal > 0)?;
    Some(fct_ns(flow)? / ideal as f64)
}

/// Goodput of every finished flow in bits per second.
pub fn goodputs(flows: &[FlowRow]) -> Vec<f64> {
    let goodput = |flow: &FlowRow| {
        let span = flow.end_ns?.checked_sub(flow.start_ns).filter(|span| *span > 0)?;
        Some(flow.bytes_received as f64 * 8e9 / span as f64)
    };
    flows.iter().filter_map(goodput).collect()
}

/// The measured flows of a trial.
pub fn measured<'a>(input: &Input<'a>, trial: &'a TrialRecords) -> impl Iterator<Item = &'a FlowRow> {
    let spec = input.at(&trial.key).map_or(input.spec, |(spec, _)| spec);
    trial.records.flows.iter().filter(move |flow| is_measured(spec, flow))
}

/// Measured flows that did not end: completion times without them would flatter the network.
pub fn unfinished(input: &Input<'_>) -> Vec<Problem> {
    let of_trial = |trial: &TrialRecords| {
        let open = measured(input, trial).filter(|flow| flow.end_ns.is_none()).count();
        let all = measured(input, trial).count();
        let text =
            || format!("{open} of {all} flows of {} did not end within the time limit", place(input, &trial.key));
        (open > 0).then(|| Problem::Failed(text()))
    };
    input.trials.iter().filter_map(of_trial).collect()
}

/// `trial 7 (web-search, fabric=10g load=50)`.
pub fn place(input: &Input<'_>, key: &TrialKey) -> String {
    let labels = input.spec.axes.iter().zip(&key.point).map(|(axis, label)| format!("{}={label}", axis.name));
    let place = std::iter::once(key.workload.clone()).chain(labels).collect::<Vec<_>>().join(" ");
    format!("trial {} ({place})", key.trial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing;

    #[test]
    fn classes_are_on_the_papers_scale() {
        let flow = |bytes, class| FlowRow { class, ..testing::flow(bytes, 0, None) };
        let background = |bytes, divisor| SizeClass::of(&flow(bytes, FlowClass::Background), divisor);
        assert_eq!(background(99_999, 1), SizeClass::Small);
        assert_eq!(background(100_000, 1), SizeClass::Medium);
        assert_eq!(background(10_000_000, 1), SizeClass::Medium);
        assert_eq!(background(10_000_001, 1), SizeClass::Large);
        assert_eq!(background(1_000_001, 10), SizeClass::Large);
        assert_eq!(SizeClass::of(&flow(99_999_999, FlowClass::Query), 1), SizeClass::Query);
    }
}
