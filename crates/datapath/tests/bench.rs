//! The benchmark measures what is shipped, and its numbers are of the right kind. How fast is for `weft bench` to say:
//! a shared machine has no place in a test.

mod common;

use common::available;
use common::netns::is_root;
use weft_datapath::bench::{self, BenchOptions, LiveOptions, TcpOptions};

#[test]
fn programs_alone() {
    let Some(report) = available(bench::run(&BenchOptions { repeat: 20_000, rounds: 3 })) else { return };
    let trill = |name: &str| name.contains("trill") || name.ends_with("_24"); // tests/trill_bench.rs
    let rows = report.programs.iter().filter(|row| !trill(row.name));
    let rows: Vec<(&str, usize)> = rows.map(|row| (row.name, row.frame_bytes)).collect();
    let names = ["l2_forward", "vl2_encap", "vl2_decap", "vxlan_encap", "vxlan_decap"];
    let expected: Vec<(&str, usize)> = [64, 1500].iter().flat_map(|bytes| names.map(|name| (name, *bytes))).collect();
    assert_eq!(rows, expected);
    for row in &report.programs {
        assert!((0.5..5_000.0).contains(&row.ns_per_packet), "{row:?}");
        assert!(row.ratio_to_l2 > 0.1 && (row.name != "l2_forward" || row.ratio_to_l2 == 1.0), "{row:?}");
    }
    assert_eq!(report.raw.iter().filter(|raw| !trill(raw.name)).count(), 26);
    assert!(report.raw.iter().all(|raw| raw.ns_min <= raw.ns_median && raw.ns_median <= raw.ns_max));
    assert_eq!(report.ceilings.iter().filter(|check| !trill(&check.id)).count(), 10);
}

#[test]
fn live_frames_all_arrive_and_nothing_is_left_behind() {
    if !is_root() {
        eprintln!("skipped: network namespaces need root");
        return;
    }
    let Some(report) = available(bench::live(&LiveOptions { calls: 1, rounds: 1, cpu: 0 })) else { return };
    assert_eq!((report.rows.len(), report.ceilings.len()), (14, 1));
    for row in &report.rows {
        // The kernel's own switches may drop when they are overloaded.
        let least = if row.name.starts_with("kernel") { 0.5 } else { 0.999 };
        assert!(row.arrived_ratio > least && row.arrived_ratio <= 1.001, "{row:?}");
    }
    let left: Vec<_> = std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(&format!("weft-bench-{}-", std::process::id())))
        // Those of the test beside this one.
        .filter(|name| !name.contains("-tcp"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn tcp_crosses_both_kinds_of_vtep() {
    if !is_root() {
        eprintln!("skipped: network namespaces need root");
        return;
    }
    let Some(report) = available(bench::tcp(&TcpOptions { bytes: 16 << 20, rounds: 2 })) else { return };
    assert_eq!((report.ours_cpu_s_per_gb.len(), report.kernel_cpu_s_per_gb.len()), (2, 2));
    assert!(report.interval[0] <= report.ratio && report.ratio <= report.interval[1], "{report:?}");
    assert!((0.01..100.0).contains(&report.ratio), "{report:?}");
}
