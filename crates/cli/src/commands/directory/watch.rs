//! `weft directory watch`: a row for every change, as it is committed.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use weft_node::client::Watch;
use weft_node::directory::protocol::ChangeRow;
use weft_scenario::engine::Progress;

use super::{connect, failure};
use crate::args::{AdminArgs, Output};
use crate::exit::Failure;
use crate::output;
use crate::progress::TerminalProgress;

/// How long to wait at a time, so that Ctrl-C is seen.
const PATIENCE: Duration = Duration::from_millis(200);

#[derive(Serialize)]
struct Change {
    schema_version: u32,
    revision: u64,
    #[serde(flatten)]
    change: ChangeRow,
}

pub(super) fn watch(from: Option<u64>, admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let mut client = connect(&admin.session)?;
    let interrupt = TerminalProgress::new(true)?;
    let since = client.watch(from).map_err(failure)?;
    if admin.output.output == Output::Csv {
        output::print_line("revision,aa,tor_la,anycast_la,service,host_la,version")?;
    } else if from.is_none() {
        eprintln!("watching what is committed after revision {since}; Ctrl-C ends it");
    }
    while !interrupt.interrupted() {
        match client.watched(PATIENCE).map_err(failure)? {
            Watch::Silence => {}
            Watch::Changed { revision, changes } => {
                for change in changes {
                    if !print(revision, change, admin.output.output)? {
                        return Ok(ExitCode::SUCCESS);
                    }
                }
            }
            Watch::Lagged => {
                return Err(Failure::failed(
                    "changes are missing that the server no longer keeps; list all mappings again: weft directory get",
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `false`: nobody reads any more.
fn print(revision: u64, change: ChangeRow, format: Output) -> Result<bool, Failure> {
    let la = |la: Option<std::net::Ipv4Addr>| la.map(|la| la.to_string()).unwrap_or_default();
    let ChangeRow { aa, tor_la, anycast_la, service, host_la, version } = change;
    let line = match format {
        Output::Json => {
            serde_json::to_string(&Change { schema_version: 1, revision, change }).map_err(Failure::failed)?
        }
        Output::Csv => {
            let (tor_la, anycast_la, host_la) = (la(tor_la), la(anycast_la), la(host_la));
            format!("{revision},{aa},{tor_la},{anycast_la},{service},{host_la},{version}")
        }
        Output::Table => match (tor_la, anycast_la) {
            (Some(tor_la), Some(anycast_la)) => {
                format!("{revision}  {aa} is at {tor_la} by {anycast_la}, service {service}")
            }
            _ => format!("{revision}  {aa} is gone"),
        },
    };
    output::stream_line(&line)
}
