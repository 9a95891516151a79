//! What the VXLAN draft's plans do, on small labs: frames end in servers' sockets on every overlay, rows are complete and add up,
//! segments carry their stations, and nothing stays behind. No number of these is judged here: that is for the plans.

mod common;

use common::beds::{fact, run, turn};
use weft_scenario::engine::{Hook, Overlay, TunnelEnd};
use weft_scenario::record::Records;
use weft_scenario::topology::{Fabric, LeafSpineParams, leaf_spine};
use weft_scenario::units::{BitsPerSec, Nanos};
use weft_scenario::workload::{End, FramesSpec, Layer, Runs, Search, SegmentStore, SegmentsSpec, Steady, Workload};

const RUNS: Runs = Runs { count: 2, each: Nanos(4_000_000) };
const TRIAL: Nanos = Nanos(10_000_000);

fn network(leaves: u32, servers_per_leaf: u32) -> Fabric {
    leaf_spine(&LeafSpineParams { spines: 1, leaves, servers_per_leaf, ..LeafSpineParams::default() }).unwrap()
}

fn to_sockets(from: End, receivers: u32) -> FramesSpec {
    FramesSpec {
        frame_bytes: vec![128, 1518],
        stations: receivers,
        from,
        to: End::Socket,
        receivers,
        search: None,
        per_s: Vec::new(),
        load_percent: Vec::new(),
        path_rate: None,
        load_of: Layer::Layer1,
        trial: None,
        crossing_percent: Vec::new(),
        cost: Some(RUNS),
        steady: None,
    }
}

/// The chains of both sizes end where they should, and the whole one costs more than whoever sends.
fn assert_chains(records: &Records, ends: &[&str], overlay: Overlay) {
    for bytes in [128, 1518] {
        let chains: Vec<_> = records.chains.iter().filter(|row| row.frame_bytes == bytes).collect();
        assert_eq!(chains.iter().map(|row| row.until.as_str()).collect::<Vec<_>>(), ends, "{overlay}");
        assert!(chains.iter().all(|row| row.chain_ns_per_frame > 0.0 && row.runs > 0), "{overlay}: {chains:?}");
        assert!(chains[ends.len() - 1].chain_ns_per_frame > chains[0].chain_ns_per_frame, "{overlay}: {chains:?}");
    }
}

#[test]
fn a_server_has_a_highest_rate_and_costs_that_add_up() {
    let Some(_turn) = turn() else { return };
    let search = Some(Search { loss_percent: 2, offered_percent: vec![50, 300] });
    let spec = FramesSpec { search, trial: Some(TRIAL), ..to_sockets(End::Port, 2) };
    let records = run("va", network(1, 3), Overlay::BRIDGE, Workload::Frames(spec));
    assert_chains(&records, &["", "leaf1", "s2-s3"], Overlay::BRIDGE);
    for bytes in [128, 1518] {
        let rows = |kind: &'static str| {
            records.crossings.iter().filter(move |row| row.kind == kind && row.frame_bytes == bytes)
        };
        assert!(rows("search").count() > 2 && rows("share").count() == 2, "{:?}", records.crossings);
        assert!(rows("share").all(|row| row.sent_frames > 0 && row.received_frames <= row.sent_frames));
        assert!(rows("search").any(|row| row.received_frames > 0 && row.receiver_cpu_ns > 0));
    }
    assert_eq!(records.memory.iter().map(|row| row.frame_bytes).collect::<Vec<_>>(), [0, 128, 1518]);
    assert!(records.memory.iter().all(|row| row.receiver_bytes > 100_000 && row.kernel_bytes > row.lab_bytes));
    assert!(fact(&records, "cost.read_ns") > 0.0 && fact(&records, "machine.core_mhz") > 0.0);
}

#[test]
fn processes_send_to_processes_over_every_overlay_that_is_compared() {
    let Some(_turn) = turn() else { return };
    let tunnels = [Overlay::KernelVxlan { at: TunnelEnd::Tor }, Overlay::Vtep { hook: Hook::Tc, at: TunnelEnd::Tor }];
    let plain = [Overlay::BRIDGE, Overlay::Layer2 { hook: Hook::Tc }, Overlay::L2, Overlay::RBRIDGE];
    for overlay in tunnels.into_iter().chain(plain) {
        let spec = FramesSpec { trial: Some(TRIAL), ..to_sockets(End::Socket, 2) };
        let records = run("vb", network(2, 2), overlay, Workload::Frames(spec));
        assert_chains(&records, &["", "leaf1", "spine1", "leaf2", "s3-s4"], overlay);
        let sent: Vec<_> = records.crossings.iter().filter(|row| row.kind == "send").collect();
        assert_eq!(sent.iter().map(|row| row.frame_bytes).collect::<Vec<_>>(), [128, 1518], "{overlay}");
        assert!(sent.iter().all(|row| row.streams == 2 && row.received_frames > 0), "{overlay}: {sent:?}");
    }
}

#[test]
fn servers_are_read_while_a_rate_is_held_and_while_nothing_comes() {
    let Some(_turn) = turn() else { return };
    let steady = Some(Steady { rates: vec![BitsPerSec(10_000_000), BitsPerSec(60_000_000)], each: Nanos(200_000_000) });
    for (from, fabric, hops) in [(End::Port, network(1, 3), &[1][..]), (End::Socket, network(2, 2), &[1, 3][..])] {
        let spec = FramesSpec { steady: steady.clone(), cost: None, ..to_sockets(from, 2) };
        let records = run("vd", fabric, Overlay::BRIDGE, Workload::Frames(spec));
        let order: Vec<(u32, u32)> = records.usage.iter().map(|row| (row.frame_bytes, row.hops)).collect();
        let want = [0, 128, 1518].into_iter().flat_map(|bytes| hops.iter().map(move |hop| (bytes, *hop)));
        assert_eq!(order, want.collect::<Vec<_>>());
        for row in &records.usage {
            let per_s = row.sent_frames as f64 * 1e9 / row.wall_ns as f64;
            assert!(per_s <= row.asked_per_s * 1.05 && row.received_frames <= row.sent_frames, "{row:?}");
            assert_eq!(row.frame_bytes > 0, row.sent_frames > 0 && row.received_frames > 0, "{row:?}");
            assert!(row.process_bytes > 100_000 && row.kernel_bytes > 1 << 20, "{row:?}");
        }
        assert!(records.usage.iter().any(|row| row.process_cpu_ns > 0), "{:?}", records.usage);
        assert!(["cpu", "memory"].iter().all(|part| fact(&records, &format!("vm.quota.{part}")) <= 1.0));
    }
}

#[test]
fn every_segment_carries_its_stations() {
    let Some(_turn) = turn() else { return };
    let stores = SegmentStore::ALL.to_vec();
    let spec = SegmentsSpec { stores: stores.clone(), segments: vec![1, 30], frame_bytes: 64, cost: RUNS };
    let records = run("vc", network(2, 1), Overlay::Routed, Workload::Segments(spec));
    assert_eq!(records.segments.len(), stores.len() * 2);
    for row in &records.segments {
        assert!(row.sent_frames > 0 && row.received_frames == row.sent_frames, "{row:?}");
        assert!(row.setup_ns > 0 && row.latency_p50_ns > 0, "{row:?}");
    }
}
