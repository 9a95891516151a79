//! What `weft sim` prints: a line for each class of flows, and sums over the run.

use serde::Serialize;
use weft_experiment::analysis::class_summary::ClassSummary;
use weft_experiment::plan::Setting;
use weft_experiment::table::plain;
use weft_scenario::units::Nanos;
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
    /// What the command line laid over it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<Setting>,
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
    /// True where switches mark packets (ECN).
    #[serde(skip)]
    marks: bool,
    /// The time limit, where it ends the run; `None` where the workload has an end of its own before it.
    #[serde(skip)]
    time_limit: Option<Nanos>,
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
            scenario: args.named().to_owned(),
            set: args.set.set.clone(),
            fabric: loaded.scenario.fabric.name().to_owned(),
            overlay: loaded.scenario.overlay.name(),
            workload: loaded.single.workload_name.clone(),
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
            marks: loaded.scenario.switching.ecn_threshold.is_some(),
            time_limit: Some(loaded.trial.time_limit)
                .filter(|limit| loaded.trial.workload.ends_at().is_none_or(|end| end > *limit)),
            trace: trace.filter(|_| args.output.output == Output::Json).map(Trace::into_rows),
        }
    }
}

/// Times are those of [`CAPTION`]; a line of seven digits for each is 80 columns wide.
const HEADINGS: [&str; 8] = ["class", "flows", "ended", "mean ms", "p50 ms", "p99 ms", "slowdown", "p99 slowdown"];
const CAPTION: &str = "ms: completion time of flows, from the start to the last byte at the receiver\n\
                       slowdown: mean of that time / the same flow's alone on the idle network";

pub(super) fn print(summary: &Summary, format: Output) -> Result<(), Failure> {
    let mut rows = Rows::new(&HEADINGS);
    for class in &summary.fct {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), plain);
        let time = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), milliseconds);
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
        output::print_line(&format!("\n{CAPTION}\n\n{}", summary.totals()))?;
    }
    Ok(())
}

/// A sentence about flows that the time limit cut off: `open` of `flows` had not ended.
fn cut_off(limit: Nanos, open: u64, flows: usize) -> String {
    let flows = if flows == 1 { "the one flow".to_owned() } else { format!("{open} of {flows} flows") };
    format!("time_limit {limit} cut off {flows}: what they sent is counted, and they have no completion time")
}

impl Summary {
    /// Packets on one line, what went wrong on the other, and on a third what the time limit cut off.
    fn totals(&self) -> String {
        let marked = if self.marks { format!(", {} marked packets", self.marked) } else { String::new() };
        let open = (self.flows as u64).saturating_sub(self.flows_done);
        let (open, cut) = match self.time_limit.filter(|_| open > 0) {
            Some(limit) => (String::new(), format!("\n{}", cut_off(limit, open, self.flows))),
            None => (if open > 0 { format!(", {open} flows not done") } else { String::new() }, String::new()),
        };
        format!(
            "overlay {}: {} packet-hops{marked}\n{} drops, {} retransmitted segments, {} timeouts{open}{cut}",
            self.overlay, self.packet_hops, self.drops, self.retransmits, self.timeouts
        )
    }
}

/// Microseconds as milliseconds with at least four digits, as many as are in seven columns.
fn milliseconds(us: f64) -> String {
    let ms = us / 1e3;
    match ms {
        _ if ms < 0.1 => format!("{ms:.5}"),
        _ if ms < 100.0 => format!("{ms:.3}"),
        _ => format!("{ms:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_the_limit_cut_off_are_counted() {
        let limit = Nanos(100_000_000);
        assert!(cut_off(limit, 4, 4).starts_with("time_limit 100 ms cut off 4 of 4 flows: "));
        assert!(cut_off(limit, 1, 1).starts_with("time_limit 100 ms cut off the one flow: "));
    }

    #[test]
    fn times_have_four_digits_in_seven_columns() {
        for (us, text) in [(7.016, "0.00702"), (99.9, "0.09990"), (412.3, "0.412"), (31_608.344_9, "31.608")] {
            assert_eq!(milliseconds(us), text);
        }
        assert_eq!(milliseconds(31_608_344.9), "31608.3");
    }
}
