//! Flags of `weft cluster`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use weft_experiment::cluster::On;

use super::OutputFlag;

/// What is done with a sweep on a scheduler.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Have a scheduler run a plan's trials in shards; the same command again goes on with those that are not whole
    #[command(after_help = "\
Examples:
  weft cluster submit leaf-spine/queues --full --on slurm --jobs 100 --out sweep
  weft cluster submit leaf-spine/queues --on slurm --option=--partition=short --option=--time=30 --wait
  weft cluster submit my-plan.toml --on parallel --jobs 8 --wait
  weft cluster submit my-plan.toml --on parallel --option=--sshloginfile=hosts --program /shared/weft --out /shared/sweep
  weft cluster submit my-plan.toml --on kubernetes --claim results --image registry.example/weft:1 --dry-run

Prints the script or YAML that it submits; it is kept in the sweep's folder. docs/cluster.md says what nodes need, and how many shards
are good. Exit code 4: the scheduler's commands are not here.")]
    Submit(Box<SubmitArgs>),
    /// Show how far a sweep is: whole trials and the state of every shard
    #[command(after_help = "\
Examples:
  weft cluster status sweep
  weft cluster status sweep --follow
  weft cluster status sweep -o json | jq '.shards[] | select(.state == \"missing\")'")]
    Status(StatusArgs),
    /// Make one run of a sweep's shards, as `weft merge` does
    #[command(after_help = "\
Examples:
  weft cluster fetch sweep
  weft cluster fetch sweep --out results/sweep -o json

What is missing is named, with the command that runs it. Exit codes are those of `weft run`.")]
    Fetch(FetchArgs),
    /// End a sweep's job; whole trials stay, and the same `submit` goes on
    #[command(after_help = "Example:\n  weft cluster cancel sweep")]
    Cancel(CancelArgs),
}

/// Who starts the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnChoice {
    /// An array job; nodes share the folder
    Slurm,
    /// An indexed Job; pods share a ReadWriteMany volume
    Kubernetes,
    /// GNU parallel, on this machine or over its SSH logins
    Parallel,
}

impl From<OnChoice> for On {
    fn from(choice: OnChoice) -> Self {
        match choice {
            OnChoice::Slurm => Self::Slurm,
            OnChoice::Kubernetes => Self::Kubernetes,
            OnChoice::Parallel => Self::Parallel,
        }
    }
}

/// Flags of `weft cluster submit`.
#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// Short name of a plan (see `weft list`) or path of a TOML file
    pub(crate) plan: String,
    /// The scheduler
    #[arg(long, value_enum)]
    pub(crate) on: OnChoice,
    /// How many shards [default: one for 25 trials; with GNU parallel four for each job]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) shards: Option<u32>,
    /// Shards at a time [default: what the scheduler gives; with GNU parallel one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) jobs: Option<u32>,
    /// How often a shard that fails is begun
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tries: u32,
    /// The plan's small variant
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// The plan's large variant
    #[arg(long)]
    pub(crate) full: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Folder of the sweep, seen by all nodes [default: run/PLAN-on-SCHEDULER]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// An option for sbatch, kubectl or parallel, as it is; may be given several times
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) options: Vec<String>,
    /// The program on the nodes [default: this one; in pods `weft`]
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<String>,
    /// Kubernetes: the claim of the volume for results
    #[arg(long, value_name = "NAME", requires = "image")]
    pub(crate) claim: Option<String>,
    /// Kubernetes: the image that has weft in it
    #[arg(long, value_name = "IMAGE", requires = "claim")]
    pub(crate) image: Option<String>,
    /// Print the script or YAML, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show progress until it has ended, then fetch it; Ctrl-C leaves the job at work
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) wait: bool,
    /// With --wait: exit code 0 also where something hides the answer to a required claim (5 without it)
    #[arg(long, requires = "wait")]
    pub(crate) allow_inconclusive: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

/// Flags of `weft cluster status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The sweep's folder
    pub(crate) dir: PathBuf,
    /// Show progress until the scheduler has ended; exit code 1 if shards are missing then
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

/// Flags of `weft cluster fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// The sweep's folder
    pub(crate) dir: PathBuf,
    /// Folder for the results; it must not be there yet [default: result in the sweep's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Exit code 0 also where something hides the answer to a required claim (5 without it)
    #[arg(long)]
    pub(crate) allow_inconclusive: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlag,
}

/// Flags of `weft cluster cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The sweep's folder
    pub(crate) dir: PathBuf,
}
