//! What a replay shows, kept while a run lasts.

use weft_scenario::record::{Moment, PortMoment, Reel, WindowMoment};
use weft_scenario::units::Nanos;

use super::Simulation;
use super::flow::{Phase, SenderEnd};
use super::follow::Followed;
use super::part::after;
use super::timers::Timer;
use crate::time::PS_PER_NS;

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
        self.timers.add(after(self.now_ps, interval), Timer::Replay);
    }

    /// All ports as they are now.
    pub(super) fn moment(&self) -> Moment {
        let port = |number: u32| {
            let counters = self.counters(number);
            PortMoment {
                sent_bytes: counters.interface_bytes(),
                dropped_frames: counters.drops,
                queued_bytes: self.parts.iter().map(|part| part.network.backlog_bytes(number)).sum(),
            }
        };
        let ports = (0..self.ports()).map(port).collect();
        Moment { time_ns: self.now_ps / PS_PER_NS, ports, windows: self.windows() }
    }

    /// Senders of flows that are followed and open.
    fn windows(&self) -> Vec<WindowMoment> {
        let open = self.parts.iter().flat_map(|part| part.senders.iter().map(move |end| (&part.followed, end)));
        let followed = open.filter(|(followed, end)| end.phase == Phase::Open && followed.has(end.who.number));
        let window = |(_, end): (&Followed, &SenderEnd)| WindowMoment {
            flow: end.who.number.into(),
            cwnd_segments: end.sender.cwnd(),
            srtt_ns: end.sender.srtt().unwrap_or(0) / PS_PER_NS,
        };
        let mut windows: Vec<WindowMoment> = followed.map(window).collect();
        windows.sort_by_key(|window| window.flow);
        windows
    }
}
