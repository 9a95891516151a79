//! `weft directory`: the client of directory servers.

mod bulk;
mod change;
mod show;
mod trust;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use weft_node::client::{AdminClient, Target};
use weft_node::{NodeError, TlsFiles};
use weft_scenario::topology::Role;

use crate::args::{DirectoryCommand, SessionArgs};
use crate::exit::Failure;

pub(crate) fn directory(command: DirectoryCommand, quiet: bool) -> Result<ExitCode, Failure> {
    match command {
        DirectoryCommand::Get { aa, admin } => show::get(aa, &admin),
        DirectoryCommand::Status { admin } => show::status(&admin),
        DirectoryCommand::Set(args) => change::set(&args),
        DirectoryCommand::Del { aa, if_version, admin } => change::del(aa, if_version, &admin),
        DirectoryCommand::Move { aa, tor, host, if_version, admin } => {
            change::move_to(aa, tor, host, if_version, &admin)
        }
        DirectoryCommand::Policy(command) => change::policy(command),
        DirectoryCommand::Watch { from, admin } => watch::watch(from, &admin),
        DirectoryCommand::Import { file, admin } => bulk::import(&file, &admin, quiet),
        DirectoryCommand::Export { admin } => bulk::export(&admin),
        DirectoryCommand::Key(args) => trust::key(&args),
        DirectoryCommand::Certs(args) => trust::certs(&args),
    }
}

/// Opens a session with the server that is meant.
fn connect(session: &SessionArgs) -> Result<AdminClient, Failure> {
    let target = match (session.server, &session.tls_dir, &session.socket) {
        (Some(address), Some(dir), _) => Target::Server { address, files: TlsFiles::in_dir(dir, &session.identity) },
        (_, _, Some(socket)) => Target::Socket(socket.clone()),
        _ => Target::Socket(socket_of_lab(session.lab.clone())?),
    };
    AdminClient::open(&target).map_err(failure)
}

/// The first directory server of a lab, or of the only one that is up.
fn socket_of_lab(lab: Option<String>) -> Result<PathBuf, Failure> {
    let lab = super::lab::lab_name(lab)?;
    let state = weft_lab::ps(&lab).map_err(super::lab::failure)?;
    let server = state.nodes.iter().find(|node| node.role == Role::Directory);
    let server =
        server.ok_or_else(|| Failure::failed(format!("lab `{lab}` has no directory server; name a --socket")))?;
    Ok(weft_lab::admin_socket(&lab, &server.name))
}

/// Files that a command line names are its own fault.
fn failure(error: NodeError) -> Failure {
    match error {
        NodeError::Tls { .. } | NodeError::KeyFile { .. } => Failure::usage(error),
        _ => Failure::failed(error),
    }
}
