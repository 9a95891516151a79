//! Crossings and chains whose numbers are known (plans of `trill/`).

use weft_scenario::record::{ChainRow, CrossingRow, ElephantRow, FlowRow, PathShareRow, Records, UsageRow};

use super::{close, shipped};
use crate::analysis::TrialKey;
use crate::analysis::testing::analyse;
use crate::metric::Limit;

const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1518];

/// A thousand frames, sent as asked; `load_percent` 0: 100,000 a second.
fn crossed(frame_bytes: u32, load_percent: u32, received: u64, p50_ns: u64) -> CrossingRow {
    let asked_per_s = if load_percent == 0 { 1e5 } else { f64::from(load_percent) * 100.0 };
    CrossingRow {
        frame_bytes,
        load_percent,
        asked_per_s,
        crossing_percent: 100,
        wall_ns: (1e12 / asked_per_s) as u64,
        sent_frames: 1_000,
        received_frames: received,
        latency_mean_ns: p50_ns as f64 * 1.1,
        latency_p50_ns: p50_ns,
        latency_p99_ns: p50_ns * 2,
        floor_mean_ns: 220.0,
        floor_p50_ns: 200,
        quiet: 1,
        ..CrossingRow::default()
    }
}

fn crossings(crossings: Vec<CrossingRow>) -> Records {
    Records { crossings, ..Records::default() }
}

/// Chains of all sizes, with the test centre alone; CPU time of the first switch, the one in the middle and the last.
fn chains(sizes: &[u32], [first, middle, last]: [f64; 3]) -> Vec<ChainRow> {
    let places = [("", 200.0), ("leaf1", first), ("spine1", middle), ("leaf2", last)];
    let of_size = |frame_bytes: &u32| {
        let mut ns = 0.0;
        let row = |(hops, (until, own_ns)): (usize, (&str, f64))| {
            ns += own_ns;
            let (chain_ns_per_frame, most_per_s) = (ns, 1e9 / ns);
            let (until, hops, frame_bytes) = (until.into(), hops as u32, *frame_bytes);
            ChainRow {
                until,
                hops,
                frame_bytes,
                crossing_percent: 100,
                chain_ns_per_frame,
                most_per_s,
                ..ChainRow::default()
            }
        };
        places.into_iter().enumerate().map(row).collect::<Vec<_>>()
    };
    sizes.iter().flat_map(of_size).collect()
}

#[test]
fn latencies_are_compared_size_by_size_with_and_without_the_floor() {
    let p50 = |overlay: &str, bytes: u32| match overlay {
        "rbridge" if bytes == 64 => 1_000,
        "rbridge" => 1_200,
        "bridge" => 3_000,
        _ => 880,
    };
    let rows = |key: &TrialKey, sizes: &[u32]| {
        let load = if key.workload == "links" { 80 } else { 0 };
        crossings(sizes.iter().map(|bytes| crossed(*bytes, load, 900, p50(key.overlay.name(), *bytes))).collect())
    };
    let spec = shipped("trill/table1-latency");
    let found = analyse(&spec, |key| rows(key, &SIZES));
    assert_eq!(found.problems, []);
    close(&found, "ratio.trill_over_stp.p50.bare", (1.0 / 3.0 + 5.0 * 0.4) / 6.0);
    close(&found, "ratio.same_hook.net.bare", (800.0 / 680.0 + 5.0 * 1_000.0 / 680.0) / 6.0);
    close(&found, "ratio.same_hook.mean.links", (1_000.0 / 880.0 + 5.0 * 1_200.0 / 880.0) / 6.0);
    assert_eq!(found.metrics["ratio.same_hook.net.bare"].n, spec.repetitions as usize, "one of each repetition");
    close(&found, "loss.links.rbridge.80", 0.1);
    close(&found, "p50_us.bare.bridge.64.100000", 3.0);
    // A size that nobody received makes no mean of the others.
    let partly = analyse(&spec, |key| rows(key, &SIZES[..1]));
    assert!(partly.metrics.contains_key("p50_us.bare.rbridge.64.100000"));
    assert!(!partly.metrics.contains_key("ratio.trill_over_stp.p50.bare"));
}

#[test]
fn what_vlans_cost_is_told_rate_by_rate() {
    let rows = |key: &TrialKey| {
        let loads: &[u32] = if key.workload == "rates" { &[80, 400] } else { &[0] };
        let all = loads.iter().flat_map(|load| SIZES.map(|bytes| (*load, bytes)));
        let of = |(load, bytes)| {
            let p50 = match key.point[0].as_str() {
                "within" => 1_000,
                "routed" => 1_100,
                _ if load == 400 => 1_800,
                _ => 1_600,
            };
            crossed(bytes, load, 1_000, p50)
        };
        crossings(all.map(of).collect())
    };
    let found = analyse(&shipped("trill/table2-intervlan"), rows);
    close(&found, "ratio_at.router_over_intra.rates.80", 1.6);
    close(&found, "ratio_at.router_over_intra.rates.400", 1.8);
    close(&found, "ratio.router_over_intra.p50.bare", 1.6);
    close(&found, "ratio_of_size.inter_over_intra.bare.1518", 1.1);
    let table = found.tables.iter().find(|table| table.title.starts_with("More median latency")).unwrap();
    let mean = |row: &&Vec<String>| row[..3] == ["router_over_intra", "mean", "400"].map(str::to_owned);
    assert!(table.rows.iter().find(mean).unwrap()[3].starts_with("80"));
}

#[test]
fn throughput_is_a_rate_and_a_share() {
    let rows = |key: &TrialKey, late: u64| {
        let received = if key.overlay.name() == "bridge" { 950 } else { 999 };
        let row = crossed(64, 80, received, 900);
        crossings(vec![CrossingRow { asked_per_s: 25e6 * 0.8 / 512.0, wall_ns: late * 25_600_000, ..row }])
    };
    let spec = shipped("trill/fig03-throughput");
    let found = analyse(&spec, |key| rows(key, 1));
    close(&found, "received_per_s.layer2.rbridge.64", 999e9 / 25_600_000.0);
    close(&found, "received_ratio.layer2.64", 999.0 / 950.0);
    close(&found, "delivered.layer2.rbridge", 0.999);
    close(&found, "offered_of_line.layer2.64", 0.8 * 84.0 / 64.0);
    // A generator that was held up offered another load.
    let held_up = analyse(&spec, |key| rows(key, 2));
    assert!(!held_up.metrics.contains_key("delivered.layer2.rbridge"), "{:?}", held_up.metrics.keys());
}

fn share(frame_bytes: u32, switch: &str, frames: u64, on_link: u64) -> PathShareRow {
    let bytes = frames * (u64::from(frame_bytes) - 4 + on_link);
    PathShareRow { frame_bytes, load_percent: 0, crossing_percent: 100, switch: switch.into(), frames, bytes }
}

#[test]
fn shares_of_paths_are_of_all_sizes_together() {
    let frames: [&[(&str, u64)]; 2] = [
        &[("spine1", 100), ("spine2", 250), ("spine1", 140), ("spine3", 260), ("spine4", 250)],
        &[("spine1", 999), ("spine2", 1)],
    ];
    let found = analyse(&shipped("trill/paths"), |key| {
        let frames = frames[usize::from(key.overlay.name() == "bridge")];
        Records {
            crossings: vec![CrossingRow { reordered_frames: 2, ..crossed(64, 0, 998, 900) }],
            path_shares: frames.iter().map(|(switch, frames)| share(64, switch, *frames, 24)).collect(),
            ..Records::default()
        }
    });
    close(&found, "share_error.rbridge", 0.04);
    close(&found, "paths_used.rbridge", 4.0);
    close(&found, "paths_used.bridge", 1.0);
    close(&found, "reordered.rbridge", 2.0);
    close(&found, "lost.rbridge", 2.0);
}

#[test]
fn fast_over_slow_is_of_the_switches_without_the_test_centre() {
    let cost = |overlay: &str| match overlay {
        "rbridge" => [110.0, 80.0, 110.0],
        "rbridge-generic" => [400.0, 250.0, 150.0],
        "l2" => [60.0, 60.0, 80.0],
        _ => [700.0, 620.0, 680.0],
    };
    let spec = shipped("trill/fastpath-table1");
    let found = analyse(&spec, |key| match key.workload.as_str() {
        "cost" => Records { chains: chains(&[64, 1518], cost(key.overlay.name())), ..Records::default() },
        _ => crossings(vec![crossed(64, 0, 1_000, if key.overlay.name() == "rbridge" { 900 } else { 2_700 })]),
    });
    assert_eq!(found.problems, []);
    close(&found, "fast_over_slow.rbridge", 800.0 / 300.0);
    close(&found, "fast_over_slow_live.rbridge", 2.0);
    close(&found, "fast_over_slow_transit.rbridge.1518", 250.0 / 80.0);
    close(&found, "fast_over_slow.ethernet", 10.0);
    close(&found, "trill_over_ethernet.slow", 2.5);
    close(&found, "trill_over_ethernet.fast", 200.0 / 300.0);
    close(&found, "bridge_over_trill.64", 7.75);
    close(&found, "transit_mpps.rbridge.64", 12.5);
    close(&found, "live_gbps.rbridge.1518", 2.0 * 1518.0 * 8.0 / 1e3);
    close(&found, "live_mpps.bridge.64", 1e3 / 2200.0);
    close(&found, "decapsulation_ns.l2.64", 80.0);
    close(&found, "latency_slow_over_fast.rbridge.64", 3.0);
}

#[test]
fn work_is_spread_evenly_and_may_gain() {
    let spread = |cpus: &str| {
        let (most_per_s, lost_frames, worked) = match cpus {
            "2" => (3e6, 40, [440.0, 510.0, 10.0]),
            _ => (2e6, 0, [0.0, 1000.0, 0.0]),
        };
        let facts = worked.into_iter().enumerate().map(|(cpu, frames)| (format!("transit.64.cpu.{cpu}"), frames));
        let of = |hops| ChainRow { hops, frame_bytes: 64, most_per_s, lost_frames, ..ChainRow::default() };
        Records { facts: facts.collect(), chains: vec![of(1), of(2), of(3)], ..Records::default() }
    };
    let found = analyse(&shipped("trill/fastpath-spread"), |key| spread(&key.point[0]));
    assert_eq!(found.problems, []);
    close(&found, "spread_error.2", 1.0 - 880.0 / 960.0);
    close(&found, "spread_gain.2.64", 1.5);
    close(&found, "spread_lost.2.64", 0.04);
    close(&found, "spread_mpps.0.64", 2.0);
}

#[test]
fn cpu_use_is_read_while_a_rate_is_held() {
    let used = |per_s: f64, (hops, node): (u32, &str), routes: bool| {
        let frames = per_s.round() as u64;
        UsageRow {
            node: node.into(),
            hops,
            frame_bytes: if frames > 0 { 1518 } else { 0 },
            asked_per_s: per_s,
            wall_ns: 1_000_000_000,
            sent_frames: frames,
            received_frames: frames,
            cpu_ns: 1_000_000 + frames * if routes && hops == 1 { 400 } else { 300 },
            process_cpu_ns: 1_000_000,
            idle_ns: 400_000_000,
            ..UsageRow::default()
        }
    };
    let rates = [0.0, 1e9, 5e9].map(|bps| bps / 8.0 / 1518.0);
    let rows = |key: &TrialKey, arrived: f64| {
        let routes = key.point[0] == "routed";
        let mut chains = chains(&[64, 512, 1518], [if routes { 150.0 } else { 100.0 }, 80.0, 90.0]);
        chains.iter_mut().for_each(|row| row.until = row.until.replace("leaf", "s"));
        let hops = [(1, "s1"), (2, "s3-s6"), (3, "s2")];
        let mut usage: Vec<_> = rates.iter().flat_map(|rate| hops.map(|hop| used(*rate, hop, routes))).collect();
        usage.iter_mut().for_each(|row| row.received_frames = (row.received_frames as f64 * arrived) as u64);
        match key.workload.as_str() {
            "edges" => Records { chains, ..Records::default() },
            _ => Records { usage, ..Records::default() },
        }
    };
    let spec = shipped("trill/fig04-cpu");
    let found = analyse(&spec, |key| rows(key, 1.0));
    assert_eq!(found.problems, []);
    close(&found, "extra_ns.s1", 50.0);
    close(&found, "extra_ns.s2", 0.0);
    close(&found, "frame_ns.s2.within", 90.0);
    let frames = (rates[2].round(), rates[1].round());
    close(&found, "held_extra_points.s1.40", frames.0 * 1e-5);
    close(&found, "held_extra_ns.s1", 100.0);
    close(&found, "held_growth.s1", frames.0 / frames.1);
    close(&found, "held_extra_points.s2.8", 0.0);
    close(&found, "held_percent.s1.within.0", 0.1);
    // What does not arrive is another rate, and says nothing of this one; what was read in lock step stands.
    let found = analyse(&spec, |key| rows(key, 0.9));
    assert_eq!(found.problems, []);
    let limit = |metric: &str| found.metrics[metric].limited_by;
    assert_eq!(
        (limit("held_extra_ns.s1"), limit("held_growth.s1"), limit("extra_ns.s1")),
        (Limit::Cpu, Limit::Cpu, Limit::PinnedCore)
    );
    close(&found, "extra_ns.s1", 50.0);
}

#[test]
fn an_outage_is_the_worst_stream_s() {
    let found = analyse(&shipped("trill/convergence"), |key| {
        let outage_ns = if key.point[0] == "silent" { 600_000_000 } else { 50_000_000 };
        crossings(vec![CrossingRow { streams: 8, hit_streams: 2, outage_ns, ..crossed(128, 0, 970, 900) }])
    });
    close(&found, "outage_s.rbridge.link-down", 0.05);
    close(&found, "outage_s.bridge.silent", 0.6);
    close(&found, "hit_share.rbridge.silent", 0.25);
}

#[test]
fn what_crosses_vlans_is_a_line_of_which_every_repetition_is_a_sample() {
    const PERCENTS: [u32; 3] = [0, 50, 100];
    let rows =
        |key: &TrialKey, deaf: bool| {
            let between_ns = if key.point[0] == "router" { 2_200.0 } else { 1_100.0 };
            // All repetitions are slower by turns, as on a machine with other work.
            let mood = 1.0 + f64::from(key.repetition % 3);
            let share = |percent: u32| f64::from(percent) / 100.0;
            let crossing = |crossing_percent: u32| {
                let share = share(crossing_percent);
                CrossingRow {
                    crossing_percent,
                    received_frames: if deaf && crossing_percent == 50 { 0 } else { 1_000 },
                    latency_mean_ns: mood * (1_000.0 * (1.0 - share) + between_ns * share),
                    latency_p50_ns: if share > 0.5 { between_ns as u64 } else { 1_000 },
                    floor_mean_ns: mood * 200.0,
                    ..crossed(512, 0, 1_000, 1_000)
                }
            };
            let costs =
                |crossing_percent: u32| {
                    [(0, 200.0), (3, 700.0 + 100.0 * share(crossing_percent))].map(|(hops, chain_ns_per_frame)| {
                        ChainRow { crossing_percent, hops, chain_ns_per_frame, ..ChainRow::default() }
                    })
                };
            Records {
                crossings: PERCENTS.map(crossing).to_vec(),
                chains: PERCENTS.into_iter().flat_map(costs).collect(),
                ..Records::default()
            }
        };
    let spec = shipped("trill/vlan-size");
    let found = analyse(&spec, |key| rows(key, false));
    close(&found, "growth.router", 2.2);
    close(&found, "growth_net.router", 2.5);
    close(&found, "growth.routed", 1.1);
    close(&found, "cpu_growth.routed", 1.2);
    close(&found, "p50_growth.router", 2.2);
    close(&found, "step.router.100", 2.2 / 1.6);
    close(&found, "router_over_routed.50", 1.6 / 1.05);
    close(&found, "lost.router", 0.0);
    assert_eq!(found.metrics["growth.router"].n, spec.repetitions as usize, "every repetition is a sample");
    let hosts: Vec<&str> = found.tables[0].rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(hosts, ["1024", "1024", "513", "513", "1", "1"]);
    // A share that nothing came from makes no line.
    let partly = analyse(&spec, |key| rows(key, true));
    assert!(!partly.metrics.contains_key("growth.router") && partly.metrics.contains_key("p50_growth.router"));
}

#[test]
fn an_elephant_ends_with_its_last_subflow() {
    let flow = |from, end_ns, ideal_ns| FlowRow { from, to: 9, end_ns, ideal_ns: Some(ideal_ns), ..FlowRow::default() };
    let spec = shipped("trill/elephants");
    let found = analyse(&spec, |_| Records {
        flows: vec![flow(1, Some(100), 50), flow(1, Some(150), 50), flow(2, Some(200), 100)],
        ..Records::default()
    });
    close(&found, "mean_slowdown.whole.flow", 1.75);
    close(&found, "worst_slowdown.whole.flow", 2.0);
    let open = analyse(&spec, |_| Records { flows: vec![flow(1, None, 50)], ..Records::default() });
    assert!(open.metrics.is_empty(), "an elephant that did not end has no time");
}

#[test]
fn split_elephants_are_compared_with_whole_ones_of_the_same_round() {
    let turn = |split: &str, round, connections, mbit: [u64; 4]| {
        let of = |(elephant, mbit): (usize, u64)| ElephantRow {
            split: split.into(),
            round,
            elephant: elephant as u32,
            connections,
            received_bytes: mbit * 125_000,
            wall_ns: 1_000_000_000,
        };
        mbit.into_iter().enumerate().map(of).collect::<Vec<_>>()
    };
    // Of the line of 100 Mbit/s. In one round two whole flows share a path.
    let tcp = [turn("tcp", 0, 1, [50, 50, 100, 100]), turn("tcp", 1, 1, [100; 4])].concat();
    let mptcp = [turn("mptcp", 0, 8, [90, 90, 90, 90]), turn("mptcp", 1, 7, [90, 90, 90, 90])].concat();
    let spec = shipped("trill/elephants-mptcp");
    let found = analyse(&spec, |_| Records { elephants: [tcp.clone(), mptcp.clone()].concat(), ..Records::default() });
    close(&found, "delivered.tcp", (0.75 + 1.0) / 2.0);
    close(&found, "least.tcp", 0.75);
    close(&found, "least.mptcp", 0.9);
    close(&found, "least_over_tcp.mptcp", (1.8 + 0.9) / 2.0);
    close(&found, "connections.mptcp", 7.5);
    assert!(!found.metrics.contains_key("delivered.striped"), "nobody measured it");
    let three = analyse(&spec, |_| Records { elephants: tcp[..3].to_vec(), ..Records::default() });
    assert!(!three.metrics.contains_key("delivered.tcp"), "one of four is missing");
}

#[test]
fn elision_is_read_from_bytes_lines_and_chains() {
    let found = analyse(&shipped("trill/header-elision"), |key| {
        let is_bare = key.overlay.name() == "rbridge-elided";
        let (cost, p50_ns, on_link, most) =
            if is_bare { ([110.0, 36.0, 44.0], 810, 10, 550) } else { ([100.0, 40.0, 60.0], 900, 24, 500) };
        match key.workload.as_str() {
            "cost" => Records { chains: chains(&[64, 1518], cost), ..Records::default() },
            "bare" => Records {
                crossings: [64, 1518].map(|bytes| crossed(bytes, 0, 1_000, p50_ns)).to_vec(),
                path_shares: [64, 1518].map(|bytes| share(bytes, "spine1", 100, on_link)).to_vec(),
                ..Records::default()
            },
            _ => {
                let of = |bytes| [crossed(bytes, 80, 1_000, p50_ns), crossed(bytes, 450, most, p50_ns)];
                crossings([64, 128, 512, 1518].into_iter().flat_map(of).collect())
            }
        }
    });
    assert_eq!(found.problems, []);
    close(&found, "saved_bytes.bare", 14.0);
    close(&found, "latency_ratio.links", 0.9);
    close(&found, "latency_ratio_of_size.bare.64", 0.9);
    close(&found, "most_gain.links.64", 1.1);
    close(&found, "gain_limit.64", 108.0 / 94.0);
    close(&found, "gain_of_limit.links", 1.1 / (108.0 / 94.0));
    close(&found, "delivered.links.rbridge.64.450", 0.5);
    close(&found, "transit_ns.rbridge-elided.64", 36.0);
    close(&found, "transit_ratio.64", 0.9);
    close(&found, "path_ratio.64", 0.95);
}
