//! Runs beside each other, claim by claim: what one read, and whether another read something else.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::run_folder::Manifest;
use crate::summary::{ClaimResult, RunSummary};
use crate::table::{plain, quantity, range};

/// Headings of [`cells`].
pub const HEADINGS: [&str; 6] = ["claim", "run", "ours", "interval", "over the first", "apart"];

/// What one run read for a claim that several have.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
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

/// The readings of every claim that at least two runs of one plan have, in the order of the first; of a plan without claims those of
/// its metrics.
pub fn readings(runs: &[RunSummary]) -> Vec<Reading> {
    let mut readings = Vec::new();
    for (place, first) in runs.iter().enumerate() {
        let (before, after) = (&runs[..place], &runs[place + 1..]);
        let same = |run: &&RunSummary| run.plan == first.plan;
        if before.iter().any(|run| same(&run)) {
            continue;
        }
        let others: Vec<&RunSummary> = after.iter().filter(same).collect();
        for claim in &first.numbers() {
            let of = |run: &'_ RunSummary| run.numbers().into_iter().find(|other| other.id == claim.id);
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
    let interval = reading.interval.map(|ends| format!("{} (n {})", range(ends, &reading.unit), reading.n));
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

/// What a claim's number over that of the first run may not be.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The claim.
    pub claim: String,
    /// Whether it may not be less than the ratio, or not more.
    pub is_floor: bool,
    pub ratio: f64,
}

/// How runs stand to a [`Bar`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing is beyond it.
    Holds,
    /// A number is beyond it, and its interval has something in common with that of the first run.
    Hidden,
    /// A number is beyond it, apart from the first run's or without an interval.
    Fails,
    /// No run but the first has the number, or the first has none.
    Missing,
}

impl Bar {
    /// How the readings of a claim stand to it; the worst counts.
    pub fn hold(&self, readings: &[Reading]) -> Held {
        let ratios = readings.iter().filter(|reading| reading.claim == self.claim);
        let ratios = ratios.filter_map(|reading| Some((reading.over_first?, reading.apart)));
        let is_beyond = |ratio: f64| if self.is_floor { ratio < self.ratio } else { ratio > self.ratio };
        let held = ratios.map(|(ratio, apart)| match (is_beyond(ratio), apart) {
            (false, _) => Held::Holds,
            (true, Some(false)) => Held::Hidden,
            (true, _) => Held::Fails,
        });
        let order = [Held::Fails, Held::Hidden, Held::Holds];
        let found: Vec<Held> = held.collect();
        order.into_iter().find(|one| found.contains(one)).unwrap_or(Held::Missing)
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {} {}", self.claim, if self.is_floor { '<' } else { '>' }, self.ratio)
    }
}

impl std::str::FromStr for Bar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no bar; write for example 'goodput < 0.97' or 'fct_p99 > 1.1'");
        let place = text.find(['<', '>']).ok_or_else(wrong)?;
        let (claim, ratio) = (text[..place].trim(), text[place + 1..].trim());
        let ratio: f64 = ratio.parse().map_err(|_| wrong())?;
        if claim.is_empty() || !ratio.is_finite() {
            return Err(wrong());
        }
        Ok(Self { claim: claim.to_owned(), is_floor: text[place..].starts_with('<'), ratio })
    }
}

/// Something that runs do not share: a setting of the plan, the machine, the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub name: String,
    /// What each run has, in their order; empty where it has none.
    pub values: Vec<String>,
}

/// What runs of the same or of other plans do not share, by name.
pub fn differences(runs: &[&Manifest]) -> Vec<Difference> {
    let settings: Vec<BTreeMap<String, String>> = runs.iter().map(|run| settings(run)).collect();
    let names: BTreeSet<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
    let of = |name: &String| settings.iter().map(|one| one.get(name).cloned().unwrap_or_default()).collect::<Vec<_>>();
    let all = names.into_iter().map(|name| Difference { name: name.clone(), values: of(name) });
    all.filter(|one| one.values.iter().any(|value| *value != one.values[0])).collect()
}

fn settings(run: &Manifest) -> BTreeMap<String, String> {
    let mode = serde_json::to_value(run.mode).ok().and_then(|mode| Some(mode.as_str()?.to_owned()));
    let mut settings: BTreeMap<String, String> = [
        ("mode", mode.unwrap_or_default()),
        ("step", run.step_name().unwrap_or_default().to_owned()),
        ("engine", run.engine.clone()),
        ("seed", run.seed.to_string()),
        ("weft", run.weft_version.clone()),
        ("revision", run.git_revision.clone().unwrap_or_default()),
        ("kernel", run.machine.kernel.clone()),
        ("CPU", format!("{}, {} cores", run.machine.cpu_model, run.machine.cores)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if let Ok(plan) = run.plan_text.parse::<toml::Table>() {
        flatten("plan", &toml::Value::Table(plan), &mut settings);
    }
    settings.extend(run.set.iter().map(|setting| (format!("set {}", setting.key()), setting.value().to_owned())));
    settings
}

/// Every value of a plan by the way to it; those of a list by `id` where they have one.
fn flatten(path: &str, value: &toml::Value, into: &mut BTreeMap<String, String>) {
    const LONGEST: usize = 60;
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, into));
        }
        toml::Value::Array(all) if all.iter().all(toml::Value::is_table) => {
            for (place, one) in all.iter().enumerate() {
                let id = one.get("id").and_then(toml::Value::as_str).map_or_else(|| place.to_string(), str::to_owned);
                flatten(&format!("{path}.{id}"), one, into);
            }
        }
        toml::Value::String(text) => {
            let short: String = text.trim().chars().take(LONGEST).collect();
            let dots = if short.len() < text.trim().len() { " .." } else { "" };
            into.insert(path.to_owned(), format!("{short}{dots}"));
        }
        other => {
            into.insert(path.to_owned(), other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Mode, Plan};
    use crate::runner::RunOptions;

    fn claim(id: &str, ours: Option<f64>, interval: Option<[f64; 2]>) -> ClaimResult {
        ClaimResult { ours, unit: "s".into(), interval, ..ClaimResult::bare(id) }
    }

    fn run(plan: &str, run_dir: &str, claims: Vec<ClaimResult>) -> RunSummary {
        let (plan, run_dir, engine) = (plan.to_owned(), run_dir.to_owned(), "sim".to_owned());
        RunSummary { schema_version: 1, plan, engine, seed: 1, claims, run_dir, ..RunSummary::default() }
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
                "time|r1|2 s|1.900 .. 2.100 s (n 3)|-|-",
                "time|r3|3 s|2 .. 3.500 s (n 3)|1.500|no",
                "time|r4|1 s|0.900 .. 1.100 s (n 3)|0.500|yes",
            ]
        );
    }

    #[test]
    fn a_bar_fails_where_runs_are_apart_and_is_hidden_where_they_are_not() {
        let slower = |value: f64, interval: Option<[f64; 2]>| {
            let runs = [
                run("a/one", "r1", vec![claim("pace", Some(100.0), Some([98.0, 102.0]))]),
                run("a/one", "r2", vec![claim("pace", Some(value), interval)]),
            ];
            let bar: Bar = "pace < 0.97".parse().unwrap();
            bar.hold(&readings(&runs))
        };
        assert_eq!(slower(99.0, Some([97.0, 101.0])), Held::Holds);
        assert_eq!(slower(96.0, Some([94.0, 99.0])), Held::Hidden);
        assert_eq!(slower(90.0, Some([88.0, 92.0])), Held::Fails);
        assert_eq!(slower(90.0, None), Held::Fails);
        let other: Bar = "other > 1".parse().unwrap();
        assert_eq!(other.hold(&[]), Held::Missing);
        assert_eq!((other.is_floor, other.to_string().as_str()), (false, "other > 1"));
        for wrong in ["pace", "< 0.9", "pace < x", "pace < nan", "pace <= 0.9"] {
            assert!(wrong.parse::<Bar>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn runs_that_differ_in_a_setting_say_so() {
        let plan_of_manifests = Plan::parse("p.toml", crate::analysis::testing::SWEEP_PLAN).unwrap();
        let manifest = |text: &str, seed: u64| Manifest {
            plan_text: text.to_owned(),
            seed,
            ..Manifest::new(&plan_of_manifests, plan_of_manifests.for_mode(Mode::Default), &RunOptions::default())
        };
        let plan = "a = 1\n[fabric]\nrate = \"1 Gbit/s\"\n[[claims]]\nid = \"x\"\nwant = 2";
        let one = manifest(plan, 1);
        assert_eq!(differences(&[&one, &one]), []);
        let other = manifest(&plan.replace("1 Gbit/s", "2 Gbit/s").replace("want = 2", "want = 3"), 2);
        let found: Vec<_> =
            differences(&[&one, &other]).into_iter().map(|one| (one.name, one.values.join("|"))).collect();
        let wanted = [("plan.claims.x.want", "2|3"), ("plan.fabric.rate", "1 Gbit/s|2 Gbit/s"), ("seed", "1|2")];
        assert_eq!(found, wanted.map(|(name, values)| (name.to_owned(), values.to_owned())));
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
