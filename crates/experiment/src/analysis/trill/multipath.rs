//! Few large flows by the TCP of real kernels: what they deliver whole, by multipath TCP, and in stripes.
//!
//! Each turn of a trial draws the hashes anew and is a sample; ways of sending are compared within their turn's round.

use std::collections::BTreeMap;

use weft_scenario::record::ElephantRow;
use weft_scenario::workload::trill::{ELEPHANTS, ElephantSpec, Split};

use super::elephants_of;
use crate::analysis::trials::{cell_with_interval, put_empty, trials};
use crate::analysis::{Input, MetricInfo};
use crate::metric::{Findings, Limit, Table};
use crate::plan::PlanSpec;
use crate::stats;

/// What this analysis yields, with the way of sending behind the name.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "delivered",
        meaning: "bytes of payload that arrived of all elephants, over what as many lines of a path carry meanwhile",
    },
    MetricInfo { name: "least", meaning: "the same of the slowest elephant, over one line" },
    MetricInfo {
        name: "connections",
        meaning: "TCP connections of an elephant, the least of all: subflows or stripes",
    },
    MetricInfo { name: "delivered_over_tcp", meaning: "delivered over that of whole flows in the same round" },
    MetricInfo {
        name: "least_over_tcp",
        meaning: "the slowest elephant over the slowest whole flow of the same round",
    },
];

/// The elephants of one turn.
type Turn<'a> = Vec<&'a ElephantRow>;
/// The turns of a round, by way of sending.
type Round<'a> = BTreeMap<&'a str, Turn<'a>>;
/// A number of a round, if it holds it.
type Number<'a> = Box<dyn Fn(&Round<'_>) -> Option<f64> + 'a>;

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-multipath", &["elephants"])?;
    match elephants_of(spec).count() {
        1 => Ok(()),
        _ => Err("analysis `trill-multipath` takes one workload".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    elephants_of(spec).flat_map(|(_, elephants)| metrics(elephants)).map(|(name, _)| name).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    put_empty(&mut findings, input, |trial| trial.records.elephants.is_empty());
    for (workload, spec) in elephants_of(input.spec) {
        let rounds: Vec<Round<'_>> =
            trials(input, workload).flat_map(|trial| rounds(&trial.records.elephants)).collect();
        for (name, number) in metrics(spec) {
            let samples: Vec<f64> = rounds.iter().filter_map(&number).filter(|value| value.is_finite()).collect();
            findings.put(&name, &samples, Limit::Link);
        }
        let table = table(&findings, spec);
        findings.tables.push(table);
    }
    findings
}

fn rounds(rows: &[ElephantRow]) -> Vec<Round<'_>> {
    let mut rounds: BTreeMap<u32, Round<'_>> = BTreeMap::new();
    for row in rows {
        rounds.entry(row.round).or_default().entry(&row.split).or_default().push(row);
    }
    rounds.into_values().collect()
}

fn metrics(spec: &ElephantSpec) -> Vec<(String, Number<'_>)> {
    let line_bps = spec.link.rate.0 as f64;
    let delivered = move |round: &Round<'_>, split| stats::mean(&shares(round, split, line_bps)?);
    let least = move |round: &Round<'_>, split| shares(round, split, line_bps)?.into_iter().reduce(f64::min);
    let mut all: Vec<(String, Number<'_>)> = Vec::new();
    for split in &spec.splits {
        let name = |metric: &str| format!("{metric}.{}", split.name());
        all.push((name("delivered"), Box::new(move |round| delivered(round, *split))));
        all.push((name("least"), Box::new(move |round| least(round, *split))));
        all.push((name("connections"), Box::new(move |round| connections(round, *split))));
        if *split != Split::Tcp && spec.splits.contains(&Split::Tcp) {
            all.push((
                name("delivered_over_tcp"),
                Box::new(move |round| Some(delivered(round, *split)? / delivered(round, Split::Tcp)?)),
            ));
            all.push((
                name("least_over_tcp"),
                Box::new(move |round| Some(least(round, *split)? / least(round, Split::Tcp)?)),
            ));
        }
    }
    all
}

/// Of every elephant, what arrived over what a line carries meanwhile; `None` unless all are there.
fn shares(round: &Round<'_>, split: Split, line_bps: f64) -> Option<Vec<f64>> {
    let turn = round.get(split.name()).filter(|turn| turn.len() == ELEPHANTS as usize)?;
    let share = |row: &&ElephantRow| {
        let bits_per_s = row.received_bytes as f64 * 8e9 / row.wall_ns as f64;
        (row.wall_ns > 0).then_some(bits_per_s / line_bps)
    };
    turn.iter().map(share).collect()
}

fn connections(round: &Round<'_>, split: Split) -> Option<f64> {
    round.get(split.name())?.iter().map(|row| f64::from(row.connections)).reduce(f64::min)
}

fn table(findings: &Findings, spec: &ElephantSpec) -> Table {
    let row = |split: &Split| {
        let of = |metric: &str| cell_with_interval(findings, &format!("{metric}.{}", split.name()));
        let cells = ["delivered", "least", "connections", "delivered_over_tcp", "least_over_tcp"].map(of);
        let missing = *split == Split::Mptcp && !findings.metrics.contains_key("delivered.mptcp");
        let name = if missing { "mptcp: not available on this kernel".to_owned() } else { split.name().to_owned() };
        std::iter::once(name).chain(cells).collect()
    };
    let headings = ["sent as", "delivered", "slowest", "connections", "delivered over TCP", "slowest over TCP"];
    Table {
        title: "Elephants, of a path for each".into(),
        headings: headings.map(str::to_owned).to_vec(),
        rows: spec.splits.iter().map(row).collect(),
    }
}
