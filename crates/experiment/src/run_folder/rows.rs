//! Records as CSV: one file per kind of row, every row with the trial it belongs to, so that a file can be read alone.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;

use weft_scenario::engine::Overlay;
use weft_scenario::record::{CostRow, CpuRow, EventRow, FlowRow, LinkRow, ProgressRow, Records, TcpRow};

use super::FolderError;
use crate::analysis::{TrialKey, TrialRecords};
use crate::table::overlay_name;

/// The columns that every file begins with.
const KEY_COLUMNS: [&str; 5] = ["trial", "repetition", "seed", "overlay", "workload"];

/// One cell of a CSV file.
trait Cell: Sized {
    fn write(&self) -> String;
    fn read(text: &str) -> Option<Self>;
}

macro_rules! plain_cell {
    ($($kind:ty),*) => { $(impl Cell for $kind {
        fn write(&self) -> String { self.to_string() }
        fn read(text: &str) -> Option<Self> { text.parse().ok() }
    })* };
}
plain_cell!(u32, u64, f64, String);

impl Cell for Option<u64> {
    fn write(&self) -> String {
        self.map_or_else(String::new, |value| value.to_string())
    }

    fn read(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
    }
}

/// A kind of row: its file and its columns, which are the names of its fields.
trait Row: Sized {
    const FILE: &'static str;
    const COLUMNS: &'static [&'static str];
    fn cells(&self) -> Vec<String>;
    fn from_cells(cells: &[&str]) -> Option<Self>;
}

macro_rules! row {
    ($kind:ident, $file:literal, $($field:ident),+) => {
        impl Row for $kind {
            const FILE: &'static str = $file;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),+];

            fn cells(&self) -> Vec<String> {
                vec![$(Cell::write(&self.$field)),+]
            }

            fn from_cells(cells: &[&str]) -> Option<Self> {
                let mut cells = cells.iter();
                Some(Self { $($field: Cell::read(cells.next()?)?),+ })
            }
        }
    };
}

/// A name and a value.
struct FactRow {
    name: String,
    value: f64,
}

row!(FlowRow, "flows.csv", from, to, bytes_asked, bytes_received, start_ns, end_ns, retransmits);
row!(ProgressRow, "progress.csv", time_ns, received_bytes, flows_done);
row!(LinkRow, "links.csv", time_ns, node, interface, peer, class, sent_bytes, dropped_frames);
row!(TcpRow, "tcp.csv", time_ns, from, to, cwnd_segments, srtt_ns, retransmits);
row!(CpuRow, "cpu.csv", time_ns, core, idle_ratio, softirq_ratio);
row!(EventRow, "events.csv", time_ns, kind, subject);
row!(CostRow, "cost.csv", cpu_ns, payload_bytes, wall_ns);
row!(FactRow, "facts.csv", name, value);

/// Appends one trial's rows to the files below `folder`, and the trial itself to `trials.csv`.
pub fn write_trial_rows(folder: &Path, trial: &TrialRecords) -> Result<(), FolderError> {
    let TrialRecords { key, records } = trial;
    append(folder, "trials.csv", &[], key, std::iter::once(Vec::new()))?;
    let facts: Vec<_> =
        records.facts.iter().map(|(name, value)| FactRow { name: name.clone(), value: *value }).collect();
    append_rows(folder, key, &records.flows)?;
    append_rows(folder, key, &records.progress)?;
    append_rows(folder, key, &records.links)?;
    append_rows(folder, key, &records.tcp)?;
    append_rows(folder, key, &records.cpu)?;
    append_rows(folder, key, &records.events)?;
    append_rows(folder, key, records.cost.as_slice())?;
    append_rows(folder, key, &facts)
}

fn append_rows<R: Row>(folder: &Path, key: &TrialKey, rows: &[R]) -> Result<(), FolderError> {
    if rows.is_empty() {
        return Ok(());
    }
    append(folder, R::FILE, R::COLUMNS, key, rows.iter().map(Row::cells))
}

fn append(
    folder: &Path,
    file: &str,
    columns: &[&str],
    key: &TrialKey,
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<(), FolderError> {
    let path = folder.join(file);
    let write = || -> std::io::Result<()> {
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let fresh = file.metadata()?.len() == 0;
        let mut writer = csv::Writer::from_writer(file);
        if fresh {
            writer.write_record(KEY_COLUMNS.iter().chain(columns)).map_err(cause)?;
        }
        let key = key_cells(key);
        for cells in rows {
            writer.write_record(key.iter().chain(&cells)).map_err(cause)?;
        }
        let file = writer.into_inner().map_err(|error| error.into_error())?;
        file.sync_all()
    };
    write().map_err(FolderError::io("write", &path))
}

/// What the system said: the library's own conversion hides whether the disk was full.
fn cause(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

fn key_cells(key: &TrialKey) -> [String; 5] {
    [
        key.trial.to_string(),
        key.repetition.to_string(),
        key.seed.to_string(),
        overlay_name(key.overlay).to_owned(),
        key.workload.clone(),
    ]
}

fn key_from_cells(cells: &[&str]) -> Option<TrialKey> {
    let [trial, repetition, seed, overlay, workload] = cells else { return None };
    let known = [Overlay::Routed, Overlay::Vl2, Overlay::KernelVxlan];
    Some(TrialKey {
        trial: trial.parse().ok()?,
        repetition: repetition.parse().ok()?,
        seed: seed.parse().ok()?,
        overlay: known.into_iter().find(|one| overlay_name(*one) == *overlay)?,
        workload: (*workload).to_owned(),
    })
}

/// Reads all trials back, in order.
pub fn read_trials(folder: &Path) -> Result<Vec<TrialRecords>, FolderError> {
    let mut trials: BTreeMap<u32, TrialRecords> = BTreeMap::new();
    read(folder, "trials.csv", &[], |key, _| {
        trials.insert(key.trial, TrialRecords { key, records: Records::default() });
        Some(())
    })?;
    read_rows(folder, &mut trials, |records| &mut records.flows)?;
    read_rows(folder, &mut trials, |records| &mut records.progress)?;
    read_rows(folder, &mut trials, |records| &mut records.links)?;
    read_rows(folder, &mut trials, |records| &mut records.tcp)?;
    read_rows(folder, &mut trials, |records| &mut records.cpu)?;
    read_rows(folder, &mut trials, |records| &mut records.events)?;
    read(folder, CostRow::FILE, CostRow::COLUMNS, |key, cells| {
        trials.get_mut(&key.trial)?.records.cost = Some(CostRow::from_cells(cells)?);
        Some(())
    })?;
    read(folder, FactRow::FILE, FactRow::COLUMNS, |key, cells| {
        let fact = FactRow::from_cells(cells)?;
        trials.get_mut(&key.trial)?.records.facts.push((fact.name, fact.value));
        Some(())
    })?;
    Ok(trials.into_values().collect())
}

fn read_rows<R: Row>(
    folder: &Path,
    trials: &mut BTreeMap<u32, TrialRecords>,
    list: fn(&mut Records) -> &mut Vec<R>,
) -> Result<(), FolderError> {
    read(folder, R::FILE, R::COLUMNS, |key, cells| {
        let row = R::from_cells(cells)?;
        list(&mut trials.get_mut(&key.trial)?.records).push(row);
        Some(())
    })
}

/// Calls `row` with the key and the other cells of each row; `None` from it refuses the row. A file that is not there
/// has no rows, except the list of trials.
fn read(
    folder: &Path,
    file: &str,
    columns: &[&str],
    mut row: impl FnMut(TrialKey, &[&str]) -> Option<()>,
) -> Result<(), FolderError> {
    let path = folder.join(file);
    if !columns.is_empty() && !path.exists() {
        return Ok(());
    }
    let malformed = |message: String| FolderError::Malformed { path: path.clone(), message };
    let opened = std::fs::File::open(&path).map_err(FolderError::io("read", &path))?;
    let mut reader = csv::Reader::from_reader(opened);
    let header = reader.headers().map_err(|error| malformed(error.to_string()))?.clone();
    if !header.iter().eq(KEY_COLUMNS.iter().chain(columns).copied()) {
        return Err(malformed(format!("line 1: the columns are not {}", columns.join(","))));
    }
    for record in reader.records() {
        let record = record.map_err(|error| malformed(error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells: Vec<&str> = record.iter().collect();
        let (key, rest) = cells.split_at(KEY_COLUMNS.len());
        key_from_cells(key)
            .and_then(|key| row(key, rest))
            .ok_or_else(|| malformed(format!("line {line}: `{}` is not a row of this file", cells.join(","))))?;
    }
    Ok(())
}
