//! `weft vl2`: shows VL2's agents and ToRs that run.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use weft_node::NodeError;
use weft_node::agent::AgentStatus;
use weft_node::agent::status::{self, StatusMapping};
use weft_node::tor::{self, TorStatus};

use super::lab::{hint_of_labs, socket_of};
use super::trill::counter_table;
use crate::args::{Output, Vl2Command, Vl2ShowCommand, Vl2Socket};
use crate::exit::Failure;
use crate::output::{self, Rows};

const AGENT_SOCKET: &str = "/run/weft/agent.sock";
const TOR_SOCKET: &str = "/run/weft/tor.sock";

pub(crate) fn vl2(command: Vl2Command) -> Result<ExitCode, Failure> {
    let Vl2Command::Show(what) = command;
    match what {
        Vl2ShowCommand::Cache(args) => cache(&agent(args.daemon)?, args.output.output)?,
        Vl2ShowCommand::Agent(args) => {
            let (status, format) = (agent(args.daemon)?, args.output.output);
            output::print(format, &counter_table(&agent_groups(&status), format), &status)?;
        }
        Vl2ShowCommand::Tor(args) => {
            let (status, format) = (tor(args.daemon)?, args.output.output);
            output::print(format, &counter_table(&tor_groups(&status), format), &status)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn agent(daemon: Vl2Socket) -> Result<AgentStatus, Failure> {
    let path = socket(daemon, AGENT_SOCKET, weft_lab::status_socket)?;
    status::read(path).map_err(|error| silent("agent", &error, weft_lab::status_socket))
}

fn tor(daemon: Vl2Socket) -> Result<TorStatus, Failure> {
    let path = socket(daemon, TOR_SOCKET, weft_lab::reporter_socket)?;
    tor::read(path).map_err(|error| silent("tor", &error, weft_lab::reporter_socket))
}

/// The socket that is meant.
fn socket(daemon: Vl2Socket, default: &str, of_lab: fn(&str, &str) -> PathBuf) -> Result<PathBuf, Failure> {
    match (daemon.socket, daemon.node) {
        (Some(path), _) => Ok(path),
        (None, Some(node)) => socket_of(daemon.lab, &node, of_lab),
        (None, None) => Ok(PathBuf::from(default)),
    }
}

fn silent(daemon: &str, error: &NodeError, of_lab: fn(&str, &str) -> PathBuf) -> Failure {
    let denied = matches!(error, NodeError::System { source, .. } if source.kind() == ErrorKind::PermissionDenied);
    if denied {
        return Failure::failed(format!("run as root: {error}"));
    }
    Failure::failed(format!(
        "no {daemon} answers; start one (weft node {daemon}) or name its --socket or --node: {error}{}",
        hint_of_labs(of_lab)
    ))
}

/// What `weft vl2 show cache -o json` prints.
#[derive(Serialize)]
struct Cache<'a> {
    schema_version: u32,
    mappings: &'a [StatusMapping],
}

fn cache(status: &AgentStatus, format: Output) -> Result<(), Failure> {
    let mut rows = Rows::new(&["AA", "ToR LA", "anycast LA", "version"]);
    for mapping in &status.mappings {
        rows.push(vec![
            mapping.aa.to_string(),
            mapping.tor_la.to_string(),
            mapping.anycast_la.to_string(),
            mapping.version.to_string(),
        ]);
    }
    output::print(format, &rows, &Cache { schema_version: 1, mappings: &status.mappings })
}

type Groups = BTreeMap<String, BTreeMap<String, u64>>;

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
        let daemon = Vl2Socket { socket: Some("/nonexistent/agent.sock".into()), node: None, lab: None };
        let failure = format!("{:?}", agent(daemon).expect_err("nobody listens there"));
        for part in ["weft node agent", "--node", "/nonexistent/agent.sock"] {
            assert!(failure.contains(part), "{failure}");
        }
    }
}
