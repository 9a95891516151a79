//! `docs/records.md`: what the files of rows hold, from the declaration of their kinds.

use weft_scenario::record::{Column, RowKind};

use super::key::KEY_COLUMNS;

const HEAD: &str = "# Records

The files in `records/` of the folder that `weft run` and `weft sim --out` leave, one for each kind of row; a run leaves those that its
engine and workload yield. They are CSV with a header. The unit stands last in a column's name. This page is
`cargo run -p xtask -- records > docs/records.md`, from the declaration of the rows in `crates/scenario/src/record/mod.rs`.

Every file begins with these columns, then comes one for each axis of the plan's sweep; `trials.csv` has no others.

`weft query RUN 'select ..'` asks them in SQL: a file is the table of its name, beside `nodes` and `fabric_links` (the networks as they
ran) and `parameters` (the manifest).
";

/// The page.
pub fn records_page() -> String {
    let kinds =
        RowKind::ALL.iter().map(|kind| format!("\n## `{}`\n\n{}\n{}", kind.file(), kind.about, columns(kind.columns)));
    std::iter::once(format!("{HEAD}{}", columns(&KEY_COLUMNS))).chain(kinds).collect()
}

fn columns(columns: &[Column]) -> String {
    let rows = columns.iter().map(|Column { name, holds, about }| format!("| `{name}` | {holds} | {about} |\n"));
    std::iter::once("\n| column | holds | what it is |\n| --- | --- | --- |\n".to_owned()).chain(rows).collect()
}
