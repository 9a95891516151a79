//! Services whose goodput is known (`questions = "isolation"`).

use weft_scenario::record::{FlowRow, Records, ServiceRow, TcpRow};
use weft_scenario::workload::services::{STORM_FOREIGN, STORM_OFFERED, STORM_OWN};

use crate::analysis::testing::{self, SECOND};
use crate::metric::{Estimate, Findings, Limit, Problem};
use crate::plan::PlanSpec;

const TABLES: &str = r#"
[workload.long]
kind = "services"
duration = "60 s"
[workload.long.service.one]
servers = [0, 1]
role = "long-flows"
[workload.long.service.two]
servers = [2, 3]
[workload.long.service.two.role.ramp]
begin = "20 s"
every = "1 s"
bytes_per_flow = "10 MB"

[sampling]
interval = "1 s"
time_limit = "60 s"
warm_up = "4 s"

[[claims]]
id = "service_one_change.long"
relation = "<="
want = 0.03
unit = "ratio"
required = true
judge = "interval-upper"
"#;

fn spec() -> PlanSpec {
    testing::spec("questions = \"isolation\"\noverlays = [\"vl2\"]", TABLES)
}

/// Service one at a megabyte a second, at `factor` times that from second 20 to 50, when service two ends; with a ripple
/// of as many bytes.
fn records(factor: f64, ripple: u64) -> Records {
    let flow = |from, to, bytes_asked, start_s: u64, end_s: u64| FlowRow {
        from,
        to,
        bytes_asked,
        bytes_received: 30_000_000,
        start_ns: start_s * SECOND,
        end_ns: Some(end_s * SECOND),
        ..FlowRow::default()
    };
    let mut records = Records {
        flows: vec![flow(0, 1, 0, 0, 60), flow(1, 0, 0, 0, 60), flow(2, 3, 10, 20, 45), flow(3, 2, 10, 21, 50)],
        ..Records::default()
    };
    let mut received = 0.0;
    for second in 0..=60u64 {
        let row = |service: &str, received_bytes| ServiceRow {
            time_ns: second * SECOND,
            service: service.to_owned(),
            received_bytes,
        };
        records.services.push(row("one", received as u64 + ripple * (second % 3)));
        records.services.push(row("two", second.clamp(20, 50) * 500_000 - 10_000_000));
        received += if (20..50).contains(&second) { factor * 1e6 } else { 1e6 };
        records.tcp.extend([(0, 1), (1, 0), (2, 3)].map(|(from, to)| TcpRow {
            time_ns: second * SECOND,
            from,
            to,
            cwnd_segments: if second > 20 { 12 } else { 10 },
            srtt_ns: 1,
            retransmits: 0,
        }));
        records.core_waits.push(testing::waiting(second, 0.3));
    }
    records
}

fn estimate(findings: &Findings, name: &str) -> Estimate {
    findings.metrics.get(&format!("{name}.long")).unwrap_or_else(|| panic!("no {name}")).clone()
}

#[test]
fn a_change_is_found_with_its_sign_and_its_size() {
    for (factor, gain) in [(1.0, 0.0), (0.9, -0.1), (1.05, 0.05)] {
        let findings = testing::analyse(&spec(), |_| records(factor, 2_000));
        let (got, size) = (estimate(&findings, "service_one_gain"), estimate(&findings, "service_one_change"));
        assert!((got.value - gain).abs() < 0.003, "{got:?}");
        let (got, size_of) = (got.interval.unwrap(), size.interval.unwrap());
        assert!(got.low <= gain + 1e-3 && gain - 1e-3 <= got.high && got.high - got.low < 0.02, "{got:?}");
        assert!((size.value - gain.abs()).abs() < 0.003 && size_of.low <= size.value && size.value <= size_of.high);
        let (low, high) = (got.low.abs().min(got.high.abs()), got.low.abs().max(got.high.abs()));
        let low = if got.spans(0.0) { 0.0 } else { low };
        assert!((size_of.low - low).abs() < 1e-12 && (size_of.high - high).abs() < 1e-12, "{size_of:?} of {got:?}");
        assert_eq!(size.limited_by, Limit::Link);
    }
}

#[test]
fn the_rest_is_read_in_the_time_that_it_is_about() {
    let findings = testing::analyse(&spec(), |_| records(0.8, 0));
    let value = |name| estimate(&findings, name).value;
    assert!((value("service_one_worst_part") - 0.8).abs() < 1e-6);
    // 8 Mbit/s of two links of 10 Mbit/s.
    assert!((value("service_one_efficiency") - 0.4 * 3154.0 / 2920.0).abs() < 1e-6);
    assert!((value("service_two_goodput") - 4e6).abs() < 1.0 && (value("service_two_peak_goodput") - 4e6).abs() < 1.0);
    assert!((value("service_one_cwnd_change") - 0.2).abs() < 1e-6 && value("service_one_cwnd_spread") < 1e-9);
    assert_eq!(
        [value("service_two_flows"), value("service_two_unfinished"), value("service_one_jain")],
        [2.0, 0.0, 1.0]
    );
}

/// The same plan with a storm of server 2 as service two, and how many datagrams were offered, and received by whom.
fn storm(own: f64, foreign: f64) -> Findings {
    let ramp =
        TABLES.split("[workload.long.service.two.role.ramp]").nth(1).unwrap().split("[sampling]").next().unwrap();
    let role = "\nbegin = \"20 s\"\nend = \"50 s\"\nrate = \"1 Mbit/s\"\nfrom = 2\n\n";
    let tables = TABLES.replace("role.ramp", "role.storm").replace(ramp, role);
    let spec = testing::spec("questions = \"isolation\"\noverlays = [\"vl2\"]", &tables);
    testing::analyse(&spec, |_| {
        let mut records = records(1.0, 2_000);
        records.flows.truncate(2);
        let facts = [(STORM_OFFERED, 6_000.0), (STORM_OWN, own), (STORM_FOREIGN, foreign)];
        records.facts.extend(facts.map(|(name, value)| (name.to_owned(), value)));
        records
    })
}

#[test]
fn a_storm_is_counted_where_it_may_be_heard_and_where_not() {
    let findings = storm(1_500.0, 7.0);
    let value = |name| estimate(&findings, name).value;
    assert_eq!([value("storm_offered"), value("storm_received"), value("storm_share")], [200.0, 50.0, 0.25]);
    assert_eq!((value("storm_foreign"), findings.problems.clone()), (7.0, vec![]));
    assert!(value("service_one_change") < 0.003);
}

#[test]
fn a_storm_that_nobody_hears_says_nothing_of_others() {
    let text = "workload `long`: no server of the storm's own service heard it";
    assert_eq!(storm(0.0, 0.0).problems, [Problem::Failed(text.to_owned())]);
    assert!(!testing::analyse(&spec(), |_| records(1.0, 0)).metrics.contains_key("storm_foreign.long"));
}

#[test]
fn figures_show_both_services_and_every_window() {
    let spec = spec();
    let (fabrics, trials) = (spec.build_fabrics().unwrap(), testing::trials_of(&spec, |_| records(0.9, 0)));
    let figures = testing::figures(&spec, &fabrics, &trials);
    let titles: Vec<_> = figures.iter().map(|figure| figure.title.as_str()).collect();
    let expected = [
        "Aggregate goodput of both services: long",
        "TCP connections that service two opens: long",
        "Congestion windows of service one's flows: long",
        "Waiting for the CPU of this machine",
    ];
    assert_eq!(titles, expected);
    for words in ["service one", "service two", "goodput (Mbit/s)"] {
        assert!(figures[0].svg.contains(words), "{words}");
    }
    assert!(
        figures[2].svg.contains("server 0")
            && figures[2].svg.contains("server 1")
            && !figures[2].svg.contains("server 2")
    );
}

#[test]
fn a_busy_machine_is_named_as_the_limit() {
    let busy = |_: &_| {
        let mut records = records(0.5, 0);
        for row in records.core_waits.iter_mut().filter(|row| row.time_ns > 20 * SECOND) {
            *row = testing::waiting(row.time_ns / SECOND, 46.0);
        }
        records
    };
    assert_eq!(estimate(&testing::analyse(&spec(), busy), "service_one_change").limited_by, Limit::Cpu);
}

#[test]
fn a_run_without_service_one_fails() {
    let findings = testing::analyse(&spec(), |_| Records::default());
    let text = "trial 1 has no goodput of service one before and during service two";
    assert_eq!(findings.problems, [Problem::Failed(text.to_owned())]);
}

#[test]
fn plans_without_the_two_services_are_refused() {
    let refused = |tables: &str| {
        let text = testing::plan_text("questions = \"isolation\"\noverlays = [\"vl2\"]", tables);
        crate::plan::Plan::parse("p.toml", &text).unwrap_err().to_string()
    };
    let shuffle = TABLES.replace(
        "[workload.long]\n",
        "[workload.extra]\nkind = \"shuffle\"\nbytes_per_flow = \"1 MB\"\n\
        [workload.long]\n",
    );
    let two_steady = TABLES.replace(
        "[workload.long.service.two]\n",
        "[workload.long.service.three]\n\
        servers = [4, 5]\nrole = \"long-flows\"\n[workload.long.service.two]\n",
    );
    let cold = TABLES.replace("warm_up = \"4 s\"", "warm_up = \"20 s\"");
    for (tables, message) in [
        (shuffle, "needs workloads of kind `services`"),
        (two_steady, "needs one service with the role `long-flows`"),
        (cold, "needs a `sampling.warm_up` that ends before the second service begins"),
    ] {
        let error = refused(&tables);
        assert!(error.contains(message), "{error}");
    }
}
