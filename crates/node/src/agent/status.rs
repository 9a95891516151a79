//! What an agent shows of itself, as JSON.
//!
//! ```text
//! {"schema_version":1, "aa":A, "la":A, "interface":TEXT,
//!  "cache":{"mappings":N, "resolving":N, "negative":N, "waiting_frames":N, "revision":N},
//!  "mappings":[{"aa":A, "tor_la":A, "anycast_la":A, "version":N}, ..],
//!  "events":{NAME:N, ..}, "dropped":{REASON:N, ..}, "ignored":{REASON:N, ..}, "io":{NAME:N, ..},
//!  "datapath":{NAME:N, ..}, "spread":{NAME:N, ..}, "received":{NAME:N, ..}}
//! ```
//!
//! `events`, `dropped` and `ignored` are the counters of [`weft_control::agent`], `datapath` those of
//! [`weft_datapath::abi::HOST_OUTCOMES`], `spread` those of [`weft_datapath::abi::SPREAD_OUTCOMES`], `received` those of
//! [`weft_datapath::abi::RECEIVE_OUTCOMES`], and `io` what the daemon itself could not do.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weft_control::address::{Locator, Mapping};
use weft_control::agent::Agent;
use weft_control::tally::{Counted, Tally};

use super::AgentConfig;
use crate::error::NodeError;
use crate::runner::DaemonKind;
use crate::socket::{self, named};

/// An agent's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    pub schema_version: u32,
    /// The host's AA.
    pub aa: Ipv4Addr,
    /// The host's LA.
    pub la: Ipv4Addr,
    pub interface: String,
    pub cache: BTreeMap<String, u64>,
    /// The mappings in force.
    pub mappings: Vec<StatusMapping>,
    /// What happened, by name.
    pub events: BTreeMap<String, u64>,
    /// Frames not delivered, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Datagrams not believed, by reason.
    pub ignored: BTreeMap<String, u64>,
    /// What the daemon could not do, by name.
    pub io: BTreeMap<String, u64>,
    /// What became of the frames in the data path, by outcome.
    pub datapath: BTreeMap<String, u64>,
    /// What became of the flows of segments, where a rule moves flows under way.
    #[serde(default)]
    pub spread: BTreeMap<String, u64>,
    /// What became of the frames that came in, where broadcast reaches somebody.
    #[serde(default)]
    pub received: BTreeMap<String, u64>,
}

/// One mapping in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusMapping {
    pub aa: Ipv4Addr,
    /// LA of its ToR.
    pub tor_la: Ipv4Addr,
    /// Anycast LA to bounce off.
    pub anycast_la: Ipv4Addr,
    /// Version of the mapping; 0 if it was found in the data path and is not confirmed yet.
    pub version: u64,
}

/// Reads the state of the agent that listens on `path`.
///
/// # Errors
/// As for [`socket::ask`].
pub fn read(path: impl AsRef<Path>) -> Result<AgentStatus, NodeError> {
    socket::show(DaemonKind::Agent, path.as_ref(), ())
}

/// The state of an agent as a report.
pub(super) fn of<Io: Counted>(
    config: &AgentConfig,
    agent: &Agent,
    io: &Tally<Io>,
    [datapath, spread, received]: [Vec<(&'static str, u64)>; 3],
) -> AgentStatus {
    let (summary, counters) = (agent.summary(), agent.counters());
    AgentStatus {
        schema_version: 1,
        aa: config.aa,
        la: config.la,
        interface: config.interface.clone(),
        cache: named([
            ("mappings", summary.mappings as u64),
            ("resolving", summary.resolving as u64),
            ("negative", summary.negative as u64),
            ("waiting_frames", summary.waiting_frames as u64),
            ("revision", summary.revision),
        ]),
        mappings: agent.mappings().map(|(aa, mapping)| StatusMapping::of(aa, mapping)).collect(),
        events: named(counters.events.iter()),
        dropped: named(counters.dropped.iter()),
        ignored: named(counters.ignored.iter()),
        io: named(io.iter()),
        datapath: named(datapath),
        spread: named(spread),
        received: named(received),
    }
}

impl StatusMapping {
    fn of(aa: Ipv4Addr, mapping: Mapping) -> Self {
        let Locator { tor_la, anycast_la } = mapping.locator;
        Self { aa, tor_la, anycast_la, version: mapping.version }
    }
}
