//! The benchmark measures what is shipped, and its numbers are of the right kind. How fast is for `weft bench` to say:
//! a shared machine has no place in a test.

#[path = "../../datapath/tests/common/mod.rs"]
mod common;

use common::available;
use weft_testbed::bench::{self, BenchOptions};

#[test]
fn programs_alone() {
    let Some(report) = available(bench::run(&BenchOptions { repeat: 20_000, rounds: 3 })) else { return };
    let trill = |name: &str| name.contains("trill") || name.ends_with("_24"); // tests/trill_bench.rs
    let rows = report.programs.iter().filter(|row| !trill(row.name));
    let rows: Vec<(&str, usize)> = rows.map(|row| (row.name, row.frame_bytes)).collect();
    let both = |names: &[&'static str]| {
        [64, 1500].map(|bytes| names.iter().map(|name| (*name, bytes)).collect::<Vec<(&str, usize)>>()).concat()
    };
    let xdp = both(&["l2_forward", "vxlan_encap", "vxlan_decap"]);
    let tc = both(&["l2_forward_tc", "vl2_host", "vl2_intermediate", "vl2_tor_up", "vl2_tor_down"]);
    assert_eq!(rows, [xdp, tc].concat());
    for row in &report.programs {
        assert!((0.5..5_000.0).contains(&row.ns_per_packet), "{row:?}");
        assert!(row.ratio_to_l2 > 0.1 && (!row.name.starts_with("l2_forward") || row.ratio_to_l2 == 1.0), "{row:?}");
    }
    assert_eq!(report.raw.iter().filter(|raw| !trill(raw.name)).count(), 26);
    assert!(report.raw.iter().all(|raw| raw.ns_min <= raw.ns_median && raw.ns_median <= raw.ns_max));
    assert_eq!(report.ceilings.iter().filter(|check| !trill(&check.id)).count(), 14);
}
