//! Splits whose index can be worked out by hand (vl2/fig10-vlb-fairness).

use weft_scenario::record::{FlowRow, Records};

use crate::analysis::testing::{self, SECOND, even_links, scale_link};
use crate::metric::{Findings, Limit, Problem};
use crate::plan::PlanSpec;

fn spec() -> PlanSpec {
    let text = testing::plan_text(
        "overlays = [\"vl2\"]",
        r#"
[workload.mix]
kind = "mix"
duration = "12 s"
size_divisor = 500
[[sweep.pace.variant]]
id = "paced"
workload = { mix = { offered_rate_per_server = "1 Mbit/s" } }
[sampling]
interval = "1 s"
time_limit = "20 s"
warm_up = "2 s"
split_interval = "2 s"
[[metrics]]
"#,
    );
    testing::asking(&text, "vl2/fig10-vlb-fairness", "jain_split_mean.paced")
}

fn flow(bytes_asked: u64, start_s: u64, end_s: Option<u64>) -> FlowRow {
    testing::flow(bytes_asked, start_s * SECOND, end_s.map(|end| end * SECOND))
}

fn records(spec: &PlanSpec) -> Records {
    let links = even_links(&testing::fabric(spec), 12, 2_000_000);
    let core_waits = vec![testing::waiting(5, 0.3)];
    // 200 kB are 100 MB of the paper's, 2 MB are 1 GB, 2 kB are 1 MB.
    let flows = vec![flow(200_000, 0, Some(7)), flow(2_000_000, 2, None), flow(2_000, 3, Some(4))];
    Records { links, core_waits, flows, ..Records::default() }
}

fn run(spec: &PlanSpec, records: Records) -> Findings {
    testing::analyse(spec, |_| records.clone())
}

#[test]
fn an_even_split_is_one_everywhere() {
    let spec = spec();
    let findings = run(&spec, records(&spec));
    let mean = &findings.metrics["jain_split_mean.paced"];
    assert_eq!((mean.value, mean.n, mean.limited_by), (1.0, 5, Limit::OfferedLoad));
    assert_eq!(findings.metrics["jain_split_min.paced"].value, 1.0);
    // 2 MB/s on 100 Mbit/s.
    assert!((findings.metrics["core_utilisation.paced"].value - 0.16).abs() < 1e-9);
    // 5 s, 10 s and 1 s of the 10 s window, over four servers.
    assert!((findings.metrics["concurrent_flows.paced"].value - 16.0 / 40.0).abs() < 1e-9);
    assert!((findings.metrics["large_flow_bytes.paced"].value - 2_200.0 / 2_202.0).abs() < 1e-9);
}

#[test]
fn the_mean_is_the_worst_switchs() {
    let spec = spec();
    let fabric = testing::fabric(&spec);
    let mut records = records(&spec);
    scale_link(&fabric, &mut records.links, "agg1", "int1", 1.5);
    scale_link(&fabric, &mut records.links, "agg3", "int1", 2.0);
    let findings = run(&spec, records);
    assert!((findings.metrics["jain_split_mean.paced"].value - 16.0 / 18.0).abs() < 1e-9);
}

#[test]
fn what_happens_in_the_warm_up_does_not_count() {
    let spec = spec();
    let mut records = records(&spec);
    for row in records.links.iter_mut().filter(|row| row.node == "agg1" && row.peer == "int1" && row.time_ns > 0) {
        row.sent_bytes += 50_000_000;
    }
    // The burst lies in the first second; the warm-up ends after two.
    assert_eq!(run(&spec, records).metrics["jain_split_min.paced"].value, 1.0);
}

#[test]
fn silence_is_a_failure() {
    let spec = spec();
    let findings = run(&spec, Records::default());
    assert!(matches!(&findings.problems[..], [Problem::Failed(_)]));
}
