//! Literal rows make known metrics; what is missing makes none.

use weft_scenario::record::{ChainRow, OfferedRow, Records, SegmentRow, ServerRow};

use super::*;
use crate::analysis::testing::{self, plan_text};
use crate::analysis::trials::{KNOWN_NS, READ_NS};
use crate::metric::Findings;
use crate::plan::{Mode, Plan, PlanError, PlanSpec};

const COST: &str = "cost = { count = 1, each = \"1 ms\" }\n";
const SERVERS: &str = "loss_percent = 2\ntrial = \"1 ms\"\n";

fn read(analysis: &str, workload: &str, claim: &str) -> Result<Plan, PlanError> {
    let keys = format!("analysis = \"{analysis}\"\noverlays = [\"layer2\"]\nrepetitions = 3");
    let tables = format!(
        "[workload.w]\nkind = \"vxlan\"\n{workload}{COST}[sampling]\ninterval = \"1 s\"\ntime_limit = \"9 s\"\n\
         [[claims]]\nid = \"{claim}\"\nrelation = \"info\"\nunit = \"x\"\n"
    );
    Plan::parse("test.toml", &plan_text(&keys, &tables))
}

fn spec(analysis: &str, workload: &str, claim: &str) -> PlanSpec {
    read(analysis, workload, claim).expect("a valid test plan").for_mode(Mode::Default).clone()
}

fn value(findings: &Findings, name: &str) -> f64 {
    findings.metrics.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", findings.metrics.keys())).value
}

/// Every metric that is yielded was announced, and has a meaning.
fn announced(spec: &PlanSpec, findings: &Findings) {
    let names = spec.analysis.metric_names(spec);
    for name in findings.metrics.keys() {
        assert!(names.contains(name), "{name} is not announced");
        assert!(spec.analysis.meaning(name).is_some(), "{name} has no meaning");
    }
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-9, "got {got}, want {want}");
}

/// A server that is busy with so many cores, of which its VMs have some.
fn server(path: &str, name: &str, bytes: u32, cores: f64, vm_cores: f64) -> ServerRow {
    ServerRow {
        path: path.into(),
        server: name.into(),
        frame_bytes: bytes,
        frames_per_s: 1e5,
        server_ns_per_frame: cores * 1e4,
        vm_ns_per_frame: vm_cores * 1e4,
        server_cores: cores,
        vm_cores,
        core_mhz: 2000.0,
        server_memory_bytes: 300_000_000,
        vm_memory_bytes: 20_000_000,
    }
}

fn offered(kind: &str, path: &str, bytes: u32, percent: u32, sent: u64, received: u64) -> OfferedRow {
    OfferedRow {
        kind: kind.into(),
        path: path.into(),
        server: "server1".into(),
        vm_pairs: 1,
        frame_bytes: bytes,
        offered_percent: percent,
        asked_per_s: sent as f64,
        wall_ns: 1_000_000_000,
        sent_frames: sent,
        received_frames: received,
        vm_cpu_ns: received * 900,
        ..OfferedRow::default()
    }
}

const BENCHMARK: &str = "experiment = \"benchmark\"\nframe_bytes = [128, 512]\noffered_percent = [50]\n";

fn benchmark_rows() -> Records {
    let mut records = Records::default();
    records.servers.push(server("bridge", "server1", 0, 0.01, 0.01));
    for (bytes, cores) in [(128, 1.0), (512, 0.8)] {
        records.servers.push(server("bridge", "server1", bytes, cores, cores * 0.9));
        records.servers.push(ServerRow { frames_per_s: 9e4, ..server("bridge", "server2", bytes, cores, cores * 0.9) });
        records.offered.push(offered(model_a::SEARCH, "bridge", bytes, 0, 100_000, 99_000));
        records.offered.push(offered(model_a::SEARCH, "bridge", bytes, 0, 200_000, 120_000));
        records.offered.push(offered(model_a::OFFERED, "bridge", bytes, 300, 900_000, 60_000));
    }
    records.servers[1].server_memory_bytes = 303_000_000;
    records.facts = vec![(KNOWN_NS.into(), 1000.0), (READ_NS.into(), 900.0)];
    records
}

#[test]
fn model_a_takes_the_lower_server_and_sees_the_bend() {
    let spec = spec("vxlan-model-a", &format!("{BENCHMARK}{SERVERS}"), "rate_bps.128");
    let findings = testing::analyse(&spec, |_| benchmark_rows());
    assert_eq!(findings.problems, []);
    close(value(&findings, "rate_bps.128"), 9e4 * 128.0 * 8.0);
    close(value(&findings, "server_mhz.0"), 20.0);
    close(value(&findings, "server_mhz.128"), 2000.0);
    close(value(&findings, "switch_mhz.128"), 200.0);
    close(value(&findings, "vm_share"), 0.9);
    close(value(&findings, "memory_change"), 0.01);
    close(value(&findings, "inflection_found"), 1.0);
    close(value(&findings, "collapse.512"), 0.5);
    close(value(&findings, "calibration_error"), 0.1);
    announced(&spec, &findings);
    assert_eq!(findings.tables[0].rows.len(), 3);
    assert!(findings.tables[0].rows[1].last().unwrap().starts_with("0.46 / 6085"), "{:?}", findings.tables[0]);
}

#[test]
fn a_search_without_a_rate_that_fails_found_no_inflection() {
    let spec = spec("vxlan-model-a", &format!("{BENCHMARK}{SERVERS}"), "rate_bps.128");
    let findings = testing::analyse(&spec, |_| {
        let mut records = benchmark_rows();
        records.offered.retain(|row| row.frame_bytes != 512 || row.asked_per_s < 150_000.0);
        records
    });
    close(value(&findings, "inflection_found"), 0.5);
    let nothing = testing::analyse(&spec, |_| Records::default());
    assert_eq!(nothing.problems.len(), 3, "{:?}", nothing.problems);
}

const PAIR: &str = "experiment = \"servers\"\npaths = [\"bridge\", \"kernel-vxlan\", \"tc\", \"vxlan\"]\n\
                    frame_bytes = [256, 1518]\nvxlan_frame_bytes = [256, 1450]\nvm_pairs = 4\noffered_percent = [50]\n";

fn pair_rows() -> Records {
    let mut records = Records::default();
    // Server minus VMs: 0.2 over the bridge, 0.5 with the kernel's VXLAN, 0.1 plain at TC, 0.2 with ours.
    for (path, switch) in [("bridge", 0.2), ("kernel-vxlan", 0.5), ("tc", 0.1), ("vxlan", 0.2)] {
        let largest = if path.ends_with("vxlan") { 1450 } else { 1518 };
        for bytes in [256, largest] {
            for name in ["server1", "server2"] {
                records.servers.push(server(path, name, bytes, 1.0 + switch, 1.0));
            }
            records.offered.push(offered(model_a::OFFERED, path, bytes, 50, 1000, 995));
            records.offered.push(offered(model_a::OFFERED, path, bytes, 100, 2000, 1900));
            let latency = OfferedRow {
                latency_p50_ns: 300 + (switch * 1e4) as u64,
                floor_p50_ns: 300,
                ..offered(model_b::LATENCY, path, bytes, 100, 10, 10)
            };
            records.offered.push(latency);
        }
        let received = if path == "kernel-vxlan" { 560_000 } else { 1_000_000 };
        records.offered.push(offered(model_b::PAIRS, path, largest, 0, 2_000_000, received));
    }
    records
}

#[test]
fn model_b_compares_with_the_first_way_at_the_same_place() {
    let spec = spec("vxlan-model-b", &format!("{PAIR}{SERVERS}"), "extra_over_kernel.w");
    let findings = testing::analyse(&spec, |_| pair_rows());
    assert_eq!(findings.problems, []);
    close(value(&findings, "cpu_increase_percent.w.kernel-vxlan.server1"), 25.0);
    close(value(&findings, "cpu_increase_percent.w.kernel-vxlan.server2.1518"), 25.0);
    close(value(&findings, "cpu_increase_percent.w.vxlan.server1"), 0.0);
    close(value(&findings, "switch_ratio.w.kernel-vxlan.server1"), 2.5);
    close(value(&findings, "vm_change_percent.w.kernel-vxlan.server1"), 0.0);
    // Ours adds 0.1 to the plain switch at its hook, the kernel's 0.3 to the bridge.
    close(value(&findings, "extra_over_kernel.w"), 1.0 / 3.0);
    close(value(&findings, "delivered_at_half.w.vxlan"), 0.995);
    close(value(&findings, "loss_at_benchmark.w.vxlan"), 0.05);
    close(value(&findings, "vm_cpu_at_loss.w.vxlan"), 1900.0 * 900.0 / 1e9);
    close(value(&findings, "pairs_ratio.w.kernel-vxlan"), 0.56 * 1450.0 / 1518.0);
    close(value(&findings, "latency_p50_us.w.bridge"), 2.0);
    close(value(&findings, "latency_ratio.w.kernel-vxlan"), 2.5);
    close(value(&findings, "memory_change_percent.w.vxlan"), 0.0);
    announced(&spec, &findings);
    let table = &findings.tables[0];
    assert_eq!((table.rows[1][0].as_str(), table.rows[1].len()), ("1518 and 1450", table.headings.len()));
    assert_eq!(table.rows[1][7], "11.61 / 1.84");
}

const MATRIX: &str =
    "experiment = \"matrix\"\npaths = [\"bridge\", \"kernel-vxlan\", \"tc\", \"vxlan\"]\nframe_bytes = [64, 512]\n";

fn matrix_rows(repetition: u32) -> Records {
    let mut records = Records::default();
    // The machine becomes slower, and all ways with it.
    let mood = f64::from(repetition);
    for (path, ns) in [("", 200.0), ("bridge", 1200.0), ("kernel-vxlan", 1800.0), ("tc", 700.0), ("vxlan", 1000.0)] {
        for bytes in [64, 512] {
            records.chains.push(ChainRow {
                way: path.into(),
                frame_bytes: bytes,
                chain_ns_per_frame: ns * mood,
                ..ChainRow::default()
            });
        }
    }
    records
}

#[test]
fn each_way_is_compared_at_its_own_hook_within_the_repetition() {
    let spec = spec("vxlan-encapsulations", MATRIX, "extra_over_kernel.vxlan");
    let findings = testing::analyse(&spec, |key| matrix_rows(key.repetition));
    assert_eq!(findings.problems, []);
    let ratio = &findings.metrics["extra_over_kernel.vxlan"];
    close(ratio.value, 0.5);
    let interval = ratio.interval.unwrap();
    close(interval.high - interval.low, 0.0);
    close(value(&findings, "over_bridge.kernel-vxlan"), 1.6);
    close(value(&findings, "extra_ns.kernel-vxlan"), 1200.0);
    close(value(&findings, "kernel_over.vxlan"), 2.0);
    assert!(!findings.metrics.contains_key("extra_ns.tc"), "a plain switch adds nothing to itself");
    announced(&spec, &findings);
}

const SCALE: &str = "experiment = \"segments\"\nstores = [\"kernel-devices\", \"map\", \"ports\"]\nsegments = [1, 1000, 5000]\nframe_bytes = 64\n";

fn segment(store: &str, segments: u32, setup_ms: u64, ns: f64) -> SegmentRow {
    SegmentRow {
        store: store.into(),
        segments,
        active_segments: segments,
        setup_ns: setup_ms * 1_000_000,
        removal_ns: setup_ms * 500_000,
        memory_bytes: u64::from(segments) * 10_000,
        frame_bytes: 64,
        chain_ns_per_frame: ns,
        sent_frames: 1000,
        received_frames: 1000,
        latency_p50_ns: 4000,
        latency_p99_ns: 9000,
    }
}

#[test]
fn segments_bend_where_a_frame_costs_a_tenth_more() {
    let spec = spec("vxlan-segments", SCALE, "knee.map");
    let findings = testing::analyse(&spec, |_| Records {
        segments: vec![
            segment("kernel-devices", 1, 1, 1000.0),
            segment("kernel-devices", 1000, 200, 1080.0),
            segment("kernel-devices", 5000, 1100, 1500.0),
            segment("map", 1, 1, 500.0),
            segment("map", 1000, 10, 510.0),
            segment("map", 5000, 50, 640.0),
            segment("ports", 1, 0, 300.0),
            segment("ports", 1000, 0, 290.0),
            segment("ports", 5000, 0, 400.0),
        ],
        ..Records::default()
    });
    close(value(&findings, "setup_speedup.map.5000"), 22.0);
    close(value(&findings, "removal_ms.map.5000"), 25.0);
    close(value(&findings, "memory_mb.map.5000"), 50.0);
    close(value(&findings, "rate_ratio.map.5000"), 500.0 / 640.0);
    close(value(&findings, "net_rate_ratio.map.5000"), 500.0 / 540.0);
    close(value(&findings, "net_rate_ratio.map.1000"), 500.0 / 510.0);
    close(value(&findings, "loss.map.5000"), 0.0);
    assert_eq!((value(&findings, "knee.kernel-devices"), value(&findings, "knee.map")), (5000.0, 5000.0));
    announced(&spec, &findings);
}

#[test]
fn plans_that_do_not_fit_are_refused() {
    let refused =
        |analysis: &str, workload: &str, claim: &str| read(analysis, workload, claim).unwrap_err().to_string();
    let error = refused("vxlan-segments", MATRIX, "knee.map");
    assert!(error.contains("experiment = \"segments\""), "{error}");
    let error = refused("vxlan-encapsulations", MATRIX, "extra_over_kernel.trill");
    assert!(error.contains("yields no metric `extra_over_kernel.trill`"), "{error}");
    let text = plan_text(
        "analysis = \"vxlan-encapsulations\"\noverlays = [\"vl2\"]",
        &format!(
            "[workload.w]\nkind = \"vxlan\"\n{MATRIX}{COST}[sampling]\ninterval = \"1 s\"\ntime_limit = \"9 s\"\n[[claims]]\nid = \"calibration_error\"\nrelation = \"info\"\nunit = \"x\"\n"
        ),
    );
    let error = Plan::parse("test.toml", &text).unwrap_err().to_string();
    assert!(error.contains("overlays = [\"l2\"]"), "{error}");
}

#[test]
fn every_experiment_is_drawn() {
    let draw = |spec: &PlanSpec, records: &dyn Fn(u32) -> Records| {
        let fabrics = spec.build_fabrics().unwrap();
        let trials = testing::trials_of(spec, |key| records(key.repetition));
        testing::figures(spec, &fabrics, &trials).len()
    };
    let a = spec("vxlan-model-a", &format!("{BENCHMARK}{SERVERS}"), "rate_bps.128");
    assert_eq!(draw(&a, &|_| benchmark_rows()), 2);
    let b = spec("vxlan-model-b", &format!("{PAIR}{SERVERS}"), "extra_over_kernel.w");
    assert_eq!(draw(&b, &|_| pair_rows()), 2);
    let matrix = spec("vxlan-encapsulations", MATRIX, "extra_over_kernel.vxlan");
    assert_eq!(draw(&matrix, &matrix_rows), 2);
}
