//! How likely hashed flows fit on a leaf's uplinks (leaf-spine paper, "Intuition"): counted exactly, drawn at random, and
//! simulated.
//!
//! The sweep has an axis `uplinks`. At each of its places the workload's flows leave one leaf; the fabric says how many
//! uplinks that has and how many servers' rates fit on one. "Full throughput" means that no uplink has more flows than
//! fit: then every flow has its server's rate.

mod chance;

pub use chance::{Chance, Fraction};

use weft_scenario::topology::{Fabric, Role};
use weft_scenario::workload::Workload;

use super::completion::slowdown;
use super::{Input, MetricInfo, TrialRecords};
use crate::metric::{Estimate, Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;
use crate::stats;
use crate::table::plain;

/// The axis of the uplinks.
pub const UPLINKS_AXIS: &str = "uplinks";
/// A flow has its server's rate if it took at most 1/0.95 of its ideal time: with one flow too many on a link of ten,
/// each gets 10/11.
const FULL_RATE: f64 = 0.95;
/// Draws of the Monte Carlo experiment: the standard error is at most 0.0005.
const DRAWS: u32 = 1_000_000;

/// What this analysis yields; each for every place on the axis, `METRIC.UPLINKS`.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "closed_form", meaning: "probability of full throughput, counted exactly" },
    MetricInfo { name: "monte_carlo", meaning: "the same from random draws" },
    MetricInfo { name: "monte_carlo_deviation", meaning: "difference of the two, in standard errors" },
    MetricInfo { name: "simulated", meaning: "share of simulated runs with full throughput" },
    MetricInfo { name: "closed_form_throughput", meaning: "expected throughput / all servers' rates, counted exactly" },
    MetricInfo { name: "simulated_throughput", meaning: "mean throughput of simulated runs / all servers' rates" },
    MetricInfo { name: "simulated_throughput_over_closed_form", meaning: "the former two" },
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    if spec.axes.len() != 1 || spec.labels_of(UPLINKS_AXIS).is_empty() || spec.workload.len() != 1 {
        return Err("analysis `ecmp-probability` takes one workload and the axis `uplinks`".into());
    }
    match spec.workload.values().all(|workload| matches!(workload, Workload::Flows { .. })) {
        true => Ok(()),
        false => Err("analysis `ecmp-probability` needs a workload of kind `flows`".into()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let each = |metric: &MetricInfo| {
        let name = metric.name;
        spec.labels_of(UPLINKS_AXIS).iter().map(move |label| format!("{name}.{label}"))
    };
    METRICS.iter().flat_map(each).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings { tables: vec![table()], ..Findings::default() };
    for label in input.spec.labels_of(UPLINKS_AXIS) {
        let trials: Vec<&TrialRecords> =
            input.trials.iter().filter(|trial| input.label(&trial.key, UPLINKS_AXIS) == Some(label)).collect();
        if let Err(text) = analyse_place(input, label, &trials, &mut findings) {
            findings.problems.push(Problem::Failed(format!("uplinks {label}: {text}")));
        }
    }
    findings
}

fn analyse_place(
    input: &Input<'_>,
    label: &str,
    trials: &[&TrialRecords],
    findings: &mut Findings,
) -> Result<(), String> {
    let first = trials.first().ok_or("nothing ran")?;
    let (_, fabric) = input.at(&first.key).ok_or("the plan does not have this point")?;
    let chance = chance_of(fabric, &first.records.flows.iter().map(|flow| flow.from).collect::<Vec<_>>())?;
    let full = chance.all_fit().ok_or("the numbers are too large to count exactly")?;
    let throughput = chance.expected_throughput().ok_or("the numbers are too large to count exactly")?;
    let mut put = |name: &str, estimate: Estimate| findings.metrics.insert(format!("{name}.{label}"), estimate);
    put("closed_form", Estimate::exact(full.value(), Limit::Computed));
    put("closed_form_throughput", Estimate::exact(throughput.value(), Limit::Computed));
    let fits = chance.draw(DRAWS, first.key.seed);
    let drawn = share(fits as usize, DRAWS as usize, Limit::Computed);
    let error = (full.value() * (1.0 - full.value()) / f64::from(DRAWS)).sqrt();
    let deviation = if error > 0.0 { (drawn.value - full.value()).abs() / error } else { 0.0 };
    put("monte_carlo_deviation", Estimate { n: DRAWS as usize, ..Estimate::exact(deviation, Limit::Computed) });
    let runs = trials.iter().map(|trial| rates(trial)).collect::<Option<Vec<_>>>();
    let runs = runs.ok_or("a flow did not end, or its ideal time is not known")?;
    let at_full_rate = runs.iter().filter(|rates| rates.iter().all(|rate| *rate >= FULL_RATE)).count();
    let simulated = share(at_full_rate, runs.len(), Limit::Link);
    let means: Vec<f64> = runs.iter().filter_map(|rates| stats::mean(rates)).collect();
    let mean = stats::mean(&means).ok_or("there are no flows")?;
    let interval = stats::mean_interval(&means);
    let simulated_throughput = Estimate { value: mean, interval, n: means.len(), limited_by: Limit::Link };
    let over = simulated_throughput.scaled(1.0 / throughput.value());
    let row = [
        label.to_owned(),
        format!("{} flows, {} uplinks, {} flows fit on one", chance.flows, chance.uplinks, chance.fit),
        full.to_string(),
        percent(full.value()),
        percent(drawn.value),
        percent(simulated.value),
        plain(throughput.value()),
        plain(mean),
    ];
    put("monte_carlo", drawn);
    put("simulated", simulated);
    put("simulated_throughput", simulated_throughput);
    put("simulated_throughput_over_closed_form", over);
    findings.tables[0].rows.push(row.to_vec());
    Ok(())
}

fn share(had: usize, n: usize, limited_by: Limit) -> Estimate {
    Estimate { value: had as f64 / n.max(1) as f64, interval: stats::share_interval(had, n), n, limited_by }
}

fn percent(share: f64) -> String {
    format!("{:.3} %", share * 100.0)
}

/// What share of its server's rate each flow of a trial had.
fn rates(trial: &TrialRecords) -> Option<Vec<f64>> {
    trial.records.flows.iter().map(|flow| slowdown(flow).map(|slowdown| 1.0 / slowdown)).collect()
}

/// The question for flows of these servers, which hang below one leaf.
fn chance_of(fabric: &Fabric, from: &[u32]) -> Result<Chance, String> {
    let servers: Vec<_> = fabric.servers().collect();
    let edges: Option<Vec<_>> = from.iter().map(|from| fabric.edge_of(*servers.get(*from as usize)?)).collect();
    let edges = edges.ok_or("a flow comes from a server that the fabric does not have")?;
    let Some((leaf, link)) = edges.first().copied() else { return Err("there are no flows".into()) };
    if edges.iter().any(|(edge, _)| *edge != leaf) {
        return Err("the flows leave more than one leaf".into());
    }
    let far = |link: weft_scenario::id::LinkId| fabric.link(link).far_end(leaf).map(|port| fabric.node(port.node).role);
    let uplinks: Vec<_> =
        fabric.links_of(leaf).iter().copied().filter(|link| far(*link) == Some(Role::Spine)).collect();
    let Some(uplink) = uplinks.first() else { return Err("the leaf has no uplinks".into()) };
    let fit = fabric.link(*uplink).spec.rate.0 / fabric.link(link).spec.rate.0.max(1);
    Ok(Chance { flows: from.len() as u32, uplinks: uplinks.len() as u32, fit: fit as u32 })
}

fn table() -> Table {
    let headings = [
        "uplinks",
        "question",
        "exact",
        "counted",
        "drawn",
        "simulated",
        "expected throughput",
        "simulated throughput",
    ];
    Table {
        title: "Probability of full throughput".into(),
        headings: headings.map(str::to_owned).to_vec(),
        rows: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
