//! Counters over time: what was counted at any moment, by straight lines between the samples.

use weft_scenario::record::Records;
use weft_scenario::units::Nanos;

/// A counter that starts at 0 at time 0 and never falls; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Cumulative {
    points: Vec<(f64, f64)>,
}

impl Cumulative {
    /// From samples in order of time. Samples that go back in time or count are left out.
    pub fn new(samples: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut points = vec![(0.0, 0.0)];
        for (time_ns, count) in samples {
            let (last_time, last_count) = points[points.len() - 1];
            let point = (Nanos(time_ns).as_secs_f64(), count as f64);
            if point.0 > last_time && point.1 >= last_count {
                points.push(point);
            }
        }
        Self { points }
    }

    /// Payload received by all servers; the last flow's end closes it, because samples may stop before it.
    pub fn of_payload(records: &Records) -> Self {
        let rows = records.progress.iter().map(|row| (row.time_ns, row.received_bytes));
        let total: u64 = records.flows.iter().map(|flow| flow.bytes_received).sum();
        let end = records.flows.iter().filter_map(|flow| flow.end_ns).max();
        Self::new(rows.chain(end.map(|end| (end, total))))
    }

    /// The last sample's time.
    pub fn end(&self) -> f64 {
        self.points[self.points.len() - 1].0
    }

    /// The last sample's count.
    pub fn total(&self) -> f64 {
        self.points[self.points.len() - 1].1
    }

    /// The count at a time; before the first and after the last sample the nearest one's.
    pub fn at(&self, time_s: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 < time_s);
        let Some(&(t1, c1)) = self.points.get(after) else { return self.total() };
        let Some(&(t0, c0)) = after.checked_sub(1).map(|before| &self.points[before]) else { return c1 };
        c0 + (c1 - c0) * (time_s - t0) / (t1 - t0)
    }

    /// When the count was reached first; `None` if it never was.
    pub fn time_of(&self, count: f64) -> Option<f64> {
        let after = self.points.iter().position(|point| point.1 >= count)?;
        let (t1, c1) = self.points[after];
        let Some(&(t0, c0)) = after.checked_sub(1).map(|before| &self.points[before]) else { return Some(t1) };
        Some(t0 + (t1 - t0) * (count - c0) / (c1 - c0))
    }

    /// Counts per second between two times; 0 for an empty span.
    pub fn rate(&self, from_s: f64, to_s: f64) -> f64 {
        if to_s > from_s { (self.at(to_s) - self.at(from_s)) / (to_s - from_s) } else { 0.0 }
    }

    /// Counts per second in bins of `width_s` from time 0 to the end, each at its middle.
    pub fn rates(&self, width_s: f64) -> Vec<(f64, f64)> {
        let bins = (self.end() / width_s).floor() as usize;
        let edge = |bin: usize| bin as f64 * width_s;
        (0..bins).map(|bin| (edge(bin) + width_s / 2.0, self.rate(edge(bin), edge(bin + 1)))).collect()
    }
}

/// A span of time in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Where it begins.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
}

impl Window {
    /// Its length.
    pub fn seconds(self) -> f64 {
        self.to_s - self.from_s
    }

    /// `count` parts of equal length.
    pub fn parts(self, count: usize) -> impl Iterator<Item = Window> {
        let step = self.seconds() / count as f64;
        let edge = move |part: usize| self.from_s + step * part as f64;
        (0..count).map(move |part| Window { from_s: edge(part), to_s: edge(part + 1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn counts_and_times_are_read_off_straight_lines() {
        let counter = Cumulative::new([(2 * S, 100), (4 * S, 100), (6 * S, 300)]);
        assert_eq!(counter.at(1.0), 50.0);
        assert_eq!(counter.at(3.0), 100.0);
        assert_eq!(counter.at(99.0), 300.0);
        assert_eq!(counter.at(-1.0), 0.0);
        assert_eq!(counter.time_of(50.0), Some(1.0));
        assert_eq!(counter.time_of(200.0), Some(5.0));
        assert_eq!(counter.time_of(301.0), None);
        assert_eq!(counter.rate(4.0, 6.0), 100.0);
        assert_eq!(counter.rate(4.0, 4.0), 0.0);
        assert_eq!(counter.rates(2.0), vec![(1.0, 50.0), (3.0, 0.0), (5.0, 100.0)]);
    }

    #[test]
    fn samples_that_run_backwards_are_left_out() {
        let counter = Cumulative::new([(2 * S, 100), (S, 120), (3 * S, 90), (4 * S, 200)]);
        assert_eq!(counter.at(3.0), 150.0);
    }

    #[test]
    fn without_samples_there_is_nothing() {
        let counter = Cumulative::new([]);
        assert_eq!((counter.end(), counter.total(), counter.at(5.0)), (0.0, 0.0, 0.0));
        assert!(counter.rates(1.0).is_empty());
    }

    #[test]
    fn parts_meet_end_to_end() {
        let parts: Vec<_> = Window { from_s: 1.0, to_s: 3.0 }.parts(4).collect();
        assert_eq!(parts[0], Window { from_s: 1.0, to_s: 1.5 });
        assert_eq!(parts[3], Window { from_s: 2.5, to_s: 3.0 });
    }
}
