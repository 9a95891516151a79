//! `weft directory set`, `del`, `move` and `policy`.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use serde::Serialize;
use weft_node::directory::protocol::{AdminRequest, MappingToSet, PolicyRow};

use super::{connect, failure};
use crate::args::{AdminArgs, PolicyCommand, SetArgs};
use crate::exit::Failure;
use crate::output::{self, Rows};

#[derive(Serialize)]
struct Committed {
    schema_version: u32,
    aa: Ipv4Addr,
    revision: u64,
}

#[derive(Serialize)]
struct Policy {
    schema_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    policy: Vec<PolicyRow>,
}

pub(super) fn set(args: &SetArgs) -> Result<ExitCode, Failure> {
    let mapping = MappingToSet {
        aa: args.aa,
        tor_la: args.tor,
        anycast_la: args.anycast,
        service: args.service,
        host_la: args.host,
        if_version: args.if_version,
        version: None,
    };
    let revision = connect(&args.admin.session)?.set(mapping).map_err(failure)?;
    committed(args.aa, revision, &args.admin)
}

pub(super) fn del(aa: Ipv4Addr, if_version: Option<u64>, admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let request = AdminRequest::Del { aa, if_version, client: 0, sequence: 0 };
    let response = connect(&admin.session)?.request(&request).map_err(failure)?;
    committed(aa, response.revision.unwrap_or(0), admin)
}

pub(super) fn move_to(
    aa: Ipv4Addr,
    tor: Ipv4Addr,
    host: Option<Ipv4Addr>,
    if_version: Option<u64>,
    admin: &AdminArgs,
) -> Result<ExitCode, Failure> {
    let revision = connect(&admin.session)?.move_to(aa, tor, host, if_version).map_err(failure)?;
    committed(aa, revision, admin)
}

fn committed(aa: Ipv4Addr, revision: u64, admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let mut rows = Rows::new(&["AA", "revision"]);
    rows.push(vec![aa.to_string(), revision.to_string()]);
    output::print(admin.output.output, &rows, &Committed { schema_version: 1, aa, revision })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn policy(command: PolicyCommand) -> Result<ExitCode, Failure> {
    match command {
        PolicyCommand::List { admin } => {
            let policy = connect(&admin.session)?.policy().map_err(failure)?;
            print_policy(None, policy, &admin)
        }
        PolicyCommand::Allow { from, to, both, admin } => set_policy(from, to, both, true, &admin),
        PolicyCommand::Deny { from, to, both, admin } => set_policy(from, to, both, false, &admin),
    }
}

fn set_policy(from: u32, to: u32, both: bool, allow: bool, admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let mut changes = vec![PolicyRow { from_service: from, to_service: to, allow }];
    if both {
        changes.push(PolicyRow { from_service: to, to_service: from, allow });
    }
    let revision = connect(&admin.session)?.set_policy(changes.clone()).map_err(failure)?;
    print_policy(Some(revision), changes, admin)
}

fn print_policy(revision: Option<u64>, policy: Vec<PolicyRow>, admin: &AdminArgs) -> Result<ExitCode, Failure> {
    let mut rows = Rows::new(&["from service", "to service", "allowed"]);
    for rule in &policy {
        let allowed = if rule.allow { "yes" } else { "no" };
        rows.push(vec![rule.from_service.to_string(), rule.to_service.to_string(), allowed.to_owned()]);
    }
    output::print(admin.output.output, &rows, &Policy { schema_version: 1, revision, policy })?;
    Ok(ExitCode::SUCCESS)
}
