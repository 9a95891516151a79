//! `weft run --dry-run`: what runs would be.

use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::plan::Plan;
use weft_experiment::runner::{self, EngineForecast, Forecast};

use crate::args::{Output, RunArgs};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};

/// What `-o json` prints.
#[derive(Serialize)]
struct DryRun<'a> {
    schema_version: u32,
    plans: &'a [Forecast],
}

/// Prints what a run of each plan would be. Exit code 4: a plan cannot run here, or not on the engine that is wanted.
pub(super) fn dry_run(args: &RunArgs, plans: &[Plan]) -> Result<ExitCode, Failure> {
    let options = super::options(args, None);
    let forecasts = plans.iter().map(|plan| runner::forecast(plan, &options, super::wanted(args), &super::engine));
    let forecasts = forecasts.collect::<Result<Vec<_>, _>>().map_err(super::failure)?;
    let mut rows = Rows::new(&["plan", "what", "is"]);
    for forecast in &forecasts {
        for (what, is) in lines(forecast) {
            rows.push(vec![forecast.plan.clone(), what, is]);
        }
    }
    match args.output.output {
        Output::Table => {
            for forecast in &forecasts {
                output::print_line(&for_people(forecast))?;
            }
        }
        other => output::print(other, &rows, &DryRun { schema_version: 1, plans: &forecasts })?,
    }
    let can = forecasts.iter().all(|forecast| forecast.can_run(super::wanted(args)));
    Ok(if can { ExitCode::SUCCESS } else { ExitCode::from(exit::NOT_FIT) })
}

fn for_people(forecast: &Forecast) -> String {
    let mode = format!("{:?}", forecast.mode).to_lowercase();
    let lines = lines(forecast).into_iter().map(|(what, is)| format!("  {what:10} {is}"));
    std::iter::once(format!("{} ({mode})", forecast.plan)).chain(lines).collect::<Vec<_>>().join("\n")
}

fn lines(forecast: &Forecast) -> Vec<(String, String)> {
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let factors = [
        count(forecast.points, "point") + " of the sweep",
        count(forecast.overlays, "overlay"),
        count(forecast.workloads, "workload"),
        count(forecast.repetitions as usize, "repetition"),
    ];
    let mut lines = vec![("trials".to_owned(), format!("{}: {}", forecast.trials, factors.join(", ")))];
    for engine in &forecast.engines {
        lines.extend(of_engine(engine));
    }
    let judged = match (forecast.judged.as_slice(), forecast.shown) {
        ([], 0) => "nothing: all metrics are printed, by variant".to_owned(),
        ([], shown) => {
            format!("nothing: {}, and all metrics by variant", count(shown, "number") + " beside the paper's")
        }
        (names, _) => format!("{}: {}{}", count(names.len(), "claim"), names.join(", "), required(names)),
    };
    lines.push(("judged".to_owned(), judged));
    lines
}

fn required(names: &[String]) -> &'static str {
    if names.iter().any(|name| name.ends_with('*')) { " (* required)" } else { "" }
}

fn of_engine(engine: &EngineForecast) -> Vec<(String, String)> {
    let can = engine.cannot.as_ref().map_or("can run here".to_owned(), |why| format!("cannot run here: {why}"));
    let mut lines = vec![(engine.engine.clone(), can)];
    let time = match engine.estimated_s {
        Some(seconds) => format!("about {} (estimate: {})", duration(seconds), engine.estimated_from),
        None => engine.estimated_from.clone(),
    };
    if !time.is_empty() {
        lines.push(("  time".to_owned(), time));
    }
    if let Some(bytes) = engine.trial_bytes {
        let all = bytes.saturating_mul(engine.side_by_side as u64);
        let each = format!("{} a trial, {} side by side", size(bytes), engine.side_by_side);
        lines.push(("  memory".to_owned(), format!("about {} (estimate: {each})", size(all))));
    }
    lines
}

fn duration(seconds: f64) -> String {
    match seconds {
        _ if seconds < 1.0 => "1 s".to_owned(),
        _ if seconds < 100.0 => format!("{:.0} s", seconds.ceil()),
        _ if seconds < 6000.0 => format!("{:.0} min", (seconds / 60.0).ceil()),
        _ => format!("{:.0} h", (seconds / 3600.0).ceil()),
    }
}

fn size(bytes: u64) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 1024.0 { format!("{:.0} MiB", mib.ceil()) } else { format!("{:.1} GiB", mib / 1024.0) }
}
