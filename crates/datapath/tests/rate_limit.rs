//! The rate limit at a server's egress: what fits the bucket leaves as without a limit, the rest is dropped and counted.
//!
//! Rates are so low that the bucket gains nothing worth a packet while a test runs.

mod common;

use std::net::Ipv4Addr;

use common::*;
use weft_datapath::frame::{FrameInput, Verdict};
use weft_datapath::host::{HostDatapath, LimitedTraffic, RateLimit};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;

/// A thousand bits a second: a frame of 1500 bytes needs 12 s.
fn limited(burst_bytes: u32, traffic: LimitedTraffic) -> Option<HostDatapath> {
    let limit = RateLimit { bits_per_s: 1000, burst_bytes, traffic };
    let host = available(HostDatapath::load(&host_config_with(|config| config.rate_limit = Some(limit))))?;
    host.set(PEER_AA, &MAPPING).expect("the map has room");
    Some(host)
}

/// A packet whose frame has so many bytes.
fn packet(protocol: u8, frame_bytes: usize) -> Ipv4 {
    Ipv4 { protocol, payload: vec![0x50; frame_bytes - 34], ..Ipv4::default() }
}

fn verdict(host: &HostDatapath, packet: &Ipv4) -> Verdict {
    let frame = packet.frame();
    let output = host.run(&FrameInput { bytes: &frame, ..FrameInput::default() }).expect("the program runs");
    match output.verdict {
        Verdict::Next => assert_frame(&output.bytes, &encapsulated(&packet.bytes())),
        _ => assert_frame(&output.bytes, &frame),
    }
    output.verdict
}

#[test]
fn what_fits_the_bucket_leaves_and_the_rest_is_dropped_and_counted() {
    let Some(host) = limited(3000, LimitedTraffic::NonTcp) else { return };
    let verdicts: Vec<Verdict> = (0..4).map(|_| verdict(&host, &packet(UDP, 1000))).collect();
    assert_eq!(verdicts, [Verdict::Next, Verdict::Next, Verdict::Next, Verdict::Drop]);
    assert_eq!(counted(host.counters().unwrap()), [("encapsulated", 3), ("rate_limited", 1)]);
}

#[test]
fn small_packets_still_fit_where_a_large_one_does_not() {
    let Some(host) = limited(1600, LimitedTraffic::NonTcp) else { return };
    // Those that do not fit lack four hundred bytes and more, which come in three seconds.
    let sizes = [500, 1500, 1000, 600];
    let verdicts = sizes.map(|size| verdict(&host, &packet(UDP, size)));
    assert_eq!(verdicts, [Verdict::Next, Verdict::Drop, Verdict::Next, Verdict::Drop]);
}

#[test]
fn tcp_is_spared_unless_everything_is_limited() {
    let Some(host) = limited(1600, LimitedTraffic::NonTcp) else { return };
    assert_eq!(verdict(&host, &packet(ICMP, 1500)), Verdict::Next);
    for _ in 0..100 {
        assert_eq!(verdict(&host, &packet(TCP, 1500)), Verdict::Next);
    }
    for protocol in [UDP, ICMP, 132, 47] {
        assert_eq!(verdict(&host, &packet(protocol, 1500)), Verdict::Drop, "protocol {protocol}");
    }
    let Some(host) = limited(1600, LimitedTraffic::All) else { return };
    assert_eq!([0; 2].map(|_| verdict(&host, &packet(TCP, 1500))), [Verdict::Next, Verdict::Drop]);
    assert_eq!(verdict(&host, &packet(UDP, 1500)), Verdict::Drop);
}

#[test]
fn the_bucket_fills_at_the_rate() {
    // A thousand bytes a millisecond. Waiting longer than a test needs is all that time does here.
    let limit = RateLimit { bits_per_s: 8_000_000, burst_bytes: 1600, traffic: LimitedTraffic::NonTcp };
    let loaded = HostDatapath::load(&host_config_with(|config| config.rate_limit = Some(limit)));
    let Some(host) = available(loaded) else { return };
    host.set(PEER_AA, &MAPPING).unwrap();
    for _ in 0..5 {
        assert_eq!(verdict(&host, &packet(UDP, 1500)), Verdict::Next);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_super_frame_larger_than_the_bucket_leaves_once_and_is_paid_for() {
    let Some(host) = limited(1600, LimitedTraffic::All) else { return };
    let large = packet(TCP, 3000).frame();
    let run = || host.run(&FrameInput { bytes: &large, gso_size: 1400, ..FrameInput::default() }).unwrap().verdict;
    // BPF_PROG_RUN cannot say which kind of GSO it is, so the kernel refuses the push: the limit had let it through.
    assert_eq!([run(), run()], [Verdict::Drop, Verdict::Drop]);
    assert_eq!(counted(host.counters().unwrap()), [("push_failed", 1), ("rate_limited", 1)]);
    assert_eq!(verdict(&host, &packet(UDP, 60)), Verdict::Drop, "the bucket is in debt");
}

#[test]
fn only_what_would_be_encapsulated_is_counted_against_the_limit() {
    let Some(host) = limited(1600, LimitedTraffic::All) else { return };
    let frame = |destination| Ipv4 { destination, ..packet(UDP, 1500) }.frame();
    let (to_la, unknown) = (frame(Ipv4Addr::new(10, 64, 0, 1)), frame(Ipv4Addr::new(20, 9, 9, 9)));
    let run = |frame: &[u8]| host.run(&FrameInput { bytes: frame, ..FrameInput::default() }).unwrap().verdict;
    for _ in 0..20 {
        assert_eq!((run(&to_la), run(&unknown)), (Verdict::Next, Verdict::Redirect));
    }
    assert_eq!(verdict(&host, &packet(UDP, 1500)), Verdict::Next);
    assert_eq!(counted(host.counters().unwrap()), [("passed", 20), ("encapsulated", 1), ("packet_miss", 20)]);
}

#[test]
fn a_limit_that_cannot_work_is_refused() {
    let good = RateLimit { bits_per_s: 1_000_000, burst_bytes: 15_000, traffic: LimitedTraffic::NonTcp };
    for (limit, message) in [
        (RateLimit { bits_per_s: 0, ..good }, "0 bit/s lets next to nothing out"),
        (RateLimit { burst_bytes: 1573, ..good }, "1573 bytes is less than one frame, which has up to 1574"),
    ] {
        let error =
            HostDatapath::load(&host_config_with(|config| config.rate_limit = Some(limit))).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
