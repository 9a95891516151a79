//! A sweep that is handed to a scheduler, and its folder.
//!
//! | file | what it is |
//! | --- | --- |
//! | `cluster.json` | [`Sweep`]: what was asked for, which jobs were made of it |
//! | `submit.sh`, `job.yaml` | what the scheduler was given last |
//! | `shards/1/` .. | the shards, see [`crate::run_folder::ShardFolder`] |
//! | `log/1` .. | what their processes said |
//! | `result/` | the run folder that [`super::fetch`] makes |

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ClusterError, On};
use crate::plan::{Mode, Plan};
use crate::run_folder::{FolderError, Manifest, Shard, ShardFolder, shell_words, write_synced};
use crate::runner::{RunError, RunOptions, shard_engine};

const SWEEP_FILE: &str = "cluster.json";
/// A scheduler needs about a second for a task: with so many trials in a shard that is less than 50 ms for each.
const TRIALS_OF_A_SHARD: usize = 25;
/// Shards of a job of GNU parallel, whose tasks cost next to nothing: the last ones end at about the same time.
const SHARDS_OF_A_JOB: usize = 4;

/// What the user chose for a sweep.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    pub on: On,
    pub mode: Mode,
    pub seed: u64,
    /// How many parts; `None`: by the number of trials.
    pub shards: Option<u32>,
    /// Shards at a time; `None`: what the scheduler gives, on this machine one for each core.
    pub jobs: Option<u32>,
    /// How often a shard is begun at most.
    pub tries: u32,
    /// The sweep's folder; `None`: `run/PLAN-on-SCHEDULER`.
    pub out: Option<PathBuf>,
    /// Options for the scheduler's own command, as they are.
    pub options: Vec<String>,
    /// The program on the nodes; `None`: this one.
    pub program: Option<String>,
    /// For Kubernetes.
    pub pods: Option<Pods>,
}

/// What pods need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pods {
    /// A persistent volume claim, ReadWriteMany.
    pub claim: String,
    /// The container's image, with weft in it.
    pub image: String,
}

/// The file `cluster.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// Version of these fields.
    pub schema_version: u32,
    pub on: On,
    /// The plan's short name.
    pub plan: String,
    /// The plan's text, where pods are to read it and have none of their own.
    pub plan_text: Option<String>,
    /// How many trials all shards have.
    pub planned: usize,
    /// How many parts.
    pub shards: u32,
    /// Shards at a time.
    pub jobs: Option<u32>,
    pub tries: u32,
    /// Options for the scheduler's own command.
    pub options: Vec<String>,
    /// For Kubernetes.
    pub pods: Option<Pods>,
    /// What a shard's process runs, but for its number and folder.
    pub command: Vec<String>,
    /// Where it runs: relative paths of the command hold there.
    pub work_dir: PathBuf,
    /// The sweep's folder.
    pub folder: PathBuf,
    /// The jobs that were made of it, in order.
    pub submissions: Vec<Submission>,
}

/// One job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submission {
    /// The scheduler's id.
    pub job: String,
    /// The shards in it.
    pub shards: Vec<u32>,
}

impl Sweep {
    /// A sweep of a plan's trials. Nothing is written.
    pub fn new(plan: &Plan, options: &SweepOptions) -> Result<Self, ClusterError> {
        let SweepOptions { on, mode, seed, jobs, tries, .. } = *options;
        let engine = shard_engine(None, plan, mode)?;
        let spec = plan.for_engine(mode, engine).expect("it is one of the plan's engines");
        let (id, planned) = (plan.id().to_owned(), spec.trials());
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let jobs = if on == On::Parallel { Some(jobs.unwrap_or(cores)) } else { jobs };
        let usual = match jobs.filter(|_| on == On::Parallel) {
            Some(jobs) => planned.min(jobs as usize * SHARDS_OF_A_JOB),
            None => planned.div_ceil(TRIALS_OF_A_SHARD),
        };
        let shards = options.shards.unwrap_or(usual as u32);
        if shards as usize > planned {
            return Err(RunError::TooManyShards { plan: id, planned, shards }.into());
        }
        if on == On::Kubernetes && options.pods.is_none() {
            return Err(ClusterError::NoPods);
        }
        let folder = options
            .out
            .clone()
            .unwrap_or_else(|| Path::new("run").join(format!("{}-on-{}", id.replace('/', "-"), on.name())));
        let full = |path: &Path| std::path::absolute(path).map_err(FolderError::io("find", path));
        let run = Manifest::new(plan, spec, &RunOptions { mode, seed, ..RunOptions::default() });
        let mut command = run.command(run.plan_word());
        let here = || std::env::current_exe().map_or_else(|_| "weft".to_owned(), |path| path.display().to_string());
        command[0] = match (&options.program, on) {
            (Some(program), _) => program.clone(),
            (None, On::Kubernetes) => "weft".to_owned(),
            (None, _) => here(),
        };
        let of_pods = on == On::Kubernetes && run.plan_word() != id;
        Ok(Self {
            schema_version: 1,
            on,
            plan: id,
            plan_text: of_pods.then(|| plan.text().to_owned()),
            planned,
            shards,
            jobs,
            tries,
            options: options.options.clone(),
            pods: options.pods.clone(),
            command,
            work_dir: full(Path::new("."))?,
            folder: full(&folder)?,
            submissions: Vec::new(),
        })
    }

    /// The sweep that was submitted from a folder.
    pub fn read(folder: &Path) -> Result<Self, ClusterError> {
        let path = folder.join(SWEEP_FILE);
        if !path.exists() {
            return Err(ClusterError::NoSweep(folder.to_owned()));
        }
        let text = std::fs::read_to_string(&path).map_err(FolderError::io("read", &path))?;
        let sweep: Self = serde_json::from_str(&text)
            .map_err(|error| FolderError::Malformed { path: path.clone(), message: error.to_string() })?;
        // The folder may have moved.
        let folder = std::path::absolute(folder).map_err(FolderError::io("find", folder))?;
        Ok(Self { folder, ..sweep })
    }

    /// Takes up what an earlier call submitted from the same folder, or makes the folder.
    pub(super) fn go_on_from_before(&mut self) -> Result<(), ClusterError> {
        match Self::read(&self.folder) {
            Ok(before) => {
                let told = |what: &str, before: &dyn std::fmt::Debug, now: &dyn std::fmt::Debug| {
                    let (before, now) = (format!("{before:?}"), format!("{now:?}"));
                    (before != now).then(|| format!("its {what} is {before}, not {now}"))
                };
                let other = told("scheduler", &before.on, &self.on)
                    .or_else(|| told("plan", &before.plan, &self.plan))
                    .or_else(|| told("number of shards", &before.shards, &self.shards))
                    .or_else(|| told("command", &before.command[1..].join(" "), &self.command[1..].join(" ")));
                if let Some(what) = other {
                    return Err(ClusterError::OtherSweep { folder: self.folder.clone(), what });
                }
                self.submissions = before.submissions;
                Ok(())
            }
            Err(ClusterError::NoSweep(_)) => {
                let shards = self.folder.join("shards");
                for folder in [&shards, &self.log()] {
                    std::fs::create_dir_all(folder).map_err(FolderError::io("create", folder))?;
                }
                self.save()
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn save(&self) -> Result<(), ClusterError> {
        let path = self.folder.join(SWEEP_FILE);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| FolderError::Malformed { path: path.clone(), message: error.to_string() })?;
        self.write(".cluster.json.partial", &(text + "\n"))?;
        let partial = self.folder.join(".cluster.json.partial");
        Ok(std::fs::rename(partial, &path).map_err(FolderError::io("rename to", &path))?)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), ClusterError> {
        Ok(write_synced(&self.folder.join(name), text)?)
    }

    /// What shards' processes said.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// A shard's folder.
    pub(super) fn shard(&self, number: u32) -> PathBuf {
        self.folder.join("shards").join(number.to_string())
    }

    /// How many trials a shard has.
    pub(super) fn trials_of(&self, number: u32) -> usize {
        let shard = Shard::all(self.shards).find(|shard| shard.number() == number);
        shard.map_or(0, |shard| shard.trials(self.planned as u32).len())
    }

    /// How many of them are whole in the folder here.
    pub(super) fn whole_trials(&self, number: u32) -> usize {
        ShardFolder::count(&self.shard(number))
    }

    /// What the shell of a task runs: `number` is how it writes the shard's number, `folder` where the sweep is for it.
    pub(super) fn task(&self, number: &str, folder: &Path) -> String {
        let shards = shell_words(&[folder.join("shards").display().to_string()]);
        format!(
            "{} --quiet --workers 1 --shard {number}/{} --out {shards}/{number}",
            shell_words(&self.command),
            self.shards
        )
    }

    /// The job's name.
    pub(super) fn name(&self) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        format!("weft-{}", self.plan.chars().map(letter).collect::<String>())
    }
}
