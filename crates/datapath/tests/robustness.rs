//! Anything at all into every program: it does what the rules say or leaves the frame as it is, and counts the reason.

mod common;

use common::*;
use weft_datapath::DatapathError;
use weft_datapath::frame::{FrameInput, FrameOutput, Verdict};
use weft_datapath::host::HostDatapath;
use weft_datapath::switch::{SwitchDatapath, Tier};
use weft_wire::vl2;

const FRAMES: usize = 4000;

/// What weft-wire says a server must send, if the packet is one to [`PEER_AA`].
fn expected_encapsulation(frame: &[u8]) -> Option<Vec<u8>> {
    let (header, packet) = frame.split_at(14);
    let for_peer = header[12..14] == [8, 0] && packet.len() >= 20 && packet[16..20] == PEER_AA.octets();
    if !for_peer {
        return None;
    }
    let stack = vl2::Stack::for_packet(packet, MAPPING.tor_la, MAPPING.anycast_la).ok()?;
    let sent = vl2::encapsulate(packet, &stack).ok()?;
    let total_length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    if sent.len() > 1600 {
        return None;
    }
    Some([&GATEWAY_MAC[..], &header[6..14], &sent, &packet[total_length..]].concat())
}

/// What weft-wire says an Intermediate must pass on, if the packet is an encapsulated one for [`ANYCAST`]. Stricter
/// than there: an outer header with options, or whose source is no flow hash, is not ours.
fn expected_decapsulation(frame: &[u8]) -> Option<Vec<u8>> {
    let (header, packet) = frame.split_at(14);
    let ours = header[12..14] == [8, 0] && packet.len() >= 20 && packet[16..20] == ANYCAST.octets();
    if !ours || packet[0] != 0x45 || packet[12] != 100 || packet[13] & 0xc0 != 64 {
        return None;
    }
    let inner = vl2::decapsulate_one(packet).ok()?;
    let total_length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    Some([header, &inner, &packet[total_length..]].concat())
}

/// A frame that is often nearly right: one of the patterns with a few bytes changed, cut off or both.
fn nearly(random: &mut Random, patterns: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = patterns[random.below(patterns.len() as u64) as usize].clone();
    for _ in 0..random.below(4) {
        let place = random.below(frame.len() as u64) as usize;
        frame[place] = random.next() as u8;
    }
    match random.below(4) {
        0 => frame.truncate(14 + random.below(frame.len() as u64 - 13) as usize),
        1 => frame.extend(vec![0xee; random.below(30) as usize]),
        _ => {}
    }
    if random.below(8) == 0 {
        let length = 14 + random.below(200) as usize;
        return random.bytes(length);
    }
    frame
}

fn host_patterns() -> Vec<Vec<u8>> {
    vec![
        Ipv4::default().frame(),
        Ipv4 { protocol: 6, options: vec![1; 8], tos: 0xb9, ..Ipv4::default() }.frame(),
        Ipv4 { payload: vec![5; 1600], ..Ipv4::default() }.frame(),
        ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &arp(1, (SERVER_MAC, MY_AA), ([0; 6], PEER_AA))),
    ]
}

fn switch_patterns() -> Vec<Vec<u8>> {
    let packet = Ipv4 { tos: 2, ..Ipv4::default() };
    vec![
        arriving(ANYCAST, 3, &packet),
        arriving(ANYCAST, 1, &packet),
        arriving(ANYCAST, 0, &Ipv4::default()),
        arriving(PEER_TOR, 0, &Ipv4::default()),
    ]
}

/// Short IPv4 frames are refused by BPF_PROG_RUN itself on newer kernels, before the program sees them.
fn unless_too_short(result: Result<FrameOutput, DatapathError>, frame: &[u8]) -> Option<FrameOutput> {
    match result {
        Err(DatapathError::Program { .. }) if frame.len() < 14 + 20 => None,
        result => Some(result.expect("the program runs")),
    }
}

fn check_host(host: &HostDatapath, frame: &[u8]) -> bool {
    let Some(output) = unless_too_short(host.run(&FrameInput { bytes: frame, ..FrameInput::default() }), frame) else {
        return false;
    };
    match (expected_encapsulation(frame), output.verdict) {
        (Some(expected), verdict) => {
            assert_eq!(verdict, Verdict::Next, "{}", dump(frame));
            assert_frame(&output.bytes, &expected);
        }
        (None, Verdict::Redirect) if output.bytes != frame => {
            let is_answer = output.bytes[12..14] == [8, 6] && output.bytes[20..22] == [0, 2];
            assert!(is_answer && output.bytes[6..12] == GATEWAY_MAC, "{}", dump(&output.bytes));
        }
        (None, Verdict::Next | Verdict::Drop | Verdict::Redirect) => assert_frame(&output.bytes, frame),
        (None, other) => panic!("verdict {other:?} for\n{}", dump(frame)),
    }
    true
}

fn check_switch(switch: &SwitchDatapath, frame: &[u8]) -> bool {
    let Some(output) = unless_too_short(switch.run(&FrameInput { bytes: frame, ..FrameInput::default() }), frame)
    else {
        return false;
    };
    match (expected_decapsulation(frame), output.verdict) {
        (Some(expected), verdict) => {
            assert_eq!(verdict, Verdict::Next, "{}", dump(frame));
            assert_frame(&output.bytes, &expected);
        }
        (None, Verdict::Next | Verdict::Drop) => assert_frame(&output.bytes, frame),
        (None, other) => panic!("verdict {other:?} for\n{}", dump(frame)),
    }
    true
}

fn total(counters: Vec<(&'static str, u64)>) -> usize {
    counters.iter().map(|(_, count)| *count as usize).sum()
}

#[test]
fn frames_cut_off_at_every_length_change_nothing() {
    let (Some(host), Some(switch)) = (host(), switch(Tier::Intermediate, &[ANYCAST])) else { return };
    let mut sent = [0, 0];
    for pattern in host_patterns() {
        for length in 14..=pattern.len() {
            sent[0] += usize::from(check_host(&host, &pattern[..length]));
        }
    }
    for pattern in switch_patterns() {
        for length in 14..=pattern.len() {
            sent[1] += usize::from(check_switch(&switch, &pattern[..length]));
        }
    }
    assert_eq!(sent, [total(host.counters().unwrap()), total(switch.counters().unwrap())], "each frame counted once");
}

#[test]
fn random_frames_change_nothing_unless_they_are_ours() {
    let (Some(host), Some(switch)) = (host(), switch(Tier::Intermediate, &[ANYCAST])) else { return };
    let mut random = Random(20_240_501);
    let mut sent = [0, 0];
    for _ in 0..FRAMES {
        sent[0] += usize::from(check_host(&host, &nearly(&mut random, &host_patterns())));
        sent[1] += usize::from(check_switch(&switch, &nearly(&mut random, &switch_patterns())));
    }
    assert_eq!(sent, [total(host.counters().unwrap()), total(switch.counters().unwrap())], "each frame counted once");
    for (counters, wanted) in [(host.counters().unwrap(), "encapsulated"), (switch.counters().unwrap(), "decapsulated")]
    {
        for name in [wanted, "malformed", "passed"] {
            assert!(
                counters.iter().any(|(other, count)| *other == name && *count > 50),
                "{name} hardly met: {counters:?}"
            );
        }
    }
}
