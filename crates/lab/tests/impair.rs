//! Links of a lab made worse: what is lost, what is carried, and that everything is as before when they are mended.

mod common;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use common::campus::build;
use common::hosts::on;
use common::{Gone, Quiet, can_run, lab_name, options, pair, scenario, traces, wait_for};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use weft_lab::{Impairment, Lab, LabState, down, impair, repair, up};
use weft_scenario::engine::{Hook, Overlay, Scenario, Transport, TunnelEnd};
use weft_scenario::topology::{LeafSpineParams, LinkParams, leaf_spine};
use weft_scenario::units::{BitsPerSec, Bytes, Nanos};

const DATAGRAMS: usize = 20_000;

/// What became of datagrams.
struct Came {
    datagrams: usize,
    /// Seconds until all were sent.
    sent_s: f64,
    /// Seconds until the last one came.
    came_s: f64,
}

/// Sends so many datagrams of these bytes from one server to another.
fn send(lab: &Lab, [from, to]: [&str; 2], datagrams: usize, bytes: usize) -> Came {
    let address = |node: &str| -> Ipv4Addr {
        let id = lab.scenario.fabric.find(node).unwrap();
        lab.server_addresses().into_iter().find(|(server, _)| *server == id).unwrap().1
    };
    let [sender, receiver] = [from, to].map(|node| on(lab, node, || UdpSocket::bind((address(node), 0)).unwrap()));
    // All of them wait there if need be.
    set_socket_recv_buffer_size_force(&receiver, datagrams * (1024 + bytes)).unwrap();
    let target = receiver.local_addr().unwrap();
    let start = Instant::now();
    let mut buffer = vec![7; bytes];
    (0..datagrams).for_each(|_| drop(sender.send_to(&buffer, target)));
    let mut came = Came { datagrams: 0, sent_s: start.elapsed().as_secs_f64(), came_s: 0.0 };
    receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    while came.datagrams < datagrams && receiver.recv(&mut buffer).is_ok() {
        (came.datagrams, came.came_s) = (came.datagrams + 1, start.elapsed().as_secs_f64());
    }
    came
}

/// How many of so many small datagrams come.
fn come(lab: &Lab, ends: [&str; 2], datagrams: usize) -> usize {
    send(lab, ends, datagrams, 18).datagrams
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
    let came = come(lab, ends, DATAGRAMS);
    assert!(came.abs_diff(14_000) < 324, "{came} of {DATAGRAMS} came");
}

/// A server's own link of this rate and buffer lets it wait: of 1500 datagrams all come, and no faster.
#[track_caller]
fn slows_down_to(lab: &Lab, ends: [&str; 2], rate: f64, buffer: f64) {
    let came = send(lab, ends, 1500, 1000);
    // What the link carried while it was sent, and what waited then.
    let most = came.sent_s * rate / 8.0 + buffer;
    let came = came.datagrams;
    assert!(came == 1500 && (came * 1000) as f64 <= most, "{came} came, {most} bytes at most");
}

/// Where frames go past queues: of so many datagrams as many come as a line of this rate with the buffer of the first link takes.
#[track_caller]
fn drops_beyond(lab: &Lab, ends: [&str; 2], rate: f64) {
    let buffer = lab.scenario.fabric.links()[0].spec.buffer.0 as f64;
    let came = send(lab, ends, DATAGRAMS, 1000);
    let bytes = |seconds: f64| seconds * rate / 8.0 + buffer;
    // With all headers, and what may be different at the edges.
    let (least, most) = (bytes(came.sent_s) * 0.8, bytes(came.came_s) + 10_000.0);
    let carried = (came.datagrams * 1066) as f64;
    assert!(carried >= least && (came.datagrams * 1000) as f64 <= most, "{carried} bytes, {least} to {most}");
    assert!(came.datagrams < DATAGRAMS);
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

/// When the lab's state was written, which is before anything is changed.
fn written(lab: &str) -> SystemTime {
    std::fs::metadata(LabState::path(lab)).unwrap().modified().unwrap()
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
    assert_eq!(come(&lab, ["s1", "s2"], 100), 100);
    let before = ends(&lab, "s1", "tor1");
    let rates = || [class_rate(&lab, "s1", "eth0"), class_rate(&lab, "tor1", "s1")];
    let full = rates();

    let said = impair(&name, ["s1", "tor1"], &loss(30.0), true, &Quiet).unwrap();
    assert_eq!((said.impaired.len(), &*said.impaired[0].to), (1, "tor1"));
    assert_eq!(LabState::load(&name).unwrap().impaired, said.impaired, "it is written down");
    loses_thirty_percent(&lab, ["s1", "s2"]);
    assert_eq!(come(&lab, ["s2", "s1"], 300), 300, "not the other way");

    // In its place: a quarter of the rate, both ways. The queue's own number, which tc says in kbit/s, and no more than that comes.
    impair(&name, ["s1", "tor1"], &rate(5_000_000), false, &Quiet).unwrap();
    assert!(rates().iter().zip(full).all(|(rate, full)| rate.abs_diff(full / 4) < 1_000), "{:?} of {full:?}", rates());
    slows_down_to(&lab, ["s1", "s2"], 5_000_000.0, 500_000.0);

    // What cannot be changes nothing.
    for (ends, by, why) in [
        (["s1", "tor1"], loss(101.0), "a loss of 101 % cannot be; choose 0 to 100"),
        (["s1", "tor1"], rate(0), "a rate of 0 bit/s cannot be"),
        (["s1", "tor1"], rate(30_000_000), "carries 20 Mbit/s, which 30 Mbit/s is not worse than"),
        (["s1", "tor2"], loss(1.0), "no link between `s1` and `tor2`"),
        (["s1", "ghost"], loss(1.0), "no node `ghost`; it has: "),
        (["int1", "tor1"], Impairment::default(), "nothing would be worse"),
    ] {
        let state = written(&name);
        let error = impair(&name, ends, &by, false, &Quiet).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(written(&name), state, "before anything was changed");
    }
    let delay = Impairment { delay: Some(Nanos(1_000_000)), ..loss(1.0) };
    let state = written(&name);
    if let Err(error) = impair(&name, ["int1", "tor1"], &delay, false, &Quiet) {
        assert!(error.to_string().contains("`sch_netem`"), "{error}");
        assert_eq!(written(&name), state, "before anything was changed");
    }
    let error = repair(&name, &["s2".into(), "tor2".into()], &Quiet).unwrap_err().to_string();
    assert!(error.contains("s1 to tor1 (carries 5 Mbit/s)"), "{error}");
    repair(&name, &[], &Quiet).unwrap();
    assert_eq!(ends(&lab, "s1", "tor1"), before);
    assert_eq!(come(&lab, ["s1", "s2"], 300), 300);
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
    wait_for("frames pass", || come(lab, ["h1", "h2"], 1) == 1);
    let before = ends(lab, "h1", "s1");
    impair(&name, ["h1", "s1"], &loss(30.0), true, &Quiet).unwrap();
    loses_thirty_percent(lab, ["h1", "h2"]);
    // Frames go past queues: what a slow line would not take is dropped behind it.
    impair(&name, ["h1", "s1"], &rate(50_000_000), true, &Quiet).unwrap();
    drops_beyond(lab, ["h1", "h2"], 50e6);
    repair(&name, &["s1".into(), "h1".into()], &Quiet).unwrap();
    assert_eq!(ends(lab, "h1", "s1"), before);
    assert_eq!(come(lab, ["h1", "h2"], 300), 300);
}

/// Two servers behind a leaf each, one spine between.
fn tunnels(overlay: Overlay) -> Scenario {
    let links = LinkParams {
        server_rate: BitsPerSec(20_000_000),
        server_buffer: Bytes(500_000),
        core_buffer: Bytes(500_000),
        ..LinkParams::default()
    };
    let params = LeafSpineParams { spines: 1, servers_per_leaf: 1, links, ..LeafSpineParams::default() };
    scenario(leaf_spine(&params).unwrap(), overlay)
}

#[test]
fn a_link_below_tunnels_of_servers_loses_and_slows_down() {
    if !can_run() {
        return;
    }
    let name = lab_name("imx");
    let _gone = Gone(name.clone());
    let overlay = Overlay::Vtep { hook: Hook::Tc, at: TunnelEnd::Server };
    let scenario = Scenario { shaped: true, transport: Transport::default(), ..tunnels(overlay) };
    let lab = up(&scenario, &options(&name), &Quiet).unwrap();
    wait_for("frames pass", || come(&lab, ["s1", "s2"], 1) == 1);
    let before = [ends(&lab, "s1", "leaf1"), ends(&lab, "leaf1", "spine1")];
    impair(&name, ["leaf1", "spine1"], &loss(30.0), true, &Quiet).unwrap();
    loses_thirty_percent(&lab, ["s1", "s2"]);
    assert_eq!(come(&lab, ["s2", "s1"], 300), 300, "not the other way");
    impair(&name, ["s1", "leaf1"], &rate(5_000_000), true, &Quiet).unwrap();
    repair(&name, &["leaf1".into(), "spine1".into()], &Quiet).unwrap();
    slows_down_to(&lab, ["s1", "s2"], 5_000_000.0, 500_000.0);
    repair(&name, &[], &Quiet).unwrap();
    assert_eq!([ends(&lab, "s1", "leaf1"), ends(&lab, "leaf1", "spine1")], before);
}

#[test]
fn tunnels_at_xdp_lose_and_carry_less_behind_their_sender_and_in_front_of_their_receiver() {
    if !can_run() {
        return;
    }
    let name = lab_name("imw");
    let _gone = Gone(name.clone());
    let lab = up(&tunnels(Overlay::Vtep { hook: Hook::Xdp, at: TunnelEnd::Tor }), &options(&name), &Quiet).unwrap();
    wait_for("frames pass", || come(&lab, ["s1", "s2"], 1) == 1);
    let before = ends(&lab, "leaf1", "spine1");
    // The spine has frames in its stack, the other leaf's program in its driver.
    for way in [["leaf1", "spine1"], ["spine1", "leaf2"]] {
        impair(&name, way, &loss(30.0), true, &Quiet).unwrap();
        loses_thirty_percent(&lab, ["s1", "s2"]);
        assert_eq!(come(&lab, ["s2", "s1"], 300), 300, "not the other way");
        repair(&name, &way.map(Into::into), &Quiet).unwrap();
    }
    impair(&name, ["leaf1", "spine1"], &rate(50_000_000), true, &Quiet).unwrap();
    drops_beyond(&lab, ["s1", "s2"], 50e6);
    repair(&name, &[], &Quiet).unwrap();
    assert_eq!(ends(&lab, "leaf1", "spine1"), before);
    assert_eq!(come(&lab, ["s1", "s2"], 300), 300);
}
