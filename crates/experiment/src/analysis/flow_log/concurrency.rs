//! Flows that a server has at once, as shares of all servers' time (VL2 Figure 3).

use serde::Serialize;
use weft_model::flow_log::fact as name;
use weft_scenario::record::{ConcurrencyRow, FlowSizeRow, Records};

use super::{LogQuestion, share};
use crate::analysis::{MetricInfo, TrialRecords};
use crate::plan::PlanSpec;

/// "About ten" flows.
const ABOUT_TEN: std::ops::RangeInclusive<u32> = 5..=15;
/// The second mode is looked for from here on.
const SECOND_MODE_FROM: usize = 40;
/// Numbers of flows on each side over which shares are averaged before modes are looked for.
const SMOOTHED_BY: usize = 3;

/// What this analysis yields.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "mean_flows", meaning: "flows of a server, mean over servers and time" },
    MetricInfo { name: "median_flows", meaning: "flows that a server does not exceed half of the time" },
    MetricInfo { name: "time_about_ten", meaning: "share of time with 5 to 15 flows" },
    MetricInfo { name: "time_above_80", meaning: "share of time with more than 80 flows" },
    MetricInfo { name: "time_above_100", meaning: "share of time with more than 100 flows" },
    MetricInfo { name: "first_mode", meaning: "the most common number of flows" },
    MetricInfo { name: "second_mode", meaning: "the most common number of flows from 40 on" },
    MetricInfo {
        name: "valley_over_second_mode",
        meaning: "least share of time between the modes / share at the second",
    },
    MetricInfo {
        name: "little_deviation",
        meaning: "server-seconds that flows were open, summed over flows, against the distribution's sum over servers",
    },
];

/// The question of a plan.
pub(crate) const QUESTION: LogQuestion = LogQuestion {
    name: "flow-concurrency",
    metrics: METRICS,
    reads: &[FlowSizeRow::KIND, ConcurrencyRow::KIND],
    by_workload: false,
    summary: |records| serde_json::to_value(ConcurrencySummary::of(records)),
    beyond: Some(("little_deviation", little_deviation)),
    table: None,
};

/// The numbers of one log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConcurrencySummary {
    /// Mean over servers and time.
    pub mean_flows: Option<f64>,
    /// Half of the time a server has at most so many.
    pub median_flows: Option<u32>,
    /// Share of time with 5 to 15.
    pub time_about_ten: Option<f64>,
    /// Share of time with more than 80.
    pub time_above_80: Option<f64>,
    /// Share of time with more than 100.
    pub time_above_100: Option<f64>,
    /// The most common number.
    pub first_mode: Option<u32>,
    /// The most common number from 40 on.
    pub second_mode: Option<u32>,
    /// Least share of time between the two over that at the second.
    pub valley_over_second_mode: Option<f64>,
}

impl ConcurrencySummary {
    /// Of a log's records.
    pub fn of(records: &Records) -> Self {
        let shares = shares(records);
        let sum = |within: &dyn Fn(u32) -> bool| {
            let inside = (0u32..).zip(&shares).filter(|(flows, _)| within(*flows));
            (!shares.is_empty()).then(|| inside.map(|(_, share)| share).sum::<f64>())
        };
        let modes = modes(&shares);
        Self {
            mean_flows: (!shares.is_empty())
                .then(|| (0u32..).zip(&shares).map(|(n, share)| f64::from(n) * share).sum()),
            median_flows: median(&shares),
            time_about_ten: sum(&|flows| ABOUT_TEN.contains(&flows)),
            time_above_80: sum(&|flows| flows > 80),
            time_above_100: sum(&|flows| flows > 100),
            first_mode: modes.first,
            second_mode: modes.second,
            valley_over_second_mode: modes.valley,
        }
    }
}

/// Share of all servers' time with 0 flows, 1, 2 and so on.
pub fn shares(records: &Records) -> Vec<f64> {
    let rows = &records.concurrency;
    let total: f64 = rows.iter().map(|row| row.server_s).sum();
    let most = rows.iter().map(|row| row.flows).max();
    let mut shares = vec![0.0; most.map_or(0, |most| most as usize + 1)];
    for row in rows {
        shares[row.flows as usize] = share(row.server_s, total).unwrap_or(0.0);
    }
    shares
}

fn median(shares: &[f64]) -> Option<u32> {
    let mut upto = 0.0;
    let reaches = |share: &f64| {
        upto += share;
        upto >= 0.5
    };
    shares.iter().position(reaches).map(|flows| flows as u32)
}

#[derive(Default)]
struct Modes {
    first: Option<u32>,
    second: Option<u32>,
    valley: Option<f64>,
}

fn modes(shares: &[f64]) -> Modes {
    let smooth: Vec<f64> = (0..shares.len())
        .map(|flows| {
            let near = flows.saturating_sub(SMOOTHED_BY)..shares.len().min(flows + SMOOTHED_BY + 1);
            shares[near].iter().sum::<f64>() / (2 * SMOOTHED_BY + 1) as f64
        })
        .collect();
    let highest = |from: usize| (from..smooth.len()).max_by(|a, b| smooth[*a].total_cmp(&smooth[*b]).then(b.cmp(a)));
    let Some(first) = highest(0) else { return Modes::default() };
    let second = highest(SECOND_MODE_FROM).filter(|second| *second > first && smooth[*second] > 0.0);
    let valley = second.and_then(|second| {
        let least = smooth[first..=second].iter().copied().min_by(f64::total_cmp)?;
        share(least, smooth[second])
    });
    Modes { first: Some(first as u32), second: second.map(|second| second as u32), valley }
}

/// Little's law: what flows add up to, flow by flow, is what servers add up to, moment by moment.
fn little_deviation(_spec: &PlanSpec, trial: &TrialRecords) -> Option<f64> {
    let records = &trial.records;
    let by_flows = records.fact(name::OPEN_S)?;
    let by_servers: f64 = records.concurrency.iter().map(|row| f64::from(row.flows) * row.server_s).sum();
    share((by_flows - by_servers).abs(), by_flows)
}
