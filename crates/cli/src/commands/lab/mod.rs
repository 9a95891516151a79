//! `weft lab`: fabrics of namespaces that stay up.

mod down;
mod live;
mod logs;
mod watch;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use weft_lab::{
    CaptureFilter, CaptureOptions, CapturePorts, LabEngine, LabError, LabOptions, LabRow, LabState, NodeState,
};
use weft_node::DaemonKind;
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, EngineError, Progress, Scenario, Transport};
use weft_scenario::fault::FaultKind;
use weft_scenario::switching::Switching;
use weft_scenario::topology::Access;
use weft_scenario::units::BitsPerSec;

use super::fabric;
use crate::args::{LabCommand, Output, OverlayChoice};
use crate::exit::Failure;
use crate::output::{self, Rows};
use crate::progress::TerminalProgress;

pub(crate) fn lab(command: LabCommand, quiet: bool) -> Result<ExitCode, Failure> {
    match command {
        LabCommand::Up { fabric, name, overlay, directory, unshaped } => {
            up(&fabric, name, overlay, directory.into(), !unshaped, quiet)
        }
        LabCommand::Down { all: true, yes, .. } => down::all(yes),
        LabCommand::Down { lab, .. } => down::one(lab),
        LabCommand::Ps { lab, output } => ps(lab.given().as_deref(), output.output),
        LabCommand::Exec { lab, node, command } => exec(lab, &node, &command),
        LabCommand::Shell { lab, node } => shell(lab, &node),
        LabCommand::Logs { lab, node: None, output, .. } => logs::list(lab, output.output),
        LabCommand::Logs { lab, node: Some(node), daemon, lines, follow, output } => {
            let wanted = logs::Wanted { node, daemon, lines, follow };
            logs::show(lab, &wanted, output.output)
        }
        LabCommand::Fail(fault) => live::fail(
            &fault.what,
            fault.common,
            quiet,
            |node| FaultKind::SwitchDown { node },
            |a, b| FaultKind::LinkDown { a, b },
        ),
        LabCommand::Silence(fault) => live::fail(
            &fault.what,
            fault.common,
            quiet,
            |node| FaultKind::SwitchSilent { node },
            |a, b| FaultKind::LinkSilent { a, b },
        ),
        LabCommand::Impair { ends, how, common } => live::impair(&ends, &how, common, quiet),
        LabCommand::Repair { what, all: _, common } => live::repair(&what, common, quiet),
        LabCommand::Apply { fabric, common } => live::apply(&fabric, common, quiet),
        LabCommand::Move { server, edge, common } => live::move_server(&server, &edge, common, quiet),
        LabCommand::Validate { checks, common } => live::validate(checks.as_deref(), common, quiet),
        LabCommand::Watch { lab, listen, output } => watch::watch(lab.given(), listen, output.output),
        LabCommand::Capture { ports, all, write, lab, count, seconds, snap } => {
            let ports = if all { vec![CapturePorts::All] } else { ports };
            capture(ports, write, lab, Limits { count, seconds, snap }, quiet)
        }
    }
}

pub(crate) use watch::Watched;

/// The engine that `weft run` hands to an experiment.
pub(crate) fn engine() -> Result<LabEngine, EngineError> {
    let weft = this_program().map_err(EngineError::Failed)?;
    let worker = vec![weft.clone().into_os_string(), OsString::from("internal"), OsString::from("traffic-worker")];
    Ok(LabEngine::new(LabOptions::new(weft), worker))
}

/// A lab's failure with the exit code that its kind has.
pub(crate) fn failure(error: LabError) -> Failure {
    EngineError::from(error).into()
}

/// The name of the lab that a command means.
pub(crate) fn lab_name(named: Option<String>) -> Result<String, Failure> {
    named.map_or_else(|| weft_lab::only_lab().map_err(failure), Ok)
}

/// Which nodes of labs that are up may be meant, for an error: those with such a socket.
pub(super) fn hint_of_labs(kind: DaemonKind) -> String {
    let labs: Vec<String> = weft_lab::list().into_iter().map(|row| row.lab).collect();
    let hint = |lab: &String| {
        let nodes = nodes_with(lab, kind);
        (!nodes.is_empty()).then(|| format!("; lab `{lab}` is up: --lab {lab} --node {nodes}"))
    };
    labs.iter().filter_map(hint).collect()
}

/// A lab's nodes with such a socket, as one chooses among them.
fn nodes_with(lab: &str, kind: DaemonKind) -> String {
    let nodes = weft_lab::ps(lab).map(|state| state.nodes).unwrap_or_default();
    let has_socket = |name: &&str| weft_lab::control_socket(lab, name, kind).exists();
    let names = nodes.iter().map(|node| node.name.as_str()).filter(has_socket);
    names.collect::<Vec<_>>().join("|")
}

/// A lab's nodes, as one chooses among them.
fn nodes_of(lab: &str) -> String {
    let nodes = weft_lab::ps(lab).map(|state| state.nodes).unwrap_or_default();
    nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join("|")
}

/// A daemon's socket in a lab; a node that the lab does not have is refused.
pub(super) fn socket_of(lab: Option<String>, node: &str, kind: DaemonKind) -> Result<PathBuf, Failure> {
    let lab = lab_name(lab)?;
    let state = weft_lab::ps(&lab).map_err(failure)?;
    if state.node(node).is_err() {
        return Err(Failure::failed(format!("lab `{lab}` has no node `{node}`; it has {}", nodes_of(&lab))));
    }
    let socket = weft_lab::control_socket(&lab, node, kind);
    if matches!(socket.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound) {
        let with = nodes_with(&lab, kind);
        let with = if with.is_empty() { "none of its nodes".to_owned() } else { format!("--node {with}") };
        return Err(Failure::failed(format!("node `{node}` of lab `{lab}` runs no such daemon; {with} does")));
    }
    Ok(socket)
}

pub(crate) fn this_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("cannot find this program's own file: {error}"))
}

fn up(
    name: &str,
    lab: Option<String>,
    overlay: Option<OverlayChoice>,
    directory: DirectoryStore,
    shaped: bool,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let fabric = fabric::read(name)?.with_directory_servers(directory.servers()).map_err(Failure::usage)?;
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).map_err(Failure::usage)?;
    let overlay = overlay.map_or_else(|| fabric.default_overlay(), Into::into);
    let (transport, switching) = (Transport::default(), Switching::default());
    let scenario = Scenario { fabric, addresses, overlay, directory, transport, switching, shaped };
    let options = LabOptions { name: lab, ..LabOptions::new(this_program().map_err(Failure::failed)?) };
    let progress = TerminalProgress::new(quiet)?;
    let slowest = slow_on_purpose(&scenario);
    let lab = weft_lab::up(&scenario, &options, &progress);
    progress.finish();
    let lab = lab.map_err(failure)?;
    let seconds = lab.facts.iter().find(|(fact, _)| fact == "lab.up_s").map_or(0.0, |(_, seconds)| *seconds);
    let state = &lab.state;
    let line = format!("lab `{}` is up: {} nodes in {seconds:.1} s", state.lab, state.nodes.len());
    output::print_line(&format!("{line}; look around: weft lab ps {0}; take it down: weft lab down {0}", state.lab))?;
    if let Some(slowest) = slowest.filter(|_| !quiet) {
        eprintln!(
            "its links are slow on purpose (the slowest: {slowest}), and declared so in the fabric's file; why: weft help terms"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The slowest link, where somebody may wonder about it.
fn slow_on_purpose(scenario: &Scenario) -> Option<BitsPerSec> {
    const SLOW: BitsPerSec = BitsPerSec(100_000_000);
    let slowest = scenario.fabric.links().iter().map(|link| link.spec.rate).min();
    slowest.filter(|rate| scenario.shaped && *rate < SLOW)
}

#[derive(Serialize)]
struct LabList {
    schema_version: u32,
    labs: Vec<LabRow>,
}

fn ps(name: Option<&str>, format: Output) -> Result<ExitCode, Failure> {
    match name {
        Some(name) => {
            let state = weft_lab::ps(name).map_err(failure)?;
            ps_nodes(&state, format)?;
            if format == Output::Table {
                live::print_amiss(&state.faults, &state.impaired)?;
            }
        }
        None => {
            weft_lab::home::folders_are_ours().map_err(failure)?;
            ps_labs(weft_lab::list(), format)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn ps_labs(labs: Vec<LabRow>, format: Output) -> Result<(), Failure> {
    let mut rows = Rows::new(&["lab", "fabric", "overlay", "status", "nodes", "processes"]);
    for lab in &labs {
        rows.push(vec![
            lab.lab.clone(),
            lab.fabric.clone(),
            word(&lab.overlay),
            amiss(lab),
            lab.nodes.to_string(),
            format!("{}/{}", lab.processes_running, lab.processes_started),
        ]);
    }
    output::print(format, &rows, &LabList { schema_version: 1, labs })
}

/// The lab's status, and whether somebody has changed it.
fn amiss(lab: &LabRow) -> String {
    let counted = |count: usize, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
    format!("{}{}{}", lab.status, counted(lab.broken, "broken"), counted(lab.impaired, "impaired"))
}

/// Addresses by which nodes are reached; a kind that no node has is no column.
fn ps_nodes(state: &LabState, format: Output) -> Result<(), Failure> {
    let address = |address: Option<Ipv4Addr>| address.map(|address| address.to_string());
    let of_access = |node: &NodeState, text: fn(&Access) -> String| {
        let texts: Vec<String> = node.access.iter().map(text).collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    };
    type Cell<'a> = Box<dyn Fn(&NodeState) -> Option<String> + 'a>;
    let columns: [(&str, Cell<'_>); 5] = [
        ("AA", Box::new(|node| address(node.aa))),
        ("LA", Box::new(|node| address(node.la))),
        ("public", Box::new(|node| address(node.public))),
        ("VLAN", Box::new(|node| of_access(node, |access| access.vlan.to_string()))),
        ("address", Box::new(|node| of_access(node, |access| access.address.to_string()))),
    ];
    let there: Vec<_> =
        columns.iter().filter(|(_, cell)| state.nodes.iter().any(|node| cell(node).is_some())).collect();
    let headings = there.iter().map(|(heading, _)| *heading);
    let mut rows = Rows::new(&["node", "role"].into_iter().chain(headings).chain(["namespace"]).collect::<Vec<_>>());
    for node in &state.nodes {
        let cells = there.iter().map(|(_, cell)| cell(node).unwrap_or_else(|| "-".to_owned()));
        let names = [node.name.clone(), word(&node.role)];
        rows.push(names.into_iter().chain(cells).chain([node.namespace.clone()]).collect());
    }
    output::print(format, &rows, state)
}

/// The word that an enum without fields serialises as.
fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

fn exec(lab: Option<String>, node: &str, command: &[OsString]) -> Result<ExitCode, Failure> {
    let lab = lab_name(lab)?;
    match weft_lab::exec(&lab, node, command, &this_program().map_err(Failure::failed)?).map_err(failure)? {}
}

fn shell(lab: Option<String>, node: &str) -> Result<ExitCode, Failure> {
    let lab = lab_name(lab)?;
    match weft_lab::shell(&lab, node, &this_program().map_err(Failure::failed)?).map_err(failure)? {}
}

/// How much a capture may become.
struct Limits {
    count: Option<u64>,
    seconds: Option<f64>,
    snap: Option<u32>,
}

fn capture(
    ports: Vec<CapturePorts>,
    file: PathBuf,
    lab: Option<String>,
    limits: Limits,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let duration = match limits.seconds {
        None => None,
        Some(seconds) => Some(
            Duration::try_from_secs_f64(seconds)
                .map_err(|error| Failure::usage(format!("--seconds {seconds}: {error}")))?,
        ),
    };
    let options = CaptureOptions {
        lab: lab_name(lab)?,
        ports,
        file,
        filter: CaptureFilter::default(),
        packets: limits.count,
        duration,
        snap_bytes: limits.snap,
    };
    let progress = TerminalProgress::new(true)?;
    let summary = weft_lab::capture(&options, &|| progress.interrupted()).map_err(failure)?;
    if !quiet {
        let at = if summary.ports == 1 { String::new() } else { format!(" of {} ports", summary.ports) };
        eprintln!("{} frames{at} written, {} lost", summary.packets, summary.dropped);
    }
    Ok(ExitCode::SUCCESS)
}
