//! CPU that a lab's daemons use, by their nodes.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::time::Instant;

use crate::process::ProcessId;
use crate::state::ProcessState;

/// Clock ticks in /proc are hundredths of a second on every Linux.
const S_PER_TICK: f64 = 0.01;

/// What processes have used.
pub(crate) struct Usage {
    processes: Vec<(String, ProcessId)>,
    before: HashMap<u32, u64>,
    read: Instant,
}

impl Usage {
    pub(crate) fn of(processes: &[ProcessState]) -> Self {
        let mut usage = Self { processes: Vec::new(), before: HashMap::new(), read: Instant::now() };
        usage.follow(processes);
        usage.read();
        usage
    }

    /// Those that the lab has now.
    pub(super) fn follow(&mut self, processes: &[ProcessState]) {
        self.processes = processes.iter().map(|process| (process.node.clone(), process.id)).collect();
    }

    /// Share of a core since the reading before, of each node that has daemons. A process that was not there then counts from now
    /// on.
    pub(crate) fn read(&mut self) -> Vec<(String, f64)> {
        let took_s = self.read.elapsed().as_secs_f64().max(0.001);
        self.read = Instant::now();
        let (mut now, mut of_nodes) = (HashMap::new(), BTreeMap::<&str, u64>::new());
        for (node, id) in &self.processes {
            let Some(ticks) = ticks_of(*id) else { continue };
            let since = ticks.saturating_sub(*self.before.get(&id.pid).unwrap_or(&ticks));
            *of_nodes.entry(node).or_default() += since;
            now.insert(id.pid, ticks);
        }
        self.before = now;
        of_nodes.into_iter().map(|(node, ticks)| (node.to_owned(), S_PER_TICK * ticks as f64 / took_s)).collect()
    }
}

/// Ticks that a process has used in user mode and in the kernel, if it is still the same one.
fn ticks_of(id: ProcessId) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", id.pid)).ok()?;
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    // After the name: state is field 3, utime 14, stime 15, start time 22 (proc(5)).
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    (number(19)? == id.start_ticks).then_some(number(11)? + number(12)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen_at_its_node_and_a_number_that_was_reused_is_not() {
        let own = ProcessId::own();
        let process = |node: &str, id| ProcessState { node: node.into(), daemon: "agent".into(), id };
        let other = ProcessId { start_ticks: own.start_ticks + 1, ..own };
        let mut usage = Usage::of(&[process("s1", own), process("s2", other)]);
        let start = Instant::now();
        let mut sum = 0u64;
        while ticks_of(own).unwrap() < usage.before[&own.pid] + 3 {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
            assert!(start.elapsed().as_secs() < 60);
        }
        let read = usage.read();
        assert!(read.len() == 1 && read[0].0 == "s1" && read[0].1 > 0.0, "{read:?}");
        assert_eq!(ticks_of(other), None);
    }
}
