//! Traffic between racks, one matrix for each interval (VL2 3.3). The bytes of a flow are spread evenly over the time that
//! it is open, and everything outside is one rack. An entry may have the same rack at both ends, as in the paper.
//!
//! A matrix is kept as the list of its entries in the order in which pairs of racks were first seen, so that pairs which
//! never talk take no room.

use std::collections::HashMap;

use weft_scenario::units::Nanos;

use super::{End, Flow};

/// More matrices than this are a mistake, or one of the choice of the interval.
pub const INTERVALS_MAX: u64 = 20_000;
/// Most entries of all matrices together; they take eight bytes each.
pub const ENTRIES_MAX: usize = 1 << 25;
/// The rack of everything outside.
const OUTSIDE: u32 = u32::MAX;

/// The matrices of a log.
#[derive(Clone, Debug)]
pub struct Matrices {
    interval_ns: u64,
    pairs: HashMap<(u32, u32), usize>,
    /// By interval, then by pair.
    bytes: Vec<Vec<u64>>,
    entries: usize,
}

impl Matrices {
    /// No traffic yet; the interval is at least a nanosecond.
    pub fn new(interval: Nanos) -> Self {
        Self { interval_ns: interval.0.max(1), pairs: HashMap::new(), bytes: Vec::new(), entries: 0 }
    }

    /// The last interval of a flow; says why it is too late.
    pub fn last_interval(&self, flow: &Flow) -> Result<u64, String> {
        let last = flow.start_ns.max(flow.end_ns.saturating_sub(1)) / self.interval_ns;
        match last < INTERVALS_MAX {
            true => Ok(last),
            false => Err(format!(
                "the flow lasts until {} s after the first one, which makes more than {INTERVALS_MAX} matrices; choose a \
                 longer --interval or --no-matrices",
                flow.end_ns / 1_000_000_000
            )),
        }
    }

    /// Adds a flow; says why it cannot.
    pub fn add(&mut self, flow: &Flow) -> Result<(), String> {
        let last = self.last_interval(flow)?;
        let rack = |end| if let End::Server { rack, .. } = end { rack } else { OUTSIDE };
        let next = self.pairs.len();
        let pair = *self.pairs.entry((rack(flow.from), rack(flow.to))).or_insert(next);
        let first = flow.start_ns / self.interval_ns;
        if first == last {
            return self.put(first, pair, flow.bytes);
        }
        let sent_by = |time_ns: u64| {
            let (part, whole) = (u128::from(time_ns - flow.start_ns), u128::from(flow.end_ns - flow.start_ns));
            (u128::from(flow.bytes) * part / whole) as u64
        };
        let mut before = 0;
        for interval in first..=last {
            let sent = sent_by((interval + 1).saturating_mul(self.interval_ns).min(flow.end_ns));
            self.put(interval, pair, sent - before)?;
            before = sent;
        }
        Ok(())
    }

    /// The matrices of the whole intervals up to a time, all of the same length.
    pub fn finish(self, until_ns: u64) -> Vec<Vec<f64>> {
        let (whole, pairs) = ((until_ns / self.interval_ns) as usize, self.pairs.len());
        let mut rows = self.bytes;
        rows.resize(whole, Vec::new());
        let row = |row: Vec<u64>| {
            let mut row: Vec<f64> = row.into_iter().map(|bytes| bytes as f64).collect();
            row.resize(pairs, 0.0);
            row
        };
        rows.into_iter().map(row).collect()
    }

    fn put(&mut self, interval: u64, pair: usize, bytes: u64) -> Result<(), String> {
        let interval = interval as usize;
        if self.bytes.len() <= interval {
            self.bytes.resize(interval + 1, Vec::new());
        }
        let row = &mut self.bytes[interval];
        if row.len() <= pair {
            self.entries += pair + 1 - row.len();
            if self.entries > ENTRIES_MAX {
                return Err(format!(
                    "the matrices have more than {ENTRIES_MAX} entries; choose fewer racks (--rack-prefix, --racks), a \
                     longer --interval or --no-matrices"
                ));
            }
            row.resize(pair + 1, 0);
        }
        row[pair] = row[pair].saturating_add(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: Option<u32>, to: Option<u32>, bytes: u64, start_ns: u64, end_ns: u64) -> Flow {
        let end = |rack: Option<u32>| rack.map_or(End::Outside, |rack| End::Server { server: rack, rack });
        Flow { from: end(from), to: end(to), bytes, start_ns, end_ns }
    }

    fn matrices(flows: &[Flow], until_ns: u64) -> Vec<Vec<f64>> {
        let mut matrices = Matrices::new(Nanos(10));
        flows.iter().for_each(|flow| matrices.add(flow).unwrap());
        matrices.finish(until_ns)
    }

    #[test]
    fn bytes_are_spread_over_the_time_that_a_flow_is_open() {
        // 5 of 30 ns in the first interval, 10 in the next two, 5 in the last: 10 of 60 bytes, 20, 20, 10.
        assert_eq!(matrices(&[flow(Some(0), Some(1), 60, 5, 35)], 40), [[10.0], [20.0], [20.0], [10.0]]);
        // What does not divide evenly is not lost.
        let thirds = matrices(&[flow(Some(0), Some(1), 100, 0, 30)], 30);
        assert_eq!(thirds, [[33.0], [33.0], [34.0]]);
    }

    #[test]
    fn directions_racks_and_the_outside_are_told_apart() {
        let flows = [
            flow(Some(0), Some(1), 1, 0, 0),
            flow(Some(1), Some(0), 2, 1, 10),
            flow(None, Some(0), 4, 2, 3),
            flow(None, Some(0), 8, 12, 13),
            flow(Some(0), Some(0), 16, 14, 15),
        ];
        assert_eq!(matrices(&flows, 20), [[1.0, 2.0, 4.0, 0.0], [0.0, 0.0, 8.0, 16.0]]);
    }

    #[test]
    fn only_whole_intervals_count_and_empty_ones_too() {
        assert_eq!(matrices(&[flow(Some(0), Some(1), 7, 12, 13)], 39), [[0.0], [7.0], [0.0]]);
        assert_eq!(matrices(&[flow(Some(0), Some(1), 7, 0, 100)], 9), Vec::<Vec<f64>>::new());
    }

    #[test]
    fn a_log_that_would_take_too_much_room_is_refused() {
        let error = Matrices::new(Nanos(10)).add(&flow(Some(0), Some(1), 7, 0, u64::MAX)).unwrap_err();
        assert!(error.contains("more than 20000 matrices; choose a longer --interval"), "{error}");
        let mut many = Matrices::new(Nanos(10));
        let error = (0..).find_map(|pair| many.add(&flow(Some(pair), None, 1, 0, 10 * 20_000)).err()).unwrap();
        assert!(error.contains("more than 33554432 entries"), "{error}");
    }
}
