//! What a reporter shows of itself, as JSON.
//!
//! ```text
//! {"schema_version":1, "la":A, "events":{NAME:N, ..}, "io":{NAME:N, ..}, "datapath":{NAME:N, ..}}
//! ```
//!
//! `events` are the counters of [`weft_control::tor`], `datapath` those of [`weft_datapath::abi::SWITCH_OUTCOMES`] (the
//! packets that were sampled are among `no_such_host`), and `io` what the daemon itself could not do.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weft_control::tally::Tally;
use weft_control::tor::Event;

use super::{IoFault, TorConfig};
use crate::error::NodeError;
use crate::runner::DaemonKind;
use crate::socket::{self, named};

/// A reporter's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TorStatus {
    pub schema_version: u32,
    /// The ToR's LA.
    pub la: Ipv4Addr,
    /// What became of samples, by name.
    pub events: BTreeMap<String, u64>,
    /// What the daemon could not do, by name.
    pub io: BTreeMap<String, u64>,
    /// What became of packets in the data path, by outcome.
    pub datapath: BTreeMap<String, u64>,
}

/// Reads the state of the reporter that listens on `path`.
///
/// # Errors
/// As for [`socket::ask`].
pub fn read(path: impl AsRef<Path>) -> Result<TorStatus, NodeError> {
    socket::show(DaemonKind::Tor, path.as_ref(), ())
}

pub(super) fn of(
    config: &TorConfig,
    events: &Tally<Event>,
    io: &Tally<IoFault>,
    datapath: Vec<(&'static str, u64)>,
) -> TorStatus {
    TorStatus {
        schema_version: 1,
        la: config.la,
        events: named(events.iter()),
        io: named(io.iter()),
        datapath: named(datapath),
    }
}
