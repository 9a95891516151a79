//! Records as CSV: one file per kind of row, every row with the trial it belongs to, so that a file can be read alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::path::Path;

use weft_scenario::record::{Column, Records, RowKind};

use super::key::{KEY_COLUMNS, key_cells, key_from_cells};
use super::{FolderError, record_files};
use crate::analysis::{TrialKey, TrialRecords};
use crate::plan::Axis;

/// The list of trials.
const TRIALS_FILE: &str = "trials.csv";

/// Appends one trial's rows to the files below `folder`, and the trial itself to `trials.csv`.
pub fn write_trial_rows(folder: &Path, axes: &[Axis], trial: &TrialRecords) -> Result<(), FolderError> {
    let sink = Sink { folder, axes, key: &trial.key };
    sink.append(TRIALS_FILE, &[], std::iter::once(Vec::new()))?;
    for kind in RowKind::ALL {
        let mut rows = kind.cells(&trial.records).peekable();
        if rows.peek().is_some() {
            sink.append(&kind.file(), kind.columns, rows)?;
        }
    }
    Ok(())
}

/// Where the rows of one trial go.
struct Sink<'a> {
    folder: &'a Path,
    axes: &'a [Axis],
    key: &'a TrialKey,
}

impl Sink<'_> {
    fn append(
        &self,
        file: &str,
        columns: &[Column],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Result<(), FolderError> {
        let path = self.folder.join(file);
        let write = || -> std::io::Result<()> {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            let fresh = file.metadata()?.len() == 0;
            let mut writer = csv::Writer::from_writer(file);
            if fresh {
                writer.write_record(header(self.axes, columns)).map_err(cause)?;
            }
            let key = key_cells(self.key);
            for cells in rows {
                writer.write_record(key.iter().chain(&cells)).map_err(cause)?;
            }
            writer.flush()
        };
        write().map_err(FolderError::io("write", &path))
    }
}

/// What the system said: the library's own conversion hides whether the disk was full.
fn cause(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

/// The first line of a file.
fn header<'a>(axes: &'a [Axis], columns: &[Column]) -> Vec<&'a str> {
    let axes = axes.iter().map(|axis| axis.name.as_str());
    let name = |column: &Column| column.name;
    KEY_COLUMNS.iter().map(name).chain(axes).chain(columns.iter().map(name)).collect()
}

/// Reads all trials back, in order, with the kinds of rows that are asked for, and facts.
pub fn read_trials(folder: &Path, axes: &[Axis], kinds: &[RowKind]) -> Result<Vec<TrialRecords>, FolderError> {
    read_some_trials(folder, axes, kinds, &|_| true)
}

/// The same of those trials that are wanted.
pub(crate) fn read_some_trials(
    folder: &Path,
    axes: &[Axis],
    kinds: &[RowKind],
    wanted: &dyn Fn(&TrialKey) -> bool,
) -> Result<Vec<TrialRecords>, FolderError> {
    let keys = read_keys(folder, axes)?;
    let known: BTreeSet<u32> = keys.iter().map(|key| key.trial).collect();
    let empty = |key: TrialKey| (key.trial, TrialRecords { key, records: Records::default() });
    let mut trials: BTreeMap<u32, TrialRecords> = keys.into_iter().filter(|key| wanted(key)).map(empty).collect();
    check_files(folder)?;
    for kind in RowKind::ALL.iter().filter(|kind| kind.stays_beside(kinds)) {
        let path = folder.join(kind.file());
        // A file that is not there has no rows.
        if path.exists() {
            read(&path, axes, kind.columns, |key, cells| match trials.get_mut(&key.trial) {
                Some(trial) => kind.push(&mut trial.records, cells),
                None => known.contains(&key.trial).then_some(()),
            })?;
        }
    }
    Ok(trials.into_values().collect())
}

/// Which trials there are, in order.
pub(crate) fn read_keys(folder: &Path, axes: &[Axis]) -> Result<Vec<TrialKey>, FolderError> {
    let mut keys = BTreeMap::new();
    read(&folder.join(TRIALS_FILE), axes, &[], |key, _| {
        keys.insert(key.trial, key);
        Some(())
    })?;
    Ok(keys.into_values().collect())
}

/// Rows of a kind that there is no more would be missed without a word.
fn check_files(folder: &Path) -> Result<(), FolderError> {
    let known = |file: &str| file == TRIALS_FILE || RowKind::ALL.iter().any(|kind| kind.file() == file);
    match record_files(folder)?.iter().find(|file| file.ends_with(".csv") && !known(file)) {
        Some(file) => {
            let message = "no rows are in a file of this name; run the plan again, or read the folder with the weft that wrote it";
            Err(FolderError::Malformed { path: folder.join(file), message: message.to_owned() })
        }
        None => Ok(()),
    }
}

/// Calls `row` with the key and the other cells of each row; `None` from it refuses the row.
fn read(
    path: &Path,
    axes: &[Axis],
    columns: &[Column],
    mut row: impl FnMut(TrialKey, &[&str]) -> Option<()>,
) -> Result<(), FolderError> {
    let malformed = |message: String| FolderError::Malformed { path: path.to_owned(), message };
    let opened = std::fs::File::open(path).map_err(FolderError::io("read", path))?;
    let mut reader = csv::Reader::from_reader(opened);
    let expected = header(axes, columns);
    let found = reader.headers().map_err(|error| malformed(error.to_string()))?;
    if !found.iter().eq(expected.iter().copied()) {
        return Err(malformed(format!("line 1: the columns are not {}", expected.join(","))));
    }
    for record in reader.records() {
        let record = record.map_err(|error| malformed(error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells: Vec<&str> = record.iter().collect();
        let (key, rest) = cells.split_at(KEY_COLUMNS.len() + axes.len());
        key_from_cells(key)
            .and_then(|key| row(key, rest))
            .ok_or_else(|| malformed(format!("line {line}: `{}` is not a row of this file", cells.join(","))))?;
    }
    Ok(())
}
