//! Links of a lab that are late: pings and datagrams say by how much and in which order. The emulator is a module of the kernel's, which
//! not every kernel has; `make kernels` runs this on those that do.

mod common;

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

use common::hosts::{on, run};
use common::{Gone, PATIENCE, Quiet, can_run, lab_name, options, pair};
use weft_lab::{Impairment, Lab, LabState, impair, repair, up};
use weft_scenario::engine::{Overlay, Scenario};
use weft_scenario::units::Nanos;

const LINK: [&str; 2] = ["s1", "tor1"];
const DELAY_MS: f64 = 50.0;
const DELAY: Nanos = Nanos(50_000_000);

/// Whether the kernel delays what leaves an interface, if it is told to.
fn can_be_late() -> bool {
    let words = ["--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"];
    let tried = Command::new("unshare").args(words).output().expect("util-linux is there");
    if !tried.status.success() {
        weft_needs::skip("this kernel has no sch_netem, which delays frames");
    }
    tried.status.success()
}

fn address(lab: &Lab, server: &str) -> Ipv4Addr {
    let id = lab.scenario.fabric.find(server).unwrap();
    lab.server_addresses().into_iter().find(|(server, _)| *server == id).unwrap().1
}

/// The shortest time of twenty echoes, as `ping` says, in milliseconds.
fn shortest_ms(lab: &Lab) -> f64 {
    let to = address(lab, "s2").to_string();
    let (_, said) = run(lab, "s1", Command::new("ping").args(["-c", "20", "-i", "0.02", "-W", "10", &to]));
    assert!(said.contains(" 20 received"), "{said}");
    // `rtt min/avg/max/mdev = 0.051/0.060/0.081/0.009 ms`
    said.rsplit_once(" = ").unwrap().1.split('/').next().unwrap().parse().expect("a time")
}

/// How many of 200 datagrams that are sent at once come behind a later one.
fn overtaken(lab: &Lab) -> usize {
    let [sender, receiver] =
        ["s1", "s2"].map(|server| on(lab, server, || UdpSocket::bind((address(lab, server), 0)).unwrap()));
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    (0..200u16).for_each(|number| {
        sender.send_to(&number.to_be_bytes(), receiver.local_addr().unwrap()).unwrap();
    });
    let mut buffer = [0; 2];
    let mut next = || receiver.recv(&mut buffer).map(|_| u16::from_be_bytes(buffer)).expect("none is lost");
    let came: Vec<u16> = (0..200).map(|_| next()).collect();
    came.iter().enumerate().filter(|(place, number)| came[..*place].iter().any(|earlier| earlier > number)).count()
}

#[test]
fn a_late_link_is_as_late_as_it_is_told_both_ways_and_as_before_when_mended() {
    if !can_run() || !can_be_late() {
        return;
    }
    for shaped in [true, false] {
        let name = lab_name(if shaped { "las" } else { "lau" });
        let _gone = Gone(name.clone());
        let lab = up(&Scenario { shaped, ..pair(Overlay::Routed) }, &options(&name), &Quiet).unwrap();
        let put = |by: Impairment, one_way| impair(&name, LINK, &by, one_way, &Quiet).unwrap();
        let late = Impairment { delay: Some(DELAY), ..Impairment::default() };
        assert!(shortest_ms(&lab) < DELAY_MS, "nothing is late yet");
        assert_eq!(overtaken(&lab), 0);

        put(late, true);
        let shortest = shortest_ms(&lab);
        assert!((DELAY_MS..2.0 * DELAY_MS).contains(&shortest), "one way: {shortest} ms");
        put(late, false);
        let shortest = shortest_ms(&lab);
        assert!((2.0 * DELAY_MS..3.0 * DELAY_MS).contains(&shortest), "both ways: {shortest} ms");
        assert_eq!(overtaken(&lab), 0, "late, and in order");

        put(Impairment { jitter: Some(Nanos(DELAY.0 / 2)), ..late }, true);
        let shortest = shortest_ms(&lab);
        assert!((1.5 * DELAY_MS..2.0 * DELAY_MS).contains(&shortest), "none is earlier: {shortest} ms");
        put(Impairment { reorder_percent: 20.0, ..late }, true);
        let some = overtaken(&lab);
        // A fifth is sent at once and overtakes all that wait: nearly all others are behind a later one.
        assert!(some >= 100, "{some} were overtaken");

        repair(&name, &[], &Quiet).unwrap();
        assert!(LabState::load(&name).unwrap().impaired.is_empty());
        assert!(shortest_ms(&lab) < DELAY_MS, "as before");
        assert_eq!(overtaken(&lab), 0);
    }
}
