//! What a replay shows: links and queues at times the same distance apart, a few hundred of them however long the run is. Nobody
//! knows before how long that will be, so they begin close together, and each time there are too many every other one is forgotten.

use super::Simulation;
use super::timers::Timer;
use crate::outcome::Frame;

/// Most frames that are kept, and one.
const FRAMES_MOST: usize = 400;
/// Distance of the first frames: 10 us.
const FIRST_INTERVAL_PS: u64 = 10_000_000;

/// Frames so far.
#[derive(Debug)]
pub(super) struct Reel {
    interval_ps: u64,
    frames: Vec<Frame>,
}

impl Default for Reel {
    fn default() -> Self {
        Self { interval_ps: FIRST_INTERVAL_PS, frames: Vec::new() }
    }
}

impl Reel {
    /// Keeps a frame, and says how long it is until the next.
    fn keep(&mut self, frame: Frame) -> u64 {
        self.frames.push(frame);
        if self.frames.len() > FRAMES_MOST {
            let mut place = 0;
            self.frames.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.interval_ps *= 2;
        }
        self.interval_ps
    }

    /// All frames, with one of the end.
    pub(super) fn finish(mut self, end: Frame) -> Vec<Frame> {
        if self.frames.last().is_some_and(|last| last.time_ps < end.time_ps) {
            self.frames.push(end);
        }
        self.frames
    }
}

impl Simulation<'_> {
    /// Keeps a frame of now, and will again.
    pub(super) fn sample_replay(&mut self) {
        let frame = self.moment();
        let interval_ps = self.reel.keep(frame);
        self.arm(self.network.now_ps.saturating_add(interval_ps), Timer::Replay);
    }

    pub(super) fn moment(&self) -> Frame {
        let port = |number: u16| (self.counters(usize::from(number)), self.network.backlog_bytes(number));
        Frame { time_ps: self.network.now_ps, ports: (0..self.network.ports.len() as u16).map(port).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of a run of this length, taken whenever the reel wants one.
    fn reel(length_ps: u64) -> Vec<u64> {
        let (mut reel, mut now_ps) = (Reel::default(), 0);
        let frame = |time_ps| Frame { time_ps, ports: Vec::new() };
        while now_ps <= length_ps {
            now_ps += reel.keep(frame(now_ps));
        }
        reel.finish(frame(length_ps)).into_iter().map(|frame| frame.time_ps).collect()
    }

    #[test]
    fn a_run_of_any_length_has_hundreds_of_frames_the_same_distance_apart() {
        for length_ps in [3_000_000_000, 7_800_000_000_000, 395_000_000_000_001] {
            let times = reel(length_ps);
            assert!((FRAMES_MOST / 2..=FRAMES_MOST + 1).contains(&times.len()), "{} of {length_ps}", times.len());
            let (first, last) = (times[1] - times[0], *times.last().unwrap());
            assert!(times[..times.len() - 1].windows(2).all(|pair| pair[1] - pair[0] == first), "{length_ps}");
            assert_eq!((times[0], last), (0, length_ps));
        }
    }
}
