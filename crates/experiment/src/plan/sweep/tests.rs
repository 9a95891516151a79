//! Points of a sweep, in their order, and sweeps that are refused with their place.

use super::super::{Mode, Plan};
use crate::analysis::testing::SWEEP_PLAN;
use weft_scenario::record::RowKind;
use weft_scenario::workload::Workload;

fn parse(text: &str) -> Plan {
    Plan::parse("p.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

/// The message for the plan in which `from` is replaced by `to`.
fn refusal(from: &str, to: &str) -> String {
    assert!(SWEEP_PLAN.contains(from), "{from}");
    Plan::parse("p.toml", &SWEEP_PLAN.replacen(from, to, 1)).expect_err("it is wrong").to_string()
}

fn load_of(workload: &Workload) -> u32 {
    let Workload::Traffic(traffic) = workload else { panic!("{workload:?}") };
    traffic.background.as_ref().unwrap().load_percent
}

#[test]
fn points_are_the_product_of_the_axes_the_last_running_fastest() {
    let plan = parse(SWEEP_PLAN);
    let spec = plan.for_mode(Mode::Default);
    let names: Vec<_> = spec.points.iter().map(|point| point.name(&spec.axes)).collect();
    let expected = [
        "fabric=oq load=30",
        "fabric=oq load=70",
        "fabric=10g load=30",
        "fabric=10g load=70",
        "fabric=40g load=30",
        "fabric=40g load=70",
    ];
    assert_eq!(names, expected);
    let loads: Vec<u32> = spec.points.iter().map(|point| load_of(&point.spec.workload["background"])).collect();
    assert_eq!(loads, [30, 70, 30, 70, 30, 70]);
    let fabrics = spec.build_fabrics().unwrap();
    let links: Vec<usize> = fabrics.iter().map(|fabric| fabric.links().len()).collect();
    assert_eq!(links, [4, 4, 8, 8, 6, 6]);
    assert_eq!((spec.trials(), spec.axes[1].unit.as_str()), (12, "%"));
    assert_eq!(spec.label(&spec.points[2].labels, "fabric"), Some("10g"));
    assert_eq!(spec.label(&spec.points[2].labels, "colour"), None);
}

#[test]
fn a_mode_changes_values_and_leaves_out_variants() {
    let plan = parse(SWEEP_PLAN);
    let spec = plan.for_mode(Mode::Quick);
    let names: Vec<_> = spec.points.iter().map(|point| point.name(&spec.axes)).collect();
    assert_eq!(names, ["fabric=oq load=50", "fabric=10g load=50"]);
}

#[test]
fn a_mode_leaves_out_workloads() {
    let more = "[workload.other]\nkind = \"traffic\"\nduration = \"1 ms\"\nbackground = { sizes = \"data-mining\", \
                load_percent = 10 }\n[quick]\nworkloads = [\"other\"]\n[quick.sweep.load]";
    let plan = parse(&SWEEP_PLAN.replace("[quick.sweep.load]", more));
    let names = |mode| plan.for_mode(mode).workload.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        (names(Mode::Quick), names(Mode::Default)),
        (vec!["other".into()], vec!["background".into(), "other".into()])
    );
    assert_eq!(plan.for_mode(Mode::Quick).trials(), 4);
}

#[test]
fn a_plan_without_a_sweep_has_one_point_without_labels() {
    let plan = super::super::load("vl2/smoke").unwrap();
    let spec = plan.for_mode(Mode::Default);
    assert_eq!((spec.axes.len(), spec.points.len(), spec.points[0].name(&spec.axes)), (0, 1, String::new()));
    assert_eq!(spec.points[0].spec.fabric, spec.fabric);
}

#[test]
fn mistakes_in_a_sweep_are_named_with_their_place() {
    let messages = [
        refusal("values = [30, 70]", "values = []"),
        refusal("values = [30, 70]", "values = [30, 30]"),
        refusal("values = [30, 70]", "values = [30, true]"),
        refusal("values = [30, 70]", "values = 30"),
        refusal("values = [30, 70]", "valves = [30, 70]"),
        refusal("values = [30, 70]", "values = [30, \"much\"]"),
        refusal("background.load_percent\"]", "background.load\"]"),
        refusal("sets = [\"workload.background.background.load_percent\"]\n", ""),
        refusal("[sweep.load]", "[sweep.trial]"),
        refusal("[sweep.load]", "[sweep.'my load']"),
        refusal("id = \"40g\"", "id = \"10g\""),
        refusal("id = \"40g\"", "id = \"40 g\""),
        refusal("id = \"40g\"\n", ""),
        refusal("id = \"40g\"\n", "id = \"40g\"\nclaims = []\n"),
        refusal("spines = 1", "spine = 1"),
        refusal("only = [\"oq\", \"10g\"]", "only = [\"oq\", \"100g\"]"),
        refusal("id = \"oq\"", "id = \"ideal\""),
        refusal("kind = \"traffic\"", "kind = \"mix\""),
        refusal("repetitions = 2", "workloads = [\"foreground\"]"),
        refusal("repetitions = 2", "workloads = []"),
    ];
    for message in &messages {
        let mut mistakes = message.lines().filter(|line| !line.ends_with(" mistakes:"));
        assert!(mistakes.all(|line| line.trim_start().starts_with("p.toml")), "{message}");
    }
    insta::assert_snapshot!(messages.join("\n"));
}

/// A file of rows would have two columns of one name.
#[test]
fn no_axis_is_called_like_a_column() {
    let columns = RowKind::ALL.iter().flat_map(|kind| kind.columns).map(|column| column.name);
    for name in columns.chain(["trial", "overlay"]) {
        let message = refusal("[sweep.load]", &format!("[sweep.{name}]"));
        assert!(message.contains("records have a column of it"), "{name}: {message}");
    }
}

#[test]
fn a_network_that_cannot_be_built_is_named_by_its_point() {
    let text = SWEEP_PLAN.replace("spines = 1", "spines = 0");
    let error = parse(&text).for_mode(Mode::Default).build_fabrics().unwrap_err();
    assert!(error.starts_with("at fabric=40g load=30: "), "{error}");
}

#[test]
fn a_sweep_without_end_is_refused() {
    let many: Vec<String> = (1..=1001).map(|load| load.to_string()).collect();
    let message = refusal("values = [30, 70]", &format!("values = [{}]", many.join(", ")));
    assert!(message.contains("more than 2000 points"), "{message}");
}

const ENGINES: &str = r#"
[engine.sim]
expected_s = 2
fabric = { server_rate = "1 Gbit/s", core_rate = "10 Gbit/s" }
[quick.engine.sim]
repetitions = 2
"#;

#[test]
fn each_engine_has_its_own_table() {
    let text = crate::analysis::testing::shuffle_plan_text("").replace("[\"lab\"]", "[\"lab\", \"sim\"]");
    let plan = parse(&(text.clone() + ENGINES));
    let (lab, sim) = (plan.for_engine(Mode::Default, "lab").unwrap(), plan.for_engine(Mode::Default, "sim").unwrap());
    assert_eq!((lab.expected_s, sim.expected_s, lab.runs_on.as_str(), sim.runs_on.as_str()), (1, 2, "lab", "sim"));
    let rate = |spec: &super::PlanSpec| spec.build_fabrics().unwrap()[0].links()[0].spec.rate.0;
    assert_ne!(rate(lab), rate(sim));
    assert_eq!(plan.for_engine(Mode::Quick, "sim").unwrap().repetitions, 2);
    assert_eq!(plan.for_engine(Mode::Quick, "lab").unwrap().repetitions, 1);
    assert_eq!(plan.for_mode(Mode::Quick).runs_on, "lab");
    assert!(plan.for_engine(Mode::Default, "lab+sim").is_none());
    for (wrong, want) in [
        ("[engine.ns3]\nrepetitions = 2", "`engine.ns3` is no engine of this plan"),
        ("[engine.sim]\nid = \"x\"", "cannot change `id`"),
        ("[engine]\nsim = 1", "`engine.sim` must be a table"),
        ("[engine.sim]\nrepetition = 2", "unknown field `repetition`"),
        ("[quick.engine.sim]\nrepetitions = 0", "`repetitions` is 0"),
    ] {
        let message = Plan::parse("p.toml", &format!("{text}\n{wrong}\n")).expect_err(wrong).to_string();
        assert!(message.starts_with("p.toml:") && message.contains(want), "{message}");
    }
}

#[test]
fn engines_may_be_an_axis() {
    let text = crate::analysis::testing::COMPARISON_PLAN;
    let plan = parse(text);
    let spec = plan.for_mode(Mode::Default);
    assert_eq!((spec.runs_on.as_str(), spec.compares_engines()), ("lab+sim", true));
    let engines: Vec<_> = spec.points.iter().map(|point| point.engine(&spec.axes).unwrap()).collect();
    assert_eq!(engines, ["lab", "sim"]);
    assert_eq!((spec.points[0].spec.transport.initial_window, spec.points[1].spec.transport.initial_window), (4, 5));
    let message = Plan::parse("p.toml", &text.replace("\"lab\", \"sim\"]\nexpected", "\"lab\"]\nexpected"));
    assert!(message.unwrap_err().to_string().contains("is no engine of this plan"));
}
