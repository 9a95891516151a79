//! Takes labs down, whatever state they are in: whole, half made, or left by a run that was killed. And touches nothing else.
//!
//! Nothing is ours because of its name. A namespace, and with it whatever runs there, is ours by the mark on it
//! ([`crate::owner`]); a run folder of FRR's by the mark in it; a process elsewhere, or a control group, because it was
//! written down before it was made; everything else because it is in a folder that only labs use ([`crate::folder`]).
//! What bears weft's name without that is left alone, and said so.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};
use weft_datapath::bpffs;
use weft_scenario::name::{dotted, undotted};

use crate::error::LabError;
use crate::folder::Folder;
use crate::home::{
    self, BPF_DIR, GROUPS_DIR, LABS_DIR, PREFIX, STORES_DIR, check_lab_name, folders_are_ours, frr_path_space,
    lab_names, lock, record_file,
};
use crate::netns::{self, Found};
use crate::owner::Owner;
use crate::process::{self, ProcessId};
use crate::removal::remove_tree;
use crate::state::LabState;
use crate::tester::usage;
use crate::verbs::{self, LabRow};
use crate::{frr, sysctls};

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub labs: Vec<String>,
    /// Things that belonged to no known lab: namespaces, run directories, pins, processes.
    pub strays: Vec<String>,
    /// What was found and left alone, each with the reason.
    pub left: Vec<String>,
}

/// Takes one lab down. An error if there is no such lab.
pub fn down(lab: &str) -> Result<Removed, LabError> {
    check_lab_name(lab)?;
    folders_are_ours()?;
    let state = match LabState::load(lab) {
        Ok(state) => Some(state),
        Err(LabError::BadState { .. }) => None,
        Err(error) => return Err(error),
    };
    let mut removed = Removed::default();
    remove_lab(lab, state.as_ref(), &mut removed)?;
    release_machine(&mut removed)?;
    Ok(removed)
}

/// What [`down_all`] would do now.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Labs that it would take down.
    pub labs: Vec<LabRow>,
    /// Labs of runs that are at work, which it would spare.
    pub held: Vec<HeldLab>,
    /// Things that belong to no lab and no process, which it would remove.
    pub strays: Vec<String>,
}

/// A lab that a run is at work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLab {
    /// Its name.
    pub lab: String,
    /// The run's process.
    pub pid: u32,
    /// The command line of that.
    pub command: String,
}

/// What [`down_all`] would do now; changes nothing.
pub fn survey() -> Result<Survey, LabError> {
    folders_are_ours()?;
    let (mut labs, mut held) = (Vec::new(), Vec::new());
    for lab in lab_names() {
        match holder(&lab) {
            Some(process) => held.push(HeldLab { lab, pid: process.pid, command: process.command_line() }),
            None => labs.push(verbs::row(&lab)),
        }
    }
    let strays = Strays::find("")?;
    Ok(Survey { labs, held, strays: strays.names() })
}

/// The process of a run that is at work with a lab.
fn holder(lab: &str) -> Option<ProcessId> {
    LabState::load(lab).ok()?.owner.filter(|owner| owner.is_alive())
}

/// Takes every lab down that no run is at work with, and removes whatever else labs and beds have left, also without a state
/// file.
pub fn down_all() -> Result<Removed, LabError> {
    sweep("", |lab| holder(lab).is_none())
}

/// Takes labs down whose name begins with `prefix`, of whomever they are, and removes what such labs have left.
pub fn down_matching(prefix: &str) -> Result<Removed, LabError> {
    sweep(prefix, |lab| lab.starts_with(prefix))
}

fn sweep(prefix: &str, goes: impl Fn(&str) -> bool) -> Result<Removed, LabError> {
    folders_are_ours()?;
    let mut removed = Removed::default();
    for lab in lab_names().into_iter().filter(|lab| goes(lab)) {
        remove_lab(&lab, LabState::load(&lab).ok().as_ref(), &mut removed)?;
    }
    Strays::find(prefix)?.remove(&mut removed)?;
    if prefix.is_empty() {
        usage::sweep()?;
    }
    release_machine(&mut removed)?;
    Ok(removed)
}

/// Takes labs down whose run is gone; their names.
pub fn sweep_orphans() -> Result<Vec<String>, LabError> {
    let orphans: Vec<LabState> =
        lab_names().iter().filter_map(|lab| LabState::load(lab).ok()).filter(LabState::is_orphan).collect();
    let mut removed = Removed::default();
    for state in &orphans {
        remove_lab(&state.lab, Some(state), &mut removed)?;
    }
    if !orphans.is_empty() {
        release_machine(&mut removed)?;
    }
    removed.left.iter().for_each(|left| tracing::warn!("left alone: {left}"));
    Ok(removed.labs)
}

/// Its processes first, wherever they are; its directory last, so that an error on the way leaves what another try needs.
fn remove_lab(lab: &str, state: Option<&LabState>, removed: &mut Removed) -> Result<(), LabError> {
    let owner = Owner::Lab(lab.to_owned());
    let planned = state.map_or_else(Vec::new, LabState::namespaces);
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for (name, found) in netns::look_at_all(PREFIX)? {
        match &found {
            Found::Ours(of, _) | Found::Stub(Some(of)) if *of == owner => ours.push((name, found)),
            // Made by a run that was killed before it had written its mark.
            Found::Stub(None) if planned.contains(&name) => ours.push((name, found)),
            Found::Foreign(why) if planned.contains(&name) => others.push(format!("namespace {name}, which {why}")),
            _ => {}
        }
    }
    removed.left.append(&mut others);
    let recorded = state.into_iter().flat_map(|state| &state.processes).map(|process| process.id);
    let mut processes: Vec<ProcessId> = recorded.chain(process::recorded_in(&record_file(lab))).collect();
    processes.extend(process::in_namespaces(&inodes(&ours)));
    process::kill_all(&processes);
    netns::delete(&names(&ours))?;
    for (name, found) in frr::run_dirs()? {
        let is_planned = planned.iter().any(|namespace| frr_path_space(namespace) == name);
        if found == Some(owner.clone()) || (found.is_none() && is_planned) {
            frr::remove_run_dir(&name)?;
        }
    }
    // A folder that is not root's own has nothing of a lab in it: no lab uses such a one.
    for (parent, name) in [(BPF_DIR, undotted(lab)), (STORES_DIR, Cow::Borrowed(lab))] {
        match Folder::open(Path::new(parent)) {
            Ok(Some(folder)) => drop(remove_tree(&folder, &name)?),
            Ok(None) => {}
            Err(unsafe_folder) => note(&mut removed.left, unsafe_folder.to_string()),
        }
    }
    if let Some(labs) = Folder::open(Path::new(LABS_DIR))? {
        remove_tree(&labs, lab)?;
    }
    removed.labs.push(lab.to_owned());
    Ok(())
}

/// Takes nodes out of a lab: what runs in their namespaces, these, and FRR's folders of them.
pub(crate) fn remove_nodes(lab: &str, namespaces: &[String]) -> Result<(), LabError> {
    let owner = Owner::Lab(lab.to_owned());
    let is_ours = |found: &Found| matches!(found, Found::Ours(of, _) | Found::Stub(Some(of)) if *of == owner);
    let ours: Vec<_> = netns::look_at(namespaces)?.into_iter().filter(|(_, found)| is_ours(found)).collect();
    process::kill_all(&process::in_namespaces(&inodes(&ours)));
    netns::delete(&names(&ours))?;
    for (name, found) in frr::run_dirs()? {
        if found == Some(owner.clone()) && namespaces.iter().any(|namespace| frr_path_space(namespace) == name) {
            frr::remove_run_dir(&name)?;
        }
    }
    Ok(())
}

fn names(found: &[(String, Found)]) -> Vec<String> {
    found.iter().map(|(name, _)| name.clone()).collect()
}

fn inodes(found: &[(String, Found)]) -> BTreeSet<u64> {
    let inode = |(_, found): &(String, Found)| match found {
        Found::Ours(_, inode) => Some(*inode),
        _ => None,
    };
    found.iter().filter_map(inode).collect()
}

/// Several labs may find the same.
fn note(left: &mut Vec<String>, what: String) {
    if !left.contains(&what) {
        left.push(what);
    }
}

/// What nobody takes care of: of labs that have no directory any more, and of processes that are gone.
struct Strays {
    namespaces: Vec<(String, Found)>,
    /// FRR's run folders, by their names.
    run_dirs: Vec<String>,
    /// Folders where labs have theirs, and names in them.
    folders: Vec<(Folder, Vec<String>)>,
    /// Control groups.
    groups: Vec<PathBuf>,
    /// What looks like ours and is not, each with the reason.
    left: Vec<String>,
}

impl Strays {
    /// Looks for those of labs with this beginning; of processes only without one.
    fn find(prefix: &str) -> Result<Self, LabError> {
        let beginning = format!("{PREFIX}{prefix}");
        let mut found = Self {
            namespaces: Vec::new(),
            run_dirs: Vec::new(),
            folders: Vec::new(),
            groups: Vec::new(),
            left: Vec::new(),
        };
        found.find_namespaces(prefix, &beginning)?;
        for (name, owner) in frr::run_dirs()?.into_iter().filter(|(name, _)| name.starts_with(&*undotted(&beginning))) {
            match owner {
                Some(owner) if is_stray(&owner, prefix) => found.run_dirs.push(name),
                Some(_) => {}
                None => {
                    let path = home::frr_dir(&name);
                    note(&mut found.left, format!("{}, which was not made by weft", path.display()));
                }
            }
        }
        let labs = lab_names();
        for parent in [LABS_DIR, BPF_DIR, STORES_DIR] {
            match Folder::open(Path::new(parent)) {
                Ok(Some(folder)) => found.find_folders(folder, prefix, &labs),
                Ok(None) => {}
                Err(unsafe_folder) => note(&mut found.left, unsafe_folder.to_string()),
            }
        }
        if prefix.is_empty() {
            found.groups = usage::left_behind()?;
        }
        Ok(found)
    }

    fn find_namespaces(&mut self, prefix: &str, beginning: &str) -> Result<(), LabError> {
        for (name, found) in netns::look_at_all(PREFIX)? {
            match &found {
                Found::Ours(owner, _) | Found::Stub(Some(owner)) if is_stray(owner, prefix) => {
                    self.namespaces.push((name, found));
                }
                Found::Ours(Owner::Process(id), _) if prefix.is_empty() => {
                    note(&mut self.left, format!("namespace {name}, which process {} uses", id.pid));
                }
                Found::Foreign(why) if name.starts_with(beginning) => {
                    note(&mut self.left, format!("namespace {name}, which {why}"));
                }
                Found::Stub(None) if name.starts_with(beginning) => {
                    note(&mut self.left, format!("{}, an empty file", home::namespace_path(&name).display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn find_folders(&mut self, parent: Folder, prefix: &str, labs: &[String]) {
        for name in parent.links().into_iter().filter(|name| name.starts_with(prefix)) {
            note(&mut self.left, format!("{}, which is a link", parent.path().join(name).display()));
        }
        // On the BPF file system names of labs have no dots.
        let on_bpffs = parent.path() == Path::new(BPF_DIR);
        let is_stray = |name: &String| {
            let lab = if on_bpffs { dotted(name) } else { name.clone() };
            lab.starts_with(prefix) && !labs.contains(&lab) && check_lab_name(&lab).is_ok()
        };
        let strays = parent.directories().into_iter().filter(is_stray).collect();
        self.folders.push((parent, strays));
    }

    /// As people see them listed.
    fn names(&self) -> Vec<String> {
        let namespaces = names(&self.namespaces).into_iter().map(|name| format!("namespace {name}"));
        let run_dirs = self.run_dirs.iter().map(|name| home::frr_dir(name));
        let folders = self.folders.iter().flat_map(|(parent, names)| names.iter().map(|name| parent.path().join(name)));
        let paths = run_dirs.chain(folders).chain(self.groups.iter().cloned());
        namespaces.chain(paths.map(|path| path.display().to_string())).collect()
    }

    fn remove(self, removed: &mut Removed) -> Result<(), LabError> {
        let processes = process::in_namespaces(&inodes(&self.namespaces));
        process::kill_all(&processes);
        removed.strays.extend(processes.iter().map(|process| format!("process {}", process.pid)));
        removed.strays.extend(self.names());
        netns::delete(&names(&self.namespaces))?;
        self.run_dirs.iter().try_for_each(|name| frr::remove_run_dir(name))?;
        for (parent, names) in &self.folders {
            for name in names {
                remove_tree(parent, name)?;
            }
        }
        self.left.into_iter().for_each(|left| note(&mut removed.left, left));
        Ok(())
    }
}

/// Whether nothing else takes care of what has this owner. A lab's directory is there before anything else of it.
fn is_stray(owner: &Owner, prefix: &str) -> bool {
    match owner {
        Owner::Lab(lab) => lab.starts_with(prefix) && !lab_names().contains(lab),
        Owner::Process(id) => prefix.is_empty() && !id.is_alive(),
    }
}

/// How many things a sweep would remove beside labs.
pub(crate) fn count_strays() -> Result<usize, LabError> {
    Strays::find("").map(|strays| strays.names().len())
}

/// When the last lab is gone, gives back what labs share: the machine's settings, bpffs, `/run/netns`, `/run/weft`.
fn release_machine(removed: &mut Removed) -> Result<(), LabError> {
    let _lock = lock()?;
    if !lab_names().is_empty() {
        return Ok(());
    }
    removed.left.extend(sysctls::restore_machine()?);
    release_bpf_file_system();
    netns::release_directory();
    // Those that are not empty stay.
    for folder in [LABS_DIR, GROUPS_DIR] {
        let _ = fs::remove_dir(folder);
    }
    home::release_stores_dir();
    home::release_run_dir();
    Ok(())
}

/// Unmounts labs' bpffs if nothing is pinned there. The caller holds the lock.
pub(crate) fn release_bpf_file_system() {
    // Pins are in directories; the kernel itself may put files there.
    let is_free = matches!(Folder::open(Path::new(BPF_DIR)), Ok(Some(folder)) if folder.directories().is_empty());
    if is_free {
        if bpffs::is_mounted(BPF_DIR) {
            // In use: then it stays.
            let _ = unmount(BPF_DIR, UnmountFlags::NOFOLLOW);
        }
        let _ = fs::remove_dir(BPF_DIR);
    }
}

/// Removes weft's run directory if a lab made it and only the lock is left in it.
pub(crate) fn release_run_dir() {
    if let Ok(_lock) = lock() {
        home::release_run_dir();
    }
}
