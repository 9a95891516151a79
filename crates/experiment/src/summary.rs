//! The one object that `weft run -o json` prints and `summary.json` holds.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::metric::{Estimate, Findings, Limit, MetricPlace};
use crate::plan::{Band, Claim, PlanSpec, Relation};
use crate::run_folder::Manifest;
use crate::stats::Method;
use crate::table;
use crate::verdict::{self, Verdict};

/// Version of [`RunSummary`]'s fields; it changes when one is removed or changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// Result of one run of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// All metrics, where no claim is judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricReading>,
    /// What tells variants apart, in this order: `overlay` and axes of the sweep, which stand in [`MetricReading::place`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// What is wrong with a run of which nothing is judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
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

/// A metric at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MetricReading {
    /// Metric and place in one word, as claims name it.
    pub id: String,
    pub metric: String,
    /// Where it was read: workload, overlay, places of the sweep.
    pub place: BTreeMap<String, String>,
    /// The number; `null` if it is not finite.
    pub value: Option<f64>,
    /// Unit of the numbers here; empty where the plan says none.
    pub unit: String,
    /// Lower and upper end of the interval, where there are repetitions.
    pub interval: Option<[f64; 2]>,
    /// What it is an interval of, and how it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_method: Option<Method>,
    /// Probability that it covers the true value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// How many samples it rests on.
    pub n: usize,
    /// What limited the number.
    pub limited_by: String,
}

impl RunSummary {
    /// What a run of a plan found.
    pub fn of(spec: &PlanSpec, manifest: &Manifest, findings: &Findings, run_dir: &Path) -> Self {
        let claims = verdict::judge_all(&spec.claims, findings);
        let judged = Self {
            schema_version: SCHEMA_VERSION,
            plan: manifest.plan.clone(),
            engine: manifest.engine.clone(),
            seed: manifest.seed,
            claims,
            run_dir: run_dir.display().to_string(),
            step: manifest.step.clone(),
            ..Self::default()
        };
        // A scenario's numbers are its claims.
        if judged.is_judged() || manifest.scenario.is_some() {
            return judged;
        }
        let metrics = metrics(spec, findings);
        let tells = |column: &str| metrics.iter().any(|metric| metric.place.contains_key(column));
        let columns = std::iter::once("overlay").chain(spec.axes.iter().map(|axis| axis.name.as_str()));
        let variants = columns.filter(|column| tells(column)).map(str::to_owned).collect();
        let problems = findings.problems.iter().map(|problem| problem.text().to_owned()).collect();
        Self { metrics, variants, problems, ..judged }
    }

    /// Claims, or metrics where there are none, as numbers that runs are compared by.
    pub fn numbers(&self) -> Vec<ClaimResult> {
        if !self.claims.is_empty() {
            return self.claims.clone();
        }
        let number = |metric: &MetricReading| ClaimResult {
            ours: metric.value,
            unit: metric.unit.clone(),
            interval: metric.interval,
            interval_method: metric.interval_method,
            coverage: metric.coverage,
            n: metric.n,
            limited_by: Some(metric.limited_by.clone()),
            ..ClaimResult::bare(&metric.id)
        };
        self.metrics.iter().map(number).collect()
    }

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
                let (metrics, variants) = table::metrics_and_variants(self);
                match first {
                    Some(first) => format!("Nothing is judged: {first}."),
                    None if metrics == 0 => "Nothing is judged.".to_owned(),
                    None if variants < 2 => format!("Nothing is judged; metrics: {metrics}."),
                    None => format!("Nothing is judged; metrics: {metrics}, each at {variants} variants."),
                }
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

/// All metrics in the order of the plan's questions; of an analysis that is not asked in SQL in that of their names.
fn metrics(spec: &PlanSpec, findings: &Findings) -> Vec<MetricReading> {
    let finite = |value: f64| value.is_finite().then_some(round(value));
    let reading = |place: &MetricPlace| {
        let estimate = findings.metrics.get(&place.name)?;
        let ends = estimate.interval.and_then(|ends| Some([finite(ends.low)?, finite(ends.high)?]));
        let claim = spec.claims.iter().find(|claim| claim.metric() == place.name).map(|claim| claim.unit.as_str());
        let asked = spec.metric_of(&place.name).map(|(metric, _)| metric.unit());
        Some(MetricReading {
            id: place.name.clone(),
            metric: place.metric.clone(),
            place: place.place.iter().cloned().collect(),
            value: finite(estimate.value),
            unit: claim.or(asked).unwrap_or_default().to_owned(),
            interval: ends,
            interval_method: estimate.interval.map(|interval| interval.method),
            coverage: estimate.interval.map(|interval| round(interval.coverage)),
            n: estimate.n,
            limited_by: estimate.limited_by.name().to_owned(),
        })
    };
    let is_asked = |name: &String| findings.places.iter().any(|place| place.name == *name);
    let others = findings.metrics.keys().filter(|name| !is_asked(name));
    let others = others.map(|name| MetricPlace { name: name.clone(), metric: name.clone(), place: Vec::new() });
    findings.places.iter().cloned().chain(others).filter_map(|place| reading(&place)).collect()
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

/// Six significant digits: more would be noise, fewer would hide 0.99997. Counts, and what lies in the middle of two, are as they are.
fn round(value: f64) -> f64 {
    /// Whole numbers up to this one are exact.
    const WHOLE_MOST: f64 = 9_007_199_254_740_992.0;
    if (2.0 * value).fract() == 0.0 && value.abs() <= WHOLE_MOST {
        return value;
    }
    format!("{value:.5e}").parse().unwrap_or(value)
}

impl ClaimResult {
    /// One that says nothing, of three samples.
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
        RunSummary { schema_version: 1, plan, engine, seed: 1, claims, run_dir, ..RunSummary::default() }.headline()
    }

    #[test]
    fn counts_are_kept_as_they_are_and_measured_numbers_with_six_digits() {
        for (value, kept) in [
            (7_640_688.0, 7_640_688.0),
            (12_345_678.5, 12_345_678.5),
            (-9_999_999.0, -9_999_999.0),
            (0.0, 0.0),
            (140_860_123.25, 140_860_000.0),
            (0.999_970_4, 0.99997),
        ] {
            assert_eq!(round(value), kept, "{value}");
        }
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
