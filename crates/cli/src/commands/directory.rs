//! `weft directory`: reads and changes AA-to-LA mappings over a server's admin socket.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use weft_node::client::AdminClient;
use weft_node::directory::protocol::{MappingRow, MappingToSet};
use weft_scenario::topology::Role;

use crate::args::{AdminArgs, DirectoryCommand};
use crate::exit::Failure;
use crate::output::{self, Rows};

#[derive(Serialize)]
struct Mappings {
    schema_version: u32,
    mappings: Vec<MappingRow>,
}

#[derive(Serialize)]
struct Committed {
    schema_version: u32,
    aa: Ipv4Addr,
    revision: u64,
}

pub(crate) fn directory(command: DirectoryCommand) -> Result<ExitCode, Failure> {
    match command {
        DirectoryCommand::Get { aa, admin } => get(aa, &admin),
        DirectoryCommand::Set { aa, tor, anycast, admin } => {
            let mapping =
                MappingToSet { aa, tor_la: tor, anycast_la: anycast, service: 0, if_version: None, version: None };
            let revision = connect(&admin)?.set(mapping).map_err(Failure::failed)?;
            committed(aa, revision, &admin)
        }
        DirectoryCommand::Del { aa, admin } => {
            let revision = connect(&admin)?.del(aa).map_err(Failure::failed)?;
            committed(aa, revision, &admin)
        }
        DirectoryCommand::Status { admin } => status(&admin),
    }
}

fn connect(admin: &AdminArgs) -> Result<AdminClient, Failure> {
    let socket = match &admin.socket {
        Some(socket) => socket.clone(),
        None => socket_of_the_lab()?,
    };
    AdminClient::connect(&socket).map_err(Failure::failed)
}

/// The first directory server of the one lab that is up.
fn socket_of_the_lab() -> Result<PathBuf, Failure> {
    let lab = super::lab::lab_name(None)?;
    let state = weft_lab::ps(&lab).map_err(super::lab::failure)?;
    let server = state.nodes.iter().find(|node| node.role == Role::Directory);
    let server =
        server.ok_or_else(|| Failure::failed(format!("lab `{lab}` has no directory server; name a --socket")))?;
    Ok(weft_lab::admin_socket(&lab, &server.name))
}

fn get(aa: Option<Ipv4Addr>, admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let mut client = connect(admin)?;
    let mappings = match aa {
        None => client.list().map_err(Failure::failed)?,
        Some(aa) => match client.get(aa).map_err(Failure::failed)? {
            Some(mapping) => vec![mapping],
            None => {
                return Err(Failure::failed(format!(
                    "no mapping for {aa}; set one: weft directory set {aa} --tor LA --anycast LA"
                )));
            }
        },
    };
    let mut rows = Rows::new(&["AA", "ToR LA", "anycast LA", "service", "version"]);
    for mapping in &mappings {
        rows.push(vec![
            mapping.aa.to_string(),
            mapping.tor_la.to_string(),
            mapping.anycast_la.to_string(),
            mapping.service.to_string(),
            mapping.version.to_string(),
        ]);
    }
    output::print(admin.output.output, &rows, &Mappings { schema_version: 1, mappings })?;
    Ok(ExitCode::SUCCESS)
}

fn committed(aa: Ipv4Addr, revision: u64, admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let mut rows = Rows::new(&["AA", "revision"]);
    rows.push(vec![aa.to_string(), revision.to_string()]);
    output::print(admin.output.output, &rows, &Committed { schema_version: 1, aa, revision })?;
    Ok(ExitCode::SUCCESS)
}

fn status(admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let status = connect(admin)?.status().map_err(Failure::failed)?;
    let mut rows = Rows::new(&["what", "value"]);
    let mut push = |what: &str, value: String| rows.push(vec![what.to_owned(), value]);
    push("listens at", status.listen.to_string());
    push("mappings", status.mappings.to_string());
    push("revision", status.revision.to_string());
    for (group, counters) in [("lookups", &status.lookups), ("ignored", &status.ignored), ("updates", &status.updates)]
    {
        for (name, count) in counters {
            push(&format!("{group}: {name}"), count.to_string());
        }
    }
    output::print(admin.output.output, &rows, &status)?;
    Ok(ExitCode::SUCCESS)
}
