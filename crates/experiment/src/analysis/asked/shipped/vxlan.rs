//! Pairs of servers, ways and segments whose numbers are known (plans of `vxlan/`; model A has a file of its own).

use weft_scenario::record::{ChainRow, OfferedRow, Records, SegmentRow, ServerRow};

use super::{close, shipped};
use crate::analysis::testing::analyse;

/// A server whose VMs have one core, and its switch some more.
fn server(path: &str, name: &str, frame_bytes: u32, switch_cores: f64) -> ServerRow {
    ServerRow {
        path: path.into(),
        server: name.into(),
        frame_bytes,
        frames_per_s: 1e5,
        server_ns_per_frame: (1.0 + switch_cores) * 1e4,
        vm_ns_per_frame: 1e4,
        server_cores: 1.0 + switch_cores,
        vm_cores: 1.0,
        core_mhz: 2000.0,
        server_memory_bytes: 300_000_000,
        vm_memory_bytes: 20_000_000,
    }
}

fn offered(kind: &str, path: &str, frame_bytes: u32, offered_percent: u32, sent: u64, received: u64) -> OfferedRow {
    OfferedRow {
        kind: kind.into(),
        path: path.into(),
        server: "server1".into(),
        vm_pairs: 1,
        frame_bytes,
        offered_percent,
        asked_per_s: sent as f64,
        wall_ns: 1_000_000_000,
        sent_frames: sent,
        received_frames: received,
        vm_cpu_ns: received * 900,
        ..OfferedRow::default()
    }
}

/// Server minus VMs: 0.2 over the bridge, 0.5 with the kernel's VXLAN, 0.1 plain at TC, 0.2 with ours.
fn pairs(workload: &str) -> Records {
    let mut records = Records::default();
    for (path, switch) in [("bridge", 0.2), ("kernel-vxlan", 0.5), ("tc", 0.1), ("vxlan", 0.2)] {
        let sizes: &[u32] = match workload {
            "draft" if path.ends_with("vxlan") => &[1450],
            "draft" => &[1518],
            _ => &[128, 256, 512, 1024, 1450],
        };
        for bytes in sizes {
            records.servers.extend(["server1", "server2"].map(|name| server(path, name, *bytes, switch)));
            records.offered.push(offered("offered", path, *bytes, 50, 1000, 995));
            records.offered.push(offered("offered", path, *bytes, 100, 2000, 1900));
            let latency = offered("latency", path, *bytes, 100, 10, 10);
            let (latency_p50_ns, floor_p50_ns) = (300 + (switch * 1e4) as u64, 300);
            records.offered.push(OfferedRow { latency_p50_ns, floor_p50_ns, ..latency });
        }
        let received = if path == "kernel-vxlan" { 560_000 } else { 1_000_000 };
        records.offered.push(offered("pairs", path, sizes[sizes.len() - 1], 0, 2_000_000, received));
    }
    records
}

#[test]
fn model_b_compares_with_the_first_way_at_the_same_place() {
    let found = analyse(&shipped("vxlan/model-b"), |key| pairs(&key.workload));
    assert_eq!(found.problems, []);
    close(&found, "cpu_increase_percent.same.kernel-vxlan.server1", 25.0);
    close(&found, "cpu_increase_percent.draft.kernel-vxlan.server2", 25.0);
    close(&found, "cpu_increase_percent.same.vxlan.server1", 0.0);
    close(&found, "switch_ratio.same.kernel-vxlan.server1", 2.5);
    close(&found, "vm_change_percent.same.kernel-vxlan.server1", 0.0);
    // Ours adds 0.1 to the plain switch at its hook, the kernel's 0.3 to the bridge.
    close(&found, "extra_over_kernel.same", 1.0 / 3.0);
    close(&found, "delivered_at_half.same.vxlan", 0.995);
    close(&found, "loss_at_benchmark.same.vxlan", 0.05);
    close(&found, "vm_cpu_at_loss.same.vxlan", 1900.0 * 900.0 / 1e9);
    close(&found, "pairs_ratio.draft.kernel-vxlan", 0.56 * 1450.0 / 1518.0);
    close(&found, "latency_ratio.same.kernel-vxlan", 2.5);
    close(&found, "memory_change_percent.same.vxlan", 0.0);
    let table = &found.tables[0];
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
