//! Judges a claim against its floor or ceiling `want`, and then against what `paper_wants`; never against the paper's number with
//! a tolerance. docs/verdicts.md tells it to people.
//!
//! | judge | pass | fail | inconclusive |
//! | --- | --- | --- | --- |
//! | `value` | value holds, interval does not span `want` | value does not hold, same | interval spans `want` |
//! | `median` | value holds | value does not hold | never by noise |
//! | `interval-upper`, `<=` | upper end at most `want` | lower end above `want` | otherwise, or no interval |
//! | `interval-upper`, `>=` | value holds | upper end below `want` | value below, upper end not |
//!
//! Whatever the judge: a run that failed fails its claims; a run that was not what the plan describes, or whose value
//! was limited by the emulating machine's CPU, is beyond its physical bound or rests on fewer than three samples without being
//! exact, is inconclusive, even where the number looks good; one that other work on the machine can only have made worse is
//! inconclusive where it does not look good.
//!
//! What passes, or has no floor, and is outside of what the paper wants (with its whole interval, but for `median`) differs.

pub use weft_scenario::judge::Verdict;

use crate::metric::{Estimate, Findings, Problem};
use crate::plan::{Band, Bound, Claim, Judge, Relation};
use crate::summary::ClaimResult;
use crate::table::{against, quantity};

/// A verdict, and the reason where it is not plain from the numbers.
type Judgement = (Verdict, Option<String>);

/// Fewer samples than this show no spread.
const LEAST_SAMPLES: usize = 3;
/// What rounding may put above a bound, as a share of it.
const ROUNDING: f64 = 1e-9;

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
    if !claim.is_judged() {
        let hidden = estimate.and_then(|estimate| beyond(claim, estimate, findings).err());
        return hidden.map_or((Verdict::Info, None), |reason| (Verdict::Inconclusive, Some(reason)));
    }
    if let Some(problem) = worst_problem(&findings.problems) {
        return match problem {
            Problem::Failed(text) => (Verdict::Fail, Some(text.clone())),
            Problem::Invalid(text) => (Verdict::Inconclusive, Some(text.clone())),
        };
    }
    let Some(estimate) = estimate else {
        return (Verdict::Inconclusive, Some("the run's records do not hold this number".into()));
    };
    if estimate.limited_by.hides_answer() {
        return (Verdict::Inconclusive, Some("the CPU of this machine was the bottleneck".into()));
    }
    if let Err(reason) = beyond(claim, estimate, findings) {
        return (Verdict::Inconclusive, Some(reason));
    }
    if estimate.n < LEAST_SAMPLES && !estimate.is_exact {
        let reason = format!("it rests on {} of the {LEAST_SAMPLES} samples that a verdict takes", estimate.n);
        return (Verdict::Inconclusive, Some(reason));
    }
    let judgement = match (claim.want, &claim.not_above) {
        (None, _) => None,
        (Some(want), other) => Some(match (compare(claim, estimate, want), other) {
            ((Verdict::Pass, _), Some(other)) => not_above(estimate, other, findings),
            (judgement, _) => judgement,
        }),
    };
    let judgement = match (claim.paper_wants, judgement) {
        (Some(band), None | Some((Verdict::Pass, _))) => against_paper(claim, band, estimate),
        (_, judgement) => judgement.unwrap_or((Verdict::Info, None)),
    };
    match judgement.0 {
        Verdict::Fail | Verdict::Differs if estimate.limited_by.excuses() => {
            (Verdict::Inconclusive, Some("other work on this machine may have caused it".into()))
        }
        _ => judgement,
    }
}

/// An error if a value is more than there can be: then something was measured wrongly, however good it looks.
fn beyond(claim: &Claim, estimate: &Estimate, findings: &Findings) -> Result<(), String> {
    let most = match &claim.bound {
        None => return Ok(()),
        Some(Bound::Number(most)) => *most,
        Some(Bound::Metric(name)) => {
            findings.metrics.get(name).ok_or_else(|| format!("its bound `{name}` was not measured"))?.value
        }
    };
    match estimate.value > most + most.abs() * ROUNDING {
        true => Err(format!("{:.3} is more than there can be ({most:.3})", estimate.value)),
        false => Ok(()),
    }
}

/// What holds as far as we want it, or has no floor, held against the paper's direction or size.
fn against_paper(claim: &Claim, band: Band, estimate: &Estimate) -> Judgement {
    let interval = estimate.interval.filter(|_| claim.judge != Judge::Median);
    let (low, high) = interval.map_or((estimate.value, estimate.value), |ends| (ends.low, ends.high));
    match () {
        () if band.holds(low) && band.holds(high) => {
            let stale = || format!("it agrees with the paper's {band}: `because` is stale");
            (Verdict::Pass, claim.because.as_ref().map(|_| stale()))
        }
        () if high < band.low || low > band.high => {
            let unknown = || format!("the paper's is {band}; nobody knows why");
            (Verdict::Differs, Some(claim.because.clone().unwrap_or_else(unknown)))
        }
        () if claim.relation == Relation::Info => {
            (Verdict::Inconclusive, Some(format!("cannot be told from the paper's {band}")))
        }
        () => (Verdict::Pass, Some(format!("cannot be told from the paper's {band}"))),
    }
}

fn worst_problem(problems: &[Problem]) -> Option<&Problem> {
    problems.iter().find(|problem| matches!(problem, Problem::Failed(_))).or(problems.first())
}

fn compare(claim: &Claim, estimate: &Estimate, want: f64) -> Judgement {
    let (judge, relation) = (claim.judge, claim.relation);
    let plain = |holds: bool| match holds {
        true => (Verdict::Pass, None),
        false => (Verdict::Fail, Some(against(estimate.value, want, &claim.unit))),
    };
    let noise = || (Verdict::Inconclusive, Some(format!("the interval spans {}", quantity(want, &claim.unit))));
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
