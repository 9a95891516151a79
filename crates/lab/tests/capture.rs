//! A capture is a file that an independent reader understands.

mod common;

use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::hosts::{SETTLE, capturing, on};
use common::{Gone, PATIENCE, Quiet, can_run, lab_name, options, pair, wait_for};
use weft_lab::{CaptureFilter, CaptureOptions, Lab, capture, up};
use weft_scenario::engine::{Overlay, Scenario};

#[test]
fn tshark_reads_what_was_captured() {
    if !can_run() {
        return;
    }
    let name = lab_name("cap");
    let _gone = Gone(name.clone());
    up(&pair(Overlay::Routed), &options(&name), &Quiet).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let wanted = CaptureOptions {
        lab: name.clone(),
        ports: vec!["tor1:int1".parse().unwrap()],
        file: directory.path().join("ospf.pcapng"),
        filter: CaptureFilter { protocol: Some(89), ..CaptureFilter::default() },
        packets: Some(8),
        duration: Some(PATIENCE),
        snap_bytes: None,
    };
    let summary = capture(&wanted, &|| false).unwrap();
    assert_eq!((summary.packets, summary.dropped), (8, 0));
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "ospf.msg", "-e", "ip.checksum.status"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&wanted.file).args(["-o", "ip.check_checksum:TRUE"]).args(fields);
    if weft_needs::program("tshark") {
        let text = String::from_utf8(tshark.output().unwrap().stdout).unwrap();
        assert_eq!(text.lines().count(), 8, "{text}");
        // Updates and acknowledgements of what routing learned a moment ago may be among the hellos.
        let good = |line: &str| ["1", "4", "5"].iter().any(|kind| line == format!("tor1:int1\t{kind}\t1"));
        assert!(text.lines().all(good), "OSPF with good checksums: {text}");
        assert!(text.lines().filter(|line| *line == "tor1:int1\t1\t1").count() >= 4, "hellos: {text}");
    }
    let nothing = CaptureOptions {
        filter: CaptureFilter { arp: true, ..CaptureFilter::default() },
        duration: Some(Duration::from_millis(200)),
        ..wanted.clone()
    };
    assert_eq!(capture(&nothing, &|| false).unwrap().packets, 0);
    for (port, said) in [
        ("tor1:eth9", "node `tor1` has no interface `eth9`; it has: int1, s1, dir1"),
        ("x:int1", "has no node `x`; it has: int1, tor1, "),
    ] {
        let error = capture(&CaptureOptions { ports: vec![port.parse().unwrap()], ..wanted.clone() }, &|| false);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// What tshark says of each frame that the filter keeps.
fn frames(file: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// What tshark says of the blocks of the file itself.
fn blocks(file: &Path, field: &str) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-X", "read_format:MIME Files Format", "-T", "fields", "-E", "aggregator=;"]);
    let text = String::from_utf8(tshark.args(["-e", &format!("pcapng.{field}")]).output().unwrap().stdout).unwrap();
    text.trim().split(';').map(str::to_owned).collect()
}

/// A number of the root of the queues of s1's link: frames refused (`drops`), bytes that wait (`backlog`).
fn queue_of_s1(lab: &Lab, what: &str) -> u64 {
    let show = || Command::new("tc").args(["-s", "-j", "qdisc", "show", "dev", "eth0"]).output().unwrap().stdout;
    let shown: serde_json::Value = serde_json::from_slice(&on(lab, "s1", show)).unwrap();
    shown.as_array().unwrap().iter().find(|one| one["root"] == true).unwrap()[what].as_u64().unwrap()
}

#[test]
fn many_ports_are_in_one_file_in_order_and_so_is_what_was_dropped() {
    if !can_run() {
        return;
    }
    let name = lab_name("many");
    let _gone = Gone(name.clone());
    let scenario = Scenario { shaped: true, ..pair(Overlay::Vl2) };
    let lab = up(&scenario, &options(&name), &Quiet).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let wanted = CaptureOptions {
        lab: name.clone(),
        // A node's only port, a neighbour, an interface; the first of them once more.
        ports: ["s1", "tor1:s1", "int1:tor1", "s1:tor1"].map(|port| port.parse().unwrap()).into(),
        file: directory.path().join("many.pcapng"),
        filter: CaptureFilter::default(),
        packets: None,
        duration: None,
        snap_bytes: None,
    };
    let [from, to] = ["s1", "s2"].map(|server| lab.state.node(server).unwrap().aa.unwrap());
    let payloads: Vec<Vec<u8>> = (0..40u8).map(|number| vec![number; 10 + 30 * usize::from(number)]).collect();
    let before = queue_of_s1(&lab, "drops");
    let short = CaptureOptions { file: directory.path().join("short.pcapng"), snap_bytes: Some(200), ..wanted.clone() };
    let captured = capturing(&[wanted.clone(), short.clone()], || {
        on(&lab, "s1", || {
            let socket = UdpSocket::bind((from, 0)).unwrap();
            payloads.iter().for_each(|payload| assert!(socket.send_to(payload, (to, 4477)).is_ok()));
            // What the agent's program takes from nobody, and more than the link's queue holds.
            let ping = ["-b", "-n", "-q", "-c", "5", "-i", "0.01", "-W", "1", "-I", "eth0", "255.255.255.255"];
            Command::new("ping").args(ping).output().unwrap();
            for _ in 0..12 {
                let flood = UdpSocket::bind((from, 0)).unwrap();
                flood.set_nonblocking(true).unwrap();
                // Whatever it takes at once.
                (0..100).for_each(|_| drop(flood.send_to(&[0; 1400], (to, 4478))));
            }
        });
        // Until the last one has crossed: half a megabyte at 20 Mbit/s.
        wait_for("the queue is empty", || queue_of_s1(&lab, "backlog") == 0);
        std::thread::sleep(SETTLE);
    });
    let lost = queue_of_s1(&lab, "drops") - before;
    assert_eq!((captured[0].ports, captured[0].dropped), (3, 0));
    if !weft_needs::program("tshark") {
        return;
    }
    let fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.len", "udp.payload"];
    let seen = frames(&wanted.file, "udp.dstport == 4477 && !icmp", &fields);
    for (interface, direction) in [("s1:eth0", "0x00000002"), ("tor1:s1", "0x00000001"), ("int1:tor1", "0x00000001")] {
        let sent = payloads.iter().map(|payload| {
            let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
            // Ethernet, two outer headers, IPv4, UDP.
            vec![interface.to_owned(), direction.into(), (14 + 3 * 20 + 8 + payload.len()).to_string(), hex]
        });
        let seen: Vec<_> = seen.iter().filter(|frame| frame[0] == interface).cloned().collect();
        assert!(seen.iter().eq(&sent.collect::<Vec<_>>()), "{interface}: {seen:?}");
    }
    let cut = frames(&short.file, "udp.dstport == 4477 && !icmp", &["frame.len", "frame.cap_len"]);
    let lengths = seen.iter().map(|frame| frame[2].parse::<u32>().unwrap());
    assert!(lengths.map(|all| vec![all.to_string(), all.min(200).to_string()]).eq(cut), "what was cut is still known");
    let times: Vec<u64> = frames(&wanted.file, "frame", &["frame.time_epoch"])
        .iter()
        .map(|time| time[0].replace('.', "").parse().unwrap())
        .collect();
    assert_eq!(times.len() as u64, captured[0].packets);
    assert!(times.is_sorted(), "one order for all ports");
    let comments = blocks(&wanted.file, "options.option.data.comment");
    assert!(lost > 0, "the flood was no flood");
    // `ping` tries again for a second what the kernel says was not sent.
    let refused =
        comments[0].strip_prefix("broadcast_unsupported at s1: ").and_then(|rest| rest.strip_suffix(" dropped"));
    assert!(refused.is_some_and(|count| count.parse::<u32>().unwrap() >= 5), "{comments:?}");
    assert_eq!(comments[1..], [format!("queue of s1:eth0: {lost} dropped")]);
    assert_eq!(blocks(&wanted.file, "options.option.data.interface.name"), ["s1:eth0", "tor1:s1", "int1:tor1"]);
    let peers = blocks(&wanted.file, "options.option.data.interface.description");
    assert_eq!(peers, ["to tor1:s1", "to s1:eth0", "to tor1:int1"]);
    assert_eq!(blocks(&wanted.file, "options.option.data.interface.speed"), ["20000000", "20000000", "100000000"]);
    let written: u64 = blocks(&wanted.file, "options.option.data.interface.delivered_to_user")
        .iter()
        .map(|count| count.parse::<u64>().unwrap())
        .sum();
    assert_eq!(written, captured[0].packets);
}

#[test]
fn who_writes_slowly_loses_frames_and_counts_them() {
    if !can_run() {
        return;
    }
    let name = lab_name("caps");
    let _gone = Gone(name.clone());
    let lab = up(&pair(Overlay::Routed), &options(&name), &Quiet).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let wanted = CaptureOptions {
        lab: name.clone(),
        ports: vec!["s1:lo".parse().unwrap()],
        file: pipe.clone(),
        filter: CaptureFilter::default(),
        packets: None,
        duration: None,
        snap_bytes: Some(60_000),
    };
    let over = AtomicBool::new(false);
    let (summary, bytes) = std::thread::scope(|scope| {
        let captured = scope.spawn(|| capture(&wanted, &|| over.load(Ordering::Relaxed)).unwrap());
        let mut reader = File::open(&pipe).unwrap();
        on(&lab, "s1", || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = receiver.local_addr().unwrap();
            // Each is seen twice, on its way out and in: far more than the socket and the window hold.
            (0..2000).for_each(|_| drop(socket.send_to(&[7; 59_000], to)));
        });
        over.store(true, Ordering::Relaxed);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        (captured.join().unwrap(), bytes.len() as u64)
    });
    assert!(summary.dropped > 1000 && summary.packets > 100, "{summary:?}");
    assert!(bytes > summary.packets * 59_000, "whole frames: {bytes} bytes");
}
