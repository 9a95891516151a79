//! Kernel settings: those of a namespace, which die with it, and those of the machine, which are journalled.
//!
//! Some settings exist once for the whole machine: the size of the neighbour table that all namespaces share, the list
//! of congestion controls a namespace may choose, how long the kernel waits when programs are attached. Their old
//! values go to a journal on `/run` before they change; it outlives a killed run, and the last lab to go restores them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::home::{RUN_DIR, lock, write_atomically};

/// Neighbour entries that one link of the machine-wide table may need: 75 servers with 74 peers each is 5550.
const NEIGHBOUR_LIMITS: [(&str, u64); 3] = [
    ("net/ipv4/neigh/default/gc_thresh1", 20_000),
    ("net/ipv4/neigh/default/gc_thresh2", 30_000),
    ("net/ipv4/neigh/default/gc_thresh3", 40_000),
];
const ALLOWED_CONTROLS: &str = "net/ipv4/tcp_allowed_congestion_control";
/// Whether waiting for all cores to pass a quiet point is hurried; an absolute path, not below `/proc/sys`.
const HURRIED_WAITS: &str = "/sys/kernel/rcu_expedited";
const NEEDED_CONTROLS: [&str; 2] = ["reno", "cubic"];

/// One setting that a lab changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Change {
    old: String,
    new: String,
}

/// All settings that labs changed, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    schema_version: u32,
    changes: BTreeMap<String, Change>,
}

fn journal_path() -> PathBuf {
    Path::new(RUN_DIR).join("sysctl-journal.json")
}

/// Reads a setting as the calling thread's namespace sees it; `name` is its path below `/proc/sys`.
pub(crate) fn read(name: &str) -> Option<String> {
    fs::read_to_string(Path::new("/proc/sys").join(name)).ok().map(|text| text.trim().to_owned())
}

/// Writes a setting of the calling thread's namespace.
pub(crate) fn write(name: &str, value: &str) -> Result<(), LabError> {
    let path = Path::new("/proc/sys").join(name);
    fs::write(&path, value).map_err(LabError::io(format!("set {} to `{value}`", path.display())))
}

/// Raises the machine's settings to what labs of `servers` servers need, journal first. The caller holds the lock.
pub(crate) fn adjust_machine(servers: usize) -> Result<(), LabError> {
    let wanted = wanted_changes(servers, read);
    if wanted.is_empty() {
        return Ok(());
    }
    let mut journal = load(&journal_path());
    for (name, change) in &wanted {
        journal.add(name, change);
    }
    save(&mut journal)?;
    // From the largest threshold down, so that they are in order at any time.
    wanted.iter().rev().try_for_each(|(name, change)| write(name, &change.new))
}

impl Journal {
    /// Notes a change. What an earlier lab found is what goes back, unless somebody else has changed it since.
    fn add(&mut self, name: &str, change: &Change) {
        let earlier = self.changes.get(name).filter(|earlier| earlier.is_in_force(&change.old));
        let old = earlier.map_or(&change.old, |earlier| &earlier.old).clone();
        self.changes.insert(name.to_owned(), Change { old, new: change.new.clone() });
    }
}

impl Change {
    /// Whether a setting that reads like this is as we set it. The kernel tells a list in an order of its own.
    fn is_in_force(&self, now: &str) -> bool {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        words(now) == words(&self.new)
    }
}

/// What has to change, given how settings read now. Values that suffice stay.
fn wanted_changes(servers: usize, read: impl Fn(&str) -> Option<String>) -> Vec<(String, Change)> {
    let mut wanted = Vec::new();
    let pairs = (servers * servers) as u64;
    for (name, least) in NEIGHBOUR_LIMITS {
        let least = least.max(pairs * least / NEIGHBOUR_LIMITS[0].1 * 2);
        if let Some(old) = read(name)
            && old.parse::<u64>().is_ok_and(|value| value < least)
        {
            wanted.push((name.to_owned(), Change { old, new: least.to_string() }));
        }
    }
    if let Some(old) = read(ALLOWED_CONTROLS) {
        let missing: Vec<&str> =
            NEEDED_CONTROLS.into_iter().filter(|needed| !old.split_whitespace().any(|have| have == *needed)).collect();
        if !missing.is_empty() {
            let new = format!("{old} {}", missing.join(" "));
            wanted.push((ALLOWED_CONTROLS.to_owned(), Change { old, new }));
        }
    }
    wanted
}

/// While this lives, attaching a program takes under a millisecond instead of ten, of which a lab has some hundred.
pub(crate) struct HurriedWaits(());

impl HurriedWaits {
    /// Begins, if this kernel can and nobody else has; `None` means that attaching takes its usual time.
    pub(crate) fn begin() -> Result<Option<Self>, LabError> {
        let _lock = lock()?;
        if read(HURRIED_WAITS).as_deref() != Some("0") {
            return Ok(None);
        }
        let mut journal = load(&journal_path());
        journal.changes.insert(HURRIED_WAITS.to_owned(), Change { old: "0".into(), new: "1".into() });
        save(&mut journal)?;
        Ok(write(HURRIED_WAITS, "1").is_ok().then_some(Self(())))
    }
}

impl Drop for HurriedWaits {
    fn drop(&mut self) {
        let restored = lock().and_then(|_lock| {
            if read(HURRIED_WAITS).as_deref() == Some("1") {
                write(HURRIED_WAITS, "0")?;
            }
            let mut journal = load(&journal_path());
            journal.changes.remove(HURRIED_WAITS);
            save(&mut journal)
        });
        if let Err(error) = restored {
            tracing::warn!("{error}; weft lab down --all restores it");
        }
    }
}

/// Restores the machine's settings, unless somebody else has changed them since: those are returned, each with the reason. The
/// caller holds the lock.
pub(crate) fn restore_machine() -> Result<Vec<String>, LabError> {
    let path = journal_path();
    let mut left = Vec::new();
    if path.symlink_metadata().is_ok_and(|data| !data.is_file()) {
        return Ok(vec![format!("{}, which is no file of weft's", path.display())]);
    }
    for (name, change) in load(&path).changes.iter().filter(|(name, _)| is_ours_to_change(name)) {
        match read(name) {
            Some(now) if change.is_in_force(&now) => write(name, &change.old)?,
            Some(now) if now != change.old => {
                left.push(format!(
                    "{name}, which somebody has set to `{now}` (it was `{}` before the lab)",
                    change.old
                ));
            }
            _ => {}
        }
    }
    let _ = fs::remove_file(path);
    Ok(left)
}

/// A damaged journal makes us write nothing else.
fn is_ours_to_change(name: &str) -> bool {
    name == HURRIED_WAITS || name == ALLOWED_CONTROLS || NEIGHBOUR_LIMITS.iter().any(|(limit, _)| *limit == name)
}

/// Names of settings that are changed now, for `doctor`.
pub(crate) fn journalled() -> Vec<String> {
    load(&journal_path()).changes.into_keys().collect()
}

fn load(path: &Path) -> Journal {
    fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn save(journal: &mut Journal) -> Result<(), LabError> {
    journal.schema_version = 1;
    let text = serde_json::to_vec_pretty(journal).expect("a journal is plain data");
    write_atomically(&journal_path(), &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_machine(name: &str) -> Option<String> {
        let value = match name.rsplit('/').next()? {
            "gc_thresh1" => "128",
            "gc_thresh2" => "512",
            "gc_thresh3" => "1024",
            "tcp_allowed_congestion_control" => "reno bbr",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn a_default_machine_needs_a_larger_table_and_cubic() {
        let changes = wanted_changes(75, default_machine);
        let new: Vec<&str> = changes.iter().map(|(_, change)| change.new.as_str()).collect();
        assert_eq!(new, ["20000", "30000", "40000", "reno bbr cubic"]);
        assert_eq!(changes[3].1.old, "reno bbr");
    }

    #[test]
    fn more_servers_need_more_in_order() {
        let limits: Vec<u64> =
            wanted_changes(250, default_machine)[..3].iter().map(|(_, change)| change.new.parse().unwrap()).collect();
        assert!(limits[0] >= 250 * 250 && limits[0] < limits[1] && limits[1] < limits[2], "{limits:?}");
    }

    #[test]
    fn what_somebody_changed_meanwhile_is_what_goes_back() {
        let change = |old: &str, new: &str| Change { old: old.to_owned(), new: new.to_owned() };
        let mut journal = Journal::default();
        journal.add("limit", &change("128", "20000"));
        journal.add("limit", &change("20000", "40000"));
        assert_eq!(journal.changes["limit"], change("128", "40000"), "two labs in a row");
        journal.add("limit", &change("50000", "90000"));
        assert_eq!(journal.changes["limit"], change("50000", "90000"), "somebody set it to 50000 between them");
        assert!(change("reno", "reno cubic").is_in_force("cubic reno"));
        assert!(!change("reno", "reno cubic").is_in_force("reno cubic bbr"));
        assert!(is_ours_to_change(HURRIED_WAITS) && !is_ours_to_change("kernel/core_pattern"));
    }

    #[test]
    fn what_suffices_or_is_absent_stays() {
        let changes = wanted_changes(4, |name| match name.ends_with("control") {
            true => None,
            false => Some("1000000".into()),
        });
        assert!(changes.is_empty(), "{changes:?}");
    }
}
