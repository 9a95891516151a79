//! Removes a folder and all that is in it, and nothing else, whoever changes the tree meanwhile.
//!
//! Every step goes from an open directory to a name in it: no path is looked up twice, no link is followed, and no mount point
//! is crossed (`RESOLVE_NO_XDEV`, which sees bind mounts, too). Trees may be of any depth: what is deeper than one level is
//! moved up before it is looked at, so that only two directories are open at any time.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, RenameFlags, ResolveFlags, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::error::LabError;
use crate::folder::{Folder, open_directory};

/// How often a directory that others fill meanwhile is emptied again.
const ROUNDS: usize = 64;

/// Removes the directory `name` of a folder with all that is in it. False if it was not there.
///
/// # Errors
/// [`LabError::UnsafeFolder`] if it is a link, a file, or something is mounted in it: then nothing of that is touched.
pub(crate) fn remove_tree(parent: &Folder, name: &str) -> Result<bool, LabError> {
    let path = parent.path().join(name);
    let objects = |why: String| LabError::UnsafeFolder { path: path.clone(), why };
    if let Some(mount) = mount_in(&path) {
        return Err(objects(format!("has a mount in it (end it first: umount {})", mount.display())));
    }
    let failed = |error| match error {
        Errno::LOOP | Errno::NOTDIR => objects("is no directory but a link or a file".to_owned()),
        Errno::XDEV | Errno::BUSY => objects("has a mount in it (see /proc/self/mountinfo)".to_owned()),
        error => LabError::errno(format!("remove {}", path.display()))(error),
    };
    remove(parent.as_fd(), name).map_err(failed)
}

/// Removes a directory of a folder if nothing is in it; whether it did.
pub(crate) fn remove_if_empty(parent: &Folder, name: &str) -> bool {
    unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
}

/// A mount at or below a path, in this process's view.
fn mount_in(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    // Field 5; white space is written in octal, which no name of ours has.
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    points.map(PathBuf::from).find(|point| point.starts_with(&path))
}

fn remove(parent: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
    let top = match open_directory(parent, name.as_ref(), ResolveFlags::NO_XDEV) {
        Err(Errno::NOENT) => return Ok(false),
        opened => opened?,
    };
    let mut number = 0;
    for _ in 0..ROUNDS {
        empty(top.as_fd(), &mut number)?;
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(false),
            result => return result.map(|()| true),
        }
    }
    Err(Errno::NOTEMPTY)
}

/// Empties a directory, level by level.
fn empty(top: BorrowedFd<'_>, number: &mut u64) -> Result<(), Errno> {
    loop {
        let directories = remove_files(top)?;
        if directories.is_empty() {
            return Ok(());
        }
        for name in directories {
            lift(top, &name, number)?;
        }
    }
}

/// Removes a directory of `top` after moving its own directories up to `top`.
fn lift(top: BorrowedFd<'_>, name: &CStr, number: &mut u64) -> Result<(), Errno> {
    let directory = match open_directory(top, OsStr::from_bytes(name.to_bytes()), ResolveFlags::NO_XDEV) {
        // Somebody was faster, or put something else there: the next look at `top` sees what.
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(()),
        opened => opened?,
    };
    for inner in remove_files(directory.as_fd())? {
        move_up(directory.as_fd(), &inner, top, number)?;
    }
    match unlinkat(top, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        result => result,
    }
}

/// Moves a directory to a new name in `top`.
fn move_up(from: BorrowedFd<'_>, name: &CStr, top: BorrowedFd<'_>, number: &mut u64) -> Result<(), Errno> {
    loop {
        *number += 1;
        let free = format!("removed-{number}");
        match renameat_with(from, name, top, free, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(()),
            result => return result,
        }
    }
}

/// Removes what is no directory from a directory; the names of its directories.
fn remove_files(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut directories = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => directories.push(name.to_owned()),
            Err(error) => return Err(error),
        }
    }
    Ok(directories)
}

#[cfg(test)]
mod tests;
