//! VL2 in a lab: real agents, a real directory, the shipped eBPF programs, real TCP.

mod common;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Gone, Quiet, can_run, daemon_program, lab_name, options, pair, testbed};
use weft_lab::doctor::{Verdict, path_checks};
use weft_lab::{
    CaptureFilter, CaptureOptions, Lab, LabEngine, LabOptions, LabState, capture, home, in_namespace, kernel_table, up,
};
use weft_scenario::engine::{Engine, Overlay, Trial};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::Workload;

/// Sends `bytes` over TCP from one server's AA to another's; how many arrived.
fn transfer(lab: &Lab, from: &str, to: &str, bytes: usize) -> usize {
    let place = |node: &str| {
        let node = lab.state.node(node).unwrap();
        (home::namespace_path(&node.namespace), node.aa.unwrap())
    };
    let ((near, _), (far, aa)) = (place(from), place(to));
    let listener = in_namespace(&far, || TcpListener::bind((aa, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut received = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
            received.len()
        });
        in_namespace(&near, || {
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
            stream.write_all(&vec![7; bytes]).unwrap();
        })
        .unwrap();
        receiver.join().unwrap()
    })
}

#[test]
fn a_packet_at_a_tor_uplink_has_both_outer_headers() {
    if !can_run() {
        return;
    }
    let name = lab_name("va");
    let _gone = Gone(name.clone());
    let lab = up(&pair(Overlay::Vl2), &options(&name), &Quiet).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let wanted = CaptureOptions {
        lab: name,
        node: "tor1".into(),
        interface: "int1".into(),
        file: directory.path().join("vl2.pcapng"),
        filter: CaptureFilter { host: lab.state.node("s2").unwrap().aa, protocol: Some(6), arp: false },
        packets: Some(10),
        duration: Some(Duration::from_secs(10)),
    };
    let captured = std::thread::scope(|scope| {
        let capturing = scope.spawn(|| capture(&wanted, &|| false).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(transfer(&lab, "s1", "s2", 100_000), 100_000);
        capturing.join().unwrap()
    });
    assert_eq!((captured.packets, captured.dropped), (10, 0));
    let fields = ["ip.src", "ip.dst", "ip.proto", "ip.checksum.status", "tcp.dstport"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&wanted.file).args(["-o", "ip.check_checksum:TRUE", "-T", "fields"]);
    tshark.args(["-Y", "ip.src == 20.0.0.1"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let Ok(output) = tshark.output() else {
        eprintln!("skipped: tshark is missing");
        return;
    };
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
        assert_eq!(check.verdict, Verdict::Ok, "{check:?}");
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
    assert!(back > mended && back - mended < 3_000_000_000, "{} ms", (back - mended) / 1_000_000);
    assert!(records.events.iter().any(|event| event.kind == "adjacency" && event.time_ns > broken));
    let start = Instant::now();
    session.close().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(!home::lab_names().contains(&name));
}
