//! The claims table as text cells, for the terminal and the report.

use crate::plan::Relation;
use crate::summary::{ClaimResult, RunSummary};

/// Headings of [`claims_table`].
pub const HEADINGS: [&str; 8] = ["claim", "paper", "ours", "interval", "want", "limited by", "verdict", "why"];

/// One line of the claims table.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ClaimRow {
    /// The metric; a `*` marks a required claim.
    pub claim: String,
    /// The paper's number.
    pub paper: String,
    /// Our number with its unit.
    pub ours: String,
    /// Its interval and number of samples.
    pub interval: String,
    /// The floor or ceiling.
    pub want: String,
    /// What limited our number.
    pub limited_by: String,
    /// `pass`, `fail`, `differs`, `inconclusive` or `info`.
    pub verdict: String,
    /// The reason, where the numbers do not say it.
    pub why: String,
}

impl ClaimRow {
    /// The cells in the order of [`HEADINGS`].
    pub fn cells(&self) -> [&str; 8] {
        [&self.claim, &self.paper, &self.ours, &self.interval, &self.want, &self.limited_by, &self.verdict, &self.why]
    }
}

/// The claims of a run as rows of text.
pub fn claims_table(summary: &RunSummary) -> Vec<ClaimRow> {
    summary.claims.iter().map(row).collect()
}

fn row(claim: &ClaimResult) -> ClaimRow {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| quantity(value, &claim.unit));
    let want = match (claim.relation, claim.want) {
        (Relation::Info, _) | (_, None) => None,
        (relation, Some(want)) => Some(format!("{} {}", relation.symbol(), quantity(want, &claim.unit))),
    };
    let paper_wants = claim.paper_wants.map(|band| format!("paper {band}"));
    let want = want.into_iter().chain(paper_wants).collect::<Vec<_>>().join("; ");
    let want = if want.is_empty() { "-".to_owned() } else { want };
    let interval = match claim.interval {
        Some(ends) => format!("{} ({}n {})", range(ends, &claim.unit), made(claim), claim.n),
        None if claim.exact => format!("exact, n {}", claim.n),
        None => format!("n {}", claim.n),
    };
    ClaimRow {
        claim: format!("{}{}", claim.id, if claim.required { " *" } else { "" }),
        paper: number(claim.paper),
        ours: number(claim.ours),
        interval,
        want,
        limited_by: claim.limited_by.clone().unwrap_or_else(|| "-".to_owned()),
        verdict: claim.verdict.word().to_owned(),
        why: claim.reason.clone().unwrap_or_default(),
    }
}

/// `median 75 %, `: what an interval is one of, and what it covers.
fn made(claim: &ClaimResult) -> String {
    let made = claim.interval_method.zip(claim.coverage);
    made.map_or_else(String::new, |(method, coverage)| format!("{} {:.0} %, ", method.name(), coverage * 100.0))
}

/// A number with its unit; ratios stand alone, rates get a prefix.
pub fn quantity(value: f64, unit: &str) -> String {
    let (factor, unit) = shown_in(value, unit);
    format!("{}{unit}", plain(value / factor))
}

/// Two ends in one unit, the same as [`quantity`] takes for the larger: `140.8 .. 140.9 Mbit/s`.
pub fn range([low, high]: [f64; 2], unit: &str) -> String {
    let (factor, unit) = shown_in(if low.abs() > high.abs() { low } else { high }, unit);
    let (low, high) = apart(low / factor, high / factor);
    format!("{low} .. {high}{unit}")
}

/// What a wish misses, or holds, by: `908.7 us > 500 us`.
pub fn against(value: f64, want: f64, unit: &str) -> String {
    let (factor, shown) = shown_in(if value.abs() > want.abs() { value } else { want }, unit);
    let (value_text, want_text) = apart(value / factor, want / factor);
    let sign = if value > want { ">" } else { "<" };
    format!("{value_text}{shown} {sign} {want_text}{shown}")
}

/// By what a value is divided to be shown in a unit, and the unit with a blank before it; ratios stand alone.
fn shown_in(value: f64, unit: &str) -> (f64, String) {
    match unit {
        "ratio" | "index" | "" => (1.0, String::new()),
        "bit/s" => {
            let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")];
            let (least, prefix) = prefixes.into_iter().find(|(least, _)| value.abs() >= *least).unwrap_or((0.0, ""));
            (if least > 0.0 { least } else { 1.0 }, format!(" {prefix}bit/s"))
        }
        _ => (1.0, format!(" {unit}")),
    }
}

/// Two numbers as [`plain`] writes them, with more digits where that would make different ones look alike.
fn apart(one: f64, other: f64) -> (String, String) {
    let short = (plain(one), plain(other));
    if short.0 != short.1 || one == other || !one.is_finite() || !other.is_finite() {
        return short;
    }
    let digits = (2..=12).find(|digits| format!("{one:.digits$}") != format!("{other:.digits$}")).unwrap_or(12);
    (format!("{one:.digits$}"), format!("{other:.digits$}"))
}

/// Enough digits to tell neighbours apart and no more: four decimals close below 1, where fairness indices live, three
/// around it, fewer for larger numbers.
pub fn plain(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 1000.0 || (size >= 1.0 && value.fract() == 0.0) => format!("{value:.0}"),
        _ if size >= 100.0 => format!("{value:.1}"),
        _ if size >= 10.0 => format!("{value:.2}"),
        _ if (0.99..1.0).contains(&size) => format!("{value:.4}"),
        _ if size != 0.0 && size < 0.01 => format!("{value:.2e}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_tell_neighbours_apart() {
        let cases = [
            (0.9584, "0.958"),
            (0.99972, "0.9997"),
            (1.0, "1"),
            (1.0834, "1.083"),
            (11.11, "11.11"),
            (395.0, "395"),
            (123.456, "123.5"),
            (0.0, "0.000"),
            (0.000123, "1.23e-4"),
        ];
        for (value, text) in cases {
            assert_eq!(plain(value), text);
        }
        assert_eq!(quantity(1_362_000_000.0, "bit/s"), "1.362 Gbit/s");
        assert_eq!(quantity(1.8, "s"), "1.800 s");
        assert_eq!(quantity(0.94, "ratio"), "0.940");
    }

    #[test]
    fn both_ends_of_an_interval_have_the_unit_of_the_number() {
        assert_eq!(range([140_850_000.0, 140_860_000.0], "bit/s"), "140.8 .. 140.9 Mbit/s");
        assert_eq!(range([1_357_020_000.0, 1_410_130_000.0], "bit/s"), "1.357 .. 1.410 Gbit/s");
        assert_eq!(range([999_000.0, 1_001_000.0], "bit/s"), "0.9990 .. 1.001 Mbit/s");
        assert_eq!(range([0.0, 0.0], "bit/s"), "0.000 .. 0.000 bit/s");
        assert_eq!(range([1.9, 2.1], "s"), "1.900 .. 2.100 s");
    }

    #[test]
    fn a_miss_says_by_how_much() {
        assert_eq!(against(908.7, 500.0, "us"), "908.7 us > 500 us");
        assert_eq!(against(0.9399999, 0.94, "ratio"), "0.9399999 < 0.9400000");
        assert_eq!(against(4.0e8, 1.0e9, "bit/s"), "0.400 Gbit/s < 1 Gbit/s");
    }
}
