//! Takes labs down, whatever state they are in: whole, half made, or left by a run that was killed. And touches nothing else.
//!
//! Nothing is ours because of its name. A namespace, and with it whatever runs there, is ours by the mark on it
//! ([`crate::owner`]); a run folder of FRR's by the mark in it; a process elsewhere, or a control group, because it was
//! written down before it was made; everything else because it is in a folder that only labs use ([`crate::folder`]).
//! What bears weft's name without that is left alone, and said so.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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

/// Takes every lab down and removes whatever else labs and beds have left, also without a state file.
pub fn down_all() -> Result<Removed, LabError> {
    down_matching("")
}

/// As [`down_all`], but only labs whose name begins with `prefix`.
pub fn down_matching(prefix: &str) -> Result<Removed, LabError> {
    folders_are_ours()?;
    let mut removed = Removed::default();
    for lab in lab_names().into_iter().filter(|lab| lab.starts_with(prefix)) {
        remove_lab(&lab, LabState::load(&lab).ok().as_ref(), &mut removed)?;
    }
    remove_strays(prefix, &mut removed)?;
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

fn remove_strays(prefix: &str, removed: &mut Removed) -> Result<(), LabError> {
    let beginning = format!("{PREFIX}{prefix}");
    stray_namespaces(prefix, &beginning, removed)?;
    for (name, owner) in frr::run_dirs()?.into_iter().filter(|(name, _)| name.starts_with(&*undotted(&beginning))) {
        match owner {
            Some(owner) if is_stray(&owner, prefix) => {
                frr::remove_run_dir(&name)?;
                removed.strays.push(home::frr_dir(&name).display().to_string());
            }
            Some(_) => {}
            None => {
                let path = home::frr_dir(&name);
                note(&mut removed.left, format!("{}, which was not made by weft", path.display()));
            }
        }
    }
    for parent in [LABS_DIR, BPF_DIR, STORES_DIR] {
        match Folder::open(Path::new(parent)) {
            Ok(Some(folder)) => stray_folders(&folder, prefix, removed)?,
            Ok(None) => {}
            Err(unsafe_folder) => note(&mut removed.left, unsafe_folder.to_string()),
        }
    }
    if prefix.is_empty() {
        removed.strays.extend(usage::sweep()?.into_iter().map(|folder| folder.display().to_string()));
    }
    Ok(())
}

fn stray_namespaces(prefix: &str, beginning: &str, removed: &mut Removed) -> Result<(), LabError> {
    let mut ours = Vec::new();
    for (name, found) in netns::look_at_all(PREFIX)? {
        match &found {
            Found::Ours(owner, _) | Found::Stub(Some(owner)) if is_stray(owner, prefix) => ours.push((name, found)),
            Found::Ours(Owner::Process(id), _) if prefix.is_empty() => {
                note(&mut removed.left, format!("namespace {name}, which process {} uses", id.pid));
            }
            Found::Foreign(why) if name.starts_with(beginning) => {
                note(&mut removed.left, format!("namespace {name}, which {why}"));
            }
            Found::Stub(None) if name.starts_with(beginning) => {
                note(&mut removed.left, format!("{}, an empty file", home::namespace_path(&name).display()));
            }
            _ => {}
        }
    }
    let processes = process::in_namespaces(&inodes(&ours));
    process::kill_all(&processes);
    netns::delete(&names(&ours))?;
    removed.strays.extend(processes.iter().map(|process| format!("process {}", process.pid)));
    removed.strays.extend(names(&ours).into_iter().map(|name| format!("namespace {name}")));
    Ok(())
}

/// Whether nothing else takes care of what has this owner. A lab's directory is there before anything else of it.
fn is_stray(owner: &Owner, prefix: &str) -> bool {
    match owner {
        Owner::Lab(lab) => lab.starts_with(prefix) && !lab_names().contains(lab),
        Owner::Process(id) => prefix.is_empty() && !id.is_alive(),
    }
}

/// How many namespaces and run folders a sweep would remove.
pub(crate) fn count_strays() -> usize {
    let namespaces = netns::look_at_all(PREFIX).unwrap_or_default().into_iter().filter_map(|(_, found)| match found {
        Found::Ours(owner, _) | Found::Stub(Some(owner)) => Some(owner),
        _ => None,
    });
    let run_dirs = frr::run_dirs().unwrap_or_default().into_iter().filter_map(|(_, owner)| owner);
    namespaces.chain(run_dirs).filter(|owner| is_stray(owner, "")).count()
}

fn stray_folders(parent: &Folder, prefix: &str, removed: &mut Removed) -> Result<(), LabError> {
    let path = |name: &str| parent.path().join(name).display().to_string();
    // On the BPF file system names of labs have no dots.
    let lab_of = |name: &str| if parent.path() == Path::new(BPF_DIR) { dotted(name) } else { name.to_owned() };
    for (name, lab) in parent.directories().into_iter().map(|name| (name.clone(), lab_of(&name))) {
        let is_free = lab.starts_with(prefix) && !lab_names().contains(&lab) && check_lab_name(&lab).is_ok();
        if is_free && remove_tree(parent, &name)? {
            removed.strays.push(path(&name));
        }
    }
    for name in parent.links().into_iter().filter(|name| name.starts_with(prefix)) {
        note(&mut removed.left, format!("{}, which is a link", path(&name)));
    }
    Ok(())
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
