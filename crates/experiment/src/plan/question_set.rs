//! Questions that many plans ask, taken by name: `questions = "flow-summary"`.

use serde::{Deserialize, Serialize};
use weft_scenario::workload::Workload;
use weft_scenario::workload::services::ServiceRole;

use super::{FigureQuestion, MetricQuestion, PlanSpec, ProblemQuestion, TableQuestion, View};

/// A set of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionSet {
    /// Completion times and goodput of any flows that end: for scenarios that ask no paper's question.
    FlowSummary,
    /// Whether one service notices what another does.
    Isolation,
}

impl QuestionSet {
    fn text(self) -> &'static str {
        match self {
            Self::FlowSummary => include_str!("flow-summary.toml"),
            Self::Isolation => include_str!("isolation.toml"),
        }
    }

    /// What a plan must have.
    fn check(self, spec: &PlanSpec) -> Result<(), String> {
        match self {
            Self::FlowSummary => check_ends(spec),
            Self::Isolation => check_services(spec),
        }
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Set {
    measured: Option<String>,
    #[serde(default)]
    views: Vec<View>,
    problems: Vec<ProblemQuestion>,
    metrics: Vec<MetricQuestion>,
    #[serde(default)]
    tables: Vec<TableQuestion>,
    figures: Vec<FigureQuestion>,
}

impl PlanSpec {
    /// The plan with the questions of its set before its own.
    pub(super) fn with_question_set(mut self) -> Result<Self, String> {
        let Some(questions) = self.questions else { return Ok(self) };
        questions.check(&self)?;
        let place = place_columns(&self);
        let mut set: Set = toml::from_str(questions.text()).expect("a shipped set is read as it is tested");
        let metrics = set.metrics.iter_mut().map(|question| &mut question.sql);
        let tables = set.tables.iter_mut().map(|question| &mut question.sql);
        for sql in metrics.chain(tables).chain(set.figures.iter_mut().map(|question| &mut question.sql)) {
            *sql = sql.replace("{name}", &place.join(" || '.' || ")).replace("{place}", &place.join(", "));
        }
        self.measured = self.measured.or(set.measured);
        self.views.splice(0..0, set.views);
        self.problems.splice(0..0, set.problems);
        self.metrics.splice(0..0, set.metrics);
        self.tables.splice(0..0, set.tables);
        self.figures.splice(0..0, set.figures);
        Ok(self)
    }
}

/// Columns that tell groups of trials apart: the workload, the overlay where the plan has several, the axes of its sweep.
fn place_columns(spec: &PlanSpec) -> Vec<String> {
    let several = spec.points.iter().any(|point| point.spec.overlays.len() > 1 || point.spec.overlays != spec.overlays);
    let overlay = several.then(|| "overlay".to_owned());
    let axes = spec.axes.iter().map(|axis| format!("\"{}\"", axis.name));
    std::iter::once("workload".to_owned()).chain(overlay).chain(axes).collect()
}

fn check_ends(spec: &PlanSpec) -> Result<(), String> {
    let ends = |workload: &Workload| {
        matches!(
            workload,
            Workload::Shuffle { .. } | Workload::Permutation { .. } | Workload::Flows { .. } | Workload::Traffic(_)
        )
    };
    match spec.workload.iter().find(|(_, workload)| !ends(workload)) {
        None => Ok(()),
        Some((name, workload)) => Err(format!(
            "`questions = \"flow-summary\"` needs flows that end; workload `{name}` is of kind `{}`, and it takes `shuffle`, \
             `permutation`, `flows` and `traffic`",
            workload.kind()
        )),
    }
}

fn check_services(spec: &PlanSpec) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("`questions = \"isolation\"` {what}"));
    if !spec.axes.is_empty() || spec.overlays.len() != 1 {
        return wrong("takes one overlay and no sweep");
    }
    for workload in spec.workload.values() {
        let Workload::Services(services) = workload else { return wrong("needs workloads of kind `services`") };
        let steady = services.service.values().filter(|service| service.role == ServiceRole::LongFlows).count();
        if steady != 1 || services.service.len() < 2 {
            return wrong("needs one service with the role `long-flows` beside others in each workload");
        }
        if spec.sampling.warm_up >= services.begin_of_others() {
            return wrong("needs a `sampling.warm_up` that ends before the second service begins");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weft_scenario::record::{FlowRow, Records};

    use super::super::{Mode, Plan};
    use super::*;
    use crate::analysis::testing::{self, SECOND, plan_text};

    const TABLES: &str = r#"
[workload.near]
kind = "permutation"
bytes_per_flow = "1 MB"
shift = 1
[sweep.size]
sets = ["workload.near.bytes_per_flow"]
values = ["1 MB", "4 MB"]
[sampling]
interval = "1 s"
time_limit = "60 s"
[[claims]]
id = "p99_fct_ms.near.4MB"
relation = "<="
want = 4000.0
unit = "ms"
"#;

    fn plan(keys: &str, tables: &str) -> Result<PlanSpec, String> {
        let text = plan_text(&format!("questions = \"flow-summary\"\n{keys}"), tables);
        Plan::parse("p.toml", &text).map(|plan| plan.for_mode(Mode::Default).clone()).map_err(|error| error.to_string())
    }

    /// Two flows of a second's distance that take `seconds` and twice that.
    fn two_flows(bytes: u64, seconds: u64) -> Records {
        let flow = |to: u32, start_ns: u64, seconds: u64| FlowRow {
            to,
            bytes_asked: bytes,
            bytes_received: bytes,
            start_ns,
            end_ns: Some(start_ns + seconds * SECOND),
            retransmits: 3,
            ..FlowRow::default()
        };
        Records { flows: vec![flow(1, SECOND, seconds), flow(2, 2 * SECOND, 2 * seconds)], ..Records::default() }
    }

    #[test]
    fn each_place_of_a_sweep_has_metrics_of_its_own() {
        let spec = plan("overlays = [\"vl2\"]\nrepetitions = 3", TABLES).unwrap();
        let findings = testing::analyse(&spec, |key| {
            if key.point[0] == "4MB" { two_flows(4_000_000, 2) } else { two_flows(1_000_000, 1) }
        });
        assert_eq!(findings.problems, []);
        let value = |name: &str| {
            findings.metrics.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", findings.metrics.keys())).value
        };
        assert_eq!((value("mean_fct_ms.near.1MB"), value("mean_fct_ms.near.4MB")), (1500.0, 3000.0));
        // 8 MB from second 1 to second 6.
        assert_eq!((value("goodput.near.4MB"), value("retransmitted_segments.near.4MB")), (12_800_000.0, 6.0));
        assert!((value("jain_flows.near.1MB") - 0.9).abs() < 1e-9);
        assert_eq!(findings.metrics["p50_fct_ms.near.1MB"].n, 3);
        assert!(!findings.metrics.contains_key("mean_slowdown.near.1MB"), "nobody knows the idle network's time");
        let table = &findings.tables[0];
        assert_eq!(table.headings[..3], ["workload", "size", "class"]);
        assert_eq!(table.rows[0][..6], ["near", "1MB", "all", "6", "6", "1500"]);
    }

    #[test]
    fn overlays_are_named_where_there_are_several() {
        let tables = TABLES.replace("p99_fct_ms.near.4MB", "p99_fct_ms.near.routed.4MB");
        let spec = plan("overlays = [\"vl2\", \"routed\"]", &tables).unwrap();
        let findings = testing::analyse(&spec, |_| two_flows(1_000_000, 1));
        assert!(findings.metrics.contains_key("goodput.near.vl2.1MB"), "{:?}", findings.metrics.keys());
    }

    #[test]
    fn flows_that_do_not_end_fail_the_run() {
        let spec = plan("overlays = [\"vl2\"]", TABLES).unwrap();
        let findings = testing::analyse(&spec, |_| {
            let mut records = two_flows(1_000_000, 1);
            records.flows[0].end_ns = None;
            records
        });
        assert_eq!(findings.problems.len(), 2, "{:?}", findings.problems);
    }

    #[test]
    fn workloads_without_an_end_are_refused() {
        let endless = "kind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = 1\nduration = \"1 s\"";
        let tables = TABLES.replace("kind = \"permutation\"\nbytes_per_flow = \"1 MB\"\nshift = 1", endless);
        let tables = tables.replace("[\"workload.near.bytes_per_flow\"]", "[\"workload.near.flows\"]");
        let tables = tables.replace("[\"1 MB\", \"4 MB\"]", "[1, 2]");
        let error = plan("overlays = [\"vl2\"]", &tables).unwrap_err();
        assert!(error.contains("needs flows that end; workload `near` is of kind `one-to-one`"), "{error}");
    }
}
