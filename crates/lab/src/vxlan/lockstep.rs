//! CPU time per frame in lock step: one core sends some frames through everything, then the VM takes what has arrived. So
//! nobody waits for anybody, nothing is lost, and what a cut leaves out is what lies behind it.

use std::time::Duration;

use weft_scenario::workload::Runs;

use super::bed::Bed;
use super::cores::Cores;
use super::load::Load;
use super::vm::order::{FRAME_OVER_PAYLOAD, Order};
use crate::tester::TesterError;
use crate::tester::cost::ChainCost;
use crate::tester::experiment::PATIENCE;

/// What a frame takes at most: how many frames fill a run follows from it.
const FRAME_NS: u64 = 3_000;
/// More would not fit into the VM's socket.
const FRAMES_MOST: u64 = 8_192;
const FRAMES_LEAST: u64 = 512;

/// Frames of one run.
pub(super) fn frames_of(runs: Runs) -> u64 {
    (runs.each.0 / FRAME_NS).clamp(FRAMES_LEAST, FRAMES_MOST)
}

/// Nanoseconds per frame of sending, and of taking what arrived, from many runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs {
    sending: Vec<f64>,
    taking: Vec<f64>,
}

impl Costs {
    /// The least of all runs, of both parts together; 0 of none.
    pub(super) fn sending_ns(&self) -> f64 {
        ChainCost::of(&self.sending).map_or(0.0, |cost| cost.min_ns)
    }

    /// What the VM takes by itself, the least of all runs; 0 where nothing arrived.
    pub(super) fn taking_ns(&self) -> f64 {
        ChainCost::of(&self.taking).map_or(0.0, |cost| cost.min_ns)
    }

    /// One run from the test centre's port to the VMs of a server.
    pub(super) fn run_from_tester(
        &mut self,
        bed: &mut Bed,
        load: &Load,
        (server, vms): (u8, u8),
        runs: Runs,
        cores: Cores,
    ) -> Result<(), TesterError> {
        let frames = frames_of(runs);
        let limit = Duration::from_nanos(runs.each.0) * PATIENCE;
        let sent = load.send(None, limit, frames)?;
        self.sending.push(sent.cpu_ns as f64 / sent.frames.max(1) as f64);
        let (mut taken, mut cpu_ns) = (0, 0);
        for vm in 1..=vms {
            let reply = bed.vm(server, vm).run(&Order::Drain { core: cores.tester })?;
            taken += reply.frames;
            cpu_ns += reply.cpu_ns;
        }
        self.took(taken, cpu_ns, sent.frames);
        Ok(())
    }

    /// One run from the first VM of server1 to the first of server2.
    pub(super) fn run_from_vm(
        &mut self,
        bed: &mut Bed,
        frame_bytes: u32,
        runs: Runs,
        cores: Cores,
    ) -> Result<(), TesterError> {
        let frames = frames_of(runs);
        let order = Order::Send {
            to: bed.vm(2, 1).socket(),
            payload_bytes: frame_bytes - FRAME_OVER_PAYLOAD,
            frames,
            duration_ns: runs.each.0 * u64::from(PATIENCE),
            core: Some(cores.tester),
        };
        let sent = bed.vm(1, 1).run(&order)?;
        self.sending.push(sent.cpu_ns as f64 / sent.frames.max(1) as f64);
        let taken = bed.vm(2, 1).run(&Order::Drain { core: cores.tester })?;
        self.took(taken.frames, taken.cpu_ns, sent.frames);
        Ok(())
    }

    /// A run in which only some frames arrived tells nothing about taking them.
    fn took(&mut self, taken: u64, cpu_ns: u64, sent: u64) {
        if taken > 0 && taken * 10 >= sent * 9 {
            self.taking.push(cpu_ns as f64 / taken as f64);
        }
    }
}

/// Reads a known cost back: nanoseconds per frame of the chain without and with it.
pub(super) fn known_and_read(known_ns: f64, without: &Costs, with: &Costs) -> (f64, f64) {
    (known_ns, with.sending_ns() - without.sending_ns())
}

#[cfg(test)]
mod tests {
    use weft_scenario::units::Nanos;

    use super::*;

    #[test]
    fn a_run_has_as_many_frames_as_its_time_asks_for_and_the_socket_holds() {
        let frames = |each_ns| frames_of(Runs { count: 1, each: Nanos(each_ns) });
        assert_eq!((frames(1), frames(6_000_000), frames(1_000_000_000)), (FRAMES_LEAST, 2_000, FRAMES_MOST));
    }

    #[test]
    fn the_least_disturbed_run_counts_and_one_that_lost_frames_does_not() {
        let mut costs = Costs { sending: vec![900.0, 700.0, 2_000.0], taking: Vec::new() };
        costs.took(0, 5, 1_000);
        costs.took(500, 400_000, 1_000);
        assert_eq!((costs.sending_ns(), costs.taking_ns()), (700.0, 0.0));
        costs.took(1_000, 400_000, 1_000);
        costs.took(950, 950_000, 1_000);
        assert_eq!(costs.taking_ns(), 400.0);
        let with = Costs { sending: vec![1_650.0], taking: Vec::new() };
        assert_eq!(known_and_read(1_000.0, &costs, &with), (1_000.0, 950.0));
    }
}
