//! etcd nodes as daemons of a lab: started with the flags of [`EtcdClusterSettings`], asked over their HTTP gateway.
//!
//! [`weft_testbed::etcd::EtcdCluster`] owns its nodes and takes them along when it ends; a lab outlives the command that
//! made it.

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use weft_testbed::etcd::{EtcdClusterSettings, EtcdNode};

use crate::error::LabError;
use crate::home::make_dir;
use crate::process::{Daemon, ProcessId};

/// How long a node has to answer.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// What it is asked.
const STATUS: &[u8] =
    b"POST /v3/maintenance/status HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// Starts node `index` of a cluster.
pub(crate) fn start(nodes: &[EtcdNode], index: usize, daemon: &Daemon<'_>) -> Result<ProcessId, LabError> {
    make_dir(&nodes[index].dir)?;
    daemon.spawn(Command::new("etcd").args(EtcdClusterSettings::new(nodes.to_vec()).flags(index)))
}

/// What a node says of itself and its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeStatus {
    /// It knows a leader.
    pub(crate) is_healthy: bool,
    /// It is the leader.
    pub(crate) leads: bool,
}

/// Asks a node, in the caller's namespace. `None` without an answer in time.
pub(crate) fn status(node: &EtcdNode) -> Option<NodeStatus> {
    let address = SocketAddrV4::new(node.ip, node.client_port);
    let mut stream = TcpStream::connect_timeout(&address.into(), ANSWER_MAX).ok()?;
    stream.set_read_timeout(Some(ANSWER_MAX)).ok()?;
    stream.write_all(STATUS).ok()?;
    let mut answer = String::new();
    stream.take(1 << 16).read_to_string(&mut answer).ok()?;
    parse(&answer)
}

#[derive(Deserialize)]
struct Answer {
    header: Header,
    #[serde(default)]
    leader: String,
}

#[derive(Deserialize)]
struct Header {
    member_id: String,
}

fn parse(answer: &str) -> Option<NodeStatus> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if !head.lines().next()?.contains(" 200 ") {
        return None;
    }
    let Answer { header, leader } = serde_json::from_str(body).ok()?;
    let is_healthy = !leader.is_empty() && leader != "0";
    Some(NodeStatus { is_healthy, leads: is_healthy && leader == header.member_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_who_names_itself() {
        let answer = |member: &str, leader: &str| {
            format!(
                "HTTP/1.0 200 OK\r\nX: y\r\n\r\n{{\"header\":{{\"member_id\":\"{member}\"}},{leader}\"raftTerm\":\"2\"}}"
            )
        };
        let status = |is_healthy, leads| Some(NodeStatus { is_healthy, leads });
        assert_eq!(parse(&answer("7", "\"leader\":\"7\",")), status(true, true));
        assert_eq!(parse(&answer("7", "\"leader\":\"9\",")), status(true, false));
        assert_eq!(parse(&answer("7", "")), status(false, false));
        assert_eq!(parse(&answer("7", "").replace("200", "503")), None);
        assert_eq!(parse("nonsense"), None);
    }
}
