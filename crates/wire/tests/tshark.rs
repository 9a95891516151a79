//! An independent reader: tshark decodes what this crate writes and agrees on every field and checksum.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weft_wire::ethernet::{self, MacAddress, ethertype};
use weft_wire::vl2::{Stack, encapsulate};
use weft_wire::{arp, bpdu, icmp, listener, pcap, pcapng, udp};

const FIELDS: [&str; 12] = [
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ip.ttl",
    "ip.id",
    "ip.flags.df",
    "ip.dsfield.ecn",
    "ip.len",
    "ip.checksum.status",
    "udp.checksum.status",
    "udp.dstport",
];

/// tshark's words for "verified" and "wrong" in `*.checksum.status`.
const GOOD: &str = "1";
const BAD: &str = "0";

fn frame(packet: &[u8]) -> Vec<u8> {
    let (destination, source) = (MacAddress([0x02, 0x56, 0x4c, 0x32, 0, 1]), MacAddress([0x02, 0, 0, 0, 0, 7]));
    ethernet::Header { destination, source, ethertype: ethertype::IPV4 }.emit_with(packet)
}

fn inner() -> Vec<u8> {
    let (source, destination) = (Ipv4Addr::new(20, 0, 0, 7), Ipv4Addr::new(20, 0, 0, 9));
    udp::packet(SocketAddrV4::new(source, 40000), SocketAddrV4::new(destination, 40001), b"odd").unwrap()
}

fn vl2_packet() -> Vec<u8> {
    let stack = Stack::for_packet(&inner(), Ipv4Addr::new(10, 64, 3, 1), Ipv4Addr::new(10, 255, 0, 1)).unwrap();
    encapsulate(&inner(), &Stack { tos: 2, ..stack }).unwrap()
}

/// A capture file of classic format: link type Ethernet, one microsecond between frames.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (index, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for word in [0, index as u32, len, len] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(frame);
    }
    file
}

/// One row of `fields` per frame, or `None` where there is no tshark.
fn decode(name: &str, frames: &[Vec<u8>], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    if !weft_needs::program("tshark") {
        return None;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.pcap", std::process::id()));
    fs::write(&file, capture(frames)).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&file).args(["-n", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    command.args(["-T", "fields", "-E", "separator=;", "-E", "occurrence=a", "-E", "aggregator=,"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output();
    fs::remove_file(&file).unwrap();
    let output = output.unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    // Flags are written as 1 by older versions and as True by newer ones.
    let text = String::from_utf8(output.stdout).unwrap().replace("True", "1");
    Some(text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect())
}

#[test]
fn all_three_headers_of_a_stack() {
    let whole = vl2_packet();
    let source = Ipv4Addr::new(whole[12], whole[13], whole[14], whole[15]);
    let Some(rows) = decode("stack", &[frame(&whole)], &FIELDS) else { return };
    let expected = [
        "eth:ethertype:ip:ip:ip:udp:data",
        &format!("{source},{source},20.0.0.7"),
        "10.255.0.1,10.64.3.1,20.0.0.9",
        "4,4,17",
        "64,64,64",
        "0x0000,0x0000,0x0000",
        "1,1,1",
        "2,2,0",
        "71,51,31",
        &[GOOD, GOOD, GOOD].join(","),
        GOOD,
        "40001",
    ];
    assert_eq!(rows, [expected]);
}

/// The control: a reader that would call everything good would pass the test above as well.
#[test]
fn a_damaged_header_is_called_damaged() {
    let damaged = |offset: usize| {
        let mut packet = vl2_packet();
        packet[offset] ^= 0x01;
        frame(&packet)
    };
    let frames = [damaged(8), damaged(28), damaged(48), damaged(70)];
    let Some(rows) = decode("damaged", &frames, &["ip.checksum.status", "udp.checksum.status"]) else { return };
    let expected = [
        [&[BAD, GOOD, GOOD].join(","), GOOD],
        [&[GOOD, BAD, GOOD].join(","), GOOD],
        [&[GOOD, GOOD, BAD].join(","), GOOD],
        [&[GOOD, GOOD, GOOD].join(","), BAD],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn fragmentation_needed() {
    let message = icmp::fragmentation_needed(&inner(), Ipv4Addr::new(20, 0, 0, 1), 1460).unwrap();
    let fields = ["icmp.type", "icmp.code", "icmp.mtu", "icmp.checksum.status", "ip.src", "ip.dst"];
    let Some(rows) = decode("icmp", &[frame(&message)], &fields) else { return };
    assert_eq!(rows, [["3", "4", "1460", GOOD, "20.0.0.1,20.0.0.7", "20.0.0.7,20.0.0.9"]]);
}

#[test]
fn arp_question_and_answer() {
    let host = MacAddress([0x02, 0, 0, 0, 0, 7]);
    let request = arp::Packet::request(host, Ipv4Addr::new(20, 0, 0, 7), Ipv4Addr::new(20, 0, 0, 9));
    let reply = request.reply(MacAddress([0x02, 0x56, 0x4c, 0x32, 0, 1]));
    let fields =
        ["eth.dst", "arp.opcode", "arp.src.hw_mac", "arp.src.proto_ipv4", "arp.dst.hw_mac", "arp.dst.proto_ipv4"];
    let Some(rows) = decode("arp", &[request.to_frame(), reply.to_frame()], &fields) else { return };
    let (host, switch) = ("02:00:00:00:00:07", "02:56:4c:32:00:01");
    let asked = ["ff:ff:ff:ff:ff:ff", "1", host, "20.0.0.7", "00:00:00:00:00:00", "20.0.0.9"];
    assert_eq!(rows, [asked, [host, "2", switch, "20.0.0.9", host, "20.0.0.7"]]);
}

/// The other way round: tshark writes, and we read.
/// A bridge's BPDU, with its header: of the spanning tree protocol, the rapid one, and word of a change.
fn bpdu(version_and_type: [u8; 2], root: [u8; 8]) -> Vec<u8> {
    let body = [
        &[0x42, 0x42, 3, 0, 0][..],
        &version_and_type,
        &[0],
        &root,
        &[0, 0, 0, 4],
        &[0x80, 2, 2, 0, 0, 0, 0, 9],
        &[0x80, 1, 1, 0, 20, 0, 2, 0, 15, 0, 0],
    ]
    .concat();
    let header = [&bpdu::GROUP.0[..], &[2, 0, 0, 0, 0, 9], &(body.len() as u16).to_be_bytes()].concat();
    [header, body].concat()
}

#[test]
fn the_root_of_a_spanning_tree() {
    let root = [0x90, 5, 2, 0, 0, 0, 0, 7];
    let frames = [bpdu([0, 0], root), bpdu([2, 2], root)];
    for frame in &frames {
        let view = bpdu::View::new(&frame[ethernet::HEADER_LEN..]).unwrap();
        assert_eq!((view.root().priority(), view.root().mac()), (0x9005, MacAddress([2, 0, 0, 0, 0, 7])));
        for len in 0..bpdu::LEN_MIN {
            assert!(bpdu::View::new(&frame[ethernet::HEADER_LEN..][..len]).is_err());
        }
    }
    for bad in [(0, 0x43), (2, 4), (4, 1), (6, 0x80), (6, 1)] {
        let mut bytes = frames[0][ethernet::HEADER_LEN..].to_vec();
        bytes[bad.0] = bad.1;
        assert!(bpdu::View::new(&bytes).is_err(), "{bad:?}");
    }
    let Some(rows) = decode("bpdu", &frames, &["stp.root.prio", "stp.root.ext", "stp.root.hw", "_ws.malformed"]) else {
        return;
    };
    assert_eq!(rows, [["36864", "5", "02:00:00:00:00:07", ""]; 2]);
}

#[test]
fn a_topology_change_and_its_acknowledgement() {
    let source = MacAddress([2, 0, 0, 0, 0, 7]);
    let plain = bpdu([0, 0], [0x80, 0, 2, 0, 0, 0, 0, 1]);
    let at_flags = ethernet::HEADER_LEN + 7;
    let flagged = |flags: u8, version| {
        let mut frame = bpdu([version, version], [0x80, 0, 2, 0, 0, 0, 0, 1]);
        frame[at_flags] = flags;
        frame
    };
    for (frame, is_acknowledged) in
        [(plain, false), (flagged(0x80, 0), true), (flagged(0x01, 0), false), (flagged(0x80, 2), false)]
    {
        let view = bpdu::View::new(&frame[ethernet::HEADER_LEN..]).unwrap();
        assert_eq!(view.acknowledges_change(), is_acknowledged, "{:#04x}", frame[at_flags]);
    }
    let frames = [bpdu::topology_change(source), flagged(0x80, 0)];
    assert!(bpdu::View::new(&frames[0][ethernet::HEADER_LEN..]).is_err(), "it names no root");
    let fields = ["eth.src", "stp.version", "stp.type", "stp.flags.tcack", "_ws.malformed"];
    let Some(rows) = decode("change", &frames, &fields) else { return };
    assert_eq!(rows[0], ["02:00:00:00:00:07", "0", "0x80", "", ""]);
    assert_eq!(rows[1][1..], ["0", "0x00", "1", ""]);
}

#[test]
fn questions_about_groups() {
    let mac = MacAddress([2, 0, 0, 0, 0, 7]);
    let frames = [listener::igmp_query(mac, 2500, 300), listener::mld_query(mac, 2500, 125)];
    let igmp =
        ["igmp.type", "igmp.version", "igmp.max_resp", "igmp.qqic", "igmp.qrv", "igmp.checksum.status", "ip.ttl"];
    let mld = ["icmpv6.type", "icmpv6.mld.maximum_response_code", "icmpv6.mld.qqi", "icmpv6.checksum.status"];
    let more = ["ip.src", "ipv6.src", "ipv6.hlim", "ipv6.opt.router_alert", "_ws.malformed"];
    let fields: Vec<&str> = igmp.into_iter().chain(mld).chain(more).collect();
    let Some(rows) = decode("groups", &frames, &fields) else { return };
    // 300 s as a code: 0x80, exponent 1, mantissa 2 of 16: (16 + 2) << 4 are 288.
    let wanted = [
        ["0x11", "3", "25", "146", "2", GOOD, "1", "", "", "", "", "0.0.0.0", "", "", "", ""],
        ["", "", "", "", "", "", "", "130", "2500", "125", GOOD, "", "fe80::ff:fe00:7", "1", "0", ""],
    ];
    assert_eq!(rows, wanted);
}

#[test]
fn files_of_tshark_are_read_in_every_format() {
    if !weft_needs::program("tshark") {
        return;
    }
    let frames: Vec<Vec<u8>> = [20, 77, 1200].map(|bytes| frame(&vec![bytes as u8; bytes])).into();
    let name = |kind: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("read-{}.{kind}", std::process::id()));
    let ours = name("ours");
    let mut writer = pcapng::Writer::new(fs::File::create(&ours).unwrap(), "eth0").unwrap();
    for frame in &frames {
        // Captured to the end, but for the last one.
        let captured = frame.len().min(1000);
        writer.write(Duration::from_secs(1), frame.len() as u32, &frame[..captured]).unwrap();
    }
    drop(writer);
    for kind in ["pcap", "nsecpcap", "pcapng"] {
        let theirs = name(kind);
        let output =
            Command::new("tshark").arg("-r").arg(&ours).args(["-F", kind, "-w"]).arg(&theirs).output().unwrap();
        assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
        let file = fs::read(&theirs).unwrap();
        fs::remove_file(&theirs).unwrap();
        let read: Vec<_> = pcap::Reader::new(&file).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), frames.len(), "{kind}");
        for (read, frame) in read.iter().zip(&frames) {
            assert_eq!(read.original_bytes as usize, frame.len(), "{kind}");
            assert_eq!(read.bytes, &frame[..frame.len().min(1000)], "{kind}");
        }
    }
    fs::remove_file(&ours).unwrap();
}
