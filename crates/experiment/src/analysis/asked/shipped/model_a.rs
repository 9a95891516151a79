//! Servers with known benchmarks (vxlan/model-a).

use weft_scenario::record::{ChainRow, CrossingRow, MemoryRow, Records, UsageRow};

use super::{close, shipped};
use crate::analysis::TrialKey;
use crate::analysis::testing::analyse;
use crate::metric::Limit;

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

/// What a server with half of its VMs' work used of a second.
fn used(frame_bytes: u32, per_s: u64, received: u64, cpu_ns: u64) -> UsageRow {
    UsageRow {
        node: "leaf1".into(),
        hops: 1,
        frame_bytes,
        asked_per_s: per_s as f64,
        wall_ns: 1_000_000_000,
        sent_frames: per_s,
        received_frames: received,
        cpu_ns,
        process_cpu_ns: cpu_ns / 2,
        idle_ns: 1_000_000_000 - cpu_ns,
        process_bytes: 20_000_000,
        kernel_bytes: 180_000_000 + u64::from(frame_bytes) * 10_000,
    }
}

/// The benchmark, or a server that is busy for so long at its second rate.
fn of(key: &TrialKey, busy_ns: u64) -> Records {
    match key.workload.as_str() {
        "benchmark" => rows(),
        _ => Records {
            usage: vec![
                used(0, 0, 0, 10_000_000),
                used(128, 10_000, 10_000, 120_000_000),
                used(512, 20_000, 19_000, busy_ns),
            ],
            facts: vec![("machine.core_mhz".into(), 2000.0)],
            ..Records::default()
        },
    }
}

#[test]
fn a_server_is_read_while_a_rate_is_held_and_says_when_it_had_no_time_left() {
    let found = analyse(&shipped("vxlan/model-a"), |key| of(key, 400_000_000));
    assert_eq!(found.problems, []);
    close(&found, "held_mhz.server1.0", 20.0);
    close(&found, "held_mhz.server2.512", 800.0);
    close(&found, "held_vm_mhz.server2.512", 400.0);
    close(&found, "held_vm_share.server1", 0.5);
    close(&found, "held_loss.server1", 0.05);
    close(&found, "held_memory_change.server2", 5_120_000.0 / 200_000_000.0);
    // 12 us where lock step reads 10, and 20 where it reads 8.
    close(&found, "held_over_cost.server1", (1.2 + 2.5) / 2.0);
    let busy = analyse(&shipped("vxlan/model-a"), |key| of(key, 980_000_000));
    assert_eq!(busy.metrics["held_mhz.server1.512"].limited_by, Limit::Cpu);
    assert_eq!(busy.metrics["held_mhz.server1.128"].limited_by, Limit::PinnedCore);
    assert_eq!(busy.metrics["held_vm_share.server1"].limited_by, Limit::Cpu);
}

#[test]
fn a_quota_that_nothing_enforces_and_a_rate_that_was_not_offered_are_told() {
    let found = analyse(&shipped("vxlan/model-a"), |key| {
        let mut records = of(key, 400_000_000);
        records.facts.push(("vm.quota.cpu".into(), 0.0));
        records.facts.push(("vm.quota.memory".into(), 1.0));
        records.usage.iter_mut().for_each(|row| row.asked_per_s *= 2.0);
        records
    });
    let texts: Vec<String> = found.problems.iter().map(|problem| format!("{problem:?}")).collect();
    assert!(texts[0].contains("no controller for cpu\""), "{texts:?}");
    assert!(texts[1].contains("only 50 % were offered"), "{texts:?}");
}

#[test]
fn a_server_has_its_highest_rate_and_the_bend_is_seen() {
    let found = analyse(&shipped("vxlan/model-a"), |key| of(key, 400_000_000));
    assert_eq!(found.problems, []);
    close(&found, "rate_bps.128", 99_000.0 * 128.0 * 8.0);
    close(&found, "server_mhz.128", 10_000.0 * 99_000.0 * 1e-9 * 2000.0);
    close(&found, "switch_mhz.128", 1_000.0 * 99_000.0 * 1e-9 * 2000.0);
    close(&found, "vm_share", 0.9);
    close(&found, "memory_change", 0.01);
    close(&found, "inflection_found", 1.0);
    close(&found, "collapse", 0.5);
    close(&found, "calibration_error", 0.1);
    let lock_step = &found.tables[1];
    assert_eq!(lock_step.rows.len(), 2);
    assert!(lock_step.rows[0].last().unwrap().starts_with("0.46 / 6085"), "{lock_step:?}");
    let held = &found.tables[0].rows;
    assert_eq!((held.len(), held[4].last().unwrap().as_str()), (6, "0.61 / 5631 / 2900 / 5117 / 698"));
}

#[test]
fn a_search_without_a_rate_that_fails_found_no_inflection() {
    let found = analyse(&shipped("vxlan/model-a"), |key| {
        let mut records = of(key, 400_000_000);
        records.crossings.retain(|row| row.frame_bytes != 512 || row.asked_per_s < 150_000.0);
        records
    });
    close(&found, "inflection_found", 0.5);
    assert_eq!(analyse(&shipped("vxlan/model-a"), |_| Records::default()).problems.len(), 15);
}
