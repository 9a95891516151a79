//! Named network namespaces, compatible with `ip netns`: a bind mount per namespace under `/run/netns`.
//!
//! No function here changes the calling thread's namespace: whatever runs in another one runs on a thread of its own.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::error::LabError;
use crate::home::{NETNS_DIR, RUN_DIR, lock, names_in, namespace_path};

/// Marks that weft made [`NETNS_DIR`] a mount point, so that it may undo that.
const MADE_MARKER: &str = "netns-dir-made";

/// Creates namespaces and calls `prepare` inside each, in order, on one thread of its own.
pub(crate) fn create(
    names: &[String],
    mut prepare: impl FnMut(usize) -> Result<(), LabError> + Send,
) -> Result<(), LabError> {
    prepare_directory()?;
    on_own_thread(|| {
        for (index, name) in names.iter().enumerate() {
            create_one(name)?;
            prepare(index)?;
        }
        Ok(())
    })
}

/// Creates one namespace; the calling thread is in it afterwards.
fn create_one(name: &str) -> Result<(), LabError> {
    let path = namespace_path(name);
    let what = || format!("create namespace {}", path.display());
    OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            LabError::NamespaceExists(name.to_owned())
        } else {
            LabError::io(what())(error)
        }
    })?;
    // SAFETY: only the network namespace is unshared, no file table, and the thread ends with the caller's closure.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(LabError::errno(what()))?;
    mount_bind("/proc/thread-self/ns/net", &path).map_err(LabError::errno(what()))
}

/// Makes [`NETNS_DIR`] a shared mount as iproute2 does, so that other mount namespaces see deletions.
fn prepare_directory() -> Result<(), LabError> {
    let _lock = lock()?;
    fs::create_dir_all(NETNS_DIR).map_err(LabError::io(format!("create {NETNS_DIR}")))?;
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    if mount_change(NETNS_DIR, shared).is_ok() {
        return Ok(());
    }
    let marker = Path::new(RUN_DIR).join(MADE_MARKER);
    fs::write(&marker, "").map_err(LabError::io(format!("write {}", marker.display())))?;
    mount_bind_recursive(NETNS_DIR, NETNS_DIR).map_err(LabError::errno(format!("mount {NETNS_DIR}")))?;
    mount_change(NETNS_DIR, shared).map_err(LabError::errno(format!("share {NETNS_DIR}")))
}

/// Undoes [`prepare_directory`] if weft did it and no namespace is left. The caller holds the lock.
pub(crate) fn release_directory() {
    let marker = Path::new(RUN_DIR).join(MADE_MARKER);
    if marker.exists() && names_in(Path::new(NETNS_DIR)).is_empty() && unmount(NETNS_DIR, UnmountFlags::empty()).is_ok()
    {
        let _ = fs::remove_dir(NETNS_DIR);
        let _ = fs::remove_file(marker);
    }
}

/// Deletes namespaces; those that are gone already do not count as errors. The kernel frees them a little later.
pub(crate) fn delete(names: &[String]) -> Result<(), LabError> {
    for name in names {
        let path = namespace_path(name);
        // A file that is no mount point (a creation cut short) is only removed.
        let _ = unmount(&path, UnmountFlags::DETACH);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(LabError::io(format!("remove {}", path.display()))(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Moves the calling thread into a namespace, for threads that exist for that purpose.
pub(crate) fn enter(path: &Path) -> Result<(), LabError> {
    let what = || format!("enter namespace {}", path.display());
    let file = File::open(path).map_err(LabError::io(what()))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(LabError::errno(what()))
}

/// Runs `work` in a namespace, on a thread of its own. Sockets opened and processes started there stay in it.
pub fn in_namespace<T: Send>(path: &Path, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    on_own_thread(|| {
        enter(path)?;
        Ok(work())
    })
}

/// Runs `work` in a new namespace without a name, which is gone when `work` is done.
pub(crate) fn in_fresh_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    on_own_thread(|| {
        // SAFETY: only the network namespace is unshared, no file table, and the thread ends with the closure.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(LabError::errno("create a network namespace"))?;
        Ok(work())
    })
}

/// Runs `visit` in each namespace in turn, spread over `threads` threads; the first error ends its thread.
pub(crate) fn visit_all<T: Sync>(
    items: &[T],
    threads: usize,
    path_of: impl Fn(&T) -> std::path::PathBuf + Sync,
    visit: impl Fn(&T) -> Result<(), LabError> + Sync,
) -> Result<(), LabError> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            enter(&path_of(item))?;
            visit(item)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(join).fold(Ok(()), Result::and)
    })
}

fn on_own_thread<T: Send>(work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
    std::thread::scope(|scope| join(scope.spawn(work)))
}

/// Joins a thread and passes its panic on, so that a failed assertion in a test keeps its message.
fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Inode numbers of those of the named namespaces that exist: what `/proc/PID/ns/net` shows.
pub(crate) fn inodes(names: &[String]) -> BTreeMap<u64, String> {
    let inode = |name: &String| fs::metadata(namespace_path(name)).ok().map(|data| (data.ino(), name.clone()));
    names.iter().filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_made_entered_and_removed() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to create namespaces");
            return;
        }
        let names = vec![format!("weft-tn{}-x", std::process::id())];
        create(&names, |_| Ok(())).expect("created");
        let path = namespace_path(&names[0]);
        let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
        let inside = in_namespace(&path, || fs::metadata("/proc/thread-self/ns/net").unwrap().ino()).unwrap();
        assert_ne!(inside, own);
        assert_eq!(inodes(&names).keys().copied().collect::<Vec<_>>(), [inside]);
        assert_eq!(
            fs::metadata("/proc/thread-self/ns/net").unwrap().ino(),
            own,
            "the calling thread stays where it was"
        );
        assert!(matches!(create(&names, |_| Ok(())), Err(LabError::NamespaceExists(_))));
        delete(&names).unwrap();
        assert!(!path.exists());
        delete(&names).expect("deleting twice is no error");
        assert!(in_namespace(&path, || ()).is_err());
    }
}
