//! Takes labs down, whatever state they are in: whole, half made, or left by a run that was killed.
//!
//! Nothing here trusts the state file alone: processes are also found by their namespace and by the paths in their
//! command lines, namespaces and files by their names.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

use crate::error::LabError;
use crate::home::{
    BPF_DIR, FRR_DIR, LABS_DIR, NETNS_DIR, PREFIX, RUN_DIR, STORES_DIR, check_lab_name, frr_dir, lab_dir, lab_names,
    lock, names_in, pin_dir, store_dir,
};
use crate::netns;
use crate::process::{self, ProcessId};
use crate::state::LabState;
use crate::sysctls;
use crate::tester::usage;

/// What a sweep removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Labs.
    pub labs: Vec<String>,
    /// Things that belonged to no known lab: namespaces, run directories, pins, processes.
    pub strays: Vec<String>,
}

/// Takes one lab down. An error if there is no such lab.
pub fn down(lab: &str) -> Result<(), LabError> {
    check_lab_name(lab)?;
    let state = match LabState::load(lab) {
        Ok(state) => Some(state),
        Err(LabError::BadState { .. }) => None,
        Err(error) => return Err(error),
    };
    remove_lab(lab, state.as_ref())?;
    release_machine()
}

/// Takes every lab down and removes whatever else bears weft's name, also without a state file.
pub fn down_all() -> Result<Removed, LabError> {
    down_matching("")
}

/// As [`down_all`], but only labs whose name begins with `prefix`.
pub fn down_matching(prefix: &str) -> Result<Removed, LabError> {
    let mut removed = Removed::default();
    for lab in lab_names().into_iter().filter(|lab| lab.starts_with(prefix)) {
        remove_lab(&lab, LabState::load(&lab).ok().as_ref())?;
        removed.labs.push(lab);
    }
    removed.strays = remove_strays(prefix)?;
    release_machine()?;
    Ok(removed)
}

/// Takes labs down whose run is gone; their names.
pub fn sweep_orphans() -> Result<Vec<String>, LabError> {
    let orphans: Vec<LabState> =
        lab_names().iter().filter_map(|lab| LabState::load(lab).ok()).filter(LabState::is_orphan).collect();
    for state in &orphans {
        remove_lab(&state.lab, Some(state))?;
    }
    if !orphans.is_empty() {
        release_machine()?;
    }
    Ok(orphans.into_iter().map(|state| state.lab).collect())
}

fn remove_lab(lab: &str, state: Option<&LabState>) -> Result<(), LabError> {
    // Without a readable state the names have to do; namespaces of other known labs are spared.
    let namespaces = state.map_or_else(|| unclaimed_namespaces(&format!("{PREFIX}{lab}-")), LabState::namespaces);
    let mut processes: Vec<ProcessId> =
        state.map_or_else(Vec::new, |state| state.processes.iter().map(|process| process.id).collect());
    processes.extend(process::in_namespaces(&namespaces));
    processes
        .extend(processes_naming(&[format!("{}/", lab_dir(lab).display()), format!("{}/", store_dir(lab).display())]));
    process::kill_all(&processes);
    netns::delete(&namespaces)?;
    for namespace in &namespaces {
        remove_dir(&frr_dir(namespace))?;
    }
    remove_dir(&pin_dir(lab))?;
    remove_dir(&store_dir(lab))?;
    remove_dir(&lab_dir(lab))
}

/// Namespaces with this beginning that no lab with a readable state has.
fn unclaimed_namespaces(beginning: &str) -> Vec<String> {
    let claimed: BTreeSet<String> =
        lab_names().iter().filter_map(|lab| LabState::load(lab).ok()).flat_map(|state| state.namespaces()).collect();
    names_in(Path::new(NETNS_DIR))
        .into_iter()
        .filter(|name| name.starts_with(beginning) && !claimed.contains(name))
        .collect()
}

fn remove_strays(prefix: &str) -> Result<Vec<String>, LabError> {
    let beginning = format!("{PREFIX}{prefix}");
    let namespaces = unclaimed_namespaces(&beginning);
    let mut processes = process::in_namespaces(&namespaces);
    processes.extend(processes_naming(&[
        beginning.clone(),
        format!("{LABS_DIR}/{prefix}"),
        format!("{STORES_DIR}/{prefix}"),
    ]));
    process::kill_all(&processes);
    netns::delete(&namespaces)?;
    let mut strays: Vec<String> = processes.iter().map(|process| format!("process {}", process.pid)).collect();
    strays.extend(namespaces.into_iter().map(|name| format!("namespace {name}")));
    strays.extend(usage::sweep(&beginning).into_iter().map(|folder| folder.display().to_string()));
    let directories = [(FRR_DIR, beginning.as_str()), (BPF_DIR, prefix), (STORES_DIR, prefix)];
    for (parent, beginning) in directories {
        for name in names_in(Path::new(parent)).into_iter().filter(|name| name.starts_with(beginning)) {
            let path = Path::new(parent).join(name);
            if path.is_dir() {
                remove_dir(&path)?;
                strays.push(path.display().to_string());
            }
        }
    }
    if prefix.is_empty() {
        strays.extend(remove_dead_sockets());
    }
    Ok(strays)
}

/// Removes the sockets of daemons that were killed: those in the run directory that nobody listens on.
fn remove_dead_sockets() -> Vec<String> {
    let sockets = names_in(Path::new(RUN_DIR)).into_iter().map(|name| Path::new(RUN_DIR).join(name));
    let is_dead = |path: &PathBuf| {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    let dead = sockets.filter(is_dead).filter(|path| fs::remove_file(path).is_ok());
    dead.map(|path| path.display().to_string()).collect()
}

/// Daemons of a lab whose arguments begin with one of these texts: `zebra -N weft-...`, `weft ... --config /run/weft/...`.
fn processes_naming(beginnings: &[String]) -> Vec<ProcessId> {
    let own = std::process::id();
    let pids = names_in(Path::new("/proc")).into_iter().filter_map(|name| name.parse::<u32>().ok());
    let names_one = |pid: &u32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments = arguments.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let program = arguments.next().unwrap_or_default();
        let arguments: Vec<_> = arguments.collect();
        let is_daemon = ["zebra", "ospfd", "bfdd", "bgpd", "etcd"].iter().any(|daemon| program.ends_with(daemon))
            || arguments.first().is_some_and(|first| first == "node");
        is_daemon
            && arguments.iter().any(|argument| beginnings.iter().any(|start| argument.starts_with(start.as_str())))
    };
    pids.filter(|pid| *pid != own).filter(names_one).filter_map(ProcessId::of).collect()
}

fn remove_dir(path: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::io(format!("remove {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}

/// When the last lab is gone, gives back what labs share: the machine's settings, bpffs, `/run/netns`, `/run/weft`.
fn release_machine() -> Result<(), LabError> {
    let _lock = lock()?;
    if !lab_names().is_empty() {
        return Ok(());
    }
    sysctls::restore_machine()?;
    release_bpf_file_system();
    netns::release_directory();
    let _ = fs::remove_dir(LABS_DIR);
    let _ = fs::remove_dir(STORES_DIR);
    remove_run_dir();
    Ok(())
}

/// Unmounts weft's bpffs if nothing is pinned there. The caller holds the lock.
pub(crate) fn release_bpf_file_system() {
    // Pins are in directories; the kernel itself may put files there. Somebody else's pins keep the mount.
    if !names_in(Path::new(BPF_DIR)).iter().any(|name| Path::new(BPF_DIR).join(name).is_dir()) {
        // Not mounted, or in use: then it stays.
        let _ = unmount(BPF_DIR, UnmountFlags::empty());
        let _ = fs::remove_dir(BPF_DIR);
    }
}

/// Removes weft's run directory if only the lock is left in it.
pub(crate) fn release_run_dir() {
    if let Ok(_lock) = lock() {
        remove_run_dir();
    }
}

fn remove_run_dir() {
    if names_in(Path::new(RUN_DIR)) == ["lock"] {
        let _ = fs::remove_file(Path::new(RUN_DIR).join("lock"));
        let _ = fs::remove_dir(RUN_DIR);
    }
}
