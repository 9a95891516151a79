//! Tables of claims and of metrics as text cells, for the terminal and the report.

use crate::metric::Limit;
use crate::plan::{LAB, Relation};
use crate::summary::{ClaimResult, MetricReading, RunSummary};

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

/// Metrics in rows and variants in columns.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MetricTable {
    /// `metric`, then the variants.
    pub headings: Vec<String>,
    /// A metric, then its number at each variant, and below it its interval where it has one.
    pub rows: Vec<Vec<String>>,
}

/// Blanks around a cell and between two.
const CELL_BLANKS: usize = 3;

/// The metrics of a run, as many tables as it takes for none to be wider than so many letters; each has one variant at least.
pub fn metric_tables(summary: &RunSummary, widest: usize) -> Vec<MetricTable> {
    let (rows, variants) = (row_names(summary), variants(summary));
    let cell = |row: &str, variant: &str| {
        let found =
            summary.metrics.iter().find(|one| row_of(summary, one) == row && variant_of(summary, one) == *variant);
        found.map_or_else(|| "-".to_owned(), metric_cell)
    };
    let column = |variant: &String| -> Vec<String> {
        let heading = if variant.is_empty() { "value".to_owned() } else { variant.clone() };
        std::iter::once(heading).chain(rows.iter().map(|row| cell(row, variant))).collect()
    };
    let width = |column: &[String]| {
        column.iter().flat_map(|cell| cell.lines()).map(|line| line.chars().count()).max().unwrap_or(0) + CELL_BLANKS
    };
    let names: Vec<String> = std::iter::once("metric".to_owned()).chain(rows.iter().cloned()).collect();
    let mut tables: Vec<Vec<Vec<String>>> = Vec::new();
    let mut room = 0;
    for column in variants.iter().map(column) {
        let needs = width(&column);
        match tables.last_mut().filter(|_| needs <= room) {
            Some(table) => table.push(column),
            None => {
                tables.push(vec![names.clone(), column]);
                room = widest.saturating_sub(width(&names) + needs) + needs;
            }
        }
        room = room.saturating_sub(needs);
    }
    let table = |columns: Vec<Vec<String>>| MetricTable {
        headings: columns.iter().map(|column| column[0].clone()).collect(),
        rows: (1..=rows.len()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect(),
    };
    tables.into_iter().map(table).collect()
}

/// A row for each number of a run of which nothing is judged, under its headings.
pub fn metric_rows(summary: &RunSummary) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = each_once(summary.metrics.iter().flat_map(|metric| metric.place.keys().cloned()));
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let row = |metric: &MetricReading| -> Vec<String> {
        let places = columns.iter().map(|column| metric.place.get(column).cloned().unwrap_or_default());
        let [low, high] = metric.interval.map_or([None, None], |ends| ends.map(Some));
        let numbers = [number(metric.value), number(low), number(high), metric.n.to_string()];
        let words = [metric.unit.clone(), metric.limited_by.clone()];
        std::iter::once(metric.metric.clone()).chain(places).chain(numbers).chain(words).collect()
    };
    let ends = ["value", "low", "high", "n", "unit", "limited by"].map(str::to_owned);
    let header = std::iter::once("metric".to_owned()).chain(columns.iter().cloned()).chain(ends).collect();
    (header, summary.metrics.iter().map(row).collect())
}

/// What the second line of cells in [`metric_tables`] is; `None` where no cell has one.
pub fn metric_intervals(summary: &RunSummary) -> Option<String> {
    let mut made: Vec<String> = Vec::new();
    for metric in summary.metrics.iter().filter(|metric| metric.interval.is_some()) {
        let (method, coverage) = metric.interval_method.zip(metric.coverage)?;
        let words = format!("{}, {:.0} %, n {}", method.name(), coverage * 100.0, metric.n);
        if !made.contains(&words) {
            made.push(words);
        }
    }
    (!made.is_empty()).then(|| format!("below a number: its interval over the repetitions ({})", made.join("; ")))
}

/// A warning that one repetition in the lab has no interval; `None` for a run without such numbers. Another repetition there meets other
/// ports, timers and cores, so its numbers are others; in the simulator they follow from the seed.
pub fn single_samples(summary: &RunSummary) -> Option<&'static str> {
    let has_lab = summary.engine.split('+').any(|engine| engine == LAB);
    let is_single = |n: usize, limited_by: Option<&str>| n == 1 && limited_by != Some(Limit::Computed.name());
    let of_lab = |metric: &MetricReading| metric.place.get("engine").is_none_or(|engine| engine == LAB);
    let metric = |metric: &MetricReading| is_single(metric.n, Some(&metric.limited_by)) && of_lab(metric);
    let claim = |claim: &ClaimResult| {
        let is_shown = claim.relation == Relation::Info && claim.ours.is_some() && !claim.exact;
        is_shown && is_single(claim.n, claim.limited_by.as_deref())
    };
    (has_lab && (summary.metrics.iter().any(metric) || summary.claims.iter().any(claim))).then_some(
        "one repetition in the lab has no interval, and another may differ by more than\n\
         the variants do; --set repetitions=3 makes intervals",
    )
}

/// How many metrics a run has, and at how many variants.
pub fn metrics_and_variants(summary: &RunSummary) -> (usize, usize) {
    (row_names(summary).len(), variants(summary).len())
}

fn metric_cell(metric: &MetricReading) -> String {
    let value = metric.value.map_or_else(|| "-".to_owned(), |value| quantity(value, &metric.unit));
    metric.interval.map_or_else(|| value.clone(), |ends| format!("{value}\n{}", range(ends, &metric.unit)))
}

/// The metrics, each once, in their order.
fn row_names(summary: &RunSummary) -> Vec<String> {
    each_once(summary.metrics.iter().map(|metric| row_of(summary, metric)))
}

/// The variants, each once, in their order; one without a name where the run has none.
fn variants(summary: &RunSummary) -> Vec<String> {
    each_once(summary.metrics.iter().map(|metric| variant_of(summary, metric)))
}

fn each_once(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// A metric with what of its place is no variant: with the workload, where there are several.
fn row_of(summary: &RunSummary, metric: &MetricReading) -> String {
    let tells = |column: &str, here: &String| {
        summary.metrics.iter().any(|other| other.place.get(column).is_some_and(|there| there != here))
    };
    let rest = metric.place.iter().filter(|(column, _)| !summary.variants.contains(column));
    let rest = rest.filter(|(column, here)| *column != "workload" || tells(column, here));
    std::iter::once(&metric.metric).chain(rest.map(|(_, here)| here)).cloned().collect::<Vec<_>>().join(".")
}

/// A metric's place on the axes: `ecmp 30`.
fn variant_of(summary: &RunSummary, metric: &MetricReading) -> String {
    let places = summary.variants.iter().filter_map(|column| metric.place.get(column));
    places.cloned().collect::<Vec<_>>().join(" ")
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
        _ if size == 0.0 => "0".to_owned(),
        _ if size >= 1000.0 || (size >= 1.0 && value.fract() == 0.0) => format!("{value:.0}"),
        _ if size >= 100.0 => format!("{value:.1}"),
        _ if size >= 10.0 => format!("{value:.2}"),
        _ if (0.99..1.0).contains(&size) => format!("{value:.4}"),
        _ if size < 0.01 => format!("{value:.2e}"),
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
            (0.0, "0"),
            (-0.0, "0"),
            (7_640_688.0, "7640688"),
            (0.000123, "1.23e-4"),
        ];
        for (value, text) in cases {
            assert_eq!(plain(value), text);
        }
        assert_eq!(quantity(1_362_000_000.0, "bit/s"), "1.362 Gbit/s");
        assert_eq!(quantity(1.8, "s"), "1.800 s");
        assert_eq!(quantity(0.94, "ratio"), "0.940");
        assert_eq!(quantity(0.0, "packets"), "0 packets");
    }

    #[test]
    fn both_ends_of_an_interval_have_the_unit_of_the_number() {
        assert_eq!(range([140_850_000.0, 140_860_000.0], "bit/s"), "140.8 .. 140.9 Mbit/s");
        assert_eq!(range([1_357_020_000.0, 1_410_130_000.0], "bit/s"), "1.357 .. 1.410 Gbit/s");
        assert_eq!(range([999_000.0, 1_001_000.0], "bit/s"), "0.9990 .. 1.001 Mbit/s");
        assert_eq!(range([0.0, 0.0], "bit/s"), "0 .. 0 bit/s");
        assert_eq!(range([1.9, 2.1], "s"), "1.900 .. 2.100 s");
    }

    #[test]
    fn a_miss_says_by_how_much() {
        assert_eq!(against(908.7, 500.0, "us"), "908.7 us > 500 us");
        assert_eq!(against(0.9399999, 0.94, "ratio"), "0.9399999 < 0.9400000");
        assert_eq!(against(4.0e8, 1.0e9, "bit/s"), "0.400 Gbit/s < 1 Gbit/s");
    }

    fn reading(metric: &str, balance: &str, load: &str, value: f64, interval: Option<[f64; 2]>) -> MetricReading {
        let place = [("workload", "all"), ("balance", balance), ("load", load)];
        MetricReading {
            id: format!("{metric}.all.{balance}.{load}"),
            metric: metric.to_owned(),
            place: place.map(|(column, here)| (column.to_owned(), here.to_owned())).into(),
            value: Some(value),
            unit: "bit/s".to_owned(),
            interval,
            interval_method: interval.map(|_| crate::stats::Method::Median),
            coverage: interval.map(|_| 0.75),
            n: 3,
            limited_by: "link".to_owned(),
        }
    }

    fn two_by_two(interval: Option<[f64; 2]>) -> RunSummary {
        let places = [("ecmp", "30"), ("ecmp", "60"), ("spray", "30"), ("spray", "60")];
        let of = |metric: &'static str| places.map(|(balance, load)| reading(metric, balance, load, 1.5e9, interval));
        RunSummary {
            metrics: [of("goodput"), of("worst_goodput")].concat(),
            variants: ["balance", "load"].map(str::to_owned).to_vec(),
            ..RunSummary::default()
        }
    }

    #[test]
    fn one_repetition_in_the_lab_says_that_it_has_no_interval() {
        let mut summary = two_by_two(None);
        let said = |summary: &RunSummary| single_samples(summary).is_some();
        for (engine, n, is_said) in
            [("lab", 1, true), ("lab", 3, false), ("sim", 1, false), ("calc", 1, false), ("lab+sim", 1, true)]
        {
            summary.engine = engine.to_owned();
            summary.metrics.iter_mut().for_each(|metric| metric.n = n);
            assert_eq!(said(&summary), is_said, "{engine} {n}");
        }
        summary.metrics.iter_mut().for_each(|metric| metric.limited_by = Limit::Computed.name().to_owned());
        assert!(!said(&summary), "calculations are the same each time");
        let info = |n, exact| ClaimResult { ours: Some(1.0), n, exact, ..ClaimResult::bare("goodput") };
        for (n, exact, is_said) in [(1, false, true), (1, true, false), (3, false, false)] {
            let claims = vec![info(n, exact)];
            assert_eq!(said(&RunSummary { engine: "lab".to_owned(), claims, ..RunSummary::default() }), is_said);
        }
    }

    #[test]
    fn metrics_stand_by_variant_in_as_many_tables_as_the_width_takes() {
        let summary = two_by_two(Some([1.4e9, 1.6e9]));
        let wide = metric_tables(&summary, 200);
        assert_eq!(wide.len(), 1);
        assert_eq!(wide[0].headings, ["metric", "ecmp 30", "ecmp 60", "spray 30", "spray 60"]);
        assert_eq!(wide[0].rows[0][..2], ["goodput", "1.500 Gbit/s\n1.400 .. 1.600 Gbit/s"]);
        assert_eq!(metrics_and_variants(&summary), (2, 4));
        let said = metric_intervals(&summary);
        assert_eq!(said.as_deref(), Some("below a number: its interval over the repetitions (median, 75 %, n 3)"));
        for widest in [80, 60, 45, 1] {
            let tables = metric_tables(&summary, widest);
            let columns: Vec<&str> =
                tables.iter().flat_map(|table| table.headings[1..].iter().map(String::as_str)).collect();
            assert_eq!(columns, ["ecmp 30", "ecmp 60", "spray 30", "spray 60"], "{widest}");
            for table in tables.iter().filter(|table| table.headings.len() > 2) {
                let width = |column: usize| {
                    let cells =
                        table.rows.iter().flat_map(|row| row[column].lines()).chain([table.headings[column].as_str()]);
                    cells.map(str::len).max().unwrap_or(0) + CELL_BLANKS
                };
                assert!((0..table.headings.len()).map(width).sum::<usize>() <= widest, "{widest}: {table:?}");
            }
        }
    }

    #[test]
    fn one_variant_has_one_column_and_programs_get_every_number() {
        let plain =
            RunSummary { metrics: vec![reading("goodput", "ecmp", "30", 1.5e9, None)], ..RunSummary::default() };
        let tables = metric_tables(&plain, 80);
        assert_eq!((tables.len(), tables[0].headings.join("|")), (1, "metric|value".to_owned()));
        assert_eq!(metric_intervals(&plain), None);
        let (header, rows) = metric_rows(&two_by_two(Some([1.4e9, 1.6e9])));
        assert_eq!(header.join(","), "metric,balance,load,workload,value,low,high,n,unit,limited by");
        assert_eq!(
            (rows.len(), rows[1].join(",")),
            (8, "goodput,ecmp,60,all,1500000000,1400000000,1600000000,3,bit/s,link".to_owned())
        );
    }
}
