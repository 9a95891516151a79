//! What happened when, as the page takes it: times, and for each direction of each link its use, drops and queue.
//!
//! A direction's number is twice that of its link, and one more from the link's second end to its first.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weft_scenario::record::{DaemonRow, Records};
use weft_scenario::topology::Fabric;

use super::events::Event;
use super::picture::Picture;

/// Most times of a document: all that engines keep for it.
const TIMES_MOST: usize = 620;

/// A piece of time. A document holds one of the whole run; a live source would send many.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chunk {
    /// Times, from the start of the run; use and drops are those since the time before.
    pub times_ns: Vec<u64>,
    /// For each direction at each time: bytes that the interface counted over what the rate allows, in thousandths.
    pub use_milli: Vec<Vec<u32>>,
    /// For each direction: place of a time, frames dropped, place of the next one, frames ..
    pub dropped: Vec<Vec<u64>>,
    /// For each direction at each time: bytes that wait. Empty where the rows do not say.
    pub queued_bytes: Vec<Vec<u64>>,
    pub events: Vec<Event>,
    /// Readings of CPU: place of a time, and drawn nodes whose daemons used any, with thousandths of a core since the reading before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_milli: Vec<(usize, Vec<(usize, u32)>)>,
    /// Of a network that runs: how many probes hear nothing at the last time, of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<(u32, u32)>,
}

impl Chunk {
    /// Of so many directions, without a time.
    pub(super) fn empty(directions: usize, has_queues: bool) -> Self {
        Self {
            use_milli: vec![Vec::new(); directions],
            dropped: vec![Vec::new(); directions],
            queued_bytes: vec![Vec::new(); if has_queues { directions } else { 0 }],
            ..Self::default()
        }
    }

    /// Adds what came next, of the same directions.
    pub(super) fn append(&mut self, next: &Self) {
        let begin = self.times_ns.len() as u64;
        self.times_ns.extend(&next.times_ns);
        self.use_milli.iter_mut().zip(&next.use_milli).for_each(|(all, more)| all.extend(more));
        self.queued_bytes.iter_mut().zip(&next.queued_bytes).for_each(|(all, more)| all.extend(more));
        for (all, more) in self.dropped.iter_mut().zip(&next.dropped) {
            all.extend(more.chunks_exact(2).flat_map(|pair| [begin + pair[0], pair[1]]));
        }
        self.events.extend(next.events.iter().cloned());
        let readings = next.cpu_milli.iter().map(|(place, nodes)| (begin as usize + place, nodes.clone()));
        self.cpu_milli.extend(readings);
        self.quiet = next.quiet.or(self.quiet);
    }

    /// Forgets its first times and what happened then, but for events that are to stay.
    pub(super) fn forget(&mut self, times: usize, stays: impl Fn(&Event) -> bool) {
        self.times_ns.drain(..times);
        self.use_milli.iter_mut().for_each(|all| drop(all.drain(..times)));
        self.queued_bytes.iter_mut().for_each(|all| drop(all.drain(..times)));
        for all in &mut self.dropped {
            let later = all.chunks_exact(2).filter(|pair| pair[0] >= times as u64);
            *all = later.flat_map(|pair| [pair[0] - times as u64, pair[1]]).collect();
        }
        self.cpu_milli.retain_mut(|(place, _)| {
            let stays = *place >= times;
            *place -= if stays { times } else { 0 };
            stays
        });
        let first = self.times_ns.first().copied().unwrap_or(u64::MAX);
        self.events.retain(|event| event.time_ns >= first || stays(event));
    }
}

/// One reading of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub(super) sent_bytes: u64,
    pub(super) dropped_frames: u64,
    pub(super) queued_bytes: u64,
}

/// Use of a rate in thousandths and frames dropped, between two readings.
pub(super) fn reading_of(now: Reading, before: Reading, rate_bps: u64, took_ns: u64) -> (u32, u64) {
    let bits = 8.0 * now.sent_bytes.saturating_sub(before.sent_bytes) as f64;
    let most = rate_bps as f64 * took_ns as f64 / 1e9;
    let use_milli = if took_ns > 0 { (1e3 * bits / most).round() as u32 } else { 0 };
    (use_milli, now.dropped_frames.saturating_sub(before.dropped_frames))
}

/// The chunk of a trial; `None` where its rows have less than two times.
pub(super) fn of(picture: &Picture<'_>, records: &Records, events: Vec<Event>) -> Option<Chunk> {
    let directions = directions(picture.real);
    let number = |node: &str, interface: &str| directions.get(&(node, interface)).copied();
    let has_queues = !records.replay.is_empty();
    let readings: Vec<(u64, usize, Reading)> = match has_queues {
        true => records
            .replay
            .iter()
            .filter_map(|row| {
                let (sent_bytes, dropped_frames, queued_bytes) = (row.sent_bytes, row.dropped_frames, row.queued_bytes);
                Some((
                    row.time_ns,
                    number(&row.node, &row.interface)?,
                    Reading { sent_bytes, dropped_frames, queued_bytes },
                ))
            })
            .collect(),
        false => records
            .links
            .iter()
            .filter_map(|row| {
                let (sent_bytes, dropped_frames) = (row.sent_bytes, row.dropped_frames);
                Some((
                    row.time_ns,
                    number(&row.node, &row.interface)?,
                    Reading { sent_bytes, dropped_frames, queued_bytes: 0 },
                ))
            })
            .collect(),
    };
    let times_ns = times(readings.iter().map(|(time_ns, ..)| *time_ns));
    let cpu_milli = cpu(picture, &times_ns, &records.daemons);
    let filled = |times_ns| Chunk { cpu_milli, ..fill(picture, times_ns, readings, has_queues, events) };
    (times_ns.len() > 1).then(|| filled(times_ns))
}

/// Readings of CPU, each at the first time that is not before it.
fn cpu(picture: &Picture<'_>, times_ns: &[u64], rows: &[DaemonRow]) -> Vec<(usize, Vec<(usize, u32)>)> {
    let mut readings: BTreeMap<usize, Vec<(&str, f64)>> = BTreeMap::new();
    for row in rows {
        let place = times_ns.partition_point(|time_ns| *time_ns < row.time_ns).min(times_ns.len().saturating_sub(1));
        readings.entry(place).or_default().push((&row.node, row.cpu_ratio));
    }
    readings.into_iter().map(|(place, usage)| (place, cpu_by_node(picture, usage))).collect()
}

/// What the daemons of drawn nodes used, in thousandths of a core; those that used none are left out.
pub(super) fn cpu_by_node<'n>(
    picture: &Picture<'_>,
    usage: impl IntoIterator<Item = (&'n str, f64)>,
) -> Vec<(usize, u32)> {
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    for (name, ratio) in usage {
        let drawn = picture.real.find(name).and_then(|node| picture.node(node.index()));
        if let Some(node) = drawn {
            *sums.entry(node).or_default() += ratio;
        }
    }
    let milli = sums.into_iter().map(|(node, ratio)| (node, (1e3 * ratio).round() as u32));
    milli.filter(|(_, milli)| *milli > 0).collect()
}

/// The direction that sends at an interface of a node.
pub(super) fn directions(fabric: &Fabric) -> BTreeMap<(&str, &str), usize> {
    let ends = fabric.links().iter().flat_map(|link| [&link.a, &link.b]).enumerate();
    ends.map(|(number, port)| ((fabric.node(port.node).name.as_str(), port.interface.as_str()), number)).collect()
}

/// The times of rows: all, or every second, third .. one, and the last.
fn times(all: impl Iterator<Item = u64>) -> Vec<u64> {
    let all: Vec<u64> = all.collect::<BTreeSet<_>>().into_iter().collect();
    let step = all.len().div_ceil(TIMES_MOST).max(1);
    let last = all.len().saturating_sub(1);
    all.iter()
        .enumerate()
        .filter(|(place, _)| place % step == 0 || *place == last)
        .map(|(_, time_ns)| *time_ns)
        .collect()
}

/// What drawn directions read, from what all directions do.
pub(super) fn sums(picture: &Picture<'_>, readings: &[Reading]) -> Vec<Reading> {
    let mut sums = vec![Reading::default(); 2 * picture.rates.len()];
    for (direction, reading) in readings.iter().enumerate() {
        if let Some(sum) = picture.direction(direction).map(|drawn| &mut sums[drawn]) {
            sum.sent_bytes += reading.sent_bytes;
            sum.dropped_frames += reading.dropped_frames;
            sum.queued_bytes += reading.queued_bytes;
        }
    }
    sums
}

/// A direction without a row at a time is as it was before.
fn fill(
    picture: &Picture<'_>,
    times_ns: Vec<u64>,
    mut readings: Vec<(u64, usize, Reading)>,
    has_queues: bool,
    events: Vec<Event>,
) -> Chunk {
    readings.sort_by_key(|(time_ns, ..)| *time_ns);
    let count = 2 * picture.rates.len();
    let mut chunk = Chunk { times_ns, events, ..Chunk::empty(count, has_queues) };
    let mut read = vec![Reading::default(); 2 * picture.real.links().len()];
    let mut before = vec![Reading::default(); count];
    let mut rows = readings.into_iter().peekable();
    for (place, time_ns) in chunk.times_ns.iter().enumerate() {
        while let Some((_, direction, reading)) = rows.next_if(|(at_ns, ..)| at_ns <= time_ns) {
            read[direction] = reading;
        }
        let now = sums(picture, &read);
        let took_ns = place.checked_sub(1).map_or(0, |last| time_ns - chunk.times_ns[last]);
        for direction in 0..count {
            let (use_milli, dropped) =
                reading_of(now[direction], before[direction], picture.rates[direction / 2], took_ns);
            chunk.use_milli[direction].push(use_milli);
            if dropped > 0 {
                chunk.dropped[direction].extend([place as u64, dropped]);
            }
            if has_queues {
                chunk.queued_bytes[direction].push(now[direction].queued_bytes);
            }
        }
        before = now;
    }
    chunk
}

#[cfg(test)]
mod tests {
    use weft_scenario::record::{LinkRow, ReplayRow};
    use weft_scenario::topology::{LeafSpineParams, LinkParams, leaf_spine, overlay_pair};
    use weft_scenario::units::BitsPerSec;

    use super::*;

    fn pair() -> Fabric {
        overlay_pair(&LinkParams::for_server_rate(BitsPerSec(8_000_000_000))).unwrap()
    }

    /// The names of a direction's end.
    fn end(fabric: &Fabric, direction: usize) -> (String, String) {
        let link = &fabric.links()[direction / 2];
        let port = if direction.is_multiple_of(2) { &link.a } else { &link.b };
        (fabric.node(port.node).name.clone(), port.interface.clone())
    }

    #[test]
    fn cpu_is_that_of_drawn_nodes_at_the_time_that_has_seen_it() {
        let fabric = pair();
        let picture = Picture::of(&fabric).unwrap();
        let name = |number: usize| fabric.nodes()[number].name.clone();
        let row = |time_ns, node, cpu_ratio| DaemonRow { time_ns, node, cpu_ratio };
        let rows =
            [row(5, name(1), 0.25), row(5, name(0), 0.0), row(5, "nobody".to_owned(), 1.0), row(99, name(0), 0.0614)];
        assert_eq!(cpu(&picture, &[0, 10, 20], &rows), [(1, vec![(1, 250)]), (2, vec![(0, 61)])]);
        let mut chunk =
            Chunk { times_ns: vec![0, 10, 20], cpu_milli: cpu(&picture, &[0, 10, 20], &rows), ..Chunk::default() };
        let next = Chunk { times_ns: vec![30], cpu_milli: vec![(0, vec![(1, 9)])], ..Chunk::default() };
        chunk.append(&next);
        chunk.forget(2, |_| false);
        assert_eq!(chunk.cpu_milli, [(0, vec![(0, 61)]), (1, vec![(1, 9)])]);
    }

    #[test]
    fn counters_become_use_of_the_rate_and_drops_since_the_time_before() {
        let fabric = pair();
        let (node, interface) = end(&fabric, 1);
        let rate = fabric.links()[0].spec.rate.0;
        let row = |time_ns, sent_bytes, dropped_frames| LinkRow {
            time_ns,
            node: node.clone(),
            interface: interface.clone(),
            sent_bytes,
            dropped_frames,
            ..LinkRow::default()
        };
        let second = 1_000_000_000;
        let links = vec![row(0, 0, 0), row(second, rate / 16, 0), row(3 * second, rate / 16 + rate / 4, 7)];
        let chunk = of(&Picture::of(&fabric).unwrap(), &Records { links, ..Records::default() }, Vec::new()).unwrap();
        assert_eq!(chunk.times_ns, [0, second, 3 * second]);
        assert_eq!(chunk.use_milli[1], [0, 500, 1000]);
        assert!(chunk.use_milli.iter().enumerate().all(|(number, all)| number == 1 || all.iter().all(|one| *one == 0)));
        assert_eq!((&chunk.dropped[1][..], chunk.queued_bytes.len()), (&[2, 7][..], 0));
    }

    #[test]
    fn links_that_are_drawn_as_one_are_used_by_what_all_of_them_carry() {
        let params = LeafSpineParams { spines: 1, leaves: 40, servers_per_leaf: 20, ..Default::default() };
        let fabric = leaf_spine(&params).unwrap();
        let picture = Picture::of(&fabric).unwrap();
        let rate = fabric.links().last().unwrap().spec.rate.0;
        // Two of the twenty servers of a leaf receive at their full rate for a second, and lose and keep waiting.
        let row = |time_ns, server: &str, sent_bytes, queued_bytes| ReplayRow {
            time_ns,
            node: "leaf1".to_owned(),
            interface: server.to_owned(),
            sent_bytes,
            dropped_frames: queued_bytes,
            queued_bytes,
            ..ReplayRow::default()
        };
        let second = 1_000_000_000;
        let replay = vec![row(0, "s1", 0, 0), row(second, "s1", rate / 8, 3), row(second, "s2", rate / 8, 4)];
        let chunk = of(&picture, &Records { replay, ..Records::default() }, Vec::new()).unwrap();
        let rack = picture.drawn.find("leaf1-servers").unwrap();
        let (_, link) = picture.drawn.edge_of(rack).unwrap();
        let down = 2 * link.index();
        assert_eq!((chunk.use_milli.len(), &chunk.use_milli[down][..]), (2 * 80, &[0, 100][..]));
        assert_eq!((&chunk.dropped[down][..], &chunk.queued_bytes[down][..]), (&[1, 7][..], &[0, 7][..]));
        let others = chunk.use_milli.iter().enumerate().filter(|(direction, _)| *direction != down);
        assert!(others.flat_map(|(_, all)| all).all(|milli| *milli == 0));
    }

    #[test]
    fn what_has_no_row_is_as_it_was() {
        let fabric = pair();
        let row = |time_ns, direction: usize, sent_bytes, queued_bytes| {
            let (node, interface) = end(&fabric, direction);
            ReplayRow { time_ns, node, interface, sent_bytes, queued_bytes, ..ReplayRow::default() }
        };
        let replay = vec![row(0, 0, 0, 0), row(0, 2, 0, 0), row(10, 0, 5, 900), row(20, 2, 0, 80), row(30, 0, 5, 0)];
        let chunk = of(&Picture::of(&fabric).unwrap(), &Records { replay, ..Records::default() }, Vec::new()).unwrap();
        assert_eq!(chunk.queued_bytes[0], [0, 900, 900, 0]);
        assert_eq!(chunk.queued_bytes[2], [0, 0, 80, 80]);
    }

    #[test]
    fn long_runs_keep_their_first_and_last_time() {
        let all: Vec<u64> = (0..5_000).collect();
        let some = times(all.into_iter());
        assert!(some.len() <= TIMES_MOST + 1 && some.len() > TIMES_MOST / 2, "{}", some.len());
        assert_eq!((some[0], some[some.len() - 1]), (0, 4_999));
        assert_eq!(
            of(&Picture::of(&pair()).unwrap(), &Records::default(), Vec::new()),
            None,
            "rows of no time are no page"
        );
    }
}
