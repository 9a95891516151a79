//! CPU that a lab's daemons use, by their nodes.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::time::Instant;

use crate::process::ProcessId;
use crate::state::LabState;

/// Clock ticks in /proc are hundredths of a second on every Linux.
const MS_PER_TICK: u64 = 10;

/// What processes have used.
pub(super) struct Usage {
    processes: Vec<(String, ProcessId)>,
    before: HashMap<u32, u64>,
    read: Instant,
}

impl Usage {
    pub(super) fn of(state: &LabState) -> Self {
        let mut usage = Self { processes: Vec::new(), before: HashMap::new(), read: Instant::now() };
        usage.follow(state);
        usage.read();
        usage
    }

    /// Those that the lab has now.
    pub(super) fn follow(&mut self, state: &LabState) {
        self.processes = state.processes.iter().map(|process| (process.node.clone(), process.id)).collect();
    }

    /// Thousandths of a core since the reading before, of each node whose daemons used any. A process that was not there then
    /// counts from now on.
    pub(super) fn read(&mut self) -> Vec<(String, u32)> {
        let took_ms = (self.read.elapsed().as_millis() as u64).max(1);
        self.read = Instant::now();
        let (mut now, mut of_nodes) = (HashMap::new(), BTreeMap::<&str, u64>::new());
        for (node, id) in &self.processes {
            let Some(ticks) = ticks_of(*id) else { continue };
            let since = ticks.saturating_sub(*self.before.get(&id.pid).unwrap_or(&ticks));
            *of_nodes.entry(node).or_default() += since;
            now.insert(id.pid, ticks);
        }
        self.before = now;
        let used = of_nodes.into_iter().filter(|(_, ticks)| *ticks > 0);
        used.map(|(node, ticks)| (node.to_owned(), (1_000 * MS_PER_TICK * ticks / took_ms) as u32)).collect()
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
    use weft_scenario::engine::Overlay;

    use super::*;
    use crate::state::ProcessState;

    #[test]
    fn work_is_seen_at_its_node_and_a_number_that_was_reused_is_not() {
        let own = ProcessId::own();
        let mut state = LabState::bare("none", "none", Overlay::Routed, own);
        let process = |node: &str, id| ProcessState { node: node.into(), daemon: "agent".into(), id };
        let other = ProcessId { start_ticks: own.start_ticks + 1, ..own };
        state.processes = vec![process("s1", own), process("s2", other)];
        let mut usage = Usage::of(&state);
        let start = Instant::now();
        let mut sum = 0u64;
        while ticks_of(own).unwrap() < usage.before[&own.pid] + 3 {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
            assert!(start.elapsed().as_secs() < 60);
        }
        let read = usage.read();
        assert!(read.len() == 1 && read[0].0 == "s1" && read[0].1 > 0, "{read:?}");
        assert_eq!(ticks_of(other), None);
    }
}
