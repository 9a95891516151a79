//! Starts one daemon of `weft node` on many nodes and waits until each is ready.

use std::process::Command;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_node::settings_text;
use weft_scenario::engine::Progress;
use weft_scenario::id::NodeId;

use crate::error::LabError;
use crate::home::{log_dir, namespace_path, socket_dir};
use crate::options::LabOptions;
use crate::process::{Daemon, log_tail};
use crate::state::ProcessState;
use crate::up::Lab;

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
    kind: &'static str,
    configs: &[(NodeId, C)],
    is_ready: impl Fn(&Lab, NodeId) -> bool,
) -> Result<(), LabError> {
    for (node, config) in configs {
        let process = spawn(lab, launcher.options, kind, *node, config)?;
        lab.state.replace_process(process);
    }
    // Written once: should this process be killed before, the daemons are found by their namespaces.
    lab.state.save()?;
    let deadline = Instant::now() + START_TIMEOUT;
    for (number, (node, _)) in configs.iter().enumerate() {
        while !is_ready(lab, *node) {
            check_alive(lab, kind, *node, deadline)?;
            if launcher.progress.interrupted() {
                return Err(LabError::Interrupted);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        launcher.progress.advance((number + 1) as f64 / configs.len() as f64, &format!("{} {kind}", number + 1));
    }
    Ok(())
}

fn spawn(
    lab: &Lab,
    options: &LabOptions,
    kind: &'static str,
    node: NodeId,
    config: &impl Serialize,
) -> Result<ProcessState, LabError> {
    let plan = lab.plan.node(node);
    let path = socket_dir(&lab.state.lab).join(format!("{}.{kind}.toml", plan.name));
    std::fs::write(&path, settings_text(config)).map_err(LabError::io(format!("write {}", path.display())))?;
    let mut command = Command::new(&options.weft_binary);
    command.args(["node", kind, "--config"]).arg(&path);
    let log = log_file(lab, kind, node);
    let id = Daemon { namespace: Some(&namespace_path(&plan.namespace)), log: &log, record: None, nice: 0 }
        .spawn(&mut command)?;
    Ok(ProcessState { node: plan.name.clone(), daemon: kind.to_owned(), id })
}

pub(crate) fn log_file(lab: &Lab, kind: &str, node: NodeId) -> std::path::PathBuf {
    log_dir(&lab.state.lab).join(format!("{}.{kind}.log", lab.plan.node(node).name))
}

fn check_alive(lab: &Lab, kind: &'static str, node: NodeId, deadline: Instant) -> Result<(), LabError> {
    let name = &lab.plan.node(node).name;
    let process = lab.state.processes.iter().find(|process| process.daemon == kind && process.node == *name);
    let failed = |what: &str| LabError::Daemon {
        daemon: kind,
        node: name.clone(),
        what: what.to_owned(),
        log: log_tail(&log_file(lab, kind, node)),
    };
    if process.is_some_and(|process| !process.id.is_alive()) {
        return Err(failed("ended at its start"));
    }
    if Instant::now() > deadline {
        return Err(failed("was not ready in 60 s"));
    }
    Ok(())
}
