//! `weft bench directory`: our directory on loopback beside its floors and a baseline of the same run.

use std::process::ExitCode;

use weft_lab::directory::bench::{self, Baseline, BenchOptions, BenchReport};

use crate::args::BenchDirectoryArgs;
use crate::commands::lab;
use crate::commands::saving::Saving;
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn directory(args: &BenchDirectoryArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let saving = Saving::begin(&args.results)?;
    let progress = TerminalProgress::new(quiet)?;
    let options = BenchOptions {
        weft_binary: lab::this_program().map_err(Failure::failed)?,
        quick: args.quick,
        rounds: args.rounds,
        mappings: args.mappings,
        store: args.store.into(),
    };
    let report = bench::run(&options, &progress);
    progress.finish();
    let report = report.map_err(lab::failure)?;
    let format = saving.format;
    saving.print(&rows(&report), &report, Vec::new(), &report.checks)?;
    warn(&report);
    output::judged(format, &report.checks)
}

fn warn(report: &BenchReport) {
    if report.checks.iter().any(|check| check.why == Some(bench::SLOWER_MACHINE)) {
        let Baseline { datagrams_per_cpu_s, reference_per_cpu_s, .. } = &report.baseline;
        eprintln!(
            "weft: warning: this machine sends {:.0} % of the baseline's datagrams that the floors per CPU second were set \
             beside; judge by the ratios over the baseline",
            datagrams_per_cpu_s / reference_per_cpu_s * 100.0
        );
    }
}

fn rows(report: &BenchReport) -> Rows {
    let mut rows = Rows::new(&["measured", "ours", "unit"]);
    let mut push = |what: String, ours: String, unit: &str| {
        rows.push(vec![what, ours, unit.to_owned()]);
    };
    for row in &report.lookups {
        let shape = format!("{} a datagram{}", row.questions_per_datagram, if row.gro { ", bursts of 16" } else { "" });
        push(format!("look-ups, {shape}"), output::number(row.lookups_per_cpu_s), "per server CPU s");
        push("  over the baseline".into(), format!("{:.2}", row.over_baseline), "ratio");
        push(format!("  at saturation (limit: {})", row.limited_by), output::number(row.lookups_per_s), "1/s");
        push("  p50, p99 at 50 K look-ups/s".into(), format!("{:.0}, {:.0}", row.p50_us, row.p99_us), "us");
        push("  p99 of a bare socket's echo at that rate".into(), format!("{:.0}", row.echo_p99_us), "us");
    }
    for row in &report.card {
        let what = format!("look-ups at the card by XDP, {} mappings", row.numbers.mappings);
        push(what, output::number(row.numbers.lookups_per_cpu_s), "per CPU s");
        push("  over the server, 1 a datagram".into(), format!("{:.1}", row.over_server), "ratio");
        push("  memory of the table".into(), format!("{:.1}", row.numbers.memory_mb), "MB");
    }
    let baseline = &report.baseline;
    push(format!("baseline: {}", baseline.name), output::number(baseline.datagrams_per_cpu_s), "datagrams per CPU s");
    if !baseline.absent.is_empty() {
        push(format!("  not installed, not measured: {}", baseline.absent.join(", ")), String::new(), "");
    }
    let updates = &report.updates;
    let clients = format!("single updates, store {}, {} clients", updates.store, updates.clients);
    push(clients, output::number(updates.single_per_s), "1/s");
    push("  p50, p99".into(), format!("{:.1}, {:.1}", updates.p50_ms, updates.p99_ms), "ms");
    push("bulk changes".into(), output::number(updates.mappings_per_s), "mappings/s");
    let convergence = &report.convergence;
    let what = format!("visible at all {}, {} commits/s: p50, p99", convergence.servers, convergence.commits_per_s);
    push(what, format!("{:.1}, {:.1}", convergence.p50_ms, convergence.p99_ms), "ms");
    if let Some(failover) = &report.failover {
        let what = format!("store leader killed {} times: worst gap", failover.kills);
        push(what, format!("{:.2}", failover.leader_kill_resume_s), "s");
        push("  updates unanswered".into(), failover.unanswered.to_string(), "");
        push("  acknowledged updates lost".into(), failover.acknowledged_lost.to_string(), "");
    }
    let million = &report.million;
    push(format!("memory of {} mappings", million.mappings), format!("{:.0}", million.memory_mb), "MB");
    push("  cold start".into(), format!("{:.2}", million.cold_start_s), "s");
    let garbage = &report.garbage;
    let flood = format!("p99 without, with {}/s garbage", output::number(garbage.datagrams_per_s));
    push(flood, format!("{:.0}, {:.0}", garbage.p99_us_without, garbage.p99_us_with), "us");
    let abuse = &report.abuse;
    let refused = output::number(abuse.abuse_refused_per_s);
    let carried_out = output::number(abuse.abuse_committed_per_s);
    let load = format!("{} updates/s of a service", output::number(abuse.updates_per_s));
    push(format!("{load}: p50, p99"), format!("{:.2}, {:.2}", abuse.p50_ms_without, abuse.p99_ms_without), "ms");
    let what = format!("  beside one with {carried_out}/s, and {refused}/s refused");
    push(what, format!("{:.2}, {:.2}", abuse.p50_ms_with, abuse.p99_ms_with), "ms");
    for idle in &report.idle {
        let what = format!("CPU per look-up without, with {} idle connections: {}", idle.connections, idle.port);
        push(what, format!("{:.0}, {:.0}", idle.cpu_ns_without, idle.cpu_ns_with), "ns");
        push("  worst answer of the admin socket meanwhile".into(), format!("{:.1}", idle.admin_ms_worst), "ms");
    }
    let machine = &report.machine;
    let [before, after] = machine.load_average;
    push("load average before, after".into(), format!("{before:.2}, {after:.2}"), "");
    push("foreign CPU, worst round".into(), format!("{:.0}", machine.foreign_cpu_ratio * 100.0), "%");
    rows
}
