//! A run in parts: each shard runs its trials wherever it is, and all of them together give what one run gives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weft_model::CALC;
use weft_scenario::engine::{Engine, Progress};

use super::conclusion::Conclusion;
use super::execution::{Execution, Rows};
use super::{RunError, RunOptions, RunOutcome, fit, schedule, spec_for};
use crate::plan::{Mode, Plan, PlanError, SIM};
use crate::run_folder::{FolderError, Manifest, RunFolder, Shard, ShardFolder, ShardManifest, write_fabrics};

/// A shard that is whole.
#[derive(Clone, Debug)]
pub struct ShardOutcome {
    /// Its folder.
    pub folder: PathBuf,
    /// How many trials it has.
    pub trials: usize,
    /// How many all shards have together.
    pub planned: u32,
}

/// Why shards could not be merged. They stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A shard of another run.
    #[error("{} does not belong to {}: {what}", other.display(), first.display())]
    Differs {
        first: PathBuf,
        other: PathBuf,
        /// What is not the same.
        what: String,
    },
    /// This weft would judge and draw in another way.
    #[error("the shards were made by weft {made}, and this is {this}: merge them with that one")]
    OtherWeft {
        made: String,
        /// The version that runs.
        this: String,
    },
    /// Two folders hold the same shard.
    #[error("{} and {} are both shard {shard}; leave one out", one.display(), other.display())]
    Twice { shard: Shard, one: PathBuf, other: PathBuf },
    /// Not all trials are there.
    #[error("{count} of {planned} trials are missing: {}; what is there stays, and `weft merge` goes on after: {}", gaps.join(", "), remedies.join("; "))]
    Missing {
        count: usize,
        planned: u32,
        /// Which, by shard.
        gaps: Vec<String>,
        /// The commands that run them.
        remedies: Vec<String>,
    },
    /// The plan kept in the shards cannot be read.
    #[error("{}: {source}; merge with the weft that made it", folder.display())]
    Plan {
        folder: PathBuf,
        /// What is wrong with its plan.
        source: PlanError,
    },
    /// A folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The run folder could not be made of them.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The engine that runs shards of a plan: one whose rows do not depend on where they were made.
pub fn shard_engine(wanted: Option<&str>, plan: &Plan, mode: Mode) -> Result<&'static str, RunError> {
    let spec = plan.for_mode(mode);
    let fits = |name: &str| spec.engines.iter().any(|one| one == name) && wanted.is_none_or(|wanted| wanted == name);
    let found = [SIM, CALC].into_iter().find(|name| fits(name));
    found.filter(|_| !spec.compares_engines()).ok_or_else(|| RunError::NoShards { plan: plan.id().to_owned() })
}

/// Runs one part of a plan into a folder of its own. Trials that are whole are not run again; `options.out` or
/// `run/PLAN-shard-i-of-n` is the folder.
pub fn run_shard(
    plan: &Plan,
    engine: &dyn Engine,
    shard: Shard,
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<ShardOutcome, RunError> {
    let engines = [engine];
    let spec = spec_for(plan, &engines, options.mode, None)?;
    let (name, planned) = (plan.id().to_owned(), spec.trials());
    if engine.parallel().is_none() {
        return Err(RunError::NoShards { plan: name });
    }
    if shard.of() as usize > planned {
        return Err(RunError::TooManyShards { plan: name, planned, shards: shard.of() });
    }
    let fabrics = spec.build_fabrics().map_err(|message| RunError::Scenario { plan: name, message })?;
    fit::require(spec, &fabrics, &engines)?;
    let mut batches = schedule::batches(spec, &fabrics, options.seed);
    let workers = fit::workers(spec, &batches, &engines, options, progress)?;
    let run = Manifest { reproducible: true, ..Manifest::new(plan, spec, options) };
    let manifest = ShardManifest { shard, planned: planned as u32, fabrics_hash: String::new(), run };
    let folder = options.out.clone().unwrap_or_else(|| default_folder(plan, shard));
    let folder = ShardFolder::begin(&folder, manifest, &fabrics)?;
    let trials = folder.manifest.trials();
    batches.iter_mut().for_each(|batch| batch.jobs.retain(|job| trials.contains(&job.key.trial)));
    let rows = Rows::Work(&folder.work);
    Execution { spec, batches, engines: &engines, workers, progress, rows }.run()?;
    Ok(ShardOutcome { folder: folder.path().to_owned(), trials: trials.len(), planned: planned as u32 })
}

fn default_folder(plan: &Plan, shard: Shard) -> PathBuf {
    let plan = plan.id().replace('/', "-");
    Path::new("run").join(format!("{plan}-shard-{}-of-{}", shard.number(), shard.of()))
}

/// Makes one run of all its shards, as if it had run on one machine. Of `options` it takes where to, and the command line.
pub fn merge(shards: &[PathBuf], options: &RunOptions, progress: &dyn Progress) -> Result<RunOutcome, MergeError> {
    let shards = shards.iter().map(|path| ShardFolder::open(path)).collect::<Result<Vec<_>, _>>()?;
    let by_shard = belonging(&shards)?;
    let first = &shards[0];
    let ShardManifest { run, planned, .. } = &first.manifest;
    let unreadable = |source| MergeError::Plan { folder: first.path().to_owned(), source };
    let plan = Plan::parse_with(&run.plan_origin, &run.plan_text, run.mode, &run.set).map_err(unreadable)?;
    let spec = plan.for_engine(run.mode, &run.engine).ok_or_else(|| RunError::NoShards { plan: run.plan.clone() })?;
    let fabrics = first.fabrics()?;

    let options = RunOptions { mode: run.mode, seed: run.seed, ..options.clone() };
    let mut manifest = Manifest { reproducible: true, ..Manifest::new(&plan, spec, &options) };
    let folder = RunFolder::create(options.out.as_deref(), plan.id(), &manifest)?;
    manifest.fabrics = write_fabrics(folder.path(), &fabrics)?;
    let mut kept_in = BTreeMap::new();
    let mut finished = Vec::new();
    progress.phase("merge", &format!("{planned} trials of {} shards", by_shard.len()));
    for shard in by_shard.values() {
        for trial in shard.manifest.trials() {
            finished.push(shard.work.load(&spec.axes, trial, spec.analysis.reads())?);
            kept_in.insert(trial, &shard.work);
        }
        progress.advance(finished.len() as f64 / f64::from(*planned), "");
    }
    let conclusion = Conclusion { spec, fabrics: &fabrics, progress, folder, manifest };
    Ok(conclusion.write(finished, &|trial| kept_in.get(&trial).copied())?)
}

/// The shards by number, if they are all parts of one run of this weft and nothing is missing.
fn belonging(shards: &[ShardFolder]) -> Result<BTreeMap<u32, &ShardFolder>, MergeError> {
    let first = &shards[0].manifest;
    let mut by_shard: BTreeMap<u32, &ShardFolder> = BTreeMap::new();
    for shard in shards {
        if let Some(what) = first.differs(&shard.manifest) {
            let (first, other) = (shards[0].path().to_owned(), shard.path().to_owned());
            return Err(MergeError::Differs { first, other, what });
        }
        if let Some(twin) = by_shard.insert(shard.manifest.shard.number(), shard) {
            let (one, other) = (twin.path().to_owned(), shard.path().to_owned());
            return Err(MergeError::Twice { shard: shard.manifest.shard, one, other });
        }
    }
    let version =
        |version: &str, revision: Option<&str>| format!("{version} ({})", revision.unwrap_or("unknown revision"));
    let made = version(&first.run.weft_version, first.run.git_revision.as_deref());
    let this = version(env!("CARGO_PKG_VERSION"), option_env!("WEFT_GIT_REVISION"));
    if made != this {
        return Err(MergeError::OtherWeft { made, this });
    }
    complete(first, shards[0].path(), &by_shard)?;
    Ok(by_shard)
}

/// Whether every trial is there; else which are not, and what runs them.
fn complete(first: &ShardManifest, place: &Path, by_shard: &BTreeMap<u32, &ShardFolder>) -> Result<(), MergeError> {
    let (mut count, mut gaps, mut remedies) = (0, Vec::new(), Vec::new());
    for shard in Shard::all(first.shard.of()) {
        let manifest = ShardManifest { shard, ..first.clone() };
        let (missing, gap, folder) = match by_shard.get(&shard.number()) {
            Some(found) => {
                let missing = found.missing();
                let (lacks, path) = (listed(&missing), found.path());
                (missing, format!("shard {shard} ({}) lacks {lacks}", path.display()), path.to_owned())
            }
            None => (
                manifest.trials().into_iter().collect(),
                format!("shard {shard} is not among the folders"),
                place.with_file_name(shard.number().to_string()),
            ),
        };
        if !missing.is_empty() {
            count += missing.len();
            gaps.push(gap);
            remedies.push(manifest.command(&folder));
        }
    }
    match count {
        0 => Ok(()),
        _ => Err(MergeError::Missing { count, planned: first.planned, gaps, remedies }),
    }
}

/// `trials 5, 9, 12 and 30 more`.
fn listed(trials: &[u32]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = trials.iter().take(SHOWN).map(u32::to_string).collect();
    let more = trials.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("trial{} {}{more}", if trials.len() == 1 { "" } else { "s" }, shown.join(", "))
}
