//! Links of a lab made worse: what is lost, what is carried, and that everything is as before when they are mended.

mod common;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use common::campus::build;
use common::hosts::on;
use common::{Gone, Quiet, can_run, lab_name, options, pair, traces, wait_for};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use weft_lab::{Impairment, Lab, LabState, down, impair, repair, up};
use weft_scenario::engine::{Overlay, Scenario, Transport};
use weft_scenario::units::{BitsPerSec, Nanos};

const DATAGRAMS: usize = 20_000;

/// How many of so many datagrams of these bytes come from one server to another, and how long sending took.
fn come(lab: &Lab, [from, to]: [&str; 2], datagrams: usize, bytes: usize) -> (usize, Duration) {
    let address = |node: &str| -> Ipv4Addr {
        let id = lab.scenario.fabric.find(node).unwrap();
        lab.server_addresses().into_iter().find(|(server, _)| *server == id).unwrap().1
    };
    let [sender, receiver] = [from, to].map(|node| on(lab, node, || UdpSocket::bind((address(node), 0)).unwrap()));
    // All of them wait there if need be.
    set_socket_recv_buffer_size_force(&receiver, datagrams * (1024 + bytes)).unwrap();
    let target = receiver.local_addr().unwrap();
    let start = Instant::now();
    let buffer = vec![7; bytes];
    (0..datagrams).for_each(|_| drop(sender.send_to(&buffer, target)));
    let took = start.elapsed();
    receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut buffer = vec![0; bytes];
    ((0..datagrams).take_while(|_| receiver.recv(&mut buffer).is_ok()).count(), took)
}

/// What the kernel says of a port that a repair must bring back: queues, classes, programs.
fn port(lab: &Lab, node: &str, interface: &str) -> String {
    let said = |program: &str, arguments: &str| {
        let run = || Command::new(program).args(arguments.split(' ')).arg("dev").arg(interface).output().unwrap();
        let output = on(lab, node, run);
        assert!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // Without what counts: `-s` is not asked for.
    [("tc", "qdisc show"), ("tc", "class show"), ("ip", "link show")]
        .map(|(program, what)| said(program, what))
        .concat()
}

/// The links of these two nodes at both ends.
fn ends(lab: &Lab, a: &str, b: &str) -> Vec<String> {
    let fabric = &lab.scenario.fabric;
    let of = |node: &str, far: &str| {
        let (id, far) = (fabric.find(node).unwrap(), fabric.find(far).unwrap());
        let links = fabric.links_of(id).iter().map(|link| fabric.link(*link));
        let to_far = links.filter(move |link| link.far_end(id).unwrap().node == far);
        to_far.map(|link| port(lab, node, &link.end_at(id).unwrap().interface)).collect::<Vec<_>>()
    };
    [of(a, b), of(b, a)].concat()
}

fn loss(loss_percent: f64) -> Impairment {
    Impairment { loss_percent, seed: Some(7), ..Impairment::default() }
}

fn rate(rate: u64) -> Impairment {
    Impairment { rate: Some(BitsPerSec(rate)), ..Impairment::default() }
}

/// Of 20,000 datagrams as many come as 70 % of them, within five standard deviations of a binomial distribution.
#[track_caller]
fn loses_thirty_percent(lab: &Lab, ends: [&str; 2]) {
    let (came, _) = come(lab, ends, DATAGRAMS, 18);
    assert!(came.abs_diff(14_000) < 324, "{came} of {DATAGRAMS} came");
}

/// What `tc` says of the rate of the class of data, bit/s; it has no JSON for classes.
fn class_rate(lab: &Lab, node: &str, interface: &str) -> u64 {
    let show = || Command::new("tc").args(["class", "show", "dev", interface]).output().unwrap().stdout;
    let shown = String::from_utf8(on(lab, node, show)).unwrap();
    let class = shown.lines().find(|line| line.starts_with("class htb 1:1 ")).expect("there is a class of data");
    let rate = class.split(" rate ").nth(1).and_then(|rest| rest.split(' ').next()).expect("it has a rate");
    let digits = rate.trim_end_matches(char::is_alphabetic);
    let unit = match &rate[digits.len()..] {
        "bit" => 1,
        "Kbit" => 1_000,
        "Mbit" => 1_000_000,
        other => panic!("{other}"),
    };
    digits.parse::<u64>().expect("a number") * unit
}

#[test]
fn a_link_of_vl2_loses_and_slows_down_and_is_as_before_when_mended() {
    if !can_run() {
        return;
    }
    let name = lab_name("imv");
    let _gone = Gone(name.clone());
    // As `weft lab up` makes it.
    let scenario = Scenario { shaped: true, transport: Transport::default(), ..pair(Overlay::Vl2) };
    let lab = up(&scenario, &options(&name), &Quiet).unwrap();
    assert_eq!(come(&lab, ["s1", "s2"], 100, 18).0, 100);
    let before = ends(&lab, "s1", "tor1");
    let rates = || [class_rate(&lab, "s1", "eth0"), class_rate(&lab, "tor1", "s1")];
    let full = rates();

    let said = impair(&name, ["s1", "tor1"], &loss(30.0), true, &Quiet).unwrap();
    assert_eq!((said.impaired.len(), &*said.impaired[0].to), (1, "tor1"));
    assert_eq!(LabState::load(&name).unwrap().impaired, said.impaired, "it is written down");
    loses_thirty_percent(&lab, ["s1", "s2"]);
    assert_eq!(come(&lab, ["s2", "s1"], 300, 18).0, 300, "not the other way");

    // In its place: a quarter of the rate, both ways. The queue's own number, which tc says in kbit/s, and no more than that comes.
    impair(&name, ["s1", "tor1"], &rate(5_000_000), false, &Quiet).unwrap();
    assert!(rates().iter().zip(full).all(|(rate, full)| rate.abs_diff(full / 4) < 1_000), "{:?} of {full:?}", rates());
    let (came, took) = come(&lab, ["s1", "s2"], 1500, 1000);
    // What the link carried while it was sent, and what waited then.
    let most = took.as_secs_f64() * 5e6 / 8.0 + 500_000.0;
    assert!(came == 1500 && (came * 1000) as f64 <= most, "{came} came, {most} bytes at most");

    // What cannot be changes nothing.
    for (ends, by, why) in [
        (["s1", "tor1"], loss(101.0), "a loss of 101 % cannot be; choose 0 to 100"),
        (["s1", "tor1"], rate(0), "a rate of 0 bit/s cannot be"),
        (["s1", "tor1"], rate(30_000_000), "carries 20 Mbit/s, which 30 Mbit/s is not worse than"),
        (["s1", "tor2"], loss(1.0), "no link between `s1` and `tor2`"),
        (["s1", "ghost"], loss(1.0), "no node `ghost`; it has: "),
        (["int1", "tor1"], Impairment::default(), "nothing would be worse"),
    ] {
        let state = LabState::load(&name).unwrap().impaired;
        let error = impair(&name, ends, &by, false, &Quiet).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(LabState::load(&name).unwrap().impaired, state);
    }
    let delay = Impairment { delay: Some(Nanos(1_000_000)), ..loss(1.0) };
    if let Err(error) = impair(&name, ["int1", "tor1"], &delay, false, &Quiet) {
        assert!(error.to_string().contains("`sch_netem`"), "{error}");
        assert_eq!(LabState::load(&name).unwrap().impaired.len(), 2, "before anything was changed");
    }
    let error = repair(&name, &["s2".into(), "tor2".into()], &Quiet).unwrap_err().to_string();
    assert!(error.contains("s1 to tor1 (carries 5 Mbit/s)"), "{error}");
    repair(&name, &[], &Quiet).unwrap();
    assert_eq!(ends(&lab, "s1", "tor1"), before);
    assert_eq!(come(&lab, ["s1", "s2"], 300, 18).0, 300);
    assert!(LabState::load(&name).unwrap().impaired.is_empty());
    // What is worse goes with the lab.
    impair(&name, ["s1", "tor1"], &loss(50.0), false, &Quiet).unwrap();
    down(&name).unwrap();
    assert_eq!(traces(&name), BTreeSet::new());
}

#[test]
fn programs_at_xdp_have_what_a_worse_link_lets_through() {
    if !can_run() {
        return;
    }
    let name = lab_name("imt");
    let campus = build(&name, "trill-s1-s6", Overlay::RBRIDGE);
    let lab = campus.lab();
    wait_for("frames pass", || come(lab, ["h1", "h2"], 1, 18).0 == 1);
    let before = ends(lab, "h1", "s1");
    impair(&name, ["h1", "s1"], &loss(30.0), true, &Quiet).unwrap();
    loses_thirty_percent(lab, ["h1", "h2"]);
    // Frames go past queues: what a slow line would not take is dropped behind it.
    impair(&name, ["h1", "s1"], &rate(1_000_000), true, &Quiet).unwrap();
    let buffer = lab.scenario.fabric.links()[0].spec.buffer.0 as f64;
    let start = Instant::now();
    let (came, _) = come(lab, ["h1", "h2"], DATAGRAMS, 1000);
    let most = start.elapsed().as_secs_f64() * 1e6 / 8.0 + buffer + 3000.0;
    assert!(came > 10 && came < DATAGRAMS && (came * 1000) as f64 <= most, "{came} came, {most} bytes at most");
    repair(&name, &["s1".into(), "h1".into()], &Quiet).unwrap();
    assert_eq!(ends(lab, "h1", "s1"), before);
    assert_eq!(come(lab, ["h1", "h2"], 300, 18).0, 300);
}
