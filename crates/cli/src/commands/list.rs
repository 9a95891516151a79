//! `weft list`: every plan, what it reproduces and how long it takes.

use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::plan::{self, Claim, Mode};

use crate::args::Output;
use crate::exit::Failure;
use crate::output::{self, Rows};

#[derive(Serialize)]
struct PlanList<'a> {
    schema_version: u32,
    plans: Vec<PlanLine<'a>>,
}

#[derive(Serialize)]
struct PlanLine<'a> {
    plan: &'a str,
    paper: &'a str,
    figure: &'a str,
    title: &'a str,
    engines: &'a [String],
    expected_s: u32,
    claims: &'a [Claim],
}

pub(crate) fn list(format: Output) -> Result<ExitCode, Failure> {
    let plans = plan::list().map_err(Failure::failed)?;
    let lines: Vec<PlanLine<'_>> = plans
        .iter()
        .map(|plan| {
            let spec = plan.for_mode(Mode::Default);
            PlanLine {
                plan: plan.id(),
                paper: &spec.paper,
                figure: &spec.figure,
                title: &spec.title,
                engines: &spec.engines,
                expected_s: spec.expected_s,
                claims: &spec.claims,
            }
        })
        .collect();
    let mut rows = Rows::new(&["plan", "paper", "figure", "engines", "seconds", "claims that are judged"]);
    for line in &lines {
        let judged = line.claims.iter().filter_map(|claim| {
            let want = claim.want?;
            Some(format!("{} {} {want}", claim.id, claim.relation.symbol()))
        });
        rows.push(vec![
            line.plan.to_owned(),
            line.paper.to_owned(),
            line.figure.to_owned(),
            line.engines.join(", "),
            line.expected_s.to_string(),
            judged.collect::<Vec<_>>().join(", "),
        ]);
    }
    output::print(format, &rows, &PlanList { schema_version: 1, plans: lines })?;
    Ok(ExitCode::SUCCESS)
}
