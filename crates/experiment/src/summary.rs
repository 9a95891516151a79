//! The one object that `weft run -o json` prints and `summary.json` holds.

use serde::{Deserialize, Serialize};

use crate::metric::{Estimate, Limit};
use crate::plan::{Band, Claim, Relation};
use crate::stats::Method;
use crate::table;
use crate::verdict::Verdict;

/// Version of [`RunSummary`]'s fields; it changes when one is removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Result of one run of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// Which of the plan's rates ran, where it was asked for or looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepTaken>,
    /// Who else used the machine, and whether that made its CPU the bottleneck; nothing where nobody did and it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
}

/// A step of a plan that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepTaken {
    /// Its name; `null`: the plan's own rates.
    pub name: Option<String>,
    /// Why it, as a sentence.
    pub why: String,
}

impl RunSummary {
    /// The run's verdict: `fail` if any claim fails, else `inconclusive` if any is, else `differs` if any does, else `pass`.
    pub fn verdict(&self) -> Verdict {
        let order = [Verdict::Fail, Verdict::Inconclusive, Verdict::Differs];
        order.into_iter().find(|verdict| self.count(*verdict) > 0).unwrap_or(Verdict::Pass)
    }

    /// Whether any claim is held against something.
    pub fn is_judged(&self) -> bool {
        self.count(Verdict::Info) < self.claims.len()
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

    /// What came out, as a sentence.
    pub fn headline(&self) -> String {
        let judged = self.claims.len() - self.count(Verdict::Info);
        let held = self.count(Verdict::Pass) + self.count(Verdict::Differs);
        let claims = |n: usize| if n == 1 { "1 judged claim".to_owned() } else { format!("{n} judged claims") };
        match self.verdict() {
            Verdict::Fail => {
                let failed = self.count(Verdict::Fail);
                let verb = if failed == 1 { "fails" } else { "fail" };
                format!("{failed} of {} {verb}: {}.", claims(judged), self.named(Verdict::Fail))
            }
            Verdict::Inconclusive => {
                format!("Undecided: {}; {held} of {} hold.", self.named(Verdict::Inconclusive), claims(judged))
            }
            Verdict::Differs => {
                format!("Our own floors hold; not as in the paper: {}.", self.named(Verdict::Differs))
            }
            Verdict::Pass | Verdict::Info if judged > 0 => {
                let all = if judged == 1 {
                    "The one judged claim holds".to_owned()
                } else {
                    format!("All {} hold", claims(judged))
                };
                let first =
                    self.claims.iter().find(|claim| claim.verdict == Verdict::Pass).and_then(ClaimResult::words);
                first.map_or_else(|| format!("{all}."), |first| format!("{all}: {first}."))
            }
            Verdict::Pass | Verdict::Info => {
                let first = self.claims.iter().find_map(ClaimResult::words);
                first.map_or_else(|| "Nothing is judged.".to_owned(), |first| format!("Nothing is judged: {first}."))
            }
        }
    }

    /// The first claims of a verdict with their reasons.
    fn named(&self, verdict: Verdict) -> String {
        const NAMED: usize = 2;
        let all: Vec<&ClaimResult> = self.claims.iter().filter(|claim| claim.verdict == verdict).collect();
        let one = |claim: &&ClaimResult| match &claim.reason {
            Some(reason) => format!("{} ({})", claim.id, reason.trim_end_matches('.')),
            None => claim.id.clone(),
        };
        let named = all.iter().take(NAMED).map(one).collect::<Vec<_>>().join(", ");
        match all.len().saturating_sub(NAMED) {
            0 => named,
            more => format!("{named} and {more} more"),
        }
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.claims.iter().filter(|claim| claim.verdict == verdict).count()
    }
}

/// One line of the claims table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

impl ClaimResult {
    /// The number beside what is wanted and what the paper has; `None` if the run did not yield it.
    fn words(&self) -> Option<String> {
        let quantity = |value: f64| table::quantity(value, &self.unit);
        let want = self.want.filter(|_| self.relation != Relation::Info);
        let want = want.map(|want| format!("wanted {} {}", self.relation.symbol(), quantity(want)));
        let beside: Vec<String> =
            want.into_iter().chain(self.paper.map(|paper| format!("paper {}", quantity(paper)))).collect();
        let beside = if beside.is_empty() { String::new() } else { format!(" ({})", beside.join(", ")) };
        self.ours.map(|ours| format!("{} is {}{beside}", self.id, quantity(ours)))
    }
}

/// Six significant digits: more would be noise, fewer would hide 0.99997.
fn round(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
impl ClaimResult {
    /// One that says nothing, for tests to fill in what they are about.
    pub(crate) fn bare(id: &str) -> Self {
        Self {
            id: id.into(),
            paper: None,
            ours: None,
            unit: String::new(),
            relation: Relation::Info,
            want: None,
            paper_wants: None,
            interval: None,
            interval_method: None,
            coverage: None,
            n: 3,
            exact: false,
            baseline: String::new(),
            limited_by: None,
            required: false,
            verdict: Verdict::Info,
            reason: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(id: &str, verdict: Verdict, reason: Option<&str>) -> ClaimResult {
        ClaimResult {
            paper: Some(0.847),
            ours: Some(0.958),
            unit: "ratio".into(),
            relation: Relation::AtLeast,
            want: Some(0.94),
            required: true,
            verdict,
            reason: reason.map(str::to_owned),
            ..ClaimResult::bare(id)
        }
    }

    fn headline(claims: Vec<ClaimResult>) -> String {
        let (plan, run_dir, engine) = ("a/one".to_owned(), "r".to_owned(), "sim".to_owned());
        RunSummary { schema_version: 1, plan, engine, seed: 1, claims, run_dir, step: None, cpu: None }.headline()
    }

    #[test]
    fn the_headline_says_what_came_out() {
        use Verdict::{Differs, Fail, Inconclusive, Info, Pass};
        let (pass, info) = (claim("goodput", Pass, None), claim("time", Info, None));
        assert_eq!(
            headline(vec![info.clone(), pass.clone(), pass.clone()]),
            "All 2 judged claims hold: goodput is 0.958 (wanted >= 0.940, paper 0.847)."
        );
        let failed = |id: &str| claim(id, Fail, Some("0.900 < 0.940"));
        assert_eq!(
            headline(vec![pass.clone(), failed("a"), failed("b"), failed("c"), info.clone()]),
            "3 of 4 judged claims fail: a (0.900 < 0.940), b (0.900 < 0.940) and 1 more."
        );
        let hidden = claim("a", Inconclusive, Some("the interval spans 0.940"));
        assert_eq!(
            headline(vec![hidden, pass.clone()]),
            "Undecided: a (the interval spans 0.940); 1 of 2 judged claims hold."
        );
        let other = claim("a", Differs, Some("the kernel is faster."));
        assert_eq!(headline(vec![pass, other]), "Our own floors hold; not as in the paper: a (the kernel is faster).");
        assert_eq!(headline(vec![info]), "Nothing is judged: time is 0.958 (wanted >= 0.940, paper 0.847).");
        assert_eq!(headline(Vec::new()), "Nothing is judged.");
    }
}
