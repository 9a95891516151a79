//! What thousands of segments take: time to set them up, memory, and whether frames notice how many there are (3.2).

use weft_scenario::record::SegmentRow;
use weft_scenario::workload::vxlan::{SegmentStore, SegmentsSpec};

use super::{MEGABYTE, cell, cell_with_interval, scales};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::{Findings, Table};
use crate::plan::PlanSpec;

/// Above this cost over that of the fewest segments the curve has bent.
const KNEE: f64 = 1.1;

/// What this analysis yields, with what holds the segments and, except for the knee, their number behind the name.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo { name: "setup_ms", meaning: "time to set all segments up on one server, ms" },
    MetricInfo { name: "setup_speedup", meaning: "that of one kernel device per VNI over this one's, same number" },
    MetricInfo { name: "removal_ms", meaning: "time to remove all segments of one server, ms" },
    MetricInfo { name: "memory_mb", meaning: "memory that all segments take on one server, MB" },
    MetricInfo {
        name: "frame_ns",
        meaning: "CPU time per frame of the whole chain, traffic over all active segments, ns",
    },
    MetricInfo { name: "rate_ratio", meaning: "frames per CPU second over those with the fewest segments" },
    MetricInfo {
        name: "net_rate_ratio",
        meaning: "the same without what as many ports by themselves cost more (`ports`, a plain switch)",
    },
    MetricInfo { name: "loss", meaning: "lost of sent" },
    MetricInfo { name: "latency_p50_us", meaning: "median one-way latency, us" },
    MetricInfo {
        name: "knee",
        meaning: "fewest segments at which a frame costs a tenth more than with the fewest; 0: none",
    },
    MetricInfo { name: "calibration_error", meaning: "how far off a known CPU cost was read, over that cost" },
];

const OF_STEPS: [&str; 9] = [
    "setup_ms",
    "setup_speedup",
    "removal_ms",
    "memory_mb",
    "frame_ns",
    "rate_ratio",
    "net_rate_ratio",
    "loss",
    "latency_p50_us",
];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "vxlan-segments", "segments")?;
    match spec.workload.len() {
        1 => Ok(()),
        _ => Err("analysis `vxlan-segments` takes one workload".to_owned()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = vec!["calibration_error".to_owned()];
    for (_, scale) in scales(spec) {
        for store in &scale.stores {
            names.push(format!("knee.{}", store.name()));
            let step = |metric: &str| {
                scale.segments.iter().map(move |count| format!("{metric}.{}.{count}", store.name())).collect::<Vec<_>>()
            };
            names.extend(OF_STEPS.iter().flat_map(|metric| step(metric)));
        }
    }
    names
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = Findings::default();
    super::put_empty(&mut findings, input, |trial| trial.records.segments.is_empty());
    for (workload, scale) in scales(input.spec) {
        for store in &scale.stores {
            for count in &scale.segments {
                put_step(&mut findings, input, workload, scale, *store, *count);
            }
            super::put(&mut findings, input, workload, &format!("knee.{}", store.name()), |trial| {
                knee(trial, scale, *store)
            });
        }
        let table = table(&findings, scale);
        findings.tables.push(table);
    }
    super::put_calibration(&mut findings, input);
    findings
}

fn put_step(
    findings: &mut Findings,
    input: &Input<'_>,
    workload: &str,
    scale: &SegmentsSpec,
    store: SegmentStore,
    count: u32,
) {
    let mut put = |name: &str, number: &dyn Fn(&TrialRecords) -> Option<f64>| {
        super::put(findings, input, workload, &format!("{name}.{}.{count}", store.name()), number);
    };
    put("setup_ms", &|trial| row(trial, store, count).map(|row| row.setup_ns as f64 / 1e6));
    put("setup_speedup", &|trial| {
        let devices = row(trial, SegmentStore::KernelDevices, count)?;
        Some(devices.setup_ns as f64 / row(trial, store, count)?.setup_ns.max(1) as f64)
    });
    put("removal_ms", &|trial| {
        row(trial, store, count).filter(|row| row.removal_ns > 0).map(|row| row.removal_ns as f64 / 1e6)
    });
    put("memory_mb", &|trial| row(trial, store, count).map(|row| row.memory_bytes as f64 / MEGABYTE));
    put("frame_ns", &|trial| row(trial, store, count).and_then(cost_ns));
    put("rate_ratio", &|trial| Some(cost_ns(fewest(trial, scale, store)?)? / cost_ns(row(trial, store, count)?)?));
    put("net_rate_ratio", &|trial| {
        let ports = row(trial, SegmentStore::Ports, count).and_then(cost_ns)?;
        let grown = ports - fewest(trial, scale, SegmentStore::Ports).and_then(cost_ns)?;
        let net = row(trial, store, count).and_then(cost_ns)? - grown.max(0.0);
        Some(fewest(trial, scale, store).and_then(cost_ns)? / net).filter(|_| net > 0.0)
    });
    put("loss", &|trial| {
        let row = row(trial, store, count).filter(|row| row.sent_frames > 0)?;
        Some(1.0 - row.received_frames.min(row.sent_frames) as f64 / row.sent_frames as f64)
    });
    put("latency_p50_us", &|trial| {
        row(trial, store, count).filter(|row| row.latency_p50_ns > 0).map(|row| row.latency_p50_ns as f64 / 1e3)
    });
}

fn row(trial: &TrialRecords, store: SegmentStore, count: u32) -> Option<&SegmentRow> {
    trial.records.segments.iter().find(|row| row.store == store.name() && row.segments == count)
}

fn fewest<'a>(trial: &'a TrialRecords, scale: &SegmentsSpec, store: SegmentStore) -> Option<&'a SegmentRow> {
    row(trial, store, *scale.segments.iter().min()?)
}

fn cost_ns(row: &SegmentRow) -> Option<f64> {
    Some(row.chain_ns_per_frame).filter(|ns| *ns > 0.0)
}

fn knee(trial: &TrialRecords, scale: &SegmentsSpec, store: SegmentStore) -> Option<f64> {
    let base = cost_ns(fewest(trial, scale, store)?)?;
    let bent = scale
        .segments
        .iter()
        .filter(|count| row(trial, store, **count).and_then(cost_ns).is_some_and(|ns| ns > base * KNEE));
    Some(bent.min().map_or(0.0, |count| f64::from(*count)))
}

fn table(findings: &Findings, scale: &SegmentsSpec) -> Table {
    let headings = [
        "held by",
        "segments",
        "set-up (ms)",
        "faster than a device each",
        "removal (ms)",
        "memory (MB)",
        "CPU per frame (ns)",
        "rate over the fewest",
        "loss",
        "latency p50 (us)",
    ];
    let line = |store: &SegmentStore, count: &u32| {
        let of = |metric: &str| cell(findings, &format!("{metric}.{}.{count}", store.name()));
        let spread = |metric: &str| cell_with_interval(findings, &format!("{metric}.{}.{count}", store.name()));
        let name = store.name().to_owned();
        vec![
            name,
            count.to_string(),
            of("setup_ms"),
            of("setup_speedup"),
            of("removal_ms"),
            of("memory_mb"),
            spread("frame_ns"),
            of("rate_ratio"),
            of("loss"),
            of("latency_p50_us"),
        ]
    };
    let rows =
        scale.stores.iter().flat_map(|store| scale.segments.iter().map(move |count| line(store, count))).collect();
    Table { title: "Many segments".into(), headings: headings.map(str::to_owned).to_vec(), rows }
}
