//! Slurm: an array job, a task for each shard.

use std::collections::{BTreeMap, BTreeSet};

use super::sweep::Sweep;
use super::tool::Tool;
use super::{ClusterError, Queue, Scheduler};
use crate::run_folder::shell_words;

const REMEDY: &str = "run this where Slurm's commands are, or without a scheduler: --on parallel";
const SBATCH: Tool = Tool { program: "sbatch", remedy: REMEDY };
const SQUEUE: Tool = Tool { program: "squeue", remedy: REMEDY };
const SCANCEL: Tool = Tool { program: "scancel", remedy: REMEDY };

pub(super) struct Slurm;

impl Scheduler for Slurm {
    fn script_file(&self) -> &'static str {
        "submit.sh"
    }

    fn script(&self, sweep: &Sweep, shards: &[u32], _: usize) -> Result<String, ClusterError> {
        let at_a_time = sweep.jobs.map_or(String::new(), |jobs| format!("%{jobs}"));
        let quoted = |option: String| shell_words(&[option]);
        let options: String = [
            format!("--job-name={}", sweep.name()),
            format!("--array={}{at_a_time}", ranges(shards)),
            quoted(format!("--chdir={}", sweep.work_dir.display())),
            format!("{} --open-mode=append", quoted(format!("--output={}/%a", sweep.log().display()))),
            "--ntasks=1 --cpus-per-task=1 --requeue".to_owned(),
        ]
        .into_iter()
        .chain(sweep.options.iter().cloned().map(quoted))
        .map(|option| format!("#SBATCH {option}\n"))
        .collect();
        let task = sweep.task("\"$SLURM_ARRAY_TASK_ID\"", &sweep.folder);
        // Slurm tries again by itself only what a failed node ran; `scontrol requeue` would hold a task back for two minutes.
        Ok(format!(
            "#!/bin/sh\n{options}\n\
             # A shard that fails is tried again, and goes on where it was; these codes would be the same again.\n\
             try=1\nuntil {task}; do\n  code=$?\n  case $code in 2 | 4 | 130) exit $code ;; esac\n  \
             [ $try -lt {} ] || exit $code\n  try=$((try + 1))\ndone\n",
            sweep.tries
        ))
    }

    fn submit(&self, sweep: &Sweep, _: usize) -> Result<String, ClusterError> {
        let said = SBATCH.call(["--parsable".as_ref(), sweep.folder.join(self.script_file()).as_os_str()])?;
        // `--parsable`: the id, and behind a semicolon the cluster where there are several.
        Ok(said.split(';').next().unwrap_or_default().to_owned())
    }

    fn ask(&self, _: &Sweep, job: &str) -> Result<Queue, ClusterError> {
        let said = SQUEUE.call(["--noheader", "--array", "--format=%K %T", &format!("--jobs={job}")]);
        let said = match said {
            // A job that ended a while ago is forgotten.
            Err(ClusterError::Refused { said, .. }) if said.contains("Invalid job id") => String::new(),
            said => said?,
        };
        let at_work = tasks(&said);
        Ok(Queue { at_work: (!at_work.is_empty()).then_some(at_work), whole: BTreeSet::new() })
    }

    fn cancel(&self, _: &Sweep, job: &str) -> Result<(), ClusterError> {
        SCANCEL.call([job]).map(|_| ())
    }
}

/// Lines of `squeue`: a task's number and its state.
fn tasks(said: &str) -> BTreeMap<u32, String> {
    let task = |line: &str| {
        let (number, state) = line.trim().split_once(' ')?;
        Some((number.parse().ok()?, state.to_owned()))
    };
    said.lines().filter_map(task).collect()
}

/// `1-3,7`.
fn ranges(numbers: &[u32]) -> String {
    let of_runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    of_runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_name_what_is_missing() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
    }

    #[test]
    fn queues_are_read_task_by_task() {
        let read = tasks("1 RUNNING\n12 PENDING\n\n");
        assert_eq!(read, BTreeMap::from([(1, "RUNNING".to_owned()), (12, "PENDING".to_owned())]));
    }
}
