//! `weft bench overlay`: what encapsulations cost beside the same path without them.

use std::process::ExitCode;

use weft_lab::tester::compare::{Estimate, Order};
use weft_lab::tester::overlays::{self, OverlayOptions, OverlayReport, OverlayRow, Verdict, Wire};
use weft_scenario::engine::EngineError;

use crate::args::{BenchOverlayArgs, Output};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn overlay(args: &BenchOverlayArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = TerminalProgress::new(quiet)?;
    let report = options(args).and_then(|options| overlays::run(&options, &progress));
    progress.finish();
    let report = report.map_err(|error| Failure::from(EngineError::from(error)))?;
    let format = args.output.output;
    output::print(format, &rows(&report, format), &report)?;
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
    if report.checks.iter().any(|check| check.verdict == Verdict::Inconclusive) {
        eprintln!(
            "weft: warning: other work or a slower machine hides whether a floor is reached; run again when it idles"
        );
    }
    let failed = report.checks.iter().any(|check| check.verdict == Verdict::Fail);
    Ok(if failed { ExitCode::from(exit::CLAIM_FAILED) } else { ExitCode::SUCCESS })
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

fn rows(report: &OverlayReport, format: Output) -> Rows {
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
    if format == Output::Table {
        for check in &report.checks {
            let number = match (check.interval, check.want_max < 1.0) {
                (Some([low, high]), _) => format!("{:.2} +- {:.2}", check.ours, (high - low) / 2.0),
                (None, true) => format!("{:.4}", check.ours),
                (None, false) => format!("{:.0}", check.ours),
            };
            let mut line = vec![verdict(check.verdict), check.id.clone(), String::new(), String::new(), number];
            line.push(format!("want <= {} {}", (check.want_max * 1e3).round() / 1e3, check.unit));
            line.resize(12, String::new());
            rows.push(line);
        }
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

fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "inconclusive",
    }
    .to_owned()
}
