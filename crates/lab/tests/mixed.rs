//! Networks in which switches forward with different things: what they carry arrives, a lab says how to bring it up again, and what
//! cannot be in one network is refused with its line.

mod common;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use common::beds::{frames_spec, run, trial, turn};
use common::campus::{Campus, build, close, fabric, pings};
use common::hosts::{self, seen_during};
use common::{Gone, Quiet, can_run, lab_name, options, scenario, traces, wait_for};
use weft_lab::deps::find_program;
use weft_lab::traffic::FaultActuator;
use weft_lab::trill::rbridge_socket;
use weft_lab::{Lab, LabActuator, LabEngine, up};
use weft_node::rbridge::protocol::{SharedRow, Shown, What};
use weft_node::{DaemonKind, socket};
use weft_scenario::engine::{Engine, EngineError, Overlay};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::record::Records;
use weft_scenario::topology::{LeafSpineParams, from_yaml, leaf_spine, to_yaml};
use weft_scenario::units::Nanos;
use weft_scenario::workload::{FramesSpec, Runs, Workload};

/// Linux's bridges with their usual ageing time take 22 to 26 s, with that of a lab two.
const FORGOTTEN: Duration = Duration::from_secs(12);

fn frames() -> Workload {
    let cost = Some(Runs { count: 3, each: Nanos(4_000_000) });
    Workload::Frames(FramesSpec { frame_bytes: vec![128], stations: 32, cost, ..frames_spec() })
}

/// Every frame arrived, and each switch on the way has a chain of its own that costs more than the one before it.
fn assert_whole(records: &Records, switches: &[&str]) {
    let row = &records.crossings[0];
    assert!(row.sent_frames > 50 && row.received_frames == row.sent_frames, "{row:?}");
    let until: Vec<&str> = records.chains.iter().map(|chain| chain.until.as_str()).collect();
    assert_eq!(until[1..], *switches);
    assert!(records.chains.iter().all(|chain| chain.chain_ns_per_frame > 0.0), "{:?}", records.chains);
}

#[test]
fn ordinary_bridges_join_rbridges() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("mb");
    let campus = build(&name, "trill-mixed", Overlay::RBRIDGE);
    for to in ["h2", "h3"] {
        assert!(pings(&campus, "h1", to), "h1 to {to}");
    }
    let lab = campus.lab();
    let daemons = lab.state.processes.iter().filter(|process| process.daemon == "rbridge");
    assert_eq!(daemons.map(|process| process.node.as_str()).collect::<Vec<_>>(), ["s1", "s2", "s3"]);
    assert_eq!(campus.next_hops("s1", "s3"), ["s2"], "nobody sees a bridge");
    let bridges = hosts::run(lab, "b1", Command::new("ip").args(["-br", "link", "show", "type", "bridge"])).1;
    assert!(bridges.starts_with("br1 ") && bridges.lines().count() == 1, "one for all frames: {bridges}");
    assert_eq!(from_yaml(&lab.state.fabric_yaml, "again").unwrap(), fabric("trill-mixed"));
    close(campus, &name);
    let records = run("mf", fabric("trill-mixed"), Overlay::RBRIDGE, frames());
    assert_whole(&records, &["s1", "b1", "b2", "s2"]);
}

/// What an RBridge says of the link that it shares with others.
fn shared(campus: &Campus, node: &str) -> SharedRow {
    let path = rbridge_socket(&campus.lab().state.lab, node);
    let Shown::SharedLinks(mut rows) = socket::show(DaemonKind::Rbridge, &path, What::Shared).unwrap() else {
        panic!("no shared links")
    };
    assert_eq!(rows.len(), 1, "{node}");
    rows.remove(0)
}

#[test]
fn rbridges_and_stations_share_bridges_whoever_serves_them() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("ms");
    let campus = build(&name, "trill-shared", Overlay::RBRIDGE);
    let on_it = ["s1", "s2", "s3"];
    let serving = || on_it.into_iter().filter(|node| !shared(&campus, node).carried.is_empty()).collect::<Vec<_>>();
    let drb = shared(&campus, "s1").drb;
    assert!(on_it.iter().all(|node| shared(&campus, node).drb == drb && shared(&campus, node).designated_vlan == 10));
    let first = serving();
    assert_eq!(first.len(), 1, "one serves the stations");
    let hosts = ["h1", "h2", "h3", "h4"];
    let all_reach = || {
        let pairs = hosts.into_iter().flat_map(|from| hosts.into_iter().map(move |to| (from, to)));
        pairs.filter(|(from, to)| from != to && !pings(&campus, from, to)).collect::<Vec<_>>()
    };
    assert_eq!(all_reach(), []);
    // It goes and comes back: another one serves them meanwhile, and the bridges find it.
    let fault = Fault { at: Nanos(0), lasts: None, kind: FaultKind::SwitchDown { node: first[0].to_owned() } };
    let mut actuator = LabActuator::new(campus.lab());
    actuator.apply(&fault).unwrap();
    let others: Vec<&str> = on_it.into_iter().filter(|node| *node != first[0]).collect();
    wait_for("another one serves them", || others.iter().any(|node| !shared(&campus, node).carried.is_empty()));
    wait_for("the others reach each other", || pings(&campus, "h4", "h1"));
    actuator.repair(&fault).unwrap();
    wait_for("it serves them again", || serving() == first);
    // The station behind the campus says nothing; bridges have learned that it is behind the other RBridge.
    let begun = Instant::now();
    wait_for("a frame for it finds its way", || pings(&campus, "h1", "h4"));
    assert!(begun.elapsed() < FORGOTTEN, "bridges forget what is silent for a forward delay: {:?}", begun.elapsed());
    wait_for("all reach each other", || all_reach().is_empty());
    close(campus, &name);
}

#[test]
fn tunnels_of_two_makers_end_in_each_other() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("mv");
    let gone = Gone(name.clone());
    let fabric = fabric("vxlan-mixed");
    let overlay = fabric.default_overlay();
    let lab = up(&scenario(fabric.clone(), overlay), &options(&name), &Quiet).unwrap();
    let servers: Vec<(String, Ipv4Addr)> = lab
        .server_addresses()
        .into_iter()
        .map(|(server, address)| (fabric.node(server).name.clone(), address))
        .collect();
    for (from, _) in &servers {
        for (to, address) in servers.iter().filter(|(to, _)| to != from) {
            assert!(answers(&lab, from, *address), "{from} to {to}");
        }
    }
    if find_program("tshark").is_some() {
        let links = [("spine1", "leaf1"), ("spine2", "leaf1")];
        let seen = seen_during(&lab, &links, "vxlan && icmp.type == 8", &["ip.src", "vxlan.vni"], || {
            assert!(answers(&lab, "s2", servers[0].1));
        });
        let leaf = lab.scenario.addresses.la(fabric.find("leaf2").unwrap());
        let expected = format!("{leaf},{}\t1", servers[1].1);
        assert!(!seen.is_empty() && seen.iter().all(|line| *line == expected), "{seen:?}, not {expected}");
    }
    lab.take_down().unwrap();
    drop(gone);
    let records = run("mw", fabric, overlay, frames());
    assert_whole(&records, &["leaf1", "spine1-spine2", "leaf2"]);
}

fn answers(lab: &Lab, from: &str, to: Ipv4Addr) -> bool {
    let ping = || hosts::run(lab, from, Command::new("ping").args(["-c", "1", "-W", "1", &to.to_string()])).0;
    (0..3).any(|_| ping())
}

#[test]
fn what_cannot_be_in_one_network_is_refused_with_its_line() {
    if !can_run() {
        return;
    }
    let text = to_yaml(&fabric("trill-mixed")).replacen("forwarding: bridge", "forwarding: vl2", 1);
    let line = 1 + text.lines().position(|line| line.contains("vl2")).unwrap();
    let scenario = scenario(from_yaml(&text, "bad.yaml").unwrap(), Overlay::RBRIDGE);
    let name = lab_name("mx");
    let refused = LabEngine::new(options(&name), Vec::new()).check_fit(&scenario, &trial(frames()));
    let Err(EngineError::Refused(why)) = refused else { panic!("{refused:?}") };
    let place = format!("bad.yaml:{line}: `b1` cannot forward with `vl2`: it cannot stand beside `rbridge`");
    assert!(why.starts_with(&place), "{why}");
    assert!(up(&scenario, &options(&name), &Quiet).is_err_and(|error| error.to_string() == why));
}

/// An RBridge's data path has 63 ports; who asks for more is told before anything is made.
#[test]
fn a_switch_with_too_many_links_is_refused() {
    if !can_run() {
        return;
    }
    let params = LeafSpineParams { spines: 1, leaves: 64, servers_per_leaf: 1, ..LeafSpineParams::default() };
    let scenario = scenario(leaf_spine(&params).unwrap(), Overlay::RBRIDGE);
    let name = lab_name("mp");
    let why = up(&scenario, &options(&name), &Quiet).unwrap_err().to_string();
    assert_eq!(why, "`spine1` has 64 links, and an RBridge has 63 ports at most; spread them over more switches");
    assert_eq!(traces(&name), BTreeSet::new());
}
