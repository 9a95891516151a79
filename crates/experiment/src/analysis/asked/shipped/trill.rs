//! Crossings, chains, losses and mixes whose numbers are known (plans of `trill/`).

use weft_scenario::record::{
    ChainRow, CrossingRow, ElephantRow, FlowRow, PathShareRow, Records, SwitchLossRow, VlanMixRow,
};

use super::{close, shipped};
use crate::analysis::TrialKey;
use crate::analysis::testing::analyse;

const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1518];

/// A thousand frames, sent as asked; `load_percent` 0: 100,000 a second.
fn crossed(way: &str, frame_bytes: u32, load_percent: u32, received: u64, p50_ns: u64) -> CrossingRow {
    let asked_per_s = if load_percent == 0 { 1e5 } else { f64::from(load_percent) * 100.0 };
    CrossingRow {
        way: way.into(),
        frame_bytes,
        load_percent,
        asked_per_s,
        wall_ns: (1e12 / asked_per_s) as u64,
        sent_frames: 1_000,
        received_frames: received,
        reordered_frames: 0,
        latency_mean_ns: p50_ns as f64 * 1.1,
        latency_p50_ns: p50_ns,
        latency_p99_ns: p50_ns * 2,
        floor_mean_ns: 220.0,
        floor_p50_ns: 200,
    }
}

/// Chains of all sizes, with the test centre alone; CPU time of S1, the middle switch and S2.
fn chains(sizes: &[u32], ways: &[(&str, [f64; 3])]) -> Vec<ChainRow> {
    let row = |way: &str, until: &str, frame_bytes, ns: f64| ChainRow {
        way: way.into(),
        until: until.into(),
        frame_bytes,
        chain_ns_per_frame: ns,
        most_per_s: 1e9 / ns,
        ..ChainRow::default()
    };
    let of_size = |bytes: &u32| {
        let of_way = |(way, [s1, middle, s2]): &(&str, [f64; 3])| {
            let places = [("s1", 200.0 + s1), ("middle", 200.0 + s1 + middle), ("s2", 200.0 + s1 + middle + s2)];
            places.map(|(until, ns)| row(way, until, *bytes, ns))
        };
        [vec![row("", "", *bytes, 200.0)], ways.iter().flat_map(of_way).collect()].concat()
    };
    sizes.iter().flat_map(of_size).collect()
}

#[test]
fn latencies_are_compared_size_by_size_with_and_without_the_floor() {
    let p50 = |way: &str, bytes: u32| match way {
        "trill" if bytes == 64 => 1_000,
        "trill" => 1_200,
        "stp" => 3_000,
        _ => 880,
    };
    let rows = |key: &TrialKey, sizes: &[u32]| {
        let load = if key.workload == "links" { 80 } else { 0 };
        let of_way = |way: &'static str| sizes.iter().map(move |bytes| (way, *bytes));
        let all = ["trill", "stp", "layer2"].into_iter().flat_map(of_way);
        let crossings = all.map(|(way, bytes)| crossed(way, bytes, load, 900, p50(way, bytes))).collect();
        Records { crossings, ..Records::default() }
    };
    let spec = shipped("trill/table1-latency");
    let found = analyse(&spec, |key| rows(key, &SIZES));
    assert_eq!(found.problems, []);
    close(&found, "ratio.trill_over_stp.p50.bare", (1.0 / 3.0 + 5.0 * 0.4) / 6.0);
    close(&found, "ratio.same_hook.net.bare", (800.0 / 680.0 + 5.0 * 1_000.0 / 680.0) / 6.0);
    close(&found, "ratio.same_hook.mean.links", (1_000.0 / 880.0 + 5.0 * 1_200.0 / 880.0) / 6.0);
    close(&found, "loss.links.trill.80", 0.1);
    close(&found, "p50_us.bare.stp.64.100000", 3.0);
    // A size that nobody received makes no mean of the others.
    let partly = analyse(&spec, |key| rows(key, &SIZES[..1]));
    assert!(partly.metrics.contains_key("p50_us.bare.trill.64.100000"));
    assert!(!partly.metrics.contains_key("ratio.trill_over_stp.p50.bare"));
}

#[test]
fn what_vlans_cost_is_told_rate_by_rate() {
    let rows = |key: &TrialKey| {
        let loads: &[u32] = if key.workload == "rates" { &[80, 400] } else { &[0] };
        let all = loads.iter().flat_map(|load| SIZES.map(|bytes| (*load, bytes)));
        let of = |(load, bytes)| {
            let routed = if load == 400 { 1_800 } else { 1_600 };
            [("trill", 1_000), ("trill-routed", 1_100), ("trill-router", routed)]
                .map(|(way, p50)| crossed(way, bytes, load, 1_000, p50))
        };
        Records { crossings: all.flat_map(of).collect(), ..Records::default() }
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
    let rows = |late: u64| {
        let of = |way: &str| {
            let received = if way == "stp" { 950 } else { 999 };
            let row = crossed(way, 64, 80, received, 900);
            CrossingRow { asked_per_s: 25e6 * 0.8 / 512.0, wall_ns: late * 25_600_000, ..row }
        };
        Records { crossings: ["trill", "stp"].map(of).to_vec(), ..Records::default() }
    };
    let spec = shipped("trill/fig03-throughput");
    let found = analyse(&spec, |_| rows(1));
    close(&found, "received_per_s.layer2.trill.64", 999e9 / 25_600_000.0);
    close(&found, "received_ratio.layer2.64", 999.0 / 950.0);
    close(&found, "delivered.layer2.trill", 0.999);
    close(&found, "offered_of_line.layer2.64", 0.8 * 84.0 / 64.0);
    // A generator that was held up offered another load.
    let held_up = analyse(&spec, |_| rows(2));
    assert!(!held_up.metrics.contains_key("delivered.layer2.trill"), "{:?}", held_up.metrics.keys());
}

#[test]
fn shares_of_paths_are_of_all_sizes_together() {
    let share = |way: &str, switch: &str, frames| PathShareRow {
        way: way.into(),
        frame_bytes: 64,
        load_percent: 0,
        switch: switch.into(),
        frames,
        bytes: frames * 84,
    };
    let found = analyse(&shipped("trill/paths"), |_| Records {
        crossings: vec![CrossingRow { reordered_frames: 2, ..crossed("trill", 64, 0, 998, 900) }],
        path_shares: vec![
            share("trill", "s3", 100),
            share("trill", "s4", 250),
            share("trill", "s3", 140),
            share("trill", "s5", 260),
            share("trill", "s6", 250),
            share("stp", "s3", 999),
            share("stp", "s4", 1),
        ],
        ..Records::default()
    });
    close(&found, "share_error.trill", 0.04);
    close(&found, "paths_used.trill", 4.0);
    close(&found, "paths_used.stp", 1.0);
    close(&found, "reordered.trill", 2.0);
    close(&found, "lost.trill", 2.0);
}

#[test]
fn fast_over_slow_is_of_the_switches_without_the_test_centre() {
    let all = [
        ("trill", [110.0, 80.0, 110.0]),
        ("trill-generic", [400.0, 250.0, 150.0]),
        ("layer2", [60.0, 60.0, 80.0]),
        ("stp", [700.0, 620.0, 680.0]),
    ];
    let facts = |cpus: u32, numbers: [f64; 6]| {
        let names = ["sent_frames", "received_frames", "most_per_s", "cpu.0", "cpu.1", "cpu.2"];
        names.into_iter().zip(numbers).map(move |(what, number)| (format!("spread.{cpus}.64.{what}"), number))
    };
    let one = || facts(0, [1000.0, 1000.0, 2e6, 0.0, 1000.0, 0.0]);
    let two = || facts(2, [1000.0, 960.0, 3e6, 440.0, 510.0, 10.0]);
    let found = analyse(&shipped("trill/fastpath-table1"), |key| match key.workload.as_str() {
        "cost" => Records { chains: chains(&[64, 1518], &all), ..Records::default() },
        "spread" => Records { facts: one().chain(two()).collect(), ..Records::default() },
        _ => {
            let crossings =
                [("trill", 900), ("trill-generic", 2_700)].map(|(way, p50)| crossed(way, 64, 0, 1_000, p50));
            Records { crossings: crossings.to_vec(), ..Records::default() }
        }
    });
    assert_eq!(found.problems, []);
    close(&found, "fast_over_slow.trill", 800.0 / 300.0);
    close(&found, "fast_over_slow_live.trill", 2.0);
    close(&found, "fast_over_slow_transit.trill.1518", 250.0 / 80.0);
    close(&found, "fast_over_slow.ethernet", 10.0);
    close(&found, "trill_over_ethernet.slow", 2.5);
    close(&found, "trill_over_ethernet.fast", 200.0 / 300.0);
    close(&found, "bridge_over_trill.64", 7.75);
    close(&found, "transit_mpps.trill.64", 12.5);
    close(&found, "live_gbps.trill.1518", 2.0 * 1518.0 * 8.0 / 1e3);
    close(&found, "live_mpps.stp.64", 1e3 / 2200.0);
    close(&found, "decapsulation_ns.layer2.64", 80.0);
    close(&found, "latency_slow_over_fast.trill.64", 3.0);
    close(&found, "spread_error.2", 1.0 - 880.0 / 960.0);
    close(&found, "spread_gain.2.64", 1.5);
    close(&found, "spread_lost.2.64", 0.04);
    close(&found, "spread_mpps.0.64", 2.0);
}

#[test]
fn cpu_use_is_per_frame_times_a_rate() {
    let all = [("trill", [100.0, 80.0, 90.0]), ("trill-routed", [150.0, 80.0, 90.0])];
    let found = analyse(&shipped("trill/fig04-cpu"), |_| Records {
        chains: chains(&[64, 512, 1518], &all),
        ..Records::default()
    });
    close(&found, "extra_ns.s1", 50.0);
    close(&found, "extra_ns.s2", 0.0);
    close(&found, "extra_points.s1.650195", 3.250_975);
    close(&found, "frame_ns.s2.trill", 90.0);
}

#[test]
fn an_outage_is_the_worst_flow_s() {
    let row = |loss: &str, outage_ns| SwitchLossRow {
        way: "trill".into(),
        loss: loss.into(),
        switch: "s4".into(),
        flows: 8,
        hit_flows: 2,
        sent_frames: 2_000,
        lost_frames: 30,
        outage_ns,
        recovery_s: 0,
    };
    let found = analyse(&shipped("trill/convergence"), |_| Records {
        switch_losses: vec![row("link-down", 50_000_000), row("silent", 600_000_000)],
        ..Records::default()
    });
    close(&found, "outage_s.trill.link-down", 0.05);
    close(&found, "outage_s.trill.silent", 0.6);
    close(&found, "hit_share.trill.silent", 0.25);
    close(&found, "recovery_s.trill.silent", 0.0);
}

#[test]
fn what_crosses_vlans_is_a_line_of_which_every_round_is_a_sample() {
    let row = |way: &str, crossing_percent: u32, round: u32, between_ns: f64| {
        let share = f64::from(crossing_percent) / 100.0;
        // All rounds are slower by turns, as on a machine with other work.
        let mood = 1.0 + f64::from(round % 3);
        VlanMixRow {
            way: way.into(),
            crossing_percent,
            round,
            frame_bytes: 64,
            sent_frames: 100,
            received_frames: 100,
            latency_mean_ns: mood * (1_000.0 * (1.0 - share) + between_ns * share),
            latency_p50_ns: if share > 0.5 { between_ns as u64 } else { 1_000 },
            floor_mean_ns: mood * 200.0,
            quiet: 1,
            chain_ns_per_frame: 700.0 + 100.0 * share,
            tester_ns_per_frame: 200.0,
            ..VlanMixRow::default()
        }
    };
    let of = |way, between_ns| {
        (0..7).flat_map(move |round| [0, 50, 100].map(|percent| row(way, percent, round, between_ns)))
    };
    let all = || of("trill-router", 2_200.0).chain(of("trill-routed", 1_100.0));
    let spec = shipped("trill/vlan-size");
    let found = analyse(&spec, |_| Records { vlan_mixes: all().collect(), ..Records::default() });
    close(&found, "growth.trill-router", 2.2);
    close(&found, "growth_net.trill-router", 2.5);
    close(&found, "growth.trill-routed", 1.1);
    close(&found, "cpu_growth.trill-routed", 1.2);
    close(&found, "p50_growth.trill-router", 2.2);
    close(&found, "step.trill-router.100", 2.2 / 1.6);
    close(&found, "router_over_routed.50", 1.6 / 1.05);
    close(&found, "lost.trill-router", 0.0);
    assert_eq!(found.metrics["growth.trill-router"].n, 7 * spec.repetitions as usize, "every round is a sample");
    let hosts: Vec<&str> = found.tables[0].rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(hosts, ["1024", "1024", "513", "513", "1", "1"]);
    // A turn that nothing came from makes no line.
    let deaf =
        |row: VlanMixRow| if row.crossing_percent == 50 { VlanMixRow { received_frames: 0, ..row } } else { row };
    let partly = analyse(&spec, |_| Records { vlan_mixes: all().map(deaf).collect(), ..Records::default() });
    assert!(
        !partly.metrics.contains_key("growth.trill-router") && partly.metrics.contains_key("p50_growth.trill-router")
    );
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
    let of = [("trill", [100.0, 40.0, 60.0]), ("trill-elided", [110.0, 36.0, 44.0])];
    let share = |way: &str, bytes: u32, on_link: u64| PathShareRow {
        way: way.into(),
        frame_bytes: bytes,
        load_percent: 100,
        switch: "s3".into(),
        frames: 100,
        bytes: 100 * (u64::from(bytes) - 4 + on_link),
    };
    let found = analyse(&shipped("trill/header-elision"), |key| {
        let mut records = Records::default();
        match key.workload.as_str() {
            "cost" => records.chains = chains(&[64, 1518], &of),
            "bare" => {
                for bytes in [64, 1518] {
                    records.crossings.push(crossed("trill", bytes, 0, 1_000, 900));
                    records.crossings.push(crossed("trill-elided", bytes, 0, 1_000, 810));
                    records.path_shares.push(share("trill", bytes, 24));
                    records.path_shares.push(share("trill-elided", bytes, 10));
                }
            }
            _ => {
                for bytes in [64, 128, 512, 1518] {
                    records.crossings.extend([
                        crossed("trill", bytes, 80, 1_000, 900),
                        crossed("trill", bytes, 450, 500, 900),
                        crossed("trill-elided", bytes, 80, 1_000, 810),
                        crossed("trill-elided", bytes, 450, 550, 810),
                    ]);
                }
            }
        }
        records
    });
    assert_eq!(found.problems, []);
    close(&found, "saved_bytes.bare", 14.0);
    close(&found, "latency_ratio.links", 0.9);
    close(&found, "latency_ratio_of_size.bare.64", 0.9);
    close(&found, "most_gain.links.64", 1.1);
    close(&found, "gain_limit.64", 108.0 / 94.0);
    close(&found, "gain_of_limit.links", 1.1 / (108.0 / 94.0));
    close(&found, "delivered.links.trill.64.450", 0.5);
    close(&found, "transit_ns.trill-elided.64", 36.0);
    close(&found, "transit_ratio.64", 0.9);
    close(&found, "path_ratio.64", 0.95);
}
