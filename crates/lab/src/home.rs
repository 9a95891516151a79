//! Where labs keep their things: one place that knows every path and name, so that clean-up finds them all.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use weft_scenario::name;

use crate::error::LabError;
use crate::folder::Folder;
use crate::state::LabState;

/// Everything weft keeps while it runs: labs' things, and sockets of daemons.
pub const RUN_DIR: &str = "/run/weft";
/// One directory per lab.
pub const LABS_DIR: &str = "/run/weft/labs";
/// The bpffs of labs. Daemons have theirs elsewhere: [`weft_datapath::bpffs::MOUNT_POINT`].
pub const BPF_DIR: &str = "/run/weft/lab-bpf";
/// Records of control groups.
pub const GROUPS_DIR: &str = "/run/weft/groups";
/// Where iproute2 looks for named namespaces.
pub const NETNS_DIR: &str = "/run/netns";
/// Where FRR keeps sockets; a daemon started with `-N NAME` uses the directory NAME in it.
pub const FRR_DIR: &str = "/var/run/frr";
/// Where labs keep what must be on a disk: `/run` may be memory, and a store on it would measure nothing.
pub const STORES_DIR: &str = "/var/lib/weft/labs";
/// What every namespace of every lab begins with.
pub const PREFIX: &str = "weft-";

/// Refuses what breaks the rule of names.
pub fn check_lab_name(lab: &str) -> Result<(), LabError> {
    if name::is_usable(lab) { Ok(()) } else { Err(LabError::BadLabName(lab.to_owned())) }
}

/// Name of a node's namespace: `weft-<lab>-<node>`.
pub fn namespace_name(lab: &str, node: &str) -> String {
    format!("{PREFIX}{lab}-{node}")
}

/// File of a namespace.
pub fn namespace_path(name: &str) -> PathBuf {
    Path::new(NETNS_DIR).join(name)
}

/// Directory of a lab: its state, logs, sockets and keys.
pub fn lab_dir(lab: &str) -> PathBuf {
    Path::new(LABS_DIR).join(lab)
}

/// Directory of a lab's log files.
pub fn log_dir(lab: &str) -> PathBuf {
    lab_dir(lab).join("log")
}

/// Directory of the sockets, keys and stores of a lab's daemons.
pub fn socket_dir(lab: &str) -> PathBuf {
    lab_dir(lab).join("run")
}

/// Directory of a lab's stores.
pub fn store_dir(lab: &str) -> PathBuf {
    Path::new(STORES_DIR).join(lab)
}

/// Directory of a lab's pins on weft's bpffs, which has no dots in names.
pub fn pin_dir(lab: &str) -> PathBuf {
    Path::new(BPF_DIR).join(&*name::undotted(lab))
}

/// Directory of a node's pins in [`pin_dir`].
pub fn node_pin_dir(lab: &str, node: &str) -> PathBuf {
    pin_dir(lab).join(&*name::undotted(node))
}

/// A node's path space, as FRR's daemons and `vtysh` take it behind `-N`: its namespace, without dots.
pub fn frr_path_space(namespace: &str) -> String {
    name::undotted(namespace).into_owned()
}

/// Run directory of a switch's FRR daemons.
pub fn frr_dir(namespace: &str) -> PathBuf {
    Path::new(FRR_DIR).join(frr_path_space(namespace))
}

/// Processes of a lab that run outside of its namespaces.
pub(crate) fn record_file(lab: &str) -> PathBuf {
    lab_dir(lab).join("processes")
}

/// Names of labs that have a directory, in order. None where [`LABS_DIR`] is not what it should be: see [`folders_are_ours`].
pub fn lab_names() -> Vec<String> {
    let folder = Folder::open(Path::new(LABS_DIR)).ok().flatten();
    let names = folder.map(|folder| folder.directories()).unwrap_or_default();
    names.into_iter().filter(|name| check_lab_name(name).is_ok()).collect()
}

/// Refuses to go on where [`LABS_DIR`] is a link or somebody else's, and before anything is tried without root's rights.
pub fn folders_are_ours() -> Result<(), LabError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::not_fit("labs are root's", "run it with sudo"));
    }
    Folder::open(Path::new(LABS_DIR)).map(drop)
}

/// Names of the entries of a directory, in order; none if it is not there.
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Creates a directory that only root may look into, where it is missing. Others that are made on the way are for everybody to
/// look into.
pub(crate) fn make_dir(path: &Path) -> Result<(), LabError> {
    Folder::make(path, 0o700).map(drop)
}

/// Marks that a lab made the parent of [`STORES_DIR`], so that the last one may remove it.
const STATE_DIR_MARKER: &str = "state-dir-made";

/// Creates the directory of a lab's stores.
pub(crate) fn make_store_dir(lab: &str) -> Result<(), LabError> {
    let _lock = lock()?;
    let parent = Path::new(STORES_DIR).parent().expect("the path has two parts and more");
    if Folder::open(parent)?.is_none() {
        let marker = Path::new(RUN_DIR).join(STATE_DIR_MARKER);
        fs::write(&marker, "").map_err(LabError::io(format!("write {}", marker.display())))?;
    }
    Folder::make(Path::new(STORES_DIR), 0o700)?;
    make_dir(&store_dir(lab))
}

/// Undoes [`make_store_dir`] if nothing is left there. The caller holds the lock.
pub(crate) fn release_stores_dir() {
    let marker = Path::new(RUN_DIR).join(STATE_DIR_MARKER);
    let parent = Path::new(STORES_DIR).parent().expect("the path has two parts and more");
    // Where these are no folders of ours, they have not been made here either.
    if matches!(Folder::open(parent), Ok(Some(_))) {
        let _ = fs::remove_dir(STORES_DIR);
        if marker.exists() {
            let _ = fs::remove_dir(parent);
        }
    }
    let _ = fs::remove_file(marker);
}

/// Writes a whole file under a temporary name and moves it into place, so that a reader never sees half of it.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), LabError> {
    let temporary = path.with_extension("new");
    let what = || format!("write {}", path.display());
    fs::write(&temporary, content).map_err(LabError::io(what()))?;
    fs::rename(&temporary, path).map_err(LabError::io(what()))
}

/// Marks that a lab made [`RUN_DIR`], so that the last one may remove it.
const MADE_MARKER: &str = "run-dir-made";
const LOCK: &str = "lock";

/// Holds the machine-wide lock while what labs share (journal, bpffs, `/run/netns`) changes; dropping it lets go.
pub(crate) fn lock() -> Result<File, LabError> {
    let run = Path::new(RUN_DIR);
    let path = run.join(LOCK);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let is_new = Folder::open(run)?.is_none();
        let folder = Folder::make(run, 0o755)?;
        let file = match openat(&folder, LOCK, flags, Mode::from_raw_mode(0o600)) {
            // The last lab to go removed the directory just now.
            Err(Errno::NOENT) => continue,
            opened => File::from(opened.map_err(LabError::errno(format!("create {}", path.display())))?),
        };
        file.lock().map_err(LabError::io(format!("lock {}", path.display())))?;
        // Whoever held it before may have removed the file: then this lock guards nothing.
        let inode = |data: fs::Metadata| data.ino();
        if file.metadata().map(inode).ok() == fs::symlink_metadata(&path).map(inode).ok() {
            if is_new {
                fs::write(run.join(MADE_MARKER), "").map_err(LabError::io(format!("write in {RUN_DIR}")))?;
            }
            return Ok(file);
        }
    }
}

/// Holds one lab while its faults or its nodes change; dropping it lets go.
pub(crate) fn lock_lab(lab: &str) -> Result<File, LabError> {
    let path = LabState::path(lab);
    // What is not there is said by whoever reads it.
    LabState::load(lab)?;
    let what = || format!("lock {}", path.display());
    let folder = File::open(lab_dir(lab)).map_err(LabError::io(what()))?;
    folder.lock().map_err(LabError::io(what()))?;
    Ok(folder)
}

/// Removes [`RUN_DIR`] if a lab made it and nothing else is in it. The caller holds the lock, which this ends.
pub(crate) fn release_run_dir() {
    let Ok(Some(folder)) = Folder::open(Path::new(RUN_DIR)) else { return };
    let names = folder.all_names();
    if names == [LOCK, MADE_MARKER] {
        for name in names {
            let _ = unlinkat(&folder, name.as_str(), AtFlags::empty());
        }
        let _ = fs::remove_dir(RUN_DIR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_directory_are_refused() {
        for bad in ["", "..", "a/b", "1lab", "-x", "a b", "a.", "abcdefghijabcdefghijabcdefghijabc", "ä"] {
            assert!(check_lab_name(bad).is_err(), "{bad}");
        }
        for good in ["a", "vl2-testbed", "t123", "x_1.y"] {
            assert!(check_lab_name(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn the_longest_socket_path_fits() {
        let [lab, node] = ["l", "n"].map(|letter| letter.repeat(name::NAME_MAX));
        let frr = frr_dir(&namespace_name(&lab, &node)).join("zserv.api");
        let own = socket_dir(&lab).join(format!("{node}.status"));
        for path in [frr, own] {
            assert!(path.as_os_str().len() < 108, "{} is too long for a Unix socket", path.display());
        }
    }
}
