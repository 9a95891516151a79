//! What a failure costs while it lasts, and how fast the fabric is back (VL2 5.3 in spirit).
//!
//! Each outage of each trial is one sample. Times of faults and repairs are those that the engine recorded.

use weft_scenario::record::{EventRow, Records};

use super::series::{Cumulative, Window};
use super::{Input, MetricInfo, TrialRecords, cpu};
use crate::metric::{Findings, Limit, Problem};
use crate::plan::PlanSpec;

/// What this analysis yields.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "settled_goodput_ratio", meaning: "goodput from 4 s after the fault to the repair / before it" },
    MetricInfo { name: "dip_goodput_ratio", meaning: "lowest second of the outage / before it" },
    MetricInfo { name: "recovery_time", meaning: "repair to the first second at 90 % of the goodput before, s" },
    MetricInfo { name: "after_goodput_ratio", meaning: "goodput in the 5 s after the recovery / before the fault" },
    MetricInfo { name: "routes_restored_time", meaning: "repair to the routes' return in the kernel, s" },
    MetricInfo { name: "unfinished_flows", meaning: "flows that had not ended when the trial ended" },
    MetricInfo { name: "cpu_idle_busiest_core", meaning: "idle share of the busiest core, outages included" },
];

/// What counts as before: this long up to the fault.
const BEFORE_S: f64 = 4.0;
/// Flows need a few retransmission timeouts to find their new paths; the settled level is taken after them.
const SETTLE_S: f64 = 4.0;
/// What counts as after.
const AFTER_S: f64 = 5.0;
/// The fabric is back when one second carries this share of what it carried before.
const RECOVERED_RATIO: f64 = 0.9;
/// Step of the search for that second.
const STEP_S: f64 = 0.1;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_no_sweep(spec)
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut outages = Vec::new();
    for trial in input.trials {
        let spans = outage_windows(&trial.records);
        if spans.is_empty() {
            let text = format!("trial {} recorded no fault that was repaired", trial.key.trial);
            findings.problems.push(Problem::Invalid(text));
        }
        outages.extend(spans.into_iter().map(|span| measure(&trial.records, span)));
    }
    let limit = if input.trials.iter().any(cpu_bound) { Limit::Cpu } else { Limit::Link };
    let mut put = |name: &str, samples: Vec<f64>| findings.put(name, &samples, limit);
    put("settled_goodput_ratio", outages.iter().map(|outage| outage.settled).collect());
    put("dip_goodput_ratio", outages.iter().map(|outage| outage.dip).collect());
    put("recovery_time", outages.iter().map(|outage| outage.recovery_s).collect());
    put("after_goodput_ratio", outages.iter().map(|outage| outage.after).collect());
    put("routes_restored_time", outages.iter().filter_map(|outage| outage.routes_s).collect());
    put("unfinished_flows", input.trials.iter().map(|trial| unfinished(&trial.records)).collect());
    let idle = |trial: &TrialRecords| cpu::busiest_idle(&trial.records.cpu, whole(&trial.records));
    put("cpu_idle_busiest_core", input.trials.iter().filter_map(idle).collect());
    findings
}

/// From each fault to its repair, in order, as recorded.
pub fn outage_windows(records: &Records) -> Vec<Window> {
    let of_kind = |kind: &'static str| records.events.iter().filter(move |event| event.kind == kind);
    let repaired = |fault: &EventRow| {
        of_kind("repair")
            .find(|repair| repair.subject == fault.subject && repair.time_ns > fault.time_ns)
            .map(EventRow::time_s)
    };
    let window = |fault: &EventRow| Some(Window { from_s: fault.time_s(), to_s: repaired(fault)? });
    of_kind("fault").filter_map(window).collect()
}

struct Outage {
    settled: f64,
    dip: f64,
    recovery_s: f64,
    after: f64,
    routes_s: Option<f64>,
}

fn measure(records: &Records, outage: Window) -> Outage {
    let payload = Cumulative::of_payload(records);
    let before = payload.rate((outage.from_s - BEFORE_S).max(0.0), outage.from_s);
    let ratio = |from: f64, to: f64| payload.rate(from, to) / before;
    let settle_from = (outage.from_s + SETTLE_S).min((outage.from_s + outage.to_s) / 2.0);
    let seconds = (outage.seconds() / STEP_S) as usize;
    let dip = (0..seconds.saturating_sub((1.0 / STEP_S) as usize))
        .map(|step| outage.from_s + step as f64 * STEP_S)
        .map(|from| ratio(from, from + 1.0))
        .fold(f64::INFINITY, f64::min);
    let recovery_s = recovery(&payload, outage.to_s, before);
    let restored = |event: &&EventRow| event.kind == "routes-restored" && event.time_s() >= outage.to_s;
    Outage {
        settled: ratio(settle_from, outage.to_s),
        dip,
        recovery_s,
        after: ratio(outage.to_s + recovery_s, (outage.to_s + recovery_s + AFTER_S).min(payload.end())),
        routes_s: records.events.iter().find(restored).map(|event| event.time_s() - outage.to_s),
    }
}

/// Time from the repair to the start of the first second that carries enough; to the end of the records if none does.
fn recovery(payload: &Cumulative, repaired_s: f64, before: f64) -> f64 {
    let steps = ((payload.end() - repaired_s) / STEP_S).max(0.0) as usize;
    (0..steps)
        .map(|step| step as f64 * STEP_S)
        .find(|wait| payload.rate(repaired_s + wait, repaired_s + wait + 1.0) >= RECOVERED_RATIO * before)
        .unwrap_or_else(|| (payload.end() - repaired_s).max(0.0))
}

fn whole(records: &Records) -> Window {
    let to_s = outage_windows(records).last().map_or(0.0, |outage| outage.to_s + AFTER_S);
    Window { from_s: 1.0, to_s }
}

fn cpu_bound(trial: &TrialRecords) -> bool {
    cpu::limit(&trial.records.cpu, whole(&trial.records), Limit::Link) == Limit::Cpu
}

fn unfinished(records: &Records) -> f64 {
    records.flows.iter().filter(|flow| flow.end_ns.is_none()).count() as f64
}

#[cfg(test)]
mod tests;
