//! Traffic across a border of two links (vl2/outside-world).

use weft_scenario::record::{EventRow, FlowRow, GapRow, LinkRow, ProgressRow, Records};

use super::{close, shipped, value};
use crate::analysis::testing::{SECOND, analyse};

/// Ten seconds in which two links share inbound bytes 3:5 and outbound ones evenly, and a fault at 8 s. Number 2 is outside.
fn records() -> Records {
    let link = |node: &str, peer: &str, second: u64, sent_bytes: u64| LinkRow {
        time_ns: second * SECOND,
        node: node.into(),
        interface: peer.into(),
        peer: peer.into(),
        class: "internet-intermediate".into(),
        sent_bytes,
        dropped_frames: 0,
    };
    let at = |second: u64| {
        let rows = [("net", "int1", 3), ("net", "int2", 5), ("int1", "net", 4), ("int2", "net", 4)];
        rows.map(|(node, peer, each)| link(node, peer, second, second * each * 1_000_000))
    };
    let gap = |from, to, time_ns, outage_ns| GapRow { from, to, time_ns, lost: 1, outage_ns };
    let event =
        |kind: &str, second: u64| EventRow { time_ns: second * SECOND, kind: kind.into(), subject: "int1-net".into() };
    let flow = |from, to| FlowRow { from, to, end_ns: Some(SECOND), ..FlowRow::default() };
    Records {
        flows: vec![flow(2, 0), flow(1, 2)],
        links: (1..=10).flat_map(at).collect(),
        progress: (1..=10)
            .map(|second| ProgressRow { time_ns: second * SECOND, received_bytes: second * 20_000_000, flows_done: 0 })
            .collect(),
        events: vec![event("fault", 8), event("repair", 9)],
        gaps: vec![
            gap(2, 0, 8 * SECOND + 5, 30_000_000),
            gap(1, 2, 8 * SECOND + 9, 12_000_000),
            gap(0, 1, 8 * SECOND + 5, 900_000_000),
            gap(2, 1, SECOND, 700_000_000),
        ],
        ..Records::default()
    }
}

#[test]
fn shares_goodput_and_outage_are_those_across_the_border() {
    let found = analyse(&shipped("vl2/outside-world"), |_| records());
    assert_eq!(found.problems, []);
    close(&found, "worst_share_in_off.even", 0.25);
    assert_eq!(value(&found, "worst_share_out_off.even"), 0.0);
    close(&found, "worst_share_off.even", 0.25);
    // Not between servers, not before.
    close(&found, "outage_ms.even", 30.0);
    close(&found, "lost_flows.even", 2.0);
    close(&found, "goodput_efficiency.full", 20e6 * 8.0 / (4.0 * 50e6 * 1460.0 / 1538.0));
    close(&found, "in_use.full", 4e6 * 8.0 / 50e6);
}

#[test]
fn what_was_not_there_yields_nothing() {
    let found = analyse(&shipped("vl2/outside-world"), |_| {
        let mut short = records();
        short.events.clear();
        short.links.retain(|row| row.time_ns <= 2 * SECOND);
        short
    });
    for name in ["outage_ms.even", "lost_flows.even", "goodput_efficiency.full", "in_use.full"] {
        assert!(!found.metrics.contains_key(name), "{name}: {:?}", found.metrics);
    }
    let nothing = analyse(&shipped("vl2/outside-world"), |_| Records::default());
    assert!(!nothing.metrics.contains_key("worst_share_off.even"), "{:?}", nothing.metrics);
}
