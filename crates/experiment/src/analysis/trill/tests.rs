//! Literal rows make known metrics; what is missing makes none.

use weft_scenario::record::{ChainRow, CrossingRow, ElephantRow, PathShareRow, Records, SwitchLossRow, VlanMixRow};

use super::*;
use crate::analysis::testing::{self, plan_text};
use crate::plan::{Mode, Plan, PlanError};

fn read(analysis: &str, workloads: &str, claim: &str) -> Result<Plan, PlanError> {
    let keys = format!("analysis = \"{analysis}\"\noverlays = [\"layer2\"]\nrepetitions = 3");
    let tables = format!(
        "{workloads}[sampling]\ninterval = \"1 s\"\ntime_limit = \"9 s\"\n\
         [[claims]]\nid = \"{claim}\"\nrelation = \"info\"\nunit = \"x\"\n"
    );
    Plan::parse("test.toml", &plan_text(&keys, &tables))
}

fn spec(analysis: &str, workloads: &str, claim: &str) -> PlanSpec {
    read(analysis, workloads, claim).expect("a valid test plan").for_mode(Mode::Default).clone()
}

fn workload(experiment: &str, ways: &str, keys: &str) -> String {
    format!(
        "[workload.w]\nkind = \"trill\"\nexperiment = \"{experiment}\"\nnetwork = \"campus\"\nways = [{ways}]\n\
         frame_bytes = [64, 1518]\nstations = 8\n{keys}\n"
    )
}

const LINK: &str = "link = { rate = \"100 Mbit/s\", tester_rate = \"400 Mbit/s\", queue = \"1 ms\" }\n";
const TRIAL: &str = "trial = \"1 ms\"\n";
const COST: &str = "cost = { count = 1, each = \"1 ms\" }\n";

fn value(findings: &Findings, name: &str) -> f64 {
    findings.metrics.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", findings.metrics.keys())).value
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-9, "got {got}, want {want}");
}

/// The rows' estimates; every one was announced and has a meaning, and something is drawn.
fn findings(spec: &PlanSpec, records: impl Fn() -> Records) -> Findings {
    let findings = testing::analyse(spec, |_| records());
    assert_eq!(findings.problems, []);
    let names = spec.analysis.metric_names(spec);
    for name in findings.metrics.keys() {
        assert!(names.contains(name), "{name} is not announced");
        assert!(spec.analysis.meaning(name).is_some(), "{name} has no meaning");
    }
    let fabrics = spec.build_fabrics().unwrap();
    let trials = testing::trials_of(spec, |_| records());
    assert!(!testing::figures(spec, &fabrics, &trials).is_empty());
    for table in &findings.tables {
        assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{table:?}");
    }
    findings
}

/// A crossing of which `received` of 1,000 frames arrived, sent as asked.
fn crossed(spec: &PlanSpec, way: &str, bytes: u32, offer: usize, received: u64, p50_ns: u64) -> CrossingRow {
    let (_, crossing) = crossings(spec).next().expect("a crossing");
    let offer = crossing.offers(bytes)[offer];
    CrossingRow {
        way: way.into(),
        frame_bytes: bytes,
        load_percent: offer.load_percent,
        asked_per_s: offer.per_s,
        wall_ns: (1e12 / offer.per_s) as u64,
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

#[test]
fn latencies_are_compared_size_by_size_with_and_without_the_floor() {
    let ways = "\"trill\", \"stp\", \"layer2\", \"trill-routed\"";
    let spec = spec(
        "trill-latency",
        &workload("crossing", ways, &format!("{TRIAL}per_s = [100000]")),
        "p50_us.w.trill.64.100000",
    );
    let rows = |spec: &PlanSpec| {
        let of = |way, small, large| [crossed(spec, way, 64, 0, 1_000, small), crossed(spec, way, 1518, 0, 900, large)];
        [of("trill", 1_000, 1_200), of("stp", 3_000, 3_000), of("layer2", 880, 1_000), of("trill-routed", 1_100, 1_200)]
            .concat()
    };
    let found = findings(&spec, || Records { crossings: rows(&spec), ..Records::default() });
    close(value(&found, "trill_over_stp.w.64"), 1.0 / 3.0);
    close(value(&found, "trill_over_stp.w"), (1.0 / 3.0 + 0.4) / 2.0);
    close(value(&found, "same_hook_net.w.64"), 800.0 / 680.0);
    close(value(&found, "same_hook_mean.w.1518"), 1.2);
    close(value(&found, "inter_over_intra.w"), 1.05);
    close(value(&found, "loss.w.trill.100000"), 0.05);
    close(value(&found, "p50_us.w.stp.64.100000"), 3.0);
    // A size that nobody received makes no mean of the others.
    let partly = || Records {
        crossings: rows(&spec).into_iter().filter(|row| row.frame_bytes == 64).collect(),
        ..Records::default()
    };
    let found = findings(&spec, partly);
    assert!(found.metrics.contains_key("trill_over_stp.w.64") && !found.metrics.contains_key("trill_over_stp.w"));
}

#[test]
fn what_vlans_cost_is_told_rate_by_rate_with_means_of_both_kinds() {
    let keys = format!("{TRIAL}path_rate = \"25 Mbit/s\"\nload_percent = [80, 400]");
    let spec = spec(
        "trill-latency",
        &workload("crossing", "\"trill\", \"trill-router\"", &keys),
        "router_over_intra_at.w.400",
    );
    let rows = || {
        let of = |way, bytes, first, second| {
            [crossed(&spec, way, bytes, 0, 1_000, first), crossed(&spec, way, bytes, 1, 1_000, second)]
        };
        let small = [of("trill", 64, 1_000, 1_000), of("trill-router", 64, 1_600, 1_800)];
        let large = [of("trill", 1518, 2_000, 2_000), of("trill-router", 1518, 2_400, 2_400)];
        [small.concat(), large.concat()].concat()
    };
    let found = findings(&spec, || Records { crossings: rows(), ..Records::default() });
    close(value(&found, "router_over_intra_at.w.80"), 1.4);
    close(value(&found, "router_over_intra_at.w.400"), 1.5);
    close(value(&found, "router_over_intra.w"), 1.4);
    let table = found.tables.iter().find(|table| table.title.starts_with("More median latency")).unwrap();
    assert_eq!(table.headings, ["size (B)", "80", "400", "mean"]);
    assert_eq!(table.rows[0], ["64", "60.0", "80.0", "70.0"]);
    assert_eq!(table.rows[2], ["mean", "40.0", "50.0", "-"]);
}

#[test]
fn throughput_is_a_rate_and_a_share() {
    let keys = format!("{TRIAL}{LINK}load_percent = [80]\nload_of = \"layer2\"");
    let spec = spec("trill-throughput", &workload("crossing", "\"trill\", \"stp\"", &keys), "delivered.w.trill");
    let rows = || {
        let of = |way, small, large| [crossed(&spec, way, 64, 0, small, 900), crossed(&spec, way, 1518, 0, large, 900)];
        [of("trill", 1_000, 999), of("stp", 950, 1_000)].concat()
    };
    let found = findings(&spec, || Records { crossings: rows(), ..Records::default() });
    assert!((value(&found, "received_per_s.w.trill.64") - 156_250.0).abs() < 1.0);
    close(value(&found, "received_ratio.w.64"), 1_000.0 / 950.0);
    // A generator that was held up offered another load.
    let late = |row: CrossingRow| CrossingRow { wall_ns: row.wall_ns * 2, ..row };
    let held_up = testing::analyse(&spec, |_| Records {
        crossings: rows().into_iter().map(late).collect(),
        ..Records::default()
    });
    assert!(!held_up.metrics.contains_key("delivered.w.trill"), "{:?}", held_up.metrics.keys());
    close(value(&found, "delivered.w.trill"), 0.999);
    close(value(&found, "offered_of_line.w.64"), 0.8 * 84.0 / 64.0);
}

#[test]
fn load_takes_the_most_that_arrived_at_any() {
    let keys = format!("{TRIAL}{LINK}load_percent = [100, 400]");
    let spec = spec("trill-load", &workload("crossing", "\"trill\", \"stp\"", &keys), "trill_over_stp_large");
    let rows = || {
        let of = |way, bytes, first, second| {
            [crossed(&spec, way, bytes, 0, first, 900), crossed(&spec, way, bytes, 1, second, 900)]
        };
        let small = [of("trill", 64, 1_000, 750), of("stp", 64, 1_000, 240)];
        let large = [of("trill", 1518, 1_000, 950), of("stp", 1518, 1_000, 250)];
        [small.concat(), large.concat()].concat()
    };
    let found = findings(&spec, || Records { crossings: rows(), ..Records::default() });
    let near =
        |name: &str, want: f64| assert!((value(&found, name) - want).abs() < 1e-4, "{name}: {}", value(&found, name));
    near("trill_over_stp.64", 3.0);
    near("trill_over_stp_large", 3.8);
    near("delivered.stp.64.400", 0.24);
    near("gain_limit.64", 4.0 * 84.0 / 108.0);
    near("most_paths.trill.1518", 3.8);
    near("most_paths.stp.64", 1.0);
    let lower = || Records {
        crossings: rows().into_iter().filter(|row| row.load_percent == 100).collect(),
        ..Records::default()
    };
    let partly = testing::analyse(&spec, |_| lower());
    assert!(!partly.metrics.contains_key("trill_over_stp.64"), "more might have arrived at 400 %");
}

#[test]
fn shares_of_paths_are_of_all_sizes_together() {
    let keys = format!("{TRIAL}per_s = [1000]");
    let spec = spec("trill-paths", &workload("crossing", "\"trill\", \"stp\"", &keys), "share_error.trill");
    let share = |way: &str, switch: &str, frames| PathShareRow {
        way: way.into(),
        frame_bytes: 64,
        load_percent: 0,
        switch: switch.into(),
        frames,
        bytes: frames * 84,
    };
    let records = || Records {
        crossings: vec![CrossingRow { reordered_frames: 2, ..crossed(&spec, "trill", 64, 0, 998, 900) }],
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
    };
    let found = findings(&spec, records);
    close(value(&found, "share_error.trill"), 0.04);
    assert_eq!((value(&found, "paths_used.trill"), value(&found, "paths_used.stp")), (4.0, 1.0));
    assert_eq!((value(&found, "reordered.trill"), value(&found, "lost.trill")), (2.0, 2.0));
}

fn chains(of: &[(&str, [f64; 3])]) -> Vec<ChainRow> {
    let mut rows = Vec::new();
    for bytes in [64, 1518] {
        let row = |way: &str, until: &str, ns: f64| ChainRow {
            way: way.into(),
            until: until.into(),
            frame_bytes: bytes,
            chain_ns_per_frame: ns,
            chain_quartile_ns_per_frame: ns,
            most_per_s: 1e9 / ns,
            runs: 1,
            lost_frames: 0,
        };
        rows.push(row("", "", 200.0));
        for (way, [s1, middle, s2]) in of {
            rows.push(row(way, "s1", 200.0 + s1));
            rows.push(row(way, "middle", 200.0 + s1 + middle));
            rows.push(row(way, "s2", 200.0 + s1 + middle + s2));
        }
    }
    rows
}

#[test]
fn fast_over_slow_is_of_the_switches_without_the_test_centre() {
    let ways = "\"trill\", \"trill-generic\", \"layer2\", \"stp\"";
    let spec = spec("trill-fast-path", &workload("cost", ways, COST), "fast_over_slow.trill");
    let all = [
        ("trill", [110.0, 80.0, 110.0]),
        ("trill-generic", [400.0, 250.0, 150.0]),
        ("layer2", [60.0, 60.0, 80.0]),
        ("stp", [700.0, 620.0, 680.0]),
    ];
    let found = findings(&spec, || Records { chains: chains(&all), ..Records::default() });
    close(value(&found, "fast_over_slow.trill"), 800.0 / 300.0);
    close(value(&found, "fast_over_slow_live.trill.64"), 2.0);
    close(value(&found, "fast_over_slow_transit.trill.1518"), 250.0 / 80.0);
    close(value(&found, "fast_over_slow.ethernet"), 10.0);
    close(value(&found, "trill_over_ethernet.slow"), 2.5);
    close(value(&found, "bridge_over_trill.64"), 7.75);
    close(value(&found, "transit_mpps.trill.64"), 12.5);
    close(value(&found, "gbps.trill.1518"), 2.0 * 1518.0 * 8.0 / 1e3);
    close(value(&found, "live_mpps.stp.64"), 1e3 / 2200.0);
    close(value(&found, "decapsulation_ns.layer2.64"), 80.0);
}

#[test]
fn cpu_use_is_per_frame_times_a_rate() {
    let ways = "\"trill\", \"trill-routed\"";
    let spec = spec("trill-cpu", &workload("cost", ways, &format!("per_s = [1000000]\n{COST}")), "extra_ns.s1");
    let all = [("trill", [100.0, 80.0, 90.0]), ("trill-routed", [150.0, 80.0, 90.0])];
    let found = findings(&spec, || Records { chains: chains(&all), ..Records::default() });
    close(value(&found, "extra_ns.s1"), 50.0);
    close(value(&found, "extra_points.s1.1000000"), 5.0);
    close(value(&found, "cpu_percent.s2.trill.1000000"), 9.0);
    close(value(&found, "inter_over_intra.s2"), 1.0);
}

#[test]
fn an_outage_is_the_worst_flow_s() {
    let workload = "[workload.w]\nkind = \"trill\"\nexperiment = \"convergence\"\nways = [\"trill\"]\n\
                    losses = [\"link-down\", \"silent\"]\nframe_bytes = 64\nstations = 8\nper_s = 1000\nwatch = \"2 s\"\n";
    let spec = spec("trill-convergence", workload, "outage_s.trill.silent");
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
    let records = || Records {
        switch_losses: vec![row("link-down", 50_000_000), row("silent", 600_000_000)],
        ..Records::default()
    };
    let found = findings(&spec, records);
    close(value(&found, "outage_s.trill.link-down"), 0.05);
    close(value(&found, "outage_s.trill.silent"), 0.6);
    close(value(&found, "hit_share.trill.silent"), 0.25);
    close(value(&found, "recovery_s.trill.silent"), 0.0);
}

const MIX: &str = "[workload.w]\nkind = \"trill\"\nexperiment = \"vlan-mix\"\nways = [\"trill-router\", \"trill-routed\"]\n\
                   crossing_percent = [0, 50, 100]\nframe_bytes = 64\nstations = 1024\nper_s = 1000\ntrial = \"1 ms\"\n\
                   rounds = 7\ncost = { count = 1, each = \"1 ms\" }\n";

#[test]
fn what_crosses_vlans_is_a_line_of_which_every_round_is_a_sample() {
    let spec = spec("trill-vlan-size", MIX, "growth.trill-router");
    let row = |way: &str, crossing_percent: u32, round: u32, between_ns: f64| {
        let share = f64::from(crossing_percent) / 100.0;
        // All rounds are slower by turns, as on a machine with other work.
        let mood = 1.0 + f64::from(round % 3);
        VlanMixRow {
            way: way.into(),
            crossing_percent,
            round,
            frame_bytes: 64,
            offered_per_s: 1_000.0,
            sent_frames: 100,
            received_frames: 100,
            latency_mean_ns: mood * (1_000.0 * (1.0 - share) + between_ns * share),
            latency_p50_ns: if share > 0.5 { between_ns as u64 } else { 1_000 },
            latency_p99_ns: 9_000,
            floor_mean_ns: mood * 200.0,
            floor_p50_ns: 200,
            quiet: 1,
            chain_ns_per_frame: 700.0 + 100.0 * share,
            tester_ns_per_frame: 200.0,
        }
    };
    let records = || {
        let of = |way, between_ns| {
            (0..7).flat_map(move |round| [0, 50, 100].map(|percent| row(way, percent, round, between_ns)))
        };
        let vlan_mixes = of("trill-router", 2_200.0).chain(of("trill-routed", 1_100.0)).collect();
        Records { vlan_mixes, ..Records::default() }
    };
    let found = findings(&spec, records);
    close(value(&found, "growth.trill-router"), 2.2);
    close(value(&found, "growth_net.trill-router"), 2.5);
    close(value(&found, "growth.trill-routed"), 1.1);
    close(value(&found, "cpu_growth.trill-routed"), 1.2);
    close(value(&found, "p50_growth.trill-router"), 2.2);
    close(value(&found, "step.trill-router.100"), 2.2 / 1.6);
    close(value(&found, "router_over_routed.50"), 1.6 / 1.05);
    close(value(&found, "lost.trill-router"), 0.0);
    assert_eq!(found.metrics["growth.trill-router"].n, 21, "three repetitions of seven rounds");
    assert_eq!(found.tables[0].rows.iter().map(|row| row[1].as_str()).collect::<Vec<_>>(), ["1024", "512", "1"]);
    // A round that lacks a turn has no line.
    let partly = || {
        let mut partly = records();
        partly.vlan_mixes.retain(|row| row.crossing_percent != 50);
        partly
    };
    let found = findings(&spec, partly);
    assert!(found.metrics.contains_key("mean_us.trill-router.0") && !found.metrics.contains_key("growth.trill-router"));
}

#[test]
fn an_elephant_ends_with_its_last_subflow() {
    let workload = "[workload.w]\nkind = \"permutation\"\nbytes_per_flow = \"1 MB\"\nshift = 1\n\
                    [[sweep.balance.variant]]\nid = \"flow\"\nswitching = { load_balance = \"flow-ecmp\" }\n";
    let keys = "analysis = \"trill-elephants\"\noverlays = [\"rbridge\"]\nrepetitions = 3";
    let claims = "[sampling]\ninterval = \"1 s\"\ntime_limit = \"9 s\"\n[[claims]]\n\
                  id = \"mean_slowdown.w.flow\"\nrelation = \"info\"\nunit = \"x\"\n";
    let text = plan_text(keys, &format!("{workload}{claims}")).replace("engines = [\"lab\"]", "engines = [\"sim\"]");
    let spec = Plan::parse("test.toml", &text).unwrap().for_mode(Mode::Default).clone();
    let flow = |from, end_ns, ideal_ns| weft_scenario::record::FlowRow {
        from,
        to: 9,
        end_ns,
        ideal_ns: Some(ideal_ns),
        ..Default::default()
    };
    let records = || Records {
        flows: vec![flow(1, Some(100), 50), flow(1, Some(150), 50), flow(2, Some(200), 100)],
        ..Records::default()
    };
    let found = findings(&spec, records);
    close(value(&found, "mean_slowdown.w.flow"), 1.75);
    close(value(&found, "worst_slowdown.w.flow"), 2.0);
    let open = testing::analyse(&spec, |_| Records { flows: vec![flow(1, None, 50)], ..Records::default() });
    assert!(open.metrics.is_empty(), "an elephant that did not end has no time");
}

const ELEPHANTS: &str = "[workload.w]\nkind = \"trill\"\nexperiment = \"elephants\"\nsplits = [\"tcp\", \"mptcp\", \"striped\"]\n\
                         subflows = 8\neach = \"1 s\"\nrounds = 2\n";

#[test]
fn split_elephants_are_compared_with_whole_ones_of_the_same_round() {
    let spec = spec("trill-multipath", &format!("{ELEPHANTS}{LINK}"), "delivered.tcp");
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
    let all = || Records { elephants: [tcp.clone(), mptcp.clone()].concat(), ..Records::default() };
    let found = findings(&spec, all);
    close(value(&found, "delivered.tcp"), (0.75 + 1.0) / 2.0);
    close(value(&found, "least.tcp"), 0.75);
    close(value(&found, "least.mptcp"), 0.9);
    close(value(&found, "least_over_tcp.mptcp"), (1.8 + 0.9) / 2.0);
    close(value(&found, "connections.mptcp"), 7.5);
    assert!(!found.metrics.contains_key("delivered.striped"), "nobody measured it");
    let without = findings(&spec, || Records { elephants: tcp.clone(), ..Records::default() });
    assert!(without.tables[0].rows.iter().any(|row| row[0] == "mptcp: not available on this kernel"));
    let three = || Records { elephants: tcp[..3].to_vec(), ..Records::default() };
    assert!(!testing::analyse(&spec, |_| three()).metrics.contains_key("delivered.tcp"), "one of four is missing");
}

#[test]
fn plans_that_do_not_fit_are_refused() {
    let refused =
        |analysis: &str, workload: &str, claim: &str| read(analysis, workload, claim).unwrap_err().to_string();
    let bare = workload("crossing", "\"trill\"", &format!("{TRIAL}per_s = [1]"));
    for (error, message) in [
        (refused("trill-cpu", &bare, "extra_ns.s1"), "`experiment = \"cost\"`"),
        (refused("trill-vlan-size", &MIX.replace("0, 50, 100", "50"), "growth.trill-router"), "in order"),
        (refused("trill-vlan-size", &MIX.replace("0, 50, 100", "50, 0"), "growth.trill-router"), "in order"),
        (refused("trill-load", &bare, "gain_limit.64"), "with a `link`"),
        (refused("trill-throughput", &bare, "delivered.w.trill"), "with a `link`"),
        (refused("trill-latency", &bare, "trill_over_stp.w"), "yields no metric `trill_over_stp.w`"),
        (refused("trill-fast-path", &bare, "mpps.trill.64"), "one workload of each experiment"),
    ] {
        assert!(error.contains(message), "wanted `{message}`, got `{error}`");
    }
}

#[test]
fn elision_is_read_from_bytes_lines_and_chains() {
    let keys = format!("{TRIAL}{LINK}load_percent = [100, 400]");
    let ways = "\"trill\", \"trill-elided\"";
    let spec = spec("trill-elision", &workload("crossing", ways, &keys), "gain_of_limit.w");
    let records = || {
        let mut records = Records::default();
        for bytes in [64, 1518] {
            records.crossings.extend([
                crossed(&spec, "trill", bytes, 0, 1_000, 900),
                crossed(&spec, "trill", bytes, 1, 500, 900),
                crossed(&spec, "trill-elided", bytes, 0, 1_000, 810),
                crossed(&spec, "trill-elided", bytes, 1, 550, 810),
            ]);
            for (way, on_link) in [("trill", 24), ("trill-elided", 10)] {
                records.path_shares.push(PathShareRow {
                    way: way.into(),
                    frame_bytes: bytes,
                    load_percent: 100,
                    switch: "s3".into(),
                    frames: 100,
                    bytes: 100 * u64::from(bytes - 4 + on_link),
                });
            }
        }
        records
    };
    let found = findings(&spec, records);
    close(value(&found, "link_bytes.w.trill.64"), 84.0);
    close(value(&found, "link_bytes.w.trill-elided.64"), 70.0);
    close(value(&found, "saved_bytes.w"), 14.0);
    close(value(&found, "latency_ratio.w"), 0.9);
    let gain = value(&found, "most_gain.w.64");
    assert!((gain - 1.1).abs() < 1e-3, "{gain}");
    close(value(&found, "gain_of_limit.w"), gain / (108.0 / 94.0));

    let cost = workload("cost", ways, COST);
    let spec = self::spec("trill-elision", &cost, "transit_ratio.64");
    let of = [("trill", [100.0, 40.0, 60.0]), ("trill-elided", [110.0, 36.0, 44.0])];
    let found = findings(&spec, || Records { chains: chains(&of), ..Records::default() });
    close(value(&found, "transit_ns.trill-elided.64"), 36.0);
    close(value(&found, "transit_ratio.64"), 0.9);
    close(value(&found, "path_ratio.1518"), 0.95);

    let error = read("trill-elision", &workload("crossing", "\"trill\", \"stp\"", &keys), "gain_of_limit.w");
    assert!(error.unwrap_err().to_string().contains("takes the ways `trill` and `trill-elided`"));
}

#[test]
fn spread_work_is_even_where_every_cpu_has_its_share() {
    let cost = workload("cost", "\"trill\"", COST);
    let spread = "[workload.s]\nkind = \"trill\"\nexperiment = \"spread\"\ncpus = [0, 2]\nframe_bytes = [64]\n\
                  stations = 8\nnicknames = 16\nruns = { count = 1, each = \"1 ms\" }\n";
    let spec = spec("trill-fast-path", &format!("{cost}{spread}"), "spread_error.2");
    let facts = |cpus: u32, numbers: [f64; 6]| {
        let names = ["sent_frames", "received_frames", "most_per_s", "cpu.0", "cpu.1", "cpu.2"];
        names.into_iter().zip(numbers).map(move |(what, number)| (format!("spread.{cpus}.64.{what}"), number))
    };
    let records = || {
        let one = facts(0, [1000.0, 1000.0, 2e6, 0.0, 1000.0, 0.0]);
        let two = facts(2, [1000.0, 960.0, 3e6, 440.0, 510.0, 10.0]);
        let all = [("trill", [100.0, 40.0, 60.0])];
        Records { chains: chains(&all), facts: one.chain(two).collect(), ..Records::default() }
    };
    let found = findings(&spec, records);
    close(value(&found, "spread_error.2"), 1.0 - 880.0 / 960.0);
    close(value(&found, "spread_gain.2.64"), 1.5);
    close(value(&found, "spread_lost.2.64"), 0.04);
    close(value(&found, "spread_mpps.0.64"), 2.0);
}
