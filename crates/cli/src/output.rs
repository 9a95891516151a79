//! Prints results on standard output: a table for people, JSON or CSV for programs.

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;
use tabled::builder::Builder;
use tabled::settings::object::{Cell, Columns};
use tabled::settings::{Color, Style, Width};
use weft_scenario::judge::{Check, Verdict};

use crate::args::Output;
use crate::exit::{self, Failure};

/// Rows under a header, all as text.
pub(crate) struct Rows {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Rows {
    pub(crate) fn new<H: AsRef<str>>(header: &[H]) -> Self {
        Self { header: header.iter().map(|heading| heading.as_ref().to_owned()).collect(), rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

/// Prints in the asked format; `json` is what `-o json` prints.
pub(crate) fn print<T: Serialize>(format: Output, rows: &Rows, json: &T) -> Result<(), Failure> {
    let text = match format {
        Output::Table => for_people(rows, terminal_width()),
        Output::Csv => csv(rows),
        Output::Json => serde_json::to_string(json).map_err(Failure::failed)?,
    };
    print_line(&text)
}

/// Prints floors and ceilings with our numbers, for people (`-o json` has them already), and what they come to. What is hidden by
/// noise is said, and fails nothing.
pub(crate) fn judged(format: Output, checks: &[Check]) -> Result<ExitCode, Failure> {
    let mut rows = Rows::new(&["claim", "ours", "interval", "want", "verdict", "why"]);
    for check in checks {
        rows.push(vec![
            check.id.clone(),
            format!("{} {}", number(check.ours), check.unit),
            check.interval.map_or_else(String::new, |[low, high]| format!("{} .. {}", number(low), number(high))),
            format!("{} {}", check.relation.symbol(), number(check.want)),
            check.verdict.word().to_owned(),
            check.why.unwrap_or_default().to_owned(),
        ]);
    }
    if format == Output::Table && !checks.is_empty() {
        print_line("")?;
        print_line(&for_people(&rows, terminal_width()))?;
    }
    let any = |verdict: Verdict| checks.iter().any(|check| check.verdict == verdict);
    if any(Verdict::Inconclusive) {
        eprintln!(
            "weft: warning: something hides whether a floor is reached (`why` says what); run again when the machine idles"
        );
    }
    Ok(if any(Verdict::Fail) { ExitCode::from(exit::CLAIM_FAILED) } else { ExitCode::SUCCESS })
}

/// A number that people can read: `14.6 M`, `450 K`, `0.29`.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} K", value / 1e3),
        value if value >= 10.0 => format!("{value:.0}"),
        value if value.abs() >= 0.1 || value == 0.0 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

/// One line or block on standard output. A reader that has gone away (`| head`) is no error.
pub(crate) fn print_line(text: &str) -> Result<(), Failure> {
    stream_line(text).map(|_| ())
}

/// The same for lines that come as long as somebody reads; `false`: the reader has gone away.
pub(crate) fn stream_line(text: &str) -> Result<bool, Failure> {
    write_line(&mut std::io::stdout().lock(), text)
        .map_err(|error| Failure::failed(format!("standard output: {error}")))
}

fn write_line(out: &mut impl Write, text: &str) -> std::io::Result<bool> {
    match writeln!(out, "{}", text.trim_end()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true),
    }
}

/// A table no wider than the terminal, if there is one; where that would cut words and numbers in pieces, a block for each row.
fn for_people(rows: &Rows, terminal: Option<usize>) -> String {
    match terminal.map(|width| column_widths(rows, width)) {
        None => table(rows, &[]),
        Some(Some(widths)) => table(rows, &widths),
        Some(None) => blocks(rows),
    }
}

fn table(rows: &Rows, widths: &[usize]) -> String {
    let mut builder = Builder::new();
    builder.push_record(&rows.header);
    for row in &rows.rows {
        builder.push_record(row);
    }
    let mut table = builder.build();
    table.with(Style::blank()).modify(Columns::last(), tabled::settings::Alignment::left());
    for (column, width) in widths.iter().enumerate() {
        table.modify(Columns::one(column), Width::wrap(*width).keep_words(true));
    }
    if let Some(column) = rows.header.iter().position(|heading| heading == "verdict").filter(|_| shows_colours()) {
        for (place, row) in rows.rows.iter().enumerate() {
            table.modify(Cell::new(place + 1, column), colour(&row[column]));
        }
    }
    table.to_string()
}

/// Whether somebody sees standard output, and wants colours.
fn shows_colours() -> bool {
    console::colors_enabled()
}

fn colour(verdict: &str) -> Color {
    match verdict {
        "pass" => Color::FG_GREEN,
        "fail" => Color::FG_RED,
        "differs" => Color::FG_MAGENTA,
        "inconclusive" => Color::FG_YELLOW,
        _ => Color::empty(),
    }
}

/// How wide each column may be so that lines are at most `most` long: the widest give way first, none below its longest word.
/// `None` if that is not enough.
fn column_widths(rows: &Rows, most: usize) -> Option<Vec<usize>> {
    let columns = rows.header.len();
    let cells =
        |column: usize| std::iter::once(&*rows.header[column]).chain(rows.rows.iter().map(move |row| &*row[column]));
    let longest_word = |column| cells(column).flat_map(str::split_whitespace).map(length).max().unwrap_or(0);
    let least: Vec<usize> = (0..columns).map(longest_word).collect();
    let mut widths: Vec<usize> =
        (0..columns).map(|column| cells(column).flat_map(str::lines).map(length).max().unwrap_or(0)).collect();
    // A blank at each side of a cell and one between two cells.
    let room = (most + 1).checked_sub(3 * columns)?;
    while widths.iter().sum::<usize>() > room {
        let widest =
            (0..columns).filter(|column| widths[*column] > least[*column]).max_by_key(|column| widths[*column])?;
        widths[widest] -= 1;
    }
    Some(widths)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// `heading  cell` in lines, an empty line between two rows.
fn blocks(rows: &Rows) -> String {
    let widest = rows.header.iter().map(|heading| length(heading)).max().unwrap_or(0);
    let line = |(heading, cell): (&String, &String)| format!(" {heading:widest$}   {cell}").trim_end().to_owned();
    let block = |row: &Vec<String>| rows.header.iter().zip(row).map(line).collect::<Vec<_>>().join("\n");
    rows.rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

/// How wide tables may be that can be cut into several: the terminal, 80 letters where there is none.
pub(crate) fn width() -> usize {
    terminal_width().unwrap_or(80)
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

    #[test]
    fn a_reader_that_has_gone_is_noticed_and_no_error() {
        struct Refusing(std::io::ErrorKind);
        impl Write for Refusing {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        assert!(write_line(&mut Vec::new(), "text").unwrap());
        assert!(!write_line(&mut Refusing(std::io::ErrorKind::BrokenPipe), "text").unwrap());
        assert!(write_line(&mut Refusing(std::io::ErrorKind::StorageFull), "text").is_err());
    }

    fn two_columns(name: &str, text: &str) -> Rows {
        let mut rows = Rows::new(&["name", "text"]);
        rows.push(vec![name.into(), text.into()]);
        rows
    }

    #[test]
    fn a_table_fits_the_terminal_without_cutting_words() {
        let rows = two_columns("goodput_efficiency", "the interval spans what is wanted, so nothing is said");
        for width in [40, 50, 60, 79, 200] {
            let text = for_people(&rows, Some(width));
            assert!(text.lines().all(|line| length(line) <= width), "{width}:\n{text}");
            for word in ["goodput_efficiency", "interval", "wanted,", "nothing"] {
                assert!(text.contains(word), "{width}: `{word}` is cut:\n{text}");
            }
        }
        let wide = for_people(&rows, None);
        assert_eq!((wide.lines().count(), for_people(&rows, Some(200))), (2, wide));
    }

    #[test]
    fn rows_that_do_not_fit_become_blocks() {
        let mut rows = two_columns("a_name_of_its_own_that_is_long", "number_without_any_blank_in_it");
        rows.push(vec!["b".into(), String::new()]);
        assert_eq!(
            for_people(&rows, Some(60)),
            " name   a_name_of_its_own_that_is_long\n text   number_without_any_blank_in_it\n\n name   b\n text"
        );
        assert_eq!(for_people(&rows, Some(80)).lines().count(), 3);
    }
}
