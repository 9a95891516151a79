//! How a number is judged against a floor or a ceiling, in the words of plans' claims, floors of benches and the doctor.

use serde::{Deserialize, Serialize};

/// How something came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// Our own floor holds, or there is none, and the paper's direction or size does not come out.
    Differs,
    /// Noise or a limit elsewhere hides the answer.
    Inconclusive,
    /// Nothing was judged.
    Info,
}

impl Verdict {
    /// The word for tables and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Differs => "differs",
            Self::Inconclusive => "inconclusive",
            Self::Info => "info",
        }
    }
}

/// Which side of `want` is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Relation {
    /// At least `want`.
    #[serde(rename = ">=")]
    AtLeast,
    /// At most `want`.
    #[serde(rename = "<=")]
    AtMost,
    /// Nothing is judged.
    #[serde(rename = "info")]
    Info,
}

impl Relation {
    /// As a plan writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Info => "info",
        }
    }

    /// Whether `value` is on the wanted side; [`Relation::Info`] wants everything.
    pub fn holds(self, value: f64, want: f64) -> bool {
        match self {
            Self::AtLeast => value >= want,
            Self::AtMost => value <= want,
            Self::Info => true,
        }
    }
}

/// A floor or a ceiling of a bench with our number. What others do on the machine only ever makes a number worse: what holds
/// has held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What is measured.
    pub id: String,
    pub ours: f64,
    /// Both ends of its interval, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Whether `want` is a floor or a ceiling.
    pub relation: Relation,
    /// The floor or ceiling.
    pub want: f64,
    /// Unit of all numbers.
    pub unit: &'static str,
    /// How it came out.
    pub verdict: Verdict,
    /// The reason, where the numbers do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

impl Check {
    /// A floor.
    pub fn at_least(id: impl Into<String>, ours: f64, want: f64, unit: &'static str) -> Self {
        Self::new(id.into(), ours, Relation::AtLeast, want, unit)
    }

    /// A ceiling.
    pub fn at_most(id: impl Into<String>, ours: f64, want: f64, unit: &'static str) -> Self {
        Self::new(id.into(), ours, Relation::AtMost, want, unit)
    }

    fn new(id: String, ours: f64, relation: Relation, want: f64, unit: &'static str) -> Self {
        let verdict = if relation.holds(ours, want) { Verdict::Pass } else { Verdict::Fail };
        Self { id, ours, interval: None, relation, want, unit, verdict, why: None }
    }

    /// The same, judged by both ends of an interval: where `want` is between them the answer is hidden.
    #[must_use]
    pub fn over(self, [low, high]: [f64; 2]) -> Self {
        let (verdict, why) = match [low, high].map(|end| self.relation.holds(end, self.want)) {
            [true, true] => (Verdict::Pass, None),
            [false, false] => (Verdict::Fail, None),
            _ => (Verdict::Inconclusive, Some("the interval spans it")),
        };
        Self { interval: Some([low, high]), verdict, why, ..self }
    }

    /// The same where something may have made the number worse: then a miss says nothing.
    #[must_use]
    pub fn unless(self, doubt: Option<&'static str>) -> Self {
        match doubt {
            Some(why) if self.verdict == Verdict::Fail => {
                Self { verdict: Verdict::Inconclusive, why: Some(why), ..self }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_and_ceilings_hold_at_their_very_value() {
        let verdicts = [1.0, 2.0, 3.0].map(|ours| {
            (Check::at_least("x", ours, 2.0, "").verdict.word(), Check::at_most("x", ours, 2.0, "").verdict.word())
        });
        assert_eq!(verdicts, [("fail", "pass"), ("pass", "pass"), ("pass", "fail")]);
    }

    #[test]
    fn a_doubt_excuses_a_miss_and_changes_nothing_else() {
        let of = |ours| Check::at_least("x", ours, 2.0, "s").unless(Some("a slower machine"));
        assert_eq!((of(1.0).verdict, of(1.0).why), (Verdict::Inconclusive, Some("a slower machine")));
        assert_eq!((of(3.0).verdict, of(3.0).why), (Verdict::Pass, None));
        assert_eq!(Check::at_least("x", 1.0, 2.0, "s").unless(None).verdict, Verdict::Fail);
    }

    #[test]
    fn an_interval_is_judged_by_both_ends() {
        let of = |ends| Check::at_most("x", 0.7, 0.7, "ratio").over(ends).verdict;
        assert_eq!(of([0.5, 0.7]), Verdict::Pass);
        assert_eq!(of([0.5, 0.9]), Verdict::Inconclusive);
        assert_eq!(of([0.71, 0.9]), Verdict::Fail);
    }
}
