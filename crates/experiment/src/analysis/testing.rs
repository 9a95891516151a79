//! Synthetic records with known answers, for tests of analyses, figures and runs.

use weft_scenario::engine::Overlay;
use weft_scenario::record::{CpuRow, FlowRow, LinkRow, ProgressRow, Records, WaitRow};
use weft_scenario::topology::{Fabric, Role, to_yaml};
use weft_scenario::units::Nanos;
use weft_scenario::workload::FlowClass;

use super::{Input, TrialKey, TrialRecords};
use crate::figure::Figure;
use crate::metric::Findings;
use crate::plan::{Mode, Plan, PlanSpec};
use crate::query::Database;
use crate::run_folder::{fabric_file, write_trial_rows};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Head and scenario of a plan for four servers of 10 Mbit/s; analysis, workload and claims follow.
const HEAD: &str = r#"
id = "test/plan"
paper = "VL2"
figure = "Figure 0"
title = "a test"
engines = ["lab"]
expected_s = 1
"#;

pub(crate) const FABRIC: &str = r#"
[fabric]
generator = "vl2-testbed"
servers_per_tor = 1
server_rate = "10 Mbit/s"
core_rate = "100 Mbit/s"
"#;

/// A plan from its analysis and the parts that differ.
pub(crate) fn plan(keys: &str, tables: &str) -> Plan {
    Plan::parse("test.toml", &plan_text(keys, tables)).expect("a valid test plan")
}

pub(crate) fn plan_text(keys: &str, tables: &str) -> String {
    format!("{HEAD}{keys}\n{FABRIC}\n{tables}")
}

pub(crate) fn spec(keys: &str, tables: &str) -> PlanSpec {
    plan(keys, tables).for_mode(Mode::Default).clone()
}

pub(crate) fn fabric(spec: &PlanSpec) -> Fabric {
    spec.fabric.as_ref().expect("the head has one").build(&|_| Err("no files".into())).expect("it is valid")
}

pub(crate) const SHUFFLE_TABLES: &str = r#"
[workload.all]
kind = "shuffle"
bytes_per_flow = "1 MB"
[sampling]
interval = "1 s"
time_limit = "60 s"
[[metrics]]
id = "goodput_efficiency"
meaning = "plateau goodput / (all server rates x 2920/3154)"
sql = "select goodput_bps / (servers_bps * 2920.0 / 3154) as value from plateau join trials using (trial) join capacity using (fabric_number)"
[[metrics]]
id = "shuffle_time"
meaning = "time 0 to the end of the last flow, s"
sql = "select end_s as value from plateau where trial not in (select trial from incomplete)"
[[problems]]
id = "incomplete"
verdict = "fail"
sql = "select text from incomplete"
[[figures]]
id = "goodput"
title = "Aggregate goodput over time"
kind = "lines"
x = "time (s)"
y = "goodput (Mbit/s)"
sql = "select printf('trial %d', trial) as series, time_s as x, goodput_bps / 1e6 as y from goodput"
[[claims]]
id = "goodput_efficiency"
paper = 0.847
paper_text = "58.8 of 69.4 Gb/s"
relation = ">="
want = 0.94
unit = "ratio"
baseline = "headers-only bound"
required = true
[[claims]]
id = "shuffle_time"
relation = "info"
unit = "s"
"#;

/// A plan for the shuffle tables with more keys.
pub(crate) fn shuffle_plan_text(keys: &str) -> String {
    plan_text(&format!("overlays = [\"vl2\"]\n{keys}"), SHUFFLE_TABLES)
}

/// Four servers on an ideal switch and on two leaf-spine fabrics, at two loads.
pub(crate) const SWEEP_PLAN: &str = r#"
id = "test/sweep"
paper = "Leaf-spine"
figure = "Figure 0"
title = "a sweep"
engines = ["sim"]
expected_s = 1
overlays = ["routed"]
repetitions = 2

[workload.background]
kind = "traffic"
duration = "10 ms"
background = { sizes = "web-search", load_percent = 10 }

[sweep.load]
sets = ["workload.background.background.load_percent"]
values = [30, 70]
unit = "%"

[[sweep.fabric.variant]]
id = "oq"
fabric = { generator = "output-queued", servers = 4 }

[[sweep.fabric.variant]]
id = "10g"
[sweep.fabric.variant.fabric]
generator = "leaf-spine"
spines = 2
leaves = 2
servers_per_leaf = 2
server_rate = "10 Gbit/s"
core_rate = "10 Gbit/s"

[[sweep.fabric.variant]]
id = "40g"
[sweep.fabric.variant.fabric]
generator = "leaf-spine"
spines = 1
leaves = 2
servers_per_leaf = 2
server_rate = "10 Gbit/s"
core_rate = "40 Gbit/s"

[sampling]
interval = "1 ms"
time_limit = "1 s"

[[metrics]]
id = "mean_over_oq"
meaning = "mean FCT / on the ideal switch"
sql = '''
select ours.fabric, paired_ratio(ours.fct_ns, ideal.fct_ns, ours.repetition) as value
from fct ours join fct ideal using (workload, load, repetition, flow)
where ideal.fabric = 'oq' and ours.fabric <> 'oq' group by ours.fabric'''
[[figures]]
id = "mean"
title = "Mean FCT"
kind = "lines"
x = "load (%)"
y = "ms"
sql = "select fabric as series, load as x, avg(fct_ns) / 1e6 as y from fct group by fabric, load"
levels = "select 'ideal switch' as label, 1.0 as value"
[[claims]]
id = "mean_over_oq.10g"
relation = "<="
want = 2.0
unit = "ratio"

[quick.sweep.fabric]
only = ["oq", "10g"]
[quick.sweep.load]
values = [50]
"#;

/// One scenario on both engines.
pub(crate) const COMPARISON_PLAN: &str = r#"
id = "test/comparison"
paper = "none"
figure = "none"
title = "a comparison"
engines = ["lab", "sim"]
expected_s = 1
overlays = ["routed"]
fabric = { generator = "overlay-pair" }
transport = { initial_window = 4 }
sampling = { interval = "1 s", time_limit = "10 s" }

[engine.sim.transport]
initial_window = 5

[sweep.engine]
values = ["lab", "sim"]

[workload.one]
kind = "permutation"
bytes_per_flow = "1 MB"
shift = 1

[[metrics]]
id = "goodput_error"
meaning = "distance from 1 of the simulated goodput / the kernel's"
exact = true
sql = '''
with runs as (select engine, sum(bytes_received) * 1.0 / max(end_ns) as goodput from flows group by engine)
select abs(sim.goodput / lab.goodput - 1) as value from runs sim, runs lab where sim.engine = 'sim' and lab.engine = 'lab''''
[[claims]]
id = "goodput_error"
relation = "<="
want = 0.05
unit = "ratio"
"#;

/// The trials of a plan, each with the records that `yields` makes for its place.
pub(crate) fn trials_of(spec: &PlanSpec, yields: impl Fn(&TrialKey) -> Records) -> Vec<TrialRecords> {
    let mut trials = Vec::new();
    for point in &spec.points {
        for repetition in 1..=spec.repetitions {
            let overlays = || point.spec.overlays.iter();
            for (workload, overlay) in
                point.spec.workload.keys().flat_map(|name| overlays().map(move |one| (name, one)))
            {
                let (trial, seed) = (trials.len() as u32 + 1, u64::from(repetition));
                let (overlay, workload, point) = (*overlay, workload.clone(), point.labels.clone());
                let key = TrialKey { trial, repetition, seed, overlay, workload, point };
                trials.push(TrialRecords { records: yields(&key), key });
            }
        }
    }
    trials
}

/// Runs a plan's analysis on such trials.
pub(crate) fn analyse(spec: &PlanSpec, yields: impl Fn(&TrialKey) -> Records) -> Findings {
    let (fabrics, trials) = (spec.build_fabrics().expect("they are valid"), trials_of(spec, yields));
    run(spec, &fabrics, &trials)
}

/// The findings of a plan from such trials.
pub(crate) fn run(spec: &PlanSpec, fabrics: &[Fabric], trials: &[TrialRecords]) -> Findings {
    of_input(spec, fabrics, trials, |input| spec.analysis.run(input))
}

/// Its figures.
pub(crate) fn figures(spec: &PlanSpec, fabrics: &[Fabric], trials: &[TrialRecords]) -> Vec<Figure> {
    of_input(spec, fabrics, trials, crate::figure::figures)
}

/// Looks at a run folder with these trials.
fn of_input<T>(spec: &PlanSpec, fabrics: &[Fabric], trials: &[TrialRecords], look: impl FnOnce(&Input<'_>) -> T) -> T {
    let folder = tempfile::tempdir().expect("a folder");
    let records = folder.path().join("records");
    std::fs::create_dir(&records).expect("it is empty");
    for trial in trials {
        write_trial_rows(&records, &spec.axes, trial).expect("rows");
    }
    let file = |(number, fabric): (usize, &Fabric)| {
        let name = fabric_file(number);
        std::fs::write(folder.path().join(&name), to_yaml(fabric)).expect("a network");
        name
    };
    let files: Vec<String> = fabrics.iter().enumerate().map(file).collect();
    std::fs::write(folder.path().join("manifest.json"), "{}").expect("a manifest");
    let database = Database::with_spec(folder.path(), &files, spec).expect("the plan's views are questions");
    look(&Input { spec, fabrics, trials, database: Some(&database) })
}

/// A plan up to its first metric, with the questions of a shipped plan and one claim.
pub(crate) fn asking(plan: &str, shipped: &str, metric: &str) -> PlanSpec {
    let (measured, questions) = questions_of(shipped);
    let (scenario, _) = plan.split_once("[[metrics]]").expect("it asks");
    let scenario = scenario.replacen("overlays = ", &format!("{measured}\noverlays = "), 1);
    let claim = format!("[[claims]]\nid = \"{metric}\"\nrelation = \"info\"\nunit = \"x\"\n");
    let text = format!("{scenario}\n{questions}\n{claim}");
    Plan::parse("test.toml", &text).expect("a valid test plan").for_mode(Mode::Default).clone()
}

/// What a shipped plan asks: its `measured`, and the tables of its questions.
pub(crate) fn questions_of(name: &str) -> (String, String) {
    let plan = crate::plan::load(name).expect("it is shipped");
    let measured = plan.for_mode(Mode::Default).measured.as_ref();
    let measured = measured.map(|sql| format!("measured = {sql:?}")).unwrap_or_default();
    let kinds = ["views", "problems", "metrics", "tables", "figures"].map(|kind| format!("\n[[{kind}]]\n"));
    let from = kinds.iter().filter_map(|kind| plan.text().find(kind)).min().expect("it asks");
    let to = plan.text().find("\n[[claims]]\n").expect("it claims");
    (measured, plan.text()[from..to].to_owned())
}

pub(crate) fn shuffle_spec() -> PlanSpec {
    spec("overlays = [\"vl2\"]", SHUFFLE_TABLES)
}

pub(crate) fn trial(number: u32, overlay: Overlay, workload: &str, records: Records) -> TrialRecords {
    let (seed, workload) = (u64::from(number), workload.to_owned());
    let key = TrialKey { trial: number, repetition: number, seed, overlay, workload, point: Vec::new() };
    TrialRecords { key, records }
}

/// A flow from server 0 to server 1 that got what it asked for if it ended.
pub(crate) fn flow(bytes_asked: u64, start_ns: u64, end_ns: Option<u64>) -> FlowRow {
    FlowRow {
        from: 0,
        to: 1,
        bytes_asked,
        bytes_received: if end_ns.is_some() { bytes_asked } else { 0 },
        start_ns,
        end_ns,
        retransmits: 0,
        class: FlowClass::Bulk,
        request: None,
        ideal_ns: None,
    }
}

/// A shuffle in which every flow has the same share all the time and all end together after `seconds`.
pub(crate) fn even_shuffle(fabric: &Fabric, bytes_per_flow: u64, seconds: u64) -> Records {
    let servers = fabric.servers().count() as u32;
    let pairs = (0..servers).flat_map(|from| (0..servers).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let flow = |(from, to)| FlowRow { from, to, retransmits: 1, ..flow(bytes_per_flow, 0, Some(seconds * SECOND)) };
    let flows: Vec<FlowRow> = pairs.map(flow).collect();
    let total = bytes_per_flow * flows.len() as u64;
    let progress = |second: u64| ProgressRow {
        time_ns: second * SECOND,
        received_bytes: total * second / seconds,
        flows_done: if second == seconds { flows.len() as u64 } else { 0 },
    };
    let cpu = |second: u64| CpuRow { time_ns: second * SECOND, core: 0, idle_ratio: 0.5, softirq_ratio: 0.3 };
    Records {
        progress: (1..=seconds).map(progress).collect(),
        links: even_links(fabric, seconds, 1_000_000),
        cpu: (1..=seconds).map(cpu).collect(),
        core_waits: (1..=seconds).map(|second| waiting(second, 0.3)).collect(),
        flows,
        ..Records::default()
    }
}

/// A program that waited so many milliseconds for a core, once in a second.
pub(crate) fn waiting(second: u64, wait_ms: f64) -> WaitRow {
    let (time_ns, waited_ns) = (second * SECOND, (wait_ms * 1e6) as u64);
    WaitRow { time_ns, who: "traffic".into(), wall_ns: SECOND, ran_ns: SECOND / 2, waited_ns, turns: 1 }
}

/// Every direction of every link sends `bytes_per_s` all the time.
pub(crate) fn even_links(fabric: &Fabric, seconds: u64, bytes_per_s: u64) -> Vec<LinkRow> {
    let mut rows = Vec::new();
    for (second, link) in (0..=seconds).flat_map(|second| fabric.links().iter().map(move |link| (second, link))) {
        for (port, peer) in [(&link.a, &link.b), (&link.b, &link.a)] {
            rows.push(LinkRow {
                time_ns: Nanos(second * SECOND).0,
                node: fabric.node(port.node).name.clone(),
                interface: port.interface.clone(),
                peer: fabric.node(peer.node).name.clone(),
                class: "any".into(),
                sent_bytes: second * bytes_per_s,
                dropped_frames: 0,
            });
        }
    }
    rows
}

/// Multiplies what one switch sent to one neighbour.
pub(crate) fn scale_link(fabric: &Fabric, rows: &mut [LinkRow], node: &str, peer: &str, factor: f64) {
    assert!(fabric.with_role(Role::Aggregation).any(|id| fabric.node(id).name == node), "{node} is an Aggregation");
    let mut matched = 0;
    for row in rows.iter_mut().filter(|row| row.node == node && row.peer == peer) {
        row.sent_bytes = (row.sent_bytes as f64 * factor) as u64;
        matched += 1;
    }
    assert!(matched > 0, "{node} has a link to {peer}");
}
