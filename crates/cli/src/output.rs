//! Prints results on standard output: a table for people, JSON or CSV for programs.

use std::io::Write;

use serde::Serialize;
use tabled::builder::Builder;
use tabled::settings::{Style, Width, object::Columns, peaker::PriorityMax};

use crate::args::Output;
use crate::exit::Failure;

/// Rows under a header, all as text.
pub(crate) struct Rows {
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Rows {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

/// Prints in the asked format; `json` is what `-o json` prints.
pub(crate) fn print<T: Serialize>(format: Output, rows: &Rows, json: &T) -> Result<(), Failure> {
    let text = match format {
        Output::Table => table(rows),
        Output::Csv => csv(rows),
        Output::Json => serde_json::to_string(json).map_err(Failure::failed)?,
    };
    print_line(&text)
}

/// One line or block on standard output. A reader that has gone away (`| head`) is no error.
pub(crate) fn print_line(text: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout().lock(), "{}", text.trim_end()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::failed(format!("standard output: {error}"))),
    }
}

fn table(rows: &Rows) -> String {
    let mut builder = Builder::new();
    builder.push_record(rows.header.iter().copied());
    for row in &rows.rows {
        builder.push_record(row);
    }
    let mut table = builder.build();
    table.with(Style::blank()).modify(Columns::last(), tabled::settings::Alignment::left());
    if let Some(width) = terminal_width() {
        table.with(Width::wrap(width).priority(PriorityMax::default()).keep_words(true));
    }
    table.to_string()
}

/// Width of the terminal that standard output is; `None` where it is a file or a pipe.
fn terminal_width() -> Option<usize> {
    use std::io::IsTerminal;
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let (_, width) = console::Term::stdout().size_checked()?;
    Some(usize::from(width).max(60))
}

fn csv(rows: &Rows) -> String {
    let quoted = |cell: &str| {
        if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
    };
    let line = |cells: Vec<String>| cells.join(",");
    let header = line(rows.header.iter().map(|cell| quoted(cell)).collect());
    let body = rows.rows.iter().map(|row| line(row.iter().map(|cell| quoted(cell)).collect()));
    std::iter::once(header).chain(body).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_what_needs_it() {
        let mut rows = Rows::new(&["name", "text"]);
        rows.push(vec!["a".into(), "one, \"two\"".into()]);
        assert_eq!(csv(&rows), "name,text\na,\"one, \"\"two\"\"\"");
    }
}
