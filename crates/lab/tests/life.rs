//! Labs come up, carry packets, stay apart from each other and leave nothing behind.

mod common;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use common::{Gone, Quiet, can_run, lab_name, options, pair, testbed, traces, wait_for};
use weft_lab::{LabEngine, LabError, LabOptions, LabState, down, down_matching, in_namespace, kernel_table, list, up};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{Engine, EngineError, Overlay, Progress, Scenario};
use weft_scenario::topology::{Fabric, Link, Node};
use weft_scenario::units::Nanos;

fn sh(lab: &str, node: &str, script: &str) -> bool {
    let namespace = format!("weft-{lab}-{node}");
    Command::new("ip").args(["netns", "exec", &namespace, "sh", "-c", script]).status().expect("ip runs").success()
}

#[test]
fn a_routed_lab_carries_packets_and_leaves_nothing() {
    if !can_run() {
        return;
    }
    let name = lab_name("a");
    let _gone = Gone(name.clone());
    let before = std::fs::read_to_string("/proc/net/dev").unwrap();
    let lab = up(&pair(Overlay::Routed), &options(&name), &Quiet).unwrap();
    assert!(lab.facts.iter().any(|(fact, seconds)| fact == "lab.up_s" && *seconds > 0.0), "{:?}", lab.facts);
    assert!(list().iter().any(|row| row.lab == name && row.status == "up" && row.processes_running == 6));
    assert!(sh(&name, "s1", "ip route get 10.64.1.2 | grep -q 'via 10.64.0.1 dev eth0 src 10.64.0.2'"));
    assert!(sh(&name, "s1", "test \"$(cat /proc/sys/net/ipv4/tcp_congestion_control)\" = cubic"));
    lab.take_down().unwrap();
    assert_eq!(traces(&name), BTreeSet::new());
    let interfaces =
        |text: &str| text.lines().map(|line| line.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(interfaces(&before), interfaces(&std::fs::read_to_string("/proc/net/dev").unwrap()));
    assert!(matches!(down(&name), Err(LabError::NoSuchLab { .. })));
}

#[test]
fn two_labs_live_side_by_side_and_a_name_is_taken_once() {
    if !can_run() {
        return;
    }
    let (first, second) = (lab_name("b1"), lab_name("b2"));
    let _gone = Gone(lab_name("b"));
    let one = up(&pair(Overlay::Routed), &options(&first), &Quiet).unwrap();
    let two = up(&pair(Overlay::KERNEL_VXLAN), &options(&second), &Quiet).unwrap();
    let error = up(&pair(Overlay::Routed), &options(&first), &Quiet).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "a lab called `{first}` is already up; take it down first (weft lab down {first}) or give this one another --name"
        )
    );
    one.take_down().unwrap();
    assert_eq!(traces(&first), BTreeSet::new());
    assert!(sh(&second, "s1", "ip -br addr show dev vxlan0 | grep -q 20.0.0.1/8"));
    assert!(LabState::load(&second).unwrap().processes.iter().all(|process| process.id.is_alive()));
    two.take_down().unwrap();
}

#[test]
fn bad_names_and_foreign_namespaces_are_refused_and_left_alone() {
    if !can_run() {
        return;
    }
    assert!(matches!(up(&pair(Overlay::Routed), &options("../x"), &Quiet), Err(LabError::BadLabName(_))));
    let name = lab_name("c");
    let namespace = format!("weft-{name}-tor2");
    assert!(Command::new("ip").args(["netns", "add", &namespace]).status().unwrap().success());
    let error = up(&pair(Overlay::Routed), &options(&name), &Quiet).unwrap_err();
    assert!(matches!(error, LabError::NamespaceExists(_)), "{error}");
    assert_eq!(traces(&name).len(), 2, "only the foreign namespace and its mount: {:?}", traces(&name));
    let removed = down_matching(&name).unwrap();
    assert_eq!(removed.left, [format!("namespace {namespace}, which was not made by weft")]);
    assert!(removed.labs.is_empty() && removed.strays.is_empty(), "{removed:?}");
    assert_eq!(traces(&name).len(), 2, "a sweep leaves it alone, too: {:?}", traces(&name));
    assert!(Command::new("ip").args(["netns", "del", &namespace]).status().unwrap().success());
    assert_eq!(traces(&name), BTreeSet::new());
}

#[test]
fn what_a_lab_cannot_do_is_refused_before_anything_is_made() {
    if !can_run() {
        return;
    }
    let name = lab_name("i");
    let scenario = pair(Overlay::Vl2);
    let rebuilt = |nodes: Vec<Node>, links: Vec<Link>| {
        let fabric = Fabric::new("f", nodes, links).unwrap();
        let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
        Scenario { fabric, addresses, ..scenario.clone() }
    };
    let (nodes, mut links) = (scenario.fabric.nodes().to_vec(), scenario.fabric.links().to_vec());
    links[1].spec.delay = Nanos(2_000_000);
    let refused = |scenario: &Scenario, options: &LabOptions| {
        let text = up(scenario, options, &Quiet).unwrap_err().to_string();
        assert_eq!(traces(&name), BTreeSet::new());
        text
    };
    let text = refused(&rebuilt(nodes.clone(), links), &options(&name));
    assert!(text.starts_with("link `int1:tor2 - tor2:int1` asks for a delay of 2 ms"), "{text}");
    let without_directory = rebuilt(nodes[..nodes.len() - 1].to_vec(), scenario.fabric.links()[..4].to_vec());
    let text = refused(&without_directory, &options(&name));
    assert!(text.starts_with("fabric `f` has no directory server"), "{text}");
    let text = refused(&scenario, &LabOptions { weft_binary: "/nowhere/weft".into(), ..options(&name) });
    assert!(text.starts_with("no program at /nowhere/weft"), "{text}");
}

/// Asks to stop after some phases.
struct StopAt(&'static str, std::sync::atomic::AtomicBool);

impl Progress for StopAt {
    fn phase(&self, name: &str, _: &str) {
        if name == self.0 {
            self.1.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
    fn advance(&self, _: f64, _: &str) {}
    fn note(&self, _: &str) {}
    fn interrupted(&self) -> bool {
        self.1.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[test]
fn an_interrupted_start_cleans_up_whatever_the_phase() {
    if !can_run() {
        return;
    }
    for phase in ["namespaces", "addresses", "routing", "convergence", "first ping"] {
        let name = lab_name("d");
        let progress = StopAt(phase, false.into());
        let error = up(&pair(Overlay::Routed), &options(&name), &progress).unwrap_err();
        assert!(matches!(EngineError::from(error), EngineError::Interrupted), "{phase}");
        assert_eq!(traces(&name), BTreeSet::new(), "{phase}");
    }
}

/// Runs as a child of the next test: brings a lab up and waits to be killed.
#[test]
fn child_that_is_killed() {
    let Ok(name) = std::env::var("WEFT_TEST_LAB_TO_LEAVE") else { return };
    let _lab = up(&pair(Overlay::Routed), &options(&name), &Quiet).unwrap();
    std::thread::sleep(Duration::from_secs(300));
}

#[test]
fn after_a_kill_a_sweep_leaves_nothing() {
    if !can_run() {
        return;
    }
    for halfway in [false, true] {
        let name = lab_name("e");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_is_killed", "--nocapture"])
            .env("WEFT_TEST_LAB_TO_LEAVE", &name)
            .spawn()
            .unwrap();
        wait_for("the child's lab", || {
            LabState::load(&name).is_ok_and(|state| state.ready || (halfway && !state.processes.is_empty()))
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!traces(&name).is_empty(), "the killed child left its lab");
        let removed = down_matching(&name).unwrap();
        assert_eq!(removed.labs, std::slice::from_ref(&name));
        assert_eq!(traces(&name), BTreeSet::new());
        assert_eq!(down_matching(&name).unwrap(), weft_lab::Removed::default(), "sweeping twice is no error");
    }
}

/// Runs as a child of the next test: a run that is killed.
#[test]
fn child_run_that_is_killed() {
    let Ok(name) = std::env::var("WEFT_TEST_RUN_TO_LEAVE") else { return };
    let engine = LabEngine::new(options(&name), Vec::new());
    let _session = engine.prepare(&pair(Overlay::Routed), &Quiet).unwrap();
    std::thread::sleep(Duration::from_secs(300));
}

#[test]
fn the_next_run_removes_what_a_killed_run_left() {
    if !can_run() {
        return;
    }
    let name = lab_name("j");
    let _gone = Gone(name.clone());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_run_that_is_killed"])
        .env("WEFT_TEST_RUN_TO_LEAVE", &name)
        .spawn()
        .unwrap();
    wait_for("the child's lab", || LabState::load(&name).is_ok_and(|state| state.ready));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(list().iter().any(|row| row.lab == name && row.status == "orphan"));
    // Another run of the same fabric: it sweeps first and so gets the same name.
    let engine = LabEngine::new(options(&name), Vec::new());
    let session = engine.prepare(&pair(Overlay::Routed), &Quiet).unwrap();
    assert!(list().iter().any(|row| row.lab == name && row.status == "up"));
    drop(session);
    assert_eq!(traces(&name), BTreeSet::new(), "a dropped session takes its lab down");
}

#[test]
fn a_lab_whose_state_is_lost_or_damaged_can_be_swept() {
    if !can_run() {
        return;
    }
    let name = lab_name("f");
    let _gone = Gone(name.clone());
    up(&pair(Overlay::Routed), &options(&name), &Quiet).unwrap();
    std::fs::write(LabState::path(&name), "{ not json").unwrap();
    assert!(matches!(LabState::load(&name), Err(LabError::BadState { .. })));
    down(&name).unwrap();
    assert_eq!(traces(&name), BTreeSet::new());
    up(&pair(Overlay::Routed), &options(&name), &Quiet).unwrap();
    std::fs::remove_dir_all(weft_lab::home::lab_dir(&name)).unwrap();
    let removed = down_matching(&name).unwrap();
    assert!(removed.labs.is_empty() && removed.strays.len() > 6, "{removed:?}");
}

#[test]
fn a_flapped_link_gets_all_its_equal_paths_back_in_the_kernel() {
    if !can_run() {
        return;
    }
    let name = lab_name("g");
    let _gone = Gone(name.clone());
    let lab = up(&testbed([1, 1, 1, 1], Overlay::Routed), &options(&name), &Quiet).unwrap();
    let namespace = |node: &str| lab.state.node(node).unwrap().namespace.clone();
    let paths = |node: &str| kernel_table(&namespace(node)).unwrap()["10.255.255.1"].len();
    assert_eq!((paths("agg1"), paths("tor1")), (3, 2));
    let set = |state: &str| {
        let path = weft_lab::home::namespace_path(&namespace("agg1"));
        let status = || Command::new("ip").args(["link", "set", "int2", state]).status().unwrap();
        assert!(in_namespace(&path, status).unwrap().success());
    };
    for _ in 0..2 {
        set("down");
        wait_for("two paths", || paths("agg1") == 2);
        set("up");
        wait_for("three paths again", || paths("agg1") == 3);
    }
}

#[test]
fn switch_tables_do_not_grow_with_the_number_of_aas() {
    if !can_run() {
        return;
    }
    let sizes = |test: &str, servers: [u32; 4]| {
        let name = lab_name(test);
        let _gone = Gone(name.clone());
        let lab = up(&testbed(servers, Overlay::Routed), &options(&name), &Quiet).unwrap();
        let size = |node: &str| kernel_table(&lab.state.node(node).unwrap().namespace).unwrap().len();
        ["int1", "int2", "int3", "agg1", "agg2", "agg3"].map(size)
    };
    let few = sizes("h1", [1, 1, 1, 1]);
    assert_eq!(few, sizes("h2", [6, 6, 6, 6]), "LA routes only (VL2 4.2.1)");
}
