//! The fast-path paper's Table I, with what it leaves to future work: latency, encapsulation, decapsulation.
//!
//! Fast is our programs in the driver, slow the same programs in the stack for TRILL and the kernel's bridge for Ethernet.

use weft_scenario::record::ChainRow;
use weft_scenario::workload::trill::{CostSpec, CrossingSpec, SpreadSpec, Way};

use super::{
    Metric, Number, chain_ns, costs, crossing, crossings, mean_of_sizes, path_ns, spreads, switch_ns, table_by_size,
};
use crate::analysis::trials::{put_calibration, put_empty};
use crate::analysis::{Input, MetricInfo, TrialRecords};
use crate::metric::Findings;
use crate::plan::PlanSpec;

/// What this analysis yields, with the way (or the protocol) and the size behind the name; without a size the mean of all.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: "mpps",
        meaning: "million frames per second of one core that crosses three switches and plays the test centre, CPU time",
    },
    MetricInfo { name: "gbps", meaning: "the same in Gbit/s of frames with FCS" },
    MetricInfo { name: "live_mpps", meaning: "the same in wall time, the best run" },
    MetricInfo { name: "live_gbps", meaning: "the same in Gbit/s of frames with FCS" },
    MetricInfo {
        name: "transit_mpps",
        meaning: "million frames per second that one core forwards at the middle switch",
    },
    MetricInfo { name: "transit_gbps", meaning: "the same in Gbit/s of frames with FCS" },
    MetricInfo { name: "encapsulation_ns", meaning: "CPU time per frame at S1, where TRILL begins, ns" },
    MetricInfo { name: "transit_ns", meaning: "CPU time per frame at the middle switch, ns" },
    MetricInfo { name: "decapsulation_ns", meaning: "CPU time per frame at S2, where TRILL ends, ns" },
    MetricInfo { name: "fast_over_slow", meaning: "frames per CPU second over all three switches, fast over slow" },
    MetricInfo { name: "fast_over_slow_live", meaning: "the same with the test centre on the same core" },
    MetricInfo { name: "fast_over_slow_transit", meaning: "the same at the middle switch alone" },
    MetricInfo {
        name: "trill_over_ethernet",
        meaning: "frames per CPU second over all three switches, TRILL over Ethernet, both fast or both slow",
    },
    MetricInfo {
        name: "bridge_over_trill",
        meaning: "CPU time per frame at the middle switch, kernel's bridge over TRILL",
    },
    MetricInfo { name: "p50_us", meaning: "median one-way latency over three switches, us" },
    MetricInfo { name: "latency_slow_over_fast", meaning: "median one-way latency, slow over fast" },
    MetricInfo { name: "spread_mpps", meaning: "million frames per second of wall time, by number of CPUs" },
    MetricInfo { name: "spread_gain", meaning: "the same over that without spreading" },
    MetricInfo { name: "spread_lost", meaning: "lost of sent: a CPU's queue was full" },
    MetricInfo {
        name: "spread_error",
        meaning: "largest difference of a CPU's share of frames from an even one, over the even one",
    },
    MetricInfo { name: "calibration_error", meaning: "how far off a known CPU cost was read, over that cost" },
];

/// A number of a trial at a size of frames.
type OfSize = Box<dyn Fn(&TrialRecords, u32) -> Option<f64>>;

const PROTOCOLS: [(&str, Way, Way); 2] =
    [("trill", Way::Trill, Way::TrillGeneric), ("ethernet", Way::Layer2, Way::Stp)];
const SPEEDS: [(&str, Way, Way); 2] = [("fast", Way::Trill, Way::Layer2), ("slow", Way::TrillGeneric, Way::Stp)];
const ROLES: [(&str, &str); 3] = [("encapsulation_ns", "s1"), ("transit_ns", "middle"), ("decapsulation_ns", "s2")];

/// What a plan must have for this analysis.
pub fn check(spec: &PlanSpec) -> Result<(), String> {
    super::check_only(spec, "trill-fast-path", &["cost", "crossing", "spread"])?;
    if costs(spec).count() != 1 || crossings(spec).count() > 1 || spreads(spec).count() > 1 {
        return Err("analysis `trill-fast-path` takes one workload of each experiment".to_owned());
    }
    match crossings(spec).any(|(_, crossing)| crossing.offers(crossing.frame_bytes[0]).len() != 1) {
        true => Err("analysis `trill-fast-path` takes one rate in the crossing".to_owned()),
        false => Ok(()),
    }
}

/// Names of all metrics of a plan.
pub fn names(spec: &PlanSpec) -> Vec<String> {
    let mut names = super::names_of(&metrics(spec));
    names.push("calibration_error".to_owned());
    names
}

/// Runs the analysis.
pub fn analyse(input: &Input<'_>) -> Findings {
    let mut findings = super::estimates(input, &metrics(input.spec));
    put_empty(&mut findings, input, |trial| {
        let told = trial.records.facts.iter().any(|(name, _)| name.starts_with("spread."));
        trial.records.chains.is_empty() && trial.records.crossings.is_empty() && !told
    });
    put_calibration(&mut findings, input);
    for (_, spec) in costs(input.spec) {
        for metric in ["live_gbps", "live_mpps", "mpps", "encapsulation_ns", "transit_ns", "decapsulation_ns", "p50_us"]
        {
            let column = |way: &Way| (way.name().to_owned(), format!("{metric}.{}.{{}}", way.name()));
            let columns: Vec<_> = spec.ways.iter().map(column).collect();
            findings.tables.push(table_by_size(&findings, metric.replace('_', " "), &spec.frame_bytes, &columns));
        }
    }
    for (_, spec) in spreads(input.spec) {
        let column = |metric: &str, cpus: &u32| (format!("{metric}, {cpus} CPUs"), format!("{metric}.{cpus}.{{}}"));
        let metrics = ["spread_mpps", "spread_gain", "spread_lost"];
        let columns: Vec<_> =
            metrics.iter().flat_map(|metric| spec.cpus.iter().map(move |cpus| column(metric, cpus))).collect();
        findings.tables.push(table_by_size(&findings, "Work spread over CPUs".into(), &spec.frame_bytes, &columns));
    }
    findings
}

fn metrics(spec: &PlanSpec) -> Vec<Metric<'_>> {
    let cost = |(workload, spec)| of_cost(workload, spec).into_iter().chain(ratios_of_cost(workload, spec));
    let mut all: Vec<Metric<'_>> = costs(spec).flat_map(cost).collect();
    all.extend(crossings(spec).flat_map(|(workload, spec)| of_latency(workload, spec)));
    all.extend(spreads(spec).flat_map(|(workload, spec)| of_spread(workload, spec)));
    all
}

fn of_cost<'a>(workload: &'a str, spec: &'a CostSpec) -> Vec<Metric<'a>> {
    let mut all = Vec::new();
    for (way, bytes) in spec.ways.iter().flat_map(|way| spec.frame_bytes.iter().map(move |bytes| (*way, *bytes))) {
        let mut add = |metric: &str, number: Number<'static>| {
            all.push(Metric::new(format!("{metric}.{}.{bytes}", way.name()), workload, number));
        };
        let gbps = move |mpps: f64| mpps * f64::from(bytes) * 8.0 / 1e3;
        let mpps = move |trial: &TrialRecords| Some(1e3 / chain_ns(trial, way.name(), "s2", bytes)?);
        let live = move |trial: &TrialRecords| Some(most_per_s(trial, way, bytes)? / 1e6);
        let transit = move |trial: &TrialRecords| Some(1e3 / switch_ns(trial, way, "middle", bytes)?);
        add("mpps", Box::new(mpps));
        add("gbps", Box::new(move |trial| mpps(trial).map(gbps)));
        add("live_mpps", Box::new(live));
        add("live_gbps", Box::new(move |trial| live(trial).map(gbps)));
        add("transit_mpps", Box::new(transit));
        add("transit_gbps", Box::new(move |trial| transit(trial).map(gbps)));
        for (metric, switch) in ROLES {
            add(metric, Box::new(move |trial| switch_ns(trial, way, switch, bytes)));
        }
    }
    all
}

/// One way over another: at each size, and the mean over all.
fn ratios_of_cost<'a>(workload: &'a str, spec: &'a CostSpec) -> Vec<Metric<'a>> {
    let mut all = Vec::new();
    let has = |ways: [Way; 2]| ways.iter().all(|way| spec.ways.contains(way));
    let mut ratio = |metric: String, number: OfSize| {
        let number = std::rc::Rc::new(number);
        for bytes in &spec.frame_bytes {
            let number = number.clone();
            all.push(Metric::new(format!("{metric}.{bytes}"), workload, move |trial| number(trial, *bytes)));
        }
        all.push(Metric::new(metric, workload, move |trial| {
            mean_of_sizes(&spec.frame_bytes, |bytes| number(trial, bytes))
        }));
    };
    for (protocol, fast, slow) in PROTOCOLS.into_iter().filter(|(_, fast, slow)| has([*fast, *slow])) {
        ratio(
            format!("fast_over_slow.{protocol}"),
            Box::new(move |trial, bytes| Some(path_ns(trial, slow, bytes)? / path_ns(trial, fast, bytes)?)),
        );
        ratio(
            format!("fast_over_slow_live.{protocol}"),
            Box::new(move |trial, bytes| {
                Some(chain_ns(trial, slow.name(), "s2", bytes)? / chain_ns(trial, fast.name(), "s2", bytes)?)
            }),
        );
        ratio(
            format!("fast_over_slow_transit.{protocol}"),
            Box::new(move |trial, bytes| {
                Some(switch_ns(trial, slow, "middle", bytes)? / switch_ns(trial, fast, "middle", bytes)?)
            }),
        );
    }
    for (speed, trill, ethernet) in SPEEDS.into_iter().filter(|(_, trill, ethernet)| has([*trill, *ethernet])) {
        ratio(
            format!("trill_over_ethernet.{speed}"),
            Box::new(move |trial, bytes| Some(path_ns(trial, ethernet, bytes)? / path_ns(trial, trill, bytes)?)),
        );
    }
    if has([Way::Trill, Way::Stp]) {
        ratio(
            "bridge_over_trill".into(),
            Box::new(|trial, bytes| {
                Some(switch_ns(trial, Way::Stp, "middle", bytes)? / switch_ns(trial, Way::Trill, "middle", bytes)?)
            }),
        );
    }
    all
}

fn of_latency<'a>(workload: &'a str, spec: &'a CrossingSpec) -> Vec<Metric<'a>> {
    let p50 = move |trial: &TrialRecords, way, bytes| {
        let row = crossing(trial, way, bytes, spec.offers(bytes)[0]).filter(|row| row.received_frames > 0)?;
        Some(row.latency_p50_ns as f64)
    };
    let mut all = Vec::new();
    for bytes in &spec.frame_bytes {
        all.extend(spec.ways.iter().map(|way| {
            let metric = format!("p50_us.{}.{bytes}", way.name());
            Metric::new(metric, workload, move |trial| Some(p50(trial, *way, *bytes)? / 1e3))
        }));
        for (protocol, fast, slow) in PROTOCOLS {
            if [fast, slow].iter().all(|way| spec.ways.contains(way)) {
                let metric = format!("latency_slow_over_fast.{protocol}.{bytes}");
                all.push(Metric::new(metric, workload, move |trial| {
                    Some(p50(trial, slow, *bytes)? / p50(trial, fast, *bytes)?)
                }));
            }
        }
    }
    all
}

fn of_spread<'a>(workload: &'a str, spec: &'a SpreadSpec) -> Vec<Metric<'a>> {
    let mut all = Vec::new();
    for cpus in spec.cpus.iter().copied() {
        for bytes in spec.frame_bytes.iter().copied() {
            let name = |metric: &str| format!("{metric}.{cpus}.{bytes}");
            let per_s = move |trial: &TrialRecords, cpus| fact(trial, cpus, bytes, "most_per_s");
            all.push(Metric::new(name("spread_mpps"), workload, move |trial| Some(per_s(trial, cpus)? / 1e6)));
            all.push(Metric::new(name("spread_gain"), workload, move |trial| {
                Some(per_s(trial, cpus)? / per_s(trial, 0).filter(|rate| *rate > 0.0)?)
            }));
            all.push(Metric::new(name("spread_lost"), workload, move |trial| {
                let sent = fact(trial, cpus, bytes, "sent_frames").filter(|sent| *sent > 0.0)?;
                Some(1.0 - fact(trial, cpus, bytes, "received_frames")? / sent)
            }));
        }
        if cpus > 0 {
            all.push(Metric::new(format!("spread_error.{cpus}"), workload, move |trial| {
                let errors = spec.frame_bytes.iter().map(|bytes| spread_error(trial, cpus, *bytes));
                errors.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
            }));
        }
    }
    all
}

/// How far the share of a CPU is from an even one, over the even one; all frames count, also those of other CPUs.
fn spread_error(trial: &TrialRecords, cpus: u32, bytes: u32) -> Option<f64> {
    let frames: Vec<f64> = (0..).map_while(|cpu| fact(trial, cpus, bytes, &format!("cpu.{cpu}"))).collect();
    let total = frames.iter().sum::<f64>();
    let shares = frames.get(..cpus as usize)?.iter().map(|frames| frames / total * f64::from(cpus));
    shares.map(|share| (share - 1.0).abs()).reduce(f64::max).filter(|_| total > 0.0)
}

fn fact(trial: &TrialRecords, cpus: u32, bytes: u32, what: &str) -> Option<f64> {
    trial.records.fact(&format!("spread.{cpus}.{bytes}.{what}"))
}

fn most_per_s(trial: &TrialRecords, way: Way, bytes: u32) -> Option<f64> {
    let is_it = |row: &&ChainRow| row.way == way.name() && row.until == "s2" && row.frame_bytes == bytes;
    trial.records.chains.iter().find(is_it).map(|row| row.most_per_s).filter(|rate| *rate > 0.0)
}
