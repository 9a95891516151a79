//! `weft init`: the settings, keys and certificates of a whole deployment from one file that says who is where.
//!
//! * [`hosts_file`]: the file, and faults with their lines; `names` and `addresses` check what all kinds have
//! * [`vl2`], [`vxlan`], [`trill`]: what a file of each kind means
//! * [`tree`]: one folder for each host, ready to be copied to `/etc/weft`, and one for whoever runs the network
//!
//! Nothing is written unless all of it is right: every daemon's own check has seen its settings.

mod addresses;
mod hosts_file;
mod names;
mod readme;
mod tree;
mod trill;
mod vl2;
mod vxlan;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::NodeError;
use crate::runner::DaemonKind;
use crate::settings_file;
use hosts_file::HostsFile;

/// Which network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    Vl2,
    Vxlan,
    Trill,
}

impl Network {
    /// As on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Vl2 => "vl2",
            Self::Vxlan => "vxlan",
            Self::Trill => "trill",
        }
    }

    /// A file to start from.
    pub fn example(self) -> &'static str {
        match self {
            Self::Vl2 => include_str!("vl2/example.toml"),
            Self::Vxlan => include_str!("vxlan/example.toml"),
            Self::Trill => include_str!("trill/example.toml"),
        }
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub schema_version: u32,
    pub network: Network,
    /// In the order of the file; last the folder of whoever runs the network, without services.
    pub hosts: Vec<HostSummary>,
}

/// A host's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostSummary {
    pub host: String,
    /// Units of systemd that it runs, in the order of their start.
    pub services: Vec<String>,
    pub files: Vec<FileSummary>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    /// Within the host's folder.
    pub file: String,
    /// In octal digits.
    pub mode: String,
}

/// Writes a deployment into `out`, which must be empty, missing, or one that this wrote before: secrets stay then, so that
/// hosts that are up need no new ones, and everything else is made anew. A file that people have changed meanwhile is refused without
/// `force`.
///
/// # Errors
/// [`NodeError::ConfigFile`] with file, line and key for what the file says; what the system refuses.
pub fn write(network: Network, hosts: &Path, out: &Path, force: bool) -> Result<Summary, NodeError> {
    let file = HostsFile::read(hosts)?;
    let vault = tree::Vault::open(network, out)?;
    let deployment = deployment(network, &file, &vault)?;
    tree::write(network, out, &vault, &deployment, force)
}

fn deployment(network: Network, file: &HostsFile, vault: &tree::Vault) -> Result<Deployment, NodeError> {
    match network {
        Network::Vl2 => vl2::deployment(file, vault),
        Network::Vxlan => vxlan::deployment(file),
        Network::Trill => trill::deployment(file, vault),
    }
}

/// All hosts' folders.
struct Deployment {
    hosts: Vec<Host>,
    /// Secrets that stay with whoever runs the network, by their names.
    secrets: Vec<(&'static str, String)>,
    /// Certificates for sessions with directory servers, if they have TLS.
    certificates: Option<crate::certs::Wanted>,
}

/// A host's folder.
struct Host {
    name: String,
    /// What it is, in a few words.
    role: &'static str,
    daemons: Vec<DaemonKind>,
    files: Vec<File>,
    /// Whether it has a directory server's certificate.
    certificate: bool,
}

struct File {
    name: &'static str,
    text: String,
    secret: bool,
}

impl Host {
    fn new(name: &str, role: &'static str) -> Self {
        Self { name: name.to_owned(), role, daemons: Vec::new(), files: Vec::new(), certificate: false }
    }

    /// A daemon with its settings, which it must take; `fault` says where they come from.
    fn daemon<S: Serialize>(
        &mut self,
        kind: DaemonKind,
        settings: &S,
        fault: impl FnOnce(String) -> NodeError,
    ) -> Result<(), NodeError> {
        let text = settings_file::to_text(settings);
        settings_file::judge(kind, &text).map_err(|error| fault(format!("{}: {error}", kind.word())))?;
        self.daemons.push(kind);
        self.file(settings_name(kind), text);
        Ok(())
    }

    fn file(&mut self, name: &'static str, text: String) {
        self.files.push(File { name, text, secret: false });
    }

    fn secret(&mut self, name: &'static str, text: String) {
        self.files.push(File { name, text, secret: true });
    }
}

fn settings_name(kind: DaemonKind) -> &'static str {
    match kind {
        DaemonKind::Agent => "agent.toml",
        DaemonKind::Directory => "directory.toml",
        DaemonKind::Switch => "switch.toml",
        DaemonKind::Tor => "tor.toml",
        DaemonKind::Vtep => "vtep.toml",
        DaemonKind::Rbridge => "rbridge.toml",
    }
}

#[cfg(test)]
mod tests;
