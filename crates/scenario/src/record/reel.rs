//! What a replay shows: ports at times the same distance apart, some hundreds of them however long a run is. Nobody knows before how
//! long that will be, so they begin close together, and each time there are too many every other one is forgotten.

use super::{ReplayRow, WindowRow};
use crate::units::Nanos;

/// What a port has carried and dropped so far, and what waits at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortMoment {
    /// As its interface counts them.
    pub sent_bytes: u64,
    pub dropped_frames: u64,
    pub queued_bytes: u64,
}

/// The sender of a flow that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowMoment {
    /// Its row in `flows.csv`.
    pub flow: u64,
    pub cwnd_segments: u32,
    /// 0: none is known yet.
    pub srtt_ns: u64,
}

/// All ports at one time, and some flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Since the start of the run.
    pub time_ns: u64,
    /// In an order that stays the same.
    pub ports: Vec<PortMoment>,
    /// Those that are open.
    pub windows: Vec<WindowMoment>,
}

/// What rows call a port.
#[derive(Clone, Copy, Debug)]
pub struct PortName<'a> {
    pub node: &'a str,
    pub interface: &'a str,
    /// The node at the far end.
    pub peer: &'a str,
}

/// Moments so far.
#[derive(Debug)]
pub struct Reel {
    interval_ns: u64,
    most: usize,
    moments: Vec<Moment>,
}

impl Reel {
    /// One that begins with moments so far apart, and keeps at most so many, and one of the end.
    pub fn new(first_interval: Nanos, most: usize) -> Self {
        Self { interval_ns: first_interval.0.max(1), most, moments: Vec::new() }
    }

    /// Keeps a moment, and says how long it is until the next.
    pub fn keep(&mut self, moment: Moment) -> Nanos {
        self.moments.push(moment);
        if self.moments.len() > self.most {
            let mut place = 0;
            self.moments.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.interval_ns *= 2;
        }
        Nanos(self.interval_ns)
    }

    /// All moments, with that of the end.
    pub fn finish(mut self, end: Moment) -> Vec<Moment> {
        if self.moments.last().is_some_and(|last| last.time_ns < end.time_ns) {
            self.moments.push(end);
        }
        self.moments
    }
}

/// A row where a port is not as it was before, and all ports at the first and the last time.
pub fn replay_rows(moments: &[Moment], names: &[PortName<'_>]) -> Vec<ReplayRow> {
    let mut rows = Vec::new();
    for (place, moment) in moments.iter().enumerate() {
        let whole = place == 0 || place + 1 == moments.len();
        for (port, (now, name)) in moment.ports.iter().zip(names).enumerate() {
            if whole || moments[place - 1].ports[port] != *now {
                rows.push(row(moment.time_ns, now, name));
            }
        }
    }
    rows
}

/// A row for each flow that is followed and open.
pub fn window_rows(moments: &[Moment]) -> Vec<WindowRow> {
    let of_moment = |moment: &Moment| {
        let row = |time_ns: u64, WindowMoment { flow, cwnd_segments, srtt_ns }: WindowMoment| WindowRow {
            time_ns,
            flow,
            cwnd_segments,
            srtt_ns,
        };
        moment.windows.iter().map(|window| row(moment.time_ns, *window)).collect::<Vec<_>>()
    };
    moments.iter().flat_map(of_moment).collect()
}

fn row(time_ns: u64, now: &PortMoment, name: &PortName<'_>) -> ReplayRow {
    ReplayRow {
        time_ns,
        node: name.node.to_owned(),
        interface: name.interface.to_owned(),
        peer: name.peer.to_owned(),
        sent_bytes: now.sent_bytes,
        dropped_frames: now.dropped_frames,
        queued_bytes: now.queued_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(time_ns: u64, sent: [u64; 2]) -> Moment {
        let ports = sent.map(|sent_bytes| PortMoment { sent_bytes, ..PortMoment::default() });
        Moment { time_ns, ports: ports.to_vec(), windows: Vec::new() }
    }

    /// Times of a run of this length, kept whenever the reel wants one.
    fn reel(first_ns: u64, most: usize, length_ns: u64) -> Vec<u64> {
        let (mut reel, mut now_ns) = (Reel::new(Nanos(first_ns), most), 0);
        while now_ns <= length_ns {
            now_ns += reel.keep(moment(now_ns, [0; 2])).0;
        }
        reel.finish(moment(length_ns, [0; 2])).into_iter().map(|moment| moment.time_ns).collect()
    }

    #[test]
    fn a_run_of_any_length_has_hundreds_of_moments_the_same_distance_apart() {
        for length_ns in [3_000_000, 7_800_000_000, 395_000_000_001] {
            let times = reel(10_000, 400, length_ns);
            assert!((200..=401).contains(&times.len()), "{} of {length_ns}", times.len());
            let (first, last) = (times[1] - times[0], *times.last().unwrap());
            assert!(times[..times.len() - 1].windows(2).all(|pair| pair[1] - pair[0] == first), "{length_ns}");
            assert_eq!((times[0], last), (0, length_ns));
        }
    }

    #[test]
    fn rows_are_those_that_changed_and_all_of_the_first_and_the_last_time() {
        let moments =
            [moment(0, [0, 0]), moment(10, [5, 0]), moment(20, [5, 0]), moment(30, [5, 7]), moment(40, [5, 7])];
        let name = |interface| PortName { node: "tor1", interface, peer: "s1" };
        let rows = replay_rows(&moments, &[name("a"), name("b")]);
        let said: Vec<_> = rows.iter().map(|row| (row.time_ns, row.interface.as_str(), row.sent_bytes)).collect();
        assert_eq!(said, [(0, "a", 0), (0, "b", 0), (10, "a", 5), (30, "b", 7), (40, "a", 5), (40, "b", 7)]);
    }
}
