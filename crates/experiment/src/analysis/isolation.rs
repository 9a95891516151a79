//! Whether one service notices what another does (VL2 5.3, Figures 11 and 12).
//!
//! Each workload has one service of long flows, the paper's service one, and others, which together are its service two.
//! Service one's goodput is read before service two begins and from then until its last flow has ended or its flood or storm
//! is over. Both times are cut into stretches of equal length, whose means give the change its interval; stretches of all
//! repetitions are put together.

use weft_scenario::record::{FlowRow, Records};
use weft_scenario::workload::Workload;
use weft_scenario::workload::services::{STORM_FOREIGN, STORM_OFFERED, STORM_OWN, ServiceRole, ServicesSpec};

use super::series::{Cumulative, Window};
use super::{Input, MetricInfo, TrialRecords, cpu, framing};
use crate::metric::{Estimate, Findings, Limit, Problem};
use crate::plan::PlanSpec;
use crate::stats::{self, Interval};

/// What this analysis yields, with the workload behind the name.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "service_one_change",
        meaning: "size of the change of service one's mean goodput while service two is at work, over that before",
    },
    MetricInfo { name: "service_one_gain", meaning: "the same with its sign: negative where service one loses" },
    MetricInfo {
        name: "service_one_worst_part",
        meaning: "service one's lowest fortieth of the time of service two / its mean before",
    },
    MetricInfo {
        name: "service_one_efficiency",
        meaning: "service one's goodput before / (its servers' rates x 2920/3154)",
    },
    MetricInfo { name: "service_one_jain", meaning: "Jain's index over the bytes of service one's flows" },
    MetricInfo {
        name: "service_one_cwnd_change",
        meaning: "congestion window of a flow of service one, mean during / before - 1, median of the flows",
    },
    MetricInfo {
        name: "service_one_cwnd_spread",
        meaning: "standard deviation / mean of a flow's congestion window during, median of the flows",
    },
    MetricInfo { name: "service_one_retransmits", meaning: "segments that service one's flows sent again" },
    MetricInfo { name: "service_two_goodput", meaning: "service two's mean goodput while at work, bit/s" },
    MetricInfo { name: "service_two_peak_goodput", meaning: "service two's highest fortieth of that time, bit/s" },
    MetricInfo { name: "storm_offered", meaning: "datagrams per second that storms offer" },
    MetricInfo {
        name: "storm_received",
        meaning: "datagrams per second of a storm at each other server of its own service, on average",
    },
    MetricInfo { name: "storm_share", meaning: "the same over those that were offered" },
    MetricInfo {
        name: "storm_foreign",
        meaning: "datagrams of storms that servers of other services received, all trials",
    },
    MetricInfo { name: "service_two_flows", meaning: "flows that service two opened" },
    MetricInfo { name: "service_two_unfinished", meaning: "those that had not ended when the run did" },
    MetricInfo {
        name: "cpu_idle_busiest_core",
        meaning: "idle share of the busiest core while service two is at work",
    },
];

/// Stretches that the time before service two is cut into.
const STRETCHES: usize = 8;
/// Parts of the time of service two among which the lowest and the highest are looked for.
const PARTS: usize = 40;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("analysis `isolation` {what}"));
    if !spec.axes.is_empty() || spec.overlays.len() != 1 {
        return wrong("takes one overlay and no sweep");
    }
    for workload in spec.workload.values() {
        let Workload::Services(services) = workload else { return wrong("needs workloads of kind `services`") };
        let steady = services.service.values().filter(|service| service.role == ServiceRole::LongFlows).count();
        if steady != 1 || services.service.len() < 2 {
            return wrong("needs one service with the role `long-flows` beside others in each workload");
        }
        if spec.sampling.warm_up >= services.begin_of_others() {
            return wrong("needs a `sampling.warm_up` that ends before the second service begins");
        }
    }
    Ok(())
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let of = |workload: &String| METRICS.iter().map(|info| name_of(info.name, workload)).collect::<Vec<_>>();
    spec.workload.keys().flat_map(of).collect()
}

fn name_of(metric: &str, workload: &str) -> String {
    format!("{metric}.{workload}")
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    for workload in input.spec.workload.keys() {
        let mut cases = Vec::new();
        for trial in input.trials.iter().filter(|trial| trial.key.workload == *workload) {
            match Case::of(input, trial) {
                Some(case) => cases.push(case),
                None => findings.problems.push(Problem::Failed(format!(
                    "trial {} has no goodput of service one before and during service two",
                    trial.key.trial
                ))),
            }
        }
        put_workload(&mut findings, workload, input, &cases);
    }
    findings
}

/// One trial, and when what happened in it.
pub struct Case<'a> {
    records: &'a Records,
    services: &'a ServicesSpec,
    /// Service one alone, warmed up.
    pub before: Window,
    /// Service two at work.
    pub during: Window,
    /// Payload of service one.
    pub one: Cumulative,
    /// Payload of all others.
    pub two: Cumulative,
}

impl<'a> Case<'a> {
    /// `None` without goodput of service one in both times.
    pub fn of(input: &Input<'a>, trial: &'a TrialRecords) -> Option<Self> {
        let Workload::Services(services) = input.spec.workload.get(&trial.key.workload)? else { return None };
        let records = &trial.records;
        let begin_s = services.begin_of_others().as_secs_f64();
        let before = Window { from_s: input.spec.sampling.warm_up.as_secs_f64(), to_s: begin_s };
        let during = Window { from_s: begin_s, to_s: end_of_others(services, records) };
        let (one, two) = (payload(services, records, true), payload(services, records, false));
        let case = Self { records, services, before, during, one, two };
        let seen = |window: Window| window.seconds() > 0.0 && case.one.rate(window.from_s, window.to_s) > 0.0;
        (seen(before) && seen(during)).then_some(case)
    }

    /// Flows of service one, or of the others.
    pub fn flows(&self, of_one: bool) -> impl Iterator<Item = &'a FlowRow> {
        let (services, records) = (self.services, self.records);
        records.flows.iter().filter(move |flow| services.is_steady(flow.from) == of_one)
    }

    /// Bursts of short flows: when each began, seconds, and how many flows it opened.
    pub fn bursts(&self) -> Vec<(f64, f64)> {
        let bursts = self.services.service.values().filter_map(|service| match service.role {
            ServiceRole::Bursts(bursts) => Some(bursts),
            _ => None,
        });
        let counts = bursts.flat_map(|bursts| {
            (0..u64::from(bursts.bursts))
                .map(move |burst| (bursts.start_ns(burst) as f64 / 1e9, bursts.flows_of(burst) as f64))
        });
        counts.collect()
    }

    /// Congestion windows of one of service one's flows over time: seconds and segments.
    pub fn windows_of(&self, flow: &FlowRow) -> Vec<(f64, f64)> {
        let rows = self.records.tcp.iter().filter(|row| (row.from, row.to) == (flow.from, flow.to));
        rows.map(|row| (row.time_ns as f64 / 1e9, f64::from(row.cwnd_segments))).collect()
    }

    /// Mean goodput of service one in stretches as long as the [`STRETCHES`] before service two, bit/s.
    fn stretches(&self, window: Window) -> Vec<f64> {
        let length = self.before.seconds() / STRETCHES as f64;
        let count = ((window.seconds() / length).round() as usize).max(1);
        window.parts(count).map(|part| 8.0 * self.one.rate(part.from_s, part.to_s)).collect()
    }

    fn values(&self, input: &Input<'_>) -> Vec<(&'static str, Option<f64>)> {
        let mean_before = 8.0 * self.one.rate(self.before.from_s, self.before.to_s);
        let parts = |payload: &Cumulative| -> Vec<f64> {
            self.during.parts(PARTS).map(|part| 8.0 * payload.rate(part.from_s, part.to_s)).collect()
        };
        let bytes: Vec<f64> = self.flows(true).map(|flow| flow.bytes_received as f64).collect();
        let unfinished = self.flows(false).filter(|flow| flow.end_ns.is_none()).count();
        vec![
            ("service_one_worst_part", parts(&self.one).into_iter().reduce(f64::min).map(|worst| worst / mean_before)),
            ("service_one_efficiency", self.capacity_bps(input).map(|capacity| mean_before / capacity)),
            ("service_one_jain", stats::jain(&bytes)),
            ("service_one_cwnd_change", stats::median(&self.window_changes())),
            ("service_one_cwnd_spread", stats::median(&self.window_spreads())),
            ("service_one_retransmits", Some(self.flows(true).map(|flow| flow.retransmits).sum::<u64>() as f64)),
            ("service_two_goodput", Some(8.0 * self.two.rate(self.during.from_s, self.during.to_s))),
            ("service_two_peak_goodput", parts(&self.two).into_iter().reduce(f64::max)),
            ("service_two_flows", Some(self.flows(false).count() as f64)),
            ("service_two_unfinished", Some(unfinished as f64)),
            ("storm_offered", self.records.fact(STORM_OFFERED).map(|offered| offered / self.during.seconds())),
            ("storm_received", self.records.fact(STORM_OWN).map(|received| received / self.during.seconds())),
            (
                "storm_share",
                self.records.fact(STORM_OWN).zip(self.records.fact(STORM_OFFERED)).map(|(received, of)| received / of),
            ),
            ("cpu_idle_busiest_core", cpu::busiest_idle(&self.records.cpu, self.during)),
        ]
    }

    /// What the links of service one's servers can carry as payload.
    fn capacity_bps(&self, input: &Input<'_>) -> Option<f64> {
        let fabric = input.fabric();
        let rate = |(number, server)| {
            let (_, link) = fabric.edge_of(server)?;
            self.services.is_steady(number).then(|| fabric.link(link).spec.rate.0 as f64)
        };
        let rates: Vec<f64> = (0..).zip(fabric.servers()).filter_map(rate).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() * framing::headers_only_ratio())
    }

    fn window_changes(&self) -> Vec<f64> {
        let change = |flow: &FlowRow| {
            let rows = self.windows_of(flow);
            let mean = |window: Window| stats::mean(&within(&rows, window));
            Some(mean(self.during)? / mean(self.before)? - 1.0)
        };
        self.flows(true).filter_map(change).collect()
    }

    fn window_spreads(&self) -> Vec<f64> {
        let spread = |flow: &FlowRow| {
            let segments = within(&self.windows_of(flow), self.during);
            Some(stats::standard_deviation(&segments)? / stats::mean(&segments)?)
        };
        self.flows(true).filter_map(spread).collect()
    }
}

fn within(points: &[(f64, f64)], window: Window) -> Vec<f64> {
    let inside = points.iter().filter(|(time_s, _)| *time_s > window.from_s && *time_s <= window.to_s);
    inside.map(|(_, value)| *value).collect()
}

/// When the others were done: the end of their last flow or of their flood; that of the run if flows were still open.
fn end_of_others(services: &ServicesSpec, records: &Records) -> f64 {
    let others = records.flows.iter().filter(|flow| !services.is_steady(flow.from));
    let flow_ends = others.map(|flow| flow.end_ns.unwrap_or(services.duration.0));
    let flood_ends = services.datagrams().into_iter().map(|stream| stream.end_ns);
    let storm_ends = services.storms().into_iter().map(|storm| storm.spec.end.0);
    let end_ns = flow_ends.chain(flood_ends).chain(storm_ends).max().unwrap_or(services.duration.0);
    end_ns.min(services.duration.0) as f64 / 1e9
}

fn payload(services: &ServicesSpec, records: &Records, of_one: bool) -> Cumulative {
    let mut by_time: Vec<(u64, u64)> = Vec::new();
    for row in &records.services {
        let steady = services.service.get(&row.service).is_some_and(|one| one.role == ServiceRole::LongFlows);
        if steady == of_one {
            match by_time.last_mut().filter(|last| last.0 == row.time_ns) {
                Some(last) => last.1 += row.received_bytes,
                None => by_time.push((row.time_ns, row.received_bytes)),
            }
        }
    }
    Cumulative::new(by_time)
}

fn put_workload(findings: &mut Findings, workload: &str, input: &Input<'_>, cases: &[Case<'_>]) {
    let cpu_bound = |case: &Case<'_>| {
        [case.before, case.during]
            .iter()
            .any(|window| cpu::limit(&case.records.cpu, *window, Limit::Link) == Limit::Cpu)
    };
    let limit = if cases.iter().any(cpu_bound) { Limit::Cpu } else { Limit::Link };
    let stretches = |window: fn(&Case<'_>) -> Window| -> Vec<f64> {
        cases.iter().flat_map(|case| case.stretches(window(case))).collect()
    };
    let (before, during) = (stretches(|case| case.before), stretches(|case| case.during));
    if let Some((ratio, interval)) = stats::ratio_of_means(&during, &before) {
        let n = before.len() + during.len();
        let gain = Interval { low: interval.low - 1.0, high: interval.high - 1.0, ..interval };
        let mut put = |metric: &str, value: f64, interval: Interval| {
            let estimate = Estimate { value, interval: Some(interval), n, limited_by: limit };
            findings.metrics.insert(name_of(metric, workload), estimate);
        };
        put("service_one_gain", ratio - 1.0, gain);
        put("service_one_change", (ratio - 1.0).abs(), size_of(gain));
    }
    put_foreign(findings, workload, cases);
    let values: Vec<_> = cases.iter().map(|case| case.values(input)).collect();
    for info in METRICS {
        let of_case = |values: &Vec<(&str, Option<f64>)>| values.iter().find(|(name, _)| *name == info.name)?.1;
        let samples: Vec<f64> = values.iter().filter_map(of_case).collect();
        findings.put(&name_of(info.name, workload), &samples, limit);
    }
}

/// What others hear of a storm: a count of all trials, which says nothing unless the storm's own service heard it.
fn put_foreign(findings: &mut Findings, workload: &str, cases: &[Case<'_>]) {
    let heard: Vec<(f64, f64)> =
        cases.iter().filter_map(|case| case.records.fact(STORM_OWN).zip(case.records.fact(STORM_FOREIGN))).collect();
    if heard.iter().any(|(own, _)| *own == 0.0) {
        let text = format!("workload `{workload}`: no server of the storm's own service heard it");
        findings.problems.push(Problem::Failed(text));
    }
    if !heard.is_empty() {
        let foreign = heard.iter().map(|(_, foreign)| foreign).sum();
        let estimate = Estimate { n: heard.len(), ..Estimate::exact(foreign, Limit::OfferedLoad) };
        findings.metrics.insert(name_of("storm_foreign", workload), estimate);
    }
}

/// The interval of a number's size, given that of the number.
fn size_of(signed: Interval) -> Interval {
    let (a, b) = (signed.low.abs(), signed.high.abs());
    let low = if signed.spans(0.0) { 0.0 } else { a.min(b) };
    Interval { low, high: a.max(b), ..signed }
}

#[cfg(test)]
mod tests;
