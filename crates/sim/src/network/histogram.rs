//! How long a queue had which length, exactly, although the engine sees the queue only when a packet comes.
//!
//! Between two packets a queue drains at the port's rate, so the time it spends in a bin is the bin's width in bytes times
//! the time of a byte, for every bin that it passes on its way down.

use super::port::{Port, Wire};

/// Bins of equal width at the beginning, each this wide in bytes: a queue of one packet is within the first.
const LINEAR_BYTES: u64 = 2_048;
/// How many of them, and how many bins each doubling has after them.
const PER_OCTAVE: u64 = 16;

/// Time-weighted distribution of one port's queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueHistogram {
    /// Time with an empty queue, in picoseconds.
    empty_ps: u64,
    bins: Vec<Bin>,
    /// The bin that the queue was in when it was last looked at.
    last: usize,
    /// Everything up to here has been counted.
    counted_ps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    /// The longest queue of the bin, in picoseconds of transmission.
    upper_ps: u64,
    /// Time in it, in picoseconds.
    time_ps: u64,
}

impl QueueHistogram {
    /// Counts the time since the last call, during which the port's queue has only drained.
    pub(crate) fn count_until(&mut self, now_ps: u64, port: &Port, wire: &Wire) {
        let span_ps = now_ps.saturating_sub(self.counted_ps);
        let before_ps = port.backlog_ps(self.counted_ps);
        let drained_ps = before_ps.min(span_ps);
        self.empty_ps += span_ps - drained_ps;
        self.counted_ps = self.counted_ps.max(now_ps);
        if drained_ps > 0 {
            self.find(before_ps, wire);
            self.drain(before_ps, before_ps - drained_ps);
        }
    }

    /// Pairs of the most bytes of a bin and the time in it, in picoseconds; the first pair is the empty queue.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, u64)> {
        let bins = (0..).zip(&self.bins).map(|(number, bin)| (upper_bytes(number), bin.time_ps));
        std::iter::once((0, self.empty_ps)).chain(bins).filter(|(_, time_ps)| *time_ps > 0)
    }

    /// Finds the bin of a queue that packets have made longer, or a link that went down has emptied meanwhile.
    fn find(&mut self, length_ps: u64, wire: &Wire) {
        while self.last.checked_sub(1).is_some_and(|below| self.bins[below].upper_ps >= length_ps) {
            self.last -= 1;
        }
        while self.bins.get(self.last).is_none_or(|bin| bin.upper_ps < length_ps) {
            if self.last >= self.bins.len() {
                let upper_ps = wire.transmission_ps(upper_bytes(self.bins.len() as u64));
                self.bins.push(Bin { upper_ps, time_ps: 0 });
            } else {
                self.last += 1;
            }
        }
    }

    /// Counts a queue that shrinks from one length in the last bin to another, both in picoseconds of transmission.
    fn drain(&mut self, mut from_ps: u64, to_ps: u64) {
        loop {
            let below_ps = self.last.checked_sub(1).map_or(0, |below| self.bins[below].upper_ps);
            let floor_ps = below_ps.max(to_ps);
            self.bins[self.last].time_ps += from_ps - floor_ps;
            if floor_ps == to_ps {
                return;
            }
            from_ps = floor_ps;
            self.last -= 1;
        }
    }
}

/// The most bytes of a bin.
fn upper_bytes(bin: u64) -> u64 {
    if bin < PER_OCTAVE {
        return (bin + 1) * LINEAR_BYTES;
    }
    let (octave, within) = (bin / PER_OCTAVE - 1, bin % PER_OCTAVE);
    ((PER_OCTAVE + within + 1) << octave) * LINEAR_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_grow_by_a_sixteenth_of_an_octave() {
        let widths: Vec<u64> = (1..200).map(|bin| upper_bytes(bin) - upper_bytes(bin - 1)).collect();
        assert_eq!(upper_bytes(0), 2_048);
        assert!(widths.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == 2 * pair[0]));
        assert!((1..200).all(|bin| upper_bytes(bin) - upper_bytes(bin - 1) <= upper_bytes(bin) / 16 + 2_048));
        assert!(upper_bytes(160) > 10_000_000, "ten megabytes lie within a few bins");
    }

    #[test]
    fn a_draining_queue_spends_equal_times_in_equal_bins() {
        // 10 Gb/s: a byte is 800 ps. 6144 bytes arrive at once and take 3 x 2048 x 800 ps.
        let wire = Wire::new(10_000_000_000, 0);
        let mut port = Port::new(0, 0);
        let mut histogram = QueueHistogram::default();
        let bin_ps = 2048 * 800;
        histogram.count_until(1_000, &port, &wire);
        port.transmit(1_000, 3 * bin_ps, false, &wire);
        histogram.count_until(1_000 + 3 * bin_ps + 5_000, &port, &wire);
        let rows: Vec<(u64, u64)> = histogram.rows().collect();
        assert_eq!(rows, [(0, 6_000), (2048, bin_ps), (4096, bin_ps), (6144, bin_ps)]);
        // Again, but looked at on the way down.
        let start_ps = histogram.counted_ps;
        port.transmit(start_ps, 3 * bin_ps, false, &wire);
        for part in 1..=7 {
            histogram.count_until(start_ps + part * bin_ps / 2, &port, &wire);
        }
        let again: Vec<(u64, u64)> = histogram.rows().collect();
        assert_eq!(again, [(0, 6_000 + bin_ps / 2), (2048, 2 * bin_ps), (4096, 2 * bin_ps), (6144, 2 * bin_ps)]);
    }
    #[test]
    fn a_queue_that_a_dead_link_empties_begins_again_in_the_first_bin() {
        let wire = Wire::new(10_000_000_000, 0);
        let mut port = Port::new(0, 0);
        let mut histogram = QueueHistogram::default();
        let bin_ps = 2048 * 800;
        port.transmit(0, 3 * bin_ps, false, &wire);
        // Half of a bin has drained when everything is lost.
        histogram.count_until(bin_ps / 2, &port, &wire);
        port.busy_ps = bin_ps / 2;
        // A short packet on the same link, later.
        histogram.count_until(bin_ps, &port, &wire);
        port.transmit(bin_ps, bin_ps / 4, false, &wire);
        histogram.count_until(2 * bin_ps, &port, &wire);
        let rows: Vec<(u64, u64)> = histogram.rows().collect();
        assert_eq!(rows, [(0, bin_ps / 2 + bin_ps * 3 / 4), (2048, bin_ps / 4), (6144, bin_ps / 2)]);
    }
}
