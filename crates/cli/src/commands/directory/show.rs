//! `weft directory get` and `status`.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use serde::Serialize;
use weft_node::directory::protocol::{DirectoryStatus, MappingRow};

use super::{connect, failure};
use crate::args::{AdminArgs, Output};
use crate::exit::Failure;
use crate::output::{self, Rows};

#[derive(Serialize)]
struct Mappings {
    schema_version: u32,
    mappings: Vec<MappingRow>,
}

pub(super) fn get(aa: Option<Ipv4Addr>, admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let mut client = connect(&admin.session)?;
    let mappings = match aa {
        None => client.list().map_err(failure)?,
        Some(aa) => match client.get(aa).map_err(failure)? {
            Some(mapping) => vec![mapping],
            None => {
                return Err(Failure::failed(format!(
                    "no mapping for {aa}; set one: weft directory set {aa} --tor LA --anycast LA"
                )));
            }
        },
    };
    let mut rows = Rows::new(&["AA", "ToR LA", "anycast LA", "service", "host LA", "version"]);
    for mapping in &mappings {
        rows.push(vec![
            mapping.aa.to_string(),
            mapping.tor_la.to_string(),
            mapping.anycast_la.to_string(),
            mapping.service.to_string(),
            mapping.host_la.map(|la| la.to_string()).unwrap_or_default(),
            mapping.version.to_string(),
        ]);
    }
    output::print(admin.output.output, &rows, &Mappings { schema_version: 1, mappings })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn status(admin: &AdminArgs) -> Result<ExitCode, Failure> {
    print_status(&connect(&admin.session)?.status().map_err(failure)?, admin.output.output)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn print_status(status: &DirectoryStatus, format: Output) -> Result<(), Failure> {
    let mut rows = Rows::new(&["what", "value"]);
    let mut push = |what: &str, value: String| rows.push(vec![what.to_owned(), value]);
    push("listens at", status.listen.to_string());
    for (what, address) in [("sessions over TLS at", status.tls_listen), ("HTTP at", status.http_listen)] {
        if let Some(address) = address {
            push(what, address.to_string());
        }
    }
    push("mappings", status.mappings.to_string());
    push("revision", status.revision.to_string());
    push("table hash", status.table_hash.clone());
    push("store", status.store_error.clone().unwrap_or_else(|| "ok".to_owned()));
    push("look-up threads", status.lookup_threads.to_string());
    if let Some(card) = &status.xdp {
        let does = if card.answers { "answers" } else { "answers no more" };
        push("xdp", format!("`{}` {does}, {} mappings there", card.interface, card.mappings));
    }
    for (group, counters) in [
        ("lookups", &status.lookups),
        ("ignored", &status.ignored),
        ("updates", &status.updates),
        ("corrections", &status.corrections),
        ("sessions", &status.sessions),
    ]
    .into_iter()
    .chain(status.xdp.as_ref().map(|card| ("xdp", &card.frames)))
    {
        for (name, count) in counters {
            push(&format!("{group}: {name}"), count.to_string());
        }
    }
    output::print(format, &rows, status)
}
