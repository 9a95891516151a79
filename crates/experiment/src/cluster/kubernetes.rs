//! Kubernetes: an indexed Job, a pod for each shard, and a volume that all of them write to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use minijinja::{Environment, Value, context};
use serde::Deserialize;

use super::sweep::{Pods, Sweep};
use super::tool::Tool;
use super::{ClusterError, Queue, Scheduler};
use crate::report::ReportError;
use crate::runner::RunError;

const JOB: &str = include_str!("job.yaml");
const FETCH: &str = include_str!("fetch.yaml");
const FETCH_FILE: &str = "fetch.yaml";
const KUBECTL: Tool = Tool { program: "kubectl", remedy: "run this where kubectl reaches your cluster" };
/// Where the claim is in a pod.
const RESULTS: &str = "/results";
/// The longest name of a Job whose pods' names, with their index, are still names of hosts.
const LONGEST_NAME: usize = 40;

pub(super) struct Kubernetes;

impl Scheduler for Kubernetes {
    fn script_file(&self) -> &'static str {
        "job.yaml"
    }

    /// All shards, whatever is missing: those that are whole end at once, and indices count from 0 without gaps.
    fn script(&self, sweep: &Sweep, _: &[u32], attempt: usize) -> Result<String, ClusterError> {
        let Pods { claim, image } = sweep.pods.as_ref().ok_or(ClusterError::NoPods)?;
        let (mut sweep, folder) = (sweep.clone(), Path::new(RESULTS).join(name_of(sweep)));
        let plan_file = plan_file(&sweep);
        if let Some(word) = sweep.command.get_mut(2).filter(|_| sweep.plan_text.is_some()) {
            word.clone_from(&plan_file);
        }
        let task = format!("exec {}", sweep.task("$((JOB_COMPLETION_INDEX + 1))", &folder));
        let values = context! {
            plan_name => sweep.plan.as_str(), folder => folder.display().to_string(), name => job_name(&sweep, attempt),
            plan_file => quoted(&plan_file), plan_text => sweep.plan_text.as_deref().map(quoted), shards => sweep.shards,
            jobs => sweep.jobs.unwrap_or(sweep.shards), again => sweep.tries.saturating_sub(1),
            image => quoted(image), claim => quoted(claim), task => quoted(&task),
        };
        filled(JOB, values)
    }

    fn submit(&self, sweep: &Sweep, attempt: usize) -> Result<String, ClusterError> {
        let file = sweep.folder.join(self.script_file()).display().to_string();
        kubectl(sweep, &["create", "-f", &file])?;
        Ok(job_name(sweep, attempt))
    }

    fn ask(&self, sweep: &Sweep, job: &str) -> Result<Queue, ClusterError> {
        match kubectl(sweep, &["get", "job", job, "-o", "json"]) {
            Err(ClusterError::Refused { said, .. }) if said.contains("NotFound") => Ok(Queue::default()),
            said => queue(&said?),
        }
    }

    fn cancel(&self, sweep: &Sweep, _: &str) -> Result<(), ClusterError> {
        let file = sweep.folder.join(self.script_file()).display().to_string();
        kubectl(sweep, &["delete", "-f", &file]).map(|_| ())
    }

    /// Copies the shards out of the claim by a pod that has it.
    fn fetch(&self, sweep: &Sweep) -> Result<(), ClusterError> {
        let Pods { claim, image } = sweep.pods.as_ref().ok_or(ClusterError::NoPods)?;
        let pod = format!("{}-fetch", name_of(sweep));
        sweep.write(
            FETCH_FILE,
            &filled(FETCH, context! { name => pod.as_str(), image => quoted(image), claim => quoted(claim) })?,
        )?;
        let (file, to) = (sweep.folder.join(FETCH_FILE).display().to_string(), sweep.folder.join("shards"));
        let from = format!("{pod}:{RESULTS}/{}/shards", name_of(sweep));
        kubectl(sweep, &["apply", "-f", &file])?;
        let copied = kubectl(sweep, &["wait", "--for=condition=Ready", "--timeout=5m", &format!("pod/{pod}")])
            .and_then(|_| kubectl(sweep, &["cp", &from, &to.display().to_string()]));
        kubectl(sweep, &["delete", "--wait=false", "-f", &file])?;
        copied.map(|_| ())
    }
}

fn kubectl(sweep: &Sweep, args: &[&str]) -> Result<String, ClusterError> {
    KUBECTL.call(sweep.options.iter().map(String::as_str).chain(args.iter().copied()))
}

/// The name of the sweep's folder in the claim: that of its folder here, so that two sweeps of a plan have two.
fn name_of(sweep: &Sweep) -> String {
    let folder = sweep.folder.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let letters = folder.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = "weft-".chars().chain(letters).take(LONGEST_NAME).collect();
    name.trim_end_matches('-').to_owned()
}

fn job_name(sweep: &Sweep, attempt: usize) -> String {
    format!("{}-{attempt}", name_of(sweep))
}

/// The plan's file in a pod: its own name, as far as a ConfigMap takes it.
fn plan_file(sweep: &Sweep) -> String {
    let name = sweep.command.get(2).map(Path::new).and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let letter = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    name.chars().map(letter).collect()
}

/// A string as YAML and JSON write it.
fn quoted(text: &str) -> Value {
    Value::from(serde_json::Value::from(text).to_string())
}

fn filled(template: &str, values: Value) -> Result<String, ClusterError> {
    let text = Environment::new().render_str(template, values);
    Ok(text.map(|text| text + "\n").map_err(|error| RunError::Report(ReportError::Template(error)))?)
}

/// The part of a Job that is read.
#[derive(Deserialize)]
struct Job {
    #[serde(default)]
    status: JobStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobStatus {
    completed_indexes: String,
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

fn queue(said: &str) -> Result<Queue, ClusterError> {
    let wrong = |error: serde_json::Error| ClusterError::Refused { program: KUBECTL.program, said: error.to_string() };
    let status = serde_json::from_str::<Job>(said).map_err(wrong)?.status;
    let is_end = |one: &Condition| one.status == "True" && ["Complete", "Failed"].contains(&one.kind.as_str());
    let at_work = (!status.conditions.iter().any(is_end)).then(BTreeMap::new);
    Ok(Queue { at_work, whole: indices(&status.completed_indexes) })
}

/// Shards of indices like `0,2-4`.
fn indices(text: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some(low.parse::<u32>().ok()? + 1..=high.parse::<u32>().ok()? + 1)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_says_which_shards_are_whole() {
        let said = |conditions: &str| {
            format!(r#"{{"kind": "Job", "status": {{"completedIndexes": "0,2-3", "conditions": [{conditions}]}}}}"#)
        };
        let read = queue(&said("")).unwrap();
        assert_eq!((read.at_work.is_some(), read.whole), (true, BTreeSet::from([1, 3, 4])));
        let ended = said(r#"{"type": "Failed", "status": "True"}"#);
        assert!(queue(&ended).unwrap().at_work.is_none());
        assert!(queue(r#"{"kind": "Job"}"#).unwrap().at_work.is_some(), "nothing has begun");
    }
}
