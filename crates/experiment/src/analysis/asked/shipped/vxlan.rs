//! Pairs of servers, overlays and segments whose numbers are known (plans of `vxlan/`; model A has a file of its own).

use weft_scenario::record::{ChainRow, CrossingRow, MemoryRow, Records, SegmentRow, UsageRow};

use super::{close, shipped};
use crate::analysis::testing::analyse;

/// What the switch of a server takes for a frame, ns: 2 over the bridge, 5 with the kernel's VXLAN, 1 plain at TC, 2 with ours.
fn switch_ns(overlay: &str) -> f64 {
    match overlay {
        "kernel-vxlan-tor" => 5_000.0,
        "l2-tc" => 1_000.0,
        _ => 2_000.0,
    }
}

/// VMs take 10 us on either side, the spine something else.
fn chains(overlay: &str) -> Vec<ChainRow> {
    let (edge, spine) = (switch_ns(overlay), if overlay.ends_with("tor") { 900.0 } else { 300.0 });
    let ns = [10_000.0, edge, spine, edge, 10_000.0];
    let upto = |hops: usize| ns[..=hops].iter().sum();
    let row = |frame_bytes, hops| ChainRow {
        until: if hops == 0 { String::new() } else { format!("hop {hops}") },
        hops: hops as u32,
        frame_bytes,
        crossing_percent: 100,
        chain_ns_per_frame: upto(hops),
        ..ChainRow::default()
    };
    [128, 256, 512, 1024, 1450, 1518].iter().flat_map(|bytes| (0..5).map(move |hops| row(*bytes, hops))).collect()
}

fn crossed(kind: &str, frame_bytes: u32, load_percent: u32, sent: u64, received: u64) -> CrossingRow {
    CrossingRow {
        kind: kind.into(),
        frame_bytes,
        load_percent,
        asked_per_s: sent as f64,
        wall_ns: 1_000_000_000,
        sent_frames: sent,
        received_frames: received,
        receiver_cpu_ns: received * 900,
        ..CrossingRow::default()
    }
}

/// A second in which both servers are busy for so long, and for next to nothing where nothing is sent.
fn used(overlay: &str) -> Vec<UsageRow> {
    let busy_ns = match overlay {
        "kernel-vxlan-tor" => 500_000_000,
        "vtep-tor" => 450_000_000,
        _ => 400_000_000,
    };
    let row = |frame_bytes: u32, hops| UsageRow {
        node: format!("leaf{hops}"),
        hops,
        frame_bytes,
        asked_per_s: if frame_bytes > 0 { 1_000.0 } else { 0.0 },
        wall_ns: 1_000_000_000,
        sent_frames: if frame_bytes > 0 { 1_000 } else { 0 },
        received_frames: if frame_bytes > 0 { 990 } else { 0 },
        cpu_ns: if frame_bytes > 0 { busy_ns } else { 2_000_000 },
        process_cpu_ns: 1_000_000,
        idle_ns: 500_000_000,
        process_bytes: 10_000_000,
        kernel_bytes: 90_000_000,
    };
    [0, 128, 256, 512, 1024, 1450, 1518].into_iter().flat_map(|bytes| [row(bytes, 1), row(bytes, 3)]).collect()
}

fn pairs(overlay: &str, workload: &str) -> Records {
    let sizes = [128, 256, 512, 1024, 1450];
    let most = if overlay == "vtep-tor" { 1_800 } else { 2_000 };
    let rates = |bytes| {
        [
            crossed("search", bytes, 0, most, most),
            crossed("search", bytes, 0, 4_000, 1_000),
            crossed("share", bytes, 100, 2_000, 1_900),
        ]
    };
    let late = |bytes| CrossingRow {
        latency_p50_ns: 300 + switch_ns(overlay) as u64,
        floor_p50_ns: 300,
        ..crossed("given", bytes, 0, 10, 10)
    };
    let arrived = if overlay == "kernel-vxlan-tor" { 560_000 } else { 1_000_000 };
    let lab_bytes = if overlay == "bridge" { 1_000_000 } else { 3_000_000 };
    let (kernel_bytes, receiver_bytes) = (90_000_000, 10_000_000);
    match workload {
        "cost" => Records { chains: chains(overlay), ..Records::default() },
        "rates" => Records {
            crossings: sizes.into_iter().flat_map(rates).collect(),
            memory: vec![MemoryRow { frame_bytes: 0, kernel_bytes, lab_bytes, daemon_bytes: 0, receiver_bytes }],
            ..Records::default()
        },
        "held" => {
            Records { usage: used(overlay), facts: vec![("machine.core_mhz".into(), 2_000.0)], ..Records::default() }
        }
        "latency" => Records { crossings: sizes.map(late).to_vec(), ..Records::default() },
        _ => Records {
            crossings: [1450, 1518].map(|bytes| crossed("send", bytes, 0, 2_000_000, arrived)).to_vec(),
            ..Records::default()
        },
    }
}

#[test]
fn model_b_compares_with_the_bridge_at_the_same_size_and_at_the_drafts() {
    let found = analyse(&shipped("vxlan/model-b"), |key| pairs(key.overlay.name(), &key.workload));
    assert_eq!(found.problems, []);
    // 15 us with the kernel's VXLAN over 12 us with its bridge.
    close(&found, "cpu_increase_percent.same.kernel-vxlan-tor.server1", 25.0);
    close(&found, "cpu_increase_percent.draft.kernel-vxlan-tor.server2", (1.25 * 1518.0 / 1450.0 - 1.0) * 100.0);
    close(&found, "cpu_increase_percent.same.vtep-tor.server1", 0.0);
    close(&found, "switch_ratio.same.kernel-vxlan-tor.server1", 2.5);
    close(&found, "vm_change_percent.same.kernel-vxlan-tor.server1", 0.0);
    // Ours adds 1 to the plain switch at its hook, the kernel's 3 to the bridge.
    close(&found, "extra_over_kernel", 1.0 / 3.0);
    close(&found, "rate_over_plain.vtep-tor", 0.9);
    close(&found, "loss_at_benchmark.vtep-tor", 0.05);
    close(&found, "vm_cpu_at_loss.vtep-tor", 1900.0 * 900.0 / 1e9);
    close(&found, "pairs_ratio.kernel-vxlan-tor", 0.56 * 1450.0 / 1518.0);
    close(&found, "latency_ratio.kernel-vxlan-tor", 2.5);
    close(&found, "memory_change_percent.vtep-tor", 1.0);
    // As many sizes on both sides, idle in none: 500 over 400, whatever is sent.
    close(&found, "held_increase_percent.same.kernel-vxlan-tor.server1", 25.0);
    close(&found, "held_increase_percent.draft.vtep-tor.server2", 12.5);
    close(&found, "held_increase_with_idle_percent.kernel-vxlan-tor.server1", 25.0 * 5.0 / 6.0);
    close(&found, "held_over_kernel", 0.9);
    close(&found, "held_loss.vtep-tor", 0.01);
    close(&found, "held_mhz.bridge.server2.0", 4.0);
    close(&found, "held_memory_change.vtep-tor.server1", 0.0);
    let table = found.tables.iter().find(|table| table.title.contains("in lock step")).unwrap();
    assert_eq!((table.rows[0][1].as_str(), table.rows[0][5].as_str()), ("1518", "11.61 / 1.84"));
}

#[test]
fn each_overlay_is_compared_at_its_own_hook_within_the_repetition() {
    let edges = |overlay: &str| match overlay {
        "bridge" => 1000.0,
        "kernel-vxlan-tor" => 1600.0,
        "l2-tc" => 500.0,
        "vtep-tor" => 800.0,
        "l2" => 200.0,
        "vtep-tor-xdp" => 320.0,
        _ => 300.0,
    };
    let found = analyse(&shipped("vxlan/encapsulations"), |key| {
        // The machine becomes slower, and all overlays with it. What a spine takes is no difference between two edges.
        let slower = f64::from(key.repetition);
        let (edge, spine) = (edges(key.overlay.name()) / 2.0, if key.overlay.tunnels_at_tors() { 400.0 } else { 90.0 });
        let ends = [
            ("", 0, 200.0),
            ("leaf1", 1, 200.0 + edge),
            ("spine1", 2, 200.0 + edge + spine),
            ("leaf2", 3, 200.0 + 2.0 * edge + spine),
        ];
        let row = |(until, hops, ns): (&str, u32, f64), frame_bytes| ChainRow {
            until: until.into(),
            hops,
            frame_bytes,
            crossing_percent: 100,
            chain_ns_per_frame: ns * slower,
            ..ChainRow::default()
        };
        Records {
            chains: ends.iter().flat_map(|end| [64, 512].map(|bytes| row(*end, bytes))).collect(),
            ..Records::default()
        }
    });
    assert_eq!(found.problems, []);
    close(&found, "extra_over_kernel.vtep-tor", 0.5);
    let interval = found.metrics["extra_over_kernel.vtep-tor"].interval.unwrap();
    assert!(interval.high - interval.low < 1e-9, "what all overlays share is no spread");
    close(&found, "over_bridge.kernel-vxlan-tor", 1.6);
    close(&found, "kernel_over.vtep-tor", 2.0);
    close(&found, "kernel_over.vtep-tor-xdp", 5.0);
    // 120 of both edges, of 200 + 200 + 90.
    close(&found, "extra_percent.vtep-tor-xdp", 12_000.0 / 490.0);
    assert!(!found.metrics.contains_key("extra_ns.l2-tc"), "a plain switch adds nothing to itself");
}

#[test]
fn segments_bend_where_a_frame_costs_a_tenth_more() {
    let segment = |(store, segments, setup_ms, ns): (&str, u32, u64, f64)| SegmentRow {
        store: store.into(),
        segments,
        active_segments: segments,
        setup_ns: setup_ms * 1_000_000,
        removal_ns: setup_ms * 500_000,
        memory_bytes: u64::from(segments) * 10_000,
        frame_bytes: 64,
        chain_ns_per_frame: ns,
        sent_frames: 1000,
        received_frames: 1000,
        latency_p50_ns: 4000,
        latency_p99_ns: 9000,
    };
    let all = [
        ("kernel-devices", 1, 1, 1000.0),
        ("kernel-devices", 1000, 200, 1080.0),
        ("kernel-devices", 5000, 1100, 1500.0),
        ("map", 1, 1, 500.0),
        ("map", 1000, 10, 510.0),
        ("map", 5000, 50, 540.0),
    ];
    let found = analyse(&shipped("vxlan/vni-scale"), |_| Records {
        segments: all.into_iter().map(segment).collect(),
        ..Records::default()
    });
    close(&found, "setup_speedup.map.5000", 22.0);
    close(&found, "removal_ms.map.5000", 25.0);
    close(&found, "memory_mb.map.5000", 50.0);
    close(&found, "rate_ratio.map.5000", 500.0 / 540.0);
    close(&found, "loss.map.5000", 0.0);
    close(&found, "knee.kernel-devices", 5000.0);
    close(&found, "knee.map", 0.0);
}
