//! Traffic model A of the VXLAN draft (2.5): the test centre sends to the VMs of one server. Which rate does it carry at
//! each size of frames, where does that bend, and what CPU and memory does it take?

use weft_scenario::record::OfferedRow;
use weft_scenario::workload::vxlan::BenchmarkSpec;

use super::{MEGABYTE, benchmarks, bits_per_s, cell, loss_ratio, received_per_s, server_row};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Findings, Table};
use crate::plan::PlanSpec;
use crate::stats;

/// Rows of the search for the benchmark.
pub const SEARCH: &str = "search";
/// Rows of rates around it.
pub const OFFERED: &str = "offered";

/// What this analysis yields. Those of one size have it behind their names; size 0 is an idle server.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "rate_bps",
        meaning: "benchmark of the lower server: highest rate within the loss, bit/s with FCS",
    },
    MetricInfo { name: "server_mhz", meaning: "CPU of the first server at its benchmark, MHz of a core" },
    MetricInfo { name: "vm_mhz", meaning: "CPU of its VMs, MHz" },
    MetricInfo { name: "switch_mhz", meaning: "CPU of the server minus that of its VMs, MHz" },
    MetricInfo { name: "server_memory_mb", meaning: "memory of the server with its VMs, MB" },
    MetricInfo { name: "vm_memory_mb", meaning: "memory of the VMs, MB" },
    MetricInfo { name: "vm_share", meaning: "CPU of the VMs over that of the server, mean of all sizes" },
    MetricInfo { name: "memory_change", meaning: "largest difference of the server's memory from idle, over idle" },
    MetricInfo {
        name: "inflection_found",
        meaning: "share of sizes with a rate that holds and a higher one that does not",
    },
    MetricInfo { name: "collapse", meaning: "received at the highest rate offered over the most received" },
    MetricInfo { name: "calibration_error", meaning: "how far off a known CPU cost was read, over that cost" },
];

const OF_A_SIZE: [&str; 6] = ["rate_bps", "server_mhz", "vm_mhz", "switch_mhz", "server_memory_mb", "vm_memory_mb"];
const OF_ALL: [&str; 5] = ["vm_share", "memory_change", "inflection_found", "collapse", "calibration_error"];
/// Model A of the draft has no VXLAN.
const PATH: &str = "bridge";
const SERVERS: [&str; 2] = ["server1", "server2"];
const FIRST: &str = "server1";

/// The draft's table of server 1: bytes, Gbit/s, server MHz, server MB, VM MHz, VM MB.
const DRAFT: [(u32, f64, u32, u32, u32, u32); 6] = [
    (0, 0.0, 505, 3022, 372, 695),
    (128, 0.46, 6085, 3021, 5836, 695),
    (256, 0.84, 6365, 3021, 6143, 696),
    (512, 1.56, 6330, 3021, 6099, 696),
    (1024, 2.88, 5922, 3021, 5726, 696),
    (1518, 4.00, 5713, 3023, 5441, 696),
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "vxlan-model-a", "benchmark")?;
    match spec.workload.len() {
        1 => Ok(()),
        _ => Err("analysis `vxlan-model-a` takes one workload".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names: Vec<String> = OF_ALL.map(str::to_owned).to_vec();
    for (_, benchmark) in benchmarks(spec) {
        let all = sizes(benchmark);
        names.extend(OF_A_SIZE.iter().flat_map(|metric| all.iter().map(move |bytes| format!("{metric}.{bytes}"))));
        names.extend(benchmark.frame_bytes.iter().map(|bytes| format!("collapse.{bytes}")));
    }
    names
}

/// Idle, then the plan's.
fn sizes(benchmark: &BenchmarkSpec) -> Vec<u32> {
    std::iter::once(0).chain(benchmark.frame_bytes.iter().copied()).collect()
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    super::put_empty(&mut findings, input, |trial| trial.records.servers.is_empty());
    for (workload, benchmark) in benchmarks(input.spec) {
        for bytes in sizes(benchmark) {
            put_size(&mut findings, input, workload, bytes);
        }
        let mut put = |name: &str, number: &dyn Fn(&TrialRecords) -> Option<f64>| {
            super::put(&mut findings, input, workload, name, number);
        };
        put("vm_share", &|trial| vm_share(trial, benchmark));
        put("memory_change", &|trial| memory_change(trial, benchmark));
        put("inflection_found", &|trial| Some(inflections(trial, benchmark)));
        put("collapse", &|trial| {
            let of_sizes: Vec<f64> = benchmark
                .frame_bytes
                .iter()
                .filter_map(|bytes| collapse(&trial.records.offered, PATH, *bytes))
                .collect();
            stats::median(&of_sizes)
        });
        for bytes in &benchmark.frame_bytes {
            put(&format!("collapse.{bytes}"), &|trial| collapse(&trial.records.offered, PATH, *bytes));
        }
        let table = table(&findings, benchmark);
        findings.tables.push(table);
    }
    super::put_calibration(&mut findings, input);
    findings
}

fn put_size(findings: &mut Findings, input: &Input<'_>, workload: &str, bytes: u32) {
    let mut put = |name: &str, number: &dyn Fn(&TrialRecords) -> Option<f64>| {
        super::put(findings, input, workload, &format!("{name}.{bytes}"), number);
    };
    put("rate_bps", &|trial| {
        let rates = SERVERS.iter().filter_map(|server| Some(server_row(trial, PATH, server, bytes)?.frames_per_s));
        rates.reduce(f64::min).map(|rate| bits_per_s(rate, bytes))
    });
    put("server_mhz", &|trial| server_row(trial, PATH, FIRST, bytes).map(|row| row.server_cores * row.core_mhz));
    put("vm_mhz", &|trial| server_row(trial, PATH, FIRST, bytes).map(|row| row.vm_cores * row.core_mhz));
    put("switch_mhz", &|trial| {
        server_row(trial, PATH, FIRST, bytes).map(|row| (row.server_cores - row.vm_cores) * row.core_mhz)
    });
    put("server_memory_mb", &|trial| {
        server_row(trial, PATH, FIRST, bytes).map(|row| row.server_memory_bytes as f64 / MEGABYTE)
    });
    put("vm_memory_mb", &|trial| {
        server_row(trial, PATH, FIRST, bytes).map(|row| row.vm_memory_bytes as f64 / MEGABYTE)
    });
}

fn vm_share(trial: &TrialRecords, benchmark: &BenchmarkSpec) -> Option<f64> {
    let share = |bytes: &u32| {
        let row = server_row(trial, PATH, FIRST, *bytes)?;
        (row.server_ns_per_frame > 0.0).then(|| row.vm_ns_per_frame / row.server_ns_per_frame)
    };
    stats::mean(&benchmark.frame_bytes.iter().filter_map(share).collect::<Vec<_>>())
}

fn memory_change(trial: &TrialRecords, benchmark: &BenchmarkSpec) -> Option<f64> {
    let memory = |bytes: u32| server_row(trial, PATH, FIRST, bytes).map(|row| row.server_memory_bytes as f64);
    let idle = memory(0).filter(|idle| *idle > 0.0)?;
    let changes = benchmark.frame_bytes.iter().filter_map(|bytes| Some((memory(*bytes)? - idle).abs() / idle));
    changes.reduce(f64::max)
}

/// The share of sizes whose search has bounds on both sides.
fn inflections(trial: &TrialRecords, benchmark: &BenchmarkSpec) -> f64 {
    let most = f64::from(benchmark.loss_percent) / 100.0;
    let found = |bytes: &&u32| {
        let rows = || trial.records.offered.iter().filter(|row| row.kind == SEARCH && row.frame_bytes == **bytes);
        let held = |row: &&OfferedRow| loss_ratio(row).is_some_and(|loss| loss <= most);
        let best = rows().filter(held).map(|row| row.asked_per_s).reduce(f64::max);
        best.is_some_and(|best| rows().any(|row| !held(&row) && row.asked_per_s > best))
    };
    benchmark.frame_bytes.iter().filter(found).count() as f64 / benchmark.frame_bytes.len().max(1) as f64
}

/// What arrives at the highest rate offered over the most that arrived at any.
pub(super) fn collapse(rows: &[OfferedRow], path: &str, bytes: u32) -> Option<f64> {
    let of = |row: &&OfferedRow| {
        matches!(row.kind.as_str(), SEARCH | OFFERED)
            && row.path == path
            && row.frame_bytes == bytes
            && row.sent_frames > 0
    };
    let sent = |row: &&OfferedRow| row.sent_frames as f64 / row.wall_ns.max(1) as f64;
    let most = rows.iter().filter(of).map(received_per_s).reduce(f64::max).filter(|most| *most > 0.0)?;
    let flood = rows.iter().filter(of).max_by(|a, b| sent(a).total_cmp(&sent(b)))?;
    Some(received_per_s(flood) / most)
}

/// The draft's table with our numbers and, behind them, its own.
fn table(findings: &Findings, benchmark: &BenchmarkSpec) -> Table {
    let line = |bytes: u32| {
        let of = |metric: &str| cell(findings, &format!("{metric}.{bytes}"));
        let rate = findings.metrics.get(&format!("rate_bps.{bytes}"));
        let rate = rate.map_or_else(|| "-".to_owned(), |rate| crate::table::plain(rate.value / 1e9));
        let draft = DRAFT.iter().find(|row| row.0 == bytes).map_or_else(
            || "-".to_owned(),
            |(_, rate, server, memory, vm, vm_memory)| format!("{rate} / {server} / {memory} / {vm} / {vm_memory}"),
        );
        let metrics = ["server_mhz", "server_memory_mb", "vm_mhz", "vm_memory_mb", "switch_mhz"].map(of);
        [vec![bytes.to_string(), rate], metrics.to_vec(), vec![draft]].concat()
    };
    let headings = [
        "bytes",
        "rate (Gbit/s)",
        "server CPU (MHz)",
        "server memory (MB)",
        "VM CPU (MHz)",
        "VM memory (MB)",
        "server minus VM (MHz)",
        "draft, server 1: rate / CPU / memory / VM CPU / VM memory",
    ];
    Table {
        title: "Traffic model A".into(),
        headings: headings.map(str::to_owned).to_vec(),
        rows: sizes(benchmark).into_iter().map(line).collect(),
    }
}
