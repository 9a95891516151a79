//! Flows and bytes by size (VL2 Figure 2), and the traffic inside over the traffic that leaves or enters (VL2 3.1).

use serde::Serialize;
use weft_model::flow_log::fact as name;
use weft_scenario::record::{FlowSizeRow, Records};

use super::{LogQuestion, share, spec_of};
use crate::analysis::{MetricInfo, TrialRecords};
use crate::plan::PlanSpec;

/// "100 MB", below which are 99 % of the paper's flows and above which are more than 90 % of its bytes.
const LARGE: u64 = 100_000_000;
/// "1 GB", up to which those bytes are.
const VERY_LARGE: u64 = 1_000_000_000;
/// "Flows over a few GB are rare": a bin begins here.
const FEW_GB: u64 = 3_162_000_000;

/// What this analysis yields.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "median_size", meaning: "size that half of the flows do not exceed, upper end of its bin" },
    MetricInfo { name: "flows_to_100_mb", meaning: "flows of at most 100 MB / all flows" },
    MetricInfo { name: "bytes_100_mb_to_1_gb", meaning: "bytes in flows of 100 MB to 1 GB / all bytes" },
    MetricInfo { name: "bytes_mode", meaning: "bin of sizes that holds most bytes, its upper end" },
    MetricInfo { name: "flows_above_3_gb", meaning: "flows of more than 3.16 GB / all flows" },
    MetricInfo { name: "inside_over_outside", meaning: "bytes between servers / bytes from and to the outside" },
    MetricInfo {
        name: "size_law_deviation",
        meaning: "largest difference to the distribution that was drawn from, times the root of the number of flows \
                  (Kolmogorov and Smirnov)",
    },
];

/// The question of a plan.
pub(crate) const QUESTION: LogQuestion = LogQuestion {
    name: "flow-sizes",
    metrics: METRICS,
    reads: &[FlowSizeRow::KIND],
    by_workload: false,
    summary: |records| serde_json::to_value(SizeSummary::of(records)),
    beyond: Some(("size_law_deviation", law_deviation)),
    table: None,
};

/// The numbers of one log; those that need something the log does not have are `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeSummary {
    pub flows: u64,
    /// Bytes of all flows.
    pub bytes: u64,
    /// Half of the flows are at most so large.
    pub median_bytes: Option<u64>,
    /// Share of flows of at most 100 MB.
    pub flows_to_100_mb: Option<f64>,
    /// Share of bytes in flows of 100 MB to 1 GB.
    pub bytes_100_mb_to_1_gb: Option<f64>,
    /// Upper end of the bin that holds most bytes.
    pub bytes_mode: Option<u64>,
    /// Share of flows above 3.16 GB.
    pub flows_above_3_gb: Option<f64>,
    /// Bytes between servers over bytes from and to the outside.
    pub inside_over_outside: Option<f64>,
}

impl SizeSummary {
    /// Of a log's records.
    pub fn of(records: &Records) -> Self {
        let rows = &records.flow_sizes;
        let (flows, bytes) = totals(rows);
        let sum = |of: fn(&FlowSizeRow) -> u64, within: &dyn Fn(&FlowSizeRow) -> bool| {
            rows.iter().filter(|row| within(row)).map(of).sum::<u64>() as f64
        };
        let flows_where = |within: &dyn Fn(&FlowSizeRow) -> bool| share(sum(|row| row.flows, within), flows as f64);
        let bytes_where = |within: &dyn Fn(&FlowSizeRow) -> bool| share(sum(|row| row.bytes, within), bytes as f64);
        let inside = records.fact(name::BYTES_INSIDE);
        let crossing = records.fact(name::BYTES_CROSSING);
        Self {
            flows,
            bytes,
            median_bytes: median(rows),
            flows_to_100_mb: flows_where(&|row| row.bytes_at_most <= LARGE),
            bytes_100_mb_to_1_gb: bytes_where(&|row| row.bytes_at_most > LARGE && row.bytes_at_most <= VERY_LARGE),
            bytes_mode: rows
                .iter()
                .filter(|row| row.bytes > 0)
                .max_by_key(|row| row.bytes)
                .map(|row| row.bytes_at_most),
            flows_above_3_gb: flows_where(&|row| row.bytes_at_most > FEW_GB),
            inside_over_outside: inside.zip(crossing).and_then(|(inside, crossing)| share(inside, crossing)),
        }
    }
}

/// Flows and bytes of all bins.
pub fn totals(rows: &[FlowSizeRow]) -> (u64, u64) {
    rows.iter().fold((0, 0), |sum, row| (sum.0 + row.flows, sum.1.saturating_add(row.bytes)))
}

fn median(rows: &[FlowSizeRow]) -> Option<u64> {
    let half = totals(rows).0.div_ceil(2);
    let mut upto = 0;
    let reaches = |row: &&FlowSizeRow| {
        upto += row.flows;
        upto >= half
    };
    rows.iter().find(reaches).map(|row| row.bytes_at_most)
}

/// Kolmogorov's statistic at the ends of the bins.
fn law_deviation(spec: &PlanSpec, trial: &TrialRecords) -> Option<f64> {
    let law = &spec_of(spec, &trial.key.workload)?.sizes;
    let rows = &trial.records.flow_sizes;
    let flows = totals(rows).0 as f64;
    let mut upto = 0;
    let differences = rows.iter().map(|row| {
        upto += row.flows;
        (upto as f64 / flows - law.share_at_most(row.bytes_at_most)).abs()
    });
    differences.max_by(f64::total_cmp).map(|largest| largest * flows.sqrt())
}
