//! A VM's processes as a control group: quotas for them ("2 vCPU, 8 GB"). Version 1 and version 2.
//!
//! A machine may lack a controller: then nothing holds the processes to that part of their quota.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, unlinkat};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::folder::Folder;
use crate::home::{GROUPS_DIR, PREFIX, write_atomically};
use crate::process::{self, ProcessId};

/// Period over which a CPU quota is measured: the kernel's own default.
const PERIOD_US: u64 = 100_000;

/// What a VM may use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quota {
    /// Cores.
    pub cpus: f64,
    pub memory_bytes: u64,
}

impl Quota {
    /// The draft's VMs: 2 vCPU, 8 GB.
    pub const DRAFT_VM: Self = Self { cpus: 2.0, memory_bytes: 8 << 30 };
}

/// Which parts of a quota this machine's controllers hold a group to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enforced {
    pub cpu: bool,
    pub memory: bool,
}

/// A group of processes. Dropping it ends them and removes it.
#[derive(Debug)]
pub struct Cgroup {
    name: String,
    enforced: Enforced,
    /// One in each hierarchy that holds a part of the quota.
    folders: Vec<PathBuf>,
}

impl Cgroup {
    /// Makes a group `weft-NAME` without processes and sets its quota as far as this machine can.
    ///
    /// # Errors
    /// [`LabError::Io`] where a controller is there and refuses.
    pub fn create(name: &str, quota: &Quota) -> Result<Self, LabError> {
        let name = format!("{PREFIX}{name}");
        let limits = Mounts::read().limits(quota);
        let holds = |part: &str| limits.values().flatten().any(|(file, _)| file.starts_with(part));
        let enforced = Enforced { cpu: holds("cpu."), memory: holds("memory.") };
        let group = Self { folders: limits.keys().map(|root| root.join(&name)).collect(), name, enforced };
        group.make_folders()?;
        for (folder, limits) in group.folders.iter().zip(limits.into_values()) {
            limits.iter().try_for_each(|(file, value)| write(&folder.join(file), value))?;
        }
        Ok(group)
    }

    /// On record before they are there, so that a killed run's are known; and by their inodes, so that nobody else's are taken
    /// for them.
    fn make_folders(&self) -> Result<(), LabError> {
        let mut record = Record { owner: ProcessId::own(), folders: Vec::new() };
        for folder in &self.folders {
            record.folders.push(RecordedFolder { path: folder.clone(), inode: None });
            record.save(&self.name)?;
            fs::create_dir(folder).map_err(LabError::io(format!("create control group {}", folder.display())))?;
            record.folders.last_mut().expect("just pushed").inode = inode_of(folder);
            record.save(&self.name)?;
        }
        Ok(())
    }

    /// Which parts of its quota hold it.
    pub fn enforced(&self) -> Enforced {
        self.enforced
    }

    /// Moves a process into it. What the process starts later is in it too.
    ///
    /// # Errors
    /// [`LabError::Io`] where there is no such process.
    pub fn add(&self, pid: u32) -> Result<(), LabError> {
        self.folders.iter().try_for_each(|folder| write(&folder.join("cgroup.procs"), &pid.to_string()))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Some(record) = Record::load(&self.name) {
            record.remove_folders();
            let _ = fs::remove_file(Record::path(&self.name));
        }
    }
}

/// What is on disk about a group, as long as it is there.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The process that made it.
    owner: ProcessId,
    folders: Vec<RecordedFolder>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedFolder {
    path: PathBuf,
    /// `None` before it is made.
    inode: Option<u64>,
}

impl Record {
    fn path(name: &str) -> PathBuf {
        Path::new(GROUPS_DIR).join(name)
    }

    fn save(&self, name: &str) -> Result<(), LabError> {
        Folder::make(Path::new(GROUPS_DIR), 0o700)?;
        write_atomically(&Self::path(name), &serde_json::to_vec(self).expect("a record is plain data"))
    }

    fn load(name: &str) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::path(name)).ok()?).ok()
    }

    /// Ends what is in the group and removes it; the folders that went.
    fn remove_folders(&self) -> Vec<PathBuf> {
        let is_it = |folder: &&RecordedFolder| folder.inode.is_some() && folder.inode == inode_of(&folder.path);
        let ours = self.folders.iter().filter(is_it).map(|folder| &folder.path);
        ours.filter(|folder| {
            let processes: Vec<ProcessId> = pids_in(folder).into_iter().filter_map(ProcessId::of).collect();
            process::kill_all(&processes);
            remove(folder)
        })
        .cloned()
        .collect()
    }
}

fn inode_of(folder: &Path) -> Option<u64> {
    fs::symlink_metadata(folder).ok().map(|data| data.ino())
}

/// Groups of processes that are gone, which [`sweep`] would remove: their folders.
///
/// # Errors
/// [`LabError::UnsafeFolder`] where records are not in a folder of ours.
pub fn left_behind() -> Result<Vec<PathBuf>, LabError> {
    let Some(records) = Folder::open(Path::new(GROUPS_DIR))? else { return Ok(Vec::new()) };
    let names = records.all_names().into_iter();
    let orphans = names.filter_map(|name| Record::load(&name)).filter(|record| !record.owner.is_alive());
    let folders = orphans.flat_map(|record| record.folders);
    let is_there = |folder: &RecordedFolder| folder.inode.is_some() && folder.inode == inode_of(&folder.path);
    Ok(folders.filter(is_there).map(|folder| folder.path).collect())
}

/// Removes groups of processes that are gone and ends what is in them; their folders.
///
/// # Errors
/// [`LabError::UnsafeFolder`] where records are not in a folder of ours.
pub fn sweep() -> Result<Vec<PathBuf>, LabError> {
    let Some(records) = Folder::open(Path::new(GROUPS_DIR))? else { return Ok(Vec::new()) };
    let mut removed = Vec::new();
    for name in records.all_names() {
        if let Some(record) = Record::load(&name).filter(|record| !record.owner.is_alive()) {
            removed.extend(record.remove_folders());
            let _ = unlinkat(&records, name.as_str(), AtFlags::empty());
        }
    }
    Ok(removed)
}

/// The kernel lets go of a group a little after its last process is gone.
fn remove(folder: &Path) -> bool {
    for _ in 0..200 {
        match fs::remove_dir(folder) {
            Ok(()) => return true,
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Err(_) => return false,
        }
    }
    false
}

fn pids_in(folder: &Path) -> Vec<u32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn write(path: &Path, value: &str) -> Result<(), LabError> {
    fs::write(path, value).map_err(LabError::io(format!("write {value} to {}", path.display())))
}

/// Where control groups are mounted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mounts {
    v1_cpu: Option<PathBuf>,
    v1_memory: Option<PathBuf>,
    v2: Option<PathBuf>,
    v2_controllers: Vec<String>,
}

/// Files of a group and what they limit.
type Limits = Vec<(&'static str, String)>;

impl Mounts {
    fn read() -> Self {
        let mut mounts = Self::of(&fs::read_to_string("/proc/self/mounts").unwrap_or_default());
        if let Some(root) = &mounts.v2 {
            let text = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
            mounts.v2_controllers = text.split_ascii_whitespace().map(str::to_owned).collect();
        }
        mounts
    }

    /// Lines of `/proc/self/mounts`: `source folder type options 0 0`.
    fn of(mounts: &str) -> Self {
        let mut found = Self::default();
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, folder, kind, options, ..] = fields[..] else { continue };
            let has = |controller: &str| kind == "cgroup" && options.split(',').any(|option| option == controller);
            let is_it = [
                (kind == "cgroup2", &mut found.v2),
                (has("cpu"), &mut found.v1_cpu),
                (has("memory"), &mut found.v1_memory),
            ];
            is_it.into_iter().filter(|(is_it, _)| *is_it).for_each(|(_, place)| *place = Some(PathBuf::from(folder)));
        }
        found
    }

    /// What holds a group to a quota, by the hierarchy. Controllers are in version 2, or each has one of its own.
    fn limits(&self, quota: &Quota) -> BTreeMap<PathBuf, Limits> {
        let quota_us = (quota.cpus * PERIOD_US as f64).round().max(1000.0) as u64;
        let mut limits: BTreeMap<PathBuf, Limits> = BTreeMap::new();
        let mut limit = |root: &PathBuf, file, value| limits.entry(root.clone()).or_default().push((file, value));
        let has = |name: &str| self.v2_controllers.iter().any(|controller| controller == name);
        if let Some(root) = self.v2.as_ref().filter(|_| has("cpu")) {
            let cpu = ("cpu", "cpu.max", format!("{quota_us} {PERIOD_US}"));
            let memory = ("memory", "memory.max", quota.memory_bytes.to_string());
            for (name, file, value) in [cpu, memory].into_iter().filter(|(name, ..)| has(name)) {
                // Where it may not be switched on for groups below, setting the limit says so.
                let _on = fs::write(root.join("cgroup.subtree_control"), format!("+{name}"));
                limit(root, file, value);
            }
            return limits;
        }
        if let Some(root) = &self.v1_cpu {
            limit(root, "cpu.cfs_period_us", PERIOD_US.to_string());
            limit(root, "cpu.cfs_quota_us", quota_us.to_string());
        }
        if let Some(root) = &self.v1_memory {
            limit(root, "memory.limit_in_bytes", quota.memory_bytes.to_string());
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn mounts_of_both_versions_are_understood() {
        let text = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
            cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
            cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\nbroken\n";
        let mut mounts = Mounts::of(text);
        let files = |mounts: &Mounts| {
            let limits = mounts.limits(&Quota { cpus: 0.5, memory_bytes: 4096 });
            let file = |(root, limits): (PathBuf, Limits)| {
                limits
                    .into_iter()
                    .map(move |(file, value)| format!("{}: {value}", root.join(file).display()))
                    .collect::<Vec<_>>()
            };
            limits.into_iter().flat_map(file).collect::<Vec<_>>()
        };
        let cpu = "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs";
        assert_eq!(
            files(&mounts),
            [
                format!("{cpu}_period_us: 100000"),
                format!("{cpu}_quota_us: 50000"),
                "/sys/fs/cgroup/memory/memory.limit_in_bytes: 4096".to_owned()
            ]
        );
        // Controllers are either here or there; where version 2 has the CPU's, it is the one.
        mounts = Mounts { v2: Some("/none".into()), v2_controllers: vec!["cpu".to_owned()], ..mounts };
        assert_eq!(files(&mounts), ["/none/cpu.max: 50000 100000"], "no memory controller");
        mounts.v2_controllers.push("memory".to_owned());
        assert_eq!(files(&mounts), ["/none/cpu.max: 50000 100000", "/none/memory.max: 4096"]);
        assert!(files(&Mounts::of("")).is_empty());
    }

    /// Ends a process that its test could not.
    struct Child(std::process::Child);

    impl Drop for Child {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_group_holds_its_processes_to_their_quota() {
        if !weft_needs::root() {
            return;
        }
        let name = format!("tte-{}", std::process::id());
        let quota = Quota { cpus: 0.2, memory_bytes: 256 << 20 };
        let group = Cgroup::create(&name, &quota).unwrap();
        let limits = Mounts::read().limits(&quota);
        for (file, value) in limits.iter().flat_map(|(root, limits)| {
            limits.iter().map(|(file, value)| (root.join(format!("{PREFIX}{name}")).join(file), value))
        }) {
            assert_eq!(fs::read_to_string(&file).unwrap().trim(), value, "{}", file.display());
        }
        let busy = Child(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        group.add(busy.0.id()).unwrap();
        assert!(group.folders.iter().all(|folder| pids_in(folder) == [busy.0.id()]));
        let cpu_ns = || weft_testbed::cpu::time_ns(busy.0.id(), "").unwrap();
        let (begin, before) = (Instant::now(), cpu_ns());
        // Until it has had some time: how long that takes is the machine's affair.
        while cpu_ns() < before + 30_000_000 && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let (wall, used) = (begin.elapsed().as_nanos() as f64, (cpu_ns() - before) as f64);
        assert!(used >= 3e7, "{used} ns in {wall} ns");
        if limits.values().flatten().any(|(file, _)| file.starts_with("cpu.")) {
            // Two periods' quota may be spent at the edges of the window.
            assert!(used <= wall * 0.2 + 0.4 * PERIOD_US as f64 * 1e3, "{used} ns in {wall} ns are more than a fifth");
        }
        assert!(group.add(u32::MAX / 2).is_err(), "there is no such process");
        let folders = group.folders.clone();
        let process = ProcessId::of(busy.0.id()).unwrap();
        drop(group);
        assert!(folders.iter().all(|folder| !folder.exists()) && !process.is_alive());
    }

    #[test]
    fn what_a_killed_run_left_is_swept() {
        if !weft_needs::root() {
            return;
        }
        let name = format!("tte-left-{}", std::process::id());
        let group = std::mem::ManuallyDrop::new(Cgroup::create(&name, &Quota::DRAFT_VM).unwrap());
        let folders = group.folders.clone();
        assert!(!sweep().unwrap().iter().any(|folder| folders.contains(folder)), "its process lives");
        assert!(folders.iter().all(|folder| folder.exists()));
        let mut record = Record::load(&group.name).unwrap_or(Record { owner: ProcessId::own(), folders: Vec::new() });
        record.owner.start_ticks += 1;
        record.save(&group.name).unwrap();
        let removed = sweep().unwrap();
        assert!(folders.iter().all(|folder| removed.contains(folder) && !folder.exists()), "{removed:?}");
        assert!(!Record::path(&group.name).exists());
    }

    #[test]
    fn a_group_of_somebody_else_is_not_taken() {
        if !weft_needs::root() {
            return;
        }
        let limits = Mounts::read().limits(&Quota::DRAFT_VM);
        let root = limits.keys().next().expect("control groups are mounted");
        let name = format!("tte-other-{}", std::process::id());
        let folder = root.join(format!("{PREFIX}{name}"));
        fs::create_dir(&folder).unwrap();
        assert!(Cgroup::create(&name, &Quota::DRAFT_VM).is_err());
        assert!(folder.exists(), "a failed start removes nothing of others");
        // A run that was killed before it had made the group.
        let owner = ProcessId { start_ticks: 0, ..ProcessId::own() };
        let folders = vec![RecordedFolder { path: folder.clone(), inode: Some(1) }];
        Record { owner, folders }.save(&format!("{PREFIX}{name}")).unwrap();
        sweep().unwrap();
        assert!(folder.exists());
        fs::remove_dir(&folder).unwrap();
    }
}
