//! Key files, which nobody but the daemon's user may read. VL2's are 32 hexadecimal digits: a directory server's holds the
//! secret, an agent's the key that was derived from it for the agent's service and LA. An RBridge's is described where it is
//! read.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use weft_wire::directory::{Key, KeyError, Secret};

use crate::error::NodeError;

/// Longest key file, bytes.
const LEN_MAX: u64 = 65_536;

/// Reads the secret of a directory server.
pub(crate) fn read_secret(path: &Path) -> Result<Secret, NodeError> {
    read(path, &format!("make one with `(umask 077; openssl rand -hex 16 > {})`", path.display()))
}

/// Whose key is derived from that secret.
#[derive(Clone, Copy, Debug)]
pub struct Derived {
    /// Where its datagrams come from, if that is known.
    pub la: Option<Ipv4Addr>,
    /// Of the client.
    pub service: u32,
}

impl Derived {
    fn read(self, path: &Path) -> Result<Key, NodeError> {
        let (service, file) = (self.service, path.display());
        let la = self.la.map_or("LA".to_owned(), |la| la.to_string());
        let make = format!(
            "on a directory server `weft directory key /etc/weft/directory.key --la {la} --service {service} --write \
             FILE`, then copy it here as {file}, mode 0600"
        );
        read(path, &make)
    }
}

fn read<T: FromStr<Err = KeyError>>(path: &Path, make: &str) -> Result<T, NodeError> {
    let text = read_private(path, make)?;
    text.parse().map_err(|error: KeyError| NodeError::KeyFile { path: path.to_owned(), why: error.to_string() })
}

/// The text of a file that others may not read; refuses one that they may. `make` says how to make one.
pub(crate) fn read_private(path: &Path, make: &str) -> Result<String, NodeError> {
    let fault = |why: String| NodeError::KeyFile { path: path.to_owned(), why };
    let mut file = File::open(path).map_err(|error| fault(format!("{error}; {make}")))?;
    let metadata = file.metadata().map_err(|error| fault(error.to_string()))?;
    if !metadata.is_file() {
        return Err(fault(format!("is not a file; {make}")));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o177 != 0 {
        return Err(fault(format!("its mode {mode:04o} lets others use it; run `chmod 600 {}`", path.display())));
    }
    let mut text = String::new();
    if metadata.len() > LEN_MAX {
        return Err(fault(format!("is longer than {LEN_MAX} bytes; {make}")));
    }
    Read::by_ref(&mut file).take(LEN_MAX).read_to_string(&mut text).map_err(|error| fault(error.to_string()))?;
    Ok(text)
}

/// The key of the agent of `service` whose datagrams come from `la`, derived from the secret in a file.
///
/// # Errors
/// [`NodeError::KeyFile`].
pub fn derive(secret: &Path, service: u32, la: Ipv4Addr) -> Result<Key, NodeError> {
    read_secret(secret).map(|secret| secret.derive(service, la))
}

/// Writes a key file that only this user may read; one that is there stays.
///
/// # Errors
/// [`NodeError::KeyFile`].
pub fn write(path: &Path, key: &Key) -> Result<(), NodeError> {
    let fault = |error: std::io::Error| NodeError::KeyFile {
        path: path.to_owned(),
        why: format!("{error}; remove it first, or name another file"),
    };
    write_new(path, &format!("{}\n", key.to_hex()), 0o600).and_then(|()| sync_folder(path)).map_err(fault)
}

/// Writes a file whole: its mode is right from the start, an interruption leaves the old one, and after a loss of power there
/// is one of the two.
pub(crate) fn replace(path: &Path, content: &str, mode: u32) -> Result<(), NodeError> {
    let new = path.with_extension("new");
    let _ = std::fs::remove_file(&new);
    let written = write_new(&new, content, mode).and_then(|()| std::fs::rename(&new, path));
    written.and_then(|()| sync_folder(path)).map_err(NodeError::at("writing", path))
}

fn write_new(path: &Path, content: &str, mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

/// Makes a folder and those that lead to it, so that they are there after a loss of power.
pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    std::fs::create_dir_all(path)?;
    missing.into_iter().rev().try_for_each(sync_folder)
}

/// A name is on the disk once its folder is.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.map_or_else(|| PathBuf::from("."), Path::to_owned))?.sync_all()
}

/// The key in the file, or open mode's key if no file is named.
///
/// # Errors
/// [`NodeError::KeyFile`].
pub fn read_or_open(path: Option<&Path>, whose: Derived) -> Result<Key, NodeError> {
    path.map_or(Ok(Key::OPEN), |path| whose.read(path))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const AGENT: Derived = Derived { la: Some(Ipv4Addr::new(10, 64, 0, 2)), service: 7 };

    fn file_with(text: &str, mode: u32) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write(&path, text).unwrap();
        set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn a_private_file_of_32_digits_is_a_key() {
        let (_dir, path) = file_with("000102030405060708090a0b0c0d0e0f\n", 0o600);
        assert!(AGENT.read(&path).is_ok() && read_secret(&path).is_ok());
    }

    #[test]
    fn a_derived_key_is_written_once_and_read_again() {
        let (dir, secret) = file_with("000102030405060708090a0b0c0d0e0f\n", 0o600);
        let la = Ipv4Addr::new(10, 64, 0, 2);
        let key = derive(&secret, 7, la).unwrap();
        assert_ne!(key.to_hex(), derive(&secret, 8, la).unwrap().to_hex());
        let path = dir.path().join("agent.key");
        super::write(&path, &key).unwrap();
        assert_eq!(AGENT.read(&path).unwrap().to_hex(), key.to_hex());
        assert!(super::write(&path, &key).unwrap_err().to_string().contains("remove it first"));
    }

    /// The calls that put something on the disk or give it its name below a folder, as strace saw them.
    fn kept(trace: &str, folder: &Path) -> Vec<String> {
        let folder = folder.to_str().unwrap();
        let called = |line: &str| {
            let (call, arguments) = line.split_once('(')?;
            let call = call.rsplit(' ').next()?;
            // A descriptor with its path, or the name that something gets.
            let path = match call {
                "fsync" => arguments.split(['<', '>']).nth(1)?,
                "mkdir" => arguments.split('"').nth(1)?,
                _ => arguments.split('"').nth(3)?,
            };
            let is_done = line.ends_with("= 0");
            (is_done && path.starts_with(folder)).then(|| format!("{call} {}", &path[folder.len()..]))
        };
        trace.lines().filter_map(called).collect()
    }

    #[test]
    fn what_is_written_is_on_the_disk_with_its_name() {
        const FOLDER: &str = "WEFT_KEYS_ARE_WRITTEN_IN";
        if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) {
            make_folder(&folder.join("a/b")).unwrap();
            super::write(&folder.join("new.key"), &Key::OPEN).unwrap();
            return replace(&folder.join("a/old.key"), "secret", 0o600).unwrap();
        }
        if !weft_needs::program("strace") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (folder, trace) = (dir.path().canonicalize().unwrap(), dir.path().join("trace"));
        let outcome = std::process::Command::new("strace")
            .args(["-f", "-y", "-qq", "-e", "trace=fsync,mkdir,rename", "-o"])
            .arg(&trace)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "key::tests::what_is_written_is_on_the_disk_with_its_name"])
            .env(FOLDER, &folder)
            .output()
            .unwrap();
        assert!(outcome.status.success(), "{outcome:?}");
        let expected = [
            "mkdir /a",
            "mkdir /a/b",
            "fsync ",
            "fsync /a",
            "fsync /new.key",
            "fsync ",
            "fsync /a/old.new",
            "rename /a/old.key",
            "fsync /a",
        ];
        assert_eq!(kept(&std::fs::read_to_string(&trace).unwrap(), &folder), expected);
    }

    #[test]
    fn other_files_are_refused_with_the_remedy_and_without_the_secret() {
        let secret = "000102030405060708090a0b0c0d0e0";
        for (text, mode, says) in [
            ("000102030405060708090a0b0c0d0e0f", 0o640, "chmod 600"),
            ("000102030405060708090a0b0c0d0e0f", 0o604, "mode 0604"),
            (secret, 0o600, "31 characters"),
            ("", 0o600, "0 characters"),
        ] {
            let (_dir, path) = file_with(text, mode);
            let error = read_secret(&path).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("key file"), "{error}");
            assert!(!error.contains("0001020304") && !error.contains('\n'), "{error}");
        }
        assert!(read_secret(Path::new("/nonexistent/key")).unwrap_err().to_string().contains("openssl rand"));
        assert!(read_secret(Path::new("/")).unwrap_err().to_string().contains("not a file"));
    }

    #[test]
    fn who_lacks_a_derived_key_is_told_to_derive_it() {
        let error = AGENT.read(Path::new("/nonexistent/agent.key")).unwrap_err().to_string();
        assert!(error.contains("weft directory key /etc/weft/directory.key --la 10.64.0.2 --service 7"), "{error}");
        assert!(error.contains("/nonexistent/agent.key") && !error.contains("openssl"), "{error}");
    }
}
