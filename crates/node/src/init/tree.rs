//! The folders, as they are written: beside `out` first, then put in its place as a whole.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Deployment, FileSummary, Host, HostSummary, Network, Summary, readme};
use crate::error::NodeError;
use crate::{certs, key, sys};

/// The folder of whoever runs the network: secrets that are no host's alone, the CA, certificates of clients.
pub(super) const OPERATOR: &str = "operator";
/// In a folder that this made; its text is the network's word, then a line for each host's file: its digest and its name.
const MARK: &str = ".weft-init";
const TLS: &str = "tls";

/// Secrets of the network: those of the folder, if it was written before, or new ones.
pub(super) struct Vault {
    /// Their folder.
    before: Option<PathBuf>,
    /// Of the hosts' files as they were written, by `HOST/FILE`.
    digests: BTreeMap<String, String>,
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
        let mark = fs::read_to_string(out.join(MARK));
        let mut digests = BTreeMap::new();
        let before = match mark.as_deref().map(|mark| mark.lines().next().unwrap_or_default()) {
            Ok(word) if word.trim() == network.word() => {
                let lines = mark.iter().flat_map(|mark| mark.lines().skip(1)).filter_map(|line| line.split_once(' '));
                digests.extend(lines.map(|(digest, name)| (name.to_owned(), digest.to_owned())));
                Some(out.join(OPERATOR))
            }
            Ok(word) => {
                return Err(fault(format!("was written by `weft init {}`; name another folder", word.trim())));
            }
            Err(_) if is_empty => None,
            Err(_) => {
                return Err(fault("is not empty, and `weft init` did not write it; name another folder".to_owned()));
            }
        };
        Ok(Self { before, digests })
    }

    /// Refuses to lose what people have changed in hosts' files since they were written: `texts` are the files that come.
    fn refuse_edited(&self, out: &Path, texts: &BTreeMap<String, String>) -> Result<(), NodeError> {
        for (name, digest) in &self.digests {
            let path = out.join(name);
            let Ok(there) = fs::read_to_string(&path) else { continue };
            if digest_of(&there) == *digest || texts.get(name) == Some(&there) {
                continue;
            }
            let what = texts.get(name).map_or_else(String::new, |new| format!(" ({})", first_difference(&there, new)));
            let why = format!(
                "was changed since `weft init` wrote it{what}; say it in the hosts file or keep the file elsewhere, then --force writes \
                 it anew"
            );
            return Err(NodeError::ConfigFile { path, why });
        }
        Ok(())
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

/// SHA-256 of a file's text, in hexadecimal digits.
fn digest_of(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first line in which a file is not what it becomes.
fn first_difference(there: &str, new: &str) -> String {
    let (mut old_lines, mut new_lines) = (there.lines(), new.lines());
    for number in 1.. {
        match (old_lines.next(), new_lines.next()) {
            (None, None) => break,
            (old, new) if old == new => {}
            (Some(old), _) => return format!("line {number}: `{}`", old.trim()),
            (None, Some(new)) => return format!("line {number}, `{}`, is not there", new.trim()),
        }
    }
    "blanks at the ends of lines".to_owned()
}

/// The hosts' files by `HOST/FILE`, without certificates.
fn texts(network: Network, deployment: &Deployment) -> BTreeMap<String, String> {
    let of_host = |host: &Host| {
        let own = host.files.iter().map(|file| (file.name, file.text.clone()));
        let enable = (!host.daemons.is_empty()).then(|| ("enable.sh", readme::enable(host)));
        let all = own.chain(enable).chain([("README", readme::readme(network, host))]);
        all.map(|(name, text)| (format!("{}/{name}", host.name), text)).collect::<Vec<_>>()
    };
    deployment.hosts.iter().flat_map(of_host).collect()
}

/// Writes the deployment, in the place of what was there; with `force` whatever was changed there.
pub(super) fn write(
    network: Network,
    out: &Path,
    vault: &Vault,
    deployment: &Deployment,
    force: bool,
) -> Result<Summary, NodeError> {
    let texts = texts(network, deployment);
    if !force {
        vault.refuse_edited(out, &texts)?;
    }
    let (new, old) = (beside(out, "new")?, beside(out, "old")?);
    remove_ours(&new)?;
    remove_ours(&old)?;
    folder(&new, 0o700)?;
    let digests = texts.iter().map(|(name, text)| format!("{} {name}\n", digest_of(text)));
    file(&new.join(MARK), &format!("{}\n{}", network.word(), digests.collect::<String>()), 0o644)?;
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
