//! Beside numbers that ns-3 gave for the same networks and flows: `ns3.csv` has them with where they come from.

mod common;

use common::{GBPS, fabric, flow, job, outcome, with_links};
use weft_scenario::engine::CongestionControl;
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_sim::{Flow, Job, Source, bench, tcp};

const RECORDED: &str = include_str!("ns3.csv");
/// Layer-1 bytes of a full packet.
const WIRE_BYTES: u64 = 1_538;
/// Runs of a case, with different seeds.
const RUNS: u64 = 5;

/// A line of the file.
struct Case {
    line: &'static str,
    congestion_control: CongestionControl,
    flows: u32,
    bytes: u64,
    round_trip_ns: u64,
    buffer_packets: u64,
    mean_ms: f64,
}

fn cases() -> impl Iterator<Item = Case> {
    RECORDED.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |cell: usize| cells[cell].parse::<u64>().unwrap();
        Case {
            line,
            congestion_control: if cells[0] == "cubic" { CongestionControl::Cubic } else { CongestionControl::Reno },
            flows: number(1) as u32,
            bytes: number(2),
            round_trip_ns: number(3) * 1_000,
            buffer_packets: number(4),
            mean_ms: cells[5].parse().unwrap(),
        }
    })
}

fn dumbbell(case: &Case, seed: u64) -> Job {
    let fabric = with_links(&fabric(1, 2, case.flows, 1), |link| {
        link.spec.delay = Nanos(case.round_trip_ns / 8);
        if link.spec.rate == BitsPerSec(GBPS) {
            link.spec.buffer = Bytes(case.buffer_packets * WIRE_BYTES);
        }
    });
    let flows = (0..case.flows).map(|number| flow(number, case.flows + number, case.bytes, 0));
    let mut job = job(fabric, flows.collect());
    job.settings.sizes.framing_bytes = 38;
    job.settings.seed = seed;
    job.settings.tcp = match case.congestion_control {
        CongestionControl::Cubic => tcp::Config { segments_per_ack: 1, ..tcp::Config::default() },
        _ => tcp::Config {
            initial_window: 10,
            segments_per_ack: 1,
            loss_detection: tcp::LossDetection::DuplicateThreshold,
            ..tcp::Config::linux_2_6_26()
        },
    };
    job
}

#[test]
fn dumbbells_without_timeouts_are_within_three_percent() {
    for case in cases() {
        let outcomes: Vec<_> = (1..=RUNS).map(|seed| outcome(&dumbbell(&case, seed))).collect();
        let timeouts: u64 = outcomes.iter().map(|outcome| outcome.totals.timeouts).sum();
        let mean_ms = outcomes.iter().map(bench::mean_received_ns).sum::<u64>() as f64 / RUNS as f64 / 1e6;
        assert!(
            (mean_ms / case.mean_ms - 1.0).abs() < 0.03 && timeouts == 0,
            "{}: {mean_ms} ms, {timeouts}",
            case.line
        );
    }
}

/// A tenth of r1a with the two bytes that ns-3's point-to-point links put around a packet.
#[test]
fn the_reference_job_is_within_a_fiftieth_of_a_percent() {
    let mut job = bench::job("r1a").unwrap();
    if let Source::Flows(flows) = &mut job.source {
        flows.iter_mut().for_each(|flow: &mut Flow| flow.spec.bytes /= 10);
    }
    job.settings.sizes.framing_bytes = 2;
    let mean_ns = bench::mean_received_ns(&outcome(&job));
    assert!(mean_ns.abs_diff(1_269_690) < 1_269_690 / 5_000, "{mean_ns}");
}
