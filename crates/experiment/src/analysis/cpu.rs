//! Whether the machine that emulates the fabric had CPU to spare, and who took it where it had none.

use std::collections::{BTreeMap, BTreeSet};

use weft_scenario::record::{CpuRow, Records, WaitRow};

use super::TrialRecords;
use super::series::Window;
use crate::query::{Database, QueryError};

/// A run is CPU-bound if its programs waited longer than this for a core, in milliseconds, on average over each time they became ready.
pub const MOST_WAIT_MS: f64 = 8.0;

/// Where the kernel does not say what programs wait: a run is CPU-bound if its busiest core idled less than this share of the
/// window. Then a machine that others use is CPU-bound, too, whatever the run needs of it.
pub const LEAST_IDLE_RATIO: f64 = 0.05;

/// What a trial says of the CPU, over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// How long a program of the run was ready and had no core, in milliseconds: the mean of all times that one became ready. `None`
    /// where the kernel does not say.
    pub wait_ms: Option<f64>,
    /// Idle share of the busiest core; `None`: nobody looked.
    pub idle_ratio: Option<f64>,
}

impl Pressure {
    /// Of a trial's rows.
    pub fn of(records: &Records, window: Window) -> Self {
        let idle = mean_idle(&records.cpu, window).into_values();
        Self { wait_ms: wait_ms(&records.core_waits, window), idle_ratio: idle.min_by(f64::total_cmp) }
    }

    /// Whether the CPU was the bottleneck. This is the one place that says so.
    pub fn is_bound(self) -> bool {
        match (self.wait_ms, self.idle_ratio) {
            (Some(wait_ms), _) => wait_ms > MOST_WAIT_MS,
            (None, Some(ratio)) => ratio < LEAST_IDLE_RATIO,
            (None, None) => false,
        }
    }

    /// By what it is judged, with the limit: `its programs waited 0.31 ms for a core (mean; at most 8 ms)`.
    pub fn words(self) -> String {
        let percent = |ratio: f64| format!("{:.0} %", 100.0 * ratio);
        match (self.wait_ms, self.idle_ratio) {
            (Some(wait_ms), _) => {
                let digits = if wait_ms < 1.0 { 2 } else { 1 };
                format!("its programs waited {wait_ms:.digits$} ms for a core (mean; at most {MOST_WAIT_MS} ms)")
            }
            (None, Some(ratio)) => format!(
                "the busiest core idled {} (at least {}; this kernel does not say what programs wait)",
                percent(ratio),
                percent(LEAST_IDLE_RATIO)
            ),
            (None, None) => "nobody looked at the CPU".to_owned(),
        }
    }
}

/// Of all rows in the window, programs that send and receive and the kernel's threads together: what one of them waits, packets wait.
fn wait_ms(rows: &[WaitRow], window: Window) -> Option<f64> {
    let counted = rows.iter().filter(|row| row.who != "daemons" && is_within(row.time_ns, window));
    let (waited_ns, turns) = counted.fold((0, 0), |(waited, turns), row| (waited + row.waited_ns, turns + row.turns));
    (turns > 0).then(|| waited_ns as f64 / 1e6 / turns as f64)
}

/// What the run's verdict rests on, for each time at which rows were written: seconds and [`Pressure::wait_ms`].
pub fn waits_over_time(rows: &[WaitRow]) -> Vec<(f64, f64)> {
    let times: BTreeSet<u64> = rows.iter().map(|row| row.time_ns).collect();
    let at = |time_ns: u64| {
        let of_time: Vec<WaitRow> = rows.iter().filter(|row| row.time_ns == time_ns).cloned().collect();
        let all = Window { from_s: f64::NEG_INFINITY, to_s: f64::INFINITY };
        Some((time_ns as f64 / 1e9, wait_ms(&of_time, all)?))
    };
    times.into_iter().filter_map(at).collect()
}

fn is_within(time_ns: u64, window: Window) -> bool {
    let time_s = time_ns as f64 / 1e9;
    time_s > window.from_s && time_s <= window.to_s
}

/// Mean idle share of every core over the window, by core. Cores without a row in it are left out.
pub fn mean_idle(rows: &[CpuRow], window: Window) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    for row in rows.iter().filter(|row| is_within(row.time_ns, window)) {
        let sum = sums.entry(row.core).or_default();
        *sum = (sum.0 + row.idle_ratio, sum.1 + 1);
    }
    sums.into_iter().map(|(core, (sum, count))| (core, sum / f64::from(count))).collect()
}

/// What a run's result begins with: whether the CPU was the bottleneck, and who else used it. `None` where neither is worth a word.
pub fn told(database: &Database, trials: &[TrialRecords]) -> Result<Option<String>, QueryError> {
    let answer = database.ask("select max(wait_ms), min(idle_ratio) from pressure")?;
    let number = |place: usize| answer.rows.first().and_then(|row| row.get(place)?.number());
    let pressure = Pressure { wait_ms: number(0), idle_ratio: number(1) };
    Ok(sentence(pressure, others(trials.iter().map(|trial| &trial.records)).as_deref()))
}

fn sentence(pressure: Pressure, others: Option<&str>) -> Option<String> {
    let words = pressure.words();
    match (pressure.is_bound(), others) {
        (true, Some(others)) => {
            Some(format!("The CPU of this machine was the bottleneck: {others}; of the run, {words}."))
        }
        (true, None) => {
            let alone = "the run alone takes more than it has";
            Some(format!("The CPU of this machine was the bottleneck: {alone}; {words}."))
        }
        (false, Some(others)) => Some(format!("The machine was in use: {others}; it did not matter: {words}.")),
        (false, None) => None,
    }
}

/// Below this many cores nobody is told of who else used the machine.
const LEAST_TOLD: f64 = 0.1;
/// So many are told of by name.
const NAMED: usize = 3;

/// Who else used how much of the machine during trials: `sh (process 4711) took 0.98 of its 2 cores, sh (process 4712) 0.97`;
/// processes of one name are one where they are many. `None` if nobody used enough to speak of.
pub fn others<'a>(trials: impl IntoIterator<Item = &'a Records>) -> Option<String> {
    // By name: processes, cores of each trial in which they were.
    let mut by_name: BTreeMap<&str, (BTreeMap<u32, ()>, f64)> = BTreeMap::new();
    let (mut looked_s, mut cores) = (0.0, 1);
    for records in trials {
        looked_s += records.others.first().map_or(0, |row| row.wall_ns) as f64 / 1e9;
        for row in &records.others {
            let (pids, cpu_s) = by_name.entry(&row.process).or_default();
            pids.insert(row.pid, ());
            *cpu_s += row.cpu_ns as f64 / 1e9;
            cores = row.cores;
        }
    }
    let mut all: Vec<(String, f64)> = by_name
        .into_iter()
        .map(|(name, (pids, cpu_s))| {
            let pids: Vec<u32> = pids.into_keys().collect();
            let who = match pids.as_slice() {
                [0] => format!("the {name}, for other virtual machines,"),
                [pid] => format!("`{name}` (process {pid})"),
                [one, other] => format!("`{name}` (processes {one} and {other})"),
                many => format!("`{name}` ({} processes)", many.len()),
            };
            (who, cpu_s / f64::max(looked_s, 1e-9))
        })
        .collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    let sum: f64 = all.iter().map(|(_, share)| share).sum();
    if sum < LEAST_TOLD {
        return None;
    }
    let rest: f64 = all.iter().skip(NAMED).map(|(_, share)| share).sum();
    let mut named: Vec<String> = all.iter().take(NAMED).map(|(who, share)| format!("{who} took {share:.2}")).collect();
    if rest >= LEAST_TOLD {
        named.push(format!("others {rest:.2}"));
    }
    Some(format!("{} of {cores} cores", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use weft_scenario::record::OtherRow;

    use super::*;

    const WINDOW: Window = Window { from_s: 1.0, to_s: 3.0 };

    fn row(second: u64, core: u32, idle_ratio: f64) -> CpuRow {
        CpuRow { time_ns: second * 1_000_000_000, core, idle_ratio, softirq_ratio: 0.0 }
    }

    fn waits(second: u64, who: &str, waited_ms: u64, turns: u64) -> WaitRow {
        let (time_ns, waited_ns) = (second * 1_000_000_000, waited_ms * 1_000_000);
        WaitRow { time_ns, who: who.to_owned(), wall_ns: 1_000_000_000, ran_ns: 1, waited_ns, turns }
    }

    #[test]
    fn rows_outside_the_window_do_not_count() {
        let rows = [row(1, 0, 0.0), row(2, 0, 0.9), row(3, 0, 0.9), row(4, 0, 0.0), row(2, 1, 0.02), row(3, 1, 0.06)];
        assert_eq!(mean_idle(&rows, WINDOW), [(0, 0.9), (1, 0.04)].into());
        assert_eq!(mean_idle(&[], WINDOW), BTreeMap::new());
    }

    #[test]
    fn what_programs_and_soft_interrupts_waited_decides_and_idle_time_does_not() {
        let of = |traffic_ms, softirq_ms| {
            let core_waits = vec![
                waits(1, "traffic", 9000, 1),
                waits(2, "traffic", traffic_ms, 900),
                waits(2, "daemons", 9000, 1),
                waits(3, "softirq", softirq_ms, 100),
            ];
            Pressure::of(&Records { core_waits, cpu: vec![row(2, 0, 0.0)], ..Records::default() }, WINDOW)
        };
        assert_eq!(of(480, 20).wait_ms, Some(0.5));
        assert_eq!(of(500, 0).idle_ratio, Some(0.0));
        assert!(!of(500, 0).is_bound(), "a core without idle time is no bottleneck if nobody waits for it");
        assert!(!of(8000, 0).is_bound() && of(7999, 2).is_bound());
        assert_eq!(of(310, 0).words(), "its programs waited 0.31 ms for a core (mean; at most 8 ms)");
        assert_eq!(of(46_000, 0).words(), "its programs waited 46.0 ms for a core (mean; at most 8 ms)");
    }

    #[test]
    fn a_kernel_that_does_not_say_is_judged_by_its_busiest_core() {
        let of = |idle_ratio| {
            Pressure::of(&Records { cpu: vec![row(2, 0, 0.5), row(2, 1, idle_ratio)], ..Records::default() }, WINDOW)
        };
        assert!(of(0.04).is_bound() && !of(0.05).is_bound());
        let words = "the busiest core idled 4 % (at least 5 %; this kernel does not say what programs wait)";
        assert_eq!(of(0.04).words(), words);
        assert!(!Pressure::default().is_bound(), "in virtual time nobody waits for a core");
    }

    #[test]
    fn a_result_begins_with_who_took_the_cpu() {
        let of = |wait_ms, others| sentence(Pressure { wait_ms: Some(wait_ms), idle_ratio: Some(0.0) }, others);
        let sh = Some("`sh` (process 47) took 0.98 of 2 cores");
        assert_eq!(
            of(46.0, sh).unwrap(),
            "The CPU of this machine was the bottleneck: `sh` (process 47) took 0.98 of 2 cores; of the run, its programs waited \
             46.0 ms for a core (mean; at most 8 ms)."
        );
        assert!(of(46.0, None).unwrap().contains("the run alone takes more than it has"));
        assert!(
            of(0.5, sh)
                .unwrap()
                .starts_with("The machine was in use: `sh` (process 47) took 0.98 of 2 cores; it did not")
        );
        assert_eq!(of(0.5, None), None);
    }

    fn other(process: &str, pid: u32, cpu_ms: u64) -> OtherRow {
        OtherRow { process: process.into(), pid, cpu_ns: cpu_ms * 1_000_000, wall_ns: 10_000_000_000, cores: 2 }
    }

    #[test]
    fn who_else_used_the_machine_is_named() {
        let trial = |others: &[OtherRow]| Records { others: others.to_vec(), ..Records::default() };
        let one = trial(&[other("sh", 47, 9000), other("sh", 48, 1000), other("hypervisor", 0, 500)]);
        let two = trial(&[other("sh", 47, 10_000), other("hypervisor", 0, 1500)]);
        assert_eq!(
            others([&one, &two]).unwrap(),
            "`sh` (processes 47 and 48) took 1.00, the hypervisor, for other virtual machines, took 0.10 of 2 cores"
        );
        let many: Vec<OtherRow> = (1..=3).map(|pid| other("rustc", pid, 2000)).collect();
        assert_eq!(others([&trial(&many)]).unwrap(), "`rustc` (3 processes) took 0.60 of 2 cores");
        assert_eq!(others([&trial(&[other("sshd", 9, 900)])]), None);
        assert_eq!(others([]), None);
    }
}
