//! Sweeps on other people's schedulers: the trials of a plan go out as shards, which a scheduler starts where and when it
//! likes, and come back as one run.
//!
//! * [`Sweep`]: what was asked for and submitted, and its folder
//! * `slurm`, `kubernetes`, `parallel`: what each scheduler is given and asked; which is all that is known of it here
//! * [`submit`], [`status`], [`follow`], [`fetch`], [`cancel`]
//!
//! What counts as done is what lies in the shards' folders, never what a scheduler says.

mod kubernetes;
mod parallel;
mod slurm;
mod sweep;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_scenario::engine::Progress;

pub use self::sweep::{Pods, Submission, Sweep, SweepOptions};
use crate::run_folder::FolderError;
use crate::runner::{MergeError, RunError, RunOptions, RunOutcome, merge};

/// Who starts the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// An array job.
    Slurm,
    /// An indexed Job.
    Kubernetes,
    /// GNU parallel, on this machine or over its list of SSH logins.
    Parallel,
}

impl On {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Kubernetes => "kubernetes",
            Self::Parallel => "parallel",
        }
    }

    fn scheduler(self) -> &'static dyn Scheduler {
        match self {
            Self::Slurm => &slurm::Slurm,
            Self::Kubernetes => &kubernetes::Kubernetes,
            Self::Parallel => &parallel::Parallel,
        }
    }
}

/// What is asked of a scheduler.
trait Scheduler {
    /// The file that it is given, in the sweep's folder.
    fn script_file(&self) -> &'static str;
    /// What is in it, to run these shards as the sweep's `attempt`-th job.
    fn script(&self, sweep: &Sweep, shards: &[u32], attempt: usize) -> Result<String, ClusterError>;
    /// Hands it over; the job's id.
    fn submit(&self, sweep: &Sweep, attempt: usize) -> Result<String, ClusterError>;
    /// What it says of a job.
    fn ask(&self, sweep: &Sweep, job: &str) -> Result<Queue, ClusterError>;
    /// Ends a job and all its shards.
    fn cancel(&self, sweep: &Sweep, job: &str) -> Result<(), ClusterError>;
    /// Brings the shards' folders here, where they are elsewhere.
    fn fetch(&self, _: &Sweep) -> Result<(), ClusterError> {
        Ok(())
    }
    /// How often it may be asked.
    fn interval(&self) -> Duration {
        Duration::from_secs(2)
    }
}

/// A job as its scheduler sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Queue {
    /// Shards that wait or run, with the scheduler's word; `Some` and empty: it works on the job and does not say on which.
    at_work: Option<BTreeMap<u32, String>>,
    /// Shards that ended well in a place that cannot be seen from here.
    whole: BTreeSet<u32>,
}

/// Why a sweep did not go out or come back. What is whole stays.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Its commands are not there.
    #[error("there is no {program} here: {remedy}")]
    NoScheduler {
        program: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// It refused.
    #[error("{program} says: {said}")]
    Refused {
        program: &'static str,
        /// Its own words, in a line.
        said: String,
    },
    /// The folder has another sweep.
    #[error("{} holds another sweep: {what}; choose another --out or remove it", folder.display())]
    OtherSweep {
        folder: PathBuf,
        /// What is not the same.
        what: String,
    },
    /// It was submitted and has not ended.
    #[error("job {job} works on {} already; see `weft cluster status`, end it with `weft cluster cancel`", folder.display())]
    AtWork { folder: PathBuf, job: String },
    /// Nothing was submitted from the folder.
    #[error("{} is no sweep: it has no cluster.json; name a folder that `weft cluster submit` made", .0.display())]
    NoSweep(PathBuf),
    /// Pods have no place for results.
    #[error("pods need a volume and an image: name them with --claim and --image")]
    NoPods,
    /// The user does not want to wait any longer.
    #[error("the job goes on; `weft cluster status {0}` shows it, `weft cluster cancel {0}` ends it", folder.display())]
    Left { folder: PathBuf },
    /// The scheduler has ended, and trials are missing.
    #[error(
        "the scheduler has ended with {trials} of {planned} trials; shards {} are not whole, see {}; the same `weft cluster \
         submit` goes on with them", shards.join(", "), log.display()
    )]
    NotWhole { trials: usize, planned: usize, shards: Vec<String>, log: PathBuf },
    /// The plan cannot run in shards.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The shards make no run.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

/// How far a sweep is.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Whole trials of all shards.
    pub trials: usize,
    /// How many there will be.
    pub planned: usize,
    /// Whether the scheduler works on it.
    pub at_work: bool,
    pub shards: Vec<ShardStatus>,
}

/// How far a shard is.
#[derive(Clone, Debug, Serialize)]
pub struct ShardStatus {
    /// Its number, from 1.
    pub shard: u32,
    /// Its whole trials.
    pub trials: usize,
    pub planned: usize,
    /// `whole`, `missing`, or the scheduler's word in small letters.
    pub state: String,
}

impl Status {
    /// Shards that are not whole.
    pub fn missing(&self) -> Vec<u32> {
        self.shards.iter().filter(|shard| shard.trials < shard.planned).map(|shard| shard.shard).collect()
    }
}

/// A sweep's script, and what a scheduler made of it.
#[derive(Clone, Debug, Serialize)]
pub struct Submitted {
    /// What it was given; empty if every shard was whole.
    pub script: String,
    /// Its id for the job; `None`: nothing was submitted.
    pub job: Option<String>,
    /// The shards in it.
    pub shards: Vec<u32>,
}

/// The script that [`submit`] would submit. Nothing is written.
pub fn script(sweep: &Sweep) -> Result<Submitted, ClusterError> {
    let shards: Vec<u32> = (1..=sweep.shards).collect();
    Ok(Submitted { script: sweep.on.scheduler().script(sweep, &shards, 1)?, job: None, shards })
}

/// Submits what is not whole of a sweep: all of it the first time.
pub fn submit(sweep: &mut Sweep) -> Result<Submitted, ClusterError> {
    sweep.go_on_from_before()?;
    let now = status(sweep)?;
    if let Some(job) = sweep.submissions.last().filter(|_| now.at_work).map(|last| last.job.clone()) {
        return Err(ClusterError::AtWork { folder: sweep.folder.clone(), job });
    }
    let shards = now.missing();
    if shards.is_empty() {
        return Ok(Submitted { script: String::new(), job: None, shards });
    }
    let (scheduler, attempt) = (sweep.on.scheduler(), sweep.submissions.len() + 1);
    let script = scheduler.script(sweep, &shards, attempt)?;
    sweep.write(scheduler.script_file(), &script)?;
    let job = scheduler.submit(sweep, attempt)?;
    sweep.submissions.push(Submission { job: job.clone(), shards: shards.clone() });
    sweep.save()?;
    Ok(Submitted { script, job: Some(job), shards })
}

/// Looks at the shards' folders and asks the scheduler.
pub fn status(sweep: &Sweep) -> Result<Status, ClusterError> {
    let queue = match sweep.submissions.last() {
        Some(last) => sweep.on.scheduler().ask(sweep, &last.job)?,
        None => Queue::default(),
    };
    let one = |shard: u32| {
        let planned = sweep.trials_of(shard);
        let trials = if queue.whole.contains(&shard) { planned } else { sweep.whole_trials(shard) };
        let told = queue.at_work.as_ref().map(|at_work| at_work.get(&shard));
        let state = match told {
            _ if trials >= planned => "whole".to_owned(),
            Some(Some(word)) => word.to_lowercase(),
            Some(None) if queue.at_work.as_ref().is_some_and(BTreeMap::is_empty) => "submitted".to_owned(),
            _ => "missing".to_owned(),
        };
        ShardStatus { shard, trials, planned, state }
    };
    let shards: Vec<ShardStatus> = (1..=sweep.shards).map(one).collect();
    let sum = |of: fn(&ShardStatus) -> usize| shards.iter().map(of).sum();
    let (trials, planned) = (sum(|shard| shard.trials), sum(|shard| shard.planned));
    Ok(Status { trials, planned, at_work: queue.at_work.is_some(), shards })
}

/// Shows progress over all shards until the scheduler has ended; an error if shards are not whole then.
pub fn follow(sweep: &Sweep, progress: &dyn Progress) -> Result<Status, ClusterError> {
    progress.phase("sweep", &format!("{} trials in {} shards on {}", sweep.planned, sweep.shards, sweep.on.name()));
    loop {
        let now = status(sweep)?;
        let whole = now.shards.len() - now.missing().len();
        let line = format!("{} of {} trials, {whole} of {} shards", now.trials, now.planned, now.shards.len());
        progress.advance(now.trials as f64 / now.planned.max(1) as f64, &line);
        if !now.at_work {
            let shards: Vec<String> = now.missing().iter().map(u32::to_string).collect();
            let (trials, planned, log) = (now.trials, now.planned, sweep.log());
            return match shards.is_empty() {
                true => Ok(now),
                false => Err(ClusterError::NotWhole { trials, planned, shards, log }),
            };
        }
        if progress.interrupted() {
            return Err(ClusterError::Left { folder: sweep.folder.clone() });
        }
        std::thread::sleep(sweep.on.scheduler().interval());
    }
}

/// Brings the shards here and makes one run of them, in `out` or the sweep's `result`.
pub fn fetch(
    sweep: &Sweep,
    out: Option<&Path>,
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<RunOutcome, ClusterError> {
    sweep.on.scheduler().fetch(sweep)?;
    let out = out.map_or_else(|| sweep.folder.join("result"), Path::to_owned);
    let shards: Vec<PathBuf> =
        (1..=sweep.shards).map(|shard| sweep.shard(shard)).filter(|path| path.exists()).collect();
    if shards.is_empty() {
        return Err(FolderError::NoShard(sweep.shard(1)).into());
    }
    Ok(merge(&shards, &RunOptions { out: Some(out), ..options.clone() }, progress)?)
}

/// Ends the job; the id of what was ended. Whole trials stay.
pub fn cancel(sweep: &Sweep) -> Result<Option<String>, ClusterError> {
    let Some(last) = sweep.submissions.last() else { return Ok(None) };
    if sweep.on.scheduler().ask(sweep, &last.job)?.at_work.is_none() {
        return Ok(None);
    }
    sweep.on.scheduler().cancel(sweep, &last.job)?;
    Ok(Some(last.job.clone()))
}

#[cfg(test)]
mod tests;
