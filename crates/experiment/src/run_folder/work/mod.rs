//! Finished runs of a sweep, kept beside the run folder until all are done, so that the same command goes on where an
//! interrupted one stopped.
//!
//! ```text
//! run/.leaf-spine-queues.unfinished-3f2a...   the key: plan, mode, seed, engines, version
//!   lock                                      held while a process works on it
//!   7/flows.csv ...                           rows of trial 7, as they will be appended to the run folder's
//!   7/index.json                              the length of each file, so that a truncated one is not taken for whole
//!   8.partial/                                being written
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_scenario::record::RowKind;

use super::{FolderError, read_trials, write_trial_rows};
use crate::analysis::TrialRecords;
use crate::plan::Axis;

const INDEX_FILE: &str = "index.json";
const LOCK_FILE: &str = "lock";

/// Facts about a network: name and value.
type Facts = Vec<(String, f64)>;

/// A folder of finished runs. Dropping it keeps them; a folder without any is removed.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    finished: BTreeSet<u32>,
    _lock: File,
}

/// A run that the folder keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedRun {
    /// Its records, as far as the analysis reads them.
    pub trial: TrialRecords,
    /// What the session said about its network.
    pub session_facts: Facts,
}

/// What proves that a run's folder is whole.
#[derive(Serialize, Deserialize)]
struct Index {
    session_facts: Facts,
    bytes: BTreeMap<String, u64>,
}

impl WorkFolder {
    /// Opens or makes the folder of the runs with this key beside `out`, or in `run/` without one.
    pub fn beside(out: Option<&Path>, plan: &str, key: &str) -> Result<Self, FolderError> {
        let name = match out {
            Some(out) => out.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            None => plan.replace('/', "-"),
        };
        Self::open(out.unwrap_or(Path::new("run/any")).with_file_name(format!(".{name}.unfinished-{key}")))
    }

    /// Opens or makes it. What is not whole in it is removed.
    pub fn open(path: PathBuf) -> Result<Self, FolderError> {
        std::fs::create_dir_all(&path).map_err(FolderError::io("create", &path))?;
        let lock = lock(&path)?;
        let finished = finished_runs(&path)?;
        Ok(Self { path, finished, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many whole runs it holds now.
    pub fn count(&self) -> usize {
        finished_runs(&self.path).map_or(0, |runs| runs.len())
    }

    /// Whether it held the trial with this number when it was opened.
    pub fn has(&self, number: u32) -> bool {
        self.finished.contains(&number)
    }

    /// Writes a finished run.
    pub fn keep(&self, axes: &[Axis], run: &FinishedRun) -> Result<(), FolderError> {
        let number = run.trial.key.trial;
        let (partial, whole) = (self.path.join(format!("{number}.partial")), self.run(number));
        std::fs::create_dir_all(&partial).map_err(FolderError::io("create", &partial))?;
        write_trial_rows(&partial, axes, &run.trial)?;
        let index = partial.join(INDEX_FILE);
        let bytes = lengths(&partial)?;
        let session_facts = run.session_facts.iter().filter(|(_, value)| value.is_finite()).cloned().collect();
        let text = serde_json::to_string(&Index { session_facts, bytes })
            .map_err(|error| FolderError::Malformed { path: index.clone(), message: error.to_string() })?;
        std::fs::write(&index, text).map_err(FolderError::io("write", &index))?;
        std::fs::rename(&partial, &whole).map_err(FolderError::io("rename to", &whole))
    }

    /// Reads a run back.
    pub fn load(&self, axes: &[Axis], number: u32, kinds: &[RowKind]) -> Result<FinishedRun, FolderError> {
        let path = self.run(number);
        let malformed = |message: String| FolderError::Malformed { path: path.clone(), message };
        let index = read_index(&path).ok_or_else(|| malformed("its index cannot be read".to_owned()))?;
        let trial = read_trials(&path, axes, kinds)?.pop().ok_or_else(|| malformed("it has no trial".to_owned()))?;
        Ok(FinishedRun { trial, session_facts: index.session_facts })
    }

    /// Appends the rows of a run to the files of `records`.
    pub fn append_to(&self, number: u32, records: &Path) -> Result<(), FolderError> {
        let path = self.run(number);
        for file in lengths(&path)?.into_keys().filter(|file| file != INDEX_FILE) {
            let (from, to) = (path.join(&file), records.join(&file));
            append_rows(&from, &to).map_err(FolderError::io("write", &to))?;
        }
        Ok(())
    }

    /// Removes it with all that it keeps.
    pub fn remove(self) -> Result<(), FolderError> {
        std::fs::remove_dir_all(&self.path).map_err(FolderError::io("remove", &self.path))
    }

    fn run(&self, number: u32) -> PathBuf {
        self.path.join(number.to_string())
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if self.count() == 0 {
            // Nothing can be done about a failure here; the name says that the folder is unfinished.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn lock(folder: &Path) -> Result<File, FolderError> {
    let path = folder.join(LOCK_FILE);
    let file = File::create(&path).map_err(FolderError::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FolderError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(FolderError::io("lock", &path)(error)),
    }
}

/// Numbers of the runs that are whole; what is not is removed.
fn finished_runs(folder: &Path) -> Result<BTreeSet<u32>, FolderError> {
    let mut finished = BTreeSet::new();
    let entries = std::fs::read_dir(folder).map_err(FolderError::io("read", folder))?;
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        match number.filter(|_| is_whole(&path)) {
            Some(number) => {
                finished.insert(number);
            }
            None => std::fs::remove_dir_all(&path).map_err(FolderError::io("remove", &path))?,
        }
    }
    Ok(finished)
}

fn is_whole(run: &Path) -> bool {
    let found = lengths(run).ok().map(|mut found| {
        found.remove(INDEX_FILE);
        found
    });
    read_index(run).is_some_and(|index| Some(index.bytes) == found)
}

fn read_index(run: &Path) -> Option<Index> {
    serde_json::from_str(&std::fs::read_to_string(run.join(INDEX_FILE)).ok()?).ok()
}

/// The length of every file of a folder.
fn lengths(folder: &Path) -> Result<BTreeMap<String, u64>, FolderError> {
    let read = || -> std::io::Result<BTreeMap<String, u64>> {
        let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        entries
            .into_iter()
            .map(|entry| Ok((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len())))
            .collect()
    };
    read().map_err(FolderError::io("read", folder))
}

/// Appends a file of rows to another, whose header stands for both.
fn append_rows(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut source = BufReader::new(File::open(from)?);
    let mut target = OpenOptions::new().create(true).append(true).open(to)?;
    if target.metadata()?.len() > 0 {
        source.skip_until(b'\n')?;
    }
    std::io::copy(&mut source, &mut target).map(|_| ())
}

#[cfg(test)]
mod tests;
