//! Plans that ask: what they are answered, and how mistakes are refused.

use weft_scenario::engine::Overlay;
use weft_scenario::record::{CpuRow, ProgressRow, Records};

use crate::analysis::testing::{self, SECOND, plan_text, trial};
use crate::metric::{Limit, Problem};
use crate::plan::{Mode, Plan};

const SCENARIO: &str = r#"
[workload.all]
kind = "shuffle"
bytes_per_flow = "1 MB"
[sampling]
interval = "1 s"
time_limit = "60 s"
"#;

const METRIC: &str = r#"
[[metrics]]
id = "bytes"
meaning = "bytes of flows"
sql = "select workload, \"from\", bytes_received as value from flows"
"#;

const CLAIM: &str = r#"
[[claims]]
id = "bytes.all.1"
relation = "info"
unit = "B"
"#;

fn parse(tables: &str) -> Result<Plan, String> {
    let text = plan_text("overlays = [\"vl2\"]", &format!("{SCENARIO}{tables}"));
    Plan::parse("p.toml", &text).map_err(|error| error.to_string())
}

fn findings(tables: &str, idle_ratio: f64) -> crate::metric::Findings {
    let spec = parse(&format!("{tables}{CLAIM}")).unwrap().for_mode(Mode::Default).clone();
    let of_trial = |number: u32| {
        let flow = |from: u32| weft_scenario::record::FlowRow {
            from,
            ..testing::flow(u64::from(100 * number + from), 0, Some(SECOND))
        };
        let records = Records {
            flows: (0..2).map(flow).collect(),
            progress: vec![ProgressRow { time_ns: 2 * SECOND, received_bytes: 1, flows_done: 2 }],
            cpu: vec![CpuRow { time_ns: SECOND, core: 0, idle_ratio, softirq_ratio: 0.0 }],
            ..Records::default()
        };
        trial(number, Overlay::Vl2, "all", records)
    };
    let trials: Vec<_> = (1..=3).map(of_trial).collect();
    testing::run(&spec, &[testing::fabric(&spec)], &trials)
}

#[test]
fn rows_are_samples_and_what_stands_before_names_the_place() {
    let found = findings(METRIC, 0.5);
    assert_eq!(found.problems, []);
    assert_eq!(found.metrics.keys().collect::<Vec<_>>(), ["bytes.all.0", "bytes.all.1"]);
    let one = &found.metrics["bytes.all.1"];
    assert_eq!((one.value, one.n, one.limited_by), (201.0, 3, Limit::Link));
    let interval = one.interval.unwrap();
    assert_eq!((interval.low, interval.high), (101.0, 301.0));
}

#[test]
fn a_core_without_time_limits_what_links_would() {
    assert_eq!(findings(METRIC, 0.01).metrics["bytes.all.0"].limited_by, Limit::Cpu);
    let late = METRIC.replace("sql =", "when_busy = \"other-work\"\nsql =");
    assert_eq!(findings(&late, 0.01).metrics["bytes.all.0"].limited_by, Limit::OtherWork);
    let computed = METRIC.replace("sql =", "limited_by = \"computed\"\nsql =");
    assert_eq!(findings(&computed, 0.01).metrics["bytes.all.0"].limited_by, Limit::Computed);
}

#[test]
fn problems_are_sentences_and_tables_are_answers() {
    let more = "[[problems]]\nid = \"a\"\nverdict = \"fail\"\nsql = \"select 'trial ' || trial from trials where trial = 2\"\n\
        [[problems]]\nid = \"b\"\nverdict = \"inconclusive\"\nsql = \"select 'never' from flows where 0\"\n\
        [[tables]]\nid = \"t\"\ntitle = \"Bytes\"\n\
        sql = \"select place, value, batch_mean(value) as mean, null as none from estimates group by place\"\n\
        [[figures]]\nid = \"f\"\ntitle = \"Bytes\"\nkind = \"dots\"\nx = \"bytes\"\nsql = \"select place as label, value from estimates\"\n";
    let found = findings(&format!("{METRIC}{more}"), 0.5);
    assert_eq!(found.problems, [Problem::Failed("trial 2".into())]);
    assert_eq!(found.tables[0].headings, ["place", "value", "mean", "none"]);
    assert_eq!(found.tables[0].rows[1], ["all.1", "201", "201", "-"]);
}

#[test]
fn an_aggregates_estimate_keeps_its_interval() {
    let mean = METRIC
        .replace("bytes_received as value from flows", "mean_estimate(bytes_received) as value from flows group by 2");
    let one = &findings(&mean, 0.5).metrics["bytes.all.1"];
    assert_eq!((one.value, one.n), (201.0, 3));
    // t(0.975, 2) is 4.3027, the standard error 100 / sqrt(3).
    assert!((one.interval.unwrap().high - 201.0 - 4.302_652_7 * 100.0 / 3f64.sqrt()).abs() < 1e-3);
    let text = METRIC.replace("bytes_received as value", "'much' as value");
    assert_eq!(findings(&text, 0.5).problems, [Problem::Invalid("metric `bytes`: `much` is no number".into())]);
}

#[test]
fn mistakes_are_refused_with_their_line() {
    let refused = |from: &str, to: &str| {
        let tables = format!("{METRIC}{CLAIM}");
        assert!(tables.contains(from), "{from}");
        parse(&tables.replacen(from, to, 1)).unwrap_err()
    };
    let line_of = |line: &str| {
        let text = plan_text("overlays = [\"vl2\"]", &format!("{SCENARIO}{METRIC}{CLAIM}"));
        text.lines().position(|one| one == line).unwrap() + 1
    };
    let metric = format!("p.toml:{}:1: `metrics.bytes.sql`: metric `bytes`: ", line_of("id = \"bytes\"") + 2);
    for (from, to, says) in [
        ("bytes_received", "bytes_recieved", "no such column: bytes_recieved"),
        ("from flows", "from flow", "no such table: flow"),
        ("select workload", "delete from flows; select workload", "not authorized"),
        ("as value", "as amount", "its last column must be `value`"),
        ("select workload", "selec workload", "syntax error"),
    ] {
        let message = refused(from, to);
        assert!(message.starts_with(&metric) && message.contains(says) && !message.contains('\n'), "{message}");
    }
    let place = line_of("id = \"bytes.all.1\"");
    for (to, says) in [
        ("byte.all.1", "did you mean `bytes`?"),
        ("bytes.al.1", "the plan has nothing called `al` for `workload`"),
        ("bytes.all", "the metric's name is `bytes.workload.from`"),
        ("bytes", "the metric's name is `bytes.workload.from`"),
    ] {
        let message = refused("bytes.all.1", to);
        let start = format!("p.toml:{place}:1: claim `{to}`: ");
        assert!(message.starts_with(&start) && message.contains(says), "{message}");
    }
}

#[test]
fn a_plan_asks_or_names_an_analysis() {
    let text = plan_text("overlays = [\"vl2\"]\nanalysis = \"flow-sizes\"", &format!("{SCENARIO}{METRIC}{CLAIM}"));
    let message = Plan::parse("p.toml", &text).unwrap_err().to_string();
    assert!(message.contains("names no `analysis`"), "{message}");
    let message = parse(CLAIM).unwrap_err();
    assert!(message.contains("the plan asks nothing; add `[[metrics]]`"), "{message}");
}
