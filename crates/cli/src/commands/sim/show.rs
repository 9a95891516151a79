//! What `weft sim` prints: a line for each class of flows, and sums over the run.

use serde::Serialize;
use weft_experiment::analysis::class_summary::ClassSummary;
use weft_experiment::table::plain;
use weft_sim::{Outcome, PS_PER_NS};

use super::load::Loaded;
use super::watcher::Trace;
use crate::args::{Output, SimArgs};
use crate::exit::Failure;
use crate::output::{self, Rows};

/// The object of `weft sim -o json`. It holds nothing of the machine, so the same command prints the same bytes.
#[derive(Serialize)]
pub(super) struct Summary {
    schema_version: u32,
    scenario: String,
    fabric: String,
    overlay: &'static str,
    workload: String,
    seed: u64,
    simulated_ns: u64,
    flows: usize,
    flows_done: u64,
    packet_hops: u64,
    drops: u64,
    marked: u64,
    retransmits: u64,
    timeouts: u64,
    fct: Vec<ClassSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<TraceRow>>,
}

/// Something that happened to the traced flow.
#[derive(Serialize)]
pub(super) struct TraceRow {
    pub(super) time_ns: u64,
    pub(super) text: String,
}

impl Summary {
    pub(super) fn new(
        args: &SimArgs,
        loaded: &Loaded,
        outcome: &Outcome,
        fct: Vec<ClassSummary>,
        trace: Option<Trace>,
    ) -> Self {
        let totals = &outcome.totals;
        Self {
            schema_version: 1,
            scenario: args.scenario.clone(),
            fabric: loaded.job.fabric.name().to_owned(),
            overlay: loaded.job.settings.overlay.name(),
            workload: loaded.workload_name.clone(),
            seed: args.seed,
            simulated_ns: outcome.end_ps / PS_PER_NS,
            flows: outcome.flows.len(),
            flows_done: totals.flows_done,
            packet_hops: totals.packet_hops,
            drops: totals.drops(),
            marked: totals.marked,
            retransmits: totals.retransmits,
            timeouts: totals.timeouts,
            fct,
            trace: trace.filter(|_| args.output.output == Output::Json).map(Trace::into_rows),
        }
    }
}

const HEADINGS: [&str; 8] =
    ["class", "flows", "ended", "mean FCT us", "p50 FCT us", "p99 FCT us", "mean slowdown", "p99 slowdown"];

pub(super) fn print(summary: &Summary, format: Output) -> Result<(), Failure> {
    let mut rows = Rows::new(&HEADINGS);
    for class in &summary.fct {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), plain);
        let time = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
        rows.push(vec![
            class.class.to_owned(),
            class.flows.to_string(),
            class.ended.to_string(),
            time(class.mean_fct_us),
            time(class.p50_fct_us),
            time(class.p99_fct_us),
            number(class.mean_slowdown),
            number(class.p99_slowdown),
        ]);
    }
    output::print(format, &rows, summary)?;
    if format == Output::Table {
        let open = summary.flows as u64 - summary.flows_done.min(summary.flows as u64);
        let open = if open > 0 { format!(", {open} flows not done") } else { String::new() };
        output::print_line(&format!(
            "\noverlay {}: {} packet-hops, {} drops, {} retransmitted segments, {} timeouts{open}",
            summary.overlay, summary.packet_hops, summary.drops, summary.retransmits, summary.timeouts
        ))?;
    }
    Ok(())
}
