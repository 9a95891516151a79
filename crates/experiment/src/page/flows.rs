//! Flows that can be followed: their ways over time, link by link, with the headers there and why it is the next.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_scenario::record::{Records, WayRow};

use super::chunk::directions;
use super::picture::Picture;

/// A flow with its ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Followed {
    /// Its row in `flows.csv`, from 0.
    pub number: u64,
    /// Names of its servers.
    pub from: String,
    pub to: String,
    pub ways: Vec<Way>,
    /// Time, congestion window in segments, smoothed round-trip time in nanoseconds (0: none yet), while it is open.
    pub windows: Vec<(u64, u32, u64)>,
}

/// A way, from a time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    pub time_ns: u64,
    pub hops: Vec<Hop>,
}

/// A link of a way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The direction of the drawn link, as in a chunk.
    pub way: usize,
    /// Between the link's own header and the flow's IP header, the outermost first.
    pub headers: Vec<String>,
    pub header_bytes: u64,
    /// Where the sender looked the way up to.
    pub toward: String,
    /// Equal next hops, which of them it was, and what was hashed for it.
    pub next_hops: u32,
    pub chosen: u32,
    pub hash: String,
}

/// The flows of a trial that have rows, in order of their numbers. Links within a drawn node are none of a way.
pub(super) fn of(picture: &Picture<'_>, records: &Records) -> Vec<Followed> {
    let directions = directions(picture.real);
    let mut flows: BTreeMap<u64, Followed> = BTreeMap::new();
    for rows in records.ways.chunk_by(|one, next| one.flow == next.flow && one.hop < next.hop) {
        let (first, last) = (&rows[0], &rows[rows.len() - 1]);
        let direction = |row: &WayRow| directions.get(&(row.node.as_str(), row.interface.as_str())).copied();
        let hops = rows.iter().filter_map(|row| Some(hop(picture.direction(direction(row)?)?, row))).collect();
        let flow = flows.entry(first.flow).or_insert_with(|| Followed {
            number: first.flow,
            from: first.node.clone(),
            to: last.peer.clone(),
            ways: Vec::new(),
            windows: Vec::new(),
        });
        flow.ways.push(Way { time_ns: first.time_ns, hops });
    }
    for row in &records.windows {
        if let Some(flow) = flows.get_mut(&row.flow) {
            flow.windows.push((row.time_ns, row.cwnd_segments, row.srtt_ns));
        }
    }
    flows.into_values().collect()
}

fn hop(way: usize, row: &WayRow) -> Hop {
    Hop {
        way,
        headers: row.headers.split(" / ").filter(|header| !header.is_empty()).map(str::to_owned).collect(),
        header_bytes: row.header_bytes,
        toward: row.toward.clone(),
        next_hops: row.next_hops,
        chosen: row.chosen,
        hash: row.hash.clone(),
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::record::WindowRow;
    use weft_scenario::topology::{Fabric, TestbedParams, vl2_testbed};

    use super::*;

    /// A row for the link from one node to another.
    fn row(fabric: &Fabric, time_ns: u64, flow: u64, hop: u32, (node, peer): (&str, &str)) -> WayRow {
        let [from, to] = [node, peer].map(|name| fabric.find(name).unwrap());
        let mut links = fabric.links_of(from).iter().map(|link| fabric.link(*link));
        let link = links.find(|link| link.far_end(from).unwrap().node == to).unwrap();
        let interface = link.end_at(from).unwrap().interface.clone();
        let (node, peer) = (node.to_owned(), peer.to_owned());
        WayRow { time_ns, flow, hop, node, interface, peer, ..WayRow::default() }
    }

    #[test]
    fn rows_become_ways_of_flows_with_links_by_direction_and_headers_one_by_one() {
        let fabric = vl2_testbed(&TestbedParams::default()).unwrap();
        let rows = |time_ns, flow, agg: &str| {
            let mut first = row(&fabric, time_ns, flow, 1, ("tor1", agg));
            first.headers = "IPv4 to any / IPv4 to tor4".to_owned();
            [first, row(&fabric, time_ns, flow, 2, (agg, "int1"))]
        };
        // A way of one flow, two of another, the second of which has as many hops as the first.
        let ways = [rows(0, 7, "agg1"), rows(0, 3, "agg1"), rows(50, 3, "agg2")].concat();
        let window = |time_ns, flow, cwnd_segments| WindowRow { time_ns, flow, cwnd_segments, srtt_ns: 9 };
        let windows = vec![window(0, 3, 10), window(0, 5, 1), window(50, 3, 12)];
        let flows = of(&Picture::of(&fabric).unwrap(), &Records { ways, windows, ..Records::default() });
        assert_eq!((&flows[0].windows[..], &flows[1].windows[..]), (&[(0, 10, 9), (50, 12, 9)][..], &[][..]));
        let said: Vec<_> = flows.iter().map(|flow| (flow.number, flow.from.as_str(), flow.to.as_str())).collect();
        assert_eq!(said, [(3, "tor1", "int1"), (7, "tor1", "int1")]);
        let times: Vec<_> = flows[0].ways.iter().map(|way| (way.time_ns, way.hops.len())).collect();
        assert_eq!(times, [(0, 2), (50, 2)]);
        let [up, on] = &flows[0].ways[1].hops[..] else { panic!("{flows:?}") };
        assert_eq!((up.headers.len(), up.headers[1].as_str(), on.headers.len()), (2, "IPv4 to tor4", 0));
        let link = &fabric.links()[up.way / 2];
        let sender = if up.way.is_multiple_of(2) { link.a.node } else { link.b.node };
        assert_eq!(fabric.node(sender).name, "tor1");
    }
}
