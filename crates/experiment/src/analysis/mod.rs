//! Records to metrics: pure functions, one module per question that a figure asks.
//!
//! * [`asked`]: the questions that stand in the plan
//! * [`flow_log`]: what a flow log says (VL2 3.1 to 3.3, Figures 2 to 4)
//! * [`series`], [`links`], [`cpu`], [`completion`]: what they share
//! * [`class_summary`]: completion times of one run, for a look without a plan
//! * [`framing`]: how much of a link's rate can be payload

pub mod asked;
pub mod class_summary;
pub mod completion;
pub mod cpu;
pub mod flow_log;
pub mod framing;
pub mod links;
pub mod series;

use serde::{Deserialize, Serialize};
use weft_scenario::engine::Overlay;
use weft_scenario::record::{CpuRow, EventRow, OtherRow, Records, RowKind, TcpRow, WaitRow};
use weft_scenario::topology::Fabric;
use weft_scenario::workload::Workload;

use crate::metric::{Findings, Problem};
use crate::plan::PlanSpec;
use crate::query::Database;
use flow_log::LogQuestion;

/// Which question a plan asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Analysis {
    /// [`asked`].
    #[default]
    #[serde(skip)]
    Asked,
    /// [`flow_log::sizes`].
    FlowSizes,
    /// [`flow_log::concurrency`].
    FlowConcurrency,
    /// [`flow_log::matrices`].
    TrafficMatrices,
}

/// A metric that an analysis yields.
#[derive(Clone, Copy, Debug)]
pub struct MetricInfo {
    /// Its name, which claims refer to.
    pub name: &'static str,
    /// What it is, with its denominator.
    pub meaning: &'static str,
}

/// Which trial of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialKey {
    /// Number in the order of running, from 1.
    pub trial: u32,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    pub seed: u64,
    pub overlay: Overlay,
    /// Name of its workload in the plan.
    pub workload: String,
    /// Its places on the axes of the sweep; empty in a plan without one.
    pub point: Vec<String>,
}

/// A trial and what it yielded.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecords {
    /// Which one.
    pub key: TrialKey,
    /// Its rows.
    pub records: Records,
}

/// Everything that an analysis may look at.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The plan as it ran.
    pub spec: &'a PlanSpec,
    /// The network of every point of the plan, in their order.
    pub fabrics: &'a [Fabric],
    /// Its trials, in order, with the rows that the analysis reads ([`Analysis::reads`]).
    pub trials: &'a [TrialRecords],
    /// The same rows as tables, for the plan's own questions.
    pub database: Option<&'a Database>,
}

impl<'a> Input<'a> {
    /// The network of a plan without a sweep; of a sweep the first point's.
    pub fn fabric(&self) -> &'a Fabric {
        self.fabrics.first().expect("a plan has at least one point")
    }

    /// The plan and the network at a trial's point; `None` if the plan does not have that point.
    pub fn at(&self, key: &TrialKey) -> Option<(&'a PlanSpec, &'a Fabric)> {
        let place = self.spec.points.iter().position(|point| point.labels == key.point)?;
        Some((&self.spec.points[place].spec, self.fabrics.get(place)?))
    }

    /// A trial's place on an axis.
    pub fn label<'b>(&self, key: &'b TrialKey, axis: &str) -> Option<&'b str> {
        self.spec.label(&key.point, axis)
    }
}

impl Analysis {
    /// The question to flow logs that it is; `None`: those of the plan.
    fn of_log(self) -> Option<&'static LogQuestion> {
        match self {
            Self::Asked => None,
            Self::FlowSizes => Some(&flow_log::sizes::QUESTION),
            Self::FlowConcurrency => Some(&flow_log::concurrency::QUESTION),
            Self::TrafficMatrices => Some(&flow_log::matrices::QUESTION),
        }
    }

    /// As a plan writes it.
    pub fn name(self) -> &'static str {
        self.of_log().map_or("questions", |log| log.name)
    }

    /// The metrics it yields, without the suffixes for workloads and places of a sweep.
    pub fn metrics(self) -> &'static [MetricInfo] {
        self.of_log().map_or(&[], |log| log.metrics)
    }

    /// The kinds of rows that it and its figures read.
    pub fn reads(self) -> &'static [RowKind] {
        const ASKED: &[RowKind] = &[TcpRow::KIND, CpuRow::KIND, WaitRow::KIND, OtherRow::KIND, EventRow::KIND];
        self.of_log().map_or(ASKED, |log| log.reads)
    }

    /// Whether the plan's axes and workloads are those that it compares; says what is missing.
    pub fn check_sweep(self, spec: &PlanSpec) -> Result<(), String> {
        self.of_log().map_or_else(|| asked::check(spec), |log| log.check(spec))
    }

    /// The names of all metrics that it may yield for a plan.
    pub fn metric_names(self, spec: &PlanSpec) -> Vec<String> {
        self.of_log().map_or_else(|| asked::names(spec), |log| log.names(spec))
    }

    /// What a metric is, whatever its suffix.
    pub fn meaning(self, metric: &str) -> Option<&'static str> {
        let is_it = |info: &&MetricInfo| {
            metric.strip_prefix(info.name).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
        };
        self.metrics().iter().find(is_it).map(|info| info.meaning)
    }

    /// Runs it.
    pub fn run(self, input: &Input<'_>) -> Findings {
        let mut findings = self.of_log().map_or_else(|| asked::analyse(input), |log| log.analyse(input));
        findings.problems.extend(unexpected_route_changes(input));
        findings
    }
}

/// A run without faults in which routing neighbours were lost did not measure the fabric that the plan describes.
fn unexpected_route_changes(input: &Input<'_>) -> Option<Problem> {
    let events = input.trials.iter().flat_map(|trial| &trial.records.events);
    let changes = events.filter(|event| event.kind == "adjacency").count();
    let moves = input.spec.workload.values().any(|workload| matches!(workload, Workload::Migration(_)));
    let expected = !input.spec.fault.is_empty() || moves;
    (changes > 0 && !expected)
        .then(|| Problem::Invalid(format!("{changes} routing adjacency changes in a run without faults")))
}

#[cfg(test)]
pub(crate) mod testing;
