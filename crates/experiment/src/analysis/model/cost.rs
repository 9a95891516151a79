//! What VL2 and conventional networks cost, by size and oversubscription (VL2 6).
//!
//! The paper compares switches without ToRs and cables, so ratios do. Its prices of conventional routers are not in it;
//! where one of its statements depends on them, the price at which it holds is a metric of its own.

use weft_scenario::record::NetworkRow;
use weft_scenario::workload::ModelSpec;
use weft_scenario::workload::model::{CostSpec, SwitchPrice};

use super::super::{Input, MetricInfo, check_no_sweep};
use crate::metric::{Estimate, Findings, Limit, Problem, Table};
use crate::plan::PlanSpec;

/// What this analysis yields: `METRIC.SERVERS.OVERSUBSCRIPTION`; of `generator_servers` it is `METRIC.PORTS`.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "generator_servers", meaning: "servers of the Clos that the generator builds of such switches" },
    MetricInfo { name: "vl2_usd", meaning: "VL2's Aggregations and Intermediates" },
    MetricInfo { name: "vl2_switches", meaning: "their number" },
    MetricInfo { name: "vl2_saving", meaning: "1 - cost / cost of VL2 for as many servers without oversubscription" },
    MetricInfo { name: "conventional_over_vl2", meaning: "cost of the conventional network with VL2's ToRs / VL2's" },
    MetricInfo {
        name: "spare_over_vl2",
        meaning: "the same where each of a pair can carry everything (1:1 redundancy)",
    },
    MetricInfo { name: "present_over_vl2", meaning: "cost of section 2's network / VL2's without oversubscription" },
    MetricInfo {
        name: "present_spare_over_vl2",
        meaning: "the same where each of a pair can carry everything (1:1 redundancy)",
    },
    MetricInfo {
        name: "present_port_usd",
        meaning: "price of the 1 Gb/s port of its Aggregations at which section 2's network costs what VL2 costs",
    },
    MetricInfo {
        name: "present_spare_port_usd",
        meaning: "the same where each of a pair can carry everything (1:1 redundancy)",
    },
    MetricInfo {
        name: "capacity_per_dollar",
        meaning: "capacity per dollar of VL2 without oversubscription / of section 2's network",
    },
    MetricInfo {
        name: "fat_tree_cables",
        meaning: "cables between switches of a fat tree of server-rate links (two a server) / VL2's",
    },
];

/// Cables between switches for each server of a fat tree, whose links all have the servers' rate.
const FAT_TREE_CABLES: f64 = 2.0;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check(spec, "cost-scale", "cost")?;
    check_no_sweep(spec)
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let Some(cost) = question(spec) else { return Vec::new() };
    let ports = cost.prices.commodity.iter().map(generator_name);
    let sizes = METRICS[1..].iter().flat_map(|metric| {
        let ratios = cost.oversubscription.iter();
        cost.servers
            .iter()
            .flat_map(move |servers| ratios.clone().map(move |ratio| format!("{}.{servers}.{ratio}", metric.name)))
    });
    ports.chain(sizes).collect()
}

fn generator_name(switch: &SwitchPrice) -> String {
    format!("generator_servers.{}-ports", switch.ports)
}

fn question(spec: &PlanSpec) -> Option<&CostSpec> {
    match super::question(spec) {
        Some(ModelSpec::Cost(cost)) => Some(cost),
        _ => None,
    }
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    let (Some(cost), Some(trial)) = (question(input.spec), input.trials.first()) else {
        findings.problems.push(Problem::Failed("nothing ran".into()));
        return findings;
    };
    for switch in &cost.prices.commodity {
        let fact = format!("generator.servers.{}-ports", switch.ports);
        if let Some(servers) = trial.records.fact(&fact) {
            findings.metrics.insert(generator_name(switch), exact(servers));
        }
    }
    let rows = &trial.records.networks;
    for servers in &cost.servers {
        for ratio in &cost.oversubscription {
            for (metric, value) in compare(cost, rows, *servers, *ratio) {
                findings.metrics.insert(format!("{metric}.{servers}.{ratio}"), exact(value));
            }
        }
    }
    findings.tables.push(table(rows));
    findings
}

fn exact(value: f64) -> Estimate {
    Estimate::exact(value, Limit::Computed)
}

/// The row of a design.
pub fn find<'a>(rows: &'a [NetworkRow], design: &str, servers: u32, oversubscription: u32) -> Option<&'a NetworkRow> {
    rows.iter().find(|row| row.design == design && row.servers == servers && row.oversubscription == oversubscription)
}

fn compare(cost: &CostSpec, rows: &[NetworkRow], servers: u32, ratio: u32) -> Vec<(&'static str, f64)> {
    let usd = |design: &str| find(rows, design, servers, ratio).map(|row| row.switches_usd);
    let mut found = Vec::new();
    let mut put = |name, value: Option<f64>| found.extend(value.filter(|value| value.is_finite()).map(|it| (name, it)));
    let vl2 = find(rows, "vl2", servers, ratio);
    let whole = find(rows, "vl2", servers, 1);
    let over = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    put("vl2_usd", usd("vl2"));
    put("vl2_switches", vl2.map(|row| (row.aggregations + row.upper_switches) as f64));
    put("vl2_saving", over(usd("vl2"), whole.map(|row| row.switches_usd)).map(|share| 1.0 - share));
    put("conventional_over_vl2", over(usd("conventional"), usd("vl2")));
    put("spare_over_vl2", over(usd("conventional-spare"), usd("vl2")));
    put("fat_tree_cables", vl2.map(|row| FAT_TREE_CABLES * f64::from(servers) / row.cables as f64));
    let whole_usd = whole.map(|row| row.switches_usd);
    let present_over = over(usd("present"), whole_usd);
    put("present_over_vl2", present_over);
    put("present_spare_over_vl2", over(usd("present-spare"), whole_usd));
    put("capacity_per_dollar", present_over.map(|share| share * f64::from(ratio)));
    for (name, design) in [("present_port_usd", "present"), ("present_spare_port_usd", "present-spare")] {
        let row = find(rows, design, servers, ratio);
        put(name, row.zip(whole_usd).map(|(row, usd)| port_price(cost, row, usd)));
    }
    found
}

/// What a port of 1 Gb/s would have to cost for the network to cost so much.
fn port_price(cost: &CostSpec, row: &NetworkRow, usd: f64) -> f64 {
    // Cables to the ToRs end at one port that is paid for, all others at two.
    let gigabit_ports = (2 * row.cables - row.ports) as f64;
    let others = row.switches_usd - gigabit_ports * cost.prices.conventional_1g.usd_per_port();
    (usd - others) / gigabit_ports
}

fn table(rows: &[NetworkRow]) -> Table {
    Table {
        title: "Networks and what they cost".into(),
        headings: HEADINGS.map(str::to_owned).to_vec(),
        rows: rows.iter().map(|row| cells(row).to_vec()).collect(),
    }
}

/// Headings of a table of networks.
pub const HEADINGS: [&str; 12] = [
    "design",
    "servers",
    "oversubscription",
    "has 1:",
    "ToRs",
    "Aggregations",
    "above",
    "ports",
    "server links",
    "cables",
    "switches ($)",
    "ToRs and cables ($)",
];

/// One line of it.
pub fn cells(row: &NetworkRow) -> [String; 12] {
    [
        row.design.clone(),
        row.servers.to_string(),
        format!("1:{}", row.oversubscription),
        format!("{:.2}", row.actual_oversubscription),
        row.tors.to_string(),
        row.aggregations.to_string(),
        row.upper_switches.to_string(),
        row.ports.to_string(),
        row.server_links.to_string(),
        row.cables.to_string(),
        format!("{:.0}", row.switches_usd),
        format!("{:.0}", row.tors_and_cables_usd),
    ]
}
