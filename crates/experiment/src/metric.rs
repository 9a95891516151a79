//! What an analysis yields: named estimates, each with how sure it is and what held it back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stats::{self, Interval};

/// What kept a value from being better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The declared rate of links: what the paper measures too.
    Link,
    /// The CPU of the machine that emulates the fabric: hides the answer.
    Cpu,
    /// Work of others on the machine, which can only make the value worse: a value that is good enough stands, one that
    /// is not says nothing.
    OtherWork,
    /// The one core that traffic was pinned to on purpose, because its cost is the question.
    PinnedCore,
    /// All cores: sender, receiver and switches shared them as the scheduler chose.
    SharedCores,
    /// The load that the workload offers.
    OfferedLoad,
    /// Arithmetic: nothing was measured.
    Computed,
}

impl Limit {
    /// For people and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Cpu => "cpu",
            Self::OtherWork => "other work",
            Self::PinnedCore => "pinned core",
            Self::SharedCores => "shared cores",
            Self::OfferedLoad => "offered load",
            Self::Computed => "computed",
        }
    }

    /// Whether a value limited by this says nothing about the network under test.
    pub fn hides_answer(self) -> bool {
        self == Self::Cpu
    }

    /// Whether a value limited by this may have been better without it.
    pub fn excuses(self) -> bool {
        self == Self::OtherWork
    }
}

/// A measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The number; over several runs their median, unless the metric says otherwise.
    pub value: f64,
    /// Its interval, if there were enough samples for one.
    pub interval: Option<Interval>,
    /// How many samples it rests on.
    pub n: usize,
    pub limited_by: Limit,
    /// Whether another run of the same would give the same, as counts and calculations do, so that one sample is enough.
    pub is_exact: bool,
}

impl Estimate {
    /// Median of samples with its order-statistics interval. `None` of no sample.
    pub fn of_samples(samples: &[f64], limited_by: Limit) -> Option<Self> {
        let value = stats::median(samples)?;
        let (interval, is_exact) = (stats::median_interval(samples), limited_by == Limit::Computed);
        Some(Self { value, interval, n: samples.len(), limited_by, is_exact })
    }

    /// The same with another unit: value and interval times a factor.
    pub fn scaled(&self, factor: f64) -> Self {
        let scale = |one: Interval| Interval { low: one.low * factor, high: one.high * factor, ..one };
        Self { value: self.value * factor, interval: self.interval.map(scale), ..self.clone() }
    }

    /// A number that has no spread.
    pub fn exact(value: f64, limited_by: Limit) -> Self {
        Self { value, interval: None, n: 1, limited_by, is_exact: true }
    }
}

/// Why a run's numbers cannot be used as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The fabric did not do what was asked, for instance flows did not end: judged claims fail.
    Failed(String),
    /// The run was not what the plan describes, for instance routes changed: judged claims are inconclusive.
    Invalid(String),
}

impl Problem {
    /// The sentence for people.
    pub fn text(&self) -> &str {
        match self {
            Self::Failed(text) | Self::Invalid(text) => text,
        }
    }
}

/// Everything that an analysis found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Estimates by name.
    pub metrics: BTreeMap<String, Estimate>,
    /// Where those that the plan asks for were read, in the order of its questions and their answers.
    pub places: Vec<MetricPlace>,
    /// What is wrong with the run.
    pub problems: Vec<Problem>,
    /// The numbers behind the metrics, place by place, for the report.
    pub tables: Vec<Table>,
}

/// Which metric an estimate is, and where it was read: at a workload, an overlay, a place of the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricPlace {
    /// The estimate's name: metric and place in one word.
    pub name: String,
    /// The metric's own name.
    pub metric: String,
    /// Columns of the question with what the row has there.
    pub place: Vec<(String, String)>,
}

/// Numbers as text cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// What they are.
    pub title: String,
    /// Names of the columns, with units.
    pub headings: Vec<String>,
    /// As many cells as there are headings in every row.
    pub rows: Vec<Vec<String>>,
}

impl Findings {
    /// Adds the median of samples; nothing if there are none.
    pub(crate) fn put(&mut self, name: &str, samples: &[f64], limited_by: Limit) {
        if let Some(estimate) = Estimate::of_samples(samples, limited_by) {
            self.metrics.insert(name.to_owned(), estimate);
        }
    }
}
