//! The run folder: everything that a run leaves, under a temporary name until it is complete.
//!
//! | file | what it is |
//! | --- | --- |
//! | `manifest.json` | machine, plan, seed, scale, facts: [`Manifest`] |
//! | `records/*.csv` | tidy rows, the unit in the column's name |
//! | `fabric.yaml`, `fabric-2.yaml` .. | the networks as they ran |
//! | `scenario.toml` | what `weft sim` ran on the network beside it |
//! | `summary.json` | the object of `weft run -o json` |
//! | `report.html` | one page that opens without a network |
//! | `replay-1.html` .. | trials to watch ([`crate::page`]) |

mod key;
mod manifest;
mod page;
mod rows;
mod shard;
mod work;

use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) use key::{KEY_COLUMNS, key_cells};
pub use manifest::{FlowSizes, Machine, Manifest, SCALE_NOTE};
pub(crate) use manifest::{SCENARIO_FILE, load_average, now_utc, program_digest};
pub use page::records_page;
pub(crate) use rows::{read_keys, read_some_trials};
pub use rows::{read_trials, write_trial_rows};
pub use shard::{Shard, ShardFolder, ShardManifest};
pub use work::{FinishedRun, WorkFolder};

use weft_scenario::topology::{Fabric, to_yaml};

use crate::analysis::TrialRecords;
use crate::plan::{Axis, PlanSpec};
use crate::query::{Database, QueryError};

/// The file of the network with this number, counted from 0; a sweep may have several.
pub fn fabric_file(number: usize) -> String {
    if number == 0 { "fabric.yaml".to_owned() } else { format!("fabric-{}.yaml", number + 1) }
}

/// Writes each different network once, and says which place of the sweep has which file.
pub(crate) fn write_fabrics(folder: &Path, fabrics: &[Fabric]) -> Result<Vec<String>, FolderError> {
    let mut written: Vec<&Fabric> = Vec::new();
    let mut files = Vec::new();
    for fabric in fabrics {
        let place = written.iter().position(|known| *known == fabric).unwrap_or(written.len());
        if place == written.len() {
            write_synced(&folder.join(fabric_file(place)), &to_yaml(fabric))?;
            written.push(fabric);
        }
        files.push(fabric_file(place));
    }
    Ok(files)
}

/// Why a run folder could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Something of that name is there already.
    #[error("run folder {} exists already; choose another with --out or remove it", .0.display())]
    Exists(PathBuf),
    /// Another process works on the same runs.
    #[error("another weft works on this sweep ({}); wait for it, or choose another --seed or --out", .0.display())]
    InUse(PathBuf),
    /// The folder has another shard's trials.
    #[error("{} holds a shard of another run: {what}; choose another --out or remove it", path.display())]
    OtherShard {
        path: PathBuf,
        /// What is not the same.
        what: String,
    },
    /// The name of a folder that is not there.
    #[error("there is no folder {}", .0.display())]
    Nowhere(PathBuf),
    /// Something else than the folder of a run or measurement.
    #[error("{} is no run folder; `weft run`, `weft sim --out` and `weft measure --out` make them and say where", .0.display())]
    NoRun(PathBuf),
    /// There is none in the folder.
    #[error("{} is no shard: it has no shard.json; name folders that `weft run PLAN --shard i/n --out DIR` made", .0.display())]
    NoShard(PathBuf),
    /// It is whole.
    #[error("{} is a whole run and no shard, so there is nothing to merge; `weft report` shows whole runs beside each other, `weft trend` makes a series of them", .0.display())]
    WholeRun(PathBuf),
    /// The file system refused.
    #[error("cannot {what} {}: {source}{}", path.display(), hint(source))]
    Io {
        /// What was tried: `write`, `read`, `create`, `rename to`, `remove`, `lock`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what a run folder holds.
    #[error("{}: {message}", path.display())]
    Malformed {
        path: PathBuf,
        /// What is wrong, with the line where there is one.
        message: String,
    },
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "; free some space and run again",
        std::io::ErrorKind::PermissionDenied => "; choose another place with --out",
        _ => "",
    }
}

impl FolderError {
    /// Whether the error is about the name on the command line: it is no run folder, or not of the kind that is wanted.
    pub fn is_misnamed(&self) -> bool {
        matches!(self, Self::Nowhere(_) | Self::NoRun(_) | Self::NoShard(_) | Self::WholeRun(_))
    }

    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// The manifest of a folder that a run or a measurement made.
pub(crate) fn manifest_of(folder: &Path) -> Result<PathBuf, FolderError> {
    let path = folder.join("manifest.json");
    let is_missing = |path: &Path| path.try_exists().is_ok_and(|exists| !exists);
    match () {
        () if is_missing(folder) => Err(FolderError::Nowhere(folder.to_owned())),
        () if is_missing(&path) || folder.is_file() => Err(FolderError::NoRun(folder.to_owned())),
        () => Ok(path),
    }
}

/// A run folder in the making. Dropping it before [`RunFolder::finish`] removes it.
#[derive(Debug)]
pub struct RunFolder {
    temporary: PathBuf,
    last: PathBuf,
    finished: bool,
}

impl RunFolder {
    /// Makes the folder under a temporary name beside its last one, so that an unusable place is found before the run.
    pub fn create(out: Option<&Path>, plan: &str, manifest: &Manifest) -> Result<Self, FolderError> {
        let last = out.map_or_else(|| free_default(plan, &manifest.started_utc), Path::to_owned);
        let folder = Self::begin(last)?;
        folder.write_json("manifest.json", manifest)?;
        if manifest.scenario.is_some() {
            folder.write_text(SCENARIO_FILE, &manifest.plan_text)?;
        }
        Ok(folder)
    }

    /// Begins the folder of a measurement or a log, which has no manifest of a run.
    pub fn begin(last: PathBuf) -> Result<Self, FolderError> {
        let empty = |path: &Path| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if last.symlink_metadata().is_ok() && !empty(&last) {
            return Err(FolderError::Exists(last));
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(last.file_name().unwrap_or_default());
        name.push(format!(".partial-{}", std::process::id()));
        let temporary = last.with_file_name(name);
        let folder = Self { temporary, last, finished: false };
        let records = folder.records();
        std::fs::create_dir_all(&records).map_err(FolderError::io("create", &records))?;
        Ok(folder)
    }

    /// Takes the folder of the rows away: what is kept has none.
    pub(crate) fn without_records(self) -> Result<Self, FolderError> {
        let records = self.records();
        std::fs::remove_dir(&records).map_err(FolderError::io("remove", &records))?;
        Ok(self)
    }

    /// Where it is now.
    pub(crate) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Where it will be once it is complete.
    pub fn final_path(&self) -> &Path {
        &self.last
    }

    /// Appends one trial's rows to the files of `records/`.
    pub fn write_trial(&self, axes: &[Axis], trial: &TrialRecords) -> Result<(), FolderError> {
        write_trial_rows(&self.records(), axes, trial)
    }

    /// The folder of the rows.
    pub(crate) fn records(&self) -> PathBuf {
        self.temporary.join("records")
    }

    /// The rows as tables, once all are there.
    pub fn database(&self, manifest: &Manifest, spec: &PlanSpec) -> Result<Database, QueryError> {
        self.write_json("manifest.json", manifest)?;
        Database::with_spec(&self.temporary, &manifest.fabrics, spec)
    }

    /// Writes a value as a JSON file.
    pub fn write_json<T: serde::Serialize>(&self, name: &str, value: &T) -> Result<(), FolderError> {
        let mut text = serde_json::to_string_pretty(value)
            .map_err(|error| FolderError::Malformed { path: self.temporary.join(name), message: error.to_string() })?;
        text.push('\n');
        self.write_text(name, &text)
    }

    /// Writes a text file.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), FolderError> {
        write_synced(&self.temporary.join(name), text)
    }

    /// Writes the final manifest and gives the folder its name.
    pub fn finish(self, manifest: &Manifest) -> Result<PathBuf, FolderError> {
        self.write_json("manifest.json", manifest)?;
        self.complete()
    }

    /// Gives the folder its name.
    pub fn complete(mut self) -> Result<PathBuf, FolderError> {
        if self.records().exists() {
            sync_files(&self.records())?;
        }
        // An empty folder of that name is replaced by the rename.
        std::fs::rename(&self.temporary, &self.last).map_err(FolderError::io("rename to", &self.last))?;
        self.finished = true;
        Ok(self.last.clone())
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing can be done about a failure here; the name says that the folder is partial.
            let _ = std::fs::remove_dir_all(&self.temporary);
        }
    }
}

/// Writes a whole file and waits until it is on disk, so that a full disk is an error here and not a truncated file.
pub(crate) fn write_synced(path: &Path, text: &str) -> Result<(), FolderError> {
    let write = || {
        let mut file = std::fs::File::create(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(FolderError::io("write", path))
}

/// A command as a shell reads it.
pub(crate) fn shell_words(words: &[String]) -> String {
    let plain = |word: &String| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=:,".contains(&byte));
    let quote = |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// The files of a folder of rows, in order of their names.
pub(crate) fn record_files(folder: &Path) -> Result<Vec<String>, FolderError> {
    let entries = std::fs::read_dir(folder).map_err(FolderError::io("read", folder))?;
    let mut files: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    files.sort();
    Ok(files)
}

/// Waits until every file of a folder is on disk.
fn sync_files(folder: &Path) -> Result<(), FolderError> {
    for path in record_files(folder)?.into_iter().map(|file| folder.join(file)) {
        let sync = || std::fs::File::open(&path)?.sync_all();
        sync().map_err(FolderError::io("write", &path))?;
    }
    Ok(())
}

/// `run/PLAN-TIME`, with a number behind it when two runs start in the same second.
fn free_default(plan: &str, started_utc: &str) -> PathBuf {
    let stamp: String = started_utc.chars().filter(|c| !matches!(c, ':' | '-')).collect();
    let base = format!("{}-{stamp}", plan.replace('/', "-"));
    let candidate = |number: u32| match number {
        1 => Path::new("run").join(&base),
        _ => Path::new("run").join(format!("{base}-{number}")),
    };
    (1..).map(candidate).find(|path| path.symlink_metadata().is_err()).expect("numbers do not end")
}

#[cfg(test)]
mod tests;
