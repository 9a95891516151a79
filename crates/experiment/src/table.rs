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
        Some([low, high]) => format!("{} .. {} ({}n {})", plain(low), plain(high), made(claim), claim.n),
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
    match unit {
        "ratio" | "index" | "" => plain(value),
        "bit/s" => {
            let (scaled, prefix) = [(1e9, "G"), (1e6, "M"), (1e3, "k")]
                .into_iter()
                .find(|(factor, _)| value.abs() >= *factor)
                .map_or((value, ""), |(factor, prefix)| (value / factor, prefix));
            format!("{} {prefix}bit/s", plain(scaled))
        }
        _ => format!("{} {unit}", plain(value)),
    }
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
}
