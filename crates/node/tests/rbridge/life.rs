//! An RBridge's life: cuts, restarts and crashes while frames pass, interfaces that come and go, an end that leaves nothing.

use std::process::Command;
use std::time::{Duration, Instant};

use weft_node::rbridge::protocol::{Answer, Request, Shown, What};
use weft_node::rbridge::{KindText, PortTable, RBridgeConfig};

use crate::bed::{Running, Square, address, wait_for_routes};
use crate::common::wait_until;
use crate::net::{Pins, Stream};

/// Shorter than the half a minute for which a neighbour may be silent here.
const SILENCE: Duration = Duration::from_secs(25);
/// Datagrams of a stream in 10 s.
const IN_10_S: u64 = 20_000;

#[test]
fn a_cut_leads_the_other_way_at_once() {
    let Some(square) = Square::new("cut") else { return };
    // A neighbour may be silent for half a minute: only the carrier says sooner that its link is lost.
    let start = |corner| {
        let mut config = square.config(corner);
        config.timing.holding_multiplier = Some(100);
        square.start(&config, corner)
    };
    let all: Vec<Running> = (1..=4).map(start).collect();
    wait_for_routes(&all);
    assert!(square.host(0).ping("-c 1 -W 30 10.0.10.2").contains("1 received"));
    // Several flows, so that both ways are taken.
    let streams: Vec<Stream> = (0..4).map(|_| Stream::start(square.host(0), square.host(1), address(1))).collect();
    // S1 sees that the carrier is lost; S2's new LSP may tell it around S3 before that.
    square.corner(2).ip("link set dev s1 down");
    let cut = Instant::now();
    wait_until("S1 sees that its carrier is lost", || all[0].states()["s2"] == "down");
    assert!(cut.elapsed() < SILENCE, "S1 waited for Hellos");
    wait_until("S1 knows one way", || all[0].routes()["s3"].hops.len() == 1);
    wait_until("S2 is behind S3", || all[0].routes()["s2"].hops[0].interface == "s4");
    wait_until("S3 knows one way back", || all[2].routes()["s1"].hops.len() == 1);
    for stream in streams {
        let (sent, lost) = stream.end();
        assert!(lost < IN_10_S, "{lost} of {sent} lost");
    }
    let after = Stream::start(square.host(0), square.host(1), address(1));
    assert!(square.host(0).ping("-c 20 -i 0.05 -W 30 10.0.10.2").contains("20 received"));
    let (sent, lost) = after.end();
    assert!(lost == 0, "{lost} of {sent} lost on the way that is left");
    square.corner(2).ip("link set dev s1 up");
    wait_until("both ways are there again", || all[0].routes()["s3"].hops.len() == 2);
}

/// All but S4 with pins, so that every frame goes by S2. However long a busy machine takes to start a daemon, its neighbours
/// wait for it.
fn line(square: &Square, pins: &Pins) -> (Vec<RBridgeConfig>, Vec<Running>) {
    let config = |corner| {
        let mut config = square.config(corner);
        config.pin_dir = Some(pins.dir(&format!("s{corner}")));
        config.timing.holding_multiplier = Some(100);
        config
    };
    let configs: Vec<RBridgeConfig> = (1..=3).map(config).collect();
    let running: Vec<Running> = (1..).zip(&configs).map(|(corner, config)| square.start(config, corner)).collect();
    wait_until("all routes are there", || running.iter().all(|running| running.routes().len() == 2));
    assert!(square.host(0).ping("-c 1 -W 30 10.0.10.2").contains("1 received"));
    (configs, running)
}

#[test]
fn a_restart_with_pins_loses_no_frame_and_an_end_leaves_nothing() {
    let Some(square) = Square::new("restart") else { return };
    let pins = Pins::new(square.dir.path());
    let (configs, mut running) = line(&square, &pins);
    let issued = running[2].count("control", "adjacency_down");
    let stations = |running: &Running| match running.show(What::Fdb) {
        Shown::Stations(rows) => rows.len(),
        other => panic!("{other:?}"),
    };
    let known = stations(&running[0]);
    let stream = Stream::start(square.host(0), square.host(1), address(1));
    // Ingress, transit and egress, one after the other.
    for place in 0..3 {
        running.remove(place).finish();
        assert!(
            square.host(0).ping("-c 2 -i 0.05 -W 30 10.0.10.2").contains("2 received"),
            "it works without the daemon"
        );
        running.insert(place, square.start(&configs[place], place + 1));
        wait_until("its routes are there", || running[place].routes().len() == 2);
    }
    let (sent, lost) = stream.end();
    assert!(sent > 500 && lost == 0, "{lost} of {sent} lost");
    assert!(stations(&running[0]) >= known, "what was learned is still known");
    assert_eq!(running[1].routes()["s3"].egress, configs[2].nickname.unwrap());
    assert_eq!(running[0].count("control", "adjacency_down"), 0, "nobody noticed");
    assert!(issued <= 1);
    for (place, rbridge) in (1..).zip(running) {
        rbridge.stop();
        assert!(!pins.dir(&format!("s{place}")).exists(), "no pin is left");
    }
    let links = Command::new("ip").args(["-n", &square.corner(1).0, "-d", "link"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&links.stdout).contains("xdp"), "no program is left");
}

#[test]
fn a_crash_loses_no_frame_either_and_chosen_nicknames_are_kept() {
    let Some(square) = Square::new("crash") else { return };
    let pins = Pins::new(square.dir.path());
    let (mut configs, mut running) = line(&square, &pins);
    // S2 anew, with nicknames of its own choice.
    running.remove(1).stop();
    (configs[1].nickname, configs[1].nicknames) = (None, 3);
    let daemon = square.spawn(&configs[1], 2);
    let nicknames = || -> Vec<u16> {
        let Shown::Nicknames(rows) = running[0].show(What::Nickname) else { panic!("no nicknames") };
        rows.iter().filter(|row| row.hostname == "s2").map(|row| row.nickname).collect()
    };
    wait_until("S2 is back", || nicknames().len() == 3 && running[0].routes().len() == 2);
    // S1 knows the way through S2 before S2 itself knows the way on.
    wait_until("S2 passes frames on", || square.host(0).ping("-c 1 -W 1 10.0.10.2").contains("1 received"));
    let before = nicknames();
    let stream = Stream::start(square.host(0), square.host(1), address(1));
    daemon.crash();
    assert!(square.host(0).ping("-c 2 -i 0.05 -W 30 10.0.10.2").contains("2 received"), "it works without the daemon");
    let daemon = square.spawn(&configs[1], 2);
    assert!(square.host(0).ping("-c 20 -i 0.05 -W 30 10.0.10.2").contains("20 received"));
    let (sent, lost) = stream.end();
    assert!(sent > 500 && lost == 0, "{lost} of {sent} lost");
    assert_eq!(nicknames(), before);
    assert_eq!(weft_node::rbridge::ask(&configs[1].socket, &Request::Stop).unwrap(), Answer::Done);
    assert!(daemon.ended());
    assert!(!pins.dir("s2").exists() && !configs[1].socket.exists(), "nothing is left");
    running.into_iter().for_each(Running::stop);
}

/// S1 has a station port with every other VLAN, which is more than one LSP tells.
#[test]
fn lsps_are_as_long_as_everybody_takes() {
    let Some(square) = Square::new("long") else { return };
    for (corner, neighbor) in [(1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3), (4, 1), (1, 4)] {
        square.corner(corner).ip(&format!("link set dev s{neighbor} mtu 9000"));
    }
    let start = |corner: usize| {
        let mut config = square.config(corner);
        config.lsp_buffer_bytes = if corner == 4 { 1470 } else { 4000 };
        let links = config.port.iter_mut().filter(|port| port.kind == KindText::P2p);
        links.for_each(|port| port.mtu_test = Some(true));
        for port in config.port.iter_mut().filter(|port| port.interface == "a") {
            let vlans: Vec<String> = (101..2000).step_by(2).map(|vlan| vlan.to_string()).collect();
            *port = PortTable::trunk("a", vlans.join(","));
        }
        square.start(&config, corner)
    };
    let mut all: Vec<Running> = (1..=3).map(start).collect();
    wait_until("all routes are there", || all.iter().all(|running| running.routes().len() == 2));
    let lengths = |running: &Running| -> Vec<usize> {
        let Shown::Lsps(rows) = running.show(What::Lsdb) else { panic!("no LSPs") };
        rows.iter().filter(|row| row.hostname == "s1").map(|row| row.bytes).collect()
    };
    let tested = |running: &Running| -> Vec<(u16, Option<u16>)> {
        let Shown::Adjacencies(rows) = running.show(What::Adjacency) else { panic!("no adjacencies") };
        rows.iter().filter(|row| row.state == "report").map(|row| (row.sz_bytes, row.tested_bytes)).collect()
    };
    wait_until("S3 holds LSPs of S1 that are as long as three take", || {
        lengths(&all[2]) == lengths(&all[0]) && lengths(&all[2]).iter().any(|bytes| (3700..=4000).contains(bytes))
    });
    wait_until("links have passed a test of that length", || {
        tested(&all[0]) == [(4000, Some(4000))] && tested(&all[1]) == [(4000, Some(4000)); 2]
    });
    all.push(start(4));
    wait_until("none is longer than S4 takes", || {
        let held = lengths(&all[3]);
        held.len() > 8 && held.iter().all(|bytes| *bytes <= 1470) && held == lengths(&all[2])
    });
    // Who is farther from S4 hears of it later.
    wait_until("all know what S4 takes", || all.iter().flat_map(tested).all(|(sz_bytes, _)| sz_bytes == 1470));
}

#[test]
fn who_takes_leave_is_forgotten_at_once() {
    let Some(square) = Square::new("leave") else { return };
    let mut all = square.start_all();
    let stream = Stream::start(square.host(0), square.host(1), address(1));
    all.remove(1).finish();
    wait_until("S2 is gone", || !all[0].routes().contains_key("s2") && all[0].routes()["s3"].hops.len() == 1);
    let Shown::Nicknames(nicknames) = all[1].show(What::Nickname) else { panic!("no nicknames") };
    assert!(nicknames.iter().all(|row| row.hostname != "s2"), "its LSP is withdrawn: {nicknames:?}");
    assert!(square.host(0).ping("-c 20 -i 0.05 -W 30 10.0.10.2").contains("20 received"));
    let (sent, lost) = stream.end();
    // S2 forwarded until all others had computed.
    assert!(lost == 0, "{lost} of {sent} lost");
}

#[test]
fn an_interface_may_vanish_and_come_back() {
    let Some(square) = Square::new("vanish") else { return };
    let all = square.start_all();
    square.corner(1).ip("link del dev s2");
    wait_until("S1 knows one way", || all[0].routes()["s3"].hops.len() == 1);
    let Shown::Adjacencies(rows) = all[0].show(What::Adjacency) else { panic!("no adjacencies") };
    assert_eq!((&rows[0].link[..], &rows[0].state[..]), ("missing", "down"));
    assert!(square.host(0).ping("-c 1 -W 30 10.0.10.2").contains("1 received"));
    square.connect(1, 2);
    wait_for_routes(&all);
    assert!(all[0].states().values().all(|state| state == "report"));
    // Host a's port is made anew as well.
    square.corner(1).ip("link set dev a down");
    square.corner(1).ip("link set dev a up");
    assert!(square.host(0).ping("-c 3 -i 0.2 -W 30 10.0.10.2").contains("3 received"));
}
