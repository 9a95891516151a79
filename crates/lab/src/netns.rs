//! Named network namespaces, compatible with `ip netns`: a bind mount per namespace under `/run/netns`.
//!
//! No function here changes the calling thread's namespace: whatever runs in another one runs on a thread of its own.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, fstatfs, openat, statat, statx, unlinkat};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::error::LabError;
use crate::folder::Folder;
use crate::home::{NETNS_DIR, RUN_DIR, lock, namespace_path};
use crate::owner::Owner;

/// Says which mount on [`NETNS_DIR`] weft has made, so that it may undo that and no other's.
const MADE_MARKER: &str = "netns-dir-made";
/// In its place until there is one.
const UNDER_WAY: &str = "";
/// `NSFS_MAGIC` of the kernel's `linux/magic.h`.
const NSFS_MAGIC: i64 = 0x6e73_6673;

/// Creates namespaces of this process and calls `prepare` inside each, in order, on one thread of its own.
pub(crate) fn create(
    names: &[String],
    prepare: impl FnMut(usize) -> Result<(), LabError> + Send,
) -> Result<(), LabError> {
    create_for(&Owner::this_process(), names, prepare)
}

/// As [`create`], for somebody else.
pub(crate) fn create_for(
    owner: &Owner,
    names: &[String],
    mut prepare: impl FnMut(usize) -> Result<(), LabError> + Send,
) -> Result<(), LabError> {
    prepare_directory()?;
    on_own_thread(|| {
        for (index, name) in names.iter().enumerate() {
            create_one(owner, name)?;
            prepare(index)?;
        }
        Ok(())
    })
}

/// Creates one namespace; the calling thread is in it afterwards. It has its owner's mark before it has a name, and so has the
/// file that it is mounted on.
fn create_one(owner: &Owner, name: &str) -> Result<(), LabError> {
    let path = namespace_path(name);
    let what = || format!("create namespace {}", path.display());
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            LabError::NamespaceExists(name.to_owned())
        } else {
            LabError::io(what())(error)
        }
    })?;
    file.write_all(owner.to_string().as_bytes()).map_err(LabError::io(what()))?;
    // SAFETY: only the network namespace is unshared, no file table, and the thread ends with the caller's closure.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(LabError::errno(what()))?;
    owner.mark_namespace().map_err(LabError::io(what()))?;
    mount_bind("/proc/thread-self/ns/net", &path).map_err(LabError::errno(what()))
}

/// Makes [`NETNS_DIR`] a shared mount as iproute2 does, so that other mount namespaces see deletions.
fn prepare_directory() -> Result<(), LabError> {
    let _lock = lock()?;
    Folder::make(Path::new(NETNS_DIR), 0o755)?;
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    if mount_change(NETNS_DIR, shared).is_ok() {
        return Ok(());
    }
    let marker = Path::new(RUN_DIR).join(MADE_MARKER);
    let write = |text: &str| fs::write(&marker, text).map_err(LabError::io(format!("write {}", marker.display())));
    // Before there is a mount: whoever is killed between the two leaves one that is known to be ours.
    write(UNDER_WAY)?;
    mount_bind_recursive(NETNS_DIR, NETNS_DIR).map_err(|error| {
        let _ = fs::remove_file(&marker);
        LabError::errno(format!("mount {NETNS_DIR}"))(error)
    })?;
    write(&mounted().map_err(LabError::io(format!("look at {NETNS_DIR}")))?)?;
    mount_change(NETNS_DIR, shared).map_err(LabError::errno(format!("share {NETNS_DIR}")))
}

/// What tells the mount on [`NETNS_DIR`] from all others: the mount namespace that this process sees it in, and its number there.
fn mounted() -> io::Result<String> {
    /// `STATX_MNT_ID_UNIQUE` of the kernel's `linux/stat.h`, from 6.8 on: a number that is not given again. Older kernels do not look at it.
    const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
    let number = statx(CWD, NETNS_DIR, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID | UNIQUE)?.stx_mnt_id;
    Ok(format!("{} {number}", fs::metadata("/proc/self/ns/mnt")?.ino()))
}

/// Undoes [`prepare_directory`] if weft did it and no namespace is left. The caller holds the lock.
pub(crate) fn release_directory() {
    let marker = Path::new(RUN_DIR).join(MADE_MARKER);
    let is_ours = || {
        let made = fs::read_to_string(&marker);
        made.is_ok_and(|made| made == UNDER_WAY || mounted().is_ok_and(|mounted| made == mounted))
    };
    let is_empty = || matches!(Folder::open(Path::new(NETNS_DIR)), Ok(Some(dir)) if dir.all_names().is_empty());
    let flags = UnmountFlags::NOFOLLOW;
    if is_ours() && is_empty() && unmount(NETNS_DIR, flags).is_ok() {
        let _ = fs::remove_dir(NETNS_DIR);
        let _ = fs::remove_file(marker);
    }
}

/// What a name in [`NETNS_DIR`] stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A namespace that weft made: whose it is, and its inode, which `/proc/PID/ns/net` shows.
    Ours(Owner, u64),
    /// A file that weft made for a namespace, and no more: the making was cut short. Without an owner it is empty.
    Stub(Option<Owner>),
    /// Not weft's, and how that is known.
    Foreign(&'static str),
}

/// What names stand for; those that are gone are left out. No link is followed, and nothing changes.
pub(crate) fn look_at(names: &[String]) -> Result<Vec<(String, Found)>, LabError> {
    let Some(directory) = Folder::open(Path::new(NETNS_DIR))? else { return Ok(Vec::new()) };
    on_own_thread(|| {
        let look = |name: &String| Some((name.clone(), look_at_one(&directory, name)?));
        Ok(names.iter().filter_map(look).collect())
    })
}

/// What all names with a beginning stand for.
pub(crate) fn look_at_all(beginning: &str) -> Result<Vec<(String, Found)>, LabError> {
    let names = Folder::open(Path::new(NETNS_DIR))?.map(|directory| directory.all_names()).unwrap_or_default();
    look_at(&names.into_iter().filter(|name| name.starts_with(beginning)).collect::<Vec<_>>())
}

/// Leaves the calling thread in another namespace.
fn look_at_one(directory: &Folder, name: &str) -> Option<Found> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = match openat(directory, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return None,
        Err(Errno::LOOP) => return Some(Found::Foreign("is a link")),
        Err(_) => return Some(Found::Foreign("cannot be opened")),
        Ok(fd) => File::from(fd),
    };
    if !fstatfs(&file).is_ok_and(|found| found.f_type == NSFS_MAGIC) {
        return Some(Owner::of_file(&mut file).map_or(Found::Foreign("is no namespace"), Found::Stub));
    }
    let inode = file.metadata().ok()?.ino();
    if fs::metadata("/proc/1/ns/net").is_ok_and(|init| init.ino() == inode) {
        return Some(Found::Foreign("is this machine's own namespace"));
    }
    if move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).is_err() {
        return Some(Found::Foreign("is no network namespace"));
    }
    Some(match Owner::of_namespace() {
        Ok(Some(owner)) => Found::Ours(owner, inode),
        _ => Found::Foreign("was not made by weft"),
    })
}

/// Deletes those of the named namespaces that are weft's; those that are gone already do not count as errors. The kernel frees
/// them a little later.
pub(crate) fn delete(names: &[String]) -> Result<(), LabError> {
    let Some(directory) = Folder::open(Path::new(NETNS_DIR))? else { return Ok(()) };
    for (name, found) in look_at(names)? {
        let path = namespace_path(&name);
        match found {
            Found::Foreign(_) => continue,
            Found::Stub(_) => {}
            Found::Ours(_, inode) => {
                let now = statat(&directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
                if now.is_ok_and(|now| now.st_ino == inode) {
                    let _ = unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
                }
            }
        }
        match unlinkat(&directory, name.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(LabError::errno(format!("remove {}", path.display()))(error)),
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
pub(crate) fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_made_entered_and_removed() {
        if !weft_needs::root() {
            return;
        }
        let names = vec![format!("weft-tn{}-x", std::process::id())];
        create(&names, |_| Ok(())).expect("created");
        let path = namespace_path(&names[0]);
        let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
        let inside = in_namespace(&path, || fs::metadata("/proc/thread-self/ns/net").unwrap().ino()).unwrap();
        assert_ne!(inside, own);
        assert_eq!(look_at(&names).unwrap(), [(names[0].clone(), Found::Ours(Owner::this_process(), inside))]);
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
