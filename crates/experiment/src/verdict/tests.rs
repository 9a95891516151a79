//! All cases of the table in the module's head.

use super::*;
use crate::metric::Limit;
use crate::stats::{Interval, Method};

use Judge::{IntervalUpper, Median, Value};
use Relation::{AtLeast, AtMost, Info};
use Verdict::{Fail, Inconclusive, Pass};

fn claim(judge: Judge, relation: Relation, want: Option<f64>) -> Claim {
    Claim {
        metric: None,
        id: "metric".into(),
        paper: None,
        paper_text: None,
        want,
        relation,
        unit: "ratio".into(),
        baseline: String::new(),
        required: false,
        judge,
        not_above: None,
        paper_wants: None,
        because: None,
        bound: None,
        fails_when: None,
        note: None,
    }
}

fn estimate(value: f64, interval: Option<(f64, f64)>) -> Estimate {
    let interval = interval.map(|(low, high)| Interval { low, high, coverage: 0.95, method: Method::Median });
    Estimate { value, interval, n: 3, limited_by: Limit::Link, is_exact: false }
}

fn findings(estimate: Estimate) -> Findings {
    Findings { metrics: [("metric".to_owned(), estimate)].into(), ..Findings::default() }
}

#[test]
fn every_judge_and_side() {
    let cases = [
        (Value, AtLeast, 0.95, None, Pass),
        (Value, AtLeast, 0.93, None, Fail),
        (Value, AtLeast, 0.94, None, Pass),
        (Value, AtLeast, 0.96, Some((0.95, 0.97)), Pass),
        (Value, AtLeast, 0.96, Some((0.94, 0.97)), Pass),
        (Value, AtLeast, 0.96, Some((0.93, 0.97)), Inconclusive),
        (Value, AtLeast, 0.93, Some((0.92, 0.95)), Inconclusive),
        (Value, AtLeast, 0.92, Some((0.91, 0.93)), Fail),
        (Value, AtMost, 0.93, Some((0.92, 0.935)), Pass),
        (Value, AtMost, 0.96, Some((0.95, 0.97)), Fail),
        (Value, AtMost, 0.93, Some((0.92, 0.95)), Inconclusive),
        (Median, AtLeast, 0.95, Some((0.80, 0.97)), Pass),
        (Median, AtLeast, 0.93, Some((0.80, 0.97)), Fail),
        (Median, AtMost, 0.95, None, Fail),
        (IntervalUpper, AtMost, 0.90, Some((0.88, 0.94)), Pass),
        (IntervalUpper, AtMost, 0.90, Some((0.88, 0.95)), Inconclusive),
        (IntervalUpper, AtMost, 0.96, Some((0.93, 0.99)), Inconclusive),
        (IntervalUpper, AtMost, 0.97, Some((0.95, 0.99)), Fail),
        (IntervalUpper, AtMost, 0.50, None, Inconclusive),
        (IntervalUpper, AtLeast, 0.95, Some((0.80, 0.99)), Pass),
        (IntervalUpper, AtLeast, 0.90, Some((0.80, 0.99)), Inconclusive),
        (IntervalUpper, AtLeast, 0.90, Some((0.88, 0.93)), Fail),
        (IntervalUpper, AtLeast, 0.99, None, Inconclusive),
        (Value, AtLeast, f64::NAN, None, Inconclusive),
    ];
    for (judge, relation, value, interval, want) in cases {
        let result = super::judge(&claim(judge, relation, Some(0.94)), &findings(estimate(value, interval)));
        assert_eq!(result.verdict, want, "{judge:?} {relation:?} {value} {interval:?}");
        let missed_by = result.reason.filter(|_| want == Fail);
        assert_eq!(missed_by.is_some_and(|text| text.contains(['<', '>'])), want == Fail, "a failure says by how much");
    }
}

#[test]
fn the_cpu_hides_good_and_bad_numbers_alike() {
    for value in [0.99, 0.5] {
        let one = Estimate { limited_by: Limit::Cpu, ..estimate(value, None) };
        let result = judge(&claim(Value, AtLeast, Some(0.94)), &findings(one));
        assert_eq!(result.verdict, Inconclusive);
        assert_eq!(result.limited_by.as_deref(), Some("cpu"));
        assert!(result.reason.unwrap().contains("CPU"));
    }
    let pinned = Estimate { limited_by: Limit::PinnedCore, ..estimate(0.99, None) };
    assert_eq!(judge(&claim(Value, AtLeast, Some(0.94)), &findings(pinned)).verdict, Pass);
}

#[test]
fn problems_decide_before_numbers() {
    let good = || findings(estimate(0.99, None));
    let failed = Findings { problems: vec![Problem::Invalid("b".into()), Problem::Failed("a".into())], ..good() };
    let invalid = Findings { problems: vec![Problem::Invalid("b".into())], ..good() };
    let claim_one = claim(Value, AtLeast, Some(0.94));
    let (failed, invalid) = (judge(&claim_one, &failed), judge(&claim_one, &invalid));
    assert_eq!((failed.verdict, failed.reason.as_deref()), (Fail, Some("a")));
    assert_eq!((invalid.verdict, invalid.reason.as_deref()), (Inconclusive, Some("b")));
    let info = Findings { problems: vec![Problem::Failed("a".into())], ..Findings::default() };
    assert_eq!(judge(&claim(Value, Info, None), &info).verdict, Verdict::Info);
}

#[test]
fn a_number_that_is_missing_is_inconclusive_and_null() {
    let result = judge(&claim(Value, AtLeast, Some(0.94)), &Findings::default());
    assert_eq!((result.verdict, result.ours, result.n), (Inconclusive, None, 0));
}

#[test]
fn the_other_metric_is_a_second_ceiling() {
    let bar = |low, high| ("bar".to_owned(), estimate((low + high) / 2.0, Some((low, high))));
    let cases = [(bar(1.2, 1.4), Pass), (bar(1.0, 1.08), Pass), (bar(1.0, 1.05), Inconclusive), (bar(0.9, 1.01), Fail)];
    let claim = Claim { not_above: Some("bar".into()), ..claim(IntervalUpper, AtMost, Some(1.15)) };
    for (bar, want) in cases {
        let mut findings = findings(estimate(1.05, Some((1.02, 1.08))));
        findings.metrics.extend([bar.clone()]);
        assert_eq!(judge(&claim, &findings).verdict, want, "{bar:?}");
    }
    assert_eq!(judge(&claim, &findings(estimate(1.05, Some((1.02, 1.08))))).verdict, Inconclusive);
}

#[test]
fn the_run_is_as_good_as_its_worst_claim() {
    let summary = |verdicts: &[Verdict]| {
        let one = |verdict: &Verdict| ClaimResult {
            verdict: *verdict,
            ..ClaimResult::new(&claim(Value, Info, None), None, Verdict::Info, None)
        };
        let claims = verdicts.iter().map(one).collect();
        crate::summary::RunSummary {
            schema_version: 1,
            plan: "p".into(),
            engine: "lab".into(),
            seed: 1,
            claims,
            run_dir: "d".into(),
            ..Default::default()
        }
        .verdict()
    };
    assert_eq!(summary(&[Pass, Verdict::Info]), Pass);
    assert_eq!(summary(&[Pass, Inconclusive]), Inconclusive);
    assert_eq!(summary(&[Fail, Inconclusive, Pass]), Fail);
}

#[test]
fn work_of_others_excuses_a_bad_value_and_takes_nothing_from_a_good_one() {
    let judged = |value: f64| {
        let estimate = Estimate { limited_by: Limit::OtherWork, ..estimate(value, None) };
        judge(&claim(Value, AtMost, Some(1.0)), &findings(estimate))
    };
    assert_eq!(judged(0.9).verdict, Pass);
    let excused = judged(1.1);
    assert_eq!(excused.verdict, Inconclusive);
    assert!(excused.reason.unwrap().starts_with("other work"));
}

#[test]
fn what_the_paper_wants_is_a_second_question() {
    let paper = |judge, because: &str| Claim {
        paper_wants: Some(Band { low: 1.2, high: f64::INFINITY }),
        because: (!because.is_empty()).then(|| because.to_owned()),
        ..claim(judge, AtMost, Some(1.35))
    };
    let cases = [
        (Value, "x", 0.91, None, Verdict::Differs, Some("x")),
        (Value, "", 0.91, None, Verdict::Differs, Some("the paper's is >= 1.2; nobody knows why")),
        (Value, "x", 1.25, None, Pass, Some("it agrees with the paper's >= 1.2: `because` is stale")),
        (Value, "", 1.25, None, Pass, None),
        (Value, "x", 1.40, None, Fail, Some("1.400 > 1.350")),
        (Value, "x", 1.15, Some((1.1, 1.25)), Pass, Some("cannot be told from the paper's >= 1.2")),
        (Median, "x", 1.15, Some((1.1, 1.25)), Verdict::Differs, Some("x")),
    ];
    for (judge, because, value, interval, verdict, reason) in cases {
        let result = super::judge(&paper(judge, because), &findings(estimate(value, interval)));
        assert_eq!((result.verdict, result.reason.as_deref()), (verdict, reason), "{judge:?} {value} {interval:?}");
        let alone = Claim { relation: Info, want: None, ..paper(judge, because) };
        let alone = super::judge(&alone, &findings(estimate(value, interval))).verdict;
        let open = verdict == Pass && interval.is_some();
        assert_eq!(
            alone,
            if open {
                Inconclusive
            } else if verdict == Fail {
                Pass
            } else {
                verdict
            },
            "{value} alone"
        );
    }
    let busy = Estimate { limited_by: Limit::OtherWork, ..estimate(0.91, None) };
    assert_eq!(judge(&paper(Value, "x"), &findings(busy)).verdict, Inconclusive);
}

#[test]
fn more_than_there_can_be_is_never_a_pass() {
    let bounded = |bound| Claim { bound: Some(bound), ..claim(Median, AtLeast, Some(0.94)) };
    let of = |claim: &Claim, value| judge(claim, &findings(estimate(value, None)));
    let one = bounded(Bound::Number(1.0));
    assert_eq!([of(&one, 1.0).verdict, of(&one, 1.0 + 1e-12).verdict, of(&one, 0.5).verdict], [Pass, Pass, Fail]);
    let above = of(&one, 1.015);
    assert_eq!(
        (above.verdict, above.reason.as_deref()),
        (Inconclusive, Some("1.015 is more than there can be (1.000)"))
    );
    assert_eq!(
        of(&Claim { relation: Info, want: None, ..one }, 1.015).verdict,
        Inconclusive,
        "also where nothing is wanted"
    );
    let mut both = findings(estimate(0.98, None));
    let by_metric = bounded(Bound::Metric("most".into()));
    assert_eq!(judge(&by_metric, &both).verdict, Inconclusive, "it is not known");
    both.metrics.insert("most".into(), Estimate::exact(0.963, Limit::Computed));
    assert_eq!(judge(&by_metric, &both).verdict, Inconclusive);
    both.metrics.insert("most".into(), Estimate::exact(0.99, Limit::Computed));
    assert_eq!(judge(&by_metric, &both).verdict, Pass);
}

#[test]
fn two_samples_show_no_spread() {
    for (n, is_exact, verdict) in
        [(1, false, Inconclusive), (2, false, Inconclusive), (3, false, Pass), (1, true, Pass)]
    {
        let one = Estimate { n, is_exact, ..estimate(0.99, None) };
        assert_eq!(judge(&claim(Median, AtLeast, Some(0.94)), &findings(one)).verdict, verdict, "{n} {is_exact}");
    }
}
