//! Which tables there are, what columns they have, and where their rows come from.

use weft_scenario::record::RowKind;

use super::derived::{DERIVED, Derived};
use super::{Axis, QueryError, StoredRun, Value, load};
use crate::run_folder::KEY_COLUMNS;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// The type of each column, empty where cells say it themselves.
    pub(super) holds: Vec<&'static str>,
    pub(super) source: Source,
    /// Its place among all.
    pub(super) place: usize,
}

/// Where its rows come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A file of rows.
    Rows(RowKind),
    /// What else the folder says.
    Stored(fn(&StoredRun) -> Result<Vec<Vec<Value>>, QueryError>),
    /// More than a question says.
    Derived(&'static Derived),
    /// A question.
    View(String),
    /// The plan's metrics.
    Estimates,
}

/// All tables but views. A sweep's axes are columns of whatever belongs to a trial.
pub(super) fn tables(axes: &[Axis]) -> Vec<Table> {
    let rows = RowKind::ALL.iter().map(|kind| {
        let own = kind.columns.iter().map(|column| (column.name, affinity(column.holds)));
        of_trials(kind.name, axes, own, Source::Rows(*kind))
    });
    let derived = DERIVED.iter().map(|derived| {
        let own = derived.columns.iter().map(|name| (*name, ""));
        of_trials(derived.name, axes, own, Source::Derived(derived))
    });
    let trial = [
        ("fabric_number", "integer"),
        ("warm_up_ns", "integer"),
        ("measure_until_ns", "integer"),
        ("size_divisor", "integer"),
    ];
    let plain = |name: &str, columns: &[(&str, &'static str)], source| Table {
        name: name.to_owned(),
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        holds: columns.iter().map(|(_, holds)| *holds).collect(),
        source,
        place: 0,
    };
    let mut all: Vec<Table> = rows.collect();
    all.push(of_trials("trials", axes, trial.into_iter(), Source::Stored(load::trials)));
    all.push(plain(
        "settings",
        &[("trial", "integer"), ("name", "text"), ("value", "")],
        Source::Stored(load::settings),
    ));
    let nodes = [("fabric_number", "integer"), ("node", "text"), ("role", "text")];
    all.push(plain("nodes", &nodes, Source::Stored(load::nodes)));
    let links = [
        ("fabric_number", "integer"),
        ("a", "text"),
        ("a_interface", "text"),
        ("b", "text"),
        ("b_interface", "text"),
        ("class", "text"),
        ("rate_bps", "integer"),
        ("buffer_bytes", "integer"),
        ("mtu_bytes", "integer"),
        ("delay_ns", "integer"),
    ];
    all.push(plain("fabric_links", &links, Source::Stored(load::fabric_links)));
    all.push(plain("parameters", &[("name", "text"), ("value", "numeric")], Source::Stored(load::parameters)));
    all.extend(derived);
    let estimates =
        [("metric", "text"), ("place", "text"), ("value", "real"), ("low", "real"), ("high", "real"), ("n", "integer")];
    all.push(plain("estimates", &estimates, Source::Estimates));
    all
}

/// Whether some table has a column of this name beside a sweep's axes.
pub(crate) fn is_column(name: &str) -> bool {
    tables(&[]).iter().any(|table| table.columns.iter().any(|column| column == name))
}

fn of_trials<'a>(
    name: &str,
    axes: &'a [Axis],
    own: impl Iterator<Item = (&'a str, &'static str)>,
    source: Source,
) -> Table {
    let key = KEY_COLUMNS.iter().map(|column| (column.name, affinity(column.holds)));
    let axes = axes.iter().map(|axis| (axis.name.as_str(), "numeric"));
    let (columns, holds) = key.chain(axes).chain(own).map(|(name, holds)| (name.to_owned(), holds)).unzip();
    Table { name: name.to_owned(), columns, holds, source, place: 0 }
}

/// The type of a column; a sweep's axes are numbers where their places are.
fn affinity(holds: &str) -> &'static str {
    match holds {
        _ if holds.starts_with("whole number") => "integer",
        _ if holds.starts_with("number") => "real",
        _ => "text",
    }
}
