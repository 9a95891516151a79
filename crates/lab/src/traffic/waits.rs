//! How long programs of a run, and the kernel's threads that forward for it, wait for a core: the run delay that the scheduler counts.
//!
//! | who | tasks | what its waiting delays |
//! | --- | --- | --- |
//! | `traffic` | the workers | what servers send and take |
//! | `daemons` | main threads of the lab's daemons | routing, look-ups |
//! | `softirq` | `ksoftirqd` of every core | frames: soft interrupts run at once in whatever the core does, and here only what they leave |
//!
//! `/proc/PID/schedstat` says of a task how long it ran, how long it was ready without a core (both in nanoseconds), and how often it
//! got one; kernels without `CONFIG_SCHED_INFO` do not have it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use weft_scenario::record::WaitRow;

/// What a task has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    ran_ns: u64,
    waited_ns: u64,
    turns: u64,
}

/// A task whose account is open, with what it said at the last reading.
struct Task {
    file: File,
    before: Account,
}

/// Reads the accounts of tasks.
pub(super) struct Waits {
    groups: BTreeMap<&'static str, Vec<Task>>,
    before_ns: u64,
}

impl Waits {
    /// Opens the accounts of workers, daemons, and of the kernel's threads as far as they can be seen from here. Empty if the kernel
    /// keeps none.
    pub(super) fn open(workers: &[u32], daemons: impl IntoIterator<Item = u32>) -> Self {
        let (workers, daemons) = (workers.to_vec(), daemons.into_iter().collect());
        let groups: [(_, Vec<u32>); 3] = [("traffic", workers), ("daemons", daemons), ("softirq", soft_interrupts())];
        let tasks = |pids: Vec<u32>| pids.into_iter().filter_map(Task::open).collect::<Vec<_>>();
        let groups = groups.into_iter().map(|(who, pids)| (who, tasks(pids))).filter(|(_, tasks)| !tasks.is_empty());
        Self { groups: groups.collect(), before_ns: 0 }
    }

    /// Whether the kernel tells of the workers.
    pub(super) fn are_known(&self) -> bool {
        self.groups.contains_key("traffic")
    }

    /// What everybody did since the last time. A task that has ended did nothing.
    pub(super) fn rows(&mut self, time_ns: u64) -> Vec<WaitRow> {
        let wall_ns = time_ns.saturating_sub(std::mem::replace(&mut self.before_ns, time_ns));
        let row = |(who, tasks): (&&'static str, &mut Vec<Task>)| {
            let since: Vec<Account> = tasks.iter_mut().filter_map(Task::since).collect();
            let sum = |field: fn(&Account) -> u64| since.iter().map(field).sum();
            WaitRow {
                time_ns,
                who: (*who).to_owned(),
                wall_ns,
                ran_ns: sum(|one| one.ran_ns),
                waited_ns: sum(|one| one.waited_ns),
                turns: sum(|one| one.turns),
            }
        };
        self.groups.iter_mut().map(row).collect()
    }
}

impl Task {
    fn open(pid: u32) -> Option<Self> {
        let file = File::open(format!("/proc/{pid}/schedstat")).ok()?;
        let before = read(&file)?;
        Some(Self { file, before })
    }

    fn since(&mut self) -> Option<Account> {
        let now = read(&self.file)?;
        let before = std::mem::replace(&mut self.before, now);
        Some(Account {
            ran_ns: now.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: now.waited_ns.saturating_sub(before.waited_ns),
            turns: now.turns.saturating_sub(before.turns),
        })
    }
}

fn read(file: &File) -> Option<Account> {
    let mut bytes = [0; 96];
    let length = file.read_at(&mut bytes, 0).ok()?;
    parse(std::str::from_utf8(&bytes[..length]).ok()?)
}

/// `RAN WAITED TURNS`.
fn parse(text: &str) -> Option<Account> {
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
    Some(Account { ran_ns: numbers.next()?, waited_ns: numbers.next()?, turns: numbers.next()? })
}

/// The kernel's threads for soft interrupts; none from inside of a process namespace of its own.
fn soft_interrupts() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("ksoftirqd/"))
            // A program may call itself so, too; one of the kernel's has no command line.
            && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty())
    };
    pids.filter(is_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_three_numbers() {
        assert_eq!(parse("142573 2506298 2\n"), Some(Account { ran_ns: 142_573, waited_ns: 2_506_298, turns: 2 }));
        for wrong in ["", "1 2", "1 x 3"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rows_say_what_was_done_since_the_last() {
        let mut waits = Waits::open(&[std::process::id()], []);
        if !waits.are_known() {
            weft_needs::skip("this kernel keeps no accounts of tasks (CONFIG_SCHED_INFO)");
            return;
        }
        let first = waits.rows(5);
        let mine = first.iter().find(|row| row.who == "traffic").unwrap();
        assert_eq!((mine.time_ns, mine.wall_ns), (5, 5));
        let second = waits.rows(7);
        assert!(second.iter().all(|row| (row.time_ns, row.wall_ns) == (7, 2)), "{second:?}");
        assert_eq!(second.iter().filter(|row| row.who == "daemons").count(), 0, "there are none");
        let none = Waits::open(&[u32::MAX], [u32::MAX]);
        assert!(!none.are_known());
    }
}
