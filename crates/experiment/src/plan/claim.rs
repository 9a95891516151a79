//! What a plan wants to see, beside what the paper said.

use serde::{Deserialize, Serialize};
pub use weft_scenario::judge::Relation;

/// Which number of an estimate is judged; [`crate::verdict`] has the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// The value, and its interval must not span `want`.
    #[default]
    Value,
    /// The value alone, which over several runs is their median; the interval is printed only.
    Median,
    /// The interval's upper end.
    IntervalUpper,
}

/// One line of a plan's claims table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name: the metric of the plan's analysis that is shown, for instance `goodput_efficiency`.
    pub id: String,
    /// The metric, where the name is another because two claims are on one metric, a floor and a ceiling.
    pub metric: Option<String>,
    /// The paper's number, where it has one.
    pub paper: Option<f64>,
    /// The paper's words or arithmetic behind that number.
    pub paper_text: Option<String>,
    /// The floor or ceiling that is judged; never the paper's number with a tolerance.
    pub want: Option<f64>,
    /// On which side of `want` the value has to be.
    pub relation: Relation,
    /// Unit of paper, want and ours: `ratio`, `s`, `bit/s`.
    pub unit: String,
    /// What the number is relative to.
    #[serde(default)]
    pub baseline: String,
    /// Whether the plan has shown nothing without it. A required claim is always judged.
    #[serde(default)]
    pub required: bool,
    /// Which number is judged.
    #[serde(default)]
    pub judge: Judge,
    /// A second metric that this one may not exceed, for instance the same cost of another overlay.
    pub not_above: Option<String>,
    /// A remark for the report, for instance why a floor is lower in quick mode.
    pub note: Option<String>,
}

impl Claim {
    /// The metric that it is about.
    pub fn metric(&self) -> &str {
        self.metric.as_deref().unwrap_or(&self.id)
    }
}
