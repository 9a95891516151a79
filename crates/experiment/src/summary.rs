//! The one object that `weft run -o json` prints and `summary.json` holds.

use serde::{Deserialize, Serialize};

use crate::metric::{Estimate, Limit};
use crate::plan::{Band, Claim, Relation};
use crate::stats::Method;
use crate::verdict::Verdict;

/// Version of [`RunSummary`]'s fields; it changes when one is removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Result of one run of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The plan's short name.
    pub plan: String,
    /// `lab` or `sim`.
    pub engine: String,
    /// Seed of the first repetition.
    pub seed: u64,
    /// The plan's claims, in its order.
    pub claims: Vec<ClaimResult>,
    /// The run folder.
    pub run_dir: String,
}

impl RunSummary {
    /// The run's verdict: `fail` if any claim fails, else `inconclusive` if any is, else `differs` if any does, else `pass`.
    pub fn verdict(&self) -> Verdict {
        let order = [Verdict::Fail, Verdict::Inconclusive, Verdict::Differs];
        order.into_iter().find(|verdict| self.count(*verdict) > 0).unwrap_or(Verdict::Pass)
    }

    /// Whether something hides the answer to what the plan has to show.
    pub fn hides_required(&self) -> bool {
        self.claims.iter().any(|claim| claim.required && claim.verdict == Verdict::Inconclusive)
    }

    /// `12 claims: 5 pass, 1 differs, 6 info`.
    pub fn counts(&self) -> String {
        let all = [Verdict::Pass, Verdict::Fail, Verdict::Differs, Verdict::Inconclusive, Verdict::Info];
        let counted = all.map(|verdict| (self.count(verdict), verdict.word()));
        let words: Vec<_> = counted.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        format!("{} claim{}: {}", self.claims.len(), if self.claims.len() == 1 { "" } else { "s" }, words.join(", "))
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.claims.iter().filter(|claim| claim.verdict == verdict).count()
    }
}

/// One line of the claims table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The metric.
    pub id: String,
    /// The paper's number.
    pub paper: Option<f64>,
    /// Ours; `null` if the run did not yield it.
    pub ours: Option<f64>,
    /// Unit of all numbers here.
    pub unit: String,
    /// `>=`, `<=` or `info`.
    pub relation: Relation,
    /// The floor or ceiling.
    pub want: Option<f64>,
    /// Where the number is if the paper's direction or size comes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper_wants: Option<Band>,
    /// Lower and upper end of our number's interval.
    pub interval: Option<[f64; 2]>,
    /// What it is an interval of, and how it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_method: Option<Method>,
    /// Probability that it covers the true value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// How many samples it rests on.
    pub n: usize,
    /// Whether one is enough.
    #[serde(default)]
    pub exact: bool,
    /// What the number is relative to.
    pub baseline: String,
    /// What limited our number.
    pub limited_by: Option<String>,
    /// Whether the plan rests on it.
    pub required: bool,
    /// The outcome.
    pub verdict: Verdict,
    /// Why, where the numbers alone do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ClaimResult {
    /// A claim with what was measured. Numbers that are not finite are left out: JSON cannot hold them.
    pub fn new(claim: &Claim, estimate: Option<&Estimate>, verdict: Verdict, reason: Option<String>) -> Self {
        let finite = |value: f64| value.is_finite().then_some(round(value));
        let interval = estimate.and_then(|estimate| estimate.interval);
        let ends = interval.and_then(|interval| Some([finite(interval.low)?, finite(interval.high)?]));
        Self {
            id: claim.id.clone(),
            paper: claim.paper,
            ours: estimate.and_then(|estimate| finite(estimate.value)),
            unit: claim.unit.clone(),
            relation: claim.relation,
            want: claim.want,
            paper_wants: claim.paper_wants,
            interval: ends,
            interval_method: interval.map(|interval| interval.method),
            coverage: interval.map(|interval| round(interval.coverage)),
            n: estimate.map_or(0, |estimate| estimate.n),
            exact: estimate.is_some_and(|estimate| estimate.is_exact),
            baseline: claim.baseline.clone(),
            limited_by: estimate.map(|estimate| Limit::name(estimate.limited_by).to_owned()),
            required: claim.required,
            verdict,
            reason,
        }
    }
}

/// Six significant digits: more would be noise, fewer would hide 0.99997.
fn round(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
