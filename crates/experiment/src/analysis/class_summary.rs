//! Completion times of one run by class of sizes, for a look at a scenario without a plan.

use serde::Serialize;
use weft_scenario::record::FlowRow;

use super::completion::{SizeClass, fct_ns, slowdown};
use crate::stats;

/// Completion times of one class. Flows that did not end count in `flows` only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassSummary {
    /// `all`, or the name of a [`SizeClass`].
    pub class: &'static str,
    /// How many flows there were.
    pub flows: usize,
    /// How many of them ended.
    pub ended: usize,
    /// Mean completion time, from a flow's start to its last byte at the receiver.
    pub mean_fct_us: Option<f64>,
    /// Median of it.
    pub p50_fct_us: Option<f64>,
    /// Its 99th percentile.
    pub p99_fct_us: Option<f64>,
    /// Mean of completion time / the time that the flow would take alone on an idle network.
    pub mean_slowdown: Option<f64>,
    /// Its 99th percentile.
    pub p99_slowdown: Option<f64>,
}

/// One line for all flows and one for each class that has flows. `size_divisor`: by what the sizes were divided.
pub fn by_class(flows: &[FlowRow], size_divisor: u32) -> Vec<ClassSummary> {
    let all: Vec<&FlowRow> = flows.iter().collect();
    let classes = SizeClass::ALL.into_iter().map(|class| {
        let members = flows.iter().filter(|flow| SizeClass::of(flow, size_divisor) == class).collect();
        (class.name(), members)
    });
    let lines = std::iter::once(("all", all)).chain(classes);
    lines.filter(|(_, flows)| !flows.is_empty()).map(|(name, flows)| summarise(name, &flows)).collect()
}

fn summarise(class: &'static str, flows: &[&FlowRow]) -> ClassSummary {
    let times_us = stats::sorted(&flows.iter().filter_map(|flow| Some(fct_ns(flow)? / 1e3)).collect::<Vec<_>>());
    let slowdowns = stats::sorted(&flows.iter().filter_map(|flow| slowdown(flow)).collect::<Vec<_>>());
    ClassSummary {
        class,
        flows: flows.len(),
        ended: times_us.len(),
        mean_fct_us: stats::mean(&times_us),
        p50_fct_us: stats::percentile_of_sorted(&times_us, 0.5),
        p99_fct_us: stats::percentile_of_sorted(&times_us, 0.99),
        mean_slowdown: stats::mean(&slowdowns),
        p99_slowdown: stats::percentile_of_sorted(&slowdowns, 0.99),
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::workload::FlowClass;

    use super::*;

    fn flow(bytes: u64, fct_us: Option<u64>) -> FlowRow {
        let (start_ns, ideal_ns) = (5_000, Some(1_000));
        let end_ns = fct_us.map(|us| start_ns + us * 1_000);
        FlowRow { bytes_asked: bytes, start_ns, end_ns, ideal_ns, ..FlowRow::default() }
    }

    #[test]
    fn classes_are_summed_up_apart_and_together() {
        let query = FlowRow { class: FlowClass::Query, ..flow(20_000_000, Some(9)) };
        let flows = [flow(1_000, Some(1)), flow(99_999, Some(3)), flow(99_999, None), flow(20_000_000, Some(7)), query];
        let lines = by_class(&flows, 1);
        let found: Vec<_> = lines.iter().map(|line| (line.class, line.flows, line.ended, line.mean_fct_us)).collect();
        let expected = [
            ("all", 5, 4, Some(5.0)),
            ("small", 3, 2, Some(2.0)),
            ("large", 1, 1, Some(7.0)),
            ("query", 1, 1, Some(9.0)),
        ];
        assert_eq!(found, expected);
        assert_eq!((lines[0].p50_fct_us, lines[0].mean_slowdown), (Some(5.0), Some(5.0)));
    }

    #[test]
    fn sizes_are_those_before_they_were_divided() {
        let lines = by_class(&[flow(1_000, None)], 100_000);
        assert_eq!((lines[1].class, lines[1].mean_fct_us, lines[1].p99_slowdown), ("large", None, None));
        assert_eq!(by_class(&[], 1), []);
    }
}
