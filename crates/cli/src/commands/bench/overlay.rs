//! `weft bench overlay`: what encapsulations cost beside the same path without them.

use std::process::ExitCode;

use weft_lab::tester::compare::{Estimate, Order};
use weft_lab::tester::overlays::{self, OverlayOptions, OverlayReport, OverlayRow, Wire};
use weft_scenario::engine::EngineError;

use crate::args::{BenchOverlayArgs, Output};
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn overlay(args: &BenchOverlayArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = TerminalProgress::new(quiet)?;
    let report = options(args).and_then(|options| overlays::run(&options, &progress));
    progress.finish();
    let report = report.map_err(|error| Failure::from(EngineError::from(error)))?;
    let format = args.output.output;
    output::print(format, &rows(&report), &report)?;
    if format == Output::Table {
        let noise = report.noise;
        if noise.samples_disturbed > 0 {
            output::print_line(&format!(
                "noisy machine: {} runs did not count, {} turns had no undisturbed one",
                noise.runs_rejected, noise.samples_disturbed
            ))?;
        }
        if let Some(bridge) = report.bridge.filter(|bridge| bridge.is_slower_machine()) {
            output::print_line(&format!(
                "slower machine than the one that floors in ns were set on (a kernel bridge takes {:.0} ns of CPU here): ratios count",
                bridge.cpu_ns
            ))?;
        }
        if !report.whole_path {
            output::print_line("receiving ran on cores of its own: its CPU is not in these numbers")?;
        }
        output::print_line(&report.sentence)?;
    }
    output::judged(format, &report.checks)
}

fn options(args: &BenchOverlayArgs) -> Result<OverlayOptions, weft_lab::tester::TesterError> {
    let mut options = OverlayOptions::new(args.quick);
    if let (Some(tx), Some(rx)) = (&args.tx, &args.rx) {
        options.wire = Wire::between(tx, rx)?;
    }
    if !args.size.is_empty() {
        options.frame_bytes.clone_from(&args.size);
    }
    options.rounds = args.rounds.unwrap_or(options.rounds);
    Ok(options)
}

fn rows(report: &OverlayReport) -> Rows {
    let mut rows = Rows::new(&[
        "encapsulation",
        "hook",
        "switches",
        "frame bytes",
        "CPU ns/frame",
        "extra ns",
        "extra %",
        "against",
        "Mpps, one core",
        "lost",
        "p50 ns",
        "p99 ns",
    ]);
    for row in &report.rows {
        rows.push(cells(row));
    }
    rows
}

fn cells(row: &OverlayRow) -> Vec<String> {
    let dash = || "-".to_owned();
    let with_interval = |estimate: &Estimate, unit: f64| {
        format!("{:.0} +- {:.0}", estimate.mean * unit, (estimate.high - estimate.low) / 2.0 * unit)
    };
    let against = row.baseline.map(|baseline| match row.against_baseline {
        Some(Order::Above) => format!("above {}", baseline.name()),
        Some(Order::Below) => format!("below {}", baseline.name()),
        _ => format!("{}: inconclusive", baseline.name()),
    });
    vec![
        row.encapsulation.name().to_owned(),
        serde_json::to_value(row.hook).ok().and_then(|hook| Some(hook.as_str()?.to_owned())).unwrap_or_default(),
        row.switches.to_string(),
        row.frame_bytes.to_string(),
        with_interval(&row.cpu_ns, 1.0),
        row.extra_ns.as_ref().map_or_else(dash, |extra| with_interval(extra, 1.0)),
        row.extra_ratio.as_ref().map_or_else(dash, |extra| with_interval(extra, 100.0)),
        against.unwrap_or_else(dash),
        format!("{:.3}", row.received_pps / 1e6),
        row.lost.to_string(),
        row.p50_ns.to_string(),
        row.p99_ns.to_string(),
    ]
}
