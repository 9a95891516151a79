//! Faults break both ends of a link, repairs bring back everything that was there, anycast LAs find new owners.

mod common;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Gone, PATIENCE, Quiet, can_run, lab_name, options, testbed, wait_for};
use weft_lab::traffic::FaultActuator;
use weft_lab::{Lab, LabActuator, RouteTable, home, in_namespace, kernel_table, up};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::Overlay;
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::units::Nanos;

fn fault(kind: FaultKind) -> Fault {
    Fault { at: Nanos(0), lasts: None, kind }
}

fn switch_down(node: &str) -> Fault {
    fault(FaultKind::SwitchDown { node: node.into() })
}

/// Routes of all switches as the kernel has them.
fn tables(lab: &Lab) -> BTreeMap<String, RouteTable> {
    let switches = lab.state.nodes.iter().filter(|node| node.role.is_switch());
    switches.map(|node| (node.name.clone(), kernel_table(&node.namespace).unwrap())).collect()
}

/// Waits until all switches have the routes they had, and says which differ if they do not.
fn wait_for_tables(lab: &Lab, before: &BTreeMap<String, RouteTable>) {
    let start = Instant::now();
    loop {
        let now = tables(lab);
        if now == *before {
            return;
        }
        if start.elapsed() > PATIENCE {
            for (node, table) in before {
                let (old, new): (Vec<_>, Vec<_>) = (
                    table.iter().filter(|(to, by)| now[node].get(*to) != Some(*by)).collect(),
                    now[node].iter().filter(|(to, by)| table.get(*to) != Some(*by)).collect(),
                );
                eprintln!("{node}: lost {old:?}, gained {new:?}");
            }
            panic!("tables are not as before");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether a datagram gets from one server to another.
fn reaches(lab: &Lab, from: &str, to: &str) -> bool {
    let open = |node: &str| {
        let node = lab.state.node(node).unwrap();
        in_namespace(&home::namespace_path(&node.namespace), || UdpSocket::bind((node.la.unwrap(), 0)).unwrap())
            .unwrap()
    };
    let (sender, receiver) = (open(from), open(to));
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    sender.send_to(b"weft", receiver.local_addr().unwrap()).unwrap();
    receiver.recv(&mut [0; 8]).is_ok_and(|length| length == 4)
}

#[test]
fn a_switch_that_fails_and_returns_leaves_every_table_as_it_was() {
    if !can_run() {
        return;
    }
    let name = lab_name("fa");
    let _gone = Gone(name.clone());
    let lab = up(&testbed([1, 1, 1, 1], Overlay::Routed), &options(&name), &Quiet).unwrap();
    let before = tables(&lab);
    let mut actuator = LabActuator::new(&lab);
    for node in ["int2", "tor1"] {
        actuator.apply(&switch_down(node)).unwrap();
        let lost = if node == "int2" { "10.3.0.2" } else { "10.1.0.1" };
        wait_for("the others notice", || !tables(&lab)["agg1"].contains_key(lost));
        actuator.repair(&switch_down(node)).unwrap();
        wait_for_tables(&lab, &before);
    }
    assert!(reaches(&lab, "s4", "s1"), "neighbours of the returned ToR are back");
    let restored = actuator.finish();
    assert!(matches!(restored[..], [(0, Some(_)), (1, Some(_))]), "{restored:?}");
}

#[test]
fn overlapping_faults_are_counted_and_unknown_ones_refused() {
    if !can_run() {
        return;
    }
    let name = lab_name("fb");
    let _gone = Gone(name.clone());
    let lab = up(&testbed([1, 1, 1, 1], Overlay::Routed), &options(&name), &Quiet).unwrap();
    let before = tables(&lab);
    let link = fault(FaultKind::LinkDown { a: "agg1".into(), b: "int1".into() });
    let mut actuator = LabActuator::new(&lab);
    actuator.apply(&switch_down("int1")).unwrap();
    actuator.apply(&link).unwrap();
    actuator.repair(&switch_down("int1")).unwrap();
    wait_for("int1 is back, but not by that link", || {
        let paths = &tables(&lab)["int1"];
        paths.get("10.1.0.1").is_some_and(|by| by.iter().eq(["agg2"]))
    });
    actuator.repair(&link).unwrap();
    wait_for_tables(&lab, &before);
    for (kind, expected) in [
        (FaultKind::SwitchDown { node: "int9".into() }, "has no node `int9`"),
        (FaultKind::LinkDown { a: "int1".into(), b: "tor1".into() }, "no link between `int1` and `tor1`"),
    ] {
        let mut actuator = LabActuator::new(&lab);
        let error = actuator.apply(&fault(kind)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(tables(&lab), before);
}

#[test]
fn a_failed_group_of_intermediates_gives_its_address_to_a_living_one() {
    if !can_run() {
        return;
    }
    let name = lab_name("fc");
    let _gone = Gone(name.clone());
    let mut scenario = testbed([1, 1, 1, 1], Overlay::Routed);
    let options_of_groups = AddressingOptions { ecmp_width: 1, ..AddressingOptions::default() };
    scenario.addresses = AddressPlan::new(&scenario.fabric, options_of_groups).unwrap();
    let lab = up(&scenario, &options(&name), &Quiet).unwrap();
    let before = tables(&lab);
    let groups = scenario.addresses.anycast_groups();
    let orphan = groups[0].address.to_string();
    let owner = &lab.state.nodes[groups[0].members[0].index()].name;
    let mut actuator = LabActuator::new(&lab);
    actuator.apply(&switch_down(owner)).unwrap();
    wait_for("another Intermediate announces the address", || {
        let now = &tables(&lab)["agg1"];
        now.get(&orphan).is_some_and(|by| by != &before["agg1"][&orphan] && !by.contains(owner.as_str()))
    });
    actuator.repair(&switch_down(owner)).unwrap();
    wait_for_tables(&lab, &before);
}

/// State of an interface as the kernel has it, for instance `UP`.
fn operational_state(lab: &Lab, node: &str, interface: &str) -> String {
    let namespace = home::namespace_path(&lab.state.node(node).unwrap().namespace);
    let show = || Command::new("ip").args(["-br", "link", "show", "dev", interface]).output().unwrap().stdout;
    let text = String::from_utf8(in_namespace(&namespace, show).unwrap()).unwrap();
    text.split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn a_silent_link_stays_up_is_found_and_comes_back() {
    if !can_run() {
        return;
    }
    for (tag, bfd) in [("fd", None), ("fe", Some(Nanos(50_000_000)))] {
        let name = lab_name(tag);
        let _gone = Gone(name.clone());
        let mut scenario = testbed([1, 1, 1, 1], Overlay::Vl2);
        scenario.switching.bfd = bfd;
        let lab = up(&scenario, &options(&name), &Quiet).unwrap();
        let daemons = lab.state.processes.iter().filter(|process| process.daemon == "bfdd").count();
        assert_eq!(daemons, if bfd.is_some() { 10 } else { 0 }, "one on every switch, or none");
        let before = tables(&lab);
        let silent = fault(FaultKind::LinkSilent { a: "int1".into(), b: "agg1".into() });
        let mut actuator = LabActuator::new(&lab);
        actuator.apply(&silent).unwrap();
        wait_for("both ends route around it", || {
            let now = tables(&lab);
            let by_one = now["int1"].get("10.1.0.1").is_some_and(|by| by.iter().eq(["agg2"]));
            by_one && now["agg1"].get("10.3.0.1").is_none_or(|by| !by.contains("int1"))
        });
        assert_eq!(operational_state(&lab, "int1", "agg1"), "UP");
        assert_eq!(operational_state(&lab, "agg1", "int1"), "UP");
        assert!(reaches(&lab, "s1", "s4"));
        actuator.repair(&silent).unwrap();
        wait_for_tables(&lab, &before);
        let restored = actuator.finish();
        assert!(matches!(restored[..], [(0, Some(_))]), "{restored:?}");
        let wrong = fault(FaultKind::LinkSilent { a: "int1".into(), b: "tor1".into() });
        let error = LabActuator::new(&lab).apply(&wrong).unwrap_err();
        assert!(error.contains("no link between `int1` and `tor1`"), "{error}");
        lab.take_down().unwrap();
    }
}
