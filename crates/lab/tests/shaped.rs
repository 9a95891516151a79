//! Shaped links carry what is declared, and routing gets through when they are full.

mod common;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use common::{Gone, Quiet, can_run, lab_name, options, pair};
use weft_lab::{LabOptions, home, in_namespace, up};
use weft_scenario::engine::Overlay;

#[test]
fn every_class_of_link_is_measured_in_both_directions() {
    if !can_run() {
        return;
    }
    for segments in [1, 8] {
        let name = lab_name(&format!("s{segments}"));
        let _gone = Gone(name.clone());
        let mut scenario = pair(Overlay::Routed);
        scenario.shaped = true;
        scenario.transport.segments_per_skb = segments;
        let lab = up(&scenario, &LabOptions { self_test: true, ..options(&name) }, &Quiet).unwrap();
        let fact =
            |name: &str| lab.facts.iter().find(|(fact, _)| fact == name).unwrap_or_else(|| panic!("no {name}")).1;
        for (direction, rate, buffer) in [
            ("intermediate-tor", 100e6, 1e6),
            ("tor-intermediate", 100e6, 1e6),
            ("tor-server", 20e6, 5e5),
            ("server-tor", 20e6, 5e5),
            ("tor-directory", 20e6, 5e5),
            ("directory-tor", 20e6, 5e5),
        ] {
            let got = fact(&format!("link_selftest.{direction}.got_bps"));
            assert!((got / rate - 1.0).abs() < 0.05, "{direction}: {got} bit/s");
            let held = fact(&format!("link_selftest.{direction}.got_buffer_bytes"));
            assert!((held / buffer - 1.0).abs() < 0.15, "{direction}: holds {held} bytes");
        }
    }
}

#[test]
fn a_full_link_does_not_starve_routing() {
    if !can_run() {
        return;
    }
    let name = lab_name("full");
    let _gone = Gone(name.clone());
    let mut scenario = pair(Overlay::Routed);
    scenario.shaped = true;
    let lab = up(&scenario, &options(&name), &Quiet).unwrap();
    let namespace = |node: &str| lab.state.node(node).unwrap().namespace.clone();
    let log = |node: &str| std::fs::read_to_string(home::frr_dir(&namespace(node)).join("ospfd.log")).unwrap();
    let before = log("tor1").len();
    // Three seconds of more than the link carries; OSPF would miss its hellos after one.
    let dropped = in_namespace(&home::namespace_path(&namespace("tor1")), || {
        // One socket may have no more than 200 KB on its way.
        let sockets: Vec<UdpSocket> = (0..16).map(|_| UdpSocket::bind("10.128.0.1:0").unwrap()).collect();
        sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(3) {
            for socket in sockets.iter().cycle().take(256) {
                let _ = socket.send_to(&[0; 1400], "10.128.0.0:9");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::process::Command::new("tc").args(["-s", "qdisc", "show", "dev", "int1"]).output().unwrap().stdout
    });
    let queues = String::from_utf8(dropped.unwrap()).unwrap();
    let drops = queues.split("bfifo").nth(1).and_then(|text| text.split("dropped ").nth(1)).unwrap();
    assert_ne!(drops.split(',').next(), Some("0"), "the data queue was full: {queues}");
    for node in ["tor1", "int1"] {
        assert!(!log(node)[if node == "tor1" { before } else { 0 }..].contains("Full ->"), "{}", log(node));
    }
}
