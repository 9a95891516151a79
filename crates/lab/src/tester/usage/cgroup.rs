//! A VM's processes as a control group: what they use, and quotas for them ("2 vCPU, 8 GB"). Version 1 and version 2.
//!
//! A machine may lack a controller: then processes are still counted, from `/proc`, and [`Cgroup::enforced`] says that nothing
//! holds them to their quota.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, unlinkat};
use serde::{Deserialize, Serialize};
use weft_testbed::cpu;

use super::memory::pss_bytes;
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

/// Which interface of the kernel a group uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// One hierarchy for each controller.
    V1,
    /// One for all.
    V2,
    /// No controller here; processes are counted one by one.
    None,
}

/// Which parts of a quota are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Enforced {
    pub cpu: bool,
    pub memory: bool,
}

/// A group of processes. Dropping it ends them and removes it.
#[derive(Debug)]
pub struct Cgroup {
    name: String,
    version: CgroupVersion,
    enforced: Enforced,
    /// By controller; with version 2 they are the same folder.
    folders: BTreeMap<Controller, PathBuf>,
    processes: Vec<ProcessId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Controller {
    Cpu,
    CpuAccounting,
    Memory,
}

const CONTROLLERS: [Controller; 3] = [Controller::Cpu, Controller::CpuAccounting, Controller::Memory];

impl Controller {
    fn v1_name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::CpuAccounting => "cpuacct",
            Self::Memory => "memory",
        }
    }

    /// Version 2 counts CPU time with or without its controller.
    fn v2_name(self) -> Option<&'static str> {
        match self {
            Self::Cpu => Some("cpu"),
            Self::CpuAccounting => None,
            Self::Memory => Some("memory"),
        }
    }
}

impl Cgroup {
    /// Makes a group `weft-NAME` without processes and sets its quota as far as this machine can.
    ///
    /// # Errors
    /// [`LabError::Io`] where a controller is there and refuses.
    pub fn create(name: &str, quota: &Quota) -> Result<Self, LabError> {
        let mounts = Mounts::read();
        let name = format!("{PREFIX}{name}");
        let (version, folders): (_, BTreeMap<Controller, PathBuf>) = match mounts.roots() {
            (CgroupVersion::None, _) => (CgroupVersion::None, BTreeMap::new()),
            (version, roots) => (version, roots.into_iter().map(|(which, root)| (which, root.join(&name))).collect()),
        };
        let mut group =
            Self { name, version, enforced: Enforced { cpu: false, memory: false }, folders, processes: Vec::new() };
        group.make_folders()?;
        group.limit(quota)?;
        Ok(group)
    }

    /// On record before they are there, so that a killed run's are known; and by their inodes, so that nobody else's are taken
    /// for them.
    fn make_folders(&self) -> Result<(), LabError> {
        let mut record = Record { owner: ProcessId::own(), folders: Vec::new() };
        for folder in self.distinct_folders() {
            record.folders.push(RecordedFolder { path: folder.clone(), inode: None });
            record.save(&self.name)?;
            fs::create_dir(&folder).map_err(LabError::io(format!("create control group {}", folder.display())))?;
            let inode = inode_of(&folder);
            record.folders.iter_mut().filter(|known| known.path == folder).for_each(|known| known.inode = inode);
            record.save(&self.name)?;
        }
        Ok(())
    }

    /// Its name, with weft's prefix.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which interface of the kernel it uses.
    pub fn version(&self) -> CgroupVersion {
        self.version
    }

    /// Which parts of its quota are enforced.
    pub fn enforced(&self) -> Enforced {
        self.enforced
    }

    fn limit(&mut self, quota: &Quota) -> Result<(), LabError> {
        let quota_us = (quota.cpus * PERIOD_US as f64).round().max(1000.0) as u64;
        if let Some(folder) = self.folders.get(&Controller::Cpu) {
            match self.version {
                CgroupVersion::V2 => write(&folder.join("cpu.max"), &format!("{quota_us} {PERIOD_US}"))?,
                _ => {
                    write(&folder.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                    write(&folder.join("cpu.cfs_quota_us"), &quota_us.to_string())?;
                }
            }
            self.enforced.cpu = true;
        }
        if let Some(folder) = self.folders.get(&Controller::Memory) {
            let file = if self.version == CgroupVersion::V2 { "memory.max" } else { "memory.limit_in_bytes" };
            write(&folder.join(file), &quota.memory_bytes.to_string())?;
            self.enforced.memory = true;
        }
        Ok(())
    }

    /// Moves a process into it. What the process starts later is in it too.
    ///
    /// # Errors
    /// [`LabError::Io`] where there is no such process.
    pub fn add(&mut self, pid: u32) -> Result<(), LabError> {
        for folder in self.distinct_folders() {
            write(&folder.join("cgroup.procs"), &pid.to_string())?;
        }
        self.processes.extend(ProcessId::of(pid));
        Ok(())
    }

    /// CPU time of its processes so far, those that have ended included where the kernel counts; nanoseconds.
    ///
    /// # Errors
    /// [`LabError::Io`].
    pub fn cpu_ns(&self) -> Result<u64, LabError> {
        let Some(folder) = self.folders.get(&Controller::CpuAccounting) else {
            return Ok(self.processes.iter().filter_map(|process| cpu::time_ns(process.pid, "").ok()).sum());
        };
        match self.version {
            CgroupVersion::V2 => {
                let text = read(&folder.join("cpu.stat"))?;
                Ok(value_of(&text, "usage_usec").unwrap_or(0) * 1000)
            }
            _ => Ok(read(&folder.join("cpuacct.usage"))?.trim().parse().unwrap_or(0)),
        }
    }

    /// Memory of its processes now, bytes: their proportional set sizes. The controller's own count would leave out what a
    /// process had before it was moved into the group.
    pub fn memory_bytes(&self) -> u64 {
        self.pids().into_iter().filter_map(|pid| pss_bytes(pid).ok()).sum()
    }

    /// Its processes now.
    pub fn pids(&self) -> Vec<u32> {
        match self.folders.values().next() {
            Some(folder) => pids_in(folder),
            None => self.processes.iter().filter(|process| process.is_alive()).map(|process| process.pid).collect(),
        }
    }

    fn distinct_folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self.folders.values().cloned().collect();
        folders.sort();
        folders.dedup();
        folders
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

fn read(path: &Path) -> Result<String, LabError> {
    fs::read_to_string(path).map_err(LabError::io(format!("read {}", path.display())))
}

/// `key value` on a line of its own.
fn value_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Where control groups are mounted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mounts {
    v1: BTreeMap<Controller, PathBuf>,
    v2: Option<PathBuf>,
    v2_controllers: Vec<String>,
}

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
            match kind {
                "cgroup2" => found.v2 = Some(PathBuf::from(folder)),
                "cgroup" => {
                    for which in CONTROLLERS {
                        if options.split(',').any(|option| option == which.v1_name()) {
                            found.v1.insert(which, PathBuf::from(folder));
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The version that has controllers, and the folder for each of those.
    fn roots(&self) -> (CgroupVersion, BTreeMap<Controller, PathBuf>) {
        if let Some(root) = self.v2.as_ref().filter(|_| self.v2_controllers.iter().any(|name| name == "cpu")) {
            let has =
                |which: Controller| which.v2_name().is_none_or(|name| self.v2_controllers.iter().any(|it| it == name));
            for name in CONTROLLERS.into_iter().filter(|which| has(*which)).filter_map(Controller::v2_name) {
                // Where it may not be switched on for groups below, setting the limit says so.
                let _on = fs::write(root.join("cgroup.subtree_control"), format!("+{name}"));
            }
            let roots = CONTROLLERS.into_iter().filter(|which| has(*which)).map(|which| (which, root.clone()));
            return (CgroupVersion::V2, roots.collect());
        }
        if self.v1.is_empty() {
            return (CgroupVersion::None, BTreeMap::new());
        }
        (CgroupVersion::V1, self.v1.clone())
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
        let (version, roots) = mounts.roots();
        assert_eq!((version, roots.len()), (CgroupVersion::V1, 3));
        assert_eq!(roots[&Controller::CpuAccounting], roots[&Controller::Cpu]);
        // Controllers are either here or there; where version 2 has the CPU's, it is the one.
        mounts.v2_controllers = vec!["cpu".to_owned()];
        let (version, roots) = mounts.roots();
        assert_eq!((version, roots.len()), (CgroupVersion::V2, 2), "no memory controller: {roots:?}");
        assert_eq!(Mounts::of("").roots().0, CgroupVersion::None);
    }

    #[test]
    fn lines_are_found_by_the_whole_key() {
        let text = "usage_usec 12\nuser_usec 5\nanon_thp 7\nanon 9\n";
        assert_eq!((value_of(text, "usage_usec"), value_of(text, "anon")), (Some(12), Some(9)));
        assert_eq!(value_of(text, "usage"), None);
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
    fn a_group_counts_its_processes_and_holds_them_to_their_quota() {
        if !weft_needs::root() {
            return;
        }
        let name = format!("tte-{}", std::process::id());
        let mut group = Cgroup::create(&name, &Quota { cpus: 0.2, memory_bytes: 256 << 20 }).unwrap();
        eprintln!("{:?} {:?}", group.version(), group.enforced());
        let busy = Child(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        group.add(busy.0.id()).unwrap();
        assert_eq!(group.pids(), [busy.0.id()]);
        let (begin, before) = (Instant::now(), group.cpu_ns().unwrap());
        // Until it has had some time: how long that takes is the machine's affair.
        while group.cpu_ns().unwrap() < before + 30_000_000 && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let (wall, used) = (begin.elapsed().as_nanos() as f64, (group.cpu_ns().unwrap() - before) as f64);
        assert!(used >= 3e7, "{used} ns in {wall} ns");
        if group.enforced().cpu {
            // Two periods' quota may be spent at the edges of the window.
            assert!(used <= wall * 0.2 + 0.4 * PERIOD_US as f64 * 1e3, "{used} ns in {wall} ns are more than a fifth");
        }
        assert!(group.memory_bytes() > 10_000);
        assert!(group.add(u32::MAX / 2).is_err(), "there is no such process");
        let folders = group.distinct_folders();
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
        let folders = group.distinct_folders();
        assert!(!sweep().unwrap().iter().any(|folder| folders.contains(folder)), "its process lives");
        assert!(folders.iter().all(|folder| folder.exists()));
        let mut record = Record::load(group.name()).unwrap_or(Record { owner: ProcessId::own(), folders: Vec::new() });
        record.owner.start_ticks += 1;
        record.save(group.name()).unwrap();
        let removed = sweep().unwrap();
        assert!(folders.iter().all(|folder| removed.contains(folder) && !folder.exists()), "{removed:?}");
        assert!(!Record::path(group.name()).exists());
    }

    #[test]
    fn a_group_of_somebody_else_is_not_taken() {
        if !weft_needs::root() {
            return;
        }
        let (_, roots) = Mounts::read().roots();
        let root = roots.values().next().expect("control groups are mounted");
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
