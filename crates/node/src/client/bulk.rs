//! Mappings in files: CSV with a header or one JSON object per line. A file is checked as a whole before anything is sent.

use std::collections::{HashSet, VecDeque};
use std::io::Write;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use weft_control::directory::{AaRanges, Request, Rules};
use weft_wire::block::Block;

use super::AdminClient;
use crate::directory::protocol::{AdminRequest, MappingRow, MappingToSet, RulesRow};
use crate::error::NodeError;
use crate::sys;

/// Mappings in one request: a full record of the log.
const BATCH: usize = 1024;
/// Requests open at a time.
const OPEN: usize = 16;

/// The columns of a file, also the members of its JSON objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    aa: Ipv4Addr,
    tor_la: Ipv4Addr,
    anycast_la: Ipv4Addr,
    #[serde(default)]
    service: u32,
    #[serde(default)]
    host_la: Option<Ipv4Addr>,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `aa,tor_la,anycast_la,service,host_la`, with this header.
    #[default]
    Csv,
    /// One JSON object per line with the same names.
    JsonLines,
}

/// A file that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}; nothing was imported")]
pub struct BadLine {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

/// How far an import came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Mappings that are in the directory.
    pub mappings: usize,
    /// Revision of the last of them.
    pub revision: u64,
    /// It was stopped before all were in.
    pub interrupted: bool,
}

/// Reads a file of either format and checks every line against the directory's rules. An AA may be named once.
///
/// # Errors
/// The first line at fault.
pub fn read(text: &str, rules: &RulesRow) -> Result<Vec<MappingToSet>, BadLine> {
    let rows = if text.trim_start().starts_with('{') { read_json(text)? } else { read_csv(text)? };
    let rules = checked(rules).map_err(|why| BadLine { line: 0, why })?;
    let mut seen = HashSet::with_capacity(rows.len());
    let mut mappings = Vec::with_capacity(rows.len());
    let mut request = Request::once(Vec::with_capacity(1));
    for (line, row) in rows {
        let bad = |why: String| BadLine { line, why };
        let mapping = row.mapping();
        request.updates.clear();
        request.updates.push(mapping.update());
        rules.check(&request).map_err(|refusal| {
            // "update 1, AA a: why" of a request of one.
            let text = refusal.to_string();
            bad(text.strip_prefix("update 1, ").map_or(text.clone(), str::to_owned))
        })?;
        if !seen.insert(row.aa) {
            return Err(bad(format!("AA {} is named twice; name each AA once", row.aa)));
        }
        mappings.push(mapping);
    }
    if mappings.is_empty() {
        return Err(BadLine { line: 1, why: "the file has no mappings".to_owned() });
    }
    Ok(mappings)
}

fn read_csv(text: &str) -> Result<Vec<(u64, Row)>, BadLine> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| BadLine { line: 1, why: csv_fault(&error) })?.clone();
    let known = ["aa", "tor_la", "anycast_la", "service", "host_la"];
    if let Some(other) = header.iter().find(|name| !known.contains(name)) {
        let why = format!("column `{other}` is not known; the first line names columns: aa,tor_la,anycast_la,service");
        return Err(BadLine { line: 1, why });
    }
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    loop {
        let line = reader.position().line();
        match reader.read_record(&mut record) {
            Ok(false) => return Ok(rows),
            Ok(true) => {
                let line = record.position().map_or(line, csv::Position::line);
                let row = record.deserialize(Some(&header));
                rows.push((line, row.map_err(|error| BadLine { line, why: csv_fault(&error) })?));
            }
            Err(error) => {
                let line = error.position().map_or(line, csv::Position::line);
                return Err(BadLine { line, why: csv_fault(&error) });
            }
        }
    }
}

/// What is wrong, without the place, which is told apart from it.
fn csv_fault(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields where the first line names {expected_len}")
        }
        _ => error.to_string(),
    }
}

fn read_json(text: &str) -> Result<Vec<(u64, Row)>, BadLine> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| match serde_json::from_str(line) {
            Ok(row) => Ok((number, row)),
            Err(error) => {
                Err(BadLine { line: number, why: error.to_string().replace(" at line 1 column", ", column") })
            }
        })
        .collect()
}

fn checked(rules: &RulesRow) -> Result<Rules, String> {
    let aa_block: Block = rules.aa_block.parse().map_err(|error| format!("the server's AA block: {error}"))?;
    let tor_las = rules.tor_las.as_ref().map(|las| las.iter().copied().collect());
    Ok(Rules { aa_block, tor_las, aa_ranges: AaRanges::default(), updates_max: BATCH })
}

/// Sends mappings in large requests, several open at a time. `progress` is told how many are in, and stops it by `false`.
///
/// # Errors
/// The first request that failed, after how many were in; a file that failed may be imported again as a whole.
pub fn import(
    client: &mut AdminClient,
    mappings: &[MappingToSet],
    progress: &mut dyn FnMut(usize) -> bool,
) -> Result<Imported, NodeError> {
    let name = sys::random_u128().map_err(NodeError::system("reading random bytes"))? as u64 | 1;
    let mut parts = mappings.chunks(BATCH);
    let mut open = VecDeque::new();
    let mut done = Imported::default();
    let mut sequence = 0;
    loop {
        while open.len() < OPEN && !done.interrupted {
            let Some(part) = parts.next() else { break };
            sequence += 1;
            client.put(&AdminRequest::SetMany { mappings: part.to_vec(), client: name, sequence })?;
            client.flush()?;
            open.push_back(part.len());
        }
        let Some(count) = open.pop_front() else { return Ok(done) };
        let response = client.receive()?;
        if !response.ok {
            let why = response.error.unwrap_or_else(|| "without a reason".to_owned());
            return Err(NodeError::Refused(format!("{why} ({} of {} mappings are in)", done.mappings, mappings.len())));
        }
        done.mappings += count;
        done.revision = response.revision.unwrap_or(done.revision);
        if !progress(done.mappings) && done.mappings < mappings.len() {
            done.interrupted = true;
        }
    }
}

/// Writes the header, if the format has one.
///
/// # Errors
/// Those of `out`.
pub fn write_header(format: Format, out: &mut impl Write) -> std::io::Result<()> {
    match format {
        Format::Csv => writeln!(out, "aa,tor_la,anycast_la,service,host_la"),
        Format::JsonLines => Ok(()),
    }
}

/// Writes mappings, so that [`read`] reads them.
///
/// # Errors
/// Those of `out`.
pub fn write_rows(format: Format, rows: &[MappingRow], out: &mut impl Write) -> std::io::Result<()> {
    for MappingRow { aa, tor_la, anycast_la, service, host_la, .. } in rows.iter().copied() {
        match format {
            Format::Csv => {
                let host_la = host_la.map(|la| la.to_string()).unwrap_or_default();
                writeln!(out, "{aa},{tor_la},{anycast_la},{service},{host_la}")?;
            }
            Format::JsonLines => {
                serde_json::to_writer(&mut *out, &Row { aa, tor_la, anycast_la, service, host_la })?;
                writeln!(out)?;
            }
        }
    }
    Ok(())
}

impl Row {
    fn mapping(self) -> MappingToSet {
        let Self { aa, tor_la, anycast_la, service, host_la } = self;
        MappingToSet { aa, tor_la, anycast_la, service, host_la, if_version: None, version: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "aa,tor_la,anycast_la,service\n";
    const GOOD: &str = "20.0.0.1,10.1.0.1,10.255.255.1,7\n";

    fn rules() -> RulesRow {
        RulesRow { aa_block: "20.0.0.0/8".to_owned(), tor_las: Some(vec![Ipv4Addr::new(10, 1, 0, 1)]) }
    }

    #[test]
    fn both_formats_are_read_and_what_is_written_is_read_again() {
        let csv = format!("# a comment\n{HEADER}{GOOD}20.0.0.2, 10.1.0.1 ,10.255.255.1,0\n");
        let mappings = read(&csv, &rules()).unwrap();
        assert_eq!(mappings.len(), 2);
        assert_eq!((mappings[0].aa, mappings[0].service), (Ipv4Addr::new(20, 0, 0, 1), 7));
        let rows: Vec<_> = mappings
            .iter()
            .map(|mapping| MappingRow {
                aa: mapping.aa,
                tor_la: mapping.tor_la,
                anycast_la: mapping.anycast_la,
                service: mapping.service,
                host_la: (mapping.service == 7).then_some(Ipv4Addr::new(10, 64, 0, 1)),
                version: 5,
            })
            .collect();
        for format in [Format::Csv, Format::JsonLines] {
            let mut out = Vec::new();
            write_header(format, &mut out).unwrap();
            write_rows(format, &rows, &mut out).unwrap();
            let again = read(&String::from_utf8(out).unwrap(), &rules()).unwrap();
            assert_eq!(again[0].host_la, rows[0].host_la);
            assert_eq!(again[1], mappings[1]);
        }
    }

    #[test]
    fn the_first_bad_line_is_named_with_its_fault() {
        for (text, line, says) in [
            (format!("{HEADER}{GOOD}20.0.0.2,10.1.0.1,x,7\n"), 3, "IPv4"),
            (format!("{HEADER}{GOOD}20.0.0.2,10.1.0.1\n"), 3, "2 fields where the first line names 4"),
            (format!("{HEADER}\n{GOOD}21.0.0.1,10.1.0.1,10.255.255.1,7\n"), 4, "AA 21.0.0.1: outside the AA block"),
            (format!("{HEADER}20.0.0.1,10.1.0.9,10.255.255.1,7\n"), 2, "none of the known ToR switches"),
            (format!("{HEADER}20.0.0.1,10.1.0.1,10.255.255.1,-7\n"), 2, "invalid digit"),
            (format!("{HEADER}{GOOD}{GOOD}"), 3, "AA 20.0.0.1 is named twice"),
            (GOOD.to_owned(), 1, "first line names columns"),
            ("aa,tor_la\n20.0.0.1,10.1.0.1\n".to_owned(), 2, "missing field"),
            (HEADER.to_owned(), 1, "no mappings"),
            (String::new(), 1, "no mappings"),
            ("{\"aa\":\"20.0.0.1\"}".to_owned(), 1, "missing field"),
            (
                "{\"aa\":\"20.0.0.1\",\"tor_la\":\"10.1.0.1\",\"anycast_la\":\"10.255.255.1\"}\n\nx".to_owned(),
                3,
                "expected",
            ),
            ("{\"aa\":\"20.0.0.1\",\"speed\":9}".to_owned(), 1, "speed"),
        ] {
            let error = read(&text, &rules()).unwrap_err();
            assert_eq!(error.line, line, "{error}: {text}");
            let told = error.to_string();
            assert!(told.contains(says) && told.contains("nothing was imported"), "{told} does not say {says}");
            assert!(!told.contains('\n'), "one line: {told}");
        }
    }
}
