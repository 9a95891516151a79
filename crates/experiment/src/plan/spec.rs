//! The fields of a plan file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weft_scenario::engine::{DirectoryStore, Overlay, ProbeSpec, Transport};
use weft_scenario::fault::Fault;
use weft_scenario::switching::Switching;
use weft_scenario::topology::FabricSpec;
use weft_scenario::units::Nanos;
use weft_scenario::workload::Workload;

use super::{
    Axis, Claim, ENGINE_AXIS, FigureQuestion, MetricQuestion, Mutation, Point, ProblemQuestion, QuestionSet,
    TableQuestion, View,
};
use crate::analysis::Analysis;

/// A plan as it runs in one mode.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanSpec {
    /// Short name: the path below `plans/` without `.toml`.
    pub id: String,
    /// The paper's short name, for instance `VL2`; `none` where there is none.
    #[serde(default = "none")]
    pub paper: String,
    /// Which table, figure or section of it.
    #[serde(default = "none")]
    pub figure: String,
    /// One line for lists.
    pub title: String,
    /// Engines that can run it, the preferred one first.
    pub engines: Vec<String>,
    /// How long it takes with its preferred engine, roughly, in seconds; 0 where nobody has said it.
    #[serde(default)]
    pub expected_s: u32,
    /// How records become metrics; without it the plan's own `metrics` do.
    #[serde(default)]
    pub analysis: Analysis,
    /// Questions that many plans ask, before its own.
    #[serde(default)]
    pub questions: Option<QuestionSet>,
    /// The stretch of every trial that its own questions measure: `trial`, `from_s`, `to_s`; without it what `sampling` leaves.
    pub measured: Option<String>,
    /// What its questions share.
    #[serde(default)]
    pub views: Vec<View>,
    #[serde(default)]
    pub metrics: Vec<MetricQuestion>,
    /// What makes a run worthless.
    #[serde(default)]
    pub problems: Vec<ProblemQuestion>,
    /// Tables of its report.
    #[serde(default)]
    pub tables: Vec<TableQuestion>,
    /// Figures of its report.
    #[serde(default)]
    pub figures: Vec<FigureQuestion>,
    /// Overlays to run; each is a scenario of its own.
    pub overlays: Vec<Overlay>,
    /// What keeps a VL2 directory's mappings; `etcd3` and `etcd5` give the network three and five directory servers.
    #[serde(default)]
    pub directory: DirectoryStore,
    /// Whether links have their declared rate and buffer. Measurements of CPU cost go without.
    #[serde(default = "yes")]
    pub shaped: bool,
    /// How often each overlay and workload runs; repetition i has seed + i.
    #[serde(default = "once")]
    pub repetitions: u32,
    /// Whether the networks of all overlays and points are up at once and take turns, so that a change of the machine's mood meets all
    /// of them.
    #[serde(default)]
    pub interleave: bool,
    /// Whether networks are brought up anew for every repetition: where the memory and the interrupts of a bed come to lie is luck, of
    /// which each repetition should have its own.
    #[serde(default)]
    pub rebuild: bool,
    /// How the run is scaled against the paper's.
    #[serde(default)]
    pub scale: Scale,
    /// The network.
    pub fabric: Option<FabricSpec>,
    /// Queues and load balancing of switches and network cards.
    #[serde(default)]
    pub switching: Switching,
    /// Host settings.
    #[serde(default)]
    pub transport: Transport,
    /// What the servers do, by name; each is a trial of its own in every repetition.
    #[serde(default)]
    pub workload: BTreeMap<String, Workload>,
    /// Names of the workloads that run, so that a mode can leave some out; all without it.
    pub workloads: Option<Vec<String>>,
    /// What breaks.
    #[serde(default)]
    pub fault: Vec<Fault>,
    /// When counters are read and when a trial is cut.
    pub sampling: Sampling,
    /// What is shown and judged.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// What would make required claims fail.
    #[serde(default)]
    pub mutations: Vec<Mutation>,
    /// The engine that this is the plan for, or those that it compares: `lab`, `sim`, `lab+sim`.
    #[serde(skip)]
    pub runs_on: String,
    /// The folder that files are named from, which is the plan's own; none where the plan is embedded.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
    /// Which step down from the plan's own rates this is; `None`: it has them.
    #[serde(skip)]
    pub step: Option<String>,
    /// Axes of the sweep, in order of their names.
    #[serde(skip)]
    pub axes: Vec<Axis>,
    /// Every combination of places on the axes, the last axis running fastest; one without labels in a plan without a
    /// sweep. The scenario above is the first point's.
    #[serde(skip)]
    pub points: Vec<Point>,
}

impl PlanSpec {
    /// How many trials the plan has in all.
    pub fn trials(&self) -> usize {
        let of_point = |point: &Point| point.spec.overlays.len() * point.spec.workload.len();
        self.points.iter().map(of_point).sum::<usize>() * self.repetitions as usize
    }

    /// Whether a run needs all of the plan's engines, because they are an axis of its sweep.
    pub fn compares_engines(&self) -> bool {
        self.axes.iter().any(|axis| axis.name == ENGINE_AXIS)
    }

    /// The label of a point on an axis; `None` if there is no such axis.
    pub fn label<'a>(&self, labels: &'a [String], axis: &str) -> Option<&'a str> {
        let place = self.axes.iter().position(|one| one.name == axis)?;
        labels.get(place).map(String::as_str)
    }

    /// The labels of an axis; none if there is no such axis.
    pub fn labels_of(&self, axis: &str) -> &[String] {
        self.axes.iter().find(|one| one.name == axis).map_or(&[], |one| &one.labels)
    }
}

fn yes() -> bool {
    true
}

fn none() -> String {
    "none".to_owned()
}

fn once() -> u32 {
    1
}

/// Our units over the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scale {
    /// Our link rates over the paper's.
    pub rate: f64,
    /// Our seconds for one of the paper's.
    pub time: f64,
}

impl Default for Scale {
    fn default() -> Self {
        Self { rate: 1.0, time: 1.0 }
    }
}

/// When counters are read and when a trial is cut.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Distance between rows of progress, links and cores.
    pub interval: Nanos,
    /// Distance between rows of TCP state; without it there are none.
    pub tcp_interval: Option<Nanos>,
    /// The trial is cut after this time.
    pub time_limit: Nanos,
    /// What is left out at the start, where an analysis has a warm-up.
    #[serde(default)]
    pub warm_up: Nanos,
    /// Flows that start later are load and are not measured, so that none is measured while the load already falls.
    pub measure_until: Option<Nanos>,
    /// Length of one interval of the split's time series (analyses `vlb-split` and `split-speed`).
    pub split_interval: Option<Nanos>,
    /// Paced datagrams beside the traffic (analysis `convergence`); lab only.
    pub probes: Option<ProbeSpec>,
    /// Workloads whose traffic is pinned to one core, so that its CPU time can be measured (analysis `overlay-cost`); the
    /// traffic of the others runs on all cores.
    #[serde(default)]
    pub measure_cpu_cost: Vec<String>,
    /// Whether some trials record what a replay shows, and have one beside the report.
    #[serde(default = "yes")]
    pub replay: bool,
}
