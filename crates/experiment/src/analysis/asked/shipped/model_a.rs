//! Servers with known benchmarks (vxlan/model-a).

use weft_scenario::record::{ChainRow, CrossingRow, MemoryRow, Records};

use super::{close, shipped};
use crate::analysis::testing::analyse;

fn offered(kind: &str, frame_bytes: u32, load_percent: u32, sent: u64, received: u64) -> CrossingRow {
    CrossingRow {
        kind: kind.into(),
        frame_bytes,
        load_percent,
        asked_per_s: sent as f64,
        wall_ns: 1_000_000_000,
        sent_frames: sent,
        received_frames: received,
        ..CrossingRow::default()
    }
}

/// A server that takes so long for a frame, nine tenths of it its VMs.
fn chains(frame_bytes: u32, server_ns: f64) -> [ChainRow; 3] {
    let alone = 200.0;
    let ends = [("", 0, alone), ("leaf1", 1, alone + server_ns * 0.1), ("s2-s3", 2, alone + server_ns)];
    ends.map(|(until, hops, chain_ns_per_frame)| ChainRow {
        until: until.into(),
        hops,
        frame_bytes,
        crossing_percent: 100,
        chain_ns_per_frame,
        ..ChainRow::default()
    })
}

fn held(frame_bytes: u32, more: u64) -> MemoryRow {
    MemoryRow {
        frame_bytes,
        kernel_bytes: 270_000_000 + more,
        lab_bytes: 0,
        daemon_bytes: 10_000_000,
        receiver_bytes: 20_000_000,
    }
}

fn rows() -> Records {
    let mut records = Records { memory: vec![held(0, 0), held(128, 3_000_000), held(512, 0)], ..Records::default() };
    for (bytes, ns) in [(128, 10_000.0), (512, 8_000.0)] {
        records.chains.extend(chains(bytes, ns));
        records.crossings.push(offered("search", bytes, 0, 100_000, 99_000));
        records.crossings.push(offered("search", bytes, 0, 200_000, 120_000));
        records.crossings.push(offered("share", bytes, 300, 900_000, 60_000));
    }
    let facts = [("cost.known_ns", 1000.0), ("cost.read_ns", 900.0), ("machine.core_mhz", 2000.0)];
    records.facts = facts.map(|(name, value)| (name.to_owned(), value)).to_vec();
    records
}

#[test]
fn a_server_has_its_highest_rate_and_the_bend_is_seen() {
    let found = analyse(&shipped("vxlan/model-a"), |_| rows());
    assert_eq!(found.problems, []);
    close(&found, "rate_bps.128", 99_000.0 * 128.0 * 8.0);
    close(&found, "server_mhz.128", 10_000.0 * 99_000.0 * 1e-9 * 2000.0);
    close(&found, "switch_mhz.128", 1_000.0 * 99_000.0 * 1e-9 * 2000.0);
    close(&found, "vm_share", 0.9);
    close(&found, "memory_change", 0.01);
    close(&found, "inflection_found", 1.0);
    close(&found, "collapse", 0.5);
    close(&found, "calibration_error", 0.1);
    assert_eq!(found.tables[0].rows.len(), 2);
    assert!(found.tables[0].rows[0].last().unwrap().starts_with("0.46 / 6085"), "{:?}", found.tables[0]);
}

#[test]
fn a_search_without_a_rate_that_fails_found_no_inflection() {
    let found = analyse(&shipped("vxlan/model-a"), |_| {
        let mut records = rows();
        records.crossings.retain(|row| row.frame_bytes != 512 || row.asked_per_s < 150_000.0);
        records
    });
    close(&found, "inflection_found", 0.5);
    assert_eq!(analyse(&shipped("vxlan/model-a"), |_| Records::default()).problems.len(), 5);
}
