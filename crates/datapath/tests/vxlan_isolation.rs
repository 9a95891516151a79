//! A thousand segments with the same addresses in each: no frame, whatever is in it, comes out in another segment.

#![allow(clippy::print_stderr)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Stdio;

use common::vxlan::{LOCAL, Node, Outer, PEER, arriving, vni};
use common::*;
use weft_datapath::frame::FrameInput;
use weft_datapath::vxlan::{
    self, AccessRule, Attachment, Capacities, Flood, To, VniSettings, Vtep, VtepOptions, VtepProgram,
};

const SEGMENTS: u32 = 1000;
const FRAMES: u32 = 6000;
/// Not 1 to 1000, so that a mask or a shift that is off would show.
const STEP: u32 = 16_777;
const STATIONS: u8 = 4;

fn number_of(segment: u32) -> u32 {
    1 + segment * STEP
}

fn station(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, n]
}

/// Segment n's port is a device of its own that keeps count of what leaves by it.
fn bed() -> Option<(Node, Vtep, BTreeMap<u32, u32>)> {
    if !weft_needs::root() {
        return None;
    }
    let bed = Node::new("iso");
    bed.silence();
    let mut batch = bed.node.command("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().expect("ip runs");
    let lines: String = (0..SEGMENTS)
        .map(|n| format!("link add p{n} type bridge mcast_snooping 0\nlink set dev p{n} up mtu 1500\n"))
        .collect();
    batch.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("ip reads");
    assert!(batch.wait().expect("ip ends").success());
    let capacities = Capacities { vnis: SEGMENTS, ports: SEGMENTS + 1, ..Capacities::default() };
    let mut vtep = bed.vtep(&VtepOptions { capacities, attachment: Attachment::Filter, ..VtepOptions::new(LOCAL) })?;
    let ports = bed.node.enter_with(|| {
        let settings = VniSettings { flood: Flood::HeadEnd(vec![PEER]), ..VniSettings::default() };
        let mut ports = BTreeMap::new();
        for segment in 0..SEGMENTS {
            let (number, ifindex) = (vni(number_of(segment)), vxlan::interface_index(&format!("p{segment}")).unwrap());
            vtep.add_vni(number, &settings).unwrap();
            vtep.attach_access(ifindex, number, AccessRule::default()).unwrap();
            ports.insert(segment, ifindex);
            // Half of the stations are known here, one is behind the peer, the rest is not known.
            for known in 0..STATIONS / 2 {
                vtep.static_entry(number, station(known), To::Port(ifindex)).unwrap();
            }
            vtep.static_entry(number, station(STATIONS), To::Remote(PEER)).unwrap();
        }
        ports
    });
    Some((bed, vtep, ports))
}

/// Frames that left by each port, by segment.
fn left_by(bed: &Node) -> BTreeMap<u32, u64> {
    let table = bed.node.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev").expect("procfs is mounted"));
    let of_line = |line: &str| {
        let (name, numbers) = line.trim().split_once(':')?;
        let segment = name.strip_prefix('p')?.parse().ok()?;
        Some((segment, numbers.split_whitespace().nth(9)?.parse().ok()?))
    };
    table.lines().filter_map(of_line).collect()
}

#[test]
fn frames_of_a_thousand_segments_never_cross() {
    let Some((bed, vtep, ports)) = bed() else { return };
    let mut random = Random(1000);
    let before = left_by(&bed);
    let mut expected = before.clone();
    let far = common::tap::Tap::open(&bed.far, "up", std::time::Duration::from_millis(1));
    let mut unknown_segments = 0;
    for turn in 0..FRAMES {
        let segment = random.below(u64::from(SEGMENTS)) as u32;
        let destination = match random.below(8) {
            0 => BROADCAST_MAC,
            n => station(n as u8),
        };
        let payload = random.bytes(60);
        let inner = ethernet(destination, station(200), 0x88b5, &payload);
        if turn % 2 == 0 {
            // From the underlay; sometimes of a segment that is not here, next to one that is.
            let stray = random.below(10) == 0;
            let number = number_of(segment) + u32::from(stray);
            far.send(&Outer { vni: number, ..arriving() }.frame(&inner));
            unknown_segments += u64::from(stray);
            if !stray && destination != station(STATIONS) {
                *expected.get_mut(&segment).expect("a port for each") += 1;
            }
        } else {
            let input = FrameInput { bytes: &inner, ifindex: ports[&segment], ..FrameInput::default() };
            let output = bed.node.enter_with(|| vtep.run(VtepProgram::Access, &input)).unwrap();
            if output.bytes.len() > inner.len() {
                let sent = u32::from_be_bytes([0, output.bytes[46], output.bytes[47], output.bytes[48]]);
                assert_eq!(sent, number_of(segment), "it names its own segment");
                assert_frame(&output.bytes[50..], &inner);
            }
        }
        if turn % 64 == 0 {
            settle(&vtep, turn);
        }
    }
    settle(&vtep, FRAMES - 1);
    let counters: BTreeMap<&str, u64> = vtep.counters().unwrap().into_iter().collect();
    eprintln!("{:?} {:?}", counted(vtep.counters().unwrap()), counted(vtep.events().unwrap()));
    let left = left_by(&bed);
    let wrong: Vec<_> = left.iter().filter(|(segment, count)| expected[*segment] != **count).collect();
    assert!(wrong.is_empty(), "segments by whose ports too many or too few frames left: {wrong:?}");
    assert_eq!(counters["unknown_vni"], unknown_segments);

    // What was learned was learned in the segment where it was seen, and nowhere else.
    let seen: BTreeSet<(u32, [u8; 6])> = vtep.entries(None).unwrap().iter().map(|e| (e.vni.get(), e.mac)).collect();
    let numbers: BTreeSet<u32> = (0..SEGMENTS).map(number_of).collect();
    assert!(seen.iter().all(|(number, mac)| numbers.contains(number) && mac[..5] == station(0)[..5]));
}

/// Waits until everything that was sent has been counted.
fn settle(vtep: &Vtep, turn: u32) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let total: u64 = vtep.counters().unwrap().iter().map(|(_, count)| count).sum();
        if total > u64::from(turn) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{total} of {} frames were counted", turn + 1);
        std::thread::yield_now();
    }
}
