//! Campuses: six RBridges and their spanning-tree twin carry frames between hosts, over all the ways there are, route
//! between VLANs, survive the loss of a switch, can be watched, and leave nothing behind.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::beds::turn;
use common::campus::{Campus, address, build, close, fabric, pings};
use common::hosts::capturing;
use common::{PATIENCE, Quiet, daemon_program, lab_name, options, traces, wait_for};
use weft_lab::traffic::FaultActuator;
use weft_lab::trill::{rbridge_keys, rbridge_socket};
use weft_lab::{CaptureFilter, CaptureOptions, LabActuator, LabEngine, LabOptions, LabState, sweep_orphans, up};
use weft_node::rbridge;
use weft_node::rbridge::protocol::{Answer, Request, Shown, What};
use weft_node::{DaemonKind, socket};
use weft_scenario::engine::{Engine, Overlay, Trial};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::topology::{Fabric, from_yaml};
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::Workload;

/// Bytes that arrived of so many sent over TCP.
fn transfer(campus: &Campus, from: &str, to: &str, bytes: usize) -> usize {
    let listener = campus.inside(to, || TcpListener::bind((address(campus, to), 5001)).unwrap());
    let receiver = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = vec![0; 1 << 16];
        std::iter::from_fn(|| stream.read(&mut buffer).ok().filter(|count| *count > 0)).sum()
    });
    let target = (address(campus, to), 5001);
    let mut stream = campus.inside(from, || TcpStream::connect(target).unwrap());
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&vec![7; bytes]).unwrap();
    drop(stream);
    receiver.join().unwrap()
}

/// A datagram of each of so many flows.
fn send_flows(campus: &Campus, from: &str, to: &str, flows: u16) {
    let target = (address(campus, to), 6001);
    let send =
        |flow| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 7100 + flow)).unwrap().send_to(&[3; 300], target).unwrap();
    campus.inside(from, || (0..flows).map(send).sum::<usize>());
}

/// Longest time in which some flow of 16 from one host to another got nothing through, while `change` happens.
fn outage(campus: &Campus, from: &str, to: &str, watched: Duration, change: impl FnOnce()) -> Duration {
    const FLOWS: u16 = 16;
    const PACE: Duration = Duration::from_millis(2);
    let target = (address(campus, to), 6000);
    let receiver = campus.inside(to, || UdpSocket::bind(target).unwrap());
    receiver.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let senders: Vec<UdpSocket> = campus.inside(from, || {
        (0..FLOWS).map(|flow| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 7000 + flow)).unwrap()).collect()
    });
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, ended) = (Arc::clone(&stop), Arc::clone(&stop));
    let sending = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            for socket in &senders {
                // Refused for a moment where a neighbour is not known: as good as lost.
                let _lost = socket.send_to(&[1; 100], target);
            }
            std::thread::sleep(PACE);
        }
    });
    let receiving = std::thread::spawn(move || {
        let mut last: Vec<Option<Instant>> = vec![None; usize::from(FLOWS)];
        let mut longest = Duration::ZERO;
        let mut buffer = [0; 200];
        while !ended.load(Ordering::Relaxed) {
            let Ok((_, sender)) = receiver.recv_from(&mut buffer) else { continue };
            let (now, flow) = (Instant::now(), usize::from(sender.port() - 7000));
            longest = longest.max(last[flow].map_or(Duration::ZERO, |before| now - before));
            last[flow] = Some(now);
        }
        // A flow that never came back is out until the end.
        let silent = last.iter().flatten().map(Instant::elapsed).max().unwrap_or_default();
        (last.iter().flatten().count(), longest.max(silent))
    });
    std::thread::sleep(Duration::from_millis(500));
    change();
    std::thread::sleep(watched);
    stop.store(true, Ordering::Relaxed);
    sending.join().unwrap();
    let (heard, longest) = receiving.join().unwrap();
    assert_eq!(heard, usize::from(FLOWS), "every flow got through at some time");
    longest
}

fn fault(kind: FaultKind) -> Fault {
    Fault { at: Nanos(0), lasts: None, kind }
}

fn down(switch: &str) -> Fault {
    fault(FaultKind::SwitchDown { node: switch.to_owned() })
}

fn silent(switch: &str) -> Fault {
    fault(FaultKind::SwitchSilent { node: switch.to_owned() })
}

#[test]
fn the_spanning_tree_twin_carries_frames_and_recovers() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("stp");
    let campus = build(&name, "trill-s1-s6", Overlay::BRIDGE);
    assert!(pings(&campus, "h1", "h2") && pings(&campus, "h3", "h4"));
    assert!(!pings(&campus, "h1", "h3") && !pings(&campus, "h3", "h2"), "VLANs are apart");
    assert_eq!(transfer(&campus, "h1", "h2", 4_000_000), 4_000_000);
    // Everything goes by S3; without it two forwarding delays pass.
    let mut actuator = LabActuator::new(campus.lab());
    let lost = outage(&campus, "h1", "h2", Duration::from_secs(9), || actuator.apply(&down("s3")).unwrap());
    eprintln!("outage with a spanning tree: {lost:?}");
    assert!((Duration::from_secs(2)..Duration::from_secs(8)).contains(&lost), "{lost:?}");
    drop(actuator);
    close(campus, &name);
}

#[test]
fn six_rbridges_carry_frames_over_four_ways_and_lose_one() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("tr");
    let campus = build(&name, "trill-s1-s6", Overlay::RBRIDGE);
    assert_eq!(campus.next_hops("s1", "s2"), ["s3", "s4", "s5", "s6"]);
    assert_eq!(campus.next_hops("s3", "s2"), ["s2"]);
    assert!(pings(&campus, "h1", "h2") && pings(&campus, "h3", "h4"));
    assert!(!pings(&campus, "h1", "h3") && !pings(&campus, "h3", "h2"), "VLANs are apart");
    assert_eq!(transfer(&campus, "h1", "h2", 20_000_000), 20_000_000);

    let all = ["s3", "s4", "s5", "s6"];
    let mut actuator = LabActuator::new(campus.lab());
    let lost = outage(&campus, "h1", "h2", Duration::from_secs(2), || actuator.apply(&down("s4")).unwrap());
    eprintln!("outage when S4's links went down: {lost:?}");
    assert_eq!(campus.next_hops("s1", "s2"), ["s3", "s5", "s6"]);
    actuator.repair(&down("s4")).unwrap();
    wait_for("S4 is back", || campus.next_hops("s1", "s2") == all && campus.next_hops("s2", "s1") == all);

    let unheard = outage(&campus, "h1", "h2", Duration::from_secs(3), || actuator.apply(&silent("s5")).unwrap());
    eprintln!("outage when S5 fell silent: {unheard:?}");
    assert_eq!(campus.next_hops("s1", "s2"), ["s3", "s4", "s6"]);
    actuator.repair(&silent("s5")).unwrap();
    wait_for("S5 is back", || campus.next_hops("s1", "s2") == all && campus.next_hops("s2", "s1") == all);
    drop(actuator);
    assert!(pings(&campus, "h1", "h2"));
    // A second and not a spanning tree's half minute; how short exactly is what the plan `trill/convergence` measures.
    assert!(lost < Duration::from_secs(2) && unheard < Duration::from_secs(3), "{lost:?} {unheard:?}");
    close(campus, &name);
}

/// Every campus of a lab has a key of its own: an RBridge with another one is heard, counted, and never adjacent.
#[test]
fn who_has_another_key_than_the_campus_stays_outside() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("key");
    let campus = build(&name, "trill-s1-s6", Overlay::RBRIDGE);
    let keys = rbridge_keys(&name);
    assert_eq!(fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o600);
    let secret = fs::read_to_string(&keys).unwrap().split_whitespace().last().unwrap().to_owned();
    assert!(pings(&campus, "h1", "h2"));

    let socket = rbridge_socket(&name, "s6");
    assert_eq!(rbridge::ask(&socket, &Request::Stop).unwrap(), Answer::Done);
    wait_for("S6 is gone", || !socket.exists());
    let other = keys.with_file_name("other.keys");
    fs::copy(&keys, &other).unwrap();
    fs::write(&other, format!("1 hmac-sha-256 {}", secret.chars().rev().collect::<String>())).unwrap();
    let settings = keys.with_file_name("s6.rbridge.toml");
    let text = fs::read_to_string(&settings).unwrap();
    assert!(!text.contains(&secret));
    let strange = settings.with_extension("other.toml");
    fs::write(&strange, text.replace(&keys.display().to_string(), &other.display().to_string())).unwrap();
    let start = |settings: &Path| {
        let mut command = Command::new(daemon_program());
        command.args(["node", "rbridge", "--config"]).arg(settings).stderr(Stdio::null());
        campus.inside("s6", || command.spawn().unwrap())
    };
    let mut stranger = start(&strange);

    let show = |what| socket::show(DaemonKind::Rbridge, &rbridge_socket(&name, "s1"), what).unwrap();
    let refused = || match show(What::Counters) {
        Shown::Counters(groups) => groups["control_dropped"]["auth_digest"],
        other => panic!("{other:?}"),
    };
    let begun = Instant::now();
    while refused() < 10 {
        assert!(begun.elapsed() < Duration::from_secs(20), "S6 is heard");
        std::thread::sleep(Duration::from_millis(20));
    }
    let Shown::Adjacencies(rows) = show(What::Adjacency) else { panic!("no adjacencies") };
    let of_s6 = rows.iter().find(|row| row.interface == "s6").unwrap();
    assert_eq!((&of_s6.state[..], of_s6.refused >= 10), ("down", true));
    assert!(rows.iter().all(|row| row.interface == "s6" || (row.state != "down") == row.interface.starts_with('s')));
    assert!(!format!("{rows:?}").contains(&secret));
    assert_eq!(campus.next_hops("s1", "s2"), ["s3", "s4", "s5"]);
    assert!(pings(&campus, "h1", "h2"));

    assert_eq!(rbridge::ask(&socket, &Request::Stop).unwrap(), Answer::Done);
    assert!(stranger.wait().unwrap().success());
    let mut again = start(&settings);
    wait_for("with the right key it is taken in", || campus.next_hops("s1", "s2") == ["s3", "s4", "s5", "s6"]);
    assert_eq!(rbridge::ask(&socket, &Request::Stop).unwrap(), Answer::Done);
    assert!(again.wait().unwrap().success());
    close(campus, &name);
}

#[test]
fn vlans_meet_at_a_router_or_at_the_ingress_rbridge() {
    let Some(_turn) = turn() else { return };
    for (suffix, fabric) in [("ra", "trill-inter-vlan"), ("rb", "trill-routed")] {
        let name = lab_name(suffix);
        let campus = build(&name, fabric, Overlay::RBRIDGE);
        assert!(pings(&campus, "h1", "h2"), "{fabric}");
        assert_eq!(transfer(&campus, "h1", "h2", 2_000_000), 2_000_000, "{fabric}");
        let to = address(&campus, "h2").to_string();
        let trace = || Command::new("ping").args(["-c", "1", "-W", "1", "-t", "1", &to]).output().unwrap().status;
        assert!(!campus.inside("h1", trace).success(), "{fabric}: somebody routed");
        close(campus, &name);
    }
}

#[test]
fn a_trunk_is_captured_with_data_hellos_and_lsps() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("cap");
    let campus = build(&name, "trill-s1-s6", Overlay::RBRIDGE);
    let directory = tempfile::tempdir().unwrap();
    let wanted = CaptureOptions {
        lab: name.clone(),
        // Both ends, and another link of one of them: an RBridge has one tap for all of its ports.
        ports: ["s1:s3", "s1:s4", "s3:s1"].map(|port| port.parse().unwrap()).into(),
        file: directory.path().join("trunk.pcapng"),
        filter: CaptureFilter::default(),
        packets: None,
        duration: None,
        snap_bytes: None,
    };
    let captured = capturing(std::slice::from_ref(&wanted), || {
        assert!(pings(&campus, "h1", "h2") && pings(&campus, "h3", "h4"));
        // Of some flows the way is this one.
        for (from, to) in [("h1", "h2"), ("h2", "h1")] {
            send_flows(&campus, from, to, 64);
        }
        // A change far away comes by as an LSP. It stays, or two changes could become none.
        let down = || Command::new("ip").args(["link", "set", "dev", "s2", "down"]).status().unwrap();
        assert!(campus.inside("s6", down).success());
        wait_for("S1 hears of it", || campus.next_hops("s1", "s2") == ["s3", "s4", "s5"]);
        // Some Hellos of either end.
        std::thread::sleep(Duration::from_secs(3));
    });
    assert!(captured[0].packets > 4, "{captured:?}");
    if !weft_needs::program("tshark") {
        return close(campus, &name);
    }
    let tshark = |filter: &str| {
        let output = Command::new("tshark").arg("-r").arg(&wanted.file).args(["-Y", filter]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().count()
    };
    let hellos = tshark("isis.hello");
    let data = |port: &str, nick: u16, direction: u8| {
        tshark(&format!(
            "udp && trill.ingress_nick == {nick} && frame.interface_name == \"{port}\" && frame.packet_flags_direction == {direction}"
        ))
    };
    // What leaves by one end comes in at the other, and goes by no other link.
    let both_ways = |port: &str, [out, inwards]: [u8; 2]| [data(port, 257, out), data(port, 258, inwards)];
    let near = both_ways("s1:s3", [2, 1]);
    assert_eq!(near, both_ways("s3:s1", [1, 2]));
    let data = near;
    eprintln!("{hellos} Hellos, {data:?} data frames, {:?} LSPs", tshark("isis.lsp"));
    assert!(hellos > 2 && data.iter().all(|count| *count > 0) && tshark("isis.lsp") > 0, "{hellos} {data:?}");
    assert_eq!(tshark("_ws.malformed"), 0);
    close(campus, &name);
}

#[test]
fn a_mesh_of_servers_runs_a_workload() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("mesh");
    let worker = [daemon_program().into_os_string(), "internal".into(), "traffic-worker".into()];
    let options = LabOptions { name: Some(name.clone()), ..LabOptions::new(daemon_program()) };
    let engine = LabEngine::new(options, worker.into());
    let mesh = common::scenario(fabric("trill-mesh"), Overlay::RBRIDGE);
    let trial = Trial {
        workload: Workload::Shuffle { bytes_per_flow: Bytes(1_000_000) },
        faults: Vec::new(),
        seed: 1,
        sample_interval: Nanos(100_000_000),
        tcp_interval: None,
        time_limit: Nanos(60_000_000_000),
        pin_and_measure_cost: false,
        replay: false,
        probes: None,
    };
    engine.check_fit(&mesh, &trial).unwrap();
    let mut session = engine.prepare(&mesh, &Quiet).unwrap();
    let records = session.run(&trial).unwrap();
    assert_eq!(records.flows.iter().filter(|flow| flow.bytes_received == 1_000_000).count(), 12);
    session.close().unwrap();
    assert_eq!(traces(&name), std::collections::BTreeSet::new());
}

/// Runs as a child of the next test: brings a campus up and waits to be killed.
#[test]
fn child_that_is_killed() {
    let Ok(name) = std::env::var("WEFT_TEST_CAMPUS_TO_LEAVE") else { return };
    let engine = LabEngine::new(options(&name), Vec::new());
    let _session = engine.prepare(&common::scenario(fabric("trill-mesh"), Overlay::RBRIDGE), &Quiet).unwrap();
    std::thread::sleep(Duration::from_secs(300));
}

#[test]
fn after_a_kill_the_next_campus_leaves_nothing_of_it() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("kill");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed"])
        .env("WEFT_TEST_CAMPUS_TO_LEAVE", &name)
        .spawn()
        .unwrap();
    wait_for("the child brings its campus up", || LabState::load(&name).is_ok_and(|state| state.ready));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!traces(&name).is_empty(), "there is something to remove");
    assert!(sweep_orphans().unwrap().contains(&name));
    assert_eq!(traces(&name), std::collections::BTreeSet::new());
}

#[test]
fn what_is_no_campus_is_refused_before_anything_is_made() {
    let Some(_turn) = turn() else { return };
    let name = lab_name("bad");
    let refused = |overlay, fabric: Fabric| {
        let options = LabOptions { name: Some(name.clone()), ..LabOptions::new(daemon_program()) };
        let error = up(&common::scenario(fabric, overlay), &options, &Quiet).unwrap_err().to_string();
        assert_eq!(traces(&name), std::collections::BTreeSet::new());
        error
    };
    let text = refused(Overlay::Routed, fabric("trill-mesh"));
    assert!(text.starts_with("fabric `trill-mesh` has RBridges, which carry frames and no routes"), "{text}");
    let narrow = weft_scenario::topology::to_yaml(&fabric("trill-mesh")).replace("mtu: 9216", "mtu: 9000");
    let text = refused(Overlay::RBRIDGE, from_yaml(&narrow, "narrow").unwrap());
    assert!(text.contains("has an MTU of 9000 bytes, too little for packets of 9000 bytes in TRILL"), "{text}");
}
