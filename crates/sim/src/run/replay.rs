//! What a replay shows, kept while a run lasts.

use weft_scenario::record::{Moment, PortMoment, Reel, WindowMoment};
use weft_scenario::units::Nanos;

use super::Simulation;
use super::flow::{FlowState, Phase};
use super::timers::Timer;
use crate::time::{PS_PER_NS, ps};

/// Moments that are kept of a network that is not large; there may be one more of the end.
const MOMENTS_MOST: usize = 400;
/// Moments of a large one are fewer: so many ports in all of them.
const PORTS_MOST: usize = 600_000;
const MOMENTS_LEAST: usize = 60;
const FIRST_INTERVAL: Nanos = Nanos(10_000);

/// An empty reel of a network with so many ports.
pub(super) fn reel(ports: usize) -> Reel {
    Reel::new(FIRST_INTERVAL, moments_most(ports))
}

/// How many moments it keeps, but that of the end.
pub(crate) fn moments_most(ports: usize) -> usize {
    (PORTS_MOST / ports.max(1)).clamp(MOMENTS_LEAST, MOMENTS_MOST)
}

impl Simulation<'_> {
    /// Keeps how everything is now, and will again.
    pub(super) fn sample_replay(&mut self) {
        let moment = self.moment();
        let interval = self.reel.keep(moment);
        self.arm(self.network.now_ps.saturating_add(ps(interval.0)), Timer::Replay);
    }

    /// All ports as they are now.
    pub(super) fn moment(&self) -> Moment {
        let port = |number: u32| {
            let counters = self.counters(number as usize);
            PortMoment {
                sent_bytes: counters.interface_bytes(),
                dropped_frames: counters.drops,
                queued_bytes: self.network.backlog_bytes(number),
            }
        };
        let ports = (0..self.network.ports.len() as u32).map(port).collect();
        Moment { time_ns: self.network.now_ps / PS_PER_NS, ports, windows: self.windows() }
    }

    /// Senders of flows that are followed and open.
    fn windows(&self) -> Vec<WindowMoment> {
        let followed = self.flows.iter().filter(|flow| flow.phase == Phase::Open && self.followed.has(flow.number));
        let window = |flow: &FlowState| WindowMoment {
            flow: flow.number.into(),
            cwnd_segments: flow.sender.cwnd(),
            srtt_ns: flow.sender.srtt().unwrap_or(0) / PS_PER_NS,
        };
        followed.map(window).collect()
    }
}
