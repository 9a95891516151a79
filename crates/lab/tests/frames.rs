//! Frames of a test centre over small labs: whatever forwards carries every frame, rows are complete and add up, links in virtual
//! time carry what their rate allows, faults hit some streams, and nothing stays behind. No number of these is judged here: that is
//! for the plans.

mod common;

use common::beds::{self, fact, frames_spec, trial, try_run, turn};
use common::campus::fabric;
use common::scenario;
use weft_scenario::engine::{Hook, Overlay, Scenario, Trial, TunnelEnd};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::record::{ChainRow, Records};
use weft_scenario::switching::Switching;
use weft_scenario::topology::{Fabric, LeafSpineParams, LinkParams, leaf_spine};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};
use weft_scenario::workload::{ElephantSpec, End, FramesSpec, Runs, Split, Steady, Workload};

const MS: u64 = 1_000_000;
const GENERIC: Overlay = Overlay::RBridge { hook: Hook::XdpGeneric, elide: false };
const ELIDED: Overlay = Overlay::RBridge { hook: Hook::Xdp, elide: true };
const L2_TC: Overlay = Overlay::Layer2 { hook: Hook::Tc };
/// Tunnels between edge switches, over routed spines.
const TUNNELS: [Overlay; 3] = [
    Overlay::Vtep { hook: Hook::Tc, at: TunnelEnd::Tor },
    Overlay::Vtep { hook: Hook::Xdp, at: TunnelEnd::Tor },
    Overlay::KernelVxlan { at: TunnelEnd::Tor },
];

fn bed(leaves: u32, spines: u32, servers_per_leaf: u32) -> LeafSpineParams {
    LeafSpineParams { spines, leaves, servers_per_leaf, ..LeafSpineParams::default() }
}

/// Links with the rates of switches' and of servers' lines and queues of 4 ms.
fn with_rates(params: LeafSpineParams, core: u64, server: u64) -> LeafSpineParams {
    let queue = |rate: u64| Bytes(rate * 4 / 8_000);
    let links = LinkParams {
        core_rate: BitsPerSec(core),
        server_rate: BitsPerSec(server),
        core_buffer: queue(core),
        server_buffer: queue(server),
        delay: Nanos(0),
    };
    LeafSpineParams { links, ..params }
}

fn run(test: &str, fabric: Fabric, overlay: Overlay, spec: FramesSpec) -> Records {
    beds::run(test, fabric, overlay, Workload::Frames(spec))
}

fn assert_whole(records: &Records, overlay: Overlay) {
    assert!(!records.crossings.is_empty());
    for row in &records.crossings {
        assert!(row.sent_frames > 50 && row.received_frames == row.sent_frames, "{overlay}: {row:?}");
        assert!(row.latency_p50_ns > row.floor_p50_ns && row.floor_p50_ns > 0, "{overlay}: {row:?}");
        assert_eq!((row.reordered_frames, row.hit_streams, row.outage_ns), (0, 0, 0), "{overlay}: {row:?}");
    }
}

/// Switches that carried more than a twentieth of the frames of a size: the longer a busy machine takes, the more Hellos are on
/// every path.
fn used(records: &Records) -> usize {
    let of_size = || records.path_shares.iter().filter(|row| row.frame_bytes == 64);
    let all: u64 = of_size().map(|row| row.frames).sum();
    of_size().filter(|row| row.frames * 20 > all).count()
}

/// Every frame arrives, over as many of the four paths as this overlay uses.
fn carries_every_frame(overlay: Overlay) {
    let paths = match overlay {
        Overlay::Bridge { .. } | Overlay::Layer2 { .. } => 1..=1,
        // At XDP a VTEP keeps eight next hops of the kernel's choice for each peer: it may never choose one of four.
        Overlay::Vtep { hook: Hook::Xdp, .. } => 2..=4,
        _ => 4..=4,
    };
    let records = run("fa", leaf_spine(&bed(2, 4, 1)).unwrap(), overlay, frames_spec());
    assert_eq!(records.crossings.len(), 2);
    assert_whole(&records, overlay);
    assert!(paths.contains(&used(&records)), "{overlay}: {:?}", records.path_shares);
}

#[test]
fn rbridges_and_vteps_carry_every_frame_over_four_paths() {
    let Some(_turn) = turn() else { return };
    [Overlay::RBRIDGE, TUNNELS[1]].into_iter().for_each(carries_every_frame);
}

#[test]
#[ignore = "long: make test-long"]
fn whatever_forwards_carries_every_frame_over_four_paths_or_one() {
    let Some(_turn) = turn() else { return };
    let all_paths = [ELIDED, GENERIC, TUNNELS[0], TUNNELS[2]];
    let one_path = [Overlay::BRIDGE, Overlay::L2, L2_TC];
    all_paths.into_iter().chain(one_path).for_each(carries_every_frame);
}

#[test]
fn a_second_trial_has_other_stations_and_switches_forget_the_first_ones() {
    let Some(_turn) = turn() else { return };
    let trials = [1, 2].map(|seed| Trial { seed, ..trial(Workload::Frames(frames_spec())) });
    let all = try_run("fb", &scenario(leaf_spine(&bed(2, 1, 1)).unwrap(), Overlay::RBRIDGE), &trials).unwrap();
    all.iter().for_each(|records| assert_whole(records, Overlay::RBRIDGE));
    assert!(all[0].path_shares.iter().all(|row| row.switch == "spine1" && row.frames > 0), "a line has one path");
}

#[test]
fn frames_between_vlans_go_by_the_ingress_rbridge_or_by_a_router() {
    let Some(_turn) = turn() else { return };
    for (name, paths) in [("trill-routed", 4), ("trill-inter-vlan", 1)] {
        let records = run("fc", fabric(name), Overlay::RBRIDGE, frames_spec());
        assert_whole(&records, Overlay::RBRIDGE);
        assert_eq!(used(&records), paths, "{name}: {:?}", records.path_shares);
    }
}

#[test]
fn a_part_of_the_traffic_stays_within_its_vlan() {
    let Some(_turn) = turn() else { return };
    let mut detour = Vec::new();
    for name in ["trill-routed", "trill-inter-vlan"] {
        let cost = Some(Runs { count: 2, each: Nanos(4 * MS) });
        let spec = FramesSpec { crossing_percent: vec![0, 40, 100], frame_bytes: vec![128], cost, ..frames_spec() };
        let records = run("fd", fabric(name), Overlay::RBRIDGE, spec);
        // Every frame at its own station: that of the other VLAN is behind another port.
        assert_whole(&records, Overlay::RBRIDGE);
        let percents = |all: &[u32]| all.to_vec();
        assert_eq!(
            records.crossings.iter().map(|row| row.crossing_percent).collect::<Vec<_>>(),
            percents(&[0, 40, 100])
        );
        let hops: Vec<_> = records.chains.iter().map(|row| (row.crossing_percent, row.hops)).collect();
        assert_eq!(
            hops,
            [(0, 0), (0, 3), (40, 0), (40, 3), (100, 0), (100, 3)],
            "the test centre alone, and the whole chain"
        );
        assert!(records.chains.iter().all(|row| row.lost_frames == 0), "{:?}", records.chains);
        let p50 = |place: usize| records.crossings[place].latency_p50_ns;
        detour.push(p50(2) > p50(0));
    }
    assert!(detour[1], "a router is a detour");
}

#[test]
fn links_in_virtual_time_carry_what_their_rate_allows() {
    let Some(_turn) = turn() else { return };
    for overlay in [Overlay::RBRIDGE, Overlay::L2, Overlay::BRIDGE] {
        let fabric = leaf_spine(&with_rates(bed(2, 4, 1), 20_000_000, 80_000_000)).unwrap();
        let (frame_bytes, load_percent) = (vec![512], vec![50, 200]);
        let frames = FramesSpec {
            frame_bytes,
            stations: 256,
            per_s: Vec::new(),
            load_percent,
            trial: Some(Nanos(200 * MS)),
            ..frames_spec()
        };
        let shaped = Scenario { shaped: true, ..scenario(fabric, overlay) };
        let records = try_run("fe", &shaped, &[trial(Workload::Frames(frames))]).unwrap().swap_remove(0);
        for row in &records.crossings {
            let line_per_s = 20e6 / (532.0 * 8.0);
            if row.load_percent == 50 || overlay == Overlay::RBRIDGE {
                assert_eq!(row.received_frames, row.sent_frames, "{overlay}: {row:?}");
            } else {
                // What the line carries meanwhile, and what its queue holds.
                let most = line_per_s * (row.wall_ns as f64 * 1e-9 + 0.006);
                assert!(
                    (row.received_frames as f64) < most && row.received_frames < row.sent_frames,
                    "{overlay}: {row:?}"
                );
            }
            // Two lines between switches and the one of the receiving port, each a frame long at least.
            let idle_ns = 532.0 * 8.0 * (2.0 / 20e6 + 1.0 / 80e6) * 1e9;
            assert!(row.latency_p50_ns as f64 > idle_ns * 0.97, "{overlay}: {row:?} under {idle_ns}");
        }
    }
}

/// Nanoseconds per frame of a chain of three switches of this overlay, each of which costs something and works again after the cuts.
fn cost_of_chain(overlay: Overlay) -> f64 {
    let costs = FramesSpec {
        stations: 16,
        per_s: Vec::new(),
        trial: None,
        cost: Some(Runs { count: 3, each: Nanos(4 * MS) }),
        ..frames_spec()
    };
    let trials = [trial(Workload::Frames(costs)), trial(Workload::Frames(frames_spec()))];
    let all = try_run("ff", &scenario(leaf_spine(&bed(2, 1, 1)).unwrap(), overlay), &trials).unwrap();
    assert_whole(&all[1], overlay);
    let chains = &all[0].chains;
    let places: Vec<(u32, &str)> = chains.iter().map(|row| (row.hops, row.until.as_str())).collect();
    let once = [(0, ""), (1, "leaf1"), (2, "spine1"), (3, "leaf2")];
    assert_eq!(places, [once, once].concat(), "{overlay}");
    for row in chains {
        assert!(row.chain_ns_per_frame > 0.0 && row.most_per_s > 0.0 && row.lost_frames == 0, "{overlay}: {row:?}");
    }
    let ns = |hops: u32| chains.iter().find(|row| row.hops == hops).unwrap().chain_ns_per_frame;
    assert!(ns(3) > ns(0), "{overlay}: {chains:?}");
    assert!(fact(&all[0], "cost.known_ns") > 0.0);
    ns(3)
}

#[test]
fn rbridges_at_xdp_cost_less_than_the_kernels_bridge() {
    let Some(_turn) = turn() else { return };
    let [rbridges, bridges] = [Overlay::RBRIDGE, Overlay::BRIDGE].map(cost_of_chain);
    assert!(bridges > rbridges, "ns per frame of the kernel's bridges: {bridges}, of RBridges: {rbridges}");
}

#[test]
#[ignore = "long: make test-long"]
fn every_switch_costs_something_and_works_again_after_the_cuts() {
    let Some(_turn) = turn() else { return };
    for overlay in [GENERIC, Overlay::L2, L2_TC].into_iter().chain(TUNNELS) {
        cost_of_chain(overlay);
    }
}

#[test]
fn switches_are_read_by_their_threads_while_a_rate_is_held() {
    let Some(_turn) = turn() else { return };
    let steady = Steady { rates: vec![BitsPerSec(100_000_000), BitsPerSec(400_000_000)], each: Nanos(200 * MS) };
    let steady =
        FramesSpec { frame_bytes: vec![1518], per_s: Vec::new(), trial: None, steady: Some(steady), ..frames_spec() };
    let trials = [trial(Workload::Frames(steady)), trial(Workload::Frames(frames_spec()))];
    let all = try_run("fk", &scenario(leaf_spine(&bed(2, 2, 1)).unwrap(), Overlay::RBRIDGE), &trials).unwrap();
    let usage = &all[0].usage;
    let nodes: Vec<&str> = usage.iter().map(|row| row.node.as_str()).collect();
    assert_eq!(nodes, ["leaf1", "spine1-spine2", "leaf2"].repeat(3));
    for row in usage {
        let is_idle = row.frame_bytes == 0;
        assert!(row.received_frames <= row.sent_frames && is_idle == (row.received_frames == 0), "{row:?}");
        assert!(row.process_bytes > 100_000, "a daemon has memory: {row:?}");
        // Threads and not only daemons have worked where frames came.
        assert!(is_idle || row.cpu_ns > row.process_cpu_ns + row.sent_frames * 10, "{row:?}");
    }
    // Ports are as before.
    assert_whole(&all[1], Overlay::RBRIDGE);
}

#[test]
fn a_hop_of_several_switches_is_cut_as_one_and_work_is_spread_by_nickname() {
    let Some(_turn) = turn() else { return };
    let cost = Some(Runs { count: 2, each: Nanos(4 * MS) });
    let spec =
        FramesSpec { receivers: 5, frame_bytes: vec![64], per_s: Vec::new(), trial: None, cost, ..frames_spec() };
    let spread = Switching { cpus: 2, ..Switching::default() };
    let scenario = Scenario { switching: spread, ..scenario(leaf_spine(&bed(6, 1, 1)).unwrap(), Overlay::RBRIDGE) };
    let records = try_run("fg", &scenario, &[trial(Workload::Frames(spec))]).unwrap().swap_remove(0);
    let last: Vec<&ChainRow> = records.chains.iter().filter(|row| row.hops == 3).collect();
    assert_eq!(last.iter().map(|row| row.until.as_str()).collect::<Vec<_>>(), ["leaf2-leaf6"]);
    let worked: Vec<f64> = (0..2).map(|cpu| fact(&records, &format!("transit.64.cpu.{cpu}"))).collect();
    assert!(worked.iter().all(|frames| *frames > 0.0), "{worked:?}");
}

/// A switch goes down, and then loses everything: so many of 64 streams are hit, and cross again before so many seconds have passed.
fn lose_a_switch(overlay: Overlay, hit: std::ops::Range<u32>, times_s: [u64; 2]) {
    // On the tree, and not its root, which is the first switch.
    let down = FaultKind::SwitchDown { node: "s3".to_owned() };
    let silent = FaultKind::SwitchSilent { node: "s3".to_owned() };
    let frames = |seconds: u64| {
        let time = Nanos(seconds * 1000 * MS);
        trial(Workload::Frames(FramesSpec {
            frame_bytes: vec![128],
            per_s: vec![10_000],
            trial: Some(time),
            ..frames_spec()
        }))
    };
    let broken = |seconds: u64, kind: &FaultKind| Trial {
        faults: vec![Fault { at: Nanos(1000 * MS), lasts: None, kind: kind.clone() }],
        ..frames(seconds)
    };
    let trials = [broken(times_s[0], &down), broken(times_s[1], &silent), frames(1)];
    let all = try_run("fh", &scenario(fabric("trill-s1-s6"), overlay), &trials).unwrap();
    for (records, seconds) in all.iter().zip(times_s) {
        let [row] = &records.crossings[..] else { panic!("{:?}", records.crossings) };
        assert_eq!(row.streams, 64);
        assert!(hit.contains(&row.hit_streams), "{overlay}: {row:?}");
        let lost = row.sent_frames - row.received_frames;
        assert!(lost > 0 && row.outage_ns > 0, "{overlay}: {row:?}");
        // They cross again before the end.
        assert!(row.outage_ns < (seconds - 1) * 1000 * MS - 200 * MS, "{overlay}: {row:?}");
        let events: Vec<&str> = records.events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(events, ["fault", "repair"], "{overlay}");
    }
    assert_eq!(all[2].crossings[0].received_frames, all[2].crossings[0].sent_frames, "{overlay}: mended");
}

#[test]
fn a_lost_rbridge_hits_some_streams_for_a_while() {
    let Some(_turn) = turn() else { return };
    lose_a_switch(Overlay::RBRIDGE, 1..64, [4, 4]);
}

#[test]
#[ignore = "long: make test-long"]
fn a_lost_bridge_of_the_tree_hits_all_streams_for_a_while() {
    let Some(_turn) = turn() else { return };
    lose_a_switch(Overlay::BRIDGE, 64..65, [7, 13]);
}

#[test]
fn elephants_have_as_many_connections_as_they_are_split_into() {
    let Some(_turn) = turn() else { return };
    let spec = ElephantSpec { splits: Split::ALL.to_vec(), subflows: 4, each: Nanos(800 * MS), rounds: 1 };
    let fabric = leaf_spine(&with_rates(bed(2, 4, 4), 50_000_000, 50_000_000)).unwrap();
    let shaped = Scenario { shaped: true, ..scenario(fabric, Overlay::RBRIDGE) };
    let records = try_run("fi", &shaped, &[trial(Workload::Elephants(spec))]).unwrap().swap_remove(0);
    let mptcp = std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1");
    if !mptcp {
        weft_needs::skip("this kernel has no MPTCP");
    }
    assert_eq!(fact(&records, "mptcp.available") > 0.0, mptcp);
    assert_eq!(records.elephants.len(), if mptcp { 12 } else { 8 });
    for row in &records.elephants {
        assert_eq!(row.connections, if row.split == "tcp" { 1 } else { 4 }, "{row:?}");
        let bits_per_s = row.received_bytes as f64 * 8e9 / row.wall_ns as f64;
        // A policer may starve one of them; more than its line nobody gets.
        assert!(row.received_bytes > 0 && bits_per_s < 50e6 * 1.1, "{row:?}: {bits_per_s}");
    }
}

#[test]
fn a_network_that_has_no_place_for_the_test_centre_is_refused_by_name() {
    let Some(_turn) = turn() else { return };
    let refused = |fabric: Fabric, spec: FramesSpec| {
        let trials = [trial(Workload::Frames(spec))];
        try_run("fj", &scenario(fabric, Overlay::RBRIDGE), &trials).unwrap_err().to_string()
    };
    let cost = Some(Runs { count: 1, each: Nanos(MS) });
    let two = FramesSpec { receivers: 2, to: End::Socket, per_s: Vec::new(), cost, ..frames_spec() };
    let error = refused(leaf_spine(&bed(2, 1, 1)).unwrap(), two);
    assert!(error.contains("fewer than 2 servers to receive"), "{error}");
    let mixed = FramesSpec { crossing_percent: vec![50], ..frames_spec() };
    let error = refused(leaf_spine(&bed(2, 1, 1)).unwrap(), mixed);
    assert!(error.contains("no two VLANs behind one switch"), "{error}");
}
