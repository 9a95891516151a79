//! Where labs keep their things: one place that knows every path and name, so that clean-up finds them all.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// Everything weft keeps while labs are up.
pub const RUN_DIR: &str = "/run/weft";
/// One directory per lab.
pub const LABS_DIR: &str = "/run/weft/labs";
/// Weft's own bpffs.
pub const BPF_DIR: &str = "/run/weft/bpf";
/// Where iproute2 looks for named namespaces.
pub const NETNS_DIR: &str = "/run/netns";
/// Where FRR keeps sockets; a daemon started with `-N NAME` uses the directory NAME in it.
pub const FRR_DIR: &str = "/var/run/frr";
/// Where labs keep what must be on a disk: `/run` may be memory, and a store on it would measure nothing.
pub const STORES_DIR: &str = "/var/tmp/weft";
/// What every namespace of every lab begins with.
pub const PREFIX: &str = "weft-";
/// The longest name of a lab: with a node's name it must fit the path of a Unix socket.
pub const LAB_NAME_MAX: usize = 32;

/// Refuses names that cannot be part of a path or a namespace's name.
pub fn check_lab_name(name: &str) -> Result<(), LabError> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if plain && starts_well && name.len() <= LAB_NAME_MAX { Ok(()) } else { Err(LabError::BadLabName(name.to_owned())) }
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

/// Directory of a lab's pins on weft's bpffs.
pub fn pin_dir(lab: &str) -> PathBuf {
    Path::new(BPF_DIR).join(lab)
}

/// Run directory of a switch's FRR daemons.
pub fn frr_dir(namespace: &str) -> PathBuf {
    Path::new(FRR_DIR).join(namespace)
}

/// Names of labs that have a directory, in order.
pub fn lab_names() -> Vec<String> {
    names_in(Path::new(LABS_DIR))
}

/// Names of the entries of a directory, in order; none if it is not there.
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Creates a directory and its parents.
pub(crate) fn make_dir(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(LabError::io(format!("create {}", path.display())))
}

/// Writes a whole file under a temporary name and moves it into place, so that a reader never sees half of it.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), LabError> {
    let temporary = path.with_extension("new");
    let what = || format!("write {}", path.display());
    fs::write(&temporary, content).map_err(LabError::io(what()))?;
    fs::rename(&temporary, path).map_err(LabError::io(what()))
}

/// Holds the machine-wide lock while what labs share (journal, bpffs, `/run/netns`) changes; dropping it lets go.
pub(crate) fn lock() -> Result<File, LabError> {
    let path = Path::new(RUN_DIR).join("lock");
    loop {
        make_dir(Path::new(RUN_DIR))?;
        let file = match File::create(&path) {
            // The last lab to go removed the directory just now.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            result => result.map_err(LabError::io(format!("create {}", path.display())))?,
        };
        file.lock().map_err(LabError::io(format!("lock {}", path.display())))?;
        // Whoever held it before may have removed the file: then this lock guards nothing.
        let inode = |data: fs::Metadata| data.ino();
        if file.metadata().map(inode).ok() == fs::metadata(&path).map(inode).ok() {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_directory_are_refused() {
        for bad in ["", "..", "a/b", "1lab", "-x", "a b", "abcdefghijabcdefghijabcdefghijabc", "ä"] {
            assert!(check_lab_name(bad).is_err(), "{bad}");
        }
        for good in ["a", "vl2-testbed", "t123", "x_1.y"] {
            assert!(check_lab_name(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn the_longest_socket_path_fits() {
        let lab = "l".repeat(LAB_NAME_MAX);
        let node = "n".repeat(weft_scenario::topology::NODE_NAME_MAX);
        let frr = frr_dir(&namespace_name(&lab, &node)).join("zserv.api");
        let own = socket_dir(&lab).join(format!("{node}.status"));
        for path in [frr, own] {
            assert!(path.as_os_str().len() < 108, "{} is too long for a Unix socket", path.display());
        }
    }
}
