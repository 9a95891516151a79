//! The rule of names against the kernel, FRR and our daemons: a lab whose names have every character that one may have, at every
//! place where it may stand.

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use common::hosts::run;
use common::{Gone, Quiet, can_run, options, scenario, traces};
use weft_lab::{Lab, home, up};
use weft_scenario::engine::Overlay;
use weft_scenario::name::{NAME_MAX, is_usable, is_usable_interface};
use weft_scenario::topology::from_yaml;

/// Names of 32 characters that have all there are between them, and begin and end with different ones.
const INT: &str = "abcdefghijklmnopqrstuvwxyz.01234";
const AGG: &str = "ZYXWVUTSRQPONMLKJIHGFEDCBA_-5678";
const TOR: &str = "leaf.2";
const OTHER_TOR: &str = "leaf-_2.9_";
/// Interfaces of 15, the same.
const INTERFACES: [&str; 6] =
    ["abcdefghijklmno", "pqrstuvwxyz.012", "ZYXWVUTSRQPONML", "KJIHGFEDCBA_-34", "56789.a.b.", "..x_-"];

/// Both servers, each behind a switch with a dot in its name.
fn fabric(name: &str) -> String {
    let [a, b, c, d, e, f] = INTERFACES;
    format!(
        "name: {name}\ntopology:\n  defaults: {{link: {{rate: 100M}}}}\n  nodes:\n    {INT}: {{role: intermediate}}\n    \
        {AGG}: {{role: aggregation}}\n    {TOR}: {{role: tor}}\n    {OTHER_TOR}: {{role: tor}}\n    s.1: {{role: server}}\n    \
        s.2: {{role: server}}\n    directory: {{role: directory}}\n  links:\n    - endpoints: [\"{INT}:{a}\", \"{AGG}:{b}\"]\n    \
        - endpoints: [\"{AGG}:{c}\", \"{TOR}:{d}\"]\n    - endpoints: [\"{AGG}:{d}\", \"{OTHER_TOR}:{e}\"]\n    \
        - endpoints: [\"{TOR}:{f}\", \"s.1:{e}\"]\n    - endpoints: [\"{OTHER_TOR}:{a}\", \"s.2:{f}\"]\n    \
        - endpoints: [\"{TOR}:{a}\", \"directory:eth0.5\"]\n"
    )
}

fn ping(lab: &Lab, address: &str) -> (bool, String) {
    run(lab, "s.1", Command::new("ping").args(["-c", "3", "-i", "0.1", "-W", "5", address]))
}

#[test]
fn these_names_have_every_character_at_every_place() {
    let names = [INT, AGG, TOR, OTHER_TOR];
    assert!(names.iter().all(|name| is_usable(name) && name.len() <= NAME_MAX));
    assert!(INTERFACES.iter().all(|name| is_usable_interface(name)));
    let all: BTreeSet<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain("-_.".chars()).collect();
    let in_names: BTreeSet<char> = names.iter().flat_map(|name| name.chars()).collect();
    let in_interfaces: BTreeSet<char> = INTERFACES.iter().flat_map(|name| name.chars()).collect();
    assert_eq!((&in_names, &in_interfaces), (&all, &all));
}

#[test]
fn a_lab_with_dots_and_all_else_in_its_names_carries_packets_and_leaves_nothing() {
    if !can_run() {
        return;
    }
    let name = format!("my.ls{}", std::process::id());
    for (overlay, far) in [(Overlay::Routed, "la"), (Overlay::Vl2, "20.0.0.2")] {
        let _gone = Gone(name.clone());
        let scenario = scenario(from_yaml(&fabric(&name), "names.yaml").unwrap(), overlay);
        let far = match far {
            "la" => scenario.addresses.la(scenario.fabric.find("s.2").unwrap()).to_string(),
            aa => aa.to_owned(),
        };
        let lab = up(&scenario, &options(&name), &Quiet).unwrap_or_else(|error| panic!("{overlay}: {error}"));
        let (answered, said) = ping(&lab, &far);
        assert!(answered && said.contains(" 0% packet loss"), "{overlay}: {said}");
        let namespace = &lab.state.node(TOR).unwrap().namespace;
        let space = home::frr_path_space(namespace);
        assert!(namespace.contains(TOR) && !space.contains('.'), "{namespace}, {space}");
        let show = ["-N", &space, "-d", "ospfd", "-c", "show ip ospf neighbor"];
        let (shown, said) = run(&lab, TOR, Command::new("vtysh").args(show));
        assert!(shown && said.contains(INTERFACES[3]), "{overlay}: {said}");
        lab.take_down().unwrap();
        assert_eq!(traces(&name), BTreeSet::new(), "{overlay}");
    }
}
