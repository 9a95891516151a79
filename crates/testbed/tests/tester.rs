//! The test centre's programs: the analyser and the link frame by frame, then generator to analyser over real veth pairs.

#[path = "../../datapath/tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use common::netns::{Namespace, link};
use common::{Random, available, ethernet};
use weft_datapath::frame::Verdict;
use weft_datapath::trill::XdpMode;
use weft_testbed::tester::{
    Analyser, EmulatedLinks, FRAME_BYTES_MAX, Frames, Generator, Length, LinkParams, PortReading, Recogniser, Replayer,
    SendOrder, StreamReading, digest,
};
use weft_wire::probe::{PROBE_LEN, Probe};

const MAC: [u8; 6] = [0x02, 0x57, 0x54, 1, 0, 9];
const SENDER: [u8; 6] = [0x02, 0x57, 0x54, 0, 0, 9];
const SEED: u8 = 5;
const TRIAL: u32 = 0x105;

/// Ethernet, perhaps a tag, IPv4 and UDP for a payload of `payload` bytes.
fn head(mac: [u8; 6], vlan: Option<u16>, payload: usize) -> Vec<u8> {
    let mut packet = common::Ipv4 { payload: vec![0; payload + 8], ..common::Ipv4::default() }.bytes();
    let length = (payload as u16 + 8).to_be_bytes();
    packet[20..28].copy_from_slice(&[0x30, 0x39, 0x13, 0x89, length[0], length[1], 0, 0]);
    packet.truncate(28);
    match vlan {
        None => ethernet(mac, SENDER, 0x0800, &packet),
        Some(vlan) => ethernet(mac, SENDER, 0x8100, &[&vlan.to_be_bytes()[..], &[8, 0], &packet].concat()),
    }
}

/// The same with IPv6, without a checksum, which the analyser does not look at.
fn ipv6_head(mac: [u8; 6], vlan: Option<u16>, payload: usize) -> Vec<u8> {
    let length = (payload as u16 + 8).to_be_bytes();
    let ip = [&[0x60, 0, 0, 0, length[0], length[1], 17, 64][..], &[0x20; 16], &[0x21; 16]].concat();
    let packet = [&ip[..], &[0x30, 0x39, 0x13, 0x89, length[0], length[1], 0, 0]].concat();
    match vlan {
        None => ethernet(mac, SENDER, 0x86dd, &packet),
        Some(vlan) => ethernet(mac, SENDER, 0x8100, &[&vlan.to_be_bytes()[..], &[0x86, 0xdd], &packet].concat()),
    }
}

fn probe(stream: u16, sequence: u32) -> Probe {
    Probe { stream, sequence, seed: SEED, sent_ns: now_ns(), delay_units: 0 }
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn frame(probe: Probe, payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; payload];
    probe.fill(&mut bytes);
    [head(MAC, None, payload), bytes].concat()
}

/// An analyser that expects two streams, both at [`MAC`], the second in VLAN 7; a third must not arrive here.
fn analyser() -> Option<Analyser> {
    let analyser = available(Analyser::load(&[Some((MAC, 0)), Some((MAC, 7)), None]))?;
    analyser.begin(TRIAL, SEED, 0).expect("its maps are there");
    Some(analyser)
}

fn feed(analyser: &Analyser, frames: &[Vec<u8>]) -> (PortReading, Vec<StreamReading>) {
    for frame in frames {
        assert_eq!(analyser.run(frame).expect("the kernel takes it").verdict, Verdict::Drop);
    }
    (analyser.port().unwrap(), analyser.streams(TRIAL).unwrap())
}

#[test]
fn order_is_judged_as_a_window_judges_it() {
    let Some(analyser) = analyser() else { return };
    // 3 is late, 2 comes twice, 100 jumps, 40 is late within 64, 30 is older than the window, 99 is late.
    let order = [0, 1, 2, 2, 4, 3, 100, 40, 30, 99, 101, 40];
    let frames: Vec<_> = order.iter().map(|sequence| frame(probe(0, *sequence), PROBE_LEN)).collect();
    let (port, streams) = feed(&analyser, &frames);
    let StreamReading { received, reordered, duplicated, stale, misdelivered, corrupt, .. } = streams[0];
    assert_eq!((received, reordered, duplicated, stale, misdelivered, corrupt), (11, 3, 2, 1, 0, 0));
    assert_eq!(port.port.frames, 12);
    assert_eq!(streams[1].received, 0);
}

#[test]
fn a_new_trial_begins_at_zero_and_knows_the_frames_of_the_last() {
    let Some(analyser) = analyser() else { return };
    let frames: Vec<_> = (0..5).map(|sequence| frame(probe(0, sequence), PROBE_LEN)).collect();
    feed(&analyser, &frames);
    analyser.begin(TRIAL + 1, SEED + 1, 0).unwrap();
    let (port, _) = feed(&analyser, &frames);
    assert_eq!((port.port.frames, port.port.earlier), (0, 5));
    assert_eq!(port.histogram.iter().sum::<u64>(), 0);
    assert_eq!(analyser.streams(TRIAL + 1).unwrap()[0].received, 0);
    let again = frame(Probe { seed: SEED + 1, ..probe(0, 0) }, PROBE_LEN);
    assert_eq!(feed(&analyser, &[again]).0.port.frames, 1);
    assert_eq!(analyser.streams(TRIAL + 1).unwrap()[0].received, 1);
}

#[test]
fn wrong_stations_are_misdelivered_and_strangers_pass() {
    let Some(analyser) = analyser() else { return };
    let with_head = |head: Vec<u8>, stream| [head, probe(stream, 0).to_bytes().to_vec()].concat();
    let frames = [
        with_head(head([2, 0, 0, 0, 0, 1], None, PROBE_LEN), 0),
        with_head(head(MAC, Some(7), PROBE_LEN), 0),
        with_head(head(MAC, Some(7), PROBE_LEN), 1),
        with_head(head(MAC, Some(8), PROBE_LEN), 1),
        with_head(head(MAC, None, PROBE_LEN), 1),
        with_head(head(MAC, None, PROBE_LEN), 2),
        with_head(head(MAC, None, PROBE_LEN), 3),
    ];
    let (port, streams) = feed(&analyser, &frames);
    let of = |stream: usize| (streams[stream].received, streams[stream].misdelivered);
    assert_eq!((of(0), of(1), of(2), port.port.unknown), ((0, 2), (1, 2), (0, 1), 1));
    // What has no probe is the kernel's: ARP, other UDP, and bytes that end in the middle.
    let mut random = Random(7);
    let mut other = frame(probe(0, 0), 64);
    other[42] = 0;
    for bytes in [common::arp(1, (MAC, common::MY_AA), (SENDER, common::PEER_AA)), other, random.bytes(59)] {
        let bytes = if bytes.len() < 40 { ethernet(MAC, SENDER, 0x0806, &bytes) } else { bytes };
        assert_eq!(analyser.run(&bytes).unwrap().verdict, Verdict::Next);
    }
    for length in 14..60 {
        assert_eq!(analyser.run(&frame(probe(0, 0), PROBE_LEN)[..length]).unwrap().verdict, Verdict::Next, "{length}");
    }
}

#[test]
fn every_damaged_bit_is_counted() {
    let Some(analyser) = analyser() else { return };
    // 133 bytes of pattern: whole words and a rest of five bytes.
    let whole = frame(probe(0, 0), PROBE_LEN + 133);
    for at in 44..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let before = feed(&analyser, &[]);
        let after = feed(&analyser, &[damaged]);
        let counted = (after.0.port.damaged - before.0.port.damaged, after.1[0].corrupt - before.1[0].corrupt);
        let expected = if at < 42 + PROBE_LEN { (1, 0) } else { (0, 1) };
        assert_eq!(counted, expected, "byte {at}");
    }
    assert_eq!(feed(&analyser, std::slice::from_ref(&whole)).1[0].received, 1);
    // Padding behind the datagram is nobody's payload.
    let padded = [frame(probe(0, 1), PROBE_LEN + 3), vec![0xee; 20]].concat();
    assert_eq!(feed(&analyser, &[padded]).1[0].received, 2);
    // With a mask only some frames are looked at.
    analyser.begin(TRIAL, SEED, 3).unwrap();
    let corrupt = |sequence| {
        let mut bytes = frame(probe(0, sequence), 100);
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    };
    let before = feed(&analyser, &[]).1[0].corrupt;
    let frames: Vec<_> = (8..16).map(corrupt).collect();
    assert_eq!(feed(&analyser, &frames).1[0].corrupt - before, 2);
}

#[test]
fn ipv6_frames_are_counted_and_looked_at_as_ipv4s_are() {
    let Some(analyser) = analyser() else { return };
    let with = |head: Vec<u8>, probe: Probe, payload: usize| {
        let mut bytes = vec![0; payload];
        probe.fill(&mut bytes);
        [head, bytes].concat()
    };
    let payload = PROBE_LEN + 77;
    let whole = with(ipv6_head(MAC, None, payload), probe(0, 0), payload);
    let tagged = with(ipv6_head(MAC, Some(7), payload), probe(1, 0), payload);
    let elsewhere = with(ipv6_head(SENDER, None, payload), probe(0, 1), payload);
    let (port, streams) = feed(&analyser, &[whole.clone(), tagged, elsewhere]);
    let of = |stream: usize| (streams[stream].received, streams[stream].misdelivered);
    assert_eq!((of(0), of(1), port.port.frames), ((1, 1), (1, 0), 2));
    for at in 64..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let before = feed(&analyser, &[]);
        let after = feed(&analyser, &[damaged]);
        let counted = (after.0.port.damaged - before.0.port.damaged, after.1[0].corrupt - before.1[0].corrupt);
        assert_eq!(counted, if at < 62 + PROBE_LEN { (1, 0) } else { (0, 1) }, "byte {at}");
    }
    // Neighbours' questions, other datagrams, and frames that end in the middle are the kernel's.
    for length in 14..62 + PROBE_LEN {
        assert_eq!(analyser.run(&whole[..length]).unwrap().verdict, Verdict::Next, "{length}");
    }
    let mut version = whole;
    version[14] = 0x50;
    assert_eq!(analyser.run(&version).unwrap().verdict, Verdict::Next);
}

#[test]
fn latency_is_time_on_the_way_and_virtual_delay() {
    let Some(analyser) = analyser() else { return };
    const LONG_NS: u64 = 10_000_000_000;
    let sent = |sequence, units| Probe { sent_ns: now_ns() - LONG_NS, delay_units: units, ..probe(0, sequence) };
    let frames = [frame(sent(0, 0), PROBE_LEN), frame(sent(1, 1 << 15), PROBE_LEN)];
    let (port, _) = feed(&analyser, &frames);
    let port = port.port;
    let least = 2 * LONG_NS + (64 << 15);
    assert!(port.latency_sum_ns >= least && port.latency_sum_ns < least + 5_000_000_000, "{port:?}");
    assert!(port.latency_max_ns >= LONG_NS + (64 << 15) && port.jitter_count == 1);
}

#[test]
fn any_bytes_do_no_harm() {
    let Some(analyser) = analyser() else { return };
    let Some(links) = available(EmulatedLinks::load()) else { return };
    links.set("lo", &LinkParams { rate_bps: 1_000_000, ..LinkParams::default() }).unwrap();
    let mut random = Random(11);
    for round in 0..400 {
        let length = 14 + random.below(300) as usize;
        let mut bytes = random.bytes(length);
        if round % 2 == 0 {
            let good = frame(probe(0, round), PROBE_LEN + 60);
            let kept = 14 + random.below(good.len() as u64 - 14) as usize;
            bytes = good[..kept].to_vec();
            let at = random.below(kept as u64) as usize;
            bytes[at] ^= random.next() as u8;
        }
        analyser.run(&bytes).expect("a verdict");
        match links.run_tc(&bytes) {
            // The kernel itself refuses what is shorter than its own headers.
            Ok(_) | Err(weft_datapath::DatapathError::Program { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn stamped(bytes: &[u8], at: usize) -> Probe {
    Probe::parse(&bytes[at..]).expect("the probe is whole")
}

#[test]
fn a_link_serialises_queues_delays_and_drops() {
    let Some(links) = available(EmulatedLinks::load()) else { return };
    // A kilobit a second: whatever this test takes is nothing. 100 bytes on the line are 0.8 s.
    let params = LinkParams { rate_bps: 1000, queue_ns: 2_000_000_000, delay_ns: 1000, overhead_bytes: 24 };
    links.set("lo", &LinkParams { rate_bps: 1_000_000_000, queue_ns: 300_000_000, delay_ns: 1000, ..params }).unwrap();
    let sent = Probe { sent_ns: 5000, ..probe(0, 0) };
    let bytes = frame(sent, PROBE_LEN + 16);
    let out = links.run_tc(&bytes).unwrap();
    assert_eq!(out.verdict, Verdict::Next);
    // 76 bytes and 24 at 1 Gbit/s: 800 ns, and 1000 ns on the way.
    let delayed = stamped(&out.bytes, 42);
    assert_eq!(delayed.latency_ns(5000), 1800);
    assert_eq!(out.bytes[..42], bytes[..42]);
    assert_eq!(out.bytes[60..], bytes[60..]);

    links.set("lo", &params).unwrap();
    let passed = (0..9).filter(|_| links.run_tc(&bytes).unwrap().verdict == Verdict::Next).count();
    // One on the line and what waits at most 2 s behind it: 0, 0.8, 1.6 s.
    assert_eq!(passed, 3);
    let counters = links.counters("lo").unwrap();
    assert_eq!((counters.passed, counters.dropped, counters.foreign), (3, 6, 0));
    assert_eq!(counters.saturated, 3, "seconds do not fit the field");
    assert!(links.set("lo", &LinkParams { rate_bps: 1, ..params }).is_err());
}

#[test]
fn a_link_finds_the_probe_in_every_encapsulation() {
    let Some(links) = available(EmulatedLinks::load()) else { return };
    links.set("lo", &LinkParams { delay_ns: 64_000, ..LinkParams::default() }).unwrap();
    let inner = frame(Probe { sent_ns: 9, ..probe(0, 0) }, PROBE_LEN);
    for at in [42, 46, 52, 62, 66, 72, 82, 86, 92, 96, 112, 116] {
        let bytes = [vec![0; at - 42], inner.clone()].concat();
        let out = links.run_tc(&bytes).unwrap();
        assert_eq!(stamped(&out.bytes, at).delay_units, 1000, "at {at}");
    }
    let strange = [vec![0; 3], inner].concat();
    assert_eq!(links.run_tc(&strange).unwrap().bytes, strange);
    assert_eq!(links.counters("lo").unwrap().foreign, 1);
}

const ORDER: SendOrder = SendOrder {
    interval_ns: 0.0,
    duration_ns: 10_000_000_000,
    limit: 10_000,
    batch: 64,
    spin: false,
    slip_ns: 20_000,
    seed: SEED,
    cpu: 0,
};

#[test]
fn all_frames_of_the_generator_reach_the_analyser_over_a_relay() {
    if !weft_needs::root() {
        return;
    }
    let [a, dut, b] = ["a", "dut", "b"].map(|node| Namespace::new("tester", node));
    link((&a, "g0"), (&dut, "s0"), 1500);
    link((&dut, "s1"), (&b, "k0"), 1500);
    let heads: Vec<Vec<u8>> = (0..3).map(|_| head(MAC, None, PROBE_LEN + 200)).collect();
    let Some(analyser) = available(b.enter(|| {
        let mut analyser = Analyser::load(&[Some((MAC, 0)); 3])?;
        assert_eq!(analyser.attach("k0")?, XdpMode::Native);
        Ok(analyser)
    })) else {
        return;
    };
    let links = dut.enter(|| {
        let mut links = EmulatedLinks::load().unwrap();
        links
            .set("s1", &LinkParams { rate_bps: 1_000_000_000_000, delay_ns: 100_000, ..LinkParams::default() })
            .unwrap();
        links.relay("s0", "s1", 0).unwrap();
        links
    });
    let generator = a.enter(|| Generator::load("g0", &Frames::of_one_length(260, heads))).unwrap();
    // Where receiving is left to its thread, which Linux does under load, sending goes on meanwhile: a port holds 256 frames then,
    // which at this pace are 5 ms. Those that go as fast as they can are not more.
    let fast = std::iter::repeat_n((64, 0.0, false, 193), 50);
    for (batch, interval_ns, spin, limit) in fast.chain([(1, 20_000.0, false, 10_001), (1, 20_000.0, true, 500)]) {
        analyser.begin(TRIAL, SEED, 0).unwrap();
        let order = SendOrder { batch, interval_ns, spin, limit, duration_ns: 2_000_000_000, ..ORDER };
        let sent = a.enter(|| generator.send(&order, &|| false)).unwrap();
        let port = arrived(&analyser, limit);
        assert_eq!((sent.frames, port.port.frames), (limit, limit), "{order:?}");
        let streams = analyser.streams(TRIAL).unwrap();
        assert!(streams.iter().all(|stream| stream.received >= limit / 3 && stream.reordered + stream.corrupt == 0));
        assert_eq!(port.port.bytes, limit * 260);
        assert_eq!(port.histogram.iter().sum::<u64>(), limit);
        assert!(port.port.latency_sum_ns > limit * 100_000, "the link's delay is in it");
        let gaps: u64 = sent.gaps.iter().sum();
        assert_eq!(gaps, if interval_ns > 0.0 { limit - 1 } else { 0 });
    }
    dut.enter(|| assert_eq!(links.counters("s1").unwrap().dropped, 0));
}

#[test]
fn lengths_take_turns_and_every_frame_has_its_own() {
    if !weft_needs::root() {
        return;
    }
    let (a, b) = (Namespace::new("turns", "a"), Namespace::new("turns", "b"));
    link((&a, "g0"), (&b, "k0"), 3000);
    let length = |bytes: usize| Length { frame_bytes: bytes, heads: vec![head(MAC, None, bytes - 42); 3] };
    let frames = Frames { lengths: [60, 301, 1514, 3000].map(length).into(), turns: vec![0, 1, 0, 2, 0, 3] };
    let Some(analyser) = available(b.enter(|| {
        let mut analyser = Analyser::load(&[Some((MAC, 0)); 3])?;
        analyser.attach("k0").map(|_| analyser)
    })) else {
        return;
    };
    let generator = a.enter(|| Generator::load("g0", &frames)).unwrap();
    // Pages come back to the generator after a few hundred frames: each has its whole pattern again, whatever it was before.
    for (trial, batch, interval_ns, rounds) in [(TRIAL, 64, 0.0, 3_333u64), (TRIAL + 1, 1, 10_000.0, 167)] {
        // Whole rounds of every stream.
        let limit = 3 * 6 * rounds;
        analyser.begin(trial, SEED, 0).unwrap();
        let order = SendOrder { batch, interval_ns, limit, ..ORDER };
        let sent = a.enter(|| generator.send(&order, &|| false)).unwrap();
        let port = arrived(&analyser, limit);
        assert_eq!((sent.frames, port.port.frames), (limit, limit), "{order:?}");
        assert_eq!(port.port.bytes, limit / 6 * (3 * 60 + 301 + 1514 + 3000), "six frames of four lengths");
        let streams = analyser.streams(trial).unwrap();
        let is_whole = |stream: &StreamReading| stream.received == limit / 3 && stream.reordered + stream.corrupt == 0;
        assert!(streams.iter().all(is_whole), "{streams:?}");
    }
}

/// Bytes that differ in every frame.
fn any_frame(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| (place * 31 + bytes * 7 + place / 256) as u8).collect()
}

#[test]
fn frames_are_known_by_all_their_bytes() {
    // Around the blocks of the digest, and lengths that no block ends at.
    let frames: Vec<_> = [14, 60, 63, 64, 65, 127, 128, 129, 1000, 1514, 3000].map(any_frame).into();
    let digests = frames.iter().map(|frame| digest(frame)).collect();
    let Some(receiver) = available(Recogniser::load(digests)) else { return };
    let verdict = |frame: &[u8]| receiver.run(frame).unwrap().verdict;
    for round in 1..=3u64 {
        assert!(frames.iter().all(|frame| verdict(frame) == Verdict::Drop), "known");
        assert_eq!(receiver.received().unwrap(), vec![round; frames.len()]);
    }
    assert_eq!((receiver.port().unwrap().frames, receiver.port().unwrap().foreign), (33, 0));
    let mut strangers = Vec::new();
    for frame in &frames {
        for place in [0, frame.len() / 2, frame.len() - 1] {
            let mut other = frame.clone();
            other[place] ^= 0x10;
            strangers.push(other);
        }
        strangers.push([&frame[..], &[0]].concat());
    }
    assert!(strangers.iter().all(|frame| verdict(frame) == Verdict::Next), "the kernel has what is not known");
    assert_eq!(receiver.port().unwrap().foreign, 44);
    assert_eq!(receiver.received().unwrap(), vec![3; frames.len()]);
    receiver.begin().unwrap();
    assert_eq!(receiver.received().unwrap(), vec![0; frames.len()]);
    assert_eq!((receiver.port().unwrap().frames, receiver.port().unwrap().foreign), (0, 0));
}

#[test]
fn frames_to_replay_that_cannot_be_are_refused() {
    let refused = |frames: &[Vec<u8>]| Replayer::load("lo", frames).unwrap_err().to_string();
    assert!(refused(&[]).contains("0; a sender has 1 to 16384"));
    assert!(refused(&vec![any_frame(60); 16_385]).contains("16385; a sender has 1 to 16384"));
    assert!(refused(&[any_frame(60), any_frame(13)]).contains("13 bytes"));
    assert!(refused(&[any_frame(3001)]).contains("14 to 3000"));
    assert!(Recogniser::load(Vec::new()).is_err());
}

/// What the port counted once this many frames had arrived; frames may be under way when the generator has sent them all.
fn arrived(analyser: &Analyser, frames: u64) -> PortReading {
    let start = Instant::now();
    loop {
        let reading = analyser.port().unwrap();
        if reading.port.frames >= frames || start.elapsed() > Duration::from_secs(10) {
            return reading;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn orders_that_cannot_be_are_refused() {
    let load = |interface: &str, bytes, heads| Generator::load(interface, &Frames::of_one_length(bytes, heads));
    let short = load("lo", 60, vec![vec![0; 41]]).expect_err("no such head");
    assert!(short.to_string().contains("42 bytes"), "{short}");
    assert!(load("weft-none", 60, vec![vec![0; 42]]).is_err());
    assert!(Analyser::load(&[]).is_err());
    let Some(mut generator) = available(load("lo", FRAME_BYTES_MAX + 1, vec![vec![0; 42]])) else { return };
    let error = generator.send(&ORDER, &|| false).expect_err("no such size");
    assert!(error.to_string().contains("at most 3000"), "{error}");
    let error = generator.set_frames(&Frames::of_one_length(60, vec![vec![0; 42]; 2])).expect_err("another stream");
    assert!(error.to_string().contains("cannot change"), "{error}");
    generator.set_frames(&Frames::of_one_length(60, vec![vec![0; 42]])).expect("the same streams");
    let error = generator.send(&SendOrder { cpu: 900, ..ORDER }, &|| false).expect_err("no such CPU");
    assert!(error.to_string().contains("cpu: 900 cannot be used"), "{error}");
}

#[test]
fn the_user_can_stop_a_generator() {
    if !weft_needs::root() {
        return;
    }
    let (a, b) = (Namespace::new("stop", "a"), Namespace::new("stop", "b"));
    link((&a, "g0"), (&b, "k0"), 1500);
    let Some(generator) =
        available(a.enter(|| Generator::load("g0", &Frames::of_one_length(60, vec![head(MAC, None, PROBE_LEN)]))))
    else {
        return;
    };
    let asked = std::sync::atomic::AtomicU32::new(0);
    let stop = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 2;
    let order = SendOrder { duration_ns: 600_000_000_000, limit: u64::MAX, interval_ns: 1000.0, ..ORDER };
    let sent = a.enter(|| generator.send(&order, &stop)).unwrap();
    assert!(sent.frames > 0 && sent.span_ns < 60_000_000_000, "{} frames", sent.frames);
}
