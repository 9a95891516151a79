//! The VXLAN draft's experiments on small beds: every way carries every frame, rows are complete and add up, and nothing
//! stays behind. No number of these is judged here: that is for the plans.

mod common;

use common::beds::{fact, run_on_beds, try_run, turn};
use weft_scenario::engine::{EngineError, Overlay};
use weft_scenario::record::Records;
use weft_scenario::units::Nanos;
use weft_scenario::workload::vxlan::{BenchmarkSpec, Path, SegmentStore, SegmentsSpec, ServersSpec, VxlanSpec};
use weft_scenario::workload::{Runs, Workload};

const RUNS: Runs = Runs { count: 2, each: Nanos(4_000_000) };
const TRIAL: Nanos = Nanos(10_000_000);

fn run(spec: VxlanSpec) -> Records {
    run_on_beds(Workload::Vxlan(spec))
}

#[test]
fn a_server_has_a_benchmark_and_costs_that_add_up() {
    let Some(_turn) = turn() else { return };
    let spec = BenchmarkSpec {
        frame_bytes: vec![128, 1518],
        loss_percent: 2,
        trial: TRIAL,
        offered_percent: vec![50, 300],
        cost: RUNS,
    };
    let records = run(VxlanSpec::Benchmark(spec));
    let of = |server: &str| records.servers.iter().filter(|row| row.server == server).collect::<Vec<_>>();
    let (first, second) = (of("server1"), of("server2"));
    assert_eq!(first.iter().map(|row| row.frame_bytes).collect::<Vec<_>>(), [0, 128, 1518]);
    assert_eq!(second.len(), 2);
    for row in &first[1..] {
        assert!(row.frames_per_s > 0.0 && row.vm_ns_per_frame > 0.0, "{row:?}");
        assert!(row.server_ns_per_frame >= row.vm_ns_per_frame && row.server_cores >= row.vm_cores, "{row:?}");
        assert!(row.vm_memory_bytes > 100_000 && row.server_memory_bytes >= row.vm_memory_bytes, "{row:?}");
    }
    for bytes in [128, 1518] {
        let rows =
            |kind: &'static str| records.offered.iter().filter(move |row| row.kind == kind && row.frame_bytes == bytes);
        assert!(rows("search").count() > 2 && rows("offered").count() == 2);
        assert!(rows("offered").all(|row| row.sent_frames > 0 && row.received_frames <= row.sent_frames));
    }
}

#[test]
fn two_servers_are_measured_in_turns_on_all_ways() {
    let Some(_turn) = turn() else { return };
    let spec = ServersSpec {
        paths: vec![Path::Bridge, Path::KernelVxlan, Path::Tc, Path::Vxlan],
        frame_bytes: vec![1518],
        vxlan_frame_bytes: vec![1450],
        vm_pairs: 2,
        loss_percent: 2,
        trial: TRIAL,
        offered_percent: vec![50],
        cost: RUNS,
    };
    let records = run(VxlanSpec::Servers(spec));
    assert_eq!(records.servers.len(), 8);
    for row in &records.servers {
        assert!(row.vm_ns_per_frame > 0.0 && row.server_ns_per_frame >= row.vm_ns_per_frame, "{row:?}");
        let bytes = if row.path.ends_with("vxlan") { 1450 } else { 1518 };
        assert_eq!(row.frame_bytes, bytes);
    }
    // As many bits per second with VXLAN as without.
    let bits = |path: &str| {
        let row = records.servers.iter().find(|row| row.path == path).unwrap();
        row.frames_per_s * f64::from(row.frame_bytes)
    };
    assert!((bits("bridge") / bits("kernel-vxlan") - 1.0).abs() < 1e-9);
    for path in ["bridge", "kernel-vxlan", "tc", "vxlan"] {
        let row = |kind: &str| {
            let rows = records.offered.iter().filter(|row| row.path == path);
            rows.clone().find(|row| row.kind == kind).unwrap_or_else(|| panic!("no {kind} of {path}")).clone()
        };
        assert!(row("latency").latency_p50_ns > 0 && row("latency").received_frames > 0);
        assert!(row("pairs").received_frames > 0 && row("pairs").vm_pairs == 2);
        assert!(row("offered").sent_frames > 0, "{:?}", row("offered"));
    }
    // A busy machine may miss what one of them carries in a few milliseconds.
    assert!(
        records.offered.iter().any(|row| row.kind == "offered" && row.received_frames > 0),
        "{:?}",
        records.offered
    );
    assert!(fact(&records, "cost.read_ns") > 0.0);
}

#[test]
fn every_segment_carries_its_stations() {
    let Some(_turn) = turn() else { return };
    let stores = SegmentStore::ALL.to_vec();
    let spec = SegmentsSpec { stores: stores.clone(), segments: vec![1, 30], frame_bytes: 64, cost: RUNS };
    let records = run(VxlanSpec::Segments(spec));
    assert_eq!(records.segments.len(), stores.len() * 2);
    for row in &records.segments {
        assert!(row.sent_frames > 0 && row.received_frames == row.sent_frames, "{row:?}");
        assert!(row.setup_ns > 0 && row.latency_p50_ns > 0, "{row:?}");
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let Some(_turn) = turn() else { return };
    let shuffle = Workload::Shuffle { bytes_per_flow: weft_scenario::units::Bytes(1) };
    let error = try_run(shuffle, Overlay::L2).unwrap_err();
    assert!(matches!(&error, EngineError::Refused(why) if why.contains("`shuffle` needs a fabric")), "{error}");
}
