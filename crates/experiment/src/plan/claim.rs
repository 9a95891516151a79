//! What a plan wants to see, beside what the paper said.

use std::fmt;

use serde::{Deserialize, Serialize};
pub use weft_scenario::judge::Relation;

/// Which number of an estimate is judged; [`crate::verdict`] has the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// Where the number is if the paper's direction or size comes out: `">= 1.2"`, `"<= 1"` or `"1.2 .. 1.4"`. A number that is
    /// elsewhere `differs`.
    pub paper_wants: Option<Band>,
    /// Why we believe that it does differ, in a line.
    pub because: Option<String>,
    /// What the number cannot exceed if all was measured well: a number, or another metric's name.
    pub bound: Option<Bound>,
    /// The mutation of the plan's rows that makes the claim fail.
    pub fails_when: Option<String>,
    /// A remark for the report, for instance why a floor is lower in quick mode.
    pub note: Option<String>,
}

impl Claim {
    /// A metric that is shown and held against nothing.
    pub(crate) fn shown(metric: String, unit: &str) -> Self {
        Self {
            id: metric,
            metric: None,
            paper: None,
            paper_text: None,
            want: None,
            relation: Relation::Info,
            unit: unit.to_owned(),
            baseline: String::new(),
            required: false,
            judge: Judge::default(),
            not_above: None,
            paper_wants: None,
            because: None,
            bound: None,
            fails_when: None,
            note: None,
        }
    }
}

/// Where a number may be, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Lower end, or minus infinity.
    pub low: f64,
    /// Upper end, or infinity.
    pub high: f64,
}

/// What a value cannot exceed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Bound {
    /// The same in every run.
    Number(f64),
    /// What another metric says.
    Metric(String),
}

impl Band {
    /// Whether a number is in it.
    pub fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    fn read(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        let band = match (text.strip_prefix(">="), text.strip_prefix("<="), text.split_once("..")) {
            (Some(low), _, _) => Self { low: number(low)?, high: f64::INFINITY },
            (_, Some(high), _) => Self { low: f64::NEG_INFINITY, high: number(high)? },
            (_, _, Some((low, high))) => Self { low: number(low)?, high: number(high)? },
            _ => return None,
        };
        (band.low <= band.high).then_some(band)
    }
}

impl fmt::Display for Band {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) => write!(formatter, "{} .. {}", self.low, self.high),
            (true, false) => write!(formatter, ">= {}", self.low),
            _ => write!(formatter, "<= {}", self.high),
        }
    }
}

impl Serialize for Band {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for Band {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Band".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "`>= 1.2`, `<= 1` or `1.2 .. 1.4`" })
    }
}

impl<'de> Deserialize<'de> for Band {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("`{text}` is none of `>= 1.2`, `<= 1` and `1.2 .. 1.4`")))
    }
}

impl Claim {
    /// The metric that it is about.
    pub fn metric(&self) -> &str {
        self.metric.as_deref().unwrap_or(&self.id)
    }

    /// Every metric that it needs.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        self.metrics_by_key().map(|(_, name)| name)
    }

    /// Every metric that it needs, behind the key that names it.
    pub(crate) fn metrics_by_key(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let own = if self.metric.is_some() { "metric" } else { "id" };
        let bound = match &self.bound {
            Some(Bound::Metric(name)) => Some(("bound", name.as_str())),
            _ => None,
        };
        let not_above = self.not_above.as_deref().map(|name| ("not_above", name));
        std::iter::once((own, self.metric())).chain(not_above).chain(bound)
    }

    /// Whether it has a verdict.
    pub fn is_judged(&self) -> bool {
        self.relation != Relation::Info || self.paper_wants.is_some()
    }
}
