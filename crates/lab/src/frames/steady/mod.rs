//! What switches and servers use while a rate is held, and while nothing comes: CPU time as the kernel counts it, not a cost per frame
//! times a rate.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`servers`] | the VXLAN draft's servers: a core each, with an edge switch and VMs on it |
//! | [`switches`] | RBridges and other switches at XDP: kernel threads of their ports, and their daemons |
//! | [`threads`] | these threads |

mod servers;
mod switches;
mod threads;

pub(super) use servers::of_servers;
pub(super) use switches::of_switches;

use std::time::{Duration, Instant};

use super::Run;
use crate::error::LabError;
use crate::tester::usage::core_idle_ns;

/// How long each rate is held, and nothing is sent before.
fn each(run: &Run<'_>) -> Duration {
    Duration::from_nanos(run.spec.steady.as_ref().expect("asked for").each.0)
}

/// A reading of a core's clock.
#[derive(Clone, Copy)]
struct CoreClock {
    core: usize,
    idle_ns: u64,
    at: Instant,
}

/// What a core did between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CoreTime {
    busy_ns: u64,
    idle_ns: u64,
}

impl CoreClock {
    fn read(core: usize) -> Result<Self, LabError> {
        Ok(Self { core, idle_ns: core_idle_ns(core)?, at: Instant::now() })
    }

    fn since(self) -> Result<CoreTime, LabError> {
        let now = Self::read(self.core)?;
        let idle_ns = now.idle_ns.saturating_sub(self.idle_ns);
        let wall_ns = (now.at - self.at).as_nanos() as u64;
        Ok(CoreTime { busy_ns: wall_ns.saturating_sub(idle_ns), idle_ns })
    }
}

#[cfg(test)]
mod tests {
    use weft_testbed::cpu;

    use super::*;

    #[test]
    fn what_a_core_does_not_idle_it_worked() {
        if !weft_needs::root() {
            return;
        }
        // Whatever else runs there can only add to it.
        let core = super::super::cores::Cores::of_this_machine().map_or(0, |cores| cores.server);
        let worked = std::thread::spawn(move || {
            cpu::pin_this_thread(core).unwrap();
            let (clock, before) = (CoreClock::read(core).unwrap(), cpu::this_thread_ns());
            while cpu::this_thread_ns() < before + 200_000_000 {
                std::hint::spin_loop();
            }
            clock.since().unwrap().busy_ns
        });
        let worked = worked.join().unwrap();
        assert!(worked >= 190_000_000, "{worked} ns of 200 ms of work were seen");
    }
}
