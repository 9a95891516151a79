//! Traffic model B of the VXLAN draft (3.1): VMs of one server send to those of another, without and with VXLAN.
//!
//! The draft compares unlike with unlike: without VXLAN it is model A at 1518 bytes, with it model B at 1450. Here both are
//! model B; whether sizes are the same or paired as in the draft is the workload's choice.

use weft_scenario::record::{OfferedRow, ServerRow};
use weft_scenario::workload::vxlan::{Path, ServersSpec};

use super::model_a::OFFERED;
use super::{bits_per_s, cell_with_interval, loss_ratio, received_per_s, server_pairs, server_row, vm_cpu_share};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Findings, Table};
use crate::plan::PlanSpec;
use crate::stats;

/// Rows of all pairs of VMs at once.
pub const PAIRS: &str = "pairs";
/// Rows of latency.
pub const LATENCY: &str = "latency";

/// What this analysis yields. Behind each name stand the workload and the way; behind those of a server that and, where it
/// is one size's, the size without VXLAN.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "cpu_increase_percent",
        meaning: "CPU of the whole server over the same without VXLAN, minus 1, percent; mean of all sizes",
    },
    MetricInfo {
        name: "switch_ratio",
        meaning: "CPU of the server minus that of its VMs over the same without VXLAN; mean of all sizes",
    },
    MetricInfo { name: "vm_change_percent", meaning: "the same increase of the VMs alone, percent; mean of all sizes" },
    MetricInfo {
        name: "memory_change_percent",
        meaning: "memory of the first server over the same without VXLAN, minus 1, percent; mean of all sizes",
    },
    MetricInfo {
        name: "extra_over_kernel",
        meaning: "CPU that our VXLAN adds to both servers over what the kernel's adds; mean of all sizes",
    },
    MetricInfo { name: "delivered_at_half", meaning: "received of sent at half the benchmark, least of all sizes" },
    MetricInfo { name: "loss_at_benchmark", meaning: "lost of sent at the benchmark, median of all sizes" },
    MetricInfo {
        name: "vm_cpu_at_loss",
        meaning: "least share of a core that the receiving VMs had where more was lost than allowed",
    },
    MetricInfo {
        name: "collapse",
        meaning: "received at the highest rate offered over the most received, median of all sizes",
    },
    MetricInfo {
        name: "pairs_ratio",
        meaning: "bits received by all pairs of VMs over the same without VXLAN, largest size",
    },
    MetricInfo { name: "pairs_bps", meaning: "bits per second received by all pairs of VMs, largest size" },
    MetricInfo {
        name: "latency_p50_us",
        meaning: "median one-way latency without the test centre's own, mean of all sizes, us",
    },
    MetricInfo { name: "latency_ratio", meaning: "that over the same without VXLAN" },
    MetricInfo { name: "calibration_error", meaning: "how far off a known CPU cost was read, over that cost" },
];

const SERVERS: [&str; 2] = ["server1", "server2"];
const OF_SERVERS: [&str; 3] = ["cpu_increase_percent", "switch_ratio", "vm_change_percent"];
const OF_OTHERS: [&str; 3] = ["memory_change_percent", "pairs_ratio", "latency_ratio"];
const OF_PATHS: [&str; 6] =
    ["delivered_at_half", "loss_at_benchmark", "vm_cpu_at_loss", "collapse", "pairs_bps", "latency_p50_us"];

/// The draft's table of CPU increase, percent: bytes with VXLAN, server 1 and 2 as printed, the same from its own tables.
const DRAFT: [(u32, [f64; 4]); 6] = [
    (0, [4.04, 24.65, 1.98, -10.89]),
    (128, [7.57, 7.26, 5.09, 10.16]),
    (256, [1.15, 7.59, 2.39, 3.68]),
    (512, [8.66, 2.41, 5.34, 3.58]),
    (1024, [4.49, 0.14, 6.05, -2.96]),
    (1450, [11.61, 1.84, 9.10, 0.12]),
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "vxlan-model-b", "servers")
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = vec!["calibration_error".to_owned()];
    for (workload, servers) in server_pairs(spec) {
        names.push(format!("extra_over_kernel.{workload}"));
        for path in servers.paths.iter().map(|path| path.name()) {
            names.extend(OF_PATHS.iter().chain(&OF_OTHERS).map(|metric| format!("{metric}.{workload}.{path}")));
            for server in SERVERS {
                let whole = OF_SERVERS.map(|metric| format!("{metric}.{workload}.{path}.{server}"));
                let sizes = servers.frame_bytes.iter();
                names.extend(sizes.map(|bytes| format!("cpu_increase_percent.{workload}.{path}.{server}.{bytes}")));
                names.extend(whole);
            }
        }
    }
    names
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    super::put_empty(&mut findings, input, |trial| {
        trial.records.servers.is_empty() && trial.records.offered.is_empty()
    });
    for (workload, servers) in server_pairs(input.spec) {
        for path in &servers.paths {
            put_path(&mut findings, input, workload, servers, *path);
        }
        for path in &servers.paths[1..] {
            put_against_plain(&mut findings, input, workload, servers, *path);
        }
        super::put(&mut findings, input, workload, &format!("extra_over_kernel.{workload}"), |trial| {
            extra_over_kernel(trial, servers)
        });
        let table = table(&findings, workload, servers);
        findings.tables.push(table);
    }
    super::put_calibration(&mut findings, input);
    findings
}

fn put_path(findings: &mut Findings, input: &Input<'_>, workload: &str, servers: &ServersSpec, path: Path) {
    let mut put = |name: &str, number: &dyn Fn(&TrialRecords) -> Option<f64>| {
        super::put(findings, input, workload, &format!("{name}.{workload}.{}", path.name()), number);
    };
    let of_sizes = |number: &dyn Fn(u32) -> Option<f64>| {
        (0..servers.frame_bytes.len()).filter_map(|place| number(servers.size_on(path, place))).collect::<Vec<f64>>()
    };
    put("delivered_at_half", &|trial| {
        let delivered = of_sizes(&|bytes| Some(1.0 - loss_ratio(offered(trial, path, bytes, 50)?)?));
        delivered.into_iter().reduce(f64::min)
    });
    put("loss_at_benchmark", &|trial| stats::median(&of_sizes(&|bytes| loss_ratio(offered(trial, path, bytes, 100)?))));
    put("vm_cpu_at_loss", &|trial| vm_cpu_at_loss(trial, path, f64::from(servers.loss_percent) / 100.0));
    put("collapse", &|trial| {
        stats::median(&of_sizes(&|bytes| super::model_a::collapse(&trial.records.offered, path.name(), bytes)))
    });
    put("pairs_bps", &|trial| pairs_bps(trial, servers, path));
    put("latency_p50_us", &|trial| latency_us(trial, servers, path));
}

/// What a way adds to the first one.
fn put_against_plain(findings: &mut Findings, input: &Input<'_>, workload: &str, servers: &ServersSpec, path: Path) {
    let plain = servers.paths[0];
    let mut put = |name: String, number: &dyn Fn(&TrialRecords) -> Option<f64>| {
        super::put(findings, input, workload, &name, number);
    };
    let name = path.name();
    for server in SERVERS {
        let mean = |trial: &TrialRecords, number: fn(&ServerRow, &ServerRow) -> f64| {
            let of_size = |place: usize| {
                let (with, without) = both(trial, servers, path, server, place)?;
                Some(number(with, without)).filter(|value| value.is_finite())
            };
            stats::mean(&(0..servers.frame_bytes.len()).filter_map(of_size).collect::<Vec<_>>())
        };
        put(format!("cpu_increase_percent.{workload}.{name}.{server}"), &|trial| mean(trial, cpu_increase));
        put(format!("switch_ratio.{workload}.{name}.{server}"), &|trial| mean(trial, switch_ratio));
        put(format!("vm_change_percent.{workload}.{name}.{server}"), &|trial| mean(trial, vm_change));
        for (place, bytes) in servers.frame_bytes.iter().enumerate() {
            put(format!("cpu_increase_percent.{workload}.{name}.{server}.{bytes}"), &|trial| {
                both(trial, servers, path, server, place).map(|(with, without)| cpu_increase(with, without))
            });
        }
    }
    put(format!("memory_change_percent.{workload}.{name}"), &|trial| {
        let of_size = |place: usize| {
            let (with, without) = both(trial, servers, path, SERVERS[0], place)?;
            Some(percent(with.server_memory_bytes as f64, without.server_memory_bytes as f64))
        };
        stats::mean(&(0..servers.frame_bytes.len()).filter_map(of_size).collect::<Vec<_>>())
    });
    put(format!("pairs_ratio.{workload}.{name}"), &|trial| {
        Some(pairs_bps(trial, servers, path)? / pairs_bps(trial, servers, plain)?)
    });
    put(format!("latency_ratio.{workload}.{name}"), &|trial| {
        Some(latency_us(trial, servers, path)? / latency_us(trial, servers, plain)?)
    });
}

/// A server's rows with and without, at the `place`-th size.
fn both<'a>(
    trial: &'a TrialRecords,
    servers: &ServersSpec,
    path: Path,
    server: &str,
    place: usize,
) -> Option<(&'a ServerRow, &'a ServerRow)> {
    let row = |path: Path| server_row(trial, path.name(), server, servers.size_on(path, place));
    Some((row(path)?, row(servers.paths[0])?))
}

fn percent(with: f64, without: f64) -> f64 {
    (with / without - 1.0) * 100.0
}

fn cpu_increase(with: &ServerRow, without: &ServerRow) -> f64 {
    percent(with.server_cores, without.server_cores)
}

fn vm_change(with: &ServerRow, without: &ServerRow) -> f64 {
    percent(with.vm_cores, without.vm_cores)
}

fn switch_ratio(with: &ServerRow, without: &ServerRow) -> f64 {
    (with.server_cores - with.vm_cores) / (without.server_cores - without.vm_cores)
}

/// Nanoseconds per frame that our VTEP adds to both servers over those that the kernel's device adds, each counted from
/// the plain switch at its own hook if the plan has that, otherwise from the first way.
fn extra_over_kernel(trial: &TrialRecords, servers: &ServersSpec) -> Option<f64> {
    let cost = |path: Path, place: usize| {
        let bytes = servers.size_on(path, place);
        let of = |server: &str| server_row(trial, path.name(), server, bytes).map(|row| row.server_ns_per_frame);
        Some(of(SERVERS[0])? + of(SERVERS[1])?)
    };
    let extra = |path: Path, place: usize| {
        let plain = Some(path.plain()).filter(|plain| servers.paths.contains(plain)).unwrap_or(servers.paths[0]);
        Some(cost(path, place)? - cost(plain, place)?)
    };
    let sums = |path: Path| (0..servers.frame_bytes.len()).map(|place| extra(path, place)).sum::<Option<f64>>();
    Some(sums(Path::Vxlan)? / sums(Path::KernelVxlan).filter(|kernel| *kernel > 0.0)?)
}

fn offered(trial: &TrialRecords, path: Path, bytes: u32, percent: u32) -> Option<&OfferedRow> {
    trial.records.offered.iter().find(|row| {
        row.kind == OFFERED && row.path == path.name() && row.frame_bytes == bytes && row.offered_percent == percent
    })
}

fn vm_cpu_at_loss(trial: &TrialRecords, path: Path, most: f64) -> Option<f64> {
    let rows = trial.records.offered.iter().filter(|row| row.kind == OFFERED && row.path == path.name());
    let lossy = rows.filter(|row| loss_ratio(row).is_some_and(|loss| loss > most));
    lossy.map(vm_cpu_share).reduce(f64::min)
}

fn pairs_bps(trial: &TrialRecords, servers: &ServersSpec, path: Path) -> Option<f64> {
    let bytes = servers.size_on(path, servers.frame_bytes.len() - 1);
    let is_it = |row: &&OfferedRow| row.kind == PAIRS && row.path == path.name() && row.frame_bytes == bytes;
    let row = trial.records.offered.iter().find(is_it)?;
    Some(bits_per_s(received_per_s(row), bytes)).filter(|bps| *bps > 0.0)
}

fn latency_us(trial: &TrialRecords, servers: &ServersSpec, path: Path) -> Option<f64> {
    let of_size = |place: usize| {
        let bytes = servers.size_on(path, place);
        let is_it = |row: &&OfferedRow| row.kind == LATENCY && row.path == path.name() && row.frame_bytes == bytes;
        let row = trial.records.offered.iter().find(is_it).filter(|row| row.received_frames > 0)?;
        Some(row.latency_p50_ns.saturating_sub(row.floor_p50_ns) as f64 / 1e3)
    };
    stats::mean(&(0..servers.frame_bytes.len()).filter_map(of_size).collect::<Vec<_>>()).filter(|us| *us > 0.0)
}

/// The draft's table of CPU increase with our numbers and its own, as printed and as its other tables have it.
fn table(findings: &Findings, workload: &str, servers: &ServersSpec) -> Table {
    let mut headings = vec!["bytes".to_owned()];
    for path in &servers.paths[1..] {
        headings.extend(SERVERS.map(|server| format!("{server}, {} (%)", path.name())));
    }
    headings.extend(["draft, printed: server 1 / 2 (%)", "draft, from its tables (%)"].map(str::to_owned));
    let line = |place: usize| {
        let bytes = servers.frame_bytes[place];
        let with =
            servers.paths.iter().find(|path| path.is_vxlan()).map_or(bytes, |path| servers.size_on(*path, place));
        let label = if with == bytes { bytes.to_string() } else { format!("{bytes} and {with}") };
        let mut cells = vec![label];
        for path in &servers.paths[1..] {
            let metric = |server: &str| format!("cpu_increase_percent.{workload}.{}.{server}.{bytes}", path.name());
            cells.extend(SERVERS.map(|server| cell_with_interval(findings, &metric(server))));
        }
        let draft = DRAFT.iter().find(|row| row.0 == bytes || row.0 == with).map(|row| row.1);
        let pair = |a: usize| draft.map_or_else(|| "-".to_owned(), |row| format!("{} / {}", row[a], row[a + 1]));
        cells.extend([pair(0), pair(2)]);
        cells
    };
    Table {
        title: format!("CPU increase with VXLAN: {workload}"),
        headings,
        rows: (0..servers.frame_bytes.len()).map(line).collect(),
    }
}
