//! `weft measure`: the test centre between two ports.

use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::measurement::Reading;
use weft_lab::doctor::{Use, require_use};
use weft_lab::tester::TesterError;
use weft_lab::tester::measure::{
    self, BurstRow, LatencyRow, LimitedBy, LossRow, MeasureOptions, Method, Report, SizeCells, SoakRow, ThroughputRow,
};
use weft_lab::tester::rate::usual_bytes;
use weft_lab::tester::sizes::Sizes;
use weft_lab::tester::stream::{IpVersion, StreamPlan};
use weft_scenario::engine::EngineError;
use weft_scenario::judge::Relation;

use super::saving::Saving;
use crate::args::{IpChoice, MeasureCommand, MethodChoice, Output, PortArgs};
use crate::exit::{self, Failure};
use crate::output::Rows;
use crate::progress::TerminalProgress;

pub(crate) fn measure(command: MeasureCommand, quiet: bool) -> Result<ExitCode, Failure> {
    require_use(Use::Measure).map_err(super::lab::failure)?;
    let progress = TerminalProgress::new(quiet)?;
    let done = |progress: &TerminalProgress| progress.finish();
    match command {
        MeasureCommand::Throughput { ports, method, cost, results } => {
            let method = match method {
                MethodChoice::Ndr => Method::Ndr,
                MethodChoice::Rfc2544 => Method::Rfc2544,
            };
            let saving = Saving::begin(&results)?;
            let report = measure::throughput(&options(ports), method, cost, &progress);
            done(&progress);
            print(saving, &report.map_err(failure)?, throughput_rows, throughput_readings, quiet)
        }
        MeasureCommand::Latency { ports, results } => {
            let saving = Saving::begin(&results)?;
            let report = measure::latency(&options(ports), &progress);
            done(&progress);
            print(saving, &report.map_err(failure)?, latency_rows, latency_readings, quiet)
        }
        MeasureCommand::Loss { ports, back_to_back: false, results } => {
            let saving = Saving::begin(&results)?;
            let report = measure::loss(&options(ports), &progress);
            done(&progress);
            print(saving, &report.map_err(failure)?, loss_rows, loss_readings, quiet)
        }
        MeasureCommand::Loss { ports, back_to_back: true, results } => {
            let saving = Saving::begin(&results)?;
            let report = measure::bursts(&options(ports), &progress);
            done(&progress);
            print(saving, &report.map_err(failure)?, burst_rows, burst_readings, quiet)
        }
        MeasureCommand::Soak { ports, duration, results } => {
            let saving = Saving::begin(&results)?;
            let report = measure::soak(&options(ports), duration.0, &progress);
            done(&progress);
            print(saving, &report.map_err(failure)?, soak_rows, soak_readings, quiet)
        }
        MeasureCommand::Replay { replay, results } => {
            let saving = Saving::begin(&results)?;
            let report = super::replay::report(replay, &progress);
            done(&progress);
            super::replay::print(saving, &report.map_err(failure)?, quiet)
        }
    }
}

fn options(ports: PortArgs) -> MeasureOptions {
    let PortArgs { tx, rx, size, rate, trial, ip, streams, groups, broadcasts, vlan, gateway, seed } = ports;
    let ip = match ip {
        IpChoice::V4 => IpVersion::V4,
        IpChoice::V6 => IpVersion::V6,
    };
    let kinds = StreamPlan { ip, unicast: streams, group: groups, broadcast: broadcasts, ..StreamPlan::default() };
    let plan = StreamPlan { vlans: vlan, gateway, seed, ..kinds };
    let asked: Vec<Sizes> = size.into_iter().flat_map(|list| list.0).collect();
    let usual = || usual_bytes(plan.headers()).into_iter().map(Sizes::from).collect();
    let sizes = if asked.is_empty() { usual() } else { asked };
    MeasureOptions { sending: tx, receiving: rx, plan, sizes, trial: trial.0, rates_pps: rate }
}

fn failure(error: TesterError) -> Failure {
    EngineError::from(error).into()
}

/// Rows, and on standard error what is the same for all of them.
fn print<Row: Serialize>(
    saving: Saving,
    report: &Report<Row>,
    rows: impl Fn(&[Row]) -> Rows,
    readings: impl Fn(&[Row]) -> Vec<Reading>,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    if saving.format == Output::Table && !quiet {
        let bench = &report.bench;
        let means = word(&bench.means);
        let counted = if bench.counted_in_driver { "in the driver" } else { "in the stack" };
        eprintln!(
            "sent by {means} from core {}, counted {counted}; the generator alone: {} Mpps, {:.0} ns of CPU a frame",
            bench.cpu,
            mega(bench.generator_pps),
            bench.generator_ns
        );
    }
    saving.print(&rows(&report.rows), report, readings(&report.rows), &[])?;
    Ok(if report.complete { ExitCode::SUCCESS } else { ExitCode::from(exit::INTERRUPTED) })
}

fn throughput_rows(rows: &[ThroughputRow]) -> Rows {
    let header = [
        "frame bytes",
        "offered Mpps",
        "received Mpps",
        "loss %",
        "L2 Gbit/s",
        "L1 Gbit/s",
        "PDR Mpps",
        "floor p50 ns",
        "p50 ns",
        "p99 ns",
        "net p50 ns",
        "CPU ns/frame",
        "machine",
        "limited by",
    ];
    let mut table = Rows::new(&header);
    for row in rows {
        let cost = row.cost.map(|cost| {
            let doubt = if cost.calibration.holds { "" } else { "?" };
            format!("{:.0}{doubt}", cost.path.ns_per_frame)
        });
        table.push(vec![
            row.size.to_string(),
            mega(row.offered_pps),
            mega(row.received_pps),
            percent(row.loss_ratio),
            format!("{:.3}", row.layer2_bps / 1e9),
            format!("{:.3}", row.layer1_bps / 1e9),
            row.pdr_pps.map_or_else(dash, mega),
            row.latency_ns.floor_p50.to_string(),
            row.latency_ns.measured.p50.to_string(),
            row.latency_ns.measured.p99.to_string(),
            row.latency_ns.net_p50.to_string(),
            cost.unwrap_or_else(dash),
            machine(row.noise.quiet && !row.irregular && row.trials_noisy == 0),
            limit(row.limited_by),
        ]);
    }
    table
}

fn latency_rows(rows: &[LatencyRow]) -> Rows {
    let header = [
        "frame bytes",
        "offered pps",
        "loss %",
        "floor p50 ns",
        "floor p99 ns",
        "mean ns",
        "p50 ns",
        "p99 ns",
        "p99.9 ns",
        "max ns",
        "jitter ns",
        "net p50 ns",
        "net p99 ns",
        "gap p50 ns",
        "machine",
    ];
    let mut table = Rows::new(&header);
    for row in rows {
        let latency = &row.latency_ns;
        table.push(vec![
            row.size.to_string(),
            format!("{:.0}", row.offered_pps),
            percent(row.loss_ratio),
            latency.floor_p50.to_string(),
            latency.floor_p99.to_string(),
            format!("{:.0}", latency.measured.mean),
            latency.measured.p50.to_string(),
            latency.measured.p99.to_string(),
            latency.measured.p999.to_string(),
            latency.measured.max.to_string(),
            format!("{:.0}", latency.measured.jitter),
            latency.net_p50.to_string(),
            latency.net_p99.to_string(),
            row.gap_p50_ns.to_string(),
            machine(row.noise.quiet),
        ]);
    }
    table
}

fn loss_rows(rows: &[LossRow]) -> Rows {
    let mut table = Rows::new(&[
        "frame bytes",
        "offered pps",
        "received pps",
        "sent",
        "lost",
        "loss %",
        "reordered",
        "duplicated",
        "misdelivered",
        "corrupt",
        "machine",
    ]);
    for row in rows {
        let counts = row.account.counts;
        table.push(vec![
            row.size.to_string(),
            format!("{:.0}", row.offered_pps),
            format!("{:.0}", row.received_pps),
            row.account.sent.to_string(),
            row.account.lost.to_string(),
            percent(row.loss_ratio),
            counts.reordered.to_string(),
            counts.duplicated.to_string(),
            counts.misdelivered.to_string(),
            (counts.corrupt + row.account.ports.damaged).to_string(),
            machine(row.noise.quiet),
        ]);
    }
    table
}

fn burst_rows(rows: &[BurstRow]) -> Rows {
    let mut table = Rows::new(&["frame bytes", "burst pps", "mean frames", "least", "most", "remark"]);
    for row in rows {
        table.push(vec![
            row.size.to_string(),
            format!("{:.0}", row.burst_pps),
            format!("{:.0}", row.burst.frames_mean),
            row.burst.frames_min.to_string(),
            row.burst.frames_max.to_string(),
            if row.burst.unlimited { "no limit found".to_owned() } else { String::new() },
        ]);
    }
    table
}

fn soak_rows(rows: &[SoakRow]) -> Rows {
    let mut table = Rows::new(&[
        "start s",
        "frame bytes",
        "offered pps",
        "lost",
        "loss %",
        "reordered",
        "p50 ns",
        "p99 ns",
        "p99.9 ns",
        "max ns",
        "slips",
        "machine",
    ]);
    for row in rows {
        table.push(vec![
            format!("{:.1}", row.start_s),
            row.size.to_string(),
            format!("{:.0}", row.offered_pps),
            row.account.lost.to_string(),
            percent(row.loss_ratio),
            row.account.counts.reordered.to_string(),
            row.latency_ns.p50.to_string(),
            row.latency_ns.p99.to_string(),
            row.latency_ns.p999.to_string(),
            row.latency_ns.max.to_string(),
            row.slips.to_string(),
            machine(row.noise.quiet),
        ]);
    }
    table
}

const MORE: Relation = Relation::AtLeast;
const LESS: Relation = Relation::AtMost;

fn throughput_readings(rows: &[ThroughputRow]) -> Vec<Reading> {
    let of = |row: &ThroughputRow| {
        let size = row.size.name();
        let (rate, latency) = (row.received_pps, row.latency_ns.measured.p99 as f64);
        let cost =
            row.cost.map(|cost| Reading::new(format!("path_ns_per_frame.{size}"), cost.path.ns_per_frame, "ns", LESS));
        let fixed = [
            Reading::new(format!("received_pps.{size}"), rate, "frames/s", MORE),
            Reading::new(format!("p99_ns.{size}"), latency, "ns", LESS),
        ];
        fixed.into_iter().chain(cost)
    };
    rows.iter().flat_map(of).collect()
}

fn latency_readings(rows: &[LatencyRow]) -> Vec<Reading> {
    let of = |row: &LatencyRow| {
        let place = format!("{}.{:.0}", row.size.name(), row.asked_pps);
        [
            Reading::new(format!("net_p50_ns.{place}"), row.latency_ns.net_p50 as f64, "ns", LESS),
            Reading::new(format!("net_p99_ns.{place}"), row.latency_ns.net_p99 as f64, "ns", LESS),
            Reading::new(format!("loss_ratio.{place}"), row.loss_ratio, "ratio", LESS),
        ]
    };
    rows.iter().flat_map(of).collect()
}

fn loss_readings(rows: &[LossRow]) -> Vec<Reading> {
    let place = |row: &LossRow| format!("loss_ratio.{}.{:.0}", row.size.name(), row.asked_pps);
    rows.iter().map(|row| Reading::new(place(row), row.loss_ratio, "ratio", LESS)).collect()
}

fn burst_readings(rows: &[BurstRow]) -> Vec<Reading> {
    let name = |row: &BurstRow| format!("burst_frames.{}", row.size.name());
    rows.iter().map(|row| Reading::new(name(row), row.burst.frames_mean, "frames", MORE)).collect()
}

/// Over all stretches of a size: what was lost of what was sent, and the worst 99th percentile.
fn soak_readings(rows: &[SoakRow]) -> Vec<Reading> {
    let sizes: std::collections::BTreeSet<&SizeCells> = rows.iter().map(|row| &row.size).collect();
    let of = |size: &&SizeCells| {
        let of_size: Vec<&SoakRow> = rows.iter().filter(|row| row.size == **size).collect();
        let sum = |count: fn(&SoakRow) -> u64| of_size.iter().map(|row| count(row)).sum::<u64>() as f64;
        let lost = sum(|row| row.account.lost) / sum(|row| row.account.sent).max(1.0);
        let worst = of_size.iter().map(|row| row.latency_ns.p99).max().unwrap_or(0) as f64;
        let size = size.name();
        [
            Reading::new(format!("loss_ratio.{size}"), lost, "ratio", LESS),
            Reading::new(format!("worst_p99_ns.{size}"), worst, "ns", LESS),
        ]
    };
    sizes.iter().flat_map(of).collect()
}

fn mega(pps: f64) -> String {
    format!("{:.4}", pps / 1e6)
}

pub(super) fn percent(ratio: f64) -> String {
    format!("{:.4}", ratio * 100.0)
}

pub(super) fn dash() -> String {
    "-".to_owned()
}

fn machine(quiet: bool) -> String {
    if quiet { "quiet" } else { "noisy" }.to_owned()
}

fn limit(limit: LimitedBy) -> String {
    word(&limit)
}

/// The word that an enum without fields serialises as.
pub(super) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}
