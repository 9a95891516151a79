//! What a daemon leaves at work when it ends: its data path, pinned in a bpffs. A note beside its socket says where, so that
//! `weft stop` removes it when nobody answers there any more.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_datapath::{bpffs, hook, vxlan};

use crate::cards::Cards;
use crate::error::NodeError;
use crate::{DaemonKind, agent};

/// Traces of a daemon's data path that outlive the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    /// Folder on a bpffs with the data path's pins.
    pub(crate) pin_dir: PathBuf,
    /// A veth pair that the daemon made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pair: Option<String>,
}

impl Left {
    /// Notes it beside a socket that the daemon holds.
    pub(crate) fn note(&self, socket: &Path) -> Result<(), NodeError> {
        let path = note_of(socket);
        let new = path.with_extension("pins.new");
        let text = serde_json::to_vec(self).expect("it has no maps");
        let write = || {
            // Whatever is there is no file of ours to write through.
            let _ = fs::remove_file(&new);
            OpenOptions::new().write(true).create_new(true).mode(0o644).open(&new)?.write_all(&text)?;
            fs::rename(&new, &path)
        };
        write().map_err(NodeError::at("writing", &path))
    }

    /// The note of the daemon that had this socket; `None` if there is none that root or this user wrote.
    fn found(socket: &Path) -> Result<Option<Self>, NodeError> {
        let path = note_of(socket);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(NodeError::at("looking at", &path)(error)),
        };
        if !found.is_file() || ![0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
            return Ok(None);
        }
        let text = fs::read(&path).map_err(NodeError::at("reading", &path))?;
        Ok(serde_json::from_slice(&text).ok())
    }
}

/// Nothing is left there.
pub(crate) fn forget(socket: &Path) {
    let _ = fs::remove_file(note_of(socket));
}

fn note_of(socket: &Path) -> PathBuf {
    socket.with_extension("pins")
}

/// Removes the data path of the daemon with this socket, which is gone; says where it was pinned. `None`: nothing is known of one.
///
/// # Errors
/// [`NodeError`], naming what could not be removed.
pub(crate) fn remove(kind: DaemonKind, socket: &Path) -> Result<Option<PathBuf>, NodeError> {
    let Some(Left { pin_dir, pair }) = Left::found(socket)? else { return Ok(None) };
    let is_there = pin_dir.exists() && bpffs::is_mounted(&pin_dir);
    if is_there {
        hook::detach_all_pinned(&pin_dir)?;
    }
    if kind == DaemonKind::Vtep {
        vxlan::forget_host_routes();
    }
    Cards::open(socket)?.release()?;
    pair.iter().for_each(|near| agent::remove_pair(near));
    forget(socket);
    Ok(is_there.then_some(pin_dir))
}

/// The folder in which a daemon of this kind pins by default, if it exists on a bpffs.
pub(crate) fn usual_pins(kind: DaemonKind) -> Option<PathBuf> {
    let dir = Path::new(bpffs::MOUNT_POINT).join(kind.word());
    (kind.has_data_path() && dir.exists() && bpffs::is_mounted(&dir)).then_some(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_note_is_read_once_written_and_nobody_elses_file_is() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("vtep.sock");
        assert_eq!(Left::found(&socket).unwrap(), None);
        let left = Left { pin_dir: "/sys/fs/bpf/x".into(), pair: Some("weft0".to_owned()) };
        left.note(&socket).unwrap();
        left.note(&socket).unwrap();
        assert_eq!(Left::found(&socket).unwrap(), Some(left.clone()));
        forget(&socket);
        assert_eq!(Left::found(&socket).unwrap(), None);
        let elsewhere = dir.path().join("else");
        fs::write(&elsewhere, serde_json::to_vec(&left).unwrap()).unwrap();
        symlink(&elsewhere, note_of(&socket)).unwrap();
        assert_eq!(Left::found(&socket).unwrap(), None, "a link leads anywhere");
    }

    #[test]
    fn what_is_pinned_nowhere_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("switch.sock");
        let pins = dir.path().join("pins");
        fs::create_dir(&pins).unwrap();
        fs::write(pins.join("precious"), "").unwrap();
        assert_eq!(remove(DaemonKind::Switch, &socket).unwrap(), None);
        Left { pin_dir: pins.clone(), pair: None }.note(&socket).unwrap();
        assert_eq!(remove(DaemonKind::Switch, &socket).unwrap(), None, "it is on no bpffs");
        assert!(pins.join("precious").exists() && !note_of(&socket).exists());
    }
}
