//! `weft directory`: the client of directory servers.

mod bulk;
mod change;
mod show;
mod trust;
mod watch;

pub(crate) use show::print_status;

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

use weft_node::client::{AdminClient, Target};
use weft_node::directory::SOCKET_DEFAULT;
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
        _ => Target::Socket(local_socket(session.lab.clone())?),
    };
    AdminClient::open(&target).map_err(failure)
}

/// A directory server on this host: the lab's that is named, or the only one there is.
fn local_socket(lab: Option<String>) -> Result<PathBuf, Failure> {
    if let Some(lab) = lab {
        return socket_of_lab(lab);
    }
    let labs: Vec<String> = weft_lab::list().into_iter().map(|row| row.lab).collect();
    let answers = UnixStream::connect(SOCKET_DEFAULT);
    let denied = matches!(&answers, Err(error) if error.kind() == ErrorKind::PermissionDenied);
    match the_only(&labs, answers.is_ok() || denied).map_err(Failure::failed)? {
        Local::Daemon => Ok(PathBuf::from(SOCKET_DEFAULT)),
        Local::Lab(lab) => socket_of_lab(lab),
    }
}

/// What answers on this host.
#[derive(Debug, PartialEq, Eq)]
enum Local {
    Daemon,
    Lab(String),
}

/// The only one of a daemon and the labs that are up; otherwise what to do.
fn the_only(labs: &[String], has_daemon: bool) -> Result<Local, String> {
    match (labs, has_daemon) {
        ([], true) => Ok(Local::Daemon),
        ([lab], false) => Ok(Local::Lab(lab.clone())),
        ([], false) => Err(format!(
            "no directory server answers at {SOCKET_DEFAULT} and no lab is up; start one (weft node directory), bring a \
             lab up (weft lab up FABRIC), or name a --socket or --server"
        )),
        (labs, true) => Err(format!(
            "a directory server of this host answers and labs are up ({0}); say which: --socket {SOCKET_DEFAULT} or \
             --lab {0}",
            labs.join(", ")
        )),
        (labs, false) => Err(format!("several labs are up ({}); say which one with --lab NAME", labs.join(", "))),
    }
}

/// The first directory server of a lab.
fn socket_of_lab(lab: String) -> Result<PathBuf, Failure> {
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
        NodeError::System { ref source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Failure::failed(format!("run as root, or name a --server: {error}"))
        }
        _ => Failure::failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_one_is_meant_and_otherwise_both_ways_are_named() {
        let labs = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        assert_eq!(the_only(&[], true), Ok(Local::Daemon));
        assert_eq!(the_only(&labs(&["a"]), false), Ok(Local::Lab("a".to_owned())));
        for (up, has_daemon, parts) in [
            (&[][..], false, ["weft node directory", "weft lab up"]),
            (&["a"], true, ["--socket /run/weft/directory/admin.sock", "--lab a"]),
            (&["a", "b"], false, ["a, b", "--lab NAME"]),
        ] {
            let error = the_only(&labs(up), has_daemon).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
