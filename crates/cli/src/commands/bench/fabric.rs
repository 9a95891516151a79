//! `weft bench directory fabric`: the directory of a whole data centre, on loopback.

use std::process::ExitCode;

use weft_lab::directory::fabric::{
    self, CardOutage, FabricOptions, FabricReport, OutageNumbers, RackNumbers, StartNumbers,
};

use crate::args::BenchFabricArgs;
use crate::commands::lab;
use crate::commands::saving::Saving;
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn fabric(args: &BenchFabricArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let saving = Saving::begin(&args.results)?;
    let progress = TerminalProgress::new(quiet)?;
    let options = FabricOptions {
        weft_binary: lab::this_program().map_err(Failure::failed)?,
        agents: args.agents,
        aas: args.aas,
        questions: args.questions.into(),
        servers: args.servers.into(),
        rack: args.rack,
        store: args.store.into(),
        card: args.card,
        rounds: args.rounds,
    };
    let report = fabric::run(&options, &progress);
    progress.finish();
    let report = report.map_err(lab::failure)?;
    let format = saving.format;
    saving.print(&rows(&report), &report, Vec::new(), &report.checks)?;
    output::judged(format, &report.checks)
}

fn rows(report: &FabricReport) -> Rows {
    let mut rows = Rows::new(&["measured", "ours", "unit"]);
    outage(&mut rows, report, &report.outage);
    start(&mut rows, report, &report.start);
    if let Some(restart) = &report.restart {
        let of = format!("{} of 1 of {} servers", times(restart.restarts, "restart"), report.servers);
        push(&mut rows, format!("look-ups beside {of}"), output::number(restart.asked as f64), "");
        push(&mut rows, "  without an answer in 2 s", restart.unanswered.to_string(), "");
        push(&mut rows, "  asked again", restart.repeated.to_string(), "");
        push(&mut rows, "  p99, worst", format!("{:.2}, {:.1}", restart.p99_ms, restart.worst_ms), "ms");
        let steady = format!("{:.2}, {:.1}", restart.steady_p99_ms, restart.steady_worst_ms);
        push(&mut rows, "  p99, worst without a restart", steady, "ms");
    }
    rack(&mut rows, &report.rack);
    if let Some(outage) = &report.card {
        card(&mut rows, report, outage);
    }
    let machine = &report.machine;
    let [before, after] = machine.load_average;
    push(&mut rows, "load average before, after", format!("{before:.2}, {after:.2}"), "");
    push(&mut rows, "foreign CPU", format!("{:.0}", machine.foreign_cpu_ratio * 100.0), "%");
    rows
}

fn outage(rows: &mut Rows, report: &FabricReport, outage: &OutageNumbers) {
    let agents = output::number(report.agents.into());
    let what = format!("{agents} agents ask for {} at once: p50, p99, last", times(outage.questions as u32, "AA"));
    push(rows, what, format!("{:.0}, {:.0}, {:.0}", outage.p50_ms, outage.p99_ms, outage.worst_ms), "ms");
    let own = format!("{:.2}, {:.1}, {:.0}", outage.own_p50_ms, outage.own_p99_ms, outage.own_worst_ms);
    push(rows, "  from each agent's own question", own, "ms");
    push(rows, "  the last agent asked at", format!("{:.0}", outage.last_asked_ms), "ms");
    push(rows, "  agents without an answer", outage.unanswered.to_string(), "");
    push(rows, "  questions, asked again", questions(report, outage), "");
    push(rows, "  answers lost by the agents' one queue", output::number(outage.overflowed), "");
    let servers = format!("  CPU of {}", times(report.servers as u32, "directory server"));
    push(rows, servers, format!("{:.2}", outage.server_cpu_s), "s");
    let busy = format!("  CPU of the agents, busy {:.0} % of the time", outage.agents_busy_ratio * 100.0);
    push(rows, busy, format!("{:.2}", outage.agents_cpu_s), "s");
    let echo = format!("{:.0}, {:.0}", outage.echo_p99_ms, outage.echo_worst_ms);
    push(rows, "  the same datagrams only sent back: p99, last", echo, "ms");
    push(rows, "    CPU of the echoes", format!("{:.2}", outage.echo_cpu_s), "s");
    push(rows, "    lost", format!("{:.2}", outage.echo_lost_ratio * 100.0), "%");
    push(rows, "  CPU of a datagram over an echo's", format!("{:.2}", outage.server_cpu_over_echo), "ratio");
    push(rows, "  cores for all within 2 s", format!("{:.2}", outage.cores_for_two_s), "");
    let paper = format!("{:.1}, {:.1}", outage.paper_three_servers_s, outage.paper_sixty_servers_s);
    push(rows, "  at the paper's 17 K look-ups/s: 3 servers, 60", paper, "s");
}

fn questions(report: &FabricReport, outage: &OutageNumbers) -> String {
    let asked = f64::from(report.agents) * outage.questions as f64;
    format!("{}, {}", output::number(asked), output::number(outage.repeated))
}

fn start(rows: &mut Rows, report: &FabricReport, start: &StartNumbers) {
    let what = format!("a server from nothing to {} mappings", output::number(report.mappings.into()));
    push(rows, what, format!("{:.2}", start.ready_s), "s");
    push(rows, "  its CPU", format!("{:.2}", start.server_cpu_s), "s");
    push(rows, "  CPU of the store", format!("{:.2}", start.store_cpu_s), "s");
    push(rows, "  memory, the most meanwhile", format!("{:.0}, {:.0}", start.memory_mb, start.memory_peak_mb), "MB");
    push(rows, "  a mapping", format!("{:.0}", start.bytes_per_mapping), "bytes");
    let filled = format!("{:.1}, {:.1}", start.filled_s, start.filled_over_ready);
    push(rows, "  filled by a client instead: time, ratio", filled, "s, ratio");
}

fn rack(rows: &mut Rows, rack: &RackNumbers) {
    let what = format!("{} servers with {} AAs move: visible everywhere p50, last", rack.servers, rack.aas);
    push(rows, what, format!("{:.1}, {:.1}", rack.visible_p50_ms, rack.visible_last_ms), "ms");
    let slow = format!("{:.0}, {:.0}", rack.one_by_one_last_ms, rack.one_by_one_over_at_once);
    push(rows, "  one update after another: last, ratio", slow, "ms, ratio");
    let corrected =
        format!("{:.1}, {:.1}, {:.1}", rack.corrected_p50_ms, rack.corrected_p99_ms, rack.corrected_last_ms);
    push(rows, format!("  {} stale mappings corrected: p50, p99, last", rack.stale), corrected, "ms");
    push(rows, "    not corrected", rack.uncorrected.to_string(), "");
    let told = format!("{}, {}", output::number(rack.astray), output::number(rack.reported));
    push(rows, "    packets astray, told the directory", told, "");
    push(rows, "    without corrections, at the earliest after", format!("{:.0}", rack.confirmed_after_s), "s");
}

fn card(rows: &mut Rows, report: &FabricReport, outage: &CardOutage) {
    let agents = output::number(report.agents.into());
    for (how, side) in [("without", &outage.without), ("with", &outage.with)] {
        let what = format!("{agents} agents ask for 1 AA over a link, {how} a card: p99, last");
        push(rows, what, format!("{:.0}, {:.0}", side.p99_ms, side.worst_ms), "ms");
        push(rows, "  p99 from each agent's own question", format!("{:.1}", side.own_p99_ms), "ms");
        let count = format!("{}, {}", side.unanswered, output::number(side.repeated));
        push(rows, "  agents without an answer, asked again", count, "");
        push(rows, "  CPU of server, agents", format!("{:.2}, {:.2}", side.server_cpu_s, side.agents_cpu_s), "s");
    }
    push(rows, "  answered at the card (XDP in the stack)", format!("{:.1}", outage.at_card_ratio * 100.0), "%");
    push(rows, "  CPU of both without over with it", format!("{:.2}", outage.cpu_ratio), "ratio");
}

fn push(rows: &mut Rows, what: impl Into<String>, ours: String, unit: &str) {
    rows.push(vec![what.into(), ours, unit.to_owned()]);
}

fn times(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
