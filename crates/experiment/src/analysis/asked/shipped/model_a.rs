//! Servers with known benchmarks (vxlan/model-a).

use weft_scenario::record::{OfferedRow, Records, ServerRow};

use super::{close, shipped};
use crate::analysis::testing::analyse;

/// A server that is busy with so many cores, nine tenths of them its VMs'.
fn server(name: &str, frame_bytes: u32, frames_per_s: f64, cores: f64) -> ServerRow {
    ServerRow {
        path: "bridge".into(),
        server: name.into(),
        frame_bytes,
        frames_per_s,
        server_ns_per_frame: cores * 1e4,
        vm_ns_per_frame: cores * 9e3,
        server_cores: cores,
        vm_cores: cores * 0.9,
        core_mhz: 2000.0,
        server_memory_bytes: 300_000_000,
        vm_memory_bytes: 20_000_000,
    }
}

fn offered(kind: &str, frame_bytes: u32, offered_percent: u32, sent: u64, received: u64) -> OfferedRow {
    OfferedRow {
        kind: kind.into(),
        path: "bridge".into(),
        server: "server1".into(),
        frame_bytes,
        offered_percent,
        asked_per_s: sent as f64,
        wall_ns: 1_000_000_000,
        sent_frames: sent,
        received_frames: received,
        ..OfferedRow::default()
    }
}

fn rows() -> Records {
    let mut records = Records::default();
    records.servers.push(server("server1", 0, 0.0, 0.01));
    for (bytes, cores) in [(128, 1.0), (512, 0.8)] {
        records.servers.push(server("server1", bytes, 1e5, cores));
        records.servers.push(server("server2", bytes, 9e4, cores));
        records.offered.push(offered("search", bytes, 0, 100_000, 99_000));
        records.offered.push(offered("search", bytes, 0, 200_000, 120_000));
        records.offered.push(offered("offered", bytes, 300, 900_000, 60_000));
    }
    records.servers[1].server_memory_bytes = 303_000_000;
    records.facts = vec![("cost.known_ns".into(), 1000.0), ("cost.read_ns".into(), 900.0)];
    records
}

#[test]
fn the_lower_server_counts_and_the_bend_is_seen() {
    let found = analyse(&shipped("vxlan/model-a"), |_| rows());
    assert_eq!(found.problems, []);
    close(&found, "rate_bps.128", 9e4 * 128.0 * 8.0);
    close(&found, "server_mhz.0", 20.0);
    close(&found, "server_mhz.128", 2000.0);
    close(&found, "switch_mhz.128", 200.0);
    close(&found, "vm_share", 0.9);
    close(&found, "memory_change", 0.01);
    close(&found, "inflection_found", 1.0);
    close(&found, "collapse", 0.5);
    close(&found, "calibration_error", 0.1);
    assert_eq!(found.tables[0].rows.len(), 3);
    assert!(found.tables[0].rows[1].last().unwrap().starts_with("0.46 / 6085"), "{:?}", found.tables[0]);
}

#[test]
fn a_search_without_a_rate_that_fails_found_no_inflection() {
    let found = analyse(&shipped("vxlan/model-a"), |_| {
        let mut records = rows();
        records.offered.retain(|row| row.frame_bytes != 512 || row.asked_per_s < 150_000.0);
        records
    });
    close(&found, "inflection_found", 0.5);
    assert_eq!(analyse(&shipped("vxlan/model-a"), |_| Records::default()).problems.len(), 5);
}
