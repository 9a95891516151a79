//! Who else uses the CPU of the machine while traffic runs, by process: so that a run that had too little of it can say who took it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use weft_scenario::record::OtherRow;

use super::counters::CoreTimes;

/// Clock ticks in /proc are hundredths of a second on every Linux.
const NS_PER_TICK: u64 = 10_000_000;
/// Who used less of a core than this is not told of.
const LEAST_RATIO: f64 = 0.01;
/// So many are told of, those that used most.
const MOST_ROWS: usize = 20;
/// `PF_KTHREAD`: a thread of the kernel, whose work may be the network's.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One line of `/proc/PID/stat`, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    name: String,
    parent: u32,
    is_kernel: bool,
    ticks: u64,
    start_ticks: u64,
}

/// Looks at all processes now and then.
pub(super) struct Others {
    /// Those of the run: it, daemons that may not descend from it, and whoever was seen to descend from these.
    ours: BTreeSet<u32>,
    /// By number and start: name, ticks when it was seen first, and now.
    seen: BTreeMap<(u32, u64), (String, u64, u64)>,
    is_first: bool,
    stolen_before: u64,
    begun_ns: u64,
}

impl Others {
    /// Looks for the first time, at a time of the caller's clock. `ours` and what descends from them is the run's.
    pub(super) fn begin(ours: impl IntoIterator<Item = u32>, time_ns: u64) -> Self {
        let ours = ours.into_iter().chain([std::process::id()]).collect();
        let mut others =
            Self { ours, seen: BTreeMap::new(), is_first: true, stolen_before: stolen_ticks(), begun_ns: time_ns };
        others.look();
        others
    }

    /// Looks again: who ends before the next time is known up to now.
    pub(super) fn look(&mut self) {
        self.take(&processes());
    }

    fn take(&mut self, processes: &[Process]) {
        // Whoever descends from the run stays its own, also when its parent has ended.
        self.ours = descendants(processes, &self.ours);
        for one in processes.iter().filter(|one| !one.is_kernel && !self.ours.contains(&one.pid)) {
            // Who was not there the first time began since, so that all of its time counts.
            let before = if self.is_first { one.ticks } else { 0 };
            let seen = self.seen.entry((one.pid, one.start_ticks)).or_insert((one.name.clone(), before, before));
            seen.0.clone_from(&one.name);
            seen.2 = one.ticks;
        }
        self.is_first = false;
    }

    /// Looks for the last time; who used most stands first.
    pub(super) fn finish(mut self, time_ns: u64) -> Vec<OtherRow> {
        self.look();
        let cores = CoreTimes::read().map_or(1, |times| times.cores.len().max(1));
        let stolen = stolen_ticks().saturating_sub(self.stolen_before);
        self.rows(time_ns, cores as u32, stolen)
    }

    fn rows(self, time_ns: u64, cores: u32, stolen_ticks: u64) -> Vec<OtherRow> {
        let wall_ns = time_ns.saturating_sub(self.begun_ns);
        let row = |process: String, pid: u32, ticks: u64| OtherRow {
            process,
            pid,
            cpu_ns: ticks * NS_PER_TICK,
            wall_ns,
            cores,
        };
        let of_processes =
            self.seen.into_iter().map(|((pid, _), (name, before, now))| row(name, pid, now.saturating_sub(before)));
        let stolen = row("hypervisor".to_owned(), 0, stolen_ticks);
        let mut rows: Vec<OtherRow> = of_processes
            .chain([stolen])
            .filter(|row| row.cpu_ns as f64 >= LEAST_RATIO * wall_ns.max(1) as f64)
            .collect();
        rows.sort_by(|one, other| other.cpu_ns.cmp(&one.cpu_ns).then(one.pid.cmp(&other.pid)));
        rows.truncate(MOST_ROWS);
        rows
    }
}

/// Those of the numbers, and whoever descends from them.
fn descendants(processes: &[Process], of: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut all = of.clone();
    loop {
        let more: Vec<u32> = processes
            .iter()
            .filter(|one| all.contains(&one.parent) && !all.contains(&one.pid))
            .map(|one| one.pid)
            .collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

/// All that can be seen from here.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// `PID (NAME) STATE PPID ..`: flags are field 9, utime 14, stime 15, start time 22 (proc(5)).
fn parse(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Process {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        parent: number(4)? as u32,
        is_kernel: number(9)? & KERNEL_THREAD != 0,
        ticks: number(14)? + number(15)?,
        start_ticks: number(22)?,
    })
}

/// Time in which this virtual machine wanted cores and its hypervisor gave them to others.
fn stolen_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = text.lines().next().unwrap_or_default().split_ascii_whitespace();
    all.skip(1).nth(7).and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, ticks: u64) -> Process {
        Process { pid, name: format!("p{pid}"), parent, is_kernel: pid == 2, ticks, start_ticks: 7 }
    }

    fn empty(ours: &[u32]) -> Others {
        let ours = ours.iter().copied().collect();
        Others { ours, seen: BTreeMap::new(), is_first: true, stolen_before: 0, begun_ns: 1_000_000_000 }
    }

    #[test]
    fn a_name_may_hold_whatever_it_likes() {
        let stat = "42 (a) (b c) R 7 42 42 0 -1 4194304 1 0 0 0 30 12 0 0 20 0 1 0 991 1 1";
        let found = parse(stat).unwrap();
        assert_eq!((found.pid, found.name.as_str(), found.parent), (42, "a) (b c", 7));
        assert_eq!((found.ticks, found.start_ticks, found.is_kernel), (42, 991, false));
        assert_eq!(parse("42 (a"), None);
    }

    #[test]
    fn who_is_not_of_the_run_is_told_of_with_what_it_used_meanwhile() {
        let mut others = empty(&[10]);
        // The run is 10, its child 11, its grandchild 12; 2 is the kernel's.
        others.take(&[
            process(2, 0, 100),
            process(10, 1, 50),
            process(11, 10, 0),
            process(12, 11, 0),
            process(20, 1, 1000),
        ]);
        // 21 began since, and 22 is a child of the run that began since.
        others.take(&[
            process(2, 0, 900),
            process(12, 11, 500),
            process(20, 1, 1100),
            process(21, 1, 30),
            process(22, 12, 99),
        ]);
        // 21 has ended, and another process has its number.
        let reused = Process { name: "new".into(), start_ticks: 8, ..process(21, 1, 5) };
        others.take(&[process(20, 1, 1197), reused]);
        let rows = others.rows(3_000_000_000, 2, 40);
        let told: Vec<_> = rows.iter().map(|row| (row.process.as_str(), row.pid, row.cpu_ns / 1_000_000)).collect();
        assert_eq!(told, [("p20", 20, 1970), ("hypervisor", 0, 400), ("p21", 21, 300), ("new", 21, 50)]);
        assert!(rows.iter().all(|row| (row.wall_ns, row.cores) == (2_000_000_000, 2)));
    }

    #[test]
    fn who_used_next_to_nothing_is_not_told_of() {
        let mut others = empty(&[]);
        others.take(&[process(20, 1, 0)]);
        others.take(&[process(20, 1, 1)]);
        assert_eq!(others.rows(3_000_000_000, 2, 0), []);
    }

    #[test]
    fn this_process_is_the_runs() {
        let others = Others::begin([], 0);
        assert!(others.seen.keys().all(|(pid, _)| *pid != std::process::id()));
    }
}
