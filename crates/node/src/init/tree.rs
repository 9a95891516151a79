//! The folders, as they are written: beside `out` first, then put in its place as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Deployment, FileSummary, Host, HostSummary, Network, Summary, readme};
use crate::error::NodeError;
use crate::{certs, key, sys};

/// The folder of whoever runs the network: secrets that are no host's alone, the CA, certificates of clients.
pub(super) const OPERATOR: &str = "operator";
/// In a folder that this made; its text is the network's word.
const MARK: &str = ".weft-init";
const TLS: &str = "tls";

/// Secrets of the network: those of the folder, if it was written before, or new ones.
pub(super) struct Vault {
    /// Their folder.
    before: Option<PathBuf>,
}

impl Vault {
    /// Refuses a folder that somebody else filled.
    pub(super) fn open(network: Network, out: &Path) -> Result<Self, NodeError> {
        let fault = |why: String| NodeError::ConfigFile { path: out.to_owned(), why };
        let old = beside(out, "old")?;
        if !out.exists() && old.join(MARK).exists() {
            // A run ended after it had moved this away and before it put the new one in its place.
            fs::rename(&old, out).map_err(NodeError::at("moving", &old))?;
        }
        let is_empty = match fs::read_dir(out) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(fault(error.to_string())),
        };
        let before = match fs::read_to_string(out.join(MARK)) {
            Ok(word) if word.trim() == network.word() => Some(out.join(OPERATOR)),
            Ok(word) => {
                return Err(fault(format!("was written by `weft init {}`; name another folder", word.trim())));
            }
            Err(_) if is_empty => None,
            Err(_) => {
                return Err(fault("is not empty, and `weft init` did not write it; name another folder".to_owned()));
            }
        };
        Ok(Self { before })
    }

    /// The text of a secret of the operator's; made if it is missing.
    pub(super) fn secret(&self, name: &'static str, make: impl FnOnce() -> String) -> Result<String, NodeError> {
        let path = self.before.as_ref().map(|folder| folder.join(name)).filter(|path| path.exists());
        path.map_or_else(|| Ok(make()), |path| key::read_private(&path, "begin another folder"))
    }
}

/// Random bytes in hexadecimal digits, 16 of them for each count.
///
/// # Panics
/// Without a kernel that has random numbers.
pub(super) fn random_hex(count: usize) -> String {
    let part = || format!("{:032x}", sys::random_u128().expect("getrandom is in every kernel that runs this"));
    (0..count).map(|_| part()).collect()
}

/// Writes the deployment, in the place of what was there.
pub(super) fn write(
    network: Network,
    out: &Path,
    vault: &Vault,
    deployment: &Deployment,
) -> Result<Summary, NodeError> {
    let (new, old) = (beside(out, "new")?, beside(out, "old")?);
    remove_ours(&new)?;
    remove_ours(&old)?;
    folder(&new, 0o700)?;
    file(&new.join(MARK), network.word(), 0o644)?;
    let operator = write_operator(&new.join(OPERATOR), vault, deployment)?;
    let mut hosts = Vec::new();
    for host in &deployment.hosts {
        hosts.push(write_host(&new, network, host)?);
    }
    hosts.push(operator);
    if vault.before.is_some() {
        fs::rename(out, &old).map_err(NodeError::at("moving", out))?;
    }
    fs::rename(&new, out).map_err(NodeError::at("making", out))?;
    remove_ours(&old)?;
    Ok(Summary { schema_version: 1, network, hosts })
}

fn beside(out: &Path, ending: &str) -> Result<PathBuf, NodeError> {
    let why = || "is no name for a folder that is put in its place as a whole".to_owned();
    let name = out.file_name().ok_or_else(|| NodeError::ConfigFile { path: out.to_owned(), why: why() })?;
    Ok(out.with_file_name(format!("{}.{ending}", name.to_string_lossy())))
}

/// What an interrupted run left.
fn remove_ours(path: &Path) -> Result<(), NodeError> {
    if !path.exists() {
        return Ok(());
    }
    if !path.join(MARK).exists() {
        let why = "is in the way; move it".to_owned();
        return Err(NodeError::ConfigFile { path: path.to_owned(), why });
    }
    fs::remove_dir_all(path).map_err(NodeError::at("removing", path))
}

fn write_operator(path: &Path, vault: &Vault, deployment: &Deployment) -> Result<HostSummary, NodeError> {
    let mut files = Vec::new();
    folder(path, 0o700)?;
    for (name, text) in &deployment.secrets {
        files.push(written(path, name, text, true)?);
    }
    if let Some(wanted) = &deployment.certificates {
        let tls = path.join(TLS);
        folder(&tls, 0o700)?;
        if let Some(before) = vault.before.as_ref().map(|folder| folder.join(TLS)).filter(|tls| tls.exists()) {
            copy_files(&before, &tls)?;
        }
        certs::make(&tls, wanted)?;
        files.extend(listed(&tls)?);
    }
    Ok(HostSummary { host: OPERATOR.to_owned(), services: Vec::new(), files })
}

fn write_host(root: &Path, network: Network, host: &Host) -> Result<HostSummary, NodeError> {
    let path = root.join(&host.name);
    // Others than root go through it: a directory server's own user.
    folder(&path, 0o711)?;
    let mut files = Vec::new();
    for one in &host.files {
        files.push(written(&path, one.name, &one.text, one.secret)?);
    }
    if host.certificate {
        folder(&path.join(TLS), 0o711)?;
        for (name, secret) in [("ca.pem", false), ("server.pem", false), ("server.key", true)] {
            let from = root.join(OPERATOR).join(TLS).join(name);
            let text = fs::read_to_string(&from).map_err(NodeError::at("reading", &from))?;
            files.push(written(&path, &format!("{TLS}/{name}"), &text, secret)?);
        }
    }
    if !host.daemons.is_empty() {
        files.push(written(&path, "enable.sh", &readme::enable(host), false)?);
    }
    files.push(written(&path, "README", &readme::readme(network, host), false)?);
    Ok(HostSummary { host: host.name.clone(), services: readme::units(host), files })
}

fn written(root: &Path, name: &str, text: &str, secret: bool) -> Result<FileSummary, NodeError> {
    let mode = if secret { 0o600 } else { 0o644 };
    file(&root.join(name), text, mode)?;
    Ok(FileSummary { file: name.to_owned(), mode: format!("{mode:04o}") })
}

fn listed(tls: &Path) -> Result<Vec<FileSummary>, NodeError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(tls).map_err(NodeError::at("reading", tls))? {
        let entry = entry.map_err(NodeError::at("reading", tls))?;
        let mode = entry.metadata().map_err(NodeError::at("reading", tls))?.permissions().mode() & 0o777;
        files.push(FileSummary {
            file: format!("{TLS}/{}", entry.file_name().to_string_lossy()),
            mode: format!("{mode:04o}"),
        });
    }
    files.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(files)
}

fn copy_files(from: &Path, to: &Path) -> Result<(), NodeError> {
    for entry in fs::read_dir(from).map_err(NodeError::at("reading", from))? {
        let path = entry.map_err(NodeError::at("reading", from))?.path();
        let name = path.file_name().expect("an entry has a name").to_owned();
        fs::copy(&path, to.join(name)).map_err(NodeError::at("copying", &path))?;
    }
    Ok(())
}

/// A folder of this mode, whatever the umask.
fn folder(path: &Path, mode: u32) -> Result<(), NodeError> {
    let made = DirBuilder::new().mode(mode).create(path);
    made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode))).map_err(NodeError::at("making", path))
}

/// A file that is nobody else's from the start.
fn file(path: &Path, text: &str, mode: u32) -> Result<(), NodeError> {
    let write = |mut file: File| {
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    };
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.and_then(write).map_err(NodeError::at("writing", path))
}
