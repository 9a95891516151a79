//! CPU cost of every way between two virtual switches, beside the plain switch at the same hook.

use weft_scenario::workload::vxlan::{MatrixSpec, Path};

use super::{cell_with_interval, matrices};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Findings, Table};
use crate::plan::PlanSpec;
use crate::stats;

/// What this analysis yields, with the way and, where it is one size's, the size behind the name.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "path_ns",
        meaning: "CPU time per frame between the test centre's ports, ns; mean of all sizes",
    },
    MetricInfo {
        name: "extra_ns",
        meaning: "CPU time per frame over the plain switch at the same hook, ns; mean of all sizes",
    },
    MetricInfo { name: "extra_percent", meaning: "the same over the whole chain with the plain switch, percent" },
    MetricInfo {
        name: "extra_over_kernel",
        meaning: "extra CPU over the plain switch at the same hook / extra CPU of kernel VXLAN over the kernel's bridge",
    },
    MetricInfo {
        name: "over_bridge",
        meaning: "CPU time per frame over that of the kernel's bridge; mean of all sizes",
    },
    MetricInfo {
        name: "kernel_over",
        meaning: "CPU time per frame of kernel VXLAN and bridge over this way's, same sizes",
    },
    MetricInfo { name: "calibration_error", meaning: "how far off a known CPU cost was read, over that cost" },
];

const OF_PATHS: [&str; 6] = ["path_ns", "extra_ns", "extra_percent", "extra_over_kernel", "over_bridge", "kernel_over"];
const OF_SIZES: [&str; 2] = ["path_ns", "extra_ns"];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "vxlan-encapsulations", "matrix")?;
    match spec.workload.len() {
        1 => Ok(()),
        _ => Err("analysis `vxlan-encapsulations` takes one workload".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = vec!["calibration_error".to_owned()];
    for (_, matrix) in matrices(spec) {
        for path in matrix.paths.iter().map(|path| path.name()) {
            names.extend(OF_PATHS.map(|metric| format!("{metric}.{path}")));
            let sized = |metric: &str| {
                matrix.frame_bytes.iter().map(move |bytes| format!("{metric}.{path}.{bytes}")).collect::<Vec<_>>()
            };
            names.extend(OF_SIZES.iter().flat_map(|metric| sized(metric)));
        }
    }
    names
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    super::put_empty(&mut findings, input, |trial| trial.records.chains.is_empty());
    for (workload, matrix) in matrices(input.spec) {
        for path in &matrix.paths {
            put_path(&mut findings, input, workload, matrix, *path);
        }
        let table = table(&findings, matrix);
        findings.tables.push(table);
    }
    super::put_calibration(&mut findings, input);
    findings
}

fn put_path(findings: &mut Findings, input: &Input<'_>, workload: &str, matrix: &MatrixSpec, path: Path) {
    let mut put = |name: String, number: &dyn Fn(&TrialRecords) -> Option<f64>| {
        super::put(findings, input, workload, &name, number);
    };
    let (name, plain) = (path.name(), path.plain());
    let mean = |number: &dyn Fn(u32) -> Option<f64>| {
        stats::mean(&matrix.frame_bytes.iter().filter_map(|bytes| number(*bytes)).collect::<Vec<_>>())
    };
    let extra = |trial: &TrialRecords, path: Path| {
        mean(&|bytes| Some(chain_ns(trial, path, bytes)? - chain_ns(trial, path.plain(), bytes)?))
    };
    put(format!("path_ns.{name}"), &|trial| mean(&|bytes| path_ns(trial, path, bytes)));
    for bytes in &matrix.frame_bytes {
        put(format!("path_ns.{name}.{bytes}"), &|trial| path_ns(trial, path, *bytes));
    }
    put(format!("over_bridge.{name}"), &|trial| {
        mean(&|bytes| Some(path_ns(trial, path, bytes)? / path_ns(trial, Path::Bridge, bytes)?))
    });
    put(format!("kernel_over.{name}"), &|trial| {
        mean(&|bytes| Some(path_ns(trial, Path::KernelVxlan, bytes)? / path_ns(trial, path, bytes)?))
    });
    if path == plain {
        return;
    }
    put(format!("extra_ns.{name}"), &|trial| extra(trial, path));
    for bytes in &matrix.frame_bytes {
        put(format!("extra_ns.{name}.{bytes}"), &|trial| {
            Some(chain_ns(trial, path, *bytes)? - chain_ns(trial, plain, *bytes)?)
        });
    }
    put(format!("extra_percent.{name}"), &|trial| {
        mean(&|bytes| Some((chain_ns(trial, path, bytes)? / chain_ns(trial, plain, bytes)? - 1.0) * 100.0))
    });
    put(format!("extra_over_kernel.{name}"), &|trial| {
        Some(extra(trial, path)? / extra(trial, Path::KernelVxlan).filter(|kernel| *kernel > 0.0)?)
    });
}

/// Test centre and all.
fn chain_ns(trial: &TrialRecords, path: Path, bytes: u32) -> Option<f64> {
    way_ns(trial, path.name(), bytes)
}

/// What lies between its ports.
fn path_ns(trial: &TrialRecords, path: Path, bytes: u32) -> Option<f64> {
    Some(chain_ns(trial, path, bytes)? - way_ns(trial, "", bytes)?).filter(|ns| *ns > 0.0)
}

fn way_ns(trial: &TrialRecords, way: &str, bytes: u32) -> Option<f64> {
    let row = trial.records.chains.iter().find(|row| row.way == way && row.frame_bytes == bytes)?;
    Some(row.chain_ns_per_frame)
}

fn table(findings: &Findings, matrix: &MatrixSpec) -> Table {
    let sizes = matrix.frame_bytes.iter().map(|bytes| format!("{bytes} B (ns)"));
    let headings = std::iter::once("way".to_owned())
        .chain(sizes)
        .chain(["extra over the plain switch (ns)", "extra over kernel VXLAN's", "over the bridge"].map(str::to_owned));
    let line = |path: &Path| {
        let name = path.name();
        let of = |metric: &str| cell_with_interval(findings, &format!("{metric}.{name}"));
        let sizes = matrix.frame_bytes.iter().map(|bytes| of_size(findings, name, *bytes));
        let tail = ["extra_ns", "extra_over_kernel", "over_bridge"].map(of);
        std::iter::once(name.to_owned()).chain(sizes).chain(tail).collect()
    };
    Table {
        title: "CPU time per frame between the test centre's ports".into(),
        headings: headings.collect(),
        rows: matrix.paths.iter().map(line).collect(),
    }
}

fn of_size(findings: &Findings, path: &str, bytes: u32) -> String {
    super::cell(findings, &format!("path_ns.{path}.{bytes}"))
}
