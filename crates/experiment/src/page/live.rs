//! The page of a network that runs: its document so far, and one more chunk with every look.

use std::collections::BTreeSet;

use weft_scenario::fault::FaultKind;
use weft_scenario::record::{Moment, PortMoment};
use weft_scenario::topology::Fabric;

use super::chunk::{Chunk, Reading, cpu_by_node, directions, reading_of, sums};
use super::document::Document;
use super::events::{Event, struck_event};
use super::picture::Picture;

/// Looks that a page which is opened later still sees: two minutes of ten a second.
const KEPT_MOST: usize = 1_200;

/// A network that is watched.
#[derive(Debug)]
pub struct Feed<'a> {
    picture: Picture<'a>,
    /// The direction of each port that moments are about.
    ports: Vec<Option<usize>>,
    before: Vec<Reading>,
    broken: Vec<FaultKind>,
    /// What was seen lately, as one chunk.
    kept: Chunk,
}

/// What was seen beside counters.
#[derive(Debug, Default)]
pub struct Seen {
    /// What is broken, where that may have changed.
    pub broken: Option<Vec<FaultKind>>,
    /// CPU of nodes' daemons, 1 is a core, where it was read.
    pub usage: Option<Vec<(String, f64)>>,
    /// Of probes between servers: how many hear nothing now, and how many there are.
    pub quiet: (u32, u32),
    /// What happened beside faults: kind and words.
    pub events: Vec<(&'static str, String)>,
}

impl<'a> Feed<'a> {
    /// Of a fabric whose moments list these ports, each by node and interface; `None` if it is too large for a page.
    pub fn of<'p>(fabric: &'a Fabric, ports: impl IntoIterator<Item = (&'p str, &'p str)>) -> Option<Self> {
        let picture = Picture::of(fabric)?;
        let known = directions(fabric);
        let ports = ports.into_iter().map(|port| known.get(&port).copied()).collect();
        let count = 2 * picture.rates.len();
        let kept = Chunk::empty(count, true);
        Some(Self { picture, ports, before: vec![Reading::default(); count], broken: Vec::new(), kept })
    }

    /// What a page that is opened now shows.
    pub fn document(&self, title: &str, subtitle: &str) -> Document {
        Document::live(&self.picture, title, subtitle, self.kept.clone())
    }

    /// One more look, as open pages take it.
    pub fn take(&mut self, moment: &Moment, seen: Seen) -> Chunk {
        let mut readings = vec![Reading::default(); 2 * self.picture.real.links().len()];
        for (port, direction) in moment.ports.iter().zip(&self.ports) {
            if let Some(direction) = direction {
                let PortMoment { sent_bytes, dropped_frames, queued_bytes } = *port;
                readings[*direction] = Reading { sent_bytes, dropped_frames, queued_bytes };
            }
        }
        let now = sums(&self.picture, &readings);
        let took_ns = self.kept.times_ns.last().map_or(0, |last| moment.time_ns.saturating_sub(*last));
        let mut chunk = Chunk::empty(now.len(), true);
        chunk.times_ns.push(moment.time_ns);
        for (direction, (now, before)) in now.iter().zip(&self.before).enumerate() {
            let (use_milli, dropped) = reading_of(*now, *before, self.picture.rates[direction / 2], took_ns);
            chunk.use_milli[direction].push(use_milli);
            chunk.queued_bytes[direction].push(now.queued_bytes);
            if dropped > 0 {
                chunk.dropped[direction].extend([0, dropped]);
            }
        }
        self.before = now;
        chunk.events = self.events(moment.time_ns, &seen);
        let usage = seen.usage.iter().map(|usage| usage.iter().map(|(node, ratio)| (node.as_str(), *ratio)));
        chunk.cpu_milli = usage.map(|usage| (0, cpu_by_node(&self.picture, usage))).collect();
        chunk.quiet = Some(seen.quiet);
        self.keep(&chunk);
        chunk
    }

    /// What has been broken and mended since the look before, and what else happened.
    fn events(&mut self, time_ns: u64, seen: &Seen) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(broken) = &seen.broken {
            let before = std::mem::replace(&mut self.broken, broken.clone());
            let only = |these: &[FaultKind], not: &[FaultKind]| -> Vec<FaultKind> {
                these.iter().filter(|fault| !not.contains(fault)).cloned().collect()
            };
            for (kind, faults) in [("repair", only(&before, broken)), ("fault", only(broken, &before))] {
                events.extend(faults.iter().map(|fault| struck_event(&self.picture, time_ns, kind, fault)));
            }
        }
        let said = seen.events.iter().map(|(kind, words)| Event::said(time_ns, kind, words.clone()));
        events.extend(said);
        events
    }

    /// Keeps a chunk for who comes later, and forgets what is older than enough, but for faults that still are.
    fn keep(&mut self, chunk: &Chunk) {
        self.kept.append(chunk);
        if self.kept.times_ns.len() > KEPT_MOST + KEPT_MOST / 10 {
            let open: BTreeSet<String> = self.broken.iter().map(FaultKind::subject).collect();
            let is_open = |event: &Event| event.kind == "fault" && open.contains(&event.subject);
            self.kept.forget(self.kept.times_ns.len() - KEPT_MOST, is_open);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{LinkParams, overlay_pair};
    use weft_scenario::units::BitsPerSec;

    use super::*;

    fn fabric() -> Fabric {
        overlay_pair(&LinkParams::for_server_rate(BitsPerSec(8_000_000_000))).unwrap()
    }

    /// All ports of a fabric in the order of directions.
    fn ports(fabric: &Fabric) -> Vec<(&str, &str)> {
        let ends = fabric.links().iter().flat_map(|link| [&link.a, &link.b]);
        ends.map(|port| (fabric.node(port.node).name.as_str(), port.interface.as_str())).collect()
    }

    fn moment(time_ns: u64, ports: usize, sent_bytes: u64) -> Moment {
        Moment {
            time_ns,
            ports: vec![PortMoment { sent_bytes, dropped_frames: sent_bytes / 1_000, queued_bytes: 7 }; ports],
            windows: Vec::new(),
        }
    }

    fn down(fabric: &Fabric) -> FaultKind {
        let name = |node| fabric.node(node).name.clone();
        let link = &fabric.links()[0];
        FaultKind::LinkDown { a: name(link.b.node), b: name(link.a.node) }
    }

    #[test]
    fn looks_are_use_and_drops_since_the_look_before() {
        let fabric = fabric();
        let mut feed = Feed::of(&fabric, ports(&fabric)).unwrap();
        let count = 2 * fabric.links().len();
        feed.take(&moment(0, count, 0), Seen::default());
        let rate = fabric.links()[0].spec.rate.0;
        let chunk = feed.take(&moment(100_000_000, count, rate / 160), Seen { quiet: (1, 4), ..Seen::default() });
        assert_eq!(
            (&chunk.use_milli[0][..], &chunk.queued_bytes[1][..], chunk.quiet),
            (&[500][..], &[7][..], Some((1, 4)))
        );
        assert_eq!(chunk.dropped[0], [0, rate / 160_000]);
        let kept = feed.document("a", "b").chunk;
        assert_eq!((&kept.times_ns[..], &kept.use_milli[0][..]), (&[0, 100_000_000][..], &[0, 500][..]));
        assert_eq!(kept.dropped[0], [1, rate / 160_000], "places are those of the whole");
    }

    #[test]
    fn faults_and_repairs_are_what_has_changed() {
        let fabric = fabric();
        let mut feed = Feed::of(&fabric, ports(&fabric)).unwrap();
        let mut broken = |time_ns, faults: Vec<FaultKind>| {
            let seen = Seen { broken: Some(faults), events: vec![("outage", "0.2 s".into())], ..Seen::default() };
            feed.take(&moment(time_ns, 2, 0), seen).events
        };
        let fault = broken(1, vec![down(&fabric)]);
        assert_eq!((&*fault[0].kind, &fault[0].links[..], &*fault[1].kind), ("fault", &[0][..], "outage"));
        assert_eq!(broken(2, vec![down(&fabric)]).len(), 1);
        let repair = broken(3, vec![]);
        assert_eq!(
            (&*repair[0].kind, &repair[0].subject, &repair[0].links[..]),
            ("repair", &fault[0].subject, &[0][..])
        );
    }

    #[test]
    fn old_looks_are_forgotten_and_faults_that_last_are_not() {
        let fabric = fabric();
        let mut feed = Feed::of(&fabric, ports(&fabric)).unwrap();
        let count = 2 * fabric.links().len();
        let seen = Seen { broken: Some(vec![down(&fabric)]), events: vec![("outage", "x".into())], ..Seen::default() };
        feed.take(&moment(0, count, 0), seen);
        let looks = 3 * KEPT_MOST as u64;
        for time_ns in 1..=looks {
            feed.take(&moment(time_ns, count, 1_000 * time_ns), Seen::default());
        }
        let kept = feed.document("a", "b").chunk;
        let last = kept.times_ns.len() - 1;
        assert!((KEPT_MOST..=KEPT_MOST + KEPT_MOST / 10).contains(&kept.times_ns.len()));
        assert_eq!(
            (kept.times_ns[last], kept.use_milli[1].len(), kept.queued_bytes[1].len()),
            (looks, last + 1, last + 1)
        );
        assert_eq!((kept.events.len(), &*kept.events[0].kind), (1, "fault"));
        let places: Vec<u64> = kept.dropped[0].chunks(2).map(|pair| pair[0]).collect();
        assert_eq!(places, (0..=last as u64).collect::<Vec<_>>());
    }

    #[test]
    fn cpu_is_that_of_drawn_nodes() {
        let fabric = fabric();
        let mut feed = Feed::of(&fabric, ports(&fabric)).unwrap();
        let name = fabric.nodes()[1].name.clone();
        let usage = Some(vec![(name, 0.25), ("nobody".to_owned(), 0.009)]);
        assert_eq!(feed.take(&moment(0, 2, 0), Seen { usage, ..Seen::default() }).cpu_milli, [(0, vec![(1, 250)])]);
    }
}
