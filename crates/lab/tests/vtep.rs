//! Our VTEP as the overlay of a lab: on the wire is VXLAN between the servers' LAs, and a daemon may die without a lost packet.

mod common;

use std::process::Command;
use std::time::Duration;

use common::hosts::{run, seen_during, start};
use common::{Gone, Quiet, can_run, lab_name, options, pair, wait_for};
use weft_lab::{Lab, up};
use weft_scenario::engine::{Hook, Overlay, TunnelEnd};

/// Sends so many pings to the other server, one each 10 ms; whether all were answered, and what ping said.
fn pings(lab: &Lab, count: &str) -> (bool, String) {
    let (_, said) = run(lab, "s1", Command::new("ping").args(["-c", count, "-i", "0.01", "-W", "2", "20.0.0.2"]));
    (said.contains(" 0% packet loss"), said)
}

#[test]
fn servers_reach_each_other_in_vxlan_at_both_hooks() {
    if !can_run() {
        return;
    }
    for hook in [Hook::Tc, Hook::Xdp] {
        let name = lab_name(if hook == Hook::Tc { "vt" } else { "vx" });
        let _gone = Gone(name.clone());
        let lab = up(&pair(Overlay::Vtep { hook, at: TunnelEnd::Server }), &options(&name), &Quiet).unwrap();
        assert_eq!(lab.state.processes.iter().filter(|process| process.daemon == "vtep").count(), 2);
        if weft_needs::program("tshark") {
            let fields = ["ip.src", "ip.dst", "udp.dstport", "vxlan.vni"];
            let seen = seen_during(&lab, &[("tor1", "int1")], "vxlan && icmp.type == 8", &fields, || {
                let (all, said) = pings(&lab, "3");
                assert!(all, "{hook:?}: {said}");
            });
            let echo = "10.64.0.2,20.0.0.1\t10.64.1.2,20.0.0.2\t4789\t42";
            assert_eq!(seen, [echo; 3], "{hook:?}");
        }
        assert!(iperf3_carries(&lab), "{hook:?}");
        lab.take_down().unwrap();
    }
}

/// Whether TCP gets a megabyte across; true as well where nobody can ask.
fn iperf3_carries(lab: &Lab) -> bool {
    if !weft_needs::program("iperf3") {
        return true;
    }
    let _server = start(lab, "s2", Command::new("iperf3").args(["-s", "-1"]));
    let mut said = String::new();
    wait_for("iperf3 answers", || {
        let (done, text) = run(lab, "s1", Command::new("iperf3").args(["-c", "20.0.0.2", "-n", "1M"]));
        said = text;
        done || !said.contains("Connection refused")
    });
    said.contains("receiver")
}

#[test]
fn edge_switches_tunnel_ordinary_frames_of_their_servers() {
    if !can_run() {
        return;
    }
    let at = TunnelEnd::Tor;
    for overlay in
        [Overlay::Vtep { hook: Hook::Tc, at }, Overlay::Vtep { hook: Hook::Xdp, at }, Overlay::KernelVxlan { at }]
    {
        let name = lab_name("vo");
        let _gone = Gone(name.clone());
        let lab = up(&pair(overlay), &options(&name), &Quiet).unwrap();
        if weft_needs::program("tshark") {
            let fields = ["ip.src", "ip.dst", "udp.dstport", "vxlan.vni", "frame.len"];
            // At the Intermediate: what XDP sends and takes at a ToR no packet socket there sees.
            let seen = seen_during(&lab, &[("int1", "tor1")], "vxlan && icmp", &fields, || {
                let (all, said) = pings(&lab, "3");
                assert!(all, "{overlay}: {said}");
            });
            let there = "10.1.0.1,20.0.0.1\t10.1.0.2,20.0.0.2\t4789\t1\t148";
            let back = "10.1.0.2,20.0.0.2\t10.1.0.1,20.0.0.1\t4789\t1\t148";
            assert_eq!(seen, [there, back, there, back, there, back], "{overlay}");
        }
        assert!(iperf3_carries(&lab), "{overlay}");
        let at_server = seen_by(&lab, "s1");
        assert!(!at_server.contains("vxlan"), "a server knows nothing of tunnels: {at_server}");
        lab.take_down().unwrap();
    }
}

/// Links of a node, as `ip` shows them.
fn seen_by(lab: &Lab, node: &str) -> String {
    run(lab, node, Command::new("ip").args(["-d", "link"])).1
}

#[test]
fn a_daemon_that_is_killed_takes_no_packet_with_it() {
    if !can_run() {
        return;
    }
    let name = lab_name("vk");
    let _gone = Gone(name.clone());
    let lab = up(&pair(Overlay::VTEP), &options(&name), &Quiet).unwrap();
    let daemon = lab.state.processes.iter().find(|process| process.daemon == "vtep" && process.node == "s1").unwrap();
    let (all, said) = std::thread::scope(|scope| {
        let pinging = scope.spawn(|| pings(&lab, "100"));
        std::thread::sleep(Duration::from_millis(300));
        let killed = Command::new("kill").args(["-KILL", &daemon.id.pid.to_string()]).status().unwrap();
        assert!(killed.success());
        pinging.join().unwrap()
    });
    assert!(!daemon.id.is_alive() && all, "{said}");
    lab.take_down().unwrap();
}
