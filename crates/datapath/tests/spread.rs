//! Other paths for flows under way: segments in, outer sources out (VL2 4.2.2).

mod common;

use std::net::Ipv4Addr;
use std::time::Duration;

use common::*;
use weft_datapath::DatapathError;
use weft_datapath::frame::FrameInput;
use weft_datapath::host::HostDatapath;
use weft_datapath::spread::Spread;

const ACK: u8 = 0x10;
const SYN: u8 = 0x02;
/// So short that every packet of a test comes after it.
const AT_ONCE: Duration = Duration::from_nanos(1);
/// So long that no test sees the end of it.
const NEVER: Duration = Duration::from_secs(3600);

fn host_with(spread: Spread) -> Option<HostDatapath> {
    let host = available(HostDatapath::load(&host_config_with(|config| config.spread = spread)))?;
    host.set(PEER_AA, &MAPPING).unwrap();
    Some(host)
}

fn rehash(hold: Duration, large_bytes: u64) -> Option<HostDatapath> {
    host_with(Spread::Rehash { hold, large_bytes, only_timeouts: false })
}

fn segment(sequence: u32, flags: u8, payload_bytes: usize) -> Ipv4 {
    let mut payload = vec![0x30, 0x39, 0x00, 0x50];
    payload.extend(sequence.to_be_bytes());
    payload.extend([0, 0, 0, 1, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    payload.resize(20 + payload_bytes, 7);
    Ipv4 { protocol: 6, payload, ..Ipv4::default() }
}

/// Sends a packet; its outer source. Everything else about the frame is as ever.
#[track_caller]
fn source(host: &HostDatapath, packet: &Ipv4) -> Ipv4Addr {
    let frame = packet.frame();
    let output = host.run(&FrameInput { bytes: &frame, ..FrameInput::default() }).expect("the program runs");
    let outer = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&output.bytes[at..at + 4]).unwrap());
    let source = outer(14 + 12);
    assert_eq!(outer(34 + 12), source, "both headers carry one hash");
    assert_eq!(source.octets()[0], 100, "from the block of hashes");
    let inner = packet.bytes();
    let to_tor = wrapped(&inner, source, MAPPING.tor_la, inner[1]);
    let to_intermediate = wrapped(&to_tor, source, MAPPING.anycast_la, inner[1]);
    assert_frame(&output.bytes, &ethernet(GATEWAY_MAC, SERVER_MAC, 0x0800, &to_intermediate));
    source
}

fn moves(host: &HostDatapath) -> Vec<(&'static str, u64)> {
    counted(host.spread_counters().unwrap())
}

#[test]
fn a_large_flow_that_times_out_moves_and_stays_there() {
    let Some(host) = rehash(AT_ONCE, 0) else { return };
    let packet = segment(1_000, ACK, 100);
    let first = source(&host, &packet);
    assert_eq!(first, source_of(&packet.bytes()), "before a loss the five-tuple alone decides");
    assert_eq!(source(&host, &segment(1_100, ACK, 100)), first);
    let moved = source(&host, &packet);
    assert_ne!(moved, first);
    assert_eq!(source(&host, &segment(1_200, ACK, 100)), moved);
    assert_eq!(moves(&host), [("kept", 2), ("moved_after_stall", 1)]);
}

/// Losses come one after another until the choice is old enough to be made anew; then nothing is sent for as long again.
#[test]
fn under_the_papers_rule_a_loss_is_no_reason_and_a_timeout_is() {
    let hold = Duration::from_millis(500);
    let rule = Spread::Rehash { hold, large_bytes: 0, only_timeouts: true };
    let Some(host) = host_with(rule) else { return };
    let packet = segment(1_000, ACK, 100);
    let first = source(&host, &packet);
    let mut sequence = 1_000;
    let begun = std::time::Instant::now();
    while begun.elapsed() < hold + hold / 5 {
        sequence += 100;
        source(&host, &segment(sequence, ACK, 100));
        assert_eq!(source(&host, &segment(sequence, ACK, 100)), first, "a loss");
    }
    std::thread::sleep(2 * hold);
    assert_ne!(source(&host, &packet), first, "a timeout");
    let (stayed, moved): (Vec<_>, Vec<_>) =
        moves(&host).into_iter().partition(|(name, _)| *name != "moved_after_stall");
    assert!(stayed.iter().any(|(name, count)| *name == "stayed_after_loss" && *count > 0), "{stayed:?}");
    assert_eq!(moved, [("moved_after_stall", 1)]);
}

#[test]
fn sequence_numbers_wrap() {
    let Some(host) = rehash(AT_ONCE, 0) else { return };
    let first = source(&host, &segment(u32::MAX - 50, ACK, 100));
    assert_eq!(source(&host, &segment(49, ACK, 100)), first, "behind the wrap, but new");
    assert_ne!(source(&host, &segment(u32::MAX - 50, ACK, 100)), first);
}

#[test]
fn small_flows_and_those_that_chose_a_moment_ago_stay() {
    for (hold, large_bytes) in [(AT_ONCE, 1_000_000), (NEVER, 0)] {
        let Some(host) = rehash(hold, large_bytes) else { return };
        let packet = segment(1_000, ACK, 100);
        let first = source(&host, &packet);
        assert!((0..20).all(|_| source(&host, &packet) == first));
        assert_eq!(moves(&host), [("kept", 20)]);
    }
}

#[test]
fn a_new_connection_with_the_same_ports_begins_anew() {
    let Some(host) = rehash(AT_ONCE, 0) else { return };
    let packet = segment(1_000, ACK, 100);
    let first = source(&host, &packet);
    assert_ne!(source(&host, &packet), first);
    assert_eq!(source(&host, &segment(77, SYN, 0)), first);
    assert_eq!(source(&host, &segment(78, ACK, 100)), first, "nothing of it is known to be sent before");
}

#[test]
fn acknowledgements_follow_their_flow_and_never_move_it() {
    let Some(host) = rehash(AT_ONCE, 0) else { return };
    let packet = segment(1_000, ACK, 100);
    source(&host, &packet);
    let moved = source(&host, &packet);
    assert_eq!(source(&host, &segment(900, ACK, 0)), moved);
    assert_eq!(source(&host, &segment(1_100, ACK, 0)), moved);
}

#[test]
fn flowlets_move_after_a_pause_whatever_they_send() {
    let Some(host) = host_with(Spread::Flowlets { gap: AT_ONCE }) else { return };
    let sources: std::collections::BTreeSet<_> =
        (0..50).map(|n| source(&host, &segment(1_000 + n * 100, ACK, 100))).collect();
    assert!(sources.len() > 45, "{} sources", sources.len());
    assert_eq!(moves(&host), [("moved_after_pause", 49)]);
    let Some(patient) = host_with(Spread::Flowlets { gap: NEVER }) else { return };
    let first = source(&patient, &segment(1_000, ACK, 100));
    assert!((0..50).all(|_| source(&patient, &segment(1_000, ACK, 100)) == first));
}

#[test]
fn without_a_rule_and_without_tcp_nothing_moves() {
    let udp = Ipv4::default();
    for spread in [Spread::Never, Spread::Flowlets { gap: AT_ONCE }] {
        let Some(host) = host_with(spread) else { return };
        let first = source(&host, &udp);
        assert!((0..20).all(|_| source(&host, &udp) == first));
    }
    let Some(host) = host_with(Spread::Never) else { return };
    let packet = segment(1_000, ACK, 100);
    assert!((0..20).all(|_| source(&host, &packet) == source_of(&packet.bytes())));
    assert_eq!(moves(&host), []);
}

#[test]
fn a_rule_without_time_is_refused() {
    let zero = Spread::Rehash { hold: Duration::ZERO, large_bytes: 1, only_timeouts: false };
    for spread in [zero, Spread::Flowlets { gap: Duration::ZERO }] {
        let refused = HostDatapath::load(&host_config_with(|config| config.spread = spread)).map(drop);
        assert!(matches!(refused, Err(DatapathError::Config { field: "spread", .. })), "{refused:?}");
    }
}
