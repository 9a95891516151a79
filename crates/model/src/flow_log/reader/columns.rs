//! Logs whose first line names their columns: CSV of one's own, IPFIX by the names of its information elements (RFC 7012),
//! `nfdump -o csv` of 1.6 and 1.7, SiLK's `rwcut`, `yafscii --tabular --print-header`.

use std::net::IpAddr;

use super::Line;
use super::number::{count, duration_ns, time_ns};
use super::short;

const NS: u64 = 1;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// Names of columns, small letters only; the first of each list is the one that messages name.
const FROM: &[&str] = &[
    "from",
    "src",
    "source",
    "sa",
    "sip",
    "srcaddr",
    "src_ip",
    "srcip",
    "src_addr",
    "sourceipv4address",
    "sourceipaddress",
];
const FROM_V6: &[&str] = &["sourceipv6address"];
const TO: &[&str] = &[
    "to",
    "dst",
    "destination",
    "da",
    "dip",
    "dstaddr",
    "dst_ip",
    "dstip",
    "dst_addr",
    "destinationipv4address",
    "destinationipaddress",
];
const TO_V6: &[&str] = &["destinationipv6address"];
const BYTES: &[&str] = &["bytes", "octets", "oct", "ibyt", "byt", "octetdeltacount", "octettotalcount"];
const REVERSE_BYTES: &[&str] = &["reverse_bytes", "roct", "obyt", "reverseoctetdeltacount", "reverseoctettotalcount"];
const START: &[(&str, u64)] = &[
    ("start", S),
    ("start_s", S),
    ("start_ms", MS),
    ("start_us", US),
    ("start_ns", NS),
    ("ts", S),
    ("firstseen", S),
    ("start-time", S),
    ("start_time", S),
    ("stime", S),
    ("flowstartseconds", S),
    ("flowstartmilliseconds", MS),
    ("flowstartmicroseconds", US),
    ("flowstartnanoseconds", NS),
];
const END: &[(&str, u64)] = &[
    ("end", S),
    ("end_s", S),
    ("end_ms", MS),
    ("end_us", US),
    ("end_ns", NS),
    ("te", S),
    ("lastseen", S),
    ("end-time", S),
    ("end_time", S),
    ("etime", S),
    ("flowendseconds", S),
    ("flowendmilliseconds", MS),
    ("flowendmicroseconds", US),
    ("flowendnanoseconds", NS),
];
const DURATION: &[(&str, u64)] = &[
    ("duration", S),
    ("duration_s", S),
    ("duration_ms", MS),
    ("td", S),
    ("flowdurationmilliseconds", MS),
    ("flowdurationmicroseconds", US),
];

/// More columns than this have no log of flows.
const COLUMNS_MAX: usize = 128;

/// A column of times and its unit, where they are numbers.
#[derive(Clone, Copy, Debug)]
struct Times {
    column: usize,
    unit_ns: u64,
}

/// Which column holds what.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    delimiter: char,
    names: Vec<String>,
    from: [Option<usize>; 2],
    to: [Option<usize>; 2],
    bytes: usize,
    reverse_bytes: Option<usize>,
    start: Times,
    end: Option<Times>,
    /// Better than `end`: nfdump prints ends in whole seconds and durations in thousandths.
    duration: Option<Times>,
    /// Columns that a line must have.
    wanted: usize,
}

impl Columns {
    pub(super) fn of_header(header: &str) -> Result<Self, String> {
        let count_of = |delimiter: &char| header.matches(*delimiter).count();
        let delimiter = [',', '|', ';', '\t'].into_iter().rev().max_by_key(count_of).unwrap_or(',');
        let names: Vec<String> = cells(header, delimiter).map(str::to_lowercase).collect();
        if names.len() > COLUMNS_MAX {
            return Err(format!("{} columns; a flow log has at most {COLUMNS_MAX}", names.len()));
        }
        let place = |known: &[&str]| known.iter().find_map(|name| names.iter().position(|one| one == name));
        let times = |known: &[(&str, u64)]| {
            let found =
                known.iter().find_map(|(name, unit_ns)| Some((names.iter().position(|one| one == name)?, *unit_ns)));
            found.map(|(column, unit_ns)| Times { column, unit_ns })
        };
        let missing = |what: &str, name: &str| {
            let header: String = header.chars().take(200).collect();
            format!(
                "no column for {what}; call it `{name}` (docs/analyse.md lists other names). The header is: {header}"
            )
        };
        let from = [place(FROM), place(FROM_V6)];
        let to = [place(TO), place(TO_V6)];
        if from == [None; 2] {
            return Err(missing("the sender's address", FROM[0]));
        }
        if to == [None; 2] {
            return Err(missing("the receiver's address", TO[0]));
        }
        let bytes = place(BYTES).ok_or_else(|| missing("the number of bytes", BYTES[0]))?;
        let start = times(START).ok_or_else(|| missing("the start", "start_s"))?;
        let (end, duration) = (times(END), times(DURATION));
        if end.is_none() && duration.is_none() {
            return Err(missing("the end or the duration", "end_s"));
        }
        let wanted = names.len();
        let reverse_bytes = place(REVERSE_BYTES);
        Ok(Self { delimiter, names, from, to, bytes, reverse_bytes, start, end, duration, wanted })
    }

    pub(super) fn line(&self, text: &str) -> Result<Line, String> {
        // Some programs end every line with a delimiter and the header without, or the other way round.
        let mut found = [""; COLUMNS_MAX];
        let mut count_found = 0;
        for cell in cells(text, self.delimiter) {
            if let Some(slot) = found.get_mut(count_found) {
                *slot = cell;
            }
            count_found += 1;
        }
        let last_is_empty = self.names.last().is_some_and(String::is_empty);
        if count_found < self.wanted - usize::from(last_is_empty) {
            return Err(format!("{count_found} columns where the header has {}", self.wanted));
        }
        let cell = |column: usize| found.get(column).copied().unwrap_or_default();
        let wrong = |column: usize, what: &str| {
            format!("`{}` in column `{}` is no {what}", short(cell(column)), self.names[column])
        };
        let address = |columns: [Option<usize>; 2]| {
            let filled = |column: &usize| !cell(*column).is_empty();
            let column = columns.into_iter().flatten().find(filled).or(columns[0]).or(columns[1]).unwrap_or_default();
            cell(column).parse::<IpAddr>().map_err(|_| wrong(column, "address"))
        };
        let number = |column: usize| count(cell(column)).ok_or_else(|| wrong(column, "number of bytes"));
        let time = |times: Times| time_ns(cell(times.column), times.unit_ns).ok_or_else(|| wrong(times.column, "time"));
        let start_ns = time(self.start)?;
        let end_ns = match (self.duration, self.end) {
            (Some(duration), _) => {
                let lasts = duration_ns(cell(duration.column), duration.unit_ns);
                let lasts = lasts.ok_or_else(|| wrong(duration.column, "duration"))?;
                start_ns.checked_add(lasts).ok_or_else(|| wrong(duration.column, "duration"))?
            }
            (None, Some(end)) => time(end)?,
            (None, None) => start_ns,
        };
        let reverse_bytes = match self.reverse_bytes.filter(|column| !cell(*column).is_empty()) {
            Some(column) => number(column)?,
            None => 0,
        };
        Ok(Line {
            from: address(self.from)?,
            to: address(self.to)?,
            bytes: number(self.bytes)?,
            reverse_bytes,
            start_ns,
            end_ns,
        })
    }
}

fn cells(text: &str, delimiter: char) -> impl Iterator<Item = &str> {
    text.split(delimiter).map(|cell| {
        let cell = cell.trim();
        cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell)
    })
}
