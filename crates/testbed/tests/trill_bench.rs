//! The TRILL benchmark measures what is shipped, and its numbers are of the right kind. How fast is for `weft bench` to
//! say.

#[path = "../../datapath/tests/common/mod.rs"]
mod common;

use common::available;
use weft_testbed::bench::{self, BenchOptions};

/// `WEFT_BENCH=1` measures long enough to read the numbers.
fn long() -> bool {
    std::env::var_os("WEFT_BENCH").is_some()
}

#[test]
fn programs_alone() {
    let options = if long() { BenchOptions::default() } else { BenchOptions { repeat: 20_000, rounds: 3 } };
    let Some(report) = available(bench::run(&options)) else { return };
    for row in report.programs.iter().filter(|row| row.name.starts_with("trill")) {
        eprintln!("{row:?}");
        assert!((0.5..5_000.0).contains(&row.ns_per_packet), "{row:?}");
    }
    for raw in report.raw.iter().filter(|_| long()) {
        eprintln!("{raw:?}");
    }
    let checks: Vec<&str> =
        report.ceilings.iter().map(|check| &*check.id).filter(|id| id.starts_with("trill")).collect();
    assert_eq!(checks.len(), 9, "{checks:?}");
}
