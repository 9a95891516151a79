//! Streams to many receivers over small labs: who has joined has all of it once, nobody else has any, links carry one copy or as many
//! as the ingress makes, a link of the tree may fail, and nothing stays behind.

mod common;

use common::beds::{trial, try_run, turn};
use common::scenario;
use weft_scenario::engine::{Overlay, Scenario};
use weft_scenario::record::Records;
use weft_scenario::switching::Switching;
use weft_scenario::topology::{LeafSpineParams, leaf_spine};
use weft_scenario::units::Nanos;
use weft_scenario::workload::{Copies, MulticastSpec, Runs, Workload};

const MS: u64 = 1_000_000;
/// Three edge switches with four servers each; the first sends, and the last switch has receivers when the others' are used up.
const SERVERS: u32 = 12;
const RECEIVERS: [u32; 2] = [2, 6];

fn spec() -> MulticastSpec {
    MulticastSpec {
        receivers: RECEIVERS.to_vec(),
        groups: 1,
        copies: Copies::Tree,
        frame_bytes: 256,
        per_s: 2_000,
        trial: Nanos(200 * MS),
        link_down_at: None,
        cost: None,
    }
}

fn network(overlay: Overlay, groups: bool) -> Scenario {
    let params = LeafSpineParams { spines: 2, leaves: 3, servers_per_leaf: SERVERS / 3, ..LeafSpineParams::default() };
    let switching = Switching { groups, ..Switching::default() };
    Scenario { switching, ..scenario(leaf_spine(&params).unwrap(), overlay) }
}

fn run(test: &str, network: &Scenario, spec: MulticastSpec) -> Records {
    try_run(test, network, &[trial(Workload::Multicast(spec))]).unwrap().swap_remove(0)
}

fn assert_all_arrived(records: &Records) {
    for row in &records.deliveries {
        assert!(row.sender_frames > 100 && row.received_copies == row.wanted_copies, "{row:?}");
        assert_eq!((row.worst_ratio, row.duplicated_copies, row.outage_ns), (1.0, 0, 0), "{row:?}");
        assert_eq!(row.strangers, SERVERS - 1 - row.receivers);
    }
}

/// Copies of each frame on the most loaded direction of a link between switches, and whether some link has none.
fn on_links(records: &Records, receivers: u32) -> (f64, f64) {
    let rows = records.link_copies.iter().filter(|row| row.receivers == receivers);
    let copies: Vec<f64> = rows.map(|row| row.frames / row.sender_frames as f64).collect();
    assert_eq!(copies.len(), 12, "six links, both ways");
    (copies.iter().copied().fold(0.0, f64::max), copies.iter().sum())
}

/// Other messages of switches and hosts may be a few of a hundred.
fn is_about(copies: f64, expected: f64) -> bool {
    (copies - expected).abs() < 0.1 * expected
}

#[test]
fn who_has_joined_has_all_of_it_once_and_nobody_else_any() {
    let Some(_turn) = turn() else { return };
    let cost = Some(Runs { count: 2, each: Nanos(MS) });
    let records = run("ga", &network(Overlay::RBRIDGE, true), MulticastSpec { groups: 3, cost, ..spec() });
    assert_all_arrived(&records);
    assert_eq!(records.deliveries.iter().map(|row| row.receivers).collect::<Vec<_>>(), RECEIVERS);
    for receivers in RECEIVERS {
        let row = records.deliveries.iter().find(|row| row.receivers == receivers).unwrap();
        assert_eq!((row.stray_copies, row.groups), (0, 3));
        // Behind the second switch and the sender's own.
        let (most, all) = on_links(&records, receivers);
        assert!(is_about(most, 1.0) && is_about(all, 2.0), "{receivers}: {most}, {all}");
    }
    let costs: Vec<_> = records.copy_costs.iter().map(|row| (row.receivers, row.way.as_str())).collect();
    let ways = ["none", "unicast", "tree"];
    assert_eq!(costs, [6, 2].into_iter().flat_map(|number| ways.map(|way| (number, way))).collect::<Vec<_>>());
    for row in &records.copy_costs {
        let copies = match row.way.as_str() {
            "none" => 0.0,
            "unicast" => 3.0,
            _ => 2.0 + f64::from(row.receivers),
        };
        assert!(row.chain_ns_per_frame > 0.0 && (copies == 0.0 || is_about(row.copies_per_frame, copies)), "{row:?}");
    }
}

#[test]
fn groups_on_several_trees_share_the_links_and_are_pruned_on_each() {
    let Some(_turn) = turn() else { return };
    let mut network = network(Overlay::RBRIDGE, true);
    network.switching.trees = 2;
    let records = run("gt", &network, MulticastSpec { groups: 16, receivers: vec![6], ..spec() });
    assert_all_arrived(&records);
    assert!(records.deliveries.iter().all(|row| row.stray_copies == 0), "{:?}", records.deliveries);
    // From the sender's switch to both in the middle, and from these to the only other one with receivers.
    let (most, all) = on_links(&records, 6);
    assert!((0.45..0.65).contains(&most) && is_about(all, 2.0), "{most}, {all}");
}

#[test]
fn without_pruning_the_whole_vlan_has_it() {
    let Some(_turn) = turn() else { return };
    for overlay in [Overlay::RBRIDGE, Overlay::BRIDGE] {
        let records = run("gb", &network(overlay, false), spec());
        assert_all_arrived(&records);
        for row in &records.deliveries {
            assert_eq!(row.stray_copies, row.sender_frames * u64::from(row.strangers), "{overlay}: {row:?}");
            assert!(is_about(on_links(&records, row.receivers).0, 1.0), "{overlay}: {row:?}");
        }
    }
}

#[test]
fn bridges_prune_by_what_they_snoop() {
    let Some(_turn) = turn() else { return };
    let records = run("gc", &network(Overlay::BRIDGE, true), spec());
    assert_all_arrived(&records);
    assert!(records.deliveries.iter().all(|row| row.stray_copies == 0), "{:?}", records.deliveries);
}

#[test]
fn copies_of_the_ingress_are_as_many_as_receivers() {
    let Some(_turn) = turn() else { return };
    let records = run("gd", &network(Overlay::RBRIDGE, true), MulticastSpec { copies: Copies::Ingress, ..spec() });
    assert_all_arrived(&records);
    for row in &records.deliveries {
        assert_eq!(row.stray_copies, 0);
        // Half of the receivers are behind the second switch, over two links.
        let (_, all) = on_links(&records, row.receivers);
        assert!(is_about(all * f64::from(row.receivers), f64::from(row.receivers)), "{row:?}: {all}");
    }
}

/// A link of the tree goes down 500 ms after the start, and receivers behind it have the group again before the trial ends.
fn a_link_goes_down(overlay: Overlay, trial: Nanos) {
    let link_down_at = Some(Nanos(500 * MS));
    let spec = MulticastSpec { trial, link_down_at, receivers: vec![4], ..spec() };
    let records = run("ge", &network(overlay, overlay == Overlay::RBRIDGE), spec);
    let [row] = &records.deliveries[..] else { panic!("{:?}", records.deliveries) };
    assert!(row.link_down.contains("leaf1") && row.link_down.contains("spine"), "{overlay}: {row:?}");
    assert!(row.hit_receivers > 0 && row.hit_receivers < 4, "those behind the sender's switch lose nothing: {row:?}");
    assert!(row.outage_ns > 0 && row.outage_ns < trial.0 - 500 * MS, "{overlay}: {row:?}");
    assert!(records.link_copies.is_empty());
}

#[test]
fn a_link_of_the_tree_goes_down_and_another_takes_over() {
    let Some(_turn) = turn() else { return };
    a_link_goes_down(Overlay::RBRIDGE, Nanos(2_000 * MS));
}

#[test]
#[ignore = "long: make test-long"]
fn a_link_of_the_spanning_tree_goes_down_and_another_takes_over() {
    let Some(_turn) = turn() else { return };
    a_link_goes_down(Overlay::BRIDGE, Nanos(13_000 * MS));
}

#[test]
fn more_receivers_than_servers_and_switches_that_learn_nothing_are_refused() {
    let Some(_turn) = turn() else { return };
    let spec = MulticastSpec { receivers: vec![SERVERS], ..spec() };
    let error = try_run("gf", &network(Overlay::RBRIDGE, true), &[trial(Workload::Multicast(spec))]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`receivers` is 12, and fabric `leaf-spine` has 11 servers"), "{text}");
    let broken = MulticastSpec { receivers: vec![2], link_down_at: Some(Nanos(MS)), ..self::spec() };
    let snooping = network(Overlay::BRIDGE, true);
    let text = try_run("gh", &snooping, &[trial(Workload::Multicast(broken))]).unwrap_err().to_string();
    assert!(text.contains("`link_down_at` needs bridges that do not snoop"), "{text}");
    let plain = trial(Workload::Multicast(MulticastSpec { receivers: vec![2], ..self::spec() }));
    let text = try_run("gg", &network(Overlay::L2, false), &[plain]).unwrap_err().to_string();
    assert!(text.contains("needs RBridges or bridges; fabric `leaf-spine` has switches of `l2`"), "{text}");
}
