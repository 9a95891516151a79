//! What frames become between hosts: the same, once, in their VLAN; and what the daemon knows of it.

use std::process::Command;
use std::time::{Duration, Instant};

use weft_datapath::trill::Tap as DataTap;
use weft_node::rbridge::KindText;
use weft_node::rbridge::protocol::{Shown, What};
use weft_wire::ethernet::MacAddress;
use weft_wire::pcapng;

use crate::bed::{NICKNAME, Square, mac, wait_for_routes};
use crate::common::{PATIENCE, wait_until};
use crate::net::Pins;
use crate::net::tap::Tap;

pub(crate) const BROADCAST: MacAddress = MacAddress::BROADCAST;
pub(crate) const TEST_TYPE: u16 = 0x88b5;

pub(crate) fn frame(to: MacAddress, from: MacAddress, ethertype: u16, payload: usize) -> Vec<u8> {
    let head = [&to.0[..], &from.0, &ethertype.to_be_bytes()].concat();
    head.into_iter().chain((0..payload).map(|n| (n % 251) as u8)).collect()
}

/// Frames of our type that come within a while, or as soon as `enough` have come.
pub(crate) fn received(tap: &mut Tap, enough: usize, patience: Duration) -> Vec<Vec<u8>> {
    let (deadline, mut frames) = (Instant::now() + patience, Vec::new());
    while frames.len() < enough && Instant::now() < deadline {
        match tap.poll() {
            Some(frame) if frame.get(12..14) == Some(&TEST_TYPE.to_be_bytes()) => frames.push(frame.to_vec()),
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    frames
}

pub(crate) const A_WHILE: Duration = Duration::from_millis(300);

#[test]
fn a_square_carries_frames_as_they_are_and_once() {
    let Some(square) = Square::new("square") else { return };
    let all = square.start_all();
    let s1 = &all[0];
    assert!(s1.states().values().all(|state| state == "report"), "{:?}", s1.states());
    let route = &s1.routes()["s3"];
    let hops: Vec<(&str, &str)> = route.hops.iter().map(|hop| (&hop.interface[..], &hop.neighbor[..])).collect();
    assert_eq!((route.egress, hops), (NICKNAME[2], vec![("s2", "s2"), ("s4", "s4")]));
    assert_eq!(route.cost, 2 * s1.routes()["s2"].cost);

    let mut taps: Vec<Tap> = (0..4).map(|host| Tap::open(square.host(host), "eth0", false)).collect();
    // A broadcast of a: once at b and c, which are in its VLAN, and not back at a. Both tags and padding stay away.
    let broadcast = frame(BROADCAST, mac(0), TEST_TYPE, 100);
    taps[0].send(&broadcast);
    for host in [1, 2] {
        assert_eq!(received(&mut taps[host], 1, PATIENCE), std::slice::from_ref(&broadcast), "host {host}");
    }
    for (host, tap) in taps.iter_mut().enumerate() {
        assert_eq!(received(tap, 1, A_WHILE), Vec::<Vec<u8>>::new(), "host {host} once more");
    }
    // Now everybody knows where a is; the answer teaches S1 where b is.
    for payload in [46, 47, 700, 1500] {
        for (from, to) in [(1, 0), (0, 1)] {
            let sent = frame(mac(to), mac(from), TEST_TYPE, payload);
            taps[from].send(&sent);
            assert_eq!(received(&mut taps[to], 1, PATIENCE), [sent], "{payload} bytes from {from} to {to}");
        }
    }
    assert_eq!(received(&mut taps[2], 1, A_WHILE), Vec::<Vec<u8>>::new(), "what is known is not flooded");
    assert!(square.host(0).ping("-c 3 -i 0.05 -W 30 10.0.10.2").contains("3 received"));
    let a = (mac(0).to_string(), Some("s1".to_owned()));
    let Shown::Stations(stations) = all[2].show(What::Fdb) else { panic!("no stations") };
    assert!(stations.iter().any(|row| (row.mac.clone(), row.hostname.clone()) == a && row.vlan == 10), "{stations:?}");
}

#[test]
fn what_is_shown_fits_together() {
    let Some(square) = Square::new("shown") else { return };
    let all = square.start_all();
    let Shown::Nicknames(nicknames) = all[1].show(What::Nickname) else { panic!("no nicknames") };
    let mut names: Vec<&str> = nicknames.iter().map(|row| &row.hostname[..]).collect();
    names.sort_unstable();
    assert_eq!(names, ["s1", "s2", "s3", "s4"]);
    assert!(nicknames.iter().all(|row| row.reachable && row.own == (row.hostname == "s2")));
    let configured: Vec<u16> = nicknames.iter().filter(|row| row.priority >= 0x80).map(|row| row.nickname).collect();
    assert_eq!(configured, NICKNAME);

    // All are equally willing, so the highest system ID is the root: S4. Every corner but the root has one way up.
    for (corner, running) in (1..).zip(&all) {
        let Shown::Trees(trees) = running.show(What::Tree) else { panic!("no trees") };
        let [tree] = &trees[..] else { panic!("{trees:?}") };
        assert_eq!((tree.number, &tree.hostname[..], tree.used), (1, "s4", true));
        let vlans: Vec<&str> = tree.branches.iter().map(|branch| &branch.vlans[..]).collect();
        let Shown::Rpf(rpf) = running.show(What::Rpf) else { panic!("no checks") };
        assert_eq!(rpf.len(), 3, "one for each other RBridge: {rpf:?}");
        let behind = |name: &str| rpf.iter().find(|row| row.hostname == name).map(|row| row.interface.clone());
        match corner {
            1 => assert_eq!((behind("s3"), behind("s4")), (Some("s4".to_owned()), Some("s4".to_owned()))),
            3 => assert_eq!(vlans, ["10"], "S1's VLAN and S2's, not its own 20"),
            _ => {}
        }
    }
    let Shown::Lsps(lsps) = all[3].show(What::Lsdb) else { panic!("no LSPs") };
    assert!(lsps.len() >= 4 && lsps.iter().filter(|row| row.own).all(|row| row.hostname == "s4"), "{lsps:?}");
    assert!(lsps.iter().all(|row| row.bytes <= 1470 && row.remaining_s > 1000));
}

#[test]
fn bpdus_stay_and_bad_pdus_are_counted() {
    let Some(square) = Square::new("bpdu") else { return };
    let all = square.start_all();
    let mut taps: Vec<Tap> = (0..3).map(|host| Tap::open(square.host(host), "eth0", false)).collect();
    let bpdu = |from: MacAddress| {
        let payload = [&[0x42, 0x42, 0x03][..], &[0; 35]].concat();
        [&[0x01, 0x80, 0xc2, 0, 0, 0], &from.0[..], &[0, 38], &payload].concat()
    };
    let before = all[0].count("port a", "l2_control");
    for last in 0..=0x0f {
        let mut frame = bpdu(mac(0));
        frame[5] = last;
        taps[0].send(&frame);
    }
    wait_until("they came in", || all[0].count("port a", "l2_control") == before + 16);
    let is_bpdu = |frame: &[u8]| frame.starts_with(&[0x01, 0x80, 0xc2]);
    std::thread::sleep(A_WHILE);
    for tap in &mut taps[1..] {
        assert!(std::iter::from_fn(|| tap.poll().map(is_bpdu)).all(|is_bpdu| !is_bpdu));
    }

    // From S2's place: every length of a Hello cut short, another's LSP, IS-IS to nobody, and an empty frame.
    let neighbor = Tap::open(square.corner(2), "s1", false);
    let dropped = |name: &str| all[0].count("control_dropped", name);
    let malformed = dropped("malformed");
    let hello = [0x83, 20, 1, 0, 17, 1, 0, 1, 1, 2, 0, 0, 0, 0, 2, 0, 30, 0, 25, 1];
    let to_all = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x41]);
    let source = MacAddress([2, 0, 0, 0, 0, 99]);
    for length in 0..hello.len() {
        neighbor.send(&[&frame(to_all, source, 0x22f4, 0)[..], &hello[..length]].concat());
    }
    wait_until("they are counted", || dropped("malformed") == malformed + hello.len() as u64);
    assert!(all[0].states().values().all(|state| state == "report"));
    // End stations may not speak IS-IS, and the daemon does not even see it.
    taps[0].send(&[&frame(to_all, mac(0), 0x22f4, 0)[..], &hello].concat());
    wait_until("it is counted", || all[0].count("port a", "trill_on_native") == 1);
    assert_eq!(dropped("no_port"), 0);
}

/// A station sends IS-IS for as long as many adjacencies would not live without Hellos, 100,000 frames a second; `WEFT_FLOOD_S=60`: for a minute.
#[test]
fn a_station_that_floods_is_is_costs_no_adjacency() {
    const A_MILLISECOND: u64 = 100;
    let seconds = std::env::var("WEFT_FLOOD_S").map_or(10, |seconds| seconds.parse().expect("whole seconds"));
    let Some(square) = Square::new("isisflood") else { return };
    let all = square.start_all();
    let tap = Tap::open(square.host(0), "eth0", false);
    let pdu = [&frame(MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x41]), mac(0), 0x22f4, 0)[..], &[0x83; 1400]].concat();
    let (begin, mut sent) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(seconds) {
        let due = begin.elapsed().as_millis() as u64 * A_MILLISECOND;
        (sent..due).for_each(|_| tap.send(&pdu));
        sent = sent.max(due);
        for running in &all {
            assert!(running.states().values().all(|state| state == "report"), "{:?}", running.states());
        }
    }
    wait_until("they came in", || all[0].count("port a", "trill_on_native") == sent);
    let lost = all.iter().map(|running| running.count("control", "adjacency_down")).sum::<u64>();
    assert_eq!((lost, all[0].count("control_dropped", "no_port")), (0, 0));
}

/// 10,000 frames a second, a tenth of them at once, unless `storm_per_s` says otherwise.
#[test]
fn a_port_may_flood_only_so_much_without_being_told() {
    const SENT: u64 = 20_000;
    let Some(square) = Square::new("storm") else { return };
    let running = square.start(&square.config(1), 1);
    let tap = Tap::open(square.host(0), "eth0", false);
    let broadcast = frame(BROADCAST, mac(0), TEST_TYPE, 46);
    let count = |name| running.count("port a", name);
    let passed = || count("ingress_flood") + count("no_receiver");
    let begin = Instant::now();
    (0..SENT).for_each(|_| tap.send(&broadcast));
    wait_until("all are counted", || passed() + count("storm_limit") == SENT);
    let most = 1001 + begin.elapsed().as_millis() as u64 * 10;
    assert!((1000..=most).contains(&passed()), "{} passed, not 1000 to {most}", passed());
}

#[test]
fn hosts_of_two_vlans_reach_each_other_by_the_gateway_where_they_are() {
    let Some(square) = Square::new("gateway") else { return };
    let configs = (1..=4).map(|corner| {
        let mut config = square.config(corner);
        config.gateway = Some(Square::gateway());
        config
    });
    let all: Vec<_> = (1..).zip(configs).map(|(corner, config)| square.start(&config, corner)).collect();
    crate::bed::wait_for_routes(&all);
    // Both know their gateways; then no frame is for many.
    square.host(0).ping("-c 1 -W 1 10.0.10.254");
    square.host(3).ping("-c 1 -W 1 10.0.20.254");
    let copies = || -> u64 { all.iter().map(|rbridge| rbridge.count_at_ports("copy_sent")).sum() };
    let before = copies();
    let pinged = square.host(0).ping("-c 3 -i 0.05 -W 30 10.0.20.1");
    assert!(pinged.contains("3 received") && pinged.contains("ttl=63"), "one hop: {pinged}");
    assert_eq!(copies() - before, 0, "no packet is copied along the tree");
    assert!(all[0].count("port a", "arp_answered") >= 1);
    let Shown::Stations(stations) = all[0].show(What::Fdb) else { panic!("no stations") };
    assert_eq!(stations.iter().filter(|row| row.place == "gateway" && row.origin == "static").count(), 2);
}

#[test]
fn tshark_reads_everything_and_finds_nothing_malformed() {
    let Some(square) = Square::new("tshark") else { return };
    let pins = Pins::new(square.dir.path());
    let mut config = square.config(1);
    config.pin_dir = Some(pins.dir("s1"));
    // What the stack sees: IS-IS of S1's links from the first Hello on.
    let mut links: Vec<Tap> = ["s2", "s4"].map(|name| Tap::open(square.corner(1), name, true)).into();
    let mut all = vec![square.start(&config, 1)];
    all.extend((2..=4).map(|corner| square.start(&square.config(corner), corner)));
    crate::bed::wait_for_routes(&all);
    let data = DataTap::open_pinned(pins.dir("s1"), 1).unwrap();
    assert!(square.host(0).ping("-c 2 -i 0.05 -W 30 10.0.10.2").contains("2 received"));
    let file = square.dir.path().join("frames.pcapng");
    let mut writer = pcapng::Writer::new(std::fs::File::create(&file).unwrap(), "s1").unwrap();
    let mut time = Duration::ZERO;
    for tap in &mut links {
        while let Some(frame) = tap.poll() {
            time += Duration::from_micros(1);
            writer.write(time, frame.len() as u32, frame).unwrap();
        }
    }
    for frame in data.take().unwrap() {
        writer.write(time, frame.length, &frame.bytes).unwrap();
    }
    writer.flush().unwrap();
    drop(data);
    all.remove(0).stop();
    if !weft_needs::program("tshark") {
        return;
    }
    let mut command = Command::new("tshark");
    command.args(["-r", file.to_str().unwrap(), "-T", "fields", "-e", "frame.protocols", "-e", "isis.type"]);
    command.args(["-e", "isis.lsp.checksum.status", "-e", "trill.egress_nick", "-e", "_ws.malformed"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = |part: &str| text.lines().filter(|line| line.contains(part)).count();
    assert!(!text.to_lowercase().contains("malformed"), "{text}");
    for (part, what) in [
        ("isis.hello\t17", "Hello"),
        ("isis.lsp\t18\t1", "LSP with a good checksum"),
        ("isis.csnp\t24", "list of LSPs"),
        (":trill:", "data frame"),
    ] {
        assert!(lines(part) > 0, "no {what}: {text}");
    }
    assert!(text.lines().any(|line| line.contains(":icmp") && line.contains(&NICKNAME[2].to_string())), "{text}");
}

/// What the adjacency on an interface says of outer headers.
fn elision(running: &crate::bed::Running, interface: &str) -> String {
    let Shown::Adjacencies(rows) = running.show(What::Adjacency) else { panic!("no adjacencies") };
    rows.into_iter().find(|row| row.interface == interface).expect("a link").elision
}

#[test]
fn both_ends_leave_it_out() {
    let Some(square) = Square::new("elide") else { return };
    let config = |corner| {
        let mut config = square.config(corner);
        config.port.iter_mut().filter(|port| port.kind == KindText::P2p).for_each(|port| {
            port.elide_outer_header = Some(true);
        });
        config
    };
    let all: Vec<_> = (1..=4).map(|corner| square.start(&config(corner), corner)).collect();
    wait_for_routes(&all);
    for (running, interface) in [(&all[0], "s2"), (&all[0], "s4"), (&all[1], "s1"), (&all[2], "s4")] {
        assert_eq!(elision(running, interface), "agreed");
    }
    // A broadcast along the tree and unicast both ways, of every length.
    let mut taps: Vec<Tap> = (0..3).map(|host| Tap::open(square.host(host), "eth0", false)).collect();
    let broadcast = frame(BROADCAST, mac(0), TEST_TYPE, 100);
    taps[0].send(&broadcast);
    for host in [1, 2] {
        assert_eq!(received(&mut taps[host], 1, PATIENCE), std::slice::from_ref(&broadcast), "host {host}");
    }
    for payload in [46, 700, 1500] {
        for (from, to) in [(1, 0), (0, 1)] {
            let sent = frame(mac(to), mac(from), TEST_TYPE, payload);
            taps[from].send(&sent);
            assert_eq!(received(&mut taps[to], 1, PATIENCE), [sent], "{payload} bytes from {from} to {to}");
        }
    }
    assert!(square.host(0).ping("-c 3 -i 0.05 -W 30 10.0.10.2").contains("3 received"));
    assert_eq!(all[0].count("port s2", "not_agreed") + all[0].count("port s4", "not_agreed"), 0);
}

#[test]
fn only_one_end_wants_it() {
    let Some(square) = Square::new("offer") else { return };
    let offering = |corner| {
        let mut config = square.config(corner);
        config.port.iter_mut().filter(|port| port.kind == KindText::P2p).for_each(|port| {
            port.elide_outer_header = Some(true);
        });
        config
    };
    let mut all = square.start_all();
    all.remove(0).stop();
    all.insert(0, square.start(&offering(1), 1));
    wait_for_routes(&all);
    assert_eq!((elision(&all[0], "s2"), elision(&all[1], "s1")), ("offered".to_owned(), "off".to_owned()));
    assert!(square.host(0).ping("-c 3 -i 0.05 -W 30 10.0.10.2").contains("3 received"));
    // S2 begins anew with the option: S1 hears it, and one of its links goes without, the other one not.
    all.remove(1).stop();
    all.insert(1, square.start(&offering(2), 2));
    wait_for_routes(&all);
    wait_until("S1 and S2 agree", || elision(&all[0], "s2") == "agreed" && elision(&all[1], "s1") == "agreed");
    assert_eq!(elision(&all[0], "s4"), "offered");
    assert!(square.host(0).ping("-c 3 -i 0.05 -W 30 10.0.10.2").contains("3 received"));
    assert!(square.host(0).ping("-c 3 -i 0.05 -W 30 10.0.10.3").contains("3 received"), "c at S2");
    let dropped = |running: &crate::bed::Running, port: &str| running.count(port, "not_agreed");
    assert_eq!(dropped(&all[0], "port s2") + dropped(&all[1], "port s1") + dropped(&all[3], "port s1"), 0);
}
