//! Runs beside each other, claim by claim: what one read, and whether another read something else.

use serde::Serialize;

use crate::summary::{ClaimResult, RunSummary};
use crate::table::{plain, quantity};

/// Headings of [`cells`].
pub const HEADINGS: [&str; 6] = ["claim", "run", "ours", "interval", "over the first", "apart"];

/// What one run read for a claim that several have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// The plan's short name.
    pub plan: String,
    pub claim: String,
    /// The run folder.
    pub run: String,
    /// The number; `null` if the run did not yield it.
    pub ours: Option<f64>,
    pub unit: String,
    /// Lower and upper end of its interval.
    pub interval: Option<[f64; 2]>,
    /// How many samples it rests on.
    pub n: usize,
    /// The number / that of the first run; `null` for the first.
    pub over_first: Option<f64>,
    /// Whether the two intervals have nothing in common, so that what the repetitions spread over does not explain the
    /// difference; `null` where one has no interval, and for the first.
    pub apart: Option<bool>,
}

/// The readings of every claim that at least two runs of one plan have, in the order of the first.
pub fn readings(runs: &[RunSummary]) -> Vec<Reading> {
    let mut readings = Vec::new();
    for (place, first) in runs.iter().enumerate() {
        let (before, after) = (&runs[..place], &runs[place + 1..]);
        let same = |run: &&RunSummary| run.plan == first.plan;
        if before.iter().any(|run| same(&run)) {
            continue;
        }
        let others: Vec<&RunSummary> = after.iter().filter(same).collect();
        for claim in &first.claims {
            let of = |run: &'_ RunSummary| run.claims.iter().find(|other| other.id == claim.id).cloned();
            let found: Vec<_> = others.iter().filter_map(|run| Some((*run, of(run)?))).collect();
            if found.is_empty() {
                continue;
            }
            readings.push(reading(first, claim, None));
            readings.extend(found.iter().map(|(run, other)| reading(run, other, Some(claim))));
        }
    }
    readings
}

fn reading(run: &RunSummary, claim: &ClaimResult, first: Option<&ClaimResult>) -> Reading {
    let over_first = first.and_then(|first| Some((claim.ours?, first.ours.filter(|first| *first != 0.0)?)));
    let apart = first.and_then(|first| Some((claim.interval?, first.interval?)));
    Reading {
        plan: run.plan.clone(),
        claim: claim.id.clone(),
        run: run.run_dir.clone(),
        ours: claim.ours,
        unit: claim.unit.clone(),
        interval: claim.interval,
        n: claim.n,
        over_first: over_first.map(|(ours, first)| ours / first),
        apart: apart.map(|(one, other)| one[0] > other[1] || one[1] < other[0]),
    }
}

/// A reading as text, in the order of [`HEADINGS`].
pub fn cells(reading: &Reading) -> [String; 6] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let interval = reading.interval.map(|[low, high]| format!("{} .. {} (n {})", plain(low), plain(high), reading.n));
    let apart = reading.apart.map(|apart| if apart { "yes" } else { "no" }.to_owned());
    [
        reading.claim.clone(),
        reading.run.clone(),
        or_dash(reading.ours.map(|ours| quantity(ours, &reading.unit))),
        interval.unwrap_or_else(|| format!("n {}", reading.n)),
        or_dash(reading.over_first.map(plain)),
        or_dash(apart),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Relation;
    use crate::verdict::Verdict;

    fn claim(id: &str, ours: Option<f64>, interval: Option<[f64; 2]>) -> ClaimResult {
        ClaimResult {
            id: id.into(),
            paper: None,
            ours,
            unit: "s".into(),
            relation: Relation::Info,
            want: None,
            paper_wants: None,
            interval,
            interval_method: None,
            coverage: None,
            n: 3,
            exact: false,
            baseline: String::new(),
            limited_by: None,
            required: false,
            verdict: Verdict::Info,
            reason: None,
        }
    }

    fn run(plan: &str, run_dir: &str, claims: Vec<ClaimResult>) -> RunSummary {
        let (plan, run_dir, engine) = (plan.to_owned(), run_dir.to_owned(), "sim".to_owned());
        RunSummary { schema_version: 1, plan, engine, seed: 1, claims, run_dir }
    }

    #[test]
    fn each_run_is_held_against_the_first_of_its_plan() {
        let runs = [
            run("a/one", "r1", vec![claim("time", Some(2.0), Some([1.9, 2.1])), claim("only", Some(1.0), None)]),
            run("a/other", "r2", vec![claim("time", Some(9.0), None)]),
            run("a/one", "r3", vec![claim("time", Some(3.0), Some([2.0, 3.5]))]),
            run("a/one", "r4", vec![claim("time", Some(1.0), Some([0.9, 1.1]))]),
        ];
        let found = readings(&runs);
        let text: Vec<_> = found.iter().map(|reading| cells(reading).join("|")).collect();
        assert_eq!(
            text,
            [
                "time|r1|2 s|1.900 .. 2.100 (n 3)|-|-",
                "time|r3|3 s|2 .. 3.500 (n 3)|1.500|no",
                "time|r4|1 s|0.900 .. 1.100 (n 3)|0.500|yes",
            ]
        );
    }

    #[test]
    fn what_is_missing_or_zero_makes_no_ratio() {
        let runs = [
            run("a/one", "r1", vec![claim("zero", Some(0.0), None), claim("gone", Some(1.0), Some([1.0, 1.0]))]),
            run("a/one", "r2", vec![claim("zero", Some(1.0), None), claim("gone", None, None)]),
        ];
        let found: Vec<_> = readings(&runs).iter().map(|reading| (reading.over_first, reading.apart)).collect();
        assert_eq!(found, [(None, None); 4]);
    }
}
