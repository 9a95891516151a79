//! Reads flow logs of other programs as text: CSV and its relatives with a header that names the columns ([`columns`]), and
//! the tables that nfdump prints for people ([`nfdump`]). Nothing is skipped in silence: a line that cannot be read, that
//! ends before it starts or that begins before the line above it is refused with its number.

mod columns;
mod nfdump;
mod number;
mod order;

use std::io::BufRead;
use std::net::IpAddr;

use self::columns::Columns;
use self::order::Order;
use super::places::Places;
use super::{Flow, Recorder};

/// How often the progress is told.
const LINES_PER_REPORT: u64 = 1 << 15;
/// A line longer than this is no line of a flow log.
const LINE_LEN_MAX: usize = 1 << 16;

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns between commas, semicolons, tabs or bars, named by a header.
    Columns,
    /// nfdump's `-o line`, `long` and `extended`.
    Nfdump,
}

/// A line that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It says something wrong.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong and what to do.
        what: String,
    },
    /// Nothing to read.
    #[error("there are no flows in it")]
    Empty,
    /// The system refused.
    #[error("cannot be read: {0}")]
    Io(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// How a log is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// `None`: the first line tells.
    pub format: Option<Format>,
    /// How far a flow may begin before one of an earlier line.
    pub reorder_ns: u64,
}

/// One line of a log, times since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    from: IpAddr,
    to: IpAddr,
    bytes: u64,
    /// Bytes of the other direction, where one line has both.
    reverse_bytes: u64,
    start_ns: u64,
    end_ns: u64,
}

/// How far the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Lines so far.
    pub lines: u64,
    /// Bytes so far.
    pub bytes: u64,
}

/// Reads a whole log into a recorder. `on_pace` hears how far it is and answers whether to go on.
pub fn read(
    source: impl BufRead,
    options: ReadOptions,
    places: &mut Places,
    recorder: &mut Recorder,
    mut on_pace: impl FnMut(Pace) -> bool,
) -> Result<Pace, ReadError> {
    let mut lines = Lines { source, buffer: Vec::new(), pace: Pace { lines: 0, bytes: 0 } };
    let mut order = Order::new(options.reorder_ns);
    let mut origin = None;
    let mut record = |line: u64, read: Line| {
        let refuse = |what: String| ReadError::Line { line, what };
        let origin_ns = *origin.get_or_insert(read.start_ns);
        let (from, to) = (places.find(read.from).map_err(refuse)?, places.find(read.to).map_err(refuse)?);
        let flow = |from, to, bytes| Flow {
            from,
            to,
            bytes,
            start_ns: read.start_ns - origin_ns,
            end_ns: read.end_ns - origin_ns,
        };
        recorder.add(&flow(from, to, read.bytes)).map_err(refuse)?;
        match read.reverse_bytes {
            0 => Ok(()),
            bytes => recorder.add(&flow(to, from, bytes)).map_err(refuse),
        }
    };
    let mut layout = None;
    while lines.next()? {
        let line = lines.pace.lines;
        let refuse = |what: String| ReadError::Line { line, what };
        if line.is_multiple_of(LINES_PER_REPORT) && !on_pace(lines.pace) {
            return Err(ReadError::Interrupted);
        }
        let text = lines.text().map_err(refuse)?;
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some(layout) = &layout else {
            layout = Some(Layout::of(text, options.format).map_err(refuse)?);
            continue;
        };
        // What follows is nfdump's summary, not flows.
        if text.starts_with("Summary") {
            break;
        }
        let read = layout.line(text).map_err(refuse)?;
        if read.end_ns < read.start_ns {
            return Err(refuse("the flow ends before it starts; look at its times".to_owned()));
        }
        order.put(line, read)?;
        while let Some((line, read)) = order.take() {
            record(line, read)?;
        }
    }
    for (line, read) in order.rest() {
        record(line, read)?;
    }
    match origin {
        Some(_) => Ok(lines.pace),
        None => Err(ReadError::Empty),
    }
}

/// What the first line says about the others.
enum Layout {
    Columns(Columns),
    Nfdump(nfdump::Table),
}

impl Layout {
    fn of(header: &str, format: Option<Format>) -> Result<Self, String> {
        let format = format.unwrap_or_else(|| match nfdump::Table::is_header(header) {
            true => Format::Nfdump,
            false => Format::Columns,
        });
        match format {
            Format::Columns => Columns::of_header(header).map(Self::Columns),
            Format::Nfdump => nfdump::Table::of_header(header).map(Self::Nfdump),
        }
    }

    fn line(&self, text: &str) -> Result<Line, String> {
        match self {
            Self::Columns(columns) => columns.line(text),
            Self::Nfdump(table) => table.line(text),
        }
    }
}

/// Lines with their numbers; no more than one is in memory.
struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    pace: Pace,
}

impl<R: BufRead> Lines<R> {
    /// Goes to the next line; `false` at the end.
    fn next(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        let limit = LINE_LEN_MAX as u64 + 1;
        let read = std::io::Read::take(&mut self.source, limit).read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|error| ReadError::Io(error.to_string()))?;
        self.pace.lines += u64::from(read > 0);
        self.pace.bytes += read as u64;
        Ok(read > 0)
    }

    fn text(&self) -> Result<&str, String> {
        if self.buffer.len() > LINE_LEN_MAX {
            return Err(format!("the line is longer than {LINE_LEN_MAX} bytes, so this is no flow log as text"));
        }
        let text = std::str::from_utf8(&self.buffer).map_err(|_| "this is no text; print the log as text first")?;
        Ok(text.trim())
    }
}

/// As much of a word of the log as people read.
fn short(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests;
