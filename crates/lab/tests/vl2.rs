//! VL2 in a lab: real agents, a real directory, the shipped eBPF programs, real TCP.

mod common;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use common::hosts::capturing;
use common::{Gone, PATIENCE, Quiet, can_run, daemon_program, lab_name, options, pair, testbed};
use weft_datapath::host::{HostMaps, Mapping};
use weft_lab::doctor::path_checks;
use weft_lab::traffic::FaultActuator;
use weft_lab::{
    CaptureFilter, CaptureOptions, Lab, LabActuator, LabEngine, LabOptions, LabState, NodeState, home, in_namespace,
    kernel_table, status_socket, up,
};
use weft_node::DaemonKind;
use weft_node::agent::status::{self, StatusMapping};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{Engine, Overlay, Trial};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::judge::Verdict;
use weft_scenario::topology::Role;
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::Workload;

/// Both ends of a TCP connection from one server's AA to another's.
fn connection(lab: &Lab, from: &str, to: &str) -> [TcpStream; 2] {
    let place = |node: &str| {
        let node = lab.state.node(node).unwrap();
        (home::namespace_path(&node.namespace), node.aa.unwrap())
    };
    let ((near, _), (far, aa)) = (place(from), place(to));
    let listener = in_namespace(&far, || TcpListener::bind((aa, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    let near = in_namespace(&near, connect).unwrap();
    [near, listener.accept().unwrap().0]
}

/// Sends `bytes` over TCP from one server's AA to another's; how many arrived.
fn transfer(lab: &Lab, from: &str, to: &str, bytes: usize) -> usize {
    let [mut near, mut far] = connection(lab, from, to);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut received = Vec::new();
            far.read_to_end(&mut received).unwrap();
            received.len()
        });
        near.write_all(&vec![7; bytes]).unwrap();
        drop(near);
        receiver.join().unwrap()
    })
}

/// Every daemon of weft in the lab has its unit's capabilities, can gain none, and is found so from outside.
fn has_least_rights(lab: &Lab) {
    let kinds = [DaemonKind::Agent, DaemonKind::Directory, DaemonKind::Tor];
    let mut seen = 0;
    for process in &lab.state.processes {
        let Some(kind) = kinds.iter().find(|kind| kind.word() == process.daemon) else { continue };
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id.pid)).unwrap();
        for (name, value) in [
            ("CapBnd", format!("{:016x}", kind.capabilities().bits())),
            ("CapEff", format!("{:016x}", kind.capabilities().bits())),
            ("NoNewPrivs", "1".to_owned()),
        ] {
            assert!(status.contains(&format!("\n{name}:\t{value}\n")), "{}: {name} {value}: {status}", process.daemon);
        }
        seen += 1;
    }
    assert!(seen >= 3, "{:?}", lab.state.processes);
}

#[test]
fn a_packet_at_a_tor_uplink_has_both_outer_headers() {
    if !can_run() {
        return;
    }
    let name = lab_name("va");
    let _gone = Gone(name.clone());
    let lab = up(&pair(Overlay::Vl2), &options(&name), &Quiet).unwrap();
    has_least_rights(&lab);
    let directory = tempfile::tempdir().unwrap();
    let wanted = CaptureOptions {
        lab: name,
        ports: vec!["tor1:int1".parse().unwrap()],
        file: directory.path().join("vl2.pcapng"),
        filter: CaptureFilter { host: lab.state.node("s2").unwrap().aa, protocol: Some(6), arp: false },
        packets: Some(10),
        duration: None,
        snap_bytes: None,
    };
    let captured = capturing(std::slice::from_ref(&wanted), || {
        assert_eq!(transfer(&lab, "s1", "s2", 100_000), 100_000);
    });
    assert_eq!((captured[0].packets, captured[0].dropped), (10, 0));
    let fields = ["ip.src", "ip.dst", "ip.proto", "ip.checksum.status", "tcp.dstport"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&wanted.file).args(["-o", "ip.check_checksum:TRUE", "-T", "fields"]);
    tshark.args(["-Y", "ip.src == 20.0.0.1"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    if !weft_needs::program("tshark") {
        return;
    }
    let output = tshark.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty());
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let sources: Vec<&str> = fields[0].split(',').collect();
        assert_eq!((sources.len(), sources[2]), (3, "20.0.0.1"), "{line}");
        assert!(sources[0].starts_with("100.") && sources[0] == sources[1], "both carry the flow's hash: {line}");
        assert_eq!(&fields[1..4], ["10.255.255.1,10.1.0.2,20.0.0.2", "4,4,6", "1,1,1"], "{line}");
    }
}

#[test]
fn doctor_sends_real_frames_through_a_small_lab() {
    if !can_run() {
        return;
    }
    let options = LabOptions::new(daemon_program());
    let checks = path_checks(&options, &Quiet).unwrap();
    assert_eq!(checks.len(), 18, "six through VL2, six through each of two tunnels");
    for check in checks {
        assert_eq!(check.verdict, Verdict::Pass, "{check:?}");
    }
    assert!(!home::lab_names().contains(&format!("doctor{}", std::process::id())));
}

#[test]
fn switch_tables_do_not_grow_with_the_number_of_aas() {
    if !can_run() {
        return;
    }
    let sizes = |test: &str, servers: [u32; 4]| {
        let name = lab_name(test);
        let _gone = Gone(name.clone());
        let lab = up(&testbed(servers, Overlay::Vl2), &options(&name), &Quiet).unwrap();
        let mut switches =
            lab.state.nodes.iter().filter(|node| node.name.starts_with("int") || node.name.starts_with("agg"));
        let tables: Vec<_> = switches.by_ref().map(|node| kernel_table(&node.namespace).unwrap()).collect();
        assert!(tables.iter().all(|table| table.keys().all(|to| !to.starts_with("20."))), "{tables:?}");
        tables.iter().map(|table| table.len()).collect::<Vec<_>>()
    };
    let few = sizes("vb1", [1, 1, 1, 1]);
    assert_eq!((few.len(), few.clone()), (6, sizes("vb2", [5, 5, 5, 5])), "LA routes only (VL2 4.2.1)");
}

fn trial(workload: Workload, faults: Vec<Fault>) -> Trial {
    Trial {
        workload,
        faults,
        seed: 1,
        sample_interval: Nanos(200_000_000),
        tcp_interval: None,
        time_limit: Nanos(60_000_000_000),
        pin_and_measure_cost: false,
        replay: false,
        probes: None,
    }
}

#[test]
fn a_session_runs_a_shuffle_and_another_with_a_fault() {
    if !can_run() {
        return;
    }
    let name = lab_name("vc");
    let _gone = Gone(name.clone());
    let program = daemon_program();
    let worker = [program.as_os_str().to_owned(), OsString::from("internal"), OsString::from("traffic-worker")];
    let engine = LabEngine::new(options(&name), worker.to_vec());
    let mut scenario = testbed([1, 1, 1, 1], Overlay::Vl2);
    scenario.shaped = true;
    let mut session = engine.prepare(&scenario, &Quiet).unwrap();
    let owner = LabState::load(&name).unwrap().owner.unwrap();
    assert_eq!(owner.pid, std::process::id(), "a run's lab is an orphan when the run is gone");

    let shuffle = |bytes| Workload::Shuffle { bytes_per_flow: Bytes(bytes) };
    let records = session.run(&trial(shuffle(300_000), Vec::new())).unwrap();
    assert_eq!(records.flows.len(), 12);
    assert!(
        records.flows.iter().all(|flow| flow.end_ns.is_some() && flow.bytes_received == 300_000),
        "{:?}",
        records.flows
    );
    assert!(records.facts.contains(&("lab.adjacency_changes".into(), 0.0)), "{:?}", records.facts);
    let used = |class: &str| records.links.iter().any(|row| row.class == class && row.sent_bytes > 0);
    assert!(used("intermediate-aggregation") && used("aggregation-tor") && used("tor-server"));

    let fault = Fault {
        at: Nanos(500_000_000),
        lasts: Some(Nanos(1_000_000_000)),
        kind: FaultKind::SwitchDown { node: "int1".into() },
    };
    let records = session.run(&trial(shuffle(3_000_000), vec![fault])).unwrap();
    assert!(records.flows.iter().all(|flow| flow.bytes_received == 3_000_000), "flows survive");
    let time = |kind: &str| records.events.iter().find(|event| event.kind == kind).map(|event| event.time_ns);
    let (broken, mended) = (time("fault").unwrap(), time("repair").unwrap());
    assert!(broken >= 500_000_000 && mended >= broken + 900_000_000);
    let back = time("routes-restored").expect("equal paths are back in the kernel");
    assert!(back > mended, "{back} {mended}");
    assert!(records.events.iter().any(|event| event.kind == "adjacency" && event.time_ns > broken));
    session.close().unwrap();
    assert!(!home::lab_names().contains(&name));
}

/// Routes change in milliseconds, and TCP tries again after a second at most; the rest is for a busy machine. Without the new
/// way nothing comes as long as the switch is dead.
const STANDSTILL_MAX: Duration = Duration::from_secs(30);

/// A word there and one back on every connection.
fn exchange(connections: &mut [[TcpStream; 2]]) {
    for way in [[0, 1], [1, 0]] {
        for ends in connections.iter_mut() {
            ends[way[0]].write_all(b"weft").unwrap();
        }
        for ends in connections.iter_mut() {
            ends[way[1]].set_read_timeout(Some(STANDSTILL_MAX)).unwrap();
            ends[way[1]].read_exact(&mut [0; 4]).expect("flows go on");
        }
    }
}

/// What an agent knows: its own state, and what its data path goes by.
type Knowledge = (Vec<StatusMapping>, Vec<(Ipv4Addr, Mapping)>);

/// What each server's agent knows.
fn agents(lab: &Lab) -> Vec<Knowledge> {
    let of_server = |node: &NodeState| {
        let mappings = status::read(status_socket(&lab.state.lab, &node.name)).unwrap().mappings;
        (mappings, HostMaps::open_pinned(lab.pins(&node.name)).unwrap().entries().unwrap())
    };
    lab.state.nodes.iter().filter(|node| node.role == Role::Server).map(of_server).collect()
}

/// VL2 4.2.2: "all anycast addresses remain live, and servers can remain unaware of the network churn".
#[test]
fn neither_flows_nor_agents_notice_that_a_dead_intermediates_address_has_moved() {
    if !can_run() {
        return;
    }
    let name = lab_name("vd");
    let _gone = Gone(name.clone());
    let mut scenario = testbed([1, 1, 1, 1], Overlay::Vl2);
    // As many anycast LAs as Intermediates: each dies with its only owner.
    let narrow = AddressingOptions { ecmp_width: 1, ..AddressingOptions::default() };
    scenario.addresses = AddressPlan::new(&scenario.fabric, narrow).unwrap();
    let lab = up(&scenario, &options(&name), &Quiet).unwrap();
    let group = &scenario.addresses.anycast_groups()[0];
    let owner = lab.plan.node(group.members[0]).name.clone();

    let servers = ["s1", "s2", "s3", "s4"];
    let pairs = servers.iter().flat_map(|from| servers.iter().map(move |to| (*from, *to)));
    let mut connections: Vec<[TcpStream; 2]> =
        pairs.filter(|(from, to)| from != to).map(|(from, to)| connection(&lab, from, to)).collect();
    exchange(&mut connections);
    let before = agents(&lab);
    let bounces = |(_, entries): &Knowledge| entries.iter().any(|(_, mapping)| mapping.anycast_la == group.address);
    assert!(before.iter().any(bounces), "some traffic goes by {owner}: {before:?}");

    let dead = Fault { at: Nanos(0), lasts: None, kind: FaultKind::SwitchDown { node: owner.clone() } };
    let mut actuator = LabActuator::new(&lab);
    for what in ["fails", "returns"] {
        let change = if what == "fails" { actuator.apply(&dead) } else { actuator.repair(&dead) };
        change.unwrap();
        exchange(&mut connections);
        assert_eq!(agents(&lab), before, "{owner} {what}");
    }
}
