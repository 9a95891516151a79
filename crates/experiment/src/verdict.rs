//! Judges a claim against its floor or ceiling `want`; never against the paper's number with a tolerance.
//!
//! | judge | pass | fail | inconclusive |
//! | --- | --- | --- | --- |
//! | `value` | value holds, interval does not span `want` | value does not hold, same | interval spans `want` |
//! | `median` | value holds | value does not hold | never by noise |
//! | `interval-upper`, `<=` | upper end at most `want` | lower end above `want` | otherwise, or no interval |
//! | `interval-upper`, `>=` | value holds | upper end below `want` | value below, upper end not |
//!
//! Whatever the judge: a run that failed fails its claims; a run that was not what the plan describes, or whose value
//! was limited by the emulating machine's CPU, is inconclusive, even where the number looks good; one that other work on
//! the machine can only have made worse is inconclusive where it does not look good.

pub use weft_scenario::judge::Verdict;

use crate::metric::{Estimate, Findings, Problem};
use crate::plan::{Claim, Judge, Relation};
use crate::summary::ClaimResult;

/// A verdict, and the reason where it is not plain from the numbers.
type Judgement = (Verdict, Option<String>);

/// Judges every claim.
pub fn judge_all(claims: &[Claim], findings: &Findings) -> Vec<ClaimResult> {
    claims.iter().map(|claim| judge(claim, findings)).collect()
}

/// Judges one claim.
pub fn judge(claim: &Claim, findings: &Findings) -> ClaimResult {
    let estimate = findings.metrics.get(claim.metric());
    let (verdict, reason) = verdict_of(claim, estimate, findings);
    ClaimResult::new(claim, estimate, verdict, reason)
}

fn verdict_of(claim: &Claim, estimate: Option<&Estimate>, findings: &Findings) -> Judgement {
    if claim.relation == Relation::Info {
        return (Verdict::Info, None);
    }
    if let Some(problem) = worst_problem(&findings.problems) {
        return match problem {
            Problem::Failed(text) => (Verdict::Fail, Some(text.clone())),
            Problem::Invalid(text) => (Verdict::Inconclusive, Some(text.clone())),
        };
    }
    let (Some(estimate), Some(want)) = (estimate, claim.want) else {
        return (Verdict::Inconclusive, Some("the run's records do not hold this number".into()));
    };
    if estimate.limited_by.hides_answer() {
        return (Verdict::Inconclusive, Some("the CPU of this machine was the bottleneck".into()));
    }
    let (verdict, reason) = compare(claim.judge, claim.relation, estimate, want);
    if verdict == Verdict::Fail && estimate.limited_by.excuses() {
        return (Verdict::Inconclusive, Some("other work on this machine may have caused it".into()));
    }
    match &claim.not_above {
        Some(other) if verdict == Verdict::Pass => not_above(estimate, other, findings),
        _ => (verdict, reason),
    }
}

fn worst_problem(problems: &[Problem]) -> Option<&Problem> {
    problems.iter().find(|problem| matches!(problem, Problem::Failed(_))).or(problems.first())
}

fn compare(judge: Judge, relation: Relation, estimate: &Estimate, want: f64) -> Judgement {
    let plain = |holds: bool| (if holds { Verdict::Pass } else { Verdict::Fail }, None);
    let noise = || (Verdict::Inconclusive, Some(format!("the interval spans {want}")));
    if estimate.value.is_nan() {
        return (Verdict::Inconclusive, Some("the value is not a number".into()));
    }
    let value_holds = relation.holds(estimate.value, want);
    match (judge, estimate.interval) {
        (Judge::Median, _) => plain(value_holds),
        (Judge::Value, Some(interval)) if interval.spans(want) => noise(),
        (Judge::Value, _) => plain(value_holds),
        (Judge::IntervalUpper, None) => (Verdict::Inconclusive, Some("one sample has no interval".into())),
        (Judge::IntervalUpper, Some(interval)) => match relation {
            Relation::AtMost if interval.high <= want => plain(true),
            Relation::AtMost if interval.low > want => plain(false),
            Relation::AtLeast if value_holds => plain(true),
            Relation::AtLeast if interval.high < want => plain(false),
            _ => noise(),
        },
    }
}

/// Whether the estimate stays at or below another metric: both intervals' upper ends are compared, and it fails only
/// where the intervals do not meet.
fn not_above(estimate: &Estimate, other: &str, findings: &Findings) -> Judgement {
    let upper = |one: &Estimate| one.interval.map_or(one.value, |interval| interval.high);
    let lower = |one: &Estimate| one.interval.map_or(one.value, |interval| interval.low);
    match findings.metrics.get(other) {
        None => (Verdict::Inconclusive, Some(format!("`{other}` was not measured"))),
        Some(bar) if upper(estimate) <= upper(bar) => (Verdict::Pass, None),
        Some(bar) if lower(estimate) > upper(bar) => {
            (Verdict::Fail, Some(format!("above `{other}` ({:.3})", bar.value)))
        }
        Some(bar) => (Verdict::Inconclusive, Some(format!("cannot be told from `{other}` ({:.3})", bar.value))),
    }
}

#[cfg(test)]
mod tests;
