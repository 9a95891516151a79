//! Convergence: from the moment an update is issued until look-ups answer with it at every server, and until a subscriber
//! has it (VL2 5.5, Figure 14c).

use super::{PUSHED, Step, UPDATE, VISIBLE, limit_of, put_lost};
use crate::analysis::{Input, MetricInfo};
use crate::metric::{Findings, Problem};
use crate::plan::PlanSpec;

/// What this analysis yields: shares and percentiles over all updates, the median over the repetitions.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "visible_within_100ms", meaning: "share of updates visible at every server within 100 ms" },
    MetricInfo { name: "visible_within_530ms", meaning: "share of updates visible at every server within 530 ms" },
    MetricInfo { name: "visible_p50_ms", meaning: "median time from issue until every server answers with it, ms" },
    MetricInfo { name: "visible_p99_ms", meaning: "99th percentile of it, ms" },
    MetricInfo { name: "pushed_p50_ms", meaning: "median time from issue until a subscriber has it, ms" },
    MetricInfo { name: "pushed_p99_ms", meaning: "99th percentile of it, ms" },
    MetricInfo { name: "acknowledged_p50_ms", meaning: "median time from issue to the acknowledgement, ms" },
    MetricInfo { name: "acknowledged_p99_ms", meaning: "99th percentile of it, ms" },
    MetricInfo { name: "acknowledged_lost", meaning: "acknowledged updates that some server did not have afterwards" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check(spec)?;
    let watches = |name: &String| {
        super::spec_of(spec, name).and_then(|load| load.updates.as_ref()).is_some_and(|updates| updates.until_visible)
    };
    match spec.workload.keys().all(watches) {
        true => Ok(()),
        false => Err("analysis `directory-convergence` needs `updates.until_visible` in every workload".into()),
    }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let steps = Step::all(input, UPDATE);
    for step in &steps {
        if step.distribution(VISIBLE, None).total() == 0 {
            let text = format!("trial {} did not see any update", step.trial.key.trial);
            findings.problems.push(Problem::Failed(text));
        }
    }
    let limit = limit_of(steps.iter());
    let mut put = |name: &str, number: &dyn Fn(&Step<'_>) -> Option<f64>| {
        let samples: Vec<f64> = steps.iter().filter_map(number).collect();
        findings.put(name, &samples, limit);
    };
    let visible = |step: &Step<'_>| step.distribution(VISIBLE, None);
    let pushed = |step: &Step<'_>| step.distribution(PUSHED, None);
    put("visible_within_100ms", &|step| visible(step).share_within_ms(100.0));
    put("visible_within_530ms", &|step| visible(step).share_within_ms(530.0));
    put("visible_p50_ms", &|step| visible(step).percentile_ms(0.5));
    put("visible_p99_ms", &|step| visible(step).percentile_ms(0.99));
    put("pushed_p50_ms", &|step| pushed(step).percentile_ms(0.5));
    put("pushed_p99_ms", &|step| pushed(step).percentile_ms(0.99));
    put("acknowledged_p50_ms", &|step| step.latencies().percentile_ms(0.5));
    put("acknowledged_p99_ms", &|step| step.latencies().percentile_ms(0.99));
    put_lost(&mut findings, input);
    findings.tables.push(super::table("Updates", &steps));
    findings
}
