//! The file system that keeps maps and links alive while no process holds them.
//!
//! Every mount of bpffs is an instance of its own, so weft's daemons use one mount and labs another, and neither shows up in nor
//! disturbs the system's `/sys/fs/bpf`.

use std::fs;
use std::path::Path;

use rustix::fs::statfs;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::error::DatapathError;

/// Where weft's daemons mount it.
pub const MOUNT_POINT: &str = "/run/weft/bpf";

/// `BPF_FS_MAGIC` of the kernel's `linux/magic.h`.
const MAGIC: u64 = 0xcafe_4a11;

/// Whether `path` is on a bpffs.
pub fn is_mounted(path: impl AsRef<Path>) -> bool {
    statfs(path.as_ref()).is_ok_and(|info| info.f_type as u64 == MAGIC)
}

/// Makes the directory `path` a bpffs, unless it is on one already. Returns whether it was mounted by this call.
///
/// # Errors
/// [`DatapathError::NoRights`] or [`DatapathError::Pin`].
pub fn ensure_mounted(path: impl AsRef<Path>) -> Result<bool, DatapathError> {
    let path = path.as_ref();
    if is_mounted(path) {
        return Ok(false);
    }
    let mode = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    fs::create_dir_all(path).map_err(|source| failed("creating", path, source))?;
    match rustix::mount::mount("bpf", path, "bpf", mode, c"mode=0700") {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::ACCESS) => {
            Err(DatapathError::NoRights { what: format!("mounting a bpffs at {}", path.display()) })
        }
        Err(Errno::NODEV) => Err(DatapathError::NoEbpf { what: format!("mounting a bpffs at {}", path.display()) }),
        Err(errno) => Err(failed("mounting a bpffs at", path, errno.into())),
    }
}

/// Undoes [`ensure_mounted`]: everything pinned there goes with it. Returns whether there was something to unmount.
///
/// # Errors
/// [`DatapathError::Pin`], for example while a process has its working directory there.
pub fn unmount(path: impl AsRef<Path>) -> Result<bool, DatapathError> {
    let path = path.as_ref();
    if !is_mounted(path) {
        return Ok(false);
    }
    rustix::mount::unmount(path, UnmountFlags::empty()).map_err(|errno| failed("unmounting", path, errno.into()))?;
    fs::remove_dir(path).map_err(|source| failed("removing", path, source))?;
    Ok(true)
}

fn failed(what: &'static str, path: &Path, source: std::io::Error) -> DatapathError {
    DatapathError::Pin { what, path: path.to_owned(), source }
}
