//! `weft node` runs a daemon in the foreground; `weft show`, `weft reload` and `weft stop` speak with one that runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_node::agent::{self, AgentConfig, AgentStatus};
use weft_node::directory::protocol::DirectoryStatus;
use weft_node::directory::{self, DirectoryConfig};
use weft_node::rbridge::{self, RBridgeConfig};
use weft_node::socket::Stopped;
use weft_node::stop::Stop;
use weft_node::switch::{self, SwitchConfig, SwitchStatus};
use weft_node::tor::{self, TorConfig, TorStatus};
use weft_node::{DaemonKind, Load, NodeError, read_settings, settings_text, socket};

use super::lab::{hint_of_labs, socket_of};
use crate::args::{AgentWhat, DaemonArgs, NodeCommand, OneDaemon, Output, ShowCommand, What, Which};
use crate::exit::{self, Failure};
use crate::output::{self, Rows};

pub(crate) fn node(command: NodeCommand) -> Result<ExitCode, Failure> {
    match command {
        NodeCommand::Agent(args) => from_file(DaemonKind::Agent, &args, &AgentConfig::example(), agent::run),
        NodeCommand::Directory(args) => {
            from_file(DaemonKind::Directory, &args, &DirectoryConfig::example(), directory::run)
        }
        NodeCommand::Switch { daemon, remove } => {
            from_file(DaemonKind::Switch, &daemon, &SwitchConfig::example(), |load: &Load<'_, _>, stop| match remove {
                true => switch::remove(&load()?),
                false => switch::run(load, stop),
            })
        }
        NodeCommand::Tor(args) => from_file(DaemonKind::Tor, &args, &TorConfig::example(), tor::run),
        NodeCommand::Vtep(args) => super::vtep::node(&args),
        NodeCommand::Rbridge(args) => from_file(DaemonKind::Rbridge, &args, &RBridgeConfig::example(), rbridge::run),
    }
}

fn from_file<C: DeserializeOwned + Serialize>(
    kind: DaemonKind,
    args: &DaemonArgs,
    example: &C,
    run: impl FnOnce(&Load<'_, C>, &Stop) -> Result<(), NodeError>,
) -> Result<ExitCode, Failure> {
    let load = || read_settings(args.config.as_deref().expect("clap asks for it"));
    let example = args.print_example.then_some((kind, example));
    serve(example, &load, run)
}

/// Prints the example, if one is given, or runs the daemon.
pub(super) fn serve<C: Serialize>(
    example: Option<(DaemonKind, &C)>,
    load: &Load<'_, C>,
    run: impl FnOnce(&Load<'_, C>, &Stop) -> Result<(), NodeError>,
) -> Result<ExitCode, Failure> {
    if let Some((kind, example)) = example {
        output::print_line(&example_text(kind, example))?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = Stop::on_signals().map_err(Failure::failed)?;
    run(load, &stop).map_err(|error| exit::of_daemon(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// The example, and what people add to it most often.
fn example_text<C: Serialize>(kind: DaemonKind, example: &C) -> String {
    let port = kind.metrics_port();
    let metrics = "/metrics, /healthz and /readyz; nowhere without it";
    format!("# http_listen = \"127.0.0.1:{port}\"        # {metrics}\n{}", settings_text(example))
}

/// A daemon that runs.
pub(super) struct Running {
    pub(super) kind: DaemonKind,
    pub(super) path: PathBuf,
}

impl Running {
    pub(super) fn of(kind: impl Into<DaemonKind>, which: Which) -> Result<Self, Failure> {
        let kind = kind.into();
        let path = match (which.socket, which.node) {
            (Some(path), _) => path,
            (None, Some(node)) => socket_of(which.lab, &node, kind)?,
            (None, None) => kind.socket(),
        };
        Ok(Self { kind, path })
    }

    pub(super) fn failure(&self, error: NodeError) -> Failure {
        let hint = if matches!(error, NodeError::System { .. }) { hint_of_labs(self.kind) } else { String::new() };
        Failure::failed(format!("{error}{hint}"))
    }

    pub(super) fn shown<W: Serialize, S: DeserializeOwned>(&self, what: W) -> Result<S, Failure> {
        socket::show(self.kind, &self.path, what).map_err(|error| self.failure(error))
    }

    pub(super) fn print_config(&self) -> Result<(), Failure> {
        output::print_line(&socket::config(self.kind, &self.path).map_err(|error| self.failure(error))?)
    }
}

pub(crate) fn reload(args: OneDaemon) -> Result<ExitCode, Failure> {
    let running = Running::of(args.daemon, args.which)?;
    let reloaded = socket::reload(running.kind, &running.path).map_err(|error| running.failure(error))?;
    for (what, names) in [("changed", reloaded.changed), ("removed, as the settings do not have it", reloaded.removed)]
    {
        if !names.is_empty() {
            output::print_line(&format!("{what}: {}", some_of(&names)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The first of many.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ") + &rest
}

pub(crate) fn stop(args: OneDaemon) -> Result<ExitCode, Failure> {
    let running = Running::of(args.daemon, args.which)?;
    let stopped = socket::stop(running.kind, &running.path).map_err(|error| running.failure(error))?;
    if let Stopped::DataPath(pins) = stopped {
        let (word, pins) = (running.kind.word(), pins.display());
        eprintln!("weft: no {word} was running; the data path that it left at work, pinned in {pins}, is removed");
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn show(command: ShowCommand) -> Result<ExitCode, Failure> {
    match command {
        ShowCommand::Agent(args) => {
            let (running, format) = (Running::of(DaemonKind::Agent, args.which)?, args.output.output);
            match args.what {
                AgentWhat::Config => running.print_config()?,
                AgentWhat::Mappings => mappings(&running.shown(())?, format)?,
                AgentWhat::Counters => counters(&running.shown(())?, format, agent_groups)?,
            }
        }
        ShowCommand::Directory(args) => {
            let (running, format) = (Running::of(DaemonKind::Directory, args.which)?, args.output.output);
            match args.what {
                What::Config => running.print_config()?,
                What::Counters => super::directory::print_status(&running.shown::<_, DirectoryStatus>(())?, format)?,
            }
        }
        ShowCommand::Switch(args) => {
            let format = args.output.output;
            // Labs have their switches' data paths without daemons.
            let status: SwitchStatus = match (args.which.node, args.what) {
                (Some(node), What::Counters) => {
                    let lab = super::lab::lab_name(args.which.lab)?;
                    weft_lab::switch_status(&lab, &node).map_err(super::lab::failure)?
                }
                (node, what) => {
                    let running = Running::of(DaemonKind::Switch, Which { node, ..args.which })?;
                    if what == What::Config {
                        running.print_config()?;
                        return Ok(ExitCode::SUCCESS);
                    }
                    running.shown(())?
                }
            };
            counters(&status, format, |status| named([("datapath", &status.datapath)]))?;
        }
        ShowCommand::Tor(args) => {
            let (running, format) = (Running::of(DaemonKind::Tor, args.which)?, args.output.output);
            match args.what {
                What::Config => running.print_config()?,
                What::Counters => counters(&running.shown(())?, format, tor_groups)?,
            }
        }
        ShowCommand::Vtep { show, vni } => super::vtep::show(show, vni)?,
        ShowCommand::Rbridge(args) => super::rbridge::show(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What `-o json` prints of a daemon that shows several things.
#[derive(Serialize)]
pub(super) struct Document<S> {
    pub(super) schema_version: u32,
    #[serde(flatten)]
    pub(super) shown: S,
}

fn mappings(status: &AgentStatus, format: Output) -> Result<(), Failure> {
    let mut rows = Rows::new(&["AA", "ToR LA", "anycast LA", "version"]);
    for mapping in &status.mappings {
        rows.push(vec![
            mapping.aa.to_string(),
            mapping.tor_la.to_string(),
            mapping.anycast_la.to_string(),
            mapping.version.to_string(),
        ]);
    }
    let shown = BTreeMap::from([("mappings", &status.mappings)]);
    output::print(format, &rows, &Document { schema_version: 1, shown })
}

/// Counters by group and name.
type Groups = BTreeMap<String, BTreeMap<String, u64>>;

fn counters<S: Serialize>(status: &S, format: Output, groups: fn(&S) -> Groups) -> Result<(), Failure> {
    output::print(format, &counter_table(&groups(status), format), status)
}

/// For people only what happened; for programs everything.
pub(super) fn counter_table(groups: &Groups, format: Output) -> Rows {
    let mut rows = Rows::new(&["group", "counter", "count"]);
    for (group, counters) in groups {
        for (name, count) in counters.iter().filter(|(_, count)| **count > 0 || format != Output::Table) {
            rows.push(vec![group.clone(), name.clone(), count.to_string()]);
        }
    }
    rows
}

fn agent_groups(status: &AgentStatus) -> Groups {
    let AgentStatus { cache, events, dropped, ignored, io, datapath, spread, received, .. } = status;
    named([
        ("cache", cache),
        ("events", events),
        ("dropped", dropped),
        ("ignored", ignored),
        ("io", io),
        ("datapath", datapath),
        ("spread", spread),
        ("received", received),
    ])
}

fn tor_groups(status: &TorStatus) -> Groups {
    named([("events", &status.events), ("io", &status.io), ("datapath", &status.datapath)])
}

fn named<const N: usize>(groups: [(&str, &BTreeMap<String, u64>); N]) -> Groups {
    groups.into_iter().map(|(name, counters)| (name.to_owned(), counters.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(name: &str, count: u64) -> BTreeMap<String, u64> {
        [(name.to_owned(), count), ("never".to_owned(), 0)].into()
    }

    #[test]
    fn people_see_what_happened_and_programs_everything() {
        let la = std::net::Ipv4Addr::new(10, 1, 0, 1);
        let (events, io, datapath) = (counters("reported", 3), BTreeMap::new(), counters("delivered", 9));
        let groups = tor_groups(&TorStatus { schema_version: 1, la, events, io, datapath });
        let rows = counter_table(&groups, Output::Table).rows;
        assert_eq!(rows, [["datapath", "delivered", "9"], ["events", "reported", "3"]]);
        assert_eq!(counter_table(&groups, Output::Csv).rows.len(), 4);
    }

    #[test]
    fn a_silent_socket_is_told_with_what_to_do() {
        let which = Which { socket: Some("/nonexistent/agent.sock".into()), node: None, lab: None };
        let running = Running::of(DaemonKind::Agent, which).unwrap();
        let failure = format!("{:?}", running.shown::<_, AgentStatus>(()).expect_err("nobody listens there"));
        for part in ["weft node agent", "--socket", "/nonexistent/agent.sock"] {
            assert!(failure.contains(part), "{failure}");
        }
    }

    #[test]
    fn examples_say_where_metrics_may_be() {
        let text = example_text(DaemonKind::Agent, &AgentConfig::example());
        let with: AgentConfig = toml::from_str(&text.replacen("# http_listen", "http_listen", 1)).unwrap();
        assert_eq!(with.http_listen, Some("127.0.0.1:9541".parse().unwrap()));
        assert_eq!(toml::from_str::<AgentConfig>(&text).unwrap(), AgentConfig::example());
    }

    #[test]
    fn what_is_named_stays_short() {
        let names: Vec<String> = (1..=14).map(|number| number.to_string()).collect();
        assert_eq!(some_of(&names), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more");
        assert_eq!(some_of(&names[..2]), "1, 2");
    }
}
