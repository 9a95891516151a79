//! A shard: one part of a run's trials, in a folder of its own until all parts are merged.
//!
//! ```text
//! sweep/3/shard.json         which part of which run: plan, mode, engine, version, seed
//! sweep/3/fabric.yaml ..     the networks, as in a run folder
//! sweep/3/trials/            its finished trials: a work folder, which only one process at a time writes to
//! ```

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use weft_scenario::topology::Fabric;

use super::{FolderError, Manifest, WorkFolder, write_fabrics, write_synced};
use crate::query::load::read_fabric;

const MANIFEST_FILE: &str = "shard.json";
const PARTIAL: &str = ".shard.json.partial";
const TRIALS: &str = "trials";

/// The `number`-th of `of` parts, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// All parts of a run.
    pub fn all(of: u32) -> impl Iterator<Item = Self> {
        (1..=of).map(move |number| Self { number, of })
    }

    /// Its place, from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many there are.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Its trials. Each row of as many trials as there are shards is dealt out in an order of its own, so that no shard has all
    /// the long trials where these come at equal distances, as on a sweep.
    pub fn trials(self, planned: u32) -> BTreeSet<u32> {
        let numbers: Vec<u32> = (1..=planned).collect();
        let place = |trial: u32| {
            let mut hasher = SipHasher13::new();
            trial.hash(&mut hasher);
            hasher.finish()
        };
        let dealt = |row: &[u32]| {
            let mut row = row.to_vec();
            row.sort_by_key(|trial| place(*trial));
            row.get(self.number as usize - 1).copied()
        };
        numbers.chunks(self.of as usize).filter_map(dealt).collect()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(format!("`{text}` is no part of a run; write i/n with i from 1 to n, for example 2/8")),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// The file `shard.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardManifest {
    /// Which part.
    pub shard: Shard,
    /// How many trials all parts have together.
    pub planned: u32,
    /// Hash of the networks' files.
    pub fabrics_hash: String,
    /// What runs, and where and when the shard was begun.
    pub run: Manifest,
}

impl ShardManifest {
    /// What is not the same in a shard that belongs to this one's run, for a sentence: `its seed is 2, not 1`.
    pub fn differs(&self, other: &Self) -> Option<String> {
        let version =
            |run: &Manifest| format!("{} {}", run.weft_version, run.git_revision.as_deref().unwrap_or("unknown"));
        let (ours, theirs) = (&self.run, &other.run);
        let told = |what: &str, ours: &dyn std::fmt::Display, theirs: &dyn std::fmt::Display| {
            let (ours, theirs) = (ours.to_string(), theirs.to_string());
            (ours != theirs).then(|| format!("its {what} is {theirs}, not {ours}"))
        };
        told("plan", &ours.plan, &theirs.plan)
            .or_else(|| told("mode", &mode(ours), &mode(theirs)))
            .or_else(|| told("engine", &ours.engine, &theirs.engine))
            .or_else(|| told("seed", &ours.seed, &theirs.seed))
            .or_else(|| told("weft", &version(ours), &version(theirs)))
            .or_else(|| (ours.set != theirs.set).then(|| "it has other settings (`--set`)".to_owned()))
            .or_else(|| (ours.plan_text != theirs.plan_text).then(|| "its plan has another text".to_owned()))
            .or_else(|| (self.fabrics_hash != other.fabrics_hash).then(|| "its networks are others".to_owned()))
            .or_else(|| told("number of shards", &self.shard.of, &other.shard.of))
    }

    /// Its trials.
    pub fn trials(&self) -> BTreeSet<u32> {
        self.shard.trials(self.planned)
    }

    /// The command that runs it, or what is missing of it, in this folder.
    pub fn command(&self, folder: &Path) -> String {
        let mut words = self.run.command(self.run.plan_word());
        words.extend(["--shard".to_owned(), self.shard.to_string(), "--out".to_owned(), folder.display().to_string()]);
        super::shell_words(&words)
    }
}

fn mode(run: &Manifest) -> String {
    format!("{:?}", run.mode).to_lowercase()
}

/// A shard's folder that only this process writes to.
#[derive(Debug)]
pub struct ShardFolder {
    path: PathBuf,
    /// Which part of what.
    pub manifest: ShardManifest,
    /// Its finished trials.
    pub work: WorkFolder,
}

impl ShardFolder {
    /// Begins a shard in a folder that is not there yet or empty, or goes on with the same shard.
    pub fn begin(path: &Path, mut manifest: ShardManifest, fabrics: &[Fabric]) -> Result<Self, FolderError> {
        let is_new = !path.join(MANIFEST_FILE).exists();
        if is_new && !may_begin(path) {
            return Err(FolderError::Exists(path.to_owned()));
        }
        let work = WorkFolder::open(path.join(TRIALS))?;
        manifest.fabrics_hash = hash_of(fabrics);
        if is_new {
            manifest.run.fabrics = write_fabrics(path, fabrics)?;
            write_manifest(path, &manifest)?;
        }
        let found = read_manifest(path)?;
        let other = manifest.differs(&found);
        let other = other.or_else(|| (manifest.shard != found.shard).then(|| format!("it is shard {}", found.shard)));
        match other {
            Some(what) => Err(FolderError::OtherShard { path: path.to_owned(), what }),
            None => Ok(Self { path: path.to_owned(), manifest: found, work }),
        }
    }

    /// Opens one that was begun.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let manifest = read_manifest(path)?;
        Ok(Self { path: path.to_owned(), manifest, work: WorkFolder::open(path.join(TRIALS))? })
    }

    /// How many finished trials are in the folder of a shard, which may be at work or not yet begun. They have their names from
    /// when they are whole; [`ShardFolder::open`] looks closer.
    pub fn count(path: &Path) -> usize {
        let is_trial =
            |entry: &std::fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        std::fs::read_dir(path.join(TRIALS)).map_or(0, |entries| entries.flatten().filter(is_trial).count())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Trials that are not there.
    pub fn missing(&self) -> Vec<u32> {
        self.manifest.trials().into_iter().filter(|trial| !self.work.has(*trial)).collect()
    }

    /// The networks, one for every place of the sweep.
    pub fn fabrics(&self) -> Result<Vec<Fabric>, FolderError> {
        let fabrics: Vec<Fabric> =
            self.manifest.run.fabrics.iter().map(|file| read_fabric(&self.path, file)).collect::<Result<_, _>>()?;
        match hash_of(&fabrics) == self.manifest.fabrics_hash {
            true => Ok(fabrics),
            false => {
                let message =
                    "the networks beside it are not those that it ran on; run the shard again in a new folder";
                Err(FolderError::Malformed { path: self.path.join(MANIFEST_FILE), message: message.to_owned() })
            }
        }
    }
}

/// Whether the folder is not there, empty, or has nothing but what a shard has that was ended while it began.
fn may_begin(folder: &Path) -> bool {
    let is_ours = |name: &str| name == TRIALS || name == PARTIAL || name.starts_with("fabric");
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.all(|entry| entry.file_name().to_str().is_some_and(is_ours))
}

fn hash_of(fabrics: &[Fabric]) -> String {
    let mut hasher = SipHasher13::new();
    fabrics.iter().for_each(|fabric| weft_scenario::topology::to_yaml(fabric).hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}

/// Under its name only when it is whole, as it says that the folder is a shard.
fn write_manifest(folder: &Path, manifest: &ShardManifest) -> Result<(), FolderError> {
    let (partial, path) = (folder.join(PARTIAL), folder.join(MANIFEST_FILE));
    let text = serde_json::to_string_pretty(manifest)
        .map_err(|error| FolderError::Malformed { path: path.clone(), message: error.to_string() })?;
    write_synced(&partial, &(text + "\n"))?;
    std::fs::rename(&partial, &path).map_err(FolderError::io("rename to", &path))
}

fn read_manifest(folder: &Path) -> Result<ShardManifest, FolderError> {
    let path = folder.join(MANIFEST_FILE);
    if !path.exists() {
        return Err(match super::manifest_of(folder) {
            Ok(_) => FolderError::WholeRun(folder.to_owned()),
            Err(FolderError::NoRun(folder)) => FolderError::NoShard(folder),
            Err(error) => error,
        });
    }
    let text = std::fs::read_to_string(&path).map_err(FolderError::io("read", &path))?;
    serde_json::from_str(&text).map_err(|error| FolderError::Malformed { path, message: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_is_in_one_shard_and_shards_are_of_one_length() {
        for (planned, of) in [(12, 3), (200, 8), (7, 3), (5, 5), (10_000, 400)] {
            let shards: Vec<BTreeSet<u32>> = Shard::all(of).map(|shard| shard.trials(planned)).collect();
            let mut all: Vec<u32> = shards.iter().flatten().copied().collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(1..=planned), "{planned} in {of}");
            let lengths = || shards.iter().map(BTreeSet::len);
            assert!(lengths().max().unwrap() - lengths().min().unwrap() <= 1, "{planned} in {of}");
        }
    }

    #[test]
    fn no_shard_has_all_trials_of_one_place_on_a_sweep() {
        // Every fourth trial is a long one, and there are four shards.
        let long = |shard: Shard| shard.trials(400).into_iter().filter(|trial| trial % 4 == 0).count();
        assert!(
            Shard::all(4).map(long).all(|count| (10..=40).contains(&count)),
            "{:?}",
            Shard::all(4).map(long).collect::<Vec<_>>()
        );
    }

    #[test]
    fn parts_are_written_as_people_write_them() {
        assert_eq!("2/8".parse::<Shard>().unwrap().to_string(), "2/8");
        for wrong in ["0/3", "4/3", "2", "1/0", "a/b", "-1/3", ""] {
            assert!(wrong.parse::<Shard>().unwrap_err().ends_with("for example 2/8"), "{wrong}");
        }
    }
}
