//! The questions that stand in the plan: metrics, problems and tables from the run's rows in SQL.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Input, cpu};
use crate::metric::{Estimate, Findings, Limit, MetricPlace, Problem, Table};
use crate::plan::{COUNT, LIMIT, MetricQuestion, PlanSpec, ProblemVerdict};
use crate::query::{Answer, Database, QueryError, Value};
use crate::stats::{Interval, Method};
use crate::table::plain;

/// What a plan must have; its questions are checked where it is read.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    match spec.asks() {
        true => Ok(()),
        false => {
            Err("the plan asks nothing; add `[[metrics]]` or `questions = \"flow-summary\"`, or name an `analysis`"
                .to_owned())
        }
    }
}

/// Names of the plan's metrics, without places.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    spec.metrics.iter().map(|metric| metric.id.clone()).collect()
}

/// Asks everything.
pub fn analyse(input: &Input<'_>) -> Findings {
    let Some(database) = input.database else { return Findings::default() };
    let mut findings = Findings::default();
    if let Err(error) = ask(input.spec, database, &mut findings) {
        findings.problems.push(Problem::Invalid(error));
    }
    findings
}

fn ask(spec: &PlanSpec, database: &Database, findings: &mut Findings) -> Result<(), String> {
    for problem in &spec.problems {
        let answer = database.ask(&problem.sql).map_err(|error| format!("problem `{}`: {error}", problem.id))?;
        let sentences = answer.rows.iter().filter_map(|row| row.first()).map(ToString::to_string);
        findings.problems.extend(sentences.map(match problem.verdict {
            ProblemVerdict::Fail => Problem::Failed,
            ProblemVerdict::Inconclusive => Problem::Invalid,
        }));
    }
    (findings.metrics, findings.places) = metrics(spec, database)?;
    for table in &spec.tables {
        let answer = database.ask(&table.sql).map_err(|error| format!("table `{}`: {error}", table.id))?;
        let rows = answer.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        findings.tables.push(Table { title: table.title.clone(), headings: answer.columns, rows });
    }
    Ok(())
}

/// All metrics by name, and where each was read.
fn metrics(spec: &PlanSpec, database: &Database) -> Result<(BTreeMap<String, Estimate>, Vec<MetricPlace>), String> {
    let (mut metrics, mut places) = (BTreeMap::new(), Vec::new());
    let machine = machine(database).map_err(|error| error.to_string())?;
    for metric in &spec.metrics {
        let named = |error: String| format!("metric `{}`: {error}", metric.id);
        let answer = database.ask(&metric.sql).map_err(|error| named(error.to_string()))?;
        let found = estimates(metric, &answer, machine).map_err(named)?;
        places.extend(places_of(metric, &answer)?.into_iter().filter(|place| found.contains_key(&place.name)));
        metrics.extend(found);
    }
    Ok((metrics, places))
}

/// The places that an answer has values of, each once, in its order.
fn places_of(metric: &MetricQuestion, answer: &Answer) -> Result<Vec<MetricPlace>, String> {
    let columns = metric.places(answer.columns.clone())?;
    let (mut places, mut seen) = (Vec::new(), BTreeSet::new());
    for row in &answer.rows {
        let cells: Vec<String> = row[..columns.len()].iter().map(ToString::to_string).collect();
        let name = name_of(metric, &row[..columns.len()]);
        if seen.insert(name.clone()) {
            places.push(MetricPlace {
                name,
                metric: metric.id.clone(),
                place: columns.iter().cloned().zip(cells).collect(),
            });
        }
    }
    Ok(places)
}

/// A metric's name with its place behind.
fn name_of(metric: &MetricQuestion, places: &[Value]) -> String {
    places.iter().fold(metric.id.clone(), |name, place| format!("{name}.{place}"))
}

/// All metrics as rows of the table `estimates`.
pub(crate) fn rows(spec: &PlanSpec, database: &Database) -> Result<Vec<Vec<Value>>, QueryError> {
    let (metrics, _) = metrics(spec, database).map_err(QueryError::Statement)?;
    let row = |(name, estimate): (&String, &Estimate)| {
        let (metric, place) = spec.metric_of(name)?;
        let end = |end: Option<f64>| end.map_or(Value::Null, Value::Real);
        let interval = estimate.interval;
        Some(vec![
            Value::Text(metric.id.clone()),
            Value::Text(place.to_owned()),
            Value::Real(estimate.value),
            end(interval.map(|ends| ends.low)),
            end(interval.map(|ends| ends.high)),
            Value::Integer(estimate.n as i64),
        ])
    };
    Ok(metrics.iter().filter_map(row).collect())
}

/// What this machine did while a lab ran on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    /// Nothing that mattered to the run.
    Free,
    /// Others used more than a twentieth of its cores in some trial, and the run waited for a core at some time of it, but had what it
    /// needed in what is measured.
    InUse,
    /// Its CPU was the bottleneck in what is measured of some trial.
    Bound,
}

fn machine(database: &Database) -> Result<Machine, QueryError> {
    let is_there = |sql: &str| Ok::<_, QueryError>(!database.ask(sql)?.rows.is_empty());
    if is_there("select 1 from pressure where is_bound limit 1")? {
        return Ok(Machine::Bound);
    }
    let used = "select trial from others group by trial having sum(cpu_ns) > 0.05 * max(wall_ns) * max(cores)";
    let held_up = format!(
        "select trial from core_waits where who <> 'daemons' group by trial, time_ns having sum(waited_ns) > {} * sum(turns)",
        cpu::MOST_WAIT_MS * 1e6
    );
    // Where the kernel does not say who waits, others may have held up the run.
    let unsaid = "select trial from trials where trial not in (select trial from core_waits)";
    let in_use = format!("select 1 where exists ({used} intersect select * from ({held_up} union {unsaid}))");
    Ok(if is_there(&in_use)? { Machine::InUse } else { Machine::Free })
}

/// The estimate of every place.
fn estimates(metric: &MetricQuestion, answer: &Answer, machine: Machine) -> Result<BTreeMap<String, Estimate>, String> {
    // A packet that waited before or after what is measured can have made a flow slower: what holds nevertheless stands.
    let limited_by = match (machine, metric.limited_by) {
        (Machine::Bound, Limit::Link | Limit::OfferedLoad) => metric.when_busy,
        (Machine::InUse, Limit::Link | Limit::OfferedLoad) => Limit::OtherWork,
        (_, own) => own,
    };
    let width = metric.places(answer.columns.clone())?.len();
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut estimates, mut counts, mut limits) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let behind = |name: &str| {
        answer.columns.iter().skip(width + 1).position(|column| column == name).map(|place| width + 1 + place)
    };
    for row in &answer.rows {
        let (places, value) = (&row[..width], &row[width]);
        let name = name_of(metric, places);
        if let Some(Value::Integer(n)) = behind(COUNT).and_then(|place| row.get(place)) {
            counts.insert(name.clone(), *n as usize);
        }
        if let Some(Value::Text(text)) = behind(LIMIT).and_then(|place| row.get(place)) {
            let limit = serde_json::from_value(text.as_str().into()).map_err(|_| format!("`{text}` limits nothing"))?;
            let worst = limits.entry(name.clone()).or_insert(limit);
            *worst = if Limit::excuses(limit) || limit.hides_answer() { limit } else { *worst };
        }
        match (value, value.number()) {
            (_, Some(number)) if number.is_finite() => samples.entry(name).or_default().push(number),
            (Value::Text(text), _) => {
                let estimate = estimate(text, limited_by).ok_or_else(|| format!("`{text}` is no number"))?;
                if estimates.insert(name.clone(), estimate).is_some() {
                    return Err(format!("it has two estimates for `{name}`"));
                }
            }
            _ => {}
        }
    }
    let medians =
        samples.into_iter().filter_map(|(name, samples)| Some((name, Estimate::of_samples(&samples, limited_by)?)));
    estimates.extend(medians);
    for (name, n) in counts {
        estimates.entry(name).and_modify(|estimate: &mut Estimate| estimate.n = n);
    }
    if metric.exact {
        estimates.values_mut().for_each(|estimate| estimate.is_exact = true);
    }
    for (name, limit) in limits {
        estimates.entry(name).and_modify(|estimate: &mut Estimate| estimate.limited_by = limit);
    }
    Ok(estimates)
}

/// An estimate that an aggregate made.
#[derive(Deserialize)]
struct Written {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    coverage: Option<f64>,
    method: Option<Method>,
    n: usize,
}

fn estimate(text: &str, limited_by: Limit) -> Option<Estimate> {
    let written: Written = serde_json::from_str(text).ok()?;
    let ends = written.low.zip(written.high).zip(written.coverage.zip(written.method));
    let interval = ends.map(|((low, high), (coverage, method))| Interval { low, high, coverage, method });
    let is_exact = limited_by == Limit::Computed;
    Some(Estimate { value: written.value, interval, n: written.n, limited_by, is_exact })
}

/// As people read it.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => plain(*number),
        Value::Text(text) => match estimate(text, Limit::Link) {
            Some(Estimate { value, interval: Some(ends), .. }) => {
                format!("{} ({} .. {})", plain(value), plain(ends.low), plain(ends.high))
            }
            Some(estimate) => plain(estimate.value),
            None => text.clone(),
        },
    }
}

/// The number of a cell, also of an estimate, with its interval.
pub(crate) fn number(value: &Value) -> Option<(f64, Option<Interval>)> {
    match value {
        Value::Text(text) => estimate(text, Limit::Link).map(|estimate| (estimate.value, estimate.interval)),
        other => other.number().map(|number| (number, None)),
    }
}

#[cfg(test)]
mod shipped;
#[cfg(test)]
mod tests;
