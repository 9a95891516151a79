//! Starts one daemon of `weft node` on many nodes and waits until each is ready.

use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use weft_node::{DaemonKind, settings_text};
use weft_scenario::engine::Progress;
use weft_scenario::id::NodeId;

use crate::error::LabError;
use crate::home::{log_dir, namespace_path, socket_dir};
use crate::options::LabOptions;
use crate::process::{Daemon, ProcessId};
use crate::rights::Rights;
use crate::state::ProcessState;
use crate::up::Lab;
use crate::wait::{Starting, Wait};

/// How long all daemons of a kind may take to become ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// What every start needs.
pub(crate) struct Launcher<'a> {
    pub(crate) options: &'a LabOptions,
    pub(crate) progress: &'a dyn Progress,
}

/// Starts `weft node KIND --config FILE` on each node, in its namespace, and waits until `is_ready` says so.
pub(crate) fn start_all<C: Serialize>(
    lab: &mut Lab,
    launcher: &Launcher<'_>,
    kind: DaemonKind,
    configs: &[(NodeId, C)],
    is_ready: impl Fn(&Lab, NodeId) -> bool,
) -> Result<(), LabError> {
    for (node, config) in configs {
        let process = spawn(lab, launcher.options, kind, *node, config)?;
        lab.state.replace_process(process);
    }
    // Written once: should this process be killed before, the daemons are found by their namespaces.
    lab.state.save()?;
    let wait = Wait::new(launcher.progress, START_TIMEOUT, POLL_INTERVAL);
    for (number, (node, _)) in configs.iter().enumerate() {
        starting(lab, kind.word(), *node).wait(&wait, "was not ready in 60 s", || Ok(is_ready(lab, *node)))?;
        launcher
            .progress
            .advance((number + 1) as f64 / configs.len() as f64, &format!("{} {}", number + 1, kind.word()));
    }
    Ok(())
}

fn spawn(
    lab: &Lab,
    options: &LabOptions,
    kind: DaemonKind,
    node: NodeId,
    config: &impl Serialize,
) -> Result<ProcessState, LabError> {
    let (plan, word) = (lab.plan.node(node), kind.word());
    let path = socket_dir(&lab.state.lab).join(format!("{}.{word}.toml", plan.name));
    std::fs::write(&path, settings_text(config)).map_err(LabError::io(format!("write {}", path.display())))?;
    let mut command = Command::new(&options.weft_binary);
    command.args(["node", word, "--config"]).arg(&path);
    let log = log_file(lab, word, node);
    let rights = Rights::of(&lab.state.lab, kind.capabilities());
    let namespace = namespace_path(&plan.namespace);
    let daemon = Daemon { namespace: Some(&namespace), log: &log, record: None, nice: 0, rights: Some(rights) };
    Ok(ProcessState { node: plan.name.clone(), daemon: word.to_owned(), id: daemon.spawn(&mut command)? })
}

pub(crate) fn log_file(lab: &Lab, kind: &str, node: NodeId) -> std::path::PathBuf {
    log_dir(&lab.state.lab).join(format!("{}.{kind}.log", lab.plan.node(node).name))
}

/// A daemon of the lab that is to become ready.
pub(crate) fn starting<'a>(lab: &'a Lab, daemon: &'static str, node: NodeId) -> Starting<'a> {
    let name = &lab.plan.node(node).name;
    let known = lab.state.processes.iter().find(|process| process.daemon == daemon && process.node == *name);
    Starting { daemon, node: name, process: known.map(|process| process.id), log: log_file(lab, daemon, node) }
}

/// Notes a daemon as the lab's, in the place of one that was there before.
pub(crate) fn note(lab: &mut Lab, daemon: &str, node: NodeId, id: ProcessId) -> Result<(), LabError> {
    let node = lab.plan.node(node).name.clone();
    lab.state.replace_process(ProcessState { node, daemon: daemon.to_owned(), id });
    lab.state.save()
}
